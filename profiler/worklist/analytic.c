/* profiler/worklist/analytic.c - reads `F=6e12,bandwidth=1.25e9,latency=20e-6` and makes a profile of it. */
#include "profiler/worklist/analytic.h"
#include "core/base/text.h"
#include "core/base/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CORES_MAX = 65536 };

/* One key: its range, and where it goes. */
struct field {
    const char *key;
    double min, max;
    bool required, positive; /* positive: min itself is not allowed */
    double value;
    bool given;
};

enum field_id {
    FLOPS,
    BANDWIDTH,
    LATENCY,
    INTRA_BANDWIDTH,
    INTRA_LATENCY,
    MEMORY,
    MEMORY_BANDWIDTH,
    BATCH_HALF,
    NODES,
    CORES,
    COMPUTE_SLOWDOWN,
    COMM_SLOWDOWN,
    LINK_SLOWDOWN,
    FIELDS
};

static const struct field fields[FIELDS] = {
    [FLOPS] = {.key = "F", .max = 1e21, .required = true, .positive = true},
    [BANDWIDTH] = {.key = "bandwidth", .max = 1e15, .required = true, .positive = true},
    [LATENCY] = {.key = "latency", .max = 10, .required = true},
    [INTRA_BANDWIDTH] = {.key = "intra_bandwidth", .max = 1e15, .positive = true},
    [INTRA_LATENCY] = {.key = "intra_latency", .max = 10},
    [MEMORY] = {.key = "memory", .max = 1e18, .positive = true, .value = 1099511627776.0},
    [MEMORY_BANDWIDTH] = {.key = "memory_bandwidth", .max = 1e15},
    [BATCH_HALF] = {.key = "batch_half", .max = 1e9},
    [NODES] = {.key = "nodes", .max = GHP_ANALYTIC_NODES},
    [CORES] = {.key = "cores", .min = 1, .max = CORES_MAX, .value = 1},
    [COMPUTE_SLOWDOWN] = {.key = "compute_slowdown", .min = 1, .max = 1000, .value = 1},
    [COMM_SLOWDOWN] = {.key = "comm_slowdown", .min = 1, .max = 1000, .value = 1},
    [LINK_SLOWDOWN] = {.key = "link_slowdown", .min = 1, .max = 1000, .value = 1},
};

static bool is_whole(int id)
{
    return id == NODES || id == CORES;
}

static enum ghp_status read_value(const char *text, int id, double *value)
{
    char *end = NULL;
    char low[32], high[32];
    int64_t bytes = 0;

    if (id == MEMORY) {
        GHP_TRY(ghp_bytes_parse(text, &bytes));
        *value = (double)bytes;
    } else {
        errno = 0;
        *value = strtod(text, &end);
        if (end == text || *end != '\0' || errno == ERANGE)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "cannot read --analytic: '%s=%s' is not a number; write it "
                            "like %s=6e12",
                            fields[id].key, text, fields[id].key);
    }
    if (*value >= fields[id].min && *value <= fields[id].max &&
        (!fields[id].positive || *value > fields[id].min) &&
        (!is_whole(id) || (double)(int64_t)*value >= *value))
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE, "cannot use --analytic '%s=%s'; give a %s %s %s, at most %s",
                    fields[id].key, text, is_whole(id) ? "whole number" : "number",
                    fields[id].positive ? "above" : "of at least",
                    ghp_text_number(fields[id].min, low, sizeof low),
                    ghp_text_number(fields[id].max, high, sizeof high));
}

/* One `key=value` into its field. */
static enum ghp_status read_item(char *item, struct field *into)
{
    const char *keys[FIELDS + 1] = {NULL};
    char all[256];
    char *value = strchr(item, '=');
    const char *nearest = NULL;

    for (int i = 0; i < FIELDS; i++)
        keys[i] = into[i].key;
    if (value == NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot read --analytic: '%s' has no value; write key=value "
                        "with keys %s",
                        item, ghp_text_join(keys, all, sizeof all));
    *value++ = '\0';
    for (int i = 0; i < FIELDS; i++) {
        if (strcmp(item, into[i].key) != 0) continue;
        if (into[i].given)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "cannot read --analytic: '%s' is given twice; give it "
                            "once",
                            item);
        into[i].given = true;
        return read_value(value, i, &into[i].value);
    }
    nearest = ghp_text_nearest(item, keys);
    if (nearest != NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot read --analytic: unknown key '%s'; did you mean "
                        "'%s'?",
                        item, nearest);
    return GHP_FAIL(GHP_ERR_USAGE, "cannot read --analytic: unknown key '%s'; use %s", item,
                    ghp_text_join(keys, all, sizeof all));
}

static enum ghp_status check_fields(const struct field *got)
{
    for (int i = 0; i < FIELDS; i++)
        if (got[i].required && !got[i].given)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "cannot read --analytic: '%s' is missing; give at least "
                            "F=6e12,bandwidth=1.25e9,latency=20e-6",
                            got[i].key);
    if (got[NODES].value > 0 && !got[CORES].given)
        return GHP_FAIL(GHP_ERR_USAGE, "cannot read --analytic: 'nodes' is given without 'cores'; "
                                       "add cores=C, the cores of one node");
    return GHP_OK;
}

enum ghp_status ghp_analytic_parse(const char *text, struct ghp_analytic *analytic)
{
    struct field got[FIELDS];
    char *copy = strdup(text);
    char *rest = copy;
    enum ghp_status status = GHP_OK;

    if (copy == NULL) return GHP_NO_MEMORY();
    memcpy(got, fields, sizeof got);
    while (rest != NULL && status == GHP_OK) {
        char *comma = strchr(rest, ',');
        char *item = rest;

        if (comma != NULL) *comma = '\0';
        rest = comma != NULL ? comma + 1 : NULL;
        status = read_item(item, got);
    }
    free(copy);
    GHP_TRY(status);
    GHP_TRY(check_fields(got));
    memset(analytic, 0, sizeof *analytic);
    analytic->flops_per_s = got[FLOPS].value;
    analytic->inter.bandwidth_Bps = got[BANDWIDTH].value;
    analytic->inter.latency_s = got[LATENCY].value;
    analytic->intra = analytic->inter;
    if (got[INTRA_BANDWIDTH].given) analytic->intra.bandwidth_Bps = got[INTRA_BANDWIDTH].value;
    if (got[INTRA_LATENCY].given) analytic->intra.latency_s = got[INTRA_LATENCY].value;
    analytic->memory_bytes = (int64_t)got[MEMORY].value;
    analytic->memory_Bps = got[MEMORY_BANDWIDTH].value;
    analytic->batch_half = got[BATCH_HALF].value;
    analytic->nodes = got[NODES].value > 0 ? (int)got[NODES].value : GHP_ANALYTIC_NODES;
    analytic->cores = (int)got[CORES].value;
    analytic->overlap.compute = got[COMPUTE_SLOWDOWN].value;
    analytic->overlap.comm = got[COMM_SLOWDOWN].value;
    analytic->overlap.link = got[LINK_SLOWDOWN].value;
    return GHP_OK;
}

static enum ghp_status fill_machine(const struct ghp_analytic *analytic,
                                    struct ghp_machine *machine)
{
    machine->name = strdup("analytic");
    machine->nodes = analytic->nodes;
    machine->packages = 1;
    machine->cores = analytic->cores;
    machine->threads = analytic->cores;
    machine->n_pus = analytic->cores;
    machine->pus = ghp_alloc((size_t)analytic->cores, sizeof *machine->pus);
    if (machine->name == NULL || machine->pus == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < analytic->cores; i++)
        machine->pus[i] = i;
    machine->memory_bytes = analytic->memory_bytes;
    machine->intra = analytic->intra;
    machine->inter = analytic->inter;
    return GHP_OK;
}

static enum ghp_status fill(const struct ghp_analytic *analytic, const char *numerics,
                            int element_bytes, struct ghp_profile *profile)
{
    struct ghp_rate rate = {.bandwidth_Bps = analytic->memory_Bps, .source = GHP_SOURCE_ANALYTIC};

    GHP_TRY(ghp_profile_init(profile, "analytic", numerics, element_bytes));
    free(profile->created); /* provenance that a second run repeats */
    free(profile->host);
    profile->created = strdup("analytic");
    profile->host = strdup("analytic");
    if (profile->created == NULL || profile->host == NULL) return GHP_NO_MEMORY();
    ghp_machine_release(&profile->machine);
    GHP_TRY(fill_machine(analytic, &profile->machine));
    profile->workers = 0;
    profile->analytic.flops_per_s = analytic->flops_per_s;
    profile->analytic.memory_Bps = analytic->memory_Bps;
    profile->analytic.batch_half = analytic->batch_half;
    profile->copy = rate;
    profile->update[GHP_OPTIMIZER_INDEX_sgd] = rate; /* and so of all */
    profile->load = rate;
    profile->accumulate = rate;
    profile->overlap = analytic->overlap;
    return ghp_profile_finalize(profile);
}

enum ghp_status ghp_analytic_profile(const struct ghp_analytic *analytic, const char *numerics,
                                     int element_bytes, struct ghp_profile *profile)
{
    enum ghp_status status = GHP_OK;

    memset(profile, 0, sizeof *profile);
    status = fill(analytic, numerics, element_bytes, profile);
    if (status != GHP_OK) ghp_profile_release(profile);
    return status;
}
