/* executor/launcher/process_tree.h - the processes that this one started, and those that these started, however deep:
 * so that none is left over when one in between has died.
 *
 * Linux only: orphans come to this process (a subreaper), and /proc says who is whose child. Nobody else's process is
 * ever signalled. Processes on other nodes are mpirun's daemons' to end.
 *
 * Tested  tests/executor/launcher/test_process_tree.c */
#ifndef GHP_EXECUTOR_LAUNCHER_PROCESS_TREE_H
#define GHP_EXECUTOR_LAUNCHER_PROCESS_TREE_H

#include "core/base/status.h"

#include <sys/types.h>

/* Orphans of this process tree come to this process from now on. Returns GHP_OK; GHP_ERR_INTERNAL (a system without
 * it). */
enum ghp_status ghp_process_tree_adopt(void);

/* Kills all (signal 9), waits until they are dead, half a minute at most, and buries them. Returns how many live on:
 * such as the kernel does not let go. */
int ghp_process_tree_kill(void);

#endif
