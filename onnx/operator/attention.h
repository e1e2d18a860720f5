/* onnx/operator/attention.h - what an attention node, and one that is written out, have in common. */
#ifndef GHP_ONNX_OPERATOR_ATTENTION_H
#define GHP_ONNX_OPERATOR_ATTENTION_H

#include "onnx/operator/bias.h"

struct ghp_onnx_heads { /* runs of a sequence's channels */
    struct ghp_onnx_channels channels;
    int64_t n, positions;
    int64_t windows; /* that the positions are of each; 1: they are the sequence's */
    int64_t repeats; /* how many times each is repeated, one after another */
};

/* Reads an array as heads. It has the axes batch, head, position and channel of a head, or three axes and `named`
 * heads.
 *
 * what     for messages, such as "input 1"
 *
 * Returns  GHP_OK; GHP_ERR_INPUT */
enum ghp_status ghp_onnx_heads_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  const struct ghp_onnx_array *x, int64_t named, const char *what,
                                  struct ghp_onnx_heads *heads);

enum ghp_onnx_mask {
    GHP_ONNX_MASK_KEEPS, /* true is seen */
    GHP_ONNX_MASK_HIDES, /* true is hidden */
    GHP_ONNX_MASK_ADDED, /* 0 is seen, -10000 and less hidden */
    GHP_ONNX_MASK_TAKEN  /* the same, subtracted */
};

/* Reads a constant mask: *causal if each position sees itself and those before it, not if it sees all.
 *
 * sides    queries, keys
 *
 * Returns  GHP_OK; GHP_ERR_INPUT (any other mask) */
enum ghp_status ghp_onnx_mask_read(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   const struct ghp_onnx_array *mask, enum ghp_onnx_mask kind,
                                   const int64_t sides[2], bool *causal);

/* Whether a constant that is added to scores has been looked up in a table by the places of keys relative to their
 * queries. */
bool ghp_onnx_windows_is_bias(struct ghp_onnx_import *im, const struct ghp_onnx_array *c);
/* Adds it to the scores: finds the table and the window's sides.
 *
 * Returns  GHP_OK; GHP_ERR_INPUT (looked up otherwise than Swin does) */
enum ghp_status ghp_onnx_windows_bias(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      const struct ghp_onnx_array *c,
                                      struct ghp_onnx_scores *scores);
/* Whether scores are of windows, and a constant has a mask for each of them. */
bool ghp_onnx_windows_is_mask(const struct ghp_onnx_scores *scores, const struct ghp_onnx_array *c);
/* Adds the mask to the scores. */
enum ghp_status ghp_onnx_windows_mask(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      const struct ghp_onnx_array *c,
                                      struct ghp_onnx_scores *scores);

struct ghp_onnx_attended {
    struct ghp_onnx_array x[3]; /* queries, keys, values */
    int64_t named[3];           /* heads of each that has three axes */
    double scale;               /* 0: 1 over the root of a head's channels */
    double softcap;             /* 0: scores are not capped */
    double dropout;             /* of weights; 0: all count */
    bool causal;
    /* as scores have them */
    struct ghp_onnx_array table;
    struct ghp_tiles tiles;
    const double *hidden;
    int computed_table, factors;
    int64_t first_factor, factor_step;
};

/* Makes the attention layer of a node and defines output 0, with the axes of the queries. */
enum ghp_status ghp_onnx_attend(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                const struct ghp_onnx_attended *of);

#endif
