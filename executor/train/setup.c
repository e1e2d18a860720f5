/* executor/train/setup.c - see setup.h. */
#include "executor/train/setup.h"

#include "core/base/log.h"
#include "onnx/onnx.h"
#include "executor/transport/device/device_transport.h"
#include "onnx/network.h"

#include <stdlib.h>
#include <string.h>

enum ghp_status ghp_setup_agree(struct ghp_setup *s, enum ghp_status status, const char *what)
{
    s->session->transport_ops->label(s->world, what);
    return s->session->transport_ops->agree(s->world, status);
}

/* ---- the plans, and whether they are for us ---- */

static enum ghp_status check_model(const struct ghp_setup *s, const struct ghp_entrant *e)
{
    struct ghp_model model = {0};
    enum ghp_status status = GHP_OK;

    if (s->options->model_path == NULL) return GHP_OK;
    GHP_TRY(ghp_network_load(s->options->model_path, &model));
    if (model.hash != e->plan.model_hash)
        status = GHP_FAIL(
            GHP_ERR_INPUT,
            "'%s' was made for another model ('%s') than '%s'; plan that model with ghp-plan",
            e->path, e->plan.model.name, s->options->model_path);
    ghp_model_release(&model);
    return status;
}

/* Plans are compared only where nothing but the plan differs. */
static enum ghp_status check_alike(const struct ghp_entrant *first, const struct ghp_entrant *e)
{
    if (e->plan.model_hash != first->plan.model_hash)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' is for another model ('%s') than '%s' ('%s'); compare plans of one "
                        "model",
                        e->path, e->plan.model.name, first->path, first->plan.model.name);
    if (e->plan.extent.global_batch != first->plan.extent.global_batch)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' is for a global batch of %lld, '%s' for one of %lld; plan both for "
                        "the same --batch",
                        e->path, (long long)e->plan.extent.global_batch, first->path,
                        (long long)first->plan.extent.global_batch);
    return GHP_OK;
}

static enum ghp_status open_plan(const struct ghp_setup *s, struct ghp_entrant *e)
{
    GHP_TRY(ghp_plan_load(e->path, &e->plan));
    if (s->size != e->plan.extent.workers)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' is for %d worker(s), but %d were started; start it with mpirun -n "
                        "%d, or plan for %d",
                        e->path, e->plan.extent.workers, s->size, e->plan.extent.workers, s->size);
    GHP_TRY(ghp_plan_check(&e->plan));
    GHP_TRY(check_model(s, e));
    return check_alike(&s->entrants[0], e);
}

static enum ghp_status open_plans(struct ghp_setup *s)
{
    s->n_entrants = s->options->n_plans;
    GHP_ASSERT(s->n_entrants >= 1 && s->n_entrants <= GHP_SESSION_PLANS);
    for (int i = 0; i < s->n_entrants; i++) {
        s->entrants[i].path = s->options->plan_paths[i];
        GHP_TRY(open_plan(s, &s->entrants[i]));
    }
    return GHP_OK;
}

/* ---- where ---- */

static bool same_cores(const struct ghp_machine *a, const struct ghp_machine *b)
{
    if (a->nodes != b->nodes || a->cores != b->cores || a->n_pus != b->n_pus) return false;
    for (int i = 0; i < a->n_pus; i++)
        if (a->pus[i] != b->pus[i]) return false;
    return true;
}

/* Bound once, as the first plan says: the others must name the same cores, or their workers would not be where they would
 * be without the comparison. */
static enum ghp_status bind(struct ghp_setup *s)
{
    const struct ghp_machine *first = &s->entrants[0].plan.profile.machine;
    const struct ghp_session *session = s->session;
    struct ghp_crew crew = {.workers = s->size,
                            .rank = s->rank,
                            .here = s->here,
                            .processors = session->transport_ops->processors(session->transport)};

    for (int i = 1; i < s->n_entrants && s->options->bind != GHP_BIND_NONE; i++)
        if (!same_cores(first, &s->entrants[i].plan.profile.machine))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' is for a machine with other nodes or cores than '%s'; plan both "
                            "for one machine, or give --bind none",
                            s->entrants[i].path, s->entrants[0].path);
    return ghp_binding_set(first, crew, (enum ghp_bind_mode)s->options->bind, &s->binding);
}

/* ---- who computes ---- */

/* Whether a backend can do it: by name, of this build. */
static const struct ghp_backend_ops *able(const char *name, struct ghp_precision precision)
{
    const struct ghp_backend_ops *ops = ghp_backend_find(name);

    return ops != NULL && ghp_backend_has(ops, precision) ? ops : NULL;
}

static const struct ghp_backend_ops *choose_backend(const struct ghp_setup *s,
                                                    const struct ghp_entrant *e,
                                                    struct ghp_precision precision)
{
    const char *const names[] = {e->plan.profile.backend, "onednn", "reference", "cuda"};

    if (s->options->backend != NULL) return ghp_backend_find(s->options->backend);
    /* a plan for GPUs is not trained by processors unless it is asked for */
    if (strcmp(e->plan.profile.backend, "cuda") == 0) return ghp_backend_find("cuda");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (able(names[i], precision) != NULL) return able(names[i], precision);
    return ghp_backend_find("reference"); /* which then says what it has not */
}

static struct ghp_precision choose_precision(const struct ghp_setup *s, const struct ghp_entrant *e)
{
    return s->options->precision > 0 ? ghp_precision_of(s->options->precision - 1)
                                     : ghp_profile_precision(&e->plan.profile);
}

static enum ghp_status check_same_backend(const struct ghp_setup *s,
                                          const struct ghp_backend_ops *ops)
{
    for (int i = 1; i < s->n_entrants; i++) {
        const struct ghp_entrant *e = &s->entrants[i];

        if (!ghp_precision_same(choose_precision(s, e), s->precision))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' asks for another precision than '%s'; give --precision for both",
                            e->path, s->entrants[0].path);
        if (choose_backend(s, e, s->precision) != ops)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' asks for another backend than '%s'; give --backend for both",
                            e->path, s->entrants[0].path);
    }
    return GHP_OK;
}

static enum ghp_status open_backend(struct ghp_setup *s)
{
    const struct ghp_session_options *o = s->options;
    const struct ghp_backend_ops *ops;
    struct ghp_backend_config config;

    s->precision = choose_precision(s, &s->entrants[0]);
    s->element_bytes = s->precision.element_bytes;
    ops = choose_backend(s, &s->entrants[0], s->precision);
    if (ops == NULL)
        return ghp_backend_fail_unknown(o->backend != NULL ? o->backend
                                                           : s->entrants[0].plan.profile.backend);
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
                                         .seat = s->seat};
    GHP_TRY(ops->open(&config, &s->team.backend));
    s->team.backend_ops = ops;
    s->team.transport_ops = s->session->transport_ops;
    s->team.transport = s->session->transport;
    s->team.transport_ops->sum_in_rank_order(s->team.transport, s->exact);
    return GHP_OK;
}

/* ---- what to train ---- */

static enum ghp_status open_recipe(struct ghp_setup *s)
{
    const struct ghp_session_options *o = s->options;
    const struct ghp_plan *plan = &s->entrants[0].plan;
    struct ghp_data_request request = {.spec = o->data,
                                       .split = o->split,
                                       .seed = (uint64_t)o->seed,
                                       .global_batch = plan->extent.global_batch,
                                       .shape = plan->model.layers[0].out,
                                       .classes = plan->model.classes};

    GHP_TRY(ghp_init_parse(o->init, request.seed, &s->recipe.init));
    GHP_TRY(ghp_data_open(&request, &s->recipe.data));
    GHP_TRY(ghp_order_init(&s->recipe.order, ghp_data_count(s->recipe.data, GHP_DATA_TRAIN),
                           request.global_batch, request.seed));
    s->recipe.schedule = (struct ghp_schedule){.kind = (enum ghp_schedule_kind)o->schedule,
                                               .base = o->learning_rate,
                                               .warmup_steps = o->warmup_steps};
    s->recipe.momentum = o->momentum;
    s->recipe.weight_decay = o->weight_decay;
    return GHP_OK;
}

/* Without --init all workers take the network's own file, or none does. */
static enum ghp_status choose_init(struct ghp_setup *s)
{
    const struct ghp_session_options *o = s->options;
    const char *path = s->entrants[0].plan.model_path;
    struct ghp_init_choice *choice = &s->recipe.init;
    int64_t scratch_bytes = 2 * (int64_t)sizeof(float) * s->size;
    struct ghp_reduction sum = {
        .elements = 1, .element_bytes = sizeof(float), .scratch_bytes = scratch_bytes};
    enum ghp_status status;
    float here;

    if (o->init != NULL || o->resume) return GHP_OK;
    *choice = ghp_init_usual(path, (uint64_t)o->seed);
    here = choice->path != NULL ? 1 : 0;
    sum.in = sum.out = &here;
    sum.scratch = ghp_alloc((size_t)scratch_bytes, 1);
    GHP_TRY(ghp_setup_agree(s, sum.scratch != NULL ? GHP_OK : GHP_NO_MEMORY(), "first weights"));
    status = s->session->transport_ops->all_reduce(s->world, &sum);
    free(sum.scratch);
    if (status == GHP_OK && here != 0 && here != (float)s->size)
        status = GHP_FAIL(GHP_ERR_INPUT,
                          "'%s' has weights for %d of %d workers only; copy it to the same place on "
                          "every node, or give --init random:SEED",
                          path, (int)here, s->size);
    return ghp_setup_agree(s, status, "first weights");
}

/* A stage that reduces late waits for others that wait for what it sends later. */
static enum ghp_status check_overlap(const struct ghp_setup *s)
{
    if (s->options->overlap == GHP_OVERLAP_ON) return GHP_OK;
    if (ghp_team_device(&s->team).ops != NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--overlap off is for processors, and backend '%s' computes elsewhere; "
                        "leave it out, or give --backend onednn",
                        s->team.backend_ops->name);
    for (int i = 0; i < s->n_entrants; i++)
        if (s->entrants[i].plan.staging.n > 1)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "--overlap off is for plans of one stage, and '%s' has %d; leave it "
                            "out, or plan with --roles shared",
                            s->entrants[i].path, s->entrants[i].plan.staging.n);
    return GHP_OK;
}

static void say_setup(const struct ghp_setup *s)
{
    ghp_note("%s: %s, %s, numerics %s, %d thread(s) a worker, %s", s->entrants[0].plan.model.name,
             s->team.backend_ops->name, ghp_precision_name(s->precision),
             s->exact ? "exact" : "fast", s->threads, s->binding.text);
    if (s->team.carrier_ops != NULL) ghp_note("tensors go by %s", s->team.carrier_ops->name);
    ghp_note("%s", ghp_data_text(s->recipe.data));
    if (s->recipe.init.path != NULL)
        ghp_note("first weights from '%s'", s->recipe.init.path);
    else if (s->options->init == NULL && ghp_onnx_names(s->entrants[0].plan.model_path))
        ghp_note("'%s' is not there or holds no weights: they are drawn from the seed",
                 s->entrants[0].plan.model_path);
    if (s->binding.oversubscribed)
        ghp_note("workers share cores: this node has fewer than its %d workers", s->here);
    if (ghp_fault_mistakes((enum ghp_fault)s->options->fault))
        ghp_warn("the fault '%s' is on: this training is wrong on purpose",
                 ghp_fault_names[s->options->fault]);
}

enum ghp_status ghp_setup_open(struct ghp_session *session, struct ghp_setup *s)
{
    const struct ghp_transport_ops *ops = session->transport_ops;

    s->session = session;
    s->options = session->options;
    s->rank = ops->rank(session->transport);
    s->size = ops->size(session->transport);
    ops->place(session->transport, &s->here, &s->seat);
    GHP_TRY(ops->group(session->transport, (struct ghp_ranks){.count = s->size, .stride = 1},
                       GHP_STREAM_COMPUTE, &s->world));
    ghp_fault_stop(GHP_FAULT_STOP_AT_START, (enum ghp_fault)s->options->fault, s->rank, s->size);
    GHP_TRY(ghp_setup_agree(s, open_plans(s), "reading the plan"));
    GHP_TRY(ghp_setup_agree(s, bind(s), "binding"));
    GHP_TRY(ghp_setup_agree(s, open_backend(s), "opening the backend"));
    GHP_TRY(ghp_setup_agree(s,
                            ghp_carrier_open(&s->team,
                                             (enum ghp_carrier_choice)session->options->carrier,
                                             session->options->watchdog_s),
                            "choosing who carries"));
    GHP_TRY(ghp_setup_agree(s, check_overlap(s), "checking options"));
    GHP_TRY(ghp_setup_agree(s, open_recipe(s), "opening the data"));
    GHP_TRY(choose_init(s));
    say_setup(s);
    return GHP_OK;
}

void ghp_setup_release(struct ghp_setup *s)
{
    for (int i = 0; i < s->n_entrants; i++)
        ghp_entrant_close(&s->entrants[i]);
    ghp_order_release(&s->recipe.order);
    ghp_data_close(s->recipe.data);
    ghp_carrier_close(&s->team);
    if (s->team.backend != NULL) s->team.backend_ops->close(s->team.backend);
    for (int i = 0; i < s->n_entrants; i++)
        ghp_plan_release(&s->entrants[i].plan);
    *s = (struct ghp_setup){0};
}

/* ---- a plan's worker ---- */

static bool is_comparable(const struct ghp_setup *s, const struct ghp_profile *profile)
{
    return ghp_precision_same(ghp_profile_precision(profile), s->precision) &&
           strcmp(profile->backend, s->team.backend_ops->name) == 0 &&
           strcmp(profile->numerics, s->exact ? "exact" : "fast") == 0;
}

enum ghp_status ghp_entrant_open(struct ghp_setup *s, struct ghp_entrant *e)
{
    const struct ghp_staging *staging = &e->plan.staging;

    e->comparable = is_comparable(s, &e->plan.profile);
    e->work = (struct ghp_work){.model = &e->plan.model,
                                .splits = e->plan.splits,
                                .extent = e->plan.extent,
                                .rank = s->rank,
                                .element_bytes = s->element_bytes,
                                .bucket_bytes = e->plan.bucket_bytes,
                                .seed = (uint64_t)s->options->seed,
                                .fault = (enum ghp_fault)s->options->fault,
                                .groups = e->plan.groups,
                                .threads = s->threads,
                                .samples_ahead = e->plan.profile.samples_ahead,
                                .reduces_late = s->options->overlap == GHP_OVERLAP_OFF,
                                .staging = ghp_staging_trivial(staging) ? NULL : staging,
                                .blocked = e->comparable ? e->plan.blocked : NULL,
                                .profile = e->comparable ? &e->plan.profile : NULL};
    GHP_TRY(
        ghp_setup_agree(s, ghp_worker_open(&s->team, &e->work, &e->worker), "preparing kernels"));
    GHP_TRY(ghp_worker_connect(e->worker));
    return ghp_setup_agree(s, GHP_OK, "connecting");
}

enum ghp_status ghp_entrant_allocate(struct ghp_setup *s, struct ghp_entrant *e)
{
    enum ghp_status status = ghp_worker_allocate(e->worker);

    GHP_TRY(ghp_setup_agree(s, status, "allocating"));
    return ghp_setup_agree(s, ghp_init_weights(e->worker, &s->recipe.init),
                           "making the first weights");
}

void ghp_entrant_close(struct ghp_entrant *e)
{
    ghp_worker_close(e->worker);
    e->worker = NULL;
}
