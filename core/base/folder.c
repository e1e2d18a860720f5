/* core/base/folder.c - see core/base/folder.h. */
#include "core/base/folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Bytes of the name of the folder that a folder is in; 0: it is the working directory, or the root. */
static size_t parent_bytes(const char *path)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    while (n > 0 && path[n - 1] == '/')
        n--;
    return n;
}

enum ghp_status ghp_folder_make(const char *path, bool *made)
{
    bool is = mkdir(path, 0777) == 0;
    int n = (int)parent_bytes(path);

    if (made != NULL) *made = is;
    if (is || errno == EEXIST) return GHP_OK;
    if (errno == ENOENT && n > 0)
        return GHP_FAIL(GHP_ERR_IO,
                        "cannot make '%s': there is no folder '%.*s'; make it by mkdir -p '%.*s', "
                        "or name another folder",
                        path, n, path, n, path);
    return GHP_FAIL(GHP_ERR_IO, "cannot make '%s': %s; name another folder", path, strerror(errno));
}
