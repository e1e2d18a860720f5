/* tests/executor/op_run.c - runs operations; see op_case.h. */
#include "core/model/precision.h"
#include "tests/check.h"
#include "tests/executor/op_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t op_case_first_position(const struct ghp_local *local)
{
    return local->keys > 0 ? local->keys - local->h - 1 : 3;
}

void op_case_arguments(struct ghp_operand_set *set)
{
    const struct ghp_op_facts *facts = ghp_op_of(set->local.op);
    int32_t *labels = (int32_t *)(uintptr_t)set->args.at.labels;
    struct ghp_label_outputs outputs = ghp_loss_label_outputs(&set->local.loss);
    if (facts->is_loss && set->local.h > 1) /* some are ignored */
        labels[1] = facts->takes_numbers ? ghp_label_of_number(NAN) : -100;
    for (int64_t i = 0; set->local.op == GHP_OP_LOSSES && set->local.h > 1 && i < outputs.row; i++)
        labels[outputs.row + i] = outputs.classes[ghp_label_output(&outputs, i)] > 0
                                      ? -100
                                      : ghp_label_of_number(NAN);
    if (set->local.op == GHP_OP_HARD_SWISH && set->element_bytes >= 4)
        for (int64_t i = 0; i < ghp_operand_set_input_elements(&set->local, 0); i++) {
            void *x = (void *)(uintptr_t)set->args.at.x[0];
            op_case_set(set, x, i, 4.0 * op_case_get(set, x, i));
        }
    if (set->local.op == GHP_OP_POINTWISE && set->element_bytes >= 4)
        for (int64_t i = 0; i < ghp_operand_set_input_elements(&set->local, 0); i++) {
            void *x = (void *)(uintptr_t)set->args.at.x[0];
            enum ghp_curve curve = set->local.pointwise.curve;
            bool positive = curve == GHP_CURVE_POW || curve == GHP_CURVE_LOG;
            double value = op_case_get(set, x, i);
            op_case_set(set, x, i,
                        positive ? fabs(value) + 0.25
                                 : (curve == GHP_CURVE_SOFTPLUS ? 12.0 : 4.0) * value);
        }
    if (set->local.op == GHP_OP_HINGE && set->element_bytes >= 4) /* no margin near its corner */
        for (int64_t i = 0; i < ghp_operand_set_input_elements(&set->local, 0); i++) {
            void *x = (void *)(uintptr_t)set->args.at.x[0];
            double value = 2.0 * op_case_get(set, x, i);
            op_case_set(set, x, i, fabs(fabs(value) - 1) < 0.01 ? 0.9 * value : value);
        }
    set->args.first_position = op_case_first_position(&set->local);
}

const char *op_case_text(const struct ghp_local *local, enum ghp_pass pass)
{
    static char text[GHP_KEY_BYTES + 32];
    char key[GHP_KEY_BYTES];
    ghp_local_key(local, key);
    snprintf(text, sizeof text, "%s %s", key, ghp_pass_name(pass));
    return text;
}

int op_case_written(const struct ghp_operand_set *set, enum ghp_pass pass,
                    struct op_tensor *tensors)
{
    const struct ghp_local *local = &set->local;
    const struct ghp_tensors *at = &set->args.at;
    int n = 0, weights = ghp_operand_set_weights(local);
    if (pass == GHP_PASS_FORWARD) {
        tensors[n++] = (struct op_tensor){"y", at->y, ghp_local_out_elements(local)};
        for (int i = 0; local->op == GHP_OP_BATCH_NORM && i < 2; i++)
            tensors[n++] = (struct op_tensor){"state", at->state[i], local->c};
    }
    for (int i = 0; pass == GHP_PASS_BACKWARD_DATA && i < ghp_operand_set_inputs(local); i++)
        tensors[n++] =
            (struct op_tensor){"dx", at->dx[i], ghp_operand_set_input_elements(local, i)};
    for (int i = 0; pass == GHP_PASS_BACKWARD_WEIGHT && i < weights; i++)
        tensors[n++] =
            (struct op_tensor){"dw", at->dw[i], ghp_local_weight_elements(local) / weights};
    return n;
}

static void poison_outputs(struct ghp_operand_set *set, enum ghp_pass pass)
{
    struct op_tensor tensors[OP_MAX_TENSORS];
    int n = op_case_written(set, pass, tensors);
    for (int i = 0; i < n; i++)
        if (strcmp(tensors[i].name, "state") != 0)
            memset(tensors[i].data, 0xff, (size_t)(tensors[i].elements * set->element_bytes));
}

static void must(bool ok, const struct ghp_operand_set *set, enum ghp_pass pass, const char *what)
{
    if (ok) return;
    fprintf(stderr, "%s: %s\n", op_case_text(&set->local, pass), what);
    exit(1);
}

void op_case_run(struct ghp_operand_set *set, const struct ghp_backend_ops *ops,
                 struct ghp_backend *backend, enum ghp_pass pass, char *algorithm)
{
    enum { GUARD_BYTES = 64 };
    struct ghp_kernel *kernel = NULL;
    must(ops->prepare(backend, &set->local, pass, &kernel) == GHP_OK, set, pass,
         ghp_status_message());
    size_t bytes = (size_t)ops->scratch_bytes(kernel);
    unsigned char *scratch = ghp_operand_set_block((int64_t)bytes + GUARD_BYTES);
    must(scratch != NULL, set, pass, "out of memory");
    memset(scratch, 0xff, bytes + GUARD_BYTES);
    poison_outputs(set, pass);
    set->args.at.scratch = scratch;
    must(ops->run(kernel, &set->args) == GHP_OK, set, pass, ghp_status_message());
    for (int i = 0; i < GUARD_BYTES; i++)
        must(scratch[bytes + (size_t)i] == 0xff, set, pass, "writes behind its scratch");
    if (algorithm != NULL) snprintf(algorithm, 64, "%s", ops->algorithm(kernel));
    set->args.at.scratch = NULL;
    free(scratch);
    ops->release(kernel);
}

void op_case_run_all(struct ghp_operand_set *set, const struct ghp_backend_ops *ops,
                     struct ghp_backend *backend)
{
    static const enum ghp_pass order[] = {GHP_PASS_STATS, GHP_PASS_FORWARD, GHP_PASS_BACKWARD_STATS,
                                          GHP_PASS_BACKWARD_WEIGHT, GHP_PASS_BACKWARD_DATA};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (ghp_local_has_pass(&set->local, order[i]))
            op_case_run(set, ops, backend, order[i], NULL);
}

double op_case_get(const struct ghp_operand_set *set, const void *tensor, int64_t i)
{
    return set->element_bytes == 4 ? (double)((const float *)tensor)[i]
                                   : ((const double *)tensor)[i];
}

void op_case_set(const struct ghp_operand_set *set, void *tensor, int64_t i, double value)
{
    if (set->element_bytes == 4)
        ((float *)tensor)[i] = (float)value;
    else
        ((double *)tensor)[i] = value;
}

/* ---- a loss that is divided ---- */

enum { WORKERS = 3, CLASSES = 11, COLUMNS = 4, ROWS = 6 };

static void must_make(struct ghp_operand_set *set, const struct ghp_local *local, int element_bytes)
{
    must(ghp_operand_set_init(local, element_bytes, GHP_OPERAND_SET_ALL, set) == GHP_OK, set,
         GHP_PASS_FORWARD, "out of memory");
}

/* Worker w's part of the whole logits, NaN where padding is, with the same labels. */
static void take_part(const struct ghp_operand_set *whole, int w, struct ghp_operand_set *part)
{
    const struct ghp_local local = {
        GHP_OP_SOFTMAX_CE,        2, COLUMNS, 3, 1, COLUMNS, 3, 1, .n_inputs = 1, .parts = WORKERS,
        .loss = whole->local.loss};
    must_make(part, &local, whole->element_bytes);
    part->args.first_channel = w * COLUMNS;
    part->args.global_channels = CLASSES;
    part->args.valid_samples = whole->args.valid_samples;
    memcpy((void *)(uintptr_t)part->args.at.labels, whole->args.at.labels, ROWS * sizeof(int32_t));
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < COLUMNS; i++) {
            int at = w * COLUMNS + i;
            double value =
                at < CLASSES ? op_case_get(whole, whole->args.at.x[0], row * CLASSES + at) : NAN;
            op_case_set(part, (void *)(uintptr_t)part->args.at.x[0], row * COLUMNS + i, value);
        }
}

static void check_part(const struct ghp_operand_set *whole, const struct ghp_operand_set *part,
                       double bound)
{
    const struct ghp_tensors *right = &whole->args.at, *got = &part->args.at;
    int first = (int)part->args.first_channel;
    for (int m = 0; m < GHP_METRIC_COUNT; m++)
        CHECK_NEAR(got->metrics[m], right->metrics[m], bound);
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < COLUMNS; i++) {
            bool pads = first + i >= CLASSES;
            int at = row * COLUMNS + i, from = row * CLASSES + first + i;
            double y = pads ? 0 : op_case_get(whole, right->y, from),
                   dx = pads ? 0 : op_case_get(whole, right->dx[0], from);
            CHECK_NEAR(op_case_get(part, got->y, at), y, pads ? 0 : bound);
            CHECK_NEAR(op_case_get(part, got->dx[0], at), dx, pads ? 0 : bound);
        }
}

static void check_divided(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                          int element_bytes, double smoothing, double bound)
{
    const struct ghp_local local = {GHP_OP_SOFTMAX_CE,
                                    2,
                                    CLASSES,
                                    3,
                                    1,
                                    CLASSES,
                                    3,
                                    1,
                                    .n_inputs = 1,
                                    .loss = {.smoothing = smoothing}};
    struct ghp_operand_set whole, part[WORKERS];
    double all[WORKERS * ROWS * GHP_ROW_COUNT] = {0};
    must_make(&whole, &local, element_bytes);
    op_case_arguments(&whole);
    for (int i = 0; i < 2; i++) /* equal ones, of two workers: the first is the greatest */
        op_case_set(&whole, (void *)(uintptr_t)whole.args.at.x[0], 1 + 5 * i, 9.0);
    ((int32_t *)(uintptr_t)whole.args.at.labels)[0] = 1;
    op_case_run_all(&whole, ops, backend);
    for (int w = 0; w < WORKERS; w++) {
        take_part(&whole, w, &part[w]);
        op_case_run(&part[w], ops, backend, GHP_PASS_STATS, NULL);
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            all[i] += part[w].args.at.stats[i];
    }
    for (int w = 0; w < WORKERS; w++) {
        memcpy(part[w].args.at.stats, all, sizeof all);
        op_case_run(&part[w], ops, backend, GHP_PASS_FORWARD, NULL);
        op_case_run(&part[w], ops, backend, GHP_PASS_BACKWARD_DATA, NULL);
        check_part(&whole, &part[w], bound);
        ghp_operand_set_release(&part[w]);
    }
    ghp_operand_set_release(&whole);
}

void op_case_divided(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                     int element_bytes, double bound)
{
    check_divided(ops, backend, element_bytes, 0, bound);
    check_divided(ops, backend, element_bytes, 0.25, bound);
}

/* ---- two labels of a sample ---- */

static void check_two_labels(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                             int element_bytes, double smoothing, double bound)
{
    enum { SAMPLES = 3 };
    const struct ghp_local local = {GHP_OP_SOFTMAX_CE,
                                    SAMPLES,
                                    CLASSES,
                                    1,
                                    1,
                                    CLASSES,
                                    1,
                                    1,
                                    .n_inputs = 1,
                                    .loss = {.smoothing = smoothing}};
    const double part = 0.25;
    /* the last sample has one alone */
    static const int32_t labels[2][SAMPLES] = {{2, 10, 7}, {4, 0, 7}};
    static const struct ghp_second_label seconds[SAMPLES] = {{4, 0.25}, {0, 0.25}, {7, 0}};
    struct ghp_operand_set both, one[2];
    double loss;
    must_make(&both, &local, element_bytes);
    memcpy((void *)(uintptr_t)both.args.at.labels, labels[0], sizeof labels[0]);
    both.args.at.seconds = seconds;
    op_case_run_all(&both, ops, backend);
    for (int i = 0; i < 2; i++) {
        must_make(&one[i], &local, element_bytes);
        memcpy((void *)(uintptr_t)one[i].args.at.labels, labels[i], sizeof labels[i]);
        op_case_run_all(&one[i], ops, backend);
    }
    loss = (1 - part) * one[0].args.at.metrics[GHP_METRIC_LOSS] +
           part * one[1].args.at.metrics[GHP_METRIC_LOSS];
    CHECK_NEAR(both.args.at.metrics[GHP_METRIC_LOSS], loss, bound * loss);
    CHECK_EQ(both.args.at.metrics[GHP_METRIC_CORRECT], one[0].args.at.metrics[GHP_METRIC_CORRECT]);
    for (int i = 0; i < SAMPLES * CLASSES; i++)
        CHECK_NEAR(op_case_get(&both, both.args.at.dx[0], i),
                   (1 - part) * op_case_get(&one[0], one[0].args.at.dx[0], i) +
                       part * op_case_get(&one[1], one[1].args.at.dx[0], i),
                   bound);
    ghp_operand_set_release(&both);
    for (int i = 0; i < 2; i++)
        ghp_operand_set_release(&one[i]);
}

void op_case_two_labels(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                        int element_bytes, double bound)
{
    check_two_labels(ops, backend, element_bytes, 0, bound);
    check_two_labels(ops, backend, element_bytes, 0.25, bound);
}

/* ---- several outputs ---- */

enum { OUTPUTS = 3 };
static const double weights_of_outputs[OUTPUTS] = {1, 0.25, 2};

/* One output of several: its rows of x, and its labels. */
static void take_output(const struct ghp_operand_set *several, int output,
                        const struct ghp_local *local, struct ghp_operand_set *one)
{
    int64_t labels, rows = local->n * local->h, c = local->c;
    bool own = several->local.loss.own_labels;
    must_make(one, local, several->element_bytes);
    labels = ghp_local_labels(local) / rows;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < c; i++)
            op_case_set(
                one, (void *)(uintptr_t)one->args.at.x[0], row * c + i,
                op_case_get(several, several->args.at.x[0], (row * OUTPUTS + output) * c + i));
        memcpy((int32_t *)(uintptr_t)one->args.at.labels + row * labels,
               several->args.at.labels + (own ? row * OUTPUTS + output : row) * labels,
               (size_t)labels * sizeof(int32_t));
    }
}

static void check_outputs(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                          int element_bytes, const struct ghp_local *local, double bound)
{
    struct ghp_local of_all = *local;
    struct ghp_operand_set several, one;
    double loss = 0;
    of_all.h = of_all.p = local->h * OUTPUTS;
    of_all.loss.outputs = OUTPUTS;
    memcpy(of_all.loss.weights, weights_of_outputs, sizeof weights_of_outputs);
    must_make(&several, &of_all, element_bytes);
    op_case_arguments(&several);
    several.args.loss_scale *= OUTPUTS;
    op_case_run_all(&several, ops, backend);
    for (int o = 0; o < OUTPUTS; o++) {
        take_output(&several, o, local, &one);
        op_case_run_all(&one, ops, backend);
        loss += weights_of_outputs[o] * one.args.at.metrics[GHP_METRIC_LOSS];
        for (int m = GHP_METRIC_LOSS + 1; m < GHP_METRIC_COUNT && o == 0; m++)
            CHECK_NEAR(several.args.at.metrics[m], one.args.at.metrics[m], bound);
        for (int64_t i = 0; i < ghp_local_in_elements(local); i++)
            CHECK_NEAR(op_case_get(&several, several.args.at.dx[0],
                                   (i / local->c * OUTPUTS + o) * local->c + i % local->c),
                       weights_of_outputs[o] * op_case_get(&one, one.args.at.dx[0], i), bound);
        ghp_operand_set_release(&one);
    }
    CHECK_NEAR(several.args.at.metrics[GHP_METRIC_LOSS], loss, bound * loss);
    ghp_operand_set_release(&several);
}

void op_case_outputs(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                     int element_bytes, double bound)
{
    for (int op = GHP_OP_SOFTMAX_CE; op <= GHP_OP_REGRESSION; op++)
        for (int own = 0; own < 2; own++)
            for (int each = 0; each < (op == GHP_OP_BINARY_CE ? 2 : 1); each++) {
                struct ghp_local local = {(enum ghp_op)op, 3, 5, 2, 1, 5, 2, 1, .n_inputs = 1};
                local.loss.own_labels = own == 1;
                local.loss.multi_label = each == 1;
                check_outputs(ops, backend, element_bytes, &local, bound);
            }
}
