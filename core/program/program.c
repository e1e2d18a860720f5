/* core/program/program.c - checks and sums over a program. */
#include "core/program/program.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void ghp_program_release(struct ghp_program *program)
{
    if (program == NULL) return;
    free(program->instrs);
    free(program->flush);
    free(program->buffers);
    free(program->buckets);
    memset(program, 0, sizeof *program);
}

double ghp_instr_speed(const struct ghp_instr *instr, double speed)
{
    bool alone = instr->kind == GHP_INSTR_COMPUTE || instr->kind == GHP_INSTR_LOAD ||
                 instr->kind == GHP_INSTR_UPDATE || instr->kind == GHP_INSTR_ACCUMULATE ||
                 instr->kind == GHP_INSTR_NORM;

    return alone && speed > 0 ? speed : 1;
}

int64_t ghp_receive_bytes(int64_t bytes, int ranks)
{
    int64_t segment = bytes < GHP_COMM_SEGMENT_BYTES ? bytes : GHP_COMM_SEGMENT_BYTES;
    int64_t least = (int64_t)ranks * GHP_ALIGN_BYTES;
    int64_t row = (int64_t)ranks * (int64_t)sizeof(double); /* the longest element of each */

    segment = (segment + row - 1) / row * row;
    if (segment < least) segment = least;
    return ghp_align(segment);
}

int64_t ghp_buffer_offset(const struct ghp_program *program, int buffer)
{
    const struct ghp_buffer *b = &program->buffers[buffer];
    int64_t within = 0;
    while (b->storage != buffer) {
        within += b->storage_offset;
        buffer = b->storage;
        b = &program->buffers[buffer];
    }
    return b->offset + within;
}

/* Visits every operand of an instruction: visit(context, buffer, written). */
typedef void operand_visit(void *context, int buffer, bool written);

static void visit_operands(const struct ghp_instr *instr, operand_visit *visit, void *context)
{
    const struct ghp_operands *at = &instr->at;
    bool forward = instr->kind == GHP_INSTR_COMPUTE ? instr->pass == GHP_PASS_FORWARD : true;
    bool update = instr->kind == GHP_INSTR_UPDATE;
    bool stats = instr->kind == GHP_INSTR_STAT_REDUCE ||
                 (instr->kind == GHP_INSTR_COMPUTE &&
                  (instr->pass == GHP_PASS_STATS || instr->pass == GHP_PASS_BACKWARD_STATS));
    for (int i = 0; i < GHP_MAX_INPUTS; i++) {
        visit(context, at->x[i], false);
        visit(context, at->dx[i], true);
    }
    for (int i = 0; i < GHP_MAX_PARAMS; i++) {
        visit(context, at->w[i], update);
        visit(context, at->dw[i], instr->kind == GHP_INSTR_COMPUTE);
        for (int m = 0; m < GHP_MAX_MOMENTS; m++)
            visit(context, at->moment[m][i], update);
    }
    for (int i = 0; i < GHP_MAX_STATES; i++) {
        visit(context, at->state[i], true);
        visit(context, at->stats_delta[i], !update);
    }
    visit(context, at->y, forward);
    visit(context, at->dy, false); /* ACCUMULATE adds to it */
    visit(context, at->saved, forward);
    visit(context, at->stats, stats);
    visit(context, at->labels, instr->kind == GHP_INSTR_LOAD);
    visit(context, at->metrics, true);
    visit(context, at->scratch, true);
}

struct written {
    const struct ghp_program *program;
    bool *is_written;
    int missing;
    bool writes; /* this visit marks, else it checks */
};

static int root_of(const struct ghp_program *program, int buffer)
{
    while (program->buffers[buffer].storage != buffer)
        buffer = program->buffers[buffer].storage;
    return buffer;
}

static void note_operand(void *context, int buffer, bool writes)
{
    struct written *w = context;
    if (buffer < 0 || w->program->buffers[buffer].persistent) return;
    int root = root_of(w->program, buffer);
    if (w->program->buffers[root].persistent) return;
    if (w->writes && writes)
        w->is_written[root] = true;
    else if (!w->writes && !writes && !w->is_written[root])
        w->missing = buffer;
}

enum ghp_status ghp_program_check(const struct ghp_program *program)
{
    GHP_TRY(ghp_program_check_placement(program));
    struct written w = {.program = program, .missing = -1};
    w.is_written = ghp_alloc((size_t)program->n_buffers + 1, sizeof *w.is_written);
    if (w.is_written == NULL) return GHP_NO_MEMORY();
    enum ghp_status status = GHP_OK;
    for (int i = 0; i < program->n_instrs && status == GHP_OK; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        w.writes = false;
        visit_operands(instr, note_operand, &w);
        w.writes = true;
        if (instr->kind != GHP_INSTR_RECEIVE) /* what arrives is there once it was waited for */
            visit_operands(instr, note_operand, &w);
        if (w.missing >= 0)
            status = GHP_FAIL(GHP_ERR_INTERNAL,
                              "instruction %d (%s of layer %d) reads buffer %d (%s) before it is "
                              "written; report this",
                              i, ghp_instr_name(instr), instr->layer, w.missing,
                              ghp_buffer_kind_name(program->buffers[w.missing].buffer_kind));
        else if (instr->kind == GHP_INSTR_WAIT &&
                 (instr->after < 0 || instr->after >= i ||
                  program->instrs[instr->after].stream == GHP_STREAM_COMPUTE))
            status = GHP_FAIL(GHP_ERR_INTERNAL,
                              "instruction %d waits for %d, which is nothing beside it and before; "
                              "report this",
                              i, instr->after);
        else if (instr->wait >= program->n_instrs ||
                 (instr->wait >= 0 && program->instrs[instr->wait].stream != GHP_STREAM_COMM))
            status = GHP_FAIL(GHP_ERR_INTERNAL,
                              "instruction %d waits for %d, which is no reduction; report this", i,
                              instr->wait);
    }
    free(w.is_written);
    return status;
}

void ghp_instr_sum_metrics(struct ghp_instr *instr, struct ghp_ranks ranks, int period)
{
    instr->stream = GHP_STREAM_COMM;
    instr->comm = GHP_COMM_ALL_REDUCE;
    instr->ranks = ranks;
    instr->bytes = period * GHP_METRIC_COUNT * (int64_t)sizeof(double);
    instr->period = period > 1 ? period : 0;
}

int64_t ghp_instr_sent_bytes(const struct ghp_instr *instr)
{
    int64_t p = instr->ranks.count;
    if (instr->kind == GHP_INSTR_SEND) return instr->bytes;
    if (instr->kind == GHP_INSTR_PUSH) return instr->serves ? 0 : instr->bytes;
    if (instr->kind == GHP_INSTR_PULL) return instr->serves ? p * instr->bytes : 0;
    if (instr->kind == GHP_INSTR_MIX)
        return (int64_t)llround(instr->traffic.out *
                                (double)(instr->bytes + instr->traffic.word_bytes));
    if (p <= 1) return 0;
    int64_t part = instr->bytes - ghp_part_of(instr->bytes, (int)p);
    switch (instr->comm) {
    case GHP_COMM_ALL_REDUCE: return 2 * part / (instr->period > 1 ? instr->period : 1);
    case GHP_COMM_ALL_GATHER:
    case GHP_COMM_REDUCE_SCATTER:
    case GHP_COMM_ALL_TO_ALL: return part;
    default: return 0;
    }
}

int64_t ghp_program_sent_bytes(const struct ghp_program *program)
{
    int64_t sum = 0;
    for (int i = 0; i < program->n_instrs; i++)
        sum += ghp_instr_sent_bytes(&program->instrs[i]);
    return sum;
}

int64_t ghp_instr_sums_bytes(const struct ghp_instr *instr)
{
    int64_t bytes = 2 * instr->local.c * (int64_t)sizeof(double);
    if (instr->kind != GHP_INSTR_COMPUTE || instr->pass != GHP_PASS_BACKWARD_WEIGHT ||
        instr->local.repeat < 2)
        return 0;
    return ghp_align(bytes);
}

const char *ghp_instr_name(const struct ghp_instr *instr)
{
    static const char *const names[GHP_INSTR_COUNT] = {
#define GHP_INSTR_NAME(id, text) text,
        GHP_INSTR_LIST(GHP_INSTR_NAME)
#undef GHP_INSTR_NAME
    };
    return instr->kind == GHP_INSTR_COMPUTE ? ghp_pass_name(instr->pass) : names[instr->kind];
}

const char *const ghp_stream_names[GHP_STREAM_COUNT + 1] = {"compute", "communication", "transfer",
                                                            NULL};

const char *ghp_buffer_kind_name(enum ghp_buffer_kind buffer_kind)
{
    static const char *const names[GHP_BUFFER_KIND_COUNT] = {
        "output",     "edge input",      "edge gradient", "edge gradient out",
        "weight",     "weight gradient", "momentum",      "second moment",
        "state",      "drift",           "saved",         "stats",
        "labels",     "metrics",         "squares",       "scratch",
        "bucket",     "weight bucket",   "strip",         "comm segment",
        "ahead",      "arrivals",        "copies",        "first copy",
        "second copy"};
    return names[buffer_kind];
}
