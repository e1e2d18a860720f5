/* executor/cli/session.c - see session.h. */
#include "executor/cli/session.h"

#include "core/base/folder.h"
#include "core/base/log.h"
#include "core/base/opts.h"
#include "core/base/text.h"
#include "executor/cli/evaluation.h"
#include "executor/compare/compare.h"
#include "executor/compare/compare_report.h"
#include "executor/compare/guard.h"
#include "executor/platform/failpoint.h"
#include "executor/platform/folder_lock.h"
#include "executor/state/checkpoint.h"
#include "executor/report/run_result.h"
#include "executor/report/run_file.h"
#include "executor/train/serve.h"
#include "executor/train/session_plan.h"
#include "executor/train/train.h"
#include "onnx/network.h"

#include <stdio.h>
#include <unistd.h>

enum { DEFAULT_STEPS = 20 };

struct parts { /* all that a session owns */
    const struct ghp_session_options *options;
    struct ghp_setup setup;
    struct ghp_session_plan *session_plan; /* whose plan is trained */
    struct ghp_comparison ab;              /* of several plans */
    struct ghp_memory memory;
    struct ghp_training training;
    struct ghp_guard guard;
    struct ghp_snapshot mine, alone;
    struct ghp_verification verification;
    struct ghp_folder_lock *lock; /* of rank 0, on the folder of checkpoints; NULL: none */
};

/* Several plans are compared. They also train only if steps or epochs are asked for. */
static bool compares(const struct parts *p)
{
    return p->options->ab_steps != GHP_NOT_SET;
}

static bool trains(const struct parts *p)
{
    return !compares(p) || p->options->steps != GHP_NOT_SET || p->options->epochs != GHP_NOT_SET;
}

static bool verifies(const struct parts *p)
{
    return p->options->verify_steps != GHP_NOT_SET;
}

/* ---- what to train ---- */

static enum ghp_status count_steps(struct parts *p)
{
    const struct ghp_session_options *o = p->options;
    struct ghp_training_config *training_config = &p->setup.training_config;
    struct ghp_training *t = &p->training;

    t->steps = o->verify_steps != GHP_NOT_SET ? o->verify_steps
               : o->epochs != GHP_NOT_SET     ? o->epochs * ghp_order_steps(&training_config->order)
               : o->steps != GHP_NOT_SET      ? o->steps
               : compares(p)                  ? ghp_compare_steps(o)
                                              : DEFAULT_STEPS;
    training_config->schedule.steps = t->steps;
    return ghp_lr_schedule_check(training_config->schedule);
}

/* What chooses by norms, in place of shuffled epochs; a comparison with other trainings would choose others. */
static enum ghp_status open_sampling(struct parts *p)
{
    struct ghp_training_config *config = &p->setup.training_config;
    struct ghp_sampling_request request = {.rank_plan = &p->session_plan->rank_plan,
                                           .exec = &p->setup.exec,
                                           .samples = config->order.n,
                                           .seed = config->order.seed,
                                           .ignores = p->options->ignored_label != GHP_NO_LABEL};

    if (p->options->sampler == GHP_SAMPLER_UNIFORM) return GHP_OK;
    if (p->options->verify_steps != GHP_NOT_SET || compares(p))
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "--sampler srg trains by other samples than any other plan, so --verify and "
            "--compare have nothing to compare with; leave it out");
    if (p->options->shuffle != GHP_SHUFFLE_EPOCH)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--sampler srg draws each sample, so there is no order that --shuffle %s "
                        "would keep; leave one of them out",
                        ghp_shuffling_names[p->options->shuffle]);
    if (p->options->checkpoint_folder != NULL && request.samples > GHP_CHECKPOINT_NORMS_MOST)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "by --sampler srg a checkpoint has norms of at most %d samples, and there "
                        "are %lld; leave --checkpoint out, or --sampler",
                        GHP_CHECKPOINT_NORMS_MOST, (long long)request.samples);
    ghp_session_plan_describe(&p->setup, p->session_plan);
    return ghp_sampling_open(&request, &config->sampling);
}

/* Plans an evaluation, which needs weights that are trained. */
static enum ghp_status plan_evaluation(struct parts *p)
{
    bool has = true;

    if (p->options->init == NULL) GHP_TRY(ghp_network_has_weights(p->setup.network_path, &has));
    if (!has)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "there are no weights to evaluate: '%s' comes from no file that has some; "
                        "give --init FILE",
                        p->session_plan->plan.model.name);
    p->training.evaluates = p->training.owes_evaluation = true;
    p->training.evaluates_all = ghp_data_count(p->setup.training_config.data, GHP_DATA_TEST) == 0;
    return GHP_OK;
}

/* A training that may end before its last step goes by what is evaluated on the way. */
static enum ghp_status check_patience(const struct parts *p)
{
    if (p->options->patience == 0) return GHP_OK;
    if (!p->training.evaluates || verifies(p))
        return GHP_FAIL(GHP_ERR_INPUT, "--patience goes by the test loss, and nothing is "
                                       "evaluated; give --eval on or --eval-every S, without "
                                       "--verify");
    return GHP_OK;
}

static enum ghp_status plan_training(struct parts *p)
{
    const struct ghp_session_options *o = p->options;
    const struct ghp_data *data = p->setup.training_config.data;

    GHP_TRY(
        ghp_hits_check(&p->session_plan->plan.model, (enum ghp_hits_detail)o->evaluation_detail));
    if (o->only_evaluate) return plan_evaluation(p);
    p->training.evaluates = o->evaluate == GHP_EVALUATE_ON || o->evaluate_every > 0 ||
                            (o->evaluate == GHP_EVALUATE_AUTO && ghp_data_from_files(data));
    if (p->training.evaluates && ghp_data_count(data, GHP_DATA_TEST) == 0) {
        if (o->evaluate == GHP_EVALUATE_ON || o->evaluate_every > 0)
            return GHP_FAIL(
                GHP_ERR_INPUT,
                "'%s' has no test samples to evaluate; cut some off with --train-fraction F, or "
                "give --eval off and leave --eval-every out",
                o->data);
        p->training.evaluates = false;
    }
    if (!p->training.evaluates && o->keep != NULL && ghp_text_begins(o->keep, "best"))
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "--keep %s goes by the test loss, and nothing is evaluated; give --eval on, "
            "or --keep last:K",
            o->keep);
    GHP_TRY(check_patience(p));
    GHP_TRY(open_sampling(p));
    return count_steps(p);
}

static enum ghp_status open_run_folder(const char *folder)
{
    if (folder == NULL) return GHP_OK;
    GHP_TRY(ghp_folder_make(folder, NULL));
    if (access(folder, W_OK | X_OK) == 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_IO,
                    "cannot write run files into '%s'; name a folder that exists or can be made, "
                    "and may be written",
                    folder);
}

/* What a training that is not resumed would write over, unless that was asked for. */
static enum ghp_status refuse_occupied(const struct parts *p)
{
    const struct ghp_session_options *o = p->options;
    bool resumable = o->checkpoint_folder != NULL && !verifies(p);

    if (o->resume || o->overwrite) return GHP_OK;
    if (o->checkpoint_folder != NULL)
        GHP_TRY(ghp_checkpoint_refuse(o->checkpoint_folder, p->session_plan->plan.model.name,
                                      resumable));
    return o->metrics_path != NULL ? ghp_metrics_refuse(o->metrics_path, resumable) : GHP_OK;
}

/* The folder of checkpoints is there, and no other job's. The others wait for rank 0, perhaps for long. */
static enum ghp_status take_folder(struct parts *p)
{
    const struct ghp_session_options *o = p->options;
    struct ghp_control *control = p->setup.session->transport->control;
    enum ghp_status status;

    if (o->checkpoint_folder == NULL) return GHP_OK;
    GHP_TRY(ghp_checkpoint_prepare(o->checkpoint_folder));
    if (o->checkpoint_lock != 0) return GHP_OK;
    control->ops->alone(control, true);
    status = ghp_folder_lock_take(o->checkpoint_folder, ghp_folder_lock_usual, &p->lock);
    control->ops->alone(control, false);
    return status;
}

/* Files that will be written are opened, or at least tried, before the work starts. */
static enum ghp_status open_outputs(struct parts *p)
{
    const struct ghp_session_options *o = p->options;

    if (p->setup.rank != 0) return GHP_OK;
    GHP_TRY(ghp_opts_try_outputs(p->setup.session->tool));
    GHP_TRY(take_folder(p));
    GHP_TRY(refuse_occupied(p));
    if (o->dry_run) return open_run_folder(o->run_folder);
    if (o->metrics_path != NULL)
        GHP_TRY(ghp_metrics_open(o->metrics_path, o->resume, &p->training.metrics));
    if (o->tensorboard_folder != NULL)
        GHP_TRY(ghp_event_file_open(o->tensorboard_folder, &p->training.events));
    if (o->heartbeat_path != NULL)
        GHP_TRY(ghp_heartbeat_open(o->heartbeat_path, &p->training.heartbeat));
    return open_run_folder(o->run_folder);
}

static enum ghp_status open_all(struct parts *p, struct ghp_session *session)
{
    GHP_TRY(ghp_setup_open(session, &p->setup));
    p->session_plan = &p->setup.session_plans[0];
    if (p->setup.server >= 0) return GHP_OK;
    GHP_TRY(ghp_setup_agree(&p->setup, plan_training(p), "planning the training"));
    return ghp_setup_agree(&p->setup, open_outputs(p), "opening outputs");
}

/* ---- several plans ---- */

static enum ghp_status print_comparison(const struct parts *p)
{
    if (!p->options->json) {
        GHP_TRY(ghp_compare_report(&p->ab, &p->setup, stdout));
        if (trains(p)) printf("\n");
    } else if (!trains(p)) {
        GHP_TRY(ghp_json_print(ghp_compare_json(&p->ab, &p->setup, NULL), stdout));
    }
    return ghp_opts_printed();
}

/* The winner is trained from the first weights, by a new worker: as if its plan had been run alone. */
static enum ghp_status compare(struct parts *p)
{
    GHP_TRY(ghp_compare_run(&p->setup, &p->ab));
    p->session_plan = &p->setup.session_plans[p->ab.candidates.winner];
    return ghp_setup_agree(&p->setup, p->setup.rank == 0 ? print_comparison(p) : GHP_OK,
                           "printing the comparison");
}

/* ---- first weights ---- */

/* Training continues from a checkpoint only if the next batches and masks are the ones that would have followed. */
static enum ghp_status check_checkpoint(const struct parts *p, const struct ghp_checkpoint *c)
{
    const struct ghp_session_options *o = p->options;
    const struct ghp_order *order = &p->setup.training_config.order;

    if (c->seed != (uint64_t)o->seed)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "the checkpoint in '%s' was made with seed %llu, not %lld; resume with --seed %llu",
            o->checkpoint_folder, (unsigned long long)c->seed, (long long)o->seed,
            (unsigned long long)c->seed);
    if (c->global_batch != order->global_batch || c->samples != order->n)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the checkpoint in '%s' was made with batches of %lld from %lld samples, "
                        "not of %lld from %lld; resume with the same, or start again from its "
                        "weights with --init",
                        o->checkpoint_folder, (long long)c->global_batch, (long long)c->samples,
                        (long long)order->global_batch, (long long)order->n);
    if (c->step > p->training.steps)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the checkpoint in '%s' has done %lld steps already, and %lld are asked "
                        "for; raise --steps or --epochs",
                        o->checkpoint_folder, (long long)c->step, (long long)p->training.steps);
    return GHP_OK;
}

/* Over the first weights, which the worker has. */
static enum ghp_status load_weights(struct parts *p)
{
    struct ghp_checkpoint checkpoint = {0};
    struct ghp_training *t = &p->training;

    t->checkpoints.path = p->options->checkpoint_folder;
    if (p->options->keep != NULL)
        GHP_TRY(ghp_checkpoint_keep_parse(p->options->keep, &t->checkpoints.keep));
    t->checkpoints.norms = ghp_sampling_norms(p->setup.training_config.sampling);
    if (p->options->ema > 0)
        GHP_TRY(ghp_worker_begin_ema(p->session_plan->worker, p->options->ema));
    if (!p->options->resume) return GHP_OK;
    ghp_failpoint_reach(GHP_FAILPOINT_RESUME);
    GHP_TRY(ghp_checkpoint_load(&t->checkpoints, p->session_plan->worker, &checkpoint));
    GHP_TRY(check_checkpoint(p, &checkpoint));
    t->first_step = checkpoint.step;
    t->heartbeat.step = t->heartbeat.kept = checkpoint.step;
    ghp_heartbeat_write(&t->heartbeat);
    t->owes_evaluation = checkpoint.owes_evaluation && t->evaluates;
    if (t->first_step == t->steps && t->owes_evaluation)
        ghp_note("all %lld steps are done: the last evaluation is left", (long long)t->steps);
    else if (t->first_step == t->steps)
        ghp_note("all %lld steps are done: nothing is left to train", (long long)t->steps);
    else
        ghp_note("resuming after step %lld", (long long)t->first_step);
    if (t->events != NULL) GHP_TRY(ghp_event_file_begin(t->events, t->first_step));
    if (t->metrics == NULL) return GHP_OK;
    return ghp_metrics_resume(t->metrics,
                              (struct ghp_metrics_from){t->first_step, t->owes_evaluation});
}

static enum ghp_status open_snapshots(struct parts *p)
{
    const struct ghp_model *model = &p->session_plan->plan.model;
    bool keeps = p->setup.rank == 0;

    if (p->options->verify_steps == GHP_NOT_SET) return GHP_OK;
    GHP_TRY(ghp_snapshot_init(model, keeps, &p->alone));
    return ghp_snapshot_init(model, keeps, &p->mine);
}

static enum ghp_status prepare(struct parts *p)
{
    GHP_TRY(ghp_session_plan_open(&p->setup, p->session_plan));
    GHP_TRY(ghp_setup_agree(&p->setup, open_snapshots(p), "allocating"));
    ghp_memory_begin(&p->memory);
    GHP_TRY(ghp_session_plan_allocate(&p->setup, p->session_plan));
    return ghp_setup_agree(&p->setup, load_weights(p), "reading the checkpoint");
}

static void note_stop(const struct ghp_training *t)
{
    bool asked = t->checkpoints.path != NULL, kept = asked && !t->checkpoint_lost;

    ghp_note("%s at worker %d: ended after %lld of %lld steps; %s%s",
             ghp_stop_signal_name(t->stop.signal), t->stop.worker, (long long)t->done,
             (long long)t->steps,
             kept    ? "--resume continues from the checkpoint in "
             : asked ? "their checkpoint is lost"
                     : "no checkpoint was written, which --checkpoint asks for",
             kept ? t->checkpoints.path : "");
}

/* Why a training has failed that went to its end, or ended by a signal. */
static void note_lost(const struct ghp_training *t)
{
    long long done = t->done, kept = t->heartbeat.kept;

    if (t->checkpoint_lost && kept > 0)
        ghp_note("the checkpoint after the last step, %lld, could not be written into '%s'; make "
                 "room there, and train the steps after %lld again with --resume",
                 done, t->checkpoints.path, kept);
    else if (t->checkpoint_lost)
        ghp_note("the checkpoint after the last step, %lld, could not be written into '%s', and "
                 "there is none before it; make room there, and train again with --overwrite",
                 done, t->checkpoints.path);
    else if (t->metrics_lost && t->stop.signal == 0)
        ghp_note("the training is done, but its metrics are kept in part; make room for them");
}

/* Not if plans were compared just now, or whole trainings are; nor would another plan's worker have an average. */
static enum ghp_status set_guard(struct parts *p)
{
    struct ghp_training *t = &p->training;
    bool active = false;

    if (compares(p) || verifies(p) || p->options->ema > 0) return GHP_OK;
    GHP_TRY(
        ghp_guard_open(&p->setup, &p->session_plan, t->steps - t->first_step, &p->guard, &active));
    if (active) t->guard = &p->guard.base;
    return GHP_OK;
}

static enum ghp_status train(struct parts *p)
{
    struct ghp_training *t = &p->training;
    enum ghp_status status;

    t->worker = p->session_plan->worker;
    t->rank_plan = &p->session_plan->rank_plan;
    t->training_config = &p->setup.training_config;
    t->evaluate_every = p->options->evaluate_every;
    t->patience = p->options->patience;
    t->evaluation_detail = (enum ghp_hits_detail)p->options->evaluation_detail;
    t->checkpoint_epochs = p->options->checkpoint_epochs;
    t->checkpoint_every = p->options->checkpoint_every;
    t->asynchronous = p->options->async_checkpoint == 0;
    t->memory = &p->memory;
    if (p->setup.rank == 0 && p->session_plan->comparable && p->options->emulate == NULL) {
        t->predicted_step_s = p->session_plan->plan.predicted.step_s;
        t->predicted_error_s = p->session_plan->plan.predicted.error_s;
    }
    t->snapshot = verifies(p) ? &p->mine : NULL;
    GHP_TRY(ghp_setup_agree(&p->setup, set_guard(p), "checking options"));
    p->setup.session->in_loop = true;
    status = ghp_train(t);
    if (status != GHP_OK) return status;
    p->setup.session->in_loop = false;
    if (t->stop.signal != 0) p->setup.session->exit_code = GHP_EXIT_STOPPED;
    if (t->checkpoint_lost || t->metrics_lost) p->setup.session->exit_code = 1;
    if (t->stop.signal == 0 && t->patience > 0 && t->not_lower >= t->patience)
        ghp_note("ended early, after %lld of %lld steps: no evaluation since step %lld had a test "
                 "loss below %.4g",
                 (long long)t->done, (long long)t->steps, (long long)t->least_step, t->least_loss);
    if (t->stop.signal != 0) note_stop(t);
    note_lost(t);
    return GHP_OK;
}

/* ---- afterwards ---- */

/* Notes the evaluation of a run that was resumed at its end. */
static void note_evaluation(const struct ghp_training *t)
{
    const struct ghp_evaluation *e = &t->evaluation;

    if (t->has_evaluation)
        ghp_note("test loss %.4f, %s %.4f of %lld samples", e->loss,
                 e->of_numbers ? "absolute error" : "accuracy",
                 e->of_numbers ? e->absolute_error : e->accuracy, (long long)e->samples);
}

static enum ghp_status print_all(const struct parts *p, const struct ghp_run *run)
{
    const struct ghp_tool *tool = p->setup.session->tool;

    if (p->options->run_path != NULL) GHP_TRY(ghp_run_save(p->options->run_path, run, tool));
    if (p->options->json) {
        json_t *summary = ghp_run_summary(run, tool);

        GHP_TRY(ghp_json_print(compares(p) ? ghp_compare_json(&p->ab, &p->setup, summary) : summary,
                               stdout));
    } else {
        GHP_TRY(ghp_report_run(run, stdout));
        if (run->verification != NULL) {
            printf("\n");
            GHP_TRY(ghp_report_verification(run, stdout));
        }
    }
    return ghp_opts_printed();
}

/* ---- verifying ---- */

/* Rank 0: the same training by one worker, and the differences. */
static enum ghp_status compare_with_one(struct parts *p)
{
    struct ghp_setup *s = &p->setup;
    struct ghp_precision precision = s->precision;

    /* gradients that are rounded on their way are held against limits for such */
    if (p->session_plan->plan.method.reduces_bf16) precision = (struct ghp_precision){2, false};
    ghp_note("training %s for comparison",
             ghp_sync_ops_of(p->session_plan->plan.method.sync)->equality ==
                     GHP_SYNC_EQUALS_REPLICAS
                 ? "all replicas in turn"
                 : "one worker");
    GHP_TRY(ghp_verify_alone(&s->exec, &p->session_plan->rank_plan, &s->training_config,
                             p->training.losses.steps, &p->alone));
    return ghp_verify_compare(&p->mine, &p->alone, precision, &p->verification);
}

/* Whether differences that do not tell are rounding. *asks: rank 0's, for all. */
static enum ghp_status compare_layerwise(struct parts *p, bool asks)
{
    struct ghp_setup *s = &p->setup;
    struct ghp_control *control = s->session->transport->control;
    struct ghp_control_message mine = {.value = asks};
    const struct ghp_control_message *messages;
    struct ghp_layerwise_request request = {.worker = p->session_plan->worker,
                                            .rank_plan = &p->session_plan->rank_plan,
                                            .training_config = &s->training_config,
                                            .steps = p->training.losses.steps,
                                            .unit = ghp_precision_unit(s->precision),
                                            .world = s->world};

    s->world->label = "comparing with one worker";
    GHP_TRY(control->ops->tell(control, s->world, mine, &messages));
    if (messages[0].value == 0) return GHP_OK;
    ghp_note("these differences alone do not tell: comparing layer by layer");
    s->session->in_loop = true;
    GHP_TRY(ghp_layerwise_run(&request, &p->verification.layerwise));
    s->session->in_loop = false;
    return GHP_OK;
}

/* Rank 0 works alone first, which may take long. */
static enum ghp_status verify(struct parts *p, struct ghp_run *run)
{
    struct ghp_session *session = p->setup.session;
    enum ghp_status status = GHP_OK;
    bool first = p->setup.rank == 0,
         has_replicas = ghp_worker_has_replicas(p->session_plan->worker);

    if (first) {
        session->transport->control->ops->alone(session->transport->control, true);
        status = compare_with_one(p);
        session->transport->control->ops->alone(session->transport->control, false);
    }
    GHP_TRY(ghp_setup_agree(&p->setup, status, "comparing with one worker"));
    GHP_TRY(compare_layerwise(p, first && ghp_verification_asks(&p->verification, has_replicas)));
    if (!first) return GHP_OK;
    run->verification = &p->verification;
    run->alone_losses = &p->alone.losses;
    session->exit_code = ghp_verification_exit_code(&p->verification, run->different >= 0);
    return GHP_OK;
}

/* The others wait for rank 0's part. */
static enum ghp_status conclude(struct parts *p, struct ghp_run_result *run_result)
{
    enum ghp_status status = GHP_OK;

    if (p->setup.rank == 0) status = print_all(p, &run_result->run);
    if (status == GHP_OK && run_result->different != NULL && p->options->fault == GHP_FAULT_NONE)
        status = GHP_FAIL(GHP_ERR_INTERNAL,
                          "replicas of '%s' differ between workers; report this with the plan",
                          run_result->different);
    return ghp_setup_agree(&p->setup, status, "reporting");
}

static enum ghp_status finish(struct parts *p)
{
    struct ghp_run_result run_result = {0};
    enum ghp_status status =
        ghp_run_result_init(&p->setup, p->session_plan, &p->training, &run_result);

    run_result.run.guard = p->guard.found;
    if (status == GHP_OK && verifies(p)) status = verify(p, &run_result.run);
    if (status == GHP_OK) status = conclude(p, &run_result);
    ghp_run_result_release(&run_result);
    return status;
}

/* status: what the session ends by. */
static void parts_release(struct parts *p, enum ghp_status status)
{
    if (p->setup.exec.collectives != NULL) p->setup.exec.collectives->failed = status != GHP_OK;
    ghp_verification_release(&p->verification);
    ghp_snapshot_release(&p->alone);
    ghp_snapshot_release(&p->mine);
    ghp_metrics_close(p->training.metrics);
    ghp_evaluation_release(&p->training.evaluation);
    ghp_event_file_close(p->training.events);
    ghp_heartbeat_close(&p->training.heartbeat);
    ghp_checkpoint_release(&p->training.checkpoints);
    ghp_folder_lock_release(p->lock);
    ghp_compare_release(&p->ab);
    ghp_setup_release(&p->setup);
}

/* A failure ends all ranks: workers do not ask a server how it is. */
static enum ghp_status serve(struct parts *p)
{
    p->setup.session->in_loop = true;
    GHP_TRY(ghp_session_plan_serve(&p->setup, p->session_plan));
    p->setup.session->in_loop = false;
    return GHP_OK;
}

enum ghp_status ghp_session_run(struct ghp_session *session)
{
    struct parts p = {.options = session->options};
    enum ghp_status status;
    bool resumed_at_end;

    GHP_TRY_GOTO(status, open_all(&p, session), done);
    if (p.options->dry_run) {
        ghp_note("all is there: a dry run ends here");
        goto done;
    }
    if (p.setup.server >= 0) {
        status = serve(&p);
        goto done;
    }
    if (compares(&p)) GHP_TRY_GOTO(status, compare(&p), done);
    if (!trains(&p)) goto done;
    GHP_TRY_GOTO(status, prepare(&p), done);
    resumed_at_end = p.training.first_step == p.training.steps;
    if (resumed_at_end && !p.training.owes_evaluation) goto done;
    GHP_TRY_GOTO(status, train(&p), done);
    if (p.options->only_evaluate)
        status = ghp_setup_agree(
            &p.setup,
            p.setup.rank == 0 ? ghp_evaluation_print(&p.training, p.options->json) : GHP_OK,
            "printing the evaluation");
    else if (resumed_at_end)
        note_evaluation(&p.training);
    else
        GHP_TRY_GOTO(status, finish(&p), done);
done:
    if (!session->in_loop && (status == GHP_OK || session->transport->control->ops->settled(
                                                      session->transport->control)))
        parts_release(&p, status); /* else a thread may hang in there, and abort follows */
    return status;
}
