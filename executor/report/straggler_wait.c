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
    qsort(values, (size_t)n, sizeof(*values), by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* Mean over the places that count. */
static double mean_of(const double *run_s, const bool *kept)
{
    double sum = 0;
    int n = 0;

    for (int place = 0; place < GHP_STOPWATCH_STEPS; place++) {
        if (!kept[place]) continue;
        sum += run_s[place];
        n++;
    }
    return n > 0 ? sum / n : 0;
}

/* Mean over the places that count of the least over the ranks of a group. */
static double mean_of_least(const double *run_s, const bool *kept, struct ghp_ranks group)
{
    double least_s[GHP_STOPWATCH_STEPS];

    for (int place = 0; place < GHP_STOPWATCH_STEPS; place++) {
        least_s[place] = run_s[group.first * GHP_STOPWATCH_STEPS + place];
        for (int i = 1; i < group.count; i++) {
            int r = group.first + i * group.stride;
            double one_s = run_s[r * GHP_STOPWATCH_STEPS + place];

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

enum ghp_status ghp_partners_of(const double *run_s, const bool *kept,
                                const struct ghp_instr *instr, int n, struct ghp_own *own)
{
    bool sends = ghp_instr_sends(instr) &&
                 instr->ranks.count <= n; /* metrics are summed over other stages too */
    struct ghp_ranks kind = {.count = sends ? instr->ranks.count : 1,
                             .stride = sends ? instr->ranks.stride : 1};
    double *owns = ghp_alloc(2 * (size_t)n, sizeof(*owns)), *waits = owns + n;

    if (owns == NULL) return GHP_NO_MEMORY();
    for (int r = 0; r < n; r++) {
        struct ghp_ranks group = kind;

        group.first = first_of_group(r, kind);
        owns[r] = mean_of_least(run_s, kept, group); /* groups are of one size: so is the median */
        waits[r] = mean_of(run_s + (size_t)r * GHP_STOPWATCH_STEPS, kept) - owns[r];
    }
    *own = (struct ghp_own){median(owns, n), median(waits, n)};
    free(owns);
    return GHP_OK;
}

struct chunk { /* some instructions, one after the other */
    const struct ghp_instr *instrs;
    int n;
    const double *run_s; /* [worker][instruction][place] */
    struct ghp_own *own; /* [n] */
};

static enum ghp_status compare_chunk(const struct ghp_crowd *crowd, const struct chunk *chunk,
                                     const bool *kept)
{
    double *of_instr = ghp_alloc((size_t)crowd->n * GHP_STOPWATCH_STEPS, sizeof(*of_instr));
    enum ghp_status status = of_instr != NULL ? GHP_OK : GHP_NO_MEMORY();

    for (int i = 0; status == GHP_OK && i < chunk->n; i++) {
        for (int r = 0; r < crowd->n; r++)
            for (int place = 0; place < GHP_STOPWATCH_STEPS; place++)
                of_instr[r * GHP_STOPWATCH_STEPS + place] =
                    chunk->run_s[((size_t)r * (size_t)chunk->n + (size_t)i) * GHP_STOPWATCH_STEPS +
                                 (size_t)place];
        status = ghp_partners_of(of_instr, kept, &chunk->instrs[i], crowd->n, &chunk->own[i]);
    }
    free(of_instr);
    return status;
}

enum ghp_status ghp_partners_compare(const struct ghp_crowd *crowd,
                                     const struct ghp_program *program,
                                     const struct ghp_stopwatch *watch,
                                     struct ghp_residuals *residuals)
{
    const size_t one = GHP_STOPWATCH_STEPS * sizeof(double);
    int most = (int)(CHUNK_BYTES / (one * (size_t)crowd->n)) + 1;
    double *mine = ghp_alloc((size_t)most, one),
           *all = ghp_alloc((size_t)most * (size_t)crowd->n, one);
    struct ghp_own *own = ghp_alloc((size_t)most, sizeof(*own));
    enum ghp_status status = mine != NULL && all != NULL && own != NULL ? GHP_OK : GHP_NO_MEMORY();
    bool kept[GHP_STOPWATCH_STEPS];

    ghp_stopwatch_kept(watch, kept);
    status = crowd->transport_ops->agree(crowd->comm, status);
    for (int first = 0; status == GHP_OK && first < program->n_instrs; first += most) {
        int n = program->n_instrs - first < most ? program->n_instrs - first : most;
        struct chunk chunk = {&program->instrs[first], n, all, own};

        for (int i = 0; i < n; i++)
            ghp_stopwatch_runs(watch, first + i, mine + (size_t)i * GHP_STOPWATCH_STEPS);
        GHP_TRY_GOTO(
            status,
            crowd->transport_ops->all_gather(crowd->comm, mine, all, (int64_t)((size_t)n * one)),
            done);
        status = compare_chunk(crowd, &chunk, kept);
        for (int i = 0; status == GHP_OK && i < n; i++) {
            residuals->instrs[first + i].measured_own_s = own[i].own_s;
            residuals->instrs[first + i].measured_partners_s = own[i].partners_s;
        }
        status = crowd->transport_ops->agree(crowd->comm, status);
    }
done:
    free(own);
    free(all);
    free(mine);
    return status;
}
