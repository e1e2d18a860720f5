/* executor/data/fingerprint.c - see fingerprint.h. */
#include "executor/data/fingerprint.h"

#include "core/base/file.h"
#include "core/base/hash.h"
#include "executor/data/class_folders.h"
#include "executor/data/data_private.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20, MOST_FILES = 64, MOST_LABELS = 4 << 20 };

/* The i-th of `taken` samples that are spread evenly over `n`, the first and the last among them. */
static int64_t spread(int64_t i, int64_t taken, int64_t n)
{
    return taken > 1 ? (int64_t)((double)i * (double)(n - 1) / (double)(taken - 1)) : 0;
}

/* How many of `n` are looked at, of bytes_each bytes each. */
static int64_t taken_of(int64_t n, int64_t bytes_each, int64_t most)
{
    int64_t fit = bytes_each > 0 ? MOST_BYTES / bytes_each : n;

    if (fit < 2) fit = 2;
    if (fit > most) fit = most;
    return n < fit ? n : fit;
}

/* ---- samples ---- */

static int64_t number_bytes(enum ghp_number number)
{
    return number == GHP_NUMBER_BYTE ? 1 : number == GHP_NUMBER_FLOAT ? 4 : 8;
}

static uint64_t hash_pictures(const struct ghp_data *data, enum ghp_data_set set)
{
    const struct ghp_pictures *pictures = ghp_data_pictures(data, data->source[set]);
    int64_t n = data->count[set],
            bytes = data->shape.c * data->shape.h * data->shape.w * number_bytes(pictures->number),
            taken = taken_of(n, bytes, n);
    uint64_t hash = ghp_hash(&pictures->number, sizeof pictures->number, GHP_HASH_SEED);
    int f = 0;

    for (int64_t i = 0; i < taken; i++) {
        int64_t p = data->first[set] + spread(i, taken, n);

        while (p >= pictures->files[f].first + pictures->files[f].n)
            f++;
        hash = ghp_hash(pictures->files[f].pixels +
                            (p - pictures->files[f].first) * pictures->files[f].picture_bytes,
                        (size_t)bytes, hash);
    }
    return hash;
}

static enum ghp_status hash_tokens(const struct ghp_data *data, enum ghp_data_set set,
                                   uint64_t *hash)
{
    size_t positions = (size_t)data->shape.h;
    int64_t n = data->count[set], taken = taken_of(n, (int64_t)(positions * sizeof(int32_t)), n);
    int32_t *ids = ghp_alloc(2 * positions, sizeof *ids);
    enum ghp_status status = ids != NULL ? GHP_OK : GHP_NO_MEMORY();

    *hash = GHP_HASH_SEED;
    for (int64_t i = 0; i < taken && status == GHP_OK; i++) {
        int64_t sample = spread(i, taken, n);

        status = data->ops->image(data, sample, &(struct ghp_batch){.set = set}, ids);
        data->ops->labels(data, set, sample, ids + positions);
        *hash = ghp_hash(ids, 2 * positions * sizeof *ids, *hash);
    }
    free(ids);
    return status;
}

static uint64_t hash_file(const struct ghp_class_files *files, int64_t i, uint64_t hash)
{
    char path[GHP_DATA_PATH_BYTES], *bytes = NULL;
    size_t n = 0;

    ghp_class_files_path(files, i, path, sizeof path);
    if (ghp_file_read(path, &bytes, &n) != GHP_OK) n = 0;
    hash = ghp_hash(&n, sizeof n, hash);
    if (n > 0) hash = ghp_hash(bytes, n, hash);
    free(bytes);
    return hash;
}

static void hash_folder(const struct ghp_data *data, enum ghp_data_set set,
                        struct ghp_data_fingerprint *fingerprint)
{
    const struct ghp_class_files *files = data->ops->files_of(data->own, set);
    int64_t taken = taken_of(files->n, 0, MOST_FILES);

    fingerprint->names = fingerprint->samples = GHP_HASH_SEED;
    for (int64_t i = 0; i < files->n; i++) {
        const char *name = files->names + files->name[i];

        fingerprint->names = ghp_hash(name, strlen(name) + 1, fingerprint->names);
    }
    for (int64_t i = 0; i < taken; i++)
        fingerprint->samples = hash_file(files, spread(i, taken, files->n), fingerprint->samples);
}

/* ---- labels ---- */

static enum ghp_status hash_labels(struct ghp_data *data, enum ghp_data_set set, uint64_t *hash)
{
    int64_t n = data->count[set], each = data->sample_labels,
            taken = n * each > MOST_LABELS ? taken_of(n, each, MOST_LABELS / each + 1) : n;
    int32_t *labels = data->labels_of_one;

    *hash = GHP_HASH_SEED;
    for (int64_t i = 0; i < taken; i++) {
        int64_t sample = spread(i, taken, n);

        GHP_TRY(ghp_data_labels(data, set, &sample, 1, labels));
        *hash = ghp_hash(labels, (size_t)each * sizeof *labels, *hash);
    }
    return GHP_OK;
}

/* ---- all ---- */

enum ghp_status ghp_data_fingerprint_of(struct ghp_data *data, enum ghp_data_set set,
                                        struct ghp_data_fingerprint *fingerprint)
{
    *fingerprint = (struct ghp_data_fingerprint){0};
    if (data->count[set] == 0 || !ghp_data_from_files(data)) return GHP_OK;
    if (data->ops->has_tokens) return hash_tokens(data, set, &fingerprint->samples);
    if (data->ops->files_of != NULL)
        hash_folder(data, set, fingerprint);
    else
        fingerprint->samples = hash_pictures(data, set);
    return hash_labels(data, set, &fingerprint->labels);
}

uint64_t ghp_data_normalisation_hash(const struct ghp_data *data)
{
    const struct ghp_normalisation *by = &data->normalisation;
    size_t n = (size_t)data->shape.c * sizeof(double);
    uint64_t hash = ghp_hash(&by->unit, sizeof by->unit, GHP_HASH_SEED);

    if (by->mean != NULL) hash = ghp_hash(by->mean, n, hash);
    return by->deviation != NULL ? ghp_hash(by->deviation, n, hash) : hash;
}

const char *ghp_data_normalisation(const struct ghp_data *data)
{
    return data->normalisation.text != NULL ? data->normalisation.text : "none";
}

const char *ghp_data_kind(const struct ghp_data *data)
{
    return data->ops->name;
}
