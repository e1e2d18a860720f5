/* core/base/file_private.h - what file*.c share; for no one else. */
#ifndef GHP_CORE_BASE_FILE_PRIVATE_H
#define GHP_CORE_BASE_FILE_PRIVATE_H

#include "core/base/file.h"

/* As ghp_file_open; takes a pipe of this process's own, too. */
enum ghp_status ghp_file_open_whole(const char *path, int *fd);

/* Refuses a link of another user, who would choose what is written over. */
enum ghp_status ghp_file_check_link(const char *path);

#endif
