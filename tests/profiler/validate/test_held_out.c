/* tests/profiler/validate/test_held_out.c - collectives that a profile does not have: what is tried, at which price,
 * with which error. ghp-test: np=2 np_full=1,3,4 timeout=120 */
#include "profiler/validate/validation.h"
#include "tests/check.h"

#include <math.h>
#include <unistd.h>

static int rank, size;
static struct ghp_transport *transport;

/* What this cluster truly takes: the law over one link, but for one operation's table that takes `factor` times as long. */
static const struct ghp_link truth = {50e-6, 1e8};
static const double factor = 1.25;
enum { WORKERS = 4, ODD_COUNT = 2, ODD_STRIDE = 2 };

static bool is_odd(const struct ghp_agenda_comm *comm)
{
    return comm->count == ODD_COUNT && comm->stride == ODD_STRIDE;
}

static double true_s(const struct ghp_machine *machine, const struct ghp_agenda_comm *comm)
{
    struct ghp_ranks ranks = {.count = comm->count, .stride = comm->stride};
    double law_s = ghp_machine_comm_s(machine, comm->op, comm->bytes, ranks, WORKERS);

    return is_odd(comm) && comm->op == GHP_COMM_ALL_REDUCE ? factor * law_s : law_s;
}

/* Four workers on four nodes that measured two operations at powers of 4; tables (2, 1), (2, 2), (4, 1). */
static void make_profile(struct ghp_profile *profile)
{
    static const int kinds[][2] = {{2, 1}, {ODD_COUNT, ODD_STRIDE}, {4, 1}};
    static const enum ghp_comm_op ops[] = {GHP_COMM_ALL_REDUCE, GHP_COMM_ALL_GATHER};

    CHECK_STATUS(ghp_profile_init(profile, "reference", "fast", 4), GHP_OK);
    profile->workers = WORKERS;
    profile->machine.nodes = WORKERS;
    profile->machine.inter = truth;
    for (size_t k = 0; k < 6; ++k)
        for (int64_t bytes = 64; bytes <= (16 << 20); bytes *= 4) {
            struct ghp_agenda_comm comm = {.op = ops[k / 3], .count = kinds[k % 3][0],
                                           .stride = kinds[k % 3][1], .bytes = bytes};
            struct ghp_comm_entry entry = {.op = comm.op, .count = comm.count, .stride = comm.stride,
                                           .bytes = bytes, .source = GHP_SOURCE_MEASURED};

            entry.seconds = true_s(&profile->machine, &comm);
            CHECK_STATUS(ghp_profile_add_comm(profile, &entry), GHP_OK);
        }
    CHECK_STATUS(ghp_profile_seal(profile), GHP_OK);
}

/* A sample of each trial, as the truth has it. */
static void measure_truth(const struct ghp_machine *machine, struct ghp_held_out *held)
{
    for (int i = 0; i < held->n; ++i) {
        held->trials[i].comm.samples.n = 1;
        held->trials[i].comm.samples.values[0] = true_s(machine, &held->trials[i].comm);
    }
}

static bool in_profile(const struct ghp_profile *profile, const struct ghp_agenda_comm *comm)
{
    for (int i = 0; i < profile->n_comms; ++i)
        if (profile->comms[i].op == comm->op && profile->comms[i].count == comm->count &&
            profile->comms[i].stride == comm->stride && profile->comms[i].bytes == comm->bytes)
            return true;
    return false;
}

/* Each trial is new to the profile, can be carried out, and each thing is tried once. */
static void test_collect(void)
{
    struct ghp_profile profile = {0};
    struct ghp_held_out held = {0}, fewer = {0};
    int threes = 0, odd = 0, ordered = 0;

    make_profile(&profile);
    CHECK_STATUS(ghp_held_out_collect(&profile, WORKERS, &held), GHP_OK);
    for (int i = 0; i < held.n; ++i) {
        const struct ghp_agenda_comm *comm = &held.trials[i].comm;
        int64_t grain = comm->op == GHP_COMM_ALL_REDUCE ? 4 : 4 * comm->count;

        CHECK(!in_profile(&profile, comm));
        CHECK(comm->bytes >= 1024 && comm->bytes < (16 << 20));
        CHECK_EQ(comm->bytes % grain, 0);
        CHECK(comm->count * comm->stride <= WORKERS);
        CHECK_EQ(held.trials[i].priced[GHP_HELD_OUT_SIZE], comm->count != 3);
        threes += comm->count == 3;
        odd += comm->bytes / grain % 2 != 0;
        ordered += i > 0 && comm->bytes > held.trials[i - 1].comm.bytes;
        for (int j = 0; j < i; ++j)
            CHECK(comm->op != held.trials[j].comm.op || comm->count != held.trials[j].comm.count ||
                  comm->stride != held.trials[j].comm.stride || comm->bytes != held.trials[j].comm.bytes);
    }
    /* seven gaps from 1 KiB to 16 MiB with two sizes each, in six tables; 2 KiB .. 8 MiB for 3 of 4 ranks */
    CHECK_EQ(held.n, 6 * 7 * 2 + 2 * 7);
    CHECK_EQ(threes, 2 * 7);
    CHECK(odd >= 6 * 7);
    CHECK(ordered > held.n / 4 && ordered < 3 * held.n / 4); /* shuffled: neither up nor down */
    CHECK_STATUS(ghp_held_out_collect(&profile, 2, &fewer), GHP_OK);
    CHECK_EQ(fewer.n, 2 * 7 * 2); /* two ranks: the tables (2, 1) alone */
    ghp_held_out_release(&fewer);
    ghp_held_out_release(&held);
    ghp_profile_release(&profile);
}

/* What a trial's error is without its table.  Those of two ranks are priced by each other, so what is odd about one of the
 * all-reduces shows in both; those of four by the other operation over the same groups. */
static double error_of(const struct ghp_agenda_comm *comm)
{
    if (comm->op != GHP_COMM_ALL_REDUCE || comm->count != ODD_COUNT) return 0;
    return is_odd(comm) ? 1 / factor - 1 : factor - 1;
}

/* Between sizes the line over the bytes is the truth; groups are off as error_of says, three ranks are priced by four. */
static void test_errors(void)
{
    struct ghp_profile profile = {0};
    struct ghp_held_out held = {0};
    struct ghp_held_out_sum sum;

    make_profile(&profile);
    CHECK_STATUS(ghp_held_out_collect(&profile, WORKERS, &held), GHP_OK);
    CHECK_STATUS(ghp_held_out_predict(&profile, &held), GHP_OK);
    sum = ghp_held_out_sum(&held, GHP_HELD_OUT_SIZE, 0, INT64_MAX);
    CHECK_EQ(sum.n, 0); /* nothing measured yet */
    CHECK_EQ(sum.worst_trial, -1);
    measure_truth(&profile.machine, &held);
    sum = ghp_held_out_sum(&held, GHP_HELD_OUT_SIZE, 0, INT64_MAX);
    CHECK_EQ(sum.n, 6 * 7 * 2);
    CHECK(sum.worst < 1e-9);
    sum = ghp_held_out_sum(&held, GHP_HELD_OUT_GROUP, 1 << 20, INT64_MAX);
    CHECK(sum.mean > 0 && sum.mean <= sum.worst);
    for (int i = 0; i < held.n; ++i) {
        const struct ghp_held_out_trial *trial = &held.trials[i];
        double error = ghp_held_out_error(trial, GHP_HELD_OUT_GROUP);

        CHECK(trial->predicted_s[GHP_HELD_OUT_GROUP] > 0);
        if (trial->comm.count == 3) /* 100 us or less beside 10 ms and more */
            CHECK(trial->comm.bytes < 1 << 20 || fabs(error) < 0.01);
        else
            CHECK_NEAR(error, error_of(&trial->comm), 1e-9);
    }
    ghp_held_out_release(&held);
    ghp_profile_release(&profile);
}

/* A table of one size is tried at that size, without itself. */
static void test_single(void)
{
    struct ghp_profile profile = {0};
    struct ghp_held_out held = {0};
    struct ghp_comm_entry entry = {.op = GHP_COMM_ALL_TO_ALL, .count = 2, .stride = 1,
                                   .bytes = 4096, .seconds = 1e-3};

    CHECK_STATUS(ghp_profile_init(&profile, "reference", "fast", 4), GHP_OK);
    profile.workers = 2;
    profile.machine.intra = truth;
    CHECK_STATUS(ghp_profile_add_comm(&profile, &entry), GHP_OK);
    CHECK_STATUS(ghp_profile_seal(&profile), GHP_OK);
    CHECK_STATUS(ghp_held_out_collect(&profile, 2, &held), GHP_OK);
    CHECK_EQ(held.n, 1);
    CHECK_EQ(held.trials[0].comm.bytes, 4096);
    CHECK(!held.trials[0].priced[GHP_HELD_OUT_SIZE]);
    CHECK_STATUS(ghp_held_out_predict(&profile, &held), GHP_OK);
    /* nothing is left to fit to: the machine's own link */
    CHECK_NEAR(held.trials[0].predicted_s[GHP_HELD_OUT_GROUP], 2048 / 1e8 + 50e-6, 1e-12);
    ghp_held_out_release(&held);
    profile.machine.intra.bandwidth_Bps = 0;
    CHECK_STATUS(ghp_held_out_collect(&profile, 2, &held), GHP_OK);
    CHECK_STATUS(ghp_held_out_predict(&profile, &held), GHP_ERR_MISSING);
    ghp_held_out_release(&held);
    ghp_profile_release(&profile);
}

/* A profile file of this run's ranks on one node. */
static void write_profile(const char *path, int workers)
{
    struct ghp_profile profile = {0};

    if (rank != 0) return;
    CHECK_STATUS(ghp_profile_init(&profile, "reference", "fast", 4), GHP_OK);
    profile.workers = workers;
    profile.machine.intra = truth;
    for (int64_t bytes = 1024; bytes <= 16384 && workers > 1; bytes *= 4) {
        struct ghp_comm_entry entry = {.op = GHP_COMM_ALL_REDUCE, .count = workers, .stride = 1,
                                       .bytes = bytes, .seconds = 1e-3};

        CHECK_STATUS(ghp_profile_add_comm(&profile, &entry), GHP_OK);
    }
    CHECK_STATUS(ghp_profile_seal(&profile), GHP_OK);
    CHECK_STATUS(ghp_profile_save(path, &profile), GHP_OK);
    ghp_profile_release(&profile);
}

/* Really measured: every trial has three rounds of two samples; wrong profiles are refused on all ranks. */
static void test_run(void)
{
    char path[64];
    struct ghp_held_out_request request = {.profile_path = path, .bind = GHP_BIND_NONE,
                                           .sample_s = 1e-3, .budget_s = 60};
    struct ghp_held_out_result result = {0};

    snprintf(path, sizeof path, "/tmp/ghp-held-out-%d.json", size);
    write_profile(path, size);
    if (size == 1) {
        CHECK_STATUS(ghp_held_out_run(&request, &ghp_transport_mpi, transport, &result), GHP_ERR_INPUT);
        CHECK_MESSAGE("it has no measured collectives");
    } else {
        CHECK_STATUS(ghp_held_out_run(&request, &ghp_transport_mpi, transport, &result), GHP_OK);
        CHECK_EQ(result.nodes, 1);
        CHECK(result.held.n >= 4); /* two gaps */
        for (int i = 0; i < result.held.n; ++i) CHECK_EQ(result.held.trials[i].comm.samples.n, 6);
        ghp_held_out_release(&result.held);
        request.budget_s = 1e-9; /* no time: nothing measured, no failure */
        CHECK_STATUS(ghp_held_out_run(&request, &ghp_transport_mpi, transport, &result), GHP_OK);
        for (int i = 0; i < result.held.n; ++i) CHECK_EQ(result.held.trials[i].comm.samples.n, 0);
        ghp_held_out_release(&result.held);
        write_profile(path, size + 1);
        CHECK(ghp_held_out_run(&request, &ghp_transport_mpi, transport, &result) != GHP_OK);
        if (rank == 0) CHECK_MESSAGE("use mpirun -n");
        CHECK(result.held.trials == NULL);
    }
    if (rank == 0) unlink(path);
}

CHECK_TEST(held_out)
{
    if (!CHECK_STATUS(ghp_transport_mpi.open(&argc, &argv, 30, &transport), GHP_OK)) return check_end();
    rank = ghp_transport_mpi.rank(transport);
    size = ghp_transport_mpi.size(transport);
    test_collect();
    test_errors();
    test_single();
    test_run();
    ghp_transport_mpi.close(transport);
    return check_end();
}
