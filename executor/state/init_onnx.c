/* executor/state/init_onnx.c - first weights from the network's own ONNX file, or one that ghp-inspect --export-onnx
 * wrote. */
#include "onnx/onnx.h"
#include "executor/state/init.h"

#include <stdlib.h>
#include <string.h>

struct ghp_init_file {
    struct ghp_onnx_tensors *tensors;
};

static void close_file(struct ghp_init_file *f)
{
    if (f == NULL) return;
    ghp_onnx_tensors_close(f->tensors);
    free(f);
}

static enum ghp_status open_file(const char *path, struct ghp_init_file **file)
{
    struct ghp_init_file *f = ghp_alloc(1, sizeof(*f));
    enum ghp_status status;

    *file = NULL;
    if (f == NULL) return GHP_NO_MEMORY();
    status = ghp_onnx_tensors_open(path, &f->tensors);
    if (status == GHP_OK)
        *file = f;
    else
        close_file(f);
    return status;
}

static int count_items(const struct ghp_init_file *f)
{
    return ghp_onnx_tensors_count(f->tensors);
}

static struct ghp_init_tensor item_of(const struct ghp_init_file *f, int i)
{
    struct ghp_onnx_weight weight = ghp_onnx_tensors_item(f->tensors, i);
    struct ghp_init_tensor item = {
        .name = weight.name, .n_dims = weight.n_dims, .is_filled = weight.is_filled};

    memcpy(item.dims, weight.dims, sizeof(item.dims));
    return item;
}

static enum ghp_status read_item(struct ghp_init_file *f, int i, int element_bytes, void *values)
{
    int64_t elements = ghp_onnx_tensors_item(f->tensors, i).elements;
    enum ghp_status status;
    double *wide = values;
    float *narrow;

    if (element_bytes == 4) return ghp_onnx_tensors_read(f->tensors, i, values);
    narrow = ghp_alloc((size_t)elements, sizeof(*narrow));
    if (narrow == NULL) return GHP_NO_MEMORY();
    status = ghp_onnx_tensors_read(f->tensors, i, narrow);
    for (int64_t k = 0; status == GHP_OK && k < elements; k++)
        wide[k] = narrow[k];
    free(narrow);
    return status;
}

const struct ghp_init_ops ghp_init_onnx = {.text = "FILE.onnx",
                                           .names = ghp_onnx_names,
                                           .is_model = true,
                                           .open = open_file,
                                           .close = close_file,
                                           .count = count_items,
                                           .item = item_of,
                                           .read = read_item};
