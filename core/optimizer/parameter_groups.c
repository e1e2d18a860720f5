/* core/optimizer/parameter_groups.c - see parameter_groups.h. */
#include "core/optimizer/parameter_groups.h"

#include "core/model/parameter_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN_BYTES = 256 };

/* Notes one group; rate 0: no weight decay. */
static enum ghp_status set_group(struct ghp_model *model, const char *option, const char *pattern,
                                 double rate)
{
    bool trains = false;

    GHP_TRY(ghp_parameters_check_pattern(model, option, pattern));
    for (int i = 0; i < model->n_layers; i++)
        for (int p = 0; p < model->layers[i].n_params; p++) {
            struct ghp_param *param = &model->layers[i].params[p];

            if (!ghp_parameter_is_named(pattern, param->name)) continue;
            trains = trains || !model->layers[i].fixed;
            if (rate > 0)
                param->rate_scale = rate;
            else
                param->undecayed = true;
        }
    if (trains) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "--%s '%s' names parameters that are fixed; leave it out, or plan without "
                    "--freeze of them",
                    option, pattern);
}

static enum ghp_status set_rate(struct ghp_model *model, const char *text)
{
    const char *equals = strrchr(text, '=');
    char pattern[PATTERN_BYTES], *end = NULL;
    double rate = equals != NULL ? strtod(equals + 1, &end) : 0;
    size_t n = equals != NULL ? (size_t)(equals - text) : 0;

    if (n == 0 || n >= sizeof pattern || *end != '\0' || !(rate >= GHP_LEAST_RATE_SCALE) ||
        !(rate <= GHP_MOST_RATE_SCALE))
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "cannot read --lr-scale '%s'; give PATTERN=X, such as 'layer4.*=0.1', with X "
            "from %g to %g; ghp-plan --freeze PATTERN fixes parameters",
            text, GHP_LEAST_RATE_SCALE, GHP_MOST_RATE_SCALE);
    memcpy(pattern, text, n);
    pattern[n] = '\0';
    return set_group(model, "lr-scale", pattern, rate);
}

enum ghp_status ghp_parameter_groups_set(const struct ghp_parameter_groups *groups,
                                         struct ghp_model *model)
{
    for (int i = 0; i < groups->rates.n; i++)
        GHP_TRY(set_rate(model, groups->rates.item[i]));
    for (int i = 0; i < groups->undecayed.n; i++)
        GHP_TRY(set_group(model, "weight-decay-except", groups->undecayed.item[i], 0));
    return GHP_OK;
}

double ghp_parameter_rate(const struct ghp_layer *layer, int slot)
{
    double scale = layer->params[slot].rate_scale;

    return scale > 0 ? scale : 1;
}
