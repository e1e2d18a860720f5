/* The NUMA placement of a process: an arena's pages are wished for, and come, from the nodes of its cores, as the
 * system says when it is asked; without a placement, after leaving it and under --bind none nothing is wished for; if
 * the system refuses, there is none. Nodes that this machine lacks come from hwloc's synthetic machines. */
#include "executor/engine/arena.h"
#include "executor/platform/binding.h"
#include "executor/platform/numa.h"
#include "tests/check.h"

#include <hwloc.h>
#include <stdlib.h>

enum { ARENA_BYTES = (8 << 20) + 4096 };

static hwloc_topology_t machine; /* as it is */
static hwloc_bitmap_t cores;     /* that this process may use */

/* What the system says of an arena's memory that is opened now. */
static hwloc_membind_policy_t policy_of_arena(hwloc_bitmap_t nodes, hwloc_bitmap_t places)
{
    const struct ghp_program program = {.peak_bytes = ARENA_BYTES};
    hwloc_membind_policy_t policy = HWLOC_MEMBIND_MIXED;
    struct ghp_arena arena;

    CHECK_STATUS(ghp_arena_open((struct ghp_device){0}, &program, NULL, NULL, &arena), GHP_OK);
    CHECK(hwloc_get_area_membind(machine, arena.base, ARENA_BYTES, nodes, &policy,
                                 HWLOC_MEMBIND_BYNODESET) == 0);
    CHECK(hwloc_get_area_memlocation(machine, arena.base, ARENA_BYTES, places,
                                     HWLOC_MEMBIND_BYNODESET) == 0);
    ghp_arena_close(&arena);
    return policy;
}

static hwloc_membind_policy_t usual_policy(void)
{
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc(), places = hwloc_bitmap_alloc();
    hwloc_membind_policy_t policy = policy_of_arena(nodes, places);

    hwloc_bitmap_free(places);
    hwloc_bitmap_free(nodes);
    return policy;
}

static void check_taken(hwloc_membind_policy_t usual)
{
    hwloc_bitmap_t wanted = hwloc_bitmap_alloc(), nodes = hwloc_bitmap_alloc(),
                   places = hwloc_bitmap_alloc();
    char text[64] = "";

    hwloc_cpuset_to_nodeset(machine, cores, wanted);
    CHECK(ghp_numa_choose(text, sizeof text));
    CHECK(strncmp(text, "memory of node(s) ", 18) == 0);
    CHECK_EQ(policy_of_arena(nodes, places),
             hwloc_bitmap_weight(wanted) == 1 ? HWLOC_MEMBIND_BIND : HWLOC_MEMBIND_INTERLEAVE);
    CHECK(hwloc_bitmap_isequal(nodes, wanted));
    CHECK(hwloc_bitmap_isincluded(places, wanted));
    ghp_numa_leave();
    CHECK_EQ(usual_policy(), usual);
    hwloc_bitmap_free(places);
    hwloc_bitmap_free(nodes);
    hwloc_bitmap_free(wanted);
}

/* hwloc sees `synthetic` in place of this machine and asks the system all the same. */
static bool choose_on(const char *synthetic, char text[64])
{
    bool chosen;

    setenv("HWLOC_SYNTHETIC", synthetic, 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    chosen = ghp_numa_choose(text, 64);
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_THISSYSTEM");
    return chosen;
}

/* One processor a node: the last processor's node is not there. */
static void check_refused(hwloc_membind_policy_t usual)
{
    hwloc_bitmap_t last = hwloc_bitmap_alloc();
    int pu = hwloc_bitmap_last(cores);
    char synthetic[64], text[64] = "";

    snprintf(synthetic, sizeof synthetic, "numa:%d core:1 pu:1", pu + 1);
    hwloc_bitmap_only(last, (unsigned)pu);
    CHECK(hwloc_set_cpubind(machine, last, HWLOC_CPUBIND_PROCESS) == 0);
    CHECK(!choose_on(synthetic, text));
    CHECK_TEXT(text, "memory where it is first touched");
    CHECK_EQ(usual_policy(), usual);
    CHECK(hwloc_set_cpubind(machine, cores, HWLOC_CPUBIND_PROCESS) == 0);
}

/* Processors of several nodes: from each in turn (the system leaves out those that are not there). */
static void check_turns(void)
{
    char synthetic[64], text[64] = "", expected[64];
    int last = hwloc_bitmap_last(cores);

    snprintf(synthetic, sizeof synthetic, "numa:%d core:1 pu:1", last + 1);
    snprintf(expected, sizeof expected, "memory of node(s) 0-%d in turn", last);
    CHECK(choose_on(synthetic, text));
    CHECK_TEXT(text, expected);
    CHECK_EQ(usual_policy(), HWLOC_MEMBIND_INTERLEAVE);
    ghp_numa_leave();
}

static void check_unbound(hwloc_membind_policy_t usual)
{
    struct ghp_machine none = {
        .name = (char[]){"none"}, .nodes = 1, .packages = 1, .cores = 1, .threads = 1};
    struct ghp_binding binding;
    char text[64];

    CHECK(ghp_numa_choose(text, sizeof text));
    CHECK_STATUS(ghp_binding_set(&none, (struct ghp_binding_request){.workers = 1, .here = 1},
                                 GHP_BIND_NONE, &binding),
                 GHP_OK);
    CHECK_EQ(usual_policy(), usual);
}

CHECK_TEST(numa)
{
    char page[1], text[64];
    hwloc_membind_policy_t usual;
    int nodes, pus;

    CHECK(!ghp_numa_bind(page, sizeof page)); /* nobody chose a placement */
    CHECK(hwloc_topology_init(&machine) == 0 && hwloc_topology_load(machine) == 0);
    cores = hwloc_bitmap_alloc();
    CHECK(hwloc_get_cpubind(machine, cores, HWLOC_CPUBIND_PROCESS) == 0);
    if (!ghp_numa_choose(text, sizeof text)) {
        if (!CHECK_TEXT(text, "memory where it is first touched")) return check_end();
        SKIP("the system binds no memory for this process");
    }
    ghp_numa_leave();
    usual = usual_policy();
    CHECK(usual != HWLOC_MEMBIND_BIND && usual != HWLOC_MEMBIND_INTERLEAVE);
    nodes = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_NUMANODE);
    pus = hwloc_bitmap_weight(cores);
    check_taken(usual);
    check_unbound(usual);
    if (nodes == 1 && hwloc_bitmap_last(cores) >= 1) check_refused(usual);
    if (nodes == 1 && pus >= 2 && hwloc_bitmap_last(cores) == pus - 1) check_turns();
    hwloc_bitmap_free(cores);
    hwloc_topology_destroy(machine);
    return check_end();
}
