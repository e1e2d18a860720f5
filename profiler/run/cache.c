/* profiler/run/cache.c - see run/cache.h. */
#include "profiler/run/cache.h"

#include "core/base/hash.h"
#include "core/base/json_lines.h"
#include "core/base/log.h"
#include "profiler/measure/autotuning.h"
#include "profiler/measure/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FORMAT "ghp.measurements/1"

enum { LOCK_WAIT_S = 10 };

/* ---- the folder ---- */

/* a and b as one text, owned by the caller; NULL without memory. */
static char *joined(const char *a, const char *b)
{
    size_t n = strlen(a) + strlen(b) + 1;
    char *text = ghp_alloc(n, 1);

    if (text != NULL) snprintf(text, n, "%s%s", a, b);
    return text;
}

enum ghp_status ghp_cache_folder(const char *option, char **folder)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    *folder = NULL;
    if (option != NULL && strcmp(option, "none") == 0) return GHP_OK;
    if (option != NULL)
        *folder = joined(option, "");
    else if (base != NULL && base[0] == '/') /* the standard says: others count as not set */
        *folder = joined(base, "/ghp");
    else if (home != NULL && home[0] != '\0')
        *folder = joined(home, "/.cache/ghp");
    else
        return GHP_OK;
    return *folder != NULL ? GHP_OK : GHP_NO_MEMORY();
}

/* Makes the folder and those above it. Returns whether it is there.
 *
 * mode   receives its own */
static bool make_folder(const char *folder, mode_t *mode)
{
    char path[PATH_MAX];
    struct stat is;

    if (strlen(folder) >= sizeof path) return false;
    snprintf(path, sizeof path, "%s", folder);
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(path, 0777); /* the last one tells */
        *at = '/';
    }
    if (mkdir(path, 0777) != 0 && errno != EEXIST) return false;
    if (stat(path, &is) != 0) return false;
    *mode = is.st_mode & 0777;
    return true;
}

/* ---- the file ---- */

/* Nothing is kept from now on. */
static void give_up(struct ghp_cache *cache, const char *why)
{
    ghp_warn("measurements are not kept in '%s': %s; name another folder by --cache, or none",
             cache->path, why);
    free(cache->path);
    cache->path = NULL;
}

static enum ghp_status read_file(const char *path, const char *key, struct ghp_profile *known)
{
    static const char *const keys[] = {"format", "key", "profile", NULL};
    struct ghp_json doc;
    struct ghp_node root, profile;
    char *text = NULL;
    enum ghp_status status;

    GHP_TRY(ghp_json_load(path, FORMAT, &doc));
    root = ghp_json_root(&doc);
    GHP_TRY_GOTO(status, ghp_json_only_keys(&root, keys), done);
    GHP_TRY_GOTO(status, ghp_json_text(&root, "key", &text), done);
    if (strcmp(text, key) != 0)
        goto done; /* another machine's of the same name: as if it were not there */
    GHP_TRY_GOTO(status, ghp_json_get(&root, "profile", &profile), done);
    status = ghp_profile_read(&profile, known);
done:
    free(text);
    ghp_json_release(&doc);
    return status;
}

/* What the file has; one that is damaged is named, and counts as empty.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
static enum ghp_status load(const struct ghp_cache *cache, struct ghp_profile *known)
{
    enum ghp_status status;

    *known = (struct ghp_profile){0};
    if (access(cache->path, F_OK) != 0) return GHP_OK;
    status = read_file(cache->path, cache->key, known);
    if (status == GHP_OK) return GHP_OK;
    *known = (struct ghp_profile){0};
    if (status == GHP_ERR_NO_MEMORY) return status;
    ghp_warn("kept measurements are damaged and are made again: %s", ghp_status_message());
    return GHP_OK;
}

enum ghp_status ghp_cache_open(const char *folder, const char *key, struct ghp_cache *cache)
{
    char name[32] = "/", hash[17];
    enum ghp_status status;

    *cache = (struct ghp_cache){.lock_wait_s = LOCK_WAIT_S};
    if (folder == NULL) return GHP_OK;
    ghp_hash_text(ghp_hash(key, strlen(key), GHP_HASH_SEED), hash);
    snprintf(name, sizeof name, "/%s.json", hash);
    cache->path = joined(folder, name);
    cache->key = joined(key, "");
    if (cache->path == NULL || cache->key == NULL) {
        ghp_cache_close(cache);
        return GHP_NO_MEMORY();
    }
    if (!make_folder(folder, &cache->folder_mode)) {
        give_up(cache, strerror(errno));
        return GHP_OK;
    }
    status = load(cache, &cache->known);
    if (status != GHP_OK) ghp_cache_close(cache);
    return status;
}

void ghp_cache_close(struct ghp_cache *cache)
{
    ghp_profile_release(&cache->known);
    free(cache->path);
    free(cache->key);
    *cache = (struct ghp_cache){0};
}

/* ---- what is kept ---- */

/* What an operation is kept by: its key, what else it may find in the processor's caches, and its formats, each with
 * what it fuses. */
static void op_key(const struct ghp_measure *m, const struct ghp_worklist_op *op,
                   char key[GHP_CACHE_KEY_BYTES])
{
    const int64_t other_bytes = ghp_measure_op_task(m, op).other_bytes;
    int n = snprintf(key, GHP_CACHE_KEY_BYTES, "%s", op->key);

    if (other_bytes < m->cache_bytes)
        n += snprintf(key + n, (size_t)(GHP_CACHE_KEY_BYTES - n), " beside %lld",
                      (long long)other_bytes);
    for (int i = 0; i < op->n_variants; i++) {
        const struct ghp_kernel_spec f = ghp_autotuning_spec(m, op, &op->variants[i]);

        n += snprintf(key + n, (size_t)(GHP_CACHE_KEY_BYTES - n), " %s%s%s%s%s%s%s%s.",
                      f.x ? "x" : "", f.y ? "y" : "", f.w ? "w" : "", f.bias ? "b" : "",
                      f.relu ? "r" : "", f.stats ? "s" : "", f.add ? "a" : "", f.sums ? "u" : "");
    }
}

/* All but the load's: a network's samples are its own. */
static void copy_rates(const struct ghp_profile *from, struct ghp_profile *to)
{
    to->analytic = from->analytic;
    to->copy = from->copy;
    to->accumulate = from->accumulate;
    to->fused_accumulate = from->fused_accumulate;
    memcpy(to->update, from->update, sizeof to->update);
    to->squares = from->squares;
    to->overlap = from->overlap;
    to->speed_probe = from->speed_probe;
}

enum ghp_status ghp_cache_take_rates(const struct ghp_cache *cache, struct ghp_profile *profile)
{
    if (cache->known.backend == NULL) return GHP_OK;
    copy_rates(&cache->known, profile);
    if (profile->machine.nodes > 1) profile->overlap = (struct ghp_overlap){0};
    return ghp_profile_finalize(profile);
}

/* Whether the entry is complete: an operation of several formats that was measured in one says nothing of others. */
static bool is_whole(const struct ghp_worklist_op *op, const struct ghp_op_entry *entry)
{
    return entry != NULL && entry->source == GHP_SOURCE_MEASURED &&
           entry->n_memory_formats == (op->memory_formats ? op->n_variants : 0);
}

static enum ghp_status take_ops(const struct ghp_cache *cache, const struct ghp_measure *m,
                                const struct ghp_worklist *worklist, struct ghp_profile *profile)
{
    char key[GHP_CACHE_KEY_BYTES];

    for (int i = 0; i < worklist->n_ops; i++) {
        const struct ghp_worklist_op *op = &worklist->ops[i];
        const struct ghp_op_entry *known;
        struct ghp_op_entry entry;

        op_key(m, op, key);
        known = ghp_profile_find(&cache->known, key, op->pass);
        if (known == NULL || ghp_profile_find(profile, op->key, op->pass) != NULL) continue;
        entry = *known;
        entry.key = (char *)(uintptr_t)op->key; /* copied */
        GHP_TRY(ghp_profile_add_op(profile, &entry));
    }
    return GHP_OK;
}

static bool is_wanted(const struct ghp_worklist *worklist, const struct ghp_comm_entry *entry)
{
    for (int i = 0; i < worklist->n_comms; i++)
        if (worklist->comms[i].op == entry->op && worklist->comms[i].count == entry->count &&
            worklist->comms[i].stride == entry->stride)
            return true;
    return false;
}

enum ghp_status ghp_cache_take(const struct ghp_cache *cache, const struct ghp_measure *m,
                               const struct ghp_worklist *worklist, struct ghp_profile *profile)
{
    if (cache->known.backend == NULL) return GHP_OK;
    GHP_TRY(take_ops(cache, m, worklist, profile));
    for (int i = 0; i < cache->known.n_comms && profile->machine.nodes == 1; i++)
        if (is_wanted(worklist, &cache->known.comms[i]))
            GHP_TRY(ghp_profile_add_comm(profile, &cache->known.comms[i]));
    return ghp_profile_finalize(profile);
}

/* ---- keeping ---- */

static enum ghp_status begin(const struct ghp_profile *profile, struct ghp_profile *kept)
{
    GHP_TRY(ghp_profile_init(kept, profile->backend, profile->numerics, profile->element_bytes));
    kept->tf32 = profile->tf32;
    kept->workers = profile->workers;
    kept->threads = profile->threads;
    ghp_machine_release(&kept->machine);
    copy_rates(profile, kept);
    return ghp_machine_copy(&profile->machine, &kept->machine);
}

/* Everything measured of the work list, over what is there. */
static enum ghp_status add_measured(const struct ghp_measure *m,
                                    const struct ghp_worklist *worklist,
                                    const struct ghp_profile *profile, struct ghp_profile *kept)
{
    char key[GHP_CACHE_KEY_BYTES];

    for (int i = 0; i < worklist->n_ops; i++) {
        const struct ghp_worklist_op *op = &worklist->ops[i];
        const struct ghp_op_entry *own = ghp_profile_find(profile, op->key, op->pass);
        struct ghp_op_entry entry;

        if (ghp_measure_is_fused(m, op) || !is_whole(op, own)) continue;
        op_key(m, op, key);
        entry = *own;
        entry.key = key; /* copied */
        GHP_TRY(ghp_profile_add_op(kept, &entry));
    }
    for (int i = 0; i < profile->n_comms && profile->machine.nodes == 1; i++)
        if (profile->comms[i].source == GHP_SOURCE_MEASURED)
            GHP_TRY(ghp_profile_add_comm(kept, &profile->comms[i]));
    return ghp_profile_finalize(kept);
}

static enum ghp_status write_file(const struct ghp_cache *cache, const struct ghp_profile *kept)
{
    json_t *root = json_pack("{s:s, s:s, s:o}", "format", FORMAT, "key", cache->key, "profile",
                             ghp_profile_json(kept));

    return ghp_json_lines_save(cache->path, root);
}

/* Waits for the lock of an open file, and says so. Returns whether it was got in time. */
static bool wait_for(int fd, const char *name, int most_s)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};

    for (int tenths = 0; tenths < 10 * most_s; tenths++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        if (tenths == 10)
            ghp_note("another process holds '%s'; waiting for up to %d s", name, most_s);
        nanosleep(&pause, NULL);
    }
    errno = EWOULDBLOCK;
    return false;
}

/* Locks the file's neighbour, since the file itself is replaced. Returns a descriptor to close; -1 with errno: cannot.
 */
static int lock(const struct ghp_cache *cache)
{
    char *name = joined(cache->path, ".lock");
    int error, fd = name != NULL
                        ? open(name, O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666)
                        : -1;
    bool locked = fd >= 0 && wait_for(fd, name, cache->lock_wait_s);

    error = errno;
    free(name);
    if (fd >= 0 && !locked) close(fd);
    errno = error;
    return locked ? fd : -1;
}

static enum ghp_status keep(struct ghp_cache *cache, const struct ghp_measure *m,
                            const struct ghp_worklist *worklist, const struct ghp_profile *profile)
{
    struct ghp_profile kept;
    enum ghp_status status = GHP_OK;
    int fd = lock(cache);

    if (fd < 0) {
        give_up(cache, errno == EWOULDBLOCK ? "another process holds its lock" : strerror(errno));
        return GHP_OK;
    }
    status = load(cache, &kept); /* what others kept meanwhile stays */
    if (status == GHP_OK && kept.backend == NULL) status = begin(profile, &kept);
    if (status == GHP_OK) status = add_measured(m, worklist, profile, &kept);
    if (status == GHP_OK && write_file(cache, &kept) != GHP_OK)
        give_up(cache, ghp_status_message());
    close(fd);
    ghp_profile_release(&kept);
    return status;
}

enum ghp_status ghp_cache_keep(struct ghp_cache *cache, const struct ghp_measure *m,
                               const struct ghp_worklist *worklist,
                               const struct ghp_profile *profile)
{
    enum ghp_status status;
    mode_t before;

    if (cache->path == NULL) return GHP_OK;
    before = umask(~cache->folder_mode & 0777);
    status = keep(cache, m, worklist, profile);
    umask(before);
    return status;
}
