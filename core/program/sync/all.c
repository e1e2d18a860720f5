/* core/program/sync/all.c - all synchronisers, by name. */
#include "core/program/sync.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct ghp_sync_ops *const all[] = {
    &ghp_sync_allreduce, &ghp_sync_sharded,    &ghp_sync_local, &ghp_sync_bsp,
    &ghp_sync_asp,       &ghp_sync_ssp,        &ghp_sync_easgd, &ghp_sync_aladdin,
    &ghp_sync_gosgd,     &ghp_sync_ad_psgd,    &ghp_sync_lsgd,  &ghp_sync_dgd,
    &ghp_sync_sgp,       &ghp_sync_sgp_overlap};
enum { N_SYNCS = sizeof all / sizeof all[0] };

const char *const ghp_sync_names[N_SYNCS + 1] = {
    "allreduce", "sharded", "local", "bsp", "asp", "ssp",         "easgd", "aladdin",
    "gosgd",     "ad-psgd", "lsgd",  "dgd", "sgp", "sgp-overlap", NULL};

struct ghp_sync ghp_sync_at(int index)
{
    struct ghp_sync sync = {0};

    GHP_ASSERT(index >= 0 && index < N_SYNCS);
    sync.ops = all[index];
    sync.servers = sync.ops->serves;
    if (sync.ops->argument != NULL)
        sync.argument = sync.ops->usual >= 0 ? sync.ops->usual : sync.ops->least;
    return sync;
}

static enum ghp_status fail_argument(const struct ghp_sync_ops *ops, const char *text)
{
    char word[48] = "";

    if (ops->argument == NULL)
        return GHP_FAIL(GHP_ERR_INPUT, "the synchroniser '%s' takes no argument; write '%s'", text,
                        ops->name);
    if (ops->is_chance)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the synchroniser '%s' wants a probability %s, from 0.000001 to 1; write "
                        "'%s:0.1' for a message in every tenth step",
                        text, ops->argument, ops->name);
    if (ops->wants != NULL)
        return GHP_FAIL(GHP_ERR_INPUT, "the synchroniser '%s' wants %s", text, ops->wants);
    if (ops->other != NULL)
        snprintf(word, sizeof word, ", or '%s:8,%s' for its other rule", ops->name, ops->other);
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the synchroniser '%s' wants %s steps, %d to %d; write '%s:8' for 8 steps%s",
                    text, ops->argument, ops->least, GHP_SYNC_MOST, ops->name, word);
}

/* Reads "0.01", after the name and its colon. */
static bool read_chance(const char *text, struct ghp_sync *sync)
{
    char *end = NULL;
    double value;

    if ((text[0] < '0' || text[0] > '9') && text[0] != '.') return false;
    value = strtod(text, &end);
    if (!(value > 0) || value > 1 || *end != '\0') return false;
    sync->argument = (int)lround(value * GHP_SYNC_SURE);
    return sync->argument >= 1;
}

/* Reads "8" or "8,free", after the name and its colon. */
static bool read_argument(const struct ghp_sync_ops *ops, const char *text, struct ghp_sync *sync)
{
    char *end = NULL;
    long value;

    if (ops->read != NULL) return ops->read(text, sync);
    if (ops->is_chance) return read_chance(text, sync);
    if (text[0] < '0' || text[0] > '9') return false;
    value = strtol(text, &end, 10);
    if (ops->argument == NULL || value < ops->least || value > GHP_SYNC_MOST) return false;
    sync->argument = (int)value;
    sync->other = ops->other != NULL && *end == ',' && strcmp(end + 1, ops->other) == 0;
    return sync->other || *end == '\0';
}

enum ghp_status ghp_sync_parse(const char *text, struct ghp_sync *sync)
{
    size_t n = strcspn(text, ":");
    const char *argument = text[n] == ':' ? text + n + 1 : NULL;

    for (int i = 0; i < N_SYNCS; i++) {
        if (strlen(all[i]->name) != n || strncmp(all[i]->name, text, n) != 0) continue;
        *sync = ghp_sync_at(i);
        if (argument != NULL)
            return read_argument(all[i], argument, sync) ? GHP_OK : fail_argument(all[i], text);
        return all[i]->argument == NULL || all[i]->usual >= 0 ? GHP_OK
                                                              : fail_argument(all[i], text);
    }
    return GHP_FAIL(GHP_ERR_INPUT,
                    "there is no synchroniser '%s'; use allreduce, sharded, local:TAU, bsp, asp, "
                    "ssp:S, easgd:TAU, aladdin:PI, gosgd:P, ad-psgd, lsgd:GROUPS,TAU, "
                    "dgd:GRAPH, sgp or sgp-overlap:TAU",
                    text);
}
