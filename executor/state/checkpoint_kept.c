/* executor/state/checkpoint_kept.c - see checkpoint.h: checkpoints that outlive the two newest, as further names of
 * their files: the last ones, or those with the least test loss. A kill between two names leaves one too many, which
 * the next save removes. */
#include "executor/state/checkpoint_private.h"

#include "core/base/log.h"
#include "core/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char begin[] = "checkpoint.step-", end[] = ".safetensors";

enum ghp_status ghp_checkpoint_keep_parse(const char *text, struct ghp_checkpoint_keep *keep)
{
    static const char last[] = "last:", best[] = "best:";
    const char *number = text + strlen(last);
    char *rest = NULL;

    keep->best = ghp_text_begins(text, best);
    if (keep->best || ghp_text_begins(text, last))
        keep->most = *number >= '0' && *number <= '9' ? (int)strtol(number, &rest, 10) : 0;
    if (rest != NULL && *rest == '\0' && keep->most >= 1 && keep->most <= GHP_CHECKPOINT_KEEP_MOST)
        return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_USAGE,
        "bad value '%s' for '--keep'; give last:K for the K last checkpoints, or best:K "
        "for those with the least test loss, K from 1 to %d",
        text, GHP_CHECKPOINT_KEEP_MOST);
}

static void path_of(const char *folder, int64_t step, char path[GHP_CHECKPOINT_PATH_BYTES])
{
    snprintf(path, GHP_CHECKPOINT_PATH_BYTES, "%s/%s%" PRId64 "%s", folder, begin, step, end);
}

/* The step in the name of a file that is kept; -1: it is another file. */
static int64_t step_of(const char *name)
{
    const char *digits = name + strlen(begin);
    char *rest = NULL;
    int64_t step;

    if (!ghp_text_begins(name, begin) || *digits < '0' || *digits > '9') return -1;
    errno = 0;
    step = strtoll(digits, &rest, 10);
    return errno == 0 && strcmp(rest, end) == 0 ? step : -1;
}

/* By what a file is kept: the one with the least goes first. */
static double worth_of(const char *folder, int64_t step, bool best)
{
    char path[GHP_CHECKPOINT_PATH_BYTES];
    struct ghp_safetensors *file = NULL;
    double worth = -INFINITY;

    if (!best) return (double)step;
    path_of(folder, step, path);
    if (ghp_safetensors_open(path, &file) == GHP_OK) {
        const char *loss = ghp_safetensors_metadata(file, ghp_checkpoint_loss_key);

        if (loss != NULL) worth = -strtod(loss, NULL);
    }
    ghp_safetensors_close(file);
    return isnan(worth) ? -INFINITY : worth;
}

/* How many are kept, and the step of the one that goes first; of equal ones the older. */
static int64_t count(const char *folder, bool best, int64_t *least)
{
    DIR *all = opendir(folder);
    const struct dirent *entry;
    double least_worth = INFINITY;
    int64_t n = 0;

    *least = -1;
    while (all != NULL && (entry = readdir(all)) != NULL) {
        int64_t step = step_of(entry->d_name);
        double worth;

        if (step < 0) continue;
        n++;
        worth = worth_of(folder, step, best);
        if (*least >= 0 && (worth > least_worth || (!(worth < least_worth) && step > *least)))
            continue;
        least_worth = worth;
        *least = step;
    }
    if (all != NULL) closedir(all);
    return n;
}

bool ghp_checkpoint_any_kept(const char *folder, char path[GHP_CHECKPOINT_PATH_BYTES])
{
    int64_t step;

    if (count(folder, false, &step) == 0) return false;
    path_of(folder, step, path);
    return true;
}

/* Removes those that go first, until `most` are left. */
static void thin(const char *folder, struct ghp_checkpoint_keep keep)
{
    char path[GHP_CHECKPOINT_PATH_BYTES];
    int64_t step;

    while (count(folder, keep.best, &step) > keep.most) {
        path_of(folder, step, path);
        if (unlink(path) != 0) return;
    }
}

void ghp_checkpoint_keep_named(const struct ghp_checkpoint_folder *folder,
                               struct ghp_checkpoint checkpoint)
{
    char newest[GHP_CHECKPOINT_PATH_BYTES], path[GHP_CHECKPOINT_PATH_BYTES];

    if (!folder->newest && !folder->previous) thin(folder->path, (struct ghp_checkpoint_keep){0});
    if (folder->keep.most == 0 || (folder->keep.best && !checkpoint.evaluated)) return;
    ghp_checkpoint_path(folder->path, GHP_CHECKPOINT_NEWEST, newest);
    path_of(folder->path, checkpoint.step, path);
    unlink(path);
    if (link(newest, path) != 0)
        ghp_warn_here("cannot keep '%s': %s; name a folder on a file system with hard links", path,
                      strerror(errno));
    thin(folder->path, folder->keep);
}
