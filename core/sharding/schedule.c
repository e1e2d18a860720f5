/* core/sharding/schedule.c - see schedule.h. */
#include "core/sharding/schedule.h"

#include <stdlib.h>

static bool is_interleaved(const struct ghp_staging *s)
{
    return ghp_staging_chunks(s) > ghp_staging_stages(s);
}

int ghp_stage_in_flight(const struct ghp_staging *s, int stage)
{
    int u = ghp_staging_micro_batches(s), later = ghp_staging_stages(s) - stage;

    if (is_interleaved(s)) {
        int all = u * s->chunks, ahead = 2 * (later - 1) + (s->chunks - 1) * s->n + 1;

        return all < ahead ? all : ahead;
    }
    return s != NULL && s->pipeline == GHP_PIPELINE_FILL_DRAIN ? u : u < later ? u : later;
}

static struct ghp_schedule_step weights_of(int micro)
{
    return (struct ghp_schedule_step){.micro = micro, .backward = true, .weights = true};
}

/* The k-th forward or backward step of a stage. With several chunks as many micro-batches as there are stages go
 * through the first chunk, then through the next: when the last stage has done the first of them, the first stage has
 * done all, and continues with what came back. */
static struct ghp_schedule_step step_at(const struct ghp_staging *s, int k, bool backward)
{
    int stages = ghp_staging_stages(s), chunks = ghp_staging_chunks(s) / stages;
    int round = k / (stages * chunks), place = k % (stages * chunks), chunk = place / stages;

    if (chunks == 1) return (struct ghp_schedule_step){.micro = k, .backward = backward};
    return (struct ghp_schedule_step){.micro = round * stages + place % stages,
                                      .chunk = backward ? chunks - 1 - chunk : chunk,
                                      .backward = backward};
}

int ghp_stage_schedule(const struct ghp_staging *s, int stage, bool forward_only,
                       struct ghp_schedule_step *schedule)
{
    int all = ghp_staging_micro_batches(s) * (ghp_staging_chunks(s) / ghp_staging_stages(s));
    int ahead = forward_only ? all : ghp_stage_in_flight(s, stage), n = 0, f = 0, w = 0;
    bool defers = ghp_staging_defers_weights(s);

    while (f < ahead)
        schedule[n++] = step_at(s, f++, false);
    for (int b = 0; b < all && !forward_only; b++) {
        schedule[n++] = step_at(s, b, true);
        if (defers && b >= stage) schedule[n++] = weights_of(w++);
        if (f < all) schedule[n++] = step_at(s, f++, false);
    }
    while (defers && !forward_only && w < all)
        schedule[n++] = weights_of(w++);
    return n;
}

/* ---- when steps can run ---- */

static int *place_of(const struct ghp_schedule_times *t, int chunk, struct ghp_schedule_step step)
{
    int u = ghp_staging_micro_batches(t->staging);

    return &t->step[(chunk * u + step.micro) * 2 + step.backward];
}

/* The time of what a step of a chunk waits for in another stage: -1 if it waits for nothing, -2 if that has none
 * yet. */
static int ready_at(const struct ghp_schedule_times *t, int chunk, struct ghp_schedule_step step)
{
    int from = step.backward ? chunk + 1 : chunk - 1, at;

    if (from < 0 || from == ghp_staging_chunks(t->staging)) return -1;
    at = *place_of(t, from, step);
    return at < 0 ? -2 : t->time[from % t->staging->n * t->steps + at];
}

/* Gives steps of a stage, from `done` on, their times while it is known what they wait for. Returns how many have
 * one. */
static int advance(struct ghp_schedule_times *t, const struct ghp_schedule_step *schedule,
                   int stage, int done)
{
    for (; done < t->steps; done++) {
        int chunk = schedule[done].chunk * t->staging->n + stage;
        int ready = ready_at(t, chunk, schedule[done]);
        int before = done > 0 ? t->time[stage * t->steps + done - 1] : -1;

        if (ready == -2) break;
        t->time[stage * t->steps + done] = (ready > before ? ready : before) + 1;
        *place_of(t, chunk, schedule[done]) = done;
    }
    return done;
}

/* Returns whether every step has a time. */
static bool fill_times(struct ghp_schedule_times *t, bool forward_only)
{
    struct ghp_schedule_step schedule[GHP_MAX_SCHEDULE_STEPS] = {{0}};
    int done[GHP_MAX_STAGES] = {0}, sum = 0, before = -1;

    while (sum > before) {
        before = sum;
        sum = 0;
        for (int i = 0; i < t->staging->n; i++) {
            ghp_stage_schedule(t->staging, i, forward_only, schedule);
            done[i] = advance(t, schedule, i, done[i]);
            sum += done[i];
        }
    }
    return sum == t->staging->n * t->steps;
}

enum ghp_status ghp_schedule_times_init(const struct ghp_staging *staging, bool forward_only,
                                        struct ghp_schedule_times *times)
{
    int parts = ghp_staging_chunks(staging) * ghp_staging_micro_batches(staging);

    *times = (struct ghp_schedule_times){0};
    if (!is_interleaved(staging)) return GHP_OK;
    times->staging = staging;
    times->steps = parts / staging->n * (forward_only ? 1 : 2);
    times->time = ghp_alloc((size_t)(times->steps * staging->n), sizeof *times->time);
    times->step = ghp_alloc((size_t)(2 * parts), sizeof *times->step);
    if (times->time == NULL || times->step == NULL) {
        ghp_schedule_times_release(times);
        return GHP_NO_MEMORY();
    }
    for (int k = 0; k < 2 * parts; k++)
        times->step[k] = -1;
    GHP_ASSERT(fill_times(times, forward_only));
    return GHP_OK;
}

void ghp_schedule_times_release(struct ghp_schedule_times *times)
{
    free(times->time);
    free(times->step);
    *times = (struct ghp_schedule_times){0};
}

int ghp_schedule_patience(const struct ghp_schedule_times *t, int stage, int s,
                          struct ghp_schedule_step step, int to_chunk)
{
    const int *own = &t->time[stage * t->steps];
    int posted = *place_of(t, to_chunk, step) - 2, further = 1, time;

    if (posted < 0) return 1; /* before the receiver's first step */
    time = t->time[to_chunk % t->staging->n * t->steps + posted];
    while (s + further < t->steps && own[s + further] <= time)
        further++;
    return further;
}
