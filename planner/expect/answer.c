/* planner/expect/answer.c - see answer.h. */
#include "planner/expect/answer.h"

#include "core/base/json.h"
#include "core/base/table.h"
#include "core/base/units.h"
#include "core/cost/profile_peak.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGES_SHOWN = 3, REASON_BYTES = 512 };

struct answer {
    struct ghp_expected expected;
    struct ghp_expect_change changes[GHP_EXPECT_CHANGES];
    int n_changes;
    double second_node_Bps; /* below 0: the batch does not come out on two nodes */
};

static double rate_of(const struct ghp_expect_question *q, double step_s)
{
    return (double)q->setup.batch / step_s;
}

/* ---- words ---- */

/* Tensor parallelism exchanges on the stream that computes, so a plan with it is judged by its parts. */
static const char *binds_parts(const struct ghp_expected *e)
{
    if (e->links_s > e->idle_s && e->links_s > 0.5 * e->at.step_s)
        return "the links: most of the step waits for them";
    if (e->idle_s > e->links_s && e->idle_s > 0.1 * e->at.step_s)
        return "computing, then stages that wait for each other: more micro-batches shorten that";
    if (e->links_s > 0.1 * e->at.step_s) return "computing, then the links";
    return "computing: it hides what goes over the links";
}

static const char *binds(const struct ghp_expected *e)
{
    const struct ghp_prediction *at = &e->at;

    if (!isnan(e->links_s)) return binds_parts(e);
    if (at->reshard_s > at->exposed_s && at->reshard_s > 0.5 * at->step_s)
        return "the links: layers exchange tensors or statistics most of the step";
    if (at->reshard_s > at->exposed_s && at->reshard_s > 0.1 * at->step_s)
        return "computing, then the links that layers exchange tensors or statistics over";
    if (at->exposed_s > 0.5 * at->step_s)
        return "the links: computing waits for gradients most of the step";
    if (at->exposed_s > 0.1 * at->step_s) return "computing, then the links that gradients go over";
    return at->comm_s > 0 ? "computing: it hides the reductions" : "computing: nothing is reduced";
}

/* Digits after the point that show a number: one, or more of one below `least`. */
static int decimals(double number, double least)
{
    int n = 1;

    for (; number > 0 && number < least && n < 6; number *= 10)
        n++;
    return n;
}

static int step_decimals(const struct ghp_expected *e)
{
    return decimals(1e3 * e->at.step_s, 9.5);
}

static void print_parts(const struct ghp_expected *e)
{
    const struct ghp_prediction *at = &e->at;
    int n = step_decimals(e);

    if (!isnan(e->links_s)) {
        printf("parts       computing %.*f ms, the links add %.*f ms, stages wait %.*f ms\n", n,
               1e3 * e->computing_s, n, 1e3 * e->links_s, n, 1e3 * e->idle_s);
        return;
    }
    printf("parts       computing %.*f ms, ", n, 1e3 * ghp_prediction_computing_s(at));
    if (at->reshard_s > 0) printf("exchanges of layers %.*f ms, ", n, 1e3 * at->reshard_s);
    printf("reductions %.*f ms of which %.*f ms are waited for\n", n, 1e3 * at->comm_s, n,
           1e3 * at->exposed_s);
}

/* Whether the profile knows so little of the step that nothing can be held against it. */
static bool is_unusable(const struct ghp_expect_question *q, const struct ghp_expected *e)
{
    return q->setup.profile != NULL && e->at.measured_share < 0.005 && !(e->range.low_s > 0);
}

/* The fraction of the peak FLOPs by the measured step; NAN: no peak is known. */
static double measured_utilisation(const struct ghp_expect_question *q,
                                   const struct ghp_expected *e)
{
    return e->utilisation * e->at.step_s / q->measured_s;
}

/* What a measured step below the range can mean. */
static const char *find_too_quick(const struct ghp_expect_question *q, const struct ghp_expected *e)
{
    return measured_utilisation(q, e) > 1
               ? "more than the peak FLOPs allow; check --batch, of all workers, and --precision"
               : "below the range; check batch, precision and recomputation";
}

/* Whether the batch or the rate can be one worker's: the step is as many times as long as there are workers. */
static bool is_of_one_worker(const struct ghp_expect_question *q, const struct ghp_expected *e)
{
    double step_s = q->measured_s / ghp_setup_workers(&q->setup);

    return step_s >= e->range.low_s && step_s <= e->range.high_s;
}

static void print_measured(const struct ghp_expect_question *q, const struct ghp_expected *e)
{
    if (is_unusable(q, e)) {
        printf("measured    %.*f ms; this profile cannot say whether that is normal\n",
               decimals(1e3 * q->measured_s, 0.95), 1e3 * q->measured_s);
        return;
    }
    printf("measured    %.*f ms, ", decimals(1e3 * q->measured_s, 0.95), 1e3 * q->measured_s);
    if (!isnan(e->utilisation)) printf("%.1f %% MFU, ", 100 * measured_utilisation(q, e));
    printf("%.2f of the expected step: ", q->measured_s / e->at.step_s);
    if (q->measured_s <= e->range.high_s) {
        puts(q->measured_s < e->range.low_s ? find_too_quick(q, e) : "normal, within the range");
        return;
    }
    printf("slower than the range; %.*f ms are not explained\n", step_decimals(e),
           1e3 * (q->measured_s - e->at.step_s));
    if (is_of_one_worker(q, e))
        printf("look first  whether batch or rate are one worker's: both are of all %d together\n",
               ghp_setup_workers(&q->setup));
    printf(
        "look for    loading of samples (time steps of one and the same batch), another precision "
        "than %s,\n"
        "            attention without flash kernels, images not channels-last, a slow worker%s\n",
        ghp_setup_precision(&q->setup),
        q->setup.nodes > 1
            ? ",\n            links slower than their name (time an all-reduce alone)"
            : "");
}

/* "data, tensor 4, pipeline 2, shard pass, recompute". */
enum { PLAN_TEXT_SIZE = 128 };
static const char *format_plan(const struct ghp_expect_setup *s, char text[PLAN_TEXT_SIZE])
{
    const struct ghp_degrees *d = &s->degrees;
    size_t used = (size_t)snprintf(text, PLAN_TEXT_SIZE, "%s", ghp_expect_ways[s->way]);

    if (d->tensor > 1)
        used += (size_t)snprintf(text + used, PLAN_TEXT_SIZE - used, ", tensor %d", d->tensor);
    if (d->pipeline > 1)
        used += (size_t)snprintf(text + used, PLAN_TEXT_SIZE - used, ", pipeline %d", d->pipeline);
    if (s->sharding != GHP_SHARDING_NONE)
        used += (size_t)snprintf(text + used, PLAN_TEXT_SIZE - used, ", shard %s",
                                 ghp_param_sharding_names[s->sharding]);
    if (d->recompute) used += (size_t)snprintf(text + used, PLAN_TEXT_SIZE - used, ", recompute");
    if (s->micro_batches > 1)
        snprintf(text + used, PLAN_TEXT_SIZE - used, ", %d micro-batches", s->micro_batches);
    return text;
}

/* The source of the figures. */
enum { SOURCE_TEXT_SIZE = 256 };
static const char *format_source(const struct ghp_expect_question *q, char text[SOURCE_TEXT_SIZE])
{
    const struct ghp_profile *profile = q->setup.profile;

    if (profile == NULL) return ghp_peak_sentence();
    snprintf(
        text, SOURCE_TEXT_SIZE,
        "measured with %d worker%s on %d node(s), %s; what was not measured is by fitted rates",
        profile->workers, ghp_plural(profile->workers), profile->machine.nodes,
        profile->created != NULL ? profile->created : "at a time not known");
    return text;
}

/* ---- of one number of nodes ---- */

static void print_second_node(double from_Bps)
{
    if (isinf(from_Bps))
        puts("two nodes   are not faster than one with this batch, at any rate of the link");
    else if (from_Bps > 0 && from_Bps <= ghp_expect_slowest_Bps)
        printf("two nodes   are faster than one with this batch even at %g Gbit/s, the slowest "
               "link tried\n",
               8e-9 * ghp_expect_slowest_Bps);
    else if (from_Bps > 0)
        printf(from_Bps < 1.25e11
                   ? "two nodes   are faster than one with this batch from %.3g Gbit/s on\n"
                   : "two nodes   are faster than one with this batch from %.0f Gbit/s on\n",
               8e-9 * from_Bps);
}

static void print_step(const struct ghp_expect_question *q, const struct ghp_expected *e)
{
    bool measured = q->setup.profile != NULL;
    char range[GHP_RANGE_TEXT_SIZE];

    if (is_unusable(q, e)) {
        printf("step        not known: %.0f %% of it was measured, and rates of other operations "
               "say %.1f ms\n"
               "            measure it: ghp-profile --model NETWORK --workers N --batch B -o "
               "PROFILE, with yours\n",
               100 * e->at.measured_share, 1e3 * e->at.step_s);
        return;
    }
    printf("step        %.*f ms; with 90 %% it is %s, as %s were\n", step_decimals(e),
           1e3 * e->at.step_s, ghp_range_format(e->range, range),
           measured ? "plans in the lab" : "published trainings");
    if (measured)
        printf("known       %.0f %% of its seconds are measured\n", 100 * e->at.measured_share);
}

/* What of the options would make a step fit that does not, of those that are not given yet. */
static void print_memory(const struct ghp_expect_question *q, const struct ghp_expected *e)
{
    const struct ghp_expect_setup *s = &q->setup;
    char takes[32], has[32];

    printf("memory      %s a worker, without kernels' scratch",
           ghp_bytes_format((double)e->at.peak_bytes, takes, sizeof takes));
    if (!ghp_expect_fits(s, &e->at)) {
        printf(": more than its %s, so this cannot run;\n            try ",
               ghp_bytes_format((double)ghp_setup_memory_bytes(s), has, sizeof has));
        if (s->way != GHP_EXPECT_OWN && s->sharding != GHP_SHARDING_PASS) printf("--shard pass, ");
        if (s->way != GHP_EXPECT_OWN && !s->degrees.recompute && ghp_has_attention(s->model))
            printf("--recompute, ");
        printf("a smaller --batch, or more --nodes");
    }
    putchar('\n');
}

static void print_text(const struct ghp_expect_question *q, const struct answer *a)
{
    const struct ghp_expected *e = &a->expected;
    const struct ghp_model *model = q->setup.model;
    int64_t tokens = ghp_model_tokens(model);
    char plan[PLAN_TEXT_SIZE], source[SOURCE_TEXT_SIZE];
    double rate = rate_of(q, e->at.step_s);

    printf("# %s on %d node(s) of %s, %d worker%s, batch %lld, %s, plan %s\n# %s\n", model->name,
           q->setup.nodes, q->place, ghp_setup_workers(&q->setup),
           ghp_plural(ghp_setup_workers(&q->setup)), (long long)q->setup.batch,
           ghp_setup_precision(&q->setup), format_plan(&q->setup, plan), format_source(q, source));
    print_step(q, e);
    printf("rate        %.*f samples/s", decimals(rate, 0.95), rate);
    if (tokens > 0) printf(", %.0f tokens/s", rate * (double)tokens);
    if (!isnan(e->utilisation))
        printf("\nutilised    %.1f %% of the peak FLOPs (MFU)", 100 * e->utilisation);
    printf("\nbinds       %s\n", binds(e));
    print_parts(e);
    print_memory(q, e);
    print_second_node(a->second_node_Bps);
    if (q->measured_s > 0) print_measured(q, e);
    for (int i = 0; i < a->n_changes && i < CHANGES_SHOWN; i++)
        printf("%s%s: %.*f ms less for %lld sample%s\n", i == 0 ? "faster by   " : "            ",
               a->changes[i].text, decimals(1e3 * a->changes[i].gain_s, 0.05),
               1e3 * a->changes[i].gain_s, (long long)q->setup.batch, ghp_plural(q->setup.batch));
}

/* ---- objects ---- */

/* What is asked, but for the nodes. */
static json_t *question_object(const struct ghp_expect_question *q, bool *failed)
{
    const struct ghp_expect_setup *s = &q->setup;
    json_t *root = json_object();

    ghp_json_put(root, "model", json_string(s->model->name), failed);
    ghp_json_put(root, s->profile != NULL ? "profile" : "machine", json_string(q->place), failed);
    ghp_json_put(root, "global_batch", json_integer(s->batch), failed);
    ghp_json_put(root, "micro_batches", json_integer(s->micro_batches), failed);
    ghp_json_put(root, "precision", json_string(ghp_setup_precision(s)), failed);
    ghp_json_put(root, "plan", json_string(ghp_expect_ways[s->way]), failed);
    ghp_json_put(root, "tensor", json_integer(s->degrees.tensor), failed);
    ghp_json_put(root, "pipeline", json_integer(s->degrees.pipeline), failed);
    ghp_json_put(root, "shard", json_string(ghp_param_sharding_names[s->sharding]), failed);
    ghp_json_put(root, "recompute", json_boolean(s->degrees.recompute), failed);
    return root;
}

/* What a setup is expected to take, into an object. */
static void put_expected(json_t *object, const struct ghp_expect_setup *setup,
                         const struct ghp_expected *e, bool *failed)
{
    ghp_json_put(object, "nodes", json_integer(setup->nodes), failed);
    ghp_json_put(object, "workers", json_integer(ghp_setup_workers(setup)), failed);
    ghp_json_put(object, "step_s", json_real(e->at.step_s), failed);
    if (!isnan(e->range.low_s)) {
        ghp_json_put(object, "low_s", json_real(e->range.low_s), failed);
        ghp_json_put(object, "high_s", json_real(e->range.high_s), failed);
    }
    ghp_json_put(object, "compute_s", json_real(ghp_prediction_computing_s(&e->at)), failed);
    ghp_json_put(object, "reshard_s", json_real(e->at.reshard_s), failed);
    ghp_json_put(object, "exposed_s", json_real(e->at.exposed_s), failed);
    ghp_json_put(object, "comm_s", json_real(e->at.comm_s), failed);
    if (!isnan(e->links_s)) ghp_json_put(object, "links_s", json_real(e->links_s), failed);
    if (!isnan(e->idle_s)) ghp_json_put(object, "idle_s", json_real(e->idle_s), failed);
    if (!isnan(e->utilisation))
        ghp_json_put(object, "flop_utilisation", json_real(e->utilisation), failed);
    ghp_json_put(object, "measured_share", json_real(e->at.measured_share), failed);
    ghp_json_put(object, "peak_bytes", json_integer(e->at.peak_bytes), failed);
    ghp_json_put(object, "fits", json_boolean(ghp_expect_fits(setup, &e->at)), failed);
}

static enum ghp_status print_object(const struct ghp_expect_question *q, const struct answer *a)
{
    bool failed = false;
    json_t *changes = json_array(), *root = question_object(q, &failed);

    put_expected(root, &q->setup, &a->expected, &failed);
    for (int i = 0; i < a->n_changes; i++)
        ghp_json_append(
            changes,
            json_pack("{s:s, s:f}", "change", a->changes[i].text, "gain_s", a->changes[i].gain_s),
            &failed);
    if (a->second_node_Bps >= 0 && isfinite(a->second_node_Bps))
        ghp_json_put(root, "second_node_from_Bps", json_real(a->second_node_Bps), &failed);
    if (q->measured_s > 0) ghp_json_put(root, "measured_s", json_real(q->measured_s), &failed);
    if (q->measured_s > 0 && !isnan(a->expected.utilisation))
        ghp_json_put(root, "measured_flop_utilisation",
                     json_real(measured_utilisation(q, &a->expected)), &failed);
    if (is_unusable(q, &a->expected)) ghp_json_put(root, "usable", json_false(), &failed);
    ghp_json_put(root, "changes", changes, &failed);
    return ghp_json_print_whole(root, failed, stdout);
}

static enum ghp_status answer_one(const struct ghp_expect_question *q, bool json)
{
    struct answer a = {.second_node_Bps = -1};
    const struct ghp_expect_setup *setup = &q->setup;
    struct ghp_expect_setup two = *setup;

    two.nodes = 2;
    GHP_TRY(ghp_expect_step(setup, &a.expected));
    a.n_changes = ghp_expect_changes(setup, &a.expected, a.changes);
    if (setup->batch % (ghp_setup_workers(&two) * setup->micro_batches) == 0 &&
        setup->degrees.tensor * setup->degrees.pipeline == 1 && setup->way != GHP_EXPECT_OWN)
        GHP_TRY(ghp_expect_second_node(setup, &a.second_node_Bps));
    if (json) return print_object(q, &a);
    print_text(q, &a);
    return GHP_OK;
}

/* ---- of several numbers of nodes ---- */

struct point {
    struct ghp_expected expected;
    char reason[REASON_BYTES]; /* why this cannot be; empty: it can */
};

static void add_row(struct ghp_table *t, const struct ghp_expect_question *q,
                    const struct ghp_expect_setup *at, const struct point *p)
{
    const struct ghp_expected *e = &p->expected;
    char range[GHP_RANGE_TEXT_SIZE], takes[32], has[32];

    ghp_table_row(t);
    ghp_table_cell(t, "%d", at->nodes);
    ghp_table_cell(t, "%d", ghp_setup_workers(at));
    if (p->reason[0] != '\0') {
        ghp_table_note(t, "%d node(s): %s", at->nodes, p->reason);
        ghp_table_cell(t, "-");
        return;
    }
    if (is_unusable(q, e))
        ghp_table_note(t, "%d node(s): the profile knows nothing of this step", at->nodes);
    if (!ghp_expect_fits(at, &e->at))
        ghp_table_note(t, "%d node(s): %s a worker, more than its %s, so this cannot run",
                       at->nodes, ghp_bytes_format((double)e->at.peak_bytes, takes, sizeof takes),
                       ghp_bytes_format((double)ghp_setup_memory_bytes(at), has, sizeof has));
    ghp_table_cell(t, "%.*f", step_decimals(e), 1e3 * e->at.step_s);
    ghp_table_cell(t, "%s", ghp_range_format(e->range, range));
    ghp_table_cell(t, "%.*f", decimals(rate_of(q, e->at.step_s), 0.95), rate_of(q, e->at.step_s));
    ghp_table_cell(t, "%.*f", step_decimals(e), 1e3 * (e->at.exposed_s + e->at.reshard_s));
    if (isnan(e->utilisation))
        ghp_table_cell(t, "-");
    else
        ghp_table_cell(t, "%.1f", 100 * e->utilisation);
}

static enum ghp_status print_table(const struct ghp_expect_question *q, const struct point *points)
{
    static const char *const names[][2] = {{"nodes", ""},     {"workers", ""},      {"step", "ms"},
                                           {"range", "90 %"}, {"samples/s", "1/s"}, {"waits", "ms"},
                                           {"MFU", "%"}};
    struct ghp_table *t = ghp_table_open();
    struct ghp_expect_setup at = q->setup;
    enum ghp_status status;
    char plan[PLAN_TEXT_SIZE], source[SOURCE_TEXT_SIZE];

    ghp_table_note(t, "%s on nodes of %s, batch %lld, %s, plan %s", at.model->name, q->place,
                   (long long)at.batch, ghp_setup_precision(&at), format_plan(&at, plan));
    ghp_table_note(t, "%s", format_source(q, source));
    for (size_t c = 0; c < sizeof names / sizeof names[0]; c++)
        ghp_table_column(t, names[c][0], names[c][1], 'r');
    for (int i = 0; i < q->n_nodes; i++) {
        at.nodes = q->nodes[i];
        add_row(t, q, &at, &points[i]);
    }
    status = ghp_table_print(t, stdout);
    ghp_table_close(t);
    return status;
}

static enum ghp_status print_objects(const struct ghp_expect_question *q,
                                     const struct point *points)
{
    bool failed = false;
    json_t *rows = json_array(), *root = question_object(q, &failed);
    struct ghp_expect_setup at = q->setup;

    for (int i = 0; i < q->n_nodes; i++) {
        bool feasible = points[i].reason[0] == '\0';
        json_t *row = json_object();

        at.nodes = q->nodes[i];
        ghp_json_put(row, "feasible", json_boolean(feasible), &failed);
        if (feasible) {
            put_expected(row, &at, &points[i].expected, &failed);
        } else {
            ghp_json_put(row, "nodes", json_integer(at.nodes), &failed);
            ghp_json_put(row, "reason", json_string(points[i].reason), &failed);
        }
        ghp_json_append(rows, row, &failed);
    }
    ghp_json_put(root, "points", rows, &failed);
    return ghp_json_print_whole(root, failed, stdout);
}

/* Whether a failure is an answer to "how fast on 1024 nodes?". */
static bool is_answer(enum ghp_status status)
{
    return status == GHP_ERR_INPUT || status == GHP_ERR_USAGE || status == GHP_ERR_INFEASIBLE ||
           status == GHP_ERR_MISSING;
}

static enum ghp_status answer_each(const struct ghp_expect_question *q, bool json)
{
    struct point *points = ghp_alloc((size_t)q->n_nodes, sizeof *points);
    enum ghp_status status = points == NULL ? GHP_NO_MEMORY() : GHP_OK, last = GHP_OK;
    struct ghp_expect_setup at = q->setup;
    int feasible = 0;

    for (int i = 0; i < q->n_nodes && status == GHP_OK; i++) {
        at.nodes = q->nodes[i];
        status = ghp_expect_step(&at, &points[i].expected);
        feasible += status == GHP_OK;
        if (!is_answer(status)) continue;
        snprintf(points[i].reason, REASON_BYTES, "%s", ghp_status_message());
        last = status;
        status = GHP_OK;
    }
    if (status == GHP_OK && feasible == 0) status = last;
    if (status == GHP_OK) status = json ? print_objects(q, points) : print_table(q, points);
    free(points);
    return status;
}

enum ghp_status ghp_question_answer(const struct ghp_expect_question *question, bool json)
{
    return question->n_nodes > 1 ? answer_each(question, json) : answer_one(question, json);
}
