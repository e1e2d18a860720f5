/* core/base/log.h - what a tool says on stderr while it works: notes, warnings, a progress bar.
 *
 * Not for results (stdout) and not for failures that main can print (status.h).  Silent unless ghp_log_open said that
 * this process speaks (rank 0).  The bar is drawn only where stderr is a terminal, and without colour where NO_COLOR
 * is set or the terminal is dumb; elsewhere a tool may say lines in its place.
 * One bar at a time; call all of these from one thread, but for ghp_warn_here. */
#ifndef GHP_CORE_BASE_LOG_H
#define GHP_CORE_BASE_LOG_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Names the tool in front of each line; tool is borrowed.  speaks: whether this process prints (rank 0). */
void ghp_log_open(const char *tool, bool speaks);

/* Prints one line on stderr: `tool: text`. */
void ghp_note(const char *fmt, ...) GHP_PRINTF(1, 2);

/* Prints one line on stderr: `tool: warning: text`. */
void ghp_warn(const char *fmt, ...) GHP_PRINTF(1, 2);

/* Prints one line on stderr: `tool: warning: text`, whether or not this process speaks and from any thread: for what
 * this process alone knows. */
void ghp_warn_here(const char *fmt, ...) GHP_PRINTF(1, 2);

/* Prints one line on stderr: `tool: text`, whether or not this process speaks: for a failure that cannot reach main. */
void ghp_log_failure(const char *fmt, ...) GHP_PRINTF(1, 2);

/* From now on a bar says how far it is by a plain line every so many seconds, where stderr is no terminal. */
void ghp_progress_lines(double every_s);

/* Starts a bar of `total` steps (> 0); label is copied. */
void ghp_progress_begin(const char *label, int64_t total);

/* Shows that `done` of the steps are done, with the time left and a short text ("" for none: give "%s", ""). */
void ghp_progress_step(int64_t done, const char *fmt, ...) GHP_PRINTF(2, 3);

/* Starts a bar over time, for work that ends at the latest after limit_s (> 0) seconds and whose steps nobody can
 * count;
 * label is copied.  Shown by ghp_progress_tick.  A bar that is on already stays: the work is part of a larger one.
 *
 * Returns   whether it began the bar: then the caller ends it */
bool ghp_progress_clock(const char *label, double limit_s);

/* Shows the time gone of a bar over time, the time left at most, and a short text; harmless where none was begun. */
void ghp_progress_tick(const char *fmt, ...) GHP_PRINTF(1, 2);

/* Removes the bar; harmless where none was begun. */
void ghp_progress_end(void);

#endif
