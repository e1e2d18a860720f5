/* ghp-test: np=1 timeout=120
 *
 * tests/executor/engine/test_allocations.c - steps allocate nothing: every tensor lies in the arena. The reference
 * backend's steps do not allocate at all; oneDNN makes small tables of arguments for each primitive, and its matrix
 * product (gemm) room for packed parts of its operands: of its other primitives' no allocation is as large as a tensor.
 *
 * The program's own malloc and its kin stand before the C library's and count while they are told to. */
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <errno.h>
#include <stdatomic.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

enum { TENSOR_BYTES = 16 << 10, WARM_STEPS = 2, COUNTED_STEPS = 2, PACKED = 2 };

static atomic_bool counting;
static atomic_long allocations, large;

#if !defined(SANITIZED) && defined(__GLIBC__)
#define COUNTS 1
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static void count(size_t size)
{
    if (!atomic_load(&counting)) return;
    atomic_fetch_add(&allocations, 1);
    if (size >= TENSOR_BYTES) atomic_fetch_add(&large, 1);
}

void *malloc(size_t size)
{
    count(size);
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count(n * size);
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    count(size);
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    count(size);
    return __libc_memalign(align, size);
}

int posix_memalign(void **block, size_t align, size_t size)
{
    count(size);
    *block = __libc_memalign(align, size);
    return *block == NULL ? ENOMEM : 0;
}
#endif

static struct ghp_transport *transport;

/* Passes of a step by the library's matrix product. */
static int products(struct bench *b, struct ghp_worker *worker)
{
    const struct ghp_program *program = ghp_worker_program(worker);
    int n = 0;

    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        struct ghp_kernel *kernel = NULL;

        if (instr->kind != GHP_INSTR_COMPUTE) continue;
        CHECK_STATUS(b->exec.backend_ops->prepare(b->backend, &instr->local, instr->pass, &kernel),
                     GHP_OK);
        n += strstr(b->exec.backend_ops->algorithm(kernel), "gemm") != NULL;
        b->exec.backend_ops->release(kernel);
    }
    return n;
}

static void count_steps(const char *model, const char *backend)
{
    struct bench b;
    struct ghp_worker *worker = NULL;

    CHECK_STATUS(bench_open(&b, transport, model, backend, 4), GHP_OK);
    struct ghp_split *splits = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    CHECK_STATUS(bench_worker(&b, splits, &worker), GHP_OK);
    atomic_store(&allocations, 0);
    atomic_store(&large, 0);
    for (int t = 0; t < WARM_STEPS + COUNTED_STEPS; t++) {
        struct ghp_step step = ghp_training_config_step(&b.training_config, t);

        atomic_store(&counting, t >= WARM_STEPS);
        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
        atomic_store(&counting, false);
    }
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
    fprintf(stderr, "%s: %ld allocations in %d steps, %ld of them of %d bytes and more\n", backend,
            atomic_load(&allocations), COUNTED_STEPS, atomic_load(&large), TENSOR_BYTES);
    CHECK(atomic_load(&large) <= COUNTED_STEPS * PACKED * products(&b, worker));
    if (strcmp(backend, "reference") == 0) CHECK_EQ(atomic_load(&allocations), 0);
    ghp_worker_close(worker);
    free(splits);
    bench_close(&b);
}

/* That the counter counts. */
static void check_counter(void)
{
    atomic_store(&counting, true);
    void *volatile block = malloc(TENSOR_BYTES);
    atomic_store(&counting, false);
    free(block);
    CHECK_EQ(atomic_load(&allocations), 1);
    CHECK_EQ(atomic_load(&large), 1);
}

int main(int argc, char **argv)
{
#ifndef COUNTS
    SKIP("allocations are counted by the C library's own names, which this build does not have");
#endif
    check_counter();
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    count_steps(GHP_SOURCE_DIR "/models/lenet5.json", "reference");
    count_steps(GHP_SOURCE_DIR "/models/lenet5.json", "onednn");
    count_steps(GHP_SOURCE_DIR "/models/small-resnet.json", "reference");
    count_steps(GHP_SOURCE_DIR "/models/small-resnet.json", "onednn");
    ghp_transport_end(transport);
    return check_end();
}
