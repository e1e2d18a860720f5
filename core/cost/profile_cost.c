/* core/cost/profile_cost.c - seconds of local operations and instructions.
 *
 * Without an entry of its own an operation is costed by its family: the entries whose keys differ in the samples
 * only. The nearest two make a line in the samples (compute cost is affine in the batch, not proportional). Outside
 * their range the line is kept within what two entries allow: never below proportional to the smallest, never above
 * the smallest when extrapolating down, never below the largest when extrapolating up. */
#include "core/cost/profile_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A key split at its samples: "conv2d n16 c64 ..." is prefix "conv2d n", 16 samples, rest " c64 ...". */
struct family {
    char prefix[GHP_KEY_BYTES];
    size_t n_prefix;
    char rest[GHP_KEY_BYTES];
};

static bool read_family(const char *key, struct family *family)
{
    const char *space = strchr(key, ' ');

    if (space == NULL || space[1] != 'n') return false;
    family->n_prefix = (size_t)(space - key) + 2;
    memcpy(family->prefix, key, family->n_prefix);
    family->prefix[family->n_prefix] = '\0';
    key += family->n_prefix;
    key += strspn(key, "0123456789");
    snprintf(family->rest, sizeof family->rest, "%s", key);
    return true;
}

/* First operation whose key is not less than `key`. */
static int first_from(const struct ghp_profile *profile, const char *key)
{
    int low = 0, high = profile->n_ops;

    while (low < high) {
        int mid = low + (high - low) / 2;

        if (strcmp(profile->ops[mid].key, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The two nearest entries on each side of the samples asked for. */
struct around {
    const struct ghp_op_entry *below[2], *above[2]; /* [0] is the nearest */
    int64_t below_n[2], above_n[2];
};

static void note_entry(struct around *around, const struct ghp_op_entry *entry, int64_t samples,
                       int64_t wanted)
{
    bool under = samples < wanted;
    const struct ghp_op_entry **side = under ? around->below : around->above;
    int64_t *n = under ? around->below_n : around->above_n;

    if (side[0] == NULL || llabs(samples - wanted) < llabs(n[0] - wanted)) {
        side[1] = side[0];
        n[1] = n[0];
        side[0] = entry;
        n[0] = samples;
    } else if (side[1] == NULL || llabs(samples - wanted) < llabs(n[1] - wanted)) {
        side[1] = entry;
        n[1] = samples;
    }
}

/* Visits each number of samples that the operation has entries for; all keys of one number are skipped at once. */
static void look_around(const struct ghp_profile *profile, const struct family *family,
                        enum ghp_pass pass, int64_t wanted, struct around *around)
{
    int i = first_from(profile, family->prefix);

    while (i < profile->n_ops &&
           strncmp(profile->ops[i].key, family->prefix, family->n_prefix) == 0) {
        const char *digits = profile->ops[i].key + family->n_prefix;
        int width = (int)strspn(digits, "0123456789");
        char key[GHP_KEY_BYTES + 32];

        if (width > 0 && width < 19) {
            const struct ghp_op_entry *entry;

            snprintf(key, sizeof key, "%s%.*s%s", family->prefix, width, digits, family->rest);
            entry = ghp_profile_find(profile, key, pass);
            if (entry != NULL) note_entry(around, entry, strtoll(digits, NULL, 10), wanted);
        }
        /* '!' follows ' ' in the order of keys */
        snprintf(key, sizeof key, "%s%.*s!", family->prefix, width, digits);
        i = first_from(profile, key) > i ? first_from(profile, key) : i + 1;
    }
}

struct ghp_op_interpolation ghp_profile_op_points(const struct ghp_profile *profile,
                                                  const struct ghp_local *local, enum ghp_pass pass)
{
    struct ghp_op_interpolation points = {0};
    struct around around = {0};
    struct family family;
    char key[GHP_KEY_BYTES];

    GHP_ASSERT(profile->finalized);
    if (profile->n_ops == 0) return points;
    ghp_local_key(local, key);
    points.entry[0] = ghp_profile_find(profile, key, pass);
    if (points.entry[0] != NULL) {
        points.n = 1;
        points.samples[0] = local->n;
        return points;
    }
    if (!read_family(key, &family)) return points;
    look_around(profile, &family, pass, local->n, &around);
    if (around.below[0] != NULL && around.above[0] != NULL)
        return (struct ghp_op_interpolation){
            2, {around.below[0], around.above[0]}, {around.below_n[0], around.above_n[0]}};
    if (around.below[0] != NULL && around.below[1] != NULL)
        return (struct ghp_op_interpolation){
            2, {around.below[1], around.below[0]}, {around.below_n[1], around.below_n[0]}};
    if (around.above[0] != NULL && around.above[1] != NULL)
        return (struct ghp_op_interpolation){
            2, {around.above[0], around.above[1]}, {around.above_n[0], around.above_n[1]}};
    if (around.below[0] != NULL)
        return (struct ghp_op_interpolation){1, {around.below[0]}, {around.below_n[0]}};
    if (around.above[0] != NULL)
        return (struct ghp_op_interpolation){1, {around.above[0]}, {around.above_n[0]}};
    return points;
}

const struct ghp_op_entry *ghp_profile_nearest(const struct ghp_profile *profile,
                                               const struct ghp_local *local, enum ghp_pass pass)
{
    struct ghp_op_interpolation points = ghp_profile_op_points(profile, local, pass);

    if (points.n < 2) return points.entry[0];
    return llabs(points.samples[1] - local->n) < llabs(points.samples[0] - local->n)
               ? points.entry[1]
               : points.entry[0];
}

/* The value at `n` samples of the line through a at na and b at nb > na, kept as the file's head says. */
static double on_line(int64_t n, const int64_t at[2], double a, double b)
{
    double line = a + (b - a) * ((double)(n - at[0]) / (double)(at[1] - at[0]));

    if (n < at[0]) return fmin(a, fmax(line, a * (double)n / (double)at[0]));
    return n > at[1] ? fmax(line, b) : line;
}

/* A value of the picked entries at `n` samples. */
static double interpolated(const struct ghp_op_interpolation *points, int64_t n, double a, double b)
{
    if (points->n == 2) return on_line(n, points->samples, a, b);
    return points->samples[0] == n || points->samples[0] == 0
               ? a
               : a * (double)n / (double)points->samples[0];
}

/* The seconds of the contention, of the picked entries. */
static double interpolated_contention(const struct ghp_op_interpolation *points, int64_t n,
                                      double seconds)
{
    const struct ghp_op_entry *a = points->entry[0], *b = points->entry[1];
    double alone;

    if (points->n == 1) return seconds * a->contention;
    alone =
        interpolated(points, n, a->seconds * (1 - a->contention), b->seconds * (1 - b->contention));
    return fmax(seconds - alone, -seconds);
}

static enum ghp_status fail_op(const struct ghp_local *local, enum ghp_pass pass)
{
    char key[GHP_KEY_BYTES];

    ghp_local_key(local, key);
    return GHP_FAIL(GHP_ERR_MISSING,
                    "the profile has no entry for '%s' (%s) and no analytic model; measure it with "
                    "ghp-profile --model, --workers "
                    "and --batch as in this plan, into the same profile",
                    key, ghp_pass_name(pass));
}

/* Whether the product before it does it, as a part of its last pass over the output: biases forward, on GPUs.
 *
 * Source   cuBLASLt's CUBLASLT_EPILOGUE_BIAS and cuDNN's fused bias */
static bool is_epilogue(const struct ghp_profile *profile, const struct ghp_local *local,
                        enum ghp_pass pass)
{
    return profile->on_device && local->op == GHP_OP_BIAS && pass == GHP_PASS_FORWARD;
}

/* Times that attention without flash reads or writes its scores, a number for each pair of positions and head. Forward:
 * the product writes them, masked softmax and dropout each read and write them, the second product reads them. Backward
 * the five products and both of those take nine. */
enum { SCORES_FORWARD = 6, SCORES_BACKWARD = 9 };

static double score_bytes(const struct ghp_profile *profile, const struct ghp_local *local,
                          enum ghp_pass pass)
{
    double scores = (double)local->n * (double)local->heads.n * (double)local->h * (double)local->h;

    if (!profile->analytic.stores_scores || local->op != GHP_OP_ATTENTION) return 0;
    return scores * profile->element_bytes *
           (pass == GHP_PASS_FORWARD ? SCORES_FORWARD : SCORES_BACKWARD);
}

/* Seconds by the analytic model alone: flops at the rate that this number of samples reaches, or traffic.
 *
 *     max( flops / flops_per_s * (1 + batch_half / samples),  bytes / memory_Bps )
 *
 * Source   docs/explanation/time-model.md 3 */
static enum ghp_status analytic_cost(const struct ghp_profile *profile,
                                     const struct ghp_local *local, enum ghp_pass pass,
                                     struct ghp_cost *cost)
{
    const struct ghp_analytic_model *analytic = &profile->analytic;
    double flops_s, memory_s = 0, scores_s = 0;

    if (!(analytic->flops_per_s > 0)) return fail_op(local, pass);
    if (is_epilogue(profile, local, pass)) {
        *cost = (struct ghp_cost){.spread = analytic->spread, .source = GHP_SOURCE_ANALYTIC};
        return GHP_OK;
    }
    flops_s = (double)ghp_local_flops(local, pass) / analytic->flops_per_s;
    if (analytic->batch_half > 0) flops_s *= 1 + analytic->batch_half / (double)local->n;
    if (analytic->memory_Bps > 0)
        memory_s =
            (double)ghp_local_bytes(local, pass, profile->element_bytes) / analytic->memory_Bps;
    if (analytic->memory_Bps > 0)
        scores_s = score_bytes(profile, local, pass) / analytic->memory_Bps;
    *cost = (struct ghp_cost){.seconds = fmax(flops_s, memory_s) + scores_s,
                              .spread = analytic->spread,
                              .source = GHP_SOURCE_ANALYTIC};
    return GHP_OK;
}

const struct ghp_op_memory_format *ghp_op_entry_in(const struct ghp_op_entry *entry,
                                                   struct ghp_nchw16c nchw16c)
{
    for (int i = 0; i < entry->n_memory_formats && nchw16c.requested; i++)
        if (entry->memory_formats[i].x == nchw16c.x && entry->memory_formats[i].y == nchw16c.y)
            return &entry->memory_formats[i];
    return NULL;
}

void ghp_op_entry_scale(struct ghp_op_entry *entry, double factor)
{
    entry->seconds *= factor;
    for (int i = 0; i < entry->n_memory_formats; i++)
        entry->memory_formats[i].seconds *= factor;
}

static bool all_know(const struct ghp_op_interpolation *points, struct ghp_nchw16c nchw16c)
{
    for (int i = 0; i < points->n; i++)
        if (ghp_op_entry_in(points->entry[i], nchw16c) == NULL) return false;
    return points->n > 0;
}

bool ghp_profile_has_memory_formats(const struct ghp_profile *profile)
{
    for (int i = 0; i < profile->n_ops; i++)
        if (profile->ops[i].n_memory_formats > 0) return true;
    return false;
}

bool ghp_profile_knows(const struct ghp_profile *profile, const struct ghp_local *local,
                       enum ghp_pass pass, struct ghp_nchw16c nchw16c)
{
    const struct ghp_op_interpolation points = ghp_profile_op_points(profile, local, pass);

    return all_know(&points, nchw16c);
}

enum ghp_status ghp_profile_op(const struct ghp_profile *profile, const struct ghp_local *local,
                               enum ghp_pass pass, struct ghp_cost *cost)
{
    return ghp_profile_op_in(profile, local, pass, (struct ghp_nchw16c){0}, cost);
}

enum ghp_status ghp_profile_op_in(const struct ghp_profile *profile, const struct ghp_local *local,
                                  enum ghp_pass pass, struct ghp_nchw16c nchw16c,
                                  struct ghp_cost *cost)
{
    struct ghp_op_interpolation points = ghp_profile_op_points(profile, local, pass);
    struct ghp_op_entry in[2];
    const struct ghp_op_entry *a = &in[0], *b = &in[1];
    bool known = all_know(&points, nchw16c);
    enum ghp_source source;

    for (int i = 0; i < points.n; i++) {
        in[i] = *points.entry[i];
        if (known) in[i].seconds = ghp_op_entry_in(points.entry[i], nchw16c)->seconds;
        points.entry[i] = &in[i];
    }

    if (points.n == 0) return analytic_cost(profile, local, pass, cost);
    if (points.n == 1) {
        bool exact = points.samples[0] == local->n;

        *cost = (struct ghp_cost){.seconds = interpolated(&points, local->n, a->seconds, 0),
                                  .spread =
                                      exact ? a->spread : fmax(a->spread, profile->analytic.spread),
                                  .source = exact ? a->source : GHP_SOURCE_ANALYTIC};
        cost->contention_s = interpolated_contention(&points, local->n, cost->seconds);
        return GHP_OK;
    }
    source = local->n > points.samples[0] && local->n < points.samples[1] ? GHP_SOURCE_INTERPOLATED
                                                                          : GHP_SOURCE_ANALYTIC;
    if (a->source > source) source = a->source;
    if (b->source > source) source = b->source;
    *cost = (struct ghp_cost){.seconds = interpolated(&points, local->n, a->seconds, b->seconds),
                              .spread = fmax(a->spread, b->spread),
                              .source = source};
    if (source == GHP_SOURCE_ANALYTIC) cost->spread = fmax(cost->spread, profile->analytic.spread);
    cost->contention_s = interpolated_contention(&points, local->n, cost->seconds);
    return GHP_OK;
}

enum ghp_status ghp_profile_scratch(const struct ghp_profile *profile,
                                    const struct ghp_local *local, enum ghp_pass pass,
                                    int64_t *bytes)
{
    struct ghp_op_interpolation points = ghp_profile_op_points(profile, local, pass);
    double a, b;

    *bytes = 0;
    if (points.n == 0) return profile->analytic.flops_per_s > 0 ? GHP_OK : fail_op(local, pass);
    a = (double)points.entry[0]->scratch_bytes;
    b = points.n == 2 ? (double)points.entry[1]->scratch_bytes : a;
    *bytes = (int64_t)ceil(interpolated(&points, local->n, a, b));
    return GHP_OK;
}

static struct ghp_cost rate_cost(const struct ghp_rate *rate, int64_t bytes)
{
    struct ghp_cost cost = {.spread = rate->spread, .source = rate->source};

    if (bytes > 0 && rate->bandwidth_Bps > 0)
        cost.seconds = rate->latency_s + (double)bytes / rate->bandwidth_Bps;
    return cost;
}

/* One cost after the other; their errors are independent. */
static struct ghp_cost sum_costs(struct ghp_cost a, struct ghp_cost b)
{
    struct ghp_cost sum = {.seconds = a.seconds + b.seconds,
                           .crosses = a.crosses || b.crosses,
                           .owed_s = a.owed_s + b.owed_s};

    if (!(b.seconds > 0)) return a;
    if (!(a.seconds > 0)) return b;
    sum.spread = hypot(a.seconds * a.spread, b.seconds * b.spread) / sum.seconds;
    sum.source = a.source > b.source ? a.source : b.source;
    return sum;
}

/* How often a kernel is run: once for each ghost batch, but weight gradients are made of all sums at once. */
static double runs_of(const struct ghp_instr *instr)
{
    return instr->pass == GHP_PASS_BACKWARD_WEIGHT ? 1 : ghp_local_repeat(&instr->local);
}

const struct ghp_rate *ghp_profile_update(const struct ghp_profile *profile,
                                          const struct ghp_optimizer *optimizer)
{
    const struct ghp_rate *own = &profile->update[ghp_optimizer_index(optimizer)];

    return own->bandwidth_Bps > 0 ? own : &profile->update[GHP_OPTIMIZER_INDEX_sgd];
}

struct ghp_exchange ghp_profile_exchange(const struct ghp_instr *instr, int workers)
{
    int64_t whole = instr->serves ? instr->bytes * instr->servers : instr->bytes;
    int64_t at_port =
        instr->ranks.count > instr->servers ? whole / instr->servers * instr->ranks.count : whole;
    struct ghp_exchange exchange = {1, {{at_port, {.count = 2, .stride = 1}, 2}}};

    if (workers < 2) return exchange;
    exchange.of[exchange.n++] =
        (struct ghp_exchanged){whole, {.count = 2, .stride = workers / 2}, workers};
    return exchange;
}

static enum ghp_status exchange_cost(const struct ghp_profile *profile,
                                     const struct ghp_instr *instr, int workers,
                                     struct ghp_cost *cost)
{
    struct ghp_exchange exchange = ghp_profile_exchange(instr, workers);
    struct ghp_cost of;

    *cost = (struct ghp_cost){0};
    for (int i = 0; i < exchange.n; i++) {
        const struct ghp_exchanged *e = &exchange.of[i];

        GHP_TRY(ghp_profile_comm(profile, GHP_COMM_TRANSFER, e->bytes, e->ranks, e->workers, &of));
        if (i == 0 || of.seconds > cost->seconds) *cost = of;
    }
    return GHP_OK;
}

/* One message of all weights between two workers, or a worker and its servers. */
static enum ghp_status message_cost(const struct ghp_profile *profile,
                                    const struct ghp_instr *instr, int workers,
                                    struct ghp_cost *cost)
{
    struct ghp_instr one = *instr;

    one.servers = 1;
    one.ranks.count = 1; /* nobody else is at the port */
    return exchange_cost(profile, &one, workers, cost);
}

/* A MIX: the messages that are waited for, and the servers' updates. A CARRY: the messages that travel during the step,
 * or, if that is longer, the time that those of all workers take at a server's port, with its updates. */
static enum ghp_status mix_cost(const struct ghp_profile *profile, const struct ghp_instr *instr,
                                int workers, struct ghp_cost *cost)
{
    const struct ghp_mix_traffic *t = &instr->mix.traffic;
    struct ghp_cost update = rate_cost(ghp_profile_update(profile, instr->optimizer), instr->bytes);
    struct ghp_instr word = *instr;
    struct ghp_cost few;
    double each_s, most = t->out > t->in ? t->out : t->in, port_s;

    word.bytes = sizeof(double);
    GHP_TRY(message_cost(profile, instr, workers, cost));
    each_s = cost->seconds;
    update.seconds /= instr->servers > 0 ? instr->servers : 1;
    if (ghp_kind_of(instr)->cost == GHP_COST_MIX) {
        cost->seconds = t->waits * each_s + t->applies * update.seconds;
        if (t->latencies == 0) return GHP_OK;
        GHP_TRY(message_cost(profile, &word, workers, &few));
        cost->seconds += t->latencies * few.seconds;
        return GHP_OK;
    }
    cost->seconds = t->concurrent * each_s;
    if (instr->servers == 0) return GHP_OK;
    port_s = workers * most * each_s / instr->servers;
    if (workers * t->out * update.seconds > port_s) port_s = workers * t->out * update.seconds;
    if (port_s > cost->seconds) cost->seconds = port_s;
    return GHP_OK;
}

static enum ghp_status kernel_cost(const struct ghp_profile *profile, const struct ghp_instr *instr,
                                   struct ghp_cost *cost)
{
    GHP_TRY(ghp_profile_op_in(profile, &instr->local, instr->pass, instr->nchw16c, cost));
    cost->seconds *= runs_of(instr);
    cost->contention_s *= runs_of(instr);
    cost->seconds += rate_cost(&profile->copy, instr->copy_bytes).seconds;
    return GHP_OK;
}

static enum ghp_status collective_cost(const struct ghp_profile *profile,
                                       const struct ghp_instr *instr, int workers,
                                       struct ghp_cost *cost)
{
    GHP_TRY(ghp_profile_comm(profile, instr->comm, instr->bytes, instr->ranks, workers, cost));
    if (instr->stream == GHP_STREAM_COMPUTE && cost->seconds > 0)
        cost->seconds += profile->overlap.arrival_delay_s;
    if (instr->period > 1) {
        cost->seconds /= instr->period;
        cost->owed_s /= instr->period;
    }
    *cost = sum_costs(*cost, rate_cost(&profile->copy, instr->copy_bytes));
    return GHP_OK;
}

/* What moves bytes at a rate. */
static struct ghp_cost moving_cost(const struct ghp_profile *profile, const struct ghp_instr *instr)
{
    struct ghp_cost cost;

    switch (ghp_kind_of(instr)->cost) {
    case GHP_COST_LOAD: return rate_cost(&profile->load, instr->bytes);
    case GHP_COST_UPDATE:
        return rate_cost(ghp_profile_update(profile, instr->optimizer), instr->bytes);
    case GHP_COST_SQUARES:
        return rate_cost(profile->squares.bandwidth_Bps > 0 ? &profile->squares
                                                            : &profile->accumulate,
                         instr->bytes);
    case GHP_COST_ACCUMULATE:
        if (instr->joins && profile->fused_accumulate.bandwidth_Bps > 0)
            return rate_cost(&profile->fused_accumulate, instr->bytes);
        cost = rate_cost(&profile->accumulate, instr->bytes);
        /* with the mask of a ReLU it moves four tensors and not three */
        if (instr->masks) cost.seconds *= 4.0 / 3.0;
        return cost;
    case GHP_COST_COPY: return rate_cost(&profile->copy, instr->copy_bytes);
    default: return (struct ghp_cost){0};
    }
}

enum ghp_status ghp_profile_cost(const struct ghp_profile *profile, const struct ghp_instr *instr,
                                 int workers, struct ghp_cost *cost)
{
    switch (ghp_kind_of(instr)->cost) {
    case GHP_COST_KERNEL: return kernel_cost(profile, instr, cost);
    case GHP_COST_COLLECTIVE: return collective_cost(profile, instr, workers, cost);
    case GHP_COST_TRANSFER:
        GHP_TRY(ghp_profile_transfer(profile, &instr->transfer, cost));
        *cost = sum_costs(*cost, rate_cost(&profile->copy, instr->copy_bytes));
        return GHP_OK;
    case GHP_COST_EXCHANGE: return exchange_cost(profile, instr, workers, cost);
    case GHP_COST_MIX:
    case GHP_COST_CARRY: return mix_cost(profile, instr, workers, cost);
    default: *cost = moving_cost(profile, instr); return GHP_OK;
    }
}

struct ghp_contention ghp_contention_of(const struct ghp_program *program)
{
    return (struct ghp_contention){program->placement.problem.workers, program->problem.workers,
                                   program->placement.speed};
}

double ghp_cost_contended(const struct ghp_instr *instr, const struct ghp_cost *cost,
                          struct ghp_contention contention)
{
    int others = contention.workers - 1;
    double apart = others > 0 ? (double)(contention.workers - contention.at_once) / others : 0;

    return (cost->seconds - apart * cost->contention_s) / ghp_instr_speed(instr, contention.speed);
}
