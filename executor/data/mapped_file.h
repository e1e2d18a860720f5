/* executor/data/mapped_file.h - files that are read where they are mapped. One that is cut meanwhile, or whose disk
 * fails, ends the process by SIGBUS; of a mapped file that is said first.
 *
 * Tested   tests/tools/data/test_tokens.sh */
#ifndef GHP_EXECUTOR_DATA_MAPPED_FILE_H
#define GHP_EXECUTOR_DATA_MAPPED_FILE_H

#include "core/base/status.h"

#include <stddef.h>

/* Maps a regular file into memory, read-only.
 *
 * memory   receives it, until ghp_mapped_file_close; NULL if the file is empty
 * bytes    receives its size
 *
 * Returns   as ghp_file_map
 * Local, on one thread at a time */
enum ghp_status ghp_mapped_file_open(const char *path, void **memory, size_t *bytes);
void ghp_mapped_file_close(void *memory, size_t bytes); /* accepts NULL */

#endif
