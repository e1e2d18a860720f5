/* bench/chart.c - ghp-chart: points from standard input as a line chart in SVG, drawn by core/base/chart.
 *
 * A line of input is "SERIES X Y"; lines of a series in ascending X.  Lines that start with # are remarks. */
#include "core/base/chart.h"
#include "core/base/opts.h"
#include "core/base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MAX = 1024, NAME_MAX_BYTES = 64 };

struct series {
    char name[NAME_MAX_BYTES];
    double x[POINTS_MAX], y[POINTS_MAX];
    int n;
};

static struct series series[GHP_CHART_SERIES_MAX];
static int n_series;

static const char *title = "", *subtitle, *x_label = "x", *y_label = "y", *output;
static bool log_x, log_y;

static const struct ghp_opt options[] = {
    {.name = "output",
     .letter = 'o',
     .kind = GHP_OPT_TEXT,
     .target = &output,
     .argument = "SVG",
     .help = "where the chart goes (needed)"},
    {.name = "title", .kind = GHP_OPT_TEXT, .target = &title, .help = "the chart's title"},
    {.name = "subtitle", .kind = GHP_OPT_TEXT, .target = &subtitle, .help = "what stands below it"},
    {.name = "x",
     .kind = GHP_OPT_TEXT,
     .target = &x_label,
     .argument = "LABEL",
     .help = "label of the axis of X"},
    {.name = "y",
     .kind = GHP_OPT_TEXT,
     .target = &y_label,
     .argument = "LABEL",
     .help = "label of the axis of Y"},
    {.name = "log-x",
     .kind = GHP_OPT_FLAG,
     .target = &log_x,
     .help = "X logarithmic, ticks at powers of two"},
    {.name = "log-y",
     .kind = GHP_OPT_FLAG,
     .target = &log_y,
     .help = "Y logarithmic, ticks at powers of ten"},
};

static const struct ghp_tool tool = {
    .name = "ghp-chart",
    .purpose = "Draws points from standard input, lines of \"SERIES X Y\", as a line chart in SVG",
    .usage = "ghp-chart -o SVG [options] < POINTS",
    .example =
        "printf 'squares 1 1\\nsquares 2 4\\nsquares 3 9\\n' | build/bin/ghp-chart -o squares.svg",
    .opts = options,
    .n_opts = sizeof options / sizeof options[0],
};

/* The series of that name, a new one where none has it; NULL where there are too many. */
static struct series *series_of(const char *name)
{
    for (int i = 0; i < n_series; ++i)
        if (strcmp(series[i].name, name) == 0) return &series[i];
    if (n_series == GHP_CHART_SERIES_MAX) return NULL;
    snprintf(series[n_series].name, sizeof series[n_series].name, "%s", name);
    return &series[n_series++];
}

static enum ghp_status read_points(void)
{
    char line[256], name[NAME_MAX_BYTES];
    double x, y;

    for (int number = 1; fgets(line, sizeof line, stdin); ++number) {
        struct series *one;

        if (line[0] == '#' || line[0] == '\n') continue;
        if (sscanf(line, "%63s %lf %lf", name, &x, &y) != 3)
            return GHP_FAIL(GHP_ERR_INPUT, "line %d is not \"SERIES X Y\"", number);
        one = series_of(name);
        if (!one || one->n == POINTS_MAX)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "line %d is one too many: at most %d series of %d points", number,
                            GHP_CHART_SERIES_MAX, POINTS_MAX);
        one->x[one->n] = x;
        one->y[one->n++] = y;
    }
    return GHP_OK;
}

static enum ghp_status draw(void)
{
    struct ghp_chart chart = {.title = title, .subtitle = subtitle, .n_series = n_series};

    chart.x = (struct ghp_chart_axis){.label = x_label, .log = log_x, .base = 2};
    chart.y = (struct ghp_chart_axis){.label = y_label, .log = log_y, .base = 10};
    for (int i = 0; i < n_series; ++i)
        chart.series[i] = (struct ghp_chart_series){
            .name = series[i].name, .x = series[i].x, .y = series[i].y, .n = series[i].n};
    return ghp_chart_save(output, &chart);
}

int main(int argc, char **argv)
{
    enum ghp_status status = ghp_opts_parse(&tool, argc, argv, NULL, 0, NULL);

    if (status == GHP_OK && !ghp_opts_done()) {
        status = output ? read_points()
                        : GHP_FAIL(GHP_ERR_USAGE, "-o SVG is needed: where the chart goes");
        if (status == GHP_OK) status = draw();
    }
    if (status != GHP_OK) fprintf(stderr, "%s: %s\n", tool.name, ghp_status_message());
    return ghp_status_exit_code(status);
}
