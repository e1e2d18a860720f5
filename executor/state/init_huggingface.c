/* executor/state/init_huggingface.c - first weights from a folder of Hugging Face's transformers, the network's own or
 * another of the same layers. */
#include "executor/state/init.h"
#include "onnx/huggingface/huggingface.h"

#include <stdlib.h>
#include <string.h>

struct ghp_init_file {
    struct ghp_hf_weights *weights;
};

static void close_file(struct ghp_init_file *f)
{
    if (f == NULL) return;
    ghp_hf_weights_close(f->weights);
    free(f);
}

static enum ghp_status open_file(const char *path, struct ghp_init_file **file)
{
    struct ghp_init_file *f = ghp_alloc(1, sizeof(*f));
    enum ghp_status status;

    *file = NULL;
    if (f == NULL) return GHP_NO_MEMORY();
    status = ghp_hf_weights_open(path, &f->weights);
    if (status == GHP_OK)
        *file = f;
    else
        close_file(f);
    return status;
}

static int count_items(const struct ghp_init_file *f)
{
    return ghp_hf_weights_count(f->weights);
}

static struct ghp_init_tensor item_of(const struct ghp_init_file *f, int i)
{
    struct ghp_hf_weight weight = ghp_hf_weights_item(f->weights, i);
    struct ghp_init_tensor item = {.name = weight.name, .n_dims = weight.n_dims};

    memcpy(item.dims, weight.dims, sizeof(item.dims));
    return item;
}

static enum ghp_status read_item(struct ghp_init_file *f, int i, int element_bytes, void *values)
{
    return ghp_hf_weights_read(f->weights, i, element_bytes, values);
}

const struct ghp_init_ops ghp_init_huggingface = {.text = "FOLDER",
                                                  .names = ghp_hf_names,
                                                  .is_model = true,
                                                  .open = open_file,
                                                  .close = close_file,
                                                  .count = count_items,
                                                  .item = item_of,
                                                  .read = read_item};
