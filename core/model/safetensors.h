/* core/model/safetensors.h - the safetensors file format: named tensors after a JSON header.
 *
 *     8 bytes: header length, little-endian | header: JSON, padded with spaces | tensors, one after the other
 *     {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *
 * Knows tensors, not models: executor/state/checkpoint.h says which. A writer gets the list first and the values one
 * tensor at a time, so that no more than one whole tensor is ever in memory; the file appears complete or not at all.
 *
 * A file may name its own content: "xxh3" in the metadata is the checksum, the 64-bit XXH3 hash of all of its bytes,
 * with '0' in place of the checksum's 16 digits, and "checksum" has the text xxh3. Other readers see texts of the
 * metadata.
 *
 * Source   the format's description at https://github.com/huggingface/safetensors; XXH3, at https://xxhash.com, which
 *          takes a tenth of the time of core/base/hash.h
 * Tested   tests/core/model/test_safetensors.c */
#ifndef GHP_CORE_MODEL_SAFETENSORS_H
#define GHP_CORE_MODEL_SAFETENSORS_H

#include "core/model/model.h"

/* What a reader makes of an entry's numbers. */
enum ghp_dtype {
    GHP_DTYPE_FLOAT,
    GHP_DTYPE_DOUBLE,
    GHP_DTYPE_HALF,     /* F16: IEEE binary16 */
    GHP_DTYPE_BFLOAT16, /* BF16: the upper half of a float */
    GHP_DTYPE_OTHER     /* whole numbers and the like: listed, but not read */
};

struct ghp_safetensor { /* one entry; name is borrowed by a writer, owned by a reader */
    const char *name;
    enum ghp_dtype dtype; /* set by a reader; a writer goes by element_bytes */
    int element_bytes;    /* of one number in the file; a writer: 4: F32, 8: F64 */
    int n_dims;
    int64_t dims[GHP_MAX_DIMS];
    int64_t offset, bytes; /* in the data part; set by both sides */
};

struct ghp_metadatum { /* both are texts */
    const char *key, *value;
};

/* ---- writing ---- */

struct ghp_safetensors_writer;

/* Begins a file under a temporary name. tensors: n entries, offsets are filled in; values follow in that order.
 *
 * Returns   GHP_OK; GHP_ERR_IO (folder missing or read-only); GHP_ERR_NO_MEMORY */
struct ghp_safetensors_list {
    int n;
    struct ghp_safetensor *tensors;
    int n_metadata;
    const struct ghp_metadatum *metadata;
    bool checksum; /* the file names its content */
};
enum ghp_status ghp_safetensors_begin(const char *path, const struct ghp_safetensors_list *list,
                                      struct ghp_safetensors_writer **writer);
/* The next tensor's values: exactly its bytes. */
enum ghp_status ghp_safetensors_append(struct ghp_safetensors_writer *writer, const void *values,
                                       int64_t bytes);
/* All values are there: the file is complete and on disk, but still under its temporary name. For a caller who has to
 * do something before it appears. */
enum ghp_status ghp_safetensors_sync(struct ghp_safetensors_writer *writer);
/* Makes the file appear under its name, durably: file and folder are synced. Frees the writer, also on failure. */
enum ghp_status ghp_safetensors_finish(struct ghp_safetensors_writer *writer);
/* Drops the file and frees the writer; accepts NULL. */
void ghp_safetensors_abandon(struct ghp_safetensors_writer *writer);
/* Removes the temporary files of this path that killed processes of this host left (core/base/leftover.h). */
void ghp_safetensors_clean(const char *path);

/* ---- reading ---- */

struct ghp_safetensors;

/* Reads and checks the header.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT (truncated, an unknown dtype, tensors that do not fill the data part one
 *           after the other) */
enum ghp_status ghp_safetensors_open(const char *path, struct ghp_safetensors **file);
void ghp_safetensors_close(struct ghp_safetensors *file); /* accepts NULL */
int ghp_safetensors_count(const struct ghp_safetensors *file);
const struct ghp_safetensor *ghp_safetensors_item(const struct ghp_safetensors *file, int i);
const struct ghp_safetensor *ghp_safetensors_find(const struct ghp_safetensors *file,
                                                  const char *name); /* or NULL */
const char *ghp_safetensors_metadata(const struct ghp_safetensors *file,
                                     const char *key); /* or NULL */
bool ghp_safetensors_has_checksum(const struct ghp_safetensors *file);
/* What a checksum is made by. */
uint64_t ghp_safetensors_sum(const void *bytes, size_t n);
/* Reads the whole file and compares it with its checksum; without one there is nothing to compare.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT (another content than was written); GHP_ERR_IO; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_safetensors_check(struct ghp_safetensors *file);
/* The same, and a number by which the contents of two files are told apart: the checksum, or what it would be. */
enum ghp_status ghp_safetensors_check_sum(struct ghp_safetensors *file, uint64_t *sum);
/* All values of a tensor as element_bytes (4 or 8) floating-point numbers, whatever the file has.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_INPUT (no floating-point numbers) */
enum ghp_status ghp_safetensors_read(struct ghp_safetensors *file,
                                     const struct ghp_safetensor *tensor, int element_bytes,
                                     void *values);

#endif
