/* core/base/text.c - the small texts inside messages: numbers, allowed ranges, "did you mean". */
#include "core/base/text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEAREST_MAX = 64 }; /* longer words are not compared */

char *ghp_text_number(double value, char *out, size_t n)
{
    static const int precisions[] = {6, 9, 12, 15, 16};

    for (size_t i = 0; i < sizeof precisions / sizeof precisions[0]; i++) {
        snprintf(out, n, "%.*g", precisions[i], value);
        if (!(strtod(out, NULL) < value) && !(strtod(out, NULL) > value)) return out;
    }
    snprintf(out, n, "%.17g", value);
    return out;
}

/* Whether the end of a range says anything: int64_t's extremes and infinities do not. */
static bool bounds(double end)
{
    return fabs(end) < 9223372036854775807.0;
}

char *ghp_text_range(double min, double max, char *out, size_t n)
{
    char low[32], high[32];

    ghp_text_number(min, low, sizeof low);
    ghp_text_number(max, high, sizeof high);
    if (bounds(min) && bounds(max))
        snprintf(out, n, "from %s to %s", low, high);
    else if (bounds(min))
        snprintf(out, n, "of at least %s", low);
    else if (bounds(max))
        snprintf(out, n, "of at most %s", high);
    else
        snprintf(out, n, "%s", "");
    return out;
}

/* Letters to insert, delete, replace or swap with a neighbour to turn a into b; both shorter than NEAREST_MAX. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][NEAREST_MAX] = {{0}};
    size_t na = strlen(a), nb = strlen(b);

    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);

            if (last[j] + 1 < best) best = last[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[na % 3][nb];
}

const char *ghp_text_nearest(const char *text, const char *const *names)
{
    const char *nearest = NULL;
    size_t best = strlen(text) / 3 + 1;

    if (strlen(text) >= NEAREST_MAX) return NULL;
    for (; *names != NULL; names++) {
        if (strlen(*names) >= NEAREST_MAX) continue;
        size_t distance = edit_distance(text, *names);
        if (distance <= best && distance < strlen(*names)) {
            if (nearest == NULL || distance < best) nearest = *names;
            best = distance;
        }
    }
    return nearest;
}

char *ghp_text_join(const char *const *names, char *out, size_t n)
{
    size_t used = 0;

    if (n == 0) return out;
    out[0] = '\0';
    for (size_t i = 0; names[i] != NULL; i++) {
        int wrote = snprintf(out + used, n - used, "%s%s", i == 0 ? "" : ", ", names[i]);

        if (wrote < 0) break;
        if ((size_t)wrote >= n - used) {
            if (n >= 4) memcpy(out + n - 4, "...", 4);
            break;
        }
        used += (size_t)wrote;
    }
    return out;
}

/* Bytes that follow the first byte of a UTF-8 character; 0 if it stands alone or begins none. */
static int following(unsigned char first)
{
    if (first < 0xc2 || first > 0xf4) return 0;
    return first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
}

bool ghp_text_begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

bool ghp_text_ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

bool ghp_text_is_utf8(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at != '\0') {
        int more = following(*at);

        if (*at >= 0x80 && more == 0) return false;
        /* written longer than it need be, half of a pair, or beyond the last character */
        if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) ||
            (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f))
            return false;
        for (int i = 1; i <= more; i++)
            if ((at[i] & 0xc0) != 0x80) return false;
        at += 1 + more;
    }
    return true;
}

void ghp_text_printable(char *text)
{
    for (char *at = text; *at != '\0'; at++) {
        unsigned char first = (unsigned char)at[0], second = (unsigned char)at[1];
        int more = following(first), n = 1;

        while (n <= more && ((unsigned char)at[n] & 0xc0) == 0x80)
            n++;
        if (first < 0x20 || first == 0x7f || (first >= 0x80 && (more == 0 || n <= more)) ||
            (first == 0xc2 && second < 0xa0)) {
            *at = '?'; /* what follows is looked at by itself */
            continue;
        }
        at += more;
    }
}

const char *ghp_text_reference(unsigned char byte)
{
    switch (byte) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    case '\t':
    case '\n': return NULL;
    default: return byte < 0x20 || byte == 0x7f ? "\xef\xbf\xbd" : NULL;
    }
}
