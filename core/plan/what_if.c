/* core/plan/what_if.c - the table of keys, and how each override reaches the costs; the rules are in what_if.h. */
#include "core/plan/what_if.h"

#include "core/plan/profile_scale.h"
#include "core/base/text.h"
#include "core/base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum key {
    KEY_NODES,
    KEY_WORKERS_PER_NODE,
    KEY_CORES,
    KEY_MEMORY,
    KEY_INTRA_LATENCY,
    KEY_INTRA_BANDWIDTH,
    KEY_INTER_LATENCY,
    KEY_INTER_BANDWIDTH,
    KEY_ANALYTIC_FLOPS,
    KEY_ANALYTIC_MEMORY,
    KEY_ANALYTIC_BATCH,
    KEY_OVERLAP_COMPUTE,
    KEY_OVERLAP_COMM,
    KEY_OVERLAP_LINK,
    KEY_OVERLAP_QUEUEING_DELAY,
    KEY_SPEED_COMPUTE,
    KEY_SPEED_MEMORY,
    KEY_SLOW_WORKER,
    KEY_SLOW_FACTOR,
    KEY_SLOW_LINKS,
    KEY_COUNT
};

static const struct {
    const char *name, *unit;
    double min, max;
    enum { REAL, WHOLE, BYTES } kind;
    const char *meaning;
} keys[KEY_COUNT] = {
    {"nodes", "", 1, 1 << 20, WHOLE, "equal nodes; the workers fill them in order of rank"},
    {"workers_per_node", "", 1, 1 << 20, WHOLE, "as many nodes as the workers then need"},
    {"cores", "", 1, 1 << 16, WHOLE, "of one node"},
    {"memory_bytes", "", 1, 0x1p60, BYTES,
     "memory of one node, such as 64GiB; a worker gets its part, unless --memory is given"},
    {"intra.latency_s", "s", 0, 1e6, REAL, "of a message between two workers of a node"},
    {"intra.bandwidth_Bps", "bytes/s", 1, 1e18, REAL, "between two workers of a node"},
    {"inter.latency_s", "s", 0, 1e6, REAL, "of a message between two nodes"},
    {"inter.bandwidth_Bps", "bytes/s", 1, 1e18, REAL, "of one node's link, shared by its workers"},
    {"analytic.flops_per_s", "FLOP/s", 1, 1e24, REAL,
     "of one worker, in a profile by the analytic model"},
    {"analytic.memory_Bps", "bytes/s", 0, 1e18, REAL,
     "of one worker, in a profile by the analytic model; 0: free"},
    {"analytic.batch_half", "samples", 0, 1e9, REAL,
     "samples of a worker at which it reaches half of analytic.flops_per_s; 0: always all"},
    {"overlap.compute", "", 1, 1e3, REAL, "slowdown of computation concurrent with a reduction"},
    {"overlap.comm", "", 1, 1e3, REAL, "slowdown of a reduction concurrent with computation"},
    {"overlap.link", "", 1, 1e3, REAL, "slowdown of a reduction and a reshard that are concurrent"},
    {"overlap.queueing_delay_s", "s", 0, 1e6, REAL,
     "what a reshard, however short, waits for a reduction before it"},
    {"speed.compute", "", 1e-6, 1e6, REAL, "operations run this many times as fast"},
    {"speed.memory", "", 1e-6, 1e6, REAL, "copies, updates and loads run this many times as fast"},
    {"slow.worker", "", 0, 1 << 20, WHOLE, "the rank of a worker that is slower, by slow.factor"},
    {"slow.factor", "", 1, GHP_MOST_SPEED, REAL, "it needs this many times as long for its work"},
    {"slow.links", "", 1, GHP_MOST_SPEED, REAL,
     "messages between nodes (or, on one node, workers) need this many times as long"},
};

struct values {
    double v[KEY_COUNT];
    bool set[KEY_COUNT];
};

const char *ghp_what_if_help(void)
{
    static char text[2048];
    size_t used = (size_t)snprintf(text, sizeof text, "Keys of --set:");

    for (int k = 0; k < KEY_COUNT && used < sizeof text; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, "\n  %-20s %s%s%s%s",
                                 keys[k].name, keys[k].meaning, keys[k].unit[0] != '\0' ? " [" : "",
                                 keys[k].unit, keys[k].unit[0] != '\0' ? "]" : "");
    return text;
}

/* ---- values ---- */

/* workers a node of the machine as measured, or as N workers would fill it; every value as it is now. */
static void read_values(const struct ghp_profile *p, int workers, double *v)
{
    const struct ghp_machine *m = &p->machine;

    v[KEY_NODES] = m->nodes;
    v[KEY_WORKERS_PER_NODE] =
        ghp_machine_workers_per_node(m, p->workers > 0 ? p->workers : workers);
    v[KEY_CORES] = m->cores;
    v[KEY_MEMORY] = (double)m->memory_bytes;
    v[KEY_INTRA_LATENCY] = m->intra.latency_s;
    v[KEY_INTRA_BANDWIDTH] = m->intra.bandwidth_Bps;
    v[KEY_INTER_LATENCY] = m->inter.latency_s;
    v[KEY_INTER_BANDWIDTH] = m->inter.bandwidth_Bps;
    v[KEY_ANALYTIC_FLOPS] = p->analytic.flops_per_s;
    v[KEY_ANALYTIC_MEMORY] = p->analytic.memory_Bps;
    v[KEY_ANALYTIC_BATCH] = p->analytic.batch_half;
    v[KEY_OVERLAP_COMPUTE] = p->overlap.compute;
    v[KEY_OVERLAP_COMM] = p->overlap.comm;
    v[KEY_OVERLAP_LINK] = p->overlap.link;
    v[KEY_OVERLAP_QUEUEING_DELAY] = p->overlap.queueing_delay_s;
    v[KEY_SPEED_COMPUTE] = v[KEY_SPEED_MEMORY] = v[KEY_SLOW_FACTOR] = v[KEY_SLOW_LINKS] = 1;
    v[KEY_SLOW_WORKER] = -1; /* none */
}

static bool same(double a, double b)
{
    return !(a < b) && !(a > b);
}

static enum ghp_status fail_key(const char *text, size_t n)
{
    const char *names[KEY_COUNT + 1] = {NULL}, *nearest;
    char list[512], key[64];

    for (int k = 0; k < KEY_COUNT; k++)
        names[k] = keys[k].name;
    snprintf(key, sizeof key, "%.*s", (int)(n < sizeof key ? n : sizeof key - 1), text);
    nearest = ghp_text_nearest(key, names);
    ghp_text_join(names, list, sizeof list);
    if (nearest != NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "unknown key '%s' in --set; did you mean '%s'? keys are %s",
                        key, nearest, list);
    return GHP_FAIL(GHP_ERR_USAGE, "unknown key '%s' in --set; use one of %s", key, list);
}

static enum ghp_status read_value(int k, const char *text, double *value)
{
    char range[80], *end = NULL;
    int64_t bytes = 0;
    bool good;

    if (keys[k].kind == BYTES) {
        good = ghp_bytes_parse(text, &bytes) == GHP_OK;
        *value = (double)bytes;
    } else {
        *value = strtod(text, &end);
        good = end != text && *end == '\0' && isfinite(*value);
    }
    if (good && keys[k].kind == WHOLE) good = same(*value, floor(*value));
    if (good && *value >= keys[k].min && *value <= keys[k].max) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE, "bad value '%s' for --set %s; give a %s %s", text, keys[k].name,
                    keys[k].kind == WHOLE   ? "whole number"
                    : keys[k].kind == BYTES ? "size such as 64GiB"
                                            : "number",
                    ghp_text_range(keys[k].min, keys[k].max, range, sizeof range));
}

static enum ghp_status read_set(const char *text, struct values *to)
{
    const char *equals = strchr(text, '=');
    int k = 0;

    if (equals == NULL || equals == text)
        return GHP_FAIL(GHP_ERR_USAGE, "cannot read --set '%s'; write KEY=VALUE, such as nodes=128",
                        text);
    while (k < KEY_COUNT && (strlen(keys[k].name) != (size_t)(equals - text) ||
                             memcmp(keys[k].name, text, (size_t)(equals - text)) != 0))
        k++;
    if (k == KEY_COUNT) return fail_key(text, (size_t)(equals - text));
    if (to->set[k])
        return GHP_FAIL(GHP_ERR_USAGE, "--set %s is given twice; give it once", keys[k].name);
    to->set[k] = true;
    return read_value(k, equals + 1, &to->v[k]);
}

/* Refuses overrides that would say nothing or say two things. */
static enum ghp_status check_sets(const struct ghp_profile *profile, const struct values *to)
{
    if (to->set[KEY_NODES] && to->set[KEY_WORKERS_PER_NODE])
        return GHP_FAIL(GHP_ERR_USAGE, "--set nodes and --set workers_per_node both say where the "
                                       "workers are; give one of them");
    for (int k = KEY_ANALYTIC_FLOPS; k <= KEY_ANALYTIC_BATCH; k++)
        if (to->set[k] && profile->n_ops > 0)
            return GHP_FAIL(
                GHP_ERR_USAGE,
                "--set %s would not reach the %d operations that this profile has "
                "entries of; use --set %s=FACTOR",
                keys[k].name, profile->n_ops,
                keys[k == KEY_ANALYTIC_FLOPS ? KEY_SPEED_COMPUTE : KEY_SPEED_MEMORY].name);
    if (to->set[KEY_SLOW_WORKER] != to->set[KEY_SLOW_FACTOR])
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--set slow.worker and --set slow.factor say together who is "
                        "slower, and how much; give both");
    return GHP_OK;
}

static enum ghp_status read_sets(const struct ghp_what_if *w, const struct ghp_profile *profile,
                                 struct values *to)
{
    for (int i = 0; i < w->n_set; i++)
        GHP_TRY(read_set(w->set[i], to));
    return check_sets(profile, to);
}

/* ---- the machine asked for ---- */

/* Cores that are no longer there, or new ones: their hardware threads are numbered in order. */
static enum ghp_status set_cores(struct ghp_machine *m, int cores)
{
    int *pus = ghp_alloc((size_t)cores, sizeof *pus);

    if (pus == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < cores; i++)
        pus[i] = i;
    free(m->pus);
    m->pus = pus;
    m->n_pus = cores;
    m->threads = cores * (m->threads / m->cores);
    m->cores = cores;
    if (m->packages > cores) m->packages = cores;
    return GHP_OK;
}

/* Slows the links that the workers' messages cross. */
static void slow_links(struct values *to)
{
    bool crossed = to->v[KEY_NODES] > 1;

    to->v[crossed ? KEY_INTER_LATENCY : KEY_INTRA_LATENCY] *= to->v[KEY_SLOW_LINKS];
    to->v[crossed ? KEY_INTER_BANDWIDTH : KEY_INTRA_BANDWIDTH] /= to->v[KEY_SLOW_LINKS];
}

/* The rate of long messages goes with the bandwidth. */
static void set_link(struct ghp_link *link, double latency_s, double bandwidth_Bps)
{
    link->asymptotic_Bps *= link->bandwidth_Bps > 0 ? bandwidth_Bps / link->bandwidth_Bps : 0;
    link->latency_s = latency_s;
    link->bandwidth_Bps = bandwidth_Bps;
}

static enum ghp_status set_machine(const struct ghp_what_if *w, struct values *to,
                                   struct ghp_machine *m)
{
    int per_node = to->set[KEY_WORKERS_PER_NODE] ? (int)to->v[KEY_WORKERS_PER_NODE]
                   : to->set[KEY_NODES]          ? 0
                                                 : w->workers_per_node;

    if (per_node > 0) to->v[KEY_NODES] = (w->workers + per_node - 1) / per_node;
    m->nodes = (int)to->v[KEY_NODES];
    m->memory_bytes = (int64_t)to->v[KEY_MEMORY];
    slow_links(to);
    set_link(&m->intra, to->v[KEY_INTRA_LATENCY], to->v[KEY_INTRA_BANDWIDTH]);
    set_link(&m->inter, to->v[KEY_INTER_LATENCY], to->v[KEY_INTER_BANDWIDTH]);
    return (int)to->v[KEY_CORES] != m->cores ? set_cores(m, (int)to->v[KEY_CORES]) : GHP_OK;
}

/* The machine that overrides start from: the one given, with the profile's links if it has none. */
static enum ghp_status start_machine(const struct ghp_what_if *w, const struct ghp_machine *old,
                                     struct ghp_machine *m)
{
    GHP_TRY(ghp_machine_copy(w->machine != NULL ? w->machine : old, m));
    if (!(m->intra.bandwidth_Bps > 0)) m->intra = old->intra;
    if (!(m->inter.bandwidth_Bps > 0)) m->inter = old->inter;
    return GHP_OK;
}

/* ---- costs ---- */

/* What the change makes of a worker. */
struct change {
    const struct ghp_profile *profile; /* with the machine as it was */
    const struct ghp_machine *machine; /* as it will be */
    int workers;                       /* N */
    bool moved;                        /* the workers lie otherwise on the nodes */
    double compute, memory;            /* times as fast */
};

static double analytic_s(const struct ghp_machine *machine, const struct ghp_comm_entry *e,
                         int workers)
{
    struct ghp_ranks ranks = {.count = e->count, .stride = e->stride};

    return ghp_machine_comm_s(machine, e->op, e->bytes, ranks, workers);
}

/* Re-costs one measured collective. The workers that ran it at once are those of the profile. If the profile has fewer
 * workers than the collective spans, they are those of the plan (as in core/cost/profile_comm.c). */
static void update_comm_cost(const struct change *c, struct ghp_comm_entry *e)
{
    int64_t span = (int64_t)e->count * e->stride;
    int before = c->profile->workers >= span ? c->profile->workers : c->workers;
    struct ghp_machine old = c->profile->machine;
    double ratio;

    /* a link without figures before is only given some: the ratio is one */
    if (!(old.intra.bandwidth_Bps > 0)) old.intra = c->machine->intra;
    if (!(old.inter.bandwidth_Bps > 0)) old.inter = c->machine->inter;
    ratio = analytic_s(c->machine, e, c->moved ? c->workers : before) / analytic_s(&old, e, before);
    if (!isfinite(ratio) || same(ratio, 1)) return; /* not finite: neither machine has the link */
    e->seconds *= ratio;
    e->source = GHP_SOURCE_ANALYTIC;
}

static void speed_rate(struct ghp_rate *rate, double factor)
{
    if (same(factor, 1) || !(rate->bandwidth_Bps > 0)) return;
    rate->bandwidth_Bps *= factor;
    rate->source = GHP_SOURCE_ANALYTIC;
}

static void update_cost(const struct change *c, struct ghp_profile *p)
{
    for (int i = 0; i < p->n_comms; i++)
        update_comm_cost(c, &p->comms[i]);
    for (int i = 0; i < p->n_ops && !same(c->compute, 1); i++) {
        ghp_op_entry_scale(&p->ops[i], 1 / c->compute);
        p->ops[i].source = GHP_SOURCE_ANALYTIC;
    }
    speed_rate(&p->copy, c->memory);
    for (int i = 0; i < GHP_OPTIMIZERS; i++)
        speed_rate(&p->update[i], c->memory);
    speed_rate(&p->load, c->memory);
    speed_rate(&p->accumulate, c->memory);
    speed_rate(&p->squares, c->memory);
    if (c->moved && p->workers > 0) p->workers = c->workers;
}

/* How much faster a worker becomes by its part of a node: only a measured profile knows the part that it had. */
static void divide_node(const struct ghp_what_if *w, const struct values *from,
                        const struct values *to, struct change *c)
{
    double before = from->v[KEY_WORKERS_PER_NODE], after = before;

    if (c->profile->workers == 0) return;
    if (to->set[KEY_WORKERS_PER_NODE])
        after = to->v[KEY_WORKERS_PER_NODE];
    else if (w->workers_per_node > 0 && !to->set[KEY_NODES])
        after = w->workers_per_node;
    else if (c->moved)
        after = ghp_machine_workers_per_node(c->machine, c->workers);
    c->memory *= before / after;
    c->compute *= before / after * (to->v[KEY_CORES] / from->v[KEY_CORES]);
}

/* ---- the record ---- */

static bool is_recorded(const struct ghp_what_if *w, const struct values *from,
                        const struct values *to, int k)
{
    bool differs = !same(from->v[k], to->v[k]);

    if (k == KEY_NODES) /* even if they are not set, since they may follow the workers */
        return differs && (to->set[k] || w->machine == NULL);
    if (k == KEY_SLOW_FACTOR) return to->set[k];
    if (k == KEY_WORKERS_PER_NODE && to->set[k] && !same(from->v[KEY_NODES], to->v[KEY_NODES]))
        return true;
    if (k == KEY_OVERLAP_QUEUEING_DELAY && to->set[k] &&
        !same(from->v[KEY_INTER_BANDWIDTH], to->v[KEY_INTER_BANDWIDTH]))
        return true; /* it would follow the link */
    return to->set[k] && differs;
}

static enum ghp_status record(const struct ghp_what_if *w, const struct ghp_profile *profile,
                              const struct values *from, const struct values *to,
                              struct ghp_overrides *overrides)
{
    uint64_t old_hash = 0, new_hash = 0;

    if (w->machine != NULL && w->machine_name != NULL) {
        GHP_TRY(ghp_machine_hash(&profile->machine, &old_hash));
        GHP_TRY(ghp_machine_hash(w->machine, &new_hash));
        if (old_hash != new_hash)
            GHP_TRY(
                ghp_overrides_add(overrides, "machine", profile->machine.name, w->machine_name));
    }
    for (int k = 0; k < KEY_COUNT; k++) {
        char before[32], after[32];

        if (!is_recorded(w, from, to, k)) continue;
        GHP_TRY(ghp_overrides_add(overrides, keys[k].name,
                                  ghp_text_number(from->v[k], before, sizeof before),
                                  ghp_text_number(to->v[k], after, sizeof after)));
    }
    return GHP_OK;
}

/* ---- a slow worker ---- */

/* Entries and rates stay those of the slowest worker. */
static enum ghp_status slow_worker(const struct values *to, int workers,
                                   struct ghp_profile *profile)
{
    double slower;

    if (!to->set[KEY_SLOW_WORKER]) return GHP_OK;
    if (to->v[KEY_SLOW_WORKER] >= workers)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--set slow.worker=%.0f names none of %d workers; give 0 to %d",
                        to->v[KEY_SLOW_WORKER], workers, workers - 1);
    GHP_TRY(ghp_speeds_slow(&profile->speeds, workers, (int)to->v[KEY_SLOW_WORKER],
                            to->v[KEY_SLOW_FACTOR], &slower));
    if (same(slower, 1)) return GHP_OK; /* another is still the slowest */
    for (int i = 0; i < GHP_OPTIMIZERS; i++)
        speed_rate(&profile->update[i], 1 / slower);
    speed_rate(&profile->load, 1 / slower);
    speed_rate(&profile->accumulate, 1 / slower);
    speed_rate(&profile->squares, 1 / slower);
    return ghp_profile_scale_compute(profile, 1 / slower);
}

/* As many bytes are queued at a faster link, for less time. */
static double queue_after(const struct values *from, const struct values *to)
{
    double before = from->v[KEY_INTER_BANDWIDTH], after = to->v[KEY_INTER_BANDWIDTH];
    bool crossed = from->v[KEY_NODES] > 1; /* else it is not that link's queue */

    if (to->set[KEY_OVERLAP_QUEUEING_DELAY] || !crossed || !(before > 0) || !(after > 0))
        return to->v[KEY_OVERLAP_QUEUEING_DELAY];
    return from->v[KEY_OVERLAP_QUEUEING_DELAY] * before / after;
}

/* ---- the whole ---- */

/* Costs, analytic models and machine of the profile as the values say; takes the machine over. */
static enum ghp_status change_profile(const struct ghp_what_if *w, const struct values *from,
                                      const struct values *to, struct ghp_machine *machine,
                                      struct ghp_profile *profile)
{
    struct change c = {.profile = profile,
                       .machine = machine,
                       .workers = w->workers,
                       .moved = machine->nodes != profile->machine.nodes,
                       .compute = to->v[KEY_SPEED_COMPUTE],
                       .memory = to->v[KEY_SPEED_MEMORY]};

    divide_node(w, from, to, &c);
    update_cost(&c, profile);
    profile->analytic.flops_per_s = to->set[KEY_ANALYTIC_FLOPS]
                                        ? to->v[KEY_ANALYTIC_FLOPS]
                                        : profile->analytic.flops_per_s * c.compute;
    profile->analytic.memory_Bps = to->set[KEY_ANALYTIC_MEMORY]
                                       ? to->v[KEY_ANALYTIC_MEMORY]
                                       : profile->analytic.memory_Bps * c.memory;
    profile->analytic.batch_half = to->v[KEY_ANALYTIC_BATCH];
    profile->overlap = (struct ghp_overlap){
        .compute = to->v[KEY_OVERLAP_COMPUTE],
        .comm = to->v[KEY_OVERLAP_COMM],
        .link = to->v[KEY_OVERLAP_LINK],
        .comm_long = to->set[KEY_OVERLAP_COMM] ? 0 : profile->overlap.comm_long,
        .queueing_delay_s = queue_after(from, to),
        .arrival_delay_s = profile->overlap.arrival_delay_s,
        .launch_delay_s = profile->overlap.launch_delay_s};
    ghp_machine_release(&profile->machine);
    profile->machine = *machine;
    *machine = (struct ghp_machine){0};
    GHP_TRY(slow_worker(to, w->workers, profile));
    return ghp_profile_finalize(profile);
}

enum ghp_status ghp_what_if_apply(const struct ghp_what_if *what_if, struct ghp_profile *profile,
                                  struct ghp_overrides *overrides)
{
    struct values from = {0}, to = {0};
    struct ghp_machine machine = {0}, measured;
    enum ghp_status status;

    if (overrides != NULL) *overrides = (struct ghp_overrides){0};
    read_values(profile, what_if->workers, from.v);
    GHP_TRY_GOTO(status, start_machine(what_if, &profile->machine, &machine), done);
    measured = profile->machine;
    profile->machine = machine; /* for a moment: the values that overrides start from */
    read_values(profile, what_if->workers, to.v);
    profile->machine = measured;
    GHP_TRY_GOTO(status, read_sets(what_if, profile, &to), done);
    GHP_TRY_GOTO(status, set_machine(what_if, &to, &machine), done);
    if (overrides != NULL)
        GHP_TRY_GOTO(status, record(what_if, profile, &from, &to, overrides), done);
    status = change_profile(what_if, &from, &to, &machine, profile);
done:
    ghp_machine_release(&machine);
    if (status != GHP_OK) ghp_overrides_release(overrides);
    return status;
}

enum ghp_status ghp_what_if_repeat(const struct ghp_plan *plan, struct ghp_profile *profile)
{
    struct ghp_what_if w = {.machine = &plan->profile.machine, .workers = plan->problem.workers};
    char texts[KEY_COUNT][64];
    const char *set[KEY_COUNT];

    for (int i = 0; i < plan->what_if.n; i++) {
        const struct ghp_override *e = &plan->what_if.override[i];

        /* the machine, with its nodes and slower links, is the plan's */
        if (strcmp(e->key, "machine") == 0 || strcmp(e->key, keys[KEY_NODES].name) == 0 ||
            strcmp(e->key, keys[KEY_SLOW_LINKS].name) == 0)
            continue;
        if (w.n_set >= KEY_COUNT)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "the plan names more overrides than there are keys; make it again");
        snprintf(texts[w.n_set], sizeof texts[0], "%s=%s", e->key, e->to);
        set[w.n_set] = texts[w.n_set];
        w.n_set++;
    }
    w.set = set;
    return plan->what_if.n > 0 ? ghp_what_if_apply(&w, profile, NULL) : GHP_OK;
}

int ghp_what_if_workers_per_node(const struct ghp_profile *profile,
                                 const struct ghp_machine *machine, int workers)
{
    const struct ghp_machine *m = machine != NULL ? machine : &profile->machine;
    int measured = profile->workers > 0
                       ? ghp_machine_workers_per_node(&profile->machine, profile->workers)
                       : 0;
    int room = m->gpus.count > 0 ? m->gpus.count : m->cores;

    if (measured > 0 && (machine == NULL || m->gpus.count == 0)) room = measured;
    if (measured == 0 && ghp_machine_workers_per_node(m, workers) == room) return 0; /* they do */
    /* a machine that is given cannot get more nodes than it has */
    return machine != NULL && (int64_t)room * m->nodes < workers
               ? ghp_machine_workers_per_node(m, workers)
               : room;
}

int64_t ghp_what_if_memory(const struct ghp_what_if *what_if, const struct ghp_profile *profile)
{
    static const char key[] = "memory_bytes=";
    int64_t bytes = profile->machine.memory_bytes /
                    ghp_machine_workers_per_node(&profile->machine, what_if->workers);

    for (int i = 0; i < what_if->n_set; i++)
        if (strncmp(what_if->set[i], key, sizeof key - 1) == 0) return bytes > 0 ? bytes : 1;
    return 0;
}
