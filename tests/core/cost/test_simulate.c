/* tests/core/cost/test_simulate.c - the simulated period against the greatest cycle of the step, and contention by
 * hand.
 *
 * Oracle without contention: a step's period is the greatest of the compute stream's sum, the communication stream's
 * sum, and for every pair of layers l' <= l the cycle "reductions of l down to l', then update(l') ... backward(l)".
 * The oracle enumerates these; the simulation knows nothing of them. Times are whole numbers, so results are exact. */
#include "core/cost/simulate.h"
#include "tests/check.h"

enum { MAX_LAYERS = 8 };

struct step { /* whole seconds */
    int layers;
    int update[MAX_LAYERS], forward[MAX_LAYERS], weight[MAX_LAYERS], data[MAX_LAYERS],
        reduce[MAX_LAYERS];
};

/* Rates of one byte a second: an instruction of n bytes takes n seconds. */
static void unit_profile(struct ghp_profile *profile)
{
    CHECK_STATUS(ghp_profile_init(profile, "test", "exact", 4), GHP_OK);
    struct ghp_rate rate = {.bandwidth_Bps = 1.0, .source = GHP_SOURCE_ANALYTIC};
    profile->copy = profile->update[0] = profile->load = profile->accumulate = rate;
    profile->machine.nodes = 1;
    profile->machine.cores = 2;
    profile->machine.intra = profile->machine.inter = (struct ghp_link){0.0, 1.0, 0};
    profile->overlap = (struct ghp_overlap){.compute = 1.0, .comm = 1.0, .link = 1.0};
    CHECK_STATUS(ghp_profile_finalize(profile), GHP_OK);
}

static struct ghp_instr *put(struct ghp_program *program, enum ghp_instr_kind kind, int seconds)
{
    struct ghp_instr *instr = &program->instrs[program->n_instrs++];
    *instr = (struct ghp_instr){.kind = kind, .bytes = seconds, .wait = -1, .bucket = -1};
    instr->ranks = (struct ghp_ranks){.count = 1, .stride = 1};
    if (kind == GHP_INSTR_NORM_REDUCE) { /* two ranks: 2 (p - 1) / p bytes = bytes */
        instr->comm = GHP_COMM_ALL_REDUCE;
        instr->ranks.count = 2;
    }
    if (kind == GHP_INSTR_ALL_REDUCE) {
        instr->stream = GHP_STREAM_COMM;
        instr->comm = GHP_COMM_ALL_REDUCE;
        instr->ranks.count = 2;
    }
    return instr;
}

static void lower_step(const struct step *step, struct ghp_program *program)
{
    memset(program->instrs, 0, (size_t)program->max_instrs * sizeof *program->instrs);
    program->n_instrs = 0;
    int updates[MAX_LAYERS];
    for (int l = 0; l < step->layers; l++) {
        updates[l] = program->n_instrs;
        put(program, GHP_INSTR_UPDATE, step->update[l]);
        put(program, GHP_INSTR_ACCUMULATE, step->forward[l]);
    }
    for (int l = step->layers - 1; l >= 0; l--) {
        put(program, GHP_INSTR_ACCUMULATE, step->weight[l]);
        if (step->reduce[l] > 0) {
            program->instrs[updates[l]].wait = program->n_instrs;
            put(program, GHP_INSTR_ALL_REDUCE, step->reduce[l]);
        }
        put(program, GHP_INSTR_ACCUMULATE, step->data[l]);
    }
}

/* Compute seconds from update(first) up to and including weight(last). */
static int span(const struct step *s, int first, int last)
{
    int sum = 0;
    for (int l = first; l < s->layers; l++)
        sum += s->update[l] + s->forward[l];
    for (int l = s->layers - 1; l > last; l--)
        sum += s->weight[l] + s->data[l];
    return sum + s->weight[last];
}

static int greatest_cycle(const struct step *s)
{
    int compute = 0, comm = 0, best;
    for (int l = 0; l < s->layers; l++) {
        compute += s->update[l] + s->forward[l] + s->weight[l] + s->data[l];
        comm += s->reduce[l];
    }
    best = compute > comm ? compute : comm;
    for (int first = 0; first < s->layers; first++)
        for (int last = first; last < s->layers; last++) {
            if (s->reduce[first] == 0 || s->reduce[last] == 0) continue;
            int cycle = span(s, first, last);
            for (int l = first; l <= last; l++)
                cycle += s->reduce[l];
            if (cycle > best) best = cycle;
        }
    return best;
}

/* How long one step takes by itself, until its computing and its reductions are done. */
static int joined(const struct step *s)
{
    int now = 0, reduced = 0;
    for (int l = 0; l < s->layers; l++)
        now += s->update[l] + s->forward[l];
    for (int l = s->layers - 1; l >= 0; l--) {
        now += s->weight[l];
        if (s->reduce[l] > 0) reduced = (reduced > now ? reduced : now) + s->reduce[l];
        now += s->data[l];
    }
    return reduced > now ? reduced : now;
}

/* No reduction of a recorded step hides behind the next forward pass. */
static void check_joined(struct ghp_program *program, struct ghp_profile *profile,
                         const struct step *s)
{
    struct ghp_timing timing;
    profile->joins = true;
    CHECK_STATUS(ghp_simulate(program, profile, &timing), GHP_OK);
    CHECK_NEAR(timing.step_s, greatest_cycle(s), 1e-9); /* it is not recorded */
    ghp_timing_release(&timing);
    program->is_recordable = true;
    CHECK_STATUS(ghp_simulate(program, profile, &timing), GHP_OK);
    CHECK_NEAR(timing.step_s, joined(s), 1e-9);
    CHECK(joined(s) >= greatest_cycle(s));
    ghp_timing_release(&timing);
    program->is_recordable = profile->joins = false;
}

static uint32_t state = 12345;

static int draw(int below)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)below);
}

static void test_period(void)
{
    struct ghp_profile profile;
    unit_profile(&profile);
    struct ghp_instr instrs[5 * MAX_LAYERS];
    struct ghp_program program = {
        .instrs = instrs, .max_instrs = 5 * MAX_LAYERS, .problem = {2, 2}};
    int stalled = 0;
    for (int i = 0; i < 2000; i++) {
        struct step s = {.layers = 1 + draw(MAX_LAYERS)};
        int heavy = 1 + draw(60);
        for (int l = 0; l < s.layers; l++) {
            s.update[l] = draw(4);
            s.forward[l] = draw(20);
            s.weight[l] = draw(20);
            s.data[l] = draw(20);
            s.reduce[l] = draw(3) > 0 ? draw(heavy) : 0;
        }
        lower_step(&s, &program);
        struct ghp_timing timing;
        CHECK_STATUS(ghp_simulate(&program, &profile, &timing), GHP_OK);
        int expected = greatest_cycle(&s);
        CHECK_NEAR(timing.step_s, expected, 1e-9);
        stalled += timing.phase_s[GHP_PHASE_EXPOSED] > 0.5;
        double sum = 0.0;
        for (int p = 0; p < GHP_PHASE_COUNT; p++)
            sum += timing.phase_s[p];
        CHECK_NEAR(sum, timing.step_s, 1e-9);
        ghp_timing_release(&timing);
        if (i % 10 == 0) check_joined(&program, &profile, &s);
    }
    CHECK(stalled > 200 && stalled < 1900); /* the draw covers both kinds of step */
    ghp_profile_release(&profile);
}

/* A slow worker makes a step in which only computing is longer. If nothing is hidden (one layer, no data gradient),
 * that is the law of workers in step, T(r) = T(1) + (r - 1) computing. Else more computing hides more, so the law is a
 * bound. */
static void test_slow_worker(void)
{
    struct ghp_profile profile;
    unit_profile(&profile);
    struct ghp_instr instrs[5 * MAX_LAYERS];
    struct ghp_programs programs = {
        .n = 1, .of = {{.instrs = instrs, .max_instrs = 5 * MAX_LAYERS, .problem = {2, 2}}}};
    int hidden = 0;
    for (int i = 0; i < 300; i++) {
        struct step s = {.layers = 1 + i % 3};
        const double factor = 1 + draw(9);
        struct ghp_timing slow;
        int compute = 0, alone;
        for (int l = 0; l < s.layers; l++) {
            s.update[l] = draw(4);
            s.forward[l] = draw(20);
            s.weight[l] = draw(20);
            s.data[l] = s.layers > 1 ? draw(20) : 0;
            s.reduce[l] = 1 + draw(60);
            compute += s.update[l] + s.forward[l] + s.weight[l] + s.data[l];
        }
        alone = greatest_cycle(&s);
        lower_step(&s, &programs.of[0]);
        CHECK_STATUS(ghp_simulate_slowed(&programs, &profile, &factor, &slow), GHP_OK);
        for (int l = 0; l < s.layers; l++) {
            s.update[l] *= (int)factor;
            s.forward[l] *= (int)factor;
            s.weight[l] *= (int)factor;
            s.data[l] *= (int)factor;
        }
        CHECK_NEAR(slow.step_s, greatest_cycle(&s), 1e-9);
        if (s.layers == 1) CHECK_NEAR(slow.step_s, alone + (factor - 1) * compute, 1e-9);
        CHECK(slow.step_s <= alone + (factor - 1) * compute + 1e-9);
        hidden += slow.step_s < alone + (factor - 1) * compute - 0.5;
        ghp_timing_release(&slow);
    }
    CHECK(hidden > 10); /* the bound is not always the step */
    ghp_profile_release(&profile);
}

/* 2 s of computing, 1 s of a collective that leaves 3 s of the link's, 1 s, and a collective of 1 s, which waits for 2
 * where it needs the link too. */
static void test_occupied_link(void)
{
    struct ghp_profile profile;
    struct ghp_instr instrs[4];
    struct ghp_program program = {.instrs = instrs, .max_instrs = 4, .problem = {2, 2}};
    struct ghp_cost costs[4] = {{.seconds = 2},
                                {.seconds = 1, .crosses = true, .owed_s = 3},
                                {.seconds = 1},
                                {.seconds = 1, .crosses = true}};
    struct ghp_timing timing;

    unit_profile(&profile);
    put(&program, GHP_INSTR_ACCUMULATE, 0);
    put(&program, GHP_INSTR_NORM_REDUCE, 0);
    put(&program, GHP_INSTR_ACCUMULATE, 0);
    put(&program, GHP_INSTR_NORM_REDUCE, 0);
    for (int crosses = 0; crosses < 2; crosses++) {
        costs[3].crosses = crosses > 0;
        CHECK_STATUS(ghp_simulate_with_costs(&program, &profile, costs, &timing), GHP_OK);
        CHECK_NEAR(timing.step_s, crosses > 0 ? 7 : 5, 1e-12);
        ghp_timing_release(&timing);
    }
    costs[0].seconds = 0; /* the second step's first collective waits for what the first's left */
    costs[3].owed_s = 4;
    CHECK_STATUS(ghp_simulate_with_costs(&program, &profile, costs, &timing), GHP_OK);
    CHECK_NEAR(timing.step_s, 1 + 3 + 1 + 4, 1e-12);
    ghp_timing_release(&timing);
    ghp_profile_release(&profile);
}

/* One reduction of 10 s ready after 4 s of a 24 s compute stream: with slowdowns c and m the 10 s need 10 m seconds
 * during which compute advances 10 m / c: the step is 24 + 10 m (1 - 1/c). */
static void test_contention(void)
{
    struct ghp_profile profile;
    unit_profile(&profile);
    profile.overlap = (struct ghp_overlap){.compute = 1.25, .comm = 1.5, .link = 2.0};
    struct step s = {
        .layers = 2, .forward = {1, 1}, .weight = {0, 2}, .data = {0, 20}, .reduce = {0, 10}};
    struct ghp_instr instrs[5 * MAX_LAYERS];
    struct ghp_program program = {
        .instrs = instrs, .max_instrs = 5 * MAX_LAYERS, .problem = {2, 2}};
    lower_step(&s, &program);
    struct ghp_timing timing;
    CHECK_STATUS(ghp_simulate(&program, &profile, &timing), GHP_OK);
    CHECK_NEAR(timing.step_s, 24.0 + 10.0 * 1.5 * (1.0 - 1.0 / 1.25), 1e-9);
    CHECK_NEAR(timing.compute_s, 24.0, 1e-12);
    CHECK_NEAR(timing.comm_s, 10.0, 1e-12);
    CHECK_NEAR(timing.serial_s, 34.0, 1e-12);
    ghp_timing_release(&timing);
    ghp_profile_release(&profile);
}

/* The same with bytes in units of 2 MiB: the reduction has 20 MiB, and the slowdown of long ones. */
static void test_long_reduction(void)
{
    enum { UNIT_BYTES = 2 << 20 };
    struct ghp_profile profile;
    unit_profile(&profile);
    profile.overlap =
        (struct ghp_overlap){.compute = 1.25, .comm = 1.5, .link = 2.0, .comm_long = 1.2};
    profile.accumulate.bandwidth_Bps = profile.update[0].bandwidth_Bps = UNIT_BYTES;
    profile.machine.intra.bandwidth_Bps = profile.machine.inter.bandwidth_Bps = UNIT_BYTES;
    struct step s = {
        .layers = 2, .forward = {1, 1}, .weight = {0, 2}, .data = {0, 20}, .reduce = {0, 10}};
    struct ghp_instr instrs[5 * MAX_LAYERS];
    struct ghp_program program = {
        .instrs = instrs, .max_instrs = 5 * MAX_LAYERS, .problem = {2, 2}};
    lower_step(&s, &program);
    for (int i = 0; i < program.n_instrs; i++)
        program.instrs[i].bytes *= UNIT_BYTES;
    struct ghp_timing timing;
    CHECK_STATUS(ghp_simulate(&program, &profile, &timing), GHP_OK);
    CHECK_NEAR(timing.step_s, 24.0 + 10.0 * 1.2 * (1.0 - 1.0 / 1.25), 1e-9);
    ghp_timing_release(&timing);
    CHECK_NEAR(ghp_overlap_comm(&profile.overlap, GHP_OVERLAP_BYTES / 2), 1.5, 0);
    CHECK_NEAR(ghp_overlap_comm(&profile.overlap, 2 * GHP_OVERLAP_LONG_BYTES), 1.2, 0);
    CHECK_NEAR(ghp_overlap_comm(&profile.overlap, 8 << 20), (1.5 + 1.2) / 2, 1e-12);
    CHECK_NEAR(ghp_overlap_least_comm(&profile.overlap), 1.2, 0);
    profile.overlap.comm_long = 0;
    CHECK_NEAR(ghp_overlap_comm(&profile.overlap, 8 << 20), 1.5, 0);
    CHECK_NEAR(ghp_overlap_least_comm(&profile.overlap), 1.5, 0);
    ghp_profile_release(&profile);
}

/* As test_contention, with an exchange of 20 s in place of computing. With a queue of q it is slowed by f = link + q
 * / 20, the reduction by what it carries: its 10 s last w = 10 f / (f - link + 1), and meanwhile the exchange does w
 * / f of its 20. */
static void test_queue(void)
{
    static const double link = 1.5, queues[] = {0, 10, 40};
    struct ghp_profile profile;
    struct step s = {
        .layers = 2, .forward = {1, 1}, .weight = {0, 2}, .data = {0, 20}, .reduce = {0, 10}};
    struct ghp_instr instrs[5 * MAX_LAYERS];
    struct ghp_program program = {
        .instrs = instrs, .max_instrs = 5 * MAX_LAYERS, .problem = {2, 2}};

    unit_profile(&profile);
    lower_step(&s, &program);
    for (int i = 0; i < program.n_instrs; i++)
        if (program.instrs[i].kind == GHP_INSTR_ACCUMULATE && program.instrs[i].bytes == 20) {
            program.instrs[i].kind = GHP_INSTR_RESHARD;
            program.instrs[i].comm = GHP_COMM_ALL_REDUCE;
            program.instrs[i].ranks.count = 2;
        }
    for (int q = 0; q < 3; q++) {
        struct ghp_timing timing;
        double slow = link + queues[q] / 20, concurrent = 10 * slow / (slow - link + 1);
        profile.overlap = (struct ghp_overlap){
            .compute = 1.25, .comm = 1.5, .link = link, .queueing_delay_s = queues[q]};
        CHECK_STATUS(ghp_simulate(&program, &profile, &timing), GHP_OK);
        CHECK_NEAR(timing.step_s, 4 + concurrent + (20 - concurrent / slow), 1e-9);
        ghp_timing_release(&timing);
    }
    ghp_profile_release(&profile);
}

/* Delays where the streams meet: a blocking exchange has its own for each, and a reduction takes one from what is
 * computed when it begins, unless it follows another at once. The first reduction begins during data 5, which lasts 8;
 * the second comes after the first. */
static void test_delays(void)
{
    struct ghp_profile profile;
    struct step s = {
        .layers = 2, .forward = {1, 1}, .weight = {0, 2}, .data = {30, 5}, .reduce = {4, 10}};
    struct ghp_instr instrs[5 * MAX_LAYERS];
    struct ghp_program program = {
        .instrs = instrs, .max_instrs = 5 * MAX_LAYERS, .problem = {2, 2}};
    struct ghp_timing timing;

    unit_profile(&profile);
    profile.overlap.launch_delay_s = 3;
    lower_step(&s, &program);
    CHECK_STATUS(ghp_simulate(&program, &profile, &timing), GHP_OK);
    CHECK_NEAR(timing.step_s, 1 + 1 + 2 + 5 + 30 + 3, 1e-9);
    ghp_timing_release(&timing);
    for (int i = 0; i < program.n_instrs; i++)
        if (program.instrs[i].kind == GHP_INSTR_ACCUMULATE && program.instrs[i].bytes == 30) {
            program.instrs[i].kind = GHP_INSTR_STAT_REDUCE;
            program.instrs[i].comm = GHP_COMM_ALL_REDUCE;
            program.instrs[i].ranks.count = 2;
        }
    profile.overlap.arrival_delay_s = 7;
    CHECK_STATUS(ghp_simulate(&program, &profile, &timing), GHP_OK);
    CHECK_NEAR(timing.step_s, 1 + 1 + 2 + 5 + 30 + 3 + 7, 1e-9);
    ghp_timing_release(&timing);
    ghp_profile_release(&profile);
}

/* A sharded update of two layers, seconds in brackets: updates [1, 1], gathers [5, 6] at the same time, forward [4, 4],
 * and backward [3, 3] with reduce-scatters [4, 7] after it. From the first update: its gather 1-6, forward 6-10, the
 * other gather 6-12, forward 12-16, backward 16-19 and 19-22, reduce-scatters 19-23 and 23-30, then the next update. */
static void test_sharded_update(void)
{
    enum { U1, A1, U2, A2, W1, F1, W2, F2, B2, R2, B1, R1, N };
    static const int seconds[N] = {1, 5, 1, 6, 0, 4, 0, 4, 3, 4, 3, 7};
    static const enum ghp_instr_kind kinds[N] = {
        GHP_INSTR_UPDATE,         GHP_INSTR_ALL_GATHER, GHP_INSTR_UPDATE,
        GHP_INSTR_ALL_GATHER,     GHP_INSTR_WAIT,       GHP_INSTR_ACCUMULATE,
        GHP_INSTR_WAIT,           GHP_INSTR_ACCUMULATE, GHP_INSTR_ACCUMULATE,
        GHP_INSTR_REDUCE_SCATTER, GHP_INSTR_ACCUMULATE, GHP_INSTR_REDUCE_SCATTER};
    struct ghp_instr instrs[N];
    struct ghp_program program = {.instrs = instrs, .max_instrs = N, .problem = {2, 2}};
    struct ghp_profile profile;
    struct ghp_timing timing;

    unit_profile(&profile);
    for (int i = 0; i < N; i++) {
        struct ghp_instr *instr = put(&program, kinds[i], seconds[i]);
        bool gathers = kinds[i] == GHP_INSTR_ALL_GATHER;

        if (!gathers && kinds[i] != GHP_INSTR_REDUCE_SCATTER) continue;
        instr->stream = GHP_STREAM_COMM;
        instr->comm = gathers ? GHP_COMM_ALL_GATHER : GHP_COMM_REDUCE_SCATTER;
        instr->ranks.count = 2;
        instr->bytes *= 2; /* of which one half is sent */
    }
    instrs[U1].wait = R1;
    instrs[U2].wait = R2;
    instrs[W1].after = A1;
    instrs[W2].after = A2;
    CHECK_STATUS(ghp_simulate(&program, &profile, &timing), GHP_OK);
    CHECK_NEAR(timing.step_s, 30, 1e-9);
    CHECK_NEAR(timing.comm_s, 22, 1e-9);
    CHECK_NEAR(timing.phase_s[GHP_PHASE_EXPOSED], 14, 1e-9);
    CHECK_NEAR(timing.instrs[F2].start_s - timing.instrs[U1].start_s, 12, 1e-9);
    ghp_timing_release(&timing);
    ghp_profile_release(&profile);
}

/* An average of 10 s in every fourth step, after an update [1] and during a forward pass [2]; the layer that waits for
 * it [3]. Steps of 14 s and of 6 s: 8 s in the mean, of which it shows 8 s in every fourth. */
static void test_average(void)
{
    enum { U, A, F0, W, F, N };
    static const int seconds[N] = {1, 10, 2, 0, 3};
    static const enum ghp_instr_kind kinds[N] = {GHP_INSTR_UPDATE, GHP_INSTR_AVERAGE,
                                                 GHP_INSTR_ACCUMULATE, GHP_INSTR_WAIT,
                                                 GHP_INSTR_ACCUMULATE};
    struct ghp_instr instrs[N];
    struct ghp_program program = {.instrs = instrs, .max_instrs = N, .problem = {2, 2}};
    struct ghp_profile profile;
    struct ghp_timing timing;

    unit_profile(&profile);
    for (int i = 0; i < N; i++)
        put(&program, kinds[i], seconds[i]);
    instrs[A].stream = GHP_STREAM_COMM;
    instrs[A].comm = GHP_COMM_ALL_REDUCE;
    instrs[A].ranks.count = 2;
    instrs[A].period = 4;
    instrs[W].after = A;
    CHECK_STATUS(ghp_simulate(&program, &profile, &timing), GHP_OK);
    CHECK_NEAR(timing.step_s, 8, 1e-9);
    CHECK_NEAR(timing.comm_s, 2.5, 1e-9);
    CHECK_NEAR(timing.phase_s[GHP_PHASE_EXPOSED], 2, 1e-9);
    CHECK_NEAR(timing.instrs[F].start_s - timing.instrs[U].start_s, 5, 1e-9);
    ghp_timing_release(&timing);
    ghp_profile_release(&profile);
}

/* Nothing hides a reduction where updates wait for the norm of all gradients; and workers take it together. */
static void test_norm(void)
{
    struct ghp_profile profile;
    struct ghp_instr instrs[2][8];
    struct ghp_programs programs = {.n = 2};
    struct ghp_timing timings[GHP_MAX_STAGES];
    unit_profile(&profile);
    for (int k = 0; k < 2; k++) {
        struct ghp_program *program = &programs.of[k];
        *program = (struct ghp_program){
            .instrs = instrs[k], .max_instrs = 8, .problem = {2, 2}, .placement.problem = {1, 2}};
        put(program, GHP_INSTR_UPDATE, 1);
        put(program, GHP_INSTR_ACCUMULATE, k == 0 ? 5 : 2);
        put(program, GHP_INSTR_ALL_REDUCE, 10);
        put(program, GHP_INSTR_ACCUMULATE, 4);
        put(program, GHP_INSTR_WAIT, 0)->after = 2;
        put(program, GHP_INSTR_NORM, 3);
        put(program, GHP_INSTR_NORM_REDUCE, 6);
    }
    CHECK_STATUS(ghp_simulate(&programs.of[0], &profile, &timings[0]), GHP_OK);
    CHECK_NEAR(timings[0].step_s, 1 + 5 + 10 + 3 + 6, 0);
    ghp_timing_release(&timings[0]);
    CHECK_STATUS(ghp_simulate_all(&programs, &profile, timings), GHP_OK);
    CHECK_NEAR(timings[0].step_s, 25, 0);
    for (int k = 0; k < 2; k++) /* the second comes 3 s before, and waits */
        CHECK_NEAR(timings[k].origin_s + timings[k].instrs[6].start_s, 19, 0);
    CHECK_NEAR(timings[1].origin_s + timings[1].instrs[5].finish_s, 16, 0);
    ghp_timing_release(&timings[0]);
    ghp_timing_release(&timings[1]);
    ghp_profile_release(&profile);
}

static struct ghp_instr *put_exchange(struct ghp_program *program, enum ghp_instr_kind kind,
                                      int bytes, struct ghp_ranks ranks, int servers)
{
    struct ghp_instr *exchange = put(program, kind, bytes);

    exchange->stream = GHP_STREAM_COMM;
    exchange->ranks = ranks;
    exchange->servers = servers;
    return exchange;
}

/* N workers that compute for 7 s, then push 12 bytes to S servers, wait for their update of 12 / S bytes (one a second)
 * and pull. By hand: 7 + 2 (max(1, N / S) 12 + latency) + 12 / S. */
static void test_servers(void)
{
    enum { BYTES = 12, COMPUTING = 7, LATENCY = 3 };
    static const int of[][2] = {{1, 1}, {4, 1}, {4, 2}, {2, 4}, {6, 3}};
    struct ghp_profile profile;

    unit_profile(&profile);
    profile.machine.intra.latency_s = profile.machine.inter.latency_s = LATENCY;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        int workers = of[i][0], servers = of[i][1], shard = BYTES / servers;
        struct ghp_ranks ranks = {.count = workers, .stride = 1};
        struct ghp_instr instrs[2][4];
        struct ghp_programs programs = {.n = 1};
        struct ghp_timing timing;

        for (int k = 0; k < 2; k++)
            *(k == 0 ? &programs.of[0] : &programs.server) = (struct ghp_program){
                .instrs = instrs[k], .max_instrs = 4, .problem = {workers, workers}};
        put_exchange(&programs.of[0], GHP_INSTR_PULL, BYTES, ranks, servers);
        put(&programs.of[0], GHP_INSTR_WAIT, 0)->after = 0;
        put(&programs.of[0], GHP_INSTR_ACCUMULATE, COMPUTING);
        put_exchange(&programs.of[0], GHP_INSTR_PUSH, BYTES, ranks, servers);
        put(&programs.server, GHP_INSTR_UPDATE, shard)->wait = 2;
        put_exchange(&programs.server, GHP_INSTR_PULL, shard, ranks, servers)->serves = true;
        put_exchange(&programs.server, GHP_INSTR_PUSH, shard, ranks, servers)->serves = true;
        CHECK_STATUS(ghp_simulate_all(&programs, &profile, &timing), GHP_OK);
        CHECK_NEAR(timing.step_s,
                   COMPUTING + 2 * (fmax(1, (double)workers / servers) * BYTES + LATENCY) + shard,
                   1e-9);
        CHECK_NEAR(timing.phase_s[GHP_PHASE_EXPOSED], timing.step_s - COMPUTING, 1e-9);
        ghp_timing_release(&timing);
    }
    ghp_profile_release(&profile);
}

CHECK_TEST(simulate)
{
    test_period();
    test_slow_worker();
    test_sharded_update();
    test_average();
    test_servers();
    test_norm();
    test_queue();
    test_occupied_link();
    test_delays();
    test_contention();
    test_long_reduction();
    return check_end();
}
