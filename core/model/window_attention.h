/* core/model/window_attention.h - which keys of its window a query sees, and where the table has their numbers: on
 * processors and GPUs alike. */
#ifndef GHP_CORE_MODEL_WINDOW_ATTENTION_H
#define GHP_CORE_MODEL_WINDOW_ATTENTION_H

#include "core/model/op.h"

enum { GHP_WINDOW_MOST = 32 }; /* pixels on a side */

/* Places of a key relative to its query: rows of the table. */
static inline int64_t ghp_window_offsets(const struct ghp_tiles *tiles)
{
    return (2 * tiles->h - 1) * (2 * tiles->w - 1);
}

/* The table's row of a query and a key, which are counted within their window. */
static inline int64_t ghp_window_offset(const struct ghp_tiles *tiles, int64_t query, int64_t key)
{
    int64_t down = query / tiles->w - key / tiles->w + tiles->h - 1;
    int64_t right = query % tiles->w - key % tiles->w + tiles->w - 1;

    return down * (2 * tiles->w - 1) + right;
}

/* Whether it reads a table of each sample, at.x[3]: [offset][head], to be added to the learned one. */
static inline bool ghp_window_has_table(const struct ghp_local *local)
{
    return local->n_inputs > 3;
}

/* Elements of an input if it is such a table, of all samples; else 0. */
static inline int64_t ghp_window_table_elements(const struct ghp_local *local, int input)
{
    return local->op == GHP_OP_WINDOW_ATTENTION && input == 3
               ? local->n * ghp_window_offsets(&local->tiles) * local->heads.n
               : 0;
}

/* Whether a window, one of `windows`, has rows or columns of both ends of a rolled image. */
static inline bool ghp_window_is_last_row(const struct ghp_tiles *tiles, int64_t window,
                                          int64_t windows)
{
    return tiles->shift_h > 0 && window / tiles->across == windows / tiles->across - 1;
}

static inline bool ghp_window_is_last_column(const struct ghp_tiles *tiles, int64_t window)
{
    return tiles->shift_w > 0 && window % tiles->across == tiles->across - 1;
}

/* Whether the query sees the key of this window. */
static inline bool ghp_window_sees(const struct ghp_tiles *tiles, int64_t window, int64_t windows,
                                   int64_t query, int64_t key)
{
    int64_t seam_h = tiles->h - tiles->shift_h, seam_w = tiles->w - tiles->shift_w;
    bool down = (query / tiles->w < seam_h) == (key / tiles->w < seam_h);
    bool right = (query % tiles->w < seam_w) == (key % tiles->w < seam_w);

    return (down || !ghp_window_is_last_row(tiles, window, windows)) &&
           (right || !ghp_window_is_last_column(tiles, window));
}

#endif
