/* inspect/report/network.c - the network's section: blocks coloured by split, tensors between them, a legend.
 *
 * Drawn twice: in columns for wide screens, in one column for narrow ones; the style sheet shows one of them. */
#include "inspect/report/report_private.h"

#include "core/base/units.h"
#include "inspect/report/blocks.h"

#include <stdio.h>
#include <string.h>

/* Measures of the drawing, in its own pixels. */
enum {
    BLOCK = 184,  /* width of a block that stands alone in its rank */
    NARROW = 148, /* the same, if others stand next to it */
    HEIGHT = 46,
    GAP = 30,    /* between ranks */
    LANE = 16,   /* between lanes */
    TRACK = 12,  /* of a tensor next to the lanes */
    GUTTER = 48, /* between columns */
    MARGIN = 14,
    WIDEST = 1128, /* of the page's inner width */
    RANKS_LEAST = 4,
    CORNER = 6,
    NAME = 84, /* tenths of a pixel that a character of each text takes at most, about */
    KIND = 74,
    OPS = 62
};

struct drawing {
    struct ghp_page *page;
    const struct ghp_report *report;
    const struct ghp_blocks *blocks;
    const char *prefix; /* of identifiers: the drawing's own */
    double most_s;      /* of a block's work */
};

/* Width of a block in this drawing. */
static int wide(const struct ghp_blocks *b)
{
    for (int k = 0; k < b->n; k++)
        if (b->blocks[k].lane > 0) return NARROW;
    return BLOCK;
}

/* Left edge of a column. */
static int column_x(const struct ghp_blocks *b, int column)
{
    int x = MARGIN;

    for (int c = 0; c < column; c++)
        x += b->lanes[c] * (wide(b) + LANE) - LANE + b->tracks[c] * TRACK + GUTTER;
    return x;
}

static int drawing_width(const struct ghp_blocks *b)
{
    return column_x(b, b->n_columns) - GUTTER + MARGIN;
}

static int drawing_height(const struct ghp_blocks *b)
{
    int ranks = 0;

    for (int c = 0; c < b->n_columns; c++)
        if (b->first_rank[c + 1] - b->first_rank[c] > ranks)
            ranks = b->first_rank[c + 1] - b->first_rank[c];
    return 2 * GAP + ranks * (HEIGHT + GAP) - GAP;
}

static int lane_x(const struct ghp_blocks *b, int column, int lane)
{
    return column_x(b, column) + lane * (wide(b) + LANE);
}

static int block_x(const struct ghp_blocks *b, const struct ghp_block *block)
{
    return lane_x(b, block->column, block->lane);
}

static int rank_y(const struct ghp_blocks *b, int column, int rank)
{
    return GAP + (rank - b->first_rank[column]) * (HEIGHT + GAP);
}

static int block_y(const struct ghp_blocks *b, const struct ghp_block *block)
{
    return rank_y(b, block->column, block->rank);
}

/* x of a link's track, counted from the right edge of the lane next to it. */
static int track_x(const struct ghp_blocks *b, const struct ghp_wire *link)
{
    return lane_x(b, b->blocks[link->from].column, link->left_lane) + wide(b) +
           TRACK * (link->track + 1) - 2;
}

/* ---- tensors ---- */

/* Down through a lane, or straight if the blocks are neighbours. */
static void put_lane_path(const struct drawing *d, const struct ghp_wire *link)
{
    const struct ghp_blocks *b = d->blocks;
    const struct ghp_block *from = &b->blocks[link->from], *to = &b->blocks[link->to];
    int x1 = block_x(b, from) + wide(b) / 2, y1 = block_y(b, from) + HEIGHT;
    int x2 = block_x(b, to) + wide(b) / 2, y2 = block_y(b, to);
    int x = link->lane >= 0 ? lane_x(b, from->column, link->lane) + wide(b) / 2 : x2;

    ghp_page_add(d->page, "M%d %d", x1, y1);
    if (x != x1)
        ghp_page_add(d->page, "C%d %d %d %d %d %d", x1, y1 + GAP * 3 / 4, x, y1 + GAP / 4, x,
                     y1 + GAP);
    if (x != x2) {
        ghp_page_add(d->page, "V%d", y2 - GAP);
        ghp_page_add(d->page, "C%d %d %d %d %d %d", x, y2 - GAP / 4, x2, y2 - GAP * 3 / 4, x2,
                     y2 - 1);
    } else {
        ghp_page_add(d->page, "V%d", y2 - 1);
    }
}

/* Draws a tensor's path next to the lanes of one column. */
static void put_track_path(const struct drawing *d, const struct ghp_wire *link)
{
    const struct ghp_blocks *b = d->blocks;
    const struct ghp_block *from = &b->blocks[link->from], *to = &b->blocks[link->to];
    int x1 = block_x(b, from) + wide(b), y1 = block_y(b, from) + HEIGHT / 2;
    int x2 = block_x(b, to) + wide(b), y2 = block_y(b, to) + HEIGHT / 2 - 6;
    int x = track_x(b, link);

    ghp_page_add(d->page, "M%d %dH%dq%d 0 %d %dV%dq0 %d %d %dH%d", x1, y1, x - CORNER, CORNER,
                 CORNER, CORNER, y2 - CORNER, CORNER, -CORNER, CORNER, x2 + 1);
}

/* Over the top into another column. */
static void put_gutter_path(const struct drawing *d, const struct ghp_wire *link)
{
    const struct ghp_blocks *b = d->blocks;
    const struct ghp_block *from = &b->blocks[link->from], *to = &b->blocks[link->to];
    bool last = from->rank == b->first_rank[from->column + 1] - 1;
    bool first = to->rank == b->first_rank[to->column];
    int x1 = block_x(b, from) + (last ? wide(b) / 2 : wide(b));
    int y1 = block_y(b, from) + (last ? HEIGHT : HEIGHT / 2);
    int x = track_x(b, link), top = 5 + 4 * (link->track % 4);

    ghp_page_add(d->page, "M%d %d", x1, y1);
    if (last) ghp_page_add(d->page, "v%dq0 %d %d %d", GAP / 2 - CORNER, CORNER, CORNER, CORNER);
    ghp_page_add(d->page, "H%dq%d 0 %d %dV%dq0 %d %d %d", x - CORNER, CORNER, CORNER, -CORNER,
                 top + CORNER, -CORNER, CORNER, -CORNER);
    if (first) {
        int x2 = block_x(b, to) + wide(b) / 2;

        ghp_page_add(d->page, "H%dq%d 0 %d %dV%d", x2 - CORNER, CORNER, CORNER, CORNER,
                     block_y(b, to) - 1);
    } else {
        int x2 = column_x(b, to->column) - 10 - 4 * (link->track % 3);

        ghp_page_add(d->page, "H%dq%d 0 %d %dV%dq0 %d %d %dH%d", x2 - CORNER, CORNER, CORNER,
                     CORNER, block_y(b, to) + HEIGHT / 2 - CORNER, CORNER, CORNER, CORNER,
                     block_x(b, to) - 1);
    }
}

static void put_link(const struct drawing *d, const struct ghp_wire *link)
{
    const struct ghp_plan *plan = d->report->plan;
    const struct ghp_edge *edge = &plan->model.edges[link->edge];
    const struct ghp_blocks *b = d->blocks;
    const struct ghp_block *from = &b->blocks[link->from], *to = &b->blocks[link->to];
    const char *reshard = ghp_report_reshard(plan, link->edge);
    char y[64], x[64];

    ghp_layout_format(ghp_split_layouts(plan->splits[edge->from]).y, y, sizeof y);
    ghp_layout_format(ghp_edge_layouts(&plan->model, link->edge, plan->splits[edge->to]).x, x,
                      sizeof x);
    ghp_page_add(d->page, "<path class=\"%s\" marker-end=\"url(#%s%s)\" d=\"",
                 reshard != NULL ? "edge change" : "edge", d->prefix,
                 reshard != NULL ? "change" : "tip");
    if (from->column != to->column)
        put_gutter_path(d, link);
    else if (link->track >= 0)
        put_track_path(d, link);
    else
        put_lane_path(d, link);
    ghp_page_add(d->page, "\"><title>");
    ghp_page_text(d->page, plan->model.layers[edge->from].name);
    ghp_page_add(d->page, " to ");
    ghp_page_text(d->page, plan->model.layers[edge->to].name);
    ghp_page_add(d->page, reshard != NULL ? ": %s to %s, %s" : ": %s", y, x,
                 reshard != NULL ? reshard : "");
    ghp_page_add(d->page, "</title></path>\n");
    if (reshard != NULL && from->column == to->column && link->track < 0)
        ghp_page_add(d->page, "<text class=\"note\" x=\"%d\" y=\"%d\">%s</text>\n",
                     block_x(b, to) + wide(b) / 2 + 7, block_y(b, to) - GAP / 2 + 3, reshard);
}

/* ---- blocks ---- */

static double block_s(const struct ghp_report *report, const struct ghp_blocks *b, int block)
{
    double sum = 0;

    for (int v = 0; v < report->plan->model.n_layers; v++)
        if (b->of_layer[v] == block) sum += ghp_report_work_s(&report->terms[v]);
    return sum;
}

/* "conv2d, relu, max_pool": a bias says nothing, every conv2d and linear may have one. */
static void ops_text(const struct drawing *d, int block, char *text, size_t n)
{
    const struct ghp_model *model = &d->report->plan->model;
    size_t used = 0;

    text[0] = '\0';
    for (int v = d->blocks->blocks[block].first; v <= d->blocks->blocks[block].last; v++) {
        const char *name = ghp_op_name(model->layers[v].op);
        bool hidden = model->layers[v].op == GHP_OP_BIAS && used > 0;
        int wrote;

        if (d->blocks->of_layer[v] != block || hidden || used >= n) continue;
        if (model->layers[v].op == GHP_OP_SOFTMAX_CE) name = "softmax cross-entropy";
        wrote = snprintf(text + used, n - used, "%s%s", used > 0 ? " \xc2\xb7 " : "", name);
        if (wrote > 0) used += (size_t)wrote;
    }
}

static void put_block_title(const struct drawing *d, int block, double seconds)
{
    const struct ghp_plan *plan = d->report->plan;
    const struct ghp_block *k = &d->blocks->blocks[block];
    struct ghp_shape out = plan->model.layers[k->last].out;
    char split[64], shape[GHP_SHAPE_TEXT];
    bool more = false;

    ghp_split_format(plan->splits[k->first], split, sizeof split);
    ghp_page_add(d->page, "<title>");
    for (int v = k->first; v <= k->last; v++) {
        if (d->blocks->of_layer[v] != block) continue;
        ghp_page_add(d->page, more ? ", " : "");
        ghp_page_text(d->page, plan->model.layers[v].name);
        more = true;
    }
    ghp_page_add(d->page, ": %s; output %s a sample; %.3f ms of work a step</title>", split,
                 ghp_shape_format(out, shape), seconds * 1e3);
}

static void put_block(const struct drawing *d, int block)
{
    const struct ghp_plan *plan = d->report->plan;
    const struct ghp_block *k = &d->blocks->blocks[block];
    int x = block_x(d->blocks, k), y = block_y(d->blocks, k);
    struct ghp_split chosen = plan->splits[k->first];
    double seconds = block_s(d->report, d->blocks, block);
    char split[64], ops[512];
    int width = wide(d->blocks);
    int bar = d->most_s > 0 ? (int)(seconds / d->most_s * (width - 16) + 0.5) : 0;

    ghp_split_format(chosen, split, sizeof split);
    ops_text(d, block, ops, sizeof ops);
    ghp_page_add(d->page, "<g class=\"block %s\">", ghp_split_kind_name(chosen.kind));
    put_block_title(d, block, seconds);
    for (int layer = 0; layer < 2; layer++) /* the ground hides what passes below */
        ghp_page_add(d->page,
                     "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                     "rx=\"7\"/>",
                     layer == 0 ? "back" : "box", x, y, width, HEIGHT);
    if (bar > 0)
        ghp_page_add(d->page, "<rect class=\"bar\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"3\"/>",
                     x + 8, y + HEIGHT - 7, bar);
    ghp_page_add(d->page, "<text class=\"name\" x=\"%d\" y=\"%d\">", x + 8, y + 17);
    ghp_page_name(d->page, plan->model.layers[k->first].name, (width - 16) * 10 / NAME);
    ghp_page_add(d->page,
                 "</text><text class=\"ops\" x=\"%d\" y=\"%d\"><tspan class=\"kind\">%s"
                 "</tspan> ",
                 x + 8, y + 33, split);
    ghp_page_name(d->page, ops, ((width - 20) * 10 - (int)strlen(split) * KIND) / OPS);
    ghp_page_add(d->page, "</text></g>\n");
}

/* ---- the drawing ---- */

static void put_marker(const struct drawing *d, const char *name)
{
    ghp_page_add(d->page,
                 "<marker id=\"%s%s\" class=\"%s\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
                 "markerUnits=\"userSpaceOnUse\" markerWidth=\"9\" markerHeight=\"9\" "
                 "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker>",
                 d->prefix, name, name);
}

static void put_drawing(const struct drawing *d)
{
    const struct ghp_plan *plan = d->report->plan;
    int width = drawing_width(d->blocks), height = drawing_height(d->blocks), split = 0;

    for (int v = 0; v < plan->model.n_layers; v++)
        split += plan->splits[v].kind != GHP_SPLIT_DATA;
    ghp_page_add(d->page,
                 "<div class=\"scroll %s\" tabindex=\"0\" role=\"region\" "
                 "aria-label=\"Drawing of the network\">",
                 d->prefix);
    ghp_page_add(d->page,
                 "<svg role=\"img\" viewBox=\"0 0 %d %d\" style=\"width:100%%;max-width:%dpx;"
                 "min-width:%dpx\" aria-label=\"",
                 width, height, width, width * 17 / 20);
    ghp_page_text(d->page, plan->model.name);
    ghp_page_add(d->page,
                 ": %d layers in %d blocks, %d layers split otherwise than by data. The table of "
                 "layers lists them all.\">\n<defs>",
                 plan->model.n_layers, d->blocks->n, split);
    put_marker(d, "tip");
    put_marker(d, "change");
    ghp_page_add(d->page, "</defs>\n");
    for (int i = 0; i < d->blocks->n_links; i++)
        put_link(d, &d->blocks->links[i]);
    for (int k = 0; k < d->blocks->n; k++)
        put_block(d, k);
    ghp_page_add(d->page, "</svg></div>\n");
}

/* Layers and weights of each kind of split, with its colour. */
static void put_legend(struct ghp_page *page, const struct ghp_report *report)
{
    static const char *const meaning[] = {
        "each worker its samples", "output channels divided",
        "input channels divided",  "channels divided",
        "all members do the same", "rows of a table divided",
        "positions divided",       "positions divided, keys and values pass round"};
    const struct ghp_plan *plan = report->plan;

    ghp_page_add(page, "<ul class=\"legend\">");
    for (int kind = GHP_SPLIT_DATA; kind < GHP_SPLIT_COUNT; kind++) {
        double weights = 0;
        char count[32];
        int n = 0;

        for (int v = 0; v < plan->model.n_layers; v++) {
            if (plan->splits[v].kind != (enum ghp_split_kind)kind) continue;
            weights += (double)ghp_layer_weights(&plan->model.layers[v]);
            n++;
        }
        if (n == 0) continue;
        ghp_page_add(page,
                     "<li><span class=\"dot %s\"></span><b>%s</b> %s: %d layer%s, %s "
                     "weights</li>",
                     ghp_split_kind_name((enum ghp_split_kind)kind),
                     ghp_split_kind_name((enum ghp_split_kind)kind), meaning[kind], n,
                     ghp_plural(n), ghp_count_format(weights, count, sizeof count));
    }
    ghp_page_add(page, "<li><span class=\"dot change\"></span>the tensor changes its layout "
                       "here</li></ul>\n");
}

enum ghp_status ghp_report_put_network(struct ghp_page *page, const struct ghp_report *report)
{
    struct ghp_blocks blocks;
    struct drawing d = {.page = page, .report = report, .blocks = &blocks, .prefix = "narrow"};
    int columns;

    GHP_TRY(ghp_blocks_init(report->plan, &blocks));
    for (int k = 0; k < blocks.n; k++) {
        double seconds = block_s(report, &blocks, k);

        if (seconds > d.most_s) d.most_s = seconds;
    }
    ghp_page_add(page, "<section><h2>Network and splits</h2>\n");
    put_legend(page, report);
    put_drawing(&d);
    d.prefix = "broad";
    columns = (blocks.n_ranks + RANKS_LEAST - 1) / RANKS_LEAST;
    for (; columns > 1; --columns) {
        ghp_blocks_fold(&blocks, columns);
        if (drawing_width(&blocks) <= WIDEST) break;
    }
    if (columns <= 1) ghp_blocks_fold(&blocks, 1);
    put_drawing(&d);
    ghp_page_add(page, "<p class=\"small\">A block is a layer and what follows it in the same "
                       "split; the bar is its part of the work.</p></section>\n");
    ghp_blocks_release(&blocks);
    return GHP_OK;
}
