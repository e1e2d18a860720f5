/* core/model/orientation.c - see orientation.h. */
#include "core/model/orientation.h"

#include <stdlib.h>
#include <string.h>

const char ghp_transposed_key[] = "transposed";

static bool has_transposed(const struct ghp_model *model)
{
    for (int i = 0; i < model->n_layers; i++)
        if (model->layers[i].transposed) return true;
    return false;
}

enum ghp_status ghp_file_orientation(const char *path, const struct ghp_safetensors *file,
                                     const struct ghp_model *model, bool *oriented)
{
    const char *format = ghp_safetensors_metadata(file, "format");
    bool is_ours = format != NULL && strncmp(format, "ghp.", 4) == 0,
         says_so = ghp_safetensors_metadata(file, ghp_transposed_key) != NULL;

    *oriented = !is_ours || says_so;
    if (!is_ours || !says_so || has_transposed(model)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' has weights of x @ weight as their module has them, and this network "
                    "does not say which those are: it is another one, or of an older version; use "
                    "the plan that the file was trained by",
                    path);
}

void ghp_param_file_dims(const struct ghp_param *param, int64_t dims[GHP_MAX_DIMS])
{
    memcpy(dims, param->dims, sizeof param->dims);
    if (!param->transposed) return;
    dims[0] = param->dims[1];
    dims[1] = param->dims[0];
}

/* Transposes a matrix of rows x columns in place. */
static enum ghp_status transpose(int64_t rows, int64_t columns, int element_bytes, void *values)
{
    size_t bytes = (size_t)element_bytes, n = (size_t)rows, m = (size_t)columns;
    char *copy = ghp_alloc(n * m + 1, bytes), *to = values;

    if (copy == NULL) return GHP_NO_MEMORY();
    memcpy(copy, values, n * m * bytes);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            memcpy(to + (j * n + i) * bytes, copy + (i * m + j) * bytes, bytes);
    free(copy);
    return GHP_OK;
}

enum ghp_status ghp_param_to_file(const struct ghp_param *param, int element_bytes, void *values)
{
    if (!param->transposed) return GHP_OK;
    return transpose(param->dims[0], param->dims[1], element_bytes, values);
}

enum ghp_status ghp_param_from_file(const struct ghp_param *param, int element_bytes, void *values)
{
    if (!param->transposed) return GHP_OK;
    return transpose(param->dims[1], param->dims[0], element_bytes, values);
}
