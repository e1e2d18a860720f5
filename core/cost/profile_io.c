/* core/cost/profile_io.c - the profile file: one measurement a line, every number with its spread and source.
 *
 * The hash of a profile is that of this file's canonical text (no spaces), with entries in sorted order. */
#include "core/cost/profile_private.h"
#include "core/base/embed.h"
#include "core/base/json_lines.h"

#include <stdio.h>
#include <string.h>

#define FORMAT "ghp.profile/2"

enum { MAX_WORKERS = 1 << 20, MAX_THREADS = 1 << 16 };

#define MAX_SECONDS 1e9
#define MAX_RATE 1e18
#define MAX_SAMPLES 1e9

/* Rates that every file has; and then, if they are known, sums of squares, those of further optimizers and fused
 * sums of gradients. */
enum { N_RATES = 4, FUSED_RATE = N_RATES + GHP_OPTIMIZERS, MAX_RATES };

static struct ghp_rate *rate_of(struct ghp_profile *profile, int i)
{
    struct ghp_rate *const rates[N_RATES] = {&profile->copy, &profile->update[0], &profile->load,
                                             &profile->accumulate};

    if (i == N_RATES) return &profile->squares;
    if (i == FUSED_RATE) return &profile->fused_accumulate;
    return i < N_RATES ? rates[i] : &profile->update[i - N_RATES];
}

static const char *rate_name(int i)
{
    static const char *const names[N_RATES + 1] = {"copy", "update", "load", "accumulate",
                                                   "squares"};

    if (i == FUSED_RATE) return "fused_accumulate";
    return i <= N_RATES ? names[i] : ghp_optimizer_at(i - N_RATES)->rate;
}

static const char *const format_names[] = {"plain", "nChw16c", NULL};

static const char *text_of(const char *text)
{
    return text != NULL ? text : "";
}

static json_t *rates_json(const struct ghp_profile *profile, bool *failed)
{
    json_t *rates = json_object();

    for (int i = 0; i < MAX_RATES; i++) {
        const struct ghp_rate *rate =
            rate_of((struct ghp_profile *)(uintptr_t)profile, i); /* only read */

        if (i >= N_RATES && !(rate->bandwidth_Bps > 0)) continue;
        ghp_json_put(rates, rate_name(i),
                     json_pack("{s:f, s:f, s:f, s:s}", "latency_s", rate->latency_s,
                               "bandwidth_Bps", rate->bandwidth_Bps, "spread", rate->spread,
                               "source", ghp_source_name(rate->source)),
                     failed);
    }
    return rates;
}

static json_t *memory_formats_json(const struct ghp_op_entry *op, bool *failed)
{
    json_t *array = json_array();

    for (int i = 0; i < op->n_memory_formats; i++) {
        const struct ghp_op_memory_format *f = &op->memory_formats[i];

        ghp_json_append(array,
                        json_pack("{s:s, s:s, s:f, s:s}", "x", format_names[f->x], "y",
                                  format_names[f->y], "mean_s", f->seconds, "algorithm",
                                  f->algorithm),
                        failed);
    }
    return array;
}

static json_t *ops_json(const struct ghp_profile *profile, bool *failed)
{
    json_t *array = json_array();

    for (int i = 0; i < profile->n_ops; i++) {
        const struct ghp_op_entry *op = &profile->ops[i];
        json_t *item = json_pack(
            "{s:s, s:s, s:f, s:f, s:s, s:I, s:s}", "key", op->key, "pass", ghp_pass_name(op->pass),
            "mean_s", op->seconds, "spread", op->spread, "source", ghp_source_name(op->source),
            "scratch_bytes", (json_int_t)op->scratch_bytes, "algorithm", text_of(op->algorithm));

        if (op->contention > 0 || op->contention < 0)
            ghp_json_put(item, "contended", json_real(op->contention), failed);
        if (op->n_memory_formats > 0)
            ghp_json_put(item, "memory_formats", memory_formats_json(op, failed), failed);
        ghp_json_append(array, item, failed);
    }
    return array;
}

static json_t *comms_json(const struct ghp_profile *profile, bool *failed)
{
    json_t *array = json_array();

    for (int i = 0; i < profile->n_comms; i++) {
        const struct ghp_comm_entry *comm = &profile->comms[i];

        ghp_json_append(array,
                        json_pack("{s:s, s:i, s:i, s:I, s:f, s:f, s:s}", "op",
                                  ghp_comm_name(comm->op), "ranks", comm->count, "stride",
                                  comm->stride, "bytes", (json_int_t)comm->bytes, "mean_s",
                                  comm->seconds, "spread", comm->spread, "source",
                                  ghp_source_name(comm->source)),
                        failed);
    }
    return array;
}

/* Puts a number that is left out if it has no effect. */
static void put_effect(json_t *object, const char *key, double value, bool *failed)
{
    if (value > 0) ghp_json_put(object, key, json_real(value), failed);
}

static json_t *analytic_json(const struct ghp_analytic_model *analytic, bool *failed)
{
    json_t *object = json_pack("{s:f, s:f}", "flops_per_s", analytic->flops_per_s, "memory_Bps",
                               analytic->memory_Bps);

    put_effect(object, "batch_half", analytic->batch_half, failed);
    put_effect(object, "spread", analytic->spread, failed);
    put_effect(object, "comm_spread", analytic->comm_spread, failed);
    return object;
}

static json_t *speeds_json(const struct ghp_speeds *speeds, bool *failed)
{
    json_t *array = json_array();

    for (int r = 0; r < speeds->n; r++)
        ghp_json_append(array, json_real(speeds->of[r]), failed);
    return array;
}

static json_t *overlap_json(const struct ghp_overlap *overlap, bool *failed)
{
    json_t *object = json_pack("{s:f, s:f, s:f}", "compute", overlap->compute, "comm",
                               overlap->comm, "link", overlap->link);

    put_effect(object, "comm_large", overlap->comm_long, failed);
    put_effect(object, "queueing_delay_s", overlap->queueing_delay_s, failed);
    put_effect(object, "arrival_delay_s", overlap->arrival_delay_s, failed);
    put_effect(object, "launch_delay_s", overlap->launch_delay_s, failed);
    return object;
}

static json_t *has_json(const struct ghp_profile *profile, bool *failed)
{
    json_t *array = json_array();

    for (int op = 0; op < GHP_OP_COUNT; op++)
        if (profile->has[op])
            ghp_json_append(array, json_string(ghp_op_name((enum ghp_op)op)), failed);
    return array;
}

json_t *ghp_profile_json(const struct ghp_profile *profile)
{
    json_t *root = json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:s}", "format", FORMAT, "backend",
                             text_of(profile->backend), "numerics", text_of(profile->numerics),
                             "element_bytes", profile->element_bytes, "workers", profile->workers,
                             "created", text_of(profile->created), "host", text_of(profile->host));
    bool failed = root == NULL;

    if (failed) return NULL;
    if (profile->tf32) ghp_json_put(root, "tf32", json_true(), &failed);
    if (profile->knows_has)
        ghp_json_put(root, "backend_operations", has_json(profile, &failed), &failed);
    if (profile->threads > 0)
        ghp_json_put(root, "threads", json_integer(profile->threads), &failed);
    if (profile->prefetch) ghp_json_put(root, "prefetch", json_true(), &failed);
    if (profile->on_device) ghp_json_put(root, "on_device", json_true(), &failed);
    if (ghp_vocabulary_put(root, profile->vocabulary_multiple) != 0) failed = true;
    if (profile->data != NULL) ghp_json_put(root, "data", json_string(profile->data), &failed);
    if (profile->reserved_bytes > 0)
        ghp_json_put(root, "reserved_bytes", json_integer(profile->reserved_bytes), &failed);
    ghp_json_put(root, "machine", ghp_machine_json(&profile->machine), &failed);
    ghp_json_put(root, "analytic", analytic_json(&profile->analytic, &failed), &failed);
    ghp_json_put(root, "overlap", overlap_json(&profile->overlap, &failed), &failed);
    put_effect(root, "disturbed", profile->disturbed, &failed);
    if (profile->speed_probe.compute_s > 0)
        ghp_json_put(root, "speed_probe",
                     json_pack("{s:f, s:f}", "compute_s", profile->speed_probe.compute_s,
                               "memory_s", profile->speed_probe.memory_s),
                     &failed);
    if (profile->speeds.n > 0)
        ghp_json_put(root, "worker_speed", speeds_json(&profile->speeds, &failed), &failed);
    ghp_json_put(root, "rates", rates_json(profile, &failed), &failed);
    ghp_json_put(root, "operations", ops_json(profile, &failed), &failed);
    ghp_json_put(root, "collectives", comms_json(profile, &failed), &failed);
    if (!failed) return root;
    json_decref(root);
    return NULL;
}

static enum ghp_status read_source(const struct ghp_node *at, enum ghp_source *source)
{
    const char *names[GHP_SOURCE_COUNT + 1] = {NULL};
    int choice = 0;

    for (int i = 0; i < GHP_SOURCE_COUNT; i++)
        names[i] = ghp_source_name((enum ghp_source)i);
    GHP_TRY(ghp_json_choice(at, "source", names, &choice));
    *source = (enum ghp_source)choice;
    return GHP_OK;
}

static enum ghp_status read_rates(const struct ghp_node *at, struct ghp_profile *profile)
{
    static const char *const keys[] = {"latency_s", "bandwidth_Bps", "spread", "source", NULL};
    const char *names[MAX_RATES + 1] = {NULL};
    struct ghp_node group, node;

    for (int i = 0; i < MAX_RATES; i++)
        names[i] = rate_name(i);
    GHP_TRY(ghp_json_get(at, "rates", &group));
    GHP_TRY(ghp_json_only_keys(&group, names));
    for (int i = 0; i < MAX_RATES; i++) {
        struct ghp_rate *rate = rate_of(profile, i);

        if (i >= N_RATES && !ghp_json_has(&group, names[i])) continue;
        GHP_TRY(ghp_json_get(&group, names[i], &node));
        GHP_TRY(ghp_json_only_keys(&node, keys));
        GHP_TRY(ghp_json_real(&node, "latency_s", 0, MAX_SECONDS, &rate->latency_s));
        GHP_TRY(ghp_json_real(&node, "bandwidth_Bps", 0, MAX_RATE, &rate->bandwidth_Bps));
        GHP_TRY(ghp_json_real(&node, "spread", 0, MAX_SECONDS, &rate->spread));
        GHP_TRY(read_source(&node, &rate->source));
    }
    return GHP_OK;
}

static enum ghp_status read_analytic(const struct ghp_node *at, struct ghp_profile *profile)
{
    static const char *const analytic_keys[] = {"flops_per_s", "memory_Bps",  "batch_half",
                                                "spread",      "comm_spread", NULL};
    static const char *const overlap_keys[] = {
        "compute",         "comm",           "link", "comm_large", "queueing_delay_s",
        "arrival_delay_s", "launch_delay_s", NULL};
    struct ghp_node node;

    GHP_TRY(ghp_json_get(at, "analytic", &node));
    GHP_TRY(ghp_json_only_keys(&node, analytic_keys));
    GHP_TRY(ghp_json_real(&node, "flops_per_s", 0, 1e24, &profile->analytic.flops_per_s));
    GHP_TRY(ghp_json_real(&node, "memory_Bps", 0, MAX_RATE, &profile->analytic.memory_Bps));
    GHP_TRY(ghp_json_opt_real(&node, "batch_half", 0, MAX_SAMPLES, &profile->analytic.batch_half));
    profile->analytic.spread = profile->analytic.comm_spread = 0;
    GHP_TRY(ghp_json_opt_real(&node, "spread", 0, MAX_SECONDS, &profile->analytic.spread));
    GHP_TRY(
        ghp_json_opt_real(&node, "comm_spread", 0, MAX_SECONDS, &profile->analytic.comm_spread));
    GHP_TRY(ghp_json_get(at, "overlap", &node));
    GHP_TRY(ghp_json_only_keys(&node, overlap_keys));
    GHP_TRY(ghp_json_real(&node, "compute", 1, 1e3, &profile->overlap.compute));
    GHP_TRY(ghp_json_real(&node, "comm", 1, 1e3, &profile->overlap.comm));
    GHP_TRY(ghp_json_real(&node, "link", 1, 1e3, &profile->overlap.link));
    profile->overlap.comm_long = profile->overlap.queueing_delay_s = 0;
    profile->overlap.arrival_delay_s = profile->overlap.launch_delay_s = 0;
    GHP_TRY(ghp_json_opt_real(&node, "comm_large", 1, 1e3, &profile->overlap.comm_long));
    GHP_TRY(ghp_json_opt_real(&node, "queueing_delay_s", 0, MAX_SECONDS,
                              &profile->overlap.queueing_delay_s));
    GHP_TRY(ghp_json_opt_real(&node, "arrival_delay_s", 0, MAX_SECONDS,
                              &profile->overlap.arrival_delay_s));
    return ghp_json_opt_real(&node, "launch_delay_s", 0, MAX_SECONDS,
                             &profile->overlap.launch_delay_s);
}

static enum ghp_status read_speed_probe(const struct ghp_node *at, struct ghp_profile *profile)
{
    static const char *const keys[] = {"compute_s", "memory_s", NULL};
    struct ghp_node node;

    if (!ghp_json_has(at, "speed_probe")) return GHP_OK;
    GHP_TRY(ghp_json_get(at, "speed_probe", &node));
    GHP_TRY(ghp_json_only_keys(&node, keys));
    GHP_TRY(ghp_json_real(&node, "compute_s", 1e-12, MAX_SECONDS, &profile->speed_probe.compute_s));
    return ghp_json_real(&node, "memory_s", 1e-12, MAX_SECONDS, &profile->speed_probe.memory_s);
}

static enum ghp_status read_speed(const struct ghp_node *item, double *speed)
{
    *speed = json_is_number(item->value) ? json_number_value(item->value) : 0;
    if (*speed >= 1 && *speed <= GHP_MOST_SPEED) return GHP_OK;
    return ghp_json_fail(item, GHP_ERR_INPUT,
                         "a worker's speed is how many times as fast as the slowest it is: give a "
                         "number from 1 to %g",
                         GHP_MOST_SPEED);
}

static enum ghp_status read_speeds(const struct ghp_node *at, struct ghp_profile *profile)
{
    struct ghp_node array, item;
    double least = GHP_MOST_SPEED;
    size_t n;

    if (!ghp_json_has(at, "worker_speed")) return GHP_OK;
    GHP_TRY(ghp_json_array(at, "worker_speed", &array, &n));
    if (n < 2 || n > MAX_WORKERS)
        return ghp_json_fail(&array, GHP_ERR_INPUT,
                             "there are %zu speeds; give one for each worker, or leave the key out",
                             n);
    profile->speeds = (struct ghp_speeds){.n = (int)n, .of = ghp_alloc(n, sizeof(double))};
    if (profile->speeds.of == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(read_speed(&item, &profile->speeds.of[i]));
        if (profile->speeds.of[i] < least) least = profile->speeds.of[i];
    }
    if (least > 1)
        return ghp_json_fail(&array, GHP_ERR_INPUT,
                             "no worker has speed 1, but the slowest one has; divide all by %g",
                             least);
    return GHP_OK;
}

static enum ghp_status read_has(const struct ghp_node *at, struct ghp_profile *profile)
{
    struct ghp_node array, item;
    size_t n;

    if (!ghp_json_has(at, "backend_operations")) return GHP_OK;
    GHP_TRY(ghp_json_array(at, "backend_operations", &array, &n));
    profile->knows_has = true;
    for (size_t i = 0; i < n; i++) {
        const char *name;
        enum ghp_op op;

        GHP_TRY(ghp_json_item(&array, i, &item));
        name = json_string_value(item.value);
        if (name == NULL || !ghp_op_find(name, &op))
            return ghp_json_fail(
                &item, GHP_ERR_INPUT,
                "this is not an operation; name those of docs/reference/formats.md");
        profile->has[op] = true;
    }
    return GHP_OK;
}

static enum ghp_status read_format(const struct ghp_node *at, struct ghp_op_memory_format *format)
{
    static const char *const keys[] = {"x", "y", "mean_s", "algorithm", NULL};
    struct ghp_node name;
    int x = 0, y = 0;

    GHP_TRY(ghp_json_only_keys(at, keys));
    GHP_TRY(ghp_json_choice(at, "x", format_names, &x));
    GHP_TRY(ghp_json_choice(at, "y", format_names, &y));
    format->x = x > 0;
    format->y = y > 0;
    GHP_TRY(ghp_json_real(at, "mean_s", 0, MAX_SECONDS, &format->seconds));
    GHP_TRY(ghp_json_get(at, "algorithm", &name));
    if (!json_is_string(name.value) || json_string_length(name.value) >= sizeof format->algorithm)
        return ghp_json_fail(&name, GHP_ERR_FORMAT,
                             "the name of an algorithm is a text of fewer than %zu characters",
                             sizeof format->algorithm);
    snprintf(format->algorithm, sizeof format->algorithm, "%s", json_string_value(name.value));
    return GHP_OK;
}

/* Each pair of formats at most once. */
static enum ghp_status read_memory_formats(const struct ghp_node *at, struct ghp_op_entry *op)
{
    struct ghp_node array, item;
    size_t n;

    if (!ghp_json_has(at, "memory_formats")) return GHP_OK;
    GHP_TRY(ghp_json_array(at, "memory_formats", &array, &n));
    if (n < 1 || n > GHP_OP_MEMORY_FORMATS)
        return ghp_json_fail(&array, GHP_ERR_INPUT,
                             "there are %zu pairs of formats; give 1 to %d, or leave the key out",
                             n, GHP_OP_MEMORY_FORMATS);
    for (size_t i = 0; i < n; i++) {
        struct ghp_op_memory_format *format = &op->memory_formats[i];

        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(read_format(&item, format));
        if (ghp_op_entry_in(op, (struct ghp_nchw16c){true, format->x, format->y}) != NULL)
            return ghp_json_fail(&item, GHP_ERR_INPUT,
                                 "these formats were there before; give each pair once");
        op->n_memory_formats = (int)i + 1;
    }
    return GHP_OK;
}

static enum ghp_status read_op(const struct ghp_node *at, struct ghp_op_entry *op)
{
    static const char *const keys[] = {
        "key",           "pass",      "mean_s",    "spread",         "source",
        "scratch_bytes", "algorithm", "contended", "memory_formats", NULL};
    const char *passes[GHP_PASS_COUNT + 1] = {NULL};
    int pass = 0;

    for (int i = 0; i < GHP_PASS_COUNT; i++)
        passes[i] = ghp_pass_name((enum ghp_pass)i);
    GHP_TRY(ghp_json_only_keys(at, keys));
    GHP_TRY(ghp_json_text(at, "key", &op->key));
    GHP_TRY(ghp_json_choice(at, "pass", passes, &pass));
    op->pass = (enum ghp_pass)pass;
    GHP_TRY(ghp_json_real(at, "mean_s", 0, MAX_SECONDS, &op->seconds));
    GHP_TRY(ghp_json_real(at, "spread", 0, MAX_SECONDS, &op->spread));
    GHP_TRY(read_source(at, &op->source));
    GHP_TRY(ghp_json_int(at, "scratch_bytes", 0, INT64_MAX, &op->scratch_bytes));
    if (ghp_json_has(at, "contended"))
        GHP_TRY(ghp_json_real(at, "contended", -1, 1, &op->contention));
    GHP_TRY(read_memory_formats(at, op));
    return ghp_json_text(at, "algorithm", &op->algorithm);
}

static enum ghp_status read_ops(const struct ghp_node *at, struct ghp_profile *profile)
{
    struct ghp_node array, item;
    size_t n;

    GHP_TRY(ghp_json_array(at, "operations", &array, &n));
    if (n > INT32_MAX / 2)
        return ghp_json_fail(&array, GHP_ERR_INPUT, "there are %zu entries; keep 2^30", n);
    profile->ops = ghp_alloc(n, sizeof *profile->ops);
    if (profile->ops == NULL) return GHP_NO_MEMORY();
    profile->max_ops = (int)n;
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&array, i, &item));
        profile->n_ops = (int)i + 1; /* what is read so far is released after a failure */
        GHP_TRY(read_op(&item, &profile->ops[i]));
    }
    return GHP_OK;
}

static enum ghp_status read_comm(const struct ghp_node *at, struct ghp_comm_entry *comm)
{
    static const char *const keys[] = {"op",     "ranks",  "stride", "bytes",
                                       "mean_s", "spread", "source", NULL};
    const char *ops[GHP_COMM_COUNT] = {NULL};
    int64_t count = 0, stride = 0;
    int op = 0;

    for (int i = 1; i < GHP_COMM_COUNT; i++)
        ops[i - 1] = ghp_comm_name((enum ghp_comm_op)i);
    GHP_TRY(ghp_json_only_keys(at, keys));
    GHP_TRY(ghp_json_choice(at, "op", ops, &op));
    GHP_TRY(ghp_json_int(at, "ranks", 2, MAX_WORKERS, &count));
    GHP_TRY(ghp_json_int(at, "stride", 1, MAX_WORKERS, &stride));
    comm->op = (enum ghp_comm_op)(op + 1);
    comm->count = (int)count;
    comm->stride = (int)stride;
    GHP_TRY(ghp_json_int(at, "bytes", 1, INT64_MAX, &comm->bytes));
    GHP_TRY(ghp_json_real(at, "mean_s", 0, MAX_SECONDS, &comm->seconds));
    GHP_TRY(ghp_json_real(at, "spread", 0, MAX_SECONDS, &comm->spread));
    return read_source(at, &comm->source);
}

static enum ghp_status read_comms(const struct ghp_node *at, struct ghp_profile *profile)
{
    struct ghp_node array, item;
    size_t n;

    GHP_TRY(ghp_json_array(at, "collectives", &array, &n));
    if (n > INT32_MAX / 2)
        return ghp_json_fail(&array, GHP_ERR_INPUT, "there are %zu entries; keep 2^30", n);
    profile->comms = ghp_alloc(n, sizeof *profile->comms);
    if (profile->comms == NULL) return GHP_NO_MEMORY();
    profile->max_comms = profile->n_comms = (int)n;
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(read_comm(&item, &profile->comms[i]));
    }
    return GHP_OK;
}

static enum ghp_status read_fields(const struct ghp_node *at, struct ghp_profile *profile)
{
    static const char *const keys[] = {"format",        "backend",    "numerics",
                                       "element_bytes", "tf32",       "workers",
                                       "created",       "host",       "reserved_bytes",
                                       "machine",       "analytic",   "overlap",
                                       "speed_probe",   "disturbed",  "worker_speed",
                                       "rates",         "operations", "collectives",
                                       "prefetch",      "on_device",  "backend_operations",
                                       "data",          "threads",    ghp_vocabulary_key,
                                       NULL};
    int64_t element_bytes = 0, workers = 0, threads = 0;
    struct ghp_node node;

    GHP_TRY(ghp_json_only_keys(at, keys));
    GHP_TRY(ghp_json_format(at, FORMAT));
    GHP_TRY(ghp_json_text(at, "backend", &profile->backend));
    GHP_TRY(ghp_json_text(at, "numerics", &profile->numerics));
    GHP_TRY(ghp_json_int(at, "element_bytes", 2, 8, &element_bytes));
    if (element_bytes != 2 && element_bytes != 4 && element_bytes != 8) {
        GHP_TRY(ghp_json_get(at, "element_bytes", &node));
        return ghp_json_fail(&node, GHP_ERR_INPUT, "no number has %d bytes; use 2, 4 or 8",
                             (int)element_bytes);
    }
    GHP_TRY(ghp_json_opt_bool(at, "tf32", &profile->tf32));
    if (profile->tf32 && element_bytes != 4) {
        GHP_TRY(ghp_json_get(at, "tf32", &node));
        return ghp_json_fail(&node, GHP_ERR_INPUT, "tf32 numbers have 4 bytes, not %d; use false",
                             (int)element_bytes);
    }
    GHP_TRY(ghp_json_opt_int(at, "reserved_bytes", 0, INT64_MAX, &profile->reserved_bytes));
    GHP_TRY(ghp_json_opt_bool(at, "prefetch", &profile->prefetch));
    profile->on_device = profile->joins = strcmp(profile->backend, "cuda") == 0;
    GHP_TRY(ghp_json_opt_bool(at, "on_device", &profile->on_device));
    GHP_TRY(ghp_vocabulary_read(at, &profile->vocabulary_multiple));
    GHP_TRY(ghp_json_opt_text(at, "data", &profile->data));
    GHP_TRY(read_has(at, profile));
    GHP_TRY(ghp_json_int(at, "workers", 0, MAX_WORKERS, &workers));
    GHP_TRY(ghp_json_opt_int(at, "threads", 1, MAX_THREADS, &threads));
    profile->element_bytes = (int)element_bytes;
    profile->workers = (int)workers;
    profile->threads = (int)threads;
    GHP_TRY(ghp_json_text(at, "created", &profile->created));
    GHP_TRY(ghp_json_text(at, "host", &profile->host));
    GHP_TRY(ghp_json_get(at, "machine", &node));
    GHP_TRY(ghp_machine_read(&node, &profile->machine));
    GHP_TRY(read_analytic(at, profile));
    GHP_TRY(read_speed_probe(at, profile));
    GHP_TRY(ghp_json_opt_real(at, "disturbed", 0, 1e3, &profile->disturbed));
    GHP_TRY(read_speeds(at, profile));
    GHP_TRY(read_rates(at, profile));
    GHP_TRY(read_ops(at, profile));
    return read_comms(at, profile);
}

enum ghp_status ghp_profile_finalize(struct ghp_profile *profile)
{
    GHP_TRY(ghp_profile_sort(profile));
    GHP_TRY(ghp_embed_hash_of(ghp_profile_json(profile), &profile->hash));
    profile->finalized = true;
    return GHP_OK;
}

enum ghp_status ghp_profile_read(const struct ghp_node *at, struct ghp_profile *profile)
{
    enum ghp_status status;

    *profile = (struct ghp_profile){0};
    status = read_fields(at, profile);
    if (status == GHP_OK) {
        status = ghp_profile_finalize(profile);
        if (status != GHP_OK) status = ghp_json_fail(at, status, "%s", ghp_status_message());
    }
    if (status != GHP_OK) ghp_profile_release(profile);
    return status;
}

enum ghp_status ghp_profile_load(const char *path, struct ghp_profile *profile)
{
    enum ghp_status status;
    struct ghp_node root;
    struct ghp_json doc;

    *profile = (struct ghp_profile){0};
    GHP_TRY(ghp_json_load(path, FORMAT, &doc));
    root = ghp_json_root(&doc);
    status = ghp_profile_read(&root, profile);
    ghp_json_release(&doc);
    return status;
}

enum ghp_status ghp_profile_save(const char *path, const struct ghp_profile *profile)
{
    return ghp_json_lines_save(path, ghp_profile_json(profile));
}
