/* executor/train/verify/replicas_mixing.c - see replicas.h: what replicas become after a step if workers' weights mix,
 * once more in plain loops in double. The rows after the mean's are: with lsgd a leader's weights for each replica's
 * group, then those of the leader of all; with dgd and sgp what all replicas become. */
#include "executor/train/verify/replicas.h"

#include <string.h>

double ghp_replicas_value(const struct ghp_replicas *r, int i, int entry, int64_t at)
{
    const void *whole = r->whole[i * r->entries + entry];

    return r->element_bytes == 8 ? ((const double *)whole)[at] : ((const float *)whole)[at];
}

void ghp_replicas_set(struct ghp_replicas *r, int i, int entry, int64_t at, double value)
{
    void *whole = r->whole[i * r->entries + entry];

    if (r->element_bytes == 8)
        ((double *)whole)[at] = value;
    else
        ((float *)whole)[at] = (float)value;
}

static int64_t elements_of(const struct ghp_replicas *r, int entry)
{
    return r->list.items[entry].param->elements;
}

/* Row i += by * (row y - row i). */
static void pull_row(struct ghp_replicas *r, int i, double by, int y)
{
    for (int e = 0; e < r->list.n_trained; e++)
        for (int64_t at = 0; at < elements_of(r, e); at++) {
            double x = ghp_replicas_value(r, i, e, at);

            ghp_replicas_set(r, i, e, at, x + by * (ghp_replicas_value(r, y, e, at) - x));
        }
}

static void copy_row(struct ghp_replicas *r, int to, int from)
{
    for (int e = 0; e < r->list.n_trained; e++)
        for (int64_t at = 0; at < elements_of(r, e); at++)
            ghp_replicas_set(r, to, e, at, ghp_replicas_value(r, from, e, at));
}

/* Replicas `first` .. `first` + count - 1 follow the one with the least loss. */
static void follow_best(struct ghp_replicas *r, int first, int count, int leader_row)
{
    int best = first;

    for (int i = first + 1; i < first + count; i++)
        if (r->lost[i] < r->lost[best]) best = i;
    copy_row(r, leader_row, best);
    for (int i = first; i < first + count; i++)
        pull_row(r, i, .1, leader_row);
}

static void pull(struct ghp_replicas *r, int64_t t)
{
    int groups = r->sync.groups, size = r->n / groups, all_row = 2 * r->n + 1;
    int64_t near = r->sync.argument, far = groups > 1 ? 4 * near : near;

    for (int i = 0; i < r->n; i++) {
        r->lost[i] += r->losses[i];
        if (groups > 1 && t >= near) pull_row(r, i, .1 / (double)near, r->n + 1 + i / size);
        if (t >= far) pull_row(r, i, .1 / (double)far, all_row);
    }
    if ((t + 1) % near != 0) return;
    for (int g = 0; g < groups && groups > 1; g++)
        follow_best(r, g * size, size, r->n + 1 + g);
    if ((t + 1) % far == 0) follow_best(r, 0, r->n, all_row);
    for (int i = 0; i < r->n; i++)
        r->lost[i] = 0;
}

static void gossip(struct ghp_replicas *r, int64_t t)
{
    (void)t;
    for (int v = 0; v < r->n; v++)
        for (int e = 0; e < r->list.n_trained; e++)
            for (int64_t at = 0; at < elements_of(r, e); at++) {
                double sum = 0;

                for (int u = 0; u < r->n; u++)
                    sum += ghp_neighbours_weight(&r->sync.graph, r->n, v, u) *
                           ghp_replicas_value(r, u, e, at);
                ghp_replicas_set(r, r->n + 1 + v, e, at, sum);
            }
    for (int v = 0; v < r->n; v++)
        copy_row(r, v, r->n + 1 + v);
}

static void push(struct ghp_replicas *r, int64_t t)
{
    int l = 1;

    while ((1 << l) < r->n)
        l++;
    for (int v = 0; v < r->n; v++) {
        int from = (v + r->n - (1 << t % l)) % r->n;

        copy_row(r, r->n + 1 + v, v);
        pull_row(r, r->n + 1 + v, .5, from);
    }
    for (int v = 0; v < r->n; v++)
        copy_row(r, v, r->n + 1 + v);
}

bool ghp_replicas_mix(struct ghp_replicas *r, int64_t t)
{
    static const struct {
        const char *name;
        void (*mix)(struct ghp_replicas *r, int64_t t);
    } schemes[] = {{"lsgd", pull}, {"dgd", gossip}, {"sgp", push}};

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strcmp(schemes[i].name, ghp_sync_ops_of(r->sync)->name) == 0) {
            schemes[i].mix(r, t);
            return true;
        }
    return false;
}
