/* inspect/report/run.c - a run's measured instructions joined with the plan's program.
 *
 * Both list the same instructions in the same order, so the join is by index; each is compared by name, layer and
 * stream, so that a run of another plan is refused. */
#include "inspect/report/report_private.h"

#include "core/base/json.h"

#include <stdlib.h>
#include <string.h>

static enum ghp_status fail_other(const char *path, const char *what)
{
    return GHP_FAIL(GHP_ERR_INPUT,
                    "%s: the run is of another plan: %s; give the file that 'ghp-run PLAN --run "
                    "FILE' wrote for this one",
                    path, what);
}

static enum ghp_status check_head(const struct ghp_node *root, const struct ghp_report *report,
                                  const char *path)
{
    const struct ghp_plan *plan = report->plan;
    int64_t workers = 0, batch = 0;
    char *model = NULL;
    bool same;

    GHP_TRY(ghp_json_int(root, "workers", 1, INT32_MAX, &workers));
    GHP_TRY(ghp_json_int(root, "global_batch", 1, INT64_MAX, &batch));
    GHP_TRY(ghp_json_text(root, "model", &model));
    same = strcmp(model, plan->model.name) == 0;
    free(model);
    if (!same) return fail_other(path, "its model has another name");
    if (workers != plan->problem.workers || batch != plan->problem.global_batch)
        return fail_other(path, "its workers or its global batch differ");
    return GHP_OK;
}

/* Whether item i of the run is the program's instruction i. */
static enum ghp_status check_instr(const struct ghp_node *item, const struct ghp_report *report,
                                   int i, bool *same)
{
    const struct ghp_instr *instr = &report->program.instrs[i];
    const char *layer = instr->layer >= 0 ? report->plan->model.layers[instr->layer].name : NULL;
    const char *stream = ghp_stream_names[instr->stream];
    const json_t *named = json_object_get(item->value, "layer");
    char text[64];

    GHP_TRY(ghp_json_text_n(item, "instruction", text, sizeof text));
    *same = strcmp(text, ghp_instr_name(instr)) == 0;
    GHP_TRY(ghp_json_text_n(item, "stream", text, sizeof text));
    *same = *same && strcmp(text, stream) == 0;
    if (layer == NULL)
        *same = *same && json_is_null(named);
    else
        *same = *same && json_is_string(named) && strcmp(json_string_value(named), layer) == 0;
    return GHP_OK;
}

static enum ghp_status read_measured_timings(const struct ghp_node *list, struct ghp_report *report,
                                             const char *path)
{
    for (int i = 0; i < report->program.n_instrs; i++) {
        struct ghp_report_timing *measured_timing = &report->measured_timings[i];
        struct ghp_node item;
        bool same;

        GHP_TRY(ghp_json_item(list, (size_t)i, &item));
        GHP_TRY(check_instr(&item, report, i, &same));
        if (!same) return fail_other(path, "its instructions differ");
        GHP_TRY(ghp_json_real(&item, "measured_start_s", -1e9, 1e9, &measured_timing->start_s));
        GHP_TRY(ghp_json_real(&item, "measured_s", 0, 1e9, &measured_timing->run_s));
        GHP_TRY(ghp_json_real(&item, "measured_wait_s", 0, 1e9, &measured_timing->wait_s));
    }
    return GHP_OK;
}

static enum ghp_status read_run(const struct ghp_node *root, struct ghp_report *report,
                                const char *path)
{
    struct ghp_node list;
    size_t n;

    GHP_TRY(check_head(root, report, path));
    GHP_TRY(ghp_json_real(root, "measured_step_s", 0, 1e9, &report->measured_step_s));
    if (!(report->measured_step_s > 0))
        return GHP_FAIL(GHP_ERR_INPUT, "%s: the run measured no step; train more steps", path);
    GHP_TRY(ghp_json_array(root, "instructions", &list, &n));
    if (n != (size_t)report->program.n_instrs)
        return fail_other(path, "it has another number of instructions");
    report->measured_timings = ghp_alloc(n, sizeof *report->measured_timings);
    return report->measured_timings == NULL ? GHP_NO_MEMORY()
                                            : read_measured_timings(&list, report, path);
}

enum ghp_status ghp_report_read_run(struct ghp_report *report, const char *path)
{
    enum ghp_status status;
    struct ghp_node root;
    struct ghp_json doc;

    GHP_TRY(ghp_json_load(path, "ghp.run/2", &doc));
    root = ghp_json_root(&doc);
    status = read_run(&root, report, path);
    ghp_json_release(&doc);
    return status;
}
