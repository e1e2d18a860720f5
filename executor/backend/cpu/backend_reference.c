/* executor/backend/cpu/backend_reference.c - the slow twin: ghp's CPU kernels on one thread, in float or double.
 *
 * Every other backend is tested against it. Sums are accumulated in double whatever the precision of the tensors, so
 * that in float its error is far below that of what it judges. Not tuned: weights are used as they lie, one output
 * channel after the other. */
#include "executor/backend/backend_private.h"

#include <stdlib.h>

static bool reference_has_precision(int element_bytes)
{
    return element_bytes == 4 || element_bytes == 8;
}

static enum ghp_status reference_open(const struct ghp_backend_config *config,
                                      struct ghp_backend **backend)
{
    if (!reference_has_precision(config->element_bytes))
        return GHP_FAIL(GHP_ERR_INPUT, "backend 'reference' has no numbers of %d bytes; use 4 or 8",
                        config->element_bytes);
    struct ghp_backend *opened = ghp_alloc(1, sizeof *opened);
    if (opened == NULL) return GHP_NO_MEMORY();
    opened->config = *config;
    opened->config.threads = 1;
    *backend = opened;
    return GHP_OK;
}

static void reference_close(struct ghp_backend *backend)
{
    free(backend);
}

static enum ghp_status reference_run(struct ghp_kernel *kernel,
                                     const struct ghp_kernel_arguments *args)
{
    ghp_cpu_kernel_run(kernel, args);
    return GHP_OK;
}

static void reference_release(struct ghp_kernel *kernel)
{
    free(kernel);
}

const struct ghp_backend_ops ghp_backend_reference = {
    .name = "reference",
    .has_precision = reference_has_precision,
    .open = reference_open,
    .close = reference_close,
    .prepare = ghp_cpu_kernel_prepare,
    .scratch_bytes = ghp_kernel_scratch_bytes,
    .algorithm = ghp_kernel_algorithm,
    .run = reference_run,
    .release = reference_release,
    .update = ghp_cpu_kernel_update,
    .accumulate = ghp_cpu_kernel_accumulate,
};
