/* executor/train/class_weights.h - --class-weights: what each class weighs in the loss, which becomes the mean of the
 * labels' losses by the weights of their classes. */
#ifndef GHP_EXECUTOR_TRAIN_CLASS_WEIGHTS_H
#define GHP_EXECUTOR_TRAIN_CLASS_WEIGHTS_H

#include "core/model/model.h"

/* Reads "W0,W1,...", one weight above 0 for each class.
 *
 * weights   receives [classes], owned by the caller; NULL: `text` is NULL
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (another number of weights, or a text that is not one); GHP_ERR_INPUT (another loss
 *           than softmax_cross_entropy without smoothing of one label); GHP_ERR_NO_MEMORY
 * Local
 * Tested    tests/tools/learn/test_losses_torch.sh */
enum ghp_status ghp_class_weights_open(const char *text, const struct ghp_model *model,
                                       double **weights);

#endif
