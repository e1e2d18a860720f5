/* tests/core/model/test_lora.c - what --lora makes of a network's layers, how it is undone, and what is refused. */
#include "core/model/lora.h"
#include "tests/check.h"

#include <string.h>

static const char text[] =
    "{\"format\":\"ghp.model/"
    "1\",\"name\":\"net\",\"input\":{\"channels\":6,\"positions\":4},\"layers\":["
    "{\"name\":\"a.q_proj\",\"op\":\"linear\",\"features\":6},"
    "{\"name\":\"act\",\"op\":\"relu\"},"
    "{\"name\":\"a.v_proj\",\"op\":\"linear\",\"features\":6,\"bias\":false,\"inputs\":[\"a.q_"
    "proj\"]},"
    "{\"name\":\"sum\",\"op\":\"add\",\"inputs\":[\"a.q_proj\",\"act\",\"a.v_proj\"]},"
    "{\"name\":\"norm\",\"op\":\"layer_norm\"},"
    "{\"name\":\"head\",\"op\":\"linear\",\"features\":3},"
    "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}";

static enum ghp_status adapt(const char *rank, const char *target, const char *trained,
                             struct ghp_model *model)
{
    struct ghp_lora lora = {.rank = rank, .targets = {{target}, target != NULL}};
    struct ghp_opt_list except = {{trained}, trained != NULL};

    CHECK_STATUS(ghp_model_parse(text, "net", model), GHP_OK);
    return ghp_model_lora(model, &lora, &except);
}

/* The names of a layer's inputs. */
static void reads(const struct ghp_model *model, const char *layer, const char *inputs)
{
    const struct ghp_layer *l = &model->layers[ghp_model_find(model, layer)];
    char have[256] = "";

    for (int i = 0; i < l->n_inputs; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", i > 0 ? " " : "",
                 model->layers[l->inputs[i]].name);
    CHECK_TEXT(have, inputs);
}

static void check_layers(void)
{
    struct ghp_model model;
    struct ghp_lora_parts parts;
    const struct ghp_layer *q;

    if (!CHECK_STATUS(adapt("2:3", NULL, NULL, &model), GHP_OK)) return;
    reads(&model, "a.q_proj.lora_A", "input");
    reads(&model, "a.q_proj.lora_B", "a.q_proj.lora_scale");
    reads(&model, "a.q_proj.lora_add", "a.q_proj.bias a.q_proj.lora_B");
    reads(&model, "act", "a.q_proj.lora_add"); /* the layer before, without being named */
    reads(&model, "a.v_proj", "a.q_proj.lora_add");
    reads(&model, "a.v_proj.lora_A", "a.q_proj.lora_add");
    reads(&model, "sum", "a.q_proj.lora_add act a.v_proj.lora_add");
    reads(&model, "head", "norm.bias");
    q = &model.layers[ghp_model_find(&model, "a.q_proj")];
    CHECK(ghp_lora_of(&model, q, &parts));
    CHECK(parts.scale == 1.5);
    CHECK_EQ(parts.a->params[0].dims[0], 2);
    CHECK_EQ(parts.a->params[0].dims[1], 6);
    CHECK_EQ(parts.a->params[0].init, GHP_INIT_UNIFORM);
    CHECK_EQ(parts.a->params[0].fan_in, 6);
    CHECK_EQ(parts.b->params[0].init, GHP_INIT_ZERO);
    for (int i = 0; i < model.n_layers; i++)
        CHECK(model.layers[i].n_params == 0 ||
              model.layers[i].fixed != ghp_lora_has_tensor(model.layers[i].params[0].name));
    ghp_model_release(&model);
}

/* Without a scale that is 1; with a head that is trained too. */
static void check_choices(void)
{
    struct ghp_model model;

    if (!CHECK_STATUS(adapt("2", "v_*", "head", &model), GHP_OK)) return;
    CHECK(ghp_model_find(&model, "a.v_proj.lora_scale") < 0);
    CHECK(ghp_model_find(&model, "a.q_proj.lora_A") < 0);
    CHECK(!model.layers[ghp_model_find(&model, "head")].fixed);
    CHECK(!model.layers[ghp_model_find(&model, "head.bias")].fixed);
    CHECK(model.layers[ghp_model_find(&model, "norm")].fixed);
    ghp_model_release(&model);
}

/* What was adapted becomes what it was. */
static void check_undone(void)
{
    struct ghp_model plain, model, base;

    CHECK_STATUS(ghp_model_parse(text, "net", &plain), GHP_OK);
    if (!CHECK_STATUS(adapt("2:3", "*", NULL, &model), GHP_OK)) return;
    CHECK(model.hash != plain.hash);
    CHECK_STATUS(ghp_model_without_lora(&model, &base), GHP_OK);
    CHECK_TEXT(base.text, plain.text);
    ghp_model_release(&base);
    ghp_model_release(&model);
    ghp_model_release(&plain);
}

static void refuses(const char *rank, const char *target, const char *says)
{
    struct ghp_model model;
    uint64_t hash;

    CHECK_STATUS(ghp_model_parse(text, "net", &model), GHP_OK);
    hash = model.hash;
    ghp_model_release(&model);
    CHECK(adapt(rank, target, NULL, &model) != GHP_OK);
    if (!CHECK(strstr(ghp_status_message(), says) != NULL))
        fprintf(stderr, "  %s\n", ghp_status_message());
    CHECK(model.hash == hash);
    ghp_model_release(&model);
}

static void check_twice(void)
{
    struct ghp_lora lora = {.rank = "2"};
    struct ghp_opt_list none = {.n = 0};
    struct ghp_model model;

    CHECK_STATUS(adapt("2", NULL, NULL, &model), GHP_OK);
    CHECK_STATUS(ghp_model_lora(&model, &lora, &none), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "a.q_proj.lora_A' already") != NULL);
    ghp_model_release(&model);
}

CHECK_TEST(lora)
{
    check_layers();
    check_choices();
    check_undone();
    check_twice();
    refuses("0", NULL, "write RANK or RANK:ALPHA");
    refuses("2:", NULL, "write RANK or RANK:ALPHA");
    refuses("2:0", NULL, "write RANK or RANK:ALPHA");
    refuses("2:nan", NULL, "write RANK or RANK:ALPHA");
    refuses("x", NULL, "write RANK or RANK:ALPHA");
    refuses("2", "norm", "names no linear layer");
    refuses("2", "q_prof", "such as 'a.q_proj'");
    refuses(NULL, "q_proj", "add --lora");
    return check_end();
}
