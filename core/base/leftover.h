/* core/base/leftover.h - files under a temporary name, and which of them nobody will finish.
 *
 * The name says the host and the process that writes; the file is locked as long as that process has it open, so that a
 * process number that was given out again says nothing. What cannot be told for certain stays. */
#ifndef GHP_CORE_BASE_LEFTOVER_H
#define GHP_CORE_BASE_LEFTOVER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether there may be a process of this number on this host, other than one that has ended and is only waited for. */
bool ghp_leftover_lives(long number);

/* The temporary name of this process for `path`: PATH.tmp-HOST-NUMBER. Returns its length, as snprintf. */
int ghp_leftover_name(const char *path, char *name, size_t n);

/* Marks the open file as being written, until it is closed. */
void ghp_leftover_hold(int file);

/* Removes temporary files of `path`, of this user and host, whose writer is certainly gone: a kill left them.
 *
 * Local
 * Tested   tests/core/base/test_leftover.c */
void ghp_leftover_clean(const char *path);

#endif
