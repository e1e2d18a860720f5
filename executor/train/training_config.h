/* executor/train/training_config.h - what a training consists of, whatever the plan: first weights, data, order,
 * learning rates.
 *
 * Turns a step's number into the step that a worker runs, with what its optimizer needs. Two workers (or N and one)
 * that follow the same training config train alike. */
#ifndef GHP_EXECUTOR_TRAIN_TRAINING_CONFIG_H
#define GHP_EXECUTOR_TRAIN_TRAINING_CONFIG_H

#include "executor/state/init.h"
#include "executor/data/order.h"
#include "executor/train/lr_schedule.h"
#include "executor/engine/worker.h"
#include "executor/train/sampling.h"

struct ghp_training_config {
    struct ghp_init_choice init;
    struct ghp_data *data;  /* borrowed */
    struct ghp_order order; /* owned by the code that initialised it */
    /* As the order, and each step is then asked for once; NULL: epochs are shuffled. */
    struct ghp_sampling *sampling;
    struct ghp_lr_schedule schedule;
    const struct ghp_optimizer *optimizer;
    int batches; /* worker batches of a global batch, for lena's ramp; 0: it has none */
    struct ghp_hyperparameters hyperparameters; /* the learning rate is the schedule's */
};

/* The step with this number, beyond the schedule's last at its last rate; its samples are borrowed from the training
 * config until the second call from now.
 * Local. */
struct ghp_step ghp_training_config_step(struct ghp_training_config *training_config, int64_t step);

/* Tells a worker which step comes next, so that its samples are made while it computes; nothing if it makes none
 * ahead, or if who comes next hangs on the present step. Local. */
void ghp_training_config_hint(struct ghp_training_config *training_config,
                              struct ghp_worker *worker, int64_t step);

#endif
