/* executor/platform/failpoint.c - see failpoint.h. */
#include "executor/platform/failpoint.h"

#include "executor/platform/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[GHP_FAILPOINT_COUNT] = {
#define GHP_FAILPOINT_NAME(id, text) text,
    GHP_FAILPOINT_LIST(GHP_FAILPOINT_NAME)
#undef GHP_FAILPOINT_NAME
};

/* Set before any thread is started; a point comes on one thread at a time. */
static struct {
    enum ghp_failpoint point; /* GHP_FAILPOINT_COUNT: none is asked for */
    bool exits, hangs;
    long left; /* times that it comes until then */
} asked = {.point = GHP_FAILPOINT_COUNT};

/* Reads a whole number after ':'; without one *value stays. False if there is something else. */
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

static enum ghp_failpoint find_point(const char **text)
{
    size_t n = strcspn(*text, ":");

    for (int i = 0; i < GHP_FAILPOINT_COUNT; i++) {
        if (strlen(names[i]) != n || strncmp(names[i], *text, n) != 0) continue;
        *text += n;
        return (enum ghp_failpoint)i;
    }
    return GHP_FAILPOINT_COUNT;
}

enum ghp_status ghp_failpoint_set(const char *text)
{
    bool stops = strncmp(text, "stop@", 5) == 0, exits = strncmp(text, "exit@", 5) == 0,
         hangs = strncmp(text, "hang@", 5) == 0;
    const char *at = text + 5;
    long time = 1, worker = ghp_launched_size() > 0 ? ghp_launched_size() - 1 : 0;
    enum ghp_failpoint point = stops || exits || hangs ? find_point(&at) : GHP_FAILPOINT_COUNT;

    if (point == GHP_FAILPOINT_COUNT || !take_number(&at, 1, &time) ||
        !take_number(&at, 0, &worker) || *at != '\0')
        return GHP_FAIL(GHP_ERR_USAGE,
                        "bad value '%s' for '--failpoint'; use stop, exit or hang, '@', a point "
                        "that --help lists, and if you like :TIME:WORKER, as in stop@forward:3:0",
                        text);
    if (worker != ghp_launched_rank()) return GHP_OK;
    asked.point = point;
    asked.exits = exits;
    asked.hangs = hangs;
    asked.left = time;
    return GHP_OK;
}

void ghp_failpoint_reach(enum ghp_failpoint point)
{
    if (point != asked.point || --asked.left != 0) return;
    if (asked.exits) exit(0);
    while (asked.hangs)
        pause();
    raise(SIGSTOP);
}
