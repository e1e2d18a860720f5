/* executor/launcher/tool_path.c - see executor/launcher/tool_path.h. */
#include "executor/launcher/tool_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void ghp_tool_path(const char *name, char path[GHP_TOOL_PATH_BYTES])
{
    size_t bytes = strlen(name) + 1;
    char *slash;
    ssize_t n = readlink("/proc/self/exe", path, GHP_TOOL_PATH_BYTES - bytes);

    path[n > 0 ? n : 0] = '\0';
    slash = strrchr(path, '/');
    snprintf(slash != NULL ? slash + 1 : path, bytes, "%s", name);
    if (access(path, X_OK) != 0) snprintf(path, GHP_TOOL_PATH_BYTES, "%s", name);
}
