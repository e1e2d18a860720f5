/* tests/executor/op_case_losses.c - shapes of losses that matter to their kernels; see op_case.h. */
#include "tests/executor/op_case.h"

static void add_smoothed(op_case_add *add)
{
    struct ghp_local local = {
        .op = GHP_OP_SOFTMAX_CE, .n = 5, .c = 10, .loss = {.smoothing = 0.125}};
    add(local);
    local.h = 7;
    add(local);
    local.parts = 3;
    add(local);
}

static void add_different_losses(op_case_add *add)
{
    struct ghp_local local = {
        .op = GHP_OP_LOSSES,
        .n = 5,
        .c = 61,
        .loss = {.outputs = 5,
                 .own_labels = true,
                 .weights = {1, 0.25, 2, 0.5, 3},
                 .parts = {{11, GHP_OP_SOFTMAX_CE, .number = 0.125},
                           {4, GHP_OP_REGRESSION, GHP_ERROR_HUBER, .number = 0.5},
                           {5, GHP_OP_BINARY_CE, .multi_label = true},
                           {40, .op = GHP_OP_SOFTMAX_CE},
                           {1, .op = GHP_OP_SQUARED_ERROR}}}};
    add(local);
    local.h = 7;
    add(local);
    local.n = 2;
    local.w = 3;
    add(local);
    local.loss.parts[0] = (struct ghp_loss_part){.channels = 11, .op = GHP_OP_REGRESSION};
    add(local);
}

void op_case_losses(op_case_add *add)
{
    for (int op = GHP_OP_HINGE; op <= GHP_OP_BINARY_CE; op++) {
        add((struct ghp_local){.op = (enum ghp_op)op, .n = 5, .c = 1});
        add((struct ghp_local){.op = (enum ghp_op)op, .n = 7, .c = 33});
        add((struct ghp_local){.op = (enum ghp_op)op, .n = 3, .c = 11, .h = 7});
    }
    add((struct ghp_local){.op = GHP_OP_SOFTMAX_CE, .n = 3, .c = 11, .h = 7});
    add((struct ghp_local){.op = GHP_OP_SOFTMAX_CE, .n = 2, .c = 4099, .h = 3});
    add((struct ghp_local){.op = GHP_OP_SOFTMAX_CE, .n = 3, .c = 7, .h = 5, .parts = 3});
    add_smoothed(add);
    add((struct ghp_local){.op = GHP_OP_BINARY_CE, .n = 7, .c = 33, .loss = {.multi_label = true}});
    add((struct ghp_local){.op = GHP_OP_REGRESSION, .n = 7, .c = 1});
    add((struct ghp_local){.op = GHP_OP_REGRESSION, .n = 3, .c = 5, .h = 7});
    add((struct ghp_local){.op = GHP_OP_REGRESSION, .n = 2, .c = 3, .h = 5, .w = 67});
    add_different_losses(add);
}
