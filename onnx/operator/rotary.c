/* onnx/operator/rotary.c - rotary positions, of one node, or of several into which it is written out
 * (onnx/pattern/rotary.c).
 *
 * Files have tables of cosines and sines; ghp has the base of which they are made, and refuses other tables. */
#include "onnx/operator/operator.h"

#include "core/model/rotary.h"
#include "onnx/operator/attention.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"

#include <inttypes.h>

struct tables { /* a row for each position */
    int64_t positions, pairs;
    const double *cosine, *sine;
    int64_t row; /* numbers in a row: pairs, or twice as many, the same again */
};

static bool is_angle(const struct tables *t, int64_t p, int64_t pair, double angle)
{
    /* tables are floats, of angles that were floats: the product with the position has its rounding */
    double bound = 1e-6 + 4e-7 * (double)p;

    for (int64_t at = pair; at < t->row; at += t->pairs)
        if (!(fabs(t->cosine[p * t->row + at] - cos(angle)) <= bound &&
              fabs(t->sine[p * t->row + at] - sin(angle)) <= bound))
            return false;
    return true;
}

/* The base of which pair i turns by base^(-i / pairs) a position; false if there is none. */
static bool find_base(const struct tables *t, double *base)
{
    double found = 10000, round;

    if (t->positions > 1 && t->pairs > 1) {
        double angle = atan2(t->sine[t->row + 1], t->cosine[t->row + 1]);

        if (!(angle > 0)) return false;
        found = pow(angle, -(double)t->pairs);
        round = pow(10, floor(log10(found)) - 3); /* bases that people choose have few digits */
        round *= nearbyint(found / round);
        if (fabs(round - found) <= 1e-4 * found) found = round;
    }
    if (!(found >= 1 && found <= 1e12)) return false;
    for (int64_t p = 0; p < t->positions; p++)
        for (int64_t i = 0; i < t->pairs; i++)
            if (!is_angle(t, p, i, (double)p * pow(found, -(double)i / (double)t->pairs)))
                return false;
    *base = found;
    return true;
}

/* ---- the arrays ---- */

/* Batch, head, position, channel of an array of four axes, whichever of the middle ones is the positions. */
static struct ghp_onnx_array heads_first(const struct ghp_onnx_import *im,
                                         const struct ghp_onnx_array *x, bool *turned)
{
    struct ghp_onnx_array moved = *x;

    *turned = x->n == 4 && x->base == NULL && x->strides[1] == 1 && x->strides[2] != 1 &&
              x->dims[1] == im->model.layers[x->layer].out.h;
    if (*turned) ghp_onnx_permute(&moved, (const int[]){0, 2, 1, 3});
    return moved;
}

/* A constant as a table of the positions, if it is one and the same for all samples and heads. */
static enum ghp_status read_table(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  int input, struct tables *t, const double **values)
{
    struct ghp_onnx_array *c, *x = ghp_onnx_in(im, node, 0), rows;
    int64_t dims[GHP_ONNX_MAX_DIMS];
    bool turned, fits;

    GHP_TRY(ghp_onnx_constant_in(im, node, input, &c));
    heads_first(im, x, &turned);
    rows = *c;
    for (int d = 0; d < x->n; d++)
        dims[d] = x->dims[d];
    dims[3] = c->n > 0 && c->dims[c->n - 1] == t->pairs ? t->pairs : 2 * t->pairs;
    fits = ghp_onnx_expand(&rows, x->n, dims);
    if (fits && turned) ghp_onnx_permute(&rows, (const int[]){0, 2, 1, 3});
    for (int d = 0; fits && d < 2; d++) {
        fits = rows.strides[d] == 0 || rows.dims[d] == 1;
        rows.dims[d] = 1;
    }
    if (!fits || (t->row != 0 && t->row != dims[3]))
        return ghp_onnx_fail(im, node,
                             "has no table of one row a position as input %d; ghp turns all "
                             "samples and heads alike",
                             input);
    t->row = dims[3];
    return ghp_onnx_values(im, &rows, values);
}

/* Whether the halves are the first and second one of x's channels. */
static bool are_halves(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_array *x = ghp_onnx_in(im, node, 0);

    for (int i = 0; i < 2; i++) {
        const struct ghp_onnx_array *half = ghp_onnx_in(im, node, 3 + i);
        int64_t size = x->dims[x->n - 1] / 2;

        if (half == NULL || half->base != NULL || half->layer != x->layer || half->n != x->n ||
            half->joined != x->joined || half->dims[x->n - 1] != size ||
            half->offset != x->offset + i * size * x->strides[x->n - 1])
            return false;
        for (int d = 0; d < x->n; d++)
            if (half->strides[d] != x->strides[d]) return false;
    }
    return true;
}

/* The layer on an array of heads (of three axes: `named` of them), and output 0.
 *
 * part   a part of each head may turn */
static enum ghp_status put_layer(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 const struct tables *t, int64_t named, bool part)
{
    struct ghp_layer like = {
        .op = GHP_OP_ROTARY, .n_inputs = 1, .heads = {.turned = 2 * t->pairs, .amplitude = 1}};
    struct ghp_onnx_heads heads;
    struct ghp_onnx_array x, made;
    bool turned;
    int layer;

    x = heads_first(im, ghp_onnx_in(im, node, 0), &turned);
    if (!find_base(t, &like.heads.base))
        return ghp_onnx_fail(im, node,
                             "turns by angles that are not the position times base^(-2 i / size); "
                             "ghp has no scaled rotary positions");
    GHP_TRY(ghp_onnx_heads_of(im, node, &x, named, "input 0", &heads));
    like.heads.size = part ? heads.channels.n / heads.n : like.heads.turned;
    if (heads.positions != t->positions || heads.channels.n != heads.n * like.heads.size)
        return ghp_onnx_fail(im, node,
                             "has tables of %" PRId64 " positions and %" PRId64
                             " channels for another input; give rotary_embedding_dim if a part of "
                             "each head turns",
                             t->positions, like.heads.turned);
    GHP_TRY(ghp_onnx_take_channels(im, node, heads.channels, ".turned", &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    made = x;
    made.layer = layer;
    made.offset = 0;
    if (x.n == 4) made.strides[1] = like.heads.size * im->model.layers[layer].out.h;
    if (turned) ghp_onnx_permute(&made, (const int[]){0, 2, 1, 3});
    return ghp_onnx_define(im, node, 0, &made);
}

/* Written out: x, tables as wide as a head, and the halves of x. */
static enum ghp_status read_written_out(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node)
{
    struct tables t = {0};
    struct ghp_onnx_array *x;
    bool turned;

    GHP_TRY(ghp_onnx_joined_in(im, node, 0, &x));
    if (x->n != 4 || x->joined != 0 || x->dims[3] % 2 != 0 || !are_halves(im, node))
        return ghp_onnx_fail(im, node,
                             "turns something else than the halves of each head's channels; give "
                             "batch, heads, positions and channels");
    t.positions = heads_first(im, x, &turned).dims[2];
    t.pairs = x->dims[3] / 2;
    GHP_TRY(read_table(im, node, 1, &t, &t.cosine));
    GHP_TRY(read_table(im, node, 2, &t, &t.sine));
    return put_layer(im, node, &t, 0, false);
}

/* ---- one node ---- */

/* Whether the places of positions are 0, 1, and so on, alike for all samples. */
static enum ghp_status check_places(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    int64_t positions)
{
    struct ghp_onnx_array *places;
    const double *values;
    bool in_order;

    if (ghp_onnx_in(im, node, 3) == NULL) return GHP_OK;
    GHP_TRY(ghp_onnx_constant_in(im, node, 3, &places));
    GHP_TRY(ghp_onnx_values(im, places, &values));
    in_order =
        ghp_onnx_elements(places) > 0 && places->n > 0 && places->dims[places->n - 1] == positions;
    for (int64_t i = 0; in_order && i < ghp_onnx_elements(places); i++)
        in_order = values[i] == (double)(i % positions);
    if (in_order) return GHP_OK;
    return ghp_onnx_fail(im, node,
                         "counts positions other than 0, 1, 2 and so on; ghp has no others");
}

/* A table of half as many numbers as a head has channels, a row a position. */
static enum ghp_status read_cache(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  int input, struct tables *t, const double **values)
{
    struct ghp_onnx_array *c, rows;

    GHP_TRY(ghp_onnx_constant_in(im, node, input, &c));
    rows = *c;
    if (c->n == 3 && (c->strides[0] == 0 || c->dims[0] == 1)) {
        rows.n = 2;
        for (int d = 0; d < 2; d++) {
            rows.dims[d] = c->dims[d + 1];
            rows.strides[d] = c->strides[d + 1];
        }
    }
    if (rows.n != 2 || rows.dims[0] < t->positions || (t->row != 0 && rows.dims[1] != t->row))
        return ghp_onnx_fail(im, node,
                             "has no table of one row a position as input %d; ghp turns all "
                             "samples and heads alike",
                             input);
    rows.dims[0] = t->positions;
    t->row = t->pairs = rows.dims[1];
    return ghp_onnx_values(im, &rows, values);
}

static enum ghp_status read_rotary(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct tables t = {0};
    struct ghp_onnx_array *x;
    int64_t turned = ghp_onnx_int(node, "rotary_embedding_dim", 0);

    if (node->n_inputs == 5) return read_written_out(im, node);
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    if (ghp_onnx_int(node, "interleaved", 0) != 0)
        return ghp_onnx_fail(im, node,
                             "pairs neighbouring channels; ghp pairs the halves of a head");
    t.positions = im->model.layers[x->layer].out.h;
    GHP_TRY(check_places(im, node, t.positions));
    GHP_TRY(read_cache(im, node, 1, &t, &t.cosine));
    GHP_TRY(read_cache(im, node, 2, &t, &t.sine));
    if (turned != 0 && turned != 2 * t.pairs)
        return ghp_onnx_fail(im, node,
                             "turns %" PRId64 " channels by tables of %" PRId64 " pairs; give "
                             "tables of half as many columns as rotary_embedding_dim",
                             turned, t.pairs);
    return put_layer(im, node, &t, ghp_onnx_int(node, "num_heads", 0), turned != 0);
}

/* ---- writing ---- */

/* A table of the cosines or sines of each position and pair. */
static const char *put_table(struct ghp_onnx_export *ex, const struct ghp_layer *l, const char *end,
                             double (*of)(double angle))
{
    int64_t pairs = l->heads.turned / 2;
    const int64_t dims[2] = {l->out.h, pairs};
    float *values = ghp_export_keep(ex, (size_t)(l->out.h * pairs), sizeof *values);

    for (int64_t i = 0; values != NULL && i < l->out.h * pairs; i++) {
        double angle = (double)(i / pairs) * ghp_rotary_angle(&l->heads, i % pairs);

        values[i] = (float)(l->heads.amplitude * of(angle));
    }
    return ghp_export_floats(ex, ghp_export_text(ex, l->name, end), dims, 2, values);
}

/* Positions count from 0 in each sample, as many samples as there are. */
static const char *put_places(struct ghp_onnx_export *ex, const struct ghp_layer *l,
                              const char *like)
{
    const char *shape = ghp_export_text(ex, l->name, ".places.shape");
    const char *places = ghp_export_text(ex, l->name, ".places");
    int64_t *counted = ghp_export_keep(ex, (size_t)l->out.h, sizeof *counted);
    const char *inputs[3] = {NULL};

    if (counted == NULL) return places;
    for (int64_t p = 0; p < l->out.h; p++)
        counted[p] = p;
    inputs[0] = ghp_export_samples(ex, ghp_export_text(ex, l->name, ".batch"), like);
    inputs[1] = ghp_export_numbers(ex, ghp_export_text(ex, l->name, ".positions"), &l->out.h, 1);
    ghp_export_int(ex, ghp_export_node(ex, "Concat", shape, inputs), "axis", 0);
    inputs[0] =
        ghp_export_numbers(ex, ghp_export_text(ex, l->name, ".counted"), counted, (int)l->out.h);
    inputs[1] = shape;
    ghp_export_node(ex, "Expand", places, inputs);
    return places;
}

static enum ghp_status write_rotary(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *inputs[5] = {ex->names[l->inputs[0]]};
    struct ghp_onnx_node *node;

    inputs[1] = put_table(ex, l, ".cosines", cos);
    inputs[2] = put_table(ex, l, ".sines", sin);
    inputs[3] = put_places(ex, l, inputs[0]);
    node = ghp_export_node(ex, "RotaryEmbedding", l->name, inputs);
    ghp_export_int(ex, node, "num_heads", l->out.c / l->heads.size);
    if (l->heads.turned != l->heads.size)
        ghp_export_int(ex, node, "rotary_embedding_dim", l->heads.turned);
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_rotary[] = {
    {.name = "RotaryEmbedding",
     .since = 23,
     .attributes = "interleaved num_heads rotary_embedding_dim ",
     .read = read_rotary,
     .op = GHP_OP_ROTARY,
     .write = write_rotary},
    {0}};
