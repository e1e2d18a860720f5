/* inspect/report/layers.c - the table of layers: what each costs by which term, and its second best. */
#include "inspect/report/report_private.h"

#include "inspect/inspect.h"

#include <string.h>

#define MIB (1.0 / 1048576)

/* A cell of milliseconds; nothing is a dot, so that figures stand out. */
static void put_ms(struct ghp_page *page, double seconds)
{
    if (seconds > 0)
        ghp_page_add(page, "<td>%.3f</td>", seconds * 1e3);
    else
        ghp_page_add(page, "<td>\xc2\xb7</td>");
}

static double measured_layer_s(const struct ghp_report *report, int layer)
{
    double sum = 0;

    for (int i = 0; i < report->program.n_instrs; i++)
        if (report->program.instrs[i].layer == layer)
            sum += report->measured_timings[i].wait_s +
                   (report->program.instrs[i].stream == GHP_STREAM_COMPUTE
                        ? report->measured_timings[i].run_s
                        : 0);
    return sum;
}

static void put_second_best(struct ghp_page *page, const struct ghp_report *report, int layer)
{
    const struct ghp_alternative *other = ghp_inspect_second_best(report->plan, layer);
    char text[64];

    if (other == NULL) {
        ghp_page_add(page, "<td></td><td></td>");
        return;
    }
    ghp_split_format(other->split, text, sizeof text);
    ghp_page_add(page, "<td class=\"word\">%s</td><td>%+.3f</td>", text,
                 (other->step_s - report->plan->predicted.step_s) * 1e3);
}

static void put_row(struct ghp_page *page, const struct ghp_report *report, int layer,
                    double most_s)
{
    const struct ghp_plan *plan = report->plan;
    const struct ghp_layer *l = &plan->model.layers[layer];
    const struct ghp_term *terms = &report->terms[layer];
    double sum_s = ghp_report_work_s(terms);
    char split[64];

    ghp_split_format(plan->splits[layer], split, sizeof split);
    ghp_page_add(page, "<tr><th scope=\"row\">");
    ghp_page_text(page, l->name);
    ghp_page_add(page,
                 "</th><td class=\"word\">%s</td><td class=\"word\"><span class=\"tag %s\">%s"
                 "</span></td>",
                 ghp_op_name(l->op), ghp_split_kind_name(plan->splits[layer].kind), split);
    put_ms(page, terms->forward_s);
    put_ms(page, terms->backward_s);
    put_ms(page, terms->reshard_s);
    put_ms(page, terms->reduce_s);
    put_ms(page, terms->exposed_s);
    put_ms(page, terms->update_s);
    if (sum_s > 0)
        ghp_page_add(page, "<td class=\"sum\"><i style=\"width:%.0f%%\"></i>%.3f</td>",
                     most_s > 0 ? 100 * sum_s / most_s : 0, sum_s * 1e3);
    else
        put_ms(page, 0);
    if (report->measured_timings != NULL) put_ms(page, measured_layer_s(report, layer));
    if (terms->sent_bytes > 0)
        ghp_page_add(page, "<td>%.3f</td>", terms->sent_bytes * MIB);
    else
        put_ms(page, 0);
    put_second_best(page, report, layer);
    ghp_page_add(page, "</tr>\n");
}

static void put_columns(struct ghp_page *page, bool measured)
{
    static const char *const names[][2] = {
        {"layer", ""},       {"operation", ""},        {"split", ""},
        {"forward", "ms"},   {"backward", "ms"},       {"reshard", "ms"},
        {"reduce", "ms"},    {"exposed", "ms"},        {"update", "ms"},
        {"sum", "ms"},       {"measured", "ms"},       {"sent", "MiB"},
        {"second-best", ""}, {"it costs", "ms a step"}};

    ghp_page_add(page, "<thead><tr>");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (measured || strcmp(names[i][0], "measured") != 0)
            ghp_page_add(page, "<th scope=\"col\"%s>%s<br/>%s</th>",
                         names[i][1][0] == '\0' ? " class=\"word\"" : "", names[i][0], names[i][1]);
    ghp_page_add(page, "</tr></thead>\n");
}

void ghp_report_put_layers(struct ghp_page *page, const struct ghp_report *report)
{
    double most_s = 0;

    for (int v = 0; v < report->plan->model.n_layers; v++)
        if (ghp_report_work_s(&report->terms[v]) > most_s)
            most_s = ghp_report_work_s(&report->terms[v]);
    ghp_page_add(
        page,
        "<section><h2>Layers</h2>\n<p class=\"small\">Terms of one worker and step, "
        "each alone, without waiting and slowdown: they sum to the two streams\xe2\x80\x99 "
        "work, not to the step. Reshard: changes of layout on the way in, forward and "
        "backward. Reduce: the layer\xe2\x80\x99s part of the gradient reduction, which "
        "overlaps; exposed: what computation waits for it. Second-best: the best other split of "
        "this "
        "layer, and how much longer "
        "the step would be.%s</p>\n",
        report->measured_timings != NULL
            ? " Measured: the compute stream's time for this layer, waiting included."
            : "");
    ghp_page_add(page, "<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" "
                       "aria-label=\"Table of layers\"><table class=\"layers\"><caption>Cost terms "
                       "by layer</caption>");
    put_columns(page, report->measured_timings != NULL);
    ghp_page_add(page, "<tbody>\n");
    for (int v = 0; v < report->plan->model.n_layers; v++)
        put_row(page, report, v, most_s);
    ghp_page_add(page, "</tbody></table></div></section>\n");
}
