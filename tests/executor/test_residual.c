/* Predicted terms are the simulation's, measured terms the stopwatch's; both sum to their step. */
#include "core/lower.h"
#include "executor/residual.h"
#include "tests/check.h"
#include "tests/executor/cases.h"

enum { STEPS = 9 };

/* Laps of known length: instruction i runs (i + 1) ms; UPDATE waits 2 ms before. */
static double fill_laps(const struct ghp_program *program, struct ghp_stopwatch *watch)
{
    double sum_s = 0;

    for (int s = 0; s < STEPS; s++) {
        sum_s = 0;
        ghp_stopwatch_begin(watch);
        for (int i = 0; i < program->n_instrs; i++) {
            double wait_s = program->instrs[i].kind == GHP_INSTR_UPDATE ? 2e-3 : 0;
            struct ghp_lap lap = {.step = ghp_stopwatch_step(watch),
                                  .start_s = 1,
                                  .finish_s = 1 + (i + 1) * 1e-3,
                                  .wait_s = wait_s};

            ghp_stopwatch_lap(watch, i, lap);
            if (program->instrs[i].stream == GHP_STREAM_COMPUTE) sum_s += (i + 1) * 1e-3 + wait_s;
        }
        ghp_stopwatch_end(watch);
    }
    return sum_s;
}

/* A skipped step counts nowhere, however short. */
static void test_skip(const struct ghp_program *program, struct ghp_stopwatch *watch)
{
    double before_s = ghp_stopwatch_mean(watch, 3).run_s, step_s;

    CHECK_NEAR(before_s, 4e-3, 1e-12);
    ghp_stopwatch_forget(watch);
    fill_laps(program, watch);
    step_s = ghp_stopwatch_step_s(watch);
    ghp_stopwatch_begin(watch);
    for (int i = 0; i < program->n_instrs; i++)
        ghp_stopwatch_lap(watch, i,
                          (struct ghp_lap){.step = ghp_stopwatch_step(watch), .finish_s = 1});
    ghp_stopwatch_end(watch);
    ghp_stopwatch_skip(watch);
    CHECK_NEAR(ghp_stopwatch_mean(watch, 3).run_s, before_s, 1e-12);
    CHECK(ghp_stopwatch_step_s(watch) == step_s);
    ghp_stopwatch_forget(watch);
    ghp_stopwatch_begin(watch);
    ghp_stopwatch_end(watch);
    ghp_stopwatch_skip(watch); /* nothing else is left */
    CHECK(ghp_stopwatch_step_s(watch) == 0 && ghp_stopwatch_mean(watch, 3).run_s == 0);
}

int main(void)
{
    struct ghp_model model = {0};
    struct ghp_profile profile = {0};
    struct ghp_extent extent = {.workers = 2, .global_batch = 8};
    struct ghp_split *splits;
    struct ghp_program program = {0};
    struct ghp_stopwatch *watch = NULL;
    struct ghp_residuals r = {0};
    struct ghp_lowering how = {.model = &model, .extent = extent, .element_bytes = 4};
    double predicted_s = 0, measured_s = 0, layers_s = 0, laps_s;

    case_model(GHP_SOURCE_DIR "/models/lenet5.json", &model);
    splits = case_splits(&model, extent, CASE_DATA, 0, 1);
    CHECK_STATUS(ghp_lower(&how, splits, 0, &program), GHP_OK);
    CHECK_STATUS(ghp_profile_init(&profile, "analytic", "fast", 4), GHP_OK);
    profile.law = (struct ghp_law){.flops_per_s = 1e10, .memory_Bps = 1e10};
    profile.machine.nodes = profile.machine.packages = 1;
    profile.machine.cores = profile.machine.threads = 2;
    profile.machine.intra = profile.machine.inter = (struct ghp_link){1e-6, 1e9};
    profile.overlap = (struct ghp_overlap){1, 1, 1};
    CHECK_STATUS(ghp_profile_seal(&profile), GHP_OK);
    CHECK_STATUS(ghp_stopwatch_open(program.n_instrs, &watch), GHP_OK);
    laps_s = fill_laps(&program, watch);
    struct ghp_prospect prospect = {
        .program = &program, .profile = &profile, .n_layers = model.n_layers};
    CHECK_STATUS(ghp_residuals_init(&prospect, watch, &r), GHP_OK);
    CHECK(r.predicted);
    for (int p = 0; p < GHP_PHASE_COUNT; p++) {
        predicted_s += r.phases[p].predicted_s;
        measured_s += r.phases[p].measured_s;
    }
    for (int i = 0; i < r.n_layers; i++)
        layers_s += r.layers[i].measured_s;
    CHECK_NEAR(predicted_s, r.step.predicted_s, 1e-9 * r.step.predicted_s);
    CHECK_NEAR(measured_s, laps_s, 1e-9);
    CHECK_NEAR(measured_s + r.between.measured_s, r.step.measured_s, 1e-9);
    CHECK_NEAR(layers_s, laps_s, 1e-9);
    CHECK_NEAR(r.instrs[3].measured_s, 4e-3, 1e-12);
    CHECK_NEAR(ghp_term_error((struct ghp_term){.predicted_s = 3, .measured_s = 4}), -0.25, 1e-15);
    test_skip(&program, watch);
    ghp_residuals_release(&r);
    ghp_stopwatch_forget(watch);
    CHECK_EQ(ghp_stopwatch_steps(watch), 0);
    CHECK(ghp_stopwatch_step_s(watch) == 0);
    ghp_stopwatch_close(watch);
    ghp_profile_release(&profile);
    ghp_program_release(&program);
    free(splits);
    ghp_model_release(&model);
    return check_end();
}
