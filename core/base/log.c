/* core/base/log.c - what a tool says on stderr while it works.  The state is one per process: there is one stderr. */
#include "core/base/log.h"

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/base/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_S 0.1 /* the bar is drawn at most this often */
#define SILENT_S 0.5 /* a bar over time is not drawn before: most searches are over by then */

enum { BAR_CELLS = 24, LINE_SIZE = 512, NOTE_SIZE = 4096, DEFAULT_COLUMNS = 80 };

static const char *tool_name = "ghp";
static bool speaks_here;
static double lines_s; /* between two lines in the place of a bar; 0: none */
static double line_said_s;

/* The bar; total is 0 while there is none. */
static struct {
    char label[64];
    int64_t total;
    double begun_s, drawn_s; /* monotonic clock */
    double limit_s;          /* > 0: a bar over time */
    bool on_screen;
} bar;

/* Takes the bar off the screen, so that a line can be printed. */
static void erase(void)
{
    if (bar.on_screen) fputs("\r\033[K", stderr);
    bar.on_screen = false;
}

static void say(const char *kind, const char *fmt, va_list arguments) GHP_PRINTF(2, 0);
static void say(const char *kind, const char *fmt, va_list arguments)
{
    char text[NOTE_SIZE];

    if (!speaks_here) return;
    erase();
    vsnprintf(text, sizeof text, fmt, arguments);
    ghp_text_printable(text);
    fprintf(stderr, "%s: %s%s\n", tool_name, kind, text);
}

void ghp_log_open(const char *tool, bool speaks)
{
    tool_name = tool;
    speaks_here = speaks;
}

void ghp_note(const char *fmt, ...)
{
    va_list arguments;

    va_start(arguments, fmt);
    say("", fmt, arguments);
    va_end(arguments);
}

void ghp_warn(const char *fmt, ...)
{
    va_list arguments;

    va_start(arguments, fmt);
    say("warning: ", fmt, arguments);
    va_end(arguments);
}

void ghp_warn_here(const char *fmt, ...)
{
    char text[LINE_SIZE];
    va_list arguments;

    va_start(arguments, fmt);
    vsnprintf(text, sizeof(text), fmt, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: warning: %s\n", tool_name, text);
}

void ghp_log_failure(const char *fmt, ...)
{
    va_list arguments;

    va_start(arguments, fmt);
    fprintf(stderr, "%s: ", tool_name);
    vfprintf(stderr, fmt, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

void ghp_progress_lines(double every_s)
{
    lines_s = isatty(STDERR_FILENO) ? 0 : every_s;
    line_said_s = ghp_now_s();
}

void ghp_progress_begin(const char *label, int64_t total)
{
    ghp_progress_end();
    if (!speaks_here || (!isatty(STDERR_FILENO) && !(lines_s > 0))) return;
    snprintf(bar.label, sizeof bar.label, "%s", label);
    bar.total = total > 0 ? total : 1;
    bar.limit_s = 0.0;
    bar.begun_s = ghp_now_s();
    bar.drawn_s = 0.0;
}

bool ghp_progress_clock(const char *label, double limit_s)
{
    if (bar.total > 0) return false;
    ghp_progress_begin(label, 1);
    bar.limit_s = limit_s;
    return bar.total > 0;
}

static bool has_color(void)
{
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");

    if (no_color != NULL && no_color[0] != '\0') return false;
    return terminal == NULL || strcmp(terminal, "dumb") != 0;
}

/* Characters that fit on a line of the terminal. */
static int columns(void)
{
    struct winsize size = {0};

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return DEFAULT_COLUMNS;
}

/* Draws label, bar, share, time left and text on one line. */
static void draw(double share, double left_s, const char *text)
{
    double now_s = ghp_now_s();
    char cells[BAR_CELLS + 1], left[32], line[LINE_SIZE];
    bool color = has_color();
    int full = (int)(share * BAR_CELLS);

    memset(cells, '.', BAR_CELLS);
    memset(cells, '#', (size_t)full);
    cells[BAR_CELLS] = '\0';
    if (left_s >= 0.0)
        ghp_seconds_format(left_s, left, sizeof left);
    else
        snprintf(left, sizeof left, "?");
    if (lines_s > 0) {
        if (now_s - line_said_s < lines_s) return;
        line_said_s = now_s;
        ghp_note("%s %.0f %%, %s left%s%s", bar.label, 100.0 * share, left,
                 text[0] != '\0' ? ": " : "", text);
        return;
    }
    snprintf(line, sizeof line, "%s [%s] %3.0f%%, %s left%s%s", bar.label, cells, 100.0 * share,
             left, text[0] != '\0' ? ", " : "", text);
    fprintf(stderr, "\r%s%.*s%s\033[K", color ? "\033[36m" : "", columns() - 1, line,
            color ? "\033[0m" : "");
    fflush(stderr);
    bar.on_screen = true;
}

void ghp_progress_step(int64_t done, const char *fmt, ...)
{
    char text[LINE_SIZE];
    va_list arguments;
    double now, share, spent_s;

    if (bar.total == 0) return;
    now = ghp_now_s();
    if (done < bar.total && now - bar.drawn_s < REDRAW_S) return;
    bar.drawn_s = now;
    spent_s = now - bar.begun_s;
    if (done < 0) done = 0;
    if (done > bar.total) done = bar.total;
    share = (double)done / (double)bar.total;
    va_start(arguments, fmt);
    vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    draw(share, done > 0 ? spent_s * (1.0 - share) / share : -1.0, text);
}

void ghp_progress_tick(const char *fmt, ...)
{
    char text[LINE_SIZE], more[LINE_SIZE];
    va_list arguments;
    double now, spent_s;

    if (bar.total == 0 || !(bar.limit_s > 0.0)) return;
    now = ghp_now_s();
    spent_s = now - bar.begun_s;
    if (now - bar.drawn_s < REDRAW_S || spent_s < SILENT_S) return;
    bar.drawn_s = now;
    if (spent_s > bar.limit_s) spent_s = bar.limit_s;
    va_start(arguments, fmt);
    vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    snprintf(more, sizeof more, "at most%s%s", text[0] != '\0' ? "; " : "", text);
    draw(spent_s / bar.limit_s, bar.limit_s - spent_s, more);
}

void ghp_progress_end(void)
{
    if (bar.total == 0) return;
    erase();
    bar.total = 0;
}
