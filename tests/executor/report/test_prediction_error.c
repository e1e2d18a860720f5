/* Predicted terms are the simulation's, measured terms the step timer's; both sum to their step. */
#include "tests/check.h"
#include "tests/executor/prediction_case.h"

enum { STEPS = 9 };

/* Timings of known length: instruction i runs (i + 1) ms; UPDATE waits 2 ms before; handing over takes 3 ms. */
static double fill_timings(const struct ghp_program *program, struct ghp_step_timer *timer)
{
    double sum_s = 0;

    for (int s = 0; s < STEPS; s++) {
        sum_s = 0;
        ghp_step_timer_begin(timer);
        for (int i = 0; i < program->n_instrs; i++) {
            bool here = program->instrs[i].stream == GHP_STREAM_COMPUTE;
            double wait_s = program->instrs[i].kind == GHP_INSTR_UPDATE ? 2e-3 : here ? 0 : 3e-3;
            struct ghp_instr_timing timing = {.start_s = 1, .finish_s = 1 + (i + 1) * 1e-3};

            ghp_step_timer_wait(timer, i, wait_s); /* whichever comes first, both count */
            ghp_step_timer_record(timer, i, timing);
            sum_s += wait_s + (here ? (i + 1) * 1e-3 : 0);
        }
        ghp_step_timer_end(timer, sum_s);
    }
    return sum_s;
}

/* A skipped step counts nowhere, however short. */
static void test_skip(const struct ghp_program *program, struct ghp_step_timer *timer)
{
    double before_s = ghp_step_timer_mean(timer, 3).run_s, step_s;

    CHECK_NEAR(before_s, 4e-3, 1e-12);
    ghp_step_timer_forget(timer);
    fill_timings(program, timer);
    step_s = ghp_step_timer_step_s(timer);
    ghp_step_timer_begin(timer);
    for (int i = 0; i < program->n_instrs; i++)
        ghp_step_timer_record(timer, i, (struct ghp_instr_timing){.finish_s = 1});
    ghp_step_timer_end(timer, 1e-6);
    ghp_step_timer_skip(timer);
    CHECK_NEAR(ghp_step_timer_mean(timer, 3).run_s, before_s, 1e-12);
    CHECK(ghp_step_timer_step_s(timer) == step_s);
    ghp_step_timer_forget(timer);
    ghp_step_timer_begin(timer);
    ghp_step_timer_end(timer, 1e-6);
    ghp_step_timer_skip(timer); /* nothing else is left */
    CHECK(ghp_step_timer_step_s(timer) == 0 && ghp_step_timer_mean(timer, 3).run_s == 0);
}

CHECK_TEST(prediction_error)
{
    struct prediction_case c;
    struct ghp_prediction_errors r;
    double predicted_s = 0, measured_s = 0, layers_s = 0, timings_s, exposed_s = 0;

    prediction_case_open(GHP_SOURCE_DIR "/models/lenet5.json", 2, (struct ghp_link){1e-6, 1e9, 0},
                         (struct ghp_overlap){.compute = 1, .comm = 1, .link = 1}, &c);
    timings_s = fill_timings(&c.program, c.timer);
    r = prediction_case_prediction_errors(&c);
    CHECK(r.predicted);
    for (int p = 0; p < GHP_PHASE_COUNT; p++) {
        predicted_s += r.phases[p].predicted_s;
        measured_s += r.phases[p].measured_s;
    }
    for (int i = 0; i < r.n_layers; i++)
        layers_s += r.layers[i].measured_s;
    CHECK_NEAR(predicted_s, r.step.predicted_s, 1e-9 * r.step.predicted_s);
    CHECK_NEAR(measured_s, timings_s, 1e-9);
    CHECK_NEAR(measured_s + r.between.measured_s, r.step.measured_s, 1e-9);
    for (int i = 0; i < c.program.n_instrs; i++) {
        exposed_s += r.instrs[i].measured_wait_s;
        /* the metrics' sum belongs to no layer */
        if (c.program.instrs[i].layer < 0) layers_s += 3e-3;
    }
    CHECK_NEAR(layers_s, timings_s, 1e-9);
    CHECK_NEAR(r.phases[GHP_PHASE_EXPOSED].measured_s, exposed_s, 1e-9);
    CHECK_NEAR(r.instrs[3].measured_s, 4e-3, 1e-12);
    CHECK_NEAR(ghp_term_error((struct ghp_error_term){.predicted_s = 3, .measured_s = 4}), -0.25,
               1e-15);
    test_skip(&c.program, c.timer);
    ghp_prediction_errors_release(&r);
    ghp_step_timer_forget(c.timer);
    CHECK_EQ(ghp_step_timer_steps(c.timer), 0);
    CHECK(ghp_step_timer_step_s(c.timer) == 0);
    prediction_case_close(&c);
    return check_end();
}
