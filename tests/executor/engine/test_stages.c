/* ghp-test: np=2 np_full=1,4 timeout=600
 *
 * Every allocation of workers trains like one worker: several stages with equal and unequal worker counts,
 * micro-batches by both schedules, samples that do not divide, one and two groups, splits drawn by chance inside each
 * stage; in double on the reference backend, on a plain network, one with shortcuts, dropout and batch norm, and that
 * one with ghost batches; some in float on oneDNN. Interleaved stages do so, too. The other schedules give the same
 * bits, and so do transports that are
 * late by chance and layers recomputed going backward; memory is the program's. Shares by hand, too, train like one
 * worker, and so do layers of different stages that share parameters. */
#include "executor/state/parameters.h"
#include "executor/train/verify/verify.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <pthread.h>
#include <time.h>

enum { BATCH = 24 };

static struct ghp_transport *transport;
static int workers;
static size_t network; /* of main's, how many are done */

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* ---- a transport that is late by chance ---- */

/* The MPI transport's, and the same with delays while is_late. */
static const struct ghp_collectives_ops *punctual;
static const struct ghp_p2p_ops *punctual_p2p;
static struct ghp_collectives_ops late;
static struct ghp_p2p_ops late_p2p;
static bool is_late;
static unsigned late_state; /* guarded by late_lock: two threads are in the transport */
static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned late_draw(unsigned n)
{
    unsigned drawn;

    pthread_mutex_lock(&late_lock);
    drawn = next_random(&late_state) % n;
    pthread_mutex_unlock(&late_lock);
    return drawn;
}

/* One call in three is late by up to 2 ms: as long as many steps' computation here. */
static void dawdle(void)
{
    struct timespec t = {.tv_nsec = 1000 * (long)late_draw(2000)};

    if (is_late && late_draw(3) == 0) nanosleep(&t, NULL);
}

static enum ghp_status late_all_reduce(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    dawdle();
    return punctual->all_reduce(comm, sum);
}

static enum ghp_status late_all_gather(struct ghp_comm *comm, const void *mine, void *all,
                                       int64_t bytes_each)
{
    dawdle();
    return punctual->all_gather(comm, mine, all, bytes_each);
}

static enum ghp_status late_post(struct ghp_channel *channel, int slot,
                                 const struct ghp_p2p_message *message)
{
    dawdle();
    return punctual_p2p->post(channel, slot, message);
}

/* Messages that have arrived are found late, in another order than they came. */
static enum ghp_status late_poll(struct ghp_channel *channel, int slot, bool *done)
{
    *done = false;
    return is_late && late_draw(4) > 0 ? GHP_OK : punctual_p2p->poll(channel, slot, done);
}

static enum ghp_status late_group(struct ghp_collectives *host, struct ghp_ranks ranks,
                                  enum ghp_stream stream, struct ghp_comm **comm)
{
    GHP_TRY(punctual->group(host, ranks, stream, comm));
    (*comm)->ops = &late;
    return GHP_OK;
}

static enum ghp_status late_open(struct ghp_p2p *p2p, int slots, struct ghp_channel **channel)
{
    GHP_TRY(punctual_p2p->open(p2p, slots, channel));
    (*channel)->ops = &late_p2p;
    return GHP_OK;
}

static void prepare_late(void)
{
    punctual = transport->host->ops;
    punctual_p2p = transport->p2p->ops;
    late = *punctual;
    late.group = late_group;
    late.all_reduce = late_all_reduce;
    late.all_gather = late_all_gather;
    late_p2p = *punctual_p2p;
    late_p2p.open = late_open;
    late_p2p.post = late_post;
    late_p2p.poll = late_poll;
    transport->host->ops = &late;
    transport->p2p->ops = &late_p2p;
}

static void be_late(unsigned seed)
{
    late_state = 77777u * seed + (unsigned)transport->control->rank;
    is_late = true;
}

/* ---- cases ---- */

static uint64_t train(struct bench *b, const struct ghp_split *splits, const struct ghp_staging *s,
                      struct ghp_verification *v)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;
    struct ghp_worker *worker = NULL;
    struct ghp_snapshot plan = {0};
    uint64_t hashes[256], hash = 0;
    int different = 0;

    rank_plan.splits = splits;
    rank_plan.lowering.staging = s;
    if (!CHECK_STATUS(bench_open_worker(b, &rank_plan, &worker), GHP_OK)) return 0;
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &plan), GHP_OK);
    CHECK_STATUS(ghp_verify_train(worker, &b->training_config, BENCH_STEPS, &plan), GHP_OK);
    CHECK_STATUS(ghp_verify_compare(&plan, &b->alone,
                                    (struct ghp_precision){rank_plan.lowering.element_bytes, false},
                                    v),
                 GHP_OK);
    for (int t = 0; t < BENCH_STEPS; t++)
        CHECK_NEAR(plan.losses.kept[t], b->alone.losses.kept[t],
                   rank_plan.lowering.element_bytes == 8 ? 1e-12 : 1e-5);
    CHECK(plan.list.n <= 256);
    ghp_parameters_hash(worker, &plan.list, hashes);
    for (int i = 0; i < plan.list.n; i++)
        hash = hash * 31 + hashes[i];
    CHECK_STATUS(ghp_parameters_compare(worker, &plan.list, &different), GHP_OK);
    CHECK_EQ(different, -1);
    ghp_snapshot_release(&plan);
    ghp_worker_close(worker);
    return hash;
}

static void say(const struct bench *b, const struct ghp_staging *s, const struct ghp_split *splits,
                const struct ghp_verification *v)
{
    if (transport->control->rank != 0) return;
    fprintf(stderr, "%s, %d workers, %d micro-batches (%s), stages", b->model.name, workers,
            s->micro_batches, ghp_pipeline_names[s->pipeline]);
    for (int i = 0; i < s->n; i++)
        fprintf(stderr, " %d from %s%s", s->stage[i].workers,
                b->model.layers[s->stage[i].first_layer].name,
                s->stage[i].block_size > 0 ? "*" : "");
    for (int i = 0; i < ghp_staging_chunks(s) - ghp_staging_stages(s); i++)
        fprintf(stderr, ", then %s", b->model.layers[s->later_chunk[i]].name);
    fprintf(stderr, ": e_w %.3g, e_g %.3g\n", v->weight_difference, v->gradient_difference);
    for (int i = 0; i < v->n; i++)
        fprintf(stderr, "    %s %.3g %.3g\n", v->differences[i].name,
                v->differences[i].weight_difference, v->differences[i].gradient_difference);
    for (int l = 0; l < b->model.n_layers; l++)
        fprintf(stderr, "%s %s:%d, ", b->model.layers[l].name, ghp_split_kind_name(splits[l].kind),
                splits[l].tp_size);
    fprintf(stderr, "\n");
}

static uint64_t check_train(struct bench *b, const struct ghp_split *splits,
                            const struct ghp_staging *s)
{
    struct ghp_verification v = {0};
    uint64_t hash = train(b, splits, s, &v);

    if (!CHECK(v.passed)) say(b, s, splits, &v);
    ghp_verification_release(&v);
    return hash;
}

/* By all schedules, and where `delays` with other timings. Returns false if a layer can take no split. */
static bool check_case(struct bench *b, struct ghp_staging *s, unsigned seed, bool delays)
{
    struct ghp_split *splits =
        case_staged_splits(&b->model, s, b->rank_plan.lowering.problem, seed);
    uint64_t first;

    if (splits == NULL) return false;
    s->pipeline = GHP_PIPELINE_1F1B;
    first = check_train(b, splits, s);
    if (seed > 0) {
        bool recomputed[512] = {false};

        CHECK(b->model.n_layers <= 512);
        case_recomputed(&b->model, seed, recomputed);
        s->recompute = recomputed;
        s->pipeline = seed % 2 == 0 ? GHP_PIPELINE_1F1B : GHP_PIPELINE_ZB_H1;
        b->rank_plan.lowering.prefetch = true;
        if (!CHECK(check_train(b, splits, s) == first))
            fprintf(stderr, "other bits where layers are recomputed, or samples ahead\n");
        s->recompute = NULL;
        b->rank_plan.lowering.prefetch = false;
    }
    for (int pipeline = 0; pipeline < GHP_PIPELINE_INTERLEAVED; pipeline++) {
        s->pipeline = (enum ghp_pipeline)pipeline;
        if (pipeline > 0 && !CHECK(check_train(b, splits, s) == first))
            fprintf(stderr, "other bits by another schedule\n");
        if (!delays) continue;
        be_late(seed + 1);
        if (!CHECK(check_train(b, splits, s) == first)) fprintf(stderr, "other bits when late\n");
        is_late = false;
    }
    free(splits);
    return true;
}

/* Stages with several chunks each train like one worker, and to the same bits when messages are late and layers
 * recomputed.
 * Returns whether there are such stages. */
static bool check_interleaved(struct bench *b, const int *counts, int chunks, int micro_batches,
                              unsigned seed)
{
    struct ghp_problem problem = b->rank_plan.lowering.problem;
    struct ghp_staging s = case_interleaved(&b->model, counts, chunks, micro_batches, seed);
    bool recomputed[512] = {false};
    struct ghp_split *splits;
    uint64_t first;

    if (s.n == 0 || !case_staging_fits(&b->model, problem, &s)) return false;
    splits = case_staged_splits(&b->model, &s, problem, seed);
    if (splits == NULL) return false;
    first = check_train(b, splits, &s);
    case_recomputed(&b->model, seed, recomputed);
    s.recompute = recomputed;
    be_late(seed + 1);
    if (!CHECK(check_train(b, splits, &s) == first))
        fprintf(stderr, "other bits when late and with layers recomputed\n");
    is_late = false;
    free(splits);
    return true;
}

static int
    interleaved; /* cases tried, of all networks: one alone may have no place for a chunk to begin */

static void check_chunks(struct bench *b)
{
    static const int shapes[][5] = {{1, 1}, {1, 1, 1}, {2, 2}, {1, 1, 1, 1}, {1, 2}, {3, 1}};

    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        int n = 0, sum = 0;

        for (; n < 5 && shapes[k][n] > 0; n++)
            sum += shapes[k][n];
        if (workers % sum != 0) continue;
        for (int chunks = 2; chunks <= (check_full() ? 3 : 2); chunks++)
            interleaved += check_interleaved(b, shapes[k], chunks, n * (1 + chunks % 2),
                                             ((unsigned)network + (unsigned)chunks) % 2);
    }
}

/* Cases are dealt out to the networks: each has the first and a third of the others, of four workers, which share cores
 * and wait for the operating system at each message, a sixth. GHP_ALL=1 gives each network all. */
static bool is_due(size_t kind)
{
    size_t parts = workers > 3 ? 6 : 3;

    return kind == 0 || getenv("GHP_ALL") != NULL || kind % parts == network % parts;
}

/* One stage whose workers have the samples that a list says; batch norms over the global batch take one micro-batch. */
static void check_shares(struct bench *b, unsigned seed)
{
    int64_t shares[16], left;
    struct ghp_staging s = {.micro_batches = 1 + (int)seed % 2, .shares = shares};
    struct ghp_split *splits;
    unsigned state = seed * 131u + 7u;

    if (workers == 1 || !CHECK(workers <= 16)) return;
    left = b->rank_plan.lowering.problem.global_batch / s.micro_batches;
    for (int r = 0; r < workers; r++) {
        int64_t most = left - (workers - 1 - r); /* each gets one at least */

        shares[r] = r == workers - 1 ? left : 1 + next_random(&state) % most;
        left -= shares[r];
    }
    if (ghp_staging_check(&s, &b->model, b->rank_plan.lowering.problem) != GHP_OK) return;
    splits = case_staged_splits(&b->model, &s, b->rank_plan.lowering.problem, seed);
    if (splits == NULL) return;
    check_train(b, splits, &s);
    free(splits);
}

static void check_model(const char *path, int ghost_batch, struct bench_numbers numbers)
{
    static const int shapes[][4] = {{0},    {1, 1}, {2, 1}, {1, 2},    {1, 1, 1},
                                    {3, 1}, {2, 2}, {1, 3}, {2, 1, 1}, {1, 1, 2}};
    static const int micro_batches[] = {1, 2, 3, 4, 8};
    struct bench b;
    int ran = 0;

    CHECK_STATUS(bench_open_by(&b, transport, path, numbers), GHP_OK);
    for (int l = 0; l < b.model.n_layers; l++)
        if (b.model.layers[l].op == GHP_OP_BATCH_NORM)
            b.model.layers[l].norm.ghost_batch = ghost_batch;
    CHECK_STATUS(bench_train_alone(&b), GHP_OK);
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        for (size_t m = 0; m < sizeof micro_batches / sizeof micro_batches[0]; m++) {
            int counts[5] = {0}, sum = 0;

            for (int i = 0; i < 4; i++)
                sum += counts[i] = shapes[k][i];
            if (sum > 0 && workers % sum != 0) continue;
            if (!is_due(k + m)) continue;
            for (unsigned seed = 0; seed < 2; seed++) {
                if (workers > 3 && seed != (k + m) % 2) continue; /* more shapes, half of each */
                struct ghp_staging s =
                    case_staging(&b.model, counts, micro_batches[m], seed + (unsigned)k);

                if (!case_staging_fits(&b.model, b.rank_plan.lowering.problem, &s)) continue;
                ran += check_case(&b, &s, seed == 0 ? 0 : seed + (unsigned)m,
                                  seed > 0 && m % 2 == k % 2);
            }
        }
    for (unsigned seed = 0; seed < (workers > 3 || !check_full() ? 2 : 6); seed++)
        check_shares(&b, seed);
    if (ghost_batch != 1) check_chunks(&b);
    if (!CHECK(ran > 0)) fprintf(stderr, "nothing of '%s' was tried\n", path);
    bench_close(&b);
    network++;
}

/* Labels that are ignored: the mean is over all micro-batches of a step, not of each. */
static void check_ignored(struct bench_numbers numbers)
{
    static const char path[] = GHP_SOURCE_DIR "/tests/executor/tokens.json";
    struct bench b;

    CHECK_STATUS(bench_open_by(&b, transport, path, numbers), GHP_OK);
    bench_ignore(&b);
    CHECK_STATUS(bench_train_alone(&b), GHP_OK);
    for (int stages = 1; stages <= 2; stages++) {
        const int counts[3] = {stages == 1 ? workers : 1, stages == 1 ? 0 : workers - 1};
        struct ghp_staging s = case_staging(&b.model, counts, 2, 1);
        struct ghp_split *splits;

        if ((stages == 2 && workers == 1) ||
            !case_staging_fits(&b.model, b.rank_plan.lowering.problem, &s))
            continue;
        splits = case_staged_splits(&b.model, &s, b.rank_plan.lowering.problem, 0);
        check_train(&b, splits, &s);
        free(splits);
    }
    bench_close(&b);
}

/* Layers at both ends of the network share parameters: in one stage by micro-batches, and in two. */
static void check_tied(struct bench_numbers numbers)
{
    static const char path[] = GHP_SOURCE_DIR "/tests/executor/tied.json";
    struct bench b;

    CHECK_STATUS(bench_open_by(&b, transport, path, numbers), GHP_OK);
    CHECK_STATUS(bench_train_alone(&b), GHP_OK);
    for (unsigned seed = 0; seed < 2; seed++)
        for (int stages = 1; stages <= 3; stages++) {
            const int one[] = {workers, 0}, two[] = {workers / 2, workers - workers / 2, 0},
                      three[] = {1, 1, workers - 2, 0};
            struct ghp_staging s;

            if (stages > workers) continue;
            s = case_staging(&b.model, stages == 1 ? one : stages == 2 ? two : three, 2, seed);
            if (case_staging_fits(&b.model, b.rank_plan.lowering.problem, &s))
                check_case(&b, &s, seed, seed == 1);
        }
    bench_close(&b);
}

CHECK_TEST(stages)
{
    const struct bench_numbers exact = {
        .ops = &ghp_backend_reference, .element_bytes = 8, .batch = BATCH};
    const struct bench_numbers fast = {
        .ops = &ghp_backend_onednn, .element_bytes = 4, .batch = BATCH};

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 240, &transport), GHP_OK)) return 1;
    prepare_late();
    workers = transport->control->size;
    check_model(GHP_SOURCE_DIR "/models/lenet5.json", 0, exact);
    if (check_full()) {
        check_model(GHP_SOURCE_DIR "/models/small-resnet.json", 0, exact);
        check_model(GHP_SOURCE_DIR "/models/small-resnet.json", 1, exact);
        check_model(GHP_BINARY_DIR "/tests/seeds/model/drawn.json", 0, exact);
        check_model(GHP_SOURCE_DIR "/tests/executor/tied.json", 0, exact);
    }
    check_model(GHP_SOURCE_DIR "/models/small-resnet.json", 2, exact);
    if (check_full()) check_model(GHP_SOURCE_DIR "/models/lenet5.json", 0, fast);
    check_ignored(exact);
    check_tied(exact);
    CHECK(interleaved > 0 || workers == 1);
    ghp_transport_end(transport);
    return check_end();
}
