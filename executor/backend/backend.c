/* executor/backend/backend.c - the compiled-in backends by name. To add one: a line in `all`. */
#include "executor/backend/backend.h"

#include <string.h>

static const struct ghp_backend_ops *const all[] = {&ghp_backend_onednn, &ghp_backend_reference,
#ifdef GHP_HAS_CUDA
                                                    &ghp_backend_cuda,
#endif
                                                    NULL};

const struct ghp_backend_ops *const *ghp_backend_all(void)
{
    return all;
}

bool ghp_backend_has(const struct ghp_backend_ops *ops, struct ghp_precision precision)
{
    return ops->has_precision(precision.element_bytes) && (ops->has_tf32 || !precision.tf32);
}

bool ghp_backend_has_update(const struct ghp_backend_ops *ops,
                            const struct ghp_optimizer *optimizer)
{
    return ops->has_update == NULL || ops->has_update(optimizer);
}

bool ghp_backend_has_op(const struct ghp_backend_ops *ops, enum ghp_op op)
{
    for (int pass = 0; pass < GHP_PASS_COUNT; pass++)
        if (ghp_op_has_pass(op, (enum ghp_pass)pass) && !ops->has(op, (enum ghp_pass)pass))
            return false;
    return true;
}

enum ghp_status ghp_backend_fail_unknown(const char *name)
{
    if (strcmp(name, "cuda") == 0)
        return GHP_FAIL(GHP_ERR_BACKEND,
                        "this build has no backend 'cuda'; install CUDA's compiler, cuDNN, cuBLAS "
                        "and NCCL and configure with -DGHP_CUDA=ON, or use onednn or reference");
    return GHP_FAIL(GHP_ERR_USAGE, "unknown backend '%s'; use onednn, reference or cuda", name);
}

struct ghp_device ghp_backend_device(const struct ghp_backend_ops *ops, struct ghp_backend *backend)
{
    return (struct ghp_device){.ops = ops->device, .backend = backend};
}

const struct ghp_backend_ops *ghp_backend_find(const char *name)
{
    for (int i = 0; all[i] != NULL; i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}
