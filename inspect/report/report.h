/* inspect/report/report.h - writes a plan, or a run, in other formats: a page for people, a trace for Perfetto, a graph
 * for Graphviz, a Python file for PyTorch.
 *
 * Everything comes from the plan file itself: its program is lowered and simulated again. A file of ghp-run adds the
 * measured times, joined by instruction.
 *
 * Call order: ghp_report_init, any of the savers, ghp_report_release.
 * To add a section to the page: its function in a file of its own, its line in report/report_private.h and in
 * report/html.c.
 *
 * Tested  tests/inspect/report/test_report.c, tests/tools/inspect/test_report.sh */
#ifndef GHP_INSPECT_REPORT_REPORT_H
#define GHP_INSPECT_REPORT_REPORT_H

#include "core/plan/plan.h"
#include "inspect/simulation.h"
#include "core/cost/terms.h"

struct ghp_report_timing { /* of one instruction; seconds from the step's start */
    /* start in the last step; means of run and of the wait before it */
    double start_s, run_s, wait_s;
};

struct ghp_report {
    const struct ghp_plan *plan;      /* borrowed */
    struct ghp_simulation simulation; /* of all stages */
    int stage; /* the one shown: the busiest; with a run the first, whose times the run's file has */
    struct ghp_program program; /* its program and timing; owned by `simulation` */
    struct ghp_timing timing;
    int64_t *live;                              /* bytes at each point; owned */
    struct ghp_term *terms;                     /* one a layer; owned */
    struct ghp_report_timing *measured_timings; /* one an instruction; NULL: no run; owned */
    double measured_step_s;                     /* of the run */
};

/* Lowers and simulates the plan; joins a run.
 *
 * run_path   a file of ghp-run, NULL: none
 *
 * Returns   GHP_OK; GHP_ERR_IO, GHP_ERR_FORMAT (the run); GHP_ERR_INPUT (the run is of another plan, or measured no
 *           step); GHP_ERR_MISSING (no cost); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_report_init(const struct ghp_plan *plan, const char *run_path,
                                struct ghp_report *report);
/* A layer's terms without its waiting: the two streams' work for it [s]. */
double ghp_report_work_s(const struct ghp_term *term);

void ghp_report_release(struct ghp_report *report); /* accepts a zeroed one */

/* One self-contained page: HTML that is well-formed XML, with drawings inline and
 * nothing fetched.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_report_save_html(const struct ghp_report *report, const char *path);

/* The page of a run, from a file of ghp-run alone: figures, losses, phases, layers.
 *
 * Returns   GHP_OK; as ghp_record_load (inspect/record.h), and GHP_ERR_IO (the page)
 * Tested    tests/tools/inspect/test_run_page.sh */
enum ghp_status ghp_report_save_run(const char *run_path, const char *path);

/* Trace events: one process for the prediction (of each stage), one for the run, one lane a stream. */
enum ghp_status ghp_report_save_trace(const struct ghp_report *report, const char *path);

/* The network in Graphviz's language: a node a layer, coloured by its split; changes of layout on the edges. */
enum ghp_status ghp_report_save_dot(const struct ghp_report *report, const char *path);

/* A Python file that divides a PyTorch module as the plan says.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (a layer's split, stages, unequal shares or a synchroniser that PyTorch's placements
 *           cannot express); GHP_ERR_IO; GHP_ERR_NO_MEMORY
 * Tested    tests/tools/inspect/test_export_torch.sh */
enum ghp_status ghp_report_save_torch(const struct ghp_report *report, const char *path);

#endif
