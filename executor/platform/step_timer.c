/* executor/platform/step_timer.c - see platform/step_timer.h. Steps and timings lie in rings with one place a step. */
#include "executor/platform/step_timer.h"

#include <stdlib.h>
#include <string.h>

struct ghp_step_timer {
    int n;
    int64_t step, first;                   /* present step; first that counts */
    struct ghp_instr_timing_mean *timings; /* [n][GHP_STEP_TIMER_STEPS] */
    struct ghp_instr_timing *last;         /* [n] */
    double step_s[GHP_STEP_TIMER_STEPS];   /* < 0: skipped */
};

enum ghp_status ghp_step_timer_open(int n, struct ghp_step_timer **watch)
{
    struct ghp_step_timer *w = ghp_alloc(1, sizeof *w);

    *watch = NULL;
    if (w == NULL) return GHP_NO_MEMORY();
    w->n = n;
    w->timings = ghp_alloc((size_t)n * GHP_STEP_TIMER_STEPS, sizeof *w->timings);
    w->last = ghp_alloc((size_t)n, sizeof *w->last);
    if (w->timings == NULL || w->last == NULL) {
        ghp_step_timer_close(w);
        return GHP_NO_MEMORY();
    }
    *watch = w;
    return GHP_OK;
}

void ghp_step_timer_close(struct ghp_step_timer *w)
{
    if (w == NULL) return;
    free(w->last);
    free(w->timings);
    free(w);
}

void ghp_step_timer_begin(struct ghp_step_timer *w)
{
    int64_t place = w->step % GHP_STEP_TIMER_STEPS;

    for (int i = 0; i < w->n; i++)
        w->timings[i * GHP_STEP_TIMER_STEPS + place] = (struct ghp_instr_timing_mean){0};
}

void ghp_step_timer_repeat(struct ghp_step_timer *w)
{
    int64_t place = w->step % GHP_STEP_TIMER_STEPS;
    int64_t before = (w->step + GHP_STEP_TIMER_STEPS - 1) % GHP_STEP_TIMER_STEPS;

    for (int64_t i = 0; i < w->n * GHP_STEP_TIMER_STEPS; i += GHP_STEP_TIMER_STEPS)
        w->timings[i + place] = w->timings[i + before];
}

void ghp_step_timer_end(struct ghp_step_timer *w, double step_s)
{
    w->step_s[w->step % GHP_STEP_TIMER_STEPS] = step_s;
    w->step++;
}

void ghp_step_timer_record(struct ghp_step_timer *w, int instr, struct ghp_instr_timing timing)
{
    w->timings[instr * GHP_STEP_TIMER_STEPS + w->step % GHP_STEP_TIMER_STEPS].run_s =
        timing.finish_s - timing.start_s;
    w->last[instr] = timing;
}

void ghp_step_timer_wait(struct ghp_step_timer *w, int instr, double wait_s)
{
    w->timings[instr * GHP_STEP_TIMER_STEPS + w->step % GHP_STEP_TIMER_STEPS].wait_s = wait_s;
}

void ghp_step_timer_forget(struct ghp_step_timer *w)
{
    w->first = w->step;
}

void ghp_step_timer_skip(struct ghp_step_timer *w)
{
    if (w->step > 0) w->step_s[(w->step - 1) % GHP_STEP_TIMER_STEPS] = -1;
}

int64_t ghp_step_timer_steps(const struct ghp_step_timer *w)
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
static struct range middling(const struct ghp_step_timer *w)
{
    int64_t steps = ghp_step_timer_steps(w);
    struct range r = {.n = steps < GHP_STEP_TIMER_STEPS ? (int)steps : GHP_STEP_TIMER_STEPS};
    double sorted[GHP_STEP_TIMER_STEPS];
    int n = 0;

    r.first = w->step - r.n;
    for (int i = 0; i < r.n; i++) {
        double step_s = w->step_s[(r.first + i) % GHP_STEP_TIMER_STEPS];

        if (step_s >= 0) sorted[n++] = step_s;
    }
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    r.least_s = n > 0 ? sorted[n / 4] : 0;
    r.most_s = n > 0 ? sorted[n - 1 - n / 4] : 0;
    return r;
}

static bool is_middling(const struct ghp_step_timer *w, const struct range *r, int64_t place)
{
    return w->step_s[place] >= r->least_s && w->step_s[place] <= r->most_s;
}

/* Mean of timings (instr >= 0) or of step lengths (instr < 0, in run_s). */
static struct ghp_instr_timing_mean mean_of(const struct ghp_step_timer *w, int instr)
{
    struct range r = middling(w);
    struct ghp_instr_timing_mean sum = {0};
    int n = 0;

    for (int i = 0; i < r.n; i++) {
        int64_t place = (r.first + i) % GHP_STEP_TIMER_STEPS;
        struct ghp_instr_timing_mean one = {.run_s = w->step_s[place]};

        if (!is_middling(w, &r, place)) continue;
        if (instr >= 0) one = w->timings[instr * GHP_STEP_TIMER_STEPS + place];
        sum.run_s += one.run_s;
        sum.wait_s += one.wait_s;
        n++;
    }
    if (n == 0) return sum;
    return (struct ghp_instr_timing_mean){.run_s = sum.run_s / n, .wait_s = sum.wait_s / n};
}

double ghp_step_timer_recent_s(const struct ghp_step_timer *w, int instr, int n)
{
    int64_t steps = ghp_step_timer_steps(w);
    double sum_s = 0;
    int kept = 0;

    if (n > GHP_STEP_TIMER_STEPS) n = GHP_STEP_TIMER_STEPS;
    if (n > steps) n = (int)steps;
    for (int64_t step = w->step - n; step < w->step; step++) {
        int64_t place = step % GHP_STEP_TIMER_STEPS;

        if (w->step_s[place] < 0) continue;
        sum_s +=
            instr < 0 ? w->step_s[place] : w->timings[instr * GHP_STEP_TIMER_STEPS + place].run_s;
        kept++;
    }
    return kept > 0 ? sum_s / kept : 0;
}

double ghp_step_timer_step_s(const struct ghp_step_timer *w)
{
    return mean_of(w, -1).run_s;
}

struct ghp_instr_timing_mean ghp_step_timer_mean(const struct ghp_step_timer *w, int instr)
{
    return mean_of(w, instr);
}

void ghp_step_timer_kept(const struct ghp_step_timer *w, bool kept[GHP_STEP_TIMER_STEPS])
{
    struct range r = middling(w);

    memset(kept, 0, GHP_STEP_TIMER_STEPS * sizeof *kept);
    for (int i = 0; i < r.n; i++) {
        int64_t place = (r.first + i) % GHP_STEP_TIMER_STEPS;

        kept[place] = is_middling(w, &r, place);
    }
}

void ghp_step_timer_runs(const struct ghp_step_timer *w, int instr,
                         double run_s[GHP_STEP_TIMER_STEPS])
{
    for (int place = 0; place < GHP_STEP_TIMER_STEPS; place++)
        run_s[place] = w->timings[instr * GHP_STEP_TIMER_STEPS + place].run_s;
}

struct ghp_instr_timing ghp_step_timer_last(const struct ghp_step_timer *w, int instr)
{
    return w->last[instr];
}
