/* executor/train/setup.c - see setup.h. */
#include "executor/train/setup.h"

#include "core/base/log.h"
#include "core/cost/profile_peak.h"
#include "core/model/statistics.h"
#include "core/plan/plan_set.h"
#include "executor/platform/failpoint.h"
#include "executor/platform/launch.h"
#include "executor/platform/limits.h"
#include "executor/state/init.h"
#include "executor/train/agreement.h"
#include "executor/train/class_weights.h"
#include "executor/transport/device/device_transport.h"
#include "onnx/network.h"

#include <stdlib.h>
#include <string.h>

enum ghp_status ghp_setup_agree(struct ghp_setup *s, enum ghp_status status, const char *what)
{
    s->world->label = what;
    return ghp_control_agree(s->session->transport->control, s->world, status);
}

static struct ghp_agreeing agreeing(const struct ghp_setup *s)
{
    return (struct ghp_agreeing){.control = s->session->transport->control, .comm = s->world};
}

/* ---- the plans, and whether they are for us ---- */

/* Gives a network the statistics that the plan's batch norms have, which an option of ghp-plan may have changed. */
static enum ghp_status take_statistics(const struct ghp_model *planned, struct ghp_model *model)
{
    const struct ghp_layer *norm = ghp_model_batch_norm(planned);
    char text[GHP_STATISTICS_TEXT_SIZE];

    return norm == NULL ? GHP_OK
                        : ghp_model_set_statistics(model, ghp_statistics_format(norm, text));
}

static enum ghp_status check_model(const struct ghp_setup *s, const struct ghp_session_plan *e)
{
    struct ghp_model model = {0};
    enum ghp_status status = GHP_OK;

    if (s->options->model_path == NULL) return GHP_OK;
    ghp_network_takes_folded_norms = true; /* the plan was made of it */
    GHP_TRY(ghp_network_load(s->options->model_path, &model));
    if (model.hash != e->plan.model_hash) status = take_statistics(&e->plan.model, &model);
    if (status == GHP_OK && model.hash != e->plan.model_hash)
        status = GHP_FAIL(
            GHP_ERR_INPUT,
            "'%s' was made for another model ('%s') than '%s'; plan that model with ghp-plan",
            e->path, e->plan.model.name, s->options->model_path);
    ghp_model_release(&model);
    return status;
}

/* Plans are compared only if nothing but the plan differs. */
static enum ghp_status check_alike(const struct ghp_session_plan *first,
                                   const struct ghp_session_plan *e)
{
    if (ghp_plan_check_alike(&first->plan, &e->plan) == GHP_OK) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT, "'%s' and '%s' cannot be compared: %s", first->path, e->path,
                    ghp_status_message());
}

/* What chance decides cannot be compared with another training. */
static enum ghp_status check_verify(const struct ghp_setup *s, const struct ghp_session_plan *e)
{
    const struct ghp_sync_ops *ops = ghp_sync_ops_of(e->plan.method.sync);
    bool alone = e->plan.problem.workers == 1;

    if (s->options->verify_steps == GHP_NOT_SET || ops->equality != GHP_SYNC_EQUALS_NOTHING ||
        (alone && ops->mixing->alone_is_sgd))
        return GHP_OK;
    if (alone)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--verify has nothing to compare with: by '%s' servers' older weights draw "
                        "even one worker; leave it out, or plan with --sync bsp",
                        ops->name);
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--verify has nothing to compare with: by '%s' chance decides which worker's "
                    "steps or messages come first; leave it out, or plan with --sync bsp",
                    ops->name);
}

/* With servers: as many ranks as both together, and no other plan, which would want other servers, or take messages. */
static enum ghp_status check_servers(const struct ghp_setup *s, const struct ghp_session_plan *e)
{
    const struct ghp_sync_ops *ops = ghp_sync_ops_of(e->plan.method.sync);
    int workers = e->plan.problem.workers, servers = e->plan.method.sync.servers;
    bool concurrent =
        ops->mixing != NULL && ops->mixing->traffic(e->plan.method.sync, workers).concurrent > 0;

    if ((servers > 0 || concurrent) && s->n_session_plans > 1)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "by '%s' '%s' has %s, which another plan cannot use; compare plans without "
                        "servers and without messages during steps",
                        ops->name, e->path, servers > 0 ? "servers" : "messages under way");
    if (servers == 0 || s->size == workers + servers) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' is for %d worker(s) and %d server(s), but %d rank(s) were started; start "
                    "it with %s -n %d",
                    e->path, workers, servers, s->size, ghp_launched_by(), workers + servers);
}

static enum ghp_status open_plan(const struct ghp_setup *s, struct ghp_session_plan *e)
{
    GHP_TRY(ghp_network_check_plan(e->path));
    GHP_TRY(ghp_plan_load_for(e->path, s->size, &e->plan));
    GHP_TRY(check_servers(s, e));
    GHP_TRY(check_verify(s, e));
    if (e->plan.method.sync.servers == 0 && s->size != e->plan.problem.workers)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' is for %d worker(s), but %d were started; start it with %s -n %d, or "
                        "plan for %d",
                        e->path, e->plan.problem.workers, s->size, ghp_launched_by(),
                        e->plan.problem.workers, s->size);
    GHP_TRY(ghp_plan_check(&e->plan));
    GHP_TRY(check_model(s, e));
    GHP_TRY(ghp_parameter_groups_set(&s->options->groups, &e->plan.model));
    return check_alike(&s->session_plans[0], e);
}

static enum ghp_status open_plans(struct ghp_setup *s)
{
    s->n_session_plans = s->options->n_plans;
    GHP_ASSERT(s->n_session_plans >= 1 && s->n_session_plans <= GHP_SESSION_PLANS);
    for (int i = 0; i < s->n_session_plans; i++) {
        s->session_plans[i].path = s->options->plan_paths[i];
        GHP_TRY(open_plan(s, &s->session_plans[i]));
    }
    return GHP_OK;
}

/* Workers are a world of their own, and servers another. */
static enum ghp_status part(struct ghp_setup *s)
{
    const struct ghp_plan *plan = &s->session_plans[0].plan;
    struct ghp_ranks mine = {.count = plan->problem.workers, .stride = 1};

    s->server = -1;
    if (plan->method.sync.servers == 0) return GHP_OK;
    if (s->rank >= plan->problem.workers) {
        s->server = s->rank - plan->problem.workers;
        mine.first = plan->problem.workers;
        mine.count = plan->method.sync.servers;
    }
    s->size = mine.count;
    return ghp_collectives_group(s->session->transport->host, mine, GHP_STREAM_COMPUTE, &s->world);
}

/* ---- where ---- */

static bool same_cores(const struct ghp_machine *a, const struct ghp_machine *b)
{
    if (a->nodes != b->nodes || a->cores != b->cores || a->n_pus != b->n_pus) return false;
    for (int i = 0; i < a->n_pus; i++)
        if (a->pus[i] != b->pus[i]) return false;
    return true;
}

/* Bound once, as the first plan says: the others must name the same cores, or their workers would not be where they
 * would be without the comparison. */
static enum ghp_status bind(struct ghp_setup *s)
{
    const struct ghp_machine *first = &s->session_plans[0].plan.profile.machine;
    const struct ghp_session *session = s->session;
    enum ghp_bind_mode mode = s->server >= 0 ? GHP_BIND_NONE : (enum ghp_bind_mode)s->options->bind;
    struct ghp_binding_request request = {.workers = s->size,
                                          .rank = s->server >= 0 ? s->server : s->rank,
                                          .here = s->here,
                                          .processors = session->transport->control->processors};

    for (int i = 1; i < s->n_session_plans && s->options->bind != GHP_BIND_NONE; i++)
        if (!same_cores(first, &s->session_plans[i].plan.profile.machine))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' is for a machine with other nodes or cores than '%s'; plan both "
                            "for one machine, or give --bind none",
                            s->session_plans[i].path, s->session_plans[0].path);
    return ghp_binding_set(first, request, mode, &s->binding);
}

/* ---- who computes ---- */

/* Whether a backend can do it: by name, of this build. */
static const struct ghp_backend_ops *able(const char *name, struct ghp_precision precision)
{
    const struct ghp_backend_ops *ops = ghp_backend_find(name);

    return ops != NULL && ghp_backend_has(ops, precision) ? ops : NULL;
}

static const struct ghp_backend_ops *choose_backend(const struct ghp_setup *s,
                                                    const struct ghp_session_plan *e,
                                                    struct ghp_precision precision)
{
    const char *const names[] = {e->plan.profile.backend, "onednn", "reference", "cuda"};

    if (s->options->backend != NULL) return ghp_backend_find(s->options->backend);
    /* a plan for GPUs is not trained by processors unless it is asked for */
    if (e->plan.profile.on_device)
        return ghp_backend_find(ghp_profile_is_peak(&e->plan.profile) ? "cuda"
                                                                      : e->plan.profile.backend);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (able(names[i], precision) != NULL) return able(names[i], precision);
    return ghp_backend_find("reference"); /* which then says what it lacks */
}

static struct ghp_precision choose_precision(const struct ghp_setup *s,
                                             const struct ghp_session_plan *e)
{
    return s->options->precision > 0 ? ghp_precision_of(s->options->precision - 1)
                                     : ghp_profile_precision(&e->plan.profile);
}

static enum ghp_status check_same_backend(const struct ghp_setup *s,
                                          const struct ghp_backend_ops *ops)
{
    for (int i = 1; i < s->n_session_plans; i++) {
        const struct ghp_session_plan *e = &s->session_plans[i];

        if (!ghp_precision_same(choose_precision(s, e), s->precision))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' asks for another precision than '%s'; give --precision for both",
                            e->path, s->session_plans[0].path);
        if (choose_backend(s, e, s->precision) != ops)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' asks for another backend than '%s'; give --backend for both",
                            e->path, s->session_plans[0].path);
    }
    return GHP_OK;
}

static enum ghp_status open_backend(struct ghp_setup *s)
{
    const struct ghp_session_options *o = s->options;
    const struct ghp_backend_ops *ops;
    struct ghp_backend_config config;

    s->precision = choose_precision(s, &s->session_plans[0]);
    s->element_bytes = s->precision.element_bytes;
    ops = choose_backend(s, &s->session_plans[0], s->precision);
    if (ops == NULL)
        return ghp_backend_fail_unknown(
            o->backend != NULL ? o->backend : s->session_plans[0].plan.profile.backend);
    if (!ghp_backend_has(ops, s->precision))
        return GHP_FAIL(GHP_ERR_USAGE, "the backend '%s' has no %s precision; use --backend %s",
                        ops->name, ghp_precision_name(s->precision),
                        s->element_bytes == 8   ? "reference, or --precision float"
                        : s->element_bytes == 2 ? "onednn or cuda, or --precision float"
                                                : "cuda, or --precision float");
    GHP_TRY(check_same_backend(s, ops));
    s->exact = o->numerics == GHP_NUMERICS_AUTO ? o->verify_steps != GHP_NOT_SET
                                                : o->numerics == GHP_NUMERICS_EXACT;
    s->threads = o->threads == GHP_NOT_SET ? s->binding.n_cores : (int)o->threads;
    config = (struct ghp_backend_config){.element_bytes = s->element_bytes,
                                         .tf32 = s->precision.tf32,
                                         .threads = s->threads,
                                         .exact = s->exact,
                                         .local_rank = s->local_rank,
                                         .reduce_multiprocessors = (int)o->reduce_multiprocessors};
    GHP_TRY(ops->open(&config, &s->exec.backend));
    s->exec.backend_ops = ops;
    s->exec.transport = s->session->transport;
    s->exec.transport->host->in_rank_order = s->exact;
    return GHP_OK;
}

/* ---- what to train ---- */

/* Options of other optimizers than the plan's are mistakes. */
static enum ghp_status choose_optimizer(struct ghp_setup *s)
{
    const struct ghp_session_options *o = s->options;
    struct ghp_training_config *config = &s->training_config;
    const struct ghp_plan *plan = &s->session_plans[0].plan;
    struct ghp_hyperparameters given = o->given;

    config->optimizer = ghp_optimizer_at(ghp_optimizer_index(plan->method.optimizer));
    if (o->optimizer > 0 && ghp_optimizer_at(o->optimizer - 1) != config->optimizer)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--optimizer %s was given, and '%s' is for %s, whose memory it counts; "
                        "plan with ghp-plan --optimizer %s",
                        ghp_optimizer_at(o->optimizer - 1)->name, s->session_plans[0].path,
                        config->optimizer->name, ghp_optimizer_at(o->optimizer - 1)->name);
    config->hyperparameters = ghp_optimizer_usual(config->optimizer);
    if (given.learning_rate >= 0) config->hyperparameters.learning_rate = given.learning_rate;
    config->hyperparameters.clip_norm =
        given.clip_norm > 0 ? given.clip_norm : plan->method.clip_norm;
    if (given.clip_norm > 0 && !ghp_method_clips(&plan->method))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--clip-norm was given, and in '%s' updates do not wait for all gradients; "
                        "plan with ghp-plan --clip-norm %g",
                        s->session_plans[0].path, given.clip_norm);
    for (int i = 0; i < GHP_OPTIMIZERS; i++) {
        const struct ghp_optimizer *of = ghp_optimizer_at(i);

        for (const struct ghp_hyperparameter *h = of->hyperparameters; h->name != NULL; h++) {
            double value = *ghp_optimizer_find(of, h->name, &given),
                   *to = ghp_optimizer_find(config->optimizer, h->name, &config->hyperparameters);

            if (value < 0) continue;
            if (to == NULL)
                return GHP_FAIL(GHP_ERR_USAGE,
                                "--%s is of the optimizer %s, and '%s' is for %s; leave it out, or "
                                "plan with ghp-plan --optimizer %s",
                                h->name, of->name, s->session_plans[0].path,
                                config->optimizer->name, of->name);
            *to = value;
        }
    }
    return GHP_OK;
}

/* The losses that know second labels. */
static enum ghp_status check_blending(const struct ghp_setup *s, const struct ghp_model *model)
{
    const struct ghp_layer *loss = &model->layers[model->n_layers - 1];

    if (!ghp_data_blends(s->training_config.data)) return GHP_OK;
    if (loss->op != GHP_OP_SOFTMAX_CE || loss->in.axes == GHP_AXES_SEQUENCE ||
        loss->loss.own_labels)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "--augment mixup and cutmix are for softmax_cross_entropy of one label a "
                        "sample, and the loss '%s' is another; leave them out",
                        loss->name);
    if (s->class_weights != NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--class-weights weights samples by one label, and --augment mixup and "
                        "cutmix give them two; leave one of them out");
    return GHP_OK;
}

static enum ghp_status open_training_config(struct ghp_setup *s)
{
    const struct ghp_session_options *o = s->options;
    const struct ghp_plan *plan = &s->session_plans[0].plan;
    struct ghp_data_request request = {.spec = o->data,
                                       .split = o->split,
                                       .seed = (uint64_t)o->seed,
                                       .global_batch = plan->problem.global_batch,
                                       .shape = plan->model.layers[0].out,
                                       .sample_labels = ghp_model_labels(&plan->model),
                                       .targets = ghp_model_targets(&plan->model),
                                       .outputs = ghp_model_label_outputs(&plan->model),
                                       .classes = plan->model.classes,
                                       .ignores = o->ignored_label != GHP_NO_LABEL,
                                       .ignored_label = o->ignored_label,
                                       .labels = (enum ghp_labels)o->labels,
                                       .augment = o->augment,
                                       .normalise = o->normalise,
                                       .skip_damaged = o->skip_damaged};
    double whole;

    ghp_data_find_places(&plan->model, &request);
    GHP_TRY(ghp_class_weights_open(o->class_weights, &plan->model, &s->class_weights));
    GHP_TRY(ghp_init_parse(o->init, request.seed, &s->training_config.init));
    s->training_config.init.except = &o->init_except;
    GHP_TRY(ghp_data_open(&request, &s->training_config.data));
    GHP_TRY(check_blending(s, &plan->model));
    GHP_TRY(ghp_order_init(&s->training_config.order,
                           ghp_data_count(s->training_config.data, GHP_DATA_TRAIN),
                           request.global_batch, request.seed));
    s->training_config.order.shuffling = (enum ghp_shuffling)o->shuffle;
    s->training_config.batches =
        plan->problem.workers * ghp_staging_micro_batches(ghp_staging_or_none(&plan->staging));
    whole = ghp_lr_scaling_whole(plan->method.scaling, s->training_config.batches);
    s->training_config.schedule =
        (struct ghp_lr_schedule){.kind = (enum ghp_lr_schedule_kind)o->schedule,
                                 .base = whole * s->training_config.hyperparameters.learning_rate,
                                 .least = whole * o->least_rate,
                                 .epoch_steps = ghp_order_steps(&s->training_config.order),
                                 .warmup_steps = o->warmup_steps,
                                 .decay_steps = o->decay_steps};
    return ghp_lr_schedule_read_at(o->step_at, &s->training_config.schedule);
}

/* Without --init: the weights in the network's own files. What cannot be read ends the run, never becomes random. */
static enum ghp_status find_own_weights(struct ghp_setup *s)
{
    const struct ghp_session_plan *e = &s->session_plans[0];
    struct ghp_init_choice *choice = &s->training_config.init;
    enum ghp_status status;

    GHP_TRY(ghp_network_find(e->plan.model_path, e->path, &s->network_path));
    status = ghp_init_usual(s->network_path, (uint64_t)s->options->seed, choice);
    choice->except = &s->options->init_except;
    if (status == GHP_OK && choice->path == NULL && s->options->init_except.n > 0)
        return GHP_FAIL(GHP_ERR_INPUT, "--init-except is of a file's tensors, but this network has "
                                       "no weights, so all are drawn; name a file with --init");
    if (status == GHP_OK && e->plan.model_weights && choice->path == NULL)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' had weights when it was planned, and has none now; put them back, "
                        "give --init FILE, or --init random for other weights",
                        s->network_path != NULL ? s->network_path : e->plan.model_path);
    if (status != GHP_ERR_IO && status != GHP_ERR_FORMAT && status != GHP_ERR_INPUT) return status;
    return GHP_FAIL(status, "%s; --init random draws other weights", ghp_status_message());
}

/* All workers take the network's own file, or none does. */
static enum ghp_status choose_init(struct ghp_setup *s)
{
    const struct ghp_session_options *o = s->options;
    struct ghp_init_choice *choice = &s->training_config.init;
    int64_t scratch_bytes = 2 * (int64_t)sizeof(float) * s->size;
    struct ghp_reduction sum = {
        .elements = 1, .element_bytes = sizeof(float), .scratch_bytes = scratch_bytes};
    enum ghp_status status;
    float here;

    if (o->init != NULL || o->resume) return GHP_OK;
    GHP_TRY(ghp_setup_agree(s, find_own_weights(s), "first weights"));
    here = choice->path != NULL ? 1 : 0;
    sum.in = sum.out = &here;
    sum.scratch = ghp_alloc((size_t)scratch_bytes, 1);
    GHP_TRY(ghp_setup_agree(s, sum.scratch != NULL ? GHP_OK : GHP_NO_MEMORY(), "first weights"));
    status = s->world->ops->all_reduce(s->world, &sum);
    free(sum.scratch);
    if (status == GHP_OK && here != 0 && here != (float)s->size)
        status =
            GHP_FAIL(GHP_ERR_INPUT,
                     "'%s' has weights for %d of %d workers only; copy it to the same place on "
                     "every node, or give --init random:SEED",
                     s->network_path, (int)here, s->size);
    return ghp_setup_agree(s, status, "first weights");
}

/* A dry run looks into the file of first weights, which a training would load. */
static enum ghp_status try_init(struct ghp_setup *s)
{
    const struct ghp_init_choice *init = &s->training_config.init;
    bool reads = s->options->dry_run && s->rank == 0 && init->path != NULL && !s->options->resume;
    return reads ? ghp_init_try(&s->session_plans[0].plan.model, init) : GHP_OK;
}

/* A stage that reduces late waits for others that wait for what it sends later. */
static enum ghp_status check_overlap(const struct ghp_setup *s)
{
    if (s->options->overlap == GHP_OVERLAP_ON) return GHP_OK;
    if (ghp_exec_context_device(&s->exec).ops != NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--overlap off is for processors, and backend '%s' computes elsewhere; "
                        "leave it out, or give --backend onednn",
                        s->exec.backend_ops->name);
    for (int i = 0; i < s->n_session_plans; i++)
        if (s->session_plans[i].plan.staging.n > 1)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "--overlap off is for plans of one stage, and '%s' has %d; leave it "
                            "out, or plan with --pipeline off",
                            s->session_plans[i].path, s->session_plans[i].plan.staging.n);
    return GHP_OK;
}

/* Only NCCL's reductions run on multiprocessors. */
static enum ghp_status check_reduce_multiprocessors(const struct ghp_setup *s)
{
    const struct ghp_collectives *collectives = s->exec.collectives;

    if (s->options->reduce_multiprocessors == 0 ||
        (collectives != NULL && collectives->ops->allocate_memory != NULL))
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--reduce-multiprocessors is of reductions by NCCL, and here %s; leave it out",
                    s->size == 1 ? "one worker reduces nothing" : "MPI carries them");
}

/* Reads the machines to emulate. That works only if tensors lie in host memory and each worker computes by itself. */
static enum ghp_status check_emulation(struct ghp_setup *s)
{
    if (s->options->emulate == NULL) return GHP_OK;
    GHP_TRY(ghp_emulation_parse(s->options->emulate, &s->emulation));
    if (s->server < 0) GHP_TRY(ghp_stragglers_check(&s->emulation.slow, s->size));
    if (ghp_exec_context_device(&s->exec).ops == NULL) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--emulate is for processors, and backend '%s' computes elsewhere; leave it "
                    "out, or give --backend onednn",
                    s->exec.backend_ops->name);
}

static enum ghp_status open_emulation(struct ghp_setup *s)
{
    GHP_TRY(ghp_setup_agree(s, check_emulation(s), "checking options"));
    return ghp_transport_emulate(s->session->transport, &s->emulation);
}

/* Notes that ranks lie otherwise than in the plan, so that groups that should share a node do not. */
static void say_nodes(const struct ghp_setup *s)
{
    const struct ghp_machine *machine = &s->session_plans[0].plan.profile.machine;
    const struct ghp_control *control = s->session->transport->control;
    int most = ghp_machine_workers_per_node(machine, s->size);

    if (s->here == control->size || s->size < control->size) return;
    if (machine->nodes > s->size || (control->fills_nodes && s->here == most)) return;
    ghp_warn("the plan counts %d worker(s) on each of %d node(s), one node filled after the other, "
             "and these are placed otherwise: its prediction does not hold; start equally many on "
             "each in "
             "order, such as by mpirun --map-by slot or srun --distribution=block, or profile and "
             "plan as they are now",
             most, machine->nodes);
}

static void say_first_weights(const struct ghp_setup *s)
{
    const char *planned = s->session_plans[0].plan.model_path, *found = s->network_path,
               *taken = s->training_config.init.path;

    if (taken != NULL && taken == found && strcmp(planned, found) != 0)
        ghp_note("'%s' is not there: '%s', next to the plan, is taken instead", planned, found);
    if (taken != NULL)
        ghp_note("first weights from '%s'", taken);
    else if (found != NULL && ghp_network_names(found))
        ghp_note("'%s' holds no weights: they are drawn from the seed", found);
}

static void say_setup(const struct ghp_setup *s)
{
    ghp_note("%s: %s, %s, numerics %s, %s, %d thread(s) a worker, %s",
             s->session_plans[0].plan.model.name, s->exec.backend_ops->name,
             ghp_precision_name(s->precision), s->exact ? "exact" : "fast",
             s->training_config.optimizer->name, s->threads, s->binding.text);
    if (s->exec.collectives != NULL) ghp_note("tensors go by %s", s->exec.collectives->ops->name);
    ghp_note("%s", ghp_data_text(s->training_config.data));
    say_first_weights(s);
    if (s->options->emulate != NULL)
        ghp_note("emulated: %s; times are not this machine's", s->options->emulate);
    say_nodes(s);
    ghp_limits_note();
    if (s->binding.oversubscribed)
        ghp_note("workers share cores: this node has fewer than its %d workers", s->here);
    if (s->exec.backend_ops->device == NULL)
        ghp_binding_check_threads(s->threads, s->binding.n_cores);
    if (s->options->fault != GHP_FAULT_NONE)
        ghp_warn("the fault '%s' is on: this training is wrong on purpose",
                 ghp_fault_names[s->options->fault]);
}

enum ghp_status ghp_setup_open(struct ghp_session *session, struct ghp_setup *s)
{
    struct ghp_agreeing all;

    s->session = session;
    s->options = session->options;
    s->rank = session->transport->control->rank;
    s->size = session->transport->control->size;
    s->here = session->transport->control->node_size;
    s->local_rank = session->transport->control->node_rank;
    GHP_TRY(ghp_collectives_group(session->transport->host,
                                  (struct ghp_ranks){.count = s->size, .stride = 1},
                                  GHP_STREAM_COMPUTE, &s->world));
    ghp_failpoint_reach(GHP_FAILPOINT_START);
    GHP_TRY(ghp_setup_agree(s, open_plans(s), "reading the plan"));
    for (int i = 0; i < s->n_session_plans; i++)
        GHP_TRY(
            ghp_agree_on_plan(agreeing(s), &s->session_plans[i].plan, s->session_plans[i].path));
    all = agreeing(s);
    GHP_TRY(part(s));
    GHP_TRY(ghp_setup_agree(s, bind(s), "binding"));
    GHP_TRY(ghp_setup_agree(s, open_backend(s), "opening the backend"));
    GHP_TRY(ghp_agree_on_backend(all, (struct ghp_agreed_backend){s->exec.backend_ops->name,
                                                                  ghp_precision_name(s->precision),
                                                                  s->exact ? "exact" : "fast"}));
    if (s->server >= 0) return open_emulation(s);
    GHP_TRY(ghp_setup_agree(
        s,
        ghp_device_transport_open(
            &s->exec, (enum ghp_device_transport_choice)session->options->device_transport),
        "choosing who carries"));
    GHP_TRY(ghp_setup_agree(s, check_overlap(s), "checking options"));
    GHP_TRY(ghp_setup_agree(s, check_reduce_multiprocessors(s), "checking options"));
    GHP_TRY(ghp_setup_agree(s, choose_optimizer(s), "checking options"));
    GHP_TRY(ghp_setup_agree(s, open_training_config(s), "opening the data"));
    GHP_TRY(ghp_agree_on_samples(agreeing(s), s->training_config.data));
    GHP_TRY(choose_init(s));
    GHP_TRY(ghp_setup_agree(s, try_init(s), "first weights"));
    if (!s->options->resume) GHP_TRY(ghp_agree_on_weights(agreeing(s), &s->training_config.init));
    GHP_TRY(open_emulation(s));
    say_setup(s);
    return GHP_OK;
}

void ghp_setup_release(struct ghp_setup *s)
{
    for (int i = 0; i < s->n_session_plans; i++)
        ghp_worker_close(s->session_plans[i].worker);
    ghp_sampling_close(s->training_config.sampling);
    ghp_order_release(&s->training_config.order);
    ghp_data_close(s->training_config.data);
    ghp_device_transport_close(&s->exec);
    if (s->exec.backend != NULL) s->exec.backend_ops->close(s->exec.backend);
    for (int i = 0; i < s->n_session_plans; i++)
        ghp_plan_release(&s->session_plans[i].plan);
    free(s->class_weights);
    free(s->network_path);
    *s = (struct ghp_setup){0};
}
