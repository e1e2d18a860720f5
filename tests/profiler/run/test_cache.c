/* tests/profiler/run/test_cache.c - what is kept for a machine: found by another network's work list at the same shapes
 * in the same formats, merged with what others keep, named and made again if damaged. */
#include "profiler/run/cache.h"
#include "tests/check.h"
#include "tests/core/base/no_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder;
static const struct ghp_measure m = {
    .backend_ops = &ghp_backend_reference, .element_bytes = 4, .cache_bytes = 1 << 20};

static struct ghp_worklist_op op_of(int64_t n, double step_bytes)
{
    struct ghp_worklist_op op = {
        .local = {.op = GHP_OP_RELU, .n = n, .c = 4, .h = 1, .w = 1, .k = 4, .p = 1, .q = 1},
        .step_bytes = step_bytes,
        .n_variants = 1};

    ghp_local_key(&op.local, op.key);
    return op;
}

static void open_profile(struct ghp_profile *profile)
{
    const struct ghp_rate rate = {.bandwidth_Bps = 5e9, .source = GHP_SOURCE_MEASURED};

    CHECK_STATUS(ghp_profile_init(profile, "reference", "fast", 4), GHP_OK);
    profile->machine.nodes = 1;
    profile->machine.intra = profile->machine.inter = (struct ghp_link){1e-6, 1e9, 0};
    profile->machine.memory_bytes = 1 << 30;
    profile->copy = profile->load = profile->accumulate = profile->update[0] = rate;
    profile->overlap = (struct ghp_overlap){.compute = 1.25, .comm = 1, .link = 1};
    CHECK_STATUS(ghp_profile_finalize(profile), GHP_OK);
}

/* Keeps one operation over n samples, and one all-reduce. */
static void keep(struct ghp_cache *cache, int64_t n, enum ghp_source source, int nodes)
{
    struct ghp_worklist_op op = op_of(n, 1e9);
    const struct ghp_worklist worklist = {.n_ops = 1, .ops = &op};
    struct ghp_op_entry entry = {.key = op.key, .seconds = 1e-3 * (double)n, .source = source};
    struct ghp_comm_entry comm = {.op = GHP_COMM_ALL_REDUCE,
                                  .count = 2,
                                  .stride = 1,
                                  .bytes = 1024 * n,
                                  .seconds = 1e-4,
                                  .source = GHP_SOURCE_MEASURED};
    struct ghp_profile profile;

    open_profile(&profile);
    profile.machine.nodes = nodes;
    CHECK_STATUS(ghp_profile_add_op(&profile, &entry), GHP_OK);
    CHECK_STATUS(ghp_profile_add_comm(&profile, &comm), GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_STATUS(ghp_cache_keep(cache, &m, &worklist, &profile), GHP_OK);
    ghp_profile_release(&profile);
}

/* Seconds of the operation as a run finds it that begins now; 0: it is not there. */
static double found(const char *key, struct ghp_worklist_op op, int *comms)
{
    struct ghp_worklist_comm comm = {.op = GHP_COMM_ALL_REDUCE, .count = 2, .stride = 1};
    const struct ghp_worklist worklist = {.n_ops = 1, .ops = &op, .n_comms = 1, .comms = &comm};
    const struct ghp_op_entry *entry;
    struct ghp_profile profile;
    struct ghp_cache cache;
    double seconds;

    open_profile(&profile);
    profile.overlap.compute = profile.load.bandwidth_Bps = 0;
    CHECK_STATUS(ghp_cache_open(folder, key, &cache), GHP_OK);
    CHECK_STATUS(ghp_cache_take_rates(&cache, &profile), GHP_OK);
    CHECK_NEAR(profile.overlap.compute, cache.known.backend != NULL ? 1.25 : 0, 0);
    CHECK_NEAR(profile.load.bandwidth_Bps, 0,
               0); /* another network's samples are another thing to load */
    CHECK_STATUS(ghp_cache_take(&cache, &m, &worklist, &profile), GHP_OK);
    entry = ghp_profile_find(&profile, op.key, op.pass);
    seconds = entry != NULL ? entry->seconds : 0;
    *comms = profile.n_comms;
    ghp_cache_close(&cache);
    ghp_profile_release(&profile);
    return seconds;
}

/* Two runs that began with nothing keep theirs one after the other: both are there. What is asked for in other formats,
 * or with other data in the processor's caches, is not the same. */
static void test_merge(void)
{
    struct ghp_cache a, b;
    struct ghp_worklist_op other = op_of(2, 1e9);
    int comms;

    CHECK_STATUS(ghp_cache_open(folder, "key", &a), GHP_OK);
    CHECK_STATUS(ghp_cache_open(folder, "key", &b), GHP_OK);
    keep(&a, 1, GHP_SOURCE_MEASURED, 1);
    keep(&b, 2, GHP_SOURCE_MEASURED, 1);
    keep(&b, 3, GHP_SOURCE_ANALYTIC, 2);
    CHECK_NEAR(found("key", op_of(1, 1e9), &comms), 1e-3, 0);
    CHECK_EQ(comms, 2); /* not the one between nodes */
    CHECK_NEAR(found("key", op_of(2, 2e9), &comms), 2e-3, 0);
    CHECK_NEAR(found("key", op_of(3, 1e9), &comms), 0, 0);
    CHECK_NEAR(found("key", op_of(2, 1e5), &comms), 0, 0);
    CHECK_NEAR(found("another key", op_of(2, 1e9), &comms), 0, 0);
    CHECK_EQ(comms, 0);
    other.variants[0].x = true;
    CHECK_NEAR(found("key", other, &comms), 0, 0);
    ghp_cache_close(&a);
    ghp_cache_close(&b);
}

static void test_damaged(void)
{
    struct ghp_cache cache;
    char path[256];
    int comms;

    CHECK_STATUS(ghp_cache_open(folder, "key", &cache), GHP_OK);
    snprintf(path, sizeof path, "%s", cache.path);
    CHECK_EQ(truncate(path, 100), 0);
    CHECK_NEAR(found("key", op_of(1, 1e9), &comms), 0, 0);
    keep(&cache, 1, GHP_SOURCE_MEASURED, 1);
    CHECK_NEAR(found("key", op_of(1, 1e9), &comms), 1e-3, 0);
    ghp_cache_close(&cache);
}

/* If nothing can be kept, a run continues. */
static void test_none(void)
{
    struct ghp_cache cache;
    char *name;

    CHECK_STATUS(ghp_cache_folder("none", &name), GHP_OK);
    CHECK(name == NULL);
    CHECK_STATUS(ghp_cache_open(name, "key", &cache), GHP_OK);
    keep(&cache, 1, GHP_SOURCE_MEASURED, 1);
    ghp_cache_close(&cache);
    CHECK_STATUS(ghp_cache_open("/dev/null/no/such", "key", &cache), GHP_OK);
    CHECK(cache.path == NULL);
    ghp_cache_close(&cache);
    CHECK_EQ(setenv("XDG_CACHE_HOME", "/some/where", 1), 0);
    CHECK_STATUS(ghp_cache_folder(NULL, &name), GHP_OK);
    CHECK_TEXT(name, "/some/where/ghp");
    free(name);
}

/* Anyone who may write into the folder may write the file and its lock, whatever the first user's umask. */
static void test_shared(void)
{
    static const mode_t modes[] = {0700, 0755, 0775};
    const mode_t before = umask(022);

    for (int i = 0; i < 3; i++) {
        struct ghp_cache cache;
        struct stat file, lock;
        char path[300], name[256];

        snprintf(name, sizeof name, "%s/of-a-group-%d", folder, i);
        CHECK(mkdir(name, 0700) == 0 && chmod(name, modes[i]) == 0);
        CHECK_STATUS(ghp_cache_open(name, "key", &cache), GHP_OK);
        keep(&cache, 1, GHP_SOURCE_MEASURED, 1);
        snprintf(path, sizeof path, "%s.lock", cache.path);
        CHECK(stat(cache.path, &file) == 0 && stat(path, &lock) == 0);
        CHECK_EQ(file.st_mode & 0777, modes[i] & 0666);
        CHECK_EQ(lock.st_mode & 0777, modes[i] & 0666);
        ghp_cache_close(&cache);
    }
    CHECK_EQ(umask(before), 022);
}

/* Holds the lock of a cache's file for `tenths` tenths of a second, in a process of its own. Returns that process, or 0
 * without one. */
static pid_t hold(const struct ghp_cache *cache, int tenths)
{
    char path[300];
    int fd, ready[2];
    char byte;
    pid_t holder;

    snprintf(path, sizeof path, "%s.lock", cache->path);
    if (!CHECK_EQ(pipe(ready), 0)) return 0;
    holder = fork();
    if (holder == 0) {
        fd = open(path, O_CREAT | O_RDWR, 0600);
        if (fd < 0 || flock(fd, LOCK_EX) != 0 || write(ready[1], "x", 1) != 1) _exit(1);
        usleep((useconds_t)tenths * 100000);
        _exit(0);
    }
    close(ready[1]);
    CHECK(holder > 0 && read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    return holder;
}

/* A lock that another process holds is waited for, but not without end. */
static void test_held(void)
{
    struct ghp_cache cache;
    pid_t holder;
    int comms;

    CHECK_STATUS(ghp_cache_open(folder, "held", &cache), GHP_OK);
    CHECK(cache.lock_wait_s >= 5 && cache.lock_wait_s <= 60);
    cache.lock_wait_s = 60;
    holder = hold(&cache, 3);
    keep(&cache, 1, GHP_SOURCE_MEASURED, 1);
    CHECK_EQ(waitpid(holder, NULL, 0), holder);
    CHECK_NEAR(found("held", op_of(1, 1e9), &comms), 1e-3, 0);
    holder = hold(&cache, 600);
    cache.lock_wait_s = 1;
    keep(&cache, 2, GHP_SOURCE_MEASURED, 1);
    CHECK(cache.path == NULL);                   /* given up */
    CHECK_EQ(waitpid(holder, NULL, WNOHANG), 0); /* before the lock was free */
    CHECK(kill(holder, SIGKILL) == 0 && waitpid(holder, NULL, 0) == holder);
    CHECK_NEAR(found("held", op_of(2, 1e9), &comms), 0, 0);
    ghp_cache_close(&cache);
}

/* Opens the file and keeps one more operation in it. Those that were kept before stay. */
static enum ghp_status keep_more(void *profile)
{
    struct ghp_worklist_op op = op_of(2, 1e9);
    const struct ghp_worklist worklist = {.n_ops = 1, .ops = &op};
    struct ghp_cache cache;
    enum ghp_status status = ghp_cache_open(folder, "held", &cache);
    long after;
    int comms;

    if (status == GHP_OK) status = ghp_cache_keep(&cache, &m, &worklist, profile);
    ghp_cache_close(&cache);
    after = no_memory_after;
    no_memory_after = -1; /* what is kept is read undisturbed */
    CHECK_NEAR(found("held", op_of(1, 1e9), &comms), 1e-3, 0);
    no_memory_after = after;
    return status;
}

static void test_no_memory(void)
{
    struct ghp_worklist_op op = op_of(2, 1e9);
    struct ghp_op_entry entry = {.key = op.key, .seconds = 2e-3, .source = GHP_SOURCE_MEASURED};
    struct ghp_profile profile;

    open_profile(&profile);
    CHECK_STATUS(ghp_profile_add_op(&profile, &entry), GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    no_memory_each("keeping", keep_more, &profile);
    ghp_profile_release(&profile);
}

int main(void)
{
    folder = check_folder();
    test_merge();
    test_damaged();
    test_none();
    test_shared();
    test_held();
    test_no_memory();
    return check_end();
}
