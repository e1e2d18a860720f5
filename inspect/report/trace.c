/* inspect/report/trace.c - a step as trace events (JSON that Perfetto and chrome://tracing open).
 *
 * Processes for the prediction (one a stage) and the run, each with a lane a stream. Times
 * are in microseconds from the step's start, as the format wants. */
#include "inspect/report/report_private.h"

#include "core/base/json_lines.h"

#include <math.h>
#include <stdio.h>

enum {
    PREDICTED = 1,
    MEASURED = 2,
    FURTHER = 3
}; /* processes: of the stage shown, then of the others */

/* A list of events, and whether memory was short for any of it: then the file is not written. */
struct events {
    json_t *list;
    bool failed;
};

static void set(struct events *events, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0) events->failed = true;
}

static void name_of(struct events *events, const char *what, int process, int lane,
                    const char *name)
{
    json_t *event = json_object(), *args = json_object();

    set(events, event, "name", json_string(what));
    set(events, event, "ph", json_string("M"));
    set(events, event, "pid", json_integer(process));
    set(events, event, "tid", json_integer(lane));
    set(events, args, "name", json_string(name));
    set(events, event, "args", args);
    if (json_array_append_new(events->list, event) != 0) events->failed = true;
}

static void name_process(struct events *events, int process, const char *name, int lanes)
{
    name_of(events, "process_name", process, 0, name);
    for (int s = 0; s < lanes; s++)
        name_of(events, "thread_name", process, s, ghp_stream_names[s]);
}

/* A complete event without arguments. */
static json_t *event_of(struct events *events, const char *name, const char *category, int process,
                        enum ghp_stream lane)
{
    json_t *event = json_object();

    set(events, event, "name", json_string(name));
    set(events, event, "cat", json_string(category));
    set(events, event, "ph", json_string("X"));
    set(events, event, "pid", json_integer(process));
    set(events, event, "tid", json_integer((int)lane));
    return event;
}

/* Appends an event from start to finish [s]. */
static void append(struct events *events, json_t *event, double start_s, double finish_s)
{
    set(events, event, "ts", json_real(start_s * 1e6));
    set(events, event, "dur", json_real(fmax(0, finish_s - start_s) * 1e6));
    if (json_array_append_new(events->list, event) != 0) events->failed = true;
}

static json_t *args_of(struct events *events, const struct ghp_report *report, int i)
{
    const struct ghp_instr *instr = &report->program.instrs[i];
    const struct ghp_cost *cost = &report->timing.instrs[i].cost;
    json_t *args = json_object();
    char split[64];

    set(events, args, "instruction", json_integer(i));
    set(events, args, "does", json_string(ghp_kind_of(instr)->purpose));
    if (instr->layer >= 0) {
        ghp_split_format(report->plan->splits[instr->layer], split, sizeof split);
        set(events, args, "layer", json_string(report->plan->model.layers[instr->layer].name));
        set(events, args, "split", json_string(split));
    }
    if (instr->kind == GHP_INSTR_RESHARD)
        set(events, args, "step", json_string(ghp_reshard_name(instr->step.op)));
    if (instr->bytes > 0) set(events, args, "bytes", json_integer(instr->bytes));
    if (instr->ranks.count > 1) {
        set(events, args, "ranks", json_integer(instr->ranks.count));
        set(events, args, "stride", json_integer(instr->ranks.stride));
    }
    set(events, args, "alone_us", json_real(cost->seconds * 1e6));
    set(events, args, "source", json_string(ghp_source_name(cost->source)));
    return args;
}

static json_t *instr_event(struct events *events, const struct ghp_report *report, int i,
                           int process)
{
    const struct ghp_instr *instr = &report->program.instrs[i];
    char name[256];
    json_t *event;

    snprintf(name, sizeof name, "%s%s%s", ghp_instr_name(instr), instr->layer >= 0 ? " " : "",
             ghp_report_layer_name(report, instr->layer));
    event = event_of(events, name, ghp_phase_name(ghp_instr_phase(instr)), process, instr->stream);
    set(events, event, "args", args_of(events, report, i));
    return event;
}

/* Streams that the plan has. */
static int lanes_of(const struct ghp_report *report)
{
    return report->simulation.programs.n > 1 ? GHP_STREAM_COUNT : GHP_STREAM_TRANSFER;
}

/* The stage's step, from its own start. */
static void add_predicted(struct events *events, const struct ghp_report *of, int stage)
{
    struct ghp_report report = *of; /* of that stage */
    int process = stage == of->stage ? PREDICTED : FURTHER + stage;
    char name[64];

    report.program = of->simulation.programs.of[stage];
    report.timing = of->simulation.timings[stage];
    snprintf(name, sizeof name, "predicted");
    if (of->simulation.programs.n > 1) snprintf(name, sizeof name, "predicted, stage %d", stage);
    name_process(events, process, name, lanes_of(of));
    for (int i = 0; i < report.program.n_instrs; i++) {
        const struct ghp_instr_time *t = &report.timing.instrs[i];
        double origin_s = report.timing.origin_s - of->timing.origin_s;

        append(events, instr_event(events, &report, i, process), origin_s + t->start_s,
               origin_s + t->finish_s);
    }
}

/* Starts are of one step and lengths are means: if they would overlap, an event is moved after the one before. */
static void add_measured(struct events *events, const struct ghp_report *report)
{
    double before_s[GHP_STREAM_COUNT] = {-INFINITY, -INFINITY, -INFINITY};

    name_process(events, MEASURED, "measured", lanes_of(report));
    for (int i = 0; i < report->program.n_instrs; i++) {
        const struct ghp_report_timing *measured_timing = &report->measured_timings[i];
        enum ghp_stream stream = report->program.instrs[i].stream;
        double start_s = fmax(measured_timing->start_s, before_s[stream]);
        double wait_s = fmax(start_s - measured_timing->wait_s, before_s[stream]);

        if (stream == GHP_STREAM_COMPUTE && wait_s < start_s)
            append(events, event_of(events, "wait", "wait", MEASURED, stream), wait_s, start_s);
        before_s[stream] = start_s + measured_timing->run_s;
        append(events, instr_event(events, report, i, MEASURED), start_s, before_s[stream]);
    }
}

enum ghp_status ghp_report_save_trace(const struct ghp_report *report, const char *path)
{
    struct events events = {.list = json_array()};
    json_t *root = NULL;

    events.failed = events.list == NULL;
    for (int i = 0; i < report->simulation.programs.n; i++)
        add_predicted(&events, report, i);
    if (report->measured_timings != NULL) add_measured(&events, report);
    if (!events.failed)
        root = json_pack("{s:s, s:O}", "displayTimeUnit", "ms", "traceEvents", events.list);
    json_decref(events.list);
    return ghp_json_lines_save(path, root);
}
