/* onnx/pattern/strided.c - PyTorch's as_strided as its exporter writes it, if it only names axes. An array is made
 * flat, and a table of places is gathered from it: the sum over axes of Range(0, size, 1) times a stride. If the
 * strides are those of the sizes in order, with the batch in front, it is a Reshape. */
#include "onnx/pattern/pattern.h"
#include "onnx/pattern/question.h"

struct strides {
    int n;
    double sizes[GHP_ONNX_MAX_DIMS], strides[GHP_ONNX_MAX_DIMS]; /* size 0: the batch */
};

/* Adds an axis of places: Unsqueeze(Mul(Range(0, size, 1), stride)). */
static bool add_axis(struct ghp_onnx_import *im, const char *name, struct strides *s)
{
    const struct ghp_onnx_node *spread = ghp_onnx_made_by(im, name, "Unsqueeze", 1), *mul, *range;
    const char *counted;
    double first, step;

    if (spread == NULL || s->n == GHP_ONNX_MAX_DIMS) return false;
    mul = ghp_onnx_made_by(im, spread->inputs[0], "Mul", 2);
    if (mul == NULL || !ghp_onnx_with_scalar(im, mul, &counted, &s->strides[s->n])) return false;
    range = ghp_onnx_made_by(im, counted, "Range", 3);
    if (range == NULL || !ghp_onnx_scalar(im, range->inputs[0], &first) ||
        !ghp_onnx_scalar(im, range->inputs[2], &step) || first != 0 || step != 1)
        return false;
    if (!ghp_onnx_scalar(im, range->inputs[1], &s->sizes[s->n])) s->sizes[s->n] = 0;
    s->n++;
    return true;
}

/* The sum's terms, the first axis deepest; it begins at 0. */
static bool find_axes(struct ghp_onnx_import *im, const char *name, struct strides *s)
{
    const struct ghp_onnx_node *sum = ghp_onnx_made_by(im, name, "Add", 2);
    const char *terms[GHP_ONNX_MAX_DIMS];
    double first = -1;
    int n = 0;

    for (; sum != NULL && n < GHP_ONNX_MAX_DIMS; sum = ghp_onnx_made_by(im, name, "Add", 2)) {
        terms[n++] = sum->inputs[1];
        name = sum->inputs[0];
    }
    if (n < 2 || !ghp_onnx_scalar(im, name, &first) || first != 0) return false;
    while (n > 0)
        if (!add_axis(im, terms[--n], s)) return false;
    return true;
}

/* Whether the elements are those of the sizes, in order, samples first. */
static bool in_order(const struct strides *s)
{
    double inner = 1;

    for (int i = s->n - 1; i > 0; --i) {
        if (!(s->sizes[i] >= 1 && s->sizes[i] <= GHP_ONNX_MAX_SIZE)) return false;
        if (s->sizes[i] > 1 && s->strides[i] != inner) return false;
        inner *= s->sizes[i];
    }
    return s->n > 1 && s->sizes[0] == 0 && s->strides[0] == inner;
}

static bool match_strided(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                          struct ghp_onnx_found *found)
{
    const struct ghp_onnx_node *flat =
        node->n_inputs == 2 ? ghp_onnx_made_by(im, node->inputs[0], "Reshape", 2) : NULL;
    struct strides s = {.n = 0};
    int64_t *sizes;
    double open;

    if (flat == NULL || !ghp_onnx_scalar(im, flat->inputs[1], &open) || open != -1 ||
        !find_axes(im, node->inputs[1], &s) || !in_order(&s))
        return false;
    sizes = ghp_onnx_keep(im, (size_t)s.n, sizeof *sizes);
    im->failed = im->failed || sizes == NULL;
    if (sizes == NULL) return false;
    for (int i = 0; i < s.n; i++)
        sizes[i] = (int64_t)s.sizes[i]; /* 0: as many as before */
    *found = (struct ghp_onnx_found){.n_inputs = 1, .inputs = {flat->inputs[0]}, .n_attributes = 1};
    found->attributes[0] = (struct ghp_onnx_attribute){
        .name = "shape", .kind = GHP_ONNX_INTS, .n = s.n, .ints = sizes};
    return true;
}

const struct ghp_onnx_pattern ghp_onnx_pattern_strided[] = {{"Gather", "Reshape", match_strided},
                                                            {0}};
