/* core/cost/profile_peak.c - see profile_peak.h. */
#include "core/cost/profile_peak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stands in place of the date and host of a measured profile. */
static const char created[] = "rule of thumb";

const double ghp_peak_range[2] = {0.63, 1.73};

int ghp_peak_nodes(const struct ghp_machine *machine, int workers)
{
    int gpus = machine->gpus.count;

    return gpus > 0 ? (workers + gpus - 1) / gpus : 1;
}

void ghp_peak_take_fp16(struct ghp_peak *peak)
{
    int half = ghp_precision_index((struct ghp_precision){.element_bytes = 2});

    if (peak->fp16_flops_per_s > 0) peak->flops_per_s[half] = peak->fp16_flops_per_s;
}

bool ghp_profile_is_peak(const struct ghp_profile *profile)
{
    return profile->created != NULL && strcmp(profile->created, created) == 0;
}

const char *ghp_peak_sentence(void)
{
    static char text[256];

    snprintf(
        text, sizeof text,
        "nothing was measured: by rule of thumb, %d %% of data sheets' FLOPs and %d %% of their "
        "bandwidth; ghp-profile measures",
        GHP_PEAK_FLOPS, GHP_PEAK_BANDWIDTH);
    return text;
}

/* "float, tf32" of those that the machine has figures of. */
static const char *list_precisions(const struct ghp_machine *machine, char *text, size_t n)
{
    size_t used = 0;

    text[0] = '\0';
    for (int p = 0; p < GHP_PRECISIONS && used < n; p++)
        if (machine->peak.flops_per_s[p] > 0)
            used += (size_t)snprintf(text + used, n - used, "%s%s", used > 0 ? ", " : "",
                                     ghp_precision_names[p]);
    return text;
}

static enum ghp_status check(const struct ghp_machine *machine, int workers,
                             struct ghp_precision precision)
{
    int per_node = ghp_machine_workers_per_node(machine, workers), gpus = machine->gpus.count;
    int index = ghp_precision_index(precision);
    char list[64];

    if (list_precisions(machine, list, sizeof list)[0] == '\0' || !(machine->peak.memory_Bps > 0))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "machine '%s' has no peak figures to plan by; measure it and give "
                        "--profile PROFILE, or take one that --machine list shows",
                        machine->name);
    if (index < 0 || !(machine->peak.flops_per_s[index] > 0))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "machine '%s' does not compute in %s; give --precision one of: %s",
                        machine->name, ghp_precision_name(precision), list);
    if (gpus > 0 && per_node > gpus)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%d workers on %d node(s) are more than the %d GPUs of each; give "
                        "--nodes %d or more",
                        workers, machine->nodes, gpus, ghp_peak_nodes(machine, workers));
    if (gpus == 0 && per_node > machine->cores)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%d workers on %d node(s) are more than the %d cores of each; give "
                        "--nodes %d or more",
                        workers, machine->nodes, machine->cores,
                        (workers + machine->cores - 1) / machine->cores);
    if (workers > per_node && !(machine->inter.bandwidth_Bps > 0))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "machine '%s' has no network between its %d nodes; add --network NAME, "
                        "such as --network eth-100",
                        machine->name, machine->nodes);
    return GHP_OK;
}

static enum ghp_status set_machine(const struct ghp_machine *machine, struct ghp_profile *profile)
{
    ghp_machine_release(&profile->machine);
    GHP_TRY(ghp_machine_copy(machine, &profile->machine));
    profile->machine.intra.bandwidth_Bps *= GHP_PEAK_BANDWIDTH / 100.0;
    profile->machine.inter.bandwidth_Bps *= GHP_PEAK_BANDWIDTH / 100.0;
    return GHP_OK;
}

static struct ghp_rate rate(double bandwidth_Bps)
{
    return (struct ghp_rate){.bandwidth_Bps = bandwidth_Bps, .source = GHP_SOURCE_ANALYTIC};
}

static enum ghp_status fill(const struct ghp_machine *machine, int workers,
                            struct ghp_precision precision, struct ghp_profile *profile)
{
    /* a GPU is one worker's, a node without any is all its workers' */
    int sharing = machine->gpus.count > 0 ? 1 : ghp_machine_workers_per_node(machine, workers);
    double memory_Bps = machine->peak.memory_Bps * GHP_PEAK_BANDWIDTH / 100 / sharing;

    GHP_TRY(ghp_profile_init(profile, "analytic", "fast", precision.element_bytes));
    profile->tf32 = precision.tf32;
    free(profile->created);
    free(profile->host);
    profile->created = strdup(created);
    profile->host = strdup(machine->name);
    if (profile->created == NULL || profile->host == NULL) return GHP_NO_MEMORY();
    GHP_TRY(set_machine(machine, profile));
    profile->analytic.flops_per_s =
        machine->peak.flops_per_s[ghp_precision_index(precision)] * GHP_PEAK_FLOPS / 100 / sharing;
    profile->analytic.memory_Bps = memory_Bps;
    /* traffic for each byte written: a copy also reads it, a sum reads two, and sgd's update of weights and momenta
     * reads both and the gradients */
    profile->copy = rate(memory_Bps / 2);
    profile->load = rate(memory_Bps / 2);
    profile->accumulate = rate(memory_Bps / 3);
    profile->update[GHP_OPTIMIZER_INDEX_sgd] = rate(memory_Bps / 2.5);
    profile->on_device = machine->gpus.count > 0;
    profile->overlap = (struct ghp_overlap){.compute = 1, .comm = 1, .link = 1};
    return ghp_profile_finalize(profile);
}

enum ghp_status ghp_profile_peak(const struct ghp_machine *machine, int workers,
                                 struct ghp_precision precision, struct ghp_profile *profile)
{
    enum ghp_status status;

    *profile = (struct ghp_profile){0};
    GHP_TRY(check(machine, workers, precision));
    status = fill(machine, workers, precision, profile);
    if (status != GHP_OK) ghp_profile_release(profile);
    return status;
}
