/* Predicted standing still, reduction by reduction, is the simulation's whole; measured is the instructions' that
 * wait; and what hides a reduction is what runs while it is under way, into the next step. */
#include "executor/report/overlap.h"
#include "tests/check.h"
#include "tests/executor/prediction_case.h"

#include <stdlib.h>

static const double timing_s = 1e-3, reduction_s = 2.5e-3, wait_s = 2e-4, handing_s = 3e-5;

/* Compute instructions one after the other, 1 ms each; reductions of 2.5 ms from where they stand in the list. */
static int fill(const struct ghp_program *program, struct ghp_prediction_errors *r)
{
    double at_s = 0;
    int waits = 0;

    for (int i = 0; i < program->n_instrs; i++) {
        bool compute = program->instrs[i].stream == GHP_STREAM_COMPUTE;

        r->instrs[i].measured_start_s = at_s;
        r->instrs[i].measured_s = compute ? timing_s : reduction_s;
        if (!compute) r->instrs[i].measured_wait_s = handing_s;
        if (!compute) continue;
        at_s += timing_s;
        if (program->instrs[i].wait < 0) continue;
        r->instrs[i].measured_wait_s = wait_s;
        waits++;
    }
    r->step.measured_s = at_s;
    return waits;
}

/* The k-th compute instruction after i, round the step's end. */
static int compute_behind(const struct ghp_program *program, int i, int k)
{
    while (k > 0) {
        i = (i + 1) % program->n_instrs;
        k -= program->instrs[i].stream == GHP_STREAM_COMPUTE;
    }
    return i;
}

static void check_list(const struct ghp_program *program, struct ghp_prediction_errors *r)
{
    struct ghp_comm_overlap *h = ghp_alloc((size_t)program->n_instrs, sizeof *h);
    int n, waits = fill(program, r), reductions = 0;
    double predicted_s = 0, measured_s = 0;

    for (int i = 0; i < program->n_instrs; i++)
        reductions += program->instrs[i].stream == GHP_STREAM_COMM;
    n = ghp_comm_overlap_list(program, r, h);
    CHECK_EQ(n, reductions);
    CHECK(n > 2);
    for (int k = 0; k < n; k++) {
        CHECK_EQ(program->instrs[h[k].instr].stream, GHP_STREAM_COMM);
        CHECK_NEAR(h[k].whole.measured_s, reduction_s, 1e-12);
        CHECK_NEAR(h[k].whole.predicted_s, r->instrs[h[k].instr].predicted_s, 1e-12);
        CHECK_EQ(h[k].behind_first, compute_behind(program, h[k].instr, 1));
        CHECK_EQ(h[k].behind_last, compute_behind(program, h[k].instr, 3));
        predicted_s += h[k].exposed.predicted_s;
        measured_s += h[k].exposed.measured_s;
    }
    CHECK(waits > 2);
    CHECK_NEAR(measured_s, waits * wait_s + n * handing_s, 1e-12);
    CHECK(r->phases[GHP_PHASE_EXPOSED].predicted_s > 0.1 * r->step.predicted_s);
    CHECK_NEAR(predicted_s, r->phases[GHP_PHASE_EXPOSED].predicted_s, 1e-9 * r->step.predicted_s);
    free(h);
}

CHECK_TEST(overlap)
{
    const struct ghp_link slow = {1e-6, 2e8, 0};
    struct prediction_case c;
    struct ghp_prediction_errors r;

    prediction_case_open(GHP_SOURCE_DIR "/models/lenet5.json", 4, slow,
                         (struct ghp_overlap){.compute = 1.2, .comm = 1.1, .link = 1}, &c);
    r = prediction_case_prediction_errors(&c);
    check_list(&c.program, &r);
    ghp_prediction_errors_release(&r);
    prediction_case_close(&c);
    return check_end();
}
