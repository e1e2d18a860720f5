/* profiler/worklist/trials.c - see worklist/trials.h. */
#include "profiler/worklist/trials.h"

#include "core/base/array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 4, FIRST_TRIALS = 64 };
/* The most doublings of each size between operations that are alike: samples, channels in and out, pixels. If the side
 * of an image is halved, another algorithm may be quickest. */
static const double most_doublings[SIZES] = {2, 2, 2, 1};
static const double lost = 1.25;      /* times the quickest one's seconds, of the same operation */
static const double lost_more = 0.25; /* for each doubling */

struct ghp_trial {
    char family[GHP_KEY_BYTES]; /* all but the sizes */
    enum ghp_pass pass;
    bool x, y; /* formats */
    double size[SIZES];
    char algorithm[GHP_ALGORITHM_BYTES];
    double seconds;
    double times; /* of the quickest one's seconds, >= 1 */
};

static void describe(const struct ghp_worklist_op *op, int which, struct ghp_trial *trial)
{
    struct ghp_local local = op->local;

    *trial = (struct ghp_trial){
        .pass = op->pass,
        .x = op->variants[which].x,
        .y = op->variants[which].y,
        .size = {(double)local.n, (double)local.c, (double)local.k, (double)(local.p * local.q)}};
    local.n = local.c = local.h = local.w = local.k = local.p = local.q = 0;
    ghp_local_key(&local, trial->family);
}

/* Doublings between two operations of one pass in the same formats; INFINITY: they are not alike. */
static double distance(const struct ghp_trial *a, const struct ghp_trial *b)
{
    double sum = 0;

    if (a->pass != b->pass || a->x != b->x || a->y != b->y || strcmp(a->family, b->family) != 0)
        return INFINITY;
    for (int i = 0; i < SIZES; i++) {
        double doublings = fabs(log2(fmax(a->size[i], 1) / fmax(b->size[i], 1)));

        if (doublings > most_doublings[i]) return INFINITY;
        sum += doublings;
    }
    return sum;
}

enum ghp_status ghp_trials_add(struct ghp_trials *trials, const struct ghp_worklist_op *op,
                               int which, const char *algorithm, const double seconds_best_s[2])
{
    struct ghp_trial *trial;

    GHP_TRY_ROOM(trials->of, trials->n, trials->max);
    trial = &trials->of[trials->n++];
    describe(op, which, trial);
    snprintf(trial->algorithm, sizeof trial->algorithm, "%s", algorithm);
    trial->seconds = seconds_best_s[0];
    trial->times = seconds_best_s[0] / fmax(seconds_best_s[1], 1e-12);
    return GHP_OK;
}

/* How many times the quickest one's seconds it took where it was most alike, and how far that is; 0: it is not
 * known. */
static double nearest(const struct ghp_trials *trials, const struct ghp_trial *wanted,
                      const char *algorithm, double *far)
{
    double times = 0;

    *far = INFINITY;
    for (int i = 0; i < trials->n; i++) {
        const struct ghp_trial *trial = &trials->of[i];
        double d;

        if (strcmp(trial->algorithm, algorithm) != 0) continue;
        d = distance(trial, wanted);
        if (!(d < *far)) continue;
        *far = d;
        times = trial->times;
    }
    return times;
}

void ghp_trials_narrow(const struct ghp_trials *trials, const struct ghp_worklist_op *op, int which,
                       struct ghp_algorithms *list)
{
    struct ghp_trial wanted;
    struct ghp_algorithms kept = {0};
    double best = INFINITY, far;
    int first = 0;

    describe(op, which, &wanted);
    for (int i = 0; i < list->n; i++) {
        double times = nearest(trials, &wanted, list->names[i], &far);

        if (times > 0 && times >= lost + lost_more * far) continue;
        if (times > 0 && times < best) {
            best = times;
            first = kept.n;
        }
        memcpy(kept.names[kept.n++], list->names[i], sizeof list->names[i]);
    }
    if (kept.n == 0) return;
    *list = kept;
    memcpy(list->names[0], kept.names[first], sizeof list->names[0]);
    memcpy(list->names[first], kept.names[0], sizeof list->names[0]);
}

double ghp_trials_least_s(const struct ghp_trials *trials, const struct ghp_worklist_op *op,
                          int which, const char *algorithm)
{
    struct ghp_trial wanted;
    size_t n = strcspn(algorithm, "+");

    if (op->variants[which].x || op->variants[which].y) return 0;
    describe(op, which, &wanted);
    wanted.x = wanted.y = true;
    for (int i = trials->n - 1; i >= 0; --i) {
        const struct ghp_trial *trial = &trials->of[i];

        if (strlen(trial->algorithm) != n || strncmp(trial->algorithm, algorithm, n) != 0) continue;
        if (!(distance(trial, &wanted) > 0)) return trial->seconds;
    }
    return 0;
}

void ghp_trials_release(struct ghp_trials *trials)
{
    free(trials->of);
    *trials = (struct ghp_trials){0};
}
