/* core/model/attention.h - what a query sees of which keys, on processors and GPUs alike. */
#ifndef GHP_CORE_MODEL_ATTENTION_H
#define GHP_CORE_MODEL_ATTENTION_H

#include "core/model/op.h"

#include <math.h>

/* What products of queries and keys are multiplied by. */
static inline double ghp_attention_scale(const struct ghp_heads *heads)
{
    return heads->scale > 0 ? heads->scale : 1.0 / sqrt((double)heads->size);
}

/* Positions of keys and values; the sequence's position of the first query, of kernels that get `first_position`. */
static inline int64_t ghp_attention_keys(const struct ghp_local *local)
{
    return local->keys > 0 ? local->keys : local->h;
}
static inline int64_t ghp_attention_offset(const struct ghp_local *local, int64_t first_position)
{
    return local->keys > 0 ? first_position : 0;
}

/* The first key that a position sees. */
static inline int64_t ghp_attention_first(const struct ghp_heads *heads, int64_t position)
{
    return heads->window > 0 && position >= heads->window ? position + 1 - heads->window : 0;
}

/* The number, among a sample's random numbers, of the weight of key 0 for a query: its head among those of all workers,
 * its position in the sequence. Those of the other keys follow. */
static inline int64_t ghp_attention_weight(int64_t keys, int64_t head, int64_t position)
{
    return (head * keys + position) * keys;
}

/* Whether it reads token ids, at.x[3] of all positions of keys. */
static inline bool ghp_attention_has_ids(const struct ghp_local *local)
{
    return local->n_inputs > 3;
}

/* The document of each of n positions, counted from 0; -1 of padding. Those of one document see each other, and padding
 * neither sees nor is seen. */
static inline void ghp_attention_documents(const struct ghp_heads *heads, const int32_t *ids,
                                           int64_t n, int32_t *documents)
{
    int32_t document = 0;

    for (int64_t i = 0; i < n; i++) {
        documents[i] = ids[i] == heads->pad_token ? -1 : document;
        document += ids[i] == heads->end_token;
    }
}

#endif
