/* core/cost/stragglers.c - see stragglers.h. */
#include "core/cost/stragglers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double most_factor = 1000;

static enum ghp_status fail_text(const char *text)
{
    return GHP_FAIL(GHP_ERR_USAGE,
                    "cannot read slow workers '%s'; give RANK:FACTOR[,RANK:FACTOR...], at most %d, "
                    "each rank once, factors from 1 to %g, such as 3:2",
                    text, GHP_STRAGGLERS_MOST, most_factor);
}

static bool read_one(const char **at, struct ghp_straggler *s)
{
    char *end;
    long rank;

    if (**at < '0' || **at > '9') return false;
    rank = strtol(*at, &end, 10);
    if (*end != ':' || rank > 1 << 20) return false;
    s->rank = (int)rank;
    *at = end + 1;
    if (**at < '0' || **at > '9') return false;
    s->factor = strtod(*at, &end);
    *at = end;
    return s->factor >= 1 && s->factor <= most_factor && (*end == ',' || *end == '\0');
}

enum ghp_status ghp_stragglers_parse(const char *text, struct ghp_stragglers *stragglers)
{
    const char *at = text;

    *stragglers = (struct ghp_stragglers){0};
    for (;;) {
        struct ghp_straggler s;

        if (stragglers->n == GHP_STRAGGLERS_MOST || !read_one(&at, &s)) return fail_text(text);
        for (int i = 0; i < stragglers->n; i++)
            if (stragglers->of[i].rank == s.rank) return fail_text(text);
        stragglers->of[stragglers->n++] = s;
        if (*at == '\0') return GHP_OK;
        at++;
    }
}

enum ghp_status ghp_stragglers_check(const struct ghp_stragglers *stragglers, int workers)
{
    for (int i = 0; i < stragglers->n; i++)
        if (stragglers->of[i].rank >= workers)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "--straggler names worker %d, but the %d workers are numbered 0 to %d; "
                            "give one of these",
                            stragglers->of[i].rank, workers, workers - 1);
    return GHP_OK;
}

const char *ghp_stragglers_format(const struct ghp_stragglers *stragglers,
                                  char text[GHP_STRAGGLERS_TEXT_BYTES])
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < stragglers->n && used < GHP_STRAGGLERS_TEXT_BYTES; i++)
        used +=
            (size_t)snprintf(text + used, GHP_STRAGGLERS_TEXT_BYTES - used,
                             i == 0 ? "worker %d takes %g times as long" : ", worker %d %g times",
                             stragglers->of[i].rank, stragglers->of[i].factor);
    return text;
}

double ghp_stragglers_factor(const struct ghp_stragglers *stragglers, int rank)
{
    for (int i = 0; i < stragglers->n; i++)
        if (stragglers->of[i].rank == rank) return stragglers->of[i].factor;
    return 1;
}
