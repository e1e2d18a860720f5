/* executor/engine/fault.h - deliberate mistakes in the training, one for each way in which a parallel training
 * usually goes wrong: they prove that verification sees what it should see. Never on unless asked for by name.
 * Workers that stop are executor/platform/failpoint.h's.
 *
 * To add one: a row here, and its place in engine/worker/ or engine/kernel_arguments.c. The last one, overlook,
 * computes nothing wrong: nobody looks whether numbers are finite, so that a checkpoint shows those that are not. */
#ifndef GHP_EXECUTOR_ENGINE_FAULT_H
#define GHP_EXECUTOR_ENGINE_FAULT_H

#include "core/program/program.h"

/* name, command-line text, what a plan must have for it to change anything */
#define GHP_FAULT_LIST(X)                                                                          \
    X(NONE, "none", "")                                                                            \
    X(DROP_REDUCTION, "drop-reduction",                                                            \
      "a gradient reduction, an average or a mix, over at least two workers")                      \
    X(GROUP_SCALE, "group-scale", "at least two groups")                                           \
    X(BIAS_TIMES_K, "bias-times-k", "a bias after a layer split by 'in'")                          \
    X(RANK_MASKS, "rank-masks", "a dropout layer divided among at least two workers")              \
    X(LOCAL_STATISTICS, "local-statistics", "a batch norm whose statistics cross workers")         \
    X(SKIP_UPDATE, "skip-update", "a layer with parameters")                                       \
    X(DOUBLE_SAMPLE, "double-sample", "at least two samples that one worker loads")                \
    X(WRONG_PART, "wrong-part", "a tensor of which each worker keeps its part")                    \
    X(NO_BIAS_GRADIENT, "no-bias-gradient", "a bias")                                              \
    X(NO_MIXING, "no-mixing",                                                                      \
      "workers that are drawn to servers' or other workers' weights without waiting for them")     \
    X(ROUNDED_PULL, "rounded-pull", "workers that are pulled to leaders")                          \
    X(OVERLOOK, "overlook", "")

enum ghp_fault {
#define GHP_FAULT_ENUM(id, text, needs) GHP_FAULT_##id,
    GHP_FAULT_LIST(GHP_FAULT_ENUM)
#undef GHP_FAULT_ENUM
        GHP_FAULT_COUNT
};

/* NULL-terminated texts, in the order of the enum: the choices of a command-line option. */
extern const char *const ghp_fault_names[GHP_FAULT_COUNT + 1];

/* Whether the fault can do anything to this program.
 *
 * groups   G of the plan
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming what the plan would have to have
 * Tested    tests/executor/train/test_equality.c */
enum ghp_status ghp_fault_check(enum ghp_fault fault, const struct ghp_program *program,
                                int groups);

/* How often GHP_FAULT_BIAS_TIMES_K adds a bias: once for each partial sum that it follows, else 1. */
int ghp_fault_bias_times(const struct ghp_program *program, const struct ghp_instr *instr);

/* Whether an instruction keeps this worker's part of a tensor: where GHP_FAULT_WRONG_PART takes the next one's. */
bool ghp_fault_is_slice(const struct ghp_instr *instr);

#endif
