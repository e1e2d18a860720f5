/* planner/terms.c - see terms.h. */
#include "planner/terms.h"

/* Shares out one bucket's reduction. */
static void add_reduction(const struct ghp_program *program, const struct ghp_instr *instr,
                          double seconds, struct ghp_terms *terms)
{
    int buffer = program->buckets[instr->bucket].buffer;
    double sent = (double)ghp_instr_sent_bytes(instr);
    int64_t sum = 0;

    for (int i = 0; i < program->n_buffers; ++i)
        if (program->buffers[i].storage == buffer && i != buffer) sum += program->buffers[i].bytes;
    for (int i = 0; i < program->n_buffers && sum > 0; ++i) {
        const struct ghp_buffer *b = &program->buffers[i];
        double share = (double)b->bytes / (double)sum;

        if (b->storage != buffer || i == buffer || b->layer < 0) continue;
        terms[b->layer].reduce_s += seconds * share;
        terms[b->layer].sent_bytes += sent * share;
    }
}

static void add_instr(const struct ghp_program *program, const struct ghp_instr *instr,
                      double seconds, int n_layers, struct ghp_terms *terms)
{
    struct ghp_terms *term =
        &terms[instr->layer >= 0 ? instr->layer : n_layers - 1]; /* the metrics are the loss's */

    if (instr->kind == GHP_INSTR_ALL_REDUCE) {
        add_reduction(program, instr, seconds, terms);
        return;
    }
    term->sent_bytes += (double)ghp_instr_sent_bytes(instr);
    switch (instr->kind) {
    case GHP_INSTR_RESHARD:
    case GHP_INSTR_STAT_REDUCE: term->exchange_s += seconds; break;
    case GHP_INSTR_METRIC_REDUCE: term->reduce_s += seconds; break;
    case GHP_INSTR_UPDATE: term->update_s += seconds; break;
    case GHP_INSTR_LOAD: term->forward_s += seconds; break;
    case GHP_INSTR_ACCUMULATE: term->backward_s += seconds; break;
    default:
        if (instr->pass == GHP_PASS_FORWARD || instr->pass == GHP_PASS_STATS)
            term->forward_s += seconds;
        else
            term->backward_s += seconds;
    }
}

void ghp_terms_add(const struct ghp_program *program, const struct ghp_timing *timing, int n_layers,
                   struct ghp_terms *terms)
{
    for (int i = 0; i < program->n_instrs; ++i)
        add_instr(program, &program->instrs[i], timing->instrs[i].price.seconds, n_layers, terms);
}

double ghp_terms_sum(const struct ghp_terms *terms)
{
    return terms->forward_s + terms->backward_s + terms->exchange_s + terms->reduce_s +
           terms->update_s;
}

const struct ghp_alternative *ghp_terms_runner_up(const struct ghp_plan *plan, int layer)
{
    const struct ghp_alternative *best = NULL;

    for (int i = 0; i < plan->n_alternatives; ++i) {
        const struct ghp_alternative *a = &plan->alternatives[i];

        if (a->layer == layer && !ghp_split_same(a->split, plan->splits[layer]) &&
            (best == NULL || a->step_s < best->step_s))
            best = a;
    }
    return best;
}
