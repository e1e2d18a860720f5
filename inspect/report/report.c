/* inspect/report/report.c - what every form of a report is made of; the forms are in report/html.c, _trace.c and
 * _dot.c. */
#include "inspect/report/report_private.h"

#include <math.h>
#include <stdlib.h>

static enum ghp_status fill(struct ghp_report *report)
{
    const struct ghp_plan *plan = report->plan;
    size_t layers = (size_t)plan->model.n_layers;

    report->live = ghp_alloc((size_t)report->program.n_points, sizeof *report->live);
    report->terms = ghp_alloc(layers, sizeof *report->terms);
    if (report->live == NULL || report->terms == NULL) return GHP_NO_MEMORY();
    ghp_program_live(&report->program, report->live);
    for (int i = 0; i < report->simulation.programs.n; i++)
        ghp_terms_of(&report->simulation.programs.of[i], &report->simulation.timings[i],
                     plan->model.n_layers, report->terms);
    return GHP_OK;
}

enum ghp_status ghp_report_init(const struct ghp_plan *plan, const char *run_path,
                                struct ghp_report *report)
{
    enum ghp_status status;

    *report = (struct ghp_report){.plan = plan};
    GHP_TRY(ghp_simulation_init(plan, &report->simulation));
    report->stage = run_path == NULL ? report->simulation.busiest : 0;
    report->program = report->simulation.programs.of[report->stage];
    report->timing = report->simulation.timings[report->stage];
    status = fill(report);
    if (status == GHP_OK && run_path != NULL) status = ghp_report_read_run(report, run_path);
    if (status != GHP_OK) ghp_report_release(report);
    return status;
}

void ghp_report_release(struct ghp_report *report)
{
    if (report == NULL) return;
    free(report->live);
    free(report->terms);
    free(report->measured_timings);
    ghp_simulation_release(&report->simulation);
    *report = (struct ghp_report){0};
}

double ghp_report_work_s(const struct ghp_term *term)
{
    return term->forward_s + term->backward_s + term->reshard_s + term->reduce_s + term->update_s;
}

const char *ghp_report_layer_name(const struct ghp_report *report, int layer)
{
    return layer >= 0 ? report->plan->model.layers[layer].name : "";
}

const char *ghp_report_reshard(const struct ghp_plan *plan, int edge)
{
    const struct ghp_edge *e = &plan->model.edges[edge];
    struct ghp_layout from = ghp_split_layouts(plan->splits[e->from]).y,
                      to = ghp_edge_layouts(&plan->model, edge, plan->splits[e->to]).x;
    struct ghp_reshard reshard;

    if (!ghp_reshard_find(from, to, &reshard) || reshard.n_steps == 0) return NULL;
    for (int i = 0; i < reshard.n_steps; i++) {
        enum ghp_comm_op comm = ghp_reshard_comm(reshard.steps[i].op);

        if (comm != GHP_COMM_NONE) return ghp_comm_name(comm);
    }
    return "keep own part";
}

double ghp_report_nice(double most, int parts)
{
    double step = most / parts, power;

    if (!(step > 0)) return 1;
    power = pow(10, floor(log10(step)));
    return step <= power       ? power
           : step <= 2 * power ? 2 * power
           : step <= 5 * power ? 5 * power
                               : 10 * power;
}
