/* inspect/plan_set.c - see inspect.h: plans of one training by different numbers of workers. */
#include "inspect/inspect.h"
#include "inspect/summary.h"

enum { TEXT_BYTES = 512 };

static void put_plan(struct ghp_sheet *sheet, const struct ghp_plan *plan)
{
    char splits[TEXT_BYTES], status[GHP_CERTIFICATE_STATUS_SIZE];
    double step_s = plan->predicted.step_s;

    ghp_summary_splits(&plan->model, plan->splits, splits, sizeof splits);
    ghp_sheet_row(sheet);
    ghp_sheet_int(sheet, plan->problem.workers);
    ghp_sheet_real(sheet, step_s);
    ghp_sheet_real(sheet, step_s > 0 ? (double)plan->problem.global_batch / step_s : 0);
    ghp_sheet_int(sheet, plan->predicted.peak_bytes);
    ghp_sheet_int(sheet, plan->groups);
    ghp_sheet_int(sheet, plan->group_size);
    ghp_sheet_text(sheet, splits);
    ghp_sheet_real(sheet, plan->certificate.gap);
    ghp_sheet_text(
        sheet, ghp_certificate_status(plan->certificate.proof, plan->certificate.trial, status));
}

void ghp_inspect_plan_set(struct ghp_display *report, const struct ghp_plan_set *set)
{
    static const struct ghp_column plans[] = {
        {"workers", "workers", "", 'i', 0, 0},
        {"predicted_step_s", "step", "ms", 'r', 1e3, 3},
        {"samples_per_s", "samples", "1/s", 'r', 0, 1},
        {"peak_bytes", "memory", "MiB", 'b', 1.0 / (1 << 20), 1},
        {"groups", "groups", "", 'i', 0, 0},
        {"group_size", "of", "", 'i', 0, 0},
        {"splits", "splits", "", 't', 0, 0},
        {"gap", "gap", "%", 'r', 100, 3},
        {"status", "certificate", "", 't', 0, 0},
        {NULL, NULL, NULL, 0, 0, 0}};
    static const struct ghp_column left_out[] = {{"workers", "workers", "", 'i', 0, 0},
                                                 {"reason", "left out, because", "", 't', 0, 0},
                                                 {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "plans", plans);

    ghp_sheet_note(sheet, "%s, global batch %lld: plans for %d number(s) of workers",
                   set->plans[0].model.name, (long long)set->plans[0].problem.global_batch, set->n);
    ghp_display_text(report, "model", set->plans[0].model.name);
    ghp_display_int(report, "global_batch", set->plans[0].problem.global_batch);
    for (int i = 0; i < set->n; i++)
        put_plan(sheet, &set->plans[i]);
    ghp_display_sheet(report, sheet);
    if (set->n_left_out == 0) return;
    sheet = ghp_sheet_open(report, "left_out", left_out);
    for (int i = 0; i < set->n_left_out; i++) {
        ghp_sheet_row(sheet);
        ghp_sheet_int(sheet, set->left_out[i].workers);
        ghp_sheet_text(sheet, set->left_out[i].reason);
    }
    ghp_display_sheet(report, sheet);
}
