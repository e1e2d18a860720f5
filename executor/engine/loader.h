/* executor/engine/loader.h - brings a worker's samples to where its program loads them.
 *
 * In host memory images are made where a step loads them. On a device all of a step's samples are made when it begins.
 * During the computing they are copied into one half of a double buffer of device memory; the step's own work only
 * copies from there, so that it can be recorded. If there is memory for it, a thread of low priority makes the next
 * images meanwhile (executor/data/prefetch.h): those of the next micro-batch, and the first ones of the step that a
 * hint announces.
 *
 * Call order: open -> (hint) begin, load ..., end -> close. One thread calls. */
#ifndef GHP_EXECUTOR_ENGINE_LOADER_H
#define GHP_EXECUTOR_ENGINE_LOADER_H

#include "executor/backend/device.h"
#include "executor/data/prefetch.h"

struct ghp_loader;

struct ghp_loader_plan {
    struct ghp_device device; /* completed */
    struct ghp_load load;     /* of a micro-batch; no images or no labels if the stage has none */
    int micro_batches;        /* of a step, >= 1 */
    int64_t micro_batch;      /* samples, over all workers of the stage */
    void *place; /* host memory: room for a micro-batch's images made ahead, or NULL; borrowed */
};

/* Returns   GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_BACKEND
 * Tested    tests/executor/engine/test_device.c, test_prefetch.c, test_stages.c */
enum ghp_status ghp_loader_open(const struct ghp_loader_plan *plan, struct ghp_loader **loader);
void ghp_loader_close(struct ghp_loader *loader); /* accepts NULL */

/* Whether it has a double buffer. A forward-only worker on the same weights should share that memory. */
bool ghp_loader_is_double_buffered(const struct ghp_loader *loader);
/* Whether hints save anything. */
bool ghp_loader_prefetches(const struct ghp_loader *loader);
/* The step after the next one that begins. A wrong hint only costs time. Samples are copied. */
void ghp_loader_hint(struct ghp_loader *loader, const struct ghp_supply *next);

/* A step begins, whose samples are these until it ends; on a device in `half`, whose last step is done. */
enum ghp_status ghp_loader_begin(struct ghp_loader *loader, int half,
                                 const struct ghp_supply *supply);
/* A micro-batch's samples, in the compute stream.
 *
 * images, labels   if the program wants them; NULL: not these */
enum ghp_status ghp_loader_load(struct ghp_loader *loader, int micro, void *images, void *labels);
/* The second labels of a micro-batch that was loaded, as struct ghp_tensors has them; NULL: the load has none. */
const struct ghp_second_label *ghp_loader_seconds(const struct ghp_loader *loader, int micro);
/* All of the step's work is enqueued. */
void ghp_loader_end(struct ghp_loader *loader);

struct ghp_prefetch_count ghp_loader_prefetched(const struct ghp_loader *loader);

#endif
