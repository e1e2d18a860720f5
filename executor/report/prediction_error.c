/* executor/report/prediction_error.c - see report/prediction_error.h. */
#include "executor/report/prediction_error.h"

#include <stdlib.h>

double ghp_term_error(struct ghp_error_term term)
{
    return term.measured_s > 0 ? (term.predicted_s - term.measured_s) / term.measured_s : 0;
}

static void add_prediction(const struct ghp_program *program, const struct ghp_timing *timing,
                           struct ghp_prediction_errors *r)
{
    r->predicted = true;
    r->step.predicted_s = timing->step_s;
    for (int p = 0; p < GHP_PHASE_COUNT; p++)
        r->phases[p].predicted_s = timing->phase_s[p];
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        const struct ghp_instr_time *t = &timing->instrs[i];

        r->instrs[i].predicted_start_s = t->start_s;
        r->instrs[i].predicted_s = t->finish_s - t->start_s;
        if (instr->stream != GHP_STREAM_COMPUTE) continue;
        if (instr->layer >= 0) r->layers[instr->layer].predicted_s += r->instrs[i].predicted_s;
    }
}

static void add_measurement(const struct ghp_program *program, const struct ghp_step_timer *timer,
                            struct ghp_prediction_errors *r)
{
    r->step.measured_s = r->between.measured_s = ghp_step_timer_step_s(timer);
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        struct ghp_prediction_error *own = &r->instrs[i];
        double in_line_s; /* of the compute stream */

        own->measured_start_s = ghp_step_timer_last(timer, i).start_s;
        own->measured_s = ghp_step_timer_mean(timer, i).run_s;
        own->measured_wait_s = ghp_step_timer_mean(timer, i).wait_s;
        in_line_s = own->measured_wait_s;
        r->phases[GHP_PHASE_EXPOSED].measured_s += own->measured_wait_s;
        if (instr->stream == GHP_STREAM_COMPUTE) {
            r->phases[ghp_instr_phase(instr)].measured_s += own->measured_s;
            in_line_s += own->measured_s;
        }
        r->between.measured_s -= in_line_s;
        if (instr->layer >= 0) r->layers[instr->layer].measured_s += in_line_s;
    }
}

/* This worker's timing in a simulation of all stages together. */
static enum ghp_status simulate(const struct ghp_prospect *p, struct ghp_timing *timing)
{
    struct ghp_timing all[GHP_MAX_STAGES];

    if (p->programs == NULL) return ghp_simulate(p->program, p->profile, timing);
    GHP_TRY(ghp_simulate_all(p->programs, p->profile, all));
    for (int k = 0; k < p->programs->n; k++)
        if (k != p->stage) ghp_timing_release(&all[k]);
    *timing = all[p->stage];
    GHP_ASSERT_EQ(timing->n_instrs, p->program->n_instrs);
    return GHP_OK;
}

enum ghp_status ghp_prediction_errors_init(const struct ghp_prospect *p,
                                           const struct ghp_step_timer *timer,
                                           struct ghp_prediction_errors *r)
{
    enum ghp_status status = GHP_OK;
    struct ghp_timing timing = {0};

    *r = (struct ghp_prediction_errors){.n_layers = p->n_layers, .n_instrs = p->program->n_instrs};
    r->layers = ghp_alloc((size_t)p->n_layers, sizeof *r->layers);
    r->instrs = ghp_alloc((size_t)p->program->n_instrs, sizeof *r->instrs);
    if (r->layers == NULL || r->instrs == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    if (p->profile != NULL) {
        GHP_TRY_GOTO(status, simulate(p, &timing), fail);
        add_prediction(p->program, &timing, r);
        ghp_timing_release(&timing);
    }
    add_measurement(p->program, timer, r);
    return GHP_OK;
fail:
    ghp_prediction_errors_release(r);
    return status;
}

void ghp_prediction_errors_release(struct ghp_prediction_errors *r)
{
    if (r == NULL) return;
    free(r->instrs);
    free(r->layers);
    *r = (struct ghp_prediction_errors){0};
}
