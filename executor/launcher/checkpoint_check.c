/* executor/launcher/checkpoint_check.c - see checkpoint_check.h. */
#include "executor/launcher/checkpoint_check.h"

#include "core/base/log.h"
#include "core/model/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = GHP_CHECKPOINT_PATH_BYTES };

bool ghp_launcher_find_checkpoint(const char *folder, char path[PATH_BYTES], struct stat *about)
{
    for (int i = 0; i < GHP_CHECKPOINT_GENERATIONS; i++) {
        ghp_checkpoint_path(folder, (enum ghp_checkpoint_generation)i, path);
        if (stat(path, about) == 0) return true;
    }
    return false;
}

enum ghp_status ghp_launcher_check_resumable(const char *folder)
{
    char path[PATH_BYTES];
    struct stat about;

    return ghp_launcher_find_checkpoint(folder, path, &about)
               ? GHP_OK
               : ghp_checkpoint_missing(GHP_ERR_INPUT, folder);
}

static enum ghp_status check(const char *path)
{
    struct ghp_safetensors *file = NULL;
    enum ghp_status status = ghp_safetensors_open(path, &file);

    if (status == GHP_OK) status = ghp_safetensors_check(file);
    ghp_safetensors_close(file);
    return status;
}

static enum ghp_status put_aside(const char *path, const char *why)
{
    char aside[PATH_BYTES + 16];

    snprintf(aside, sizeof aside, "%s.damaged", path);
    if (rename(path, aside) != 0)
        return GHP_FAIL(GHP_ERR_IO, "cannot rename the damaged '%s': %s; move it away", path,
                        strerror(errno));
    ghp_warn("the only checkpoint is damaged, and is '%s' now: the training begins again; %s",
             aside, why);
    return GHP_OK;
}

enum ghp_status ghp_launcher_check_checkpoints(const char *folder, bool first)
{
    char newest[PATH_BYTES], previous[PATH_BYTES], why[512];
    bool two;

    ghp_checkpoint_path(folder, GHP_CHECKPOINT_NEWEST, newest);
    ghp_checkpoint_path(folder, GHP_CHECKPOINT_PREVIOUS, previous);
    two = access(previous, F_OK) == 0;
    if (check(newest) != GHP_ERR_FORMAT || (two && check(previous) != GHP_ERR_FORMAT))
        return GHP_OK;
    snprintf(why, sizeof why, "%s", ghp_status_message());
    if (first && !two) return put_aside(newest, why);
    return GHP_FAIL(
        GHP_ERR_FORMAT,
        "gave up: no checkpoint in '%s' is sound%s: %s; put a copy of one there as '%s' "
        "and continue with --resume, or begin again with --overwrite",
        folder, two ? "" : ", there is one alone", why, newest);
}
