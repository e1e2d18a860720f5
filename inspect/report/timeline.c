/* inspect/report/timeline.c - the steady step's two streams over time, predicted and, with a run, measured.
 *
 * Drawings stretch to the page (or to the zoom), so their texts stand next to them. What is too short to be seen is
 * drawn together with its neighbours of the same phase. */
#include "inspect/report/report_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNITS = 10000,
    TICKS = 10
}; /* width of a drawing in its own units; marks on the axis at most */

/* part of the axis below which an instruction joins its neighbours */
static const double seen = 0.0012;

/* What a lane shows: a span of one phase. */
struct span {
    double start_s, finish_s;
    int phase;          /* enum ghp_phase; GHP_PHASE_COUNT: waiting */
    int first, last, n; /* instructions */
};

struct lane {
    struct span *spans; /* owned */
    int n;
    double busy_s;
};

struct axis {
    double most_s;
};

static const char *phase_text(int phase)
{
    static const char *const names[GHP_PHASE_COUNT + 1] = {
        "forward", "backward, data", "backward, weights", "reshard",
        "update",  "load",           "reduction",         "waiting"};

    return names[phase];
}

static void add_span(struct lane *lane, const struct axis *axis, struct span span)
{
    struct span *last = lane->n > 0 ? &lane->spans[lane->n - 1] : NULL;
    double least_s = seen * axis->most_s;

    if (!(span.finish_s > span.start_s)) return;
    lane->busy_s += span.phase == GHP_PHASE_COUNT ? 0 : span.finish_s - span.start_s;
    if (last != NULL && last->phase == span.phase && span.start_s - last->finish_s < least_s / 4 &&
        (span.finish_s - span.start_s < least_s || last->finish_s - last->start_s < least_s)) {
        last->finish_s = span.finish_s;
        last->last = span.last;
        last->n += span.n;
        return;
    }
    lane->spans[lane->n++] = span;
}

static struct span predicted_span(const struct ghp_report *report, int i)
{
    const struct ghp_instr_time *t = &report->timing.instrs[i];

    return (struct span){.start_s = t->start_s,
                         .finish_s = t->finish_s,
                         .phase = (int)ghp_instr_phase(&report->program.instrs[i]),
                         .first = i,
                         .last = i,
                         .n = 1};
}

/* Starts are of one step and lengths are means, so a span is cut where the next one starts. */
static struct span measured_span(const struct ghp_report *report, int i, double before_s)
{
    const struct ghp_report_timing *measured_timing = &report->measured_timings[i];

    return (struct span){.start_s = fmax(measured_timing->start_s, before_s),
                         .finish_s =
                             fmax(measured_timing->start_s, before_s) + measured_timing->run_s,
                         .phase = (int)ghp_instr_phase(&report->program.instrs[i]),
                         .first = i,
                         .last = i,
                         .n = 1};
}

static enum ghp_status lane_init(const struct ghp_report *report, const struct axis *axis,
                                 enum ghp_stream stream, bool measured, struct lane *lane)
{
    double before_s = -INFINITY;

    *lane = (struct lane){0};
    lane->spans = ghp_alloc(2 * (size_t)report->program.n_instrs + 1, sizeof *lane->spans);
    if (lane->spans == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < report->program.n_instrs; i++) {
        struct span span;

        if (report->program.instrs[i].stream != stream) continue;
        if (measured && stream == GHP_STREAM_COMPUTE && report->measured_timings[i].wait_s > 0) {
            struct span wait = measured_span(report, i, before_s);

            wait.finish_s = wait.start_s;
            wait.start_s = fmax(before_s, wait.start_s - report->measured_timings[i].wait_s);
            wait.phase = GHP_PHASE_COUNT;
            add_span(lane, axis, wait);
        }
        span = measured ? measured_span(report, i, before_s) : predicted_span(report, i);
        add_span(lane, axis, span);
        before_s = span.finish_s;
    }
    return GHP_OK;
}

static void put_span_title(struct ghp_page *page, const struct ghp_report *report,
                           const struct span *span)
{
    const char *first = ghp_report_layer_name(report, report->program.instrs[span->first].layer);
    const char *last = ghp_report_layer_name(report, report->program.instrs[span->last].layer);

    ghp_page_add(page, "<title>%s%s", phase_text(span->phase), first[0] != '\0' ? " " : "");
    ghp_page_text(page, first);
    if (span->n > 1) {
        ghp_page_add(page, strcmp(first, last) != 0 ? " to " : "");
        if (strcmp(first, last) != 0) ghp_page_text(page, last);
        ghp_page_add(page, " (%d)", span->n);
    }
    ghp_page_add(page, ": %.4g ms from %.4g ms</title>", (span->finish_s - span->start_s) * 1e3,
                 span->start_s * 1e3);
}

/* A bar of a span; before_s: what starts the step in which it is drawn. */
static void put_bar(struct ghp_page *page, const struct axis *axis, struct span bar,
                    double before_s)
{
    double x = (bar.start_s - before_s) / axis->most_s * UNITS;
    double width = (bar.finish_s - bar.start_s) / axis->most_s * UNITS;

    ghp_page_add(page, "<rect class=\"p%d%s\" x=\"%.0f\" width=\"%.0f\" height=\"30\">", bar.phase,
                 before_s > 0 ? " before" : "", x, fmax(width, 3));
}

/* What outlasts the step is drawn at its start, as what the step before left over: all steps are alike. */
static void put_lane(struct ghp_page *page, const struct ghp_report *report,
                     const struct axis *axis, const struct lane *lane, double step_s)
{
    for (int i = 0; i < lane->n; i++) {
        struct span bars[2] = {lane->spans[i], lane->spans[i]};

        bars[0].finish_s = fmin(bars[0].finish_s, step_s);
        bars[1].start_s = fmax(bars[1].start_s, step_s);
        for (int k = 0; k < 2; k++) {
            if (bars[k].finish_s - bars[k].start_s <= 1e-9 * step_s) continue; /* rounding */
            put_bar(page, axis, bars[k], k * step_s);
            put_span_title(page, report, &lane->spans[i]);
            ghp_page_add(page, "</rect>");
        }
    }
}

/* Marks at round times. */
static void put_axis(struct ghp_page *page, const struct axis *axis)
{
    double step_s = ghp_report_nice(axis->most_s, TICKS);

    ghp_page_add(page, "<div class=\"axis\" aria-hidden=\"true\">");
    for (int k = 0; k * step_s < axis->most_s * 0.97; k++)
        ghp_page_add(page, "<span%s style=\"left:%.2f%%\">%.4g%s</span>",
                     k % 2 == 1 ? " class=\"odd\"" : "", 100 * k * step_s / axis->most_s,
                     k * step_s * 1e3, k == 0 ? " ms" : "");
    ghp_page_add(page, "</div>\n");
}

static enum ghp_status put_row(struct ghp_page *page, const struct ghp_report *report,
                               const struct axis *axis, enum ghp_stream stream, bool measured)
{
    const char *who = measured ? "measured" : "predicted";
    const char *what = ghp_stream_names[stream];
    double step_s = measured ? report->measured_step_s : report->timing.step_s;
    struct lane lane;

    GHP_TRY(lane_init(report, axis, stream, measured, &lane));
    ghp_page_add(page,
                 "<div class=\"lane\"><span class=\"lead\"><b>%s</b>, %s: busy %.3f of %.3f "
                 "ms</span><svg viewBox=\"0 0 %d 30\" preserveAspectRatio=\"none\" role=\"img\" "
                 "aria-label=\"%s %s stream: busy %.3f ms of a step of %.3f ms\">",
                 what, who, lane.busy_s * 1e3, step_s * 1e3, UNITS, who, what, lane.busy_s * 1e3,
                 step_s * 1e3);
    ghp_page_add(page, "<rect class=\"ground\" width=\"%d\" height=\"30\"/>", UNITS);
    put_lane(page, report, axis, &lane, step_s);
    ghp_page_add(page, "<path class=\"end\" d=\"M%.0f 0V30\"/></svg></div>\n",
                 fmin(step_s / axis->most_s, 1) * UNITS - 8);
    free(lane.spans);
    return GHP_OK;
}

static void put_key(struct ghp_page *page, const struct ghp_report *report)
{
    ghp_page_add(page, "<ul class=\"legend\">");
    for (int p = 0; p <= GHP_PHASE_COUNT; p++)
        if (p < GHP_PHASE_COUNT || report->measured_timings != NULL)
            ghp_page_add(page, "<li><span class=\"dot p%d\"></span>%s</li>", p, phase_text(p));
    ghp_page_add(page, "</ul>\n");
}

static struct axis axis_of(const struct ghp_report *report)
{
    struct axis axis = {fmax(report->timing.step_s, report->measured_step_s)};

    if (!(axis.most_s > 0)) axis.most_s = 1;
    return axis;
}

enum ghp_status ghp_report_put_timeline(struct ghp_page *page, const struct ghp_report *report)
{
    struct axis axis = axis_of(report);

    ghp_page_add(page, "<section data-zoom=\"\"><h2>One step over time</h2>\n");
    put_key(page, report);
    ghp_page_add(page,
                 "<label class=\"zoom\">zoom <input type=\"range\" min=\"1\" max=\"24\" "
                 "step=\"0.5\" value=\"1\"/></label>\n"
                 "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Streams over "
                 "time\"><div class=\"wide\">\n");
    put_axis(page, &axis);
    for (int measured = 0; measured <= (report->measured_timings != NULL); measured++) {
        GHP_TRY(put_row(page, report, &axis, GHP_STREAM_COMPUTE, measured));
        GHP_TRY(put_row(page, report, &axis, GHP_STREAM_COMM, measured));
        if (report->simulation.programs.n > 1)
            GHP_TRY(put_row(page, report, &axis, GHP_STREAM_TRANSFER, measured));
    }
    ghp_page_add(
        page,
        "</div></div>\n<output class=\"small\">Point at a bar to see what it is; "
        "the upright line is the step's end, pale is what the step before left over.</output>\n");
    ghp_report_put_phases(page, report);
    ghp_page_add(page, "</section>\n");
    return GHP_OK;
}

/* ---- the phases' table ---- */

static double measured_phase_s(const struct ghp_report *report, int phase)
{
    double sum = 0;

    for (int i = 0; i < report->program.n_instrs; i++) {
        const struct ghp_instr *instr = &report->program.instrs[i];

        if (phase == GHP_PHASE_EXPOSED)
            sum += report->measured_timings[i].wait_s;
        else if (instr->stream == GHP_STREAM_COMPUTE && (int)ghp_instr_phase(instr) == phase)
            sum += report->measured_timings[i].run_s;
    }
    return sum;
}

static void put_phase(struct ghp_page *page, const struct ghp_report *report, int phase)
{
    double predicted_s = report->timing.phase_s[phase];

    ghp_page_add(page, "<tr><th scope=\"row\"><span class=\"dot p%d\"></span>%s</th>",
                 phase == GHP_PHASE_EXPOSED ? GHP_PHASE_COUNT : phase,
                 phase == GHP_PHASE_EXPOSED ? "waiting for reductions" : phase_text(phase));
    ghp_page_add(page, "<td>%.3f</td><td>%.1f</td>", predicted_s * 1e3,
                 report->timing.step_s > 0 ? 100 * predicted_s / report->timing.step_s : 0);
    if (report->measured_timings != NULL) {
        double measured_s = measured_phase_s(report, phase);

        ghp_page_add(page, "<td>%.3f</td><td>%+.3f</td>", measured_s * 1e3,
                     (predicted_s - measured_s) * 1e3);
    }
    ghp_page_add(page, "</tr>\n");
}

void ghp_report_put_phases(struct ghp_page *page, const struct ghp_report *report)
{
    ghp_page_add(page,
                 "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Phases\">"
                 "<table><caption>Where the step's time goes</caption><thead><tr><th "
                 "scope=\"col\">phase</th><th scope=\"col\">predicted<br/>ms</th><th "
                 "scope=\"col\">share<br/>%%</th>%s</tr></thead><tbody>\n",
                 report->measured_timings != NULL ? "<th scope=\"col\">measured<br/>ms</th><th "
                                                    "scope=\"col\">error<br/>ms</th>"
                                                  : "");
    for (int p = 0; p < GHP_PHASE_COUNT; p++)
        put_phase(page, report, p);
    ghp_page_add(page, "</tbody></table></div>\n");
}
