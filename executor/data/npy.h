/* executor/data/npy.h - a NumPy array in a file (.npy, versions 1 to 3), mapped into memory.
 *
 *     \x93NUMPY MAJOR MINOR | length of the header, 16 bits (32 from version 2 on), little-endian | header | numbers
 *     header: {'descr': '<f4', 'fortran_order': False, 'shape': (100, 32, 32, 3), }
 *
 * Taken: little-endian integers of 1 to 8 bytes, signed or not, and floating-point numbers of 4 and 8, in C order, of 1
 * to 4 dimensions. Knows no pictures and no labels. */
#ifndef GHP_EXECUTOR_DATA_NPY_H
#define GHP_EXECUTOR_DATA_NPY_H

#include "core/base/status.h"

#include <stdbool.h>

enum { GHP_NPY_DIMENSIONS = 4 };

struct ghp_npy {
    char kind;      /* 'u' unsigned, 'i' signed, 'f' floating point */
    int item_bytes; /* 1, 2, 4 or 8 */
    int n_dims;
    int64_t dims[GHP_NPY_DIMENSIONS]; /* each >= 1 */
    int64_t n;                        /* numbers, their product */
    const unsigned char *items;       /* [n], as wide as they are, at any address */
    void *memory;                     /* the mapped file, owned */
    size_t mapped_bytes;
};

/* Maps a file and reads its header.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT naming the file (no .npy, a header of another form, shorter or longer
 *           than its header says); GHP_ERR_INPUT (numbers or an order that are not taken, no numbers)
 * Local
 * Tested    tests/executor/data/test_npy.c, tests/fuzz/fuzz_npy.c */
enum ghp_status ghp_npy_open(const char *path, struct ghp_npy *npy);
/* The same of a file that is mapped already; memory stays the caller's, and there is nothing to close. */
enum ghp_status ghp_npy_read(const char *path, void *memory, size_t bytes, struct ghp_npy *npy);
void ghp_npy_close(struct ghp_npy *npy); /* accepts a zeroed one */

/* Number i of integers.
 *
 * Returns   false if it is not in the range of int64_t */
bool ghp_npy_integer(const struct ghp_npy *npy, int64_t i, int64_t *value);

#endif
