/* planner/expect/expect.c - see expect.h. */
#include "planner/expect/expect.h"

#include "core/base/units.h"
#include "core/cost/profile_peak.h"
#include "core/model/statistics.h"
#include "core/plan/profile_scale.h"
#include "core/plan/what_if.h"
#include "planner/make/make.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* PyTorch's DistributedDataParallel reduces as many bytes together. */
enum { BUCKET_BYTES = 25 << 20, SEARCH_S = 3 };

const double ghp_expect_slowest_Bps = 1e6;
static const double most_link_Bps = 1e13, free_link_Bps = 1e18, search_gap = 0.01;

const char *const ghp_expect_ways[] = {"data", "sharded", "ghp", NULL};

static int workers_per_node(const struct ghp_expect_setup *setup)
{
    const struct ghp_machine *machine = setup->machine;
    const struct ghp_profile *measured = setup->profile;

    if (measured != NULL)
        return ghp_machine_workers_per_node(&measured->machine, measured->workers);
    if (machine->gpus.count == 0) return machine->packages;
    return setup->gpus > 0 ? setup->gpus : machine->gpus.count;
}

int ghp_setup_workers(const struct ghp_expect_setup *setup)
{
    return setup->nodes * workers_per_node(setup);
}

const char *ghp_setup_precision(const struct ghp_expect_setup *setup)
{
    return setup->fp16 ? "fp16" : ghp_precision_name(setup->precision);
}

/* The profile as measured, on this many nodes joined by the setup's link. */
static enum ghp_status extend_profile(const struct ghp_expect_setup *setup,
                                      struct ghp_profile *profile)
{
    struct ghp_machine machine = *setup->machine; /* shares what it points to */
    struct ghp_what_if what_if = {.machine = &machine, .workers = ghp_setup_workers(setup)};
    enum ghp_status status;

    machine.nodes = setup->nodes;
    GHP_TRY(ghp_profile_copy(setup->profile, profile));
    status = ghp_what_if_apply(&what_if, profile, NULL);
    if (status != GHP_OK) ghp_profile_release(profile);
    return status;
}

static enum ghp_status open_profile(const struct ghp_expect_setup *setup,
                                    struct ghp_profile *profile)
{
    struct ghp_machine machine;
    enum ghp_status status;

    if (setup->profile != NULL) return extend_profile(setup, profile);
    GHP_TRY(ghp_machine_copy(setup->machine, &machine));
    machine.nodes = setup->nodes;
    status = ghp_profile_peak(&machine, ghp_setup_workers(setup), setup->precision, profile);
    ghp_machine_release(&machine);
    return status;
}

/* By data sheets; measured messages are as long as they are.
 *
 * profile   its links' latencies become those of a matrix among the matrices of its block */
static enum ghp_status predict_data(const struct ghp_expect_setup *setup,
                                    struct ghp_profile *profile, struct ghp_prediction *predicted)
{
    struct ghp_problem problem = {ghp_setup_workers(setup), setup->batch};
    struct ghp_lowering lowering = ghp_lowering_of(setup->model, problem, profile);
    struct ghp_degrees degrees = setup->degrees;
    struct ghp_staging staging = {0};
    struct ghp_split *splits = ghp_alloc((size_t)setup->model->n_layers, sizeof *splits);
    bool *recompute = ghp_alloc((size_t)setup->model->n_layers, sizeof *recompute);
    enum ghp_status status = splits == NULL || recompute == NULL ? GHP_NO_MEMORY() : GHP_OK;

    degrees.tensor += degrees.tensor == 0;
    degrees.pipeline += degrees.pipeline == 0;
    lowering.method.bucket_bytes = BUCKET_BYTES;
    if (setup->way == GHP_EXPECT_SHARDED && status == GHP_OK)
        status = ghp_sync_parse("sharded", &lowering.method.sync);
    if (status == GHP_OK)
        status = ghp_degrees_staging(setup->model, problem, &degrees, setup->micro_batches,
                                     recompute, &staging);
    if (status == GHP_OK)
        status = ghp_degrees_splits(setup->model,
                                    ghp_degrees_problem(problem, &degrees, setup->micro_batches),
                                    &degrees, splits);
    if (!ghp_staging_trivial(&staging) || degrees.recompute) lowering.staging = &staging;
    if (status == GHP_OK)
        ghp_staging_shard(lowering.staging, setup->model, problem, setup->sharding, splits);
    if (status == GHP_OK && setup->profile == NULL)
        ghp_degrees_share_latency(setup->model, splits, &profile->machine);
    if (status == GHP_OK) status = ghp_plan_predict(&lowering, splits, profile, predicted);
    free(recompute);
    free(splits);
    return status;
}

static enum ghp_status search_own(const struct ghp_expect_setup *setup,
                                  const struct ghp_profile *profile, bool suggests,
                                  struct ghp_prediction *predicted)
{
    struct ghp_plan_request request = {.model = setup->model,
                                       .model_path = setup->model->name,
                                       .profile_path = "",
                                       .profile = profile,
                                       .problem = {ghp_setup_workers(setup), setup->batch},
                                       .method.bucket_bytes = BUCKET_BYTES,
                                       .time_limit_s = SEARCH_S,
                                       .gap = search_gap,
                                       .decision_only = true,
                                       .suggestion = suggests,
                                       .solver = GHP_SOLVER_AUTO};
    struct ghp_plan plan;
    enum ghp_status status;
    char has[32];

    request.memory_bytes = ghp_profile_memory_per_worker(profile, request.problem.workers);
    status = ghp_plan_make(&request, &plan);
    if (status == GHP_ERR_INFEASIBLE) /* ghp-plan's remedies are options that are not there */
        return GHP_FAIL(status,
                        "no plan of '%s' within %s a worker was found; give a smaller --batch or "
                        "more --nodes",
                        setup->model->name,
                        ghp_bytes_format((double)request.memory_bytes, has, sizeof has));
    GHP_TRY(status);
    *predicted = plan.predicted;
    ghp_plan_release(&plan);
    return GHP_OK;
}

/* On a busy machine the time can end a search before it has what the quick one finds. */
static enum ghp_status predict_own(const struct ghp_expect_setup *setup,
                                   const struct ghp_profile *profile,
                                   struct ghp_prediction *predicted)
{
    struct ghp_prediction quick;
    enum ghp_status quickly = search_own(setup, profile, true, &quick), status = quickly;

    if (!setup->suggests) status = search_own(setup, profile, false, predicted);
    if (quickly == GHP_OK && (setup->suggests || status == GHP_ERR_INFEASIBLE ||
                              (status == GHP_OK && quick.step_s < predicted->step_s))) {
        *predicted = quick;
        return GHP_OK;
    }
    return status;
}

/* range   or NULL */
static enum ghp_status predict(const struct ghp_expect_setup *setup,
                               struct ghp_prediction *predicted, struct ghp_step_range *range)
{
    struct ghp_profile profile;
    enum ghp_status status;

    GHP_TRY(open_profile(setup, &profile));
    status = setup->way == GHP_EXPECT_OWN ? predict_own(setup, &profile, predicted)
                                          : predict_data(setup, &profile, predicted);
    if (status == GHP_OK && range != NULL) *range = ghp_prediction_range(predicted, &profile);
    ghp_profile_release(&profile);
    return status;
}

/* How often a layer computes its products: forward, and backward by data and by weights, as far as gradients are asked
 * for. The network's own input counts as asked for, as in others' counts of FLOPs. */
static int passes_of(const struct ghp_model *model, const struct ghp_layer *layer)
{
    const struct ghp_layer *owner = layer->tied > 0 ? &model->layers[layer->tied - 1] : layer;
    bool by_data = false;

    if (!layer->learns) return 1;
    for (int i = 0; i < layer->n_inputs; i++) {
        const struct ghp_layer *input = &model->layers[layer->inputs[i]];

        by_data |= input->learns || input->op == GHP_OP_INPUT;
    }
    if (owner->n_params == 0) return by_data ? 3 : 1; /* a product of two inputs */
    return 1 + by_data + !owner->fixed;
}

/* FLOPs of the products of one step. */
static double step_flops(const struct ghp_expect_setup *setup)
{
    const struct ghp_problem one = {1, 1};
    double flops = 0;

    for (int v = 0; v < setup->model->n_layers; v++) {
        struct ghp_local local = ghp_local_of(
            setup->model, v, (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1}, one);

        flops += passes_of(setup->model, &setup->model->layers[v]) *
                 (double)ghp_local_flops(&local, GHP_PASS_FORWARD);
    }
    return flops * (double)setup->batch;
}

/* What the links take of a step, and what is left without them. */
static enum ghp_status split_step(const struct ghp_expect_setup *setup,
                                  struct ghp_expected *expected)
{
    struct ghp_machine machine = *setup->machine; /* shares what it points to */
    struct ghp_expect_setup free_links = *setup;
    struct ghp_prediction at;

    expected->computing_s = expected->links_s = expected->idle_s = NAN;
    if (setup->profile != NULL || setup->degrees.tensor * setup->degrees.pipeline < 2)
        return GHP_OK;
    machine.intra = machine.inter = (struct ghp_link){.bandwidth_Bps = free_link_Bps};
    free_links.machine = &machine;
    GHP_TRY(predict(&free_links, &at, NULL));
    expected->computing_s = at.compute_s;
    expected->links_s = fmax(0, expected->at.step_s - at.step_s);
    expected->idle_s = at.exposed_s;
    return GHP_OK;
}

enum ghp_status ghp_expect_step(const struct ghp_expect_setup *setup, struct ghp_expected *expected)
{
    const struct ghp_machine *machine = setup->machine;
    double peak = machine->peak.flops_per_s[ghp_precision_index(setup->precision)] * setup->nodes *
                  (machine->gpus.count > 0 ? workers_per_node(setup) : 1);

    GHP_TRY(predict(setup, &expected->at, &expected->range));
    GHP_TRY(split_step(setup, expected));
    expected->utilisation = peak > 0 ? step_flops(setup) / (peak * expected->at.step_s) : NAN;
    return GHP_OK;
}

/* Whether two nodes over a link of this rate take less than `alone_s`. */
static enum ghp_status is_faster(const struct ghp_expect_setup *two, double bandwidth_Bps,
                                 double alone_s, bool *faster)
{
    struct ghp_machine machine = *two->machine; /* shares what it points to */
    struct ghp_expect_setup at = *two;
    struct ghp_prediction both;

    machine.inter.bandwidth_Bps = bandwidth_Bps;
    at.machine = &machine;
    GHP_TRY(predict(&at, &both, NULL));
    *faster = both.step_s < alone_s;
    return GHP_OK;
}

enum ghp_status ghp_expect_second_node(const struct ghp_expect_setup *setup, double *bandwidth_Bps)
{
    struct ghp_expect_setup one = *setup, two = *setup;
    struct ghp_prediction alone;
    double low = ghp_expect_slowest_Bps, high = most_link_Bps;
    bool faster;

    one.nodes = 1;
    two.nodes = 2;
    GHP_TRY(predict(&one, &alone, NULL));
    GHP_TRY(is_faster(&two, low, alone.step_s, &faster));
    if (faster) {
        *bandwidth_Bps = low;
        return GHP_OK;
    }
    while (high / low > 1.01) {
        double middle = sqrt(low * high);

        GHP_TRY(is_faster(&two, middle, alone.step_s, &faster));
        *(faster ? &high : &low) = middle;
    }
    *bandwidth_Bps = high >= most_link_Bps ? INFINITY : high;
    return GHP_OK;
}

/* ---- changes ---- */

int64_t ghp_setup_memory_bytes(const struct ghp_expect_setup *setup)
{
    const struct ghp_machine *m = setup->machine;

    return m->gpus.count > 0 ? m->gpus.memory_bytes : m->memory_bytes / workers_per_node(setup);
}

bool ghp_expect_fits(const struct ghp_expect_setup *setup, const struct ghp_prediction *predicted)
{
    int64_t has = ghp_setup_memory_bytes(setup);

    return has <= 0 || predicted->peak_bytes <= has;
}

struct changing {
    const struct ghp_expect_setup *from;
    double step_s;
    struct ghp_expect_change *changes;
    int n;
};

/* Adds the change if it can be and gains 0.5 % or more. */
static void try_change(struct changing *c, struct ghp_expect_setup to, const char *text)
{
    struct ghp_prediction predicted;
    double samples = (double)to.batch / (double)c->from->batch, gain;

    if (c->n == GHP_EXPECT_CHANGES || predict(&to, &predicted, NULL) != GHP_OK) return;
    gain = c->step_s - predicted.step_s / samples;
    if (!ghp_expect_fits(&to, &predicted) || gain < 0.005 * c->step_s) return;
    snprintf(c->changes[c->n].text, GHP_EXPECT_TEXT_SIZE, "%s", text);
    c->changes[c->n++].gain_s = gain;
}

static int by_gain(const void *a, const void *b)
{
    const struct ghp_expect_change *x = a, *y = b;

    return (x->gain_s < y->gain_s) - (x->gain_s > y->gain_s);
}

/* Tries each worker's own statistics for batch norms, which exchange nothing. */
static void try_local_statistics(struct changing *c)
{
    const struct ghp_model *model = c->from->model;
    struct ghp_expect_setup to = *c->from;
    struct ghp_model local;

    if (!ghp_model_has_global_statistics(model) || ghp_setup_workers(c->from) < 2 ||
        ghp_model_parse(model->text, model->name, &local) != GHP_OK)
        return;
    to.model = &local;
    if (ghp_model_set_statistics(&local, "local") == GHP_OK)
        try_change(c, to, "each worker's own statistics for batch norms (--batch-norm local)");
    ghp_model_release(&local);
}

/* Tries the other precisions that the machine has figures of. */
static void try_precisions(struct changing *c)
{
    struct ghp_machine machine = *c->from->machine; /* shares what it points to */
    struct ghp_expect_setup to = *c->from;
    char text[GHP_EXPECT_TEXT_SIZE];

    if (c->from->profile != NULL) return;
    to.machine = &machine;
    for (int p = 0; p < GHP_PRECISIONS; p++) {
        to.precision = ghp_precision_of(p);
        if (ghp_precision_same(to.precision, c->from->precision)) continue;
        to.fp16 = to.precision.element_bytes == 2 && !(machine.peak.flops_per_s[p] > 0);
        if (to.fp16) ghp_peak_take_fp16(&machine.peak);
        snprintf(text, sizeof text, "compute in %s", ghp_setup_precision(&to));
        try_change(c, to, text);
    }
}

int ghp_expect_changes(const struct ghp_expect_setup *setup, const struct ghp_expected *expected,
                       struct ghp_expect_change changes[GHP_EXPECT_CHANGES])
{
    struct changing c = {.from = setup, .step_s = expected->at.step_s, .changes = changes};
    char text[GHP_EXPECT_TEXT_SIZE];
    struct ghp_expect_setup to;

    try_precisions(&c);
    to = *setup;
    to.batch *= 2;
    snprintf(text, sizeof text, "twice the batch, %lld samples a step", (long long)to.batch);
    try_change(&c, to, text);
    to = *setup;
    to.batch *= 4;
    to.micro_batches *= 4;
    if (setup->way != GHP_EXPECT_OWN)
        try_change(&c, to, "add gradients up over 4 batches before they are reduced");
    to = *setup;
    to.way = GHP_EXPECT_SHARDED;
    if (setup->way == GHP_EXPECT_DATA) try_change(&c, to, "a sharded update");
    to.way = GHP_EXPECT_OWN;
    to.suggests = true;
    to.degrees = (struct ghp_degrees){0};
    to.sharding = GHP_SHARDING_NONE;
    if (setup->way != GHP_EXPECT_OWN && setup->micro_batches == 1)
        try_change(&c, to, "split layers as ghp-plan would");
    try_local_statistics(&c);
    qsort(changes, (size_t)c.n, sizeof *changes, by_gain);
    return c.n;
}
