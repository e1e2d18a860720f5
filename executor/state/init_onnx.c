/* executor/state/init_onnx.c - first weights from the network's own ONNX file, or one that ghp-inspect --export-onnx
 * wrote. */
#include "onnx/onnx.h"
#include "executor/state/init.h"

#include <stdlib.h>
#include <string.h>

static void close_file(void *file)
{
    ghp_onnx_tensors_close(file);
}

static enum ghp_status open_file(const char *path, void **file)
{
    struct ghp_onnx_tensors *tensors;
    enum ghp_status status = ghp_onnx_tensors_open(path, &tensors);

    *file = tensors;
    return status;
}

static int count_items(const void *file)
{
    return ghp_onnx_tensors_count(file);
}

static struct ghp_init_tensor item_of(const void *file, int i)
{
    struct ghp_onnx_weight weight = ghp_onnx_tensors_item(file, i);
    struct ghp_init_tensor item = {
        .name = weight.name, .n_dims = weight.n_dims, .is_filled = weight.is_filled};

    memcpy(item.dims, weight.dims, sizeof item.dims);
    return item;
}

static enum ghp_status read_item(void *file, int i, int element_bytes, void *values)
{
    int64_t elements = ghp_onnx_tensors_item(file, i).elements;
    enum ghp_status status;
    double *wide = values;
    float *narrow;

    if (element_bytes == 4) return ghp_onnx_tensors_read(file, i, values);
    narrow = ghp_alloc((size_t)elements, sizeof *narrow);
    if (narrow == NULL) return GHP_NO_MEMORY();
    status = ghp_onnx_tensors_read(file, i, narrow);
    for (int64_t k = 0; status == GHP_OK && k < elements; k++)
        wide[k] = narrow[k];
    free(narrow);
    return status;
}

const struct ghp_init_ops ghp_init_onnx = {.text = "FILE.onnx",
                                           .names = ghp_onnx_names,
                                           .open = open_file,
                                           .close = close_file,
                                           .count = count_items,
                                           .item = item_of,
                                           .read = read_item};
