/* onnx/operator/rows.c - arrays as rows of their last axis: it goes to the place of the channels, and back. */
#include "onnx/operator/rows.h"

#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

#include <string.h>

/* ---- sequences ---- */

bool ghp_onnx_is_sequence(const struct ghp_onnx_import *im, int layer)
{
    return im->model.layers[layer].out.axes == GHP_AXES_SEQUENCE;
}

struct ghp_onnx_array ghp_onnx_of_sequence(const struct ghp_onnx_import *im, int layer)
{
    struct ghp_shape s = im->model.layers[layer].out;
    struct ghp_onnx_array made = ghp_onnx_of_layer(im, layer, 3, (int64_t[]){0, s.c, s.h});

    ghp_onnx_permute(&made, (const int[]){0, 2, 1});
    return made;
}

/* The array in the order in which its elements lie. */
static struct ghp_onnx_array in_memory(const struct ghp_onnx_array *x)
{
    struct ghp_onnx_array sorted = *x;

    for (int i = 1; i < x->n; i++)
        for (int k = i; k > 1 && sorted.strides[k - 1] < sorted.strides[k]; --k) {
            int order[GHP_ONNX_MAX_DIMS];

            for (int d = 0; d < x->n; d++)
                order[d] = d == k ? k - 1 : d == k - 1 ? k : d;
            ghp_onnx_permute(&sorted, order);
        }
    return sorted;
}

bool ghp_onnx_whole_sequence(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x)
{
    struct ghp_shape s = im->model.layers[x->layer].out;

    return x->n == 3 && x->joined == 0 && x->lead == 0 && ghp_onnx_is_sequence(im, x->layer) &&
           x->offset == 0 && x->dims[1] == s.h && x->dims[2] == s.c &&
           (s.h == 1 || x->strides[1] == 1) && (s.c == 1 || x->strides[2] == s.h);
}

/* ---- rows ---- */

bool ghp_onnx_by_axis(const struct ghp_onnx_array *x, const struct ghp_onnx_array *c, int axis)
{
    int more = x->n - c->n; /* axes of x in front of the constant's */

    if (more < 0 || axis < more || axis < 1 || axis >= x->n) return false;
    for (int i = 0; i < c->n; i++)
        if (c->dims[i] != (i + more == axis ? x->dims[axis] : 1)) return false;
    return true;
}

bool ghp_onnx_has_attention(const struct ghp_onnx_import *im)
{
    for (int i = 0; i < im->file->n_nodes; i++)
        if (strcmp(im->nodes[i].op, "Softmax") == 0) return true;
    return false;
}

/* Whether windows of positions are an axis, or one with the samples, as ghp_onnx_windows_part makes them. */
bool ghp_onnx_are_windows(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x)
{
    return x->n == 4 && (x->joined & ~2u) == 0 && x->lead == 0 &&
           ghp_onnx_is_sequence(im, x->layer) && (x->strides[1] == x->dims[2] || x->dims[1] == 1) &&
           (x->strides[2] == 1 || x->dims[2] == 1);
}

/* The positions of all windows as one axis. */
static struct ghp_onnx_array without_windows(const struct ghp_onnx_import *im,
                                             const struct ghp_onnx_array *x)
{
    struct ghp_onnx_array all = *x;

    if (!ghp_onnx_are_windows(im, x)) return all;
    all.n = 3;
    all.joined = 0;
    memcpy(all.dims + 1, (int64_t[]){x->dims[1] * x->dims[2], x->dims[3]}, 2 * sizeof *all.dims);
    memcpy(all.strides + 1, (int64_t[]){1, x->strides[3]}, 2 * sizeof *all.strides);
    return all;
}

bool ghp_onnx_are_rows(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x)
{
    struct ghp_onnx_array parted = without_windows(im, x);

    parted.joined &= x->lead == 0 ? ~2u : ~1u;
    if (x->lead == 1) parted.lead = 0; /* each row by itself: their order does not matter */
    return ghp_onnx_whole_sequence(im, &parted);
}

/* The order that brings the last of n axes to the second place, and its inverse. */
static void find_orders(int n, int there[GHP_ONNX_MAX_DIMS], int back[GHP_ONNX_MAX_DIMS])
{
    for (int i = 0; i < n; i++) {
        there[i] = i == 0 ? 0 : i == 1 ? n - 1 : i - 1;
        back[there[i]] = i;
    }
}

enum ghp_status ghp_onnx_as_sequence(struct ghp_onnx_import *im, struct ghp_onnx_array *x)
{
    struct ghp_layer like = {.op = GHP_OP_VIEW, .n_inputs = 1, .inputs = {x->layer}};
    const char *name = x->name;
    struct ghp_onnx_array turned = *x;
    int layer;

    GHP_ASSERT(x->n == 3);
    if (ghp_onnx_whole_sequence(im, x)) return GHP_OK;
    ghp_onnx_permute(&turned, (const int[]){0, 2, 1});
    like.out = ghp_shape_sequence(turned.dims[1], turned.dims[2]);
    GHP_TRY(ghp_onnx_view_of(&turned, like.out, &like.view));
    like.view.sequence = true;
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_called(name), &layer));
    *x = ghp_onnx_of_sequence(im, layer);
    x->name = name;
    return GHP_OK;
}

enum ghp_status ghp_onnx_rows_in(struct ghp_onnx_import *im, const struct ghp_onnx_array *x,
                                 int *layer)
{
    int there[GHP_ONNX_MAX_DIMS], back[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_array moved = *x;

    *layer = x->layer;
    if (ghp_onnx_are_rows(im, x)) return GHP_OK;
    find_orders(x->n, there, back);
    ghp_onnx_permute(&moved, there);
    return ghp_onnx_settle(im, &moved, ghp_onnx_shape(&moved), layer);
}

struct ghp_onnx_array ghp_onnx_rows_out(const struct ghp_onnx_import *im,
                                        const struct ghp_onnx_array *x, int layer)
{
    int there[GHP_ONNX_MAX_DIMS], back[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_array made = *x;

    if (ghp_onnx_is_sequence(im, layer)) {
        made = ghp_onnx_of_sequence(im, layer);
        made.joined = x->joined;
        made.lead = x->lead;
        if (!ghp_onnx_are_windows(im, x)) return made;
        made.n = 4;
        memcpy(made.dims + 1, (int64_t[]){x->dims[1], x->dims[2], made.dims[2]},
               3 * sizeof *made.dims);
        memcpy(made.strides + 1, (int64_t[]){x->dims[2], 1, made.strides[2]},
               3 * sizeof *made.strides);
        return made;
    }
    find_orders(x->n, there, back);
    ghp_onnx_permute(&made, there);
    made.dims[1] = im->model.layers[layer].out.c;
    made = ghp_onnx_of_layer(im, layer, made.n, made.dims);
    ghp_onnx_permute(&made, back);
    return made;
}

/* ---- windows ---- */

/* Makes an array with the channels last a sequence, all its other axes as positions; *x is that. */
static enum ghp_status make_sequence(struct ghp_onnx_import *im, struct ghp_onnx_array *x,
                                     int channels_at, int64_t channels)
{
    struct ghp_layer like = {.op = GHP_OP_VIEW, .n_inputs = 1, .inputs = {x->layer}};
    struct ghp_onnx_array turned = *x;
    int order[GHP_ONNX_MAX_DIMS] = {0}, layer, at = 1;

    for (int i = channels_at; i < x->n; i++)
        order[at++] = i;
    for (int i = 1; i < channels_at; i++)
        order[at++] = i;
    ghp_onnx_permute(&turned, order);
    like.out = ghp_shape_sequence(channels, ghp_onnx_elements(x) / channels);
    GHP_TRY(ghp_onnx_view_of(&turned, like.out, &like.view));
    like.view.sequence = true;
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_called(x->name), &layer));
    *x = ghp_onnx_of_sequence(im, layer);
    return GHP_OK;
}

/* Whether an image with its channels last gets the dimensions batch, windows, positions, channels: rows of one window
 * are not next to each other in it, or there is one window. */
static bool parts_windows(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x, int n,
                          const int64_t *dims)
{
    struct ghp_onnx_array parted = *x;
    int last = x->n - 1;

    if (n != 4 || last < 3 || dims[0] != im->batch || dims[3] != x->dims[last] || dims[2] < 2 ||
        !ghp_onnx_has_attention(im))
        return false;
    for (int i = 1; i < last; i++)
        if (x->strides[i] >= x->strides[last]) return false;
    parted.n = n;
    memcpy(parted.dims, dims, (size_t)n * sizeof *dims);
    return dims[1] == 1 || !ghp_onnx_split_strides(x, &parted);
}

enum ghp_status ghp_onnx_windows_part(struct ghp_onnx_import *im, const struct ghp_onnx_array *x,
                                      int n, const int64_t *dims, struct ghp_onnx_array *made,
                                      bool *done)
{
    int64_t channels = n > 2 ? dims[n - 1] : 0, found = 1;
    struct ghp_onnx_array sequence = *x;
    int first = x->n;

    *done = false;
    if (n < 3 || (x->joined & 2u) != 0 || x->lead > 0) return GHP_OK;
    if ((dims[0] <= im->batch || dims[0] % im->batch != 0) && !parts_windows(im, x, n, dims))
        return GHP_OK;
    while (first > 1 && found < channels)
        found *= x->dims[--first];
    if (found != channels || first == 1) return GHP_OK;
    GHP_TRY(make_sequence(im, &sequence, first, channels));
    *done = ghp_onnx_regroup(&sequence, n, dims, made);
    return GHP_OK;
}

enum ghp_status ghp_onnx_windows_turned(struct ghp_onnx_import *im, struct ghp_onnx_array *x)
{
    const char *name = x->name;
    const int64_t dims[4] = {x->dims[0], x->dims[1], x->dims[2], x->dims[3]};
    struct ghp_onnx_array sequence = *x;

    GHP_TRY(make_sequence(im, &sequence, 3, dims[3]));
    GHP_ASSERT(ghp_onnx_regroup(&sequence, 4, dims, x));
    x->name = name;
    return GHP_OK;
}

/* ---- each element by itself ---- */

/* Whether the array is all elements of a layer in an order of its own, or of a sequence's layer in any order: what is
 * done to each element then needs no view before it. */
static bool is_all(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x)
{
    struct ghp_onnx_array sorted = in_memory(x);

    if (!ghp_onnx_whole(im, &sorted)) return false;
    return ghp_onnx_is_sequence(im, x->layer) ||
           (x->joined == 0 && x->lead == 0 && !ghp_onnx_whole(im, x));
}

bool ghp_onnx_alike(const struct ghp_onnx_import *im, const struct ghp_onnx_array *a,
                    const struct ghp_onnx_array *b)
{
    size_t bytes = (size_t)a->n * sizeof(int64_t);

    return a->n == b->n && a->joined == b->joined && a->lead == b->lead && is_all(im, a) &&
           is_all(im, b) &&
           ghp_shape_equal(im->model.layers[a->layer].out, im->model.layers[b->layer].out) &&
           memcmp(a->dims, b->dims, bytes) == 0 && memcmp(a->strides, b->strides, bytes) == 0;
}

enum ghp_status ghp_onnx_each_in(struct ghp_onnx_import *im, struct ghp_onnx_array *x, int *layer)
{
    *layer = x->layer;
    if (is_all(im, x)) return GHP_OK;
    GHP_TRY(ghp_onnx_part_axes(im, x));
    return ghp_onnx_settle(im, x, ghp_onnx_shape(x), layer);
}

struct ghp_onnx_array ghp_onnx_each_out(const struct ghp_onnx_array *x, int layer)
{
    struct ghp_onnx_array made = *x;

    made.layer = layer;
    return made;
}
