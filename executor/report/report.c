/* executor/report/report.c - see report.h. */
#include "executor/report/report.h"

#include "core/base/file.h"
#include "core/base/table.h"
#include "core/base/units.h"

#include <inttypes.h>
#include <math.h>

enum { FIRST_LOSSES = 20, TEXT_BYTES = 40 };

static const double ms = 1e3;

/* ---- predicted | measured | error ---- */

static void term_columns(struct ghp_table *t, const struct ghp_run *run)
{
    if (run->prediction_errors->predicted) ghp_table_column(t, "predicted", "ms", 'r');
    ghp_table_column(t, "measured", "ms", 'r');
    if (run->prediction_errors->predicted) ghp_table_column(t, "error", "ms", 'r');
    if (run->prediction_errors->predicted) ghp_table_column(t, "error", "%", 'r');
}

static void term_cells(struct ghp_table *t, const struct ghp_run *run, struct ghp_error_term term)
{
    if (run->prediction_errors->predicted) ghp_table_cell(t, "%.3f", ms * term.predicted_s);
    ghp_table_cell(t, "%.3f", ms * term.measured_s);
    if (!run->prediction_errors->predicted) return;
    ghp_table_cell(t, "%+.3f", ms * (term.predicted_s - term.measured_s));
    if (term.measured_s > 0)
        ghp_table_cell(t, "%+.1f", 100 * ghp_term_error(term));
    else
        ghp_table_cell(t, "%s", "-");
}

static void head_notes(struct ghp_table *t, const struct ghp_run *run)
{
    const struct ghp_plan *plan = run->plan;

    ghp_table_note(t, "%s by '%s' (%s): %d worker%s in %d group%s of %d, global batch %" PRId64,
                   plan->model.name, ghp_strategy_name(plan->strategy), run->plan_path,
                   plan->problem.workers, ghp_plural(plan->problem.workers), plan->groups,
                   ghp_plural(plan->groups), plan->group_size, plan->problem.global_batch);
    ghp_table_note(t, "%s, %s, numerics %s, %d thread(s) a worker; %s", run->backend,
                   ghp_precision_name(run->precision), run->numerics, run->threads, run->data);
    if (run->emulation != NULL)
        ghp_table_note(t,
                       "emulated: %s; measured times are those of such machines, predictions are "
                       "of the plan's profile",
                       run->emulation);
    if (run->late_steps > 0)
        ghp_table_note(t,
                       "the emulation did not hold in %" PRId64 " step(s), whose true computing "
                       "took longer than the emulated: where these are many, emulate a longer step",
                       run->late_steps);
    if (run->oversubscribed)
        ghp_table_note(t, "workers share cores: these are the times of an oversubscribed machine");
    if (plan->what_if.n > 0) {
        char overrides[1024];

        ghp_table_note(t, "the plan is a what-if, predictions are of another machine: %s",
                       ghp_overrides_format(&plan->what_if, overrides, sizeof overrides));
    }
    if (run->speed.compute_s > 0)
        ghp_table_note(t,
                       "two fixed jobs took %.2f (compute) and %.2f (memory) times as long as when "
                       "this machine was profiled",
                       run->speed.compute_s, run->speed.memory_s);
    if (run->guard.step > 0)
        ghp_table_note(
            t,
            "after step %" PRId64
            " data parallelism took %.4g ms, the plan %.4g (ratio %.3f [%.3f, %.3f]): %s",
            run->guard.step, 1e3 * run->guard.data_step_s, 1e3 * run->guard.plan_step_s,
            run->guard.ratio, run->guard.ratio_low, run->guard.ratio_high,
            run->guard.switched ? "the training continued with it" : "the plan was kept");
    if (!run->comparable)
        ghp_table_note(t,
                       "predictions are of the plan's profile (%s, %s, numerics %s), not of this "
                       "backend and numerics",
                       plan->profile.backend,
                       ghp_precision_name(ghp_profile_precision(&plan->profile)),
                       plan->profile.numerics);
}

static enum ghp_status print_phases(const struct ghp_run *run, FILE *out)
{
    const struct ghp_prediction_errors *r = run->prediction_errors;
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status;

    head_notes(t, run);
    ghp_table_column(t, "phase", NULL, 'l');
    term_columns(t, run);
    for (int p = 0; p < GHP_PHASE_COUNT; p++) {
        if (r->phases[p].predicted_s == 0 && r->phases[p].measured_s == 0) continue;
        ghp_table_row(t);
        ghp_table_cell(t, "%s", ghp_phase_name((enum ghp_phase)p));
        term_cells(t, run, r->phases[p]);
    }
    ghp_table_row(t);
    ghp_table_cell(t, "between instructions");
    term_cells(t, run, r->between);
    ghp_table_row(t);
    ghp_table_cell(t, "step");
    term_cells(t, run, r->step);
    status = ghp_table_print(t, out);
    ghp_table_close(t);
    return status;
}

static enum ghp_status print_layers(const struct ghp_run *run, FILE *out)
{
    const struct ghp_prediction_errors *r = run->prediction_errors;
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status;

    ghp_table_note(t, "each layer with the layout changes before it and its waiting, on worker 0");
    ghp_table_column(t, "layer", NULL, 'l');
    ghp_table_column(t, "split", NULL, 'l');
    term_columns(t, run);
    for (int i = 0; i < r->n_layers; i++) {
        char split[TEXT_BYTES];

        ghp_split_format(run->plan->splits[i], split, sizeof split);
        ghp_table_row(t);
        ghp_table_cell(t, "%s", run->plan->model.layers[i].name);
        ghp_table_cell(t, "%s", split);
        term_cells(t, run, r->layers[i]);
    }
    status = ghp_table_print(t, out);
    ghp_table_close(t);
    return status;
}

/* ---- where the error sits ---- */

static void note_largest(double difference_s, int index, double *most_s, int *at)
{
    if (fabs(difference_s) <= fabs(*most_s)) return;
    *most_s = difference_s;
    *at = index;
}

static void print_where(const struct ghp_run *run, FILE *out)
{
    const struct ghp_prediction_errors *r = run->prediction_errors;
    double phase_s = 0, layer_s = 0;
    int phase = -1, layer = -1;

    if (!r->predicted) return;
    for (int p = 0; p < GHP_PHASE_COUNT; p++)
        note_largest(r->phases[p].predicted_s - r->phases[p].measured_s, p, &phase_s, &phase);
    note_largest(r->between.predicted_s - r->between.measured_s, GHP_PHASE_COUNT, &phase_s, &phase);
    for (int i = 0; i < r->n_layers; i++)
        note_largest(r->layers[i].predicted_s - r->layers[i].measured_s, i, &layer_s, &layer);
    fprintf(out, "step error %+.1f %%", 100 * ghp_term_error(r->step));
    if (run->comparable && run->plan->predicted.error_s > 0 &&
        fabs(r->step.predicted_s - r->step.measured_s) > 2 * run->plan->predicted.error_s)
        fprintf(out, ", beyond twice the prediction's own error of %.3f ms",
                ms * run->plan->predicted.error_s);
    if (phase >= 0)
        fprintf(out, "; most of it in %s (%+.3f ms)",
                phase < GHP_PHASE_COUNT ? ghp_phase_name((enum ghp_phase)phase)
                                        : "what is between instructions",
                ms * phase_s);
    if (layer >= 0)
        fprintf(out, ", and in layer '%s' (%+.3f ms)", run->plan->model.layers[layer].name,
                ms * layer_s);
    fprintf(out, "\n");
}

/* ---- the rest ---- */

static void print_input(const struct ghp_run *run, FILE *out)
{
    const struct ghp_prediction_errors *r = run->prediction_errors;
    const struct ghp_error_term *load = &r->phases[GHP_PHASE_LOAD];

    if (run->from_files) {
        fprintf(out, "input: loading took %.3f ms of a step", ms * load->measured_s);
        if (r->predicted) fprintf(out, " (predicted %.3f ms)", ms * load->predicted_s);
        fprintf(out, "\n");
    }
    if (run->files_skipped > 0)
        fprintf(out, "input: %" PRId64 " damaged files were skipped by worker 0\n",
                run->files_skipped);
    if (run->samples_loaded == 0) return;
    fprintf(out,
            "input: %" PRId64 " of %" PRId64
            " samples were prepared during earlier steps, the others when they were loaded\n",
            run->samples_made_ahead, run->samples_loaded);
}

static void print_memory(const struct ghp_run *run, FILE *out)
{
    char predicted[TEXT_BYTES], allocated[TEXT_BYTES], resident[TEXT_BYTES], planned[TEXT_BYTES];
    int64_t by_plan = run->plan->predicted.peak_bytes;

    fprintf(out, "memory a worker: predicted ");
    if (by_plan != run->peak_bytes)
        fprintf(out, "%s by the plan, with the scratch of this backend's kernels ",
                ghp_bytes_format((double)by_plan, planned, sizeof planned));
    fprintf(out, "%s, allocated %s (%s)",
            ghp_bytes_format((double)run->peak_bytes, predicted, sizeof predicted),
            ghp_bytes_format((double)run->allocated_bytes, allocated, sizeof allocated),
            run->peak_bytes == run->allocated_bytes ? "equal to the byte"
            : run->comparable ? "not equal: kernels here take other scratch than was profiled"
                              : "not equal: the plan is for another backend or numerics");
    if (run->peak_rss_over_base_bytes >= 0)
        fprintf(out, ", resident peak less base %s%s",
                ghp_bytes_format((double)run->peak_rss_over_base_bytes, resident, sizeof resident),
                run->resident_exact ? "" : " (evaluations and checkpoints included)");
    fprintf(out, "\n");
}

/* "1.2 ms (predicted 1.1 ms)"; below 0: no prediction. */
static void print_mean(FILE *out, double sum_s, int64_t n, double predicted_s)
{
    char text[TEXT_BYTES];

    fprintf(out, "%s", ghp_seconds_format(sum_s / (double)n, text, sizeof text));
    if (predicted_s >= 0)
        fprintf(out, " (predicted %s)", ghp_seconds_format(predicted_s, text, sizeof text));
}

static void print_checkpoints(const struct ghp_run *run, FILE *out)
{
    const struct ghp_checkpoint_cost *c = &run->checkpoints;
    const struct ghp_checkpoint_prediction *p = &run->predicted_checkpoint;
    char size[TEXT_BYTES], image[TEXT_BYTES];

    if (c->saves == 0) return;
    fprintf(out, "checkpoints: %" PRId64 " of %s", c->saves,
            ghp_bytes_format((double)c->bytes, size, sizeof size));
    if (c->concurrent > 0) {
        fprintf(out, ", %" PRId64 " written during steps: each stopped them for ", c->concurrent);
        print_mean(out, c->gather_s, c->concurrent, p->gather_s);
        fprintf(out, ", took ");
        print_mean(out, c->core_s, c->concurrent, p->core_s);
        fprintf(out, " of a core, was on disk after ");
        print_mean(out, c->disk_s, c->concurrent, -1);
        fprintf(out, "; waited for %s in all", ghp_seconds_format(c->waited_s, size, sizeof size));
    }
    if (c->saves > c->concurrent) {
        fprintf(out, "; %" PRId64 " between steps, ", c->saves - c->concurrent);
        print_mean(out, c->between_s, c->saves - c->concurrent, -1);
        fprintf(out, " each");
    }
    if (c->image_bytes > 0)
        fprintf(out, "\nimage of a checkpoint, of worker 0 alone: predicted %s, allocated %s (%s)",
                ghp_bytes_format((double)p->image_bytes, size, sizeof size),
                ghp_bytes_format((double)c->image_bytes, image, sizeof image),
                p->image_bytes == c->image_bytes ? "equal to the byte" : "not equal");
    fprintf(out, "\n");
}

static void print_test(const struct ghp_run *run, FILE *out)
{
    if (run->of_numbers)
        fprintf(out, "test absolute error %.6g, loss %.6f", run->test_absolute_error,
                run->test_loss);
    else
        fprintf(out, "test accuracy %.2f %%, loss %.6f", 100 * run->test_accuracy, run->test_loss);
    if (run->test_perplexity > 0) fprintf(out, ", perplexity %.4g", run->test_perplexity);
    fprintf(out, ", over all %" PRId64 " samples\n", run->test_samples);
}

enum ghp_status ghp_report_run(const struct ghp_run *run, FILE *out)
{
    char step[TEXT_BYTES];

    GHP_TRY(print_phases(run, out));
    fprintf(out, "\n");
    GHP_TRY(print_layers(run, out));
    fprintf(out, "\n");
    print_where(run, out);
    fprintf(out, "step %s, %.1f %s/s",
            ghp_seconds_format(run->prediction_errors->step.measured_s, step, sizeof step),
            run->images_per_s, run->tokens_per_s > 0 ? "samples" : "images");
    if (run->tokens_per_s > 0) fprintf(out, ", %.0f tokens/s", run->tokens_per_s);
    fprintf(out, "; %" PRId64 " steps in %.2f s", run->losses->steps, run->seconds);
    if (run->losses->steps > 0)
        fprintf(out, "; loss %.6f -> %.6f", run->losses->kept[0], run->losses->last);
    fprintf(out, "\n");
    print_input(run, out);
    print_memory(run, out);
    print_checkpoints(run, out);
    if (run->has_accuracy) print_test(run, out);
    return ghp_file_flush(out, "the report");
}

/* What a verification compared with. */
static bool in_turn(const struct ghp_run *run)
{
    return ghp_sync_ops_of(run->plan->method.sync)->equality == GHP_SYNC_EQUALS_REPLICAS;
}

static enum ghp_status print_tensors(const struct ghp_run *run, FILE *out)
{
    const struct ghp_verification *v = run->verification;
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status;

    ghp_table_note(t,
                   "%" PRId64 " steps by the plan and by %s, numerics %s; e_w after the last step, "
                   "e_g of the first",
                   run->losses->steps,
                   in_turn(run) ? "one process that trains the replicas in turn" : "one worker",
                   run->numerics);
    ghp_table_column(t, "tensor", NULL, 'l');
    ghp_table_column(t, "e_w", NULL, 'r');
    ghp_table_column(t, "e_g", NULL, 'r');
    for (int i = 0; i < v->n; i++) {
        ghp_table_row(t);
        ghp_table_cell(t, "%s", v->differences[i].name);
        ghp_table_cell(t, "%.2e", v->differences[i].weight_difference);
        if (v->differences[i].has_gradient)
            ghp_table_cell(t, "%.2e", v->differences[i].gradient_difference);
        else
            ghp_table_cell(t, "-");
    }
    status = ghp_table_print(t, out);
    ghp_table_close(t);
    return status;
}

static enum ghp_status print_losses(const struct ghp_run *run, FILE *out)
{
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status;

    ghp_table_column(t, "step", NULL, 'r');
    ghp_table_column(t, "loss by plan", NULL, 'r');
    ghp_table_column(t, in_turn(run) ? "in turn" : "by one worker", NULL, 'r');
    for (int i = 0; i < run->losses->n && i < run->alone_losses->n && i < FIRST_LOSSES; i++) {
        ghp_table_row(t);
        ghp_table_cell(t, "%" PRId64, i * run->losses->every + 1);
        ghp_table_cell(t, "%.9f", run->losses->kept[i]);
        ghp_table_cell(t, "%.9f", run->alone_losses->kept[i]);
    }
    status = ghp_table_print(t, out);
    ghp_table_close(t);
    return status;
}

static const char *head_of(const struct ghp_run *run)
{
    if (run->different >= 0) return "FAIL";
    switch (run->verification->layerwise.verdict) {
    case GHP_VERDICT_EQUAL: return "PASS";
    case GHP_VERDICT_ROUNDING: return "PASS but for rounding";
    case GHP_VERDICT_UNKNOWN: return "CANNOT TELL";
    default: return "FAIL";
    }
}

/* Prints the place in a tensor. In a layer's tensor that is sample and channel, and row and column of an image or
 * position of a sequence. */
static void print_index(const struct ghp_finding *f, FILE *out)
{
    const char *const names[] = {"sample ", "channel ", f->n_index == 3 ? "position " : "row ",
                                 "column "};
    bool layer = f->kind == GHP_TRACED_OUTPUT || f->kind == GHP_TRACED_GRADIENT;

    for (int d = 0; d < f->n_index; d++)
        fprintf(out, "%s%s%" PRId64,
                d > 0   ? ", "
                : layer ? ""
                        : "index ",
                layer ? names[d] : "", f->index[d]);
}

static void print_finding(const struct ghp_finding *f, FILE *out)
{
    fprintf(out, "step %" PRId64 ", %s '%s' is %.3g times as far from one worker's as rounding\n",
            f->step, ghp_traced_texts[f->kind], f->name, f->ratio);
    fprintf(out, "puts it: %.2e of its size, rounding %.2e", f->difference, f->noise);
    if (f->ratio > 0) {
        fprintf(out, "; first at ");
        print_index(f, out);
        fprintf(out, " of rank %d: %.9g, not %.9g", f->rank, f->plan, f->alone);
    }
    fprintf(out, "\n");
}

/* Prints what caused differences beyond the limits; nothing if there are none. */
static void print_layerwise(const struct ghp_layerwise *l, FILE *out)
{
    if (l->verdict == GHP_VERDICT_EQUAL) return;
    fprintf(out, "\nverdict: %s", ghp_verdict_names[l->verdict]);
    if (l->why != NULL) {
        fprintf(out, "; %s\n", l->why);
        return;
    }
    fprintf(out, "; %d tensors compared layer by layer in steps", l->tensors);
    for (int s = 0; s < l->n_steps; s++)
        fprintf(out, "%s %" PRId64, s > 0 ? "," : "", l->steps[s]);
    fprintf(out, "\n%s", l->verdict == GHP_VERDICT_ROUNDING ? "furthest: " : "");
    if (l->found) print_finding(&l->finding, out);
}

enum ghp_status ghp_report_verification(const struct ghp_run *run, FILE *out)
{
    const struct ghp_verification *v = run->verification;

    GHP_TRY(print_tensors(run, out));
    fprintf(out, "\n");
    GHP_TRY(print_losses(run, out));
    fprintf(out, "\nreplicas %s\n",
            run->different >= 0 ? "differ"
            : in_turn(run)      ? "have weights of their own between averages"
                                : "hold the same bits");
    fprintf(out, "%s: e_w %.2e (limit %.1e), e_g %.2e (limit %.1e), of all %.2e (limit %.1e)\n",
            head_of(run), v->weight_difference, v->weight_limit, v->gradient_difference,
            v->gradient_limit, v->gradient_rms, v->gradient_rms_limit);
    print_layerwise(&v->layerwise, out);
    return ghp_file_flush(out, "the report");
}
