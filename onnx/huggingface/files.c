/* onnx/huggingface/files.c - see files.h. */
#include "onnx/huggingface/files.h"

#include "core/base/json.h"
#include "core/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tensor {
    struct ghp_safetensors *file; /* borrowed */
    const struct ghp_safetensor *entry;
};

struct ghp_hf_files {
    char path[PATH_MAX + 32];
    int n_files, n;
    struct ghp_safetensors **files; /* owned */
    const char **names;             /* of the files within the folder; borrowed */
    struct tensor *tensors;
};

/* ---- what a folder has ---- */

/* A file of weights that transformers or others write. */
static bool is_weights(const char *name)
{
    return ghp_text_ends(name, ".safetensors") || ghp_text_ends(name, ".safetensors.index.json") ||
           ghp_text_begins(name, "pytorch_model") || ghp_text_begins(name, "tf_model") ||
           ghp_text_begins(name, "flax_model") || ghp_text_begins(name, "consolidated.") ||
           ghp_text_ends(name, ".gguf");
}

/* The name of some file of weights; "" if there is none. */
static void find_weights(const char *folder, char name[NAME_MAX + 1])
{
    DIR *list = opendir(folder);

    name[0] = '\0';
    if (list == NULL) return;
    for (struct dirent *at = readdir(list); at != NULL; at = readdir(list))
        if (is_weights(at->d_name) && (name[0] == '\0' || strcmp(at->d_name, name) < 0))
            snprintf(name, NAME_MAX + 1, "%s", at->d_name);
    closedir(list);
}

bool ghp_hf_files_exist(const char *folder)
{
    char name[NAME_MAX + 1];

    find_weights(folder, name);
    return name[0] != '\0';
}

static enum ghp_status fail_other(const char *folder)
{
    char name[NAME_MAX + 1];

    find_weights(folder, name);
    if (name[0] == '\0')
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has no weights; put its model.safetensors there, or give another "
                        "folder",
                        folder);
    if (!ghp_text_begins(name, "pytorch_model"))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s/%s': ghp reads the weights of a folder from model.safetensors; write "
                        "that with save_pretrained of transformers",
                        folder, name);
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "'%s/%s' is in PyTorch's own format, which ghp does not read; write model.safetensors next "
        "to it: python3 -c \"from transformers import AutoModelForCausalLM as M; "
        "M.from_pretrained('%s').save_pretrained('%s')\"",
        folder, name, folder, folder);
}

/* ---- opening ---- */

static enum ghp_status open_one(struct ghp_hf_files *f, const char *folder, const char *name)
{
    char path[PATH_MAX + 32 + NAME_MAX];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    GHP_TRY(ghp_safetensors_open(path, &f->files[f->n_files]));
    f->names[f->n_files++] = name;
    return GHP_OK;
}

static int file_of(const struct ghp_hf_files *f, const char *name)
{
    for (int i = 0; i < f->n_files; i++)
        if (strcmp(f->names[i], name) == 0) return i;
    return -1;
}

static enum ghp_status allocate(struct ghp_hf_files *f, size_t n)
{
    GHP_ASSERT(f->n_files == 0);
    f->files = ghp_alloc(n, sizeof *f->files);
    f->names = ghp_alloc(n, sizeof *f->names);
    return f->files != NULL && f->names != NULL ? GHP_OK : GHP_NO_MEMORY();
}

/* Opens the file if the index has a tensor, and sees that it is there. */
static enum ghp_status open_listed(struct ghp_hf_files *f, const char *folder,
                                   const struct ghp_node *map, const char *tensor)
{
    const char *name = json_string_value(json_object_get(map->value, tensor));
    struct ghp_node at;
    int i;

    GHP_TRY(ghp_json_get(map, tensor, &at));
    if (name == NULL || strchr(name, '/') != NULL || !ghp_text_ends(name, ".safetensors"))
        return ghp_json_fail(
            &at, GHP_ERR_FORMAT,
            "no name of a safetensors file in this folder; write the folder again");
    i = file_of(f, name);
    if (i < 0) {
        char path[PATH_MAX + 32 + NAME_MAX];

        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (access(path, F_OK) != 0 && errno == ENOENT)
            return ghp_json_fail(&at, GHP_ERR_INPUT,
                                 "the folder has no file '%s'; fetch that file, or the whole "
                                 "folder again",
                                 name);
        GHP_TRY(open_one(f, folder, name));
        i = f->n_files - 1;
    }
    if (ghp_safetensors_find(f->files[i], tensor) != NULL) return GHP_OK;
    return ghp_json_fail(&at, GHP_ERR_INPUT,
                         "the file '%s' has no such tensor; fetch or write the whole folder again",
                         name);
}

static enum ghp_status open_index(struct ghp_hf_files *f, const char *folder, struct ghp_json *doc)
{
    struct ghp_node root, map;
    const char *tensor;
    json_t *value;

    GHP_TRY(ghp_json_load(f->path, NULL, doc));
    root = ghp_json_root(doc);
    GHP_TRY(ghp_json_get(&root, "weight_map", &map));
    if (json_object_size(map.value) == 0)
        return ghp_json_fail(&map, GHP_ERR_FORMAT, "no tensors; write the folder again");
    GHP_TRY(allocate(f, json_object_size(map.value)));
    json_object_foreach(map.value, tensor, value)
    {
        (void)value;
        GHP_TRY(open_listed(f, folder, &map, tensor));
    }
    return GHP_OK;
}

static enum ghp_status list_tensors(struct ghp_hf_files *f)
{
    size_t n = 0;

    for (int i = 0; i < f->n_files; i++)
        n += (size_t)ghp_safetensors_count(f->files[i]);
    f->tensors = ghp_alloc(n + 1, sizeof *f->tensors);
    if (f->tensors == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < f->n_files; i++)
        for (int j = 0; j < ghp_safetensors_count(f->files[i]); j++)
            f->tensors[f->n++] = (struct tensor){f->files[i], ghp_safetensors_item(f->files[i], j)};
    return GHP_OK;
}

static enum ghp_status open_all(struct ghp_hf_files *f, const char *folder)
{
    static const char whole[] = "model.safetensors";
    struct ghp_json doc = {0};
    enum ghp_status status;

    snprintf(f->path, sizeof f->path, "%s/%s", folder, whole);
    if (access(f->path, F_OK) == 0) {
        GHP_TRY(allocate(f, 1));
        GHP_TRY(open_one(f, folder, whole));
        return list_tensors(f);
    }
    snprintf(f->path, sizeof f->path, "%s/%s.index.json", folder, whole);
    if (access(f->path, F_OK) != 0) return fail_other(folder);
    status = open_index(f, folder, &doc);
    if (status == GHP_OK) status = list_tensors(f);
    ghp_json_release(&doc);
    return status;
}

enum ghp_status ghp_hf_files_open(const char *folder, struct ghp_hf_files **files)
{
    struct ghp_hf_files *f = ghp_alloc(1, sizeof *f);
    enum ghp_status status;

    *files = NULL;
    if (f == NULL) return GHP_NO_MEMORY();
    status = open_all(f, folder);
    free(f->names);
    f->names = NULL;
    if (status == GHP_OK)
        *files = f;
    else
        ghp_hf_files_close(f);
    return status;
}

void ghp_hf_files_close(struct ghp_hf_files *f)
{
    if (f == NULL) return;
    for (int i = 0; i < f->n_files; i++)
        ghp_safetensors_close(f->files[i]);
    free(f->files);
    free(f->tensors);
    free(f);
}

/* ---- reading ---- */

const char *ghp_hf_files_path(const struct ghp_hf_files *f)
{
    return f->path;
}

int ghp_hf_files_count(const struct ghp_hf_files *f)
{
    return f->n;
}

const struct ghp_safetensor *ghp_hf_files_item(const struct ghp_hf_files *f, int i)
{
    return f->tensors[i].entry;
}

int ghp_hf_files_find(const struct ghp_hf_files *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->tensors[i].entry->name, name) == 0) return i;
    return -1;
}

int ghp_hf_files_find_prefixed(const struct ghp_hf_files *f, const char *name, size_t prefix)
{
    const char *rest = name + prefix;
    int found;

    while ((found = ghp_hf_files_find(f, name)) < 0 && name < rest)
        name = strchr(name, '.') + 1;
    return found;
}

enum ghp_status ghp_hf_files_read(const struct ghp_hf_files *f, int i, int element_bytes,
                                  void *values)
{
    return ghp_safetensors_read(f->tensors[i].file, f->tensors[i].entry, element_bytes, values);
}
