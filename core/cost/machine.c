/* core/cost/machine.c - the machine file, and which worker runs on which node and cores.
 *
 * Reads no hardware (profiler/ does, through hwloc). The analytic model of collectives over the links is in
 * profile_comm.c. */
#include "core/cost/machine.h"

#include "core/base/embed.h"
#include "core/base/json_lines.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "ghp.machine/2"

enum { MAX_NODES = 1 << 20, MAX_CORES = 1 << 16 };

static json_t *link_json(const struct ghp_link *link)
{
    json_t *json =
        json_pack("{s:f, s:f}", "latency_s", link->latency_s, "bandwidth_Bps", link->bandwidth_Bps);

    if (json == NULL || !(link->asymptotic_Bps > 0) ||
        json_object_set_new(json, "asymptotic_Bps", json_real(link->asymptotic_Bps)) == 0)
        return json;
    json_decref(json);
    return NULL;
}

static bool has_peak(const struct ghp_peak *peak)
{
    bool has = peak->memory_Bps > 0 || peak->fp16_flops_per_s > 0;

    for (int p = 0; p < GHP_PRECISIONS; p++)
        has |= peak->flops_per_s[p] > 0;
    return has;
}

/* NVLinks from a GPU to the members of a group, a bit each. */
static int count_links(const struct ghp_gpus *gpus, int gpu, unsigned members)
{
    int n = 0;

    for (int b = 0; b < GHP_MESH_GPUS; b++)
        n += (members >> b & 1) != 0 ? gpus->nvlinks[gpu][b] : 0;
    return n;
}

bool ghp_gpus_are_mesh(const struct ghp_gpus *gpus)
{
    return count_links(gpus, 0, ~0u) > 0;
}

double ghp_gpus_fraction(const struct ghp_gpus *gpus, unsigned members)
{
    int all = 0, least = INT_MAX;

    if (!ghp_gpus_are_mesh(gpus)) return 1;
    for (int a = 0; a < GHP_MESH_GPUS; a++) {
        int of_all = count_links(gpus, a, ~0u), inside = count_links(gpus, a, members);

        if (of_all > all) all = of_all;
        if ((members >> a & 1) != 0 && inside < least) least = inside;
    }
    if (all == 0 || least == INT_MAX) return 1;
    return least > 0 ? (double)least / all : gpus->pcie_Bps / gpus->nvlink_Bps;
}

/* Puts the NVLinks if they are a mesh. */
static void put_nvlinks(json_t *object, const struct ghp_gpus *gpus, bool *failed)
{
    json_t *rows;

    if (!ghp_gpus_are_mesh(gpus)) return;
    rows = json_array();
    for (int a = 0; a < gpus->count; a++) {
        json_t *row = json_array();

        for (int b = 0; b < gpus->count; b++)
            ghp_json_append(row, json_integer(gpus->nvlinks[a][b]), failed);
        ghp_json_append(rows, row, failed);
    }
    ghp_json_put(object, "nvlinks", rows, failed);
}

/* Puts the GPUs, if there are any. */
static void put_gpus(json_t *root, const struct ghp_gpus *gpus, bool *failed)
{
    json_t *object;

    if (gpus->count == 0) return;
    object = json_pack("{s:i, s:s, s:I, s:f, s:f}", "count", gpus->count, "name",
                       gpus->name != NULL ? gpus->name : "", "memory_bytes",
                       (json_int_t)gpus->memory_bytes, "nvlink_Bps", gpus->nvlink_Bps, "pcie_Bps",
                       gpus->pcie_Bps);
    if (gpus->nvls > 0) ghp_json_put(object, "nvls", json_real(gpus->nvls), failed);
    if (gpus->cards > 0) ghp_json_put(object, "cards", json_integer(gpus->cards), failed);
    put_nvlinks(object, gpus, failed);
    ghp_json_put(root, "gpus", object, failed);
}

static void put_peak(json_t *root, const struct ghp_peak *peak, bool *failed)
{
    json_t *object;

    if (!has_peak(peak)) return;
    object = json_object();
    if (peak->memory_Bps > 0)
        ghp_json_put(object, "memory_Bps", json_real(peak->memory_Bps), failed);
    for (int p = 0; p < GHP_PRECISIONS; p++)
        if (peak->flops_per_s[p] > 0)
            ghp_json_put(object, ghp_precision_names[p], json_real(peak->flops_per_s[p]), failed);
    if (peak->fp16_flops_per_s > 0)
        ghp_json_put(object, "fp16", json_real(peak->fp16_flops_per_s), failed);
    ghp_json_put(root, "peak", object, failed);
}

json_t *ghp_machine_json(const struct ghp_machine *machine)
{
    json_t *pus = json_array(), *root;
    bool failed = false;

    root = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:I}", "format", FORMAT, "name",
                     machine->name != NULL ? machine->name : "", "nodes", machine->nodes,
                     "packages", machine->packages, "cores", machine->cores, "threads",
                     machine->threads, "memory_bytes", (json_int_t)machine->memory_bytes);
    for (int i = 0; i < machine->n_pus; i++)
        ghp_json_append(pus, json_integer(machine->pus[i]), &failed);
    ghp_json_put(root, "pu_indices", pus, &failed);
    put_gpus(root, &machine->gpus, &failed);
    put_peak(root, &machine->peak, &failed);
    ghp_json_put(root, "intra", link_json(&machine->intra), &failed);
    ghp_json_put(root, "inter", link_json(&machine->inter), &failed);
    if (machine->sources != NULL)
        ghp_json_put(root, "sources", json_incref(machine->sources), &failed);
    if (!failed) return root;
    json_decref(root);
    return NULL;
}

enum ghp_status ghp_link_read(const struct ghp_node *at, struct ghp_link *link)
{
    GHP_TRY(ghp_json_real(at, "latency_s", 0, 1e6, &link->latency_s));
    link->asymptotic_Bps = 0;
    GHP_TRY(ghp_json_opt_real(at, "asymptotic_Bps", 0, 1e18, &link->asymptotic_Bps));
    return ghp_json_real(at, "bandwidth_Bps", 0, 1e18, &link->bandwidth_Bps);
}

static enum ghp_status read_link(const struct ghp_node *at, const char *key, struct ghp_link *link)
{
    static const char *const keys[] = {"latency_s", "bandwidth_Bps", "asymptotic_Bps", NULL};
    struct ghp_node node;

    GHP_TRY(ghp_json_get(at, key, &node));
    GHP_TRY(ghp_json_only_keys(&node, keys));
    return ghp_link_read(&node, link);
}

/* A whole number that fits int. */
static enum ghp_status read_count(const struct ghp_node *at, const char *key, int min, int max,
                                  int *out)
{
    int64_t value = 0;

    GHP_TRY(ghp_json_int(at, key, min, max, &value));
    *out = (int)value;
    return GHP_OK;
}

static enum ghp_status read_pus(const struct ghp_node *at, struct ghp_machine *machine)
{
    struct ghp_node array, item;
    size_t n;

    GHP_TRY(ghp_json_array(at, "pu_indices", &array, &n));
    if (n != (size_t)machine->cores)
        return ghp_json_fail(&array, GHP_ERR_INPUT,
                             "there are %zu numbers, but %d cores; give one for each core", n,
                             machine->cores);
    machine->pus = ghp_alloc(n, sizeof *machine->pus);
    if (machine->pus == NULL) return GHP_NO_MEMORY();
    machine->n_pus = (int)n;
    for (size_t i = 0; i < n; i++) {
        json_int_t value;

        GHP_TRY(ghp_json_item(&array, i, &item));
        value = json_integer_value(item.value);
        if (!json_is_integer(item.value) || value < 0 || value > MAX_CORES)
            return ghp_json_fail(&item, GHP_ERR_INPUT,
                                 "this is not a processor number; use a whole number from 0 to %d",
                                 MAX_CORES);
        machine->pus[i] = (int)value;
    }
    return GHP_OK;
}

/* One number of NVLinks for each pair of GPUs, the same both ways. */
static enum ghp_status read_nvlinks(const struct ghp_node *at, struct ghp_gpus *gpus)
{
    struct ghp_node rows, row, item;
    size_t n;

    if (!ghp_json_has(at, "nvlinks")) return GHP_OK;
    GHP_TRY(ghp_json_array(at, "nvlinks", &rows, &n));
    if (n != (size_t)gpus->count || n > GHP_MESH_GPUS)
        return ghp_json_fail(&rows, GHP_ERR_INPUT,
                             "there are %zu rows, but %d GPUs; give a row for each of at most %d",
                             n, gpus->count, GHP_MESH_GPUS);
    for (size_t a = 0; a < n; a++) {
        GHP_TRY(ghp_json_item(&rows, a, &row));
        if (json_array_size(row.value) != n)
            return ghp_json_fail(&row, GHP_ERR_INPUT, "this is not a row of %zu numbers", n);
        for (size_t b = 0; b < n; b++) {
            GHP_TRY(ghp_json_item(&row, b, &item));
            gpus->nvlinks[a][b] = (unsigned char)json_integer_value(item.value);
            if (json_is_integer(item.value) && json_integer_value(item.value) >= 0 &&
                json_integer_value(item.value) <= UINT8_MAX &&
                (b < a ? gpus->nvlinks[b][a] == gpus->nvlinks[a][b]
                       : b > a || gpus->nvlinks[a][a] == 0))
                continue;
            return ghp_json_fail(&item, GHP_ERR_INPUT,
                                 "this is not the number of NVLinks of two GPUs; give the same "
                                 "whole number both ways, and 0 from a GPU to itself");
        }
    }
    return GHP_OK;
}

static enum ghp_status read_gpus(const struct ghp_node *at, struct ghp_gpus *gpus)
{
    static const char *const keys[] = {"count", "name",  "memory_bytes", "nvlink_Bps", "pcie_Bps",
                                       "nvls",  "cards", "nvlinks",      NULL};
    struct ghp_node node;

    if (!ghp_json_has(at, "gpus")) return GHP_OK;
    GHP_TRY(ghp_json_get(at, "gpus", &node));
    GHP_TRY(ghp_json_only_keys(&node, keys));
    GHP_TRY(read_count(&node, "count", 1, MAX_CORES, &gpus->count));
    GHP_TRY(ghp_json_text(&node, "name", &gpus->name));
    GHP_TRY(ghp_json_int(&node, "memory_bytes", 0, INT64_MAX, &gpus->memory_bytes));
    GHP_TRY(ghp_json_real(&node, "nvlink_Bps", 0, 1e18, &gpus->nvlink_Bps));
    GHP_TRY(ghp_json_real(&node, "pcie_Bps", 0, 1e18, &gpus->pcie_Bps));
    GHP_TRY(ghp_json_opt_real(&node, "nvls", 0, 1, &gpus->nvls));
    if (ghp_json_has(&node, "cards"))
        GHP_TRY(read_count(&node, "cards", 1, MAX_CORES, &gpus->cards));
    return read_nvlinks(&node, gpus);
}

static enum ghp_status read_peak(const struct ghp_node *at, struct ghp_peak *peak)
{
    const char *keys[GHP_PRECISIONS + 3] = {"memory_Bps"};
    struct ghp_node node;

    if (!ghp_json_has(at, "peak")) return GHP_OK;
    for (int p = 0; p < GHP_PRECISIONS; p++)
        keys[p + 1] = ghp_precision_names[p];
    keys[GHP_PRECISIONS + 1] = "fp16";
    GHP_TRY(ghp_json_get(at, "peak", &node));
    GHP_TRY(ghp_json_only_keys(&node, keys));
    for (int p = 0; p < GHP_PRECISIONS; p++)
        GHP_TRY(ghp_json_opt_real(&node, keys[p + 1], 0, 1e24, &peak->flops_per_s[p]));
    GHP_TRY(ghp_json_opt_real(&node, "fp16", 0, 1e24, &peak->fp16_flops_per_s));
    return ghp_json_opt_real(&node, "memory_Bps", 0, 1e18, &peak->memory_Bps);
}

static enum ghp_status read_sources(const struct ghp_node *at, json_t **sources)
{
    struct ghp_node node;
    const char *key;
    json_t *value;

    if (!ghp_json_has(at, "sources")) return GHP_OK;
    GHP_TRY(ghp_json_get(at, "sources", &node));
    if (!json_is_object(node.value))
        return ghp_json_fail(&node, GHP_ERR_INPUT,
                             "this is not an object; give a text for each figure");
    json_object_foreach(node.value, key, value) if (!json_is_string(value)) return ghp_json_fail(
        &node, GHP_ERR_INPUT, "the source of '%s' is not a text; name what says the figure", key);
    *sources = json_incref(node.value);
    return GHP_OK;
}

static enum ghp_status read_fields(const struct ghp_node *at, struct ghp_machine *machine)
{
    static const char *const keys[] = {"format",  "name",       "nodes",        "packages", "cores",
                                       "threads", "pu_indices", "memory_bytes", "gpus",     "peak",
                                       "intra",   "inter",      "sources",      NULL};

    GHP_TRY(ghp_json_only_keys(at, keys));
    GHP_TRY(ghp_json_format(at, FORMAT));
    GHP_TRY(ghp_json_text(at, "name", &machine->name));
    GHP_TRY(read_count(at, "nodes", 1, MAX_NODES, &machine->nodes));
    GHP_TRY(read_count(at, "cores", 1, MAX_CORES, &machine->cores));
    GHP_TRY(read_count(at, "packages", 1, machine->cores, &machine->packages));
    GHP_TRY(read_count(at, "threads", machine->cores, MAX_CORES, &machine->threads));
    GHP_TRY(read_pus(at, machine));
    GHP_TRY(ghp_json_int(at, "memory_bytes", 0, INT64_MAX, &machine->memory_bytes));
    GHP_TRY(read_gpus(at, &machine->gpus));
    GHP_TRY(read_peak(at, &machine->peak));
    GHP_TRY(read_sources(at, &machine->sources));
    GHP_TRY(read_link(at, "intra", &machine->intra));
    return read_link(at, "inter", &machine->inter);
}

enum ghp_status ghp_machine_read(const struct ghp_node *at, struct ghp_machine *machine)
{
    enum ghp_status status;

    *machine = (struct ghp_machine){0};
    status = read_fields(at, machine);
    if (status != GHP_OK) ghp_machine_release(machine);
    return status;
}

enum ghp_status ghp_machine_load(const char *path, struct ghp_machine *machine)
{
    enum ghp_status status;
    struct ghp_node root;
    struct ghp_json doc;

    *machine = (struct ghp_machine){0};
    GHP_TRY(ghp_json_load(path, FORMAT, &doc));
    root = ghp_json_root(&doc);
    status = ghp_machine_read(&root, machine);
    ghp_json_release(&doc);
    return status;
}

enum ghp_status ghp_machine_save(const char *path, const struct ghp_machine *machine)
{
    return ghp_json_lines_save(path, ghp_machine_json(machine));
}

enum ghp_status ghp_machine_hash(const struct ghp_machine *machine, uint64_t *hash)
{
    return ghp_embed_hash_of(ghp_machine_json(machine), hash);
}

enum ghp_status ghp_machine_copy(const struct ghp_machine *from, struct ghp_machine *to)
{
    struct ghp_machine copy = *from;

    *to = (struct ghp_machine){0};
    copy.name = strdup(from->name != NULL ? from->name : "");
    copy.gpus.name = from->gpus.name != NULL ? strdup(from->gpus.name) : NULL;
    copy.sources = json_incref(from->sources);
    copy.pus = ghp_alloc((size_t)from->n_pus, sizeof *copy.pus);
    if (copy.name == NULL || copy.pus == NULL ||
        (from->gpus.name != NULL && copy.gpus.name == NULL)) {
        ghp_machine_release(&copy);
        return GHP_NO_MEMORY();
    }
    if (from->n_pus > 0) memcpy(copy.pus, from->pus, (size_t)from->n_pus * sizeof *copy.pus);
    *to = copy;
    return GHP_OK;
}

void ghp_machine_release(struct ghp_machine *machine)
{
    if (machine == NULL) return;
    free(machine->name);
    free(machine->gpus.name);
    free(machine->pus);
    json_decref(machine->sources);
    *machine = (struct ghp_machine){0};
}

int ghp_machine_workers_per_node(const struct ghp_machine *machine, int workers)
{
    int nodes = machine->nodes > 0 ? machine->nodes : 1;

    return (workers + nodes - 1) / nodes;
}

struct ghp_link ghp_machine_inter(const struct ghp_machine *machine, int workers)
{
    struct ghp_link link = machine->inter;
    int used = ghp_machine_workers_per_node(machine, workers), gpus = machine->gpus.count,
        cards = machine->gpus.cards;

    if (cards > 0 && used < gpus) {
        double part = (double)((used * cards + gpus - 1) / gpus) / cards;

        link.bandwidth_Bps *= part;
        link.asymptotic_Bps *= part;
    }
    return link;
}

struct ghp_place ghp_machine_place(const struct ghp_machine *machine, int workers, int rank)
{
    int per_node = ghp_machine_workers_per_node(machine, workers);
    int node = (int)ghp_node_of(rank, per_node), local = rank % per_node;
    int here = workers - node * per_node < per_node ? workers - node * per_node : per_node;
    struct ghp_place place = {.node = node, .n_cores = 1};

    GHP_ASSERT(rank >= 0 && rank < workers);
    if (per_node <= machine->cores) {
        place.n_cores = machine->cores / per_node;
        place.first_core = (int)((int64_t)local * machine->cores / per_node);
    } else {
        place.first_core = local % machine->cores;
        place.oversubscribed = local >= machine->cores || local + machine->cores < here;
    }
    return place;
}
