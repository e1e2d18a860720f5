/* executor/report/run_result.c - see report/run_result.h. */
#include "executor/platform/failpoint.h"
#include "executor/report/run_result.h"

#include "executor/opbench/speed_probe.h"
#include "executor/report/straggler_wait.h"
#include "executor/state/parameters.h"

#include <stdlib.h>

enum { JOBS = 2 }; /* of the speed probe */

/* The greatest of all workers, -1 if one does not know. */
static enum ghp_status greatest_of(struct ghp_setup *s, int64_t mine, int64_t *greatest)
{
    int64_t *all = ghp_alloc((size_t)s->size, sizeof *all);
    enum ghp_status status = ghp_setup_agree(s, all != NULL ? GHP_OK : GHP_NO_MEMORY(), "memory");

    if (status == GHP_OK)
        status = s->world->ops->all_gather(s->world, &mine, all, (int64_t)sizeof mine);
    *greatest = mine;
    for (int r = 0; status == GHP_OK && r < s->size; r++)
        *greatest = all[r] < 0 || *greatest < 0 ? -1 : all[r] > *greatest ? all[r] : *greatest;
    free(all);
    return status;
}

static void fill_run(const struct ghp_setup *s, const struct ghp_session_plan *e,
                     const struct ghp_training *t, struct ghp_run_result *run_result)
{
    struct ghp_run *run = &run_result->run;
    double step_s = run_result->prediction_errors.step.measured_s;

    run->plan = &e->plan;
    run->plan_path = e->path;
    run->program = ghp_worker_program(e->worker);
    run->prediction_errors = &run_result->prediction_errors;
    run->backend = s->exec.backend_ops->name;
    run->numerics = s->exact ? "exact" : "fast";
    run->data = ghp_data_text(s->training_config.data);
    run->fault = ghp_fault_names[s->options->fault];
    if (s->options->emulate != NULL)
        run->emulation = ghp_emulation_format(&s->emulation, run_result->emulation);
    run->precision = s->precision;
    run->threads = s->threads;
    run->oversubscribed = s->binding.oversubscribed;
    run->comparable = e->comparable;
    run->program_hash = e->program_hash;
    run->seed = (uint64_t)s->options->seed;
    run->first_step = t->first_step;
    run->steps = t->done;
    run->images_per_s = step_s > 0 ? (double)e->plan.problem.global_batch / step_s : 0;
    run->tokens_per_s = run->images_per_s * (double)ghp_model_tokens(&e->plan.model);
    run->seconds = t->seconds;
    run->mixed = ghp_worker_mixed(e->worker);
    if (ghp_sync_runs_free(e->plan.method.sync) &&
        t->seconds > 0) { /* by the steps of all workers */
        run->images_per_s = (double)(e->plan.problem.global_batch * t->losses.steps) / t->seconds;
        run->tokens_per_s = run->images_per_s * (double)ghp_model_tokens(&e->plan.model);
    }
    run->resident_exact = t->memory != NULL && t->memory->exact;
    run->samples_loaded = ghp_worker_prefetched(e->worker).taken;
    run->samples_made_ahead = ghp_worker_prefetched(e->worker).made;
    run->from_files = ghp_data_from_files(s->training_config.data);
    run->files_skipped = ghp_data_skipped(s->training_config.data);
    run->checkpoints = t->checkpoints.cost;
    run->losses = &t->losses;
    run->has_accuracy = t->has_evaluation;
    run->of_numbers = t->evaluation.of_numbers;
    run->test_accuracy = t->evaluation.accuracy;
    run->test_absolute_error = t->evaluation.absolute_error;
    run->test_loss = t->evaluation.loss;
    run->test_perplexity = t->evaluation.perplexity;
    run->test_samples = t->evaluation.samples;
}

static enum ghp_status join(const struct ghp_session_plan *e,
                            struct ghp_prediction_errors *prediction_errors)
{
    const struct ghp_profile *profile = &e->plan.profile;
    struct ghp_lowering lowering = ghp_plan_lowering(&e->plan, profile);
    bool costed = profile->n_ops > 0 || profile->analytic.flops_per_s > 0;
    struct ghp_prospect prospect = {.program = ghp_worker_program(e->worker),
                                    .stage = ghp_worker_placement(e->worker)->stage,
                                    .profile = costed ? profile : NULL,
                                    .n_layers = e->plan.model.n_layers};
    struct ghp_programs programs = {0};
    enum ghp_status status = GHP_OK;

    lowering.element_bytes = prospect.program->element_bytes; /* as it runs */
    if (costed && lowering.staging != NULL) {
        GHP_TRY(ghp_lower_all(&lowering, e->plan.splits, &programs));
        prospect.programs = &programs;
    }
    status =
        ghp_prediction_errors_init(&prospect, ghp_worker_step_timer(e->worker), prediction_errors);
    ghp_programs_release(&programs);
    return status;
}

/* What instructions take by themselves, apart from waiting for stragglers: over all workers, of several stages over the
 * worker's own, who have the same instructions. */
static enum ghp_status compare_workers(const struct ghp_setup *s, const struct ghp_session_plan *e,
                                       struct ghp_prediction_errors *prediction_errors)
{
    struct ghp_straggler_wait_request request = {s->session->transport->control, s->world, s->size};
    const struct ghp_placement *placement = ghp_worker_placement(e->worker);

    if (placement->n_stages > 1) {
        request.n = placement->problem.workers;
        GHP_TRY(ghp_collectives_group(
            s->session->transport->host,
            ghp_placement_ranks(placement, (struct ghp_ranks){.count = request.n, .stride = 1}),
            GHP_STREAM_COMPUTE, &request.comm));
    }
    request.comm->label = "comparing the workers' times";
    return ghp_straggler_wait_compare(&request, ghp_worker_program(e->worker),
                                      ghp_worker_step_timer(e->worker), prediction_errors);
}

/* Once, on all workers at once: their mean. */
static enum ghp_status time_machine(struct ghp_setup *s, struct ghp_speed_probe *mean)
{
    struct ghp_speed_prober *prober = NULL;
    double mine[JOBS] = {0}, *all = ghp_alloc((size_t)s->size * JOBS, sizeof *all);
    struct ghp_speed_probe now = {0};
    enum ghp_status status = all != NULL ? GHP_OK : GHP_NO_MEMORY();

    if (status == GHP_OK)
        status = ghp_speed_prober_open(s->exec.backend_ops, s->exec.backend, &prober);
    GHP_TRY_GOTO(status, ghp_setup_agree(s, status, "preparing to time the machine"), done);
    status = ghp_speed_prober_time(prober, &now);
    GHP_TRY_GOTO(status, ghp_setup_agree(s, status, "timing the machine"), done);
    mine[0] = now.compute_s;
    mine[1] = now.memory_s;
    GHP_TRY_GOTO(status, s->world->ops->all_gather(s->world, mine, all, sizeof mine), done);
    for (int r = 0; r < s->size; r++) {
        mean->compute_s += all[r * JOBS] / s->size;
        mean->memory_s += all[r * JOBS + 1] / s->size;
    }
done:
    ghp_speed_prober_close(prober);
    free(all);
    return status;
}

/* Compares the speed with the profile's, if that is of this machine. */
static enum ghp_status compare_speed(struct ghp_setup *s, const struct ghp_session_plan *e,
                                     struct ghp_speed_probe *ratio)
{
    const struct ghp_profile *profile = &e->plan.profile;
    struct ghp_speed_probe now = {0};

    if (!e->comparable || s->options->emulate != NULL || !(profile->speed_probe.compute_s > 0))
        return GHP_OK;
    GHP_TRY(time_machine(s, &now));
    *ratio = ghp_speed_probe_ratio(&now, &profile->speed_probe);
    return GHP_OK;
}

enum ghp_status ghp_run_result_init(struct ghp_setup *s, const struct ghp_session_plan *e,
                                    const struct ghp_training *t, struct ghp_run_result *run_result)
{
    struct ghp_run *run = &run_result->run;
    struct ghp_tensors_list list = {0};
    int64_t resident = t->memory != NULL ? ghp_memory_over_base(t->memory) : -1;
    int64_t image = t->checkpoints.cost.image_bytes;
    enum ghp_status status = GHP_OK;

    *run_result = (struct ghp_run_result){.run = {.different = -1}};
    GHP_TRY(ghp_setup_agree(s, join(e, &run_result->prediction_errors), "joining predictions"));
    GHP_TRY(ghp_setup_agree(s, ghp_tensors_list_init(&e->plan.model, &list), "listing tensors"));
    fill_run(s, e, t, run_result);
    if (resident > image) resident -= image;
    GHP_TRY_GOTO(status,
                 ghp_setup_agree(s,
                                 ghp_checkpoint_predict(e->worker, &e->plan.profile,
                                                        &run->predicted_checkpoint),
                                 "predicting checkpoints"),
                 done);
    GHP_TRY_GOTO(status, compare_workers(s, e, &run_result->prediction_errors), done);
    GHP_TRY_GOTO(status, greatest_of(s, ghp_worker_late_steps(e->worker), &run->late_steps), done);
    GHP_TRY_GOTO(status, compare_speed(s, e, &run->speed), done);
    GHP_TRY_GOTO(status, greatest_of(s, resident, &run->peak_rss_over_base_bytes), done);
    GHP_TRY_GOTO(status, greatest_of(s, ghp_worker_arena(e->worker)->bytes, &run->allocated_bytes),
                 done);
    GHP_TRY_GOTO(status,
                 greatest_of(s, ghp_worker_program(e->worker)->peak_bytes, &run->peak_bytes), done);
    if (e->comparable) run->peak_bytes = e->plan.predicted.peak_bytes;
    ghp_failpoint_reach(GHP_FAILPOINT_COMPARISON);
    GHP_TRY_GOTO(status, ghp_parameters_compare(e->worker, &list, &run->different), done);
    GHP_TRY_GOTO(status, ghp_parameters_fingerprint(e->worker, &list, &run->weights_hash), done);
    if (run->different >= 0) run_result->different = list.items[run->different].param->name;
done:
    ghp_tensors_release(&list);
    return status;
}

void ghp_run_result_release(struct ghp_run_result *run_result)
{
    ghp_prediction_errors_release(&run_result->prediction_errors);
}
