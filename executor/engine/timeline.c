/* executor/engine/timeline.c - see timeline.h. */
#include "executor/engine/timeline.h"

#include <stdlib.h>
#include <string.h>

struct moments { /* of one instruction in one half */
    struct ghp_device_event *start, *finish, *posted;
    bool started, finished; /* in this half's latest step */
};

struct half {
    struct ghp_device_event *begin, *end;
    struct moments *of; /* [n_instrs] */
    int *ran;           /* [n_instrs] what the compute stream ran or posted, in that order */
    int n_ran;
    int checked; /* events before this instruction are passed */
    /* the present step's instructions are, too; the rest here is of the latest such step */
    bool timed;
};

struct ghp_timeline {
    struct ghp_device device;
    const struct ghp_program *program; /* borrowed */
    enum ghp_device_stream *streams;   /* [n_instrs] in which they finish */
    struct half halves[GHP_HALVES];
};

static enum ghp_device_stream stream_of(const struct ghp_instr *instr)
{
    switch (instr->stream) {
    case GHP_STREAM_COMM: return GHP_DEVICE_STREAM_COMM;
    case GHP_STREAM_TRANSFER: return GHP_DEVICE_STREAM_TRANSFER;
    default: return GHP_DEVICE_STREAM_COMPUTE;
    }
}

/* A transfer's may have nothing to do for a message that is under way. */
static enum ghp_device_stream start_stream_of(const struct ghp_timeline *t, int i)
{
    return t->streams[i] >= GHP_DEVICE_STREAM_TRANSFER ? GHP_DEVICE_STREAM_COMPUTE : t->streams[i];
}

static bool is_posted(const struct ghp_timeline *t, int i)
{
    return t->program->instrs[i].stream != GHP_STREAM_COMPUTE;
}

static enum ghp_status open_instr(struct ghp_timeline *t, int i, struct moments *m)
{
    const struct ghp_instr *instr = &t->program->instrs[i];
    struct ghp_device d = t->device;

    if (is_posted(t, i) || instr->wait >= 0) GHP_TRY(d.ops->event_open(d.backend, true, &m->start));
    if (is_posted(t, i)) GHP_TRY(d.ops->event_open(d.backend, true, &m->posted));
    return d.ops->event_open(d.backend, true, &m->finish);
}

static enum ghp_status open_half(struct ghp_timeline *t, struct half *half)
{
    struct ghp_device d = t->device;

    half->of = ghp_alloc((size_t)t->program->n_instrs, sizeof *half->of);
    half->ran = ghp_alloc((size_t)t->program->n_instrs, sizeof *half->ran);
    if (half->of == NULL || half->ran == NULL) return GHP_NO_MEMORY();
    GHP_TRY(d.ops->event_open(d.backend, true, &half->begin));
    GHP_TRY(d.ops->event_open(d.backend, true, &half->end));
    for (int i = 0; i < t->program->n_instrs; i++)
        GHP_TRY(open_instr(t, i, &half->of[i]));
    return GHP_OK;
}

enum ghp_status ghp_timeline_open(struct ghp_device device, const struct ghp_program *program,
                                  struct ghp_timeline **timeline)
{
    enum ghp_status status = GHP_OK;
    struct ghp_timeline *t = ghp_alloc(1, sizeof *t);

    *timeline = NULL;
    if (t == NULL) return GHP_NO_MEMORY();
    t->device = device;
    t->program = program;
    t->streams = ghp_alloc((size_t)program->n_instrs, sizeof *t->streams);
    if (t->streams == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    for (int i = 0; i < program->n_instrs; i++)
        t->streams[i] = stream_of(&program->instrs[i]);
    for (int b = 0; b < GHP_HALVES; b++)
        GHP_TRY_GOTO(status, open_half(t, &t->halves[b]), fail);
    *timeline = t;
    return GHP_OK;
fail:
    ghp_timeline_close(t);
    return status;
}

void ghp_timeline_close(struct ghp_timeline *t)
{
    if (t == NULL) return;
    for (int b = 0; b < GHP_HALVES; b++) {
        struct half *half = &t->halves[b];

        for (int i = 0; half->of != NULL && i < t->program->n_instrs; i++) {
            t->device.ops->event_close(t->device.backend, half->of[i].start);
            t->device.ops->event_close(t->device.backend, half->of[i].finish);
            t->device.ops->event_close(t->device.backend, half->of[i].posted);
        }
        t->device.ops->event_close(t->device.backend, half->begin);
        t->device.ops->event_close(t->device.backend, half->end);
        free(half->of);
        free(half->ran);
    }
    free(t->streams);
    free(t);
}

void ghp_timeline_divert(struct ghp_timeline *t, int i, enum ghp_device_stream stream)
{
    t->streams[i] = stream;
}

enum ghp_status ghp_timeline_begin(struct ghp_timeline *t, int b, bool timed)
{
    struct half *half = &t->halves[b];

    half->timed = timed;
    for (int i = 0; timed && i < t->program->n_instrs; i++)
        half->of[i].started = half->of[i].finished = false;
    half->checked = 0;
    if (timed) half->n_ran = 0;
    return t->device.ops->record_event(t->device.backend, GHP_DEVICE_STREAM_COMPUTE, half->begin);
}

void ghp_timeline_again(struct ghp_timeline *t, int b, bool timed)
{
    t->halves[b].timed = timed;
    /* the code that plays graphs waits for their end */
    t->halves[b].checked = t->program->n_instrs + 1;
}

enum ghp_status ghp_timeline_end(struct ghp_timeline *t, int b)
{
    return t->device.ops->record_event(t->device.backend, GHP_DEVICE_STREAM_COMPUTE,
                                       t->halves[b].end);
}

enum ghp_status ghp_timeline_start(struct ghp_timeline *t, int b, int i)
{
    struct moments *m = &t->halves[b].of[i];

    if (m->start == NULL || !t->halves[b].timed) return GHP_OK;
    m->started = true;
    return t->device.ops->record_event(t->device.backend, start_stream_of(t, i), m->start);
}

enum ghp_status ghp_timeline_finish(struct ghp_timeline *t, int b, int i)
{
    struct moments *m = &t->halves[b].of[i];

    if (!t->halves[b].timed) return GHP_OK;
    m->finished = true;
    if (!is_posted(t, i)) t->halves[b].ran[t->halves[b].n_ran++] = i;
    return t->device.ops->record_event(t->device.backend, t->streams[i], m->finish);
}

void ghp_timeline_idle(struct ghp_timeline *t, int b, int i)
{
    if (t->halves[b].timed) t->halves[b].ran[t->halves[b].n_ran++] = i;
}

enum ghp_status ghp_timeline_posted(struct ghp_timeline *t, int b, int i)
{
    struct half *half = &t->halves[b];

    if (!half->timed) return GHP_OK;
    half->ran[half->n_ran++] = i;
    return t->device.ops->record_event(t->device.backend, GHP_DEVICE_STREAM_COMPUTE,
                                       half->of[i].posted);
}

enum ghp_status ghp_timeline_pending(struct ghp_timeline *t, int b, int *instr)
{
    struct half *half = &t->halves[b];
    int n = t->program->n_instrs;
    bool passed = true;

    while (passed && half->checked <= n) {
        bool end = half->checked == n;
        struct ghp_device_event *event = end ? half->end : half->of[half->checked].finish;

        if (end || half->of[half->checked].finished)
            GHP_TRY(t->device.ops->query_event(t->device.backend, event, &passed));
        if (passed) half->checked++;
    }
    *instr = half->checked <= n ? half->checked : -1;
    return GHP_OK;
}

/* Seconds from the step's begin to an event. */
static enum ghp_status since_begin(const struct ghp_timeline *t, const struct half *half,
                                   struct ghp_device_event *event, double *seconds)
{
    return t->device.ops->elapsed(t->device.backend, half->begin, event, seconds);
}

/* The next instruction of the compute stream, which was done at *before_s with those before it. */
static enum ghp_status take_instr(const struct ghp_timeline *t, const struct half *half, int i,
                                  double *before_s, struct ghp_step_timer *timer)
{
    const struct moments *m = &half->of[i];
    struct ghp_instr_timing timing = {.start_s = *before_s};
    bool idle = !m->finished && !is_posted(t, i);
    double here_s = 0; /* from when on it kept the compute stream waiting no more */

    if (m->started) GHP_TRY(since_begin(t, half, m->start, &timing.start_s));
    if (m->finished) GHP_TRY(since_begin(t, half, m->finish, &timing.finish_s));
    if (idle) timing.finish_s = timing.start_s;
    here_s = timing.start_s;
    if (is_posted(t, i)) GHP_TRY(since_begin(t, half, m->posted, &here_s));
    ghp_step_timer_wait(timer, i, here_s - *before_s);
    if (m->finished || idle) ghp_step_timer_record(timer, i, timing);
    *before_s = is_posted(t, i) ? here_s : timing.finish_s;
    return GHP_OK;
}

enum ghp_status ghp_timeline_take(struct ghp_timeline *t, int b, struct ghp_step_timer *timer)
{
    struct half *half = &t->halves[b];
    double before_s = 0, step_s = 0;

    if (half->timed)
        ghp_step_timer_begin(timer);
    else
        ghp_step_timer_repeat(timer);
    for (int i = 0; half->timed && i < half->n_ran; i++)
        GHP_TRY(take_instr(t, half, half->ran[i], &before_s, timer));
    GHP_TRY(since_begin(t, half, half->end, &step_s));
    ghp_step_timer_end(timer, step_s);
    return GHP_OK;
}
