/* core/program/ring.c - see program/ring.h. */
#include "core/program/ring.h"

/* One input's positions here. */
static int64_t input_bytes(const struct ghp_instr *instr, int input, int element_bytes)
{
    const struct ghp_local *local = &instr->local;

    return local->n * local->h * local->slice[input] * element_bytes;
}

int64_t ghp_ring_tensor_bytes(const struct ghp_instr *instr, enum ghp_ring_tensor tensor,
                              int element_bytes)
{
    bool keys = tensor == GHP_RING_KEYS || tensor == GHP_RING_DKEYS;

    return input_bytes(instr, keys ? 1 : 2, element_bytes);
}

/* Keys and values; backward their gradients too. */
static int64_t half_bytes(const struct ghp_instr *instr, int element_bytes)
{
    int64_t both = ghp_align(input_bytes(instr, 1, element_bytes)) +
                   ghp_align(input_bytes(instr, 2, element_bytes));

    return instr->backward ? 2 * both : both;
}

int64_t ghp_ring_offset(const struct ghp_instr *instr, int block, enum ghp_ring_tensor tensor,
                        int element_bytes)
{
    /* forward the first block that comes is number 1, and nothing of the own one is there */
    int64_t offset = (instr->backward ? block : block - 1) % 2 * half_bytes(instr, element_bytes);

    for (int before = 0; before < (int)tensor; before++)
        offset +=
            ghp_align(ghp_ring_tensor_bytes(instr, (enum ghp_ring_tensor)before, element_bytes));
    return offset;
}

int64_t ghp_ring_bytes(const struct ghp_instr *instr, int element_bytes)
{
    bool one = !instr->backward && instr->blocks == 2;

    return (one ? 1 : 2) * half_bytes(instr, element_bytes);
}

/* Bytes of the i-th tensor that a COMPUTE makes of a block; 0: there is none. */
static int64_t made_bytes(const struct ghp_instr *instr, int i, int element_bytes)
{
    if (instr->backward) return i < 3 ? input_bytes(instr, i, element_bytes) : 0;
    if (i == 0) return ghp_local_out_elements(&instr->local) * element_bytes;
    return i == 1 ? ghp_local_saved_bytes(&instr->local, element_bytes) : 0;
}

int64_t ghp_ring_block_offset(const struct ghp_instr *instr, int i, int element_bytes)
{
    int64_t offset = 0;

    for (int before = 0; before < i; before++)
        offset += ghp_align(made_bytes(instr, before, element_bytes));
    return offset;
}

int64_t ghp_ring_block_bytes(const struct ghp_instr *instr, int element_bytes)
{
    return instr->block > 0 ? ghp_ring_block_offset(instr, 3, element_bytes) : 0;
}
