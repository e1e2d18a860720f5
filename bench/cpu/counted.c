/* bench/cpu/counted.c - counts what a program asks of the C library while it runs: allocations and locks, by who asks.
 *
 * A shared library for LD_PRELOAD. Every call of malloc and its kin, of pthread_mutex_lock and of sem_post is counted
 * at its return address and handed on; at the end each object of the process (the program, its libraries) gets a line
 *
 *     OBJECT KIND CALLS BYTES        in the file GHP_COUNTED.PID, kinds: allocation, lock, post
 *
 * and the process one of kind `sleep`: how often a thread of it gave its core away to wait (voluntary context
 * switches). Nothing is printed and no call is changed. See bench/cpu/evidence, which takes the difference of two
 * runs. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum kind { ALLOCATION, LOCK, POST, KINDS };
enum { SITES = 1 << 14, OBJECTS = 256, PATH_BYTES = 4096 };

static const char *const kind_names[KINDS] = {"allocation", "lock", "post"};

static struct site { /* open addressing, by return address */
    _Atomic(void *) at;
    atomic_long calls[KINDS], bytes;
} sites[SITES];
static atomic_long lost; /* calls from addresses without room */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static void count(void *at, enum kind kind, size_t bytes)
{
    size_t first = ((uintptr_t)at >> 2) * 2654435761u % SITES;

    for (size_t i = 0; i < SITES; i++) {
        struct site *s = &sites[(first + i) % SITES];
        void *there = atomic_load(&s->at);

        if (there == NULL && atomic_compare_exchange_strong(&s->at, &there, at)) there = at;
        if (there != at) continue;
        atomic_fetch_add(&s->calls[kind], 1);
        atomic_fetch_add(&s->bytes, (long)bytes);
        return;
    }
    atomic_fetch_add(&lost, 1);
}

/* ---- what is counted ---- */

void *malloc(size_t size)
{
    count(__builtin_return_address(0), ALLOCATION, size);
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count(__builtin_return_address(0), ALLOCATION, n * size);
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    count(__builtin_return_address(0), ALLOCATION, size);
    return __libc_realloc(old, size);
}

void *memalign(size_t align, size_t size)
{
    count(__builtin_return_address(0), ALLOCATION, size);
    return __libc_memalign(align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    count(__builtin_return_address(0), ALLOCATION, size);
    return __libc_memalign(align, size);
}

int posix_memalign(void **block, size_t align, size_t size)
{
    count(__builtin_return_address(0), ALLOCATION, size);
    *block = __libc_memalign(align, size);
    return *block == NULL ? ENOMEM : 0;
}

/* The C library's own function of this name; NULL before it can be asked for. */
static void *behind(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

int pthread_mutex_lock(pthread_mutex_t *lock)
{
    static _Atomic(void *) own;
    void *function = atomic_load(&own);
    int (*call)(pthread_mutex_t *);

    if (function == NULL) {
        function = behind("pthread_mutex_lock");
        atomic_store(&own, function);
    }
    count(__builtin_return_address(0), LOCK, 0);
    memcpy(&call, &function, sizeof call);
    return call(lock);
}

int sem_post(sem_t *semaphore)
{
    static _Atomic(void *) own;
    void *function = atomic_load(&own);
    int (*call)(sem_t *);

    if (function == NULL) {
        function = behind("sem_post");
        atomic_store(&own, function);
    }
    count(__builtin_return_address(0), POST, 0);
    memcpy(&call, &function, sizeof call);
    return call(semaphore);
}

/* ---- at the end ---- */

static struct object {
    char name[128];
    long calls[KINDS], bytes;
} objects[OBJECTS];

static struct object *object_of(void *at)
{
    Dl_info info;
    const char *path = dladdr(at, &info) != 0 && info.dli_fname != NULL ? info.dli_fname : "?";
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    struct object *o = objects;

    while (o < objects + OBJECTS - 1 && o->name[0] != '\0' && strcmp(o->name, name) != 0)
        o++;
    snprintf(o->name, sizeof o->name, "%s", name);
    return o;
}

__attribute__((destructor)) static void write_counts(void)
{
    const char *stem = getenv("GHP_COUNTED");
    char path[PATH_BYTES];
    struct rusage usage;
    FILE *file;

    if (stem == NULL) return;
    for (size_t i = 0; i < SITES; i++) {
        struct object *o;

        if (atomic_load(&sites[i].at) == NULL) continue;
        o = object_of(atomic_load(&sites[i].at));
        for (int k = 0; k < KINDS; k++)
            o->calls[k] += atomic_load(&sites[i].calls[k]);
        o->bytes += atomic_load(&sites[i].bytes);
    }
    snprintf(path, sizeof path, "%s.%ld", stem, (long)getpid());
    file = fopen(path, "w");
    if (file == NULL) return;
    for (struct object *o = objects; o < objects + OBJECTS && o->name[0] != '\0'; o++)
        for (int k = 0; k < KINDS; k++)
            if (o->calls[k] > 0)
                fprintf(file, "%s %s %ld %ld\n", o->name, kind_names[k], o->calls[k],
                        k == ALLOCATION ? o->bytes : 0);
    getrusage(RUSAGE_SELF, &usage);
    fprintf(file, "process sleep %ld 0\n", usage.ru_nvcsw);
    fprintf(file, "process lost %ld 0\n", atomic_load(&lost));
    fclose(file);
}
