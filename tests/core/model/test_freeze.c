/* tests/core/model/test_freeze.c - which layers --freeze fixes, what becomes of the description, and what is
 * refused. */
#include "core/model/freeze.h"
#include "core/model/op.h"
#include "tests/check.h"

#include <string.h>

static const char text[] =
    "{\"format\":\"ghp.model/1\",\"name\":\"net\","
    "\"input\":{\"channels\":3,\"height\":4,\"width\":4},\"layers\":["
    "{\"name\":\"layer1.conv\",\"op\":\"conv2d\",\"channels\":8,\"kernel\":3,\"pad\":1},"
    "{\"name\":\"layer1.bn\",\"op\":\"batch_norm\",\"epsilon\":0.25,\"statistics\":\"local\"},"
    "{\"name\":\"layer11\",\"op\":\"conv2d\",\"channels\":8,\"kernel\":1},"
    "{\"name\":\"norm\",\"op\":\"batch_norm\"},"
    "{\"name\":\"still\",\"op\":\"batch_norm\",\"fixed\":true},"
    "{\"name\":\"flat\",\"op\":\"flatten\"},"
    "{\"name\":\"fc\",\"op\":\"linear\",\"features\":2},"
    "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}";

static enum ghp_status freeze_by(const char *pattern, const char *except, struct ghp_model *model)
{
    struct ghp_freeze freeze = {{{pattern}, pattern != NULL}, {{except}, except != NULL}};

    CHECK_STATUS(ghp_model_parse(text, "net", model), GHP_OK);
    return ghp_model_freeze(model, &freeze);
}

/* The names of what is fixed are these, and a text in which they are said gives the same network again. */
static void fixes(const char *pattern, const char *except, const char *const *layers)
{
    struct ghp_model model, again;
    int n = 0;

    CHECK_STATUS(freeze_by(pattern, except, &model), GHP_OK);
    for (int i = 0; i < model.n_layers; i++) {
        const struct ghp_layer *layer = &model.layers[i];

        if (!layer->fixed) continue;
        if (layer->op == GHP_OP_BATCH_NORM) { /* the file fixed it, and no pattern names it */
            CHECK_TEXT(layer->name, "still");
            continue;
        }
        if (CHECK(layers[n] != NULL)) CHECK_TEXT(layer->name, layers[n++]);
        if (layer->op == GHP_OP_FROZEN_BATCH_NORM) {
            CHECK_EQ(layer->n_params + layer->n_states, 4);
            CHECK_TEXT(layer->states[0].name + strlen(layer->name), ".running_mean");
        }
    }
    CHECK(layers[n] == NULL);
    CHECK_STATUS(ghp_model_parse(model.text, "net", &again), GHP_OK);
    CHECK(again.hash == model.hash);
    ghp_model_release(&again);
    ghp_model_release(&model);
}

static void check_fixed(void)
{
    static const char *const module[] = {"layer1.conv", "layer1.conv.bias", "layer1.bn", NULL},
                             *const bias[] = {"layer1.conv.bias", "layer11.bias", "fc.bias", NULL},
                             *const weight[] = {"layer11", NULL}, *const norm[] = {"norm", NULL},
                             *const rest[] = {"layer1.conv",  "layer1.conv.bias",
                                              "layer1.bn",    "layer11",
                                              "layer11.bias", "norm",
                                              "still",        NULL},
                             *const still[] = {"still", NULL}, *const none[] = {NULL};

    fixes("layer1", NULL, module);
    fixes("layer1.*", NULL, module);
    fixes("f*.bias", NULL, bias + 2);
    fixes("layer11.weight", NULL, weight);
    fixes("norm.*", NULL, norm);
    fixes("still", NULL, still);
    fixes("*", "[!s]*", still);
    fixes("*", "fc.*", rest);
    fixes("[lf]*.bias", "layer1.*", bias + 1);
    fixes(NULL, NULL, none);
}

static void refuses(const char *pattern, const char *except, const char *says)
{
    struct ghp_model model;

    CHECK(freeze_by(pattern, except, &model) != GHP_OK);
    if (!CHECK(strstr(ghp_status_message(), says) != NULL))
        fprintf(stderr, "  %s\n", ghp_status_message());
    CHECK(!model.layers[1].fixed);
    ghp_model_release(&model);
}

CHECK_TEST(freeze)
{
    check_fixed();
    refuses("layer2.*", NULL, "names no parameter");
    refuses("layer1.bn.weigh", NULL, "'layer1.bn.weight'");
    refuses("norm.weight", NULL, "without 'norm.bias'");
    refuses("*", NULL, "nothing to train");
    refuses("layer1", "head.*", "--freeze-except 'head.*'");
    refuses(NULL, "fc.*", "add --freeze");
    return check_end();
}
