/* tests/executor/locked_memory.c - see locked_memory.h. */
#include "tests/executor/locked_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_REGIONS = 4096 };

static pthread_mutex_t region_lock = PTHREAD_MUTEX_INITIALIZER;
static struct region {
    void *base;
    size_t bytes; /* whole pages */
} regions[MOST_REGIONS];
static int n_regions, inside;
static int64_t allocated;

static void protect(int protection)
{
    for (int i = 0; i < n_regions; i++)
        if (mprotect(regions[i].base, regions[i].bytes, protection) != 0) abort();
}

void locked_memory_enter(void)
{
    pthread_mutex_lock(&region_lock);
    if (inside++ == 0) protect(PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&region_lock);
}

void locked_memory_leave(void)
{
    pthread_mutex_lock(&region_lock);
    if (--inside == 0) protect(PROT_NONE);
    pthread_mutex_unlock(&region_lock);
}

void *locked_memory_map(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes / page + 1) * page;
    void *base = MAP_FAILED;

    pthread_mutex_lock(&region_lock);
    if (n_regions < MOST_REGIONS)
        base = mmap(NULL, whole, inside > 0 ? PROT_READ | PROT_WRITE : PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base != MAP_FAILED) {
        regions[n_regions++] = (struct region){base, whole};
        allocated += (int64_t)whole;
    }
    pthread_mutex_unlock(&region_lock);
    return base != MAP_FAILED ? base : NULL;
}

void locked_memory_unmap(void *base)
{
    pthread_mutex_lock(&region_lock);
    for (int i = 0; i < n_regions; i++) {
        if (regions[i].base != base) continue;
        munmap(base, regions[i].bytes);
        allocated -= (int64_t)regions[i].bytes;
        regions[i] = regions[--n_regions];
        break;
    }
    pthread_mutex_unlock(&region_lock);
}

int64_t locked_memory_bytes(void)
{
    return allocated;
}
