/* executor/transport/device/device_transport.c - see transport/device_transport.h. */
#include "executor/transport/device/device_transport.h"

#include "executor/transport/device/staged.h"

#ifdef GHP_HAS_CUDA
#include "executor/transport/nccl/transport_nccl.h"
#endif

#include <stdlib.h>
#include <string.h>

const char *const ghp_device_transport_names[] = {"auto", "nccl", "mpi", NULL};

/* Whether two of the workers use the same device. Collective. */
static enum ghp_status find_sharing(const struct ghp_exec_context *exec, bool *shared)
{
    const struct ghp_transport_ops *ops = exec->transport_ops;
    struct ghp_device device = ghp_exec_context_device(exec);
    int size = ops->size(exec->transport);
    struct ghp_device_about mine = {0};
    struct ghp_comm *world = NULL;
    char(*all)[sizeof(mine.identity)] = ghp_alloc((size_t)size, sizeof(*all));
    enum ghp_status status = all != NULL ? GHP_OK : GHP_NO_MEMORY();

    device.ops->about(device.backend, &mine);
    *shared = false;
    GHP_TRY_GOTO(status,
                 ops->group(exec->transport, (struct ghp_ranks){.count = size, .stride = 1},
                            GHP_STREAM_COMPUTE, &world),
                 done);
    ops->label(world, "choosing who carries");
    GHP_TRY_GOTO(status, ops->agree(world, status), done);
    GHP_TRY_GOTO(status, ops->all_gather(world, mine.identity, all, sizeof(mine.identity)), done);
    for (int i = 0; i < size; i++)
        for (int j = 0; j < i; j++)
            *shared = *shared || memcmp(all[i], all[j], sizeof(*all)) == 0;
done:
    free(all);
    return status;
}

static enum ghp_status open_nccl(struct ghp_exec_context *exec, double watchdog_s)
{
#ifdef GHP_HAS_CUDA
    struct ghp_nccl_request request = {.base_ops = exec->transport_ops,
                                       .base = exec->transport,
                                       .device = ghp_exec_context_device(exec),
                                       .watchdog_s = watchdog_s};

    GHP_TRY(ghp_nccl_open(&request, &exec->device_transport));
    exec->device_transport_ops = &ghp_transport_nccl;
    return GHP_OK;
#else
    (void)exec;
    (void)watchdog_s;
    return GHP_FAIL(GHP_ERR_BACKEND, "this build has no NCCL; configure with -DGHP_CUDA=ON, or use "
                                     "--transport mpi");
#endif
}

static enum ghp_status open_staged(struct ghp_exec_context *exec)
{
    GHP_TRY(ghp_staged_open(exec->transport_ops, exec->transport, ghp_exec_context_device(exec),
                            &exec->device_transport));
    exec->device_transport_ops = &ghp_transport_staged;
    return GHP_OK;
}

enum ghp_status ghp_device_transport_open(struct ghp_exec_context *exec,
                                          enum ghp_device_transport_choice choice,
                                          double watchdog_s)
{
    bool shared = false, told = getenv("NCCL_HOSTID") != NULL; /* says that they are apart */

    if (exec->backend_ops->device == NULL) {
        if (choice != GHP_DEVICE_TRANSPORT_NCCL) return GHP_OK;
        return GHP_FAIL(GHP_ERR_USAGE,
                        "NCCL carries between GPUs, and the backend is '%s'; use "
                        "--backend cuda, or leave --transport out",
                        exec->backend_ops->name);
    }
    if (exec->transport_ops->size(exec->transport) == 1) return GHP_OK;
    GHP_TRY(find_sharing(exec, &shared));
    if (choice == GHP_DEVICE_TRANSPORT_NCCL && shared && !told)
        return GHP_FAIL(GHP_ERR_USAGE, "NCCL takes one GPU for each worker, and some share one; "
                                       "use --transport mpi, or fewer workers");
    if (choice == GHP_DEVICE_TRANSPORT_NCCL || (choice == GHP_DEVICE_TRANSPORT_AUTO && !shared))
        return open_nccl(exec, watchdog_s);
    return open_staged(exec);
}

void ghp_device_transport_close(struct ghp_exec_context *exec)
{
    if (exec->device_transport_ops != NULL && exec->device_transport_ops != exec->transport_ops)
        exec->device_transport_ops->close(exec->device_transport);
    exec->device_transport_ops = NULL;
    exec->device_transport = NULL;
}
