/* inspect/report/dot.c - the network in Graphviz's language, its splits as colours. */
#include "inspect/report/report_private.h"

#include "core/base/units.h"
/* Fill and border of each kind of split: light enough for black text. */
static const char *const colours[][2] = {
    {"#d9e8f7", "#2667a8"}, {"#fbe3cf", "#a34606"}, {"#d5eedf", "#21784a"}, {"#e9def7", "#7344ad"},
    {"#f1e7c4", "#725807"}, {"#d2eff0", "#146c72"}, {"#f7d9e6", "#9c2a5b"}};

static void put_layer(struct ghp_page *page, const struct ghp_plan *plan, int layer)
{
    const struct ghp_layer *l = &plan->model.layers[layer];
    struct ghp_split split = plan->splits[layer];
    char text[64], shape[GHP_SHAPE_TEXT];

    ghp_split_format(split, text, sizeof text);
    ghp_page_add(page, "  n%d [label=\"", layer);
    ghp_page_quote(page, l->name);
    ghp_page_add(page, "\\n%s %s\\n%s\", fillcolor=\"%s\", color=\"%s\"];\n", ghp_op_name(l->op),
                 ghp_shape_format(l->out, shape), text, colours[split.kind][0],
                 colours[split.kind][1]);
}

/* The layers of a stage, in a frame if there are several. */
static void put_stage(struct ghp_page *page, const struct ghp_plan *plan, int stage)
{
    bool frame = plan->staging.n > 1;

    if (frame)
        ghp_page_add(page, "  subgraph cluster_%d {\n  label=\"stage %d: %d worker%s a group\";\n",
                     stage, stage, plan->staging.stage[stage].workers,
                     ghp_plural(plan->staging.stage[stage].workers));
    for (int v = 0; v < plan->model.n_layers; v++)
        if (ghp_stage_of(&plan->staging, v) == stage) put_layer(page, plan, v);
    if (frame) ghp_page_add(page, "  }\n");
}

static void put_edge(struct ghp_page *page, const struct ghp_plan *plan, int edge)
{
    const struct ghp_edge *e = &plan->model.edges[edge];
    const char *reshard = ghp_report_reshard(plan, edge);
    char y[64], x[64];

    ghp_page_add(page, "  n%d -> n%d", e->from, e->to);
    if (reshard != NULL) {
        ghp_layout_format(ghp_split_layouts(plan->splits[e->from]).y, y, sizeof y);
        ghp_layout_format(ghp_edge_layouts(&plan->model, edge, plan->splits[e->to]).x, x, sizeof x);
        ghp_page_add(page, " [label=\"%s\\n%s to %s\", color=\"#c4267a\", penwidth=2]", reshard, y,
                     x);
    }
    ghp_page_add(page, ";\n");
}

enum ghp_status ghp_report_save_dot(const struct ghp_report *report, const char *path)
{
    const struct ghp_plan *plan = report->plan;
    struct ghp_page page = {0};
    enum ghp_status status;

    ghp_page_add(&page, "digraph \"");
    ghp_page_quote(&page, plan->model.name);
    ghp_page_add(
        &page,
        "\" {\n  label=\"%d worker%s = %d group%s of %d, global batch %lld, step %.3f ms\";\n"
        "  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\"];\n"
        "  edge [fontname=\"sans-serif\", fontsize=10];\n",
        plan->problem.workers, ghp_plural(plan->problem.workers), plan->groups,
        ghp_plural(plan->groups), plan->group_size, (long long)plan->problem.global_batch,
        plan->predicted.step_s * 1e3);
    for (int i = 0; i < ghp_staging_stages(&plan->staging); i++)
        put_stage(&page, plan, i);
    for (int e = 0; e < plan->model.n_edges; e++)
        put_edge(&page, plan, e);
    ghp_page_add(&page, "}\n");
    status = ghp_page_save(&page, path);
    ghp_page_release(&page);
    return status;
}
