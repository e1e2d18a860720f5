/* core/sharding/local.h - one operation at the shape that a worker runs it: the profiler's unit, the backend's request.
 *
 * A local operation is a layer's op with local sizes: what is measured, keyed, looked up and executed. Two layers (of
 * any models) with the same local operation share one measurement. */
#ifndef GHP_CORE_SHARDING_LOCAL_H
#define GHP_CORE_SHARDING_LOCAL_H

#include "core/sharding/split.h"

#define GHP_PASS_LIST(X)                                                                           \
    X(FORWARD, "forward")                                                                          \
    X(BACKWARD_DATA, "backward_data")                                                              \
    X(BACKWARD_WEIGHT, "backward_weight")                                                          \
    X(STATS, "stats") /* batch_norm: sums over local samples, before the forward pass */           \
    X(BACKWARD_STATS,                                                                              \
      "backward_stats") /* batch_norm: sums of dy and dy * xhat, before backward_data */

enum ghp_pass {
#define GHP_PASS_ENUM(id, text) GHP_PASS_##id,
    GHP_PASS_LIST(GHP_PASS_ENUM)
#undef GHP_PASS_ENUM
        GHP_PASS_COUNT
};

struct ghp_local {
    enum ghp_op op;
    int64_t n;       /* samples on this worker */
    int64_t c, h, w; /* local input channels (all inputs' sum for concat), height, width */
    int64_t k, p, q; /* local output channels, height, width */
    int n_inputs;    /* add, mul, concat */
    int repeat; /* batch_norm: ghost batches of n samples that it is run on one after the other; 0: 1 */
    int64_t slice[GHP_MAX_INPUTS]; /* concat: local channels of each input */
    struct ghp_window window;      /* groups are local */
    struct ghp_norm norm;
    struct ghp_activation activation;
    struct ghp_view view; /* of the local channels */
    struct ghp_border border;
};

enum { GHP_KEY_BYTES = 256 };

/* Tensors lie plain, [n][h][w][c], or in blocks of so many channels (docs/cpu.md), [n][c / 16][h][w][16]; these need
 * whole blocks. */
enum { GHP_BLOCK_CHANNELS = 16 };
bool ghp_whole_blocks(int64_t channels);

int ghp_local_repeat(const struct ghp_local *local); /* >= 1 */

struct ghp_local ghp_local_of(const struct ghp_model *model, int layer, struct ghp_split split,
                              struct ghp_problem problem);
void ghp_local_key(const struct ghp_local *local,
                   char key[GHP_KEY_BYTES]); /* e.g. "conv2d n16 c64 h32 w32 k128 ..." */
bool ghp_local_has_pass(const struct ghp_local *local, enum ghp_pass pass);

int64_t ghp_local_flops(const struct ghp_local *local,
                        enum ghp_pass pass); /* conv2d and linear: 2 per multiply-add; others 0 */
int64_t ghp_local_bytes(const struct ghp_local *local, enum ghp_pass pass,
                        int element_bytes);                /* least memory traffic */
int ghp_local_whole_inputs(const struct ghp_local *local); /* tensors of c, h, w that it reads */
int64_t
ghp_local_in_elements(const struct ghp_local *local); /* of input 0 (all inputs for concat) */
int64_t ghp_local_out_elements(const struct ghp_local *local);
int64_t
ghp_local_weight_elements(const struct ghp_local *local); /* trained scalars on this worker */
int64_t ghp_local_saved_bytes(const struct ghp_local *local,
                              int element_bytes); /* kept from forward to backward beside x, y */
/* Whether a backward pass reads the forward input. */
bool ghp_pass_reads_input(enum ghp_op op, enum ghp_pass pass);
const char *ghp_pass_name(enum ghp_pass pass);
bool ghp_pass_find(const char *name, enum ghp_pass *pass);

#endif
