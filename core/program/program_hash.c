/* core/program/program_hash.c - names the list of instructions: two lists of one hash do the same in the same order.
 *
 * Hashed are whole numbers, each as eight bytes from the lowest on, so that every machine comes to the same hash. Left
 * out is where buffers lie and how much scratch there is, which the backend at hand decides. */
#include "core/program/program.h"

#include "core/base/hash.h"

#include <string.h>

static uint64_t add(uint64_t hash, int64_t value)
{
    unsigned char bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)value >> (8 * i) & 0xff);
    return ghp_hash(bytes, sizeof bytes, hash);
}

static uint64_t add_all(uint64_t hash, const int64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = add(hash, values[i]);
    return hash;
}

static uint64_t add_local(uint64_t hash, const struct ghp_instr *instr)
{
    const struct ghp_local *local = &instr->local;
    const int64_t shape[] = {local->n, local->c, local->h, local->w};
    char key[GHP_KEY_BYTES];

    if (instr->kind != GHP_INSTR_COMPUTE) return add_all(hash, shape, sizeof shape / sizeof *shape);
    ghp_local_key(local, key);
    hash = ghp_hash(key, strlen(key), hash);
    return add(add(hash, instr->pass), ghp_local_repeat(local));
}

/* Adds a transfer's stages and layouts; its size is in the instruction. */
static uint64_t add_transfer(uint64_t hash, const struct ghp_transfer *transfer)
{
    const int64_t values[] = {transfer->from_stage,   transfer->to_stage, transfer->from.kind,
                              transfer->from.tp_size, transfer->to.kind,  transfer->to.tp_size};

    return add_all(hash, values, sizeof values / sizeof *values);
}

static uint64_t add_step(uint64_t hash, const struct ghp_reshard_step *step)
{
    const int64_t values[] = {step->op,      step->from.kind,  step->from.tp_size,
                              step->to.kind, step->to.tp_size, step->tp_size};

    return add_all(hash, values, sizeof values / sizeof *values);
}

static uint64_t add_instr(uint64_t hash, const struct ghp_instr *instr)
{
    const int64_t values[] = {instr->kind,        instr->stream,      instr->point,
                              instr->layer,       instr->edge,        instr->micro,
                              instr->backward,    instr->recompute,   instr->nchw16c.requested,
                              instr->nchw16c.x,   instr->nchw16c.y,   instr->comm,
                              instr->ranks.first, instr->ranks.count, instr->ranks.stride,
                              instr->bytes,       instr->copy_bytes,  instr->stat_count,
                              instr->bucket,      instr->wait,        instr->after};

    hash = add_all(hash, values, sizeof values / sizeof *values);
    hash = add_local(hash, instr);
    if (instr->kind == GHP_INSTR_RESHARD) return add_step(hash, &instr->step);
    if (ghp_instr_mixes(instr)) return add(add(hash, instr->servers), (int64_t)instr->mix.rule);
    if (instr->period > 0) return add(hash, instr->period);
    if (ghp_instr_is_served(instr)) return add(add(hash, instr->servers), instr->serves);
    return instr->stream == GHP_STREAM_TRANSFER ? add_transfer(hash, &instr->transfer) : hash;
}

uint64_t ghp_program_hash(const struct ghp_program *program, uint64_t seed)
{
    const int64_t values[] = {
        program->rank,          program->problem.workers, program->problem.global_batch,
        program->element_bytes, program->n_points,        program->n_instrs};
    uint64_t hash = add_all(seed, values, sizeof values / sizeof *values);

    for (int i = 0; i < program->n_instrs; i++)
        hash = add_instr(hash, &program->instrs[i]);
    for (int i = 0; i < program->n_buckets; i++)
        hash = add(add(hash, program->buckets[i].tp_size), program->buckets[i].bytes);
    return hash;
}
