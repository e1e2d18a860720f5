/* executor/platform/binding.c - see binding.h. */
#include "executor/platform/binding.h"

#include "core/base/log.h"
#include "executor/platform/numa.h"
#include "executor/platform/launch.h"
#include "executor/platform/limits.h"

#include <hwloc.h>
#include <stdio.h>
#include <unistd.h>

const char *const ghp_bind_names[GHP_BIND_COUNT + 1] = {"auto", "require", "none", NULL};

/* Objects of which any part may be used. */
static int count_usable(hwloc_topology_t topology, hwloc_obj_type_t type,
                        hwloc_const_bitmap_t usable)
{
    int n = 0;

    for (hwloc_obj_t o = hwloc_get_next_obj_by_type(topology, type, NULL); o != NULL;
         o = hwloc_get_next_obj_by_type(topology, type, o))
        n += hwloc_bitmap_intersects(o->cpuset, usable) != 0;
    return n;
}

struct node { /* as it is for its workers together */
    hwloc_topology_t topology;
    const struct ghp_processors *processors; /* NULL: all of it */
    struct ghp_limits limits;
    struct ghp_processors ours; /* that a worker may be bound to, if `processors` are known */
    int cores; /* as a profile of these workers counts them, less what a limit of processor time takes */
    int usable; /* cores that its workers keep busy, >= 1 */
    bool quota; /* less than there are, by a limit of processor time */
};

/* Cores that this node's workers may use, >= 1. `scratch` is any set. */
static int cores_here(hwloc_topology_t topology, const struct ghp_processors *processors,
                      hwloc_bitmap_t scratch)
{
    int n;

    hwloc_bitmap_zero(scratch);
    for (int pu = 0; processors != NULL && pu < GHP_PROCESSORS_MOST; pu++)
        if (ghp_processors_has(processors, pu)) hwloc_bitmap_set(scratch, (unsigned)pu);
    if (processors == NULL) hwloc_bitmap_fill(scratch);
    hwloc_bitmap_and(scratch, scratch, hwloc_topology_get_allowed_cpuset(topology));
    n = count_usable(topology, HWLOC_OBJ_CORE, scratch);
    if (n < 1) n = count_usable(topology, HWLOC_OBJ_PU, scratch);
    hwloc_bitmap_zero(scratch);
    return n < 1 ? 1 : n;
}

/* What workers may use together; and under mpirun, which binds each of them by itself, also what it may use itself. */
static void find_ours(struct node *node)
{
    struct ghp_processors launchers;

    if (node->processors == NULL) return;
    node->ours = *node->processors;
    if (!ghp_launched() || ghp_launched_allotted()) return;
    launchers = ghp_processors_of(getppid());
    ghp_processors_join(&node->ours, &launchers);
}

static void find_node(struct node *node, hwloc_bitmap_t scratch)
{
    int n = cores_here(node->topology, node->processors, scratch);

    find_ours(node);
    ghp_limits_read("", &node->limits);
    node->usable = ghp_limits_cores(&node->limits, n);
    node->quota = node->usable < n;
    node->cores =
        ghp_launched_allotted() ? n : hwloc_get_nbobjs_by_type(node->topology, HWLOC_OBJ_CORE);
}

static bool is_ours(const struct node *node, int pu)
{
    return hwloc_bitmap_isset(hwloc_topology_get_allowed_cpuset(node->topology), (unsigned)pu) &&
           (node->processors == NULL || ghp_processors_has(&node->ours, pu));
}

/* The place's hardware threads; false (with the reason in binding->text) if this node does not have them. */
static bool find_cores(const struct node *node, const struct ghp_machine *machine,
                       struct ghp_place place, struct ghp_binding *binding, hwloc_bitmap_t set)
{
    if (node->quota) {
        snprintf(binding->text, sizeof binding->text,
                 "not bound: %s leaves processor time of %.3g core(s), on no core in particular",
                 node->limits.cores_by, node->limits.cores);
        return false;
    }
    if (machine->n_pus < place.first_core + place.n_cores) {
        snprintf(binding->text, sizeof binding->text,
                 "not bound: the plan's machine '%s' names no cores", machine->name);
        return false;
    }
    if (node->cores != machine->cores) {
        snprintf(binding->text, sizeof binding->text,
                 "not bound: the plan's machine has %d cores a node, this one %d", machine->cores,
                 node->cores);
        return false;
    }
    for (int i = 0; i < place.n_cores; i++) {
        int pu = machine->pus[place.first_core + i];

        if (!is_ours(node, pu)) {
            snprintf(binding->text, sizeof binding->text,
                     "not bound: processor %d of the plan may not be used here", pu);
            return false;
        }
        hwloc_bitmap_set(set, (unsigned)pu);
    }
    return true;
}

static bool bind_and_check(hwloc_topology_t topology, hwloc_const_bitmap_t set,
                           struct ghp_binding *binding)
{
    hwloc_bitmap_t now = hwloc_bitmap_alloc();
    char list[128] = "", memory[96] = "";
    bool good = now != NULL && hwloc_set_cpubind(topology, set, HWLOC_CPUBIND_PROCESS) == 0 &&
                hwloc_get_cpubind(topology, now, HWLOC_CPUBIND_PROCESS) == 0 &&
                hwloc_bitmap_isequal(now, set);

    hwloc_bitmap_list_snprintf(list, sizeof list, set);
    if (good) ghp_numa_choose(memory, sizeof memory);
    if (good)
        snprintf(binding->text, sizeof binding->text, "bound to processor(s) %s, %s", list, memory);
    else
        snprintf(binding->text, sizeof binding->text,
                 "not bound: the system refused processor(s) %s", list);
    hwloc_bitmap_free(now);
    return good;
}

enum ghp_status ghp_binding_set(const struct ghp_machine *machine,
                                struct ghp_binding_request request, enum ghp_bind_mode mode,
                                struct ghp_binding *binding)
{
    struct ghp_place place = ghp_machine_place(machine, request.workers, request.rank);
    enum ghp_status status = GHP_OK;
    struct node node = {.processors = request.processors};
    hwloc_bitmap_t set = NULL;

    *binding = (struct ghp_binding){.n_cores = 1};
    ghp_numa_leave();
    if (hwloc_topology_init(&node.topology) != 0)
        return GHP_FAIL(GHP_ERR_INTERNAL, "cannot start hwloc; try again with --bind none");
    set = hwloc_bitmap_alloc();
    if (set == NULL || hwloc_topology_load(node.topology) != 0)
        GHP_TRY_GOTO(status,
                     GHP_FAIL(GHP_ERR_INTERNAL,
                              "hwloc cannot read this machine; try again with --bind none"),
                     done);
    find_node(&node, set);
    if (mode == GHP_BIND_NONE)
        snprintf(binding->text, sizeof binding->text, "not bound, as asked for");
    else
        binding->bound = find_cores(&node, machine, place, binding, set) &&
                         bind_and_check(node.topology, set, binding);
    binding->n_cores = binding->bound                   ? place.n_cores
                       : node.usable / request.here > 0 ? node.usable / request.here
                                                        : 1;
    binding->oversubscribed = binding->bound ? place.oversubscribed : request.here > node.usable;
    if (mode == GHP_BIND_REQUIRE && !binding->bound)
        status =
            GHP_FAIL(GHP_ERR_INPUT, "%s; plan with a profile of this machine, or give --bind auto",
                     binding->text);
done:
    hwloc_bitmap_free(set);
    hwloc_topology_destroy(node.topology);
    return status;
}

void ghp_binding_check_threads(int threads, int n_cores)
{
    if (threads > n_cores)
        ghp_warn("a worker has %d threads on %d core(s): they take turns, and a step may take many "
                 "times as long; give --threads %d",
                 threads, n_cores, n_cores);
}
