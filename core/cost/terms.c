/* core/cost/terms.c - one pass over the instructions. */
#include "core/cost/terms.h"

static const double rounding = 1e-12; /* of a step: what sums of some thousand doubles may be off */

/* Whether buffer i is a layer's part of a bucket. */
static bool is_part(const struct ghp_program *program, int i, int bucket)
{
    const struct ghp_buffer *b = &program->buffers[i];

    return b->storage == bucket && i != bucket && b->buffer_kind != GHP_BUFFER_OPTIMIZER_SHARD;
}

/* Divides what is done for a whole bucket: its reduction, its gather, or the update of an optimizer shard. */
static void add_of_bucket(const struct ghp_program *program, const struct ghp_instr *instr,
                          double seconds, struct ghp_term *terms)
{
    int buffer = program->buckets[instr->bucket].buffer;
    double sent = (double)ghp_instr_sent_bytes(instr);
    int64_t sum = 0;

    for (int i = 0; i < program->n_buffers; i++)
        if (is_part(program, i, buffer)) sum += program->buffers[i].bytes;
    for (int i = 0; i < program->n_buffers && sum > 0; i++) {
        const struct ghp_buffer *b = &program->buffers[i];
        double fraction = (double)b->bytes / (double)sum;

        if (!is_part(program, i, buffer) || b->layer < 0) continue;
        *(instr->kind == GHP_INSTR_UPDATE ? &terms[b->layer].update_s
                                          : &terms[b->layer].reduce_s) += seconds * fraction;
        terms[b->layer].sent_bytes += sent * fraction;
    }
}

static bool is_of_bucket(const struct ghp_program *program, const struct ghp_instr *instr)
{
    return ghp_instr_reduces(instr) || ghp_instr_brings_weights(instr) ||
           (instr->kind == GHP_INSTR_UPDATE && program->buckets[instr->bucket].shard_bytes > 0);
}

static void add_instr(const struct ghp_program *program, const struct ghp_instr *instr,
                      double seconds, int n_layers, struct ghp_term *terms)
{
    /* the metrics and the norm are the loss's */
    struct ghp_term *term = &terms[instr->layer >= 0 ? instr->layer : n_layers - 1];

    if (is_of_bucket(program, instr)) {
        add_of_bucket(program, instr, seconds, terms);
        return;
    }
    term->sent_bytes += (double)ghp_instr_sent_bytes(instr);
    switch (ghp_instr_phase(instr)) {
    case GHP_PHASE_RESHARD: term->reshard_s += seconds; break;
    case GHP_PHASE_UPDATE: term->update_s += seconds; break;
    case GHP_PHASE_BACKWARD_DATA:
    case GHP_PHASE_BACKWARD_WEIGHT: term->backward_s += seconds; break;
    case GHP_PHASE_EXPOSED: term->reduce_s += seconds; break;
    default: term->forward_s += seconds;
    }
}

/* Waiting of the compute stream, to the layers that waited. */
static void add_waiting(const struct ghp_program *program, const struct ghp_timing *timing,
                        int n_layers, struct ghp_term *terms)
{
    double before_s = 0; /* end of the compute instruction before */

    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        double gap_s = timing->instrs[i].start_s - before_s;

        if (instr->stream != GHP_STREAM_COMPUTE) continue;
        before_s = timing->instrs[i].finish_s;
        bool waits = instr->wait >= 0 || (instr->kind == GHP_INSTR_WAIT &&
                                          ghp_instr_brings_weights(&program->instrs[instr->after]));
        if (waits && gap_s > rounding * timing->step_s)
            terms[instr->layer >= 0 ? instr->layer : n_layers - 1].exposed_s += gap_s;
    }
}

void ghp_terms_of(const struct ghp_program *program, const struct ghp_timing *timing, int n_layers,
                  struct ghp_term *terms)
{
    for (int i = 0; i < program->n_instrs; i++)
        add_instr(program, &program->instrs[i], timing->instrs[i].cost.seconds, n_layers, terms);
    add_waiting(program, timing, n_layers, terms);
}

double ghp_terms_around(const struct ghp_program *program, const struct ghp_timing *timing,
                        const struct ghp_model *model, int layer)
{
    double sum_s = 0;

    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];

        if (instr->kind != GHP_INSTR_RESHARD) continue;
        if (model->edges[instr->edge].from == layer || model->edges[instr->edge].to == layer)
            sum_s += timing->instrs[i].cost.seconds;
    }
    return sum_s;
}
