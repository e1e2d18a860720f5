/* tests/core/cost/test_machine.c - the machine file, placement of workers, and the analytic model of collectives over
 * its links. */
#include "core/cost/machine.h"
#include "core/cost/profile.h"
#include "tests/check.h"

#include <unistd.h>

static const char *const text =
    "{\"format\": \"ghp.machine/2\", \"name\": \"two sockets\", \"nodes\": 4, \"packages\": 2, "
    "\"cores\": 4,\n"
    "\"threads\": 8, \"pu_indices\": [0, 2, 4, 6], \"memory_bytes\": 25769803776,\n"
    "\"intra\": {\"latency_s\": 1e-6, \"bandwidth_Bps\": 1e10},\n"
    "\"inter\": {\"latency_s\": 2e-5, \"bandwidth_Bps\": 1.25e9}}";

static struct ghp_machine machine_of(const char *json)
{
    struct ghp_machine machine = {0};
    struct ghp_json doc;
    struct ghp_node root;

    if (!CHECK_STATUS(ghp_json_parse(json, "m.json", "ghp.machine/2", &doc), GHP_OK))
        return machine;
    root = ghp_json_root(&doc);
    CHECK_STATUS(ghp_machine_read(&root, &machine), GHP_OK);
    ghp_json_release(&doc);
    return machine;
}

static void refuse(const char *json, const char *message)
{
    struct ghp_machine machine;
    struct ghp_json doc;
    struct ghp_node root;

    if (!CHECK_STATUS(ghp_json_parse(json, "m.json", NULL, &doc), GHP_OK)) return;
    root = ghp_json_root(&doc);
    CHECK(ghp_machine_read(&root, &machine) != GHP_OK);
    CHECK_MESSAGE(message);
    CHECK(machine.name == NULL);
    ghp_json_release(&doc);
}

static void test_file(void)
{
    struct ghp_machine machine = machine_of(text), again;
    char path[] = "/tmp/ghp-machine-XXXXXX";
    int fd = mkstemp(path);
    uint64_t a = 0, b = 1;

    CHECK(fd >= 0);
    CHECK_EQ(machine.nodes, 4);
    CHECK_EQ(machine.n_pus, 4);
    CHECK_EQ(machine.pus[3], 6);
    CHECK_NEAR(machine.inter.latency_s, 2e-5, 0);
    CHECK_NEAR(machine.inter.asymptotic_Bps, 0, 0); /* unknown */
    machine.inter.bandwidth_Bps = 1e10 / 3;
    machine.inter.asymptotic_Bps = 2e9 / 3;
    CHECK_STATUS(ghp_machine_save(path, &machine), GHP_OK);
    CHECK_STATUS(ghp_machine_load(path, &again), GHP_OK);
    CHECK(again.inter.bandwidth_Bps >= machine.inter.bandwidth_Bps &&
          again.inter.bandwidth_Bps <= machine.inter.bandwidth_Bps);
    CHECK_NEAR(again.inter.asymptotic_Bps, machine.inter.asymptotic_Bps, 0);
    CHECK_NEAR(again.intra.asymptotic_Bps, 0, 0);
    CHECK_TEXT(again.name, "two sockets");
    CHECK_STATUS(ghp_machine_hash(&machine, &a), GHP_OK);
    CHECK_STATUS(ghp_machine_hash(&again, &b), GHP_OK);
    CHECK(a == b);
    ghp_machine_release(&again);
    CHECK_STATUS(ghp_machine_copy(&machine, &again), GHP_OK);
    again.nodes = 128;
    CHECK_STATUS(ghp_machine_hash(&again, &b), GHP_OK);
    CHECK(a != b);
    CHECK_STATUS(ghp_machine_save("/nonexistent/m.json", &machine), GHP_ERR_IO);
    ghp_machine_release(&again);
    ghp_machine_release(&machine);
    close(fd);
    unlink(path);
}

static void test_refusals(void)
{
    refuse("{\"format\": \"ghp.machine/7\"}", "this version of ghp reads 'ghp.machine/2'");
    refuse("{\"format\": \"ghp.machine/2\", \"node\": 1}", "did you mean 'nodes'");
    refuse("{\"format\": \"ghp.machine/2\", \"name\": \"\", \"nodes\": 0}", "from 1 to");
    refuse("{\"format\": \"ghp.machine/2\", \"name\": \"\", \"nodes\": 1, \"packages\": 1, "
           "\"cores\": 2, \"threads\": 2,\n"
           "\"pu_indices\": [0]}",
           "m.json:2:15: 'pu_indices': there are 1 numbers, but 2 cores; give one for each core");
}

static void test_place(void)
{
    struct ghp_machine machine = machine_of(text);
    struct ghp_place place;

    CHECK_EQ(ghp_machine_workers_per_node(&machine, 1), 1);
    CHECK_EQ(ghp_machine_workers_per_node(&machine, 9), 3);
    place = ghp_machine_place(&machine, 8, 3);
    CHECK_EQ(place.node, 1);
    CHECK_EQ(place.first_core, 2);
    CHECK_EQ(place.n_cores, 2);
    CHECK(!place.oversubscribed);
    place = ghp_machine_place(&machine, 4, 3);
    CHECK_EQ(place.node, 3);
    CHECK_EQ(place.n_cores, 4);
    place = ghp_machine_place(&machine, 20, 19); /* five workers on four cores */
    CHECK_EQ(place.node, 3);
    CHECK_EQ(place.first_core, 0);
    CHECK_EQ(place.n_cores, 1);
    CHECK(place.oversubscribed);
    CHECK(ghp_machine_place(&machine, 20, 15).oversubscribed);
    CHECK(!ghp_machine_place(&machine, 20, 16).oversubscribed);
    ghp_machine_release(&machine);
}

/* Bit equality. */
static void check_same(double a, double b)
{
    CHECK_NEAR(a, b, 0);
}

static void test_analytic(void)
{
    struct ghp_machine machine = machine_of(text);
    struct ghp_link intra = machine.intra, inter = machine.inter;
    int64_t v = 1000000;
    double x = 1e6;

    check_same(ghp_machine_comm_s(&machine, GHP_COMM_ALL_REDUCE, v,
                                  (struct ghp_ranks){.count = 1, .stride = 1}, 16),
               0);
    /* a group inside a node */
    check_same(ghp_machine_comm_s(&machine, GHP_COMM_ALL_REDUCE, v,
                                  (struct ghp_ranks){.first = 4, .count = 4, .stride = 1}, 16),
               2 * 3.0 / 4 * x / intra.bandwidth_Bps + 6 * intra.latency_s);
    check_same(ghp_machine_comm_s(&machine, GHP_COMM_ALL_GATHER, v,
                                  (struct ghp_ranks){.first = 4, .count = 2, .stride = 2}, 16),
               1.0 / 2 * x / intra.bandwidth_Bps + intra.latency_s);
    /* one group over all nodes, by levels: each node's 4 members send a message to each of 3 others, where one rank's
     * messages alone would be 15 */
    check_same(ghp_machine_comm_s(&machine, GHP_COMM_ALL_REDUCE, v,
                                  (struct ghp_ranks){.count = 16, .stride = 1}, 16),
               2 * 15.0 / 16 * x / (inter.bandwidth_Bps / (4 * 3 / 15.0)) + 30 * inter.latency_s);
    /* replicas at stride 2: two groups share each node's link, each with 2 members that send to 3 nodes */
    check_same(ghp_machine_comm_s(&machine, GHP_COMM_REDUCE_SCATTER, v,
                                  (struct ghp_ranks){.first = 1, .count = 8, .stride = 2}, 16),
               7.0 / 8 * x / (inter.bandwidth_Bps / (2 * 2 * 3 / 7.0)) + 7 * inter.latency_s);
    /* stride 8 over groups of 2: four share it */
    check_same(ghp_machine_comm_s(&machine, GHP_COMM_ALL_TO_ALL, v,
                                  (struct ghp_ranks){.first = 1, .count = 2, .stride = 8}, 16),
               1.0 / 2 * x / (inter.bandwidth_Bps / 4) + inter.latency_s);
    /* three workers a node in groups of two: {2, 3} straddles, so the kind is bound by the outer link */
    check_same(ghp_machine_comm_s(&machine, GHP_COMM_ALL_GATHER, v,
                                  (struct ghp_ranks){.count = 2, .stride = 1}, 12),
               1.0 / 2 * x / inter.bandwidth_Bps + inter.latency_s);
    ghp_machine_release(&machine);
}

/* docs/results/closed-forms.md, N = 16: one worker a node, 1.25e9 bytes/s, 20e-6 s. */
static void test_regression(void)
{
    struct ghp_machine machine = machine_of(text);
    int64_t front = 4 * INT64_C(14710464), rear = 4 * INT64_C(123633664);

    machine.nodes = 16;
    CHECK_NEAR(1e3 * ghp_machine_comm_s(&machine, GHP_COMM_ALL_REDUCE, front,
                                        (struct ghp_ranks){.count = 16, .stride = 1}, 16),
               88.86, 5e-3);
    CHECK_NEAR(1e3 * ghp_machine_comm_s(&machine, GHP_COMM_ALL_REDUCE, front + rear,
                                        (struct ghp_ranks){.count = 16, .stride = 1}, 16),
               830.66, 6e-3);
    CHECK_NEAR(1e3 * ghp_machine_comm_s(&machine, GHP_COMM_ALL_REDUCE, rear / 8,
                                        (struct ghp_ranks){.count = 2, .stride = 8}, 16),
               49.49, 5e-3);
    CHECK_NEAR(2e3 * ghp_machine_comm_s(&machine, GHP_COMM_ALL_GATHER, INT64_C(4) * 512 * 25088,
                                        (struct ghp_ranks){.count = 8, .stride = 1}, 16),
               72.21, 5e-3);
    ghp_machine_release(&machine);
}

CHECK_TEST(machine)
{
    test_file();
    test_refusals();
    test_place();
    test_analytic();
    test_regression();
    return check_end();
}
