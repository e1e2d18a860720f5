/* ghp-test: timeout=60
 * tests/planner/pipeline/test_closed_form.c - every row of docs/results/closed-forms.md's table, to all its digits:
 * by the formulas, and by costing the lowered program under the table's premises; and that a free choice of splits does
 * no worse. */
#include "core/cost/simulate.h"
#include "core/base/clock.h"
#include "tests/planner/pipeline/closed_form.h"
#include "planner/search/search.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

static const double flops_per_s = 6e12, bandwidth_Bps = 1.25e9, latency_s = 20e-6;

struct row {
    int workers;
    double batch;
    int groups, rear_workers;
    bool data;
    double total, front, rear, boundary, activations, front_reduce,
        rear_reduce; /* ms, as printed */
};

/* The table, and the separated row that its text adds (total only). */
static const struct row rows[] = {
    {16, 1024, 16, 0, true, 1820.76, 990.10, 0, 0, 0, 830.66, 0},
    {16, 1024, 1, 0, false, 1288.60, 982.18, 7.91, 154.74, 54.90, 88.86, 0},
    {16, 1024, 2, 0, false, 1226.29, 982.18, 7.91, 72.21, 25.62, 88.86, 49.49},
    {16, 1024, 4, 0, false, 1269.37, 982.18, 7.91, 30.95, 10.98, 88.86, 148.48},
    {16, 1024, 2, 1, false, 1663.95, 1122.50, 63.30, 82.49, 0, 87.94, 395.67},
    {32, 2048, 32, 0, true, 1849.07, 990.10, 0, 0, 0, 858.97, 0},
    {32, 2048, 1, 0, false, 1515.81, 982.18, 7.91, 319.80, 113.47, 92.44, 0},
    {32, 2048, 4, 0, false, 1254.68, 982.18, 7.91, 72.21, 25.62, 92.44, 74.30},
    {32, 2048, 8, 0, false, 1297.84, 982.18, 7.91, 30.95, 10.98, 92.44, 173.37},
    {16, 1024, 2, 2, false, 1635.87, -1, -1, -1, -1, -1, -1},
};

/* The table prints hundredths of a millisecond. */
#define CHECK_DIGITS(seconds, printed) CHECK_NEAR(1e3 * (seconds), (printed), 0.00501)

static struct ghp_closed_form_params params_of(const struct row *row)
{
    return (struct ghp_closed_form_params){.workers = row->workers,
                                           .groups = row->groups,
                                           .rear_workers = row->rear_workers,
                                           .global_batch = row->batch,
                                           .element_bytes = 4,
                                           .flops_per_s = flops_per_s,
                                           .bandwidth_Bps = bandwidth_Bps,
                                           .latency_s = latency_s};
}

static struct ghp_closed_form_network network_of(const struct ghp_model *model,
                                                 const struct row *row)
{
    return ghp_closed_form_network_of(model,
                                      row->data ? model->n_layers - 1 : ghp_closed_form_cut(model));
}

static void test_formulas(const struct ghp_model *model)
{
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const struct row *row = &rows[k];
        struct ghp_closed_form_params params = params_of(row);
        struct ghp_closed_form_network net = network_of(model, row);
        struct ghp_closed_form_time t = ghp_closed_form_step(&net, &params);

        CHECK_DIGITS(t.step_s, row->total);
        if (row->front < 0) continue;
        CHECK_DIGITS(t.front_s, row->front);
        CHECK_DIGITS(t.rear_s, row->rear);
        CHECK_DIGITS(t.boundary_s, row->boundary);
        CHECK_DIGITS(t.activations_s, row->activations);
        CHECK_DIGITS(t.front_reduce_s, row->front_reduce);
        CHECK_DIGITS(t.rear_reduce_s, row->rear_reduce);
    }
}

/* The network's sums, the best number of groups, and memory. */
static void test_sums(const struct ghp_model *model)
{
    struct ghp_closed_form_network net =
        ghp_closed_form_network_of(model, ghp_closed_form_cut(model));
    struct ghp_closed_form_params params = params_of(&rows[2]);
    double best_s = INFINITY;
    int best = 0;

    CHECK_NEAR(net.front_weights, 14710464, 0);
    CHECK_NEAR(net.rear_weights, 123633664, 0);
    CHECK_NEAR(net.boundary_scalars, 25088, 0);
    CHECK_NEAR((net.front_flops + net.rear_flops) / 1e9, 30.94, 0.005);
    for (int g = 1; g <= 16; g *= 2) {
        params.groups = g;
        double step_s = ghp_closed_form_step(&net, &params).step_s;

        if (step_s < best_s) best = g;
        best_s = fmin(best_s, step_s);
    }
    CHECK_EQ(best, 2);
    double groups = ghp_closed_form_groups(&net, &params);
    CHECK_NEAR(groups * groups, 16 * 1024.0 * (25088 + 4096 + 4096 + 500) / 123633664, 1e-9);
    CHECK(groups > 1 && groups < 4);
    params.groups = 2; /* K = 8, 512 samples a group */
    struct ghp_closed_form_memory m = ghp_closed_form_memory(&net, &params, 1);
    CHECK_NEAR(m.data_bytes,
               4 * (3 * 14710464.0 + 2 * 64 * (net.input_scalars + net.front_scalars)), 1);
    CHECK_NEAR(m.model_bytes, 4 * (3 * 123633664.0 / 8 + 2 * 512 * (25088 + 4096 + 4096 + 1000.0)),
               1);
}

/* ---- the program under the table's premises ---- */

/* Without its bias layers: a chain, so each layer reads the one before it. */
static void remove_biases(struct ghp_model *model)
{
    int n = 0;

    for (int v = 0; v < model->n_layers; v++) {
        struct ghp_layer *layer = &model->layers[v];

        if (layer->op == GHP_OP_BIAS) {
            free(layer->name);
            for (int p = 0; p < layer->n_params; p++)
                free(layer->params[p].name);
            free(layer->out_edges);
            continue;
        }
        if (n != v) model->layers[n] = *layer;
        if (n > 0) model->layers[n].inputs[0] = n - 1;
        n++;
    }
    model->n_layers = n;
}

/* The table counts the gradient with respect to the input, too. */
static enum ghp_status complete_premised(struct ghp_model *model)
{
    GHP_TRY(ghp_model_complete(model));
    model->layers[0].learns = true;
    return GHP_OK;
}

static enum ghp_status load_without_biases(struct ghp_model *model)
{
    GHP_TRY(ghp_model_load(GHP_SOURCE_DIR "/models/vgg16.json", model));
    remove_biases(model);
    return complete_premised(model);
}

/* Seconds of the program's instructions, one after the other, but for the losses' sum, which the table leaves out. */
static double serial_s(const struct ghp_program *program, const struct ghp_timing *timing)
{
    double all = timing->serial_s;

    for (int k = 0; k < program->n_instrs; k++)
        if (program->instrs[k].kind == GHP_INSTR_METRIC_REDUCE)
            all -= timing->instrs[k].cost.seconds;
    return all;
}

/* Front by data; the rear's linear layers `out` by all-gather over K; between them the activations stay whole. */
static void premised_splits(const struct ghp_model *model, const struct row *row,
                            struct ghp_split *splits)
{
    int cut = row->data ? model->n_layers - 1 : ghp_closed_form_cut(model),
        k = row->workers / row->groups;

    for (int v = 0; v < model->n_layers; v++) {
        enum ghp_op op = model->layers[v].op;
        bool split = v > cut && k > 1;

        splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
        if (split && op == GHP_OP_LINEAR)
            splits[v] = (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = k};
        if (split && op != GHP_OP_LINEAR && op != GHP_OP_SOFTMAX_CE)
            splits[v] = (struct ghp_split){.kind = GHP_SPLIT_CHANNEL, .tp_size = k};
        if (split && op == GHP_OP_SOFTMAX_CE)
            splits[v] = (struct ghp_split){.kind = GHP_SPLIT_FULL, .tp_size = k};
    }
}

/* Sums the costs of a program by the table's terms. */
static void test_program_row(const struct ghp_model *model, const struct ghp_profile *profile,
                             const struct row *row)
{
    struct ghp_lowering lowering = {
        .model = model, .problem = {row->workers, (int64_t)row->batch}, .element_bytes = 4};
    struct ghp_split splits[64];
    struct ghp_program program;
    struct ghp_timing timing;
    double front = 0, rear = 0, boundary = 0, activations = 0, front_reduce = 0, rear_reduce = 0;
    int cut = row->data ? model->n_layers - 1 : ghp_closed_form_cut(model);

    premised_splits(model, row, splits);
    if (!CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) return;
    CHECK_STATUS(ghp_simulate(&program, profile, &timing), GHP_OK);
    for (int k = 0; k < program.n_instrs; k++) {
        const struct ghp_instr *instr = &program.instrs[k];
        double seconds = timing.instrs[k].cost.seconds;

        if (instr->kind == GHP_INSTR_METRIC_REDUCE) continue;
        if (instr->kind == GHP_INSTR_RESHARD)
            *(model->edges[instr->edge].from <= cut ? &boundary : &activations) += seconds;
        else if (instr->kind == GHP_INSTR_ALL_REDUCE)
            *(instr->layer <= cut ? &front_reduce : &rear_reduce) += seconds;
        else
            *(instr->layer <= cut ? &front : &rear) += seconds;
    }
    CHECK_DIGITS(front, row->front);
    CHECK_DIGITS(rear, row->rear);
    CHECK_DIGITS(boundary, row->boundary);
    CHECK_DIGITS(activations, row->activations);
    double extra =
        2 * latency_s * (row->workers - 1) * 12; /* the table sends the front's 13 layers as one */
    double extra_all = 2 * latency_s * (row->workers - 1) * 15; /* pure data: all 16 */
    double extra_rear = 2 * latency_s * (row->groups - 1) * 2;
    CHECK_DIGITS(front_reduce - (row->data ? extra_all : extra), row->front_reduce);
    CHECK_DIGITS(rear_reduce - (row->data || row->groups == 1 ? 0 : extra_rear), row->rear_reduce);
    CHECK_NEAR(serial_s(&program, &timing),
               front + rear + boundary + activations + front_reduce + rear_reduce, 1e-9);
    ghp_timing_release(&timing);
    lowering.method.bucket_bytes = (int64_t)1
                                   << 40; /* one message a TP size, as the table has it */
    if (!CHECK_STATUS((ghp_program_release(&program), ghp_lower(&lowering, splits, 0, &program)),
                      GHP_OK))
        return;
    CHECK_STATUS(ghp_simulate(&program, profile, &timing), GHP_OK);
    CHECK_DIGITS(serial_s(&program, &timing), row->total);
    ghp_timing_release(&timing);
    ghp_program_release(&program);
}

/* 1000 classes do not divide over 16 or 32 workers, and ghp splits evenly or not: those rows of the table are compared
 * on the same network with 1024 classes, by the formulas that gave the table's digits. */
static void test_wide_row(struct ghp_model *wide, const struct ghp_profile *profile,
                          const struct row *row)
{
    struct ghp_closed_form_params params = params_of(row);
    struct ghp_closed_form_network net = network_of(wide, row);
    struct ghp_closed_form_time t = ghp_closed_form_step(&net, &params);
    struct row expected = *row;

    expected.total = 1e3 * t.step_s;
    expected.front = 1e3 * t.front_s;
    expected.rear = 1e3 * t.rear_s;
    expected.boundary = 1e3 * t.boundary_s;
    expected.activations = 1e3 * t.activations_s;
    expected.front_reduce = 1e3 * t.front_reduce_s;
    expected.rear_reduce = 1e3 * t.rear_reduce_s;
    test_program_row(wide, profile, &expected);
}

/* Separated roles as two stages. The table deals B_g / K_d samples to each front worker, a fraction; ghp deals whole
 * ones, the largest share counts. Everything but the front's computation is the same to all digits, and that is in
 * proportion. */
static void test_separated_row(const struct ghp_model *model, const struct ghp_profile *profile,
                               const struct row *row)
{
    int cut = ghp_closed_form_cut(model), k = row->workers / row->groups,
        front_workers = k - row->rear_workers;
    const struct ghp_staging staging = {
        .n = 2,
        .stage = {{.workers = front_workers, .block_size = 1},
                  {.first_layer = cut + 1, .workers = row->rear_workers}}};
    struct ghp_lowering lowering = {.model = model,
                                    .problem = {row->workers, (int64_t)row->batch},
                                    .element_bytes = 4,
                                    .method.bucket_bytes = (int64_t)1 << 40,
                                    .staging = &staging};
    struct ghp_closed_form_params params = params_of(row);
    struct ghp_closed_form_network net = network_of(model, row);
    struct ghp_closed_form_time proven = ghp_closed_form_step(&net, &params);
    const struct row alone = {.workers = row->rear_workers, .groups = 1}; /* the rear's splits */
    double part[2] = {0}, reduce[2] = {0}, boundary = 0, activations = 0,
           group = row->batch / row->groups;
    double dealt = ceil(group / front_workers) / (group / front_workers), total;
    struct ghp_split splits[64];
    struct ghp_programs programs;

    premised_splits(model, &alone, splits);
    if (!CHECK_STATUS(ghp_lower_all(&lowering, splits, &programs), GHP_OK)) return;
    for (int i = 0; i < programs.n; i++)
        for (int n = 0; n < programs.of[i].n_instrs; n++) {
            const struct ghp_instr *instr = &programs.of[i].instrs[n];
            struct ghp_cost cost;

            if (instr->kind == GHP_INSTR_METRIC_REDUCE) continue;
            CHECK_STATUS(ghp_profile_cost(profile, instr, row->workers, &cost), GHP_OK);
            *(instr->stream == GHP_STREAM_TRANSFER  ? &boundary
              : instr->kind == GHP_INSTR_RESHARD    ? &activations
              : instr->kind == GHP_INSTR_ALL_REDUCE ? &reduce[i]
                                                    : &part[i]) += cost.seconds;
        }
    CHECK_DIGITS(part[0] / dealt, 1e3 * proven.front_s);
    CHECK_DIGITS(part[1], 1e3 * proven.rear_s);
    CHECK_DIGITS(boundary, 1e3 * proven.boundary_s);
    CHECK_DIGITS(activations, 1e3 * proven.activations_s);
    CHECK_DIGITS(reduce[0], 1e3 * proven.front_reduce_s);
    CHECK_DIGITS(reduce[1], 1e3 * proven.rear_reduce_s);
    total = part[0] / dealt + part[1] + boundary + activations + fmax(reduce[0], reduce[1]);
    CHECK_DIGITS(total, row->total);
    ghp_programs_release(&programs);
}

/* ---- a free choice ---- */

/* The fastest plan's step, its reductions in one message a TP size where `whole`. */
static double free_step_ms(const struct ghp_lowering *lowering, const struct ghp_profile *profile,
                           bool whole)
{
    struct ghp_instance in;
    struct ghp_domain domain;
    struct ghp_search_result result;
    double step_s = INFINITY;

    if (!CHECK_STATUS(ghp_instance_init(lowering, profile, lowering->problem.workers, &in), GHP_OK))
        return INFINITY;
    CHECK_STATUS(ghp_domain_init(&in, &domain), GHP_OK);
    struct ghp_search_job job = {
        .instance = &in, .domain = &domain, .deadline_s = ghp_now_s() + 30, .canonical = true};
    CHECK_STATUS(ghp_search_run(&job, &result), GHP_OK);
    CHECK(result.proven && result.feasible);
    CHECK_STATUS(ghp_search_evaluate(&in, result.kept[0].choice, whole ? (int64_t)1 << 40 : 0,
                                     &step_s, NULL),
                 GHP_OK);
    ghp_search_release(&result);
    ghp_domain_release(&domain);
    ghp_instance_release(&in);
    return 1e3 * step_s;
}

/* The plan that the table's text names: fc6-fc8 all `in` over K workers, entered by all-to-all, left by
 * reduce-scatter. */
static void test_named_plan(const struct ghp_model *plain, const struct ghp_profile *profile,
                            const struct row *best, int k, double named_ms)
{
    struct ghp_lowering lowering = {.model = plain,
                                    .problem = {best->workers, (int64_t)best->batch},
                                    .element_bytes = 4,
                                    .method.bucket_bytes = (int64_t)1 << 40};
    struct ghp_split splits[64];
    struct ghp_program program;
    struct ghp_timing timing;
    int cut = ghp_closed_form_cut(plain), last = plain->n_layers - 1;

    for (int v = 0; v < plain->n_layers; v++) {
        bool linear = plain->layers[v].op == GHP_OP_LINEAR, rear = v > cut && v < last;

        splits[v] = rear ? (struct ghp_split){.kind = linear ? GHP_SPLIT_IN : GHP_SPLIT_CHANNEL,
                                              .tp_size = k}
                         : (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    }
    if (!CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) return;
    CHECK_STATUS(ghp_simulate(&program, profile, &timing), GHP_OK);
    CHECK_NEAR(1e3 * serial_s(&program, &timing), named_ms, 0.0501);
    ghp_timing_release(&timing);
    ghp_program_release(&program);
}

/* No restriction on the splits. Under the table's premises (two streams that only hinder each other: a slowdown of 2
 * leaves no overlap) no more than its text's plan; as ghp runs it, with overlap and without the input's gradient,
 * less. */
static void test_free_choice(const struct ghp_model *model, const struct ghp_model *plain,
                             struct ghp_profile *profile, const struct row *best, double least_ms)
{
    struct ghp_lowering lowering = {
        .model = plain, .problem = {best->workers, (int64_t)best->batch}, .element_bytes = 4};
    double serial_ms, free_ms;

    profile->overlap = (struct ghp_overlap){.compute = 2, .comm = 2, .link = 2};
    serial_ms = free_step_ms(&lowering, profile, true);
    CHECK(serial_ms <= least_ms);
    profile->overlap = (struct ghp_overlap){.compute = 1, .comm = 1, .link = 1};
    lowering =
        (struct ghp_lowering){.model = model, .problem = lowering.problem, .element_bytes = 4};
    free_ms = free_step_ms(&lowering, profile, false);
    CHECK(free_ms <= least_ms && free_ms < best->total);
    printf("%d workers: %.2f ms under the table's premises, %.2f ms as ghp runs it\n",
           best->workers, serial_ms, free_ms);
}

CHECK_TEST(closed_form)
{
    struct ghp_model model, plain, wide;
    struct ghp_profile profile;

    if (!CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/vgg16.json", &model), GHP_OK))
        return check_end();
    if (!CHECK_STATUS(load_without_biases(&plain), GHP_OK)) return check_end();
    if (!CHECK_STATUS(load_without_biases(&wide), GHP_OK)) return check_end();
    wide.layers[wide.n_layers - 2].out.c = 1024;
    if (!CHECK_STATUS(complete_premised(&wide), GHP_OK)) return check_end();
    if (!CHECK_STATUS(analytic_profile(flops_per_s, bandwidth_Bps, latency_s, &profile), GHP_OK))
        return check_end();
    test_formulas(&model);
    test_sums(&model);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].rear_workers > 0)
            test_separated_row(&plain, &profile, &rows[k]);
        else if (rows[k].data || 1000 * rows[k].groups % rows[k].workers == 0)
            test_program_row(&plain, &profile, &rows[k]);
        else
            test_wide_row(&wide, &profile, &rows[k]);
    test_named_plan(&plain, &profile, &rows[2], 16, 1147.5);
    test_named_plan(&plain, &profile, &rows[7], 16, 1175.8);
    test_free_choice(&model, &plain, &profile, &rows[2], 1147.5);
    test_free_choice(&model, &plain, &profile, &rows[7], 1175.9);
    ghp_model_release(&model);
    ghp_model_release(&plain);
    ghp_model_release(&wide);
    ghp_profile_release(&profile);
    return check_end();
}
