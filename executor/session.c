/* executor/session.c - see session.h. */
#include "executor/session.h"

#include "core/log.h"
#include "executor/checkpoint.h"
#include "executor/parameters.h"
#include "executor/run_file.h"
#include "executor/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_STEPS = 20 };

struct parts { /* all that a session owns */
    struct ghp_session *session;
    const struct ghp_session_options *options;
    struct ghp_comm *world;
    int rank, size;
    struct ghp_plan plan;
    struct ghp_binding binding;
    struct ghp_team team;
    struct ghp_work work;
    bool comparable; /* the plan's profile is of this backend, precision and numerics */
    bool exact;
    int threads;
    struct ghp_recipe recipe;
    struct ghp_worker *worker;
    struct ghp_memory memory;
    struct ghp_training training;
    struct ghp_snapshot mine, lone;
    struct ghp_tensors_list list;
};

static enum ghp_status agree(struct parts *p, enum ghp_status status, const char *what)
{
    p->session->transport_ops->label(p->world, what);
    return p->session->transport_ops->agree(p->world, status);
}

/* ---- the plan, and whether it is for us ---- */

static enum ghp_status check_model(const struct parts *p)
{
    struct ghp_model model = {0};
    enum ghp_status status = GHP_OK;

    if (p->options->model_path == NULL) return GHP_OK;
    GHP_TRY(ghp_model_load(p->options->model_path, &model));
    if (model.hash != p->plan.model_hash)
        status = GHP_FAIL(
            GHP_ERR_INPUT,
            "'%s' was made for another model ('%s') than '%s'; plan that model with ghp-plan",
            p->options->plan_path, p->plan.model.name, p->options->model_path);
    ghp_model_release(&model);
    return status;
}

static enum ghp_status open_plan(struct parts *p)
{
    GHP_TRY(ghp_plan_load(p->options->plan_path, &p->plan));
    if (p->size != p->plan.extent.workers)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' is for %d worker(s), but %d were started; start it with mpirun -n "
                        "%d, or plan for %d",
                        p->options->plan_path, p->plan.extent.workers, p->size,
                        p->plan.extent.workers, p->size);
    GHP_TRY(ghp_plan_check(&p->plan));
    return check_model(p);
}

/* ---- who computes ---- */

static const struct ghp_backend_ops *choose_backend(const struct parts *p, int element_bytes)
{
    const struct ghp_backend_ops *ops;

    if (p->options->backend != NULL) return ghp_backend_find(p->options->backend);
    ops = ghp_backend_find(p->plan.profile.backend);
    if (ops != NULL && ops->has_precision(element_bytes)) return ops;
    ops = ghp_backend_find("onednn"); /* a profile by law names no backend */
    return ops != NULL && ops->has_precision(element_bytes) ? ops : ghp_backend_find("reference");
}

static enum ghp_status open_backend(struct parts *p)
{
    const struct ghp_session_options *o = p->options;
    const struct ghp_profile *profile = &p->plan.profile;
    int element_bytes = o->precision == GHP_PRECISION_OF_PLAN ? profile->element_bytes
                        : o->precision == GHP_PRECISION_8     ? 8
                                                              : 4;
    const struct ghp_backend_ops *ops = choose_backend(p, element_bytes);
    struct ghp_backend_config config;

    if (ops == NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "unknown backend '%s'; use onednn or reference", o->backend);
    if (!ops->has_precision(element_bytes))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "the backend '%s' has no %s precision; use --backend reference", ops->name,
                        element_bytes == 8 ? "double" : "float");
    p->exact = o->numerics == GHP_NUMERICS_AUTO ? o->verify_steps != GHP_NOT_SET
                                                : o->numerics == GHP_NUMERICS_EXACT;
    p->threads = o->threads == GHP_NOT_SET ? p->binding.n_cores : (int)o->threads;
    config = (struct ghp_backend_config){
        .element_bytes = element_bytes, .threads = p->threads, .exact = p->exact};
    GHP_TRY(ops->open(&config, &p->team.backend));
    p->team.backend_ops = ops;
    p->team.transport_ops = p->session->transport_ops;
    p->team.transport = p->session->transport;
    p->comparable = profile->element_bytes == element_bytes &&
                    strcmp(profile->backend, ops->name) == 0 &&
                    strcmp(profile->numerics, p->exact ? "exact" : "fast") == 0;
    p->work.element_bytes = element_bytes;
    return GHP_OK;
}

/* Workers of this node: what mpirun says, else all. */
static int workers_here(const struct parts *p)
{
    const char *text = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    long n = text != NULL ? strtol(text, NULL, 10) : 0;

    return n >= 1 && n <= p->size ? (int)n : p->size;
}

/* ---- what to train ---- */

static enum ghp_status count_steps(struct parts *p)
{
    const struct ghp_session_options *o = p->options;
    struct ghp_training *t = &p->training;

    t->steps = o->verify_steps != GHP_NOT_SET ? o->verify_steps
               : o->epochs != GHP_NOT_SET     ? o->epochs * ghp_order_steps(&p->recipe.order)
               : o->steps != GHP_NOT_SET      ? o->steps
                                              : DEFAULT_STEPS;
    p->recipe.schedule.steps = t->steps;
    if (o->warmup_steps > t->steps)
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "--warmup %lld is longer than the training of %lld steps; use at most that many",
            (long long)o->warmup_steps, (long long)t->steps);
    return GHP_OK;
}

static enum ghp_status open_recipe(struct parts *p)
{
    const struct ghp_session_options *o = p->options;
    struct ghp_data_request request = {.spec = o->data,
                                       .split = o->split,
                                       .seed = (uint64_t)o->seed,
                                       .global_batch = p->plan.extent.global_batch,
                                       .shape = p->plan.model.layers[0].out,
                                       .classes = p->plan.model.classes};

    GHP_TRY(ghp_init_parse(o->init, request.seed, &p->recipe.init));
    GHP_TRY(ghp_data_open(&request, &p->recipe.data));
    GHP_TRY(ghp_order_init(&p->recipe.order, ghp_data_count(p->recipe.data, GHP_DATA_TRAIN),
                           request.global_batch, request.seed));
    p->recipe.schedule = (struct ghp_schedule){.kind = (enum ghp_schedule_kind)o->schedule,
                                               .base = o->learning_rate,
                                               .warmup_steps = o->warmup_steps};
    p->recipe.momentum = o->momentum;
    p->recipe.weight_decay = o->weight_decay;
    p->training.evaluates = o->evaluate == GHP_EVALUATE_ON || (o->evaluate == GHP_EVALUATE_AUTO &&
                                                               ghp_data_from_files(p->recipe.data));
    if (p->training.evaluates && ghp_data_count(p->recipe.data, GHP_DATA_TEST) == 0) {
        if (o->evaluate == GHP_EVALUATE_ON)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' has no test samples to evaluate; cut some off with --split F, or "
                            "give --eval off",
                            o->data);
        p->training.evaluates = false;
    }
    return count_steps(p);
}

static enum ghp_status open_worker(struct parts *p)
{
    p->work.model = &p->plan.model;
    p->work.splits = p->plan.splits;
    p->work.extent = p->plan.extent;
    p->work.rank = p->rank;
    p->work.bucket_bytes = p->plan.bucket_bytes;
    p->work.seed = (uint64_t)p->options->seed;
    p->work.fault = (enum ghp_fault)p->options->fault;
    p->work.groups = p->plan.groups;
    p->work.profile = p->comparable ? &p->plan.profile : NULL;
    GHP_TRY(ghp_worker_open(&p->team, &p->work, &p->worker));
    GHP_TRY(ghp_tensors_list(&p->plan.model, &p->list));
    if (p->options->verify_steps == GHP_NOT_SET) return GHP_OK;
    GHP_TRY(ghp_snapshot_init(&p->plan.model, p->rank == 0, p->options->verify_steps, &p->lone));
    return ghp_snapshot_init(&p->plan.model, p->rank == 0, p->options->verify_steps, &p->mine);
}

/* Files that will be written are opened, or at least tried, before the work starts. */
static enum ghp_status open_outputs(struct parts *p)
{
    const struct ghp_session_options *o = p->options;

    if (p->rank != 0) return GHP_OK;
    if (o->metrics_path != NULL)
        GHP_TRY(ghp_metrics_open(o->metrics_path, o->resume, &p->training.metrics));
    return o->checkpoint_folder != NULL ? ghp_checkpoint_prepare(o->checkpoint_folder) : GHP_OK;
}

static enum ghp_status open_all(struct parts *p)
{
    const struct ghp_session_options *o = p->options;
    struct ghp_crew crew;

    GHP_TRY(agree(p, open_plan(p), "reading the plan"));
    crew = (struct ghp_crew){.workers = p->size, .rank = p->rank, .here = workers_here(p)};
    GHP_TRY(agree(
        p,
        ghp_binding_set(&p->plan.profile.machine, crew, (enum ghp_bind_mode)o->bind, &p->binding),
        "binding"));
    GHP_TRY(agree(p, open_backend(p), "opening the backend"));
    GHP_TRY(agree(p, open_recipe(p), "opening the data"));
    GHP_TRY(agree(p, open_worker(p), "preparing kernels"));
    GHP_TRY(agree(p, open_outputs(p), "opening outputs"));
    ghp_note("%s: %s, %s, numerics %s, %d thread(s) a worker, %s", p->plan.model.name,
             p->team.backend_ops->name, p->work.element_bytes == 8 ? "double" : "float",
             p->exact ? "exact" : "fast", p->threads, p->binding.text);
    ghp_note("%s", ghp_data_text(p->recipe.data));
    if (p->binding.oversubscribed)
        ghp_note("workers share cores: this node has fewer than its %d workers", crew.here);
    if (o->fault != GHP_FAULT_NONE)
        ghp_warn("the fault '%s' is on: this training is wrong on purpose",
                 ghp_fault_names[o->fault]);
    return GHP_OK;
}

/* ---- first weights ---- */

/* A checkpoint is gone on from only where the next batches and masks are the ones that would have followed. */
static enum ghp_status check_checkpoint(const struct parts *p, const struct ghp_checkpoint *c)
{
    const struct ghp_session_options *o = p->options;
    const struct ghp_order *order = &p->recipe.order;

    if (c->seed != (uint64_t)o->seed)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "the checkpoint in '%s' was made with seed %llu, not %lld; resume with --seed %llu",
            o->checkpoint_folder, (unsigned long long)c->seed, (long long)o->seed,
            (unsigned long long)c->seed);
    if (c->global_batch != order->global_batch || c->samples != order->n)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the checkpoint in '%s' was made with batches of %lld from %lld samples, "
                        "not of %lld from %lld; resume with the same, or start anew from its "
                        "weights with --init",
                        o->checkpoint_folder, (long long)c->global_batch, (long long)c->samples,
                        (long long)order->global_batch, (long long)order->n);
    if (c->step >= p->training.steps)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the checkpoint in '%s' has done %lld steps already, and %lld are asked "
                        "for; raise --steps or --epochs",
                        o->checkpoint_folder, (long long)c->step, (long long)p->training.steps);
    return GHP_OK;
}

static enum ghp_status load_weights(struct parts *p)
{
    struct ghp_checkpoint checkpoint = {0};

    if (!p->options->resume) return ghp_init_weights(p->worker, &p->recipe.init);
    GHP_TRY(ghp_checkpoint_load(p->options->checkpoint_folder, p->worker, &checkpoint));
    GHP_TRY(check_checkpoint(p, &checkpoint));
    p->training.first_step = checkpoint.step;
    ghp_note("resuming after step %lld", (long long)checkpoint.step);
    return p->training.metrics != NULL ? ghp_metrics_resume(p->training.metrics, checkpoint.step)
                                       : GHP_OK;
}

static enum ghp_status allocate_all(struct parts *p)
{
    struct ghp_training *t = &p->training;

    GHP_TRY(ghp_worker_connect(p->worker));
    GHP_TRY(agree(p, GHP_OK, "connecting"));
    ghp_memory_begin(&p->memory);
    GHP_TRY(agree(p, ghp_worker_allocate(p->worker), "allocating"));
    GHP_TRY(agree(p, load_weights(p), "making the first weights"));
    t->losses = ghp_alloc((size_t)(t->steps - t->first_step), sizeof(*t->losses));
    return agree(p, t->losses != NULL ? GHP_OK : GHP_NO_MEMORY(), "allocating");
}

static enum ghp_status train(struct parts *p)
{
    struct ghp_training *t = &p->training;
    enum ghp_status status;

    t->worker = p->worker;
    t->recipe = &p->recipe;
    t->checkpoint_folder = p->options->checkpoint_folder;
    t->checkpoint_every = p->options->checkpoint_every;
    t->memory = &p->memory;
    t->snapshot = p->options->verify_steps != GHP_NOT_SET ? &p->mine : NULL;
    p->session->in_loop = true;
    status = ghp_train(t);
    if (status == GHP_OK) p->session->in_loop = false;
    return status;
}

/* ---- afterwards ---- */

/* Greatest resident memory over base of all workers, -1 where one does not know. */
static enum ghp_status greatest_resident(struct parts *p, int64_t mine, int64_t *greatest)
{
    int64_t *all = ghp_alloc((size_t)p->size, sizeof(*all));
    enum ghp_status status;

    if (all == NULL) return GHP_NO_MEMORY();
    status = p->session->transport_ops->all_gather(p->world, &mine, all, (int64_t)sizeof(mine));
    *greatest = mine;
    for (int r = 0; status == GHP_OK && r < p->size; r++)
        *greatest = all[r] < 0 || *greatest < 0 ? -1 : all[r] > *greatest ? all[r] : *greatest;
    free(all);
    return status;
}

static void fill_run(const struct parts *p, const struct ghp_residuals *residuals,
                     struct ghp_run *run)
{
    const struct ghp_training *t = &p->training;
    double step_s = residuals->step.measured_s;

    run->plan = &p->plan;
    run->plan_path = p->options->plan_path;
    run->program = ghp_worker_program(p->worker);
    run->residuals = residuals;
    run->backend = p->team.backend_ops->name;
    run->numerics = p->exact ? "exact" : "fast";
    run->data = ghp_data_text(p->recipe.data);
    run->fault = ghp_fault_names[p->options->fault];
    run->element_bytes = p->work.element_bytes;
    run->threads = p->threads;
    run->oversubscribed = p->binding.oversubscribed;
    run->comparable = p->comparable;
    run->seed = (uint64_t)p->options->seed;
    run->first_step = t->first_step;
    run->steps = t->steps;
    run->images_per_s = step_s > 0 ? (double)p->plan.extent.global_batch / step_s : 0;
    run->seconds = t->seconds;
    run->peak_bytes = p->comparable ? p->plan.predicted.peak_bytes : run->program->peak_bytes;
    run->allocated_bytes = ghp_worker_arena(p->worker)->bytes;
    run->resident_exact = p->memory.exact;
    run->n_losses = t->n_losses;
    run->losses = t->losses;
    run->has_accuracy = t->has_evaluation;
    run->test_accuracy = t->evaluation.accuracy;
    run->test_loss = t->evaluation.loss;
    run->test_samples = t->evaluation.samples;
}

static enum ghp_status print_all(const struct parts *p, const struct ghp_run *run)
{
    if (p->options->run_path != NULL)
        GHP_TRY(ghp_run_save(p->options->run_path, run, p->session->tool));
    if (p->options->json) {
        json_t *summary = ghp_run_summary(run, p->session->tool);
        char *text = NULL;

        if (summary == NULL) return GHP_NO_MEMORY();
        GHP_TRY(ghp_json_text_of(summary, &text));
        json_decref(summary);
        fputs(text, stdout);
        free(text);
    } else {
        GHP_TRY(ghp_report_run(run, stdout));
        if (run->verification != NULL) {
            printf("\n");
            GHP_TRY(ghp_report_verification(run, stdout));
        }
    }
    return fflush(stdout) == 0 ? GHP_OK
                               : GHP_FAIL(GHP_ERR_IO, "cannot write to stdout; see where it goes");
}

/* Rank 0, after all that needs the others. */
static enum ghp_status conclude(struct parts *p, struct ghp_run *run)
{
    struct ghp_verification verification = {0};
    enum ghp_status status = GHP_OK;

    if (p->options->verify_steps != GHP_NOT_SET) {
        ghp_note("training one worker for comparison");
        GHP_TRY(ghp_verify_lone(&p->team, &p->work, &p->recipe, p->training.n_losses, &p->lone));
        GHP_TRY(ghp_verify_compare(&p->mine, &p->lone, p->work.element_bytes, &verification));
        run->verification = &verification;
        run->n_lone_losses = p->lone.n_losses;
        run->lone_losses = p->lone.losses;
        p->session->verified = verification.passed && run->different < 0;
    }
    status = print_all(p, run);
    ghp_verification_release(&verification);
    return status;
}

static enum ghp_status finish(struct parts *p)
{
    struct ghp_residuals residuals = {0};
    struct ghp_run run = {.different = -1};
    int64_t resident = ghp_memory_over_base(&p->memory);
    bool priced = p->plan.profile.n_ops > 0 || p->plan.profile.law.flops_per_s > 0;
    enum ghp_status status = ghp_residuals_init(
        ghp_worker_program(p->worker), p->plan.model.n_layers, priced ? &p->plan.profile : NULL,
        ghp_worker_stopwatch(p->worker), &residuals);

    GHP_TRY_GOTO(status, agree(p, status, "joining predictions"), done);
    fill_run(p, &residuals, &run);
    GHP_TRY_GOTO(status, greatest_resident(p, resident, &run.peak_rss_over_base_bytes), done);
    GHP_TRY_GOTO(status, ghp_parameters_compare(p->worker, &p->list, &run.different), done);
    GHP_TRY_GOTO(status, ghp_parameters_fingerprint(p->worker, &p->list, &run.weights_hash), done);
    if (p->rank == 0) status = conclude(p, &run);
    if (status == GHP_OK && run.different >= 0 && p->options->fault == GHP_FAULT_NONE)
        status = GHP_FAIL(GHP_ERR_INTERNAL,
                          "replicas of '%s' differ between workers; report this with the plan",
                          p->list.items[run.different].param->name);
done:
    ghp_residuals_release(&residuals);
    return status;
}

static void parts_release(struct parts *p)
{
    ghp_snapshot_release(&p->lone);
    ghp_snapshot_release(&p->mine);
    ghp_tensors_release(&p->list);
    free(p->training.losses);
    ghp_metrics_close(p->training.metrics);
    ghp_worker_close(p->worker);
    ghp_order_release(&p->recipe.order);
    ghp_data_close(p->recipe.data);
    if (p->team.backend != NULL) p->team.backend_ops->close(p->team.backend);
    ghp_plan_release(&p->plan);
}

enum ghp_status ghp_session_run(struct ghp_session *session)
{
    struct parts p = {.session = session, .options = session->options};
    enum ghp_status status;

    p.rank = session->transport_ops->rank(session->transport);
    p.size = session->transport_ops->size(session->transport);
    session->verified = true;
    GHP_TRY(session->transport_ops->group(session->transport, (struct ghp_ranks){0, p.size, 1},
                                          GHP_STREAM_COMPUTE, &p.world));
    GHP_TRY_GOTO(status, open_all(&p), done);
    GHP_TRY_GOTO(status, allocate_all(&p), done);
    GHP_TRY_GOTO(status, train(&p), done);
    GHP_TRY_GOTO(status, finish(&p), done);
done:
    if (!session->in_loop) parts_release(&p); /* a thread may hang in there: abort follows */
    return status;
}
