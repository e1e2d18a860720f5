/* inspect/profile.c - tables of a profile: operations (or a model's layers), collectives, rates.
 *
 * A key is read back into the shapes it names, so that bytes stand next to seconds. */
#include "inspect/inspect.h"

#include "core/base/units.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SAMPLES = 256 };

static const struct ghp_column op_columns[] = {
    {"name", "operation", "", 't', 0, 0},
    {"samples", "samples", "", 'i', 0, 0},
    {"forward_s", "forward", "ms", 'r', 1e3, 4},
    {"backward_data_s", "data grad", "ms", 'r', 1e3, 4},
    {"backward_weight_s", "weight grad", "ms", 'r', 1e3, 4},
    {"activation_bytes", "activation", "MiB", 'b', 1.0 / 1048576, 3},
    {"gradient_bytes", "gradient", "MiB", 'b', 1.0 / 1048576, 3},
    {"weight_bytes", "weights", "MiB", 'b', 1.0 / 1048576, 3},
    {"scratch_bytes", "scratch", "MiB", 'b', 1.0 / 1048576, 3},
    {"spread", "spread", "%", 'r', 100, 1},
    {"source", "source", "", 't', 0, 0},
    {"algorithm", "algorithm", "", 't', 0, 0},
    {"memory_formats", "in > out, ms", "", 't', 0, 0},
    {NULL, NULL, NULL, 0, 0, 0}};

/* "12x34" or "12,34,56,78" into numbers; a single number fills all. */
static void read_list(const char *text, int n, int64_t *const out[])
{
    int64_t value = 0;

    for (int i = 0; i < n; i++) {
        char *end;
        long long number = strtoll(text, &end, 10);

        if (end != text) value = number;
        *out[i] = value;
        text = *end == 'x' || *end == ',' ? end + 1 : end;
    }
}

/* Reads one token of a key, after the operation's name. */
static void read_token(const char *token, struct ghp_local *local)
{
    struct ghp_window *w = &local->window;
    int64_t *const stride[] = {&w->stride_h, &w->stride_w}, *const dilation[] = {&w->dilation_h,
                                                                                 &w->dilation_w};
    int64_t *const output[] = {&local->p, &local->q};
    int64_t *const pad[] = {&w->pad_top, &w->pad_left, &w->pad_bottom, &w->pad_right};
    const char *value = token + 1;

    if (strncmp(token, "inputs", 6) == 0) local->n_inputs = (int)strtol(token + 6, NULL, 10);
    if (*value < '0' || *value > '9') return; /* size, slices, padded: no shape */
    switch (token[0]) {
    case 'n': local->n = strtoll(value, NULL, 10); break;
    case 'c': local->c = strtoll(value, NULL, 10); break;
    case 'h': local->h = strtoll(value, NULL, 10); break;
    case 'w': local->w = strtoll(value, NULL, 10); break;
    case 'k': local->k = strtoll(value, NULL, 10); break;
    case 'r': w->r = strtoll(value, NULL, 10); break;
    case 's': w->s = strtoll(value, NULL, 10); break;
    case 'g': w->groups = strtoll(value, NULL, 10); break;
    case 't': read_list(value, 2, stride); break;
    case 'o': read_list(value, 2, output); break;
    case 'd': read_list(value, 2, dilation); break;
    case 'p': read_list(value, 4, pad); break;
    default: break;
    }
}

/* Output height, width and channels of the shapes read. */
static void complete(struct ghp_local *local)
{
    struct ghp_window *w = &local->window;

    /* a key that was written by hand may say anything */
    if (w->groups < 1) w->groups = 1;
    if (w->stride_h < 1) w->stride_h = 1;
    if (w->stride_w < 1) w->stride_w = 1;
    if (local->k == 0) local->k = local->c;
    if (local->p == 0) local->p = local->h;
    if (local->q == 0) local->q = local->w;
    if (w->r > 0) {
        local->p =
            (local->h + w->pad_top + w->pad_bottom - (w->r - 1) * w->dilation_h - 1) / w->stride_h +
            1;
        local->q =
            (local->w + w->pad_left + w->pad_right - (w->s - 1) * w->dilation_w - 1) / w->stride_w +
            1;
    }
    if (local->op == GHP_OP_FLATTEN) local->k = local->c * local->h * local->w;
    if (local->op == GHP_OP_FLATTEN || local->op == GHP_OP_GLOBAL_AVG_POOL) local->p = local->q = 1;
}

/* The local operation that a key names; false for a key of no known operation. */
static bool read_key(const char *key, struct ghp_local *local)
{
    char copy[GHP_KEY_BYTES], *rest = copy, *token;
    int op = 0;

    *local = (struct ghp_local){.n = 1, .c = 1, .h = 1, .w = 1, .n_inputs = 1};
    local->window = (struct ghp_window){
        .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1};
    snprintf(copy, sizeof copy, "%s", key);
    token = strsep(&rest, " ");
    while (op < GHP_OP_COUNT && strcmp(ghp_op_name((enum ghp_op)op), token) != 0)
        op++;
    if (op == GHP_OP_COUNT) return false;
    local->op = (enum ghp_op)op;
    while ((token = strsep(&rest, " ")) != NULL)
        read_token(token, local);
    complete(local);
    return true;
}

/* The passes of one operation as one row. */
struct op_row {
    double seconds[3]; /* forward, data gradient, weight gradient; NAN: none */
    double spread;
    int64_t scratch_bytes;
    enum ghp_source source;
    const char *algorithm;
    char memory_formats[128]; /* forward, by the formats of the input and the output */
    bool any;
};

/* Seconds and formats: if they can be had in several, all of them. */
static void put_memory_formats(struct op_row *row, const struct ghp_op_entry *entry)
{
    static const char *const names[] = {"plain", "nChw16c"};
    size_t used = 0;

    row->memory_formats[0] = '\0';
    for (int i = 0; i < entry->n_memory_formats && used < sizeof row->memory_formats; i++) {
        const struct ghp_op_memory_format *f = &entry->memory_formats[i];
        int n = snprintf(row->memory_formats + used, sizeof row->memory_formats - used,
                         "%s%s > %s %.4g", i > 0 ? ", " : "", names[f->x], names[f->y],
                         1e3 * f->seconds);

        used += n > 0 ? (size_t)n : 0;
    }
}

/* Statistics count with the pass that waits for them. */
static int group_of(enum ghp_pass pass)
{
    if (pass == GHP_PASS_FORWARD || pass == GHP_PASS_STATS) return 0;
    return pass == GHP_PASS_BACKWARD_WEIGHT ? 2 : 1;
}

static void add_pass(struct op_row *row, enum ghp_pass pass, struct ghp_cost cost,
                     int64_t scratch_bytes)
{
    double *seconds = &row->seconds[group_of(pass)];

    *seconds = isnan(*seconds) ? cost.seconds : *seconds + cost.seconds;
    if (cost.spread > row->spread) row->spread = cost.spread;
    if (cost.source > row->source) row->source = cost.source;
    if (scratch_bytes > row->scratch_bytes) row->scratch_bytes = scratch_bytes;
    row->any = true;
}

static struct op_row empty_row(void)
{
    return (struct op_row){.seconds = {NAN, NAN, NAN}};
}

static void put_row(struct ghp_sheet *sheet, const char *name, const struct ghp_local *local,
                    const struct op_row *row, int element_bytes)
{
    int64_t inputs = ghp_local_whole_inputs(local);

    ghp_sheet_row(sheet);
    ghp_sheet_text(sheet, name);
    ghp_sheet_int(sheet, local->n);
    for (int i = 0; i < 3; i++)
        ghp_sheet_real(sheet, row->seconds[i]);
    ghp_sheet_int(sheet, ghp_local_out_elements(local) * element_bytes);
    ghp_sheet_int(sheet, inputs * ghp_local_in_elements(local) * element_bytes);
    ghp_sheet_int(sheet, ghp_local_weight_elements(local) * ghp_parameter_bytes(element_bytes));
    ghp_sheet_int(sheet, row->scratch_bytes);
    ghp_sheet_real(sheet, row->any ? row->spread : NAN);
    ghp_sheet_text(sheet, row->any ? ghp_source_name(row->source) : "missing");
    ghp_sheet_text(sheet, row->algorithm);
    ghp_sheet_text(sheet, row->memory_formats[0] != '\0' ? row->memory_formats : NULL);
}

/* A row for each key; the passes of a key stand side by side in a finalized profile. */
static void put_keys(struct ghp_sheet *sheet, const struct ghp_profile *profile)
{
    for (int i = 0; i < profile->n_ops;) {
        const char *key = profile->ops[i].key;
        struct op_row row = empty_row();
        struct ghp_local local;

        for (; i < profile->n_ops && strcmp(profile->ops[i].key, key) == 0; i++) {
            const struct ghp_op_entry *op = &profile->ops[i];

            add_pass(&row, op->pass,
                     (struct ghp_cost){
                         .seconds = op->seconds, .spread = op->spread, .source = op->source},
                     op->scratch_bytes);
            if (row.algorithm == NULL || op->pass == GHP_PASS_FORWARD) {
                row.algorithm = op->algorithm;
                put_memory_formats(&row, op);
            }
        }
        if (read_key(key, &local)) put_row(sheet, key, &local, &row, profile->element_bytes);
    }
}

/* The distinct numbers of samples in a profile's keys, at most MAX_SAMPLES. */
static int samples_of(const struct ghp_profile *profile, int64_t samples[MAX_SAMPLES])
{
    int n = 0;

    for (int i = 0; i < profile->n_ops && n < MAX_SAMPLES; i++) {
        struct ghp_local local;
        int j = 0;

        if (!read_key(profile->ops[i].key, &local)) continue;
        while (j < n && samples[j] != local.n)
            j++;
        if (j == n) samples[n++] = local.n;
    }
    return n;
}

/* The undivided layer at the largest number of samples with an entry of its own, else at one sample. */
static struct ghp_local layer_local(const struct ghp_model *model, int layer,
                                    const struct ghp_profile *profile, const int64_t *samples,
                                    int n_samples)
{
    struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1};
    struct ghp_local best = ghp_local_of(model, layer, data, (struct ghp_problem){1, 1});

    for (int i = 0; i < n_samples; i++) {
        struct ghp_local local =
            ghp_local_of(model, layer, data, (struct ghp_problem){1, samples[i]});
        char key[GHP_KEY_BYTES];

        ghp_local_key(&local, key);
        if (local.n > best.n && ghp_profile_find(profile, key, GHP_PASS_FORWARD) != NULL)
            best = local;
    }
    return best;
}

/* A row for each layer of a model. */
static enum ghp_status put_layers(struct ghp_sheet *sheet, const struct ghp_profile *profile,
                                  const struct ghp_model *model)
{
    int64_t samples[MAX_SAMPLES];
    int n_samples = samples_of(profile, samples), found = 0;

    for (int i = 1; i < model->n_layers; i++) {
        struct ghp_local local = layer_local(model, i, profile, samples, n_samples);
        const struct ghp_op_entry *entry;
        struct op_row row = empty_row();
        char key[GHP_KEY_BYTES];

        for (int pass = 0; pass < GHP_PASS_COUNT; pass++) {
            struct ghp_cost cost;
            int64_t scratch = 0;

            if (!ghp_local_has_pass(&local, (enum ghp_pass)pass)) continue;
            if (ghp_profile_op(profile, &local, (enum ghp_pass)pass, &cost) != GHP_OK) continue;
            if (ghp_profile_scratch(profile, &local, (enum ghp_pass)pass, &scratch) != GHP_OK)
                scratch = 0;
            add_pass(&row, (enum ghp_pass)pass, cost, scratch);
            found++;
        }
        ghp_local_key(&local, key);
        entry = ghp_profile_find(profile, key, GHP_PASS_FORWARD);
        row.algorithm = entry != NULL ? entry->algorithm : NULL;
        if (entry != NULL) put_memory_formats(&row, entry);
        put_row(sheet, model->layers[i].name, &local, &row, profile->element_bytes);
    }
    if (found > 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the profile knows no layer of model '%s'; measure it with ghp-profile --model",
                    model->name);
}

static void put_comms(struct ghp_display *report, const struct ghp_profile *profile)
{
    static const struct ghp_column columns[] = {{"op", "collective", "", 't', 0, 0},
                                                {"count", "ranks", "", 'i', 0, 0},
                                                {"stride", "stride", "", 'i', 0, 0},
                                                {"bytes", "bytes", "B", 'i', 0, 0},
                                                {"mean_s", "time", "us", 'r', 1e6, 2},
                                                {"bus_Bps", "bus rate", "GB/s", 'r', 1e-9, 3},
                                                {"spread", "spread", "%", 'r', 100, 1},
                                                {"source", "source", "", 't', 0, 0},
                                                {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet;

    if (profile->n_comms == 0) return;
    sheet = ghp_sheet_open(report, "collectives", columns);
    ghp_sheet_note(sheet, "collectives, all groups of a kind at once; bus rate: bytes that cross "
                          "each rank's link in one "
                          "direction, by the second");
    for (int i = 0; i < profile->n_comms; i++) {
        const struct ghp_comm_entry *c = &profile->comms[i];
        double factor = (c->op == GHP_COMM_ALL_REDUCE ? 2.0 : 1.0) * (c->count - 1) / c->count;

        ghp_sheet_row(sheet);
        ghp_sheet_text(sheet, ghp_comm_name(c->op));
        ghp_sheet_int(sheet, c->count);
        ghp_sheet_int(sheet, c->stride);
        ghp_sheet_int(sheet, c->bytes);
        ghp_sheet_real(sheet, c->seconds);
        ghp_sheet_real(sheet, c->seconds > 0 ? factor * (double)c->bytes / c->seconds : NAN);
        ghp_sheet_real(sheet, c->spread);
        ghp_sheet_text(sheet, ghp_source_name(c->source));
    }
    ghp_display_sheet(report, sheet);
}

static void put_rate(struct ghp_sheet *sheet, const char *name, const struct ghp_rate *rate)
{
    bool free_of_cost = !(rate->bandwidth_Bps > 0);

    ghp_sheet_row(sheet);
    ghp_sheet_text(sheet, name);
    ghp_sheet_real(sheet, free_of_cost ? NAN : rate->latency_s);
    ghp_sheet_real(sheet, free_of_cost ? NAN : rate->bandwidth_Bps);
    ghp_sheet_real(sheet, free_of_cost ? NAN : rate->spread);
    ghp_sheet_text(sheet, free_of_cost ? "free" : ghp_source_name(rate->source));
}

static void put_rates(struct ghp_display *report, const struct ghp_profile *profile)
{
    static const struct ghp_column columns[] = {
        {"rate", "rate", "", 't', 0, 0},
        {"latency_s", "latency", "us", 'r', 1e6, 2},
        {"bandwidth_Bps", "bandwidth", "GB/s", 'r', 1e-9, 3},
        {"spread", "spread", "%", 'r', 100, 1},
        {"source", "source", "", 't', 0, 0},
        {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "rates", columns);

    ghp_sheet_note(sheet, "bytes written (squares: read) by the second; no bandwidth: free");
    ghp_sheet_note(sheet,
                   "slowdown while both streams work: compute %.3f, reduction %.3f, reshard %.3f",
                   profile->overlap.compute, profile->overlap.comm, profile->overlap.link);
    if (profile->overlap.comm_long > 0)
        ghp_sheet_note(sheet, "slowdown of reductions of %d MiB and more: %.3f",
                       GHP_OVERLAP_LONG_BYTES >> 20, profile->overlap.comm_long);
    if (profile->overlap.queueing_delay_s > 0)
        ghp_sheet_note(sheet,
                       "a reshard concurrent with a reduction waits %.4g ms for what is queued",
                       profile->overlap.queueing_delay_s * 1e3);
    if (profile->overlap.arrival_delay_s > 0 || profile->overlap.launch_delay_s > 0)
        ghp_sheet_note(sheet,
                       "a reshard after computing takes %.4g ms more; where a reduction begins, "
                       "computing stands still %.4g ms",
                       profile->overlap.arrival_delay_s * 1e3,
                       profile->overlap.launch_delay_s * 1e3);
    if (profile->analytic.flops_per_s > 0)
        ghp_sheet_note(
            sheet, "analytic model of what has no entry: %.4g flop/s, memory %.4g B/s (0: free)",
            profile->analytic.flops_per_s, profile->analytic.memory_Bps);
    if (profile->analytic.batch_half > 0)
        ghp_sheet_note(sheet, "half of the flop/s are reached at %.4g samples of a worker",
                       profile->analytic.batch_half);
    put_rate(sheet, "copy", &profile->copy);
    for (int i = 0; i < GHP_OPTIMIZERS; i++)
        if (i == GHP_OPTIMIZER_INDEX_sgd || profile->update[i].bandwidth_Bps > 0)
            put_rate(sheet, ghp_optimizer_at(i)->rate, &profile->update[i]);
    put_rate(sheet, "load", &profile->load);
    if (profile->squares.bandwidth_Bps > 0) put_rate(sheet, "squares", &profile->squares);
    if (profile->fused_accumulate.bandwidth_Bps > 0)
        put_rate(sheet, "fused_accumulate", &profile->fused_accumulate);
    put_rate(sheet, "accumulate", &profile->accumulate);
    ghp_display_sheet(report, sheet);
}

enum ghp_status ghp_inspect_profile(struct ghp_display *report, const struct ghp_profile *profile,
                                    const struct ghp_model *model)
{
    enum ghp_status status = GHP_OK;
    struct ghp_sheet *sheet;

    ghp_display_text(report, "backend", profile->backend);
    ghp_display_text(report, "numerics", profile->numerics);
    ghp_display_int(report, "workers", profile->workers);
    if (profile->threads > 0) ghp_display_int(report, "threads", profile->threads);
    if (model != NULL || profile->n_ops > 0) {
        sheet = ghp_sheet_open(report, model != NULL ? "layers" : "operations", op_columns);
        ghp_sheet_note(sheet, "profile of %s, %s, %s, %d worker%s at once, hash %016llx",
                       profile->backend, profile->numerics,
                       ghp_precision_name(ghp_profile_precision(profile)), profile->workers,
                       ghp_plural(profile->workers), (unsigned long long)profile->hash);
        if (profile->threads > 0)
            ghp_sheet_note(sheet, "measured with %d thread%s a worker", profile->threads,
                           ghp_plural(profile->threads));
        if (profile->created[0] != '\0')
            ghp_sheet_note(sheet, "made %s %s", profile->created, profile->host);
        ghp_sheet_note(
            sheet,
            "activation: the output; gradient: of the input; batch norms' sums count with forward "
            "and "
            "data gradient; spread: interquartile range by median, the largest of the passes");
        if (model != NULL)
            status = put_layers(sheet, profile, model);
        else
            put_keys(sheet, profile);
        ghp_display_sheet(report, sheet);
    }
    if (status != GHP_OK) return status;
    put_comms(report, profile);
    put_rates(report, profile);
    ghp_inspect_machine(report, &profile->machine);
    return GHP_OK;
}
