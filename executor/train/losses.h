/* executor/train/losses.h - the losses of a training of any length in bounded memory.
 *
 * Keeps the loss of every step until GHP_LOSSES_KEPT are there; then every second one is dropped, and from there on
 * every second step is kept, and so on. So what is kept is evenly spaced over the whole training, begins with its first
 * step, and each value is one step's own loss: no mean, no sample by chance. Metrics files have every step's
 * (executor/train/metrics.h). */
#ifndef GHP_EXECUTOR_TRAIN_LOSSES_H
#define GHP_EXECUTOR_TRAIN_LOSSES_H

#include <stdint.h>

enum { GHP_LOSSES_KEPT = 2048 }; /* even */

struct ghp_losses { /* zeroed: of no step */
    int64_t steps;  /* seen */
    int64_t every;  /* kept[i] is of step i * every; 0 before the first step */
    int n;          /* kept: between half of GHP_LOSSES_KEPT and all of it, once it was full */
    double last;    /* of step steps - 1 */
    double kept[GHP_LOSSES_KEPT];
};

/* Adds the next step's loss.
 *
 * Local
 * Tested   tests/executor/train/test_losses.c */
void ghp_losses_add(struct ghp_losses *losses, double loss);

#endif
