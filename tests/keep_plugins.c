/* tests/keep_plugins.c - for sanitizer builds only: plugins of foreign libraries stay loaded.
 *
 * The leak checker names the module that allocated; a plugin of MPI that was unloaded has no name left that
 * cmake/lsan.supp could match. This dlclose takes the place of libc's in test programs. */
#include <dlfcn.h>

int dlclose(void *handle)
{
    (void)handle;
    return 0;
}
