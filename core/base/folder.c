/* core/base/folder.c - see core/base/folder.h. */
#include "core/base/folder.h"

#include <errno.h>
#include <stdlib.h>
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

/* Whether the first n bytes of a path name something that is there. */
static bool is_there(const char *path, size_t n)
{
    char *name = strndup(path, n);
    struct stat about;
    bool found = name == NULL || stat(name, &about) == 0;

    free(name);
    return found;
}

enum ghp_status ghp_folder_make(const char *path, bool *made)
{
    bool is = mkdir(path, 0777) == 0;
    int n = (int)parent_bytes(path), error = errno;

    if (made != NULL) *made = is;
    if (is || error == EEXIST) return GHP_OK;
    if (error == ENOENT && n > 0 && !is_there(path, (size_t)n))
        return GHP_FAIL(GHP_ERR_IO,
                        "cannot make '%s': there is no folder '%.*s'; make it by mkdir -p '%.*s', "
                        "or name another folder",
                        path, n, path, n, path);
    return GHP_FAIL(GHP_ERR_IO, "cannot make '%s': %s; name another folder", path, strerror(error));
}
