/* executor/launcher/relay.h - what a command prints goes through the tool that started it, whose check of its stdout
 * (ghp_opts_printed) then sees what could not be written: mpirun ends as if it had been.
 *
 * Tested   tests/tools/hardship/test_hardship.sh */
#ifndef GHP_EXECUTOR_LAUNCHER_RELAY_H
#define GHP_EXECUTOR_LAUNCHER_RELAY_H

#include "core/base/status.h"

#include <stdbool.h>

/* A pipe whose ends no other command inherits. Returns GHP_OK; GHP_ERR_INTERNAL */
enum ghp_status ghp_relay_open(int ends[2]);

/* Writes to stdout what the pipe has, or waits for it. Returns false at its end. */
bool ghp_relay_pass(int pipe);

#endif
