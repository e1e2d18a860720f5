/* profiler/measure/comm.c - every collective of the work list through the executor's transport, and the fit. */
#include "profiler/measure/comm.h"
#include "core/base/clock.h"
#include "core/base/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WORK_BYTES = 4 << 20, /* gone through before a collective: beyond a core's own caches */
    WORK_PART_BYTES = 32 << 10
};
static const double clear_s = 0.1;     /* of one collective */
static const double least_s = 1e-7;    /* of one collective */
static const double work_s = 300e-6;   /* of computing before each collective, as a layer's is */
static const double most_rest_s = 0.1; /* longest further wait for a link */

struct ghp_ranks ghp_measure_ranks(int rank, int size, int count, int stride)
{
    int block = count * stride;
    int start = rank / block * block;

    if (start + block > size) return (struct ghp_ranks){.first = rank, .count = 1, .stride = 1};
    return (struct ghp_ranks){.first = start + rank % stride, .count = count, .stride = stride};
}

/* One collective and its buffers on this rank. */
struct exchange {
    const struct ghp_measure *m;
    struct ghp_collectives *collectives; /* of the transport that carries tensors */
    const struct ghp_worklist_comm *what;
    struct ghp_comm *comm; /* NULL: this rank is left over */
    void *in, *out, *scratch;
    int64_t scratch_bytes;
    unsigned char *work; /* NULL: collectives follow each other without a pause */
    double pause_s;      /* that pause, work_s and more */
};

/* Waits for the link, and computes for work_s: when a collective of a step begins, links have come to rest and caches
 * hold other things. Asleep: if ranks share a core, one may not have ended the last collective yet. */
static void work(const struct exchange *x)
{
    double end_s = ghp_now_s() + x->pause_s;
    int64_t at = 0;

    if (x->pause_s > work_s)
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * (x->pause_s - work_s))}, NULL);
    while (ghp_now_s() < end_s) {
        for (int64_t i = 0; i < WORK_PART_BYTES; i += GHP_ALIGN_BYTES)
            x->work[at + i]++;
        at = (at + WORK_PART_BYTES) % WORK_BYTES;
    }
}

static enum ghp_status exchange_once(const struct exchange *x)
{
    int64_t each = x->what->bytes / x->what->count;
    struct ghp_reduction sum = {.in = x->in,
                                .out = x->out,
                                .elements = x->what->bytes / x->m->element_bytes,
                                .element_bytes = x->m->element_bytes,
                                .scratch = x->scratch,
                                .scratch_bytes = x->scratch_bytes};

    switch (x->what->op) {
    case GHP_COMM_ALL_REDUCE: sum.out = x->in; return x->comm->ops->all_reduce(x->comm, &sum);
    case GHP_COMM_REDUCE_SCATTER:
        sum.elements = each / x->m->element_bytes;
        return x->comm->ops->reduce_scatter(x->comm, &sum);
    case GHP_COMM_ALL_GATHER: return x->comm->ops->all_gather(x->comm, x->in, x->out, each);
    case GHP_COMM_ALL_TO_ALL: return x->comm->ops->all_to_all(x->comm, x->in, x->out, each);
    case GHP_COMM_SHIFT: return x->comm->ops->shift(x->comm, x->in, x->out, x->what->bytes);
    case GHP_COMM_TRANSFER:
    case GHP_COMM_NONE:
    case GHP_COMM_COUNT: break;
    }
    return GHP_FAIL(GHP_ERR_INTERNAL, "no such collective to measure: %d; report this",
                    x->what->op);
}

static enum ghp_status exchange_run(void *context, int64_t repeats)
{
    const struct exchange *x = context;

    for (int64_t i = 0; i < repeats && x->comm != NULL; i++) {
        if (x->work != NULL) work(x);
        GHP_TRY(exchange_once(x));
    }
    return GHP_OK;
}

static enum ghp_status exchange_open(struct exchange *x)
{
    const struct ghp_worklist_comm *what = x->what;
    struct ghp_ranks ranks = ghp_measure_ranks(x->m->rank, x->m->size, what->count, what->stride);
    struct ghp_device device = ghp_measure_device(x->m);

    x->collectives = ghp_measure_collectives(x->m);
    if (ranks.count > 1) {
        GHP_TRY(ghp_collectives_group(x->collectives, ranks, GHP_STREAM_COMPUTE, &x->comm));
        x->comm->label = ghp_comm_name(what->op);
    }
    x->scratch_bytes = ghp_receive_bytes(what->bytes, what->count);
    GHP_TRY(ghp_device_allocate(device, what->bytes, &x->in));
    GHP_TRY(ghp_device_allocate(device, what->bytes, &x->out));
    GHP_TRY(ghp_device_allocate(device, x->scratch_bytes, &x->scratch));
    if (x->m->shares_cores || x->collectives->ops->enqueues) return GHP_OK;
    x->work = ghp_alloc(WORK_BYTES, 1);
    return x->work != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static void exchange_close(struct exchange *x)
{
    struct ghp_device device = ghp_measure_device(x->m);

    free(x->work);
    ghp_device_release(device, x->scratch);
    ghp_device_release(device, x->out);
    ghp_device_release(device, x->in);
}

/* Seconds of one collective like this one, but of 1 MiB. */
static enum ghp_status time_long(const struct ghp_measure *m, const struct ghp_worklist_comm *like,
                                 double *seconds)
{
    struct ghp_worklist_comm what = *like;
    struct exchange x = {.m = m, .what = &what};
    double began_s;
    enum ghp_status status;

    what.bytes = GHP_LONG_BYTES;
    *seconds = 0;
    status = exchange_open(&x);
    GHP_TRY_GOTO(status, ghp_measure_max(m, status, seconds), done);
    began_s = ghp_now_s();
    status = x.comm != NULL ? exchange_once(&x) : GHP_OK;
    *seconds = ghp_now_s() - began_s;
    status = ghp_measure_max(m, status, seconds);
done:
    exchange_close(&x);
    return status;
}

/* How long the link may be occupied after a collective, the same on all ranks: what it takes at the rate of a long one,
 * which is tried once for each kind. */
static enum ghp_status rest_of(const struct ghp_measure *m, const struct ghp_worklist_comm *what,
                               struct ghp_comm_rest *rest, double *seconds)
{
    *seconds = 0;
    if (rest == NULL || m->shares_cores || what->bytes >= GHP_LONG_BYTES ||
        ghp_measure_collectives(m)->ops->enqueues)
        return GHP_OK;
    if (rest->op != what->op || rest->count != what->count || rest->stride != what->stride) {
        *rest = (struct ghp_comm_rest){what->op, what->count, what->stride, 0};
        GHP_TRY(time_long(m, what, &rest->long_s));
    }
    *seconds = rest->long_s * (double)what->bytes / GHP_LONG_BYTES;
    return GHP_OK;
}

enum ghp_status ghp_measure_comm(const struct ghp_measure *m, struct ghp_worklist_comm *what,
                                 int samples, struct ghp_comm_rest *rest)
{
    struct exchange x = {.m = m, .what = what};
    struct ghp_task task = {
        .run = exchange_run, .context = &x, .stream = GHP_DEVICE_STREAM_COMPUTE};
    int before = what->samples.n;
    double unused = 0, rest_s;
    enum ghp_status status;

    GHP_TRY(rest_of(m, what, rest, &rest_s));
    x.pause_s = work_s + fmin(rest_s, most_rest_s);
    status = exchange_open(&x);
    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused), done);
    task.clock = x.collectives->ops->enqueues ? GHP_CLOCK_COMM : GHP_CLOCK_HOST;
    status = ghp_measure_more(m, task, 0.5 * m->sample_s, samples, &what->samples);
    for (int i = before; i < what->samples.n && x.work != NULL; i++)
        what->samples.values[i] = fmax(what->samples.values[i] - x.pause_s, least_s);
done:
    exchange_close(&x);
    return status;
}

static enum ghp_status enter(const struct ghp_worklist_comm *what, struct ghp_profile *profile)
{
    struct ghp_timed timed = ghp_samples_summary(&what->samples);
    struct ghp_comm_entry entry = {.op = what->op,
                                   .count = what->count,
                                   .stride = what->stride,
                                   .bytes = what->bytes,
                                   .seconds = timed.seconds,
                                   .spread = timed.spread,
                                   .source = GHP_SOURCE_MEASURED};

    return ghp_profile_add_comm(profile, &entry);
}

/* Whether a smaller size of the same kind took so long that the link's rate is known: larger ones follow by the
 * analytic model. */
static bool is_clear(const struct ghp_worklist *worklist, const struct ghp_worklist_comm *what)
{
    for (int i = 0; i < worklist->n_comms; i++) {
        const struct ghp_worklist_comm *other = &worklist->comms[i];

        if (other->op == what->op && other->count == what->count && other->stride == what->stride &&
            other->bytes < what->bytes && other->bytes >= GHP_LONG_BYTES && other->samples.n > 0 &&
            ghp_samples_summary(&other->samples).seconds > clear_s)
            return true;
    }
    return false;
}

/* Whether a collective's seconds are known, from which all links' follow. */
static bool knows_some(const struct ghp_worklist *worklist)
{
    for (int i = 0; i < worklist->n_comms; i++)
        if (worklist->comms[i].kept || worklist->comms[i].samples.n > 0) return true;
    return false;
}

/* The shortest collective that is long, which says most of the links; the longest that fits the memory if none is. */
static int first_to_know(const struct ghp_worklist *worklist, int64_t memory_bytes)
{
    int best = -1;

    for (int i = 0; i < worklist->n_comms; i++) {
        const struct ghp_worklist_comm *of = &worklist->comms[i];
        int64_t best_bytes = best < 0 ? 0 : worklist->comms[best].bytes;

        if (of->left || 3 * of->bytes > memory_bytes) continue;
        if (best_bytes >= GHP_LONG_BYTES ? of->bytes >= GHP_LONG_BYTES && of->bytes < best_bytes
                                         : of->bytes > best_bytes)
            best = i;
    }
    return best;
}

/* The collective whose turn it is when that of number i is: another one if the time is over and none is known, -1:
 * none. */
static int32_t turn_of(const struct ghp_worklist *worklist, int i, struct ghp_comm_limits limits)
{
    const struct ghp_worklist_comm *what = &worklist->comms[i];

    if (ghp_now_s() > limits.deadline_s)
        return knows_some(worklist) ? -1 : first_to_know(worklist, limits.memory_bytes);
    return 3 * what->bytes > limits.memory_bytes || is_clear(worklist, what) ? -1 : i;
}

enum ghp_status ghp_measure_comms(const struct ghp_measure *m, struct ghp_worklist *worklist,
                                  struct ghp_comm_limits limits, struct ghp_profile *profile)
{
    enum ghp_status own = GHP_OK,
                    status = GHP_OK; /* own: this rank's alone, told to all before the next */
    struct ghp_comm_rest rest = {0};
    double unused = 0;

    if (worklist->n_comms > 0) ghp_progress_begin("collectives", 0, worklist->n_comms);
    for (int i = 0; i < worklist->n_comms; i++) {
        struct ghp_worklist_comm *what = &worklist->comms[i];
        int32_t turn = turn_of(worklist, i, limits);

        ghp_progress_step(i, "%s of %d", ghp_comm_name(what->op), what->count);
        if (what->kept || what->left) continue;
        GHP_TRY_GOTO(status, ghp_measure_broadcast(m, own, &turn, sizeof turn), done);
        if (turn < 0) continue;
        what = &worklist->comms[turn];
        GHP_TRY_GOTO(status, ghp_measure_comm(m, what, limits.samples, &rest), done);
        if (m->rank == 0) own = enter(what, profile);
    }
    status = ghp_measure_max(m, own, &unused);
done:
    ghp_progress_end();
    return status;
}

/* ---- the analytic model ---- */

/* Sums of the normal equations of t = a latency + b / bandwidth, each row divided by its t. */
struct sums {
    double aa, ab, bb, at, bt;
    int n;
};
struct fit {
    struct sums all, brief; /* brief: of messages whose bytes hardly matter */
};
enum { BRIEF_BYTES = 4096 };

/* Whether the first group of the kind stays inside one node. */
static bool inside_node(const struct ghp_machine *machine, const struct ghp_comm_entry *entry,
                        int workers)
{
    int last = (entry->count - 1) * entry->stride;

    return ghp_machine_place(machine, workers, 0).node ==
           ghp_machine_place(machine, workers, last).node;
}

/* The analytic model's bytes over the link, in seconds of a link of 1 byte/s. */
static double link_bytes(const struct ghp_machine *machine, const struct ghp_comm_entry *entry,
                         int workers)
{
    struct ghp_machine unit = *machine; /* borrows the names */
    struct ghp_ranks ranks = ghp_measure_ranks(0, workers, entry->count, entry->stride);

    unit.intra = (struct ghp_link){.latency_s = 0, .bandwidth_Bps = 1};
    unit.inter = unit.intra;
    if (!inside_node(machine, entry, workers)) unit.intra.bandwidth_Bps = 1e30;
    return ghp_machine_comm_s(&unit, entry->op, entry->bytes, ranks, workers);
}

static void sums_add(struct sums *sums, double a, double b)
{
    sums->aa += a * a;
    sums->ab += a * b;
    sums->bb += b * b;
    sums->at += a;
    sums->bt += b;
    sums->n += 1;
}

/* One row: the analytic model is linear in (latency, 1 / bandwidth), so unit links give its two coefficients. */
static void fit_add(struct fit *fit, const struct ghp_machine *machine,
                    const struct ghp_comm_entry *entry, int workers)
{
    struct ghp_machine unit = *machine; /* borrows the names */
    struct ghp_ranks ranks = ghp_measure_ranks(0, workers, entry->count, entry->stride);
    double a = 0, b = 0;

    unit.intra = (struct ghp_link){.latency_s = 1, .bandwidth_Bps = 1e30};
    unit.inter = unit.intra;
    a = ghp_machine_comm_s(&unit, entry->op, entry->bytes, ranks, workers) / entry->seconds;
    b = link_bytes(machine, entry, workers) / entry->seconds;
    sums_add(&fit->all, a, b);
    if (entry->bytes <= BRIEF_BYTES) sums_add(&fit->brief, a, b);
}

/* Latency and bandwidth of all messages together; untouched if there is nothing to fit. */
static void fit_both(const struct sums *s, struct ghp_link *link)
{
    double determinant = s->aa * s->bb - s->ab * s->ab;
    double latency_s = 0, per_byte_s = 0;

    if (s->n == 0 || !(s->bb > 0)) return;
    if (determinant > 1e-12 * s->aa * s->bb) {
        latency_s = (s->at * s->bb - s->bt * s->ab) / determinant;
        per_byte_s = (s->bt * s->aa - s->at * s->ab) / determinant;
    }
    if (!(latency_s > 0) || !(per_byte_s > 0)) {
        latency_s = 0;
        per_byte_s = s->bt / s->bb;
    }
    if (!(per_byte_s > 0)) return;
    link->latency_s = latency_s;
    link->bandwidth_Bps = 1 / per_byte_s;
}

/* The link that fits best. Its bandwidth is the rate at which long messages grow, where long ones were measured: links
 * that let the first bytes pass faster would spoil a fit of all. The latency then is that of brief messages. */
static void fit_solve(const struct fit *fit, double long_Bps, struct ghp_link *link)
{
    const struct sums *brief = &fit->brief;

    if (!(long_Bps > 0) && brief->n < fit->all.n) {
        fit_both(&fit->all, link);
        return;
    }
    if (brief->n == fit->all.n) /* of the bandwidth they say nothing */
        long_Bps = link->bandwidth_Bps;
    else
        link->asymptotic_Bps = link->bandwidth_Bps = long_Bps;
    if (brief->n > 0)
        link->latency_s = fmax(0, (brief->at - brief->ab / long_Bps) / brief->aa);
    else if (fit->all.n > 0)
        link->latency_s = 0;
}

/* The two longest collectives of a kind, the longer one long, and what it is ahead by. */
struct long_pair {
    int64_t bytes;
    double link_bytes, seconds;
};

static void long_pair_add(struct long_pair *pair, const struct ghp_machine *machine,
                          const struct ghp_comm_entry *a, int workers)
{
    const struct ghp_comm_entry *b = a + 1;

    if (a->op != b->op || a->count != b->count || a->stride != b->stride) return;
    if (b->bytes < GHP_LONG_BYTES || b->bytes <= pair->bytes || !(b->seconds > a->seconds)) return;
    *pair = (struct long_pair){b->bytes,
                               link_bytes(machine, b, workers) - link_bytes(machine, a, workers),
                               b->seconds - a->seconds};
}

void ghp_measure_fit_links(struct ghp_profile *profile, int workers)
{
    struct fit intra = {0}, inter = {0};
    struct long_pair far = {0}, near = {0};
    struct ghp_machine *machine = &profile->machine;

    for (int i = 0; i < profile->n_comms; i++) {
        const struct ghp_comm_entry *entry = &profile->comms[i];

        if (entry->count < 2 || entry->count * entry->stride > workers || !(entry->seconds > 0))
            continue;
        fit_add(inside_node(machine, entry, workers) ? &intra : &inter, machine, entry, workers);
        if (i + 1 < profile->n_comms)
            long_pair_add(inside_node(machine, entry, workers) ? &near : &far, machine, entry,
                          workers);
    }
    fit_solve(&intra, near.seconds > 0 ? near.link_bytes / near.seconds : 0, &machine->intra);
    fit_solve(&inter, far.seconds > 0 ? far.link_bytes / far.seconds : 0, &machine->inter);
    profile->analytic.comm_spread = ghp_profile_comm_spread(profile);
}
