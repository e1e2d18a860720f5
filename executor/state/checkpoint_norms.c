/* executor/state/checkpoint_norms.c - see checkpoint_private.h: norms of samples, by which an importance sampler draws,
 * as one text of the metadata: draws of all workers so far, then of each sample 16 hexadecimal digits, the norm's bits.
 * They are in the samples' order, so that another number of workers can read them. */
#include "executor/state/checkpoint_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char ghp_checkpoint_norms_key[] = "sampler_norms";

enum { DRAWS_BYTES = 32, DIGITS = 16 };

/* Samples of a worker, at most. */
static int64_t most_of(const struct ghp_checkpoint_norms *n)
{
    return (n->samples + n->workers - 1) / n->workers;
}

/* all   of each worker as many as the one with most has */
static void write_norms(const struct ghp_checkpoint_norms *n, const double *all, char *text)
{
    text += snprintf(text, DRAWS_BYTES, "%" PRId64 " ", n->sampler->steps * n->workers);
    for (int64_t i = 0; i < n->samples; i++) {
        uint64_t bits;

        memcpy(&bits, &all[i % n->workers * most_of(n) + i / n->workers], sizeof bits);
        text += snprintf(text, DIGITS + 1, "%016" PRIx64, bits);
    }
}

/* Both of most_of(n), the second of each worker. */
static enum ghp_status gather(const struct ghp_checkpoint_norms *n, struct ghp_comm *world,
                              double *mine, double *all)
{
    int64_t bytes = most_of(n) * (int64_t)sizeof *mine;

    for (int64_t i = 0; i < n->sampler->n; i++)
        mine[i] = ghp_sampler_norm(n->sampler, i);
    if (n->workers > 1) return world->ops->all_gather(world, mine, all, bytes);
    memcpy(all, mine, (size_t)bytes);
    return GHP_OK;
}

enum ghp_status ghp_checkpoint_norms_text(const struct ghp_checkpoint_norms *n,
                                          struct ghp_worker *worker, struct ghp_comm *world,
                                          char **text)
{
    struct ghp_control *control = ghp_worker_exec_context(worker)->transport->control;
    enum ghp_status status;
    double *mine, *all;

    *text = NULL;
    if (n->sampler == NULL) return GHP_OK;
    mine = ghp_alloc((size_t)most_of(n), sizeof *mine);
    all = ghp_alloc((size_t)(most_of(n) * n->workers), sizeof *all);
    *text = ghp_alloc((size_t)(DRAWS_BYTES + n->samples * DIGITS), 1);
    status = ghp_control_agree(
        control, world, mine == NULL || all == NULL || *text == NULL ? GHP_NO_MEMORY() : GHP_OK);
    if (status == GHP_OK) status = gather(n, world, mine, all);
    if (status == GHP_OK) write_norms(n, all, *text);
    free(all);
    free(mine);
    return status;
}

static enum ghp_status fail_norms(const char *path)
{
    return GHP_FAIL(
        GHP_ERR_FORMAT,
        "'%s': '%s' in its metadata does not have a norm for each sample; use a checkpoint "
        "that ghp-run wrote",
        path, ghp_checkpoint_norms_key);
}

/* One norm's digits. */
static bool read_norm(const char *at, double *norm)
{
    char digits[DIGITS + 1] = "", *end = NULL;
    uint64_t bits;

    snprintf(digits, sizeof digits, "%s", at);
    if (strspn(digits, "0123456789abcdef") != DIGITS) return false;
    bits = strtoull(digits, &end, 16);
    memcpy(norm, &bits, sizeof bits);
    return isfinite(*norm) && *norm >= 0;
}

enum ghp_status ghp_checkpoint_read_norms(const char *path, const struct ghp_safetensors *file,
                                          const struct ghp_checkpoint_norms *n)
{
    const char *at = ghp_safetensors_metadata(file, ghp_checkpoint_norms_key);
    char *end = NULL;
    long long draws;

    if (n->sampler == NULL || at == NULL) return GHP_OK;
    draws = strtoll(at, &end, 10);
    if (end == at || draws < 0 || *end != ' ' || strlen(end + 1) != (size_t)n->samples * DIGITS)
        return fail_norms(path);
    at = end + 1;
    for (int64_t i = 0; i < n->sampler->n; i++) {
        double norm;

        if (!read_norm(at + (i * n->workers + n->rank) * DIGITS, &norm)) return fail_norms(path);
        ghp_sampler_learn(n->sampler, i, norm);
    }
    n->sampler->steps = draws / n->workers;
    return GHP_OK;
}
