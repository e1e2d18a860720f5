/* executor/backend/cpu/rotary_body.h - rotary: bodies for one precision (cpu/precisions.h).
 *
 * Included by cpu/rotary.c only, once for each precision. Tensors are [n][position][head][size]. */

/* All heads of a sample at one position; to may be from. */
static void KERNEL(turn_heads)(const struct turns *turns, int64_t heads, const SCALAR *from,
                               SCALAR *to)
{
    int64_t half = turns->pairs;

    for (int64_t head = 0; head < heads; head++, from += 2 * half, to += 2 * half) {
#pragma omp simd
        for (int64_t i = 0; i < half; i++) {
            float a = GET(from[i]), b = GET(from[i + half]);

            to[i] = PUT(a * turns->cosine[i] - b * turns->sine[i]);
            to[i + half] = PUT(b * turns->cosine[i] + a * turns->sine[i]);
        }
    }
}

static void KERNEL(turn)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                         struct ghp_share share, double sign)
{
    struct ghp_range positions = ghp_share_of(share, local->h, PACE);
    struct turns turns = turns_of(local, args, share.part);
    const SCALAR *from = sign > 0 ? args->at.x[0] : args->at.dy;
    SCALAR *to = sign > 0 ? args->at.y : args->at.dx[0];

    for (int64_t p = positions.first; p < positions.end; p++) {
        if (p % PACE == 0) begin(local, &turns, p);
        advance(&turns, sign);
        for (int64_t n = 0; n < local->n; n++) {
            int64_t at = (n * local->h + p) * local->c;

            KERNEL(turn_heads)(&turns, local->c / (2 * turns.pairs), from + at, to + at);
        }
    }
}

static void KERNEL(forward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct ghp_share share)
{
    KERNEL(turn)(local, args, share, 1.0);
}

static void KERNEL(backward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_share share)
{
    KERNEL(turn)(local, args, share, -1.0);
}
