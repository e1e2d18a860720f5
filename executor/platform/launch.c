/* executor/platform/launch.c - see launch.h. */
#include "executor/platform/launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

/* Where launchers say how many processes they started on this node. */
static const char *const here_names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                         "PMI_LOCAL_SIZE"};

bool ghp_launched(void)
{
    for (char **at = environ; at != NULL && *at != NULL; at++)
        if (strncmp(*at, "PMI", 3) == 0) return true;
    return false;
}

long ghp_launched_here(void)
{
    for (size_t i = 0; i < sizeof(here_names) / sizeof(here_names[0]); i++) {
        const char *text = getenv(here_names[i]);

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
