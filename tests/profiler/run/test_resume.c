/* tests/profiler/run/test_resume.c - an earlier file is continued if it fits and refused if it does not. */
#include "profiler/run/resume.h"
#include "tests/check.h"

#include <unistd.h>

static char path[] = "/tmp/ghp-resume-XXXXXX";

static void open_profile(struct ghp_profile *profile)
{
    CHECK_STATUS(ghp_profile_init(profile, "reference", "fast", 4), GHP_OK);
    profile->workers = 2;
    profile->machine.intra = profile->machine.inter = (struct ghp_link){1e-6, 1e9, 0};
    profile->machine.memory_bytes = 1 << 30;
}

static void add_op(struct ghp_profile *profile, int64_t n, enum ghp_source source)
{
    struct ghp_local local = {
        .op = GHP_OP_RELU, .n = n, .c = 4, .h = 1, .w = 1, .k = 4, .p = 1, .q = 1};
    char key[GHP_KEY_BYTES], algorithm[] = "loop";
    struct ghp_op_entry entry = {
        .key = key, .seconds = 1e-3, .source = source, .algorithm = algorithm};

    ghp_local_key(&local, key);
    CHECK_STATUS(ghp_profile_add_op(profile, &entry), GHP_OK);
}

static void write_file(void)
{
    struct ghp_profile old = {0};
    struct ghp_comm_entry comm = {
        .op = GHP_COMM_ALL_REDUCE, .count = 2, .stride = 1, .bytes = 1024, .seconds = 1e-4};

    open_profile(&old);
    add_op(&old, 1, GHP_SOURCE_MEASURED);
    add_op(&old, 2, GHP_SOURCE_INTERPOLATED);
    add_op(&old, 3, GHP_SOURCE_ANALYTIC);
    add_op(&old, 4, GHP_SOURCE_MEASURED);
    CHECK_STATUS(ghp_profile_add_comm(&old, &comm), GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&old), GHP_OK);
    CHECK_STATUS(ghp_profile_save(path, &old), GHP_OK);
    ghp_profile_release(&old);
}

/* What was measured stays, estimates go, and the work list's entries are marked. */
static void test_continue(void)
{
    struct ghp_profile profile = {0};
    struct ghp_worklist_op ops[4] = {{.local = {.op = GHP_OP_RELU}}};
    struct ghp_worklist_comm comms[2] = {
        {.op = GHP_COMM_ALL_REDUCE, .count = 2, .stride = 1, .bytes = 1024},
        {.op = GHP_COMM_ALL_REDUCE, .count = 2, .stride = 1, .bytes = 2048}};
    struct ghp_worklist worklist = {.n_ops = 4, .ops = ops, .n_comms = 2, .comms = comms};
    bool resumed = false;

    open_profile(&profile);
    CHECK_STATUS(ghp_resume_load(path, &profile, &resumed), GHP_OK);
    CHECK(resumed);
    CHECK_EQ(profile.n_ops, 2);
    CHECK_EQ(profile.n_comms, 1);
    for (int i = 0; i < 4; i++) {
        ops[i].local = (struct ghp_local){.op = GHP_OP_RELU, .n = i + 1, .c = 4, .h = 1, .w = 1};
        ghp_local_key(&ops[i].local, ops[i].key);
    }
    ghp_resume_mark(&profile, &worklist);
    CHECK(ops[0].kept && !ops[1].kept && !ops[2].kept && ops[3].kept);
    CHECK(comms[0].kept && !comms[1].kept);
    ghp_profile_release(&profile);
}

/* Operations of the same processors on other links: they stay, with this run's nodes; what crosses links goes. */
static void test_like(void)
{
    struct ghp_profile profile = {0};

    open_profile(&profile);
    profile.machine.nodes = 2;
    profile.machine.inter.bandwidth_Bps = 5e7;
    profile.overlap = (struct ghp_overlap){.compute = 1, .comm = 1, .link = 1};
    CHECK_STATUS(ghp_resume_like(path, &profile), GHP_OK);
    CHECK_EQ(profile.n_ops, 2);
    CHECK_EQ(profile.n_comms, 0);
    CHECK_EQ(profile.machine.nodes, 2);
    CHECK_NEAR(profile.machine.inter.bandwidth_Bps, 5e7, 0);
    CHECK_NEAR(profile.overlap.compute, 0, 0);
    ghp_profile_release(&profile);

    open_profile(&profile);
    profile.workers = 4;
    CHECK_STATUS(ghp_resume_like(path, &profile), GHP_ERR_INPUT);
    CHECK_MESSAGE("ranks 2, not 4");
    CHECK_STATUS(ghp_resume_like("/tmp/ghp-no-such-profile", &profile), GHP_ERR_IO);
    ghp_profile_release(&profile);
}

static void test_absent(void)
{
    struct ghp_profile profile = {0};
    bool resumed = true;

    open_profile(&profile);
    CHECK_STATUS(ghp_resume_load("/tmp/ghp-no-such-profile", &profile, &resumed), GHP_OK);
    CHECK(!resumed);
    CHECK_EQ(profile.workers, 2);
    ghp_profile_release(&profile);
}

static void refused(struct ghp_profile *profile, const char *part)
{
    bool resumed = false;

    CHECK_STATUS(ghp_resume_load(path, profile, &resumed), GHP_ERR_INPUT);
    CHECK_MESSAGE(part);
    CHECK_MESSAGE("--fresh");
    ghp_profile_release(profile);
}

static void test_differs(void)
{
    struct ghp_profile profile = {0};

    open_profile(&profile);
    profile.workers = 4;
    refused(&profile, "ranks 2, not 4");
    open_profile(&profile);
    profile.element_bytes = 8;
    refused(&profile, "precision float, not double");
    open_profile(&profile);
    profile.backend[0] = 'X';
    refused(&profile, "backend reference");
    open_profile(&profile);
    profile.numerics[0] = 'l';
    refused(&profile, "numerics fast, not last");
    open_profile(&profile);
    profile.machine.nodes = 3;
    refused(&profile, "nodes 1, not 3");
}

static void test_broken(void)
{
    struct ghp_profile profile = {0};
    bool resumed = false;
    FILE *file = fopen(path, "w");

    CHECK(file != NULL && fputs("{\"format\": ", file) >= 0 && fclose(file) == 0);
    open_profile(&profile);
    CHECK_STATUS(ghp_resume_load(path, &profile, &resumed), GHP_ERR_FORMAT);
    CHECK_MESSAGE("--fresh");
    ghp_profile_release(&profile);
}

CHECK_TEST(resume)
{
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    close(fd);
    write_file();
    test_continue();
    test_like();
    test_absent();
    test_differs();
    test_broken();
    unlink(path);
    return check_end();
}
