/* executor/transport/device/device_transport.c - see transport/device_transport.h. */
#include "executor/transport/device/device_transport.h"

#include "executor/transport/device/staged.h"

#ifdef GHP_HAS_CUDA
#include "executor/transport/nccl/transport_nccl.h"
#endif

#include <stdlib.h>
#include <string.h>

const char *const ghp_device_transport_names[] = {"auto", "nccl", "mpi", NULL};

struct devices {
    int devices; /* that all workers use, each once */
    bool slices; /* some are MIG instances: a part of a GPU each */
};

/* CUDA names a MIG instance after its GPU: "NVIDIA A100-SXM4-80GB MIG 1g.10gb". */
static bool is_slice(const struct ghp_device_about *about)
{
    return strstr(about->name, " MIG ") != NULL;
}

static enum ghp_status count_devices(const struct ghp_exec_context *exec, struct devices *found)
{
    struct ghp_transport *t = exec->transport;
    struct ghp_device device = ghp_exec_context_device(exec);
    int size = t->control->size;
    struct ghp_device_about mine = {0}, *all = ghp_alloc((size_t)size, sizeof *all);
    struct ghp_comm *world = NULL;
    enum ghp_status status = all != NULL ? GHP_OK : GHP_NO_MEMORY();

    device.ops->about(device.backend, &mine);
    *found = (struct devices){0};
    GHP_TRY_GOTO(status,
                 ghp_collectives_group(t->host, (struct ghp_ranks){.count = size, .stride = 1},
                                       GHP_STREAM_COMPUTE, &world),
                 done);
    world->label = "counting devices";
    GHP_TRY_GOTO(status, ghp_control_agree(t->control, world, status), done);
    GHP_TRY_GOTO(status, world->ops->all_gather(world, &mine, all, sizeof mine), done);
    for (int i = 0; i < size; i++) {
        bool known = false;

        for (int j = 0; j < i; j++)
            known = known || memcmp(all[i].identity, all[j].identity, sizeof mine.identity) == 0;
        found->devices += !known;
        found->slices = found->slices || is_slice(&all[i]);
    }
done:
    free(all);
    return status;
}

enum ghp_status ghp_device_transport_count(const struct ghp_exec_context *exec, int *devices)
{
    struct devices found;
    enum ghp_status status = count_devices(exec, &found);

    *devices = found.devices;
    return status;
}

static enum ghp_status open_nccl(struct ghp_exec_context *exec)
{
#ifdef GHP_HAS_CUDA
    return ghp_nccl_open(exec->transport, ghp_exec_context_device(exec), &exec->collectives);
#else
    (void)exec;
    return GHP_FAIL(GHP_ERR_BACKEND, "this build has no NCCL; configure with -DGHP_CUDA=ON, or use "
                                     "--transport mpi");
#endif
}

enum ghp_status ghp_device_transport_open(struct ghp_exec_context *exec,
                                          enum ghp_device_transport_choice choice)
{
    bool shared, told = getenv("NCCL_HOSTID") != NULL; /* says that they are apart */
    struct devices found;

    if (exec->backend_ops->device == NULL) {
        if (choice != GHP_DEVICE_TRANSPORT_NCCL) return GHP_OK;
        return GHP_FAIL(GHP_ERR_USAGE,
                        "NCCL carries between GPUs, and the backend is '%s'; use "
                        "--backend cuda, or leave --transport out",
                        exec->backend_ops->name);
    }
    if (exec->transport->control->size == 1) return GHP_OK;
    GHP_TRY(count_devices(exec, &found));
    shared = found.devices < exec->transport->control->size || found.slices;
    if (choice == GHP_DEVICE_TRANSPORT_NCCL && found.slices && !told)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "NCCL takes whole GPUs, and some workers have a MIG instance; "
                        "use --transport mpi, or turn MIG off by nvidia-smi -mig 0");
    if (choice == GHP_DEVICE_TRANSPORT_NCCL && shared && !told)
        return GHP_FAIL(GHP_ERR_USAGE, "NCCL takes one GPU for each worker, and some share one; "
                                       "use --transport mpi, or fewer workers");
    if (choice == GHP_DEVICE_TRANSPORT_NCCL || (choice == GHP_DEVICE_TRANSPORT_AUTO && !shared))
        return open_nccl(exec);
    return ghp_staged_open(exec->transport->host, ghp_exec_context_device(exec),
                           &exec->collectives);
}

void ghp_device_transport_close(struct ghp_exec_context *exec)
{
    if (exec->collectives != NULL) exec->collectives->ops->close(exec->collectives);
    exec->collectives = NULL;
}
