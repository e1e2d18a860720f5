/* bench/speedups.c - ghp-speedups: published speed-ups of synchronous training compared with those that ghp predicts.
 *
 * The figures are of Das et al., "Distributed Deep Learning Using Synchronous Stochastic Gradient Descent", arXiv
 * 1602.06709 (abstract); the nodes' of the clusters' public descriptions (docs/results/published-speedups.md names
 * each). Nothing here is measured: a step is ghp's program, costed by the analytic model and simulated.
 *
 * Order: what nominal figures give; one parameter fitted to all cases, then with each left out; the same with two
 * parameters, other plan kinds and latencies; ghp's own plan; curves where the publication does not say the batch.
 *
 * Tested  tests/tools/bench/test_speedups.sh */
#include "bench/scaling.h"
#include "core/base/opts.h"
#include "core/base/table.h"

#include <math.h>
#include <stdio.h>

enum { CASES = 3, BATCHES = 9 };

static struct ghp_scaling_case cori[CASES] = {
    {.network = "vgg-a", .batch = 512, .nodes = 128, .published = 90},
    {.network = "vgg-a", .batch = 256, .nodes = 64, .published = 53},
    {.network = "overfeat-fast", .batch = 256, .nodes = 64, .published = 42},
};

/* Cori's Haswell node: 32 cores of 36.8 Gflop/s in double, twice that in single precision; 8 GB/s and at most 3.7 us
 * between nodes (0.25 us at the least). A ring's step ends with its slowest message: the largest latency counts. */
static const struct ghp_scaling_node cori_node = {32 * 36.8e9 * 2, 8e9, 3.7e-6, 0};

/* c4.8xlarge: 18 cores of 2.9 GHz with two fused multiply-adds of 8 singles a cycle, 10 Gbit/s Ethernet. The latency
 * is an assumption. */
static const struct ghp_scaling_node aws_node = {18 * 2.9e9 * 32, 1.25e9, 50e-6, 0};

static const char *const kind_names[GHP_SCALING_KINDS] = {"best K", "rule", "K = N"};

static const char *models = "models";
static bool fit_only;

static const struct ghp_opt options[] = {
    {.name = "models",
     .kind = GHP_OPT_TEXT,
     .target = &models,
     .argument = "FOLDER",
     .help = "where the networks are described"},
    {.name = "fit-only",
     .kind = GHP_OPT_FLAG,
     .target = &fit_only,
     .help = "nominal figures and fits, without ghp's own plans and the curves"},
};

static const struct ghp_tool tool = {
    .name = "ghp-speedups",
    .purpose = "prints published speed-ups of training beside those that ghp predicts by the "
               "analytic model",
    .usage = "ghp-speedups [options]",
    .example = "build/bin/ghp-speedups",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
};

static double error_of(int k, double speedup)
{
    return 100 * (speedup / cori[k].published - 1);
}

/* ---- tables ---- */

static void case_columns(struct ghp_table *t)
{
    for (int k = 0; k < CASES; k++) {
        char name[64];

        snprintf(name, sizeof name, "%s/%d", cori[k].network, cori[k].nodes);
        ghp_table_column(t, name, "x", 'r');
        ghp_table_column(t, "error", "%", 'r');
    }
}

static void case_cells(struct ghp_table *t, const double *speedup)
{
    for (int k = 0; k < CASES; k++) {
        ghp_table_cell(t, "%.1f", speedup[k]);
        ghp_table_cell(t, "%+.1f", error_of(k, speedup[k]));
    }
}

static enum ghp_status finish_table(struct ghp_table *t)
{
    enum ghp_status status = ghp_table_print(t, stdout);

    if (status == GHP_OK) putchar('\n');
    ghp_table_close(t);
    return status;
}

/* Nominal figures, no fit. */
static enum ghp_status print_nominal(void)
{
    struct ghp_table *t = ghp_table_open();
    const double published[CASES] = {cori[0].published, cori[1].published, cori[2].published};
    enum ghp_status status = GHP_OK;

    ghp_table_note(
        t, "nominal: nothing fitted; a node %.3g flop/s at any batch, link %.3g bytes/s, %.3g s",
        cori_node.flops_per_s, cori_node.bandwidth_Bps, cori_node.latency_s);
    ghp_table_column(t, "nominal", "", 'l');
    case_columns(t);
    ghp_table_row(t);
    ghp_table_cell(t, "published");
    case_cells(t, published);
    for (int kind = 0; kind < GHP_SCALING_KINDS && status == GHP_OK; kind++) {
        double speedup[CASES] = {0};

        for (int k = 0; k < CASES && status == GHP_OK; k++)
            status = ghp_scaling_speedup(&cori[k], &cori_node, (enum ghp_scaling_kind)kind,
                                         &speedup[k], NULL);
        ghp_table_row(t);
        ghp_table_cell(t, "%s", kind_names[kind]);
        case_cells(t, speedup);
    }
    if (status == GHP_OK) return finish_table(t);
    ghp_table_close(t);
    return status;
}

/* One row: the parameters found, and every case, the one left out (-1: none) named in front. */
static void fit_row(struct ghp_table *t, const struct ghp_scaling_fit *fit, int left_out)
{
    ghp_table_row(t);
    if (left_out < 0)
        ghp_table_cell(t, "none");
    else
        ghp_table_cell(t, "%s/%d", cori[left_out].network, cori[left_out].nodes);
    ghp_table_cell(t, "%.3f", fit->node.batch_half);
    ghp_table_cell(t, "%.0f", 400 / (4 + fit->node.batch_half));
    ghp_table_cell(t, "%.2f", 1e-9 * fit->node.bandwidth_Bps);
    case_cells(t, fit->speedup);
    if (left_out < 0)
        ghp_table_cell(t, "-");
    else
        ghp_table_cell(t, "%+.1f", error_of(left_out, fit->speedup[left_out]));
}

/* The joint fit, and each case left out in turn. */
static enum ghp_status print_fit(const char *name, int n_free, struct ghp_scaling_fit *joint)
{
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status = GHP_OK;

    ghp_table_note(t, "%s", name);
    ghp_table_column(t, "left out", "", 'l');
    ghp_table_column(t, "batch_half", "samples", 'r');
    ghp_table_column(t, "rate at 4", "%", 'r');
    ghp_table_column(t, "bandwidth", "GB/s", 'r');
    case_columns(t);
    ghp_table_column(t, "held out", "%", 'r');
    for (int k = -1; k < CASES && status == GHP_OK; k++) {
        struct ghp_scaling_fit fit = {.kind = GHP_SCALING_BEST,
                                      .n_free = n_free,
                                      .left_out = k < 0 ? 0 : 1u << k,
                                      .node = cori_node};

        status = ghp_scaling_fit(cori, CASES, &fit);
        fit_row(t, &fit, k);
        if (k < 0) *joint = fit;
    }
    if (status == GHP_OK) return finish_table(t);
    ghp_table_close(t);
    return status;
}

/* ---- how much hangs on what was not fitted ---- */

struct spread {
    double joint, held_out; /* largest magnitude of an error, % */
};

static enum ghp_status find_spread(enum ghp_scaling_kind kind, double latency_s, int n_free,
                                   struct spread *spread)
{
    *spread = (struct spread){0};
    for (int left = -1; left < CASES; left++) {
        struct ghp_scaling_fit fit = {.kind = kind,
                                      .n_free = n_free,
                                      .left_out = left < 0 ? 0 : 1u << left,
                                      .node = cori_node};

        fit.node.latency_s = latency_s;
        GHP_TRY(ghp_scaling_fit(cori, CASES, &fit));
        for (int k = 0; k < CASES; k++)
            if (left < 0) spread->joint = fmax(spread->joint, fabs(error_of(k, fit.speedup[k])));
        if (left >= 0)
            spread->held_out = fmax(spread->held_out, fabs(error_of(left, fit.speedup[left])));
    }
    return GHP_OK;
}

static enum ghp_status print_spreads(void)
{
    static const double latencies_s[] = {0.25e-6, 2e-6, 3.7e-6};
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status = GHP_OK;

    ghp_table_note(t, "other plan kinds, latencies and numbers of free parameters: largest error "
                      "of the joint fit, and "
                      "of the cases left out");
    ghp_table_column(t, "plan", "", 'l');
    ghp_table_column(t, "latency", "us", 'r');
    ghp_table_column(t, "fitted", "", 'r');
    ghp_table_column(t, "joint", "%", 'r');
    ghp_table_column(t, "held out", "%", 'r');
    for (int kind = 0; kind < GHP_SCALING_KINDS; kind++)
        for (size_t l = 0; l < sizeof latencies_s / sizeof latencies_s[0]; l++)
            for (int n_free = 1; n_free <= GHP_SCALING_PARAMETERS && status == GHP_OK; n_free++) {
                struct spread spread;

                status = find_spread((enum ghp_scaling_kind)kind, latencies_s[l], n_free, &spread);
                ghp_table_row(t);
                ghp_table_cell(t, "%s", kind_names[kind]);
                ghp_table_cell(t, "%.2f", 1e6 * latencies_s[l]);
                ghp_table_cell(t, "%d", n_free);
                ghp_table_cell(t, "%.1f", spread.joint);
                ghp_table_cell(t, "%.1f", spread.held_out);
            }
    if (status == GHP_OK) return finish_table(t);
    ghp_table_close(t);
    return status;
}

/* ---- ghp's own plans, and curves ---- */

static enum ghp_status own_row(struct ghp_table *t, int k, const struct ghp_scaling_node *node)
{
    static const char *const forces[] = {"conv*=data", NULL};
    double speedup;

    GHP_TRY(ghp_scaling_speedup(&cori[k], node, GHP_SCALING_BEST, &speedup, NULL));
    ghp_table_row(t);
    ghp_table_cell(t, "%s/%d", cori[k].network, cori[k].nodes);
    ghp_table_cell(t, "%.0f", cori[k].published);
    ghp_table_cell(t, "%.1f", speedup);
    for (size_t f = 0; f < sizeof forces / sizeof forces[0]; f++) {
        double own, gap = 0.001;

        GHP_TRY(ghp_scaling_own(&cori[k], models, node, forces[f], &own, &gap));
        ghp_table_cell(t, "%.1f", own);
        ghp_table_cell(t, "%.2f", 100 * gap);
    }
    return GHP_OK;
}

static enum ghp_status print_own(const struct ghp_scaling_node *node)
{
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status = GHP_OK;

    ghp_table_note(t, "ghp's own plans on these nodes, with the parameter fitted to all cases: "
                      "convolutions by data; any split");
    ghp_table_column(t, "case", "", 'l');
    ghp_table_column(t, "published", "x", 'r');
    ghp_table_column(t, "their kind", "x", 'r');
    ghp_table_column(t, "conv data", "x", 'r');
    ghp_table_column(t, "mip-gap", "%", 'r');
    ghp_table_column(t, "any", "x", 'r');
    ghp_table_column(t, "mip-gap", "%", 'r');
    for (int k = 0; k < CASES && status == GHP_OK; k++)
        status = own_row(t, k, node);
    if (status == GHP_OK) return finish_table(t);
    ghp_table_close(t);
    return status;
}

/* Speed-ups of some networks on 16 nodes over the batch, next to a figure whose batch is not published. */
static enum ghp_status print_curves(const char *note, const struct ghp_scaling_node *node,
                                    const char *const *networks, int64_t first_batch)
{
    struct ghp_table *t = ghp_table_open();
    struct ghp_scaling_case item[GHP_SCALING_MOST] = {0};
    enum ghp_status status = GHP_OK;
    int n = 0;

    ghp_table_note(t, "%s", note);
    ghp_table_column(t, "batch", "", 'r');
    for (; networks[n] != NULL; n++) {
        item[n] = (struct ghp_scaling_case){.network = networks[n], .nodes = 16};
        ghp_table_column(t, networks[n], "x", 'r');
        ghp_table_column(t, "K", "", 'r');
    }
    status = ghp_scaling_open(models, item, n);
    for (int b = 0; b < BATCHES && status == GHP_OK; b++) {
        ghp_table_row(t);
        ghp_table_cell(t, "%lld", (long long)first_batch << b);
        for (int k = 0; k < n && status == GHP_OK; k++) {
            double speedup = 0;
            int tp_size = 0;

            item[k].batch = first_batch << b;
            status = ghp_scaling_speedup(&item[k], node, GHP_SCALING_BEST, &speedup, &tp_size);
            ghp_table_cell(t, "%.1f", speedup);
            ghp_table_cell(t, "%d", tp_size);
        }
    }
    ghp_scaling_close(item, n);
    if (status == GHP_OK) return finish_table(t);
    ghp_table_close(t);
    return status;
}

static enum ghp_status print_all_curves(double batch_half)
{
    static const char *const images[] = {"overfeat-fast", "vgg-a", "alexnet", NULL};
    static const char *const speech[] = {"cd-dnn", NULL};
    struct ghp_scaling_node aws = aws_node, node = cori_node;

    aws.batch_half = node.batch_half = batch_half;
    GHP_TRY(print_curves(
        "16 c4.8xlarge, 10 Gbit/s Ethernet: published about 14 (network and batch not stated)",
        &aws, images, 16));
    return print_curves(
        "CD-DNN on 16 nodes: published 6.5 (batch and links not stated; here Cori's node)", &node,
        speech, 64);
}

static enum ghp_status run(void)
{
    struct ghp_scaling_fit joint, two;

    GHP_TRY(ghp_scaling_open(models, cori, CASES));
    GHP_TRY(print_nominal());
    GHP_TRY(print_fit("one parameter fitted: batch_half, one value for all cases (plan: best K)", 1,
                      &joint));
    GHP_TRY(print_fit(
        "two parameters fitted: batch_half, and bandwidth under load of at most the nominal one", 2,
        &two));
    if (fit_only) return GHP_OK;
    GHP_TRY(print_spreads());
    GHP_TRY(print_own(&joint.node));
    return print_all_curves(joint.node.batch_half);
}

int main(int argc, char **argv)
{
    int n_files = 0;
    enum ghp_status status = ghp_opts_parse(&tool, argc, argv, NULL, 0, &n_files);

    if (status == GHP_OK && !ghp_opts_done()) status = run();
    ghp_scaling_close(cori, CASES);
    if (status != GHP_OK) fprintf(stderr, "%s: %s\n", tool.name, ghp_status_message());
    return ghp_status_exit_code(status);
}
