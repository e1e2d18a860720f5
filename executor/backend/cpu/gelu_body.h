/* executor/backend/cpu/gelu_body.h - gelu and silu: bodies for one precision (cpu/precisions.h).
 *
 * Included by cpu/gelu.c only, once for each precision. */

static ALWAYS_INLINE void KERNEL(forward)(const struct ghp_local *local,
                                          const struct ghp_kernel_arguments *args,
                                          struct ghp_share part, struct share share_of(float x))
{
    struct ghp_range at = ghp_share_of(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *x = args->at.x[0];
    SCALAR *y = args->at.y;
#pragma omp simd
    for (int64_t i = at.first; i < at.end; i++)
        y[i] = PUT(GET(x[i]) * share_of(GET(x[i])).value);
}

static ALWAYS_INLINE void KERNEL(data)(const struct ghp_local *local,
                                       const struct ghp_kernel_arguments *args,
                                       struct ghp_share part, struct share share_of(float x))
{
    struct ghp_range at = ghp_share_of(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *x = args->at.x[0], *dy = args->at.dy;
    SCALAR *dx = args->at.dx[0];
#pragma omp simd
    for (int64_t i = at.first; i < at.end; i++) {
        struct share share = share_of(GET(x[i]));
        dx[i] = PUT(GET(dy[i]) * (share.value + share.rise));
    }
}

static void KERNEL(gelu_forward)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_share part)
{
    if (local->norm.gelu == GHP_GELU_TANH)
        KERNEL(forward)(local, args, part, share_tanh);
    else
        KERNEL(forward)(local, args, part, share_normal);
}

static void KERNEL(gelu_data)(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_share part)
{
    if (local->norm.gelu == GHP_GELU_TANH)
        KERNEL(data)(local, args, part, share_tanh);
    else
        KERNEL(data)(local, args, part, share_normal);
}

static void KERNEL(silu_forward)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_share part)
{
    KERNEL(forward)(local, args, part, share_silu);
}

static void KERNEL(silu_data)(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_share part)
{
    KERNEL(data)(local, args, part, share_silu);
}
