/* profiler/measure/background_load.c - see measure/background_load.h. */
#include "profiler/measure/background_load.h"
#include "core/base/clock.h"

#include "profiler/measure/autotuning.h"

#include <stdlib.h>

enum {
    MOST = 6,
    MEMORY_PART = 4 * MOST /* of what one operation's measuring may take, for each of them */
};

struct ghp_background_load {
    struct ghp_opbench *benches[MOST];
    int n, next;
};

/* Whether workers of other stages are others than those of one's own, and can be timed apart. */
static bool can_be(const struct ghp_measure *m)
{
    return m->size > 1 && !m->shares_cores && !(m->fastest > 1) &&
           ghp_measure_clock(m) == GHP_CLOCK_HOST;
}

/* Seconds of what pure data parallelism runs, as far as they are known. */
static double seconds_of(const struct ghp_worklist_op *op)
{
    return op->value == GHP_VALUE_DATA ? ghp_samples_summary(&op->variants[0].samples).seconds : 0;
}

/* By the algorithm that was the quickest; without memory for it there is one operation less. */
static enum ghp_status add(const struct ghp_measure *m, const struct ghp_worklist_op *op,
                           int64_t memory_bytes, struct ghp_background_load *b)
{
    struct ghp_opbench_task task = ghp_measure_op_task(m, op);
    struct ghp_opbench *bench = NULL;
    enum ghp_status status;

    if (ghp_opbench_bytes(&task, m->element_bytes) > memory_bytes / MEMORY_PART) return GHP_OK;
    status = ghp_opbench_open(m->backend_ops, m->backend, &task, &bench);
    if (status == GHP_OK && op->variants[0].algorithm[0] != '\0')
        status = ghp_opbench_switch(bench, m->backend, op->variants[0].algorithm,
                                    ghp_autotuning_spec(m, op, &op->variants[0]));
    if (status == GHP_OK) {
        b->benches[b->n++] = bench;
        return GHP_OK;
    }
    ghp_opbench_close(bench);
    return status == GHP_ERR_NO_MEMORY ? GHP_OK : status;
}

static enum ghp_status fill(const struct ghp_measure *m, const struct ghp_worklist *worklist,
                            int64_t memory_bytes, struct ghp_background_load *b)
{
    const struct ghp_worklist_op *ops[MOST];
    int n = m->rank != 0 ? ghp_worklist_draw(worklist, seconds_of, MOST, ops) : 0;

    for (int i = 0; i < n; i++)
        GHP_TRY(add(m, ops[i], memory_bytes, b));
    return GHP_OK;
}

enum ghp_status ghp_background_load_open(const struct ghp_measure *m,
                                         const struct ghp_worklist *worklist, int64_t memory_bytes,
                                         struct ghp_background_load **background_load)
{
    struct ghp_background_load *b;
    double missing = 0;
    enum ghp_status status;

    *background_load = NULL;
    if (!can_be(m)) return GHP_OK;
    b = ghp_alloc(1, sizeof *b);
    status = b != NULL ? fill(m, worklist, memory_bytes, b) : GHP_NO_MEMORY();
    missing = m->rank != 0 && (b == NULL || b->n == 0);
    status = ghp_measure_max(m, status, &missing);
    if (status == GHP_OK && !(missing > 0))
        *background_load = b;
    else
        ghp_background_load_close(b);
    return status;
}

enum ghp_status ghp_background_load_run(struct ghp_background_load *b, double seconds)
{
    double end_s = ghp_now_s() + seconds;

    while (ghp_now_s() < end_s) {
        GHP_TRY(ghp_opbench_run(b->benches[b->next], 1));
        b->next = (b->next + 1) % b->n;
    }
    return GHP_OK;
}

int ghp_background_load_count(const struct ghp_background_load *b)
{
    return b->n;
}

void ghp_background_load_close(struct ghp_background_load *b)
{
    if (b == NULL) return;
    for (int i = 0; i < b->n; i++)
        ghp_opbench_close(b->benches[i]);
    free(b);
}
