/* core/program/program.c - checks and sums over a program. */
#include "core/program/program.h"

#include <inttypes.h>
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

/* Visits every operand of an instruction that need not live always: visit(context, buffer, written). */
typedef void operand_visit(void *context, int buffer, bool written);

static void visit_operands(const struct ghp_instr *instr, operand_visit *visit, void *context)
{
    const struct ghp_operands *at = &instr->at;
    unsigned writes = instr->kind == GHP_INSTR_COMPUTE
                          ? ghp_op_of(instr->local.op)->passes[instr->pass].writes
                          : ghp_kind_of(instr)->writes;

    for (int i = 0; i < GHP_MAX_INPUTS; i++) {
        visit(context, at->x[i], false);
        visit(context, at->dx[i], writes & GHP_AT_DX);
    }
    for (int i = 0; i < GHP_MAX_PARAMS; i++) {
        visit(context, at->w[i], false);
        visit(context, at->dw[i], writes & GHP_AT_DW);
    }
    visit(context, at->y, writes & GHP_AT_Y);
    visit(context, at->dy, false); /* ACCUMULATE adds to it */
    visit(context, at->saved, writes & GHP_AT_SAVED);
    visit(context, at->stats, writes & GHP_AT_STATS);
    visit(context, at->labels, writes & GHP_AT_LABELS);
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
        if (instr->stream == GHP_STREAM_COMPUTE) /* what arrives is there once it was waited for */
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
            status = GHP_FAIL(
                GHP_ERR_INTERNAL,
                "instruction %d waits for %d, which is not an earlier concurrent instruction; "
                "report this",
                i, instr->after);
        else if (instr->wait >= program->n_instrs ||
                 (instr->wait >= 0 && program->instrs[instr->wait].stream != GHP_STREAM_COMM))
            status = GHP_FAIL(GHP_ERR_INTERNAL,
                              "instruction %d waits for %d, which is not a reduction; report this",
                              i, instr->wait);
    }
    free(w.is_written);
    return status;
}

int64_t ghp_program_sent_bytes(const struct ghp_program *program)
{
    int64_t sum = 0;
    for (int i = 0; i < program->n_instrs; i++)
        sum += ghp_instr_sent_bytes(&program->instrs[i]);
    return sum;
}

const char *ghp_buffer_kind_name(enum ghp_buffer_kind buffer_kind)
{
    static const char *const names[GHP_BUFFER_KIND_COUNT] = {
        "output",      "edge input",      "edge gradient",   "edge gradient out",
        "weight",      "weight gradient", "momentum",        "second moment",
        "state",       "drift",           "saved",           "stats",
        "labels",      "metrics",         "squares",         "scratch",
        "bucket",      "weight bucket",   "optimizer shard", "comm segment",
        "ahead",       "arrivals",        "copies",          "first copy",
        "second copy", "weight shard",    "bf16 weight"};
    return names[buffer_kind];
}
