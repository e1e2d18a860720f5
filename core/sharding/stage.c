/* core/sharding/stage.c - see stage.h. */
#include "core/sharding/stage.h"

const char *const ghp_pipeline_names[GHP_PIPELINE_COUNT + 1] = {
#define GHP_PIPELINE_NAME(id, text) text,
    GHP_PIPELINE_LIST(GHP_PIPELINE_NAME)
#undef GHP_PIPELINE_NAME
        NULL,
};

/* ---- the noun ---- */

int ghp_staging_stages(const struct ghp_staging *s)
{
    return s == NULL || s->n < 1 ? 1 : s->n;
}

int ghp_staging_micro_batches(const struct ghp_staging *s)
{
    return s == NULL || s->micro_batches < 1 ? 1 : s->micro_batches;
}

bool ghp_staging_trivial(const struct ghp_staging *s)
{
    return ghp_staging_stages(s) == 1 && ghp_staging_micro_batches(s) == 1 &&
           (s == NULL || (s->shares == NULL && s->recompute == NULL));
}

const struct ghp_staging *ghp_staging_or_none(const struct ghp_staging *staging)
{
    return ghp_staging_trivial(staging) ? NULL : staging;
}

int ghp_staging_group(const struct ghp_staging *s, int workers)
{
    int sum = 0;

    if (ghp_staging_stages(s) == 1) return workers;
    for (int i = 0; i < s->n; i++)
        sum += s->stage[i].workers;
    return sum;
}

int ghp_staging_chunks(const struct ghp_staging *s)
{
    int stages = ghp_staging_stages(s);

    return stages > 1 && s->chunks > 1 ? stages * s->chunks : stages;
}

static int first_of(const struct ghp_staging *s, int chunk)
{
    if (chunk == 0) return 0;
    return chunk < s->n ? s->stage[chunk].first_layer : s->later_chunk[chunk - s->n];
}

int ghp_chunk_of(const struct ghp_staging *s, int layer)
{
    int c = ghp_staging_chunks(s) - 1;

    while (c > 0 && layer < first_of(s, c))
        c--;
    return c;
}

struct ghp_layer_range ghp_chunk_range(const struct ghp_staging *s, int chunk, int n_layers)
{
    return (struct ghp_layer_range){
        first_of(s, chunk), chunk + 1 < ghp_staging_chunks(s) ? first_of(s, chunk + 1) : n_layers};
}

int ghp_stage_of(const struct ghp_staging *s, int layer)
{
    return ghp_chunk_of(s, layer) % ghp_staging_stages(s);
}

bool ghp_stage_keeps(const struct ghp_staging *staging, const struct ghp_model *model, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];
    int stage = ghp_stage_of(staging, layer);

    if (ghp_op_of(l->op)->is_input) return false;
    for (int i = 0; i < l->n_consumers; i++)
        if (ghp_stage_of(staging, model->edges[l->out_edges[i]].to) != stage) return false;
    return true;
}

bool ghp_stage_may_recompute(const struct ghp_layer *layer)
{
    return !ghp_op_of(layer->op)->runs_once && !ghp_op_in_place(layer);
}

bool ghp_stage_may_start(const struct ghp_model *model, int layer)
{
    return layer > 0 && layer < model->n_layers && !ghp_op_in_place(&model->layers[layer]) &&
           ghp_stage_parts_sharers(model, layer) < 0;
}

int ghp_stage_parts_sharers(const struct ghp_model *model, int layer)
{
    for (int v = layer; v < model->n_layers; v++)
        if (model->layers[v].by_data && ghp_model_owner(model, v) < layer) return v;
    return -1;
}

/* ---- who has which samples ---- */

/* Workers of the stages before, in a group. */
static int workers_before(const struct ghp_staging *s, int stage)
{
    int sum = 0;

    for (int i = 0; i < stage; i++)
        sum += s->stage[i].workers;
    return sum;
}

/* The dealing of a group's samples to a stage's blocks: each gets `least` units of D samples, the first `more` one
 * more. */
struct dealing {
    int64_t least, more;
};

static struct dealing dealing_of(const struct ghp_stage *stage, int64_t samples)
{
    int64_t d = ghp_stage_block_size(stage), blocks = stage->workers / d, units = samples / d;

    return (struct dealing){.least = units / blocks, .more = units % blocks};
}

/* Share and first sample (from the group's first on) of the k-th worker of a stage. */
static void deal(const struct ghp_stage *stage, int64_t samples, int k,
                 struct ghp_placement *placement)
{
    struct dealing d = dealing_of(stage, samples);
    int64_t block_size = ghp_stage_block_size(stage), block = k / block_size;
    int64_t share = d.least + (block < d.more ? 1 : 0);
    int64_t before = block * d.least + (block < d.more ? block : d.more); /* units */

    placement->first_sample += before * block_size + k % block_size * share;
    placement->problem.global_batch = share * placement->problem.workers;
}

/* The same from a list: ranks `first` .. are the stage's in the group. */
static void deal_by_list(const int64_t *shares, int first, int k, struct ghp_placement *placement)
{
    for (int i = 0; i < k; i++)
        placement->first_sample += shares[first + i];
    placement->problem.global_batch = shares[first + k] * placement->problem.workers;
}

/* One stage: all workers are one list. */
static struct ghp_placement single_placement(const struct ghp_staging *s, int n_layers,
                                             struct ghp_problem whole, int rank)
{
    struct ghp_placement placement = {
        .n_stages = 1, .n_chunks = 1, .chunk = {{0, n_layers}}, .number = rank, .problem = whole};

    placement.micro_batch = whole.global_batch / ghp_staging_micro_batches(s);
    placement.problem.global_batch = placement.micro_batch;
    if (s != NULL && s->shares != NULL)
        deal_by_list(s->shares, 0, rank, &placement);
    else
        placement.first_sample = rank * placement.micro_batch / whole.workers;
    return placement;
}

static struct ghp_placement place_of(const struct ghp_staging *s, int n_layers,
                                     struct ghp_problem whole, int rank)
{
    struct ghp_placement placement = {0};
    int group, place, groups, from = 0, i = 0;
    int64_t samples;

    if (ghp_staging_stages(s) == 1) return single_placement(s, n_layers, whole, rank);
    group = ghp_staging_group(s, whole.workers);
    groups = whole.workers / group;
    place = rank % group;
    while (place >= from + s->stage[i].workers)
        from += s->stage[i++].workers;
    placement =
        (struct ghp_placement){.stage = i,
                               .n_stages = s->n,
                               .number = rank / group * s->stage[i].workers + place - from,
                               .problem = {.workers = groups * s->stage[i].workers},
                               .micro_batch = whole.global_batch / ghp_staging_micro_batches(s),
                               .held = s->stage[i].workers,
                               .group = group,
                               .from = from};
    for (int c = i; c < ghp_staging_chunks(s); c += s->n)
        placement.chunk[placement.n_chunks++] = ghp_chunk_range(s, c, n_layers);
    if (s->shares != NULL) {
        for (int g = 0; g < rank / group; g++)
            for (int k = 0; k < s->stage[i].workers; k++)
                placement.first_sample += s->shares[g * group + from + k];
        deal_by_list(s->shares, rank / group * group + from, place - from, &placement);
        return placement;
    }
    samples = placement.micro_batch / groups;
    placement.first_sample = rank / group * samples;
    deal(&s->stage[i], samples, place - from, &placement);
    return placement;
}

bool ghp_placement_owns(const struct ghp_placement *placement, int layer)
{
    for (int c = 0; c < placement->n_chunks; c++)
        if (layer >= placement->chunk[c].first && layer < placement->chunk[c].end) return true;
    return false;
}

int ghp_placement_first(const struct ghp_placement *placement)
{
    return placement->chunk[0].first;
}

int ghp_placement_end(const struct ghp_placement *placement)
{
    return placement->chunk[placement->n_chunks - 1].end;
}

static double speed_of(const struct ghp_staging *s, int rank)
{
    return s != NULL && s->shares != NULL && s->speeds != NULL ? s->speeds[rank] : 1;
}

struct ghp_placement ghp_placement_of(const struct ghp_staging *s, int n_layers,
                                      struct ghp_problem whole, int rank)
{
    struct ghp_placement placement = place_of(s, n_layers, whole, rank);

    placement.speed = speed_of(s, rank);
    return placement;
}

/* Whether rank a needs longer for its share than b: of equals the slower worker, whatever has a fixed cost. */
static bool needs_longer(const struct ghp_staging *s, int a, int b)
{
    double x = (double)s->shares[a] / speed_of(s, a), y = (double)s->shares[b] / speed_of(s, b);

    if (x > y || x < y) return x > y;
    return speed_of(s, a) < speed_of(s, b);
}

int ghp_stage_representative(const struct ghp_staging *s, int stage, struct ghp_problem whole)
{
    bool alone = ghp_staging_stages(s) == 1;
    int first = alone ? 0 : workers_before(s, stage), best = first;
    int n = alone ? whole.workers : s->stage[stage].workers;
    int group = ghp_staging_group(s, whole.workers);

    if (s == NULL || s->shares == NULL) return best;
    for (int from = first; from < whole.workers; from += group)
        for (int k = 0; k < n; k++)
            if (needs_longer(s, from + k, best)) best = from + k;
    return best;
}

int ghp_stage_fullest(const struct ghp_staging *s, int stage, struct ghp_problem whole)
{
    struct ghp_staging alike;

    if (s == NULL) return ghp_stage_representative(s, stage, whole);
    alike = *s;
    alike.speeds = NULL;
    return ghp_stage_representative(&alike, stage, whole);
}

bool ghp_stage_takes_tp_size(const struct ghp_staging *s, int stage, struct ghp_problem whole,
                             int tp_size)
{
    bool alone = ghp_staging_stages(s) == 1;
    int group = ghp_staging_group(s, whole.workers);
    int from = alone ? 0 : workers_before(s, stage);
    int held = alone ? whole.workers : s->stage[stage].workers;

    if (held % tp_size != 0) return false;
    if (s == NULL || tp_size == 1) return true;
    if (s->shares == NULL) return alone || ghp_stage_block_size(&s->stage[stage]) % tp_size == 0;
    for (int first = from; first < whole.workers; first += group)
        for (int k = 0; k < held; k++)
            if (s->shares[first + k] != s->shares[first + k / tp_size * tp_size]) return false;
    return true;
}

int ghp_stage_worker_of(const struct ghp_staging *s, int stage, int group, struct ghp_problem whole,
                        int64_t sample)
{
    const struct ghp_stage *st = &s->stage[stage];
    int size = ghp_staging_group(s, whole.workers), k = 0;
    int64_t block_size, units, block, share;
    struct dealing d;

    if (s->shares != NULL) {
        int first = group * size + workers_before(s, stage);

        while (k + 1 < st->workers && sample >= s->shares[first + k])
            sample -= s->shares[first + k++];
        return k;
    }
    d = dealing_of(st, whole.global_batch / ghp_staging_micro_batches(s) / (whole.workers / size));
    block_size = ghp_stage_block_size(st);
    units = sample / block_size;
    block = units < d.more * (d.least + 1) ? units / (d.least + 1)
                                           : d.more + (units - d.more * (d.least + 1)) / d.least;
    share = d.least + (block < d.more ? 1 : 0);
    sample -= (block * d.least + (block < d.more ? block : d.more)) * block_size;
    return (int)(block * block_size + sample / share);
}

struct ghp_region ghp_region_of(struct ghp_layout layout, struct ghp_shape shape,
                                struct ghp_problem problem, int rank)
{
    struct ghp_region at = {.samples = ghp_layout_samples(layout, problem),
                            .positions = ghp_layout_positions(layout, shape.h),
                            .channels = ghp_layout_channels(layout, ghp_shape_columns(shape))};
    int member = rank % layout.tp_size;

    at.first_sample = rank / layout.tp_size * at.samples;
    if (layout.kind == GHP_LAYOUT_CHANNEL) at.first_channel = member * at.channels;
    if (layout.kind == GHP_LAYOUT_SEQUENCE) at.first_position = member * at.positions;
    return at;
}

struct ghp_region ghp_placement_region(const struct ghp_placement *placement,
                                       struct ghp_layout layout, struct ghp_shape shape)
{
    struct ghp_region at = ghp_region_of(layout, shape, placement->problem, placement->number);
    int64_t share = placement->problem.global_batch / placement->problem.workers;

    at.first_sample = placement->first_sample - placement->number % layout.tp_size * share;
    return at;
}

/* ---- ranks ---- */

struct ghp_ranks ghp_placement_ranks(const struct ghp_placement *placement, struct ghp_ranks ranks)
{
    ranks.held = placement->held;
    ranks.group = placement->group;
    ranks.from = placement->from;
    return ranks;
}

int ghp_ranks_at(struct ghp_ranks r, int i)
{
    int number = r.first + i * r.stride, place;

    if (r.held == 0) return number;
    place = number % r.held;
    return number / r.held * r.group + r.from + place + (place >= r.part ? r.skip : 0);
}

int ghp_ranks_index(struct ghp_ranks r, int rank)
{
    int number = rank;

    if (r.held > 0) {
        int place = rank % r.group - r.from;

        if (r.skip > 0 && place >= r.part) place = place < r.part + r.skip ? -1 : place - r.skip;
        if (place < 0 || place >= r.held) return -1;
        number = rank / r.group * r.held + place;
    }
    number -= r.first;
    if (number < 0 || number % r.stride != 0 || number / r.stride >= r.count) return -1;
    return number / r.stride;
}

bool ghp_ranks_same(struct ghp_ranks a, struct ghp_ranks b)
{
    if (a.count != b.count) return false;
    for (int i = 0; i<a.count; i += a.count> 1 ? a.count - 1 : 1)
        if (ghp_ranks_at(a, i) != ghp_ranks_at(b, i)) return false;
    return a.count < 3 || (a.stride == b.stride && a.held == b.held && a.group == b.group &&
                           a.part == b.part && a.skip == b.skip);
}

/* ---- parameters of two stages ---- */

/* The first layer with the same parameters in another stage, or another chunk; -1: there is none. */
static int sharer_of(const struct ghp_model *model, const struct ghp_staging *staging, int layer,
                     int part_of(const struct ghp_staging *staging, int layer))
{
    const struct ghp_layer *l = &model->layers[layer];
    int owner = ghp_model_owner(model, layer);

    if (ghp_staging_stages(staging) == 1 || (l->tied == 0 && !l->shared)) return -1;
    for (int v = owner; v < model->n_layers; v++)
        if (ghp_model_owner(model, v) == owner && part_of(staging, v) != part_of(staging, layer))
            return v;
    return -1;
}

int ghp_stage_partner(const struct ghp_model *model, const struct ghp_staging *staging, int layer)
{
    return sharer_of(model, staging, layer, ghp_stage_of);
}

struct ghp_ranks ghp_stage_partner_ranks(const struct ghp_staging *s,
                                         const struct ghp_placement *placement, const int stages[2],
                                         int tp_size)
{
    int a = stages[0], b = stages[1];
    int front = s->stage[a].workers, held = front + s->stage[b].workers;
    int place = placement->number % placement->held + (placement->stage == b ? front : 0);
    int number = placement->number / placement->held * held + place;
    int all = placement->problem.workers / placement->held * held;

    return (struct ghp_ranks){.first = number % tp_size,
                              .count = all / tp_size,
                              .stride = tp_size,
                              .held = held,
                              .group = placement->group,
                              .from = workers_before(s, a),
                              .part = front,
                              .skip = workers_before(s, b) - workers_before(s, a) - front};
}

bool ghp_stage_partner_takes(const struct ghp_model *model, const struct ghp_staging *staging,
                             int layer, int tp_size)
{
    int partner = ghp_stage_partner(model, staging, layer);

    return partner < 0 || (staging->stage[ghp_stage_of(staging, layer)].workers % tp_size == 0 &&
                           staging->stage[ghp_stage_of(staging, partner)].workers % tp_size == 0);
}

/* ---- weight gradients, readers ---- */

bool ghp_staging_defers_weights(const struct ghp_staging *s)
{
    return s != NULL && s->n > 1 && s->pipeline == GHP_PIPELINE_ZB_H1;
}

int ghp_remote_activation_readers(const struct ghp_model *model, const struct ghp_staging *staging,
                                  int layer, int stage, int *carrier)
{
    const struct ghp_layer *l = &model->layers[layer];
    int n = 0;

    *carrier = -1;
    for (int i = 0; i < l->n_consumers; i++) {
        int edge = l->out_edges[i];

        if (ghp_stage_of(staging, model->edges[edge].to) != stage) continue;
        n++;
        if (*carrier < 0 || edge < *carrier) *carrier = edge; /* edges are numbered by consumer */
    }
    return n;
}

enum ghp_status ghp_stage_check_sharding(const struct ghp_model *model,
                                         const struct ghp_staging *staging, int layer,
                                         struct ghp_split split)
{
    const char *name = ghp_param_sharding_names[split.sharding];

    if (split.sharding == GHP_SHARDING_NONE) return GHP_OK;
    if (ghp_stage_partner(model, staging, layer) >= 0)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "layer '%s' shares its parameters with another stage, so they cannot be "
            "sharded by '%s'; leave its \"shard\" or '+%s' out, or have both in one stage",
            model->layers[layer].name, name, name);
    /* between a micro-batch's two gradients the stage makes those of others */
    if (ghp_sharding_reduces_each(split.sharding) &&
        sharer_of(model, staging, layer, ghp_chunk_of) >= 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "two chunks of a stage have the parameters of layer '%s', so their "
                        "gradients cannot be sharded by '%s' with each micro-batch; use step, or "
                        "leave its \"shard\" or '+%s' out",
                        model->layers[layer].name, name, name);
    if (staging == NULL || !ghp_staging_defers_weights(staging)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the schedule '%s' defers weight gradients, and those of layer '%s' are "
                    "sharded by '%s'; use --pipeline-schedule 1f1b, or --shard none",
                    ghp_pipeline_names[staging->pipeline], model->layers[layer].name, name);
}

static bool can_shard(const struct ghp_sharding_place *at, struct ghp_split split)
{
    return split.sharding == GHP_SHARDING_NONE ||
           (ghp_stage_check_sharding(at->model, at->staging, at->layer, split) == GHP_OK &&
            ghp_sharding_check(&at->model->layers[at->layer], split, at->problem) == GHP_OK);
}

int ghp_stage_shardings(const struct ghp_sharding_place *place, unsigned offered,
                        struct ghp_split split, struct ghp_split variants[GHP_SHARDING_COUNT])
{
    int n = 0;

    if ((offered >> GHP_SHARDING_STEP & 1) != 0 && ghp_staging_micro_batches(place->staging) == 1)
        offered &= ~(1u << GHP_SHARDING_MICRO_BATCH);
    for (int i = 0; i < GHP_SHARDING_COUNT; i++) {
        split.sharding = (enum ghp_param_sharding)i;
        if ((offered >> i & 1) != 0 && can_shard(place, split)) variants[n++] = split;
    }
    split.sharding = GHP_SHARDING_NONE;
    if (n == 0) variants[n++] = split;
    return n;
}

void ghp_staging_shard(const struct ghp_staging *staging, const struct ghp_model *model,
                       struct ghp_problem whole, enum ghp_param_sharding sharding,
                       struct ghp_split *splits)
{
    for (int v = 0; v < model->n_layers; v++) {
        int rank = ghp_stage_representative(staging, ghp_stage_of(staging, v), whole);
        const struct ghp_sharding_place place = {
            model, staging, v, ghp_placement_of(staging, model->n_layers, whole, rank).problem};

        splits[v].sharding = sharding;
        if (!can_shard(&place, splits[v])) splits[v].sharding = GHP_SHARDING_NONE;
    }
}
