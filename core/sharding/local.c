/* core/sharding/local.c - local shapes, their keys, and what they cost in operations and bytes. */
#include "core/sharding/local.h"
#include "core/model/attributes.h"
#include "core/model/precision.h"
#include "core/model/window_attention.h"

#include <inttypes.h>
#include <stdio.h>

struct ghp_local ghp_local_of(const struct ghp_model *model, int layer, struct ghp_split split,
                              struct ghp_problem problem)
{
    const struct ghp_layer *l = &model->layers[layer];
    const struct ghp_op_facts *facts = ghp_op_of(l->op);
    struct ghp_layouts at = ghp_split_layouts(split);
    struct ghp_local local = ghp_local_whole(l);

    local.n = ghp_layout_samples(at.x, problem);
    local.c = ghp_layout_channels(at.x, ghp_shape_columns(l->in));
    local.h = ghp_layout_positions(at.x, l->in.h);
    local.k = ghp_layout_channels(at.y, ghp_shape_columns(l->out));
    local.p = ghp_layout_positions(at.y, l->out.h);
    if (facts->localize != NULL)
        facts->localize(
            model, l,
            split.kind == GHP_SPLIT_CHANNEL || split.kind == GHP_SPLIT_ROWS ? split.tp_size : 1,
            &local);
    if (split.kind == GHP_SPLIT_RING) local.keys = 0; /* of a block: as many as queries */
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

void ghp_local_key(const struct ghp_local *local, char key[GHP_KEY_BYTES])
{
    const struct ghp_op_facts *facts = ghp_op_of(local->op);
    size_t used =
        (size_t)snprintf(key, GHP_KEY_BYTES, "%s n%" PRId64 " c%" PRId64 " h%" PRId64 " w%" PRId64,
                         ghp_op_name(local->op), local->n, local->c, local->h, local->w);

    if (facts->key != NULL) facts->key(local, key + used, GHP_KEY_BYTES - used);
}

bool ghp_local_equal(const struct ghp_local *a, const struct ghp_local *b)
{
    bool sizes = a->op == b->op && a->n == b->n && a->c == b->c && a->h == b->h && a->w == b->w &&
                 a->k == b->k && a->p == b->p && a->q == b->q && a->repeat == b->repeat &&
                 a->n_inputs == b->n_inputs && a->vocabulary == b->vocabulary &&
                 a->parts == b->parts && a->keys == b->keys;

    for (int i = 0; i < GHP_MAX_INPUTS; i++)
        sizes = sizes && a->slice[i] == b->slice[i];
    return sizes && ghp_attributes_equal(ghp_op_of(a->op), &a->attributes, &b->attributes);
}

int ghp_local_whole_inputs(const struct ghp_local *local)
{
    return local->n_inputs > 1 && local->slice[0] == 0 ? local->n_inputs : 1;
}

int64_t ghp_local_in_elements(const struct ghp_local *local)
{
    int64_t own = local->n * local->c * local->h * local->w;

    if (local->keys == 0) return own;
    return own + local->n * (local->c - local->slice[0]) * (local->keys - local->h) * local->w;
}

int64_t ghp_local_out_elements(const struct ghp_local *local)
{
    return local->n * local->k * local->p * local->q;
}

int64_t ghp_local_flops(const struct ghp_local *local, enum ghp_pass pass)
{
    const struct ghp_op_facts *facts = ghp_op_of(local->op);

    return facts->flops != NULL && ghp_op_has_pass(local->op, pass) ? facts->flops(local, pass) : 0;
}

/* Elements of all inputs together. */
static int64_t all_inputs(const struct ghp_local *local)
{
    int64_t each = ghp_local_in_elements(local), sum = 0;

    for (int i = 0; i < ghp_local_whole_inputs(local); i++) {
        int64_t table = ghp_window_table_elements(local, i);

        sum += table > 0 ? table : each;
    }
    return sum;
}

int64_t ghp_local_bytes(const struct ghp_local *local, enum ghp_pass pass, int element_bytes)
{
    unsigned uses = ghp_op_uses(local->op, pass);
    int x_bytes = ghp_op_of(local->op)->takes_ids ? (int)sizeof(int32_t) : element_bytes;
    int64_t x = all_inputs(local) * x_bytes;
    int64_t y = ghp_local_out_elements(local) * element_bytes;
    int64_t saved = ghp_local_saved_bytes(local, element_bytes) / ghp_local_repeat(local);
    int64_t weights = ghp_local_weight_elements(local) * ghp_parameter_bytes(element_bytes);

    switch (pass) {
    case GHP_PASS_FORWARD: /* of a table no more rows than are asked for */
        if (ghp_op_of(local->op)->takes_ids && weights > y) weights = y;
        return (uses & GHP_AT_X ? x : 0) + y + weights + saved;
    case GHP_PASS_BACKWARD_DATA: /* of all that the backward passes read, so of both halves */
        return x + y + (ghp_op_needs_input(local->op) ? x : 0) +
               (ghp_op_needs_output(local->op) ? y : 0) + weights + saved;
    case GHP_PASS_BACKWARD_WEIGHT:
    case GHP_PASS_STATS:
    case GHP_PASS_BACKWARD_STATS:
        return (uses & GHP_AT_X ? x : 0) + (uses & GHP_AT_DY ? y : 0) +
               (uses & GHP_AT_DW ? weights : 0);
    case GHP_PASS_COUNT: break;
    }
    return 0;
}

int64_t ghp_local_saved_offset(const struct ghp_local *local, int part, int element_bytes)
{
    const struct ghp_op_facts *facts = ghp_op_of(local->op);
    int64_t offset = 0;

    for (int i = 0; i < part; i++)
        offset += ghp_align(facts->saved_bytes[i](local, element_bytes));
    return offset;
}

int64_t ghp_local_saved_bytes(const struct ghp_local *local, int element_bytes)
{
    const struct ghp_op_facts *facts = ghp_op_of(local->op);
    int last = GHP_MAX_SAVED - 1;

    while (last >= 0 && facts->saved_bytes[last] == NULL)
        last--;
    if (last < 0) return 0;
    return ghp_local_saved_offset(local, last, element_bytes) +
           facts->saved_bytes[last](local, element_bytes);
}

bool ghp_local_has_pass(const struct ghp_local *local, enum ghp_pass pass)
{
    bool whole = ghp_op_of(local->op)->is_loss && local->parts == 0;

    return ghp_op_has_pass(local->op, pass) && !(whole && pass == GHP_PASS_STATS);
}

int64_t ghp_local_stats_bytes(const struct ghp_local *local)
{
    const struct ghp_op_facts *facts = ghp_op_of(local->op);

    return facts->stats_numbers == NULL ? 0 : facts->stats_numbers(local) * (int64_t)sizeof(double);
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
