/* executor/backend/pack.h - strided copies: between a tensor with all its channels and contiguous slices of them.
 *
 * Tensors are N,H,W,C with channels innermost, so a channel slice is one block of every pixel's row. Either side may
 * lie in blocks of 16 channels instead, [n][c / 16][h][w][16] (docs/explanation/cpu.md): then a copy turns one format
 * into the other on its way, in one pass over memory, or, if both lie so, slices are as long as a sample's. Copies
 * only; who sends what to whom is executor/engine/reshard.h. */
#ifndef GHP_EXECUTOR_BACKEND_PACK_H
#define GHP_EXECUTOR_BACKEND_PACK_H

#include <stdbool.h>
#include <stdint.h>

struct ghp_pack {        /* rows of blocks */
    int64_t rows;        /* samples x pixels */
    int64_t block_bytes; /* channels of one slice x element size */
    int parts;           /* slices in a whole row */
    /* of a whole row; 0: parts * block_bytes. Less: the last slices end in zeros, which the whole does not have */
    int64_t row_bytes;
    /* which sides lie in blocks of 16 channels: of the whole, or of a slice, there are whole blocks */
    bool whole_nchw16c, part_nchw16c;
    int64_t pixels;     /* of a sample, rows is a multiple; read if a side is blocked */
    int64_t lane_bytes; /* 16 channels x element size; read if one is */
};

/* part = slice `index` of every row of `whole`; neither may overlap the other.
 *
 * whole   [rows][parts][block];  blocked [rows / pixels][parts][block / lane][pixels][lane]
 * part    [rows][block];         blocked [rows / pixels][block / lane][pixels][lane]
 *
 * Local
 * Tested    tests/executor/backend/test_pack.c */
void ghp_pack_take(struct ghp_pack pack, const void *whole, int index, void *part);

/* The reverse: slice `index` of every row of `whole` = part. */
void ghp_pack_put(struct ghp_pack pack, const void *part, int index, void *whole);

/* Bytes of a whole row, and of slice `index` those that are in it. */
int64_t ghp_pack_row(struct ghp_pack pack);
int64_t ghp_pack_valid(struct ghp_pack pack, int index);

/* All slices, one after the other: split whole -> [parts] of part, and join back. */
void ghp_pack_split(struct ghp_pack pack, const void *whole, void *parts);
void ghp_pack_join(struct ghp_pack pack, const void *parts, void *whole);

#endif
