/* executor/stopwatch.c - see stopwatch.h. Laps are kept in rings, one an instruction, as two planes: running, waiting. */
#include "executor/stopwatch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct ghp_stopwatch {
    int n;
    int64_t steps;          /* begun and ended since forget */
    double start_s;         /* of the present step */
    double *run_s, *wait_s; /* [n][GHP_STOPWATCH_STEPS] */
    int64_t *laps;          /* [n] since forget */
    struct ghp_lap *last;   /* [n] */
    double step_s[GHP_STOPWATCH_STEPS];
};

enum ghp_status ghp_stopwatch_open(int n, struct ghp_stopwatch **watch)
{
    struct ghp_stopwatch *w = ghp_alloc(1, sizeof(*w));
    size_t cells = (size_t)n * GHP_STOPWATCH_STEPS;

    *watch = NULL;
    if (w == NULL) return GHP_NO_MEMORY();
    w->n = n;
    w->run_s = ghp_alloc(cells, sizeof(double));
    w->wait_s = ghp_alloc(cells, sizeof(double));
    w->laps = ghp_alloc((size_t)n, sizeof(*w->laps));
    w->last = ghp_alloc((size_t)n, sizeof(*w->last));
    if (w->run_s == NULL || w->wait_s == NULL || w->laps == NULL || w->last == NULL) {
        ghp_stopwatch_close(w);
        return GHP_NO_MEMORY();
    }
    *watch = w;
    return GHP_OK;
}

void ghp_stopwatch_close(struct ghp_stopwatch *w)
{
    if (w == NULL) return;
    free(w->last);
    free(w->laps);
    free(w->wait_s);
    free(w->run_s);
    free(w);
}

double ghp_stopwatch_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ghp_stopwatch_begin(struct ghp_stopwatch *w)
{
    w->start_s = ghp_stopwatch_now_s();
}

void ghp_stopwatch_end(struct ghp_stopwatch *w)
{
    w->step_s[w->steps % GHP_STOPWATCH_STEPS] = ghp_stopwatch_now_s() - w->start_s;
    w->steps++;
}

double ghp_stopwatch_step_start_s(const struct ghp_stopwatch *w)
{
    return w->start_s;
}

void ghp_stopwatch_lap(struct ghp_stopwatch *w, int instr, struct ghp_lap lap)
{
    int64_t cell = (int64_t)instr * GHP_STOPWATCH_STEPS + w->laps[instr] % GHP_STOPWATCH_STEPS;

    w->run_s[cell] = lap.finish_s - lap.start_s;
    w->wait_s[cell] = lap.wait_s;
    w->last[instr] = lap;
    w->laps[instr]++;
}

void ghp_stopwatch_forget(struct ghp_stopwatch *w)
{
    w->steps = 0;
    memset(w->laps, 0, (size_t)w->n * sizeof(*w->laps));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double *ring, int64_t count)
{
    double sorted[GHP_STOPWATCH_STEPS];
    size_t n = count < GHP_STOPWATCH_STEPS ? (size_t)count : GHP_STOPWATCH_STEPS;

    if (n == 0) return 0;
    memcpy(sorted, ring, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_value);
    return n % 2 == 1 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

double ghp_stopwatch_step_s(const struct ghp_stopwatch *w)
{
    return median(w->step_s, w->steps);
}

double ghp_stopwatch_run_s(const struct ghp_stopwatch *w, int instr)
{
    return median(w->run_s + (int64_t)instr * GHP_STOPWATCH_STEPS, w->laps[instr]);
}

double ghp_stopwatch_wait_s(const struct ghp_stopwatch *w, int instr)
{
    return median(w->wait_s + (int64_t)instr * GHP_STOPWATCH_STEPS, w->laps[instr]);
}

struct ghp_lap ghp_stopwatch_last(const struct ghp_stopwatch *w, int instr)
{
    return w->last[instr];
}

int64_t ghp_stopwatch_steps(const struct ghp_stopwatch *w)
{
    return w->steps;
}
