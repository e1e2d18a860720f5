/* core/cost/machine.h - the cluster: equal nodes of cores, and the two links a message can cross.
 *
 * Read through hwloc by ghp-profile (on the real thing, from XML or from a synthetic string); everything else reads the
 * JSON file. "128 such nodes" is an edit of one line. */
#ifndef GHP_CORE_COST_MACHINE_H
#define GHP_CORE_COST_MACHINE_H

#include "core/base/json.h"
#include "core/model/precision.h"

#include <stdbool.h>
#include <stdint.h>

/* Collectives of at least this size show a link's rate; shorter ones may pass in a burst. */
enum { GHP_LONG_BYTES = 1 << 20 };

struct ghp_link {         /* seconds for one message = latency_s + bytes / bandwidth_Bps */
    double latency_s;     /* >= 0 */
    double bandwidth_Bps; /* > 0, per direction */
    /* the rate at which long messages grow longer, as measured; 0: unknown */
    double asymptotic_Bps;
};

enum { GHP_MESH_GPUS = 8 }; /* most GPUs of a node whose NVLinks are a mesh */

struct ghp_gpus {         /* of one node */
    int count;            /* 0: none */
    char *name;           /* free text; NULL if there are none */
    int64_t memory_bytes; /* of each; 0: unknown */
    double nvlink_Bps; /* of each to others by all its NVLinks, per direction; 0: none or unknown */
    double pcie_Bps;   /* of each to the host, per direction; 0: unknown */
    /* fraction of the NVLinks' rate at which all-reduces run in the node's switch (NVLink SHARP); 0: the switch adds
     * nothing */
    double nvls;
    /* network cards that the link to other nodes is of, each near as many GPUs; 0: all reach all of it */
    int cards;
    /* NVLinks from each GPU to each other if no switch joins them; symmetric. All 0: each reaches all at
     * nvlink_Bps. */
    unsigned char nvlinks[GHP_MESH_GPUS][GHP_MESH_GPUS];
};

/* What a data sheet promises of each GPU, or if there are none of a node; 0: unknown. */
struct ghp_peak {
    double memory_Bps;
    double flops_per_s[GHP_PRECISIONS]; /* in the order of ghp_precision_names */
    double fp16_flops_per_s; /* in half precision, which ghp does not train in; 0: as in bf16 */
};

struct ghp_machine {
    char *name;                   /* free text: processor model or synthetic string */
    int nodes;                    /* >= 1 */
    int packages, cores, threads; /* per node */
    int n_pus;
    /* operating-system index of the first hardware thread of each core, in topology order; `cores` entries */
    int *pus;
    int64_t memory_bytes; /* per node */
    struct ghp_gpus gpus; /* per node */
    struct ghp_peak peak;
    struct ghp_link intra; /* between two workers of one node */
    struct ghp_link inter; /* one node's link to the others, shared by its workers */
    json_t *sources; /* texts by the figure that each is the source of; NULL: none are given */
};

struct ghp_place { /* where one worker runs */
    int node;
    int first_core, n_cores; /* indices into machine->pus */
    bool oversubscribed;     /* shares its core with other workers */
};

/* Whether NVLinks join GPUs in pairs, and no switch all of them. */
bool ghp_gpus_are_mesh(const struct ghp_gpus *gpus);

/* The part of its NVLinks that each GPU has to the other members of a group: what the group's rings have of nvlink_Bps.
 * Two that no link joins meet over PCIe.
 *
 * members   a bit for each GPU of the node, two and more
 *
 * Returns   1 if a switch joins all */
double ghp_gpus_fraction(const struct ghp_gpus *gpus, unsigned members);

enum ghp_status ghp_machine_load(const char *path, struct ghp_machine *machine);
enum ghp_status ghp_machine_save(const char *path, const struct ghp_machine *machine);
enum ghp_status ghp_machine_copy(const struct ghp_machine *from, struct ghp_machine *to);
void ghp_machine_release(struct ghp_machine *machine);

/* A link whose members stand among an object's other keys, as those of a network file do. */
enum ghp_status ghp_link_read(const struct ghp_node *at, struct ghp_link *link);

/* Workers on one node: the first nodes fill up with ceil(N / nodes) consecutive ranks each. */
int ghp_machine_workers_per_node(const struct ghp_machine *machine, int workers);
/* What the workers of a node have of its link to others: that of the cards near their GPUs, the first of the node. */
struct ghp_link ghp_machine_inter(const struct ghp_machine *machine, int workers);
/* The node of a rank, if each node has per_node workers. */
static inline int64_t ghp_node_of(int64_t rank, int per_node)
{
    return rank / per_node;
}
/* Cores are dealt in blocks; more workers than cores share round robin. */
struct ghp_place ghp_machine_place(const struct ghp_machine *machine, int workers, int rank);

/* Returns the machine as a JSON value, which the caller owns; NULL when out of memory. */
json_t *ghp_machine_json(const struct ghp_machine *machine);
/* Reads one from a place in a document; filled on success, zeroed on failure.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT, GHP_ERR_INPUT (with line and column); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_machine_read(const struct ghp_node *at, struct ghp_machine *machine);

/* The hash of the machine's canonical text: struct ghp_plan's machine_hash.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_machine_hash(const struct ghp_machine *machine, uint64_t *hash);

#endif
