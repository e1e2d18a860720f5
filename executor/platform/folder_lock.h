/* executor/platform/folder_lock.h - one job at a time in a folder of checkpoints: the file FOLDER/checkpoint.lock says
 * which process of which host has it, and since when.
 *
 *     host node3
 *     process 4711
 *     since 2026-01-31 12:00:00 UTC
 *
 * A thread renews the file's time every few seconds for as long as the job lives. A lock is stale, and is taken over
 * with a note, if its process on this host is gone, or if a process of another host does not renew it for so long. The
 * file is also locked for the system (flock), so that a process number which was given out again says nothing.
 *
 * Tested  tests/executor/platform/test_folder_lock.c, tests/tools/run/test_overwrite.sh */
#ifndef GHP_EXECUTOR_PLATFORM_FOLDER_LOCK_H
#define GHP_EXECUTOR_PLATFORM_FOLDER_LOCK_H

#include "core/base/status.h"

struct ghp_folder_lock;

struct ghp_folder_lock_times {
    double renewal_s;  /* from one renewal to the next */
    double patience_s; /* a lock of another host that is not renewed for so long is stale */
};
extern const struct ghp_folder_lock_times ghp_folder_lock_usual;

/* Takes the folder, which exists. Waits at most patience_s, and only for a lock of another host.
 *
 * lock   owned by the caller; NULL on failure
 *
 * Returns   GHP_OK; GHP_ERR_IO with the remedy: another job has it, or the file cannot be written; GHP_ERR_NO_MEMORY
 * Local: one process of a job */
enum ghp_status ghp_folder_lock_take(const char *folder, struct ghp_folder_lock_times times,
                                     struct ghp_folder_lock **lock);

/* Removes the file and frees the lock; accepts NULL. Local. */
void ghp_folder_lock_release(struct ghp_folder_lock *lock);

#endif
