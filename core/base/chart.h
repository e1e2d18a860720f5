/* core/base/chart.h - one line chart as a self-contained SVG: axes with units, a legend, light and dark by media query.
 *
 * No plotting library: straight lines between points, no areas, no second axis.  700 units wide, so that it reads at
 * that many pixels.  Values that cannot be drawn (not finite, not positive on a logarithmic axis) leave a gap in
 * their line.
 * To draw: fill the structs, save.  The same chart gives the same bytes.
 *
 * Tested  tests/core/base/test_chart.c */
#ifndef GHP_CORE_BASE_CHART_H
#define GHP_CORE_BASE_CHART_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum { GHP_CHART_SERIES_MAX = 8 };

struct ghp_chart_axis {
    const char *label; /* with its unit in square brackets, if any */
    bool log;          /* positive values only */
    double base;       /* of a logarithmic axis' ticks: 2 or 10 */
    double min, max;   /* shown range; both 0: as the points need, in whole ticks */
};

struct ghp_chart_series {
    const char *name;
    const double *x, *y; /* n points, ascending in x; borrowed */
    int n;
    bool ideal; /* a guide line: thin, dashed, without marks */
};

struct ghp_chart {
    const char *title, *subtitle; /* subtitle may be NULL */
    struct ghp_chart_axis x, y;
    int n_series; /* at most GHP_CHART_SERIES_MAX */
    struct ghp_chart_series series[GHP_CHART_SERIES_MAX];
};

/* The SVG as a text.
 *
 * text   malloc'd, NUL-terminated; the caller frees it; NULL on failure
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (no point can be drawn); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_chart_text(const struct ghp_chart *chart, char **text);

/* Writes it as a file.
 *
 * Returns   as ghp_chart_text, and GHP_ERR_IO */
enum ghp_status ghp_chart_save(const char *path, const struct ghp_chart *chart);

#endif
