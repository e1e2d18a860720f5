/* core/sharding/stage_check.c - whether a staging can be, and if not, what would do. */
#include "core/base/units.h"
#include "core/sharding/stage.h"

#include <inttypes.h>
#include <stdio.h>

/* Checks that a chunk, which is `what` of number `i`, starts after the one before, at a layer that a cut may stand
 * before. */
static enum ghp_status check_start(const struct ghp_model *model, const char *what, int i,
                                   int first, int before)
{
    if (i == 0 ? first != 0 : first <= before || first >= model->n_layers)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%s %d starts at layer %d; stages start at layer 0, then each after "
                        "the one before, below %d",
                        what, i, first, model->n_layers);
    int sharer = i > 0 ? ghp_stage_parts_sharers(model, first) : -1;

    if (sharer >= 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%s %d cannot start at '%s', for '%s' and '%s' share parameters and have "
                        "to lie in one stage; cut before or after both",
                        what, i, model->layers[first].name, model->layers[sharer].name,
                        model->layers[ghp_model_owner(model, sharer)].name);
    if (i > 0 && !ghp_stage_may_start(model, first))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%s %d cannot start at '%s', which works in place on the tensor "
                        "before it; cut before a layer that makes its own",
                        what, i, model->layers[first].name);
    return GHP_OK;
}

/* Interleaved is several chunks a stage, and micro-batches in rounds of as many as there are stages. */
static enum ghp_status check_chunks(const struct ghp_staging *s, const struct ghp_model *model)
{
    int u = ghp_staging_micro_batches(s), before;

    if (s->chunks < 2 && s->pipeline != GHP_PIPELINE_INTERLEAVED) return GHP_OK;
    if (s->chunks < 2)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the schedule 'interleaved' wants several parts of the network a stage; "
                        "name the first layers of the further ones in --stages (such as "
                        "1,conv3:1,conv5,fc6), or use --pipeline-schedule 1f1b");
    if (s->n < 2)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "one stage cannot have %d parts of the network; use two or "
                        "more stages",
                        s->chunks);
    if (s->pipeline != GHP_PIPELINE_INTERLEAVED)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "stages of %d parts each have no schedule '%s'; use --pipeline-schedule "
                        "interleaved, or name one layer a stage in --stages",
                        s->chunks, ghp_pipeline_names[s->pipeline]);
    if (s->chunks > GHP_MAX_STAGE_CHUNKS)
        return GHP_FAIL(GHP_ERR_INPUT, "%d parts a stage are too many; use at most %d", s->chunks,
                        GHP_MAX_STAGE_CHUNKS);
    if (u % s->n != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the schedule 'interleaved' takes micro-batches in rounds of as many as "
                        "there are stages, and %d are not a multiple of %d; use a multiple",
                        u, s->n);
    if (2 * u * s->chunks > GHP_MAX_SCHEDULE_STEPS)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%d micro-batches of %d parts a stage are too many; use at most %d "
                        "micro-batches",
                        u, s->chunks, GHP_MAX_SCHEDULE_STEPS / (2 * s->chunks) / s->n * s->n);
    before = s->stage[s->n - 1].first_layer;
    for (int k = 0; k < s->n * (s->chunks - 1); k++) {
        GHP_TRY(check_start(model, "part", s->n + k, s->later_chunk[k], before));
        before = s->later_chunk[k];
    }
    return GHP_OK;
}

static enum ghp_status check_stages(const struct ghp_staging *s, const struct ghp_model *model,
                                    struct ghp_problem whole)
{
    int group = ghp_staging_group(s, whole.workers);

    if (s->n > GHP_MAX_STAGES)
        return GHP_FAIL(GHP_ERR_INPUT, "%d stages are too many; use at most %d", s->n,
                        GHP_MAX_STAGES);
    for (int i = 0; i < s->n; i++) {
        const struct ghp_stage *stage = &s->stage[i];

        if (stage->workers < 1)
            return GHP_FAIL(GHP_ERR_INPUT, "stage %d has %d workers; give it at least one", i,
                            stage->workers);
        GHP_TRY(check_start(model, "stage", i, stage->first_layer,
                            i > 0 ? s->stage[i - 1].first_layer : -1));
        if (stage->block_size < 0 ||
            (stage->block_size > 0 && stage->workers % stage->block_size != 0))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "stage %d deals samples to blocks of %d of its %d workers; use a "
                            "divisor",
                            i, stage->block_size, stage->workers);
    }
    if (whole.workers % group != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "stages of %d workers together do not fit %d workers; make their sum a "
                        "divisor",
                        group, whole.workers);
    return GHP_OK;
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    return a / ghp_gcd(a, b) * b;
}

/* The least batch, not below this one, that deals each group whole blocks and each worker of a stage a sample; without
 * stages each worker samples of each micro-batch.
 *
 * parts   micro-batches times groups */
static int64_t fitting_batch(const struct ghp_staging *s, struct ghp_problem whole, int64_t parts)
{
    int64_t unit = s->n < 2 ? whole.workers : 1, least = whole.global_batch;

    for (int i = 0; i < s->n; i++) {
        unit = common_multiple(unit, ghp_stage_block_size(&s->stage[i]));
        if (s->stage[i].workers * parts > least) least = s->stage[i].workers * parts;
    }
    unit = common_multiple(unit * parts, whole.workers);
    return (least + unit - 1) / unit * unit;
}

static int groups_of(const struct ghp_staging *s, struct ghp_problem whole)
{
    return s->n > 1 ? whole.workers / ghp_staging_group(s, whole.workers) : 1;
}

/* Every worker of every stage must get a sample, and blocks whole units. */
static enum ghp_status check_dealing(const struct ghp_staging *s, struct ghp_problem whole)
{
    int groups = groups_of(s, whole), u = ghp_staging_micro_batches(s);
    int64_t samples = whole.global_batch / u / groups;

    if (whole.global_batch % ((int64_t)u * groups) != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "a batch of %" PRId64 " does not divide into %d micro-batches of %d "
                        "groups; use another number of micro-batches",
                        whole.global_batch, u, groups);
    for (int i = 0; i < s->n; i++) {
        int64_t block_size = ghp_stage_block_size(&s->stage[i]);

        if (samples % block_size != 0 || samples < s->stage[i].workers)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "%" PRId64 " samples of a group's micro-batch cannot be dealt to the "
                            "%d workers of stage %d in blocks of %" PRId64
                            "; use fewer workers or micro-batches, or a batch of %" PRId64,
                            samples, s->stage[i].workers, i, block_size,
                            fitting_batch(s, whole, (int64_t)u * groups));
    }
    return GHP_OK;
}

/* Listed shares: every worker has one, and all stages of a group hold the same samples. */
static enum ghp_status check_shares(const struct ghp_staging *s, struct ghp_problem whole)
{
    int group = ghp_staging_group(s, whole.workers), stages = ghp_staging_stages(s);
    int64_t sum = 0, micro_batch = whole.global_batch / ghp_staging_micro_batches(s);

    for (int first = 0; first < whole.workers; first += group) {
        int64_t held = -1;

        for (int i = 0, r = first; i < stages; i++) {
            int64_t own = 0;

            for (int k = 0; k < (stages == 1 ? group : s->stage[i].workers); k++, r++) {
                if (s->shares[r] < 1)
                    return GHP_FAIL(GHP_ERR_INPUT,
                                    "worker %d has a share of %" PRId64
                                    " samples; give each at least one",
                                    r, s->shares[r]);
                own += s->shares[r];
            }
            if (held >= 0 && own != held)
                return GHP_FAIL(GHP_ERR_INPUT,
                                "the shares of the stages of ranks %d to %d sum to %" PRId64
                                " and %" PRId64 "; every stage of a group has the same samples",
                                first, first + group - 1, held, own);
            held = own;
        }
        sum += held;
    }
    if (sum != micro_batch)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the shares sum to %" PRId64 " samples, a micro-batch has %" PRId64
                        "; make them equal",
                        sum, micro_batch);
    return GHP_OK;
}

/* Whether shares differ between workers of a stage. */
static bool is_uneven(const struct ghp_staging *s, struct ghp_problem whole)
{
    if (s->shares != NULL) {
        for (int r = 1; r < whole.workers && s->n < 2; r++)
            if (s->shares[r] != s->shares[0]) return true;
        return s->n > 1;
    }
    for (int i = 0; i < s->n && s->n > 1; i++)
        if (s->stage[i].block_size > 0 && s->stage[i].block_size < s->stage[i].workers) return true;
    return false;
}

static enum ghp_status check_norms(const struct ghp_staging *s, const struct ghp_model *model,
                                   struct ghp_problem whole)
{
    for (int l = 0; l < model->n_layers; l++) {
        const struct ghp_layer *layer = &model->layers[l];

        if (!ghp_op_of(layer->op)->has_batch_statistics || layer->norm.local_stats) continue;
        if (layer->norm.ghost_batch == 0 && ghp_staging_micro_batches(s) > 1)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "layer '%s' takes its statistics over the global batch, which %d "
                            "micro-batches do not have at once; use one, or give it "
                            "\"statistics\": \"local:S\" (of each S samples)",
                            layer->name, ghp_staging_micro_batches(s));
        if (layer->norm.ghost_batch > 0 && is_uneven(s, whole))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "layer '%s' takes statistics of each %" PRId64
                            " samples, which unequal shares would cut; use equal shares",
                            layer->name, layer->norm.ghost_batch);
    }
    return GHP_OK;
}

/* Whether u micro-batches can be dealt to all workers. */
static bool deals(const struct ghp_staging *s, struct ghp_problem whole, int u)
{
    int groups = groups_of(s, whole);
    int64_t samples = whole.global_batch / u / groups;

    if (samples == 0 || whole.global_batch % ((int64_t)u * groups) != 0) return false;
    if (s->n < 2) return samples % whole.workers == 0 || whole.workers % samples == 0;
    for (int i = 0; i < s->n; i++)
        if (samples % ghp_stage_block_size(&s->stage[i]) != 0 || samples < s->stage[i].workers)
            return false;
    return s->pipeline != GHP_PIPELINE_INTERLEAVED || u % s->n == 0;
}

/* The next smaller number of micro-batches that can be dealt, or else the next larger one; 0: none. */
static int fitting_micro_batches(const struct ghp_staging *s, struct ghp_problem whole)
{
    int u = ghp_staging_micro_batches(s), v = u - 1;

    while (v > 0 && !deals(s, whole, v))
        v--;
    if (v > 0) return v;
    for (v = u + 1; v <= GHP_MAX_MICRO_BATCHES && v <= whole.global_batch; v++)
        if (deals(s, whole, v)) return v;
    return 0;
}

static enum ghp_status check_micro_batches(const struct ghp_staging *s, struct ghp_problem whole)
{
    int u = ghp_staging_micro_batches(s), other;
    char use[48] = "";

    if (u > GHP_MAX_MICRO_BATCHES)
        return GHP_FAIL(GHP_ERR_INPUT, "%d micro-batches are too many; use at most %d", u,
                        GHP_MAX_MICRO_BATCHES);
    if (whole.global_batch % u == 0 && (s->n > 1 || s->shares != NULL || deals(s, whole, u)))
        return GHP_OK;
    other = fitting_micro_batches(s, whole);
    if (other > 0) snprintf(use, sizeof use, "%d micro-batch%s, or ", other, other > 1 ? "es" : "");
    return GHP_FAIL(GHP_ERR_INPUT,
                    "a batch of %" PRId64 " does not divide into %d micro-batches for %d worker%s; "
                    "use %sa batch of %" PRId64,
                    whole.global_batch, u, whole.workers, ghp_plural(whole.workers), use,
                    fitting_batch(s, whole, (int64_t)u * groups_of(s, whole)));
}

enum ghp_status ghp_staging_check(const struct ghp_staging *s, const struct ghp_model *model,
                                  struct ghp_problem whole)
{
    if (ghp_staging_trivial(s)) return GHP_OK;
    if (s->n > 1) GHP_TRY(check_stages(s, model, whole));
    GHP_TRY(check_chunks(s, model));
    GHP_TRY(check_micro_batches(s, whole));
    if (s->shares != NULL)
        GHP_TRY(check_shares(s, whole));
    else if (s->n > 1)
        GHP_TRY(check_dealing(s, whole));
    for (int l = 0; l < model->n_layers && s->recompute != NULL; l++) {
        if (s->recompute[l] && !ghp_stage_may_recompute(&model->layers[l]))
            return GHP_FAIL(
                GHP_ERR_INPUT,
                "layer '%s' (%s) cannot be recomputed in the backward pass; mark only layers "
                "that make a tensor of their own, no input, batch_norm or loss",
                model->layers[l].name, ghp_op_name(model->layers[l].op));
    }
    return check_norms(s, model, whole);
}

enum ghp_status ghp_staging_check_tied(const struct ghp_staging *staging,
                                       const struct ghp_model *model,
                                       const struct ghp_split *splits)
{
    GHP_TRY(ghp_split_check_tied(model, splits));
    for (int v = 0; v < model->n_layers; v++) {
        int owner = ghp_model_owner(model, v), tp_size = splits[v].tp_size;

        if (owner == v || ghp_stage_partner_takes(model, staging, v, tp_size)) continue;
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layers '%s' and '%s' share parameters over %d workers, but their stages "
                        "have %d and %d of each group; use a divisor of both",
                        model->layers[v].name, model->layers[owner].name, tp_size,
                        staging->stage[ghp_stage_of(staging, v)].workers,
                        staging->stage[ghp_stage_of(staging, owner)].workers);
    }
    return GHP_OK;
}
