/* executor/train/class_weights.c - see class_weights.h. */
#include "executor/train/class_weights.h"

#include <math.h>
#include <stdlib.h>

static enum ghp_status check(const struct ghp_model *model)
{
    const struct ghp_layer *loss = &model->layers[model->n_layers - 1];

    if (loss->op != GHP_OP_SOFTMAX_CE || loss->loss.smoothing > 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "--class-weights is for softmax_cross_entropy without smoothing, and the "
                        "loss '%s' is another; leave it out",
                        loss->name);
    if (!loss->loss.own_labels) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "--class-weights is for one label, and each output of the loss '%s' has its "
                    "own (own_labels); leave it out",
                    loss->name);
}

/* Returns how many the text has; -1 if one of them is not a number above 0. */
static int64_t read_weights(const char *text, int64_t most, double *weights)
{
    int64_t n = 0;

    for (const char *at = text;; at++) {
        char *end;
        double weight = strtod(at, &end);

        if (end == at || !(weight > 0) || !isfinite(weight) || (*end != ',' && *end != '\0'))
            return -1;
        if (n < most) weights[n] = weight;
        n++;
        at = end;
        if (*at == '\0') return n;
    }
}

enum ghp_status ghp_class_weights_open(const char *text, const struct ghp_model *model,
                                       double **weights)
{
    int64_t n;

    *weights = NULL;
    if (text == NULL) return GHP_OK;
    GHP_TRY(check(model));
    *weights = ghp_alloc((size_t)model->classes, sizeof **weights);
    if (*weights == NULL) return GHP_NO_MEMORY();
    n = read_weights(text, model->classes, *weights);
    if (n < 0)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--class-weights takes numbers above 0 with commas between, such as "
                        "1,2.5,1; to leave a class out give --ignore-label");
    if (n == model->classes) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--class-weights has %lld numbers, and '%s' has %d classes; give one for each",
                    (long long)n, model->name, model->classes);
}
