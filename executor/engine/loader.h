/* executor/engine/loader.h - brings a worker's samples onto a device: made on the host, copied beside the computing,
 * a step ahead where it is told what comes next.
 *
 * Two banks of pinned host memory and of device memory, beside the arena: while a step computes on the samples of one,
 * the next step's are made into the other by a thread and copied by the copy stream. Without a hint the same is done
 * when the step comes, by whoever asks.
 *
 * Call order: open -> (hint) supply, follow, take ... -> close. */
#ifndef GHP_EXECUTOR_ENGINE_LOADER_H
#define GHP_EXECUTOR_ENGINE_LOADER_H

#include "executor/backend/device.h"
#include "executor/data/samples.h"
#include "executor/engine/timeline.h"

struct ghp_loader;

/* Returns   GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_BACKEND
 * Tested    tests/executor/engine/test_device.c */
enum ghp_status ghp_loader_open(struct ghp_device device, const struct ghp_load *load,
                                struct ghp_loader **loader);
void ghp_loader_close(struct ghp_loader *loader); /* accepts NULL; waits for the thread */

/* The step that will be supplied next into `bank`, whose last step is done. A failure shows when it is supplied. */
void ghp_loader_hint(struct ghp_loader *loader, int bank, const struct ghp_supply *next);

/* Makes the samples unless a hint has had them made, and enqueues their way into the bank. */
enum ghp_status ghp_loader_supply(struct ghp_loader *loader, int bank,
                                  const struct ghp_supply *supply);
/* The compute stream goes on when the bank's samples are there. */
enum ghp_status ghp_loader_follow(struct ghp_loader *loader, int bank);
/* Enqueues copying the bank's samples to where the program wants them. */
enum ghp_status ghp_loader_take(struct ghp_loader *loader, int bank, void *images, void *labels);

#endif
