/* executor/engine/kernel_arguments.h - turns an instruction's operands into what a backend's kernel gets: addresses,
 * and which samples and channels of the global tensor these are. */
#ifndef GHP_EXECUTOR_ENGINE_KERNEL_ARGUMENTS_H
#define GHP_EXECUTOR_ENGINE_KERNEL_ARGUMENTS_H

#include "executor/backend/backend.h"
#include "executor/engine/worker.h"

/* Addresses of an instruction's operands. `address` has one entry a buffer. */
struct ghp_tensors ghp_kernel_arguments_tensors(const struct ghp_instr *instr,
                                                void *const *address);

/* The call of a COMPUTE instruction in a step, without tensors. */
struct ghp_kernel_arguments ghp_kernel_arguments_of(const struct ghp_program *program,
                                                    const struct ghp_run_options *run,
                                                    const struct ghp_instr *instr,
                                                    const struct ghp_step *step);

/* Gives an update what is said of its parameter alone: weight decay or none, and a multiple of the learning rate. */
void ghp_kernel_update_group(const struct ghp_layer *layer, int slot, struct ghp_update *update);

#endif
