/* tests/planner/sweep/test_what_if.c - what an override does to costs: nothing if it sets what is there, the ratio
 * of the analytic models where it changes a link or the nodes, and no measurement is kept that it makes untrue.
 *
 * The measured profile here has 4 workers on 2 nodes; latencies are 0 if ratios are to be exact powers of two. */
#include "core/plan/what_if.h"

#include "planner/make/make.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

enum { BYTES = 1 << 20 };

static void add_comm(struct ghp_profile *p, int count, int stride, double seconds)
{
    struct ghp_comm_entry entry = {.op = GHP_COMM_ALL_REDUCE,
                                   .count = count,
                                   .stride = stride,
                                   .bytes = BYTES,
                                   .seconds = seconds,
                                   .spread = 0.1,
                                   .source = GHP_SOURCE_MEASURED};

    CHECK_STATUS(ghp_profile_add_comm(p, &entry), GHP_OK);
}

/* 4 workers on 2 nodes of 2 cores: pairs inside a node, pairs across, all four. */
static void make_measured(struct ghp_profile *p)
{
    static const char key[] = "conv2d n8 c3 h8 w8 k4 r3 s3 t1x1 p1,1,1,1 d1x1 g1";
    struct ghp_op_entry op = {.key = (char *)(uintptr_t)key,
                              .pass = GHP_PASS_FORWARD,
                              .seconds = 4e-3,
                              .source = GHP_SOURCE_MEASURED};
    struct ghp_rate rate = {1e-6, 8e9, 0.1, GHP_SOURCE_MEASURED};

    CHECK_STATUS(ghp_profile_init(p, "onednn", "fast", 4), GHP_OK);
    free(p->machine.pus);
    p->machine.pus = ghp_alloc(2, sizeof *p->machine.pus);
    if (p->machine.pus != NULL) p->machine.pus[1] = 1;
    p->machine.n_pus = p->machine.cores = p->machine.threads = p->machine.nodes = 2;
    p->machine.intra = (struct ghp_link){0, 8e9, 0};
    p->machine.inter = (struct ghp_link){0, 1e9, 0};
    p->machine.memory_bytes = INT64_C(64) << 30;
    p->workers = 4;
    p->analytic = (struct ghp_analytic_model){.flops_per_s = 1e12, .memory_Bps = 1e10};
    p->copy = p->update[0] = p->load = p->accumulate = rate;
    CHECK_STATUS(ghp_profile_add_op(p, &op), GHP_OK);
    add_comm(p, 2, 1, 1e-3); /* inside a node */
    add_comm(p, 2, 2, 3e-3); /* two groups cross each node's link */
    add_comm(
        p, 4, 1,
        2e-3); /* one group crosses by levels: 2 messages of 3 leave each node, so 3/2 of its link a rank */
    CHECK_STATUS(ghp_profile_finalize(p), GHP_OK);
}

static const struct ghp_comm_entry *entry_of(const struct ghp_profile *p, int count, int stride)
{
    for (int i = 0; i < p->n_comms; i++)
        if (p->comms[i].count == count && p->comms[i].stride == stride) return &p->comms[i];
    return NULL;
}

static void check_entry(const struct ghp_profile *p, int count, int stride, double seconds,
                        enum ghp_source source)
{
    const struct ghp_comm_entry *e = entry_of(p, count, stride);

    if (!CHECK(e != NULL)) return;
    if (!CHECK_NEAR(e->seconds, seconds, 1e-15 * seconds)) /* one rounding of a product */
        fprintf(stderr, "%d ranks at stride %d\n", count, stride);
    CHECK_EQ(e->source, source);
}

/* Applies up to three edits for `workers` workers. */
static enum ghp_status edit(struct ghp_profile *p, int workers, struct ghp_overrides *overrides,
                            const char *const *set)
{
    struct ghp_what_if w = {.set = set, .workers = workers};

    while (set[w.n_set] != NULL)
        w.n_set++;
    return ghp_what_if_apply(&w, p, overrides);
}

#define EDIT(p, workers, overrides, ...)                                                           \
    edit((p), (workers), (overrides), (const char *const[]){__VA_ARGS__, NULL})

static void test_identity(void)
{
    struct ghp_profile p;
    struct ghp_overrides overrides;
    uint64_t hash;

    make_measured(&p);
    hash = p.hash;
    CHECK_STATUS(EDIT(&p, 16, &overrides, "nodes=2", "cores=2", "memory_bytes=64GiB",
                      "intra.latency_s=0", "intra.bandwidth_Bps=8e9", "inter.bandwidth_Bps=1e9",
                      "overlap.compute=1", "speed.compute=1", "speed.memory=1"),
                 GHP_OK);
    CHECK_EQ(overrides.n, 0);
    CHECK(p.hash == hash);
    ghp_profile_release(&p);
}

static void test_links(void)
{
    struct ghp_ranks eight = {.first = 0, .count = 8, .stride = 1};
    struct ghp_cost before, after;
    struct ghp_overrides overrides;
    struct ghp_profile p;

    make_measured(&p);
    p.overlap.queueing_delay_s = 1e-3;
    CHECK_STATUS(ghp_profile_finalize(&p), GHP_OK);
    CHECK_STATUS(ghp_profile_comm(&p, GHP_COMM_ALL_REDUCE, BYTES, eight, 8, &before), GHP_OK);
    CHECK_STATUS(EDIT(&p, 4, &overrides, "inter.bandwidth_Bps=0.25e9"), GHP_OK);
    check_entry(&p, 2, 1, 1e-3, GHP_SOURCE_MEASURED);
    check_entry(&p, 2, 2, 12e-3, GHP_SOURCE_ANALYTIC);
    check_entry(&p, 4, 1, 8e-3, GHP_SOURCE_ANALYTIC);
    CHECK_EQ(p.ops[0].source, GHP_SOURCE_MEASURED);
    CHECK_NEAR(p.ops[0].seconds, 4e-3, 0);
    CHECK_EQ(p.workers, 4);
    CHECK_NEAR(p.overlap.queueing_delay_s, 4e-3, 1e-15);
    /* what the analytic model continues scales exactly as the link does */
    CHECK_STATUS(ghp_profile_comm(&p, GHP_COMM_ALL_REDUCE, BYTES, eight, 8, &after), GHP_OK);
    CHECK_NEAR(after.seconds, 4 * before.seconds, 1e-15 * after.seconds);
    CHECK_EQ(overrides.n, 1);
    CHECK_TEXT(overrides.override[0].key, "inter.bandwidth_Bps");
    CHECK_TEXT(overrides.override[0].from, "1e+09");
    CHECK_TEXT(overrides.override[0].to, "2.5e+08");
    ghp_overrides_release(&overrides);
    ghp_profile_release(&p);

    /* what is set does not follow the link, and is recorded although it is what it was */
    make_measured(&p);
    p.overlap.queueing_delay_s = 1e-3;
    CHECK_STATUS(ghp_profile_finalize(&p), GHP_OK);
    CHECK_STATUS(
        EDIT(&p, 4, &overrides, "inter.bandwidth_Bps=0.25e9", "overlap.queueing_delay_s=1e-3"),
        GHP_OK);
    CHECK_NEAR(p.overlap.queueing_delay_s, 1e-3, 0);
    CHECK_EQ(overrides.n, 2);
    ghp_overrides_release(&overrides);
    ghp_profile_release(&p);

    make_measured(&p);
    CHECK_STATUS(EDIT(&p, 4, NULL, "intra.bandwidth_Bps=16e9"), GHP_OK);
    check_entry(&p, 2, 1, 0.5e-3, GHP_SOURCE_ANALYTIC);
    check_entry(&p, 2, 2, 3e-3, GHP_SOURCE_MEASURED);
    ghp_profile_release(&p);
}

/* Links that are slower by a factor, whatever they were: between nodes, or in the one that there is. */
static void test_slow_links(void)
{
    struct ghp_overrides overrides;
    struct ghp_profile p;

    make_measured(&p);
    p.overlap.queueing_delay_s = 1e-3;
    CHECK_STATUS(ghp_profile_finalize(&p), GHP_OK);
    CHECK_STATUS(EDIT(&p, 4, &overrides, "slow.links=4"), GHP_OK);
    check_entry(&p, 2, 1, 1e-3, GHP_SOURCE_MEASURED);
    check_entry(&p, 2, 2, 12e-3, GHP_SOURCE_ANALYTIC);
    CHECK_NEAR(p.machine.inter.bandwidth_Bps, 0.25e9, 0);
    CHECK_NEAR(p.overlap.queueing_delay_s, 4e-3, 1e-15);
    CHECK_EQ(overrides.n, 1);
    CHECK_TEXT(overrides.override[0].key, "slow.links");
    CHECK_TEXT(overrides.override[0].to, "4");
    ghp_overrides_release(&overrides);
    ghp_profile_release(&p);
    make_measured(&p);
    CHECK_STATUS(EDIT(&p, 4, NULL, "nodes=1", "slow.links=4"), GHP_OK);
    CHECK_NEAR(p.machine.intra.bandwidth_Bps, 2e9, 0);
    CHECK_NEAR(p.machine.inter.bandwidth_Bps, 1e9, 0);
    ghp_profile_release(&p);
}

/* A link that had no figures and is given some: nothing measured becomes untrue. */
static void test_unknown_link(void)
{
    struct ghp_profile p;

    make_measured(&p);
    p.machine.inter = (struct ghp_link){0, 0, 0};
    CHECK_STATUS(ghp_profile_finalize(&p), GHP_OK);
    CHECK_STATUS(EDIT(&p, 4, NULL, "inter.bandwidth_Bps=3e9"), GHP_OK);
    check_entry(&p, 4, 1, 2e-3, GHP_SOURCE_MEASURED);
    CHECK_NEAR(p.machine.inter.bandwidth_Bps, 3e9, 0);
    ghp_profile_release(&p);
}

static void test_nodes(void)
{
    struct ghp_overrides overrides;
    struct ghp_profile p;

    /* the same workers a node: nothing that was measured changes */
    make_measured(&p);
    CHECK_STATUS(EDIT(&p, 8, &overrides, "workers_per_node=2"), GHP_OK);
    CHECK_EQ(p.machine.nodes, 4);
    CHECK_EQ(p.workers, 8);
    CHECK_EQ(p.ops[0].source, GHP_SOURCE_MEASURED);
    check_entry(&p, 2, 1, 1e-3, GHP_SOURCE_MEASURED);
    check_entry(&p, 2, 2, 3e-3, GHP_SOURCE_MEASURED);
    check_entry(&p, 4, 1, 2e-3, GHP_SOURCE_MEASURED);
    CHECK_EQ(overrides.n, 2);
    ghp_overrides_release(&overrides);
    ghp_profile_release(&p);

    /* all four on one node: no group leaves it, and each worker has half of what it had */
    make_measured(&p);
    CHECK_STATUS(EDIT(&p, 4, NULL, "nodes=1"), GHP_OK);
    check_entry(&p, 2, 1, 1e-3, GHP_SOURCE_MEASURED);
    check_entry(&p, 2, 2, 3e-3 / 16, GHP_SOURCE_ANALYTIC);     /* half of 1e9 becomes 8e9 */
    check_entry(&p, 4, 1, 2e-3 * 3 / 16, GHP_SOURCE_ANALYTIC); /* 3/2 of 1e9 becomes 8e9 */
    CHECK_NEAR(p.ops[0].seconds, 8e-3, 0);
    CHECK_EQ(p.ops[0].source, GHP_SOURCE_ANALYTIC);
    CHECK_NEAR(p.copy.bandwidth_Bps, 4e9, 0);
    CHECK_EQ(p.copy.source, GHP_SOURCE_ANALYTIC);
    CHECK_NEAR(p.analytic.flops_per_s, 0.5e12, 0);
    ghp_profile_release(&p);

    /* one worker a node: pairs that shared a link have their own, pairs inside a node now cross */
    make_measured(&p);
    CHECK_STATUS(EDIT(&p, 4, NULL, "nodes=4"), GHP_OK);
    check_entry(&p, 2, 1, 8e-3, GHP_SOURCE_ANALYTIC);
    check_entry(&p, 2, 2, 1.5e-3, GHP_SOURCE_ANALYTIC);
    check_entry(&p, 4, 1, 3e-3, GHP_SOURCE_ANALYTIC); /* 3/2 of 1e9 becomes 1e9 */
    CHECK_NEAR(p.ops[0].seconds, 2e-3, 0);
    ghp_profile_release(&p);
}

static void test_speeds(void)
{
    struct ghp_profile p, analytic;

    make_measured(&p);
    CHECK_STATUS(EDIT(&p, 4, NULL, "cores=4", "speed.compute=2", "speed.memory=0.5"), GHP_OK);
    CHECK_NEAR(p.ops[0].seconds, 1e-3, 0);
    CHECK_NEAR(p.analytic.flops_per_s, 4e12, 0);
    CHECK_NEAR(p.update[0].bandwidth_Bps, 4e9, 0);
    CHECK_NEAR(p.update[0].latency_s, 1e-6, 0);
    CHECK_EQ(p.machine.cores, 4);
    CHECK_EQ(p.machine.n_pus, 4);
    CHECK_EQ(p.machine.threads, 4);
    ghp_profile_release(&p);

    /* a profile by the analytic model states the rate of one worker, however many share a node */
    if (!CHECK_STATUS(analytic_profile(6e12, 1e9, 0, &analytic), GHP_OK)) return;
    CHECK_STATUS(EDIT(&analytic, 8, NULL, "nodes=2", "cores=16", "overlap.link=1.5",
                      "overlap.queueing_delay_s=2e-3"),
                 GHP_OK);
    CHECK_NEAR(analytic.analytic.flops_per_s, 6e12, 0);
    CHECK_EQ(analytic.machine.nodes, 2);
    CHECK_NEAR(analytic.overlap.link, 1.5, 0);
    CHECK_NEAR(analytic.overlap.queueing_delay_s, 2e-3, 0);
    CHECK_STATUS(EDIT(&analytic, 8, NULL, "analytic.flops_per_s=3e12", "analytic.memory_Bps=1e11"),
                 GHP_OK);
    CHECK_NEAR(analytic.analytic.flops_per_s, 3e12, 0);
    CHECK_NEAR(analytic.analytic.memory_Bps, 1e11, 0);
    CHECK_STATUS(EDIT(&analytic, 8, NULL, "analytic.batch_half=1.5"), GHP_OK);
    CHECK_NEAR(analytic.analytic.batch_half, 1.5, 0);
    ghp_profile_release(&analytic);
}

static void test_machine(void)
{
    struct ghp_machine other = {0};
    struct ghp_what_if w = {.machine = &other, .machine_name = "other.json", .workers = 4};
    struct ghp_overrides overrides;
    struct ghp_profile p;

    make_measured(&p);
    CHECK_STATUS(ghp_machine_copy(&p.machine, &other), GHP_OK);
    other.intra = (struct ghp_link){0, 0, 0};
    other.inter.bandwidth_Bps = 2e9;
    CHECK_STATUS(ghp_what_if_apply(&w, &p, &overrides), GHP_OK);
    check_entry(&p, 2, 1, 1e-3, GHP_SOURCE_MEASURED);
    check_entry(&p, 4, 1, 1e-3, GHP_SOURCE_ANALYTIC);
    CHECK_NEAR(p.machine.intra.bandwidth_Bps, 8e9, 0);
    CHECK_EQ(overrides.n, 1);
    CHECK_TEXT(overrides.override[0].to, "other.json");
    ghp_overrides_release(&overrides);
    ghp_machine_release(&other);
    ghp_profile_release(&p);
}

static void check_refused(const char *const *set, const char *says)
{
    struct ghp_profile p;

    make_measured(&p);
    CHECK_STATUS(edit(&p, 4, NULL, set), GHP_ERR_USAGE);
    CHECK_MESSAGE(says);
    ghp_profile_release(&p);
}

#define REFUSED(says, ...) check_refused((const char *const[]){__VA_ARGS__, NULL}, says)

static void test_refusals(void)
{
    REFUSED("did you mean 'inter.bandwidth_Bps'?", "inter.bandwidth_bps=1e9");
    REFUSED("use one of nodes, workers_per_node", "colour=red");
    REFUSED("write KEY=VALUE", "nodes");
    REFUSED("whole number from 1 to", "nodes=0");
    REFUSED("whole number", "nodes=1.5");
    REFUSED("from 1 to 1000", "overlap.compute=0.5");
    REFUSED("size such as", "memory_bytes=plenty");
    REFUSED("given twice", "nodes=3", "nodes=4");
    REFUSED("give one of them", "nodes=3", "workers_per_node=2");
    REFUSED("speed.compute=FACTOR", "analytic.flops_per_s=1e12");
    REFUSED("speed.memory=FACTOR", "analytic.memory_Bps=1e12");
    REFUSED("number from 1 to", "inter.bandwidth_Bps=nan");
}

/* A whole plan: reductions by the analytic model scale exactly, the record is enough to make the same profile again. */
static void test_plan(void)
{
    struct ghp_profile analytic, again, edited;
    struct ghp_overrides overrides;
    struct ghp_plan_request request = {.model_path = GHP_SOURCE_DIR "/models/alexnet.json",
                                       .profile_path = "analytic",
                                       .problem = {8, 256},
                                       .time_limit_s = 30,
                                       .decision_only = true};
    struct ghp_plan before, after;

    if (!CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &analytic), GHP_OK)) return;
    CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &edited), GHP_OK);
    CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &again), GHP_OK);
    CHECK_STATUS(EDIT(&edited, 8, &overrides, "inter.bandwidth_Bps=5e9", "inter.latency_s=5e-6"),
                 GHP_OK);
    request.profile = &analytic;
    CHECK_STATUS(ghp_plan_make(&request, &before), GHP_OK);
    request.profile = &edited;
    request.what_if = &overrides;
    CHECK_STATUS(ghp_plan_make(&request, &after), GHP_OK);
    CHECK(before.n_baselines == 3 && after.n_baselines == 3);
    /* each layer alone: sums of products, each exact to rounding */
    CHECK_NEAR(after.baselines[0].predicted.comm_s, before.baselines[0].predicted.comm_s / 4,
               1e-14 * before.baselines[0].predicted.comm_s);
    CHECK_NEAR(after.baselines[0].predicted.compute_s, before.baselines[0].predicted.compute_s, 0);
    CHECK(after.predicted.step_s < before.predicted.step_s);
    CHECK_EQ(after.what_if.n, 2);
    CHECK_EQ(before.what_if.n, 0);
    CHECK_STATUS(ghp_what_if_repeat(&after, &again), GHP_OK);
    CHECK(again.hash == after.profile_hash && again.hash != analytic.hash);
    CHECK_STATUS(ghp_plan_verify(&after, &again), GHP_OK);
    ghp_plan_release(&before);
    ghp_plan_release(&after);
    ghp_overrides_release(&overrides);
    ghp_profile_release(&analytic);
    ghp_profile_release(&again);
    ghp_profile_release(&edited);
}

/* If a worker becomes the slowest, the profile has its operations and rates, and the others' speeds are relative to
 * it. */
static void test_slow_worker(void)
{
    struct ghp_profile p;
    struct ghp_overrides overrides;

    make_measured(&p);
    CHECK_STATUS(EDIT(&p, 4, &overrides, "slow.worker=2", "slow.factor=2"), GHP_OK);
    CHECK_EQ(overrides.n, 2);
    CHECK_EQ(p.speeds.n, 4);
    CHECK_NEAR(p.speeds.of[0], 2, 0);
    CHECK_NEAR(p.speeds.of[2], 1, 0);
    CHECK_NEAR(p.ops[0].seconds, 8e-3, 1e-17);
    CHECK_EQ(p.ops[0].source, GHP_SOURCE_ANALYTIC);
    CHECK_NEAR(p.update[0].bandwidth_Bps, 4e9, 1e-6);
    CHECK_NEAR(p.copy.bandwidth_Bps, 8e9, 0);
    check_entry(&p, 4, 1, 2e-3, GHP_SOURCE_MEASURED);
    ghp_overrides_release(&overrides);
    CHECK_STATUS(EDIT(&p, 4, NULL, "slow.worker=0", "slow.factor=2"),
                 GHP_OK); /* as slow as that one */
    CHECK_NEAR(p.speeds.of[0], 1, 0);
    CHECK_NEAR(p.ops[0].seconds, 8e-3, 1e-17);
    CHECK_STATUS(EDIT(&p, 4, NULL, "slow.worker=4", "slow.factor=2"), GHP_ERR_USAGE);
    CHECK_MESSAGE("give 0 to 3");
    ghp_profile_release(&p);
    make_measured(&p);
    CHECK_STATUS(EDIT(&p, 4, NULL, "slow.factor=2"), GHP_ERR_USAGE);
    CHECK_MESSAGE("give both");
    ghp_profile_release(&p);
}

CHECK_TEST(what_if)
{
    test_identity();
    test_links();
    test_slow_links();
    test_unknown_link();
    test_nodes();
    test_speeds();
    test_slow_worker();
    test_machine();
    test_refusals();
    test_plan();
    return check_end();
}
