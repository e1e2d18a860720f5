/* tests/executor/twin_case.c - see twin_case.h. */
#include "tests/executor/twin_case.h"

#include "core/model/precision.h"
#include "tests/executor/op_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double number(const struct twin_case *c, const struct twin_tensor *t, int64_t i)
{
    if (t->kind == CASE_NARROW && c->got.element_bytes == 2)
        return (double)ghp_bf16_value(((const uint16_t *)t->got)[i]);
    return (double)((const float *)t->got)[i];
}

static void add(struct twin_case *c, struct twin_tensor tensor)
{
    if (tensor.right != NULL && tensor.elements > 0) c->tensors[c->n++] = tensor;
}

/* Saved: a max pool's places are bytes, all else floats. */
static struct twin_tensor saved_of(const struct twin_case *c)
{
    const struct ghp_local *l = &c->right.local;
    int64_t bytes = ghp_local_saved_bytes(l, 4);
    bool plain = l->op == GHP_OP_MAX_POOL;

    return (struct twin_tensor){.name = "saved",
                                .right = c->right.args.at.saved,
                                .got = c->got.args.at.saved,
                                .elements = plain ? bytes : bytes / 4,
                                .kind = plain ? CASE_PLAIN : CASE_WIDE};
}

static void list(struct twin_case *c)
{
    const struct ghp_local *l = &c->right.local;
    const struct ghp_tensors *r = &c->right.args.at, *g = &c->got.args.at;
    int weights = ghp_operand_set_weights(l);

    for (int i = 0; i < ghp_operand_set_inputs(l); i++) {
        int64_t n = ghp_operand_set_input_elements(l, i);

        if (ghp_op_of(l->op)->takes_ids)
            add(c, (struct twin_tensor){"ids", (void *)(uintptr_t)r->x[i],
                                        (void *)(uintptr_t)g->x[i], 4 * n, CASE_PLAIN, false});
        else
            add(c, (struct twin_tensor){"x", (void *)(uintptr_t)r->x[i], (void *)(uintptr_t)g->x[i],
                                        n, CASE_NARROW, false});
        add(c, (struct twin_tensor){"dx", r->dx[i], g->dx[i], n, CASE_NARROW, false});
    }
    add(c, (struct twin_tensor){"y", r->y, g->y, ghp_local_out_elements(l), CASE_NARROW, false});
    add(c, (struct twin_tensor){"dy", r->dy, g->dy, ghp_local_out_elements(l), CASE_NARROW, false});
    for (int i = 0; i < weights; i++) {
        int64_t n = ghp_local_weight_elements(l) / weights;

        add(c, (struct twin_tensor){"w", r->w[i], g->w[i], n, CASE_WIDE, false});
        add(c, (struct twin_tensor){"dw", r->dw[i], g->dw[i], n, CASE_WIDE, false});
    }
    add(c, saved_of(c));
    add(c,
        (struct twin_tensor){"labels", (void *)(uintptr_t)r->labels, (void *)(uintptr_t)g->labels,
                             r->labels != NULL ? ghp_local_labels(l) * 4 : 0, CASE_PLAIN, false});
    add(c, (struct twin_tensor){"stats", r->stats, g->stats, ghp_local_stats_bytes(l), CASE_PLAIN,
                                false});
    add(c, (struct twin_tensor){"metrics", r->metrics, g->metrics, GHP_METRIC_COUNT * 8, CASE_PLAIN,
                                false});
    for (int i = 0; i < GHP_MAX_STATES; i++)
        add(c, (struct twin_tensor){"state", r->state[i], g->state[i], l->c, CASE_WIDE, false});
}

void twin_case_round(struct twin_case *c)
{
    if (c->got.element_bytes != 2) return;
    for (int t = 0; t < c->n; t++)
        for (int64_t i = 0; c->tensors[t].kind == CASE_NARROW && i < c->tensors[t].elements; i++) {
            float *value = (float *)c->tensors[t].right + i;

            *value = ghp_bf16_value(ghp_bf16_of(*value));
        }
}

void twin_case_open(struct twin_case *c, struct ghp_device device, const struct ghp_local *local,
                    int element_bytes)
{
    memset(c, 0, sizeof *c);
    if (ghp_operand_set_init(local, 4, GHP_OPERAND_SET_ALL, &c->right) != GHP_OK ||
        ghp_operand_set_init(local, element_bytes, GHP_OPERAND_SET_ALL, &c->got) != GHP_OK ||
        ghp_operand_set_init_on(device, local, element_bytes, GHP_OPERAND_SET_ALL, &c->there) !=
            GHP_OK) {
        fprintf(stderr, "%s\n", ghp_status_message());
        exit(1);
    }
    op_case_arguments(&c->right);
    op_case_arguments(&c->got);
    c->there.args.first_position = op_case_first_position(local); /* its labels are copied there */
    list(c);
    twin_case_round(c);
}

void twin_case_close(struct twin_case *c)
{
    ghp_operand_set_release(&c->there);
    ghp_operand_set_release(&c->got);
    ghp_operand_set_release(&c->right);
}

static bool is_written(const struct twin_tensor *t, enum ghp_pass pass, enum ghp_op op)
{
    if (strcmp(t->name, "y") == 0) return pass == GHP_PASS_FORWARD;
    if (strcmp(t->name, "dx") == 0) return pass == GHP_PASS_BACKWARD_DATA;
    if (strcmp(t->name, "dw") == 0) return pass == GHP_PASS_BACKWARD_WEIGHT;
    if (strcmp(t->name, "saved") == 0) return pass == GHP_PASS_FORWARD;
    if (strcmp(t->name, "state") == 0) return pass == GHP_PASS_FORWARD;
    if (strcmp(t->name, "metrics") == 0) return pass == GHP_PASS_FORWARD && ghp_op_of(op)->is_loss;
    if (strcmp(t->name, "stats") == 0)
        return pass == GHP_PASS_STATS || pass == GHP_PASS_BACKWARD_STATS;
    return false;
}

static size_t bytes_of(const struct twin_case *c, const struct twin_tensor *t)
{
    int each = t->kind == CASE_PLAIN ? 1 : t->kind == CASE_WIDE ? 4 : c->got.element_bytes;

    return (size_t)(t->elements * each);
}

enum ghp_status twin_case_send(struct twin_case *c, enum ghp_pass pass)
{
    for (int i = 0; i < c->n; i++) {
        struct twin_tensor *t = &c->tensors[i];
        bool adds = strcmp(t->name, "state") == 0 || strcmp(t->name, "metrics") == 0 ||
                    (c->adds && strcmp(t->name, "dx") == 0);

        t->written = is_written(t, pass, c->right.local.op);
        if (t->kind == CASE_NARROW && c->got.element_bytes == 2)
            for (int64_t e = 0; e < t->elements; e++)
                ((uint16_t *)t->got)[e] = ghp_bf16_of(((const float *)t->right)[e]);
        else
            memcpy(t->got, t->right, bytes_of(c, t));
        if (t->written && !adds) memset(t->got, 0xff, bytes_of(c, t));
    }
    return ghp_operand_set_upload(&c->got, &c->there);
}

enum ghp_status twin_case_fetch(struct twin_case *c)
{
    return ghp_operand_set_fetch(&c->there, &c->got);
}

enum { GUARD_BYTES = 256 };

static enum ghp_status check_guard(const unsigned char *guard)
{
    for (int i = 0; i < GUARD_BYTES; i++)
        if (guard[i] != 0xff)
            return GHP_FAIL(GHP_ERR_INTERNAL, "the kernel writes behind its scratch; report this");
    return GHP_OK;
}

enum ghp_status twin_case_run(struct twin_case *c, const struct ghp_backend_ops *ops,
                              struct ghp_kernel *kernel)
{
    int64_t bytes = ops->scratch_bytes(kernel), whole = bytes + GUARD_BYTES;
    unsigned char *fill = malloc((size_t)whole);
    void *scratch = NULL;
    enum ghp_status status;

    memset(fill, 0xff, (size_t)whole);
    status = ghp_device_allocate(c->there.device, whole, &scratch);
    if (status == GHP_OK) status = ghp_device_write(c->there.device, scratch, fill, whole);
    c->there.args.at.scratch = scratch;
    if (status == GHP_OK) status = ops->run(kernel, &c->there.args);
    if (status == GHP_OK) status = ghp_device_read(c->there.device, fill, scratch, whole);
    if (status == GHP_OK) status = check_guard(fill + bytes);
    ghp_device_release(c->there.device, scratch);
    c->there.args.at.scratch = NULL;
    free(fill);
    return status;
}

double twin_case_error(const struct twin_case *c, const struct twin_tensor *t)
{
    double difference = 0, size = 0;

    if (t->kind == CASE_PLAIN && strcmp(t->name, "saved") != 0 && strcmp(t->name, "labels") != 0 &&
        strcmp(t->name, "ids") != 0) {
        for (int64_t i = 0; i < t->elements / 8; i++) { /* doubles */
            double right = ((const double *)t->right)[i];

            size = fmax(size, fabs(right));
            difference = fmax(difference, fabs(((const double *)t->got)[i] - right));
            if (isnan(((const double *)t->got)[i])) return INFINITY;
        }
    } else if (t->kind == CASE_PLAIN) {
        return memcmp(t->right, t->got, (size_t)t->elements) == 0 ? 0 : INFINITY;
    } else {
        for (int64_t i = 0; i < t->elements; i++) {
            double right = (double)((const float *)t->right)[i], got = number(c, t, i);

            if (isnan(got)) return INFINITY;
            size = fmax(size, fabs(right));
            difference = fmax(difference, fabs(got - right));
        }
    }
    return difference / fmax(size, 1e-30);
}

struct ghp_local twin_case_shape(enum ghp_op op, int64_t n, int64_t c, int64_t size)
{
    struct ghp_window window = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, false};

    return (struct ghp_local){.op = op,
                              .n = n,
                              .c = c,
                              .h = size,
                              .w = size,
                              .k = c,
                              .p = size,
                              .q = size,
                              .n_inputs = op == GHP_OP_ADD || op == GHP_OP_MUL ? 2 : 1,
                              .window = window,
                              .norm = {.epsilon = 1e-5,
                                       .momentum = 0.1,
                                       .size = 5,
                                       .alpha = 1e-4,
                                       .beta = 0.75,
                                       .k = 2,
                                       .ratio = 0.5}};
}
