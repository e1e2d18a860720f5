/* profiler/run/cache.h - measurements that are kept for a machine, for all networks.
 *
 * One file for each way of measuring: processor, cores, backend, numerics, precision, ranks and how they share cores,
 * threads, versions of the libraries and of ghp's kernels. Their text is the file's key, its hash the file's name. A
 * file holds operations at a shape, with the algorithm chosen for each pair of formats; collectives among ranks of one
 * node by their groups and bytes; rates and slowdowns. Collectives between nodes are not kept, since links change with
 * their other users. Nothing is kept of GPUs, nor of workers that are not equally fast.
 *
 * A file is read once and merged into under a lock, so several runs may keep theirs at a time, and several users if the
 * folder is theirs: new files have its permissions. A damaged file is named in a warning and made again. A cache that
 * cannot be read or written does not make a run fail.
 *
 * Private to profiler/.  Tested  tests/profiler/run/test_cache.c, tests/tools/profile/test_profile_measured.sh */
#ifndef GHP_PROFILER_RUN_CACHE_H
#define GHP_PROFILER_RUN_CACHE_H

#include "profiler/measure/measure.h"
#include "profiler/worklist/worklist.h"

#include <sys/types.h>

struct ghp_cache {
    char *path; /* NULL: nothing is kept */
    char *key;
    int lock_wait_s;    /* how long another process's lock is waited for */
    mode_t folder_mode; /* who may write into the folder may write its files */
    struct ghp_profile known; /* operations by keys of its own; zeroed: nothing yet */
};

/* Finds the folder in which measurements are kept.
 *
 * option   a folder; "none"; NULL: `ghp` in $XDG_CACHE_HOME, or in ~/.cache
 * folder   receives its name, owned by the caller; NULL: nothing is kept
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_cache_folder(const char *option, char **folder);

/* Reads the file of a key. A folder that is missing is made; what cannot be used is warned of.
 *
 * folder   NULL: nothing is kept
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local; on rank 0 */
enum ghp_status ghp_cache_open(const char *folder, const char *key, struct ghp_cache *cache);
void ghp_cache_close(struct ghp_cache *cache); /* accepts a zeroed one */

/* Puts rates and slowdowns, if there are any, into a profile that has none yet. Local. */
enum ghp_status ghp_cache_take_rates(const struct ghp_cache *cache, struct ghp_profile *profile);

/* Puts what it has of the work list into the profile: operations, and collectives of the kinds asked for, all sizes.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_cache_take(const struct ghp_cache *cache, const struct ghp_measure *m,
                               const struct ghp_worklist *worklist, struct ghp_profile *profile);

/* Merges the profile's measurements of the work list into the file; warns, once, if that cannot be.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_cache_keep(struct ghp_cache *cache, const struct ghp_measure *m,
                               const struct ghp_worklist *worklist,
                               const struct ghp_profile *profile);

enum { GHP_CACHE_KEY_BYTES = GHP_KEY_BYTES + 128 };

#endif
