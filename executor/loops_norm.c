/* executor/loops_norm.c - batch norm in split passes, and local response norm.
 *
 * A batch norm's statistics may belong to samples of many workers, so its sums are passes of their own (STATS,
 * BACKWARD_STATS): each worker adds up its rows in double, whoever runs the program reduces the sums, and the later
 * passes read the reduced ones. Sums are about the running mean, which all workers share, so that a large mean does not
 * eat the digits of a small variance. */
#include "executor/backend_private.h"
#include "core/precision.h"

#include <math.h>
#include <string.h>

static int64_t rows_of(const struct ghp_local *local)
{
    return local->n * local->h * local->w;
}

static void *part_scalars(const struct ghp_call *call, int part, int64_t width, size_t size)
{
    return (char *)call->at.scratch + part * ghp_loop_row_bytes(width * (int64_t)size);
}

static double *part_sums(const struct ghp_call *call, int part, int64_t c)
{
    return part_scalars(call, part, 2 * c, sizeof(double));
}

#define BODY "executor/loops_norm_body.h"
#include "executor/loops_precisions.h"

/* The sums of all parts, in part order. */
static void add_sums(const struct ghp_local *local, const struct ghp_call *call,
                     struct ghp_share share)
{
    for (int64_t i = 0; i < 2 * local->c; i++) {
        double sum = 0.0;
        for (int part = 0; part < share.parts; part++)
            sum += part_sums(call, part, local->c)[i];
        call->at.stats[i] = sum;
    }
}

static int64_t sum_rows(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * ghp_loop_row_bytes(2 * local->c * (int64_t)sizeof(double));
}

static int64_t coefficients(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)parts;
    return ghp_loop_row_bytes(3 * local->c * ghp_parameter_bytes(element_bytes));
}

static int64_t pixel_rows(const struct ghp_local *local, int parts, int element_bytes)
{
    return parts * ghp_loop_row_bytes(3 * local->c * ghp_parameter_bytes(element_bytes));
}

const struct ghp_loop ghp_loops_norm[] = {
    {GHP_OP_BATCH_NORM,
     GHP_PASS_STATS,
     "loop",
     {{NULL, stats_float, add_sums}, {NULL, stats_double, add_sums}, {NULL, stats_bf16, add_sums}},
     sum_rows},
    {GHP_OP_BATCH_NORM,
     GHP_PASS_FORWARD,
     "loop",
     {{norm_before_float, norm_forward_float, NULL},
      {norm_before_double, norm_forward_double, NULL},
      {norm_before_bf16, norm_forward_bf16, NULL}},
     coefficients},
    {GHP_OP_BATCH_NORM,
     GHP_PASS_BACKWARD_STATS,
     "loop",
     {{NULL, back_stats_float, add_sums},
      {NULL, back_stats_double, add_sums},
      {NULL, back_stats_bf16, add_sums}},
     sum_rows},
    {GHP_OP_BATCH_NORM,
     GHP_PASS_BACKWARD_WEIGHT,
     "loop",
     {{NULL, norm_weight_float, NULL},
      {NULL, norm_weight_double, NULL},
      {NULL, norm_weight_bf16, NULL}},
     NULL},
    {GHP_OP_BATCH_NORM,
     GHP_PASS_BACKWARD_DATA,
     "loop",
     {{norm_data_before_float, norm_data_float, NULL},
      {norm_data_before_double, norm_data_double, NULL},
      {norm_data_before_bf16, norm_data_bf16, NULL}},
     coefficients},
    {GHP_OP_LRN,
     GHP_PASS_FORWARD,
     "loop",
     {{NULL, lrn_forward_float, NULL},
      {NULL, lrn_forward_double, NULL},
      {NULL, lrn_forward_bf16, NULL}},
     pixel_rows},
    {GHP_OP_LRN,
     GHP_PASS_BACKWARD_DATA,
     "loop",
     {{NULL, lrn_data_float, NULL}, {NULL, lrn_data_double, NULL}, {NULL, lrn_data_bf16, NULL}},
     pixel_rows},
    {.name = NULL},
};
