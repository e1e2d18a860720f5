/* executor/report/overlap.c - see report/overlap.h. */
#include "executor/report/overlap.h"

#include <math.h>

/* Predicted standing still before compute instruction i, whose predecessor in the compute stream ends at `free_s`. */
static double predicted_wait_s(const struct ghp_prediction_error *r, double free_s)
{
    return fmax(0, r->predicted_start_s - free_s);
}

static void add_waits(const struct ghp_program *program,
                      const struct ghp_prediction_errors *prediction_errors,
                      struct ghp_comm_overlap *h)
{
    double free_s = 0;

    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        const struct ghp_prediction_error *r = &prediction_errors->instrs[i];

        if (instr->stream != GHP_STREAM_COMPUTE) continue;
        if (instr->wait == h->instr) {
            h->exposed.predicted_s += predicted_wait_s(r, free_s);
            h->exposed.measured_s += r->measured_wait_s;
        }
        free_s = r->predicted_start_s + r->predicted_s;
    }
}

/* Whether an instruction runs within [start, end), in this step or the next. */
static bool meets(double start_s, double end_s, const struct ghp_prediction_error *r,
                  double period_s)
{
    for (int turn = 0; turn < 2; turn++) {
        double from_s = r->measured_start_s + turn * period_s;

        if (from_s < end_s && start_s < from_s + r->measured_s) return true;
    }
    return false;
}

static void find_cover(const struct ghp_program *program,
                       const struct ghp_prediction_errors *prediction_errors,
                       struct ghp_comm_overlap *h)
{
    const struct ghp_prediction_error *own = &prediction_errors->instrs[h->instr];
    double start_s = own->measured_start_s, end_s = start_s + own->measured_s;
    double period_s = prediction_errors->step.measured_s;

    h->behind_first = h->behind_last = -1;
    if (!(period_s > 0) || !(own->measured_s > 0)) return;
    for (int k = 0; k < program->n_instrs;
         k++) { /* in the order in which they run, from h->instr */
        int i = (h->instr + k) % program->n_instrs;
        const struct ghp_prediction_error *r = &prediction_errors->instrs[i];

        if (program->instrs[i].stream != GHP_STREAM_COMPUTE || !(r->measured_s > 0)) continue;
        if (!meets(start_s, end_s, r, period_s)) continue;
        if (h->behind_first < 0) h->behind_first = i;
        h->behind_last = i;
    }
}

int ghp_comm_overlap_list(const struct ghp_program *program,
                          const struct ghp_prediction_errors *prediction_errors,
                          struct ghp_comm_overlap *hidings)
{
    int n = 0;

    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        const struct ghp_prediction_error *r = &prediction_errors->instrs[i];
        struct ghp_comm_overlap *h = &hidings[n];

        if (instr->stream != GHP_STREAM_COMM || !ghp_instr_sends(instr)) continue;
        *h = (struct ghp_comm_overlap){.instr = i,
                                       .whole = {r->predicted_s, r->measured_s},
                                       .exposed = {.measured_s = r->measured_wait_s}};
        add_waits(program, prediction_errors, h);
        find_cover(program, prediction_errors, h);
        n++;
    }
    return n;
}
