/* tests/core/cost/test_missing.c - what a program is costed by and nobody measured: the most of any program counts, the
 * end that changes nothing is dropped, and the list survives its file. */
#include "core/cost/missing.h"
#include "tests/check.h"

#include <string.h>
#include <unistd.h>

static struct ghp_instr compute(int64_t n)
{
    struct ghp_instr instr = {.kind = GHP_INSTR_COMPUTE, .pass = GHP_PASS_FORWARD};

    instr.local = (struct ghp_local){
        .op = GHP_OP_RELU, .n = n, .c = 4, .h = 1, .w = 1, .k = 4, .p = 1, .q = 1};
    return instr;
}

static void open_profile(struct ghp_profile *profile)
{
    static const struct {
        int64_t n;
        double seconds;
        enum ghp_source source;
    } entries[] = {{1, 1, GHP_SOURCE_MEASURED},
                   {2, 2, GHP_SOURCE_ANALYTIC},
                   {3, 0.5, GHP_SOURCE_INTERPOLATED}};

    CHECK_STATUS(ghp_profile_init(profile, "reference", "fast", 4), GHP_OK);
    profile->machine.nodes = 1;
    profile->machine.intra = profile->machine.inter = (struct ghp_link){1e-6, 1e9, 0};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        struct ghp_instr instr = compute(entries[i].n);
        char key[GHP_KEY_BYTES];
        struct ghp_op_entry entry = {
            .key = key, .seconds = entries[i].seconds, .source = entries[i].source};

        ghp_local_key(&instr.local, key);
        CHECK_STATUS(ghp_profile_add_op(profile, &entry), GHP_OK);
    }
    CHECK_STATUS(ghp_profile_finalize(profile), GHP_OK);
}

/* Whether an all-reduce of `bytes` bytes is missing, by the table of a profile. */
static bool is_wanted(const struct ghp_profile *profile, int64_t bytes)
{
    struct ghp_instr instr = {.kind = GHP_INSTR_ALL_REDUCE,
                              .comm = GHP_COMM_ALL_REDUCE,
                              .bytes = bytes,
                              .ranks = {.first = 0, .count = 2, .stride = 1}};
    const struct ghp_program program = {.instrs = &instr, .n_instrs = 1, .problem = {.workers = 2}};
    struct ghp_missing missing = {0};
    bool is;

    CHECK_STATUS(ghp_missing_add(&missing, profile, &program, 1), GHP_OK);
    is = missing.n > 0;
    ghp_missing_release(&missing);
    return is;
}

CHECK_TEST(missing_collectives)
{
    struct ghp_profile profile = {0};

    open_profile(&profile);
    for (int64_t bytes = 64 << 10; bytes <= 16 << 20; bytes *= 4) {
        const struct ghp_comm_entry entry = {.op = GHP_COMM_ALL_REDUCE,
                                             .count = 2,
                                             .stride = 1,
                                             .bytes = bytes,
                                             .seconds = 1e-9 * (double)bytes,
                                             .source = GHP_SOURCE_MEASURED};

        CHECK_STATUS(ghp_profile_add_comm(&profile, &entry), GHP_OK);
        CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
        CHECK(!is_wanted(&profile, bytes));
        CHECK_EQ(is_wanted(&profile, 2 * bytes), bytes < 1 << 20);
        CHECK(is_wanted(&profile, 5 * bytes));
    }
    CHECK(!is_wanted(&profile, 5 << 20)); /* between two */
    ghp_profile_release(&profile);
    return check_end();
}

CHECK_TEST(missing)
{
    struct ghp_instr instrs[] = {compute(1),
                                 compute(2),
                                 compute(2),
                                 compute(3),
                                 {.kind = GHP_INSTR_ALL_REDUCE,
                                  .comm = GHP_COMM_ALL_REDUCE,
                                  .bytes = 1 << 20,
                                  .ranks = {.first = 0, .count = 2, .stride = 1}}};
    struct ghp_program all = {.instrs = instrs, .n_instrs = 5, .problem = {.workers = 2}};
    const struct ghp_program last = {
        .instrs = instrs + 3, .n_instrs = 1, .problem = {.workers = 2}};
    struct ghp_missing missing = {0}, read;
    struct ghp_profile profile = {0};
    char path[] = "/tmp/ghp-missing-XXXXXX";
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    close(fd);
    open_profile(&profile);
    CHECK_STATUS(ghp_missing_add(&missing, &profile, &all, 1), GHP_OK);
    CHECK_STATUS(ghp_missing_add(&missing, &profile, &last, 1), GHP_OK);
    CHECK_EQ(missing.n, 3); /* what was measured is not missing */
    ghp_missing_trim(&missing, 0);
    CHECK_EQ(missing.n, 3);
    CHECK_NEAR(missing.items[0].seconds, 4, 0); /* twice in one program */
    CHECK_NEAR(missing.items[1].seconds, 0.5, 0);
    CHECK(missing.items[2].is_comm);
    CHECK_STATUS(ghp_missing_save(path, &missing), GHP_OK);
    CHECK_STATUS(ghp_missing_load(path, &read), GHP_OK);
    CHECK_EQ(read.n, 3);
    CHECK_TEXT(read.items[0].key, missing.items[0].key);
    CHECK_EQ(read.items[2].bytes, 1 << 20);
    CHECK_EQ(read.items[2].op, GHP_COMM_ALL_REDUCE);
    ghp_missing_release(&read);
    ghp_missing_trim(&missing, 0.5 * GHP_MISSING_LAW_ERROR +
                                   GHP_MISSING_COMM_ERROR * missing.items[2].seconds +
                                   0.001); /* the two at the end together */
    CHECK_EQ(missing.n, 1);
    ghp_missing_release(&missing);
    ghp_profile_release(&profile);
    unlink(path);
    return check_end();
}
