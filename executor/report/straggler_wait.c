/* executor/report/straggler_wait.c - see report/straggler_wait.h. */
#include "executor/report/straggler_wait.h"

#include <stdlib.h>

enum { CHUNK_BYTES = 1 << 22 }; /* gathered at once, from all workers together */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* Mean over the places that count. */
static double mean_of(const double *run_s, const bool *kept)
{
    double sum = 0;
    int n = 0;

    for (int place = 0; place < GHP_STEP_TIMER_STEPS; place++) {
        if (!kept[place]) continue;
        sum += run_s[place];
        n++;
    }
    return n > 0 ? sum / n : 0;
}

/* Mean over the places that count of the least over the ranks of a group. */
static double mean_of_least(const double *run_s, const bool *kept, struct ghp_ranks group)
{
    double least_s[GHP_STEP_TIMER_STEPS];

    for (int place = 0; place < GHP_STEP_TIMER_STEPS; place++) {
        least_s[place] = run_s[group.first * GHP_STEP_TIMER_STEPS + place];
        for (int i = 1; i < group.count; i++) {
            int r = group.first + i * group.stride;
            double one_s = run_s[r * GHP_STEP_TIMER_STEPS + place];

            if (one_s < least_s[place]) least_s[place] = one_s;
        }
    }
    return mean_of(least_s, kept);
}

/* Groups of a kind tile the workers in blocks of count * stride. */
static int first_of_group(int r, struct ghp_ranks kind)
{
    int block = kind.count * kind.stride;

    return r / block * block + r % kind.stride;
}

enum ghp_status ghp_straggler_wait_of(const double *run_s, const bool *kept,
                                      const struct ghp_instr *instr, int n,
                                      struct ghp_straggler_wait *own)
{
    bool sends = ghp_instr_sends(instr) &&
                 instr->ranks.count <= n; /* metrics are summed over other stages too */
    struct ghp_ranks kind = {.count = sends ? instr->ranks.count : 1,
                             .stride = sends ? instr->ranks.stride : 1};
    double *owns = ghp_alloc(2 * (size_t)n, sizeof *owns), *waits = owns + n;

    if (owns == NULL) return GHP_NO_MEMORY();
    for (int r = 0; r < n; r++) {
        struct ghp_ranks group = kind;

        group.first = first_of_group(r, kind);
        owns[r] = mean_of_least(run_s, kept, group); /* groups are of one size: so is the median */
        waits[r] = mean_of(run_s + (size_t)r * GHP_STEP_TIMER_STEPS, kept) - owns[r];
    }
    *own = (struct ghp_straggler_wait){median(owns, n), median(waits, n)};
    free(owns);
    return GHP_OK;
}

struct chunk { /* some instructions, one after the other */
    const struct ghp_instr *instrs;
    int n;
    const double *run_s;            /* [worker][instruction][place] */
    struct ghp_straggler_wait *own; /* [n] */
};

static enum ghp_status compare_chunk(const struct ghp_straggler_wait_request *request,
                                     const struct chunk *chunk, const bool *kept)
{
    double *of_instr = ghp_alloc((size_t)request->n * GHP_STEP_TIMER_STEPS, sizeof *of_instr);
    enum ghp_status status = of_instr != NULL ? GHP_OK : GHP_NO_MEMORY();

    for (int i = 0; status == GHP_OK && i < chunk->n; i++) {
        for (int r = 0; r < request->n; r++)
            for (int place = 0; place < GHP_STEP_TIMER_STEPS; place++)
                of_instr[r * GHP_STEP_TIMER_STEPS + place] =
                    chunk->run_s[((size_t)r * (size_t)chunk->n + (size_t)i) * GHP_STEP_TIMER_STEPS +
                                 (size_t)place];
        status =
            ghp_straggler_wait_of(of_instr, kept, &chunk->instrs[i], request->n, &chunk->own[i]);
    }
    free(of_instr);
    return status;
}

enum ghp_status ghp_straggler_wait_compare(const struct ghp_straggler_wait_request *request,
                                           const struct ghp_program *program,
                                           const struct ghp_step_timer *timer,
                                           struct ghp_prediction_errors *prediction_errors)
{
    const size_t one = GHP_STEP_TIMER_STEPS * sizeof(double);
    int most = (int)(CHUNK_BYTES / (one * (size_t)request->n)) + 1;
    double *mine = ghp_alloc((size_t)most, one),
           *all = ghp_alloc((size_t)most * (size_t)request->n, one);
    struct ghp_straggler_wait *own = ghp_alloc((size_t)most, sizeof *own);
    enum ghp_status status = mine != NULL && all != NULL && own != NULL ? GHP_OK : GHP_NO_MEMORY();
    bool kept[GHP_STEP_TIMER_STEPS];

    ghp_step_timer_kept(timer, kept);
    status = ghp_control_agree(request->control, request->comm, status);
    for (int first = 0; status == GHP_OK && first < program->n_instrs; first += most) {
        int n = program->n_instrs - first < most ? program->n_instrs - first : most;
        struct chunk chunk = {&program->instrs[first], n, all, own};

        for (int i = 0; i < n; i++)
            ghp_step_timer_runs(timer, first + i, mine + (size_t)i * GHP_STEP_TIMER_STEPS);
        GHP_TRY_GOTO(
            status,
            request->comm->ops->all_gather(request->comm, mine, all, (int64_t)((size_t)n * one)),
            done);
        status = compare_chunk(request, &chunk, kept);
        for (int i = 0; status == GHP_OK && i < n; i++) {
            prediction_errors->instrs[first + i].measured_own_s = own[i].own_s;
            prediction_errors->instrs[first + i].measured_straggler_wait_s =
                own[i].straggler_wait_s;
        }
        status = ghp_control_agree(request->control, request->comm, status);
    }
done:
    free(own);
    free(all);
    free(mine);
    return status;
}
