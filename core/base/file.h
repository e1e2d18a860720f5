/* core/base/file.h - whole files in, whole files out.
 *
 * Not a stream library: a file is read at once or written at once.  A written file appears complete or not at
 * all (temporary name in the same directory, fsync, rename), so a crash leaves no half of a plan.
 *
 * Tested  tests/core/base/test_file.c */
#ifndef GHP_CORE_BASE_FILE_H
#define GHP_CORE_BASE_FILE_H

#include "core/base/hash.h"
#include "core/base/status.h"

#include <stddef.h>

/* Reads a whole file (or pipe).
 *
 * path   file name; "-" is no special name
 * text   receives the bytes and one NUL after them; the caller frees it; NULL on failure
 * n      receives the bytes read, without the NUL; may be NULL                            [bytes]
 *
 * Returns   GHP_OK; GHP_ERR_IO (cannot open or read; a directory); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_file_read(const char *path, char **text, size_t *n);

/* Writes a whole file, replacing an old one only once the new one is safely on disk.
 *
 * path    file name; its directory must exist and be writable; a device or pipe (such as /dev/stdout, which cannot
 *         be renamed over) is written in place
 * bytes   n bytes, borrowed
 *
 * Returns   GHP_OK; GHP_ERR_IO with what to do (nothing is left behind); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_file_write_atomic(const char *path, const void *bytes, size_t n);

/* Whether a file may be written over: there is none, it is empty, no regular file (a pipe, a folder), or of the kind
 * that is to be written.
 *
 * marks   what files of that kind have in their first 128 bytes, for example "\"ghp.plan/"; several with '|'
 *         between them: one suffices; "": any file
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (a file of another kind). A file that cannot be read is left to who writes it */
enum ghp_status ghp_file_check_replaced(const char *path, const char *marks);

/* Makes a rename within the folder of `path` durable; a file system that cannot is no reason to fail. */
void ghp_file_sync_folder(const char *path);

#endif
