/* core/sharding/local.h - one operation at the shape that a worker runs it: the profiler's unit, the backend's request.
 *
 * A local operation is a layer's op with local sizes: what is measured, keyed, looked up and executed. Two layers (of
 * any models) with the same local operation share one measurement. */
#ifndef GHP_CORE_SHARDING_LOCAL_H
#define GHP_CORE_SHARDING_LOCAL_H

#include "core/sharding/split.h"

enum { GHP_ALIGN_BYTES = 64 }; /* where tensors begin in memory */
/* Rounded up to GHP_ALIGN_BYTES. */
static inline int64_t ghp_align(int64_t bytes)
{
    return (bytes + GHP_ALIGN_BYTES - 1) / GHP_ALIGN_BYTES * GHP_ALIGN_BYTES;
}

/* Tensors lie plain, [n][h][w][c], or in blocks of GHP_BLOCK_CHANNELS channels, [n][c / 16][h][w][16]; the channels
 * must fill whole blocks (docs/explanation/cpu.md). */
enum { GHP_BLOCK_CHANNELS = 16 };
bool ghp_whole_blocks(int64_t channels);

int ghp_local_repeat(const struct ghp_local *local); /* >= 1 */

struct ghp_local ghp_local_of(const struct ghp_model *model, int layer, struct ghp_split split,
                              struct ghp_problem problem);
void ghp_local_key(const struct ghp_local *local,
                   char key[GHP_KEY_BYTES]); /* e.g. "conv2d n16 c64 h32 w32 k128 ..." */
/* Whether a kernel of one is a kernel of the other. Keys leave out what does not change the time. */
bool ghp_local_equal(const struct ghp_local *a, const struct ghp_local *b);

int64_t ghp_local_flops(const struct ghp_local *local,
                        enum ghp_pass pass); /* of matrix products: 2 per multiply-add */
int64_t ghp_local_bytes(const struct ghp_local *local, enum ghp_pass pass,
                        int element_bytes);                /* least memory traffic */
int ghp_local_whole_inputs(const struct ghp_local *local); /* tensors of c, h, w that it reads */
int64_t
ghp_local_in_elements(const struct ghp_local *local); /* of input 0 (all inputs for concat) */
int64_t ghp_local_out_elements(const struct ghp_local *local);
/* kept from forward to backward, other than x and y */
int64_t ghp_local_saved_bytes(const struct ghp_local *local, int element_bytes);
/* The offset of part `part` in it. */
int64_t ghp_local_saved_offset(const struct ghp_local *local, int part, int element_bytes);
/* Whether it has the pass: a loss that is not divided does not have STATS. */
bool ghp_local_has_pass(const struct ghp_local *local, enum ghp_pass pass);
/* Bytes of what workers reduce between two passes. */
int64_t ghp_local_stats_bytes(const struct ghp_local *local);
const char *ghp_pass_name(enum ghp_pass pass);

#endif
