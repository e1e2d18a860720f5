/* core/plan/staging_text.c - see staging_text.h. */
#include "core/plan/staging_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum ghp_status parse_workers(const char *text, const char *all, int *workers)
{
    char *end = NULL;
    long n = strtol(text, &end, 10);

    if (end == text || *end != '\0' || n < 1 || n > 1 << 20)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot read --stages '%s': '%s' is not a number of workers; write "
                        "K,LAYER:K,..., such as 3,fc6:1",
                        all, text);
    *workers = (int)n;
    return GHP_OK;
}

static enum ghp_status parse_layer(const char *name, const struct ghp_model *model, int *layer)
{
    *layer = ghp_model_find(model, name);
    if (*layer >= 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--stages names layer '%s', which model '%s' does not have; see "
                    "ghp-inspect MODEL for its layers",
                    name, model->name);
}

/* Reads a further chunk, after those that stages begin with; `n` are there so far. */
static enum ghp_status parse_chunk(const char *entry, const char *all,
                                   const struct ghp_model *model, struct ghp_staging *s, int *n)
{
    if (*n == (int)(sizeof s->later_chunk / sizeof *s->later_chunk))
        return GHP_FAIL(GHP_ERR_USAGE, "--stages '%s' has more than %d parts; use fewer", all,
                        GHP_MAX_CHUNKS);
    return parse_layer(entry, model, &s->later_chunk[(*n)++]);
}

/* chunks   further ones before the entry */
static enum ghp_status parse_stage(char *entry, const char *all, const struct ghp_model *model,
                                   int chunks, struct ghp_staging *s)
{
    struct ghp_stage *stage;
    char *colon = strchr(entry, ':');

    if (s->n == GHP_MAX_STAGES)
        return GHP_FAIL(GHP_ERR_USAGE, "--stages '%s' has more than %d stages; use fewer", all,
                        GHP_MAX_STAGES);
    stage = &s->stage[s->n];
    if ((s->n == 0) != (colon == NULL) || chunks > 0)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot read --stages '%s'; write the first stage's workers, then "
                        "LAYER:WORKERS for each further one, such as 3,fc6:1, then layers alone "
                        "where further parts begin",
                        all);
    *stage = (struct ghp_stage){0};
    if (colon != NULL) {
        *colon = '\0';
        GHP_TRY(parse_layer(entry, model, &stage->first_layer));
    }
    s->n++;
    return parse_workers(colon != NULL ? colon + 1 : entry, all, &stage->workers);
}

enum ghp_status ghp_staging_parse(const char *text, const struct ghp_model *model,
                                  struct ghp_staging *staging)
{
    char *copy = ghp_alloc(strlen(text) + 1, 1), *rest = NULL;
    int chunks = 0;
    enum ghp_status status = GHP_OK;

    if (copy == NULL) return GHP_NO_MEMORY();
    memcpy(copy, text, strlen(text));
    staging->n = 0;
    for (char *entry = strtok_r(copy, ",", &rest); entry != NULL && status == GHP_OK;
         entry = strtok_r(NULL, ",", &rest))
        status = staging->n > 0 && strchr(entry, ':') == NULL
                     ? parse_chunk(entry, text, model, staging, &chunks)
                     : parse_stage(entry, text, model, chunks, staging);
    free(copy);
    if (status == GHP_OK && staging->n == 0)
        status = GHP_FAIL(GHP_ERR_USAGE, "--stages is empty; write K,LAYER:K,..., such as 3,fc6:1");
    if (status == GHP_OK && staging->n == 1)
        status = GHP_FAIL(GHP_ERR_USAGE,
                          "--stages '%s' is one stage of %d worker(s); give each further stage its "
                          "first layer and its workers, such as 3,fc6:1, or leave it out",
                          text, staging->stage[0].workers);
    if (status == GHP_OK && chunks % staging->n != 0)
        status = GHP_FAIL(GHP_ERR_USAGE,
                          "--stages '%s' deals %d parts to %d stages; name as many layers for each",
                          text, staging->n + chunks, staging->n);
    staging->chunks = status == GHP_OK && chunks > 0 ? 1 + chunks / staging->n : 0;
    if (staging->chunks > 1 && staging->pipeline == GHP_PIPELINE_1F1B)
        staging->pipeline = GHP_PIPELINE_INTERLEAVED;
    return status;
}

const char *ghp_staging_format(const struct ghp_staging *s, const struct ghp_model *model,
                               char *text, size_t n)
{
    size_t used = 0;
    int u = ghp_staging_micro_batches(s);

    text[0] = '\0';
    for (int i = 0; i < s->n && s->n > 1 && used < n; i++)
        used += (size_t)snprintf(text + used, n - used, "%s%d%s%s", i > 0 ? " + " : "",
                                 s->stage[i].workers, i > 0 ? " from " : "",
                                 i > 0 ? model->layers[s->stage[i].first_layer].name : "");
    for (int k = 0; k < ghp_staging_chunks(s) - ghp_staging_stages(s) && used < n; k++)
        used += (size_t)snprintf(text + used, n - used, "%s%s", k > 0 ? " + " : ", then from ",
                                 model->layers[s->later_chunk[k]].name);
    if (used < n && u > 1)
        used +=
            (size_t)snprintf(text + used, n - used, "%s%d micro-batches", used > 0 ? ", " : "", u);
    if (used < n && u > 1 && s->n > 1)
        used += (size_t)snprintf(text + used, n - used, " (%s)", ghp_pipeline_names[s->pipeline]);
    if (used < n && s->shares != NULL)
        used += (size_t)snprintf(text + used, n - used, "%sunequal shares", used > 0 ? ", " : "");
    if (used < n && s->recompute != NULL)
        snprintf(text + used, n - used, "%ssome layers recomputed", used > 0 ? ", " : "");
    return text;
}

static bool same_worker(const int64_t *shares, const double *speed, int a, int b)
{
    return shares[a] == shares[b] &&
           (speed == NULL || !(speed[a] < speed[b] || speed[a] > speed[b]));
}

/* Runs of workers with the same share and speed. */
static void put_shares(const int64_t *shares, const double *speed, int workers, char *text,
                       size_t n)
{
    size_t used = (size_t)snprintf(text, n, "samples:");

    for (int r = 0, end; r < workers && used < n; r = end) {
        for (end = r + 1; end < workers && same_worker(shares, speed, r, end);)
            end++;
        used += (size_t)snprintf(text + used, n - used, "%s %" PRId64 " on worker %d",
                                 r > 0 ? "," : "", shares[r], r);
        if (used < n && end - r > 1)
            used += (size_t)snprintf(text + used, n - used, " to %d each", end - 1);
        if (used < n && speed != NULL)
            used += (size_t)snprintf(text + used, n - used, " (speed %.3g)", speed[r]);
    }
}

const char *ghp_shares_format(const struct ghp_plan *plan, char *text, size_t n)
{
    int workers = plan->problem.workers;
    const double *speed = ghp_speeds_of(&plan->profile.speeds, workers);
    double most = 1;

    text[0] = '\0';
    if (plan->shares != NULL) {
        put_shares(plan->shares, speed, workers, text, n);
        return text;
    }
    if (speed == NULL) return text;
    for (int r = 0; r < workers; r++)
        if (speed[r] > most) most = speed[r];
    snprintf(text, n,
             "shares are equal, though workers are up to %.3g times as fast as the slowest", most);
    return text;
}
