/* core/sharding/local.c - local shapes, their keys, and what they cost in operations and bytes. */
#include "core/sharding/local.h"
#include "core/base/hash.h"
#include "core/model/precision.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct ghp_local ghp_local_of(const struct ghp_model *model, int layer, struct ghp_split split,
                              struct ghp_problem problem)
{
    const struct ghp_layer *l = &model->layers[layer];
    struct ghp_layouts at = ghp_split_layouts(split);
    struct ghp_local local = {
        .op = l->op,
        .n = ghp_layout_samples(at.x, problem),
        .c = ghp_layout_channels(at.x, l->in.c),
        .h = l->in.h,
        .w = l->in.w,
        .k = ghp_layout_channels(at.y, l->out.c),
        .p = l->out.h,
        .q = l->out.w,
        .n_inputs = l->n_inputs,
        .window = l->window,
        .norm = l->norm,
        .activation = l->activation,
        .view = l->view,
        .border = l->border,
    };
    if (l->op == GHP_OP_VIEW && split.kind == GHP_SPLIT_CHANNEL)
        local.view.sizes[0] /= split.tp_size; /* the channels: ghp_index_map_keeps_channels */
    if (l->op == GHP_OP_CONV2D && split.kind == GHP_SPLIT_CHANNEL)
        local.window.groups /= split.tp_size;
    if (l->op == GHP_OP_INPUT) {
        local.c = local.k;
        local.h = local.p;
        local.w = local.q;
    }
    if (l->op == GHP_OP_BATCH_NORM && l->norm.ghost_batch > 0 && local.n > l->norm.ghost_batch) {
        local.repeat = (int)(local.n / l->norm.ghost_batch);
        local.n = l->norm.ghost_batch;
    }
    if (l->op == GHP_OP_CONCAT) {
        local.c = 0;
        for (int i = 0; i < l->n_inputs; i++) {
            local.slice[i] = model->layers[l->inputs[i]].out.c;
            local.c += local.slice[i];
        }
    }
    return local;
}

bool ghp_whole_blocks(int64_t channels)
{
    return channels % GHP_BLOCK_CHANNELS == 0;
}

int ghp_local_repeat(const struct ghp_local *local)
{
    return local->repeat > 1 ? local->repeat : 1;
}

static int put_window(char *text, size_t n, const struct ghp_window *w)
{
    return snprintf(text, n,
                    " r%" PRId64 " s%" PRId64 " t%" PRId64 "x%" PRId64 " p%" PRId64 ",%" PRId64
                    ",%" PRId64 ",%" PRId64,
                    w->r, w->s, w->stride_h, w->stride_w, w->pad_top, w->pad_left, w->pad_bottom,
                    w->pad_right);
}

/* Of the attributes of a view or a pad. */
static uint64_t attributes_hash(const struct ghp_local *local)
{
    const struct ghp_border *b = &local->border;
    uint64_t hash = GHP_HASH_SEED;

    if (local->op == GHP_OP_PAD) {
        hash = ghp_hash(b->before, sizeof b->before, hash);
        hash = ghp_hash(b->after, sizeof b->after, hash);
        return ghp_hash(&b->fill, sizeof b->fill, hash);
    }
    hash = ghp_hash(&local->view.offset, sizeof local->view.offset, hash);
    hash = ghp_hash(local->view.sizes, (size_t)local->view.n * sizeof(int64_t), hash);
    return ghp_hash(local->view.strides, (size_t)local->view.n * sizeof(int64_t), hash);
}

void ghp_local_key(const struct ghp_local *local, char key[GHP_KEY_BYTES])
{
    int used = snprintf(key, GHP_KEY_BYTES, "%s n%" PRId64 " c%" PRId64 " h%" PRId64 " w%" PRId64,
                        ghp_op_name(local->op), local->n, local->c, local->h, local->w);
    size_t at = (size_t)used;
    size_t left = GHP_KEY_BYTES - at;
    const struct ghp_window *w = &local->window;
    switch (local->op) {
    case GHP_OP_CONV2D:
        at += (size_t)snprintf(key + at, left, " k%" PRId64, local->k);
        at += (size_t)put_window(key + at, GHP_KEY_BYTES - at, w);
        snprintf(key + at, GHP_KEY_BYTES - at, " d%" PRId64 "x%" PRId64 " g%" PRId64, w->dilation_h,
                 w->dilation_w, w->groups);
        break;
    case GHP_OP_MAX_POOL:
    case GHP_OP_AVG_POOL:
        at += (size_t)put_window(key + at, left, w);
        if (w->dilation_h > 1 || w->dilation_w > 1)
            at += (size_t)snprintf(key + at, GHP_KEY_BYTES - at, " d%" PRId64 "x%" PRId64,
                                   w->dilation_h, w->dilation_w);
        snprintf(key + at, GHP_KEY_BYTES - at, "%s",
                 local->op == GHP_OP_AVG_POOL && w->count_pad ? " padded" : "");
        break;
    case GHP_OP_LINEAR: snprintf(key + at, left, " k%" PRId64, local->k); break;
    case GHP_OP_LRN: snprintf(key + at, left, " size%" PRId64, local->norm.size); break;
    case GHP_OP_ACTIVATION:
        snprintf(key + at, left, " %s", ghp_function_name(local->activation.function));
        break;
    case GHP_OP_ADD: snprintf(key + at, left, " inputs%d", local->n_inputs); break;
    case GHP_OP_VIEW:
    case GHP_OP_PAD:
        snprintf(key + at, left, " k%" PRId64 " o%" PRId64 "x%" PRId64 " x%016" PRIx64, local->k,
                 local->p, local->q, attributes_hash(local));
        break;
    case GHP_OP_CONCAT:
        for (int i = 0; i < local->n_inputs && at < GHP_KEY_BYTES; i++)
            at += (size_t)snprintf(key + at, GHP_KEY_BYTES - at, "%s%" PRId64,
                                   i == 0 ? " slices" : "+", local->slice[i]);
        break;
    default: break;
    }
}

bool ghp_local_has_pass(const struct ghp_local *local, enum ghp_pass pass)
{
    bool weighted = ghp_op_is_weighted(local->op);
    bool norm = local->op == GHP_OP_BATCH_NORM;
    switch (pass) {
    case GHP_PASS_FORWARD: return local->op != GHP_OP_INPUT;
    case GHP_PASS_BACKWARD_DATA:
        return local->op != GHP_OP_INPUT &&
               local->op != GHP_OP_BIAS; /* a bias hands its gradient on unchanged */
    case GHP_PASS_BACKWARD_WEIGHT: return weighted || norm || local->op == GHP_OP_BIAS;
    case GHP_PASS_STATS:
    case GHP_PASS_BACKWARD_STATS: return norm;
    case GHP_PASS_COUNT: break;
    }
    return false;
}

bool ghp_pass_reads_input(enum ghp_op op, enum ghp_pass pass)
{
    bool weighted = ghp_op_is_weighted(op);
    if (!ghp_op_needs_input(op) || (weighted && pass == GHP_PASS_BACKWARD_DATA)) return false;
    return op != GHP_OP_BATCH_NORM || pass != GHP_PASS_BACKWARD_WEIGHT; /* its sums say it all */
}

int ghp_local_whole_inputs(const struct ghp_local *local)
{
    return local->op == GHP_OP_ADD || local->op == GHP_OP_MUL ? local->n_inputs : 1;
}

int64_t ghp_local_in_elements(const struct ghp_local *local)
{
    return local->n * local->c * local->h * local->w;
}

int64_t ghp_local_out_elements(const struct ghp_local *local)
{
    return local->n * local->k * local->p * local->q;
}

int64_t ghp_local_weight_elements(const struct ghp_local *local)
{
    switch (local->op) {
    case GHP_OP_CONV2D:
        return local->k * (local->c / local->window.groups) * local->window.r * local->window.s;
    case GHP_OP_LINEAR: return local->k * local->c;
    case GHP_OP_BIAS: return local->c;
    case GHP_OP_BATCH_NORM: return 2 * local->c;
    default: return 0;
    }
}

int64_t ghp_local_flops(const struct ghp_local *local, enum ghp_pass pass)
{
    if ((local->op != GHP_OP_CONV2D && local->op != GHP_OP_LINEAR) ||
        !ghp_local_has_pass(local, pass))
        return 0;
    return 2 * local->n * local->p * local->q * ghp_local_weight_elements(local);
}

int64_t ghp_local_bytes(const struct ghp_local *local, enum ghp_pass pass, int element_bytes)
{
    int64_t in = ghp_local_in_elements(local), out = ghp_local_out_elements(local);
    int64_t saved = ghp_local_saved_bytes(local, element_bytes) / ghp_local_repeat(local);
    int64_t inputs = ghp_local_whole_inputs(local);
    int64_t weights = ghp_local_weight_elements(local) * ghp_parameter_bytes(element_bytes);
    switch (pass) {
    case GHP_PASS_FORWARD: return (inputs * in + out) * element_bytes + weights + saved;
    case GHP_PASS_BACKWARD_DATA:
        return (inputs * in + out + (ghp_op_needs_input(local->op) ? inputs * in : 0) +
                (ghp_op_needs_output(local->op) ? out : 0)) *
                   element_bytes +
               weights + saved;
    case GHP_PASS_BACKWARD_WEIGHT:
        if (local->op == GHP_OP_BATCH_NORM) return weights;
        return (out + (ghp_op_needs_input(local->op) ? in : 0)) * element_bytes + weights;
    case GHP_PASS_STATS: return in * element_bytes;
    case GHP_PASS_BACKWARD_STATS: return 2 * in * element_bytes;
    case GHP_PASS_COUNT: break;
    }
    return 0;
}

int64_t ghp_local_saved_bytes(const struct ghp_local *local, int element_bytes)
{
    int wide =
        ghp_parameter_bytes(element_bytes); /* means and scales are no less exact than weights */
    switch (local->op) {
    case GHP_OP_MAX_POOL: /* index inside the window */
        return ghp_local_out_elements(local) * (local->window.r * local->window.s <= 255 ? 1 : 4);
    case GHP_OP_BATCH_NORM: /* mean, inverse deviation, of each ghost batch */
        return 2 * local->c * ghp_local_repeat(local) * wide;
    case GHP_OP_LRN: /* scale */ return ghp_local_out_elements(local) * wide;
    default: return 0;
    }
}

static const char *const pass_names[GHP_PASS_COUNT] = {
#define GHP_PASS_NAME(id, text) text,
    GHP_PASS_LIST(GHP_PASS_NAME)
#undef GHP_PASS_NAME
};

const char *ghp_pass_name(enum ghp_pass pass)
{
    return pass_names[pass];
}

bool ghp_pass_find(const char *name, enum ghp_pass *pass)
{
    for (int i = 0; i < GHP_PASS_COUNT; i++)
        if (strcmp(name, pass_names[i]) == 0) {
            *pass = (enum ghp_pass)i;
            return true;
        }
    return false;
}
