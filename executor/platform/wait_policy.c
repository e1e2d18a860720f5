/* executor/platform/wait_policy.c - see wait_policy.h. */
#include "executor/platform/wait_policy.h"

#include "executor/platform/launch.h"
#include "executor/platform/limits.h"
#include "executor/platform/processors.h"

#include <stdlib.h>
#include <unistd.h>

void ghp_wait_passively(long threads, char **argv)
{
    struct ghp_processors ours = ghp_processors_of(0), launchers = ghp_processors_of(getppid());
    long here = ghp_launched() ? ghp_launched_here() : 1;
    char path[4096] = "";
    ssize_t n;

    if (ghp_launched()) ghp_processors_join(&ours, &launchers); /* it binds workers, not itself */
    if (here > 0 && here * threads <= ghp_limits_count(&ours)) return;
    if (getenv("OMP_WAIT_POLICY") != NULL) return;
    n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n > 0 && setenv("OMP_WAIT_POLICY", "passive", 1) == 0) execv(path, argv);
}
