/* onnx/operator/view.c - a view as ONNX says it: Reshape into digits, Slice, Transpose, Expand, Reshape.
 *
 * A view's strides, the greatest first, are a system of digits where each divides the one before; then every element of
 * the input has one digit for each, and the view takes a run of each digit. Views whose strides are no such system
 * (steps that do not divide a row) are refused. */
#include "onnx/operator/operator.h"

#include <stdlib.h>

enum { MOST = GHP_ONNX_MAX_DIMS - 1 }; /* digits; the batch is an axis too */

struct digits {
    int n;                  /* digits, the first before the greatest stride */
    int64_t size[MOST + 1]; /* each digit counts up to this */
    int64_t first[MOST + 1], count[MOST + 1], step[MOST + 1]; /* what is taken of each */
    int axis[GHP_MAX_VIEW]; /* of a view's dimension: its digit, or -1 where it repeats */
};

/* Dimensions that move, by falling stride; false where two have the same. */
static bool by_stride(const struct ghp_view *view, int order[GHP_MAX_VIEW], int *n)
{
    *n = 0;
    for (int i = 0; i < view->n; i++) {
        int at = *n;

        if (view->strides[i] == 0) continue;
        while (at > 0 && llabs(view->strides[order[at - 1]]) < llabs(view->strides[i])) {
            order[at] = order[at - 1];
            --at;
        }
        order[at] = i;
        ++*n;
    }
    for (int i = 1; i < *n; i++)
        if (llabs(view->strides[order[i - 1]]) == llabs(view->strides[order[i]])) return false;
    return *n < MOST;
}

static bool find_digits(const struct ghp_view *view, int64_t elements, struct digits *d)
{
    int order[GHP_MAX_VIEW], n;
    int64_t above = elements, rest = view->offset;

    if (!by_stride(view, order, &n)) return false;
    *d = (struct digits){.n = n + 1};
    for (int i = 0; i < view->n; i++)
        d->axis[i] = -1;
    for (int i = 0; i <= n; i++) { /* digit i counts in units of stride i; the last in ones */
        int64_t unit = i < n ? llabs(view->strides[order[i]]) : 1;

        if (above % unit != 0) return false;
        d->size[i] = above / unit;
        d->first[i] = rest / unit;
        rest %= unit;
        above = unit;
        d->count[i] = d->step[i] = 1;
        if (i < n) {
            d->axis[order[i]] = i;
            d->count[i] = view->sizes[order[i]];
            d->step[i] = view->strides[order[i]] < 0 ? -1 : 1;
        }
        int64_t last = d->first[i] + d->step[i] * (d->count[i] - 1);

        if (last < 0 || last >= d->size[i]) return false;
    }
    return true;
}

/* Slices every digit. */
static const char *cut(struct ghp_onnx_export *ex, const char *name, const char *from,
                       const struct digits *d)
{
    int64_t starts[MOST + 1], ends[MOST + 1], axes[MOST + 1];
    bool any = false;

    for (int i = 0; i < d->n; i++) {
        starts[i] = d->first[i];
        ends[i] = d->first[i] + d->step[i] * d->count[i];
        if (ends[i] < 0) ends[i] = INT64_MIN / 2; /* before the first */
        axes[i] = i + 1;
        any = any || d->count[i] != d->size[i] || d->step[i] != 1;
    }
    if (!any) return from;
    const char *out = ghp_export_text(ex, name, ".cut");
    const char *const inputs[] = {
        from,
        ghp_export_numbers(ex, ghp_export_text(ex, name, ".starts"), starts, d->n),
        ghp_export_numbers(ex, ghp_export_text(ex, name, ".ends"), ends, d->n),
        ghp_export_numbers(ex, ghp_export_text(ex, name, ".axes"), axes, d->n),
        ghp_export_numbers(ex, ghp_export_text(ex, name, ".steps"), d->step, d->n),
        NULL};

    ghp_export_node(ex, "Slice", out, inputs);
    return out;
}

static const char *reshape(struct ghp_onnx_export *ex, const char *out, const char *from,
                           const int64_t *dims, int n)
{
    const char *const inputs[] = {
        from, ghp_export_numbers(ex, ghp_export_text(ex, out, ".shape"), dims, n), NULL};

    ghp_export_node(ex, "Reshape", out, inputs);
    return out;
}

/* The output called as the layer: a sequence has its channels last. */
static const char *write_end(struct ghp_onnx_export *ex, int layer, const char *at)
{
    const struct ghp_layer *l = &ex->model->layers[layer];
    const int64_t out[4] = {0, l->out.c, l->out.h, l->out.w}, turned[3] = {0, 2, 1};

    ex->ranks[layer] = l->out.axes == GHP_AXES_VECTOR ? 2 : l->view.sequence ? 3 : 4;
    if (!l->view.sequence) return reshape(ex, l->name, at, out, ex->ranks[layer]);
    at = reshape(ex, ghp_export_text(ex, l->name, ".channels"), at, out, 3);
    return ghp_export_turned(ex, l->name, at, turned, 3);
}

static enum ghp_status write_view(struct ghp_onnx_export *ex, int layer)
{
    const struct ghp_layer *l = &ex->model->layers[layer];
    const struct ghp_view *view = &l->view;
    int64_t dims[GHP_MAX_VIEW + 2] = {0}, order[GHP_MAX_VIEW + 2] = {0};
    const char *at = ex->names[l->inputs[0]];
    struct digits d;
    bool repeats = false;
    int n = 1, moved = 0;

    if (view->n > MOST || !find_digits(view, ghp_shape_elements(l->in), &d))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (view) is no slice of its input that ONNX can say; change its "
                        "strides to ones that divide each other",
                        l->name);
    if (l->in.axes == GHP_AXES_SEQUENCE)
        at = ghp_export_turned(ex, ghp_export_text(ex, l->name, ".positions"), at,
                               (const int64_t[]){0, 2, 1}, 3);
    for (int i = 0; i < d.n; i++)
        dims[1 + i] = d.size[i];
    at = reshape(ex, ghp_export_text(ex, l->name, ".digits"), at, dims, d.n + 1);
    at = cut(ex, l->name, at, &d);
    for (int i = 0; i < view->n; i++) /* digits in the view's order, then what is fixed */
        if (d.axis[i] >= 0) order[1 + moved++] = 1 + d.axis[i];
    order[1 + moved] = d.n;
    at = ghp_export_turned(ex, ghp_export_text(ex, l->name, ".turned"), at, order, d.n + 1);
    for (int i = 0; i < view->n; i++) {
        dims[n++] = view->strides[i] == 0 ? 1 : view->sizes[i];
        repeats = repeats || view->strides[i] == 0;
    }
    if (repeats) {
        at = reshape(ex, ghp_export_text(ex, l->name, ".once"), at, dims, n);
        for (int i = 0; i < view->n; i++)
            dims[1 + i] = view->sizes[i];
        dims[0] = 1;
        const char *const wide[] = {
            at, ghp_export_numbers(ex, ghp_export_text(ex, l->name, ".sizes"), dims, n), NULL};
        at = ghp_export_text(ex, l->name, ".wide");
        ghp_export_node(ex, "Expand", at, wide);
    }
    ex->names[layer] = write_end(ex, layer, at);
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_view[] = {
    {.name = "Reshape", .since = 1, .op = GHP_OP_VIEW, .write = write_view}, {0}};
