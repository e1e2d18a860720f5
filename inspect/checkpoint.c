/* inspect/checkpoint.c - see inspect.h: what a training left on disk, and whether training can continue from it.
 *
 * Reads the file's own words (docs/reference/formats.md, ghp.checkpoint/1); values are read for the checksum, and for
 * whether they are finite. */
#include "inspect/inspect.h"

#include "core/base/checkpoint_name.h"
#include "core/base/file.h"
#include "core/base/finite.h"
#include "core/model/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PATH_BYTES = GHP_CHECKPOINT_PATH_BYTES,
    MESSAGE_BYTES = 1024,
    DIMS_BYTES = 128,
    STATE_BYTES = 1024
};

/* Whether there is one of this generation, and its path. */
static bool has_file(const char *folder, int generation, char path[PATH_BYTES])
{
    return ghp_checkpoint_path(folder, (enum ghp_checkpoint_generation)generation, path) &&
           access(path, F_OK) == 0;
}

bool ghp_inspect_names_checkpoint(const char *path)
{
    static const char ending[] = ".safetensors";
    size_t n = strlen(path), m = sizeof ending - 1;
    char file[PATH_BYTES];

    if (!ghp_file_is_folder(path)) return n > m && strcmp(path + n - m, ending) == 0;
    for (int i = 0; i < GHP_CHECKPOINT_GENERATIONS; i++)
        if (has_file(path, i, file)) return true;
    return false;
}

/* Header and, if there is one, checksum. *file is closed by the caller, also after a failure. */
static enum ghp_status open_checked(const char *path, struct ghp_safetensors **file)
{
    const char *format;

    GHP_TRY(ghp_safetensors_open(path, file));
    format = ghp_safetensors_metadata(*file, "format");
    if (format == NULL || strcmp(format, "ghp.checkpoint/1") != 0)
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' is not a checkpoint of ghp-run; give one, or use its weights with "
                        "ghp-run --init",
                        path);
    return ghp_safetensors_check(*file);
}

static const char *word_of(const struct ghp_safetensors *file, const char *key, const char *without)
{
    const char *text = ghp_safetensors_metadata(file, key);

    return text != NULL ? text : without;
}

static int64_t bytes_of(const struct ghp_safetensors *file)
{
    int64_t sum = 0;

    for (int i = 0; i < ghp_safetensors_count(file); i++)
        sum += ghp_safetensors_item(file, i)->bytes;
    return sum;
}

/* How many tensors have a number that is not finite, and the name of the first; tensors of other kinds of numbers, or
 * that cannot be read, are not counted. */
static int count_not_finite(struct ghp_safetensors *file, const char **first)
{
    int count = 0;

    for (int i = 0; i < ghp_safetensors_count(file); i++) {
        const struct ghp_safetensor *t = ghp_safetensors_item(file, i);
        int64_t n = 1;
        void *values;

        for (int d = 0; d < t->n_dims; d++)
            n *= t->dims[d];
        values = ghp_alloc((size_t)n, sizeof(double));
        if (values != NULL && ghp_safetensors_read(file, t, sizeof(double), values) == GHP_OK &&
            !ghp_are_finite(values, n, sizeof(double)) && count++ == 0)
            *first = t->name;
        free(values);
    }
    return count;
}

/* The state of a complete file. */
static const char *state_of(struct ghp_safetensors *file, char text[STATE_BYTES])
{
    const char *first = NULL, *state = ghp_safetensors_has_checksum(file)
                                           ? "whole: its checksum holds"
                                           : "readable; it has no checksum";
    int count = count_not_finite(file, &first);

    snprintf(text, STATE_BYTES, "%s", state);
    if (count > 0)
        snprintf(text, STATE_BYTES, "%s; not finite: %d of %d tensors, the first '%s'", state,
                 count, ghp_safetensors_count(file), first);
    return text;
}

/* A row of the table of files. why: NULL, or what is wrong with it. */
static void put_file(struct ghp_sheet *sheet, const char *path, struct ghp_safetensors *file,
                     const char *why)
{
    bool whole = why == NULL;
    char state[STATE_BYTES];

    ghp_sheet_row(sheet);
    ghp_sheet_text(sheet, path);
    ghp_sheet_text(sheet, whole ? word_of(file, "step", "?") : NULL);
    ghp_sheet_text(sheet, whole ? word_of(file, "optimizer", "sgd") : NULL);
    ghp_sheet_int(sheet, whole ? ghp_safetensors_count(file) : 0);
    ghp_sheet_int(sheet, whole ? bytes_of(file) : 0);
    ghp_sheet_text(sheet, whole ? state_of(file, state) : why);
}

static const char *type_of(const struct ghp_safetensor *t)
{
    switch (t->dtype) {
    case GHP_DTYPE_FLOAT: return "float";
    case GHP_DTYPE_DOUBLE: return "double";
    case GHP_DTYPE_HALF: return "half";
    case GHP_DTYPE_BFLOAT16: return "bf16";
    default: return "other";
    }
}

static void put_tensors(struct ghp_display *report, const char *path,
                        const struct ghp_safetensors *file)
{
    static const struct ghp_column columns[] = {{"tensor", "tensor", "", 't', 0, 0},
                                                {"dimensions", "dimensions", "", 't', 0, 0},
                                                {"type", "type", "", 't', 0, 0},
                                                {"bytes", "size", "MiB", 'b', 1.0 / (1 << 20), 3},
                                                {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "tensors", columns);
    const char *sync = ghp_safetensors_metadata(file, "sync");
    const char *scaling = ghp_safetensors_metadata(file, "lr_scaling"); /* its name, then numbers */

    ghp_sheet_note(sheet, "%s: model '%s' after %s steps, seed %s, batches of %s from %s samples",
                   path, word_of(file, "model", "?"), word_of(file, "step", "?"),
                   word_of(file, "seed", "?"), word_of(file, "global_batch", "?"),
                   word_of(file, "samples", "?"));
    if (sync != NULL)
        ghp_sheet_note(sheet, "workers' weights differ: it continues only with %s on %s workers",
                       sync, word_of(file, "workers", "?"));
    else if (scaling != NULL)
        ghp_sheet_note(sheet,
                       "it continues under any plan of this model, this optimizer and --lr-scaling "
                       "%.*s",
                       (int)strcspn(scaling, " "), scaling);
    else
        ghp_sheet_note(sheet, "it continues under any plan of this model and this optimizer");
    if (ghp_safetensors_metadata(file, "evaluation") != NULL)
        ghp_sheet_note(sheet, "the evaluation after these steps is due");
    for (int i = 0; i < ghp_safetensors_count(file); i++) {
        const struct ghp_safetensor *t = ghp_safetensors_item(file, i);
        char dims[DIMS_BYTES] = "";
        size_t n = 0;

        for (int d = 0; d < t->n_dims && n < sizeof dims; d++)
            n += (size_t)snprintf(dims + n, sizeof dims - n, "%s%" PRId64, d > 0 ? "x" : "",
                                  t->dims[d]);
        ghp_sheet_row(sheet);
        ghp_sheet_text(sheet, t->name);
        ghp_sheet_text(sheet, dims);
        ghp_sheet_text(sheet, type_of(t));
        ghp_sheet_int(sheet, t->bytes);
    }
    ghp_display_sheet(report, sheet);
}

static void put_values(struct ghp_display *report, const struct ghp_safetensors *file)
{
    ghp_display_text(report, "model", word_of(file, "model", "?"));
    ghp_display_text(report, "optimizer", word_of(file, "optimizer", "sgd"));
    ghp_display_int(report, "step", strtoll(word_of(file, "step", "0"), NULL, 10));
    ghp_display_text(report, "seed", word_of(file, "seed", "?"));
    ghp_display_int(report, "global_batch", strtoll(word_of(file, "global_batch", "0"), NULL, 10));
    ghp_display_int(report, "samples", strtoll(word_of(file, "samples", "0"), NULL, 10));
    ghp_display_int(report, "bytes", bytes_of(file));
}

/* The files in turn; the first that is whole is shown. *why: the first's failure. */
static enum ghp_status show_files(struct ghp_display *report, struct ghp_sheet *sheet,
                                  char files[GHP_CHECKPOINT_GENERATIONS][PATH_BYTES], int n,
                                  char why[MESSAGE_BYTES])
{
    struct ghp_safetensors *shown = NULL;
    enum ghp_status first = GHP_OK;
    int which = 0;

    for (int i = 0; i < n; i++) {
        struct ghp_safetensors *file = NULL;
        enum ghp_status status = open_checked(files[i], &file);

        put_file(sheet, files[i], file, status != GHP_OK ? ghp_status_message() : NULL);
        if (status != GHP_OK && first == GHP_OK) {
            first = status;
            snprintf(why, MESSAGE_BYTES, "%s", ghp_status_message());
        }
        if (status == GHP_OK && shown == NULL) {
            shown = file;
            which = i;
        } else {
            ghp_safetensors_close(file);
        }
    }
    ghp_display_sheet(report, sheet);
    if (shown == NULL) return GHP_FAIL(first, "%s", why);
    put_values(report, shown);
    put_tensors(report, files[which], shown);
    ghp_safetensors_close(shown);
    return GHP_OK;
}

enum ghp_status ghp_inspect_checkpoint(struct ghp_display *report, const char *path)
{
    static const struct ghp_column columns[] = {{"file", "file", "", 't', 0, 0},
                                                {"step", "steps", "", 't', 0, 0},
                                                {"optimizer", "optimizer", "", 't', 0, 0},
                                                {"tensors", "tensors", "", 'i', 0, 0},
                                                {"bytes", "size", "MiB", 'b', 1.0 / (1 << 20), 3},
                                                {"state", "state", "", 't', 0, 0},
                                                {NULL, NULL, NULL, 0, 0, 0}};
    char files[GHP_CHECKPOINT_GENERATIONS][PATH_BYTES], why[MESSAGE_BYTES] = "";
    struct ghp_sheet *sheet;
    int n = 0;

    if (ghp_file_is_folder(path)) {
        for (int i = 0; i < GHP_CHECKPOINT_GENERATIONS; i++)
            n += has_file(path, i, files[n]);
    } else if (strlen(path) < PATH_BYTES) {
        memcpy(files[n++], path, strlen(path) + 1);
    }
    if (n == 0)
        return GHP_FAIL(GHP_ERR_IO,
                        "there is no checkpoint in '%s'; name a folder of ghp-run "
                        "--checkpoint, or a file in it",
                        path);
    sheet = ghp_sheet_open(report, "files", columns);
    return show_files(report, sheet, files, n, why);
}
