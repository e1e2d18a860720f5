/* core/program/sync.c - what follows from a synchroniser's ops, and the ops of the one that adds nothing to a layer's
 * own passes but sums: every worker gets the sum of the gradients, and updates all the weights it holds. */
#include "core/program/sync.h"

#include <stdio.h>
#include <string.h>

const struct ghp_sync_ops ghp_sync_allreduce = {
    .name = "allreduce",
    .purpose = "each worker updates all weights it holds",
    .equality = GHP_SYNC_EQUALS_ONE_WORKER,
    .reduces = true,
};

const struct ghp_sync_ops *ghp_sync_ops_of(struct ghp_sync sync)
{
    return sync.ops != NULL ? sync.ops : &ghp_sync_allreduce;
}

bool ghp_sync_same(struct ghp_sync a, struct ghp_sync b)
{
    char texts[2][GHP_SYNC_TEXT_BYTES];

    ghp_sync_format(a, texts[0]);
    ghp_sync_format(b, texts[1]);
    return a.servers == b.servers && strcmp(texts[0], texts[1]) == 0;
}

int ghp_sync_period(struct ghp_sync sync)
{
    const struct ghp_sync_ops *ops = ghp_sync_ops_of(sync);

    return ops->mixing == NULL && ops->argument != NULL ? sync.argument : 1;
}

int ghp_sync_leader_period(struct ghp_sync sync)
{
    return sync.groups > 1 ? GHP_SYNC_LEADER_PERIODS * sync.argument : sync.argument;
}

int ghp_sync_metric_period(struct ghp_sync sync)
{
    int period = ghp_sync_period(sync);

    return period < GHP_SYNC_METRICS_MOST ? period : GHP_SYNC_METRICS_MOST;
}

int ghp_sync_staleness(struct ghp_sync sync)
{
    const struct ghp_mixing_facts *mixing = ghp_sync_ops_of(sync)->mixing;

    if (mixing == NULL) return ghp_sync_period(sync) - 1;
    return mixing->staleness != NULL ? mixing->staleness(sync) : 0;
}

double ghp_sync_mean_staleness(struct ghp_sync sync, int workers)
{
    const struct ghp_mixing_facts *mixing = ghp_sync_ops_of(sync)->mixing;

    if (mixing == NULL) return ghp_sync_staleness(sync) / 2.0; /* 0, 1, ... from one average on */
    return mixing->mean_staleness != NULL ? mixing->mean_staleness(sync, workers) : 0;
}

bool ghp_sync_runs_free(struct ghp_sync sync)
{
    const struct ghp_mixing_facts *mixing = ghp_sync_ops_of(sync)->mixing;

    return mixing != NULL && mixing->asynchronous;
}

bool ghp_sync_keeps_step(struct ghp_sync sync)
{
    return !ghp_sync_runs_free(sync) || ghp_sync_ops_of(sync)->mixing->in_step(sync);
}

int ghp_sync_replicas(struct ghp_sync sync, int workers)
{
    return ghp_sync_ops_of(sync)->replicas ? workers : 1;
}

bool ghp_sync_wants_data(struct ghp_sync sync)
{
    return ghp_sync_ops_of(sync)->replicas || ghp_sync_ops_of(sync)->serves;
}

/* ---- texts ---- */

/* "0.01": as few digits as say it. */
static void format_chance(const struct ghp_sync_ops *ops, int millionths,
                          char text[GHP_SYNC_TEXT_BYTES])
{
    int digits = 6;

    for (; digits > 0 && millionths % 10 == 0; digits--)
        millionths /= 10;
    if (digits == 0)
        snprintf(text, GHP_SYNC_TEXT_BYTES, "%s:%d", ops->name, millionths);
    else
        snprintf(text, GHP_SYNC_TEXT_BYTES, "%s:0.%0*d", ops->name, digits, millionths);
}

void ghp_sync_format(struct ghp_sync sync, char text[GHP_SYNC_TEXT_BYTES])
{
    const struct ghp_sync_ops *ops = ghp_sync_ops_of(sync);
    char argument[GHP_NEIGHBOURS_TEXT_BYTES];

    if (ops->write != NULL) {
        ops->write(sync, argument);
        snprintf(text, GHP_SYNC_TEXT_BYTES, "%.8s:%s", ops->name, argument);
    } else if (ops->argument == NULL)
        snprintf(text, GHP_SYNC_TEXT_BYTES, "%s", ops->name);
    else if (ops->is_chance)
        format_chance(ops, sync.argument, text);
    else
        snprintf(text, GHP_SYNC_TEXT_BYTES, "%s:%d%s%s", ops->name, sync.argument,
                 sync.other ? "," : "", sync.other ? ops->other : "");
}

const char *ghp_sync_equality_text(enum ghp_sync_equality equality)
{
    switch (equality) {
    case GHP_SYNC_EQUALS_ONE_WORKER: return "equal to one worker";
    case GHP_SYNC_EQUALS_REPLICAS: return "equal to one process that trains the replicas in turn";
    case GHP_SYNC_EQUALS_NOTHING: return "another algorithm, equal to no other training";
    }
    return NULL;
}

/* ---- what can be had ---- */

static enum ghp_status check_layer(struct ghp_sync sync, const struct ghp_layer *layer,
                                   const struct ghp_split *split)
{
    const struct ghp_sync_ops *ops = ghp_sync_ops_of(sync);
    char text[32];

    if (ghp_op_of(layer->op)->has_batch_statistics &&
        (layer->norm.ghost_batch > 0 ||
         (layer->norm.local_stats && ops->serves && ops->mixing == NULL)))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' takes statistics of %s, and by '%s' %s; leave --batch-norm and "
                        "\"statistics\" out, or use --sync allreduce",
                        layer->name,
                        layer->norm.local_stats ? "each worker's own samples" : "ghost batches",
                        ops->name,
                        ops->serves ? "nobody adds them up: servers add gradients alone"
                                    : "each worker takes those of its own samples");
    if (split != NULL && split->sharding != GHP_SHARDING_NONE)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' has its parameters sharded by '%s', and by '%s' each worker "
                        "has all weights; use --shard none, or --sync allreduce or sharded",
                        layer->name, ghp_param_sharding_names[split->sharding], ops->name);
    if (split == NULL || (split->kind == GHP_SPLIT_DATA && split->tp_size == 1)) return GHP_OK;
    ghp_split_format(*split, text, sizeof text);
    return GHP_FAIL(GHP_ERR_INPUT,
                    "layer '%s' is split by '%s', and by '%s' each worker has all weights%s; split "
                    "it by data, or use --sync allreduce",
                    layer->name, text, ops->name, ops->replicas ? ", which differ" : "");
}

enum ghp_status ghp_sync_check(struct ghp_sync sync, const struct ghp_sync_place *place)
{
    const struct ghp_sync_ops *ops = ghp_sync_ops_of(sync);
    const struct ghp_staging *staging = place->staging;

    if (!ghp_sync_wants_data(sync)) return GHP_OK;
    if (staging != NULL &&
        (staging->n > 1 || staging->micro_batches > 1 || staging->shares != NULL))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "by '%s' each worker has all layers, and takes its samples at once, as "
                        "many as the others; leave stages, micro-batches and unequal shares out, "
                        "or use --sync allreduce",
                        ops->name);
    if (place->clips)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "by '%s' no worker has the sum of all gradients, whose norm is clipped; leave "
            "--clip-norm out, or use --sync allreduce",
            ops->name);
    if (ops->check != NULL && place->workers > 0) GHP_TRY(ops->check(sync, place->workers));
    for (int i = 0; i < place->model->n_layers; i++)
        GHP_TRY(check_layer(sync, &place->model->layers[i],
                            place->splits != NULL ? &place->splits[i] : NULL));
    return GHP_OK;
}
