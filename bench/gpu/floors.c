/* bench/gpu/floors.c - each phase of a run compared with its floor: ghp-gpu-floors PLAN RUN MATMUL_FLOPS COPY_BPS.
 *
 *     floor = max(FLOPs / measured matmul rate, least bytes / measured copy rate)
 *
 * of every instruction, summed over the instructions of a kind (operation and pass). Bytes are what an operation must
 * read and write at least; the copy rate counts both ways too. A phase's gap is what it takes above its floor. The first
 * line also has the bytes of all instructions by themselves, and with what kernels do together (core/program/fuse.h). */
#include "core/base/table.h"
#include "core/model/precision.h"
#include "core/plan/plan.h"
#include "core/program/lower/lower.h"
#include "inspect/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KINDS = 128 };

struct kind {
    char name[64];
    int n;
    double measured_s, floor_s;
};

struct floors {
    double flops_per_s, copy_Bps;
    double alone_bytes, saved_bytes; /* of all instructions; of those, by fusion */
    int n;
    struct kind kinds[MOST_KINDS];
};

static void name_of(const struct ghp_instr *instr, char *name, size_t n)
{
    if (instr->kind == GHP_INSTR_COMPUTE)
        snprintf(name, n, "%s %s", ghp_op_name(instr->local.op), ghp_pass_name(instr->pass));
    else
        snprintf(name, n, "%s%s", ghp_instr_name(instr),
                 instr->stream == GHP_STREAM_COMM ? " (beside)" : "");
}

/* Reads and writes of an instruction that does not compute, in bytes of one way. */
static double traffic(const struct ghp_instr *instr, int element_bytes)
{
    switch (instr->kind) {
    case GHP_INSTR_UPDATE: /* writes weights and moments; reads them and the gradient */
        return (2 + 1.0 / (1 + instr->optimizer->n_moments)) * (double)instr->bytes;
    case GHP_INSTR_NORM: return (double)instr->bytes;
    case GHP_INSTR_ACCUMULATE: return 3.0 * (double)instr->bytes;
    case GHP_INSTR_LOAD: return 2.0 * (double)instr->bytes;
    case GHP_INSTR_COMPUTE:
        return (double)ghp_local_bytes(&instr->local, instr->pass, element_bytes);
    default: return 0;
    }
}

static double floor_of(const struct floors *f, const struct ghp_instr *instr, int element_bytes)
{
    double flops =
        instr->kind == GHP_INSTR_COMPUTE ? (double)ghp_local_flops(&instr->local, instr->pass) : 0;

    return fmax(flops / f->flops_per_s, traffic(instr, element_bytes) / f->copy_Bps);
}

/* The part of an instruction's bytes that is not moved if another's kernel does it. */
static double saved_fraction(const struct ghp_instr *instr)
{
    bool backward = instr->backward || ghp_pass_is_backward(instr->pass);

    if (instr->kind == GHP_INSTR_ACCUMULATE) return 2.0 / 3; /* what is added to is still read */
    if (instr->local.op == GHP_OP_ADD) return 1.0 / 3;       /* the norm reads the sum no more */
    return instr->local.op == GHP_OP_RELU && backward ? 2.0 / 3 : 1; /* its output is the mask */
}

static struct kind *kind_of(struct floors *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->kinds[i].name, name) == 0) return &f->kinds[i];
    if (f->n == MOST_KINDS) return &f->kinds[MOST_KINDS - 1];
    snprintf(f->kinds[f->n].name, sizeof f->kinds[0].name, "%s", name);
    return &f->kinds[f->n++];
}

static enum ghp_status sum_up(struct floors *f, const struct ghp_plan *plan,
                              const struct ghp_record *run)
{
    int element_bytes = run->precision.element_bytes;
    struct ghp_lowering lowering = ghp_plan_lowering(plan, &plan->profile);
    struct ghp_program program = {0};
    enum ghp_status status;
    char name[64];

    lowering.element_bytes = element_bytes; /* as it ran */
    GHP_TRY(ghp_lower(&lowering, plan->splits, 0, &program));
    status = program.n_instrs == run->n_instrs
                 ? GHP_OK
                 : GHP_FAIL(GHP_ERR_INPUT,
                            "the run has %d instructions, the plan %d; give the run "
                            "of this very plan",
                            run->n_instrs, program.n_instrs);
    for (int i = 0; i < program.n_instrs && status == GHP_OK; i++) {
        struct kind *kind;

        name_of(&program.instrs[i], name, sizeof name);
        kind = kind_of(f, name);
        kind->n++;
        kind->measured_s += run->instrs[i].measured_s;
        kind->floor_s += floor_of(f, &program.instrs[i], element_bytes);
        f->alone_bytes += traffic(&program.instrs[i], element_bytes);
        if (program.instrs[i].fusion.by >= 0)
            f->saved_bytes +=
                saved_fraction(&program.instrs[i]) * traffic(&program.instrs[i], element_bytes);
    }
    ghp_program_release(&program);
    return status;
}

static int by_gap(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;
    double gap_x = x->measured_s - x->floor_s, gap_y = y->measured_s - y->floor_s;

    return (gap_y > gap_x) - (gap_y < gap_x);
}

static enum ghp_status print(struct floors *f, const struct ghp_record *run)
{
    struct ghp_table *table = ghp_table_open();
    enum ghp_status status;

    qsort(f->kinds, (size_t)f->n, sizeof f->kinds[0], by_gap);
    ghp_table_note(table, "%s: step %.3f ms; matmul %.1f TFLOP/s, copy %.0f GB/s", run->model,
                   1e3 * run->measured_step_s, 1e-12 * f->flops_per_s, 1e-9 * f->copy_Bps);
    ghp_table_note(table,
                   "bytes of a step: %.3f MB one by one, %.3f MB as kernels do them together",
                   1e-6 * f->alone_bytes, 1e-6 * (f->alone_bytes - f->saved_bytes));
    ghp_table_column(table, "phase", "", 'l');
    ghp_table_column(table, "times", "", 'r');
    ghp_table_column(table, "measured", "ms", 'r');
    ghp_table_column(table, "floor", "ms", 'r');
    ghp_table_column(table, "gap", "ms", 'r');
    for (int i = 0; i < f->n; i++) {
        const struct kind *k = &f->kinds[i];

        ghp_table_row(table);
        ghp_table_cell(table, "%s", k->name);
        ghp_table_cell(table, "%d", k->n);
        ghp_table_cell(table, "%.3f", 1e3 * k->measured_s);
        ghp_table_cell(table, "%.3f", 1e3 * k->floor_s);
        ghp_table_cell(table, "%.3f", 1e3 * (k->measured_s - k->floor_s));
    }
    status = ghp_table_print(table, stdout);
    ghp_table_close(table);
    return status;
}

int main(int argc, char **argv)
{
    struct floors floors = {0};
    struct ghp_plan plan = {0};
    struct ghp_record run = {0};
    enum ghp_status status;

    if (argc != 5 || !(strtod(argv[3], NULL) > 0) || !(strtod(argv[4], NULL) > 0)) {
        fprintf(stderr, "usage: ghp-gpu-floors PLAN RUN MATMUL_FLOPS COPY_BPS\n");
        return 2;
    }
    floors.flops_per_s = strtod(argv[3], NULL);
    floors.copy_Bps = strtod(argv[4], NULL);
    status = ghp_plan_load(argv[1], &plan);
    if (status == GHP_OK) status = ghp_record_load(argv[2], &run);
    if (status == GHP_OK) status = sum_up(&floors, &plan, &run);
    if (status == GHP_OK) status = print(&floors, &run);
    if (status != GHP_OK) fprintf(stderr, "ghp-gpu-floors: %s\n", ghp_status_message());
    ghp_record_release(&run);
    ghp_plan_release(&plan);
    return ghp_status_exit_code(status);
}
