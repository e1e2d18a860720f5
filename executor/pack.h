/* executor/pack.h - strided copies: between a tensor with all its channels and contiguous slices of them.
 *
 * Tensors are N,H,W,C with channels innermost, so a channel slice is one block of every pixel's row. Copies only;
 * who sends what to whom is executor/exchange.h. */
#ifndef GHP_EXECUTOR_PACK_H
#define GHP_EXECUTOR_PACK_H

#include <stdint.h>

struct ghp_pack {        /* rows of blocks */
    int64_t rows;        /* samples x pixels */
    int64_t block_bytes; /* channels of one slice x element size */
    int parts;           /* slices in a whole row */
};

/* part = slice `index` of every row of `whole`; neither may overlap the other.
 *
 * whole   [rows][parts][block]
 * part    [rows][block]
 *
 * Local
 * Tested    tests/executor/test_pack.c */
void ghp_pack_take(struct ghp_pack how, const void *whole, int index, void *part);

/* The reverse: slice `index` of every row of `whole` = part. */
void ghp_pack_put(struct ghp_pack how, const void *part, int index, void *whole);

/* All slices, one after the other: split [rows][parts][block] -> [parts][rows][block], and join back. */
void ghp_pack_split(struct ghp_pack how, const void *whole, void *parts);
void ghp_pack_join(struct ghp_pack how, const void *parts, void *whole);

#endif
