/* profiler/run/site.c - where and with what is measured: checks, machine, binding, backend, device, device
 * transport. */
#include "profiler/run/run_private.h"

#include "core/base/file.h"
#include "executor/platform/launch.h"
#include "profiler/run/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* of a node's or a device's memory: what measuring may take */
static const double memory_fraction = 0.5;

/* Before anything is measured. */
static enum ghp_status check_operations(const struct ghp_profiling_request *request)
{
    for (int m = 0; m < request->n_models; m++)
        for (int l = 0; l < request->models[m].n_layers; l++) {
            const struct ghp_layer *layer = &request->models[m].layers[l];

            if (ghp_backend_has_op(request->backend_ops, layer->op)) continue;
            return GHP_FAIL(GHP_ERR_INPUT,
                            "backend '%s' has no '%s', which layer '%s' of '%s' is; use another "
                            "--backend, or leave the layer out",
                            request->backend_ops->name, ghp_op_name(layer->op), layer->name,
                            request->models[m].name);
        }
    return GHP_OK;
}

enum ghp_status ghp_profiling_check(const struct ghp_profiling *run)
{
    const struct ghp_profiling_request *request = run->request;
    int workers = run->result->workers;

    if (run->m.size > workers)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "cannot measure with %d ranks for %d workers: ranks that no plan uses would "
            "disturb; use %s -n %d, or --workers %d",
            run->m.size, workers, ghp_launched_by(), workers, run->m.size);
    for (int i = 0; i < request->n_batches; i++) {
        struct ghp_problem problem = {.workers = workers, .global_batch = request->batches[i]};

        GHP_TRY(ghp_problem_check(problem));
    }
    if (!ghp_backend_has(request->backend_ops, request->precision))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "backend '%s' cannot compute in %s; use --backend %s, or "
                        "--precision float",
                        request->backend_ops->name, ghp_precision_name(request->precision),
                        request->precision.element_bytes == 8   ? "reference"
                        : request->precision.element_bytes == 2 ? "onednn or cuda"
                                                                : "cuda");
    GHP_TRY(check_operations(request));
    return run->m.rank == 0 ? ghp_file_try_write(request->output) : GHP_OK;
}

int64_t ghp_profiling_vocabulary_multiple(const struct ghp_profiling_request *request)
{
    bool narrow = request->precision.element_bytes == 2;

    return request->backend_ops != NULL && narrow ? request->backend_ops->vocabulary_multiple : 0;
}

enum ghp_status ghp_profiling_blank(struct ghp_profiling *run, int nodes)
{
    const struct ghp_profiling_request *request = run->request;
    struct ghp_profile *profile = run->profile;

    GHP_TRY(ghp_profile_init(profile, request->backend_ops->name, request->exact ? "exact" : "fast",
                             request->precision.element_bytes));
    profile->tf32 = request->precision.tf32;
    profile->vocabulary_multiple = request->vocabulary_multiple;
    profile->knows_has = true;
    for (int op = 0; op < GHP_OP_COUNT; op++)
        profile->has[op] = ghp_backend_has_op(request->backend_ops, (enum ghp_op)op);
    ghp_machine_release(&profile->machine);
    GHP_TRY(ghp_topology_read_here(ghp_launched_allotted() ? run->m.transport->control->processors
                                                           : NULL,
                                   nodes, &profile->machine));
    ghp_limits_note();
    if (request->memory_bytes > 0) profile->machine.memory_bytes = request->memory_bytes;
    profile->machine.intra = request->intra;
    profile->machine.inter = request->inter;
    profile->workers = run->m.size;
    return ghp_profile_finalize(profile);
}

/* The devices as their own library sees them, which knows more than hwloc. */
static enum ghp_status note_gpus(struct ghp_gpus *gpus, const struct ghp_device_about *about,
                                 int64_t memory_bytes)
{
    free(gpus->name);
    gpus->name = strdup(about->name);
    gpus->count = about->count;
    gpus->memory_bytes = memory_bytes;
    return gpus->name != NULL ? GHP_OK : GHP_NO_MEMORY();
}

/* A device's own memory and cache count there. */
static enum ghp_status note_device(struct ghp_profiling *run)
{
    struct ghp_device device = ghp_measure_device(&run->m);
    struct ghp_device_memory memory = {0};
    struct ghp_device_about about = {0};

    run->memory_bytes = (int64_t)(memory_fraction * (double)run->profile->machine.memory_bytes) /
                        run->ranks_per_node;
    run->profile->on_device = device.ops != NULL;
    run->profile->prefetch = device.ops == NULL && run->m.size > 1;
    if (device.ops == NULL) return GHP_OK;
    device.ops->about(device.backend, &about);
    GHP_TRY(device.ops->memory(device.backend, &memory));
    run->m.cache_bytes = about.cache_bytes;
    run->memory_bytes = (int64_t)(memory_fraction * (double)memory.free_bytes);
    return note_gpus(&run->profile->machine.gpus, &about, memory.total_bytes);
}

enum ghp_status ghp_profiling_settle(struct ghp_profiling *run)
{
    struct ghp_binding_request request = {.workers = run->m.size,
                                          .rank = run->m.rank,
                                          .here = run->ranks_per_node,
                                          .processors = run->m.transport->control->processors};
    struct ghp_backend_config config = {.element_bytes = run->request->precision.element_bytes,
                                        .tf32 = run->request->precision.tf32,
                                        .threads = run->request->threads,
                                        .exact = run->request->exact,
                                        .local_rank = run->m.rank % run->ranks_per_node};
    struct ghp_binding binding = {0};
    int planned = /* in a plan for all the workers, which may be more than the ranks that measure */
        ghp_machine_place(&run->profile->machine, run->result->workers, 0).n_cores;

    GHP_TRY(ghp_binding_set(&run->profile->machine, request, run->request->bind, &binding));
    if (binding.n_cores < planned) planned = binding.n_cores;
    if (config.threads == 0) config.threads = planned;
    if (run->request->backend_ops->device == NULL)
        ghp_binding_check_threads(config.threads, planned);
    run->result->threads = run->m.threads = run->profile->threads = config.threads;
    snprintf(run->result->binding, sizeof run->result->binding, "%s", binding.text);
    run->m.backend_ops = run->request->backend_ops;
    run->m.element_bytes = config.element_bytes;
    run->m.cache_bytes = ghp_topology_cache_bytes(run->ranks_per_node);
    run->m.sample_s = run->request->sample_s * (binding.oversubscribed ? 2 : 1);
    run->m.transport->host->in_rank_order = run->request->exact;
    GHP_TRY(run->m.backend_ops->open(&config, &run->m.backend));
    return note_device(run);
}

/* How many ranks share a GPU. A rank may see its own alone, so GPUs are counted by what the ranks use. */
static enum ghp_status note_sharing(struct ghp_profiling *run, const struct ghp_exec_context *exec)
{
    struct ghp_gpus *gpus = &run->profile->machine.gpus;
    int used = 1, nodes = run->result->nodes;

    if (run->m.size > 1) GHP_TRY(ghp_device_transport_count(exec, &used));
    used = (used + nodes - 1) / nodes;
    if (gpus->count < used) gpus->count = used;
    run->sharing = (run->ranks_per_node + gpus->count - 1) / gpus->count;
    run->memory_bytes /= run->sharing;
    return GHP_OK;
}

enum ghp_status ghp_profiling_open_device_transport(struct ghp_profiling *run)
{
    struct ghp_exec_context exec = {.backend_ops = run->m.backend_ops,
                                    .backend = run->m.backend,
                                    .transport = run->m.transport};
    enum ghp_status status;

    if (run->profile->on_device) GHP_TRY(note_sharing(run, &exec));
    status = ghp_device_transport_open(&exec, run->request->device_transport);
    run->m.collectives = exec.collectives;
    return status;
}

enum ghp_status ghp_profiling_note_concurrent(struct ghp_profiling *run)
{
    struct ghp_device device = ghp_measure_device(&run->m);
    struct ghp_device_memory memory = {0};
    double concurrent = 0;
    enum ghp_status status;

    if (device.ops == NULL) return GHP_OK;
    status = device.ops->memory(device.backend, &memory);
    concurrent = (double)(memory.total_bytes - memory.free_bytes) / run->sharing;
    GHP_TRY(ghp_measure_max(&run->m, status, &concurrent));
    run->profile->reserved_bytes = (int64_t)concurrent;
    return GHP_OK;
}
