/* core/base/log.c - what a tool says on stderr while it works. The state is one per process: there is one stderr. */
#include "core/base/log.h"

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/base/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_S 0.1  /* the bar is drawn at most this often */
#define RARER_S 60.0  /* in so long the pause between two lines grows by the first one */
#define RAREST_S 60.0 /* the longest pause between two lines */
#define SILENT_S 0.5  /* a bar over time is not drawn before: most searches are over by then */

enum { BAR_CELLS = 24, LEAST_CELLS = 4, LINE_SIZE = 512, NOTE_SIZE = 4096, DEFAULT_COLUMNS = 80 };

static const char *tool_name = "ghp";
static bool speaks_here;
static struct ghp_progress progress = {.terminal = -1};
static double line_said_s;

const char *const ghp_progress_names[] = {"auto", "live", "lines", "none", NULL};

/* The bar; total is 0 while there is none. */
static struct {
    char label[64];
    int64_t before, done, total; /* done is of total, and `before` stands in front of both */
    double begun_s, drawn_s;     /* monotonic clock */
    double limit_s;              /* > 0: a bar over time */
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

/* What a line begins with that may come while a bar is on the terminal, another thread's or process's. */
static const char *over(void)
{
    return progress.look == GHP_PROGRESS_LIVE ? "\r\033[K" : "";
}

void ghp_log_open(const char *tool, bool speaks)
{
    tool_name = tool;
    speaks_here = speaks;
}

const char *ghp_log_tool(void)
{
    return tool_name;
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
    vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    ghp_text_printable(text);
    fprintf(stderr, "%s%s: warning: %s\n", over(), tool_name, text);
}

void ghp_log_failure(const char *fmt, ...)
{
    char text[NOTE_SIZE];
    va_list arguments;

    va_start(arguments, fmt);
    vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    ghp_text_printable(text);
    fprintf(stderr, "%s%s: %s\n", over(), tool_name, text);
}

void ghp_progress_open(struct ghp_progress options)
{
    progress = options;
    if (options.look == GHP_PROGRESS_AUTO)
        progress.look = isatty(STDERR_FILENO) || options.terminal >= 0 ? GHP_PROGRESS_LIVE
                        : options.every_s > 0                          ? GHP_PROGRESS_LINES
                                                                       : GHP_PROGRESS_NONE;
    line_said_s = ghp_now_s();
}

/* Before a tool says how, a bar is for terminals. */
static enum ghp_progress_look look_of(void)
{
    if (progress.look != GHP_PROGRESS_AUTO) return progress.look;
    return isatty(STDERR_FILENO) ? GHP_PROGRESS_LIVE : GHP_PROGRESS_NONE;
}

void ghp_progress_say(const char *fmt, ...)
{
    va_list arguments;

    if (look_of() == GHP_PROGRESS_NONE) return;
    va_start(arguments, fmt);
    say("", fmt, arguments);
    va_end(arguments);
}

void ghp_progress_report(const char *fmt, ...)
{
    static const double after_s = 5;
    va_list arguments;

    if (look_of() == GHP_PROGRESS_NONE || bar.total == 0 || ghp_now_s() - bar.begun_s < after_s)
        return;
    va_start(arguments, fmt);
    say("", fmt, arguments);
    va_end(arguments);
}

void ghp_progress_begin(const char *label, int64_t before, int64_t total)
{
    ghp_progress_end();
    if (!speaks_here || look_of() == GHP_PROGRESS_NONE) return;
    snprintf(bar.label, sizeof bar.label, "%s", label);
    bar.before = before;
    bar.done = 0;
    bar.total = total > 0 ? total : 1;
    bar.limit_s = 0.0;
    bar.begun_s = ghp_now_s();
    bar.drawn_s = 0.0;
}

bool ghp_progress_clock(const char *label, double limit_s)
{
    if (bar.total > 0) return false;
    ghp_progress_begin(label, 0, 1);
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
    int fd = progress.terminal >= 0 ? progress.terminal : STDERR_FILENO;

    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return DEFAULT_COLUMNS;
}

/* What a line says: how far it is ("40/100", "25 %"), what is left, and more. */
struct words {
    char done[48], left[48], text[LINE_SIZE];
};

/* In the place of a bar, ever more rarely. */
static void say_line(const struct words *w, double now_s)
{
    double pause_s = progress.every_s * (1.0 + (now_s - bar.begun_s) / RARER_S);

    if (pause_s > RAREST_S && RAREST_S > progress.every_s) pause_s = RAREST_S;
    if (now_s - line_said_s < pause_s) return;
    line_said_s = now_s;
    ghp_note("%s %s, %s left%s%s", bar.label, w->done, w->left, w->text[0] != '\0' ? ", " : "",
             w->text);
}

/* Draws the bar as wide as what is said leaves room for. */
static void draw(double fraction, const struct words *w)
{
    char cells[BAR_CELLS + 1], line[2 * LINE_SIZE];
    bool color = has_color();
    int room = columns() - 1, full;

    room -= snprintf(line, sizeof line, "%s %s, %s left%s%s", bar.label, w->done, w->left,
                     w->text[0] != '\0' ? ", " : "", w->text);
    room = room - 3 > BAR_CELLS ? BAR_CELLS : room - 3; /* blank and brackets */
    if (room >= LEAST_CELLS) {
        full = (int)(fraction * room);
        memset(cells, '.', (size_t)room);
        memset(cells, '#', (size_t)full);
        cells[room] = '\0';
        snprintf(line, sizeof line, "%s [%s] %s, %s left%s%s", bar.label, cells, w->done, w->left,
                 w->text[0] != '\0' ? ", " : "", w->text);
    }
    ghp_text_printable(line);
    fprintf(stderr, "\r%s%.*s%s\033[K", color ? "\033[36m" : "", columns() - 1, line,
            color ? "\033[0m" : "");
    fflush(stderr);
    bar.on_screen = true;
}

static void show(double fraction, double left_s, struct words *w)
{
    double now_s = ghp_now_s();

    if (left_s >= 0.0)
        ghp_seconds_format(left_s, w->left, sizeof w->left);
    else
        snprintf(w->left, sizeof w->left, "?");
    if (look_of() == GHP_PROGRESS_LIVE)
        draw(fraction, w);
    else
        say_line(w, now_s);
}

/* The bar where it stands, with another text. */
static void show_count(const char *fmt, va_list arguments) GHP_PRINTF(1, 0);
static void show_count(const char *fmt, va_list arguments)
{
    double now_s = ghp_now_s(), spent_s = now_s - bar.begun_s, fraction;
    struct words w;

    bar.drawn_s = now_s;
    fraction = (double)bar.done / (double)bar.total;
    vsnprintf(w.text, sizeof w.text, fmt, arguments);
    snprintf(w.done, sizeof w.done, "%" PRId64 "/%" PRId64, bar.before + bar.done,
             bar.before + bar.total);
    show(fraction, bar.done > 0 ? spent_s * (1.0 - fraction) / fraction : -1.0, &w);
}

void ghp_progress_step(int64_t done, const char *fmt, ...)
{
    va_list arguments;

    if (bar.total == 0) return;
    bar.done = done < 0 ? 0 : done > bar.total ? bar.total : done;
    if (done < bar.total && ghp_now_s() - bar.drawn_s < REDRAW_S) return;
    va_start(arguments, fmt);
    show_count(fmt, arguments);
    va_end(arguments);
}

void ghp_progress_meanwhile(const char *fmt, ...)
{
    va_list arguments;

    if (bar.total == 0 || bar.limit_s > 0.0 || ghp_now_s() - bar.drawn_s < REDRAW_S) return;
    va_start(arguments, fmt);
    show_count(fmt, arguments);
    va_end(arguments);
}

void ghp_progress_tick(const char *fmt, ...)
{
    struct words w;
    char text[LINE_SIZE - 16];
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
    snprintf(w.text, sizeof w.text, "at most%s%s", text[0] != '\0' ? "; " : "", text);
    snprintf(w.done, sizeof w.done, "%.0f%%", 100.0 * spent_s / bar.limit_s);
    show(spent_s / bar.limit_s, bar.limit_s - spent_s, &w);
}

void ghp_progress_end(void)
{
    if (bar.total == 0) return;
    erase();
    bar.total = 0;
}
