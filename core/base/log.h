/* core/base/log.h - what a tool says on stderr while it works: notes, warnings, a progress bar.
 *
 * Not for results (stdout) and not for failures that main can print (status.h). Silent unless ghp_log_open said that
 * this process speaks (rank 0). The bar is drawn if stderr is a terminal, or a pipe that a launcher empties into
 * one, and without colour if NO_COLOR is set or the terminal is dumb; elsewhere a tool may say lines in its place.
 * Control characters of what is said are never printed as they are (ghp_text_printable).
 * One bar at a time; call all of these from one thread, but for ghp_warn_here. */
#ifndef GHP_CORE_BASE_LOG_H
#define GHP_CORE_BASE_LOG_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Names the tool in front of each line; tool is borrowed.  speaks: whether this process prints (rank 0). */
void ghp_log_open(const char *tool, bool speaks);
const char *ghp_log_tool(void); /* the name that lines begin with */

/* Prints one line on stderr: `tool: text`. */
void ghp_note(const char *fmt, ...) GHP_PRINTF(1, 2);

/* Prints one line on stderr: `tool: warning: text`. */
void ghp_warn(const char *fmt, ...) GHP_PRINTF(1, 2);

/* Prints one line on stderr: `tool: warning: text`, whether or not this process speaks and from any thread: for what
 * this process alone knows. */
void ghp_warn_here(const char *fmt, ...) GHP_PRINTF(1, 2);

/* Prints one line on stderr: `tool: text`, whether or not this process speaks: for a failure that cannot reach main. */
void ghp_log_failure(const char *fmt, ...) GHP_PRINTF(1, 2);

/* How a bar looks: one line that is drawn again in its place, plain lines, or not at all. */
enum ghp_progress_look {
    GHP_PROGRESS_AUTO, /* live on a terminal, else lines if every_s says so */
    GHP_PROGRESS_LIVE,
    GHP_PROGRESS_LINES,
    GHP_PROGRESS_NONE
};
extern const char *const ghp_progress_names[]; /* by look; NULL-terminated */

struct ghp_progress {
    enum ghp_progress_look look;
    /* between two lines in the first minute, which then become rarer, up to one a minute; 0: no lines unless asked
     * for */
    double every_s;
    int terminal; /* at the other end of the pipe that stderr is, for its width; -1: none, or stderr is one */
};

/* From now on bars look so. Without it they are live on a terminal, and nowhere else. */
void ghp_progress_open(struct ghp_progress options);

/* A note about what is begun, as ghp_note; nothing if no bar is shown. */
void ghp_progress_say(const char *fmt, ...) GHP_PRINTF(1, 2);

/* The same about what came of a part, once the bar is five seconds old: of what goes quickly nothing is said. */
void ghp_progress_report(const char *fmt, ...) GHP_PRINTF(1, 2);

/* Starts a bar of `total` steps (> 0) after `before` earlier ones (a resumed run's); label is copied. */
void ghp_progress_begin(const char *label, int64_t before, int64_t total);

/* Shows that `done` of the `total` steps are done, with the time left and a short text ("" for none: give "%s", ""). */
void ghp_progress_step(int64_t done, const char *fmt, ...) GHP_PRINTF(2, 3);

/* Shows the bar where it stands with another text, for long work between two steps; harmless if none was begun. */
void ghp_progress_meanwhile(const char *fmt, ...) GHP_PRINTF(1, 2);

/* Starts a bar over time, for work that ends at the latest after limit_s (> 0) seconds and whose steps nobody can
 * count; label is copied. Shown by ghp_progress_tick. A bar that is on already stays: the work is part of a larger
 * one.
 *
 * Returns   whether it began the bar: then the caller ends it */
bool ghp_progress_clock(const char *label, double limit_s);

/* Shows the time gone of a bar over time, the time left at most, and a short text; harmless if none was begun. */
void ghp_progress_tick(const char *fmt, ...) GHP_PRINTF(1, 2);

/* Removes the bar; harmless if none was begun. */
void ghp_progress_end(void);

#endif
