/* executor/transport/mpi/shared_segment.c - see mpi/shared_segment.h.
 *
 * The memory has no name in any file system: the first rank of a node makes it and the others open it by way of the
 * first one's process, so nothing is left, however a run ends. They believe that it is the right one when they
 * find there what the first one wrote. */
#include "executor/transport/mpi/shared_segment.h"

#include "executor/platform/limits.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    FLAG_BYTES = 128,       /* two lines: processors fetch them in pairs */
    SLOT_BYTES = 256 << 10, /* in cache */
    /* if each wait costs more: ranks share cores with each other or with computing threads, or sums continue over
     * links, in messages of a part of it */
    LONG_SLOT_BYTES = 1 << 20,
    SLOTS = 4,         /* at least one more than there are chunks under way */
    LONG_SLOTS = 8,    /* the same with two levels: six, and see below */
    SKEW_BYTES = 4096, /* between ranks, whose slots would all meet in the same places of a cache */
    TESTS = 32,        /* between two looks at the clock */
};

/* The chunks' numbers begin again at 0 after 2^32: only slots that divide it are taken in turns there, too. */
_Static_assert(SLOTS > 0 && (SLOTS & (SLOTS - 1)) == 0, "a power of two");
_Static_assert(LONG_SLOTS > 0 && (LONG_SLOTS & (LONG_SLOTS - 1)) == 0, "a power of two");

/* What one rank says to the others of its node: for each event the number of chunks that have had it. */
struct ghp_shared_segment_flags {
    _Alignas(FLAG_BYTES) _Atomic uint32_t chunks[GHP_SHARED_SEGMENT_EVENTS];
    _Atomic uint32_t sleepers; /* who waits for this rank and wants to be woken */
};

struct head {      /* where the memory begins */
    uint64_t seal; /* that of the offer */
};

static int64_t rounded(int64_t bytes)
{
    return (bytes + GHP_SHARED_SEGMENT_UNIT_BYTES - 1) / GHP_SHARED_SEGMENT_UNIT_BYTES *
           GHP_SHARED_SEGMENT_UNIT_BYTES;
}

/* ---- waiting ---- */

static bool has(const struct ghp_shared_segment_flags *flag, enum ghp_shared_segment_event event,
                uint32_t chunk)
{
    return (int32_t)(atomic_load_explicit(&flag->chunks[event], memory_order_acquire) - chunk) > 0;
}

static void breathe(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Tests for a moment. */
static bool has_soon(const struct ghp_shared_segment_flags *flag,
                     enum ghp_shared_segment_event event, uint32_t chunk,
                     struct ghp_backoff_wait *wait)
{
    do {
        for (int i = 0; i < TESTS; i++) {
            if (has(flag, event, chunk)) return true;
            breathe();
        }
    } while (ghp_backoff_tests(wait));
    return false;
}

/* The watchdog's message: who is missing. */
static enum ghp_status fail_stalled(const struct ghp_shared_segment *b,
                                    enum ghp_shared_segment_event event, uint32_t chunk)
{
    struct ghp_mpi_missing missing = {"", ""};

    for (int r = 0; r < b->count; r++)
        if (r != b->index && !has(&b->flags[r], event, chunk))
            ghp_mpi_miss(&missing, ghp_ranks_at(b->comm->base.ranks, b->first + r),
                         event != GHP_SHARED_SEGMENT_CONSUMED);
    return ghp_mpi_stalled(b->comm, &missing);
}

static enum ghp_status sleep_until(const struct ghp_shared_segment *b, int rank,
                                   enum ghp_shared_segment_event event, uint32_t chunk,
                                   struct ghp_backoff_wait *wait)
{
    struct ghp_shared_segment_flags *flag = &b->flags[rank];
    enum ghp_status status = GHP_OK;

    atomic_fetch_add(&flag->sleepers, 1);
    for (;;) {
        uint32_t seen = atomic_load(&flag->chunks[event]);

        if ((int32_t)(seen - chunk) > 0) break;
        syscall(SYS_futex, &flag->chunks[event], FUTEX_WAIT, seen,
                &(struct timespec){.tv_nsec = ghp_backoff_take_ns(wait)}, NULL, 0);
        if (has(flag, event, chunk)) break;
        GHP_TRY_GOTO(status, ghp_mpi_progress(b->comm), done);
        if (ghp_backoff_waited_s(wait) > ghp_control_limit_s(&b->comm->transport->control))
            GHP_TRY_GOTO(status, fail_stalled(b, event, chunk), done);
    }
done:
    atomic_fetch_sub(&flag->sleepers, 1);
    return status;
}

enum ghp_status ghp_shared_segment_await(const struct ghp_shared_segment *b,
                                         enum ghp_shared_segment_event event, uint32_t chunk)
{
    for (int i = 1; i < b->count; i++) {
        int r = (b->index + i) % b->count;
        struct ghp_backoff_wait wait;

        if (has(&b->flags[r], event, chunk)) continue;
        wait = ghp_mpi_backoff_begin(b->comm);
        if (!has_soon(&b->flags[r], event, chunk, &wait))
            GHP_TRY(sleep_until(b, r, event, chunk, &wait));
    }
    return GHP_OK;
}

enum ghp_status ghp_shared_segment_acquire(const struct ghp_shared_segment *b, uint32_t chunk)
{
    return ghp_shared_segment_await(b, GHP_SHARED_SEGMENT_CONSUMED, chunk - (uint32_t)b->slots);
}

void ghp_shared_segment_signal(const struct ghp_shared_segment *b,
                               enum ghp_shared_segment_event event, uint32_t chunk)
{
    struct ghp_shared_segment_flags *flag = &b->flags[b->index];

    atomic_store(&flag->chunks[event], chunk + 1);
    if (atomic_load(&flag->sleepers) > 0)
        syscall(SYS_futex, &flag->chunks[event], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- opening ---- */

struct offer {             /* of a node's first rank */
    uint64_t seal;         /* drawn */
    int32_t process, file; /* file -1: it could not */
};

static bool map(struct ghp_shared_segment *b, int file)
{
    void *memory = mmap(NULL, (size_t)b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (memory == MAP_FAILED) return false;
    b->memory = memory;
    b->flags = (struct ghp_shared_segment_flags *)(void *)((char *)memory + FLAG_BYTES);
    b->base = (char *)memory + rounded((b->count + 1) * (int64_t)FLAG_BYTES);
    return true;
}

/* The first rank's part. */
static struct offer make(struct ghp_shared_segment *b)
{
    struct offer offer = {.process = (int32_t)getpid(), .file = -1};
    int file = memfd_create("ghp-sums", MFD_CLOEXEC);

    if (file < 0) return offer;
    if (getrandom(&offer.seal, sizeof offer.seal, 0) != (ssize_t)sizeof offer.seal ||
        ftruncate(file, b->bytes) != 0 || !map(b, file)) {
        close(file);
        return offer;
    }
    ((struct head *)b->memory)->seal = offer.seal;
    offer.file = file;
    return offer;
}

/* The others' part. */
static bool join(struct ghp_shared_segment *b, const struct offer *offer)
{
    char path[64];
    struct stat about;
    int file;
    bool joined;

    if (offer->file < 0) return false;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)offer->process, (int)offer->file);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    joined = fstat(file, &about) == 0 && about.st_size == b->bytes && map(b, file) &&
             ((const struct head *)b->memory)->seal == offer->seal;
    close(file);
    return joined;
}

/* Whether all of the communicator share memory, each with those of its node. */
static enum ghp_status connect(struct ghp_shared_segment *b, struct offer *offers, int32_t *shared,
                             bool *all)
{
    struct ghp_mpi_comm *comm = b->comm;
    struct offer mine = {.file = -1};
    enum ghp_status status;
    int32_t joined;

    *all = true;
    if (b->index == 0) mine = make(b);
    status = ghp_mpi_all_gather(comm, &mine, offers, (int64_t)sizeof mine);
    joined = status == GHP_OK && (b->index == 0 ? mine.file >= 0 : join(b, &offers[b->first]));
    if (status == GHP_OK)
        status = ghp_mpi_all_gather(comm, &joined, shared, (int64_t)sizeof joined);
    for (int r = 0; status == GHP_OK && r < comm->count; r++)
        *all = *all && shared[r] != 0;
    if (mine.file >= 0) close(mine.file);
    return status;
}

/* Whether each rank of this node has a processor to itself while it is in a sum. */
static bool undisturbed(const struct ghp_mpi_comm *comm)
{
    const struct ghp_mpi *t = comm->transport;
    int here = 0;

    for (int r = 0; r < t->control.size; r++)
        here += t->node_of[r] == t->node_of[t->control.rank];
    return comm->base.stream == GHP_STREAM_COMPUTE && here <= ghp_limits_count(&t->processors);
}

static struct ghp_shared_segment *describe(struct ghp_mpi_comm *comm)
{
    struct ghp_shared_segment *b = ghp_alloc(1, sizeof *b);
    bool alone = comm->in_node == comm->count;

    if (b == NULL) return NULL;
    b->comm = comm;
    b->first = comm->index / comm->in_node * comm->in_node;
    b->count = comm->in_node;
    b->index = comm->index - b->first;
    b->slots = alone ? SLOTS : LONG_SLOTS;
    b->slot_bytes = alone && undisturbed(comm) ? SLOT_BYTES : LONG_SLOT_BYTES;
    b->rank_bytes = b->slots * b->slot_bytes + SKEW_BYTES;
    b->bytes = rounded((b->count + 1) * (int64_t)FLAG_BYTES) + b->count * b->rank_bytes;
    return b;
}

enum ghp_status ghp_shared_segment_open(struct ghp_mpi_comm *comm,
                                        struct ghp_shared_segment **segment)
{
    enum ghp_status status = GHP_OK;
    struct ghp_shared_segment *b = describe(comm);
    struct offer *offers = ghp_alloc((size_t)comm->count, sizeof *offers);
    int32_t *shared = ghp_alloc((size_t)comm->count, sizeof *shared);
    bool all = false;

    *segment = NULL;
    if (b == NULL || offers == NULL || shared == NULL) status = GHP_NO_MEMORY();
    GHP_TRY_GOTO(status, ghp_mpi_agree(comm, status), done);
    GHP_TRY_GOTO(status, connect(b, offers, shared, &all), done);
    if (all) {
        *segment = b;
        b = NULL;
    }
done:
    free(shared);
    free(offers);
    ghp_shared_segment_close(b);
    return status;
}

void ghp_shared_segment_close(struct ghp_shared_segment *b)
{
    if (b == NULL) return;
    if (b->memory != NULL) munmap(b->memory, (size_t)b->bytes);
    free(b);
}
