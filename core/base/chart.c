/* core/base/chart.c - ticks, scales and the SVG's elements; chart.h says what is drawn. */
#include "core/base/chart.h"

#include "core/base/file.h"
#include "core/base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 700,
    HEIGHT = 470,
    LEFT = 72,
    RIGHT = 28,
    TOP = 92,
    BOTTOM = 58,
    MARK = 6, /* room for a mark on the frame */
    TICKS_MAX = 64,
    LABELS_MAX = 14 /* of a logarithmic axis; more are thinned out */
};

static const double legend_step = 118, digit_width = 7.5;

/* An axis with its range settled and its ticks. */
struct scale {
    const struct ghp_chart_axis *axis;
    double min, max;   /* shown, on the axis: logarithms to its base where it is logarithmic */
    double from, to;   /* where that is in the picture */
    double step;       /* between ticks, on the axis */
    double label_step; /* between ticks with a number */
};

static double on_axis(const struct ghp_chart_axis *axis, double value)
{
    return axis->log ? log(value) / log(axis->base) : value;
}

static bool can_draw(const struct ghp_chart_axis *axis, double value)
{
    return isfinite(value) && (!axis->log || value > 0);
}

static double place(const struct scale *s, double value)
{
    return s->from + (on_axis(s->axis, value) - s->min) / (s->max - s->min) * (s->to - s->from);
}

/* ---- scales ---- */

/* 1, 2 or 5 times a power of ten, so that about six steps fill the range. */
static double round_step(double range)
{
    double power = pow(10, floor(log10(range / 6))), part = range / 6 / power;

    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static void widen(const struct ghp_chart_axis *axis, const double *values, int n, struct scale *s)
{
    for (int i = 0; i < n; ++i) {
        if (!can_draw(axis, values[i])) continue;
        s->min = fmin(s->min, on_axis(axis, values[i]));
        s->max = fmax(s->max, on_axis(axis, values[i]));
    }
}

static enum ghp_status settle(const struct ghp_chart *chart, bool is_x, struct scale *s)
{
    const struct ghp_chart_axis *axis = is_x ? &chart->x : &chart->y;

    s->axis = axis;
    s->min = INFINITY;
    s->max = -INFINITY;
    for (int k = 0; k < chart->n_series; ++k)
        widen(axis, is_x ? chart->series[k].x : chart->series[k].y, chart->series[k].n, s);
    if (axis->max > axis->min) {
        s->min = on_axis(axis, axis->min);
        s->max = on_axis(axis, axis->max);
    }
    if (!(s->max >= s->min))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the chart '%s' has no point to draw; give at least one that is feasible",
                        chart->title);
    s->step = axis->log ? 1 : round_step(s->max > s->min ? s->max - s->min : 1);
    s->min = s->step * floor(s->min / s->step + 1e-9);
    s->max = s->step * ceil(s->max / s->step - 1e-9);
    if (!(s->max > s->min)) s->max = s->min + s->step;
    s->label_step = s->step;
    while ((s->max - s->min) / s->label_step > LABELS_MAX)
        s->label_step *= 2;
    return GHP_OK;
}

/* ---- elements ---- */

/* Text with what XML reserves written out. */
static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; ++text) {
        const char *reference = ghp_text_reference((unsigned char)*text);

        if (reference != NULL)
            fputs(reference, out);
        else
            fputc(*text, out);
    }
}

static void put_label(FILE *out, const char *attributes, const char *text)
{
    fprintf(out, "<text %s>", attributes);
    put_text(out, text);
    fputs("</text>\n", out);
}

static void put_head(FILE *out, const struct ghp_chart *chart)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\">\n<title>",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_text(out, chart->title);
    fputs(
        "</title>\n<style>\n"
        "  svg { --paper: #ffffff; --ink: #1c2330; --soft: #5b6573; --grid: #dfe3e8;\n"
        "        --c0: #0b62c4; --c1: #c8500a; --c2: #7a5aa8; --c3: #18794e;\n"
        "        --c4: #9a6700; --c5: #b0307a; --c6: #4d5b6b; --c7: #00727d;\n"
        "        font: 13px system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif; }\n"
        "  @media (prefers-color-scheme: dark) {\n"
        "    svg { --paper: #14181f; --ink: #e8ecf2; --soft: #a3adba; --grid: #2c3440;\n"
        "          --c0: #6db3ff; --c1: #ff9a5c; --c2: #c0a3f0; --c3: #5fd19b;\n"
        "          --c4: #e6c04c; --c5: #f58cc4; --c6: #b6c2d0; --c7: #5ad1dc; }\n"
        "  }\n"
        "  .paper { fill: var(--paper); } text { fill: var(--ink); }\n"
        "  .title { font-size: 16px; font-weight: 600; }\n"
        "  .soft { fill: var(--soft); font-size: 12px; }\n"
        "  .grid { stroke: var(--grid); stroke-width: 1; }\n"
        "  .frame { stroke: var(--soft); stroke-width: 1; fill: none; }\n"
        "  .line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }\n"
        "  .ideal { fill: none; stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 5 4; }\n",
        out);
    for (int k = 0; k < GHP_CHART_SERIES_MAX; ++k)
        fprintf(out, "  .s%d { stroke: var(--c%d); } .m%d { fill: var(--c%d); }\n", k, k, k, k);
    fprintf(
        out,
        "</style>\n<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n"
        "<clipPath id=\"inside\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n",
        WIDTH, HEIGHT, LEFT - MARK, TOP - MARK, WIDTH - LEFT - RIGHT + 2 * MARK,
        HEIGHT - TOP - BOTTOM + 2 * MARK);
    put_label(out, "class=\"title\" x=\"16\" y=\"26\"", chart->title);
    if (chart->subtitle != NULL)
        put_label(out, "class=\"soft\" x=\"16\" y=\"46\"", chart->subtitle);
}

static void tick_text(double value, char *text, size_t n)
{
    if (value >= 1e4 && value < 1e15 && !(value > floor(value)) && !(value < floor(value)))
        snprintf(text, n, value >= 1e6 ? "%.4g" : "%.0f", value);
    else
        snprintf(text, n, "%.6g", value);
}

static void put_ticks(FILE *out, const struct scale *s, bool is_x)
{
    int n = (int)floor((s->max - s->min) / s->step + 0.5);

    for (int i = 0; i <= n && i < TICKS_MAX; ++i) {
        double on = s->min + i * s->step, at;
        double value = s->axis->log ? pow(s->axis->base, on) : on;
        char text[32], attributes[96];

        at = s->from + (on - s->min) / (s->max - s->min) * (s->to - s->from);
        if (is_x)
            fprintf(out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", at, TOP, HEIGHT - BOTTOM);
        else
            fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, at, WIDTH - RIGHT);
        if (fabs(remainder(i * s->step, s->label_step)) > 1e-6 * s->step) continue;
        tick_text(value, text, sizeof text);
        if (is_x)
            snprintf(attributes, sizeof attributes, "x=\"%.1f\" y=\"%d\" text-anchor=\"middle\"",
                     at, HEIGHT - BOTTOM + 18);
        else
            snprintf(attributes, sizeof attributes, "x=\"%d\" y=\"%.1f\" text-anchor=\"end\"",
                     LEFT - 8, at + 4.5);
        put_label(out, attributes, text);
    }
}

static void put_axes(FILE *out, const struct ghp_chart *chart, const struct scale *x,
                     const struct scale *y)
{
    char attributes[128];

    put_ticks(out, x, true);
    put_ticks(out, y, false);
    fprintf(out, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", LEFT,
            TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    snprintf(attributes, sizeof attributes, "x=\"%.1f\" y=\"%d\" text-anchor=\"middle\"",
             (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 14);
    put_label(out, attributes, chart->x.label);
    snprintf(attributes, sizeof attributes,
             "transform=\"translate(18 %.1f) rotate(-90)\" text-anchor=\"middle\"",
             (TOP + HEIGHT - BOTTOM) / 2.0);
    put_label(out, attributes, chart->y.label);
}

/* A mark around a point; each series has its shape, so that colour is not all that tells them apart. */
static void put_mark(FILE *out, int series, double x, double y)
{
    switch (series % 4) {
    case 0:
        fprintf(out, "<circle class=\"m%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", series, x, y);
        break;
    case 1:
        fprintf(out, "<rect class=\"m%d\" x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\"/>\n",
                series, x - 3.5, y - 3.5);
        break;
    case 2:
        fprintf(out, "<path class=\"m%d\" d=\"M%.1f %.1fl4.5 8h-9z\"/>\n", series, x, y - 5);
        break;
    default:
        fprintf(out, "<path class=\"m%d\" d=\"M%.1f %.1fl5 5l-5 5l-5 -5z\"/>\n", series, x, y - 5);
    }
}

static void put_series(FILE *out, const struct ghp_chart_series *series, int index,
                       const struct scale *x, const struct scale *y)
{
    bool drawing = false;

    fputs("<g clip-path=\"url(#inside)\">\n", out);
    if (series->ideal)
        fputs("<path class=\"ideal\" d=\"", out);
    else
        fprintf(out, "<path class=\"line s%d\" d=\"", index);
    for (int i = 0; i < series->n; ++i) {
        bool can = can_draw(x->axis, series->x[i]) && can_draw(y->axis, series->y[i]);

        if (can)
            fprintf(out, "%s%.1f %.1f", drawing ? "L" : "M", place(x, series->x[i]),
                    place(y, series->y[i]));
        drawing = can;
    }
    fputs("\"/>\n", out);
    for (int i = 0; i < series->n && !series->ideal; ++i)
        if (can_draw(x->axis, series->x[i]) && can_draw(y->axis, series->y[i]))
            put_mark(out, index, place(x, series->x[i]), place(y, series->y[i]));
    fputs("</g>\n", out);
}

static void put_legend(FILE *out, const struct ghp_chart *chart)
{
    double x = LEFT;

    for (int k = 0; k < chart->n_series; ++k) {
        const struct ghp_chart_series *series = &chart->series[k];
        double width = 34 + digit_width * (double)strlen(series->name) + 16;
        char attributes[64], class[16];

        snprintf(class, sizeof class, "line s%d", k);
        fprintf(out, "<path class=\"%s\" d=\"M%.1f 70h24\"/>\n", series->ideal ? "ideal" : class,
                x);
        if (!series->ideal) put_mark(out, k, x + 12, 70);
        snprintf(attributes, sizeof attributes, "x=\"%.1f\" y=\"74.5\"", x + 30);
        put_label(out, attributes, series->name);
        x += width > legend_step ? width : legend_step;
    }
}

enum ghp_status ghp_chart_text(const struct ghp_chart *chart, char **text)
{
    struct scale x = {.from = LEFT, .to = WIDTH - RIGHT}, y = {.from = HEIGHT - BOTTOM, .to = TOP};
    size_t n = 0;
    FILE *out;

    GHP_ASSERT(chart->n_series <= GHP_CHART_SERIES_MAX);
    *text = NULL;
    GHP_TRY(settle(chart, true, &x));
    GHP_TRY(settle(chart, false, &y));
    out = open_memstream(text, &n);
    if (out == NULL) return GHP_NO_MEMORY();
    put_head(out, chart);
    put_legend(out, chart);
    put_axes(out, chart, &x, &y);
    for (int k = chart->n_series - 1; k >= 0; --k) /* the first lies on top */
        put_series(out, &chart->series[k], k, &x, &y);
    fputs("</svg>\n", out);
    if (fclose(out) == 0) return GHP_OK;
    free(*text);
    *text = NULL;
    return GHP_NO_MEMORY();
}

enum ghp_status ghp_chart_save(const char *path, const struct ghp_chart *chart)
{
    char *text = NULL;
    enum ghp_status status;

    GHP_TRY(ghp_chart_text(chart, &text));
    status = ghp_file_write_atomic(path, text, strlen(text));
    free(text);
    return status;
}
