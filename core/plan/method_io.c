/* core/plan/method_io.c - see plan/method_io.h. */
#include "core/plan/method_io.h"

#include "core/base/units.h"

#include <limits.h>
#include <stdio.h>

/* ---- as plans have it ---- */

const char *const ghp_reduce_precision_names[] = {"full", "bf16", NULL};

void ghp_method_write(const struct ghp_method *method, json_t *object, bool *failed)
{
    char sync[GHP_SYNC_TEXT_BYTES];

    ghp_json_put(object, "bucket_cap_bytes", json_integer(method->bucket_bytes), failed);
    if (method->sync.ops != NULL) {
        ghp_sync_format(method->sync, sync);
        ghp_json_put(object, "sync", json_string(sync), failed);
    }
    if (method->sync.servers > 0)
        ghp_json_put(object, "servers", json_integer(method->sync.servers), failed);
    if (ghp_optimizer_index(method->optimizer) != GHP_OPTIMIZER_INDEX_sgd)
        ghp_json_put(object, "optimizer", json_string(method->optimizer->name), failed);
    if (ghp_method_clips(method))
        ghp_json_put(object, "clip_norm", json_real(method->clip_norm), failed);
    if (method->shard_within > 0)
        ghp_json_put(object, "shard_within", json_integer(method->shard_within), failed);
    if (method->reduces_bf16)
        ghp_json_put(object, "reduce_precision",
                     json_string(ghp_reduce_precision_names[method->reduces_bf16]), failed);
    if (method->scaling != NULL)
        ghp_json_put(object, "lr_scaling", json_string(method->scaling->name), failed);
}

/* Reads the number of servers of a synchroniser that has them; one, if the key is absent. */
static enum ghp_status read_servers(const struct ghp_node *object, struct ghp_sync *sync)
{
    int64_t servers = sync->servers;
    struct ghp_node at;

    GHP_TRY(ghp_json_opt_int(object, "servers", 1, GHP_SYNC_SERVERS_MOST, &servers));
    if (servers > 0 && sync->servers == 0) {
        GHP_TRY(ghp_json_get(object, "servers", &at));
        return ghp_json_fail(&at, GHP_ERR_FORMAT, "by '%s' there are no servers; leave it out",
                             ghp_sync_ops_of(*sync)->name);
    }
    sync->servers = (int)servers;
    return GHP_OK;
}

static enum ghp_status read_sync(const struct ghp_node *object, struct ghp_sync *sync)
{
    char text[GHP_SYNC_TEXT_BYTES];
    struct ghp_node at;

    if (!ghp_json_has(object, "sync")) return read_servers(object, sync);
    GHP_TRY(ghp_json_text_n(object, "sync", text, sizeof text));
    if (ghp_sync_parse(text, sync) == GHP_OK) return read_servers(object, sync);
    GHP_TRY(ghp_json_get(object, "sync", &at));
    return ghp_json_fail(&at, GHP_ERR_FORMAT, "%s", ghp_status_message());
}

enum ghp_status ghp_method_read(const struct ghp_node *object, struct ghp_method *method)
{
    int optimizer = 0, scaling = 0, reduced = 0;
    int64_t within = 0;

    GHP_TRY(ghp_json_int(object, "bucket_cap_bytes", 0, INT64_MAX, &method->bucket_bytes));
    GHP_TRY(read_sync(object, &method->sync));
    GHP_TRY(ghp_json_opt_real(object, "clip_norm", GHP_CLIP_NORM_LEAST, GHP_CLIP_NORM_MOST,
                              &method->clip_norm));
    GHP_TRY(ghp_json_opt_int(object, "shard_within", 2, INT_MAX, &within));
    method->shard_within = (int)within;
    if (ghp_json_has(object, "reduce_precision"))
        GHP_TRY(ghp_json_choice(object, "reduce_precision", ghp_reduce_precision_names, &reduced));
    method->reduces_bf16 = reduced > 0;
    if (ghp_json_has(object, "lr_scaling"))
        GHP_TRY(ghp_json_choice(object, "lr_scaling", ghp_lr_scaling_names, &scaling));
    method->scaling = ghp_lr_scaling_at(scaling);
    if (!ghp_json_has(object, "optimizer")) return GHP_OK;
    GHP_TRY(ghp_json_choice(object, "optimizer", ghp_optimizer_names, &optimizer));
    method->optimizer = ghp_optimizer_at(optimizer);
    return GHP_OK;
}

/* ---- two of them ---- */

static const struct ghp_optimizer *optimizer_of(const struct ghp_method *method)
{
    return ghp_optimizer_at(ghp_optimizer_index(method->optimizer));
}

enum ghp_status ghp_method_check_alike(const struct ghp_method *a, const struct ghp_method *b)
{
    if (optimizer_of(a) == optimizer_of(b) && ghp_method_clips(a) == ghp_method_clips(b) &&
        a->scaling == b->scaling)
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "they are for two optimizers, or only one of them clips or scales rates; "
                    "plan with the same --optimizer, --clip-norm and --lr-scaling");
}

enum ghp_status ghp_method_check_within(int within, int workers)
{
    int divisor = within < workers ? within : workers;

    if (within == 0 || (within > 1 && workers % within == 0)) return GHP_OK;
    while (divisor > 1 && workers % divisor != 0)
        divisor--;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "%d workers are not groups of %d to shard parameters within; use "
                    "--shard-within %d, or another divisor of %d",
                    workers, within, divisor > 1 ? divisor : workers, workers);
}

enum ghp_status ghp_method_check_reduced(const struct ghp_method *method, bool shards,
                                         int element_bytes)
{
    if (!method->reduces_bf16 ||
        (!shards && element_bytes < 8 && ghp_sync_ops_of(method->sync) == &ghp_sync_allreduce))
        return GHP_OK;
    if (element_bytes == 8)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "gradients of a training in double do not travel in bf16; plan with "
                        "--reduce-precision full");
    return GHP_FAIL(GHP_ERR_INPUT,
                    "gradients travel in bf16 by all-reduce alone; plan with --sync allreduce and "
                    "without --shard, or with --reduce-precision full");
}

/* A row that is filled but for its texts: `a` with one part of b's. */
static struct ghp_method_difference *add(struct ghp_method_difference *rows, int *n,
                                         const struct ghp_method *a, const char *what)
{
    rows[*n] = (struct ghp_method_difference){.what = what, .with = *a};
    return &rows[(*n)++];
}

static void format_norm(double norm, char text[GHP_SYNC_TEXT_BYTES])
{
    if (norm > 0)
        snprintf(text, GHP_SYNC_TEXT_BYTES, "%g", norm);
    else
        snprintf(text, GHP_SYNC_TEXT_BYTES, "none");
}

static void format_within(const struct ghp_method *method, char text[GHP_SYNC_TEXT_BYTES])
{
    if (method->shard_within > 0)
        snprintf(text, GHP_SYNC_TEXT_BYTES, "%d", method->shard_within);
    else
        snprintf(text, GHP_SYNC_TEXT_BYTES, "all");
}

static const char *scaling_of(const struct ghp_method *method)
{
    return method->scaling != NULL ? method->scaling->name : "none";
}

int ghp_method_differences(const struct ghp_method *a, const struct ghp_method *b,
                           struct ghp_method_difference rows[GHP_METHOD_PARTS])
{
    struct ghp_method_difference *row;
    int n = 0;

    if (!ghp_sync_same(a->sync, b->sync)) {
        row = add(rows, &n, a, "synchroniser");
        row->with.sync = b->sync;
        ghp_sync_format(a->sync, row->texts[0]);
        ghp_sync_format(b->sync, row->texts[1]);
    }
    if (optimizer_of(a) != optimizer_of(b)) {
        row = add(rows, &n, a, "optimizer");
        row->with.optimizer = b->optimizer;
        snprintf(row->texts[0], sizeof row->texts[0], "%s", optimizer_of(a)->name);
        snprintf(row->texts[1], sizeof row->texts[1], "%s", optimizer_of(b)->name);
    }
    if (a->clip_norm != b->clip_norm) {
        row = add(rows, &n, a, "gradients clipped to norm");
        row->with.clip_norm = b->clip_norm;
        format_norm(a->clip_norm, row->texts[0]);
        format_norm(b->clip_norm, row->texts[1]);
    }
    if (a->scaling != b->scaling) {
        row = add(rows, &n, a, "learning-rate scaling");
        row->with.scaling = b->scaling;
        snprintf(row->texts[0], sizeof row->texts[0], "%s", scaling_of(a));
        snprintf(row->texts[1], sizeof row->texts[1], "%s", scaling_of(b));
    }
    if (a->shard_within != b->shard_within) {
        row = add(rows, &n, a, "workers that parameters are sharded within");
        row->with.shard_within = b->shard_within;
        format_within(a, row->texts[0]);
        format_within(b, row->texts[1]);
    }
    if (a->reduces_bf16 != b->reduces_bf16) {
        row = add(rows, &n, a, "precision in which gradients are reduced");
        row->with.reduces_bf16 = b->reduces_bf16;
        for (int i = 0; i < 2; i++)
            snprintf(row->texts[i], sizeof row->texts[i], "%s",
                     ghp_reduce_precision_names[(i == 0 ? a : b)->reduces_bf16]);
    }
    if (a->bucket_bytes != b->bucket_bytes) {
        row = add(rows, &n, a, "gradients reduced together, up to");
        row->with.bucket_bytes = b->bucket_bytes;
        ghp_bytes_format((double)a->bucket_bytes, row->texts[0], sizeof row->texts[0]);
        ghp_bytes_format((double)b->bucket_bytes, row->texts[1], sizeof row->texts[1]);
    }
    return n;
}
