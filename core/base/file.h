/* core/base/file.h - whole files in, whole files out.
 *
 * Not a stream library: a file is read at once or written at once. A written file appears complete or not at
 * all (temporary name in the same directory, fsync, rename), so a crash leaves no half of a plan. In a folder that
 * others may write to, no name and no link of theirs leads a write to another file. Every file of ghp is opened here.
 *
 * Tested  tests/core/base/test_file.c */
#ifndef GHP_CORE_BASE_FILE_H
#define GHP_CORE_BASE_FILE_H

#include "core/base/hash.h"
#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Fails with the one sentence for a file that cannot be written, or read; `error` is an errno.
 *
 * Returns   GHP_ERR_IO; GHP_ERR_NO_MEMORY for ENOMEM */
enum ghp_status ghp_file_fail_write(const char *path, int error);
enum ghp_status ghp_file_fail_read(const char *path, int error);

/* Whether a name is that of a folder, or of a link to one. */
bool ghp_file_is_folder(const char *path);

/* Opens a regular file for reading. Pipes, devices, folders and sockets are refused at once, without waiting.
 *
 * fd   receives the descriptor, which the caller closes; -1 on failure
 *
 * Returns   GHP_OK; GHP_ERR_IO */
enum ghp_status ghp_file_open(const char *path, int *fd);

/* Maps a regular file into memory, read-only; munmap ends that.
 *
 * memory   receives it; NULL if the file is empty
 * bytes    receives its size
 *
 * Returns   as ghp_file_open; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_file_map(const char *path, void **memory, size_t *bytes);

/* Opens a file that is written to again and again, at its end; it is made if it is not there. A link is followed only
 * if it belongs to this user or to root, so that nobody else chooses what is written over. A pipe that nobody reads is
 * refused.
 *
 * fd   receives the descriptor, which the caller closes; -1 on failure
 *
 * Returns   GHP_OK; GHP_ERR_IO */
enum ghp_status ghp_file_open_output(const char *path, bool append, int *fd);

/* Opens a new file next to `path`, which is to be renamed to it once it is whole: ghp_leftover_name, and a counter if
 * that is taken. No file or link that is there already is opened.
 *
 * name   receives its name, of n bytes
 *
 * Returns   a descriptor; -1 with errno */
int ghp_file_open_temporary(const char *path, char *name, size_t n);

/* Whether ghp_file_write_atomic could write the file now: it makes a temporary file and removes it again, and leaves
 * the file itself as it is. For tools, before their work.
 *
 * Returns   as ghp_file_write_atomic */
enum ghp_status ghp_file_try_write(const char *path);

/* Flushes what was printed. `what` names it in the sentence, for example "to standard output".
 *
 * Returns   GHP_OK; GHP_ERR_IO if this write or an earlier one failed */
enum ghp_status ghp_file_flush(FILE *out, const char *what);

/* Opens whichever of the descriptors 0 to 2 are closed, so that no file becomes one of them: messages would be written
 * into it. What is printed there fails as before. A write beyond a limit of sizes fails from then on, as one to a full
 * disk does. */
void ghp_file_guard_standard(void);

/* Reads a whole file of at most 4 GiB, or a pipe of this process's own: /dev/stdin and /dev/fd/N, as the shell's
 * <(command) names it.
 *
 * path   file name; "-" has no special meaning
 * text   receives the bytes and one NUL after them; the caller frees it; NULL on failure
 * n      receives the bytes read, without the NUL; may be NULL                            [bytes]
 *
 * Returns   GHP_OK; GHP_ERR_IO (cannot open or read; no regular file; too large); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_file_read(const char *path, char **text, size_t *n);

/* Writes a whole file, replacing an old one only once the new one is safely on disk.
 *
 * path    file name; its directory must exist and be writable; a device or pipe (such as /dev/stdout, which cannot
 *         be renamed over) is written in place
 * bytes   n bytes, borrowed
 *
 * Returns   GHP_OK; GHP_ERR_IO with what to do (no part of the file stays); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_file_write_atomic(const char *path, const void *bytes, size_t n);

/* Whether a file may be written over: there is none, it is empty, no regular file (a pipe, a folder), or of the kind
 * that is to be written.
 *
 * marks   what files of that kind have in their first 128 bytes, for example "\"ghp.plan/"; several with '|'
 *         between them: one suffices; "": any file
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (a file of another kind). A file that cannot be read is left to who writes it */
enum ghp_status ghp_file_check_replaced(const char *path, const char *marks);

/* Makes a rename within the folder of `path` durable. Errors are ignored, since some file systems cannot do it. */
void ghp_file_sync_folder(const char *path);

#endif
