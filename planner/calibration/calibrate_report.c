/* planner/calibration/calibrate_report.c - see calibrate_report.h. */
#include "planner/calibration/calibrate_report.h"

#include "planner/calibration/calibrate.h"
#include "inspect/sheet.h"
#include "onnx/network.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static void put_step(struct ghp_sheet *sheet, double predicted_s, double measured_s)
{
    ghp_sheet_real(sheet, predicted_s);
    ghp_sheet_real(sheet, (predicted_s - measured_s) / measured_s);
}

static void put_runs(struct ghp_display *report, const struct ghp_calibrate_result *r)
{
    static const struct ghp_column columns[] = {{"run", "run", "", 't', 0, 0},
                                                {"strategy", "plan", "", 't', 0, 0},
                                                {"measured_step_s", "measured", "ms", 'r', 1e3, 3},
                                                {"before_step_s", "before", "ms", 'r', 1e3, 3},
                                                {"before_error", "error", "%", 'r', 100, 1},
                                                {"after_step_s", "after", "ms", 'r', 1e3, 3},
                                                {"after_error", "error", "%", 'r', 100, 1},
                                                {"held_out_step_s", "held out", "ms", 'r', 1e3, 3},
                                                {"held_out_error", "error", "%", 'r', 100, 1},
                                                {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "runs", columns);

    ghp_sheet_note(sheet, "steps as the profile predicts them before and after calibration; held "
                          "out: after one without the runs of this plan");
    for (int i = 0; i < r->n_runs; ++i) {
        const struct ghp_calibrated_run *run = &r->runs[i];
        double measured_s = run->record->measured_step_s;

        ghp_sheet_row(sheet);
        ghp_sheet_text(sheet, run->record->path);
        ghp_sheet_text(sheet, run->record->strategy);
        ghp_sheet_real(sheet, measured_s);
        put_step(sheet, run->before_s, measured_s);
        put_step(sheet, run->after_s, measured_s);
        put_step(sheet, r->validated ? run->held_out_s : NAN, measured_s);
    }
    ghp_display_sheet(report, sheet);
}

/* Seconds that a correction adds to the instructions it was estimated from. */
static double effect_s(const struct ghp_correction *c)
{
    return (c->factor - 1) * c->weight_s + c->extra_s * (double)c->n;
}

static int by_effect(const void *a, const void *b)
{
    double x = fabs(effect_s(a)), y = fabs(effect_s(b));

    return (x < y) - (x > y);
}

static void put_corrections(struct ghp_display *report, const struct ghp_calibrate_result *r)
{
    static const struct ghp_column columns[] = {{"term", "term", "", 't', 0, 0},
                                                {"factor", "factor", "", 'r', 1, 3},
                                                {"extra_s", "and a call", "us", 'r', 1e6, 2},
                                                {"instructions", "instructions", "", 'i', 0, 0},
                                                {"weight_s", "predicted", "ms", 'r', 1e3, 3},
                                                {"effect_s", "changed by", "ms", 'r', 1e3, 3},
                                                {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "corrections", columns);
    char term[64];

    qsort(r->corrections, (size_t)r->n_corrections, sizeof *r->corrections, by_effect);
    ghp_sheet_note(sheet,
                   "corrections, estimated from the runs' instructions and held back towards "
                   "none where these are few or at odds");
    ghp_sheet_note(sheet, "an exchange's own seconds are those of its last rank to arrive: the "
                          "waiting of the others is a term of its own");
    for (int i = 0; i < r->n_corrections; ++i) {
        const struct ghp_correction *c = &r->corrections[i];

        ghp_part_text(c->part, term, sizeof term);
        ghp_sheet_row(sheet);
        ghp_sheet_text(sheet, term);
        ghp_sheet_real(sheet, c->factor);
        ghp_sheet_real(sheet, c->extra_s);
        ghp_sheet_int(sheet, c->n);
        ghp_sheet_real(sheet, c->weight_s);
        ghp_sheet_real(sheet, effect_s(c));
    }
    ghp_display_sheet(report, sheet);
}

static void put_error(struct ghp_display *report, const char *name,
                      struct ghp_calibration_error error)
{
    char key[64];

    snprintf(key, sizeof key, "%s_error_mean", name);
    ghp_display_real(report, key, error.mean);
    snprintf(key, sizeof key, "%s_error_worst", name);
    ghp_display_real(report, key, error.worst);
}

static void put_verdict(struct ghp_display *report, const struct ghp_calibrate_result *r)
{
    put_error(report, "before", r->before);
    put_error(report, "after", r->after);
    if (r->validated) put_error(report, "held_out", r->held_out);
    ghp_display_bool(report, "helps", r->helps);
    if (r->validated)
        ghp_display_line(report,
                         "mean error of a step %.1f %% before, %.1f %% after, %.1f %% held out; "
                         "worst %.1f %%, %.1f %%, %.1f %%",
                         100 * r->before.mean, 100 * r->after.mean, 100 * r->held_out.mean,
                         100 * r->before.worst, 100 * r->after.worst, 100 * r->held_out.worst);
    else
        ghp_display_line(report, "error of the step %.1f %% before, %.1f %% after",
                         100 * r->before.mean, 100 * r->after.mean);
}

static enum ghp_status fail_no_help(const struct ghp_calibrate_result *r)
{
    if (!r->validated)
        return GHP_FAIL(GHP_ERR_INFEASIBLE,
                        "one run cannot show whether calibration helps: nothing is held out; give "
                        "runs of several plans, or --force-calibrate");
    return GHP_FAIL(GHP_ERR_INFEASIBLE,
                    "calibration cannot help: steps predicted by the other runs are %.1f %% off, "
                    "without calibration %.1f %%; give runs of more plans or of more steps, "
                    "measure anew with ghp-profile, or write it all the same with "
                    "--force-calibrate",
                    100 * r->held_out.mean, 100 * r->before.mean);
}

/* Prints, writes where it may, and says no where calibration does not help. */
static enum ghp_status conclude(const struct ghp_calibrate_wishes *wishes,
                                const struct ghp_calibrate_result *r,
                                const struct ghp_profile *profile)
{
    bool writes = r->helps || wishes->force;
    struct ghp_display report;

    ghp_display_begin(&report, wishes->json);
    put_runs(&report, r);
    put_corrections(&report, r);
    put_verdict(&report, r);
    GHP_TRY(ghp_display_end(&report));
    if (!writes) return fail_no_help(r);
    return wishes->output != NULL ? ghp_profile_save(wishes->output, profile) : GHP_OK;
}

static enum ghp_status check_run(const struct ghp_calibrate_wishes *wishes,
                                 const struct ghp_record *r)
{
    if (wishes->workers > 0 && wishes->workers != r->extent.workers)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "run '%s' is of %d workers, not of %" PRId64
                        "; leave --workers out, or give other runs",
                        r->path, r->extent.workers, wishes->workers);
    if (wishes->batch > 0 && wishes->batch != r->extent.global_batch)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "run '%s' has a global batch of %" PRId64 ", not of %" PRId64
                        "; leave --batch out, or give other runs",
                        r->path, r->extent.global_batch, wishes->batch);
    return GHP_OK;
}

enum ghp_status ghp_calibrate_files(const struct ghp_calibrate_wishes *wishes)
{
    struct ghp_record *records = ghp_alloc((size_t)wishes->n_runs, sizeof *records);
    struct ghp_calibrate_result result = {0};
    struct ghp_profile profile = {0};
    struct ghp_model model = {0};
    enum ghp_status status;

    if (records == NULL) return GHP_NO_MEMORY();
    if (wishes->n_runs == 0)
        GHP_TRY_GOTO(status,
                     GHP_FAIL(GHP_ERR_USAGE,
                              "no run given to calibrate by; name files that ghp-run --run wrote, "
                              "after the model"),
                     done);
    GHP_TRY_GOTO(status, ghp_network_load(wishes->model_path, &model), done);
    GHP_TRY_GOTO(status, ghp_profile_load(wishes->profile_path, &profile), done);
    for (int i = 0; i < wishes->n_runs; ++i) {
        GHP_TRY_GOTO(status, ghp_record_load(wishes->run_paths[i], &records[i]), done);
        GHP_TRY_GOTO(status, check_run(wishes, &records[i]), done);
    }
    GHP_TRY_GOTO(status, ghp_calibrate(&model, records, wishes->n_runs, &profile, &result), done);
    GHP_TRY_GOTO(status, conclude(wishes, &result, &profile), done);
done:
    ghp_calibrate_release(&result);
    for (int i = 0; i < wishes->n_runs; ++i)
        ghp_record_release(&records[i]);
    free(records);
    ghp_profile_release(&profile);
    ghp_model_release(&model);
    return status;
}
