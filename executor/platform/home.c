/* executor/platform/home.c - see home.h. */
#include "executor/platform/home.h"

#include <hwloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    hwloc_topology_t topology; /* NULL: no home */
    hwloc_nodeset_t nodes;
    hwloc_membind_policy_t policy;
} home;

void ghp_home_leave(void)
{
    hwloc_bitmap_free(home.nodes);
    home.nodes = NULL;
    if (home.topology != NULL) hwloc_topology_destroy(home.topology);
    home.topology = NULL;
}

/* The nodes of the cores that the process is bound to, false where hwloc knows none. */
static bool find_nodes(void)
{
    hwloc_cpuset_t cores = hwloc_bitmap_alloc();
    bool found = cores != NULL &&
                 hwloc_get_cpubind(home.topology, cores, HWLOC_CPUBIND_PROCESS) == 0 &&
                 hwloc_cpuset_to_nodeset(home.topology, cores, home.nodes) == 0 &&
                 hwloc_bitmap_weight(home.nodes) >= 1;

    hwloc_bitmap_free(cores);
    return found;
}

static bool open_home(void)
{
    if (hwloc_topology_init(&home.topology) != 0) {
        home.topology = NULL;
        return false;
    }
    home.nodes = hwloc_bitmap_alloc();
    if (home.nodes == NULL || hwloc_topology_load(home.topology) != 0 || !find_nodes())
        return false;
    home.policy =
        hwloc_bitmap_weight(home.nodes) == 1 ? HWLOC_MEMBIND_BIND : HWLOC_MEMBIND_INTERLEAVE;
    return true;
}

/* Whether the system takes such wishes, from this process and for these nodes. */
static bool is_granted(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool granted = page != MAP_FAILED && ghp_home_take(page, (int64_t)bytes);

    if (page != MAP_FAILED) munmap(page, bytes);
    return granted;
}

bool ghp_home_choose(char *text, size_t bytes)
{
    char list[64] = "";

    ghp_home_leave();
    if (!open_home() || !is_granted()) {
        ghp_home_leave();
        snprintf(text, bytes, "memory where it is first touched");
        return false;
    }
    hwloc_bitmap_list_snprintf(list, sizeof list, home.nodes);
    snprintf(text, bytes,
             home.policy == HWLOC_MEMBIND_BIND ? "memory of node(s) %s"
                                               : "memory of node(s) %s in turn",
             list);
    return true;
}

bool ghp_home_take(void *base, int64_t bytes)
{
    return home.topology != NULL &&
           hwloc_set_area_membind(home.topology, base, (size_t)bytes, home.nodes, home.policy,
                                  HWLOC_MEMBIND_BYNODESET) == 0;
}
