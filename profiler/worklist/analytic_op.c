/* profiler/worklist/analytic_op.c - see worklist/analytic_op.h. */
#include "profiler/worklist/analytic_op.h"

/* Both terms can be told apart if flops and bytes were measured in different proportions: the normal equations'
 * determinant, as a fraction of what it is for columns at right angles. */
static const double least_apart = 1e-6;

void ghp_analytic_op_add(struct ghp_analytic_op *laws, const struct ghp_op_work *work,
                         double seconds)
{
    struct ghp_op_sums *sums = &laws->of[work->op][work->pass];
    double f = work->flops / seconds, b = work->bytes / seconds;

    sums->flops += f;
    sums->bytes += b;
    sums->flops2 += f * f;
    sums->bytes2 += b * b;
    sums->both += f * b;
}

double ghp_analytic_op_seconds(const struct ghp_analytic_op *laws, const struct ghp_op_work *work)
{
    const struct ghp_op_sums *s = &laws->of[work->op][work->pass];
    double by_flops = s->flops2 > 0 ? s->flops / s->flops2 : 0; /* each term alone */
    double by_bytes = s->bytes2 > 0 ? s->bytes / s->bytes2 : 0;
    double apart = s->flops2 * s->bytes2 - s->both * s->both;
    double flop_s, byte_s;

    if (!(s->flops2 > 0)) return by_bytes * work->bytes;
    if (!(apart > least_apart * s->flops2 * s->bytes2)) return by_flops * work->flops;
    flop_s = (s->flops * s->bytes2 - s->bytes * s->both) / apart;
    byte_s = (s->bytes * s->flops2 - s->flops * s->both) / apart;
    if (byte_s < 0) return by_flops * work->flops;
    if (flop_s < 0) return by_bytes * work->bytes;
    return flop_s * work->flops + byte_s * work->bytes;
}
