/* executor/platform/memory.h - how much memory this process really uses, as the kernel counts it (Linux: /proc/self).
 * What it shares with other processes - MPI's messages, sums inside a host (mpi/shared_segment.h) - is nobody's own
 * and left out.
 *
 * Call order: ghp_memory_begin just before the arena -> work -> ghp_memory_pause / resume around what does not belong
 * to the training (evaluation, checkpoints) -> ghp_memory_over_base. */
#ifndef GHP_EXECUTOR_PLATFORM_MEMORY_H
#define GHP_EXECUTOR_PLATFORM_MEMORY_H

#include "core/base/status.h"

#include <stdbool.h>

struct ghp_memory {
    int64_t base_bytes; /* resident before the arena */
    int64_t peak_bytes; /* greatest resident size seen since, pauses left out */
    bool counting;
    bool exact; /* the kernel let the peak be reset; else pauses and what came before count too */
};

void ghp_memory_begin(struct ghp_memory *memory);
void ghp_memory_pause(struct ghp_memory *memory);
void ghp_memory_resume(struct ghp_memory *memory);
/* Peak less base [bytes]; -1 if the system does not say. */
int64_t ghp_memory_over_base(struct ghp_memory *memory);

/* What this machine's processes can still take together, without swapping and within a container's limit [bytes]; -1
 * if the system does not say. */
int64_t ghp_memory_available(void);

#endif
