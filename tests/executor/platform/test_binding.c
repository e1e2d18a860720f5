/* Binding to the cores a machine names, read back from the kernel; machines that are not this one are left alone. */
#include "executor/platform/binding.h"
#include "executor/platform/memory.h"
#include "tests/check.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/* First processor that this process may use. */
static int first_allowed(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET((size_t)i, &set)) return i;
    return 0;
}

static void check_binding(void)
{
    int pu = first_allowed(), cores;
    struct ghp_machine machine = {.name = (char[]){"here"},
                                  .nodes = 1,
                                  .packages = 1,
                                  .cores = 1,
                                  .threads = 1,
                                  .n_pus = 1,
                                  .pus = &pu};
    struct ghp_binding_request request = {.workers = 1, .rank = 0, .here = 1};
    struct ghp_binding binding;
    cpu_set_t set;

    CHECK_STATUS(ghp_binding_set(&machine, request, GHP_BIND_NONE, &binding), GHP_OK);
    CHECK(!binding.bound && binding.n_cores >= 1);
    cores = binding.n_cores;
    machine.cores = machine.threads = cores + 1; /* another machine */
    CHECK_STATUS(ghp_binding_set(&machine, request, GHP_BIND_AUTO, &binding), GHP_OK);
    CHECK(!binding.bound);
    CHECK_STATUS(ghp_binding_set(&machine, request, GHP_BIND_REQUIRE, &binding), GHP_ERR_INPUT);
    CHECK_MESSAGE("not bound");
    if (cores != 1)
        return; /* binding itself is checked where the whole machine is one core, and by the tool's test */
    machine.cores = machine.threads = 1;
    CHECK_STATUS(ghp_binding_set(&machine, request, GHP_BIND_REQUIRE, &binding), GHP_OK);
    CHECK(binding.bound);
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    CHECK(CPU_COUNT(&set) == 1 && CPU_ISSET((size_t)pu, &set));
}

static void check_memory(void)
{
    enum { BYTES = 32 << 20 };
    struct ghp_memory memory;
    char *block;

    ghp_memory_begin(&memory);
    block = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!CHECK(block != MAP_FAILED)) return;
    memset(block, 1, BYTES);
    munmap(block, BYTES);
    CHECK_NEAR(ghp_memory_over_base(&memory), BYTES,
               0.05 * BYTES); /* the peak, though all is given back */
}

CHECK_TEST(binding)
{
#if defined(__SANITIZE_ADDRESS__)
    (void)check_memory; /* the sanitizer's own memory counts too */
#else
    check_memory();
#endif
    check_binding();
    return check_end();
}
