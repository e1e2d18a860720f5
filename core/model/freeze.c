/* core/model/freeze.c - see freeze.h. */
#include "core/model/freeze.h"

#include "core/model/model_private.h"
#include "core/model/op.h"
#include "core/model/parameter_names.h"

#include <stdlib.h>
#include <string.h>

static bool is_named(const struct ghp_opt_list *patterns, const char *tensor)
{
    for (int i = 0; i < patterns->n; i++)
        if (ghp_parameter_is_named(patterns->item[i], tensor)) return true;
    return false;
}

static enum ghp_status check_patterns(const struct ghp_model *model, const char *option,
                                      const struct ghp_opt_list *patterns)
{
    for (int i = 0; i < patterns->n; i++)
        GHP_TRY(ghp_parameters_check_pattern(model, option, patterns->item[i]));
    return GHP_OK;
}

/* Whether all tensors of a layer are named; refuses some alone. */
static enum ghp_status decide(const struct ghp_layer *layer, const struct ghp_freeze *freeze,
                              bool *named)
{
    int frozen[2] = {-1, -1}; /* a tensor that stays, or trains */

    for (int p = 0; p < layer->n_params; p++) {
        const char *name = layer->params[p].name;
        bool is = is_named(&freeze->patterns, name) && !is_named(&freeze->except, name);

        frozen[is ? 0 : 1] = p;
    }
    *named = frozen[0] >= 0;
    if (frozen[0] < 0 || frozen[1] < 0) return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "--freeze names '%s' without '%s', which layer '%s' trains together; name both, "
        "or leave both out by --freeze-except '%s.*'",
        layer->params[frozen[0]].name, layer->params[frozen[1]].name, layer->name, layer->name);
}

enum ghp_status ghp_freeze_choose(const struct ghp_model *model, const struct ghp_freeze *freeze,
                                  bool *named)
{
    GHP_TRY(check_patterns(model, "freeze", &freeze->patterns));
    GHP_TRY(check_patterns(model, "freeze-except", &freeze->except));
    for (int i = 0; i < model->n_layers; i++)
        GHP_TRY(decide(&model->layers[i], freeze, &named[i]));
    return GHP_OK;
}

static enum ghp_status decide_all(const struct ghp_model *model, const struct ghp_freeze *freeze,
                                  bool *named)
{
    GHP_TRY(ghp_freeze_choose(model, freeze, named));
    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *layer = &model->layers[i];

        if (layer->n_params > 0 && !layer->fixed && !named[i]) return GHP_OK;
    }
    return GHP_FAIL(GHP_ERR_INPUT, "--freeze leaves nothing to train; give fewer patterns, or keep "
                                   "some by --freeze-except PATTERN");
}

enum ghp_status ghp_freeze_write(struct ghp_model *model, const bool *named, bool norms,
                                 char **text)
{
    struct ghp_layer *kept =
        ghp_alloc((size_t)model->n_layers, sizeof *kept); /* what is changed to be written */
    enum ghp_status status;

    if (kept == NULL) return GHP_NO_MEMORY();
    memcpy(kept, model->layers, (size_t)model->n_layers * sizeof *kept);
    for (int i = 0; i < model->n_layers; i++) {
        if (!named[i]) continue;
        if (norms && kept[i].op == GHP_OP_BATCH_NORM)
            model->layers[i].op = GHP_OP_FROZEN_BATCH_NORM;
        model->layers[i].fixed = true;
    }
    status = ghp_model_write(model, text);
    memcpy(model->layers, kept, (size_t)model->n_layers * sizeof *kept);
    free(kept);
    return status;
}

enum ghp_status ghp_model_freeze(struct ghp_model *model, const struct ghp_freeze *freeze)
{
    char *text = NULL;
    bool *named;
    enum ghp_status status;

    if (freeze->patterns.n == 0 && freeze->except.n == 0) return GHP_OK;
    if (freeze->patterns.n == 0)
        return GHP_FAIL(GHP_ERR_USAGE, "--freeze-except keeps some of what --freeze names; add "
                                       "--freeze PATTERN, or leave it out");
    named = ghp_alloc((size_t)model->n_layers, sizeof *named);
    status = named == NULL ? GHP_NO_MEMORY() : decide_all(model, freeze, named);
    if (status == GHP_OK) status = ghp_freeze_write(model, named, true, &text);
    if (status == GHP_OK) status = ghp_model_replace(model, text);
    free(text);
    free(named);
    return status;
}
