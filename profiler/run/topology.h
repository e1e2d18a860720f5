/* profiler/run/topology.h - hwloc -> machine: what the nodes of the cluster look like.
 *
 * The only place that knows hwloc in this room. Links do not belong to the topology: they are measured, or given.
 *
 * Tested  tests/profiler/run/test_topology.c */
#ifndef GHP_PROFILER_RUN_TOPOLOGY_H
#define GHP_PROFILER_RUN_TOPOLOGY_H

#include "core/cost/machine.h"
#include "executor/platform/limits.h"
#include "executor/platform/processors.h"

/* Memory of a synthetic node whose description does not name any: enough for everything. */
#define GHP_TOPOLOGY_MEMORY_BYTES (INT64_C(1) << 40)

/* Describes one node, and says that there are `nodes` of it.
 *
 * source   NULL or "": this machine; a file name: hwloc's XML (as `lstopo --of xml` writes it); else a synthetic
 *          description such as "package:2 core:8 pu:2"
 * nodes    equal nodes of the cluster, >= 1
 * machine  filled but for its links, which are left 0; released by the caller; zeroed on failure
 *
 * GPUs are those that hwloc's CUDA or NVML component names, or, without these, NVIDIA's display controllers on the bus,
 * whose memory then stays unknown (0).
 *
 * A topology without cores (some virtual machines) counts each hardware thread as a core.
 *
 * Returns   GHP_OK; GHP_ERR_IO (cannot read XML); GHP_ERR_INPUT (neither a file nor a synthetic description, or no
 *           hardware threads in it); GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_topology_read(const char *source, int nodes, struct ghp_machine *machine);

/* The same of this machine, less what a container or a batch system does not leave this process.
 *
 * processors   that a batch system allotted this node's workers; NULL: none did; borrowed
 *
 * Returns   as ghp_topology_read
 * Local */
enum ghp_status ghp_topology_read_here(const struct ghp_processors *processors, int nodes,
                                       struct ghp_machine *machine);

/* The most cache that each of `workers` workers, spread evenly over this machine, has for itself among the first core's
 * caches [bytes]; 0 if hwloc does not know any. Local. */
int64_t ghp_topology_cache_bytes(int workers);

#endif
