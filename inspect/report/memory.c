/* inspect/report/memory.c - a worker's live bytes over the points of a step, by what they hold, under the limit. */
#include "inspect/report/report_private.h"

#include "core/base/units.h"
#include "core/program/lower/points.h"

#include <stdlib.h>

enum { UNITS = 10000, TALL = 1000, KINDS = 6 }; /* of the drawing; what bytes are for */

#define MIB (1.0 / 1048576)

static const char *const kind_names[KINDS] = {"weights",
                                              "moments",
                                              "weight gradients",
                                              "activations",
                                              "activation gradients",
                                              "saved, scratch and reshard"};

struct live {
    int64_t *bytes; /* KINDS sums for each point; owned */
    int n_points, fullest;
    int64_t most, peak, limit, scale; /* scale: the top of the drawing */
};

static int kind_of(enum ghp_buffer_kind buffer_kind)
{
    switch (buffer_kind) {
    case GHP_BUFFER_WEIGHT:
    case GHP_BUFFER_WEIGHT_BUCKET:
    case GHP_BUFFER_BF16_WEIGHT:
    case GHP_BUFFER_STATE: return 0;
    case GHP_BUFFER_MOMENT:
    case GHP_BUFFER_SECOND_MOMENT: return 1;
    case GHP_BUFFER_BUCKET:
    case GHP_BUFFER_WEIGHT_GRADIENT: return 2;
    case GHP_BUFFER_OUTPUT:
    case GHP_BUFFER_EDGE_INPUT: return 3;
    case GHP_BUFFER_EDGE_GRADIENT:
    case GHP_BUFFER_EDGE_GRADIENT_OUT: return 4;
    default: return KINDS - 1;
    }
}

static enum ghp_status live_init(const struct ghp_report *report, struct live *live)
{
    const struct ghp_program *program = &report->program;

    *live = (struct live){.n_points = program->n_points,
                          .peak = program->peak_bytes,
                          .limit = report->plan->memory_limit_bytes};
    live->bytes = ghp_alloc((size_t)program->n_points * KINDS, sizeof *live->bytes);
    if (live->bytes == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];

        if (b->storage != i) continue;
        for (int p = b->first_point; p <= b->last_point; p++)
            live->bytes[p * KINDS + kind_of(b->buffer_kind)] += b->bytes;
    }
    for (int p = 0; p < program->n_points; p++)
        if (report->live[p] > report->live[live->fullest]) live->fullest = p;
    live->most = report->live[live->fullest];
    live->scale = live->peak > live->limit ? live->peak : live->limit;
    if (live->limit > 2 * live->peak) live->scale = live->peak + live->peak / 4; /* far above */
    live->scale += live->scale / 12 + 1;
    return GHP_OK;
}

static int height(const struct live *live, int64_t bytes)
{
    return (int)((double)bytes / (double)live->scale * TALL + 0.5);
}

/* Bytes of the kinds below `kind` at a point. */
static int64_t below(const struct live *live, int point, int kind)
{
    int64_t sum = 0;

    for (int k = 0; k < kind; k++)
        sum += live->bytes[point * KINDS + k];
    return sum;
}

/* One kind's area: along its upper edge in steps, and back along its lower one. */
static void put_area(struct ghp_page *page, const struct live *live, int kind)
{
    double width = (double)UNITS / live->n_points;
    char text[32];

    ghp_page_add(page, "<path class=\"m%d\" d=\"M0 %d", kind,
                 TALL - height(live, below(live, 0, kind + 1)));
    for (int p = 1; p <= live->n_points; p++) {
        int y = TALL - height(live, below(live, p - 1, kind + 1));
        int next = p < live->n_points ? TALL - height(live, below(live, p, kind + 1)) : -1;

        if (y != next) ghp_page_add(page, "H%.0f", p * width);
        if (next >= 0 && y != next) ghp_page_add(page, "V%d", next);
    }
    ghp_page_add(page, "V%d", TALL - height(live, below(live, live->n_points - 1, kind)));
    for (int p = live->n_points - 1; p > 0; --p) {
        int y = TALL - height(live, below(live, p, kind));
        int next = TALL - height(live, below(live, p - 1, kind));

        if (y != next) ghp_page_add(page, "H%.0fV%d", p * width, next);
    }
    ghp_bytes_format((double)live->bytes[live->fullest * KINDS + kind], text, sizeof text);
    ghp_page_add(page, "H0z\"><title>%s: %s where memory is fullest</title></path>\n",
                 kind_names[kind], text);
}

static void put_line(struct ghp_page *page, const struct live *live, const char *class,
                     int64_t bytes)
{
    ghp_page_add(page, "<path class=\"%s\" d=\"M0 %dH%d\"/>", class, TALL - height(live, bytes),
                 UNITS);
}

static void put_mark(struct ghp_page *page, const struct live *live, const char *name,
                     int64_t bytes)
{
    char text[32];

    ghp_page_add(page, "<span style=\"bottom:%.1f%%\">%s %s</span>",
                 100.0 * (double)bytes / (double)live->scale, name,
                 ghp_bytes_format((double)bytes, text, sizeof text));
}

static void put_chart(struct ghp_page *page, const struct ghp_report *report,
                      const struct live *live)
{
    bool shown = live->limit > 0 && live->limit <= live->scale;
    int middle = ghp_point_backward(&report->plan->model, report->plan->model.n_layers - 1);
    char peak[32], most[32], limit[32];

    ghp_bytes_format((double)live->peak, peak, sizeof peak);
    ghp_bytes_format((double)live->most, most, sizeof most);
    ghp_bytes_format((double)live->limit, limit, sizeof limit);
    ghp_page_add(page,
                 "<div class=\"chart\"><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
                 "role=\"img\" aria-label=\"A worker's live bytes over a step: at most %s, in an "
                 "arena of %s%s%s. The table below has the parts.\">\n",
                 UNITS, TALL, most, peak, live->limit > 0 ? ", limit " : ", no limit",
                 live->limit > 0 ? limit : "");
    for (int kind = 0; kind < KINDS; kind++)
        put_area(page, live, kind);
    ghp_page_add(page, "<path class=\"end\" d=\"M%.0f 0V%d\"/>",
                 (double)middle / live->n_points * UNITS, TALL);
    put_line(page, live, "arena", live->peak);
    if (shown) put_line(page, live, "limit", live->limit);
    ghp_page_add(page, "</svg><div class=\"marks\" aria-hidden=\"true\">");
    put_mark(page, live, "arena", live->peak);
    if (shown) put_mark(page, live, "limit", live->limit);
    ghp_page_add(page,
                 "</div></div><div class=\"axis\" aria-hidden=\"true\"><span "
                 "style=\"left:0\">forward</span><span style=\"left:%.1f%%\">backward</span>"
                 "</div>\n",
                 100.0 * middle / live->n_points);
}

static void put_table(struct ghp_page *page, const struct live *live)
{
    ghp_page_add(page, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                       "aria-label=\"Memory by use\"><table><caption>A worker's memory where it "
                       "is fullest</caption><thead><tr><th scope=\"col\">what</th><th "
                       "scope=\"col\">MiB</th><th scope=\"col\">share<br/>%%</th></tr></thead>"
                       "<tbody>\n");
    for (int kind = KINDS - 1; kind >= 0; --kind) {
        double bytes = (double)live->bytes[live->fullest * KINDS + kind];

        ghp_page_add(page,
                     "<tr><th scope=\"row\"><span class=\"dot m%d\"></span>%s</th><td>%.2f</td>"
                     "<td>%.1f</td></tr>\n",
                     kind, kind_names[kind], bytes * MIB, 100 * bytes / (double)live->peak);
    }
    ghp_page_add(page,
                 "<tr><th scope=\"row\">gaps between buffers</th><td>%.2f</td><td>%.1f</td></tr>"
                 "<tr><th scope=\"row\">arena</th><td>%.2f</td><td>100.0</td></tr>"
                 "</tbody></table></div>\n",
                 (double)(live->peak - live->most) * MIB,
                 100.0 * (double)(live->peak - live->most) / (double)live->peak,
                 (double)live->peak * MIB);
}

enum ghp_status ghp_report_put_memory(struct ghp_page *page, const struct ghp_report *report)
{
    struct live live;
    char limit[32];

    GHP_TRY(live_init(report, &live));
    ghp_page_add(page, "<section><h2>Memory of a worker</h2>\n<div class=\"pair\"><div>");
    put_chart(page, report, &live);
    if (live.limit > 0)
        ghp_page_add(page,
                     "<p class=\"small\">The limit is %s a worker; the arena takes %.1f %% "
                     "of it.</p>\n",
                     ghp_bytes_format((double)live.limit, limit, sizeof limit),
                     100.0 * (double)live.peak / (double)live.limit);
    else
        ghp_page_add(page, "<p class=\"small\">The plan was made without a limit.</p>\n");
    ghp_page_add(page, "</div>");
    put_table(page, &live);
    ghp_page_add(page, "</div></section>\n");
    free(live.bytes);
    return GHP_OK;
}
