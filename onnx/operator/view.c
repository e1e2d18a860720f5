/* onnx/operator/view.c - a view as ONNX says it: Reshape into digits, Slice, Transpose, Expand, Reshape.
 *
 * A view's strides, the greatest first, are a system of digits where each divides the one before; then every element of
 * the input has one digit for each, and the view takes a run of each digit. Views whose strides do not form such a
 * system (steps that do not divide a row) are refused. */
#include "onnx/operator/operator.h"

#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = GHP_ONNX_MAX_DIMS - 1 }; /* digits; the batch is an axis too */

struct digits {
    int n;                  /* digits, the first before the greatest stride */
    int64_t size[MOST + 1]; /* each digit counts up to this */
    int64_t first[MOST + 1], count[MOST + 1], step[MOST + 1]; /* what is taken of each */
    int axis[GHP_MAX_VIEW]; /* of a view's dimension: its digit, or -1 if it repeats */
};

/* Dimensions that move, by falling stride; false if two have the same. */
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

/* ---- reading: pixels repeated, or made of channels ---- */

/* Output 0 is the image whose rows are the array's axes 2 and 3, and whose columns axes 4 and 5. */
static enum ghp_status put_pixels(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  const struct ghp_onnx_array *six)
{
    struct ghp_shape shape =
        ghp_shape_image(six->dims[1], six->dims[2] * six->dims[3], six->dims[4] * six->dims[5]);
    struct ghp_onnx_array moved = *six, made;
    int layer;

    moved.name = node->outputs[0];
    GHP_TRY(ghp_onnx_settle(im, &moved, shape, &layer));
    made = ghp_onnx_of_layer(im, layer, 4, (int64_t[]){0, shape.c, shape.h, shape.w});
    return ghp_onnx_define(im, node, 0, &made);
}

/* Rows and columns of the output, from sizes or scales. Scales that make no whole number of pixels are refused: what
 * lies between pixels would then hang on the scale, and not on the numbers of pixels. */
static enum ghp_status find_pixels(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   const struct ghp_onnx_array *x, int64_t pixels[2])
{
    bool sized = im->file->opset >= 11 && node->n_inputs > 3 && node->inputs[3][0] != '\0';
    int64_t axes[GHP_ONNX_MAX_DIMS * 2];
    struct ghp_onnx_array *by;
    const double *values;
    int n, first;

    GHP_TRY(ghp_onnx_constant_in(im, node, sized ? 3 : im->file->opset < 11 ? 1 : 2, &by));
    GHP_TRY(ghp_onnx_values(im, by, &values));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){-1, "axes"}, axes, &n));
    first = n < 0 ? 2 : 0;
    if (x->n != 4 || ghp_onnx_elements(by) != first + 2 ||
        (n >= 0 && (n != 2 || (axes[0] != 2 && axes[0] != -2) || (axes[1] != 3 && axes[1] != -1))))
        return ghp_onnx_fail(im, node, "resizes other than four axes; ghp resizes images");
    for (int i = 0; i < first; i++)
        if (!(values[i] == (sized ? (double)x->dims[i] : 1)))
            return ghp_onnx_fail(im, node, "resizes the batch or the channels; ghp resizes pixels");
    for (int i = 0; i < 2; i++) {
        double size = sized ? values[first + i] : values[first + i] * (double)x->dims[2 + i];

        if (!(size >= 1 && size <= GHP_ONNX_MAX_SIZE) || fabs(size - rint(size)) > 1e-4 * size)
            return ghp_onnx_fail(im, node,
                                 "makes %g of %lld pixels; give the size, as in "
                                 "nn.Upsample(size=...), or a scale that makes whole pixels",
                                 size, (long long)x->dims[2 + i]);
        pixels[i] = (int64_t)rint(size);
    }
    return GHP_OK;
}

/* Whether each output pixel is one of the input, and each of these stands as often as the others: a view. */
static bool repeats(const struct ghp_onnx_node *node, const struct ghp_onnx_array *x,
                    const int64_t pixels[2])
{
    const char *places = ghp_onnx_text(node, "coordinate_transformation_mode", "half_pixel");
    const char *nearest = ghp_onnx_text(node, "nearest_mode", "round_prefer_floor");

    return strcmp(ghp_onnx_text(node, "mode", "nearest"), "nearest") == 0 &&
           pixels[0] % x->dims[2] == 0 && pixels[1] % x->dims[3] == 0 &&
           (strcmp(places, "asymmetric") == 0
                ? strcmp(nearest, "floor") == 0
                : strcmp(places, "half_pixel") == 0 && strncmp(nearest, "round_prefer", 12) == 0);
}

static enum ghp_status repeat(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              const struct ghp_onnx_array *x, const int64_t pixels[2])
{
    struct ghp_onnx_array six = *x;

    six.n = 6;
    for (int i = 0; i < 2; i++) {
        six.dims[2 + 2 * i] = x->dims[2 + i];
        six.strides[2 + 2 * i] = x->strides[2 + i];
        six.dims[3 + 2 * i] = pixels[i] / x->dims[2 + i];
        six.strides[3 + 2 * i] = 0;
    }
    return put_pixels(im, node, &six);
}

/* The resize of ghp that does what the node says; GHP_RESIZE_COUNT: there is not one. */
static enum ghp_resize way_of(const struct ghp_onnx_node *node, const int64_t pixels[2])
{
    static const struct {
        const char *mode, *places;
        enum ghp_resize way;
        int64_t least; /* pixels of the output */
    } ways[] = {{"linear", "half_pixel", GHP_RESIZE_LINEAR, 1},
                {"linear", "pytorch_half_pixel", GHP_RESIZE_LINEAR, 2},
                {"linear", "align_corners", GHP_RESIZE_CORNERS, 1},
                {"nearest", "asymmetric", GHP_RESIZE_NEAREST, 1}};
    const char *mode = ghp_onnx_text(node, "mode", "nearest"),
               *places = ghp_onnx_text(node, "coordinate_transformation_mode", "half_pixel"),
               *nearest = ghp_onnx_text(node, "nearest_mode", "round_prefer_floor");

    if (ghp_onnx_int(node, "antialias", 0) != 0 || ghp_onnx_int(node, "exclude_outside", 0) != 0 ||
        strcmp(ghp_onnx_text(node, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0)
        return GHP_RESIZE_COUNT;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(mode, ways[i].mode) == 0 && strcmp(places, ways[i].places) == 0 &&
            pixels[0] >= ways[i].least && pixels[1] >= ways[i].least)
            return ways[i].way == GHP_RESIZE_NEAREST && strcmp(nearest, "floor") != 0
                       ? GHP_RESIZE_COUNT
                       : ways[i].way;
    return GHP_RESIZE_COUNT;
}

static enum ghp_status put_resized(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   struct ghp_onnx_array *x, enum ghp_resize way,
                                   const int64_t pixels[2])
{
    struct ghp_layer like = {.op = GHP_OP_RESIZE, .n_inputs = 1, .resize = way};
    struct ghp_onnx_array made;
    int layer;

    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    like.out.h = pixels[0];
    like.out.w = pixels[1];
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    made = ghp_onnx_of_layer(im, layer, 4, (int64_t[]){0, x->dims[1], pixels[0], pixels[1]});
    return ghp_onnx_define(im, node, 0, &made);
}

/* Means over areas, said by onnx/pattern/adaptive.c: `pixels` has the numbers before and after. */
static enum ghp_status read_area(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 struct ghp_onnx_array *x)
{
    const struct ghp_onnx_attribute *pixels = ghp_onnx_attribute_of(node, "pixels");

    if (pixels->kind != GHP_ONNX_INTS || pixels->n != 4 || x->n != 4 ||
        pixels->ints[0] != x->dims[2] || pixels->ints[1] != x->dims[3])
        return ghp_onnx_fail(im, node, "pools other pixels than its input has; repair the file");
    return put_resized(im, node, x, GHP_RESIZE_AREA, pixels->ints + 2);
}

static enum ghp_status read_resize(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x;
    enum ghp_resize way;
    int64_t pixels[2];

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    if (ghp_onnx_attribute_of(node, "pixels") != NULL) return read_area(im, node, x);
    GHP_TRY(find_pixels(im, node, x, pixels));
    if (repeats(node, x, pixels)) return repeat(im, node, x, pixels);
    way = way_of(node, pixels);
    if (way == GHP_RESIZE_COUNT)
        return ghp_onnx_fail(
            im, node,
            "resizes by '%.20s' and '%.30s'; ghp has nn.Upsample's modes 'nearest' and 'bilinear', "
            "without antialias",
            ghp_onnx_text(node, "mode", "nearest"),
            ghp_onnx_text(node, "coordinate_transformation_mode", "half_pixel"));
    return put_resized(im, node, x, way, pixels);
}

static enum ghp_status read_depth_to_space(struct ghp_onnx_import *im,
                                           const struct ghp_onnx_node *node)
{
    bool by_column = strcmp(ghp_onnx_text(node, "mode", "DCR"), "CRD") != 0;
    int64_t r = ghp_onnx_int(node, "blocksize", 0), step, channels;
    struct ghp_onnx_array *x, six;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    if (x->n != 4 || r < 1 || r > 1024 || x->dims[1] % (r * r) != 0)
        return ghp_onnx_fail(im, node, "makes pixels of channels that do not fit; repair the file");
    channels = x->dims[1] / (r * r);
    step = by_column ? channels : 1; /* channels from one column of a block to the next */
    six = *x;
    six.n = 6;
    six.dims[1] = channels;
    six.strides[1] = x->strides[1] * (by_column ? 1 : r * r);
    for (int i = 0; i < 2; i++) {
        six.dims[2 + 2 * i] = x->dims[2 + i];
        six.strides[2 + 2 * i] = x->strides[2 + i];
        six.dims[3 + 2 * i] = r;
        six.strides[3 + 2 * i] = x->strides[1] * step * (i == 0 ? r : 1);
    }
    return put_pixels(im, node, &six);
}

/* Whether a list of Col2Im has these two numbers (pads: four), which is so if it is left out and they are `usual`. */
static enum ghp_status has_numbers(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   const char *name, const int64_t wanted[2], bool *has)
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2];
    int n, usual = strcmp(name, "pads") != 0;

    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){-1, name}, list, &n));
    for (int i = 0; i < 2 || i < n; i++)
        *has = *has && (n < 0 ? usual : list[i]) == wanted[i % 2];
    *has = *has && (n < 0 || n == (usual ? 2 : 4));
    return GHP_OK;
}

/* Blocks of pixels next to each other, as nn.Fold puts them; those that overlap would be added. */
static enum ghp_status read_col2im(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    static const int64_t none[2] = {0, 0}, dense[2] = {1, 1};
    static const int order[6] = {0, 1, 4, 2, 5, 3};
    int64_t size[GHP_ONNX_MAX_DIMS * 2], block[GHP_ONNX_MAX_DIMS * 2], blocks[2] = {0}, area;
    struct ghp_onnx_array *x, six;
    int n_size, n_block;
    bool sound;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){1, ""}, size, &n_size));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){2, ""}, block, &n_block));
    sound = x->n == 3 && n_size == 2 && n_block == 2;
    for (int i = 0; i < 2 && sound; i++) {
        sound = block[i] >= 1 && block[i] <= 1024 && size[i] >= 1 && size[i] % block[i] == 0;
        if (sound) blocks[i] = size[i] / block[i];
    }
    area = sound ? block[0] * block[1] : 1;
    sound = sound && x->dims[1] % area == 0 && x->dims[2] % blocks[1] == 0 &&
            x->dims[2] / blocks[1] == blocks[0];
    if (sound) GHP_TRY(has_numbers(im, node, "strides", block, &sound));
    if (sound) GHP_TRY(has_numbers(im, node, "dilations", dense, &sound));
    if (sound) GHP_TRY(has_numbers(im, node, "pads", none, &sound));
    if (!sound)
        return ghp_onnx_fail(im, node,
                             "adds blocks of pixels that overlap, or leaves pixels without one; "
                             "ghp puts blocks next to each other: use a stride as wide as the "
                             "block, without padding and dilation");
    six = *x;
    GHP_TRY(ghp_onnx_reshape(
        im, &six, 6,
        (const int64_t[]){im->batch, x->dims[1] / area, block[0], block[1], blocks[0], blocks[1]}));
    ghp_onnx_permute(&six, order);
    return put_pixels(im, node, &six);
}

/* ---- writing ---- */

/* Slices every digit. */
static const char *slice(struct ghp_onnx_export *ex, const char *name, const char *from,
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

static enum ghp_status write_resize(struct ghp_onnx_export *ex, int layer)
{
    static const int64_t axes[2] = {2, 3};
    const struct ghp_layer *l = &ex->model->layers[layer];
    const int64_t sizes[2] = {l->out.h, l->out.w};
    const char *const inputs[] = {
        ghp_export_ranked(ex, l->inputs[0], 4, l->name), "", "",
        ghp_export_numbers(ex, ghp_export_text(ex, l->name, ".sizes"), sizes, 2), NULL};
    struct ghp_onnx_node *node;

    if (l->resize == GHP_RESIZE_AREA)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "layer '%s' (resize) is a mean over areas, which ONNX cannot express; use mode "
            "linear, or avg_pool",
            l->name);
    ghp_export_since(ex, 18); /* Resize of some axes */
    node = ghp_export_node(ex, "Resize", l->name, inputs);
    ghp_export_ints(ex, node, "axes", axes, 2);
    ghp_export_text_of(ex, node, "mode", l->resize == GHP_RESIZE_NEAREST ? "nearest" : "linear");
    ghp_export_text_of(ex, node, "coordinate_transformation_mode",
                       l->resize == GHP_RESIZE_LINEAR    ? "half_pixel"
                       : l->resize == GHP_RESIZE_CORNERS ? "align_corners"
                                                         : "asymmetric");
    ghp_export_text_of(ex, node, "nearest_mode", "floor");
    ex->ranks[layer] = 4;
    return GHP_OK;
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
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "layer '%s' (view) is not a slice of its input that ONNX can say; change its "
            "strides to ones that divide each other",
            l->name);
    if (l->in.axes == GHP_AXES_SEQUENCE)
        at = ghp_export_turned(ex, ghp_export_text(ex, l->name, ".positions"), at,
                               (const int64_t[]){0, 2, 1}, 3);
    for (int i = 0; i < d.n; i++)
        dims[1 + i] = d.size[i];
    at = reshape(ex, ghp_export_text(ex, l->name, ".digits"), at, dims, d.n + 1);
    at = slice(ex, l->name, at, &d);
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
    {.name = "Reshape", .since = 1, .op = GHP_OP_VIEW, .write = write_view},
    {.name = "Resize",
     .since = 10,
     .attributes = "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
                   "extrapolation_value keep_aspect_ratio_policy mode nearest_mode pixels ",
     .read = read_resize,
     .op = GHP_OP_RESIZE,
     .write = write_resize},
    {.name = "DepthToSpace",
     .since = 1,
     .attributes = "blocksize mode ",
     .read = read_depth_to_space},
    {.name = "Col2Im", .since = 18, .attributes = "dilations pads strides ", .read = read_col2im},
    {0}};
