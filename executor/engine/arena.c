/* executor/engine/arena.c - see arena.h. */
#include "executor/engine/arena.h"

#include "executor/platform/numa.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISONS 1
#endif
#endif
#ifdef ARENA_POISONS
#include <sanitizer/asan_interface.h>
#endif

static enum ghp_status open_on_host(const struct ghp_program *program, bool resident,
                                    struct ghp_arena *arena)
{
    void *base;

    *arena = (struct ghp_arena){.bytes = program->peak_bytes, .point = -1};
    if (arena->bytes == 0) return GHP_OK;
    base = mmap(NULL, (size_t)arena->bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        *arena = (struct ghp_arena){.point = -1};
        return GHP_FAIL(
            GHP_ERR_NO_MEMORY,
            "cannot allocate the worker's %lld bytes; use more workers, a smaller batch or a "
            "plan made with a lower --memory",
            (long long)program->peak_bytes);
    }
    ghp_numa_bind(base, arena->bytes); /* hints both: failing changes nothing but speed */
    madvise(base, (size_t)arena->bytes, MADV_HUGEPAGE);
    if (resident) memset(base, 0, (size_t)arena->bytes);
    arena->base = base;
    return GHP_OK;
}

bool ghp_arena_borrows(const struct ghp_buffer *b)
{
    return b->persistent &&
           (b->buffer_kind == GHP_BUFFER_WEIGHT || b->buffer_kind == GHP_BUFFER_WEIGHT_SHARD ||
            b->buffer_kind == GHP_BUFFER_STATE);
}

/* Finds the room that a program leaves for the buffers it borrows from a weight owner: one stretch, since weights and
 * states are placed one after the other. */
static void find_hole(const struct ghp_program *program, struct ghp_arena *arena)
{
    arena->hole_first = program->peak_bytes;
    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];

        if (!ghp_arena_borrows(b)) continue;
        if (b->offset < arena->hole_first) arena->hole_first = b->offset;
        if (b->offset + b->bytes > arena->hole_last) arena->hole_last = b->offset + b->bytes;
    }
    if (arena->hole_last == 0) arena->hole_first = 0;
    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];
        bool outside = b->offset + b->bytes <= arena->hole_first || b->offset >= arena->hole_last;

        GHP_ASSERT(ghp_arena_borrows(b) || b->bytes == 0 || b->storage != i || outside);
    }
}

static int64_t persistent_bytes(const struct ghp_program *program)
{
    int64_t end = 0;

    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];

        if (b->persistent && b->storage == i && b->offset + b->bytes > end)
            end = b->offset + b->bytes;
    }
    return end;
}

enum ghp_status ghp_arena_open(struct ghp_device device, const struct ghp_program *program,
                               const struct ghp_arena *weight_owner, void *memory,
                               struct ghp_arena *arena)
{
    enum ghp_status status = GHP_OK;
    void *base = memory;

    if (ghp_device_is_host(device)) return open_on_host(program, weight_owner == NULL, arena);
    *arena = (struct ghp_arena){.bytes = program->peak_bytes, .point = -1, .device = device};
    arena->persistent_bytes = persistent_bytes(program);
    arena->borrowed = memory != NULL;
    if (weight_owner != NULL) {
        find_hole(program, arena);
        arena->bytes -= arena->hole_last - arena->hole_first;
        arena->borrowed = arena->bytes <= weight_owner->bytes - weight_owner->persistent_bytes;
        if (arena->borrowed) base = weight_owner->base + weight_owner->persistent_bytes;
    }
    if (arena->bytes > 0 && !arena->borrowed)
        status = ghp_device_allocate(device, arena->bytes, &base);
    if (status == GHP_OK)
        arena->base = base;
    else
        *arena = (struct ghp_arena){.point = -1};
    return status;
}

void ghp_arena_close(struct ghp_arena *arena)
{
    if (arena == NULL || arena->base == NULL) return;
    if (!ghp_device_is_host(arena->device)) {
        if (!arena->borrowed) ghp_device_release(arena->device, arena->base);
        *arena = (struct ghp_arena){.point = -1};
        return;
    }
#ifdef ARENA_POISONS
    ASAN_UNPOISON_MEMORY_REGION(arena->base, (size_t)arena->bytes);
#endif
    munmap(arena->base, (size_t)arena->bytes);
    *arena = (struct ghp_arena){.point = -1};
}

void *ghp_arena_at(const struct ghp_arena *arena, const struct ghp_program *program, int buffer)
{
    int64_t offset;

    if (buffer < 0 || arena->base == NULL) return NULL;
    offset = ghp_buffer_offset(program, buffer);
    if (offset < arena->hole_first || arena->hole_last == 0) return arena->base + offset;
    if (offset < arena->hole_last) return NULL;
    return arena->base + offset - (arena->hole_last - arena->hole_first);
}

#ifdef ARENA_POISONS
/* The other stream may be in these at any time. */
static bool is_shared(const struct ghp_buffer *b)
{
    return b->persistent &&
           (b->buffer_kind == GHP_BUFFER_BUCKET || b->buffer_kind == GHP_BUFFER_COMM ||
            b->buffer_kind == GHP_BUFFER_METRICS);
}

void ghp_arena_visit(struct ghp_arena *arena, const struct ghp_program *program, int point)
{
    if (arena->base == NULL || point == arena->point || !ghp_device_is_host(arena->device)) return;
    arena->point = point;
    if (point < 0) {
        ASAN_UNPOISON_MEMORY_REGION(arena->base, (size_t)arena->bytes);
        return;
    }
    for (int pass = 0; pass < 2;
         pass++) /* close the dead, then open the living: they may share memory */
        for (int i = 0; i < program->n_buffers; i++) {
            const struct ghp_buffer *b = &program->buffers[i];
            bool lives = (b->first_point <= point && point <= b->last_point) || b->persistent ||
                         is_shared(b);

            if (lives != (pass == 1)) continue;
            if (lives)
                ASAN_UNPOISON_MEMORY_REGION(ghp_arena_at(arena, program, i), (size_t)b->bytes);
            else
                ASAN_POISON_MEMORY_REGION(ghp_arena_at(arena, program, i), (size_t)b->bytes);
        }
}
#else
void ghp_arena_visit(struct ghp_arena *arena, const struct ghp_program *program, int point)
{
    (void)program;
    arena->point = point;
}
#endif

struct span {
    int64_t first, last; /* bytes, last exclusive */
};

static int by_first(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

void ghp_arena_rest(struct ghp_arena *arena, const struct ghp_program *program)
{
    struct span *kept = ghp_alloc((size_t)program->n_buffers + 1, sizeof *kept);
    int64_t page = sysconf(_SC_PAGESIZE), at = 0;
    int n = 0;

    if (kept == NULL || arena->base == NULL ||
        !ghp_device_is_host(arena->device)) { /* only thrift is lost */
        free(kept);
        return;
    }
    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];

        if (!b->persistent || b->bytes == 0) continue;
        kept[n].first = ghp_buffer_offset(program, i);
        kept[n].last = kept[n].first + b->bytes;
        n++;
    }
    kept[n] = (struct span){arena->bytes, arena->bytes};
    qsort(kept, (size_t)n, sizeof *kept, by_first);
    for (int i = 0; i <= n; i++) {
        int64_t first = (at + page - 1) / page * page, last = kept[i].first / page * page;

        if (last > first) madvise(arena->base + first, (size_t)(last - first), MADV_DONTNEED);
        if (kept[i].last > at) at = kept[i].last;
    }
    free(kept);
}
