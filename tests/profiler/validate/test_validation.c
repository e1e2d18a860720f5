/* tests/profiler/validate/test_validation.c - collectives that a profile does not have: what is tried, at which
 * price, with which error. ghp-test: np=2 np_full=1,3 timeout=120 */
#include "profiler/validate/validation.h"
#include "tests/check.h"

#include <math.h>
#include <unistd.h>

static int rank, size;
static struct ghp_transport *transport;

/* What this cluster truly takes: the analytic model over one link, but for one operation's table that takes `factor`
 * times as long. */
static const struct ghp_link truth = {50e-6, 1e8, 0};
static const double factor = 1.25;
enum { WORKERS = 4, ODD_COUNT = 2, ODD_STRIDE = 2 };

static bool is_odd(const struct ghp_worklist_comm *comm)
{
    return comm->count == ODD_COUNT && comm->stride == ODD_STRIDE;
}

static double true_s(const struct ghp_machine *machine, const struct ghp_worklist_comm *comm)
{
    struct ghp_ranks ranks = {.count = comm->count, .stride = comm->stride};
    double analytic_s = ghp_machine_comm_s(machine, comm->op, comm->bytes, ranks, WORKERS);

    return is_odd(comm) && comm->op == GHP_COMM_ALL_REDUCE ? factor * analytic_s : analytic_s;
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
    for (size_t k = 0; k < 6; k++)
        for (int64_t bytes = 64; bytes <= (16 << 20); bytes *= 4) {
            struct ghp_worklist_comm comm = {.op = ops[k / 3],
                                             .count = kinds[k % 3][0],
                                             .stride = kinds[k % 3][1],
                                             .bytes = bytes};
            struct ghp_comm_entry entry = {.op = comm.op,
                                           .count = comm.count,
                                           .stride = comm.stride,
                                           .bytes = bytes,
                                           .source = GHP_SOURCE_MEASURED};

            entry.seconds = true_s(&profile->machine, &comm);
            CHECK_STATUS(ghp_profile_add_comm(profile, &entry), GHP_OK);
        }
    CHECK_STATUS(ghp_profile_finalize(profile), GHP_OK);
}

/* A sample of each trial, as the truth has it. */
static void measure_truth(const struct ghp_machine *machine, struct ghp_validation *validation)
{
    for (int i = 0; i < validation->n; i++) {
        validation->trials[i].comm.samples.n = 1;
        validation->trials[i].comm.samples.values[0] = true_s(machine, &validation->trials[i].comm);
    }
}

static bool in_profile(const struct ghp_profile *profile, const struct ghp_worklist_comm *comm)
{
    for (int i = 0; i < profile->n_comms; i++)
        if (profile->comms[i].op == comm->op && profile->comms[i].count == comm->count &&
            profile->comms[i].stride == comm->stride && profile->comms[i].bytes == comm->bytes)
            return true;
    return false;
}

/* Each trial is new to the profile, can be carried out, and each thing is tried once. */
static void test_collect(void)
{
    struct ghp_profile profile = {0};
    struct ghp_validation validation = {0}, fewer = {0};
    int threes = 0, odd = 0, ordered = 0;

    make_profile(&profile);
    CHECK_STATUS(ghp_validation_collect(&profile, WORKERS, &validation), GHP_OK);
    for (int i = 0; i < validation.n; i++) {
        const struct ghp_worklist_comm *comm = &validation.trials[i].comm;
        int64_t unit = comm->op == GHP_COMM_ALL_REDUCE ? 4 : 4 * comm->count;

        CHECK(!in_profile(&profile, comm));
        CHECK(comm->bytes >= 1024 && comm->bytes < (16 << 20));
        CHECK_EQ(comm->bytes % unit, 0);
        CHECK(comm->count * comm->stride <= WORKERS);
        CHECK_EQ(validation.trials[i].costed[GHP_VALIDATION_SIZE], comm->count != 3);
        threes += comm->count == 3;
        odd += comm->bytes / unit % 2 != 0;
        ordered += i > 0 && comm->bytes > validation.trials[i - 1].comm.bytes;
        for (int j = 0; j < i; j++)
            CHECK(comm->op != validation.trials[j].comm.op ||
                  comm->count != validation.trials[j].comm.count ||
                  comm->stride != validation.trials[j].comm.stride ||
                  comm->bytes != validation.trials[j].comm.bytes);
    }
    /* seven gaps from 1 KiB to 16 MiB with two sizes each, in six tables; 2 KiB .. 8 MiB for 3 of 4 ranks */
    CHECK_EQ(validation.n, 6 * 7 * 2 + 2 * 7);
    CHECK_EQ(threes, 2 * 7);
    CHECK(odd >= 6 * 7);
    CHECK(ordered > validation.n / 4 &&
          ordered < 3 * validation.n / 4); /* shuffled: neither up nor down */
    CHECK_STATUS(ghp_validation_collect(&profile, 2, &fewer), GHP_OK);
    CHECK_EQ(fewer.n, 2 * 7 * 2); /* two ranks: the tables (2, 1) alone */
    ghp_validation_release(&fewer);
    ghp_validation_release(&validation);
    ghp_profile_release(&profile);
}

/* What a trial's error is without its table. Those of two ranks are priced by each other, so what is odd about one
 * of the all-reduces shows in both; those of four by the other operation over the same groups. */
static double error_of(const struct ghp_worklist_comm *comm)
{
    if (comm->op != GHP_COMM_ALL_REDUCE || comm->count != ODD_COUNT) return 0;
    return is_odd(comm) ? 1 / factor - 1 : factor - 1;
}

/* Between sizes the line over the bytes is the truth; groups are off as error_of says, three ranks are priced by
 * four. */
static void test_errors(void)
{
    struct ghp_profile profile = {0};
    struct ghp_validation validation = {0};
    struct ghp_validation_sum sum;

    make_profile(&profile);
    CHECK_STATUS(ghp_validation_collect(&profile, WORKERS, &validation), GHP_OK);
    CHECK_STATUS(ghp_validation_predict(&profile, &validation), GHP_OK);
    sum = ghp_validation_sum_of(&validation, GHP_VALIDATION_SIZE, 0, INT64_MAX);
    CHECK_EQ(sum.n, 0); /* nothing measured yet */
    CHECK_EQ(sum.worst_trial, -1);
    measure_truth(&profile.machine, &validation);
    sum = ghp_validation_sum_of(&validation, GHP_VALIDATION_SIZE, 0, INT64_MAX);
    CHECK_EQ(sum.n, 6 * 7 * 2);
    CHECK(sum.worst < 1e-9);
    sum = ghp_validation_sum_of(&validation, GHP_VALIDATION_GROUP, 1 << 20, INT64_MAX);
    CHECK(sum.mean > 0 && sum.mean <= sum.worst);
    for (int i = 0; i < validation.n; i++) {
        const struct ghp_validation_trial *trial = &validation.trials[i];
        double error = ghp_validation_error(trial, GHP_VALIDATION_GROUP);

        CHECK(trial->predicted_s[GHP_VALIDATION_GROUP] > 0);
        if (trial->comm.count == 3) /* 100 us or less, compared with 10 ms and more */
            CHECK(trial->comm.bytes < 1 << 20 || fabs(error) < 0.01);
        else
            CHECK_NEAR(error, error_of(&trial->comm), 1e-9);
    }
    ghp_validation_release(&validation);
    ghp_profile_release(&profile);
}

/* A table of one size is tried at that size, without itself. */
static void test_single(void)
{
    struct ghp_profile profile = {0};
    struct ghp_validation validation = {0};
    struct ghp_comm_entry entry = {
        .op = GHP_COMM_ALL_TO_ALL, .count = 2, .stride = 1, .bytes = 4096, .seconds = 1e-3};

    CHECK_STATUS(ghp_profile_init(&profile, "reference", "fast", 4), GHP_OK);
    profile.workers = 2;
    profile.machine.intra = truth;
    CHECK_STATUS(ghp_profile_add_comm(&profile, &entry), GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_STATUS(ghp_validation_collect(&profile, 2, &validation), GHP_OK);
    CHECK_EQ(validation.n, 1);
    CHECK_EQ(validation.trials[0].comm.bytes, 4096);
    CHECK(!validation.trials[0].costed[GHP_VALIDATION_SIZE]);
    CHECK_STATUS(ghp_validation_predict(&profile, &validation), GHP_OK);
    /* nothing is left to fit to: the machine's own link */
    CHECK_NEAR(validation.trials[0].predicted_s[GHP_VALIDATION_GROUP], 2048 / 1e8 + 50e-6, 1e-12);
    ghp_validation_release(&validation);
    profile.machine.intra.bandwidth_Bps = 0;
    CHECK_STATUS(ghp_validation_collect(&profile, 2, &validation), GHP_OK);
    CHECK_STATUS(ghp_validation_predict(&profile, &validation), GHP_ERR_MISSING);
    ghp_validation_release(&validation);
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
        struct ghp_comm_entry entry = {.op = GHP_COMM_ALL_REDUCE,
                                       .count = workers,
                                       .stride = 1,
                                       .bytes = bytes,
                                       .seconds = 1e-3};

        CHECK_STATUS(ghp_profile_add_comm(&profile, &entry), GHP_OK);
    }
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_STATUS(ghp_profile_save(path, &profile), GHP_OK);
    ghp_profile_release(&profile);
}

/* Really measured: every trial has three rounds of two samples; wrong profiles are refused on all ranks. */
static void test_run(void)
{
    char path[64];
    struct ghp_validation_request request = {
        .profile_path = path, .bind = GHP_BIND_NONE, .sample_s = 1e-3, .budget_s = 60};
    struct ghp_validation_result result = {0};
    int measured = 0;

    snprintf(path, sizeof path, "/tmp/ghp-held-out-%d.json", size);
    write_profile(path, size);
    if (size == 1) {
        CHECK_STATUS(ghp_validation_run(&request, transport, &result), GHP_ERR_INPUT);
        CHECK_MESSAGE("it has no measured collectives");
    } else {
        CHECK_STATUS(ghp_validation_run(&request, transport, &result), GHP_OK);
        CHECK_EQ(result.nodes, 1);
        CHECK(result.validation.n >= 4); /* two gaps */
        for (int i = 0; i < result.validation.n; i++)
            CHECK_EQ(result.validation.trials[i].comm.samples.n, 6);
        ghp_validation_release(&result.validation);
        request.budget_s = 1e-9; /* no time: one collective is measured once, no failure */
        CHECK_STATUS(ghp_validation_run(&request, transport, &result), GHP_OK);
        for (int i = 0; i < result.validation.n; i++) {
            if (result.validation.trials[i].comm.samples.n == 0) continue;
            CHECK_EQ(result.validation.trials[i].comm.samples.n, 2);
            measured++;
        }
        CHECK_EQ(measured, 1);
        ghp_validation_release(&result.validation);
        write_profile(path, size + 1);
        CHECK(ghp_validation_run(&request, transport, &result) != GHP_OK);
        if (rank == 0) CHECK_MESSAGE("use mpirun -n");
        CHECK(result.validation.trials == NULL);
    }
    if (rank == 0) unlink(path);
}

CHECK_TEST(validation)
{
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 30, &transport), GHP_OK))
        return check_end();
    rank = transport->control->rank;
    size = transport->control->size;
    test_collect();
    test_errors();
    test_single();
    test_run();
    ghp_transport_end(transport);
    return check_end();
}
