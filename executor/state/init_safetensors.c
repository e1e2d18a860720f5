/* executor/state/init_safetensors.c - first weights from safetensors files: ghp's own checkpoints, or those of other
 * trainers.
 *
 * Left out are the moments of a checkpoint of ghp, and the whole numbers that PyTorch keeps with a batch norm's
 * statistics (NAME.num_batches_tracked), which no result of ghp depends on. */
#include "executor/state/checkpoint.h"
#include "executor/state/init.h"
#include "core/model/orientation.h"

#include <stdlib.h>
#include <string.h>

struct shown {
    struct ghp_safetensors *file;
    int n;
    const struct ghp_safetensor **items; /* those that are shown; owned list of borrowed entries */
};

static bool is_shown(const struct ghp_safetensor *t, bool is_checkpoint)
{
    static const char counter[] = ".num_batches_tracked";
    size_t n = strlen(t->name), n_counter = strlen(counter);

    if (is_checkpoint && ghp_checkpoint_is_moment(t->name)) return false;
    return t->dtype != GHP_DTYPE_OTHER || n < n_counter ||
           strcmp(t->name + n - n_counter, counter) != 0;
}

static bool is_named(const char *path)
{
    static const char suffix[] = ".safetensors";
    size_t n = strlen(path), n_suffix = strlen(suffix);

    return n > n_suffix && strcmp(path + n - n_suffix, suffix) == 0;
}

static void close_file(void *file)
{
    struct shown *f = file;

    if (f == NULL) return;
    free(f->items);
    ghp_safetensors_close(f->file);
    free(f);
}

static enum ghp_status open_file(const char *path, void **file)
{
    enum ghp_status status = GHP_OK;
    struct shown *f = ghp_alloc(1, sizeof *f);
    bool is_checkpoint;

    *file = NULL;
    if (f == NULL) return GHP_NO_MEMORY();
    GHP_TRY_GOTO(status, ghp_safetensors_open(path, &f->file), fail);
    f->items = ghp_alloc((size_t)ghp_safetensors_count(f->file) + 1, sizeof *f->items);
    if (f->items == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    is_checkpoint = ghp_checkpoint_is_one(f->file);
    for (int i = 0; i < ghp_safetensors_count(f->file); i++) {
        const struct ghp_safetensor *t = ghp_safetensors_item(f->file, i);

        if (is_shown(t, is_checkpoint)) f->items[f->n++] = t;
    }
    *file = f;
    return GHP_OK;
fail:
    close_file(f);
    return status;
}

static int count_items(const void *file)
{
    const struct shown *f = file;

    return f->n;
}

static struct ghp_init_tensor item_of(const void *file, int i)
{
    const struct shown *f = file;
    struct ghp_init_tensor item = {.name = f->items[i]->name, .n_dims = f->items[i]->n_dims};

    memcpy(item.dims, f->items[i]->dims, sizeof item.dims);
    return item;
}

static enum ghp_status read_item(void *file, int i, int element_bytes, void *values)
{
    struct shown *f = file;

    return ghp_safetensors_read(f->file, f->items[i], element_bytes, values);
}

static enum ghp_status orientation(const char *path, const void *file,
                                   const struct ghp_model *model, bool *oriented)
{
    const struct shown *f = file;

    return ghp_file_orientation(path, f->file, model, oriented);
}

const struct ghp_init_ops ghp_init_safetensors = {.text = "FILE.safetensors",
                                                  .names = is_named,
                                                  .open = open_file,
                                                  .close = close_file,
                                                  .count = count_items,
                                                  .item = item_of,
                                                  .orientation = orientation,
                                                  .read = read_item};
