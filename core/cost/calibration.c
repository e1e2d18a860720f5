/* core/cost/calibration.c - see calibration.h. */
#include "core/cost/calibration.h"

#include "core/cost/embed.h"
#include "core/base/file.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FACTOR 1e6
#define MAX_SECONDS 1e9

struct ghp_calibration *ghp_calibration_open(int n_runs, int n_factors)
{
    struct ghp_calibration *c = ghp_alloc(1, sizeof *c);

    if (c == NULL) return NULL;
    c->runs = ghp_alloc((size_t)n_runs, sizeof *c->runs);
    c->factors = ghp_alloc((size_t)n_factors, sizeof *c->factors);
    if (c->runs != NULL) c->n_runs = n_runs;
    if (c->factors != NULL) c->n_factors = n_factors;
    if (c->runs != NULL && c->factors != NULL) return c;
    ghp_calibration_close(c);
    return NULL;
}

void ghp_calibration_close(struct ghp_calibration *c)
{
    if (c == NULL) return;
    for (int i = 0; i < c->n_runs; ++i)
        free(c->runs[i].path);
    for (int i = 0; i < c->n_factors; ++i)
        free(c->factors[i].term);
    free(c->runs);
    free(c->factors);
    free(c->created);
    free(c);
}

enum ghp_status ghp_calibration_copy(const struct ghp_calibration *from,
                                     struct ghp_calibration **to)
{
    struct ghp_calibration *c;
    struct ghp_calibration_run *runs;
    struct ghp_calibration_factor *factors;
    bool failed;

    *to = NULL;
    if (from == NULL) return GHP_OK;
    c = ghp_calibration_open(from->n_runs, from->n_factors);
    if (c == NULL) return GHP_NO_MEMORY();
    runs = c->runs;
    factors = c->factors;
    *c = *from;
    c->runs = runs;
    c->factors = factors;
    c->created = strdup(from->created);
    failed = c->created == NULL;
    for (int i = 0; i < from->n_runs; ++i) {
        runs[i] = from->runs[i];
        runs[i].path = strdup(from->runs[i].path);
        failed |= runs[i].path == NULL;
    }
    for (int i = 0; i < from->n_factors; ++i) {
        factors[i] = from->factors[i];
        factors[i].term = strdup(from->factors[i].term);
        failed |= factors[i].term == NULL;
    }
    if (failed) {
        ghp_calibration_close(c);
        return GHP_NO_MEMORY();
    }
    *to = c;
    return GHP_OK;
}

double ghp_calibration_between_s(const struct ghp_calibration *c, const struct ghp_instr *instr)
{
    return c != NULL && instr->stream == GHP_STREAM_COMPUTE ? c->instruction_s : 0;
}

double ghp_calibration_partners_s(const struct ghp_calibration *c, const struct ghp_instr *instr)
{
    if (c == NULL || !ghp_instr_sends(instr)) return 0;
    return instr->stream == GHP_STREAM_COMPUTE ? c->exchange_s : c->reduction_s;
}

/* ---- in the profile's file ---- */

static json_t *error_json(struct ghp_calibration_error error)
{
    return json_pack("{s:f, s:f}", "mean", error.mean, "worst", error.worst);
}

static json_t *runs_json(const struct ghp_calibration *c)
{
    json_t *array = json_array();
    char hash[17];

    for (int i = 0; array != NULL && i < c->n_runs; ++i) {
        ghp_hash_text(c->runs[i].hash, hash);
        if (json_array_append_new(
                array, json_pack("{s:s, s:s}", "run", c->runs[i].path, "hash", hash)) == 0)
            continue;
        json_decref(array);
        return NULL;
    }
    return array;
}

static json_t *factors_json(const struct ghp_calibration *c)
{
    json_t *array = json_array();

    for (int i = 0; array != NULL && i < c->n_factors; ++i) {
        const struct ghp_calibration_factor *f = &c->factors[i];
        json_t *item =
            json_pack("{s:s, s:f, s:f, s:I, s:f}", "term", f->term, "factor", f->factor, "extra_s",
                      f->extra_s, "instructions", (json_int_t)f->n, "weight_s", f->weight_s);

        if (json_array_append_new(array, item) == 0) continue;
        json_decref(array);
        return NULL;
    }
    return array;
}

json_t *ghp_calibration_json(const struct ghp_calibration *c)
{
    char hash[17];
    json_t *root;
    int failed;

    ghp_hash_text(c->profile_hash, hash);
    root = json_pack("{s:s, s:s, s:f, s:f, s:f}", "created", c->created, "profile_hash", hash,
                     "instruction_s", c->instruction_s, "exchange_s", c->exchange_s, "reduction_s",
                     c->reduction_s);
    failed = root == NULL;
    if (failed) return NULL;
    failed |= json_object_set_new(root, "error_before", error_json(c->before));
    failed |= json_object_set_new(root, "error_after", error_json(c->after));
    if (c->validated)
        failed |= json_object_set_new(root, "error_held_out", error_json(c->held_out));
    failed |= json_object_set_new(root, "runs", runs_json(c));
    failed |= json_object_set_new(root, "factors", factors_json(c));
    if (!failed) return root;
    json_decref(root);
    return NULL;
}

static enum ghp_status read_error(const struct ghp_node *at, const char *key,
                                  struct ghp_calibration_error *error)
{
    static const char *const keys[] = {"mean", "worst", NULL};
    struct ghp_node node;

    GHP_TRY(ghp_json_get(at, key, &node));
    GHP_TRY(ghp_json_only_keys(&node, keys));
    GHP_TRY(ghp_json_real(&node, "mean", 0, MAX_SECONDS, &error->mean));
    return ghp_json_real(&node, "worst", 0, MAX_SECONDS, &error->worst);
}

static enum ghp_status read_runs(const struct ghp_node *array, struct ghp_calibration *c)
{
    static const char *const keys[] = {"run", "hash", NULL};
    struct ghp_node item;

    for (int i = 0; i < c->n_runs; ++i) {
        GHP_TRY(ghp_json_item(array, (size_t)i, &item));
        GHP_TRY(ghp_json_only_keys(&item, keys));
        GHP_TRY(ghp_json_text(&item, "run", &c->runs[i].path));
        GHP_TRY(ghp_embed_hash(&item, "hash", &c->runs[i].hash));
    }
    return GHP_OK;
}

static enum ghp_status read_factors(const struct ghp_node *array, struct ghp_calibration *c)
{
    static const char *const keys[] = {"term",         "factor",   "extra_s",
                                       "instructions", "weight_s", NULL};
    struct ghp_node item;

    for (int i = 0; i < c->n_factors; ++i) {
        struct ghp_calibration_factor *f = &c->factors[i];

        GHP_TRY(ghp_json_item(array, (size_t)i, &item));
        GHP_TRY(ghp_json_only_keys(&item, keys));
        GHP_TRY(ghp_json_text(&item, "term", &f->term));
        GHP_TRY(ghp_json_real(&item, "factor", 1 / MAX_FACTOR, MAX_FACTOR, &f->factor));
        GHP_TRY(ghp_json_real(&item, "extra_s", -MAX_SECONDS, MAX_SECONDS, &f->extra_s));
        GHP_TRY(ghp_json_int(&item, "instructions", 1, INT64_MAX, &f->n));
        GHP_TRY(ghp_json_real(&item, "weight_s", 0, MAX_SECONDS, &f->weight_s));
    }
    return GHP_OK;
}

static enum ghp_status read_fields(const struct ghp_node *at, struct ghp_calibration *c,
                                   const struct ghp_node *runs, const struct ghp_node *factors)
{
    GHP_TRY(ghp_json_text(at, "created", &c->created));
    GHP_TRY(ghp_embed_hash(at, "profile_hash", &c->profile_hash));
    GHP_TRY(ghp_json_real(at, "instruction_s", 0, MAX_SECONDS, &c->instruction_s));
    GHP_TRY(ghp_json_real(at, "exchange_s", 0, MAX_SECONDS, &c->exchange_s));
    GHP_TRY(ghp_json_real(at, "reduction_s", 0, MAX_SECONDS, &c->reduction_s));
    GHP_TRY(read_error(at, "error_before", &c->before));
    GHP_TRY(read_error(at, "error_after", &c->after));
    c->validated = ghp_json_has(at, "error_held_out");
    if (c->validated) GHP_TRY(read_error(at, "error_held_out", &c->held_out));
    GHP_TRY(read_runs(runs, c));
    return read_factors(factors, c);
}

enum ghp_status ghp_calibration_read(const struct ghp_node *at,
                                     struct ghp_calibration **calibration)
{
    static const char *const keys[] = {"created",
                                       "profile_hash",
                                       "instruction_s",
                                       "exchange_s",
                                       "reduction_s",
                                       "error_before",
                                       "error_after",
                                       "error_held_out",
                                       "runs",
                                       "factors",
                                       NULL};
    struct ghp_node runs, factors;
    struct ghp_calibration *c;
    enum ghp_status status;
    size_t n_runs, n_factors;

    *calibration = NULL;
    GHP_TRY(ghp_json_only_keys(at, keys));
    GHP_TRY(ghp_json_array(at, "runs", &runs, &n_runs));
    GHP_TRY(ghp_json_array(at, "factors", &factors, &n_factors));
    if (n_runs > INT16_MAX || n_factors > INT16_MAX)
        return ghp_json_fail(at, GHP_ERR_INPUT, "more than %d runs or factors; calibrate again",
                             INT16_MAX);
    c = ghp_calibration_open((int)n_runs, (int)n_factors);
    if (c == NULL) return GHP_NO_MEMORY();
    status = read_fields(at, c, &runs, &factors);
    if (status == GHP_OK)
        *calibration = c;
    else
        ghp_calibration_close(c);
    return status;
}
