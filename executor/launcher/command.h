/* executor/launcher/command.h - a command of another tool, run to its end. It outlives it, so that the last line of
 * what fails is ghp's own, whatever mpirun adds. One runs at a time. */
#ifndef GHP_EXECUTOR_LAUNCHER_COMMAND_H
#define GHP_EXECUTOR_LAUNCHER_COMMAND_H

#include "core/base/status.h"

#include <stdbool.h>

/* A command that grows. */
struct ghp_command {
    const char **args; /* owned; ended by NULL */
    int n, room;
    bool lacks_memory; /* for a word */
    bool result;       /* its stdout is this tool's; else it is written to stderr */
    bool quiet;        /* it has no stdout */
    char numbers[3][32];
};

void ghp_command_add(struct ghp_command *command, const char *word);
/* An option, if it was given. */
void ghp_command_add_option(struct ghp_command *command, const char *name, const char *value);

/* The program of a command line, without its folder: "mpirun" of "/usr/bin/mpirun --hostfile hosts". */
enum { GHP_PROGRAM_TEXT = 64 };
const char *ghp_command_program(const char *line, char text[GHP_PROGRAM_TEXT]);

/* Runs it to its end, and releases it. *code receives its exit code; of a signal 128 and its number, as shells say.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_INTERNAL: no process could be started
 * Local */
enum ghp_status ghp_command_run(struct ghp_command *command, int *code);

/* SIGTERM, SIGINT, SIGUSR1 and SIGHUP call the handler from now on; SIGHUP does not if it is ignored, as under nohup,
 * nor SIGTERM after the first. */
void ghp_command_on_signals(void (*handler)(int));

/* From the first call on, signals end the command in order, and not this process. The second says whether one has
 * come. */
void ghp_command_pass_signals(void);
bool ghp_command_was_stopped(void);

#endif
