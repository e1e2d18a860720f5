/* executor/fuse.h - biases and ReLUs that a convolution's forward kernel applies itself, while its output is in registers.
 *
 * A bias and a ReLU behind a convolution read and write its output once each, for next to no computing. Where they stand
 * behind it in the program, in place and with no exchange between, the worker prepares one kernel for all of them, and their
 * own instructions do nothing. The bias is updated before the convolution runs, which waits for nothing more: its
 * gradient was ready before the convolution's.
 *
 * The profiler measures what workers do so: a convolution together with what follows it in its network, and a bias or a ReLU
 * that every layer of its kind hands to a convolution as taking no time. Where a plan divides such a convolution by input
 * channels its parts must be summed before the bias, which then costs what no profile says (docs/cpu.md). */
#ifndef GHP_EXECUTOR_FUSE_H
#define GHP_EXECUTOR_FUSE_H

#include "core/program.h"
#include "executor/backend.h"

struct ghp_epilogue { /* instructions, or layers; -1: none */
    int bias, relu;
    int update; /* instruction that updates the bias */
};

/* What can be fused into instruction `conv`. Local. Tested tests/executor/test_fuse.c */
struct ghp_epilogue ghp_fuse_find(const struct ghp_program *program, int conv);

/* The layers behind a convolution that it takes along where their splits let it. */
struct ghp_epilogue ghp_fuse_layers(const struct ghp_model *model, int conv);

/* Whether every layer of this one's kind and image size is taken along by a convolution: all that can share its entry in a
 * profile. */
bool ghp_fuse_always(const struct ghp_model *model, int layer);

/* The same formats with that epilogue. */
struct ghp_formats ghp_fuse_formats(struct ghp_formats formats, struct ghp_epilogue epilogue);

#endif
