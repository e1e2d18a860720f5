/* executor/platform/launch.c - see launch.h. */
#include "executor/platform/launch.h"

#include <stdlib.h>
#include <string.h>

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
