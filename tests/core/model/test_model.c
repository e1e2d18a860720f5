/* tests/core/model/test_model.c - networks: published weights and FLOPs, shapes, names, and what the reader refuses. */
#include "core/base/json_lines.h"
#include "core/base/units.h"
#include "core/model/model_private.h"
#include "core/model/op.h"
#include "tests/check.h"

#include <time.h>

struct published {
    const char *name;
    int64_t weights; /* of conv2d and linear, without biases and batch norms */
    int64_t all;     /* all trained scalars; 0: not checked */
    double gflops;   /* forward, a sample; 0: not checked */
    double tolerance;
};

static struct ghp_model load(const char *name)
{
    struct ghp_model model;
    char path[512];

    snprintf(path, sizeof path, "%s/models/%s.json", GHP_SOURCE_DIR, name);
    if (!CHECK_STATUS(ghp_model_load(path, &model), GHP_OK)) exit(check_end());
    return model;
}

static void test_published(void)
{
    static const struct published nets[] = {
        {"lenet5", 61470, 61706, 0, 0},
        {"alexnet", 61090496, 61100840, 0, 0},
        {"vgg-a", 132851392, 132863336, 15.218, 5e-4},
        {"vgg16", 138344128, 138357544, 30.94, 5e-3},
        {"overfeat-fast", 145909792, 0, 5.603, 5e-4},
        {"cd-dnn", 429 * 2048 + 6 * 2048 * 2048 + 2048 * 9304, 0, 0, 0},
        {"resnet18", 11678912, 11689512, 0, 0},
        {"resnet50", 25502912, 25557032, 0, 0},
        /* torchvision's: 3x3 convolutions where the paper has 5x5; the heads that only training has left out */
        {"googlenet", 0, 6624904, 0, 0},
        {"inception-v3", 0, 23834568, 0, 0},
        {"densenet121", 0, 7978856, 0, 0},
        {"mobilenet-v2", 0, 3504872, 0, 0},
        {"vgg-a-32", 9217728 + 512 * 512 + 512 * 10, 0, 0, 0},
        {"small-resnet", 0, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        struct ghp_model model = load(nets[i].name);
        int64_t weights = 0, all = 0, flops = 0;

        CHECK_TEXT(model.name, nets[i].name);
        for (int j = 0; j < model.n_layers; j++) {
            const struct ghp_layer *layer = &model.layers[j];

            all += ghp_layer_weights(layer);
            flops += ghp_layer_flops(layer);
            if (layer->op == GHP_OP_CONV2D || layer->op == GHP_OP_LINEAR)
                weights += ghp_layer_weights(layer);
        }
        if (nets[i].weights > 0) CHECK_EQ(weights, nets[i].weights);
        if (nets[i].all > 0) CHECK_EQ(all, nets[i].all);
        if (nets[i].gflops > 0) CHECK_NEAR((double)flops / 1e9, nets[i].gflops, nets[i].tolerance);
        ghp_model_release(&model);
    }
}

static void test_lenet5(void)
{
    struct ghp_model model = load("lenet5");
    const struct ghp_layer *conv = &model.layers[ghp_model_find(&model, "conv2")];
    const struct ghp_layer *bias = conv + 1, *relu = conv + 2;

    CHECK_EQ(model.classes, 10);
    CHECK_EQ(model.layers[0].op, GHP_OP_INPUT);
    CHECK_TEXT(model.layers[0].name, "input");
    CHECK_EQ(conv->in.c, 6);
    CHECK_EQ(conv->in.h, 14);
    CHECK_EQ(conv->out.h, 10);
    CHECK_TEXT(conv->params[0].name, "conv2.weight");
    CHECK_EQ(conv->params[0].fan_in, 150);
    CHECK_EQ(conv->params[0].n_dims, 4);
    CHECK_EQ(conv->params[0].dims[1], 6);
    CHECK_EQ(conv->params[0].init, GHP_INIT_KAIMING);
    CHECK_TEXT(bias->name, "conv2.bias");
    CHECK_EQ(bias->op, GHP_OP_BIAS);
    CHECK_TEXT(bias->params[0].name, "conv2.bias");
    CHECK_EQ(bias->params[0].elements, 16);
    CHECK_EQ(relu->inputs[0], (int)(bias - model.layers));
    CHECK(ghp_op_in_place(relu));
    CHECK(!ghp_op_in_place(conv));
    CHECK_EQ(model.n_edges, model.n_layers - 1);
    CHECK_EQ(model.layers[model.edges[3].from].out_edges[0], 3);
    CHECK_EQ(ghp_layer_flops(conv), 2 * 16 * 10 * 10 * 150);
    CHECK_EQ(ghp_model_find(&model, "nothing"), -1);
    ghp_model_release(&model);
    ghp_model_release(&model);
}

static void test_residual(void)
{
    struct ghp_model model = load("small-resnet");
    const struct ghp_layer *add = &model.layers[ghp_model_find(&model, "b.add")];
    const struct ghp_layer *bn = &model.layers[ghp_model_find(&model, "a.bn1")];
    const struct ghp_layer *fork = &model.layers[ghp_model_find(&model, "a.relu")];

    CHECK_EQ(add->n_inputs, 2);
    CHECK_EQ(add->inputs[1], ghp_model_find(&model, "b.short_bn"));
    CHECK_EQ(model.edges[add->first_edge + 1].slot, 1);
    CHECK_EQ(add->out.h, 8);
    CHECK_EQ(fork->n_consumers, 2);
    CHECK(fork->out_edges[0] < fork->out_edges[1]);
    CHECK_EQ(bn->n_params, 2);
    CHECK_EQ(bn->n_states, 2);
    CHECK_TEXT(bn->params[0].name, "a.bn1.weight");
    CHECK_TEXT(bn->params[1].name, "a.bn1.bias");
    CHECK_TEXT(bn->states[0].name, "a.bn1.running_mean");
    CHECK_TEXT(bn->states[1].name, "a.bn1.running_var");
    CHECK_EQ(bn->params[0].init, GHP_INIT_ONE);
    CHECK_EQ(bn->params[1].init, GHP_INIT_ZERO);
    CHECK_NEAR(bn->norm.epsilon, 1e-5, 0);
    CHECK_NEAR(bn->norm.momentum, 0.1, 0);
    ghp_model_release(&model);
}

/* A model of the given input and layers. */
static enum ghp_status parse(const char *layers, struct ghp_model *model)
{
    char text[4096];

    snprintf(text, sizeof text,
             "{\"format\": \"ghp.model/1\", \"name\": \"t\",\n\"input\": {\"channels\": 4, "
             "\"height\": 9, \"width\": 7},\n"
             "\"layers\": [\n%s]}",
             layers);
    return ghp_model_parse(text, "t.json", model);
}

#define CLASSIFY                                                                                   \
    "{\"name\": \"pool\", \"op\": \"global_avg_pool\"},\n{\"name\": \"loss\", \"op\": "            \
    "\"softmax_cross_entropy\"}"

static void test_windows(void)
{
    struct ghp_model model;
    const struct ghp_layer *layer;

    CHECK_STATUS(parse("{\"name\": \"a\", \"op\": \"conv2d\", \"channels\": 6, \"kernel\": [3, 2], "
                       "\"stride\": [2, 1], \"pad\": "
                       "[1, 0, 2, 3], \"dilation\": [1, 2], \"groups\": 2, \"bias\": false},\n"
                       "{\"name\": \"b\", \"op\": \"max_pool\", \"kernel\": 3, \"stride\": 2, "
                       "\"ceil\": true},\n"
                       "{\"name\": \"c\", \"op\": \"avg_pool\", \"kernel\": 2, \"pad\": 1, "
                       "\"count_pad\": false},\n" CLASSIFY,
                       &model),
                 GHP_OK);
    layer = &model.layers[1];
    CHECK_EQ(layer->out.h, 5); /* (9 + 3 - 3) / 2 + 1 */
    CHECK_EQ(layer->out.w, 8); /* 7 + 3 - 3 + 1 */
    CHECK_EQ(layer->params[0].elements, 6 * 2 * 3 * 2);
    layer = &model.layers[2];
    CHECK_EQ(layer->out.h, 2);
    CHECK_EQ(layer->out.w, 4); /* ceil(5 / 2) + 1 */
    CHECK_EQ(layer->window.pad_right, 1);
    CHECK_EQ(layer->window.pad_bottom, 0);
    layer = &model.layers[3];
    CHECK_EQ(layer->out.h, 2);
    CHECK_EQ(layer->out.w, 3);
    CHECK(!layer->window.count_pad);
    ghp_model_release(&model);
}

static void test_text(void)
{
    struct ghp_model model, again;

    CHECK_STATUS(parse("{\"name\": \"n\", \"op\": \"lrn\", \"size\": 5, \"alpha\": 0.1, \"k\": "
                       "2.0},\n" CLASSIFY,
                       &model),
                 GHP_OK);
    CHECK_STATUS(ghp_model_parse(model.text, "again", &again), GHP_OK);
    CHECK_TEXT(model.text, again.text);
    CHECK(model.hash == again.hash && model.hash != 0);
    CHECK(strstr(model.text, "\"alpha\":0.1,\"k\":2.0") != NULL);
    ghp_model_release(&again);
    CHECK_STATUS(ghp_model_complete(&model), GHP_OK); /* completing twice changes nothing */
    CHECK_EQ(model.n_edges, model.n_layers - 1);
    ghp_model_release(&model);
}

struct refusal {
    const char *layers, *message;
};

static void test_refusals(void)
{
    static const struct refusal cases[] = {
        {"{\"name\": \"a\", \"op\": \"conv2d\", \"channels\": 6, \"kernel\": 3, \"strides\": 2}",
         "t.json:4:70: 'layers[0].strides': unknown key 'strides'; did you mean 'stride'?"},
        {"{\"name\": \"a\", \"op\": \"conv3d\"}", "use one of conv2d"},
        {"{\"name\": \"a\", \"op\": \"conv2d\", \"channels\": 6}", "key 'kernel' is missing"},
        {"{\"name\": \"a\", \"op\": \"conv2d\", \"channels\": 6, \"kernel\": 10}",
         "use a smaller kernel or more padding"},
        {"{\"name\": \"a\", \"op\": \"conv2d\", \"channels\": 6, \"kernel\": [1, 2, 3]}",
         "write one number or [height, width]"},
        {"{\"name\": \"a\", \"op\": \"conv2d\", \"channels\": 0, \"kernel\": 1}", "from 1 to"},
        {"{\"name\": \"a\", \"op\": \"conv2d\", \"channels\": 6, \"kernel\": 1, \"groups\": 3}",
         "use groups that divide both"},
        {"{\"name\": \"a\", \"op\": \"linear\", \"features\": 6}", "put a flatten layer before it"},
        {"{\"name\": \"a\", \"op\": \"lrn\", \"size\": 4}", "use 3 or 5"},
        {"{\"name\": \"a\", \"op\": \"dropout\", \"ratio\": 1}", "from 0 to"},
        {"{\"name\": \"a\", \"op\": \"batch_norm\", \"statistics\": \"group\"}",
         "use one of global, local"},
        {"{\"name\": \"a b\", \"op\": \"relu\"}", "letters, digits"},
        {"{\"name\": \"input\", \"op\": \"relu\"}", "is taken"},
        {"{\"name\": \"a\", \"op\": \"relu\", \"inputs\": [\"b\"]}",
         "there is no layer 'b' before this one"},
        {"{\"name\": \"a\", \"op\": \"relu\", \"inputs\": [\"a\"]}",
         "there is no layer 'a' before this one"},
        {"{\"name\": \"a\", \"op\": \"add\", \"inputs\": [\"input\"]}", "name 2 to 16"},
        {"{\"name\": \"a\", \"op\": \"add\", \"inputs\": [\"input\", \"input\"]}",
         "name different layers"},
        {"{\"name\": \"p\", \"op\": \"max_pool\", \"kernel\": 2},\n{\"name\": \"a\", \"op\": "
         "\"add\", \"inputs\": [\"input\", \"p\"]}",
         "t.json:5:1: 'layers[1]': layer 'a' (add) joins 'input' of shape 4x9x7 with 'p' of shape "
         "4x4x3; make their shapes equal"},
        {"{\"name\": \"p\", \"op\": \"max_pool\", \"kernel\": 2, \"pad\": 2}",
         "padding smaller than the kernel"},
        {"{\"name\": \"r\", \"op\": \"relu\"}",
         "end it with a loss, such as softmax_cross_entropy"},
        {"{\"name\": \"r\", \"op\": \"relu\"},\n{\"name\": \"s\", \"op\": \"relu\", \"inputs\": "
         "[\"input\"]},\n" CLASSIFY,
         "t.json:4:1: 'layers[0]': layer 'r' (relu) is read by no layer"},
        {"{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}",
         "takes a vector, or one a position, but its input is 4x9x7; put a flatten layer before "
         "it"},
        {"{\"name\": \"f\", \"op\": \"flatten\"},\n{\"name\": \"one\", \"op\": \"linear\", "
         "\"features\": 1},\n{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}",
         "takes 2 to 2^24 classes, but its input is one number; use the loss binary_cross_entropy"},
        {CLASSIFY ",\n{\"name\": \"r\", \"op\": \"relu\"}", "is the loss, but not the last layer"},
        {"{\"name\": \"x\", \"op\": \"batch_norm\"},\n{\"name\": \"x.bias\", \"op\": "
         "\"bias\"},\n" CLASSIFY,
         "two tensors are called 'x.bias'"},
        {"", "give 1 to"},
        {"{\"name\": \"a\", \"op\": \"relu\"", "t.json:"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ghp_model model;

        if (CHECK(parse(cases[i].layers, &model) != GHP_OK))
            CHECK_MESSAGE(cases[i].message);
        else
            fprintf(stderr, "accepted: %s\n", cases[i].layers);
        CHECK(model.layers == NULL);
    }
}

static enum ghp_status parse_sequence(const char *input, const char *layers,
                                      struct ghp_model *model)
{
    char text[1024];

    snprintf(text, sizeof text,
             "{\"format\": \"ghp.model/1\", \"name\": \"t\", \"input\": {%s}, \"layers\": [%s]}",
             input, layers);
    return ghp_model_parse(text, "t.json", model);
}

/* A sequence of one position is not a vector, though it has as many numbers. */
static void test_sequences(void)
{
    static const struct refusal cases[] = {
        {"{\"name\": \"a\", \"op\": \"conv2d\", \"channels\": 6, \"kernel\": 1}",
         "layer 'a' (conv2d) takes images, but its input is 6 channels x 1 positions"},
        {"{\"name\": \"a\", \"op\": \"flatten\"}, {\"name\": \"b\", \"op\": \"add\", \"inputs\": "
         "[\"input\", \"a\"]}",
         "joins 'input' of shape 6 channels x 1 positions with 'a' of shape 6; make their shapes"},
    };
    const char *layers =
        "{\"name\": \"fc\", \"op\": \"linear\", \"features\": 5, \"bias\": false}, "
        "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}";
    struct ghp_model model;
    char *text = NULL;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(parse_sequence("\"channels\": 6, \"positions\": 1", cases[i].layers, &model) !=
              GHP_OK);
        CHECK_MESSAGE(cases[i].message);
    }
    CHECK(parse_sequence("\"channels\": 6, \"positions\": 4, \"width\": 2", layers, &model) !=
          GHP_OK);
    CHECK_MESSAGE("leave one out");
    CHECK(parse_sequence("\"vocabulary\": 6", layers, &model) != GHP_OK);
    CHECK_MESSAGE("has positions and no channels");
    CHECK(parse_sequence("\"vocabulary\": 6, \"positions\": 4", layers, &model) != GHP_OK);
    CHECK_MESSAGE("put an embedding layer before it");
    CHECK(parse_sequence("\"channels\": 6, \"positions\": 4",
                         "{\"name\": \"e\", \"op\": \"embedding\", \"channels\": 6}",
                         &model) != GHP_OK);
    CHECK_MESSAGE("give the network's input a vocabulary");
    if (!CHECK_STATUS(parse_sequence("\"channels\": 6, \"positions\": 4", layers, &model), GHP_OK))
        return;
    CHECK_EQ(model.layers[1].out.axes, GHP_AXES_SEQUENCE);
    CHECK_EQ(ghp_shape_elements(model.layers[1].out), 20);
    CHECK_EQ(ghp_layer_weights(&model.layers[1]), 30);
    CHECK_EQ(ghp_layer_flops(&model.layers[1]), 2 * 4 * 30);
    CHECK_EQ(model.classes, 5);
    CHECK_EQ(ghp_model_labels(&model), 4);
    CHECK_STATUS(ghp_model_write(&model, &text), GHP_OK);
    CHECK(strstr(text, "\"input\":{\"channels\":6,\"positions\":4}") != NULL);
    free(text);
    ghp_model_release(&model);
}

/* Tied layers have no parameters of their own. */
static void test_tied(void)
{
    static const char input[] = "\"positions\": 4, \"vocabulary\": 7",
                      embed[] = "{\"name\": \"e\", \"op\": \"embedding\", \"channels\": 6}, ";
    static const struct refusal cases[] = {
        {"{\"name\": \"o\", \"op\": \"linear\", \"features\": 8, \"tied\": \"e\"}",
         "needs weights [8][6], but those of 'e' that it is tied to are [7][6]"},
        {"{\"name\": \"o\", \"op\": \"linear\", \"features\": 7, \"tied\": \"o\"}",
         "name an earlier layer with parameters"},
        {"{\"name\": \"o\", \"op\": \"linear\", \"features\": 7, \"tied\": \"input\"}",
         "or a linear layer to an embedding"},
        {"{\"name\": \"r\", \"op\": \"relu\", \"tied\": \"e\"}", "unknown key 'tied'"},
        {"{\"name\": \"o\", \"op\": \"linear\", \"features\": 6}, {\"name\": \"p\", \"op\": "
         "\"linear\", \"features\": 5, \"tied\": \"o\"}",
         "needs weights [5][6], but those of 'o' that it is tied to are [6][6]"},
    };
    struct ghp_model model;
    char layers[512], *text = NULL;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(layers, sizeof layers, "%s%s", embed, cases[i].layers);
        CHECK(parse_sequence(input, layers, &model) != GHP_OK);
        CHECK_MESSAGE(cases[i].message);
    }
    snprintf(layers, sizeof layers,
             "%s{\"name\": \"o\", \"op\": \"linear\", \"features\": 7, \"tied\": \"e\", \"bias\": "
             "false}, {\"name\": \"l\", \"op\": \"softmax_cross_entropy\"}",
             embed);
    if (!CHECK_STATUS(parse_sequence(input, layers, &model), GHP_OK)) return;
    CHECK_EQ(ghp_model_owner(&model, 2), 1);
    CHECK_EQ(ghp_model_owner(&model, 1), 1);
    CHECK(model.layers[1].shared && model.layers[2].n_params == 0 && model.layers[2].learns);
    CHECK_STATUS(ghp_model_write(&model, &text), GHP_OK);
    CHECK(strstr(text, "\"tied\":\"e\"") != NULL);
    CHECK(!model.layers[1].by_data && !model.layers[2].by_data);
    free(text);
    ghp_model_release(&model);
    snprintf(layers, sizeof layers,
             "%s{\"name\": \"a\", \"op\": \"linear\", \"features\": 6}, {\"name\": \"b\", \"op\": "
             "\"linear\", \"features\": 6, \"tied\": \"a\"}, {\"name\": \"l\", \"op\": "
             "\"softmax_cross_entropy\"}",
             embed);
    if (!CHECK_STATUS(parse_sequence(input, layers, &model), GHP_OK)) return;
    CHECK_EQ(ghp_model_owner(&model, 4), 2); /* the weight, and the bias that comes with it */
    CHECK_EQ(ghp_model_owner(&model, 5), 3);
    CHECK(model.layers[2].by_data && model.layers[4].by_data && model.layers[5].n_params == 0);
    CHECK_STATUS(ghp_model_write(&model, &text), GHP_OK);
    CHECK(strstr(text, "\"tied\":\"a\"}") != NULL && strstr(text, "bias") == NULL);
    free(text);
    ghp_model_release(&model);
}

static void test_missing_file(void)
{
    struct ghp_model model;

    CHECK_STATUS(ghp_model_load("/nonexistent/model.json", &model), GHP_ERR_IO);
    CHECK_STATUS(ghp_model_parse("{\"format\": \"ghp.plan/2\"}", "p.json", &model), GHP_ERR_FORMAT);
    CHECK_MESSAGE("ghp.model/1");
}

/* The largest network that the reader takes: its names are looked up, not searched for (searching takes some 20 s). */
static void test_largest(void)
{
    enum { N = 65535, BYTES_EACH = 40 };
    size_t room = (size_t)(N + 8) * BYTES_EACH, used;
    char *text = ghp_alloc(room, 1), name[16];
    struct ghp_model model;
    double begin = (double)clock() / CLOCKS_PER_SEC;

    used = (size_t)snprintf(text, room,
                            "{\"format\":\"ghp.model/1\",\"name\":\"deep\",\"input\":"
                            "{\"channels\":2},\"layers\":[");
    for (int i = 0; i < N; i++)
        used +=
            (size_t)snprintf(text + used, room - used, "{\"name\":\"r%d\",\"op\":\"relu\"},", i);
    snprintf(text + used, room - used, "{\"name\":\"l\",\"op\":\"softmax_cross_entropy\"}]}");
    if (CHECK_STATUS(ghp_model_parse(text, "deep.json", &model), GHP_OK)) {
        for (int i = 0; i < N; i += 1000) {
            snprintf(name, sizeof name, "r%d", i);
            CHECK_EQ(ghp_model_find(&model, name), i + 1);
        }
        CHECK_EQ(ghp_model_find(&model, "r65535"), -1);
    }
    /* 0.4 s, and some times as long under sanitizers */
    CHECK((double)clock() / CLOCKS_PER_SEC - begin < 8);
    ghp_model_release(&model);
    free(text);
}

/* 2^27 outputs a sample in the convolution, and as many inputs of the next layer, and few others. */
static void test_sizes(void)
{
    struct ghp_model model;
    const char *text =
        "{\"format\":\"ghp.model/1\",\"name\":\"wide\",\"input\":{\"channels\":1,\"height\":2048,"
        "\"width\":2048},\"layers\":[{\"name\":\"c\",\"op\":\"conv2d\",\"channels\":32,\"kernel\":"
        "1},"
        "{\"name\":\"g\",\"op\":\"global_avg_pool\"},{\"name\":\"f\",\"op\":\"flatten\"},"
        "{\"name\":\"l\",\"op\":\"softmax_cross_entropy\"}]}";

    if (!CHECK_STATUS(ghp_model_parse(text, "wide.json", &model), GHP_OK)) return;
    CHECK_STATUS(ghp_model_check_sizes(&model, 1 << 20, 1), GHP_OK);
    CHECK_STATUS(ghp_model_check_sizes(&model, 1 << 25, 1), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "2^53 values") != NULL);
    /* beyond what 64 bits hold, even at 4 bytes a value, where the product is 0 */
    CHECK_STATUS(ghp_model_check_sizes(&model, INT64_C(1) << 35, 1), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "2^30 samples") != NULL);
    CHECK_STATUS(ghp_model_check_sizes(&model, INT64_MAX, 1), GHP_ERR_INPUT);
    CHECK_STATUS(ghp_model_check_sizes(&model, 1, INT64_MAX), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "workers") != NULL);
    ghp_model_release(&model);
    CHECK(ghp_product_fits(INT64_MAX, 1, INT64_MAX));
    CHECK(ghp_product_fits(0, INT64_MAX, 1));
    CHECK(!ghp_product_fits(INT64_C(1) << 32, INT64_C(1) << 32, INT64_MAX));
}

CHECK_TEST(model)
{
    test_sizes();
    test_published();
    test_lenet5();
    test_residual();
    test_windows();
    test_text();
    test_refusals();
    test_sequences();
    test_tied();
    test_missing_file();
    test_largest();
    return check_end();
}
