/* core/program/lower/passes.h - what turns the list of instructions as emitted into the list that is costed and run. */
#ifndef GHP_CORE_PROGRAM_LOWER_PASSES_H
#define GHP_CORE_PROGRAM_LOWER_PASSES_H

#include "core/program/program.h"

/* The program passes over a list with buffers, in the order of their table. */
enum ghp_status ghp_lower_run_passes(const struct ghp_lowering *lowering,
                                     struct ghp_program *program);

#endif
