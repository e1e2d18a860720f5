/* core/program/ring.h - an attention whose keys and values come in blocks: of `blocks` workers each has its positions'
 * queries, keys and values, and these go from worker to worker. No worker ever has all of them (ring attention).
 *
 * Forward: a COMPUTE of the own block, then for each other a SHIFT that brings it and a COMPUTE that adds it to the
 * output, by the logarithms of sums that a kernel saves: those of two blocks say by which factors their outputs are
 * added. Backward in the same order: with the logarithm of all blocks each COMPUTE makes the gradients of a block
 * alone. Sums of keys' and values' gradients travel with their block, and a last SHIFT brings them back. In a causal
 * attention member i computes blocks 0 to i; the price is the last member's.
 *
 * Blocks on their way lie in one buffer, the operand `ring`, of two halves: one is sent while the other is filled. What
 * a COMPUTE makes of a block lies at the start of its scratch.
 *
 * Tested   tests/executor/train/test_equality.c, tests/core/program/test_kinds.c */
#ifndef GHP_CORE_PROGRAM_RING_H
#define GHP_CORE_PROGRAM_RING_H

#include "core/program/instr.h"

enum ghp_ring_tensor { GHP_RING_KEYS, GHP_RING_VALUES, GHP_RING_DKEYS, GHP_RING_DVALUES };

/* Bytes of a block's keys, or values, or their gradients. */
int64_t ghp_ring_tensor_bytes(const struct ghp_instr *instr, enum ghp_ring_tensor tensor,
                              int element_bytes);
/* The offset of a block's tensor in the operand `ring` of its pass. */
int64_t ghp_ring_offset(const struct ghp_instr *instr, int block, enum ghp_ring_tensor tensor,
                        int element_bytes);
/* Bytes of the operand `ring`. */
int64_t ghp_ring_bytes(const struct ghp_instr *instr, int element_bytes);

/* What a COMPUTE makes of a block that is not its own: forward y and the logarithms, backward the gradients of queries,
 * keys and values. The i-th of them lies at the offset in its scratch; 0 bytes: of another COMPUTE. */
int64_t ghp_ring_block_offset(const struct ghp_instr *instr, int i, int element_bytes);
int64_t ghp_ring_block_bytes(const struct ghp_instr *instr, int element_bytes);

#endif
