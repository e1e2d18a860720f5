/* core/base/folder.h - makes a folder, or says what is missing.
 *
 * Tested  tests/tools/together/test_mistakes.sh */
#ifndef GHP_CORE_BASE_FOLDER_H
#define GHP_CORE_BASE_FOLDER_H

#include "core/base/status.h"

#include <stdbool.h>

/* Makes a folder that is not there yet; the one that it is to be in must be.
 *
 * made   receives whether it was not there before; may be NULL
 *
 * Returns   GHP_OK (also if something of that name is there); GHP_ERR_IO with what to do */
enum ghp_status ghp_folder_make(const char *path, bool *made);

#endif
