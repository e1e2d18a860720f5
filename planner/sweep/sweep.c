/* planner/sweep/sweep.c - the points of a sweep: reading the range, making the plans; sweep_show.c shows them. */
#include "planner/sweep/sweep.h"

#include "core/cost/profile_peak.h"
#include "core/base/log.h"
#include "core/base/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORKERS = 1 << 20, REASON_BYTES = 1024 };

enum ghp_strategy ghp_sweep_strategy(int plan)
{
    return (enum ghp_strategy)((int)GHP_STRATEGY_AUTO + plan);
}

/* ---- the range ---- */

static enum ghp_status fail_range(const char *text, const char *why)
{
    return GHP_FAIL(GHP_ERR_USAGE,
                    "cannot read --sweep '%s': %s; write numbers in ascending order, such as "
                    "workers=1,2,4,...,4096 or workers=2,4,6",
                    text, why);
}

static enum ghp_status add_number(const char *text, int64_t value, struct ghp_sweep_range *range)
{
    if (range->n > 0 && value <= range->workers[range->n - 1])
        return fail_range(text, "a number is not larger than the one before");
    if (value > MAX_WORKERS) return fail_range(text, "'...' does not reach the number after it");
    if (range->n >= GHP_SWEEP_POINTS_MAX) return fail_range(text, "it has more than 64 points");
    range->workers[range->n++] = (int)value;
    return GHP_OK;
}

/* Continues from the last three numbers to `last`, which must be reached. */
static enum ghp_status go_on(const char *text, int64_t last, struct ghp_sweep_range *range)
{
    int64_t a, b, c;

    if (range->n < 3) return fail_range(text, "'...' needs three numbers before it");
    a = range->workers[range->n - 3];
    b = range->workers[range->n - 2];
    c = range->workers[range->n - 1];
    if (b * b != a * c && b - a != c - b)
        return fail_range(text, "the three numbers before '...' have neither one ratio nor one "
                                "difference");
    for (int64_t now = c; now < last; now = range->workers[range->n - 1]) {
        bool by_ratio = b * b == a * c;

        if (by_ratio && now * c % b != 0)
            return fail_range(text, "'...' leads to a number that is not whole");
        GHP_TRY(add_number(text, by_ratio ? now * c / b : now + c - b, range));
    }
    return range->workers[range->n - 1] == last
               ? GHP_OK
               : fail_range(text, "'...' does not reach the number after it");
}

static enum ghp_status read_item(const char *text, const char *item, bool *dots,
                                 struct ghp_sweep_range *range)
{
    char *end = NULL;
    long long value;

    if (strcmp(item, "...") == 0) {
        if (*dots) return fail_range(text, "'...' follows '...'");
        *dots = true;
        return GHP_OK;
    }
    errno = 0;
    value = strtoll(item, &end, 10);
    if (end == item || *end != '\0' || errno != 0 || value < 1 || value > MAX_WORKERS)
        return fail_range(text, "an item is not a number from 1 to 1048576");
    if (!*dots) return add_number(text, value, range);
    *dots = false;
    return go_on(text, value, range);
}

enum ghp_status ghp_sweep_parse(const char *text, struct ghp_sweep_range *range)
{
    static const char prefix[] = "workers=";
    enum ghp_status status = GHP_OK;
    char *copy, *rest = NULL;
    bool dots = false;

    *range = (struct ghp_sweep_range){0};
    if (strncmp(text, prefix, sizeof prefix - 1) != 0)
        return fail_range(text, "it sweeps over nothing but workers");
    copy = strdup(text + sizeof prefix - 1);
    if (copy == NULL) return GHP_NO_MEMORY();
    for (char *item = strtok_r(copy, ",", &rest); item != NULL && status == GHP_OK;
         item = strtok_r(NULL, ",", &rest))
        status = read_item(text, item, &dots, range);
    free(copy);
    if (status != GHP_OK) return status;
    if (dots) return fail_range(text, "'...' ends it");
    return range->n > 0 ? GHP_OK : fail_range(text, "it has no number");
}

/* ---- the kind of a plan ---- */

static bool is_split(const struct ghp_plan *plan, int v)
{
    return plan->splits[v].kind != GHP_SPLIT_DATA;
}

static const char *between(int least, int most, char *text, size_t n)
{
    if (least == most)
        snprintf(text, n, "TP size %d", most);
    else
        snprintf(text, n, "TP sizes %d-%d", least, most);
    return text;
}

/* What there is to say: counts, TP sizes, and the names of up to two runs of layers that are split. */
struct kind {
    int weighted, split, runs, least, most, others;
    const char *first[2], *last[2];
};

static struct kind kind_of(const struct ghp_plan *plan)
{
    struct kind kind = {0};
    bool inside = false;

    for (int v = 0; v < plan->model.n_layers; v++) {
        if (!ghp_op_is_weighted(plan->model.layers[v].op)) {
            kind.others += is_split(plan, v);
            continue;
        }
        kind.weighted++;
        if (is_split(plan, v)) {
            int tp_size = plan->splits[v].tp_size;

            kind.runs += !inside;
            if (!inside && kind.runs <= 2) kind.first[kind.runs - 1] = plan->model.layers[v].name;
            if (kind.runs <= 2) kind.last[kind.runs - 1] = plan->model.layers[v].name;
            kind.least = kind.split == 0 || tp_size < kind.least ? tp_size : kind.least;
            kind.most = tp_size > kind.most ? tp_size : kind.most;
            kind.split++;
        }
        inside = is_split(plan, v);
    }
    return kind;
}

/* "data", "fc6..fc8 split, TP size 16", "39 of 54 layers split, TP sizes 2-64 (and 104 others)": which conv2d and
 * linear layers are not by data, and how many of the layers between them. */
static void describe_splits(const struct ghp_plan *plan, char *text, size_t n)
{
    struct kind kind = kind_of(plan);
    char tp_sizes[48];
    size_t used = 0;

    text[0] = '\0';
    if (kind.split == 0) {
        snprintf(text, n, kind.others > 0 ? "data, but %d layers without matrix" : "data",
                 kind.others);
        return;
    }
    between(kind.least, kind.most, tp_sizes, sizeof tp_sizes);
    if (kind.runs > 2)
        used = (size_t)snprintf(text, n, "%d of %d layers", kind.split, kind.weighted);
    for (int r = 0; r < kind.runs && kind.runs <= 2 && used < n; r++)
        used += (size_t)snprintf(text + used, n - used, "%s%s%s%s", r > 0 ? ", " : "",
                                 kind.first[r], kind.first[r] != kind.last[r] ? ".." : "",
                                 kind.first[r] != kind.last[r] ? kind.last[r] : "");
    if (used < n) used += (size_t)snprintf(text + used, n - used, " split, %s", tp_sizes);
    if (used < n && kind.others > 0)
        snprintf(text + used, n - used, " (and %d others)", kind.others);
}

/* ---- points ---- */

/* Whether a failure is an answer to "how fast with N workers?". */
static bool is_answer(enum ghp_status status)
{
    return status == GHP_ERR_INFEASIBLE || status == GHP_ERR_MISSING;
}

static enum ghp_status set_reason(struct ghp_sweep_plan *plan, const char *reason)
{
    plan->feasible = false;
    plan->reason = strdup(reason);
    return plan->reason == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

/* No plan at all, for the reason of the last failure. */
static enum ghp_status fail_point(struct ghp_sweep_point *point)
{
    char reason[REASON_BYTES];

    snprintf(reason, sizeof reason, "%s", ghp_status_message());
    for (int k = 0; k < GHP_SWEEP_PLANS; k++)
        GHP_TRY(set_reason(&point->plan[k], reason));
    return GHP_OK;
}

static void set_plan(const struct ghp_prediction *p, const struct ghp_profile *profile,
                     const struct ghp_sweep *sweep, const struct ghp_sweep_point *point,
                     struct ghp_sweep_plan *plan)
{
    plan->feasible = true;
    plan->predicted = *p;
    plan->range = ghp_prediction_range(p, profile);
    plan->images_per_s = p->step_s > 0 ? (double)point->batch / p->step_s : 0;
    plan->speedup = sweep->one_images_per_s > 0 ? plan->images_per_s / sweep->one_images_per_s : 0;
    plan->efficiency = plan->speedup / point->workers;
}

static enum ghp_status take_plan(const struct ghp_plan *plan, const struct ghp_sweep *sweep,
                                 struct ghp_sweep_point *point)
{
    char kind[256];

    set_plan(&plan->predicted, &plan->profile, sweep, point, &point->plan[0]);
    for (int b = 0; b < plan->n_baselines && b + 1 < GHP_SWEEP_PLANS; b++) {
        const struct ghp_baseline *base = &plan->baselines[b];

        if (base->feasible)
            set_plan(&base->predicted, &plan->profile, sweep, point, &point->plan[b + 1]);
        else
            GHP_TRY(set_reason(&point->plan[b + 1], base->reason));
    }
    describe_splits(plan, kind, sizeof kind);
    point->splits = strdup(kind);
    point->proof = plan->certificate.proof;
    point->trial = plan->certificate.trial;
    point->groups = plan->groups;
    point->group_size = plan->group_size;
    point->gap = plan->certificate.gap;
    point->seconds = plan->certificate.seconds;
    return point->splits == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

/* Names and overrides of the sweep, once: with the last point's overrides, whose nodes are those of most workers. */
static enum ghp_status take_names(const struct ghp_plan *plan, struct ghp_sweep *sweep)
{
    char overrides[1024];

    free(sweep->model);
    free(sweep->profile);
    free(sweep->what_if);
    sweep->what_if = NULL;
    sweep->model = strdup(plan->model.name);
    sweep->tokens = ghp_model_tokens(&plan->model);
    sweep->profile = strdup(plan->profile.backend);
    sweep->by_rule_of_thumb = ghp_profile_is_peak(&plan->profile);
    if (plan->what_if.n > 0)
        sweep->what_if = strdup(ghp_overrides_format(&plan->what_if, overrides, sizeof overrides));
    return sweep->model == NULL || sweep->profile == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

static enum ghp_status make_point(const struct ghp_sweep_job *job, struct ghp_sweep *sweep,
                                  struct ghp_sweep_point *point)
{
    struct ghp_plan_request request = *job->request;
    struct ghp_profile profile = {0};
    struct ghp_overrides overrides = {0};
    struct ghp_plan plan = {0};
    enum ghp_status status;

    request.problem = (struct ghp_problem){.workers = point->workers, .global_batch = point->batch};
    request.profile = &profile;
    request.decision_only = true;
    if (ghp_problem_check(request.problem) != GHP_OK) return fail_point(point);
    GHP_TRY_GOTO(status, job->open(&request, &profile, &overrides), done);
    point->nodes = profile.machine.nodes;
    status = ghp_plan_make_within(ghp_plan_make, &request, &plan);
    if (is_answer(status)) {
        status = fail_point(point);
        goto done;
    }
    if (status == GHP_OK) status = take_plan(&plan, sweep, point);
    if (status == GHP_OK) status = take_names(&plan, sweep);
done:
    ghp_plan_release(&plan);
    ghp_overrides_release(&overrides);
    ghp_profile_release(&profile);
    return status;
}

/* What one worker does, for speed-ups; 0 if the profile cannot say. */
static enum ghp_status measure_one(const struct ghp_sweep_job *job, struct ghp_sweep *sweep)
{
    struct ghp_plan_request request = *job->request;
    struct ghp_sweep_job alone = *job;
    struct ghp_sweep_point one = {.workers = 1, .batch = job->batch};
    enum ghp_status status;

    request.strategy = GHP_STRATEGY_DATA;
    request.force = NULL;
    request.memory_bytes = INT64_MAX;
    alone.request = &request;
    status = make_point(&alone, sweep, &one);
    if (status == GHP_OK && one.plan[0].feasible)
        sweep->one_images_per_s = one.plan[0].images_per_s;
    for (int k = 0; k < GHP_SWEEP_PLANS; k++)
        free(one.plan[k].reason);
    free(one.splits);
    return status;
}

enum ghp_status ghp_sweep_run(const struct ghp_sweep_job *job, struct ghp_sweep *sweep)
{
    enum ghp_status status;
    int feasible = 0;

    *sweep = (struct ghp_sweep){.weak = job->weak, .batch = job->batch};
    sweep->point = ghp_alloc((size_t)job->range->n, sizeof *sweep->point);
    if (sweep->point == NULL) return GHP_NO_MEMORY();
    GHP_TRY_GOTO(status, measure_one(job, sweep), done);
    ghp_progress_begin("sweep", 0, job->range->n);
    for (int i = 0; i < job->range->n; i++) {
        struct ghp_sweep_point *point = &sweep->point[sweep->n++];

        point->workers = job->range->workers[i];
        point->batch = job->weak ? job->batch * point->workers : job->batch;
        GHP_TRY_GOTO(status, make_point(job, sweep, point), done);
        feasible += point->plan[0].feasible;
        ghp_progress_step(i + 1, "%d worker%s", point->workers, ghp_plural(point->workers));
    }
    if (feasible == 0)
        status = GHP_FAIL(GHP_ERR_INFEASIBLE, "no point of the sweep is feasible; the first: %s",
                          sweep->point[0].plan[0].reason);
done:
    ghp_progress_end();
    if (status != GHP_OK) ghp_sweep_release(sweep);
    return status;
}

void ghp_sweep_release(struct ghp_sweep *sweep)
{
    if (sweep == NULL) return;
    for (int i = 0; i < sweep->n; i++) {
        for (int k = 0; k < GHP_SWEEP_PLANS; k++)
            free(sweep->point[i].plan[k].reason);
        free(sweep->point[i].splits);
    }
    free(sweep->point);
    free(sweep->model);
    free(sweep->profile);
    free(sweep->what_if);
    *sweep = (struct ghp_sweep){0};
}
