/* core/base/heartbeat.h - a file by which a run tells another process that it lives, and how far it is.
 *
 *     step 120 kept 100 of 5000
 *     change 1 slow-worker 3 2.07 step 0.418 before 0.231
 *
 * Two lines, written over themselves: steps done, those of the newest checkpoint, and all there are; how often the
 * machine has changed, what was found of the last change, and a step's seconds now and before it. A reader learns from
 * the time of the last write that the run lives. It is neither a log nor a result, so a write that fails is left out.
 *
 * Tested  tests/core/base/test_heartbeat.c */
#ifndef GHP_CORE_BASE_HEARTBEAT_H
#define GHP_CORE_BASE_HEARTBEAT_H

#include "core/base/status.h"

#include <stdbool.h>

/* What has made steps longer: nothing that was found, a worker's computing, or exchanges. */
enum ghp_beat_cause { GHP_BEAT_OTHER, GHP_BEAT_SLOW_WORKER, GHP_BEAT_SLOW_LINKS };

struct ghp_beat_change {
    int number; /* of the change; 0: there was none */
    enum ghp_beat_cause cause;
    int worker;             /* SLOW_WORKER: its rank */
    double times;           /* as long as before: that worker's computing, or exchanges */
    double now_s, before_s; /* a step; now below before: steps are shorter */
};

/* ---- writing ---- */

struct ghp_heartbeat {
    int fd; /* 0: closed, and nothing is written */
    /* to be written; the writer's to set */
    int64_t step, kept, of;
    struct ghp_beat_change change;
};

/* Makes the file, empty. Returns GHP_OK; GHP_ERR_IO. */
enum ghp_status ghp_heartbeat_open(const char *path, struct ghp_heartbeat *heartbeat);
void ghp_heartbeat_write(const struct ghp_heartbeat *heartbeat);
void ghp_heartbeat_close(struct ghp_heartbeat *heartbeat); /* accepts a zeroed one */

/* ---- reading ---- */

struct ghp_beat {
    int64_t step, kept, of; /* 0 before the first */
    struct ghp_beat_change change;
    double changed_s; /* of the file system's clock, only good for comparing with itself */
};

/* The last beat; zeroed without a regular file, or with nothing in it yet. */
struct ghp_beat ghp_heartbeat_read(const char *path);

#endif
