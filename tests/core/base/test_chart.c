/* tests/core/base/test_chart.c - charts as SVG: where points lie, gaps, texts that XML reserves, and what cannot be
 * drawn. */
#include "core/base/chart.h"
#include "tests/check.h"

static const double x[] = {1, 2, 4, 8}, y[] = {1, 10, 100, 1000}, holes[] = {1, NAN, 0, 1000};

static struct ghp_chart chart_of(const double *values)
{
    return (struct ghp_chart){.title = "a < b & \"c\"",
                              .x = {.label = "workers", .log = true, .base = 2},
                              .y = {.label = "speed [x]", .log = true, .base = 10},
                              .n_series = 1,
                              .series = {{.name = "s", .x = x, .y = values, .n = 4}}};
}

static int count(const char *text, const char *part)
{
    int n = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        ++n;
    return n;
}

/* The numbers of the first line's path. */
static int read_path(const char *text, double at[8])
{
    const char *d = strstr(text, "class=\"line s0\" d=\"M");
    int n = 0;

    d = d != NULL ? strstr(d + 1, "class=\"line s0\" d=\"M") : NULL; /* the first is the legend's */
    if (d == NULL) return 0;
    d += strlen("class=\"line s0\" d=\"");
    while (n < 8 && (*d == 'M' || *d == 'L' || *d == ' ')) {
        char *end;

        at[n++] = strtod(d + 1, &end);
        d = end;
    }
    return n;
}

CHECK_TEST(chart)
{
    struct ghp_chart chart = chart_of(y);
    char *text = NULL, *again = NULL;
    double at[8] = {0};

    if (!CHECK_STATUS(ghp_chart_text(&chart, &text), GHP_OK)) return check_end();
    CHECK_STATUS(ghp_chart_text(&chart, &again), GHP_OK);
    CHECK_TEXT(text, again);
    CHECK(strncmp(text, "<svg xmlns=", 11) == 0);
    CHECK_EQ(count(text, "a &lt; b &amp; &quot;c&quot;"), 2); /* <title> and the heading */
    CHECK_EQ(count(text, "prefers-color-scheme: dark"), 1);
    CHECK_EQ(count(text, ">speed [x]</text>") + count(text, ">workers</text>"), 2);
    CHECK_EQ(count(text, "<circle"), 5); /* four points and the legend */
    CHECK_EQ(count(text, "http"), 1);    /* nothing is fetched: only the namespace */
    /* whole powers on both axes: points on a diagonal, evenly spaced (printed to a tenth) */
    CHECK_EQ(read_path(text, at), 8);
    for (int i = 0; i < 4; ++i) {
        CHECK_NEAR(at[2 * i] - at[0], i * (at[6] - at[0]) / 3, 0.11);
        CHECK_NEAR(at[2 * i + 1] - at[1], i * (at[7] - at[1]) / 3, 0.11);
    }
    CHECK(at[7] < at[1]);
    free(text);
    free(again);

    chart = chart_of(holes);
    CHECK_STATUS(ghp_chart_text(&chart, &text), GHP_OK);
    CHECK_EQ(count(text, "<circle"), 3);
    CHECK_EQ(read_path(text, at), 4); /* M ... M ...: no line across the gap */
    free(text);

    chart.y = (struct ghp_chart_axis){.label = "y"};
    chart.x = (struct ghp_chart_axis){.label = "x"};
    CHECK_STATUS(ghp_chart_text(&chart, &text), GHP_OK);
    CHECK_EQ(count(text, "<circle"), 4); /* zero can be drawn on a straight axis */
    free(text);

    chart.n_series = 0;
    CHECK_STATUS(ghp_chart_text(&chart, &text), GHP_ERR_INPUT);
    CHECK(text == NULL);
    chart = chart_of(y);
    CHECK_STATUS(ghp_chart_save("/nowhere/chart.svg", &chart), GHP_ERR_IO);
    return check_end();
}
