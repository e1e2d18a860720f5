/* core/program/instr.c - see program/instr.h: the registry of kinds, and what follows from their facts. */
#include "core/program/instr.h"

#define KIND_DECLARE(id, name) extern const struct ghp_kind_facts ghp_kind_facts_##name;
GHP_INSTR_LIST(KIND_DECLARE)
#undef KIND_DECLARE

const struct ghp_kind_facts *const ghp_kinds[GHP_INSTR_COUNT] = {
#define KIND_ENTRY(id, name) [GHP_INSTR_##id] = &ghp_kind_facts_##name,
    GHP_INSTR_LIST(KIND_ENTRY)
#undef KIND_ENTRY
};

const char *const ghp_stream_names[GHP_STREAM_COUNT + 1] = {"compute", "communication", "transfer",
                                                            NULL};

const char *ghp_instr_name(const struct ghp_instr *instr)
{
    return instr->kind == GHP_INSTR_COMPUTE ? ghp_pass_name(instr->pass) : ghp_kind_of(instr)->name;
}

const char *ghp_phase_name(enum ghp_phase phase)
{
    static const char *const names[GHP_PHASE_COUNT] = {
        "forward", "backward_data", "backward_weight", "reshard", "update", "load", "exposed"};
    return names[phase];
}

enum ghp_phase ghp_instr_phase(const struct ghp_instr *instr)
{
    const struct ghp_kind_facts *kind = ghp_kind_of(instr);

    if (kind->stream != GHP_STREAM_COMPUTE || kind->waits) return GHP_PHASE_EXPOSED;
    if (kind->phase != GHP_PHASE_COUNT) return kind->phase;
    if (instr->pass == GHP_PASS_BACKWARD_WEIGHT) return GHP_PHASE_BACKWARD_WEIGHT;
    return instr->backward ? GHP_PHASE_BACKWARD_DATA : GHP_PHASE_FORWARD;
}

double ghp_instr_speed(const struct ghp_instr *instr, double speed)
{
    return ghp_kind_of(instr)->is_local && speed > 0 ? speed : 1;
}

void ghp_instr_sum_metrics(struct ghp_instr *instr, struct ghp_ranks ranks, int period)
{
    instr->stream = ghp_kind_of(instr)->stream;
    instr->comm = ghp_kind_of(instr)->comm;
    instr->ranks = ranks;
    instr->bytes = period * GHP_METRIC_COUNT * (int64_t)sizeof(double);
    instr->period = period > 1 ? period : 0;
}

int64_t ghp_instr_sent_bytes(const struct ghp_instr *instr)
{
    int64_t p = instr->ranks.count, part;

    if (ghp_kind_of(instr)->sent_bytes != NULL) return ghp_kind_of(instr)->sent_bytes(instr);
    if (p <= 1) return 0;
    part = instr->bytes - ghp_part_of(instr->bytes, (int)p);
    switch (instr->comm) {
    case GHP_COMM_ALL_REDUCE: return 2 * part / (instr->period > 1 ? instr->period : 1);
    case GHP_COMM_ALL_GATHER:
    case GHP_COMM_REDUCE_SCATTER:
    case GHP_COMM_ALL_TO_ALL: return part;
    case GHP_COMM_SHIFT: return instr->bytes;
    default: return 0;
    }
}
