/* planner/recompute/recompute.c - see recompute/recompute.h. */
#include "planner/recompute/recompute.h"

#include "core/base/clock.h"
#include "core/cost/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FIRST = 64 }; /* sets that the first one is looked for among, before it is halved */

struct option { /* a layer that may be recomputed */
    int layer, stage;
    /* its forward passes of a step: the set's step grows by no less if computation binds */
    double recompute_s;
    double bytes; /* of its own that are kept between forward and backward */
};

struct sets {
    const struct ghp_partition_job *job;
    struct ghp_staging staging;   /* with `mark` */
    struct ghp_lowering lowering; /* with it */
    const struct ghp_split *splits;
    bool *mark; /* the set, one a layer */
    struct option *options;
    int n;
    double least_s;                   /* of any set */
    double compute_s[GHP_MAX_STAGES]; /* each stage's computation, all kept */
    /* each stage's bytes between forward and backward, all kept */
    double kept_bytes[GHP_MAX_STAGES];
    int most; /* sets that are tried beyond the first */
    struct ghp_recompute *result;
};

static double best_s(const struct sets *s)
{
    return s->result->found ? s->result->step_s : s->job->best_s;
}

static bool is_over(const struct sets *s)
{
    return s->most <= 0 || ghp_now_s() > s->job->deadline_s;
}

/* ---- one set ---- */

static bool fits(const struct sets *s, int64_t bytes)
{
    return bytes <= s->job->limit_bytes;
}

static enum ghp_status keep(struct sets *s, double step_s, int64_t peak_bytes)
{
    struct ghp_recompute *r = s->result;

    if (!(step_s < best_s(s) * (1 - GHP_BRANCH_SAME))) return GHP_OK;
    r->found = true;
    r->step_s = step_s;
    r->peak_bytes = peak_bytes;
    memcpy(r->recompute, s->mark, (size_t)s->lowering.model->n_layers * sizeof *s->mark);
    return GHP_OK;
}

static enum ghp_status lower_set(struct sets *s, struct ghp_programs *programs, int64_t *peak_bytes)
{
    bool any = false;

    for (int i = 0; i < s->n; i++)
        any = any || s->mark[s->options[i].layer];
    s->staging.recompute = any ? s->mark : NULL;
    s->lowering.staging = ghp_staging_or_none(&s->staging);
    GHP_TRY(ghp_lower_all(&s->lowering, s->splits, programs));
    *peak_bytes = ghp_programs_peak_bytes(programs);
    s->result->plans++;
    if (s->result->least_bytes == 0 || *peak_bytes < s->result->least_bytes)
        s->result->least_bytes = *peak_bytes;
    return GHP_OK;
}

/* Places the set's programs; simulates them if they fit. */
static enum ghp_status evaluate(struct sets *s, int64_t *peak_bytes)
{
    struct ghp_programs programs = {0};
    struct ghp_timing timings[GHP_MAX_STAGES];
    enum ghp_status status;

    GHP_TRY(lower_set(s, &programs, peak_bytes));
    if (fits(s, *peak_bytes)) {
        status = ghp_simulate_all(&programs, s->job->profile, timings);
        if (status == GHP_OK) status = keep(s, timings[0].step_s, *peak_bytes);
        for (int k = 0; k < programs.n; k++)
            ghp_timing_release(&timings[k]);
    } else {
        status = GHP_OK;
    }
    ghp_programs_release(&programs);
    return status;
}

/* ---- options ---- */

/* The first instruction of the backward part; -1: there is none. */
static int first_backward(const struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].backward) return i;
    return -1;
}

/* What a layer itself keeps for the backward part, or a worker for ever. Inputs after a reshard may go with either
 * end: they count for nothing. */
static bool is_kept(const struct ghp_buffer *b, int point)
{
    bool own = b->buffer_kind == GHP_BUFFER_OUTPUT || b->buffer_kind == GHP_BUFFER_SAVED;

    return b->persistent || (own && b->first_point < point && b->last_point >= point);
}

/* The layer that is marked for another: the maker of the tensor that it works on. */
static int maker_of(const struct ghp_model *model, int layer)
{
    while (layer > 0 && ghp_op_in_place(&model->layers[layer]))
        layer = model->layers[layer].inputs[0];
    return layer;
}

/* What a stage does and keeps with no layer recomputed. */
static void read_stage(struct sets *s, int stage, const struct ghp_program *program,
                       const struct ghp_timing *timing, struct option *of_layer)
{
    int first = first_backward(program), point = first < 0 ? 0 : program->instrs[first].point;

    s->compute_s[stage] = timing->compute_s;
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];

        if (instr->kind == GHP_INSTR_COMPUTE && !instr->backward)
            of_layer[instr->layer].recompute_s += timing->instrs[i].cost.seconds;
    }
    for (int b = 0; b < program->n_buffers; b++) {
        const struct ghp_buffer *buffer = &program->buffers[b];

        if (buffer->storage != b || !is_kept(buffer, point)) continue;
        s->kept_bytes[stage] += (double)buffer->bytes;
        if (buffer->layer >= 0 && !buffer->persistent)
            of_layer[maker_of(s->lowering.model, buffer->layer)].bytes += (double)buffer->bytes;
    }
}

static int by_worth(const void *x, const void *y)
{
    const struct option *a = x, *b = y;
    double p = a->bytes * b->recompute_s, q = b->bytes * a->recompute_s;

    if (p > q || p < q) return p > q ? -1 : 1;
    return a->layer - b->layer;
}

/* A step that no set undercuts. If concurrent work slows nothing and no stage waits for another, added work only
 * delays, so it is the step with all layers kept. Else it is only the work that has to be done. */
static double floor_s(const struct sets *s, const struct ghp_timing *timings, int n)
{
    const struct ghp_overlap *o = &s->job->profile->overlap;
    double most_s = 0;

    if (n == 1 && !(o->compute > 1) && !(o->comm > 1) && !(o->comm_long > 1) && !(o->link > 1) &&
        !(o->queueing_delay_s > 0) && !(o->launch_delay_s > 0))
        return timings[0].step_s;
    for (int k = 0; k < n; k++)
        most_s = fmax(most_s, timings[k].compute_s);
    return most_s;
}

/* Everything kept: the least step of any set, and what each layer is worth. */
static enum ghp_status weigh(struct sets *s)
{
    int layers = s->lowering.model->n_layers;
    struct option *of_layer = ghp_alloc((size_t)layers, sizeof *of_layer);
    struct ghp_programs programs = {0};
    struct ghp_timing timings[GHP_MAX_STAGES];
    int64_t peak_bytes = 0;
    enum ghp_status status = of_layer == NULL ? GHP_NO_MEMORY() : GHP_OK;

    GHP_TRY_GOTO(status, status, done);
    GHP_TRY_GOTO(status, lower_set(s, &programs, &peak_bytes), done);
    GHP_TRY_GOTO(status, ghp_simulate_all(&programs, s->job->profile, timings), done);
    s->least_s = floor_s(s, timings, programs.n);
    for (int k = 0; k < programs.n; k++)
        read_stage(s, k, &programs.of[k], &timings[k], of_layer);
    if (fits(s, peak_bytes)) status = keep(s, timings[0].step_s, peak_bytes);
    for (int v = 0; v < layers; v++) {
        if (!ghp_stage_may_recompute(&s->lowering.model->layers[v])) continue;
        s->options[s->n] = of_layer[v];
        if (!(of_layer[v].bytes > 0))
            s->options[s->n].recompute_s = 0; /* nothing in the backward pass reads it */
        s->options[s->n].layer = v;
        s->options[s->n++].stage = ghp_stage_of(&s->staging, v);
    }
    if (s->n > 1) qsort(s->options, (size_t)s->n, sizeof *s->options, by_worth);
    for (int k = 0; k < programs.n; k++)
        ghp_timing_release(&timings[k]);
done:
    ghp_programs_release(&programs);
    free(of_layer);
    return status;
}

/* ---- a first set ---- */

/* Marks the first n by worth alone. */
static enum ghp_status evaluate_first(struct sets *s, int n, int64_t *peak_bytes)
{
    for (int i = 0; i < s->n; i++)
        s->mark[s->options[i].layer] = i < n;
    return evaluate(s, peak_bytes);
}

/* Marks by worth until the set fits, some layers at a time if there are many, and takes back those of the last ones
 * that need not be; then keeps again what it can, the dearest first. More layers marked may need more memory: a long
 * run of them is recomputed at once. */
static enum ghp_status find_first(struct sets *s)
{
    int64_t peak_bytes = INT64_MAX, bytes;
    int few = 0, enough = 0, step = (s->n + MOST_FIRST - 1) / MOST_FIRST;

    while (enough < s->n && !fits(s, peak_bytes) && ghp_now_s() < s->job->deadline_s) {
        few = enough;
        enough = enough + step < s->n ? enough + step : s->n;
        GHP_TRY(evaluate_first(s, enough, &peak_bytes));
    }
    while (fits(s, peak_bytes) && few + 1 < enough && ghp_now_s() < s->job->deadline_s) {
        int n = (few + enough) / 2;

        GHP_TRY(evaluate_first(s, n, &bytes));
        *(fits(s, bytes) ? &enough : &few) = n;
    }
    for (int i = 0; i < s->n; i++)
        s->mark[s->options[i].layer] = i < enough;
    for (int i = s->n - 1; i >= 0 && fits(s, peak_bytes) && ghp_now_s() < s->job->deadline_s; --i) {
        bool *mark = &s->mark[s->options[i].layer];
        int64_t without;

        if (!*mark) continue;
        *mark = false;
        GHP_TRY(evaluate(s, &without));
        *mark = !fits(s, without);
    }
    memset(s->mark, 0, (size_t)s->lowering.model->n_layers * sizeof *s->mark);
    return GHP_OK;
}

/* ---- all sets ---- */

/* For each stage so far: the seconds of what is recomputed, and the most bytes that this frees. */
struct sums {
    double recompute_s[GHP_MAX_STAGES], freed_bytes[GHP_MAX_STAGES];
};

/* Seconds that a stage must still recompute to free what it lacks: of the options left, in parts, by worth. */
static double missing_s(const struct sets *s, int stage, int from, double lacks_bytes)
{
    double sum_s = 0;

    for (int i = from; i < s->n && lacks_bytes > 0; i++) {
        const struct option *o = &s->options[i];

        if (o->stage != stage || !(o->bytes > 0)) continue;
        sum_s += o->recompute_s * fmin(1, lacks_bytes / o->bytes);
        lacks_bytes -= o->bytes;
    }
    return lacks_bytes > 0 ? INFINITY : sum_s;
}

/* The least step of any set that has these sums and may add options from `from` on. */
static double bound_s(const struct sets *s, const struct sums *sums, int from)
{
    double least_s = s->least_s;

    for (int k = 0; k < ghp_staging_stages(&s->staging); k++) {
        double lacks = s->kept_bytes[k] - sums->freed_bytes[k] - (double)s->job->limit_bytes;
        double recompute_s = sums->recompute_s[k] + missing_s(s, k, from, lacks);

        least_s = fmax(least_s, s->compute_s[k] + recompute_s);
    }
    return least_s;
}

static enum ghp_status visit(struct sets *s, struct sums *sums, int from)
{
    const struct option *o = &s->options[from];
    int64_t unused;

    if (bound_s(s, sums, from) >= best_s(s) * (1 - GHP_BRANCH_SAME)) return GHP_OK;
    if (is_over(s)) {
        s->result->proven = false;
        return GHP_OK;
    }
    if (from == s->n) {
        --s->most;
        return evaluate(s, &unused);
    }
    s->mark[o->layer] = true;
    sums->recompute_s[o->stage] += o->recompute_s;
    sums->freed_bytes[o->stage] += o->bytes;
    GHP_TRY(visit(s, sums, from + 1));
    s->mark[o->layer] = false;
    sums->recompute_s[o->stage] -= o->recompute_s;
    sums->freed_bytes[o->stage] -= o->bytes;
    return visit(s, sums, from + 1);
}

static enum ghp_status search(struct sets *s)
{
    struct sums sums = {{0}, {0}};

    GHP_TRY(weigh(s));
    if (s->least_s >= best_s(s) * (1 - GHP_BRANCH_SAME)) return GHP_OK;
    GHP_TRY(find_first(s));
    return visit(s, &sums, 0);
}

enum ghp_status ghp_recompute_compute(const struct ghp_partition_job *job,
                                      const struct ghp_staging *staging,
                                      const struct ghp_split *splits, int most,
                                      struct ghp_recompute *recompute)
{
    size_t layers = (size_t)job->lowering->model->n_layers;
    struct sets s = {.job = job,
                     .lowering = *job->lowering,
                     .splits = splits,
                     .most = most,
                     .result = recompute};
    enum ghp_status status;

    GHP_ASSERT(job->limit_bytes > 0);
    *recompute = (struct ghp_recompute){.proven = true};
    if (staging != NULL) s.staging = *staging;
    s.mark = ghp_alloc(layers, sizeof *s.mark);
    s.options = ghp_alloc(layers, sizeof *s.options);
    recompute->recompute = ghp_alloc(layers, sizeof *recompute->recompute);
    status = s.mark == NULL || s.options == NULL || recompute->recompute == NULL ? GHP_NO_MEMORY()
                                                                                 : search(&s);
    free(s.options);
    free(s.mark);
    if (status != GHP_OK) ghp_recompute_release(recompute);
    return status;
}

void ghp_recompute_release(struct ghp_recompute *recompute)
{
    if (recompute == NULL) return;
    free(recompute->recompute);
    *recompute = (struct ghp_recompute){0};
}
