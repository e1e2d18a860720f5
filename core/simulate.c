/* core/simulate.c - fluid event simulation of the two streams, step after step, until the period repeats.
 *
 * Both streams work through the list. While both are busy each runs slower by the profile's overlap slowdowns; a
 * blocking exchange beside a reduction shares the link. */
#include "core/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STEPS = 64, RECORDED_AFTER = 3 };

static const double same_period = 1e-13; /* relative: rounding of sums, not physics */

const char *ghp_phase_name(enum ghp_phase phase)
{
    static const char *const names[GHP_PHASE_COUNT] = {
        "forward", "backward_data", "backward_weight", "reshard", "update", "load", "exposed"};
    return names[phase];
}

enum ghp_phase ghp_instr_phase(const struct ghp_instr *instr)
{
    switch (instr->kind) {
    case GHP_INSTR_LOAD: return GHP_PHASE_LOAD;
    case GHP_INSTR_UPDATE: return GHP_PHASE_UPDATE;
    case GHP_INSTR_RESHARD:
    case GHP_INSTR_STAT_REDUCE: return GHP_PHASE_RESHARD;
    case GHP_INSTR_ALL_REDUCE:
    case GHP_INSTR_METRIC_REDUCE: return GHP_PHASE_EXPOSED;
    case GHP_INSTR_ACCUMULATE: return GHP_PHASE_BACKWARD_DATA;
    case GHP_INSTR_COMPUTE:
    case GHP_INSTR_COUNT: break;
    }
    if (instr->pass == GHP_PASS_BACKWARD_WEIGHT) return GHP_PHASE_BACKWARD_WEIGHT;
    return instr->backward ? GHP_PHASE_BACKWARD_DATA : GHP_PHASE_FORWARD;
}

void ghp_timing_release(struct ghp_timing *timing)
{
    if (timing == NULL) return;
    free(timing->instrs);
    memset(timing, 0, sizeof *timing);
}

struct lane {        /* one stream */
    const int *list; /* its instructions, program order */
    int n;
    int step, at; /* next or running instruction: list[at] of step `step` */
    bool running;
    double left_s; /* undelayed seconds still to run */
    double start_s;
};

struct machine_state {
    const struct ghp_program *program;
    const struct ghp_overlap *overlap;
    struct ghp_instr_time *times;
    struct lane lanes[GHP_STREAM_COUNT];
    double now_s;
    double step_end_s[MAX_STEPS + 2]; /* end of the compute stream of each step */
    double step_start_s;              /* of the recorded step */
    int recorded_step;
    int *done_step; /* per instruction: last step in which it finished, -1: none */
};

/* Whether the lane's next instruction may start now. */
static bool ready(const struct machine_state *s, enum ghp_stream stream)
{
    const struct lane *lane = &s->lanes[stream];
    const struct lane *compute = &s->lanes[GHP_STREAM_COMPUTE];
    if (lane->at >= lane->n) return false;
    int index = lane->list[lane->at];
    const struct ghp_instr *instr = &s->program->instrs[index];
    if (stream == GHP_STREAM_COMPUTE)
        return instr->wait < 0 || lane->step == 0 || s->done_step[instr->wait] >= lane->step - 1;
    if (compute->step != lane->step) return compute->step > lane->step;
    return compute->at >= compute->n || compute->list[compute->at] > index;
}

static bool sends(const struct ghp_instr *instr)
{
    return instr->comm != GHP_COMM_NONE && instr->ranks.count > 1;
}

/* Slowdown of each lane's running instruction. */
static void slowdowns(const struct machine_state *s, double slow[GHP_STREAM_COUNT])
{
    const struct lane *compute = &s->lanes[GHP_STREAM_COMPUTE], *comm = &s->lanes[GHP_STREAM_COMM];
    slow[0] = slow[1] = 1.0;
    if (!compute->running || !comm->running) return;
    bool exchange = sends(&s->program->instrs[compute->list[compute->at]]);
    slow[GHP_STREAM_COMPUTE] = exchange ? s->overlap->link : s->overlap->compute;
    slow[GHP_STREAM_COMM] = exchange ? s->overlap->link : s->overlap->comm;
}

static void start_ready(struct machine_state *s)
{
    for (int i = 0; i < GHP_STREAM_COUNT; i++) {
        struct lane *lane = &s->lanes[i];
        if (lane->running || !ready(s, (enum ghp_stream)i)) continue;
        lane->running = true;
        lane->left_s = s->times[lane->list[lane->at]].price.seconds;
        lane->start_s = s->now_s;
    }
}

static void finish(struct machine_state *s, struct lane *lane)
{
    int index = lane->list[lane->at];
    lane->running = false;
    s->done_step[index] = lane->step;
    if (lane->step == s->recorded_step) {
        s->times[index].start_s = lane->start_s;
        s->times[index].finish_s = s->now_s;
    }
    lane->at++;
    bool compute = lane == &s->lanes[GHP_STREAM_COMPUTE];
    if (lane->at < lane->n) return;
    if (compute) s->step_end_s[lane->step] = s->now_s;
    lane->at = 0;
    lane->step++;
}

/* Runs until both lanes have done `steps` steps; false if neither can go on. */
static bool run_until(struct machine_state *s, int steps)
{
    struct lane *compute = &s->lanes[GHP_STREAM_COMPUTE], *comm = &s->lanes[GHP_STREAM_COMM];
    while (compute->step < steps) {
        start_ready(s);
        if (!compute->running && !comm->running) return false;
        double slow[GHP_STREAM_COUNT], advance = INFINITY;
        slowdowns(s, slow);
        for (int i = 0; i < GHP_STREAM_COUNT; i++)
            if (s->lanes[i].running && s->lanes[i].left_s * slow[i] < advance)
                advance = s->lanes[i].left_s * slow[i];
        s->now_s += advance;
        for (int i = 0; i < GHP_STREAM_COUNT; i++) {
            struct lane *lane = &s->lanes[i];
            if (!lane->running) continue;
            bool ends = lane->left_s * slow[i] <= advance;
            lane->left_s = ends ? 0.0 : lane->left_s - advance / slow[i];
            if (ends) finish(s, lane);
        }
    }
    return true;
}

/* Mean period once it repeats twice, else over the second half of MAX_STEPS. */
static bool find_period(struct machine_state *s, double *period_s, int *steps)
{
    for (int k = 1; k <= MAX_STEPS; k++) {
        s->recorded_step = k - 1;
        double before_s = k > 1 ? s->step_end_s[k - 2] : 0.0;
        s->step_start_s = before_s;
        if (!run_until(s, k)) return false;
        *steps = k;
        if (k < RECORDED_AFTER + 2) continue;
        double a = s->step_end_s[k - 1] - s->step_end_s[k - 2];
        double b = s->step_end_s[k - 2] - s->step_end_s[k - 3];
        double c = s->step_end_s[k - 3] - s->step_end_s[k - 4];
        *period_s = a;
        if (fabs(a - b) <= same_period * s->now_s && fabs(b - c) <= same_period * s->now_s)
            return true;
    }
    *period_s = (s->step_end_s[MAX_STEPS - 1] - s->step_end_s[MAX_STEPS / 2 - 1]) /
                (MAX_STEPS - MAX_STEPS / 2);
    return true;
}

/* Fills the timing's sums from its prices. */
static void sum_prices(const struct ghp_program *program, struct ghp_timing *timing)
{
    double measured_s = 0.0, all_s = 0.0, square_s = 0.0;
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        const struct ghp_price *price = &timing->instrs[i].price;
        all_s += price->seconds;
        measured_s += price->source == GHP_SOURCE_MEASURED ? price->seconds : 0.0;
        double half = price->spread * price->seconds / 2.0;
        square_s += half * half;
        *(instr->stream == GHP_STREAM_COMPUTE ? &timing->compute_s : &timing->comm_s) +=
            price->seconds;
    }
    timing->serial_s = timing->compute_s + timing->comm_s;
    timing->measured_share = all_s > 0.0 ? measured_s / all_s : 0.0;
    timing->error_s = sqrt(square_s);
}

static void sum_phases(const struct ghp_program *program, const struct machine_state *s,
                       struct ghp_timing *timing)
{
    double busy_s = 0.0;
    for (int i = 0; i < program->n_instrs; i++) {
        struct ghp_instr_time *t = &timing->instrs[i];
        t->start_s -= s->step_start_s;
        t->finish_s -= s->step_start_s;
        if (program->instrs[i].stream != GHP_STREAM_COMPUTE) continue;
        timing->phase_s[ghp_instr_phase(&program->instrs[i])] += t->finish_s - t->start_s;
        busy_s += t->finish_s - t->start_s;
    }
    timing->phase_s[GHP_PHASE_EXPOSED] = fmax(0.0, timing->step_s - busy_s);
}

enum ghp_status ghp_simulate_priced(const struct ghp_program *program,
                                    const struct ghp_overlap *overlap,
                                    const struct ghp_price *prices, struct ghp_timing *timing)
{
    enum ghp_status status = GHP_OK;
    int n = program->n_instrs, steps = 0;
    *timing = (struct ghp_timing){.n_instrs = n};
    struct machine_state s = {.program = program, .overlap = overlap};
    int *lists = ghp_alloc(3 * (size_t)n + 3, sizeof *lists);
    timing->instrs = ghp_alloc((size_t)n + 1, sizeof *timing->instrs);
    if (lists == NULL || timing->instrs == NULL) {
        status = GHP_NO_MEMORY();
        goto done;
    }
    s.times = timing->instrs;
    s.done_step = lists + 2 * n;
    int *fill[GHP_STREAM_COUNT] = {lists, lists + n};
    for (int i = 0; i < n; i++) {
        timing->instrs[i].price = prices[i];
        s.done_step[i] = -1;
        enum ghp_stream stream = program->instrs[i].stream;
        fill[stream][s.lanes[stream].n++] = i;
    }
    sum_prices(program, timing);
    for (int i = 0; i < GHP_STREAM_COUNT; i++)
        s.lanes[i].list = fill[i];
    if (s.lanes[GHP_STREAM_COMPUTE].n == 0) goto done;
    if (!find_period(&s, &timing->step_s, &steps)) {
        status = GHP_FAIL(GHP_ERR_INTERNAL,
                          "the program waits for itself at instruction %d; report this",
                          s.lanes[0].list[s.lanes[0].at < s.lanes[0].n ? s.lanes[0].at : 0]);
        goto done;
    }
    if (run_until(&s, steps + 1)) /* reductions of the recorded step that outlast it */
        sum_phases(program, &s, timing);
done:
    free(lists);
    if (status != GHP_OK) ghp_timing_release(timing);
    return status;
}

enum ghp_status ghp_simulate(const struct ghp_program *program, const struct ghp_profile *profile,
                             struct ghp_timing *timing)
{
    struct ghp_price *prices = ghp_alloc((size_t)program->n_instrs, sizeof *prices);
    enum ghp_status status = prices == NULL ? GHP_NO_MEMORY() : GHP_OK;
    *timing = (struct ghp_timing){0};
    for (int i = 0; i < program->n_instrs && status == GHP_OK; i++)
        status =
            ghp_profile_price(profile, &program->instrs[i], program->extent.workers, &prices[i]);
    if (status == GHP_OK) status = ghp_simulate_priced(program, &profile->overlap, prices, timing);
    free(prices);
    return status;
}
