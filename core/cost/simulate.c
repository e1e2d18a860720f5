/* core/cost/simulate.c - fluid event simulation of the streams, step after step, until the period repeats.
 *
 * Compute and communication stream work through the list. While both are busy each runs slower by the profile's overlap
 * slowdowns; a blocking reshard concurrent with a reduction shares the link, and waits for what is queued there.
 * Several workers (one a stage) wait for each other through their sends and receives, to take the norm of all gradients
 * together, and to sum gradients of parameters that two stages have. A server, with streams and a port of its own,
 * meets the worker in each exchange. Every rule here only asks that certain other
 * instructions are done, or that all have come to one, so deadlock does not depend on timing. */
#include "core/cost/simulate_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STEPS = 64, RECORDED_AFTER = 3, SPARE_STEPS = 8 };
enum { NOT_QUEUED = -1, QUEUE_END = -2 };

static const double same_period = 1e-13; /* relative: rounding of sums, not physics */

struct stream_state { /* one stream, in list order */
    const int *list;  /* its instructions, program order */
    int n;
    int step, at; /* next or running instruction: list[at] of step `step` */
    bool running;
    double left_s; /* undelayed seconds still to run */
    double start_s;
    double ended_s; /* when the instruction before ended */
};

/* Sends and receives: each is posted when the compute stream passes it; of the posted sends whose receive is posted
 * too, the first is carried, with the joining at its other end. */
struct mail {
    const int *list; /* program order */
    int n, at;       /* next to be posted */
    int carried;     /* the send under way, -1: none */
    int first, last; /* of the queue of posted sends that are not under way; QUEUE_END: none */
    int *queued;     /* per send: the one after it in the queue; QUEUE_END, NOT_QUEUED */
    double left_s, start_s;
    int arriving; /* sends under way to this worker */
};

struct actor { /* one worker */
    const struct ghp_program *program;
    struct ghp_instr_time *times;
    struct stream_state streams[2]; /* compute, communication */
    struct mail mail;
    double step_end_s[MAX_STEPS + SPARE_STEPS]; /* end of the compute stream of each step */
    double step_start_s;                        /* of the recorded step */
    double link_free_s; /* until then the link to other nodes carries what is not waited for */
    int *done_step;     /* per instruction: last step in which it finished, -1: none */
    int *posted_step;   /* per send and receive: last step in which it was posted, -1: none */
    int *match;         /* per send: its receive; others -1 */
    int *match_actor;
};

struct machine_state {
    const struct ghp_overlap *overlap;
    bool joins; /* the profile's */
    int n_actors;
    struct actor *actors;
    double now_s;
    int recorded_step;
};

/* Whether the worker has come to the norm of all gradients in step `step`. */
static bool has_come(const struct actor *a, int step)
{
    const struct stream_state *compute = &a->streams[GHP_STREAM_COMPUTE];
    int index = compute->at < compute->n ? compute->list[compute->at] : -1;
    if (compute->step != step) return compute->step > step;
    for (int i = index < 0 ? 0 : index; i < a->program->n_instrs; i++)
        if (a->program->instrs[i].kind == GHP_INSTR_NORM_REDUCE) return i == index;
    return true; /* the worker is past it */
}

static bool all_have_come(const struct machine_state *s, int step)
{
    for (int k = 0; k < s->n_actors; k++)
        if (!has_come(&s->actors[k], step)) return false;
    return true;
}

/* Whether two programs do it together: stages the sum of gradients of parameters that both have, a worker and a server
 * their exchanges. */
static bool is_met(const struct ghp_instr *instr)
{
    return ghp_instr_is_served(instr) || (instr->ranks.part > 0 && ghp_instr_reduces(instr));
}

/* Whether the compute stream has passed an instruction of the communication stream. */
static bool has_passed(const struct actor *a, int step, int index)
{
    const struct stream_state *compute = &a->streams[GHP_STREAM_COMPUTE];
    if (compute->step != step) return compute->step > step;
    return compute->at >= compute->n || compute->list[compute->at] > index;
}

/* Whether the worker takes no part in what others do together, or has come to it. */
static bool has_come_to_meet(const struct actor *a, int step, const struct ghp_instr *met)
{
    const struct stream_state *comm = &a->streams[GHP_STREAM_COMM];
    int i = 0;
    while (i < comm->n && (!is_met(&a->program->instrs[comm->list[i]]) ||
                           a->program->instrs[comm->list[i]].kind != met->kind ||
                           a->program->instrs[comm->list[i]].layer != met->layer))
        i++;
    if (i == comm->n) return true;
    if (comm->step != step) return comm->step > step;
    return comm->at > i || (comm->at == i && has_passed(a, step, comm->list[i]));
}

static bool both_have_come(const struct machine_state *s, int step, const struct ghp_instr *met)
{
    for (int k = 0; k < s->n_actors; k++)
        if (!has_come_to_meet(&s->actors[k], step, met)) return false;
    return true;
}

/* Whether the worker may begin a step: of recorded steps, the one before has ended with all its reductions. */
static bool may_begin(const struct machine_state *s, const struct actor *a, int step)
{
    const struct stream_state *comm = &a->streams[GHP_STREAM_COMM];
    return !s->joins || !a->program->is_recordable || comm->n == 0 || comm->step >= step;
}

/* Whether the stream's next instruction may start now. */
static bool ready(const struct machine_state *s, const struct actor *a, enum ghp_stream stream)
{
    const struct stream_state *stream_state = &a->streams[stream];
    if (stream_state->at >= stream_state->n) return false;
    int index = stream_state->list[stream_state->at];
    const struct ghp_instr *instr = &a->program->instrs[index];
    if (stream == GHP_STREAM_COMPUTE) {
        if (stream_state->at == 0 && !may_begin(s, a, stream_state->step)) return false;
        if (instr->kind == GHP_INSTR_WAIT && a->done_step[instr->after] < stream_state->step)
            return false;
        if (instr->kind == GHP_INSTR_NORM_REDUCE && !all_have_come(s, stream_state->step))
            return false;
        return instr->wait < 0 || stream_state->step == 0 ||
               a->done_step[instr->wait] >= stream_state->step - 1;
    }
    return has_passed(a, stream_state->step, index) &&
           (!is_met(instr) || both_have_come(s, stream_state->step, instr));
}

/* How much the compute stream's running instruction slows a reduction or transfer of `bytes` bytes, and how much it is
 * slowed. */
struct slowdown {
    double compute, other;
};

static struct slowdown slowdown_of(const struct machine_state *s, const struct actor *a,
                                   int64_t bytes)
{
    const struct stream_state *compute = &a->streams[GHP_STREAM_COMPUTE];
    if (!compute->running) return (struct slowdown){1.0, 1.0};
    int index = compute->list[compute->at];
    if (ghp_instr_sends(&a->program->instrs[index])) {
        struct ghp_sharing sharing = ghp_overlap_sharing(s->overlap, a->times[index].cost.seconds);
        return (struct slowdown){sharing.reshard, sharing.reduction};
    }
    return (struct slowdown){s->overlap->compute, ghp_overlap_comm(s->overlap, bytes)};
}

static bool transfers(const struct actor *a)
{
    return a->mail.carried >= 0 || a->mail.arriving > 0;
}

/* Slowdown of each stream's running instruction. */
static void slowdowns(const struct machine_state *s, const struct actor *a, double slow[2])
{
    const struct stream_state *reduction = &a->streams[GHP_STREAM_COMM];
    bool comm = reduction->running, mail = transfers(a);
    struct slowdown f =
        slowdown_of(s, a, comm ? a->program->instrs[reduction->list[reduction->at]].bytes : 0);
    slow[GHP_STREAM_COMPUTE] = comm || mail ? f.compute : 1.0;
    slow[GHP_STREAM_COMM] = mail ? fmax(f.other, s->overlap->link) : f.other;
}

/* The slowdown of the send that a worker has under way: that of the slower of its two ends. */
static double mail_slowdown(const struct machine_state *s, const struct actor *a)
{
    const struct actor *ends[2] = {a, &s->actors[a->match_actor[a->mail.carried]]};
    int64_t bytes = a->program->instrs[a->mail.carried].bytes;
    double slow = 1.0;
    for (int i = 0; i < 2; i++) {
        slow = fmax(slow, slowdown_of(s, ends[i], bytes).other);
        if (ends[i]->streams[GHP_STREAM_COMM].running) slow = fmax(slow, s->overlap->link);
    }
    return slow;
}

/* Takes a send out of the queue. Most often it is the first. */
static void unqueue(struct mail *mail, int index)
{
    int before = QUEUE_END;
    for (int i = mail->first; i != index; i = mail->queued[i])
        before = i;
    if (before == QUEUE_END)
        mail->first = mail->queued[index];
    else
        mail->queued[before] = mail->queued[index];
    if (mail->last == index) mail->last = before;
    mail->queued[index] = NOT_QUEUED;
}

/* Puts a posted send at the end of the queue, even if it has waited there since the step before. */
static void queue(struct mail *mail, int index)
{
    if (mail->queued[index] != NOT_QUEUED) unqueue(mail, index);
    if (mail->first == QUEUE_END)
        mail->first = index;
    else
        mail->queued[mail->last] = index;
    mail->queued[index] = QUEUE_END;
    mail->last = index;
}

/* Posts what the compute stream has passed. */
static void post(struct actor *a)
{
    const struct stream_state *compute = &a->streams[GHP_STREAM_COMPUTE];
    int next = compute->at < compute->n ? compute->list[compute->at] : a->program->n_instrs;
    while (a->mail.at < a->mail.n && a->mail.list[a->mail.at] < next) {
        int index = a->mail.list[a->mail.at++];
        a->posted_step[index] = compute->step;
        if (a->match[index] >= 0 && index != a->mail.carried) queue(&a->mail, index);
    }
}

/* The send that was posted first among those that can go, QUEUE_END: none. */
static int next_send(const struct machine_state *s, const struct actor *a)
{
    int i = a->mail.first;
    while (i != QUEUE_END &&
           s->actors[a->match_actor[i]].posted_step[a->match[i]] < a->posted_step[i])
        i = a->mail.queued[i];
    return i;
}

static void start_send(struct machine_state *s, struct actor *a)
{
    if (a->mail.n == 0 || a->mail.carried >= 0) return;
    int index = next_send(s, a);
    if (index == QUEUE_END) return;
    unqueue(&a->mail, index);
    struct actor *to = &s->actors[a->match_actor[index]];
    a->mail.carried = index;
    a->mail.start_s = s->now_s;
    a->mail.left_s = a->times[index].cost.seconds + to->times[a->match[index]].cost.seconds;
    to->mail.arriving++;
}

/* A reduction begins on an idle communication stream: what is computed meanwhile stands still. */
static void interrupt(const struct machine_state *s, struct actor *a)
{
    struct stream_state *compute = &a->streams[GHP_STREAM_COMPUTE];
    if (compute->running) compute->left_s += s->overlap->launch_delay_s;
}

/* The stream's next instruction begins; if it is one for the link, as soon as that is free. */
static void begin(const struct machine_state *s, const struct actor *a,
                  struct stream_state *stream_state)
{
    const struct ghp_cost *cost = &a->times[stream_state->list[stream_state->at]].cost;

    stream_state->running = true;
    stream_state->left_s = cost->seconds;
    if (cost->crosses) stream_state->left_s += fmax(0, a->link_free_s - s->now_s);
    stream_state->start_s = s->now_s;
}

static void start_ready(struct machine_state *s)
{
    for (int k = 0; k < s->n_actors; k++) {
        struct actor *a = &s->actors[k];
        for (int i = 0; i < 2; i++) {
            struct stream_state *stream_state = &a->streams[i];
            if (stream_state->running || !ready(s, a, (enum ghp_stream)i)) continue;
            begin(s, a, stream_state);
            if (i == GHP_STREAM_COMM && stream_state->ended_s < s->now_s) interrupt(s, a);
        }
    }
    for (int k = 0; k < s->n_actors; k++)
        start_send(s, &s->actors[k]);
}

static void record(struct machine_state *s, struct actor *a, int index, double start_s)
{
    if (a->done_step[index] != s->recorded_step) return;
    a->times[index].start_s = start_s;
    a->times[index].finish_s = s->now_s;
}

static void finish(struct machine_state *s, struct actor *a, struct stream_state *stream_state)
{
    int index = stream_state->list[stream_state->at];
    stream_state->running = false;
    stream_state->ended_s = s->now_s;
    if (a->times[index].cost.owed_s > 0)
        a->link_free_s = fmax(a->link_free_s, s->now_s) + a->times[index].cost.owed_s;
    a->done_step[index] = stream_state->step;
    record(s, a, index, stream_state->start_s);
    stream_state->at++;
    bool compute = stream_state == &a->streams[GHP_STREAM_COMPUTE];
    if (compute) post(a);
    if (stream_state->at < stream_state->n) return;
    if (compute && stream_state->step < MAX_STEPS + SPARE_STEPS)
        a->step_end_s[stream_state->step] = s->now_s;
    stream_state->at = 0;
    stream_state->step++;
    if (!compute) return;
    a->mail.at = 0;
    post(a);
}

static void finish_send(struct machine_state *s, struct actor *a)
{
    int index = a->mail.carried, received = a->match[index];
    struct actor *to = &s->actors[a->match_actor[index]];
    a->mail.carried = -1;
    to->mail.arriving--;
    a->done_step[index] = a->posted_step[index];
    to->done_step[received] = a->posted_step[index];
    record(s, a, index, a->mail.start_s);
    record(s, to, received, a->mail.start_s);
}

/* Seconds until the first of all running things ends; INFINITY: nothing runs. */
static double next_end(const struct machine_state *s)
{
    double advance = INFINITY, slow[2];
    for (int k = 0; k < s->n_actors; k++) {
        const struct actor *a = &s->actors[k];
        slowdowns(s, a, slow);
        for (int i = 0; i < 2; i++)
            if (a->streams[i].running && a->streams[i].left_s * slow[i] < advance)
                advance = a->streams[i].left_s * slow[i];
        if (a->mail.carried >= 0) advance = fmin(advance, a->mail.left_s * mail_slowdown(s, a));
    }
    return advance;
}

/* What is left of something after `advance` seconds at a slowdown; 0: it ends. */
static double rest_of(double left_s, double slow, double advance)
{
    return left_s * slow <= advance ? 0.0 : left_s - advance / slow;
}

/* All rates are those before anything ends: first everything advances, then what is over ends. */
static void advance_all(struct machine_state *s, double advance)
{
    for (int k = 0; k < s->n_actors; k++) {
        struct actor *a = &s->actors[k];
        double slow[2];
        slowdowns(s, a, slow);
        for (int i = 0; i < 2; i++)
            if (a->streams[i].running)
                a->streams[i].left_s = rest_of(a->streams[i].left_s, slow[i], advance);
        if (a->mail.carried >= 0)
            a->mail.left_s = rest_of(a->mail.left_s, mail_slowdown(s, a), advance);
    }
    s->now_s += advance;
    for (int k = 0; k < s->n_actors; k++) {
        struct actor *a = &s->actors[k];
        for (int i = 0; i < 2; i++)
            if (a->streams[i].running && a->streams[i].left_s <= 0.0) finish(s, a, &a->streams[i]);
        if (a->mail.carried >= 0 && a->mail.left_s <= 0.0) finish_send(s, a);
    }
}

/* Whether some worker has done fewer than `steps` steps. */
static bool lacks(const struct machine_state *s, int steps)
{
    for (int k = 0; k < s->n_actors; k++)
        if (s->actors[k].streams[GHP_STREAM_COMPUTE].step < steps) return true;
    return false;
}

/* Runs until all have done `steps` steps; false if nothing can continue. */
static bool run_until(struct machine_state *s, int steps)
{
    while (lacks(s, steps)) {
        double advance;
        start_ready(s);
        advance = next_end(s);
        if (!(advance < INFINITY)) return false;
        advance_all(s, advance);
    }
    return true;
}

/* When the last worker ended a step. */
static double end_of(const struct machine_state *s, int step)
{
    double end_s = s->actors[0].step_end_s[step];
    for (int k = 1; k < s->n_actors; k++)
        end_s = fmax(end_s, s->actors[k].step_end_s[step]);
    return end_s;
}

/* Mean period once it repeats twice, else over the second half of MAX_STEPS. A lone worker's last step is recorded. */
static bool find_period(struct machine_state *s, double *period_s, int *steps)
{
    for (int k = 1; k <= MAX_STEPS; k++) {
        if (s->n_actors == 1) {
            s->recorded_step = k - 1;
            s->actors[0].step_start_s = k > 1 ? s->actors[0].step_end_s[k - 2] : 0.0;
        }
        if (!run_until(s, k)) return false;
        *steps = k;
        if (k < RECORDED_AFTER + 2) continue;
        double a = end_of(s, k - 1) - end_of(s, k - 2);
        double b = end_of(s, k - 2) - end_of(s, k - 3);
        double c = end_of(s, k - 3) - end_of(s, k - 4);
        *period_s = a;
        if (fabs(a - b) <= same_period * s->now_s && fabs(b - c) <= same_period * s->now_s)
            return true;
    }
    *period_s =
        (end_of(s, MAX_STEPS - 1) - end_of(s, MAX_STEPS / 2 - 1)) / (MAX_STEPS - MAX_STEPS / 2);
    return true;
}

/* Several workers are in different steps at once: a step that none has begun is recorded. */
static bool record_step(struct machine_state *s, int steps)
{
    if (s->n_actors == 1) return run_until(s, steps + 1);
    for (int k = 0; k < s->n_actors; k++)
        if (s->actors[k].streams[GHP_STREAM_COMPUTE].step >= steps)
            steps = s->actors[k].streams[GHP_STREAM_COMPUTE].step + 1;
    s->recorded_step = steps;
    if (!run_until(s, steps + 1)) return false;
    for (int k = 0; k < s->n_actors; k++)
        s->actors[k].step_start_s = s->actors[k].step_end_s[steps - 1];
    return run_until(s, steps + 2);
}

/* ---- opening ---- */

static void actor_close(struct actor *a)
{
    free((void *)(uintptr_t)a->streams[0].list);
}

/* Lists of the streams and tables of an actor, in two blocks. */
static enum ghp_status actor_open(struct actor *a, const struct ghp_program *program,
                                  const struct ghp_cost *costs, struct ghp_timing *timing)
{
    size_t n = (size_t)program->n_instrs;
    int *block = ghp_alloc(8 * n + 1, sizeof *block), *fill[GHP_STREAM_COUNT], count[3] = {0};
    *a = (struct actor){.program = program,
                        .mail = {.carried = -1, .first = QUEUE_END, .last = QUEUE_END}};
    *timing = (struct ghp_timing){.n_instrs = program->n_instrs};
    timing->instrs = ghp_alloc(n + 1, sizeof *timing->instrs);
    a->streams[0].list = block;
    if (block == NULL || timing->instrs == NULL) return GHP_NO_MEMORY();
    a->times = timing->instrs;
    for (int i = 0; i < GHP_STREAM_COUNT; i++)
        fill[i] = block + (size_t)i * n;
    a->done_step = block + 3 * n;
    a->posted_step = block + 4 * n;
    a->match = block + 5 * n;
    a->match_actor = block + 6 * n;
    a->mail.queued = block + 7 * n;
    memset(a->done_step, 0xff, 5 * n * sizeof *a->done_step); /* all -1 */
    for (int i = 0; i < program->n_instrs; i++) {
        enum ghp_stream stream = program->instrs[i].stream;
        timing->instrs[i].cost = costs[i];
        fill[stream][count[stream]++] = i;
    }
    a->streams[GHP_STREAM_COMM].list = fill[GHP_STREAM_COMM];
    a->mail.list = fill[GHP_STREAM_TRANSFER];
    a->streams[GHP_STREAM_COMPUTE].n = count[GHP_STREAM_COMPUTE];
    a->streams[GHP_STREAM_COMM].n = count[GHP_STREAM_COMM];
    a->mail.n = count[GHP_STREAM_TRANSFER];
    ghp_timing_sum_costs(program, timing);
    return GHP_OK;
}

static bool matches(const struct ghp_instr *send, const struct ghp_instr *receive)
{
    return receive->kind == GHP_INSTR_RECEIVE && receive->edge == send->edge &&
           receive->micro == send->micro && receive->backward == send->backward;
}

/* The receive of a send, looked for from a place in the other's list on, as both go through micro-batches alike; -1:
 * there is none. */
static int find_receive(const struct actor *to, const struct ghp_instr *send, int *from)
{
    if (*from >= to->mail.n) *from = 0; /* it was another's list before */
    for (int i = 0; i < to->mail.n; i++, *from = (*from + 1) % to->mail.n)
        if (matches(send, &to->program->instrs[to->mail.list[*from]])) return to->mail.list[*from];
    return -1;
}

/* Finds each send's receive. */
static enum ghp_status match_all(struct machine_state *s)
{
    for (int k = 0; k < s->n_actors; k++) {
        struct actor *a = &s->actors[k];
        int from = 0;
        for (int m = 0; m < a->mail.n; m++) {
            int index = a->mail.list[m];
            const struct ghp_instr *send = &a->program->instrs[index];
            if (send->kind != GHP_INSTR_SEND) continue;
            int to = send->transfer.to_stage;
            int found = to < s->n_actors ? find_receive(&s->actors[to], send, &from) : -1;
            if (found < 0)
                return GHP_FAIL(GHP_ERR_INTERNAL,
                                "instruction %d of stage %d sends what stage %d does not receive; "
                                "report this",
                                index, k, to);
            a->match[index] = found;
            a->match_actor[index] = to;
        }
    }
    return GHP_OK;
}

static enum ghp_status fail_stuck(const struct machine_state *s)
{
    for (int k = 0; k < s->n_actors; k++) {
        const struct stream_state *compute = &s->actors[k].streams[GHP_STREAM_COMPUTE];
        if (compute->n == 0 || compute->running) continue;
        return GHP_FAIL(GHP_ERR_INTERNAL,
                        "the program of stage %d waits for itself at instruction %d; report this",
                        k, compute->list[compute->at < compute->n ? compute->at : 0]);
    }
    return GHP_FAIL(GHP_ERR_INTERNAL, "the programs wait for each other; report this");
}

static enum ghp_status play(struct machine_state *s, struct ghp_timing *timings)
{
    double step_s = 0.0;
    int steps = 0;
    for (int k = 0; k < s->n_actors; k++) {
        if (s->actors[k].streams[GHP_STREAM_COMPUTE].n == 0) return GHP_OK;
        post(&s->actors[k]);
    }
    if (!find_period(s, &step_s, &steps)) return fail_stuck(s);
    for (int k = 0; k < s->n_actors; k++)
        timings[k].step_s = step_s;
    if (!record_step(s, steps)) return GHP_OK; /* reductions that outlast the step are included */
    for (int k = 0; k < s->n_actors; k++) {
        timings[k].origin_s = s->actors[k].step_start_s - s->actors[0].step_start_s;
        ghp_timing_sum_phases(s->actors[k].program, s->actors[k].step_start_s, &timings[k]);
    }
    return GHP_OK;
}

enum ghp_status ghp_simulate_alike(int n, const struct ghp_program *programs,
                                   const struct ghp_profile *profile,
                                   const struct ghp_cost *const *costs, struct ghp_timing *timings)
{
    struct actor *actors = ghp_alloc((size_t)n, sizeof *actors);
    struct machine_state s = {
        .overlap = &profile->overlap, .joins = profile->joins, .n_actors = n, .actors = actors};
    enum ghp_status status = actors == NULL ? GHP_NO_MEMORY() : GHP_OK;
    int opened = 0;

    for (; opened < n && status == GHP_OK; opened++)
        status = actor_open(&actors[opened], &programs[opened], costs[opened], &timings[opened]);
    if (status == GHP_OK) status = match_all(&s);
    s.recorded_step = -2;
    if (status == GHP_OK) status = play(&s, timings);
    for (int k = 0; k < opened; k++) {
        actor_close(&actors[k]);
        if (status != GHP_OK) ghp_timing_release(&timings[k]);
    }
    free(actors);
    return status;
}
