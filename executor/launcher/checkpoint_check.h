/* executor/launcher/checkpoint_check.h - whether a training's checkpoints can still be read. A restart does
 * not mend a damaged one, nor one that is missing.
 *
 * Tested   tests/tools/launch/test_launch.sh */
#ifndef GHP_EXECUTOR_LAUNCHER_CHECKPOINT_CHECK_H
#define GHP_EXECUTOR_LAUNCHER_CHECKPOINT_CHECK_H

#include "core/base/checkpoint_name.h"

#include <stdbool.h>
#include <sys/stat.h>

/* Finds the newest checkpoint of a folder; the one before it if a kill has come between its two names.
 *
 * path, about   receive it
 *
 * Returns   false: there is none */
bool ghp_launcher_find_checkpoint(const char *folder, char path[GHP_CHECKPOINT_PATH_BYTES],
                                  struct stat *about);

/* Refuses a folder without a checkpoint, from which every attempt to continue would fail.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT */
enum ghp_status ghp_launcher_check_resumable(const char *folder);

/* folder   of checkpoints
 * first    the training's first steps are the damaged checkpoint's: there never was another one, so beginning again
 *          costs as much as a death before the first checkpoint
 *
 * Returns   GHP_OK: one is sound, or why it cannot be read may pass; or `first`, and the damaged file has been put
 *           aside under another name, with a warning, so that there is none; GHP_ERR_FORMAT with the remedy: none is
 *           sound
 * Local */
enum ghp_status ghp_launcher_check_checkpoints(const char *folder, bool first);

#endif
