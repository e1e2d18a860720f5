/* core/optimizer/tensor_rates.c - see optimizer/tensor_rates.h. */
#include "core/optimizer/tensor_rates.h"

#include <math.h>
#include <stdlib.h>

static const double trust = 0.001; /* of lars */
static const double little = 1e-6; /* added to norms that may be 0 */
/* worker batches over which adascale and lena average */
static const double batches_of_mean = 1000;

enum ghp_status ghp_tensor_rates_open(const struct ghp_rate_rule *rule, int tensors,
                                      struct ghp_tensor_rates *rates)
{
    *rates = (struct ghp_tensor_rates){
        .rule = rule,
        .tensors = tensors,
        .values = ghp_alloc((size_t)tensors * GHP_TENSOR_RATES_VALUES + 1, sizeof *rates->values),
        .factors = ghp_alloc((size_t)tensors + 1, sizeof *rates->factors)};
    return rates->values == NULL || rates->factors == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

void ghp_tensor_rates_close(struct ghp_tensor_rates *rates)
{
    free(rates->values);
    free(rates->factors);
    *rates = (struct ghp_tensor_rates){0};
}

/* ---- by the weights ---- */

static void advance_by_weights(struct ghp_tensor_rates *rates, double decay,
                               const struct ghp_tensor_norms *norms)
{
    for (int j = 0; j < rates->tensors; j++) {
        double w = sqrt(norms->others[j]), g = sqrt(norms->gradients[j]), ratio = 1;

        if (w > 0 && g > 0) ratio = rates->rule->directions ? w / g : w / (g + decay * w);
        rates->factors[j] = rates->rule->directions ? ratio : trust * ratio;
    }
}

/* ---- by the worker batches ---- */

/* At most n; *clamped: it was more. */
static double ratio_of(double top, double bottom, double n, bool *clamped)
{
    double s = (top + little) / (bottom + little);

    *clamped = s > n;
    return *clamped ? n : s;
}

static void advance_by_batches(struct ghp_tensor_rates *rates, int batches, double ramp,
                               const struct ghp_tensor_norms *norms)
{
    double *top = rates->values, *bottom = top + rates->tensors, *gain = bottom + rates->tensors;
    double n = batches, fraction = fmin(n / batches_of_mean, 1), tops = 0, bottoms = 0, whole;
    bool clamped;

    for (int j = 0; j < rates->tensors; j++) {
        top[j] = fraction * norms->others[j] / n + (1 - fraction) * top[j];
        bottom[j] = fraction * norms->gradients[j] + (1 - fraction) * bottom[j];
        tops += top[j];
        bottoms += bottom[j];
    }
    whole = ratio_of(tops, bottoms, n, &clamped);
    for (int j = 0; j < rates->tensors; j++) {
        double s = ratio_of(top[j], bottom[j], n, &clamped);

        rates->factors[j] = whole;
        if (rates->rule->ramps) rates->factors[j] = gain[j] < ramp ? s * gain[j] / ramp : s;
        gain[j] += rates->rule->ramps && !clamped ? s : whole;
    }
}

void ghp_tensor_rates_advance(struct ghp_tensor_rates *rates, int batches,
                              const struct ghp_hyperparameters *hyperparameters,
                              const struct ghp_tensor_norms *norms)
{
    if (rates->rule->batches)
        advance_by_batches(rates, batches, hyperparameters->ramp, norms);
    else
        advance_by_weights(rates, hyperparameters->weight_decay, norms);
}
