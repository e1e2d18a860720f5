/* executor/platform/emulation.h - one machine that behaves like many slower ones: "step=40ms,port=1.25e8,latency=20us,
 * slow=3:2".
 *
 *     step      computing of a step lasts so long, on a slow worker times its factor: what is missing is slept
 *     port      bytes/s of each worker's link, each way: a message of m bytes has left at max(now, free) + m / port,
 *               and the link of who receives is taken as long
 *     latency   and arrives so much later
 *     slow      RANK:FACTOR, may be repeated
 *
 * Training by several workers on a few cores then takes the time that it would take on as many machines, as long as the
 * cores do the true work in the time given. Numbers are those of a run without it, bit for bit: only times change.
 *
 * Who sleeps: engine/pace.h the computing, transport/mpi/port.h the messages.
 *
 * Tested  tests/executor/platform/test_emulation.c, tests/tools/run/test_emulate.sh */
#ifndef GHP_EXECUTOR_PLATFORM_EMULATION_H
#define GHP_EXECUTOR_PLATFORM_EMULATION_H

#include "core/cost/stragglers.h"

#include <stdbool.h>

enum { GHP_EMULATION_TEXT_BYTES = 384 };

struct ghp_emulation {
    double step_s;    /* 0: computing takes what it takes */
    double port_Bps;  /* 0: no limit */
    double latency_s; /* >= 0 */
    struct ghp_stragglers slow;
};

/* Returns   GHP_OK; GHP_ERR_USAGE (not of this form, nothing in it, a slow worker without a step) */
enum ghp_status ghp_emulation_parse(const char *text, struct ghp_emulation *emulation);

/* Writes an emulation in the same form, with times in seconds. Returns   text */
const char *ghp_emulation_format(const struct ghp_emulation *emulation,
                                 char text[GHP_EMULATION_TEXT_BYTES]);

/* Whether messages take longer. */
bool ghp_emulation_delays(const struct ghp_emulation *emulation);

/* Sleeps until a moment on ghp_now_s's clock; at once if that is over. */
void ghp_emulation_sleep_until(double moment_s);

#endif
