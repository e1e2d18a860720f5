/* core/base/checkpoint_name.h - what the checkpoints in a training's folder are called: ghp-run writes them, ghp-launch
 * and ghp-inspect look for them. */
#ifndef GHP_CORE_BASE_CHECKPOINT_NAME_H
#define GHP_CORE_BASE_CHECKPOINT_NAME_H

#include "core/base/status.h"

#include <stdbool.h>

enum { GHP_CHECKPOINT_PATH_BYTES = 4096 };

/* The newest, and the one before it; a kill that came between its two names leaves the latter alone. */
enum ghp_checkpoint_generation {
    GHP_CHECKPOINT_NEWEST,
    GHP_CHECKPOINT_PREVIOUS,
    GHP_CHECKPOINT_GENERATIONS
};

/* Returns   false: the name is too long, and cut off */
bool ghp_checkpoint_path(const char *folder, enum ghp_checkpoint_generation generation,
                         char path[GHP_CHECKPOINT_PATH_BYTES]);

/* The failure, by this status, to continue from a folder that has none. */
enum ghp_status ghp_checkpoint_missing(enum ghp_status status, const char *folder);

#endif
