/* executor/platform/step_timer.c - see platform/step_timer.h. Steps and laps lie in rings with one place a step. */
#include "executor/platform/step_timer.h"
#include "core/base/clock.h"

#include <stdlib.h>
#include <string.h>

struct ghp_stopwatch {
    int n;
    int64_t step, first;                /* present step; first that counts */
    double start_s;                     /* of the present step */
    struct ghp_lap_mean *laps;          /* [n][GHP_STOPWATCH_STEPS] */
    struct ghp_lap *last;               /* [n] */
    double step_s[GHP_STOPWATCH_STEPS]; /* < 0: skipped */
};

enum ghp_status ghp_stopwatch_open(int n, struct ghp_stopwatch **watch)
{
    struct ghp_stopwatch *w = ghp_alloc(1, sizeof(*w));

    *watch = NULL;
    if (w == NULL) return GHP_NO_MEMORY();
    w->n = n;
    w->laps = ghp_alloc((size_t)n * GHP_STOPWATCH_STEPS, sizeof(*w->laps));
    w->last = ghp_alloc((size_t)n, sizeof(*w->last));
    if (w->laps == NULL || w->last == NULL) {
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
    free(w);
}

void ghp_stopwatch_begin(struct ghp_stopwatch *w)
{
    int64_t place = w->step % GHP_STOPWATCH_STEPS;

    for (int i = 0; i < w->n; i++)
        w->laps[i * GHP_STOPWATCH_STEPS + place] = (struct ghp_lap_mean){0};
    w->start_s = ghp_now_s();
}

void ghp_stopwatch_end(struct ghp_stopwatch *w)
{
    ghp_stopwatch_end_after(w, ghp_now_s() - w->start_s);
}

void ghp_stopwatch_end_after(struct ghp_stopwatch *w, double step_s)
{
    w->step_s[w->step % GHP_STOPWATCH_STEPS] = step_s;
    w->step++;
}

int64_t ghp_stopwatch_step(const struct ghp_stopwatch *w)
{
    return w->step;
}

double ghp_stopwatch_start_s(const struct ghp_stopwatch *w)
{
    return w->start_s;
}

void ghp_stopwatch_lap(struct ghp_stopwatch *w, int instr, struct ghp_lap lap)
{
    w->laps[instr * GHP_STOPWATCH_STEPS + lap.step % GHP_STOPWATCH_STEPS].run_s =
        lap.finish_s - lap.start_s;
    w->last[instr] = lap;
}

void ghp_stopwatch_wait(struct ghp_stopwatch *w, int instr, double wait_s)
{
    w->laps[instr * GHP_STOPWATCH_STEPS + w->step % GHP_STOPWATCH_STEPS].wait_s = wait_s;
}

void ghp_stopwatch_forget(struct ghp_stopwatch *w)
{
    w->first = w->step;
}

void ghp_stopwatch_skip(struct ghp_stopwatch *w)
{
    if (w->step > 0) w->step_s[(w->step - 1) % GHP_STOPWATCH_STEPS] = -1;
}

int64_t ghp_stopwatch_steps(const struct ghp_stopwatch *w)
{
    return w->step - w->first;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct range { /* of step lengths */
    double least_s, most_s;
    int n;         /* steps kept, skipped ones too */
    int64_t first; /* the oldest of them */
};

/* Lengths between the quartiles. With fewer than four steps: all of them. */
static struct range middling(const struct ghp_stopwatch *w)
{
    int64_t steps = ghp_stopwatch_steps(w);
    struct range r = {.n = steps < GHP_STOPWATCH_STEPS ? (int)steps : GHP_STOPWATCH_STEPS};
    double sorted[GHP_STOPWATCH_STEPS];
    int n = 0;

    r.first = w->step - r.n;
    for (int i = 0; i < r.n; i++) {
        double step_s = w->step_s[(r.first + i) % GHP_STOPWATCH_STEPS];

        if (step_s >= 0) sorted[n++] = step_s;
    }
    qsort(sorted, (size_t)n, sizeof(*sorted), by_value);
    r.least_s = n > 0 ? sorted[n / 4] : 0;
    r.most_s = n > 0 ? sorted[n - 1 - n / 4] : 0;
    return r;
}

static bool is_middling(const struct ghp_stopwatch *w, const struct range *r, int64_t place)
{
    return w->step_s[place] >= r->least_s && w->step_s[place] <= r->most_s;
}

/* Mean of laps (instr >= 0) or of step lengths (instr < 0, in run_s). */
static struct ghp_lap_mean mean_of(const struct ghp_stopwatch *w, int instr)
{
    struct range r = middling(w);
    struct ghp_lap_mean sum = {0};
    int n = 0;

    for (int i = 0; i < r.n; i++) {
        int64_t place = (r.first + i) % GHP_STOPWATCH_STEPS;
        struct ghp_lap_mean one = {.run_s = w->step_s[place]};

        if (!is_middling(w, &r, place)) continue;
        if (instr >= 0) one = w->laps[instr * GHP_STOPWATCH_STEPS + place];
        sum.run_s += one.run_s;
        sum.wait_s += one.wait_s;
        n++;
    }
    if (n == 0) return sum;
    return (struct ghp_lap_mean){.run_s = sum.run_s / n, .wait_s = sum.wait_s / n};
}

double ghp_stopwatch_step_s(const struct ghp_stopwatch *w)
{
    return mean_of(w, -1).run_s;
}

struct ghp_lap_mean ghp_stopwatch_mean(const struct ghp_stopwatch *w, int instr)
{
    return mean_of(w, instr);
}

void ghp_stopwatch_kept(const struct ghp_stopwatch *w, bool kept[GHP_STOPWATCH_STEPS])
{
    struct range r = middling(w);

    memset(kept, 0, GHP_STOPWATCH_STEPS * sizeof(*kept));
    for (int i = 0; i < r.n; i++) {
        int64_t place = (r.first + i) % GHP_STOPWATCH_STEPS;

        kept[place] = is_middling(w, &r, place);
    }
}

void ghp_stopwatch_runs(const struct ghp_stopwatch *w, int instr, double run_s[GHP_STOPWATCH_STEPS])
{
    for (int place = 0; place < GHP_STOPWATCH_STEPS; place++)
        run_s[place] = w->laps[instr * GHP_STOPWATCH_STEPS + place].run_s;
}

struct ghp_lap ghp_stopwatch_last(const struct ghp_stopwatch *w, int instr)
{
    return w->last[instr];
}
