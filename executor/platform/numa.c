/* executor/platform/numa.c - see numa.h. */
#include "executor/platform/numa.h"

#include <hwloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    hwloc_topology_t topology; /* NULL: no placement */
    hwloc_nodeset_t nodes;
    hwloc_membind_policy_t policy;
} placement;

void ghp_numa_leave(void)
{
    hwloc_bitmap_free(placement.nodes);
    placement.nodes = NULL;
    if (placement.topology != NULL) hwloc_topology_destroy(placement.topology);
    placement.topology = NULL;
}

/* The nodes of the cores that the process is bound to, false if hwloc knows none. */
static bool find_nodes(void)
{
    hwloc_cpuset_t cores = hwloc_bitmap_alloc();
    bool found = cores != NULL &&
                 hwloc_get_cpubind(placement.topology, cores, HWLOC_CPUBIND_PROCESS) == 0 &&
                 hwloc_cpuset_to_nodeset(placement.topology, cores, placement.nodes) == 0 &&
                 hwloc_bitmap_weight(placement.nodes) >= 1;

    hwloc_bitmap_free(cores);
    return found;
}

static bool open_numa(void)
{
    if (hwloc_topology_init(&placement.topology) != 0) {
        placement.topology = NULL;
        return false;
    }
    placement.nodes = hwloc_bitmap_alloc();
    if (placement.nodes == NULL || hwloc_topology_load(placement.topology) != 0 || !find_nodes())
        return false;
    placement.policy =
        hwloc_bitmap_weight(placement.nodes) == 1 ? HWLOC_MEMBIND_BIND : HWLOC_MEMBIND_INTERLEAVE;
    return true;
}

/* Whether the system takes such wishes, from this process and for these nodes. */
static bool is_granted(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool granted = page != MAP_FAILED && ghp_numa_bind(page, (int64_t)bytes);

    if (page != MAP_FAILED) munmap(page, bytes);
    return granted;
}

bool ghp_numa_choose(char *text, size_t bytes)
{
    char list[64] = "";

    ghp_numa_leave();
    if (!open_numa() || !is_granted()) {
        ghp_numa_leave();
        snprintf(text, bytes, "memory where it is first touched");
        return false;
    }
    hwloc_bitmap_list_snprintf(list, sizeof list, placement.nodes);
    snprintf(text, bytes,
             placement.policy == HWLOC_MEMBIND_BIND ? "memory of node(s) %s"
                                                    : "memory of node(s) %s in turn",
             list);
    return true;
}

bool ghp_numa_bind(void *base, int64_t bytes)
{
    return placement.topology != NULL &&
           hwloc_set_area_membind(placement.topology, base, (size_t)bytes, placement.nodes,
                                  placement.policy, HWLOC_MEMBIND_BYNODESET) == 0;
}
