/* executor/launcher/restart.c - see executor/launcher/restart.h. */
#include "executor/launcher/restart.h"

#include <math.h>

static const double longest_pause_s = 60;

enum ghp_restart_verdict ghp_restart_next(struct ghp_restart *r, bool progress, int workers_left)
{
    r->failures = progress ? 1 : r->failures + 1;
    if (r->failures > r->most_failures) return GHP_RESTART_TOO_OFTEN;
    if (workers_left < 0) {
        if (r->failures > 1 && r->plan + 1 < r->n) r->plan++;
        return GHP_RESTART;
    }
    for (int i = 0; i < r->n; i++) {
        if (r->workers[i] > workers_left) continue;
        r->plan = i;
        return GHP_RESTART;
    }
    return GHP_RESTART_TOO_FEW_LEFT;
}

int ghp_restart_larger(const struct ghp_restart *r, int workers_left)
{
    for (int i = 0; i < r->plan; i++)
        if (r->workers[i] <= workers_left) return i;
    return -1;
}

double ghp_restart_pays_s(double present_s, double faster_s, double restart_s)
{
    return faster_s < present_s ? restart_s / (1 - faster_s / present_s) : INFINITY;
}

double ghp_restart_pause_s(const struct ghp_restart *r)
{
    double pause_s = r->pause_s;

    for (int i = 1; i < r->failures && pause_s < longest_pause_s; i++)
        pause_s *= 2;
    return pause_s < longest_pause_s || r->pause_s > longest_pause_s ? pause_s : longest_pause_s;
}
