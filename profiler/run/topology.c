/* profiler/run/topology.c - one node as hwloc sees it. */
#include "profiler/run/topology.h"

#include <errno.h>
#include <hwloc.h>
#include <hwloc/distances.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Points the topology at its source; *of_file says that it is an XML file. */
static enum ghp_status set_source(hwloc_topology_t topology, const char *source, bool *of_file)
{
    struct stat info;

    *of_file = false;
    if (source == NULL || source[0] == '\0') return GHP_OK;
    if (stat(source, &info) == 0) {
        *of_file = true;
        if (!S_ISREG(info.st_mode))
            return GHP_FAIL(GHP_ERR_IO,
                            "cannot read topology '%s': not a regular file; give an XML file as "
                            "'lstopo --of xml FILE' writes it",
                            source);
        if (hwloc_topology_set_xml(topology, source) != 0)
            return GHP_FAIL(GHP_ERR_IO,
                            "cannot read topology '%s': not XML of hwloc; make it with "
                            "'lstopo --of xml FILE'",
                            source);
        return GHP_OK;
    }
    if (hwloc_topology_set_synthetic(topology, source) != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "cannot use topology '%s': neither a file that exists nor a synthetic "
                        "description; give an XML file or something like 'package:2 core:8 pu:2'",
                        source);
    return GHP_OK;
}

/* The processor's name, else what the topology was made from. */
static const char *node_name(hwloc_topology_t topology, const char *source)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    hwloc_obj_t root = hwloc_get_root_obj(topology);
    const char *name = package != NULL ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;

    if (name == NULL) name = hwloc_obj_get_info_by_name(root, "CPUModel");
    if (name == NULL && source != NULL && source[0] != '\0') name = source;
    return name != NULL ? name : "this machine";
}

/* The operating-system index of the first hardware thread of each core. */
static enum ghp_status read_cores(hwloc_topology_t topology, struct ghp_machine *machine)
{
    int n_pus = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    int n_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    hwloc_obj_type_t unit = n_cores > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;

    if (n_cores <= 0) n_cores = n_pus;
    if (n_cores <= 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "cannot use topology '%s': it has no hardware threads; add "
                        "'core:N pu:1'",
                        machine->name);
    machine->packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
    if (machine->packages < 1) machine->packages = 1;
    machine->cores = n_cores;
    machine->threads = n_pus;
    machine->pus = ghp_alloc((size_t)n_cores, sizeof *machine->pus);
    if (machine->pus == NULL) return GHP_NO_MEMORY();
    machine->n_pus = n_cores;
    for (int i = 0; i < n_cores; i++) {
        hwloc_obj_t core = hwloc_get_obj_by_type(topology, unit, (unsigned)i);
        hwloc_obj_t pu =
            hwloc_get_obj_inside_cpuset_by_type(topology, core->cpuset, HWLOC_OBJ_PU, 0);

        if (pu == NULL)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "cannot use topology '%s': core %d has no hardware "
                            "thread; add 'pu:1' below it",
                            machine->name, i);
        machine->pus[i] = (int)pu->os_index;
    }
    return GHP_OK;
}

/* Bytes of one node. A virtual machine may have memory that belongs to none of hwloc's nodes: the system's own count
 * tells; a synthetic description mostly says nothing of memory, and hwloc then invents a number. */
static int64_t memory_of(hwloc_topology_t topology, const char *source, bool of_file)
{
    int64_t bytes = (int64_t)hwloc_get_root_obj(topology)->total_memory;
    bool here = source == NULL || source[0] == '\0';
    int64_t counted = here ? (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) : 0;

    if (!here && !of_file && strstr(source, "memory=") == NULL) return GHP_TOPOLOGY_MEMORY_BYTES;
    return counted > bytes ? counted : bytes;
}

/* ---- GPUs ---- */

enum { NVIDIA = 0x10de, DISPLAY_CLASS = 0x03 };

/* What stands for a GPU here: CUDA's own objects, which know the memory, else NVML's, else display controllers of
 * NVIDIA on the PCI bus. */
enum gpu_kind { GPU_CUDA, GPU_NVML, GPU_PCI, GPU_KINDS };

static bool is_gpu(hwloc_obj_t object, enum gpu_kind kind)
{
    const char *subtype = object->subtype != NULL ? object->subtype : "";

    if (kind == GPU_PCI)
        return object->type == HWLOC_OBJ_PCI_DEVICE && object->attr->pcidev.vendor_id == NVIDIA &&
               object->attr->pcidev.class_id >> 8 == DISPLAY_CLASS;
    return object->type == HWLOC_OBJ_OS_DEVICE &&
           strcmp(subtype, kind == GPU_CUDA ? "CUDA" : "NVML") == 0;
}

static hwloc_obj_t next_object(hwloc_topology_t topology, enum gpu_kind kind, hwloc_obj_t before)
{
    return kind == GPU_PCI ? hwloc_get_next_pcidev(topology, before)
                           : hwloc_get_next_osdev(topology, before);
}

/* Infos of the object or, for PCI's own, of the device that it belongs to. */
static const char *info_of(hwloc_obj_t object, const char *name)
{
    const char *value = hwloc_obj_get_info_by_name(object, name);

    return value == NULL && object->parent != NULL
               ? hwloc_obj_get_info_by_name(object->parent, name)
               : value;
}

static const char *gpu_name(hwloc_obj_t object)
{
    const char *name = info_of(object, "GPUModel");

    if (name == NULL) name = info_of(object, "PCIDevice");
    return name != NULL ? name : "NVIDIA GPU";
}

/* The rate of the PCI device that the object is or belongs to [bytes/s]. */
static double pcie_rate(hwloc_obj_t object)
{
    while (object != NULL && object->type != HWLOC_OBJ_PCI_DEVICE)
        object = object->parent;
    return object != NULL ? 1e9 * (double)object->attr->pcidev.linkspeed : 0;
}

/* The least rate between two GPUs that are linked directly [bytes/s]; hwloc counts in MB/s. */
static double nvlink_rate(hwloc_topology_t topology)
{
    struct hwloc_distances_s *distances = NULL;
    unsigned n = 1;
    double least = 0;

    if (hwloc_distances_get_by_name(topology, "NVLinkBandwidth", &n, &distances, 0) != 0 || n == 0)
        return 0;
    for (unsigned i = 0; i < distances->nbobjs; i++)
        for (unsigned j = 0; j < distances->nbobjs; j++) {
            double rate = 1e6 * (double)distances->values[i * distances->nbobjs + j];

            if (i != j && rate > 0 && (least <= 0 || rate < least)) least = rate;
        }
    hwloc_distances_release(topology, distances);
    return least;
}

static enum ghp_status read_gpus(hwloc_topology_t topology, struct ghp_gpus *gpus)
{
    for (int kind = 0; kind < GPU_KINDS && gpus->count == 0; kind++) {
        hwloc_obj_t object = NULL;

        while ((object = next_object(topology, (enum gpu_kind)kind, object)) != NULL) {
            const char *memory;

            if (!is_gpu(object, (enum gpu_kind)kind) || gpus->count++ > 0) continue;
            memory = info_of(object, "CUDAGlobalMemorySize"); /* KiB */
            gpus->memory_bytes = memory != NULL ? 1024 * strtoll(memory, NULL, 10) : 0;
            gpus->pcie_Bps = pcie_rate(object);
            gpus->name = strdup(gpu_name(object));
            if (gpus->name == NULL) return GHP_NO_MEMORY();
        }
    }
    if (gpus->count > 0) gpus->nvlink_Bps = nvlink_rate(topology);
    return GHP_OK;
}

/* ---- network cards ---- */

enum { NETWORK_CLASS = 0x02, MOST_CARDS = 64 };

static bool is_card(hwloc_obj_t object)
{
    return object->attr->pcidev.class_id >> 8 == NETWORK_CLASS;
}

/* Cards of at least half of the fastest one's rate: others are for the node's administration.
 *
 * Returns   how many, MOST_CARDS at most */
static int find_cards(hwloc_topology_t topology, hwloc_obj_t cards[MOST_CARDS])
{
    float fastest = 0;
    int n = 0;

    for (hwloc_obj_t at = NULL; (at = hwloc_get_next_pcidev(topology, at)) != NULL;)
        if (is_card(at) && at->attr->pcidev.linkspeed > fastest)
            fastest = at->attr->pcidev.linkspeed;
    for (hwloc_obj_t at = NULL; (at = hwloc_get_next_pcidev(topology, at)) != NULL;)
        if (is_card(at) && 2 * at->attr->pcidev.linkspeed >= fastest && n < MOST_CARDS)
            cards[n++] = at;
    return n;
}

/* Objects from the GPU up to the first that has the card below it too. */
static int distance_of(hwloc_obj_t gpu, hwloc_obj_t card)
{
    int steps = 0;

    for (; gpu != NULL; gpu = gpu->parent, steps++)
        for (hwloc_obj_t above = card; above != NULL; above = above->parent)
            if (above == gpu) return steps;
    return steps;
}

/* The card near a GPU; GPUs that have several equally near take them in turns. */
static int nearest(hwloc_obj_t gpu, int number, hwloc_obj_t *cards, int n)
{
    int near[MOST_CARDS], least = INT_MAX, ties = 0;

    for (int c = 0; c < n; c++) {
        int distance = distance_of(gpu, cards[c]);

        if (distance < least) ties = 0;
        if (distance <= least) near[ties++] = c;
        if (distance < least) least = distance;
    }
    return near[number % ties];
}

/* Cards that are the nearest of some GPU. */
static int count_near_cards(hwloc_topology_t topology)
{
    hwloc_obj_t cards[MOST_CARDS];
    bool near[MOST_CARDS] = {false};
    int n = find_cards(topology, cards), gpus = 0, count = 0;

    for (int kind = 0; kind < GPU_KINDS && n > 0 && gpus == 0; kind++) {
        hwloc_obj_t object = NULL;

        while ((object = next_object(topology, (enum gpu_kind)kind, object)) != NULL)
            if (is_gpu(object, (enum gpu_kind)kind)) near[nearest(object, gpus++, cards, n)] = true;
    }
    for (int c = 0; c < n; c++)
        count += near[c];
    return count;
}

/* ---- what of it is left to this process ---- */

static void keep_cores(struct ghp_machine *machine, int n)
{
    machine->threads = machine->threads * n / machine->cores; /* as many a core as before */
    machine->cores = machine->n_pus = n;
    if (machine->packages > n) machine->packages = n;
}

/* Leaves of a machine's cores those whose processors a batch system allotted this node's workers; all if none is
 * among them. */
static void allot(const struct ghp_processors *processors, struct ghp_machine *machine)
{
    int n = 0;

    for (int i = 0; i < machine->n_pus; i++)
        if (ghp_processors_has(processors, machine->pus[i])) machine->pus[n++] = machine->pus[i];
    if (n > 0) keep_cores(machine, n);
}

/* Leaves of a machine's cores and memory what a container does: of processor time the first cores, as none in
 * particular is meant. */
static void limit(const struct ghp_limits *limits, struct ghp_machine *machine)
{
    int n = ghp_limits_cores(limits, machine->cores);

    if (n < machine->cores) keep_cores(machine, n);
    if (limits->memory_bytes > 0 && limits->memory_bytes < machine->memory_bytes)
        machine->memory_bytes = limits->memory_bytes;
}

static enum ghp_status read_node(hwloc_topology_t topology, const char *source,
                                 struct ghp_machine *machine)
{
    bool of_file = false;

    GHP_TRY(set_source(topology, source, &of_file));
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT); /* GPUs */
    if (hwloc_topology_load(topology) != 0) {
        if (of_file)
            return GHP_FAIL(GHP_ERR_IO,
                            "cannot read topology '%s': not XML of hwloc; make it with "
                            "'lstopo --of xml FILE'",
                            source);
        return GHP_FAIL(GHP_ERR_INPUT,
                        "cannot read the topology of '%s': %s; describe it with "
                        "--hwloc 'core:N pu:1'",
                        source != NULL ? source : "this machine", strerror(errno));
    }
    machine->name = strdup(node_name(topology, source));
    if (machine->name == NULL) return GHP_NO_MEMORY();
    GHP_TRY(read_cores(topology, machine));
    machine->memory_bytes = memory_of(topology, source, of_file);
    machine->gpus.cards = count_near_cards(topology);
    return read_gpus(topology, &machine->gpus);
}

enum ghp_status ghp_topology_read(const char *source, int nodes, struct ghp_machine *machine)
{
    hwloc_topology_t topology = NULL;
    enum ghp_status status = GHP_OK;

    memset(machine, 0, sizeof *machine);
    machine->nodes = nodes;
    if (hwloc_topology_init(&topology) != 0) return GHP_NO_MEMORY();
    status = read_node(topology, source, machine);
    hwloc_topology_destroy(topology);
    if (status != GHP_OK) ghp_machine_release(machine);
    return status;
}

enum ghp_status ghp_topology_read_here(const struct ghp_processors *processors, int nodes,
                                       struct ghp_machine *machine)
{
    struct ghp_limits limits;

    GHP_TRY(ghp_topology_read(NULL, nodes, machine));
    if (processors != NULL) allot(processors, machine);
    ghp_limits_read("", &limits);
    limit(&limits, machine);
    return GHP_OK;
}

/* The bytes of a cache that each worker has, if the workers are spread evenly over the machine. */
static int64_t bytes_each(hwloc_topology_t topology, hwloc_obj_t cache, int workers)
{
    int all = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    int under = hwloc_get_nbobjs_inside_cpuset_by_type(topology, cache->cpuset, HWLOC_OBJ_PU);
    int sharing = all > 0 ? (int)((int64_t)workers * under / all) : 1;

    return (int64_t)cache->attr->cache.size / (sharing > 1 ? sharing : 1);
}

int64_t ghp_topology_cache_bytes(int workers)
{
    hwloc_topology_t topology = NULL;
    int64_t bytes = 0;

    if (hwloc_topology_init(&topology) != 0) return 0;
    if (hwloc_topology_load(topology) == 0) {
        hwloc_obj_t above = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, 0);

        for (; above != NULL; above = above->parent) {
            bool cache = hwloc_obj_type_is_dcache(above->type);
            int64_t each = cache ? bytes_each(topology, above, workers) : 0;

            if (each > bytes) bytes = each;
        }
    }
    hwloc_topology_destroy(topology);
    return bytes;
}
