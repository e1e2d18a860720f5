/* executor/platform/emulation.c - see emulation.h. */
#include "executor/platform/emulation.h"

#include "core/base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double most_seconds = 3600, most_Bps = 1e15;

static enum ghp_status fail_text(const char *text)
{
    return GHP_FAIL(GHP_ERR_USAGE,
                    "cannot emulate '%s'; give step=SECONDS, port=BYTES_PER_S, latency=SECONDS and "
                    "slow=RANK:FACTOR (with a step), or some of them, such as "
                    "step=40ms,port=1.25e8,latency=20us,slow=3:2",
                    text);
}

/* Reads a positive number. Seconds may be followed by s, ms or us. */
static bool read_number(const char *text, bool seconds, double *value)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
    char *end;
    double number;

    if (text[0] < '0' || text[0] > '9') return false;
    number = strtod(text, &end);
    for (size_t i = 0; i < (seconds ? sizeof units / sizeof units[0] : 1); i++)
        if (strcmp(end, units[i].name) == 0) {
            *value = number * units[i].factor;
            return isfinite(*value) && *value <= (seconds ? most_seconds : most_Bps);
        }
    return false;
}

static bool read_item(const char *item, struct ghp_emulation *e)
{
    struct ghp_stragglers one;

    if (strncmp(item, "step=", 5) == 0) return read_number(item + 5, true, &e->step_s);
    if (strncmp(item, "port=", 5) == 0) return read_number(item + 5, false, &e->port_Bps);
    if (strncmp(item, "latency=", 8) == 0) return read_number(item + 8, true, &e->latency_s);
    if (strncmp(item, "slow=", 5) != 0 || e->slow.n == GHP_STRAGGLERS_MOST ||
        ghp_stragglers_parse(item + 5, &one) != GHP_OK ||
        ghp_stragglers_factor(&e->slow, one.of[0].rank) > 1)
        return false;
    e->slow.of[e->slow.n++] = one.of[0];
    return true;
}

enum ghp_status ghp_emulation_parse(const char *text, struct ghp_emulation *emulation)
{
    const char *at = text;

    *emulation = (struct ghp_emulation){0};
    for (;;) {
        size_t n = strcspn(at, ",");
        char item[64];

        if (n >= sizeof item) return fail_text(text);
        memcpy(item, at, n);
        item[n] = '\0';
        if (!read_item(item, emulation)) return fail_text(text);
        at += n;
        if (*at == '\0') break;
        at++;
    }
    if (emulation->slow.n > 0 && !(emulation->step_s > 0)) return fail_text(text);
    return emulation->step_s > 0 || ghp_emulation_delays(emulation) ? GHP_OK : fail_text(text);
}

const char *ghp_emulation_format(const struct ghp_emulation *e, char text[GHP_EMULATION_TEXT_BYTES])
{
    size_t used = 0, size = GHP_EMULATION_TEXT_BYTES;
    const char *comma = "";

    text[0] = '\0';
    if (e->step_s > 0) used += (size_t)snprintf(text, size, "step=%gs", e->step_s);
    comma = used > 0 ? "," : "";
    if (e->port_Bps > 0)
        used += (size_t)snprintf(text + used, size - used, "%sport=%g", comma, e->port_Bps);
    comma = used > 0 ? "," : "";
    if (e->latency_s > 0)
        used += (size_t)snprintf(text + used, size - used, "%slatency=%gs", comma, e->latency_s);
    for (int i = 0; i < e->slow.n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, ",slow=%d:%g", e->slow.of[i].rank,
                                 e->slow.of[i].factor);
    return text;
}

bool ghp_emulation_delays(const struct ghp_emulation *e)
{
    return e->port_Bps > 0 || e->latency_s > 0;
}

void ghp_emulation_sleep_until(double moment_s)
{
    struct timespec until = {.tv_sec = (time_t)moment_s};

    if (moment_s <= ghp_now_s()) return;
    until.tv_nsec = (long)((moment_s - (double)until.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}
