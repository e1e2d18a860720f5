/* executor/compare/host_load.c - see compare/host_load.h. */
#include "executor/compare/host_load.h"
#include "core/base/clock.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LEAST_TICKS = 100 };

struct ghp_host_load {
    struct ghp_control *control;
    struct ghp_comm *comm;
    int size, here;
    struct ghp_cpu_count *all; /* [size] */
    char machine[GHP_BOOT_ID_BYTES];
    double marked_busy_s, marked_own_s, marked_s;
};

bool ghp_cpu_busy(const char *path, double *busy_s, int *cores)
{
    FILE *file = fopen(path, "r");
    char line[512];
    double user, nice, system, stolen = 0;
    bool found = false;

    *cores = 0;
    if (file == NULL) return false;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "cpu ", 4) == 0) /* user nice system idle iowait irq softirq steal */
            found = sscanf(line + 4, "%lf %lf %lf %*f %*f %*f %*f %lf", &user, &nice, &system,
                           &stolen) >= 3;
        else if (strncmp(line, "cpu", 3) == 0 && isdigit((unsigned char)line[3]))
            ++*cores;
    }
    fclose(file);
    if (!found || *cores == 0) return false;
    *busy_s = (user + nice + system + stolen) / (double)sysconf(_SC_CLK_TCK);
    return true;
}

static double own_s(void)
{
    struct rusage use;

    if (getrusage(RUSAGE_SELF, &use) != 0) return 0;
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void read_machine(char *machine)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

    if (file != NULL && fgets(machine, GHP_BOOT_ID_BYTES, file) != NULL)
        machine[strcspn(machine, "\n")] = '\0';
    if (file != NULL) fclose(file);
}

static enum ghp_status gather(struct ghp_host_load *n, struct ghp_cpu_count mine)
{
    snprintf(mine.machine, sizeof mine.machine, "%s", n->machine);
    n->comm->label = "counting other programs";
    return n->comm->ops->all_gather(n->comm, &mine, n->all, (int64_t)sizeof mine);
}

enum ghp_status ghp_host_load_open(struct ghp_control *control, struct ghp_comm *comm, int size,
                                   struct ghp_host_load **host_load)
{
    struct ghp_host_load *n = ghp_alloc(1, sizeof *n);
    enum ghp_status status = GHP_OK;

    *host_load = NULL;
    if (n != NULL) n->all = ghp_alloc((size_t)size, sizeof *n->all);
    if (n == NULL || n->all == NULL) status = GHP_NO_MEMORY();
    comm->label = "counting other programs";
    GHP_TRY_GOTO(status, ghp_control_agree(control, comm, status), fail);
    n->control = control;
    n->comm = comm;
    n->size = size;
    read_machine(n->machine);
    GHP_TRY_GOTO(status, gather(n, (struct ghp_cpu_count){.busy_s = -1}), fail);
    for (int r = 0; r < size; r++)
        n->here += strcmp(n->all[r].machine, n->machine) == 0;
    *host_load = n;
    return GHP_OK;
fail:
    ghp_host_load_close(n);
    return status;
}

void ghp_host_load_close(struct ghp_host_load *n)
{
    if (n == NULL) return;
    free(n->all);
    free(n);
}

int ghp_host_load_here(const struct ghp_host_load *n)
{
    return n->here;
}

enum ghp_status ghp_host_load_begin(struct ghp_host_load *n)
{
    int cores;

    n->marked_s = ghp_now_s();
    n->marked_own_s = own_s();
    if (!ghp_cpu_busy("/proc/stat", &n->marked_busy_s, &cores)) n->marked_busy_s = -1;
    n->comm->label = "counting other programs";
    return ghp_control_barrier(n->control, n->comm);
}

enum ghp_status ghp_host_load_use(struct ghp_host_load *n, struct ghp_cpu_use *use)
{
    struct ghp_cpu_count mine = {.busy_s = -1};
    double busy_s;
    int cores;

    n->comm->label = "counting other programs";
    GHP_TRY(ghp_control_barrier(n->control, n->comm));
    mine.own_s = own_s() - n->marked_own_s;
    if (n->marked_busy_s >= 0 && ghp_cpu_busy("/proc/stat", &busy_s, &cores)) {
        mine.busy_s = busy_s - n->marked_busy_s;
        mine.capacity_s = cores * (ghp_now_s() - n->marked_s);
    }
    GHP_TRY(gather(n, mine));
    *use = ghp_cpu_most(n->all, n->size);
    return GHP_OK;
}

double ghp_cpu_fraction(struct ghp_cpu_use use)
{
    if (use.capacity_s * (double)sysconf(_SC_CLK_TCK) < LEAST_TICKS) return -1;
    return use.foreign_s / use.capacity_s;
}

/* The use of the machine of worker `first`, which is the first of its workers. Busy time comes in ticks and may fall a
 * little short of the job's own; a kernel that counts less than half of that does not count (sandboxes show zeros). */
static struct ghp_cpu_use use_of(const struct ghp_cpu_count *counts, int n, int first)
{
    double busy_s = counts[first].busy_s, own = 0;

    for (int r = first; r < n; r++)
        if (strcmp(counts[r].machine, counts[first].machine) == 0) own += counts[r].own_s;
    if (busy_s < own / 2) return (struct ghp_cpu_use){0};
    return (struct ghp_cpu_use){.foreign_s = busy_s > own ? busy_s - own : 0,
                                .capacity_s = counts[first].capacity_s};
}

static bool is_first(const struct ghp_cpu_count *counts, int r)
{
    for (int i = 0; i < r; i++)
        if (strcmp(counts[i].machine, counts[r].machine) == 0) return false;
    return true;
}

struct ghp_cpu_use ghp_cpu_most(const struct ghp_cpu_count *counts, int n)
{
    struct ghp_cpu_use most = {0};

    for (int r = 0; r < n; r++) {
        struct ghp_cpu_use use;

        if (counts[r].machine[0] == '\0' || counts[r].busy_s < 0 || counts[r].capacity_s <= 0)
            return (struct ghp_cpu_use){0}; /* who does not know might be the disturbed one */
        if (!is_first(counts, r)) continue;
        use = use_of(counts, n, r);
        if (use.capacity_s == 0) return use;
        if (most.capacity_s == 0 ||
            use.foreign_s * most.capacity_s > most.foreign_s * use.capacity_s)
            most = use;
    }
    return most;
}
