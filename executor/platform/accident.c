/* executor/platform/accident.c - see accident.h. */
#include "executor/platform/accident.h"

#include "executor/platform/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[GHP_MOMENT_COUNT] = {
#define GHP_MOMENT_NAME(id, text) text,
    GHP_MOMENT_LIST(GHP_MOMENT_NAME)
#undef GHP_MOMENT_NAME
};

/* Set before any thread is started; a moment comes on one thread at a time. */
static struct {
    enum ghp_moment moment; /* GHP_MOMENT_COUNT: none is asked for */
    bool exits, hangs;
    long left; /* times that it comes until then */
} asked = {.moment = GHP_MOMENT_COUNT};

/* A whole number behind ':', or what was there before. False where there is something else. */
static bool take_number(const char **text, long least, long *value)
{
    char *end = NULL;

    if (**text == '\0') return true;
    if (**text != ':' || (*text)[1] < '0' || (*text)[1] > '9') return false;
    errno = 0;
    *value = strtol(*text + 1, &end, 10);
    *text = end;
    return errno == 0 && *value >= least;
}

static enum ghp_moment find_moment(const char **text)
{
    size_t n = strcspn(*text, ":");

    for (int i = 0; i < GHP_MOMENT_COUNT; i++) {
        if (strlen(names[i]) != n || strncmp(names[i], *text, n) != 0) continue;
        *text += n;
        return (enum ghp_moment)i;
    }
    return GHP_MOMENT_COUNT;
}

enum ghp_status ghp_accident_ask(const char *text)
{
    bool stops = strncmp(text, "stop@", 5) == 0, exits = strncmp(text, "exit@", 5) == 0,
         hangs = strncmp(text, "hang@", 5) == 0;
    const char *at = text + 5;
    long time = 1, worker = ghp_launched_size() > 0 ? ghp_launched_size() - 1 : 0;
    enum ghp_moment moment = stops || exits || hangs ? find_moment(&at) : GHP_MOMENT_COUNT;

    if (moment == GHP_MOMENT_COUNT || !take_number(&at, 1, &time) ||
        !take_number(&at, 0, &worker) || *at != '\0')
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "bad value '%s' for '--inject-accident'; use stop, exit or hang, '@', a moment "
            "that --help lists, and where wanted :TIME:WORKER, as in stop@forward:3:0",
            text);
    if (worker != ghp_launched_rank()) return GHP_OK;
    asked.moment = moment;
    asked.exits = exits;
    asked.hangs = hangs;
    asked.left = time;
    return GHP_OK;
}

void ghp_accident_at(enum ghp_moment moment)
{
    if (moment != asked.moment || --asked.left != 0) return;
    if (asked.exits) exit(0);
    while (asked.hangs)
        pause();
    raise(SIGSTOP);
}
