/* executor/cli/libraries.c - see libraries.h. */
#include "executor/cli/libraries.h"

#include "executor/backend/onednn/onednn.h"
#include "executor/transport/mpi/communicator.h"

#include <hwloc.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

/* "Open MPI v4.1.4, package: ..." as name and number. */
static void say_mpi(ghp_opts_say *say)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING], *version;
    int n = 0;

    if (MPI_Get_library_version(text, &n) != MPI_SUCCESS) return; /* allowed before MPI_Init */
    text[strcspn(text, ",\n")] = '\0';
    version = strstr(text, " v");
    if (version == NULL) {
        say("MPI", text);
        return;
    }
    *version = '\0';
    say(text, version + 2);
}

void ghp_executor_libraries(ghp_opts_say *say)
{
    const dnnl_version_t *onednn = dnnl_version();
    unsigned hwloc = hwloc_get_api_version();
    char text[32];

    snprintf(text, sizeof text, "%d.%d.%d", onednn->major, onednn->minor, onednn->patch);
    say("oneDNN", text);
    say_mpi(say);
    snprintf(text, sizeof text, "interface %u.%u.%u", hwloc >> 16, (hwloc >> 8) & 0xff,
             hwloc & 0xff);
    say("hwloc", text);
    say("zlib", zlibVersion());
    say("kernels", ghp_kernels_hash);
    say("sources", ghp_sources_hash);
}
