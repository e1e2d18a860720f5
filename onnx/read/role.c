/* onnx/read/role.c - see role.h. */
#include "onnx/read/role.h"

#include "core/base/text.h"

#include <stdio.h>
#include <string.h>

static struct ghp_onnx_base *base_of(const struct ghp_onnx_array *array)
{
    return (struct ghp_onnx_base *)(uintptr_t)array->base;
}

static bool is_pytorch(const struct ghp_onnx_import *im)
{
    return strcmp(im->file->producer, "pytorch") == 0;
}

static bool knows_roles(const struct ghp_onnx_import *im)
{
    return is_pytorch(im) || im->parameters != NULL;
}

/* ---- what a file says ---- */

enum ghp_status ghp_onnx_listed_names(const struct ghp_onnx_import *im, const char *key,
                                      const char *remedy, json_t **names)
{
    const char *text = NULL;

    if (*names != NULL) return GHP_OK;
    for (int i = 0; i < im->file->n_texts; i++)
        if (strcmp(im->file->texts[i].key, key) == 0) text = im->file->texts[i].value;
    if (text == NULL) return GHP_OK;
    *names = json_loads(text, 0, NULL);
    for (size_t i = 0; i < json_array_size(*names); i++)
        if (!json_is_string(json_array_get(*names, i))) text = NULL;
    if (json_is_array(*names) && text != NULL) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT, "%s: the metadata '%s' is not a list of names; write %s",
                    im->file->path, key, remedy);
}

bool ghp_onnx_is_listed(const json_t *names, const char *name)
{
    for (size_t i = 0; i < json_array_size(names); i++)
        if (strcmp(json_string_value(json_array_get(names, i)), name) == 0) return true;
    return false;
}

static enum ghp_status find_list(struct ghp_onnx_import *im)
{
    return ghp_onnx_listed_names(
        im, "ghp.parameters",
        "json.dumps([name for name, p in module.named_parameters() if p.requires_grad])",
        &im->parameters);
}

/* The role of a name of n bytes by the exporter's list, which has lines such as "p_c_weight: PARAMETER
 * target='c.weight'". */
static enum ghp_onnx_role in_signature(const char *signature, const char *name, size_t n)
{
    static const char target[] = "target='", parameter[] = ": PARAMETER ";

    for (const char *at = signature; (at = strstr(at, target)) != NULL;) {
        const char *line = at;

        at += sizeof target - 1;
        if (strncmp(at, name, n) != 0 || at[n] != '\'') continue;
        while (line > signature && line[-1] != '\n')
            --line;
        line = strstr(line, parameter);
        return line != NULL && line < at ? GHP_ONNX_PARAMETER : GHP_ONNX_FIXED;
    }
    return GHP_ONNX_UNKNOWN;
}

/* The role of a tensor that an optimizer computed from those of a list "['a', 'b']": fixed if no parameter is among
 * them. */
static enum ghp_onnx_role of_folded(const struct ghp_onnx_file *file, const char *name)
{
    const char *list = "";

    for (int i = 0; i < file->n_folded; i++)
        if (strcmp(file->folded[i].key, name) == 0) list = file->folded[i].value;
    if (list[0] == '\0') return GHP_ONNX_UNKNOWN;
    for (const char *at = list; (at = strchr(at, '\'')) != NULL;) {
        const char *end = strchr(++at, '\'');

        if (end == NULL) break;
        if (in_signature(file->signature, at, (size_t)(end - at)) == GHP_ONNX_PARAMETER)
            return GHP_ONNX_UNKNOWN;
        at = end + 1;
    }
    return GHP_ONNX_FIXED;
}

static bool is_made_by_exporter(const char *name)
{
    return ghp_text_begins(name, "onnx::");
}

static enum ghp_onnx_role role_of_name(const struct ghp_onnx_import *im, const char *name)
{
    const struct ghp_onnx_file *file = im->file;
    bool listed = file->signature[0] != '\0';
    enum ghp_onnx_role role = in_signature(file->signature, name, strlen(name));

    if (im->parameters != NULL && ghp_onnx_is_listed(im->parameters, name))
        return GHP_ONNX_PARAMETER;
    if (im->parameters != NULL && (listed ? role != GHP_ONNX_UNKNOWN : !is_made_by_exporter(name)))
        return GHP_ONNX_FIXED;
    if (listed) return role != GHP_ONNX_UNKNOWN ? role : of_folded(file, name);
    return ghp_text_ends(name, ".weight") || ghp_text_ends(name, ".bias") ? GHP_ONNX_PARAMETER
                                                                          : GHP_ONNX_UNKNOWN;
}

enum ghp_status ghp_onnx_role_of_tensor(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_array *array)
{
    GHP_TRY(find_list(im));
    if (!knows_roles(im)) return GHP_OK;
    base_of(array)->role = role_of_name(im, array->name);
    base_of(array)->of = array->name;
    return GHP_OK;
}

/* ---- what is computed ---- */

/* Whether a node's output has its inputs' values, each once at most, in another order. */
static bool rearranges(const char *op)
{
    static const char *const ops[] = {"Concat",  "Reshape",  "Transpose", "Slice",
                                      "Flatten", "Gather",   "Split",     "Squeeze",
                                      "Cast",    "CastLike", "Identity",  "Unsqueeze"};

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(op, ops[i]) == 0) return true;
    return false;
}

void ghp_onnx_role_hand_on(const struct ghp_onnx_array *from, const struct ghp_onnx_array *to)
{
    base_of(to)->role =
        from->base->role == GHP_ONNX_PARAMETER ? GHP_ONNX_COMPUTED : from->base->role;
    base_of(to)->computed = from->base->role == GHP_ONNX_UNKNOWN;
    base_of(to)->of = from->base->of;
}

void ghp_onnx_role_of_made(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                           const struct ghp_onnx_array *array)
{
    struct ghp_onnx_base *base = base_of(array);
    bool sizes = strcmp(node->op, "Shape") == 0 || strcmp(node->op, "Size") == 0;
    int n = strcmp(node->op, "CastLike") == 0 ? 1 : node->n_inputs;

    if (!knows_roles(im) || base == NULL || base->role != GHP_ONNX_AS_USED) return;
    base->role = GHP_ONNX_FIXED;
    for (int i = 0; !sizes && i < n; i++) {
        const struct ghp_onnx_array *from = ghp_onnx_in(im, node, i);
        enum ghp_onnx_role role;
        bool moved;

        if (from == NULL || from->base == NULL || from->base->whole) continue;
        role = from->base->role;
        moved = rearranges(node->op) && from->base->held == NULL;
        if (role == GHP_ONNX_PARAMETER && !moved) role = GHP_ONNX_COMPUTED;
        base->computed =
            base->computed || from->base->computed || (role == GHP_ONNX_UNKNOWN && !moved);
        if (role <= base->role) continue;
        base->role = role;
        base->of = from->base->of;
    }
}

/* ---- what is held ---- */

void ghp_onnx_role_hold(const struct ghp_onnx_array *parameter, const struct ghp_onnx_array *made,
                        const bool *held)
{
    struct ghp_onnx_base *base = base_of(made);

    base->role = parameter->base->role;
    base->of = parameter->base->of;
    base->held = held;
}

/* Elements that are held; `zeros`: at zero. */
static int64_t count_held(const struct ghp_onnx_array *array, bool zeros)
{
    const struct ghp_onnx_base *base = array->base;
    int64_t index[GHP_ONNX_MAX_DIMS] = {0}, at = array->offset, n = 0;

    for (int64_t i = 0; base->held != NULL && i < ghp_onnx_elements(array); i++) {
        n += base->held[at] && (!zeros || base->values[at] == 0);
        ghp_onnx_next_element(array, index, &at);
    }
    return n;
}

int64_t ghp_onnx_role_zeros(const struct ghp_onnx_array *array)
{
    return count_held(array, true);
}

enum ghp_status ghp_onnx_role_check_held(const struct ghp_onnx_import *im)
{
    for (int i = 0; i < im->n_sources; i++) {
        const struct ghp_onnx_source *source = &im->sources[i];

        if (count_held(&source->array, false) > 0)
            return ghp_onnx_role_fail_computed(im, im->makers[source->layer], &source->array);
    }
    return GHP_OK;
}

/* ---- what becomes of them ---- */

bool ghp_onnx_role_is_number(const struct ghp_onnx_array *array)
{
    return array->base->role == GHP_ONNX_AS_USED || array->base->role == GHP_ONNX_FIXED;
}

bool ghp_onnx_role_may_train(const struct ghp_onnx_array *array)
{
    const struct ghp_onnx_base *base = array->base;

    return base->role == GHP_ONNX_PARAMETER ||
           (base->role == GHP_ONNX_UNKNOWN && base->tensor != NULL &&
            !is_made_by_exporter(base->tensor->name));
}

static const char *name_of(const struct ghp_onnx_array *array)
{
    return array->base->of != NULL ? array->base->of : array->name != NULL ? array->name : "";
}

/* Whether the exporter computed a tensor that the file has. */
static bool is_made(const struct ghp_onnx_import *im, const char *name)
{
    return is_made_by_exporter(name) || im->file->signature[0] != '\0';
}

/* A constant of which the file does not say whether it is a parameter; ghp_onnx_warn names the first. */
static void note_unsure(struct ghp_onnx_import *im, const struct ghp_onnx_array *array)
{
    struct ghp_onnx_unsure *unsure = &im->unsure;

    if (unsure->n++ > 0) return;
    unsure->tensor = name_of(array);
    unsure->made = is_made(im, unsure->tensor);
}

/* What lets a file say whether a tensor is a parameter. */
static const char *remedy_of(const struct ghp_onnx_import *im, const char *name)
{
    return is_made(im, name) ? "export with optimize=False (dynamo=True) or "
                               "do_constant_folding=False (dynamo=False)"
                             : "export with dynamo=True, or name the parameters in the metadata "
                               "'ghp.parameters' (docs/how-to/from-pytorch.md)";
}

enum ghp_status ghp_onnx_role_check_number(const struct ghp_onnx_import *im,
                                           const struct ghp_onnx_node *node,
                                           const struct ghp_onnx_array *array)
{
    const char *name = name_of(array);

    if (ghp_onnx_role_is_number(array)) return GHP_OK;
    if (array->base->role != GHP_ONNX_UNKNOWN)
        return ghp_onnx_fail(im, node,
                             "computes with the parameter '%.96s' in a place where ghp takes a "
                             "number; make it a buffer of the module, which is not trained",
                             name);
    if (ghp_onnx_elements(array) == 1 && (array->base->computed || !is_made(im, name)))
        return ghp_onnx_fail(im, node,
                             "computes with '%.96s' in a place where ghp takes a number, and the "
                             "file does not say whether that is a parameter; %s",
                             name, remedy_of(im, name));
    note_unsure((struct ghp_onnx_import *)(uintptr_t)im, array);
    return GHP_OK;
}

enum ghp_status ghp_onnx_role_fail_computed(const struct ghp_onnx_import *im,
                                            const struct ghp_onnx_node *node,
                                            const struct ghp_onnx_array *array)
{
    const char *name = name_of(array);

    if (array->base->role == GHP_ONNX_UNKNOWN)
        return ghp_onnx_fail(im, node,
                             "takes values that the file computes from '%.96s', and does not say "
                             "whether that is a parameter; %s",
                             name, remedy_of(im, name));
    return ghp_onnx_fail(
        im, node,
        "takes values that the file computes from the parameter '%.96s'; ghp "
        "trains parameters as they are: make what is computed the parameter, as "
        "torch.nn.utils.parametrize.remove_parametrizations does, and export again",
        name);
}

enum ghp_status ghp_onnx_role_apply(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    const struct ghp_onnx_source *source)
{
    struct ghp_layer *layer = &im->model.layers[source->layer];
    const struct ghp_onnx_array *array = &source->array;
    enum ghp_onnx_role role = array->base->role;
    bool fixed = role == GHP_ONNX_FIXED, unsure = role == GHP_ONNX_UNKNOWN;

    if (source->slot >= GHP_MAX_PARAMS || role == GHP_ONNX_AS_USED) return GHP_OK;
    if (unsure && layer->fixed) return GHP_OK;
    if (role == GHP_ONNX_COMPUTED ||
        (!fixed && (array->base->computed || source->scale < 1 || source->scale > 1 ||
                    ghp_onnx_elements(array) > array->base->elements)))
        return ghp_onnx_role_fail_computed(im, node, array);
    if (unsure) {
        note_unsure(im, array);
        return GHP_OK;
    }
    if (source->slot > 0 && layer->fixed != fixed)
        return ghp_onnx_fail(im, node,
                             "trains one of its two tensors '%.96s' and '%.96s' alone; ghp trains "
                             "both or none: make both parameters, or both buffers",
                             layer->params[0].name, layer->params[1].name);
    layer->fixed = fixed;
    return GHP_OK;
}
