/* core/base/json_lines.h - JSON as ghp's own files show it: what fits on a line stands on one line.
 *
 * Not another reader or value type: it writes Jansson's values. An object or array whose text fits into the line's
 * width is written on one line, a longer one is broken into a line per member, so a profile shows one measurement a
 * line and a plan one layer a line. Reals are written with the fewest digits that read back to the same double, and
 * stay reals when read back: writing, reading and writing again gives the same bytes, which is what hashes rely on.
 *
 * Tested  tests/core/cost/test_profile.c, tests/core/plan/test_plan.c */
#ifndef GHP_CORE_BASE_JSON_LINES_H
#define GHP_CORE_BASE_JSON_LINES_H

#include "core/base/json.h"

/* The value as one line without spaces: the canonical text that hashes are made of.
 *
 * root   borrowed; its reals are finite
 * text   malloc'd; the caller frees it
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_json_compact(const json_t *root, char **text);

/* The value broken into lines, with a newline at the end; as above. */
enum ghp_status ghp_json_lines(const json_t *root, char **text);

/* Writes ghp_json_lines as a file, atomically.
 *
 * root   taken over: its reference is released, also on failure; NULL (a builder ran out of memory) is
 *        GHP_ERR_NO_MEMORY */
enum ghp_status ghp_json_lines_save(const char *path, json_t *root);

#endif
