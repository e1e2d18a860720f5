/* core/base/checkpoint_name.c - see base/checkpoint_name.h. */
#include "core/base/checkpoint_name.h"

#include <stdio.h>

bool ghp_checkpoint_path(const char *folder, enum ghp_checkpoint_generation generation,
                         char path[GHP_CHECKPOINT_PATH_BYTES])
{
    static const char *const names[GHP_CHECKPOINT_GENERATIONS] = {
        "checkpoint.safetensors", "checkpoint.previous.safetensors"};
    int n = snprintf(path, GHP_CHECKPOINT_PATH_BYTES, "%s/%s", folder, names[generation]);

    return n > 0 && n < GHP_CHECKPOINT_PATH_BYTES;
}

enum ghp_status ghp_checkpoint_missing(enum ghp_status status, const char *folder)
{
    return GHP_FAIL(status,
                    "there is no checkpoint in '%s'; name another folder with --checkpoint, or "
                    "leave --resume out to begin again",
                    folder);
}
