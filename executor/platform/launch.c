/* executor/platform/launch.c - see launch.h. */
#include "executor/platform/launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

/* Variables in which launchers say how many processes they started on this node. */
static const char *const here_names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                         "PMI_LOCAL_SIZE"};
/* Which it is, and of how many in all. Slurm's come last: if mpirun starts its daemons by srun, workers have
 * both. */
static const char *const rank_names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
static const char *const size_names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                         "SLURM_STEP_NUM_TASKS"};

bool ghp_launched(void)
{
    static bool known, launched; /* MPI sets such variables itself if nobody launched it */

    for (char **at = environ; !known && at != NULL && *at != NULL; at++)
        launched = launched || strncmp(*at, "PMI", 3) == 0;
    known = true;
    return launched;
}

/* The first of these variables as a number, 0 if there is none. */
static long first_of(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = getenv(names[i]);

        if (text != NULL) return strtol(text, NULL, 10);
    }
    return 0;
}

int ghp_launched_terminal(void)
{
    struct stat about;
    char path[64];
    int fd;

    if (!ghp_launched() || fstat(STDERR_FILENO, &about) != 0 || !S_ISFIFO(about.st_mode)) return -1;
    snprintf(path, sizeof path, "/proc/%ld/fd/2", (long)getppid());
    fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && !isatty(fd)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Slurm's list for all nodes of a step, such as "2(x2),1": of this one. */
static long slurm_here(void)
{
    const char *at = getenv("SLURM_STEP_TASKS_PER_NODE"), *number = getenv("SLURM_NODEID");
    long node = number != NULL ? strtol(number, NULL, 10) : 0;

    while (at != NULL && *at != '\0') {
        char *end = NULL;
        long tasks = strtol(at, &end, 10), nodes = 1;

        if (strncmp(end, "(x", 2) == 0) nodes = strtol(end + 2, &end, 10);
        if (node < nodes) return tasks;
        node -= nodes;
        at = strchr(end, ',');
        if (at != NULL) at++;
    }
    return 0;
}

long ghp_launched_here(void)
{
    long here = first_of(here_names, sizeof here_names / sizeof here_names[0]);

    return here > 0 ? here : slurm_here();
}

const char *ghp_launched_rank_name(int i)
{
    return i < (int)(sizeof rank_names / sizeof rank_names[0]) ? rank_names[i] : NULL;
}

long ghp_launched_size(void)
{
    return first_of(size_names, sizeof size_names / sizeof size_names[0]);
}

long ghp_launched_rank(void)
{
    return first_of(rank_names, sizeof rank_names / sizeof rank_names[0]);
}

bool ghp_launched_allotted(void)
{
    return getenv("SLURM_STEP_NUM_TASKS") != NULL && getenv("OMPI_COMM_WORLD_SIZE") == NULL &&
           getenv("MPI_LOCALNRANKS") == NULL;
}

const char *ghp_launched_by(void)
{
    return ghp_launched_allotted() ? "srun" : "mpirun";
}
