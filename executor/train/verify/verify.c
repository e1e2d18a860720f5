/* executor/train/verify/verify.c - see verify.h. */
#include "executor/train/verify/verify.h"

#include "core/base/finite.h"
#include "core/base/log.h"
#include "executor/train/verify/alone.h"
#include "executor/train/verify/replicas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- training ---- */

/* Notes the losses of steps that are done and were not noted yet. */
static void note_losses(const struct ghp_worker *worker, struct ghp_losses *losses)
{
    struct ghp_result result;

    while (ghp_worker_result_of(worker, (uint64_t)losses->steps, &result))
        ghp_losses_add(losses, result.loss);
}

enum ghp_status ghp_verify_train(struct ghp_worker *worker,
                                 struct ghp_training_config *training_config, int64_t steps,
                                 struct ghp_snapshot *s)
{
    ghp_progress_begin("one worker", 0, steps);
    for (int64_t t = 0; t < steps; t++) {
        struct ghp_step step = ghp_training_config_step(training_config, t);

        GHP_TRY(ghp_worker_step(worker, &step));
        if (t == 0) {
            GHP_TRY(ghp_worker_settle(worker));
            GHP_TRY(ghp_snapshot_gradients(s, worker));
        }
        note_losses(worker, &s->losses);
        ghp_progress_step(t + 1, "%s", "");
    }
    ghp_progress_end();
    GHP_TRY(ghp_worker_flush(worker));
    note_losses(worker, &s->losses);
    return ghp_snapshot_weights(s, worker);
}

enum ghp_status ghp_verify_alone(const struct ghp_exec_context *exec,
                                 const struct ghp_rank_plan *like,
                                 struct ghp_training_config *training_config, int64_t steps,
                                 struct ghp_snapshot *snapshot)
{
    enum ghp_status status;
    const struct ghp_replicas_config config = {
        ghp_sync_replicas(like->lowering.method.sync, like->lowering.problem.workers),
        like->lowering.method.sync};
    struct ghp_alone alone;

    GHP_TRY(ghp_alone_open(exec, like, &training_config->init, &alone));
    status = config.n > 1
                 ? ghp_verify_replicas(alone.worker, &config, training_config, steps, snapshot)
                 : ghp_verify_train(alone.worker, training_config, steps, snapshot);
    ghp_alone_close(&alone);
    return status;
}

/* ---- comparing ---- */

/* The first tensor with weights or statistics that are not finite; NULL: all are. */
static const char *not_finite(const struct ghp_snapshot *s)
{
    for (int i = 0; i < s->list.n; i++)
        if (!ghp_are_finite(s->weights[i], s->list.items[i].param->elements, sizeof(double)))
            return s->list.items[i].param->name;
    return NULL;
}

static enum ghp_status check_finite(const struct ghp_snapshot *plan,
                                    const struct ghp_snapshot *alone)
{
    const char *name = not_finite(alone);

    if (name == NULL) return GHP_OK; /* what is not finite by the plan alone is a defect */
    return GHP_FAIL(GHP_ERR_DIVERGED,
                    "there is nothing to compare: '%s' is not finite after %lld steps by one "
                    "worker%s; the training diverged: lower --lr, or verify fewer steps",
                    name, (long long)alone->losses.steps,
                    not_finite(plan) != NULL ? ", nor are the plan's weights" : "");
}

struct limits {
    double weights, gradients, gradients_rms;
    double zero; /* of all gradients: a tensor's gradient up to this is zero but for rounding */
};

/* Up to this no update is wrong, whatever the optimizer. In tf32 and bf16 every plan would be beyond it. */
static double sure_limit(struct ghp_precision precision)
{
    return precision.element_bytes == 2 || precision.tf32 ? HUGE_VAL
                                                          : ghp_optimizer_sgd.float_limit;
}

/* If a plan adds in another order, tf32 and bf16 round otherwise, and ReLUs and pools then decide otherwise. After some
 * steps that is in all weights, so in these precisions the gradients are judged, as they are if the optimizer takes
 * their size away: docs/explanation/exactness.md has the figures. */
static struct limits limits_of(struct ghp_precision precision,
                               const struct ghp_optimizer *optimizer)
{
    if (optimizer == NULL) optimizer = &ghp_optimizer_sgd;
    if (precision.element_bytes == 8)
        return (struct limits){optimizer->double_limit, 1e-11, 1e-11, 1e-14};
    if (precision.element_bytes == 2) return (struct limits){1, 0.35, 0.25, 1e-3};
    if (precision.tf32) return (struct limits){1, 1e-2, 1e-2, 1e-6};
    return (struct limits){optimizer->float_limit, 1e-4, 1e-4, 1e-6};
}

/* Keeps NaN. */
static void raise_to(double *most, double value)
{
    if (!(value <= *most) && !isnan(*most)) *most = value;
}

static double largest(const double *a, int64_t n)
{
    double most = 0;

    for (int64_t i = 0; i < n; i++)
        raise_to(&most, fabs(a[i]));
    return most;
}

static double largest_difference(const double *a, const double *b, int64_t n)
{
    double most = 0;

    for (int64_t i = 0; i < n; i++)
        raise_to(&most, fabs(a[i] - b[i]));
    return most;
}

/* |a - b|_2^2; b NULL: |a|_2^2. */
static double square(const double *a, const double *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        double d = b != NULL ? a[i] - b[i] : a[i];

        sum += d * d;
    }
    return sum;
}

static double ratio(double difference, double size)
{
    return difference == 0 ? 0 : difference / size;
}

/* e_g of one tensor. One that is zero but for rounding has no size to be held against: it reaches its limit if the
 * other run's is further from it than rounding. */
static double gradient_difference(const double *g, const double *g1, int64_t n, double all,
                                  const struct limits *limits)
{
    double size = sqrt(square(g1, NULL, n));

    size = size <= limits->zero * all ? limits->zero / limits->gradients * all
                                      : fmax(size, 1e-6 * all);
    return ratio(sqrt(square(g, g1, n)), size);
}

enum ghp_status ghp_verify_compare(const struct ghp_snapshot *plan,
                                   const struct ghp_snapshot *alone, struct ghp_precision precision,
                                   struct ghp_verification *v)
{
    struct limits limits = limits_of(precision, alone->optimizer);
    double largest_weight = 0, all_gradients = 0, squares = 0;

    *v = (struct ghp_verification){0};
    GHP_TRY(check_finite(plan, alone));
    *v = (struct ghp_verification){.n = plan->list.n,
                                   .weight_limit = limits.weights,
                                   .gradient_limit = limits.gradients,
                                   .gradient_rms_limit = limits.gradients_rms};
    v->differences = ghp_alloc((size_t)v->n + 1, sizeof *v->differences);
    if (v->differences == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < v->n; i++)
        raise_to(&largest_weight, largest(alone->weights[i], alone->list.items[i].param->elements));
    for (int i = 0; i < alone->list.n_trained; i++)
        all_gradients += square(alone->gradients[i], NULL, alone->list.items[i].param->elements);
    for (int i = 0; i < v->n; i++) {
        const struct ghp_tensor *t = &alone->list.items[i];
        struct ghp_difference *difference = &v->differences[i];
        int64_t n = t->param->elements;

        difference->name = t->param->name;
        difference->weight_difference =
            ratio(largest_difference(plan->weights[i], alone->weights[i], n),
                  fmax(largest(alone->weights[i], n), 1e-3 * largest_weight));
        raise_to(&v->weight_difference, difference->weight_difference);
        difference->has_gradient = t->trains;
        if (!t->trains) continue;
        difference->gradient_difference = gradient_difference(
            plan->gradients[i], alone->gradients[i], n, sqrt(all_gradients), &limits);
        raise_to(&v->gradient_difference, difference->gradient_difference);
        squares += difference->gradient_difference * difference->gradient_difference;
    }
    v->gradient_rms = sqrt(squares / fmax(alone->list.n_trained, 1));
    v->passed = v->weight_difference <= v->weight_limit &&
                v->gradient_difference <= v->gradient_limit &&
                v->gradient_rms <= v->gradient_rms_limit;
    v->unsure = v->passed && v->weight_difference > sure_limit(precision);
    return GHP_OK;
}

bool ghp_verification_asks(const struct ghp_verification *v, bool has_replicas)
{
    return !v->passed || (v->unsure && !has_replicas);
}

int ghp_verification_exit_code(const struct ghp_verification *v, bool replicas_differ)
{
    if (replicas_differ) return 1;
    switch (v->layerwise.verdict) {
    case GHP_VERDICT_DEFECT: return 1;
    case GHP_VERDICT_UNKNOWN: return GHP_EXIT_UNKNOWN;
    default: return 0;
    }
}

void ghp_verification_release(struct ghp_verification *v)
{
    if (v == NULL) return;
    free(v->differences);
    *v = (struct ghp_verification){0};
}
