/* executor/report/run_file.c - see run_file.h. */
#include "executor/report/run_file.h"

#include "core/base/hash.h"
#include "core/base/json_lines.h"
#include "executor/report/overlap.h"

#include <math.h>
#include <stdlib.h>

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void put(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static json_t *hash(uint64_t value)
{
    char text[17];

    ghp_hash_text(value, text);
    return json_string(text);
}

static void put_option(const char *name, const char *value, void *context)
{
    put(context, name, value != NULL ? json_string(value) : json_null());
}

static void put_losses(json_t *o, const char *key, const struct ghp_losses *losses)
{
    json_t *array = json_array();

    for (int i = 0; i < losses->n; i++)
        json_array_append_new(array, real(losses->kept[i]));
    put(o, key, array);
}

static json_t *mixing(const struct ghp_mix_count *m)
{
    json_t *o = json_pack("{s:I, s:I, s:I, s:f}", "steps", (json_int_t)m->mixes, "sent_bytes",
                          (json_int_t)m->sent_bytes, "received_bytes",
                          (json_int_t)m->received_bytes, "waited_s", m->waited_s);

    if (m->led_most == 0) return o;
    put(o, "led_least", json_integer((json_int_t)m->led_least));
    put(o, "led_most", json_integer((json_int_t)m->led_most));
    return o;
}

static void put_what(json_t *o, const struct ghp_run *run)
{
    const struct ghp_plan *plan = run->plan;

    put(o, "plan", json_string(run->plan_path));
    put(o, "what_if", plan->what_if.n > 0 ? ghp_overrides_json(&plan->what_if) : json_null());
    put(o, "model", json_string(plan->model.name));
    put(o, "model_hash", hash(plan->model_hash));
    put(o, "profile_hash", hash(plan->profile_hash));
    put(o, "program_hash", hash(run->program_hash));
    put(o, "strategy", json_string(ghp_strategy_name(plan->strategy)));
    put(o, "workers", json_integer(plan->problem.workers));
    put(o, "groups", json_integer(plan->groups));
    put(o, "group_size", json_integer(plan->group_size));
    put(o, "global_batch", json_integer(plan->problem.global_batch));
    put(o, "bucket_cap_bytes", json_integer(plan->method.bucket_bytes));
    put(o, "backend", json_string(run->backend));
    put(o, "precision", json_string(ghp_precision_name(run->precision)));
    put(o, "numerics", json_string(run->numerics));
    put(o, "threads", json_integer(run->threads));
    put(o, "oversubscribed", json_boolean(run->oversubscribed));
    put(o, "comparable", json_boolean(run->comparable));
    if (run->speed.compute_s > 0)
        put(o, "speed_probe",
            json_pack("{s:f, s:f}", "compute", run->speed.compute_s, "memory",
                      run->speed.memory_s));
    if (run->guard.step > 0)
        put(o, "guard",
            json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:b}", "step", (json_int_t)run->guard.step,
                      "plan_step_s", run->guard.plan_step_s, "data_step_s", run->guard.data_step_s,
                      "ratio", run->guard.ratio, "ratio_low", run->guard.ratio_low, "ratio_high",
                      run->guard.ratio_high, "switched", run->guard.switched));
    put(o, "data", json_string(run->data));
    put(o, "injected_fault", json_string(run->fault));
    if (run->emulation != NULL) {
        put(o, "emulation", json_string(run->emulation));
        put(o, "emulation_late_steps", json_integer(run->late_steps));
    }
    if (run->mixed.mixes > 0) put(o, "mixing", mixing(&run->mixed));
    put(o, "seed", json_integer((json_int_t)run->seed));
    put(o, "first_step", json_integer(run->first_step));
    put(o, "steps", json_integer(run->losses->steps));
}

/* The checkpoints of worker 0. */
static json_t *checkpoints(const struct ghp_run *run)
{
    const struct ghp_checkpoint_cost *c = &run->checkpoints;
    const struct ghp_checkpoint_prediction *p = &run->predicted_checkpoint;
    json_t *o = json_object();

    put(o, "files", json_integer(c->saves));
    put(o, "files_beside", json_integer(c->concurrent));
    put(o, "bytes", json_integer(c->bytes));
    put(o, "predicted_image_bytes", json_integer(p->image_bytes));
    put(o, "image_bytes", json_integer(c->image_bytes));
    put(o, "predicted_gather_s", p->gather_s >= 0 ? real(p->gather_s) : json_null());
    put(o, "measured_gather_s", real(c->gather_s));
    put(o, "predicted_core_s", real(p->core_s));
    put(o, "measured_core_s", real(c->core_s));
    put(o, "measured_disk_s", real(c->disk_s));
    put(o, "measured_waited_s", real(c->waited_s));
    put(o, "measured_between_s", real(c->between_s));
    return o;
}

static void put_results(json_t *o, const struct ghp_run *run)
{
    put(o, "predicted_step_s",
        run->prediction_errors->predicted ? real(run->prediction_errors->step.predicted_s)
                                          : json_null());
    put(o, "measured_step_s", real(run->prediction_errors->step.measured_s));
    put(o, "images_per_s", real(run->images_per_s));
    if (run->tokens_per_s > 0) put(o, "tokens_per_s", real(run->tokens_per_s));
    put(o, "measured_training_s", real(run->seconds));
    put(o, "peak_bytes", json_integer(run->peak_bytes));
    put(o, "allocated_bytes", json_integer(run->allocated_bytes));
    put(o, "peak_rss_over_base_bytes",
        run->peak_rss_over_base_bytes >= 0 ? json_integer(run->peak_rss_over_base_bytes)
                                           : json_null());
    if (run->samples_loaded > 0) {
        put(o, "samples_loaded", json_integer(run->samples_loaded));
        put(o, "samples_prefetched", json_integer(run->samples_made_ahead));
    }
    if (run->files_skipped > 0) put(o, "files_skipped", json_integer(run->files_skipped));
    if (run->checkpoints.saves > 0) put(o, "checkpoints", checkpoints(run));
    put(o, "final_loss", run->losses->steps > 0 ? real(run->losses->last) : json_null());
    put(o, "test_accuracy",
        run->has_accuracy && !run->of_numbers ? real(run->test_accuracy) : json_null());
    if (run->has_accuracy && run->of_numbers)
        put(o, "test_absolute_error", real(run->test_absolute_error));
    put(o, "test_loss", run->has_accuracy ? real(run->test_loss) : json_null());
    if (run->has_accuracy && run->test_perplexity > 0)
        put(o, "test_perplexity", real(run->test_perplexity));
    put(o, "test_samples", run->has_accuracy ? json_integer(run->test_samples) : json_null());
    put(o, "weights_hash", hash(run->weights_hash));
    put(o, "replicas_equal", json_boolean(run->different < 0));
    put_losses(o, "losses", run->losses);
    if (run->losses->every > 1) put(o, "losses_every", json_integer(run->losses->every));
}

static json_t *finding(const struct ghp_finding *f)
{
    json_t *o = json_object(), *index = json_array();

    put(o, "step", json_integer(f->step));
    put(o, "what", json_string(ghp_traced_texts[f->kind]));
    put(o, "tensor", json_string(f->name));
    put(o, "ratio", real(f->ratio));
    put(o, "difference", real(f->difference));
    put(o, "rounding", real(f->noise));
    for (int d = 0; d < f->n_index; d++)
        json_array_append_new(index, json_integer(f->index[d]));
    put(o, "index", index);
    put(o, "rank", json_integer(f->rank));
    return o;
}

static void put_verification(json_t *o, const struct ghp_run *run)
{
    const struct ghp_verification *v = run->verification;

    put(o, "max_relative_difference", v != NULL ? real(v->weight_difference) : json_null());
    put(o, "max_relative_gradient_difference",
        v != NULL ? real(v->gradient_difference) : json_null());
    if (v != NULL) put(o, "rms_relative_gradient_difference", real(v->gradient_rms));
    put(o, "verified",
        v != NULL ? json_boolean(ghp_verification_exit_code(v, run->different >= 0) == 0)
                  : json_null());
    if (v != NULL) put(o, "verdict", json_string(ghp_verdict_names[v->layerwise.verdict]));
    if (v != NULL && v->layerwise.found) put(o, "furthest", finding(&v->layerwise.finding));
    if (v != NULL) put_losses(o, "losses_of_one_worker", run->alone_losses);
}

json_t *ghp_run_summary(const struct ghp_run *run, const struct ghp_tool *tool)
{
    json_t *o = json_object(), *options = json_object();

    if (o == NULL || options == NULL) {
        json_decref(o);
        json_decref(options);
        return NULL;
    }
    put(o, "format", json_string("ghp.run/2"));
    put_what(o, run);
    put_results(o, run);
    put_verification(o, run);
    ghp_opts_each(tool, put_option, options);
    put(o, "options", options);
    return o;
}

/* ---- the file ---- */

static void put_term(json_t *o, const struct ghp_run *run, struct ghp_error_term term)
{
    put(o, "predicted_s", run->prediction_errors->predicted ? real(term.predicted_s) : json_null());
    put(o, "measured_s", real(term.measured_s));
}

static json_t *phases(const struct ghp_run *run)
{
    json_t *array = json_array(), *o;

    for (int p = 0; p < GHP_PHASE_COUNT; p++) {
        o = json_object();
        put(o, "phase", json_string(ghp_phase_name((enum ghp_phase)p)));
        put_term(o, run, run->prediction_errors->phases[p]);
        json_array_append_new(array, o);
    }
    o = json_object();
    put(o, "phase", json_string("launch overhead"));
    put_term(o, run, run->prediction_errors->between);
    json_array_append_new(array, o);
    return array;
}

static json_t *layers(const struct ghp_run *run)
{
    json_t *array = json_array();

    for (int i = 0; i < run->prediction_errors->n_layers; i++) {
        json_t *o = json_object();
        char split[40];

        ghp_split_format(run->plan->splits[i], split, sizeof split);
        put(o, "layer", json_string(run->plan->model.layers[i].name));
        put(o, "split", json_string(split));
        put_term(o, run, run->prediction_errors->layers[i]);
        json_array_append_new(array, o);
    }
    return array;
}

/* What an instruction is: enough to find its price in a profile without the program. */
static void put_instr(json_t *o, const struct ghp_run *run, const struct ghp_instr *instr)
{
    bool sends = ghp_instr_sends(instr);
    char key[GHP_KEY_BYTES] = "";

    if (instr->kind == GHP_INSTR_COMPUTE) ghp_local_key(&instr->local, key);
    put(o, "instruction", json_string(ghp_instr_name(instr)));
    put(o, "layer",
        instr->layer >= 0 ? json_string(run->plan->model.layers[instr->layer].name) : json_null());
    put(o, "stream", json_string(ghp_stream_names[instr->stream]));
    put(o, "backward", json_boolean(instr->backward));
    put(o, "key", instr->kind == GHP_INSTR_COMPUTE ? json_string(key) : json_null());
    put(o, "collective", sends ? json_string(ghp_comm_name(instr->comm)) : json_null());
    put(o, "ranks", json_integer(sends ? instr->ranks.count : 1));
    put(o, "stride", json_integer(sends ? instr->ranks.stride : 1));
    put(o, "bytes", json_integer(instr->bytes));
    put(o, "copy_bytes", json_integer(instr->copy_bytes));
}

static json_t *instructions(const struct ghp_run *run)
{
    json_t *array = json_array();

    for (int i = 0; i < run->prediction_errors->n_instrs; i++) {
        const struct ghp_prediction_error *r = &run->prediction_errors->instrs[i];
        bool predicted = run->prediction_errors->predicted;
        json_t *o = json_object();

        put_instr(o, run, &run->program->instrs[i]);
        put(o, "predicted_start_s", predicted ? real(r->predicted_start_s) : json_null());
        put(o, "predicted_s", predicted ? real(r->predicted_s) : json_null());
        put(o, "measured_start_s", real(r->measured_start_s));
        put(o, "measured_s", real(r->measured_s));
        put(o, "measured_wait_s", real(r->measured_wait_s));
        put(o, "measured_itself_s", real(r->measured_own_s));
        put(o, "measured_straggler_wait_s", real(r->measured_straggler_wait_s));
        json_array_append_new(array, o);
    }
    return array;
}

/* "forward conv2" */
static json_t *instr_text(const struct ghp_run *run, int i)
{
    const struct ghp_instr *instr = &run->program->instrs[i];

    return json_sprintf("%s%s%s", ghp_instr_name(instr), instr->layer >= 0 ? " " : "",
                        instr->layer >= 0 ? run->plan->model.layers[instr->layer].name : "");
}

static json_t *reduction(const struct ghp_run *run, const struct ghp_comm_overlap *h)
{
    const struct ghp_instr *instr = &run->program->instrs[h->instr];
    json_t *o = json_object();

    put(o, "reduction", json_string(ghp_instr_name(instr)));
    put(o, "layer",
        instr->layer >= 0 ? json_string(run->plan->model.layers[instr->layer].name) : json_null());
    put(o, "ranks", json_integer(instr->ranks.count));
    put(o, "sum_bytes", json_integer(instr->bytes));
    put_term(o, run, h->whole);
    put(o, "predicted_exposed_s",
        run->prediction_errors->predicted ? real(h->exposed.predicted_s) : json_null());
    put(o, "measured_exposed_s", real(h->exposed.measured_s));
    put(o, "behind_first", h->behind_first >= 0 ? instr_text(run, h->behind_first) : json_null());
    put(o, "behind_last", h->behind_last >= 0 ? instr_text(run, h->behind_last) : json_null());
    return o;
}

static json_t *reductions(const struct ghp_run *run)
{
    struct ghp_comm_overlap *hidings = ghp_alloc((size_t)run->program->n_instrs, sizeof *hidings);
    json_t *array = json_array();
    int n =
        hidings != NULL ? ghp_comm_overlap_list(run->program, run->prediction_errors, hidings) : 0;

    for (int i = 0; i < n; i++)
        json_array_append_new(array, reduction(run, &hidings[i]));
    free(hidings);
    return array;
}

enum ghp_status ghp_run_save(const char *path, const struct ghp_run *run,
                             const struct ghp_tool *tool)
{
    json_t *o = ghp_run_summary(run, tool);

    if (o == NULL) return GHP_NO_MEMORY();
    put(o, "phases", phases(run));
    put(o, "layers", layers(run));
    put(o, "reductions", reductions(run));
    put(o, "instructions", instructions(run));
    return ghp_json_lines_save(path, o);
}
