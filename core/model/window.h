/* core/model/window.h - what conv2d and the pools share: a window that moves over rows and columns.
 *
 * Tested  tests/core/model/test_model.c */
#ifndef GHP_CORE_MODEL_WINDOW_H
#define GHP_CORE_MODEL_WINDOW_H

#include "core/model/attributes.h"
#include "core/model/op.h"

/* Rows of a table of attributes. The stride of a pool is its kernel unless said otherwise. */
#define GHP_WINDOW_AT(field) offsetof(struct ghp_layer, window.field)
#define GHP_WINDOW_KERNEL                                                                          \
    {                                                                                              \
        .key = "kernel", .kind = GHP_ATTRIBUTE_SIZES, .required = true, .least = 1,                \
        .most = GHP_MODEL_SIZE, .at = {                                                            \
            GHP_WINDOW_AT(r),                                                                      \
            GHP_WINDOW_AT(s)                                                                       \
        }                                                                                          \
    }
#define GHP_WINDOW_STRIDE                                                                          \
    .key = "stride", .kind = GHP_ATTRIBUTE_SIZES, .least = 1, .most = GHP_MODEL_SIZE,              \
    .at = {GHP_WINDOW_AT(stride_h), GHP_WINDOW_AT(stride_w)}
#define GHP_WINDOW_PAD                                                                             \
    {                                                                                              \
        .key = "pad", .kind = GHP_ATTRIBUTE_SIZES, .most = GHP_MODEL_SIZE, .at = {                 \
            GHP_WINDOW_AT(pad_top),                                                                \
            GHP_WINDOW_AT(pad_left),                                                               \
            GHP_WINDOW_AT(pad_bottom),                                                             \
            GHP_WINDOW_AT(pad_right)                                                               \
        }                                                                                          \
    }
#define GHP_WINDOW_DILATION                                                                        \
    {                                                                                              \
        .key = "dilation", .kind = GHP_ATTRIBUTE_SIZES, .least = 1, .most = GHP_MODEL_SIZE,        \
        .usual = 1, .at = {                                                                        \
            GHP_WINDOW_AT(dilation_h),                                                             \
            GHP_WINDOW_AT(dilation_w)                                                              \
        }                                                                                          \
    }
extern const struct ghp_attribute ghp_window_convolution[]; /* of a convolution, all */

/* Whether the groups divide input and output channels: GHP_OK; GHP_ERR_INPUT. */
enum ghp_status ghp_window_check_groups(const struct ghp_layer *layer);

/* out.h and out.w from the input and the window.
 *
 * touches   whether each window must see at least one pixel that is not padding
 *
 * Returns   GHP_OK; GHP_ERR_INPUT */
enum ghp_status ghp_window_shape(struct ghp_layer *layer, bool touches);

/* Enlarges the padding at the end of an axis so that a pool's last, incomplete window counts too (if it starts inside).
 *
 * reach   pixels that a window covers, with dilation */
void ghp_window_ceil(int64_t size, int64_t pad, int64_t reach, int64_t stride, int64_t *pad_after);

/* Writes the window for a key. That of a pool includes its dilation if it has one. */
void ghp_window_key(const struct ghp_window *window, char *text, size_t n);
void ghp_window_pool_key(const struct ghp_local *local, char *text, size_t n);

#endif
