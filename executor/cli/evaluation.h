/* executor/cli/evaluation.h - what ghp-run --evaluate prints. */
#ifndef GHP_EXECUTOR_CLI_EVALUATION_H
#define GHP_EXECUTOR_CLI_EVALUATION_H

#include "executor/train/train.h"

/* Prints the last evaluation, if there was one, as a line or as a JSON object.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY; GHP_ERR_DIVERGED (the loss, which was printed, is not finite)
 * Local
 * Tested    tests/tools/run/test_evaluate.sh */
enum ghp_status ghp_evaluation_print(const struct ghp_training *training, bool as_json);

#endif
