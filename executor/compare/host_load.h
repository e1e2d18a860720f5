/* executor/compare/host_load.h - what else computes on the machines of this job, as their kernels count it (Linux).
 *
 *     foreign = all cores' busy seconds - the CPU seconds of this job's own processes
 *
 * Busy is user, nice, system and stolen time; interrupts are not counted, since the job's own messages cause them. A
 * measurement during much foreign work is disturbed and should say so. Several hosts may share one machine (network
 * namespaces); processes that see the same boot id count as one machine's.
 *
 * Call order: open -> mark -> work -> use -> mark -> ... -> close. */
#ifndef GHP_EXECUTOR_COMPARE_HOST_LOAD_H
#define GHP_EXECUTOR_COMPARE_HOST_LOAD_H

#include "executor/transport/transport.h"

struct ghp_host_load;

struct ghp_cpu_use {   /* since the mark, of the machine with the greatest foreign share */
    double foreign_s;  /* core seconds of other programs, >= 0 */
    double capacity_s; /* core seconds that there were; 0: not known */
};

enum { GHP_BOOT_ID_BYTES = 40 };

struct ghp_cpu_count {                /* what one worker counted since the mark */
    char machine[GHP_BOOT_ID_BYTES];  /* boot id; "" if it is not known */
    double busy_s, capacity_s, own_s; /* the machine's; this process's. busy_s < 0: not known */
};

/* Gathers who shares which machine.
 *
 * Collective over the communicator, which is borrowed: all `size` workers */
enum ghp_status ghp_host_load_open(struct ghp_control *control, struct ghp_comm *comm, int size,
                                   struct ghp_host_load **host_load);
void ghp_host_load_close(struct ghp_host_load *host_load); /* accepts NULL */

/* Workers of this job on this worker's machine, itself included. Local. */
int ghp_host_load_here(const struct ghp_host_load *host_load);

/* Starts counting. Collective: nobody works before all count. */
enum ghp_status ghp_host_load_begin(struct ghp_host_load *host_load);
/* What was used since, the same on all workers. Collective. */
enum ghp_status ghp_host_load_use(struct ghp_host_load *host_load, struct ghp_cpu_use *use);

/* foreign / capacity; -1 if capacity is not known, or so small that the kernel's clock ticks (of 10 ms, mostly) make
 * the quotient coarser than a hundredth. Local. Tested tests/executor/compare/test_host_load.c */
double ghp_cpu_fraction(struct ghp_cpu_use use);

/* The most disturbed machine of n workers' counts. Local. Tested tests/executor/compare/test_host_load.c */
struct ghp_cpu_use ghp_cpu_most(const struct ghp_cpu_count *counts, int n);

/* Busy seconds of all cores, and how many there are, from a file like /proc/stat; false if it cannot be read. Local.
 * Tested tests/executor/compare/test_host_load.c */
bool ghp_cpu_busy(const char *path, double *busy_s, int *cores);

#endif
