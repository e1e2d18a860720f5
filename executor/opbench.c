/* executor/opbench.c - an operation's tensors, its kernel and scratch, ready to run again and again. */
#include "executor/opbench.h"
#include "executor/backend_private.h"
#include "executor/opset.h"

#include <stdlib.h>

struct ghp_opbench {
    const struct ghp_backend_ops *ops;
    struct ghp_kernel *kernel;
    struct ghp_opset set;
    void *scratch;
};

/* Passes whose results this one reads, bit by bit; they run in the order STATS, FORWARD, BACKWARD_STATS. */
static unsigned passes_before(enum ghp_op op, enum ghp_pass pass)
{
    const unsigned stats = 1u << GHP_PASS_STATS, forward = 1u << GHP_PASS_FORWARD,
                   back_stats = 1u << GHP_PASS_BACKWARD_STATS;
    bool backward = pass == GHP_PASS_BACKWARD_DATA || pass == GHP_PASS_BACKWARD_WEIGHT;
    if (op == GHP_OP_BATCH_NORM) {
        if (pass == GHP_PASS_FORWARD) return stats;
        if (pass == GHP_PASS_BACKWARD_STATS) return stats | forward;
        return backward ? stats | forward | back_stats : 0;
    }
    return backward && (op == GHP_OP_MAX_POOL || op == GHP_OP_LRN) ? forward : 0;
}

static enum ghp_status run_before(struct ghp_opbench *bench, struct ghp_backend *backend,
                                  enum ghp_pass pass)
{
    static const enum ghp_pass order[] = {GHP_PASS_STATS, GHP_PASS_FORWARD,
                                          GHP_PASS_BACKWARD_STATS};
    unsigned before = passes_before(bench->set.local.op, pass);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (before & 1u << order[i])
            GHP_TRY(ghp_opset_run(&bench->set, bench->ops, backend, order[i]));
    return GHP_OK;
}

/* As in training: outputs over inputs where the operation allows it. */
static void overlap(struct ghp_opset *set)
{
    struct ghp_tensors *at = &set->call.at;
    enum ghp_op op = set->local.op;
    bool in_place = op == GHP_OP_BIAS || op == GHP_OP_RELU || op == GHP_OP_DROPOUT ||
                    op == GHP_OP_ACTIVATION ||
                    (op == GHP_OP_FLATTEN && set->local.h * set->local.w == 1);
    if (in_place) at->x[0] = at->y;
    if (in_place || op == GHP_OP_ADD) at->dx[0] = at->dy;
}

enum ghp_status ghp_opbench_open(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                                 const struct ghp_local *local, enum ghp_pass pass,
                                 struct ghp_opbench **bench)
{
    struct ghp_opbench *made = ghp_alloc(1, sizeof *made);
    if (made == NULL) return GHP_NO_MEMORY();
    made->ops = ops;
    enum ghp_status status = GHP_OK;
    GHP_TRY_GOTO(
        status, ghp_opset_init(local, backend->config.element_bytes, 1u << pass, &made->set), fail);
    GHP_TRY_GOTO(status, ops->prepare(backend, local, pass, &made->kernel), fail);
    GHP_TRY_GOTO(status, run_before(made, backend, pass), fail);
    made->scratch = ghp_opset_block(ops->scratch_bytes(made->kernel));
    if (made->scratch == NULL) {
        status = GHP_NO_MEMORY();
        goto fail;
    }
    made->set.call.at.scratch = made->scratch;
    overlap(&made->set);
    *bench = made;
    return GHP_OK;
fail:
    ghp_opbench_close(made);
    return status;
}

enum ghp_status ghp_opbench_run(struct ghp_opbench *bench, int repeats)
{
    for (int i = 0; i < repeats; i++)
        GHP_TRY(bench->ops->run(bench->kernel, &bench->set.call));
    return GHP_OK;
}

int64_t ghp_opbench_scratch(const struct ghp_opbench *bench)
{
    return bench->ops->scratch_bytes(bench->kernel);
}

int64_t ghp_opbench_bytes(const struct ghp_local *local, enum ghp_pass pass, int element_bytes)
{
    return ghp_opset_bytes(local, element_bytes, 1u << pass);
}

const char *ghp_opbench_algorithm(const struct ghp_opbench *bench)
{
    return bench->ops->algorithm(bench->kernel);
}

void ghp_opbench_close(struct ghp_opbench *bench)
{
    if (bench == NULL) return;
    if (bench->kernel != NULL) bench->ops->release(bench->kernel);
    free(bench->scratch);
    ghp_opset_release(&bench->set);
    free(bench);
}
