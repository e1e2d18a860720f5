/* onnx/huggingface/weights.c - the weights of a folder under ghp's names; see huggingface.h. */
#include "core/model/lora.h"
#include "onnx/huggingface/adapter.h"
#include "onnx/huggingface/family.h"
#include "onnx/huggingface/files.h"
#include "onnx/huggingface/huggingface.h"
#include "onnx/huggingface/place.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct item { /* a parameter: a part of a tensor; or tensor -1: tensor `part` of the adapter */
    int tensor, part;
};

struct ghp_hf_weights {
    struct ghp_hf_config config;
    struct ghp_hf_network network;
    struct ghp_hf_files *files;
    int *entries; /* per tensor of the network: its number in the files */
    bool *used;   /* per tensor of the files: the network has it */
    int n;
    struct item *items;
    struct ghp_hf_adapter adapter; /* zeroed: none */
};

/* ---- the file against the network ---- */

/* Older files of a bert call the parameters of its norms otherwise. */
static int find_entry(const struct ghp_hf_weights *w, const struct ghp_hf_tensor *t)
{
    static const char *const older[][2] = {{"LayerNorm.weight", "gamma"},
                                           {"LayerNorm.bias", "beta"}};
    const char *prefix = t->prefixed ? ghp_hf_prefix(w->config.family) : "";
    char name[2 * GHP_HF_NAME], *norm;
    int found;

    snprintf(name, sizeof name, "%s%s", prefix, t->name);
    found = ghp_hf_files_find_prefixed(w->files, name, strlen(prefix));
    for (int i = 0; i < 2 && found < 0; i++) {
        norm = strstr(name, older[i][0]);
        if (norm == NULL) continue;
        snprintf(strchr(norm, '.') + 1, sizeof "weight", "%s", older[i][1]); /* no longer */
        found = ghp_hf_files_find_prefixed(w->files, name, strlen(prefix));
    }
    return found;
}

static const char *dims_text(const int64_t *dims, int n, char out[128])
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(out + used, 128 - used, "[%" PRId64 "]", dims[i]);
    return n > 0 ? out : "one number";
}

static enum ghp_status find_tensor(struct ghp_hf_weights *w, int i)
{
    const struct ghp_hf_tensor *t = &w->network.tensors[i];
    const struct ghp_safetensor *entry;
    char have[128], want[128];
    int64_t shape[GHP_MAX_DIMS];
    int n_shape = ghp_hf_tensor_shape(t, shape);

    w->entries[i] = find_entry(w, t);
    if (w->entries[i] < 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has no tensor '%s%s'; give the weights of this config.json",
                        ghp_hf_files_path(w->files),
                        t->prefixed ? ghp_hf_prefix(w->config.family) : "", t->name);
    w->used[w->entries[i]] = true;
    entry = ghp_hf_files_item(w->files, w->entries[i]);
    if (entry->n_dims == n_shape &&
        memcmp(entry->dims, shape, (size_t)n_shape * sizeof *shape) == 0)
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s': tensor '%s' is %s, but by config.json it is %s; give the weights of "
                    "this config.json",
                    ghp_hf_files_path(w->files), entry->name,
                    dims_text(entry->dims, entry->n_dims, have), dims_text(shape, n_shape, want));
}

/* Whether a tensor of the files is not a weight of the network. Such are masks, tables that are computed, the output
 * layer once more if it is tied, and parts of a bert's pretraining that masked words do not need. */
static bool is_extra(const struct ghp_hf_weights *w, const char *name)
{
    static const char *const ends[] = {".attn.bias",
                                       ".attn.masked_bias",
                                       ".attention.bias",
                                       ".attention.masked_bias",
                                       ".rotary_emb.inv_freq",
                                       ".position_ids",
                                       ".decoder.bias",
                                       ".pooler.dense.weight",
                                       ".pooler.dense.bias",
                                       ".seq_relationship.weight",
                                       ".seq_relationship.bias"};
    size_t n = strlen(name);
    char head[GHP_HF_NAME];

    snprintf(head, sizeof head, "%s.weight", ghp_hf_head(w->config.family));
    if (w->config.tied && strcmp(name, head) == 0) return true;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (n > strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0) return true;
    return false;
}

static enum ghp_status check_rest(const struct ghp_hf_weights *w)
{
    for (int i = 0; i < ghp_hf_files_count(w->files); i++) {
        const char *name = ghp_hf_files_item(w->files, i)->name;

        if (w->used[i] || is_extra(w, name)) continue;
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has a tensor '%s', which a network of this config.json does not "
                        "have; give the weights of this config.json",
                        ghp_hf_files_path(w->files), name);
    }
    return GHP_OK;
}

/* ---- opening ---- */

static enum ghp_status list_items(struct ghp_hf_weights *w)
{
    int added = w->adapter.file != NULL ? ghp_safetensors_count(w->adapter.file) : 0;

    w->items = ghp_alloc((size_t)(w->network.n_tensors * GHP_HF_PARTS + added), sizeof *w->items);
    if (w->items == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < added; i++)
        w->items[w->n++] = (struct item){.tensor = -1, .part = i};
    for (int i = 0; i < w->network.n_tensors; i++)
        for (int j = 0; j < w->network.tensors[i].n_parts; j++)
            w->items[w->n++] = (struct item){.tensor = i, .part = j};
    return GHP_OK;
}

static enum ghp_status open_file(struct ghp_hf_weights *w, const char *path)
{
    struct ghp_hf_place place;

    if (ghp_hf_is_adapter(path)) {
        GHP_TRY(ghp_hf_adapter_open(path, &w->adapter));
        path = w->adapter.base;
    }
    GHP_TRY(ghp_hf_place_open(path, &w->config, &w->network));
    ghp_hf_place_find(path, &place);
    if (place.known != NULL)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' is a network without weights; give a folder that has some", path);
    GHP_TRY(ghp_hf_files_open(place.path, &w->files));
    w->entries = ghp_alloc((size_t)w->network.n_tensors, sizeof *w->entries);
    w->used = ghp_alloc((size_t)ghp_hf_files_count(w->files) + 1, sizeof *w->used);
    if (w->entries == NULL || w->used == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < w->network.n_tensors; i++)
        GHP_TRY(find_tensor(w, i));
    GHP_TRY(check_rest(w));
    if (w->adapter.file != NULL)
        GHP_TRY(ghp_hf_adapter_name(&w->adapter, &w->network, w->config.family));
    return list_items(w);
}

enum ghp_status ghp_hf_weights_open(const char *path, struct ghp_hf_weights **weights)
{
    struct ghp_hf_weights *w = ghp_alloc(1, sizeof *w);
    enum ghp_status status;

    *weights = NULL;
    if (w == NULL) return GHP_NO_MEMORY();
    status = open_file(w, path);
    if (status == GHP_OK)
        *weights = w;
    else
        ghp_hf_weights_close(w);
    return status;
}

void ghp_hf_weights_close(struct ghp_hf_weights *w)
{
    if (w == NULL) return;
    ghp_hf_files_close(w->files);
    ghp_hf_adapter_release(&w->adapter);
    ghp_hf_network_release(&w->network);
    free(w->entries);
    free(w->used);
    free(w->items);
    free(w);
}

/* ---- reading ---- */

int ghp_hf_weights_count(const struct ghp_hf_weights *w)
{
    return w->n;
}

static struct ghp_hf_weight adapter_item(const struct ghp_hf_adapter *a, int i)
{
    const struct ghp_safetensor *entry = ghp_safetensors_item(a->file, i);
    struct ghp_hf_weight weight = {.name = a->params[i], .n_dims = entry->n_dims};

    memcpy(weight.dims, entry->dims, sizeof weight.dims);
    return weight;
}

enum ghp_status ghp_hf_weights_check_lora(const struct ghp_hf_weights *w,
                                          const struct ghp_model *model)
{
    const struct ghp_hf_adapter *a = &w->adapter;
    struct ghp_lora_parts parts;
    int n = 0;

    for (int i = 0; i < model->n_layers && a->file != NULL; i++) {
        if (!ghp_lora_of(model, &model->layers[i], &parts)) continue;
        n++;
        /* a file may have an alpha that was computed from the factor */
        if (parts.a->out.c != a->rank ||
            fabs(parts.scale * (double)a->rank - a->alpha) > 1e-9 * a->alpha)
            return GHP_FAIL(
                GHP_ERR_INPUT,
                "'%s' has rank %lld and alpha %g, and the plan's matrices rank %lld and "
                "alpha %g; plan with --lora %lld:%g",
                a->folder, (long long)a->rank, a->alpha, (long long)parts.a->out.c,
                parts.scale * (double)parts.a->out.c, (long long)a->rank, a->alpha);
    }
    if (n > 0 || a->file == NULL) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' has low-rank matrices, and the network none; plan it with --lora "
                    "%lld:%g and its --lora-targets",
                    a->folder, (long long)a->rank, a->alpha);
}

struct ghp_hf_weight ghp_hf_weights_item(const struct ghp_hf_weights *w, int i)
{
    if (w->items[i].tensor < 0) return adapter_item(&w->adapter, w->items[i].part);

    const struct ghp_hf_tensor *t = &w->network.tensors[w->items[i].tensor];
    const struct ghp_hf_part *part = &t->parts[w->items[i].part];

    struct ghp_hf_weight weight = {
        .name = part->param, .n_dims = t->n_dims, .dims = {part->rows, t->dims[!t->transposed]}};

    if (t->one_row) weight = (struct ghp_hf_weight){part->param, 1, {t->dims[1]}};
    if (t->window > 0) weight.n_dims = ghp_hf_tensor_shape(t, weight.dims);
    return weight;
}

/* The part's rows of a tensor: [rows][in] of [out][in], or of [in][out]. */
static void take_part(const struct ghp_hf_tensor *t, int part, int element_bytes, const void *whole,
                      void *values)
{
    int64_t in = t->n_dims == 2 ? t->dims[!t->transposed] : 1, out = t->dims[t->transposed];
    size_t bytes = (size_t)element_bytes;

    for (int64_t r = 0; r < t->parts[part].rows; r++) {
        int64_t row = ghp_hf_row_at(&t->parts[part], r);
        char *to = (char *)values + (size_t)(r * in) * bytes;

        if (!t->transposed)
            memcpy(to, (const char *)whole + (size_t)(row * in) * bytes, (size_t)in * bytes);
        for (int64_t c = 0; t->transposed && c < in; c++)
            memcpy(to + (size_t)c * bytes, (const char *)whole + (size_t)(c * out + row) * bytes,
                   bytes);
    }
}

enum ghp_status ghp_hf_weights_read_tensor(struct ghp_hf_weights *w, int tensor, float *values)
{
    return ghp_hf_files_read(w->files, w->entries[tensor], (int)sizeof *values, values);
}

enum ghp_status ghp_hf_weights_read(struct ghp_hf_weights *w, int i, int element_bytes,
                                    void *values)
{
    const struct item *item = &w->items[i];
    const struct ghp_hf_tensor *t = &w->network.tensors[item->tensor < 0 ? 0 : item->tensor];
    size_t elements = (size_t)(t->dims[0] * (t->n_dims == 2 ? t->dims[1] : 1));
    void *whole;
    enum ghp_status status;

    if (item->tensor < 0)
        return ghp_safetensors_read(w->adapter.file,
                                    ghp_safetensors_item(w->adapter.file, item->part),
                                    element_bytes, values);
    whole = ghp_alloc(elements, (size_t)element_bytes);
    if (whole == NULL) return GHP_NO_MEMORY();
    status = ghp_hf_files_read(w->files, w->entries[item->tensor], element_bytes, whole);
    if (status == GHP_OK) take_part(t, item->part, element_bytes, whole, values);
    free(whole);
    return status;
}
