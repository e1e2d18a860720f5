/* executor/backend/cpu/index_map_body.h - view and pad: bodies for one precision (cpu/precisions.h).
 *
 * Included by cpu/index_map.c only, once for each precision. x [n][h w c], y [n][p q k], table [p q k]. */

static void KERNEL(take)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                         struct ghp_share share)
{
    struct ghp_range samples = ghp_share_of(share, local->n, 1);
    int64_t in = sample_in(local), out = sample_out(local);
    const int32_t *table = args->at.scratch;
    SCALAR nothing = local->op == GHP_OP_PAD ? PUT((float)local->border.value) : 0;
    for (int64_t n = samples.first; n < samples.end; n++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + n * in;
        SCALAR *y = (SCALAR *)args->at.y + n * out;
        for (int64_t i = 0; i < out; i++)
            y[i] = table[i] == GHP_INDEX_MAP_NOTHING ? nothing : x[table[i]];
    }
}

static void KERNEL(give_back)(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_share share)
{
    struct ghp_range samples = ghp_share_of(share, local->n, 1);
    int64_t in = sample_in(local), out = sample_out(local);
    const int32_t *table = args->at.scratch;
    for (int64_t n = samples.first; n < samples.end; n++) {
        const SCALAR *dy = (const SCALAR *)args->at.dy + n * out;
        SCALAR *dx = (SCALAR *)args->at.dx[0] + n * in;
        float *sum = ROUNDS ? part_sums(local, args, share.part) : (void *)dx;
        memset(sum, 0, (size_t)in * sizeof *sum);
        for (int64_t i = 0; i < out; i++)
            if (table[i] != GHP_INDEX_MAP_NOTHING) sum[table[i]] += GET(dy[i]);
        for (int64_t i = 0; ROUNDS && i < in; i++)
            dx[i] = PUT(sum[i]);
    }
}
