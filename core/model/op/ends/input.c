/* core/model/op/ends/input.c - the samples of a batch: loaded, not computed. */
#include "core/model/op.h"

const struct ghp_op_facts ghp_op_facts_input = {
    .is_input = true,
    .runs_once = true,
};
