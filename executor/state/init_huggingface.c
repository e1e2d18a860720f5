/* executor/state/init_huggingface.c - first weights from a folder of Hugging Face's transformers, the network's own or
 * another of the same layers. */
#include "executor/state/init.h"
#include "onnx/huggingface/huggingface.h"

#include <string.h>

static void close_file(void *file)
{
    ghp_hf_weights_close(file);
}

static enum ghp_status open_file(const char *path, void **file)
{
    struct ghp_hf_weights *weights;
    enum ghp_status status = ghp_hf_weights_open(path, &weights);

    *file = weights;
    return status;
}

static int count_items(const void *file)
{
    return ghp_hf_weights_count(file);
}

static struct ghp_init_tensor item_of(const void *file, int i)
{
    struct ghp_hf_weight weight = ghp_hf_weights_item(file, i);
    struct ghp_init_tensor item = {.name = weight.name, .n_dims = weight.n_dims};

    memcpy(item.dims, weight.dims, sizeof item.dims);
    return item;
}

static enum ghp_status read_item(void *file, int i, int element_bytes, void *values)
{
    return ghp_hf_weights_read(file, i, element_bytes, values);
}

static bool is_named(const char *path)
{
    return ghp_hf_names(path) || ghp_hf_is_adapter(path);
}

/* All tensors are as ghp has them; an adapter is of the network or of none. */
static enum ghp_status orientation_of(const char *path, const void *file,
                                      const struct ghp_model *model, bool *oriented)
{
    (void)path;
    *oriented = false;
    return ghp_hf_weights_check_lora(file, model);
}

const struct ghp_init_ops ghp_init_huggingface = {.text = "FOLDER",
                                                  .names = is_named,
                                                  .open = open_file,
                                                  .close = close_file,
                                                  .orientation = orientation_of,
                                                  .count = count_items,
                                                  .item = item_of,
                                                  .read = read_item};
