/* core/base/units.c - quantities as people read them, and sizes as people write them. */
#include "core/base/units.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* value with three significant digits, at least one before the point. */
static char *three_digits(double value, const char *unit, char *out, size_t n)
{
    double size = fabs(value);
    int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;

    snprintf(out, n, "%.*f %s", decimals, value, unit);
    return out;
}

char *ghp_bytes_format(double bytes, char *out, size_t n)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t i = 0;

    if (!(fabs(bytes) >= 1023.5)) {
        snprintf(out, n, "%.0f B", bytes);
        return out;
    }
    bytes /= 1024.0;
    while (fabs(bytes) >= 1023.5 && i + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024.0;
        i++;
    }
    return three_digits(bytes, units[i], out, n);
}

char *ghp_seconds_format(double seconds, char *out, size_t n)
{
    double size = fabs(seconds);

    if (!(size < 3600.0 * 100.0 * 24.0)) { /* too long to count, infinite or not a number */
        snprintf(out, n, "%.3g s", seconds);
    } else if (size >= 3599.5) {
        long minutes = lround(seconds / 60.0);
        snprintf(out, n, "%ld h %02ld min", minutes / 60, labs(minutes % 60));
    } else if (size >= 99.95) {
        long whole = lround(seconds);
        snprintf(out, n, "%ld min %02ld s", whole / 60, labs(whole % 60));
    } else if (size >= 0.9995) {
        three_digits(seconds, "s", out, n);
    } else if (size >= 0.9995e-3) {
        three_digits(seconds * 1e3, "ms", out, n);
    } else if (size >= 0.9995e-6) {
        three_digits(seconds * 1e6, "us", out, n);
    } else if (size > 0.0) {
        three_digits(seconds * 1e9, "ns", out, n);
    } else {
        snprintf(out, n, "0 s");
    }
    return out;
}

char *ghp_count_format(double count, char *out, size_t n)
{
    static const char *const units[] = {"k", "M", "G", "T", "P", "E"};
    size_t i = 0;

    if (!(fabs(count) >= 999.5)) {
        snprintf(out, n, "%.0f", count);
        return out;
    }
    count /= 1000.0;
    while (fabs(count) >= 999.95 && i + 1 < sizeof units / sizeof units[0]) {
        count /= 1000.0;
        i++;
    }
    snprintf(out, n, "%.1f %s", count, units[i]);
    return out;
}

/* The factor of a unit's name; 0 if it does not name a unit. */
static double unit_factor(const char *unit)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {
        {"", 1.0},       {"B", 1.0},  {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
        {"TiB", 0x1p40}, {"kB", 1e3}, {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
    };

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].name) == 0) return units[i].factor;
    return 0.0;
}

enum ghp_status ghp_bytes_parse(const char *text, int64_t *out)
{
    const char *form = "a size such as 512MiB, 4GiB or 1000000";
    char *rest = NULL;
    double number, factor;

    if (!isdigit((unsigned char)text[0]) || text[strcspn(text, "xX")] != '\0')
        return GHP_FAIL(GHP_ERR_USAGE, "'%s' is not a size in bytes; give %s", text, form);
    number = strtod(text, &rest);
    while (*rest == ' ')
        rest++;
    factor = unit_factor(rest);
    if (!(factor > 0.0))
        return GHP_FAIL(GHP_ERR_USAGE, "'%s' is not a size in bytes; give %s", text, form);
    if (!(number * factor < 9223372036854775808.0))
        return GHP_FAIL(GHP_ERR_USAGE, "'%s' is too large; give less than 8388608 TiB", text);
    *out = (int64_t)(number * factor);
    if (*rest == '\0' && strspn(text, "0123456789") == strlen(text))
        *out = (int64_t)strtoll(text, NULL, 10); /* exact beyond 2^53 */
    return GHP_OK;
}
