/* core/base/heartbeat.h - a file by which a run tells another process that it lives, and how far it is.
 *
 *     step 120 kept 100
 *
 * One line, written over itself: steps done, and those of the newest checkpoint. A reader learns from the time of the
 * last change that the run lives. It is no log and no result: a write that fails is left out.
 *
 * Tested  tests/core/base/test_heartbeat.c */
#ifndef GHP_CORE_BASE_HEARTBEAT_H
#define GHP_CORE_BASE_HEARTBEAT_H

#include "core/base/status.h"

#include <stdbool.h>

/* ---- writing ---- */

struct ghp_heartbeat {
    int fd;             /* 0: closed, and nothing is written */
    int64_t step, kept; /* to be written; the writer's to set */
};

/* Makes the file, empty. Returns GHP_OK; GHP_ERR_IO. */
enum ghp_status ghp_heartbeat_open(const char *path, struct ghp_heartbeat *heartbeat);
void ghp_heartbeat_write(const struct ghp_heartbeat *heartbeat);
void ghp_heartbeat_close(struct ghp_heartbeat *heartbeat); /* accepts a zeroed one */

/* ---- reading ---- */

struct ghp_beat {
    int64_t step, kept; /* 0 before the first */
    double changed_s;   /* of the file system's clock, only good for comparing with itself */
};

/* The last beat; zeroed where there is no file, or nothing in it yet. */
struct ghp_beat ghp_heartbeat_read(const char *path);

#endif
