/* onnx/huggingface/shards.c - see shards.h. */
#include "onnx/huggingface/shards.h"

#include "core/base/json.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_NAME = 64 };

static const char whole[] = "model.safetensors", index_name[] = "model.safetensors.index.json";

static void name_file(int file, int n_files, char name[FILE_NAME])
{
    if (n_files == 1)
        snprintf(name, FILE_NAME, "%s", whole);
    else
        snprintf(name, FILE_NAME, "model-%05d-of-%05d.safetensors", file + 1, n_files);
}

static int64_t bytes_of(const struct ghp_safetensor *t)
{
    int64_t n = t->element_bytes;

    for (int i = 0; i < t->n_dims; i++)
        n *= t->dims[i];
    return n;
}

/* Sets files[i], the file of tensor i, and returns how many files there are. A tensor that does not fit begins another
 * file. */
static int divide(const struct ghp_hf_shards *s, int *files)
{
    int64_t used = 0;
    int file = 0;

    for (int i = 0; i < s->n; i++) {
        int64_t bytes = bytes_of(&s->tensors[i]);

        if (s->max_bytes > 0 && used > 0 && used + bytes > s->max_bytes) {
            file++;
            used = 0;
        }
        used += bytes;
        files[i] = file;
    }
    return file + 1;
}

/* Writes n tensors from `first` on as one file. */
static enum ghp_status write_file(const char *path, const struct ghp_hf_shards *s, int first, int n)
{
    static const struct ghp_metadatum format = {"format", "pt"};
    struct ghp_safetensors_list list = {
        .n = n, .tensors = s->tensors + first, .n_metadata = 1, .metadata = &format};
    struct ghp_safetensors_writer *writer = NULL;
    enum ghp_status status;

    GHP_TRY(ghp_safetensors_begin(path, &list, &writer));
    status = GHP_OK;
    for (int i = first; i < first + n && status == GHP_OK; i++) {
        const float *values = NULL;

        status = s->read(s->context, i, &values);
        if (status == GHP_OK)
            status = ghp_safetensors_append(writer, values, bytes_of(&s->tensors[i]));
    }
    if (status == GHP_OK) return ghp_safetensors_finish(writer);
    ghp_safetensors_abandon(writer);
    return status;
}

static enum ghp_status write_index(const char *folder, const struct ghp_hf_shards *s,
                                   const int *files, int n_files)
{
    json_t *map = json_object(), *root = json_object();
    char path[PATH_MAX], name[FILE_NAME];
    enum ghp_status status;
    bool failed = false;
    int64_t bytes = 0;

    for (int i = 0; i < s->n; i++) {
        name_file(files[i], n_files, name);
        ghp_json_put(map, s->tensors[i].name, json_string(name), &failed);
        bytes += bytes_of(&s->tensors[i]);
    }
    ghp_json_put(root, "metadata",
                 json_pack("{s:I, s:I}", "total_parameters",
                           (json_int_t)(bytes / (int64_t)sizeof(float)), "total_size",
                           (json_int_t)bytes),
                 &failed);
    ghp_json_put(root, "weight_map", map, &failed);
    snprintf(path, sizeof path, "%s/%s", folder, index_name);
    status = failed ? GHP_NO_MEMORY() : ghp_json_save(path, root);
    json_decref(root);
    return status;
}

/* Whether the file is one of weights that does not belong to n_files of them: readers would take it for the
 * network's. */
static bool is_other(const char *name, int n_files)
{
    char right[FILE_NAME];
    int file, of, end = 0;

    if (strcmp(name, whole) == 0) return n_files > 1;
    if (strcmp(name, index_name) == 0) return n_files == 1;
    if (sscanf(name, "model-%5d-of-%5d.safetensors%n", &file, &of, &end) != 2 ||
        end != (int)strlen(name))
        return false;
    name_file(file - 1, n_files, right);
    return of != n_files || strcmp(name, right) != 0;
}

static enum ghp_status remove_others(const char *folder, int n_files)
{
    DIR *list = opendir(folder);
    enum ghp_status status = GHP_OK;

    if (list == NULL) return GHP_OK;
    for (struct dirent *at = readdir(list); at != NULL && status == GHP_OK; at = readdir(list)) {
        char path[PATH_MAX + NAME_MAX];

        if (!is_other(at->d_name, n_files)) continue;
        snprintf(path, sizeof path, "%s/%s", folder, at->d_name);
        if (unlink(path) != 0)
            status = GHP_FAIL(GHP_ERR_IO,
                              "cannot remove '%s', weights that the folder held before: %s; remove "
                              "it, or export into another folder",
                              path, strerror(errno));
    }
    closedir(list);
    return status;
}

static enum ghp_status write_all(const char *folder, const struct ghp_hf_shards *s, int *files)
{
    int n_files = divide(s, files);

    for (int first = 0, end; first < s->n; first = end) {
        char path[PATH_MAX], name[FILE_NAME];

        end = first;
        while (end < s->n && files[end] == files[first])
            end++;
        name_file(files[first], n_files, name);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        GHP_TRY(write_file(path, s, first, end - first));
    }
    if (n_files > 1) GHP_TRY(write_index(folder, s, files, n_files));
    return remove_others(folder, n_files);
}

enum ghp_status ghp_hf_shards_write(const char *folder, const struct ghp_hf_shards *shards)
{
    int *files = ghp_alloc((size_t)shards->n, sizeof *files);
    enum ghp_status status = files != NULL ? write_all(folder, shards, files) : GHP_NO_MEMORY();

    free(files);
    return status;
}
