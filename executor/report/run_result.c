/* executor/report/run_result.c - see report/run_result.h. */
#include "executor/report/run_result.h"

#include "executor/state/parameters.h"
#include "executor/report/straggler_wait.h"

#include <stdlib.h>

/* The greatest of all workers, -1 where one does not know. */
static enum ghp_status greatest_of(struct ghp_setup *s, int64_t mine, int64_t *greatest)
{
    int64_t *all = ghp_alloc((size_t)s->size, sizeof(*all));
    enum ghp_status status = ghp_setup_agree(s, all != NULL ? GHP_OK : GHP_NO_MEMORY(), "memory");

    if (status == GHP_OK)
        status = s->session->transport_ops->all_gather(s->world, &mine, all, (int64_t)sizeof(mine));
    *greatest = mine;
    for (int r = 0; status == GHP_OK && r < s->size; r++)
        *greatest = all[r] < 0 || *greatest < 0 ? -1 : all[r] > *greatest ? all[r] : *greatest;
    free(all);
    return status;
}

static void fill_run(const struct ghp_setup *s, const struct ghp_entrant *e,
                     const struct ghp_training *t, struct ghp_outcome *outcome)
{
    struct ghp_run *run = &outcome->run;
    double step_s = outcome->residuals.step.measured_s;

    run->plan = &e->plan;
    run->plan_path = e->path;
    run->program = ghp_worker_program(e->worker);
    run->residuals = &outcome->residuals;
    run->backend = s->team.backend_ops->name;
    run->numerics = s->exact ? "exact" : "fast";
    run->data = ghp_data_text(s->recipe.data);
    run->fault = ghp_fault_names[s->options->fault];
    run->precision = s->precision;
    run->threads = s->threads;
    run->oversubscribed = s->binding.oversubscribed;
    run->comparable = e->comparable;
    run->seed = (uint64_t)s->options->seed;
    run->first_step = t->first_step;
    run->steps = t->steps;
    run->images_per_s = step_s > 0 ? (double)e->plan.extent.global_batch / step_s : 0;
    run->seconds = t->seconds;
    run->resident_exact = t->memory != NULL && t->memory->exact;
    run->samples_loaded = ghp_worker_made_ahead(e->worker).taken;
    run->samples_made_ahead = ghp_worker_made_ahead(e->worker).made;
    run->losses = &t->losses;
    run->has_accuracy = t->has_evaluation;
    run->test_accuracy = t->evaluation.accuracy;
    run->test_loss = t->evaluation.loss;
    run->test_samples = t->evaluation.samples;
}

static enum ghp_status join(const struct ghp_entrant *e, struct ghp_residuals *residuals)
{
    const struct ghp_profile *profile = &e->plan.profile;
    struct ghp_lowering how = ghp_plan_lowering(&e->plan, profile);
    bool priced = profile->n_ops > 0 || profile->law.flops_per_s > 0;
    struct ghp_prospect prospect = {.program = ghp_worker_program(e->worker),
                                    .stage = ghp_worker_seat(e->worker)->stage,
                                    .profile = priced ? profile : NULL,
                                    .n_layers = e->plan.model.n_layers};
    struct ghp_programs programs = {0};
    enum ghp_status status = GHP_OK;

    how.element_bytes = prospect.program->element_bytes; /* as it runs */
    if (priced && how.staging != NULL) {
        GHP_TRY(ghp_lower_all(&how, e->plan.splits, &programs));
        prospect.programs = &programs;
    }
    status = ghp_residuals_init(&prospect, ghp_worker_stopwatch(e->worker), residuals);
    ghp_programs_release(&programs);
    return status;
}

/* What instructions take by themselves, apart from waiting for partners: over all workers, of several stages over the
 * worker's own, who have the same instructions. */
static enum ghp_status compare_workers(const struct ghp_setup *s, const struct ghp_entrant *e,
                                       struct ghp_residuals *residuals)
{
    struct ghp_crowd crowd = {s->session->transport_ops, s->world, s->size};
    const struct ghp_seat *seat = ghp_worker_seat(e->worker);

    if (seat->n_stages > 1) {
        crowd.n = seat->extent.workers;
        GHP_TRY(s->session->transport_ops->group(
            s->session->transport,
            ghp_seat_ranks(seat, (struct ghp_ranks){.count = crowd.n, .stride = 1}),
            GHP_STREAM_COMPUTE, &crowd.comm));
    }
    s->session->transport_ops->label(crowd.comm, "comparing the workers' times");
    return ghp_partners_compare(&crowd, ghp_worker_program(e->worker),
                                ghp_worker_stopwatch(e->worker), residuals);
}

enum ghp_status ghp_outcome_init(struct ghp_setup *s, const struct ghp_entrant *e,
                                 const struct ghp_training *t, struct ghp_outcome *outcome)
{
    struct ghp_run *run = &outcome->run;
    struct ghp_tensors_list list = {0};
    int64_t resident = t->memory != NULL ? ghp_memory_over_base(t->memory) : -1;
    enum ghp_status status = GHP_OK;

    *outcome = (struct ghp_outcome){.run = {.different = -1}};
    GHP_TRY(ghp_setup_agree(s, join(e, &outcome->residuals), "joining predictions"));
    GHP_TRY(ghp_setup_agree(s, ghp_tensors_list(&e->plan.model, &list), "listing tensors"));
    fill_run(s, e, t, outcome);
    GHP_TRY_GOTO(status, compare_workers(s, e, &outcome->residuals), done);
    GHP_TRY_GOTO(status, greatest_of(s, resident, &run->peak_rss_over_base_bytes), done);
    GHP_TRY_GOTO(status, greatest_of(s, ghp_worker_arena(e->worker)->bytes, &run->allocated_bytes),
                 done);
    GHP_TRY_GOTO(status,
                 greatest_of(s, ghp_worker_program(e->worker)->peak_bytes, &run->peak_bytes), done);
    if (e->comparable) run->peak_bytes = e->plan.predicted.peak_bytes;
    ghp_fault_stop(GHP_FAULT_STOP_BEFORE_COMPARISON, (enum ghp_fault)s->options->fault, s->rank,
                   s->size);
    GHP_TRY_GOTO(status, ghp_parameters_compare(e->worker, &list, &run->different), done);
    GHP_TRY_GOTO(status, ghp_parameters_fingerprint(e->worker, &list, &run->weights_hash), done);
    if (run->different >= 0) outcome->different = list.items[run->different].param->name;
done:
    ghp_tensors_release(&list);
    return status;
}

void ghp_outcome_release(struct ghp_outcome *outcome)
{
    ghp_residuals_release(&outcome->residuals);
}
