/* inspect/report/report_private.h - what the report's files share; for no one else. */
#ifndef GHP_INSPECT_REPORT_REPORT_PRIVATE_H
#define GHP_INSPECT_REPORT_REPORT_PRIVATE_H

#include "inspect/report/page.h"
#include "inspect/report/report.h"

/* Reads a file of ghp-run into laps and measured_step_s. */
enum ghp_status ghp_report_read_run(struct ghp_report *report, const char *path);

const char *ghp_report_layer_name(const struct ghp_report *report, int layer); /* "" for -1 */

/* What an edge's change of layout does, on the way forward: a collective's name, "keep own part" if nothing is sent,
 * NULL if the layout stays. */
const char *ghp_report_reshard(const struct ghp_plan *plan, int edge);

/* A round step (1, 2 or 5 times a power of ten) that divides 0 .. most into at most `parts`. */
double ghp_report_nice(double most, int parts);

/* The files of inspect/page, embedded by the build: the page with its {{names}}, its style sheet and its script. */
extern const char ghp_report_html[], ghp_report_css[], ghp_report_js[];

/* What a page is of: its title and its sections, which stand in the places of page.html. */
struct ghp_report_document {
    const void *of;
    enum ghp_status (*put_title)(struct ghp_page *page, const void *of);
    enum ghp_status (*put_sections)(struct ghp_page *page, const void *of);
};
enum ghp_status ghp_report_save_document(const struct ghp_report_document *document,
                                         const char *path);

/* A figure in a frame; ghp's own words alone. */
void ghp_report_put_figure(struct ghp_page *page, const char *name, const char *value,
                           const char *more);
/* The same of a number of samples a second. */
void ghp_report_put_rate(struct ghp_page *page, double samples_per_s, const char *more);

/* Sections of the page, in its order. */
enum ghp_status ghp_report_put_network(struct ghp_page *page, const struct ghp_report *report);
enum ghp_status ghp_report_put_timeline(struct ghp_page *page, const struct ghp_report *report);
void ghp_report_put_phases(struct ghp_page *page, const struct ghp_report *report);
enum ghp_status ghp_report_put_memory(struct ghp_page *page, const struct ghp_report *report);
void ghp_report_put_machine(struct ghp_page *page, const struct ghp_report *report);
void ghp_report_put_layers(struct ghp_page *page, const struct ghp_report *report);
void ghp_report_put_limits(struct ghp_page *page, const struct ghp_report *report);

#endif
