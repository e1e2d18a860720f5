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

bool ghp_staging_recomputes(const struct ghp_staging *s, int layer)
{
    return s != NULL && s->recompute != NULL && s->recompute[layer];
}

int ghp_staging_group(const struct ghp_staging *s, int workers)
{
    int sum = 0;

    if (ghp_staging_stages(s) == 1) return workers;
    for (int i = 0; i < s->n; i++)
        sum += s->stage[i].workers;
    return sum;
}

int ghp_stage_of(const struct ghp_staging *s, int layer)
{
    int i = ghp_staging_stages(s) - 1;

    while (i > 0 && layer < s->stage[i].first_layer)
        i--;
    return i;
}

int ghp_stage_end(const struct ghp_staging *s, int stage, int n_layers)
{
    return stage + 1 < ghp_staging_stages(s) ? s->stage[stage + 1].first_layer : n_layers;
}

bool ghp_stage_may_recompute(const struct ghp_layer *layer)
{
    return layer->op != GHP_OP_INPUT && layer->op != GHP_OP_BATCH_NORM &&
           layer->op != GHP_OP_SOFTMAX_CE && !ghp_op_in_place(layer);
}

bool ghp_stage_may_start(const struct ghp_model *model, int layer)
{
    return layer > 0 && layer < model->n_layers && !ghp_op_in_place(&model->layers[layer]);
}

int ghp_stage_in_flight(const struct ghp_staging *s, int stage)
{
    int u = ghp_staging_micro_batches(s), later = ghp_staging_stages(s) - stage;

    return s != NULL && s->pipeline == GHP_PIPELINE_FILL_DRAIN ? u : u < later ? u : later;
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

/* The dealing of a group's samples to a stage's blocks: each gets `least` units of D samples, the first `more` one more. */
struct dealing {
    int64_t least, more;
};

static struct dealing dealing_of(const struct ghp_stage *stage, int64_t samples)
{
    int64_t d = ghp_stage_grain(stage), blocks = stage->workers / d, units = samples / d;

    return (struct dealing){.least = units / blocks, .more = units % blocks};
}

/* Share and first sample (from the group's first on) of the k-th worker of a stage. */
static void deal(const struct ghp_stage *stage, int64_t samples, int k, struct ghp_seat *seat)
{
    struct dealing d = dealing_of(stage, samples);
    int64_t grain = ghp_stage_grain(stage), block = k / grain;
    int64_t share = d.least + (block < d.more ? 1 : 0);
    int64_t before = block * d.least + (block < d.more ? block : d.more); /* units */

    seat->first_sample += before * grain + k % grain * share;
    seat->extent.global_batch = share * seat->extent.workers;
}

/* The same from a list: ranks `first` .. are the stage's in the group. */
static void deal_by_list(const int64_t *shares, int first, int k, struct ghp_seat *seat)
{
    for (int i = 0; i < k; i++)
        seat->first_sample += shares[first + i];
    seat->extent.global_batch = shares[first + k] * seat->extent.workers;
}

/* One stage: all workers are one list. */
static struct ghp_seat lone_seat(const struct ghp_staging *s, int n_layers, struct ghp_extent whole,
                                 int rank)
{
    struct ghp_seat seat = {.n_stages = 1, .end_layer = n_layers, .number = rank, .extent = whole};

    seat.micro_batch = whole.global_batch / ghp_staging_micro_batches(s);
    seat.extent.global_batch = seat.micro_batch;
    if (s != NULL && s->shares != NULL)
        deal_by_list(s->shares, 0, rank, &seat);
    else
        seat.first_sample = rank * (seat.micro_batch / whole.workers);
    return seat;
}

static struct ghp_seat place_of(const struct ghp_staging *s, int n_layers, struct ghp_extent whole,
                                int rank)
{
    struct ghp_seat seat = {0};
    int group, place, groups, from = 0, i = 0;
    int64_t samples;

    if (ghp_staging_stages(s) == 1) return lone_seat(s, n_layers, whole, rank);
    group = ghp_staging_group(s, whole.workers);
    groups = whole.workers / group;
    place = rank % group;
    while (place >= from + s->stage[i].workers)
        from += s->stage[i++].workers;
    seat = (struct ghp_seat){.stage = i,
                             .n_stages = s->n,
                             .first_layer = s->stage[i].first_layer,
                             .end_layer = ghp_stage_end(s, i, n_layers),
                             .number = rank / group * s->stage[i].workers + place - from,
                             .extent = {.workers = groups * s->stage[i].workers},
                             .micro_batch = whole.global_batch / ghp_staging_micro_batches(s),
                             .held = s->stage[i].workers,
                             .group = group,
                             .from = from};
    if (s->shares != NULL) {
        for (int g = 0; g < rank / group; g++)
            for (int k = 0; k < s->stage[i].workers; k++)
                seat.first_sample += s->shares[g * group + from + k];
        deal_by_list(s->shares, rank / group * group + from, place - from, &seat);
        return seat;
    }
    samples = seat.micro_batch / groups;
    seat.first_sample = rank / group * samples;
    deal(&s->stage[i], samples, place - from, &seat);
    return seat;
}

static double speed_of(const struct ghp_staging *s, int rank)
{
    return s != NULL && s->shares != NULL && s->speeds != NULL ? s->speeds[rank] : 1;
}

struct ghp_seat ghp_seat_of(const struct ghp_staging *s, int n_layers, struct ghp_extent whole,
                            int rank)
{
    struct ghp_seat seat = place_of(s, n_layers, whole, rank);

    seat.speed = speed_of(s, rank);
    return seat;
}

/* Whether rank a needs longer for its share than b: of equals the slower worker, whatever has a fixed price. */
static bool needs_longer(const struct ghp_staging *s, int a, int b)
{
    double x = (double)s->shares[a] / speed_of(s, a), y = (double)s->shares[b] / speed_of(s, b);

    if (x > y || x < y) return x > y;
    return speed_of(s, a) < speed_of(s, b);
}

int ghp_stage_representative(const struct ghp_staging *s, int stage, struct ghp_extent whole)
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

int ghp_stage_fullest(const struct ghp_staging *s, int stage, struct ghp_extent whole)
{
    struct ghp_staging alike;

    if (s == NULL) return ghp_stage_representative(s, stage, whole);
    alike = *s;
    alike.speeds = NULL;
    return ghp_stage_representative(&alike, stage, whole);
}

bool ghp_stage_takes_degree(const struct ghp_staging *s, int stage, struct ghp_extent whole,
                            int degree)
{
    bool alone = ghp_staging_stages(s) == 1;
    int group = ghp_staging_group(s, whole.workers);
    int from = alone ? 0 : workers_before(s, stage);
    int held = alone ? whole.workers : s->stage[stage].workers;

    if (held % degree != 0) return false;
    if (s == NULL || degree == 1) return true;
    if (s->shares == NULL) return alone || ghp_stage_grain(&s->stage[stage]) % degree == 0;
    for (int first = from; first < whole.workers; first += group)
        for (int k = 0; k < held; k++)
            if (s->shares[first + k] != s->shares[first + k / degree * degree]) return false;
    return true;
}

int ghp_stage_holder(const struct ghp_staging *s, int stage, int group, struct ghp_extent whole,
                     int64_t sample)
{
    const struct ghp_stage *st = &s->stage[stage];
    int size = ghp_staging_group(s, whole.workers), k = 0;
    int64_t grain, units, block, share;
    struct dealing d;

    if (s->shares != NULL) {
        int first = group * size + workers_before(s, stage);

        while (k + 1 < st->workers && sample >= s->shares[first + k])
            sample -= s->shares[first + k++];
        return k;
    }
    d = dealing_of(st, whole.global_batch / ghp_staging_micro_batches(s) / (whole.workers / size));
    grain = ghp_stage_grain(st);
    units = sample / grain;
    block = units < d.more * (d.least + 1) ? units / (d.least + 1)
                                           : d.more + (units - d.more * (d.least + 1)) / d.least;
    share = d.least + (block < d.more ? 1 : 0);
    sample -= (block * d.least + (block < d.more ? block : d.more)) * grain;
    return (int)(block * grain + sample / share);
}

struct ghp_window_at ghp_window_of(struct ghp_layout layout, int64_t channels,
                                   struct ghp_extent extent, int rank)
{
    struct ghp_window_at at = {.samples = ghp_layout_samples(layout, extent),
                               .channels = ghp_layout_channels(layout, channels)};

    at.first_sample = rank / layout.degree * at.samples;
    if (layout.kind == GHP_LAYOUT_CHANNEL) at.first_channel = rank % layout.degree * at.channels;
    return at;
}

struct ghp_window_at ghp_seat_window(const struct ghp_seat *seat, struct ghp_layout layout,
                                     int64_t channels)
{
    struct ghp_window_at at = ghp_window_of(layout, channels, seat->extent, seat->number);
    int64_t share = seat->extent.global_batch / seat->extent.workers;

    at.first_sample = seat->first_sample - seat->number % layout.degree * share;
    return at;
}

/* ---- ranks ---- */

struct ghp_ranks ghp_seat_ranks(const struct ghp_seat *seat, struct ghp_ranks ranks)
{
    ranks.held = seat->held;
    ranks.group = seat->group;
    ranks.from = seat->from;
    return ranks;
}

int ghp_ranks_at(struct ghp_ranks r, int i)
{
    int number = r.first + i * r.stride;

    return r.held == 0 ? number : number / r.held * r.group + r.from + number % r.held;
}

int ghp_ranks_index(struct ghp_ranks r, int rank)
{
    int number = rank;

    if (r.held > 0) {
        int place = rank % r.group - r.from;

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
    return a.count < 3 || (a.stride == b.stride && a.held == b.held && a.group == b.group);
}

/* ---- slots ---- */

int ghp_stage_slots(const struct ghp_staging *s, int stage, bool forward_only,
                    struct ghp_slot *slots)
{
    int u = ghp_staging_micro_batches(s), ahead = ghp_stage_in_flight(s, stage), n = 0, f = 0;

    if (forward_only) ahead = u;
    while (f < ahead)
        slots[n++] = (struct ghp_slot){.micro = f++};
    for (int b = 0; b < u && !forward_only; b++) {
        slots[n++] = (struct ghp_slot){.micro = b, .backward = true};
        if (f < u) slots[n++] = (struct ghp_slot){.micro = f++};
    }
    return n;
}

int ghp_image_readers(const struct ghp_model *model, const struct ghp_staging *staging, int layer,
                      int stage, int *carrier)
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
