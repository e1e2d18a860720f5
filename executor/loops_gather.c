/* executor/loops_gather.c - view and pad: one table of places, made once a run, serves all samples.
 *
 * Forward takes along the table; backward adds along it, since an input element may be taken several times. */
#include "executor/backend_private.h"
#include "core/gather.h"

#include <string.h>

static int64_t sample_in(const struct ghp_local *local)
{
    return local->c * local->h * local->w;
}

static int64_t sample_out(const struct ghp_local *local)
{
    return local->k * local->p * local->q;
}

static void make_table(const struct ghp_local *local, const struct ghp_call *call,
                       struct ghp_share share)
{
    (void)share;
    ghp_gather_table(local, call->at.scratch);
}

static int64_t table_bytes(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)parts;
    (void)element_bytes;
    return ghp_loop_row_bytes(sample_out(local) * (int64_t)sizeof(int32_t));
}

#define SCALAR float
#define LOOP(name) name##_float
#include "executor/loops_gather_body.h"
#undef SCALAR
#undef LOOP
#define SCALAR double
#define LOOP(name) name##_double
#include "executor/loops_gather_body.h"
#undef SCALAR
#undef LOOP

#define TABLED(op, pass, run)                                                                      \
    {                                                                                              \
        op, pass, "loop", {{make_table, run##_float, NULL}, {make_table, run##_double, NULL}},     \
            table_bytes                                                                            \
    }

const struct ghp_loop ghp_loops_gather[] = {
    TABLED(GHP_OP_VIEW, GHP_PASS_FORWARD, take),
    TABLED(GHP_OP_VIEW, GHP_PASS_BACKWARD_DATA, give_back),
    TABLED(GHP_OP_PAD, GHP_PASS_FORWARD, take),
    TABLED(GHP_OP_PAD, GHP_PASS_BACKWARD_DATA, give_back),
    {.name = NULL},
};
