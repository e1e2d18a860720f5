/* core/sharding/split.c - splits, layouts and the changes between them, as tables. */
#include "core/sharding/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const split_names[] = {"data", "out",  "in",       "channel",
                                          "full", "rows", "position", "ring"};
const char *const ghp_param_sharding_synonyms[] = {
    "zero1", "--sync sharded", "zero2", "gradients", "zero3", "pass", "fsdp", "pass", NULL};
const char *const ghp_param_sharding_names[GHP_SHARDING_COUNT + 1] = {
    "none", "gradients", "step", "micro-batch", "pass", NULL};
static const char *const layout_names[] = {"batch", "channel", "full", "partial", "sequence"};

static const struct reshard_fact {
    const char *name;
    enum ghp_comm_op comm;
    bool packs;
} reshard_facts[GHP_RESHARD_OP_COUNT] = {
    [GHP_RESHARD_SLICE_BATCH] = {"slice batch", GHP_COMM_NONE, false},
    [GHP_RESHARD_SLICE_CHANNEL] = {"slice channels", GHP_COMM_NONE, true},
    [GHP_RESHARD_GATHER_BATCH] = {"all-gather batch", GHP_COMM_ALL_GATHER, false},
    [GHP_RESHARD_GATHER_CHANNEL] = {"all-gather channels", GHP_COMM_ALL_GATHER, true},
    [GHP_RESHARD_BATCH_TO_CHANNEL] = {"all-to-all to channels", GHP_COMM_ALL_TO_ALL, true},
    [GHP_RESHARD_CHANNEL_TO_BATCH] = {"all-to-all to batch", GHP_COMM_ALL_TO_ALL, true},
    [GHP_RESHARD_SUM_TO_BATCH] = {"reduce-scatter batch", GHP_COMM_REDUCE_SCATTER, false},
    [GHP_RESHARD_SUM_TO_CHANNEL] = {"reduce-scatter channels", GHP_COMM_REDUCE_SCATTER, true},
    [GHP_RESHARD_SUM_TO_FULL] = {"all-reduce", GHP_COMM_ALL_REDUCE, false},
    [GHP_RESHARD_SLICE_POSITION] = {"slice positions", GHP_COMM_NONE, true},
    [GHP_RESHARD_GATHER_POSITION] = {"all-gather positions", GHP_COMM_ALL_GATHER, true},
    [GHP_RESHARD_BATCH_TO_POSITION] = {"all-to-all to positions", GHP_COMM_ALL_TO_ALL, true},
    [GHP_RESHARD_POSITION_TO_BATCH] = {"all-to-all to batch", GHP_COMM_ALL_TO_ALL, true},
    [GHP_RESHARD_CHANNEL_TO_POSITION] = {"all-to-all to positions", GHP_COMM_ALL_TO_ALL, true},
    [GHP_RESHARD_POSITION_TO_CHANNEL] = {"all-to-all to channels", GHP_COMM_ALL_TO_ALL, true},
    [GHP_RESHARD_SUM_TO_POSITION] = {"reduce-scatter positions", GHP_COMM_REDUCE_SCATTER, true},
};

/* The one step between two layouts of one TP size (batch counts as any): [from][to], -1 if there is none. */
static const int direct_steps[GHP_LAYOUT_COUNT][GHP_LAYOUT_COUNT] = {
    /* to batch, channel, full, partial, sequence */
    [GHP_LAYOUT_BATCH] = {-1, GHP_RESHARD_BATCH_TO_CHANNEL, GHP_RESHARD_GATHER_BATCH, -1,
                          GHP_RESHARD_BATCH_TO_POSITION},
    [GHP_LAYOUT_CHANNEL] = {GHP_RESHARD_CHANNEL_TO_BATCH, -1, GHP_RESHARD_GATHER_CHANNEL, -1,
                            GHP_RESHARD_CHANNEL_TO_POSITION},
    [GHP_LAYOUT_FULL] = {GHP_RESHARD_SLICE_BATCH, GHP_RESHARD_SLICE_CHANNEL, -1, -1,
                         GHP_RESHARD_SLICE_POSITION},
    [GHP_LAYOUT_PARTIAL] = {GHP_RESHARD_SUM_TO_BATCH, GHP_RESHARD_SUM_TO_CHANNEL,
                            GHP_RESHARD_SUM_TO_FULL, -1, GHP_RESHARD_SUM_TO_POSITION},
    [GHP_LAYOUT_SEQUENCE] = {GHP_RESHARD_POSITION_TO_BATCH, GHP_RESHARD_POSITION_TO_CHANNEL,
                             GHP_RESHARD_GATHER_POSITION, -1, -1},
};

struct ghp_layouts ghp_split_layouts(struct ghp_split split)
{
    static const enum ghp_layout_kind kinds[GHP_SPLIT_COUNT][4] = {
        /* x, y, dy, dx */
        [GHP_SPLIT_DATA] = {GHP_LAYOUT_BATCH, GHP_LAYOUT_BATCH, GHP_LAYOUT_BATCH, GHP_LAYOUT_BATCH},
        [GHP_SPLIT_OUT] = {GHP_LAYOUT_FULL, GHP_LAYOUT_CHANNEL, GHP_LAYOUT_CHANNEL,
                           GHP_LAYOUT_PARTIAL},
        [GHP_SPLIT_IN] = {GHP_LAYOUT_CHANNEL, GHP_LAYOUT_PARTIAL, GHP_LAYOUT_FULL,
                          GHP_LAYOUT_CHANNEL},
        [GHP_SPLIT_CHANNEL] = {GHP_LAYOUT_CHANNEL, GHP_LAYOUT_CHANNEL, GHP_LAYOUT_CHANNEL,
                               GHP_LAYOUT_CHANNEL},
        [GHP_SPLIT_FULL] = {GHP_LAYOUT_FULL, GHP_LAYOUT_FULL, GHP_LAYOUT_FULL, GHP_LAYOUT_FULL},
        [GHP_SPLIT_ROWS] = {GHP_LAYOUT_FULL, GHP_LAYOUT_PARTIAL, GHP_LAYOUT_FULL, GHP_LAYOUT_FULL},
        [GHP_SPLIT_POSITION] = {GHP_LAYOUT_SEQUENCE, GHP_LAYOUT_SEQUENCE, GHP_LAYOUT_SEQUENCE,
                                GHP_LAYOUT_SEQUENCE},
        [GHP_SPLIT_RING] = {GHP_LAYOUT_SEQUENCE, GHP_LAYOUT_SEQUENCE, GHP_LAYOUT_SEQUENCE,
                            GHP_LAYOUT_SEQUENCE},
    };
    const enum ghp_layout_kind *k = kinds[split.kind];
    int m = split.tp_size;
    return (struct ghp_layouts){.x = {k[0], m}, .y = {k[1], m}, .dy = {k[2], m}, .dx = {k[3], m}};
}

struct ghp_layouts ghp_split_layouts_at(const struct ghp_layer *layer, int slot,
                                        struct ghp_split split)
{
    struct ghp_layouts at = ghp_split_layouts(split);
    int ids = ghp_op_of(layer->op)->ids_input;

    if (ids > 0 && slot == ids && split.kind != GHP_SPLIT_DATA) at.x.kind = GHP_LAYOUT_FULL;
    if (ids > 0 && slot == ids) return at; /* which have no gradient */
    if (split.kind != GHP_SPLIT_POSITION || (ghp_op_of(layer->op)->whole_inputs >> slot & 1u) == 0)
        return at;
    at.x.kind = GHP_LAYOUT_FULL;
    at.dx.kind = GHP_LAYOUT_PARTIAL;
    return at;
}

bool ghp_layout_same(struct ghp_layout a, struct ghp_layout b)
{
    return a.kind == b.kind && a.tp_size == b.tp_size;
}

bool ghp_split_alike(struct ghp_split a, struct ghp_split b)
{
    return a.kind == b.kind && a.tp_size == b.tp_size;
}

bool ghp_split_same(struct ghp_split a, struct ghp_split b)
{
    return ghp_split_alike(a, b) && a.sharding == b.sharding;
}

static bool append_direct(struct ghp_layout from, struct ghp_layout to, struct ghp_reshard *reshard)
{
    if (ghp_layout_same(from, to)) return true;
    int op = direct_steps[from.kind][to.kind];
    if (op < 0) return false;
    int tp_size = from.tp_size > to.tp_size ? from.tp_size : to.tp_size;
    reshard->steps[reshard->n_steps++] = (struct ghp_reshard_step){
        .op = (enum ghp_reshard_op)op, .from = from, .to = to, .tp_size = tp_size};
    return true;
}

bool ghp_reshard_find(struct ghp_layout from, struct ghp_layout to, struct ghp_reshard *reshard)
{
    reshard->n_steps = 0;
    if (ghp_layout_same(from, to)) return true;
    if (to.kind == GHP_LAYOUT_PARTIAL) return false;
    if (from.tp_size == to.tp_size || from.tp_size == 1 || to.tp_size == 1)
        return append_direct(from, to, reshard);
    struct ghp_layout between = {GHP_LAYOUT_BATCH, 1};
    if (from.kind == GHP_LAYOUT_FULL &&
        from.tp_size % to.tp_size == 0) { /* whole copies: keep a smaller subgroup's */
        between = (struct ghp_layout){GHP_LAYOUT_FULL, to.tp_size};
        reshard->steps[reshard->n_steps++] = (struct ghp_reshard_step){
            .op = GHP_RESHARD_SLICE_BATCH, .from = from, .to = between, .tp_size = from.tp_size};
        return append_direct(between, to, reshard);
    }
    return append_direct(from, between, reshard) && append_direct(between, to, reshard);
}

enum ghp_comm_op ghp_reshard_comm(enum ghp_reshard_op op)
{
    return reshard_facts[op].comm;
}

bool ghp_reshard_packs(enum ghp_reshard_op op)
{
    return reshard_facts[op].packs;
}

int64_t ghp_reshard_channels(const struct ghp_reshard_step *step, int64_t channels)
{
    bool parts = step->from.kind == GHP_LAYOUT_CHANNEL || step->to.kind == GHP_LAYOUT_CHANNEL;

    return parts ? ghp_part_of(channels, step->tp_size) * step->tp_size : channels;
}

const char *ghp_reshard_name(enum ghp_reshard_op op)
{
    return reshard_facts[op].name;
}

const char *ghp_comm_name(enum ghp_comm_op op)
{
    static const char *const names[GHP_COMM_COUNT] = {
        "none", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "transfer", "shift"};
    return names[op];
}

/* Whether the operation reads whole inputs that blocks can stand for in turn: what a score is must not depend on where
 * its key is, and each worker's queries have as many keys. */
static bool takes_blocks(const struct ghp_layer *layer)
{
    return ghp_op_of(layer->op)->whole_inputs != 0 && layer->heads.window == 0 &&
           layer->heads.keys == 0 && layer->heads.dropout == 0 && layer->n_inputs < 4;
}

/* Channels, or positions, that a split divides, 0 if the layer does not take that kind of split. */
static int64_t divided_parts(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    const struct ghp_op_facts *facts = ghp_op_of(layer->op);

    if (kind == GHP_SPLIT_DATA) return 1;
    if (layer->by_data) return 0;
    if (kind == GHP_SPLIT_RING && !takes_blocks(layer)) return 0;
    if (kind == GHP_SPLIT_POSITION || kind == GHP_SPLIT_RING)
        return facts->by_position && layer->in.axes == GHP_AXES_SEQUENCE ? layer->in.h : 0;
    return (facts->divides != NULL ? facts->divides : ghp_divides_channels)(layer, kind);
}

/* Whether each worker holds whole samples. */
static bool samples_fit(struct ghp_split split, struct ghp_problem problem)
{
    int sharers = ghp_problem_sharers(problem);
    return sharers == 1 || split.tp_size == sharers;
}

static int64_t samples_of(struct ghp_problem problem, int tp_size)
{
    return problem.global_batch * tp_size / problem.workers;
}

/* Statistics of each S samples: a worker holds whole ones, or whole workers share one. */
static bool ghost_batches_fit(const struct ghp_layer *layer, struct ghp_split split,
                              struct ghp_problem problem)
{
    int64_t s = layer->norm.ghost_batch, n = samples_of(problem, split.tp_size);
    return s == 0 || n % s == 0 || (s % n == 0 && problem.global_batch % s == 0);
}

bool ghp_split_is_even(const struct ghp_layer *layer, struct ghp_split split)
{
    return split.kind == GHP_SPLIT_FULL || divided_parts(layer, split.kind) % split.tp_size == 0;
}

/* Whether the split divides classes or a vocabulary, which need not come out even. */
static bool may_pad(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    const struct ghp_op_facts *facts = ghp_op_of(layer->op);

    return (facts->pads >> kind & 1u) != 0 && (facts->takes_ids || layer->logits);
}

static bool split_fits(const struct ghp_layer *layer, struct ghp_split split)
{
    int64_t n_parts = divided_parts(layer, split.kind);
    if (n_parts == 0) return false;
    if (split.kind == GHP_SPLIT_DATA) return split.tp_size == 1;
    return split.tp_size > 1 && (ghp_split_is_even(layer, split) ||
                                 (may_pad(layer, split.kind) && split.tp_size <= n_parts));
}

static void kinds_text(const struct ghp_layer *layer, char *text, size_t n)
{
    size_t used = 0;
    text[0] = '\0';
    for (int kind = GHP_SPLIT_DATA; kind < GHP_SPLIT_COUNT; kind++)
        if (divided_parts(layer, (enum ghp_split_kind)kind) > 0 && used < n)
            used += (size_t)snprintf(text + used, n - used, "%s%s", used > 0 ? ", " : "",
                                     split_names[kind]);
}

enum ghp_status ghp_sharding_check(const struct ghp_layer *layer, struct ghp_split split,
                                   struct ghp_problem problem)
{
    const char *name = ghp_param_sharding_names[split.sharding];

    if (split.sharding == GHP_SHARDING_NONE) return GHP_OK;
    if (layer->n_params == 0 && layer->tied == 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' has no parameters to shard by '%s'; leave its \"shard\" or "
                        "'+%s' out",
                        layer->name, name, name);
    if (layer->by_data)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' shares its parameters with other layers, so they cannot be "
                        "sharded by '%s'; leave its \"shard\" or '+%s' out",
                        layer->name, name, name);
    if (layer->fixed)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' is frozen, and has no gradients to shard by '%s'; leave its "
                        "\"shard\" or '+%s' out",
                        layer->name, name, name);
    if (ghp_op_of(layer->op)->has_batch_statistics)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' takes statistics of a batch, and its few parameters cannot be "
                        "sharded by '%s'; leave its \"shard\" or '+%s' out",
                        layer->name, name, name);
    if (problem.workers / ghp_split_sharers(split) > 1) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "no two workers hold the same parameters of layer '%s', so there is nothing to "
                    "shard by '%s'; leave its \"shard\" or '+%s' out, or use a smaller TP size",
                    layer->name, name, name);
}

enum ghp_status ghp_split_check(const struct ghp_layer *layer, struct ghp_split split,
                                struct ghp_problem problem)
{
    char text[GHP_SPLIT_TEXT_BYTES];
    char kinds[64];
    ghp_split_format(split, text, sizeof text);
    if (split.tp_size < 1 || problem.workers % split.tp_size != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' cannot take split '%s': %d workers are not a multiple of %d; "
                        "use a divisor of %d",
                        layer->name, text, problem.workers, split.tp_size, problem.workers);
    int64_t n_parts = divided_parts(layer, split.kind);
    if (n_parts == 0) {
        kinds_text(layer, kinds, sizeof kinds);
        return GHP_FAIL(GHP_ERR_INPUT, "layer '%s' (%s) cannot take split '%s'; use one of %s",
                        layer->name, ghp_op_name(layer->op), text, kinds);
    }
    if (split.kind == GHP_SPLIT_DATA ? split.tp_size != 1 : split.tp_size < 2)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "layer '%s' has split '%s' with TP size %d; data has TP size 1, others at least 2",
            layer->name, text, split.tp_size);
    if (!samples_fit(split, problem))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' cannot take split '%s': a batch of %" PRId64
                        " is less than one sample for each of %d workers; use a split of TP size "
                        "%d, or a batch of %d",
                        layer->name, text, problem.global_batch, problem.workers,
                        ghp_problem_sharers(problem), problem.workers);
    if (!ghost_batches_fit(layer, split, problem))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' cannot take split '%s': statistics of each %" PRId64
                        " samples do not fit workers of %" PRId64 " samples; use another split, or "
                        "a batch or number of micro-batches that makes one a multiple of the other",
                        layer->name, text, layer->norm.ghost_batch,
                        samples_of(problem, split.tp_size));
    if (split_fits(layer, split)) return ghp_sharding_check(layer, split, problem);
    const char *parts = ghp_split_sharers(split) == 1 && split.tp_size > 1 ? "positions"
                        : layer->heads.size > 0                            ? "heads"
                                                                           : "channels";
    int64_t best = 1;
    for (int m = 2; m <= problem.workers; m++)
        if (problem.workers % m == 0 && n_parts % m == 0) best = m;
    if (best == 1)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' cannot take split '%s': %" PRId64
                        " %s are not a multiple of %d, nor of any divisor of %d workers; use data",
                        layer->name, text, n_parts, parts, split.tp_size, problem.workers);
    return GHP_FAIL(GHP_ERR_INPUT,
                    "layer '%s' cannot take split '%s': %" PRId64
                    " %s are not a multiple of %d; use TP size %" PRId64,
                    layer->name, text, n_parts, parts, split.tp_size, best);
}

struct ghp_split ghp_split_of_tied(struct ghp_split table)
{
    struct ghp_split product = table;

    if (table.kind == GHP_SPLIT_ROWS) product.kind = GHP_SPLIT_OUT;
    if (table.kind == GHP_SPLIT_OUT) product.kind = GHP_SPLIT_IN;
    return product;
}

struct ghp_split ghp_split_of_owner(struct ghp_split product)
{
    struct ghp_split table = product;

    if (product.kind == GHP_SPLIT_OUT) table.kind = GHP_SPLIT_ROWS;
    if (product.kind == GHP_SPLIT_IN) table.kind = GHP_SPLIT_OUT;
    return table;
}

enum ghp_status ghp_split_check_tied(const struct ghp_model *model, const struct ghp_split *splits)
{
    for (int v = 0; v < model->n_layers; v++) {
        int owner = ghp_model_owner(model, v);
        struct ghp_split table = splits[owner], product = splits[v];
        char ours[GHP_SPLIT_TEXT_BYTES], theirs[GHP_SPLIT_TEXT_BYTES];
        if (owner == v || ghp_split_same(ghp_split_of_tied(table), product)) continue;
        ghp_split_format(table, theirs, sizeof theirs);
        ghp_split_format(product, ours, sizeof ours);
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (split '%s') and '%s' (split '%s') share parameters but not "
                        "their parts; use data for both, or in a pair of table and product out:M "
                        "with rows:M, or in:M with out:M",
                        model->layers[v].name, ours, model->layers[owner].name, theirs);
    }
    return GHP_OK;
}

int ghp_split_choices(const struct ghp_layer *layer, struct ghp_problem problem,
                      struct ghp_split *splits, int max)
{
    int n = 0;
    for (int m = 1; m <= problem.workers; m++) {
        if (problem.workers % m != 0) continue;
        for (int kind = GHP_SPLIT_DATA; kind < GHP_SPLIT_COUNT; kind++) {
            struct ghp_split split = {.kind = (enum ghp_split_kind)kind, .tp_size = m};
            if (split_fits(layer, split) && samples_fit(split, problem) &&
                ghost_batches_fit(layer, split, problem) && n < max)
                splits[n++] = split;
        }
    }
    return n;
}

enum ghp_status ghp_problem_check(struct ghp_problem problem)
{
    int64_t b = problem.global_batch;
    int n = problem.workers;
    if (n < 1) return GHP_FAIL(GHP_ERR_INPUT, "cannot use %d workers; use at least 1", n);
    if (b > 0 && (b % n == 0 || n % b == 0)) return GHP_OK;
    int below = n, above = n;
    while (below > 1 && (b < below || b % below != 0))
        below--;
    while (above <= b && above < GHP_MAX_WORKERS && b % above != 0)
        above++;
    int64_t up = (b / n + 1) * n;
    if (b >= n)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "cannot use %d workers: global batch %" PRId64
                        " is not a multiple of %d; use %d or %d workers, or batch %" PRId64
                        " or %" PRId64,
                        n, b, n, below, b % above == 0 ? above : below, up - n, up);
    int64_t part = b > 1 ? b : 1;
    while (n % part != 0)
        part--;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "cannot use %d workers: global batch %" PRId64
                    " is less than one sample a worker and does not divide them; use at most %d "
                    "workers, or batch %" PRId64 " or %" PRId64,
                    n, b, below, part, up);
}

int64_t ghp_gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

int64_t ghp_layout_samples(struct ghp_layout layout, struct ghp_problem problem)
{
    return samples_of(problem, layout.tp_size);
}

int64_t ghp_part_of(int64_t whole, int parts)
{
    return (whole + parts - 1) / parts;
}

int64_t ghp_layout_channels(struct ghp_layout layout, int64_t channels)
{
    return layout.kind == GHP_LAYOUT_CHANNEL ? ghp_part_of(channels, layout.tp_size) : channels;
}

int64_t ghp_layout_positions(struct ghp_layout layout, int64_t positions)
{
    return layout.kind == GHP_LAYOUT_SEQUENCE ? positions / layout.tp_size : positions;
}

int ghp_split_sharers(struct ghp_split split)
{
    bool each = split.kind == GHP_SPLIT_POSITION || split.kind == GHP_SPLIT_RING;

    return each ? 1 : split.tp_size;
}

const char *ghp_split_kind_name(enum ghp_split_kind kind)
{
    return split_names[kind];
}

bool ghp_split_kind_find(const char *name, enum ghp_split_kind *kind)
{
    for (int i = GHP_SPLIT_DATA; i < GHP_SPLIT_COUNT; i++)
        if (strcmp(name, split_names[i]) == 0) {
            *kind = (enum ghp_split_kind)i;
            return true;
        }
    return false;
}

static void named_tp_size(const char *name, int tp_size, char *text, size_t n)
{
    if (tp_size == 1)
        snprintf(text, n, "%s", name);
    else
        snprintf(text, n, "%s:%d", name, tp_size);
}

void ghp_split_format(struct ghp_split split, char *text, size_t n)
{
    size_t used;

    named_tp_size(split_names[split.kind], split.tp_size, text, n);
    used = strlen(text);
    if (split.sharding != GHP_SHARDING_NONE)
        snprintf(text + used, n - used, "+%s", ghp_param_sharding_names[split.sharding]);
}

void ghp_layout_format(struct ghp_layout layout, char *text, size_t n)
{
    named_tp_size(layout_names[layout.kind], layout.tp_size, text, n);
}

/* Reads "pass", after the plus; false: that is not a name. */
static bool read_sharding(const char *text, enum ghp_param_sharding *sharding)
{
    for (int i = 0; i < GHP_SHARDING_COUNT; i++) {
        *sharding = (enum ghp_param_sharding)i;
        if (strcmp(text, ghp_param_sharding_names[i]) == 0) return true;
    }
    return false;
}

enum ghp_status ghp_split_parse(const char *text, struct ghp_split *split)
{
    char name[16] = {0};
    size_t length = strcspn(text, ":+");
    const char *plus = strchr(text, '+');
    if (length < sizeof name) memcpy(name, text, length);
    char *end = NULL;
    long tp_size = text[length] == ':' ? strtol(text + length + 1, &end, 10) : 1;
    bool sound = end == NULL || ((*end == '\0' || *end == '+') && end != text + length + 1);
    *split = (struct ghp_split){0};
    if (!ghp_split_kind_find(name, &split->kind) || !sound || tp_size < 1 ||
        tp_size > GHP_MAX_WORKERS || (split->kind == GHP_SPLIT_DATA) != (tp_size == 1))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "cannot read split '%s'; use data, out:M, in:M, channel:M, full:M, rows:M, "
                        "position:M or ring:M with M > 1",
                        text);
    if (plus != NULL && !read_sharding(plus + 1, &split->sharding))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "cannot read split '%s'; after the plus, use none, gradients, step, "
                        "micro-batch or pass",
                        text);
    split->tp_size = (int)tp_size;
    return GHP_OK;
}
