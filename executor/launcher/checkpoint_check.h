/* executor/launcher/checkpoint_check.h - whether a training's checkpoints can still be read. It is called if an attempt
 * could not continue from them, since a restart does not mend a damaged one.
 *
 * Tested   tests/tools/launch/test_launch.sh */
#ifndef GHP_EXECUTOR_LAUNCHER_CHECKPOINT_CHECK_H
#define GHP_EXECUTOR_LAUNCHER_CHECKPOINT_CHECK_H

#include "core/base/status.h"

#include <stdbool.h>

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
