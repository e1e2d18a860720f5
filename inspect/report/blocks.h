/* inspect/report/blocks.h - the network folded into blocks, and where each block stands in a drawing.
 *
 * A layer joins the block of the layer before it if that is its only input, feeds nothing else and is split alike;
 * conv2d, linear, the loss and what joins several tensors begin blocks. Blocks stand in ranks (the longest way from
 * the input) and lanes (side by side within a rank); ranks are folded into columns, read like a newspaper's.
 *
 * Tested  tests/inspect/report/test_report.c */
#ifndef GHP_INSPECT_REPORT_BLOCKS_H
#define GHP_INSPECT_REPORT_BLOCKS_H

#include "core/plan/plan.h"

struct ghp_block {
    int first, last; /* its layers' ends; of_layer tells the members */
    int rank, lane;
    int column;
};

struct ghp_wire {  /* a tensor from one block to another */
    int from, to;  /* blocks */
    int edge;      /* of the model */
    int lane;      /* the lane it passes through on its way over other ranks; -1: none is free */
    int left_lane; /* then the lane on whose right it passes, the last one if it changes columns */
    int track;     /* and its track there; else -1 */
};

struct ghp_blocks {
    int n, n_links, n_ranks, n_columns;
    struct ghp_block *blocks;
    struct ghp_wire *links;
    int *of_layer;       /* block of each layer */
    int *first_rank;     /* of each column, n_columns + 1 entries, the last is n_ranks */
    int *lanes, *tracks; /* of each column */
};

/* Folds a plan's network into blocks, in ranks and lanes, one column. */
enum ghp_status ghp_blocks_init(const struct ghp_plan *plan, struct ghp_blocks *blocks);

/* Folds the ranks into at most `columns` columns, broken where the fewest tensors cross. */
void ghp_blocks_fold(struct ghp_blocks *blocks, int columns);

void ghp_blocks_release(struct ghp_blocks *blocks); /* accepts a zeroed one */

#endif
