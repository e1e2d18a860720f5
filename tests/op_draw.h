/* tests/op_draw.h - keys of an operation's layer, drawn from the operation's own table of attributes: what tests need
 * not be told by hand.
 *
 * Drawn are numbers, choices and yes or no. Sizes that have to fit each other or the input are not: an operation with
 * some wants its keys written down where a test uses them (tests/core/model/test_ops.c, tests/executor/op_case.c). */
#ifndef GHP_TESTS_OP_DRAW_H
#define GHP_TESTS_OP_DRAW_H

#include "core/model/op.h"

/* The keys of one layer of the operation, each with a comma before it; none has its default.
 *
 * variant   0, 1, ...: one for each choice of the operation's choice; 0 alone where it has none
 *
 * Returns false if it has no such variant, or if the operation has sizes. */
bool op_draw(enum ghp_op op, int variant, char *keys, size_t n);

/* Such a layer alone in a network, on 4 channels of 6 x 6 pixels, of 6 positions where it refuses pictures, or of
 * one where it refuses both. The layer has the name "it", and is not the first; what has several inputs takes the
 * input and ReLUs of it. */
enum ghp_status op_draw_model(enum ghp_op op, const char *keys, struct ghp_model *model);

#endif
