/* core/program/kind/weights.c - weights and gradients that go to parameter servers and from them, and mixes of workers'
 * weights. A server's PUSH has at.y and its PULL has at.x[0] (core/program/lower/server.c). */
#include "core/program/program.h"

#include <math.h>

static int64_t pushed_bytes(const struct ghp_instr *instr)
{
    return instr->serves ? 0 : instr->bytes;
}

static int64_t pulled_bytes(const struct ghp_instr *instr)
{
    return instr->serves ? instr->ranks.count * instr->bytes : 0;
}

static int64_t mixed_bytes(const struct ghp_instr *instr)
{
    const struct ghp_mix_traffic *t = &instr->mix.traffic;

    return (int64_t)llround(t->out * (double)(instr->bytes + t->word_bytes));
}

const struct ghp_kind_facts ghp_kind_facts_push = {
    .name = "push",
    .purpose = "a bucket of gradients to the servers; of a server: its shard of all workers'",
    .stream = GHP_STREAM_COMM,
    .cost = GHP_COST_EXCHANGE,
    .reduces = true,
    .is_served = true,
    .sent_bytes = pushed_bytes,
    .x = GHP_LASTING_GRADIENTS,
};

const struct ghp_kind_facts ghp_kind_facts_pull = {
    .name = "pull",
    .purpose = "a bucket of weights from the servers; of a server: its shard to all workers",
    .stream = GHP_STREAM_COMM,
    .cost = GHP_COST_EXCHANGE,
    .of_updates = true,
    .is_served = true,
    .sent_bytes = pulled_bytes,
    .y = GHP_LASTING_WEIGHTS,
};

const struct ghp_kind_facts ghp_kind_facts_mix = {
    .name = "mix",
    .purpose = "all weights meet others', as the synchroniser says",
    .of_all = "all weights",
    .cost = GHP_COST_MIX,
    .waits = true,
    .of_updates = true,
    .mixes = true,
    .sent_bytes = mixed_bytes,
    .x = GHP_LASTING_GRADIENTS,
    .y = GHP_LASTING_WEIGHTS,
    .scratch = GHP_LASTING_COPIES,
};

const struct ghp_kind_facts ghp_kind_facts_carry = {
    .name = "carry",
    .purpose = "messages of mixes that are sent during the step",
    .of_all = "all weights",
    .stream = GHP_STREAM_COMM,
    .cost = GHP_COST_CARRY,
    .mixes = true,
};
