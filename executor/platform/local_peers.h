/* executor/platform/local_peers.h - the workers that the launcher started on this same node as this one: which of them
 * have stopped (SIGSTOP) or gone, for where MPI has not started and nobody else can say.
 *
 * By /proc: those whose variables name this launch (Open MPI's namespace), or with this one's parent, and a rank.
 *
 * Tested   tests/tools/hardship/test_stall.sh */
#ifndef GHP_EXECUTOR_PLATFORM_LOCAL_PEERS_H
#define GHP_EXECUTOR_PLATFORM_LOCAL_PEERS_H

#include <stdbool.h>
#include <stddef.h>

/* Who is missing, such as "1 stopped, 2 exited"; "": all are there, as far as can be seen. Local.
 *
 * Returns   whether this is the lowest rank of this node that lives, so that it speaks for the others */
bool ghp_local_peers_missing(char *text, size_t n);

#endif
