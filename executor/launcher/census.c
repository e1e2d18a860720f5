/* executor/launcher/census.c - see executor/launcher/census.h. */
#include "executor/launcher/census.h"

#include "core/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum ghp_status ghp_census_count(struct ghp_census *census, int *left)
{
    FILE *out;
    int found = 0, ended;

    *left = -1;
    ghp_census_forget(census);
    if (census->command == NULL) return GHP_OK;
    out = popen(census->command, "re");
    if (out != NULL) found = fscanf(out, "%d", left);
    ended = out != NULL ? pclose(out) : -1;
    if (ended == 0 && found == 1 && *left >= 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "--workers-left '%s' prints no number of workers; give a command that does, "
                    "and exits with 0",
                    census->command);
}

void ghp_census_forget(struct ghp_census *census)
{
    if (census->out != NULL) pclose(census->out);
    census->out = NULL;
    census->next_s = ghp_now_s() + census->every_s;
}

/* Starts the command, whose answer is read without waiting. */
static void ask(struct ghp_census *census)
{
    census->n = 0;
    census->out = popen(census->command, "re");
    if (census->out != NULL) fcntl(fileno(census->out), F_SETFL, O_NONBLOCK);
}

bool ghp_census_look(struct ghp_census *census, int *left)
{
    char *end = NULL;
    long value;
    ssize_t n;

    if (census->command == NULL) return false;
    if (census->out == NULL) {
        if (ghp_now_s() < census->next_s) return false;
        ask(census);
        if (census->out == NULL) return false;
    }
    n = read(fileno(census->out), census->text + census->n, sizeof(census->text) - 1 - census->n);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n > 0) census->n += (size_t)n;
    if (n > 0 && census->n < sizeof(census->text) - 1) return false;
    census->text[census->n] = '\0';
    ghp_census_forget(census);
    value = strtol(census->text, &end, 10);
    *left = (int)value;
    return end != census->text && value >= 0 && value <= 1 << 20;
}
