/* executor/platform/process.h - what the system says of a process of this host: Linux's /proc. */
#ifndef GHP_EXECUTOR_PLATFORM_PROCESS_H
#define GHP_EXECUTOR_PLATFORM_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

struct ghp_process {
    pid_t pid, parent;
    char state; /* as ps has it */
};

/* Whether it has neither ended nor waits for its burial. Local; pure. */
bool ghp_process_lives(const struct ghp_process *process);

/* Calls `visit` for all processes, until it returns false. Local. */
void ghp_processes_visit(bool (*visit)(void *context, const struct ghp_process *process),
                         void *context);

#endif
