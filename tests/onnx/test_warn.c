/* tests/onnx/test_warn.c - what is said of files in which PyTorch's exporters left something of a module out. */
#include "onnx/network.h"
#include "tests/check.h"
#include "tests/onnx_graph.h"

static char path[64];
static float floats[256];
static const float ones[4] = {1, 1, 1, 1};

static const char unsaid[] = "ghp trains all parameters";

/* Takes the line out that is said of each file of PyTorch's without a list of parameters. */
static void drop_unsaid(char *said)
{
    char *at = strstr(said, unsaid), *end = at != NULL ? strchr(at, '\n') : NULL;

    if (end == NULL) return;
    while (at > said && at[-1] != '\n')
        --at;
    memmove(at, end + 1, strlen(end + 1) + 1);
}

/* Reading the graph says so, or where NULL nothing. */
static void says(const char *output, const char *wanted)
{
    char said[1600];

    said_reading(path, output, said, sizeof said);
    drop_unsaid(said);
    if (wanted == NULL)
        CHECK_TEXT(said, "");
    else if (!CHECK(strstr(said, wanted) != NULL))
        fprintf(stderr, "  it says: %s", said);
}

/* A convolution of four channels and a bias, called as its output. */
static void convolution(const char *name, const char *from, const char *weight, const char *bias)
{
    constant(weight, GHP_ONNX_FLOAT, 4, (int64_t[]){4, 4, 1, 1}, floats);
    constant(bias, GHP_ONNX_FLOAT, 1, (int64_t[]){4}, floats);
    node3("Conv", name, from, weight, bias);
}

static void begin_network(const char *producer)
{
    begin(18, -1, 4, 2, 2);
    graph.producer = producer;
}

static void end_network(const char *from)
{
    node("GlobalAveragePool", "pooled", from, NULL);
    node("Flatten", "y", "pooled", NULL);
}

/* A file is refused whose exporter folded batch norms into convolutions: by the optimizer's own word, or by a bias that
 * no module has; taken where that is said to be meant. */
static void check_folded(void)
{
    static const char *const tensors_of[][3] = {{"pytorch", "a.weight", "a.weight_bias"},
                                                {"pytorch", "onnx::Conv_12", "onnx::Conv_13"},
                                                {"pytorch", "a.weight", "a.bias"},
                                                {"someone", "a.weight", "a.weight_bias"}};

    for (int i = 0; i < 4; i++) {
        struct ghp_model model;

        begin_network(tensors_of[i][0]);
        convolution("node_a", "x", tensors_of[i][1], tensors_of[i][2]);
        end_network("node_a");
        save(path, "y");
        if (CHECK_STATUS(ghp_onnx_load(path, &model), i < 2 ? GHP_ERR_INPUT : GHP_OK) && i >= 2)
            ghp_model_release(&model);
        if (i >= 2) continue;
        CHECK(strstr(ghp_status_message(), "folded batch norms into 1 node, the first 'node_a'") !=
              NULL);
        CHECK(strstr(ghp_status_message(), "--folded-batch-norm") != NULL);
        ghp_network_takes_folded_norms = true;
        if (CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) ghp_model_release(&model);
        ghp_network_takes_folded_norms = false;
    }
}

/* A network that never had a batch norm is read without a word. */
static void check_without_norms(void)
{
    begin_network("pytorch");
    convolution("node_a", "x", "a.weight", "a.bias");
    convolution("b", "node_a", "b.weight", "b.bias");
    end_network("b");
    says("y", NULL);
}

/* What no exporter writes is said once, unless the file lists what is trained. */
static void check_unsaid(void)
{
    struct ghp_onnx_metadatum list = {"ghp.parameters", "[\"a.weight\", \"a.bias\"]"};
    char said[1600];

    for (int way = 0; way < 3; way++) {
        begin_network(way == 2 ? "someone" : "pytorch");
        convolution("node_a", "x", "a.weight", "a.bias");
        end_network("node_a");
        graph.texts = &list;
        graph.n_texts = way == 1;
        said_reading(path, "y", said, sizeof said);
        CHECK_EQ(strstr(said, unsaid) != NULL, way == 0);
    }
}

/* A batch norm of four channels. */
static void batch_norm(const char *name, const char *from, bool trains)
{
    static const char *const parts[] = {"weight", "bias", "mean", "var"};
    static char names[2][4][16];
    int k = trains;
    struct ghp_onnx_node *at;

    for (int i = 0; i < 4; i++) {
        snprintf(names[k][i], sizeof names[k][i], "%s.%s", name, parts[i]);
        constant(names[k][i], GHP_ONNX_FLOAT, 1, (int64_t[]){4}, floats);
    }
    at = node3("BatchNormalization", name, from, names[k][0], names[k][1]);
    number(at, "training_mode", trains);
    at->inputs[3] = names[k][2];
    at->inputs[4] = names[k][3];
    at->n_inputs = 5;
}

/* Batch norms of both modes are refused: ghp has one for all. */
static void check_modes(void)
{
    struct ghp_model model;

    begin_network("pytorch");
    batch_norm("still", "x", false);
    end_network("still");
    says("y", "are in evaluation mode");
    begin_network("pytorch");
    batch_norm("still", "x", false);
    batch_norm("n", "still", true);
    end_network("n");
    save(path, "y");
    CHECK_STATUS(ghp_onnx_load(path, &model), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "'still' is in evaluation mode, and others") != NULL);
}

/* A scale and a shift of four channels, as constants of these names. */
static void scale_and_shift(const char *scale, const char *shift)
{
    begin_network("pytorch");
    constant(scale, GHP_ONNX_FLOAT, 3, (int64_t[]){4, 1, 1}, floats);
    constant(shift, GHP_ONNX_FLOAT, 3, (int64_t[]){4, 1, 1}, floats);
    node("Mul", "m", "x", scale);
    node("Add", "a", "m", shift);
    end_network("a");
}

/* What the metadata names is trained, all else keeps its values, and nothing is unsure. */
static void check_listed(void)
{
    struct ghp_onnx_metadatum list = {"ghp.parameters", "[\"gain\"]"};
    struct ghp_model model;

    scale_and_shift("gain", "mean");
    says("y", "does not say whether 'gain' and 1 more tensors are parameters");
    scale_and_shift("gain", "mean");
    graph.texts = &list;
    graph.n_texts = 1;
    save(path, "y");
    if (CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) {
        CHECK_EQ(model.layers[1].fixed, false);
        CHECK_EQ(model.layers[2].fixed, true);
        ghp_model_release(&model);
    }
    says("y", NULL);
    list.value = "gain";
    save(path, "y");
    CHECK_STATUS(ghp_onnx_load(path, &model), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "is not a list of names") != NULL);
}

/* Two nodes that have a parameter train one; a buffer neither of them trains. */
static void check_shared_buffer(void)
{
    struct ghp_onnx_metadatum list = {"ghp.parameters", "[\"gain\"]"};
    static const float apart[4] = {1, 2, 3, 4};
    struct ghp_model model;

    for (int way = 0; way < 2; way++) {
        const char *shared = way == 0 ? "gain" : "mean";

        begin_network("pytorch");
        constant(shared, GHP_ONNX_FLOAT, 3, (int64_t[]){4, 1, 1}, apart);
        node("Add", "m", "x", shared);
        node("Relu", "r", "m", NULL);
        node("Add", "a", "r", shared);
        end_network("a");
        graph.texts = &list;
        graph.n_texts = 1;
        says("y", NULL);
        save(path, "y");
        if (CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) {
            CHECK_EQ(model.layers[3].tied > 0, way == 0);
            ghp_model_release(&model);
        }
    }
}

/* What the exporter without dynamo computes from a tensor that may be a parameter is refused, and so is such a number;
 * what is only moved is trained, with a warning. */
static void check_unsure(void)
{
    static const int64_t shape[] = {4, 1, 1};
    static const struct {
        const char *op, *second, *says; /* of gain, with the second input */
    } cases[] = {
        {"Mul", "gain", "takes values that the file computes from 'gain', and does not say"},
        {"Div", NULL, "takes values that the file computes from 'gain', and does not say"},
        {"Pow", NULL, "computes with 'gain' in a place where ghp takes a number"},
        {"Reshape", "shape", NULL}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool single = strcmp(cases[i].op, "Pow") == 0;

        begin_network("pytorch");
        constant("gain", GHP_ONNX_FLOAT, single ? 0 : 3, (int64_t[]){4, 1, 1}, ones);
        constant("shape", GHP_ONNX_INT64, 1, (int64_t[]){3}, shape);
        if (cases[i].second != NULL) {
            node(cases[i].op, "made", "gain", cases[i].second);
            node("Mul", "m", "x", "made");
        } else {
            node(cases[i].op, "m", "x", "gain");
        }
        end_network("m");
        if (cases[i].says == NULL) {
            says("y", "does not say whether 'gain' and 0 more tensors are parameters");
            continue;
        }
        refused(path, "y", GHP_ERR_INPUT, cases[i].says);
        CHECK(strstr(ghp_status_message(), "export with dynamo=True, or name the parameters") !=
              NULL);
    }
}

/* A parameter of one value is trained as one; what is computed from a parameter is refused. */
static void check_single(void)
{
    struct ghp_onnx_metadatum list = {"ghp.parameters", "[\"gain\"]"};
    static const int64_t shape[] = {4, 1, 1};
    static const char *const said[] = {NULL, "computes from the parameter 'gain'", NULL};
    static const float one = 1;

    for (int way = 0; way < 3; way++) {
        struct ghp_model model;

        begin_network("pytorch");
        constant("gain", GHP_ONNX_FLOAT, 1, (int64_t[]){way == 1 ? 4 : 1}, floats);
        if (way == 1) {
            constant("shape", GHP_ONNX_INT64, 1, (int64_t[]){3}, shape);
            node("Mul", "gain_square", "gain", "gain");
            node("Reshape", "gain_of", "gain_square", "shape");
        }
        if (way == 2) { /* as torch.addcmul is written */
            constant("one", GHP_ONNX_FLOAT, 0, NULL, &one);
            node("Mul", "gain_of", "one", "gain");
        }
        node("Mul", "m", "x", way > 0 ? "gain_of" : "gain");
        end_network("m");
        graph.texts = &list;
        graph.n_texts = 1;
        save(path, "y");
        if (!CHECK_STATUS(ghp_onnx_load(path, &model), said[way] != NULL ? GHP_ERR_INPUT : GHP_OK))
            continue;
        if (said[way] != NULL) {
            if (!CHECK(strstr(ghp_status_message(), said[way]) != NULL))
                fprintf(stderr, "  it says: %s\n", ghp_status_message());
            continue;
        }
        CHECK_EQ(model.layers[2].op, GHP_OP_CONV2D);
        CHECK_EQ(model.layers[2].params[0].elements, 1);
        CHECK_EQ(model.layers[2].fixed, false);
        ghp_model_release(&model);
    }
}

/* Such a scale is not trained, and a warning says so. */
static void check_scales(void)
{
    static const char *const scales[] = {"n.weight", "val_3"}, *const shifts[] = {"n.bias",
                                                                                  "val_4"};

    for (int constant_scale = 0; constant_scale < 2; constant_scale++) {
        struct ghp_onnx_node *at;
        struct ghp_model model;

        begin_network("pytorch");
        constant(scales[constant_scale], GHP_ONNX_FLOAT, 1, (int64_t[]){4}, floats);
        constant(shifts[constant_scale], GHP_ONNX_FLOAT, 1, (int64_t[]){4}, floats);
        constant("mean", GHP_ONNX_FLOAT, 1, (int64_t[]){4}, floats);
        constant("variance", GHP_ONNX_FLOAT, 1, (int64_t[]){4}, floats);
        at = node3("BatchNormalization", "n", "x", scales[constant_scale], shifts[constant_scale]);
        number(at, "training_mode", 1);
        in_names[0][3] = "mean";
        in_names[0][4] = "variance";
        at->n_inputs = 5;
        end_network("n");
        says("y", constant_scale ? "have a scale that is not a weight of the module" : NULL);
        if (!CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) continue;
        CHECK_EQ(model.layers[1].fixed, constant_scale == 1);
        ghp_model_release(&model);
    }
}

/* What PyTorch's exporter leaves of detach(): the name of an Identity. At the network's input none is missed. */
static void check_detached(void)
{
    for (int way = 0; way < 3; way++) {
        const char *from = way < 2 ? "node_a" : "x";

        begin_network(way > 0 ? "pytorch" : "someone");
        if (way < 2) convolution("node_a", "x", "a.weight", "a.bias");
        node("Identity", "node_detach", from, NULL);
        node("Sigmoid", "gate", "node_detach", NULL);
        node("Mul", "gated", from, "gate");
        end_network("gated");
        says("y", way == 1 ? "node 'node_detach' is a detach() of the module" : NULL);
    }
}

/* momentum=None is written as that of the k-th batch. */
static void check_counted(void)
{
    static const struct {
        float momentum;
        const char *says;
    } cases[] = {{0, "has the momentum 1, as momentum=None"},
                 {0.5f, "has the momentum 0.5, as"},
                 {1 - 1.0f / 3, "has the momentum 0.3333, as"},
                 {1 - 1.0f / 701, "has the momentum 0.001426, as"},
                 {0.9f, NULL},
                 {0.99f, NULL},
                 {0.997f, NULL},
                 {0.995f, NULL},
                 {1 - 1e-4f, NULL}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ghp_onnx_node *at;

        begin_network("pytorch");
        batch_norm("n", "x", true);
        at = &nodes[graph.n_nodes - 1];
        at->attributes[at->n_attributes++] = (struct ghp_onnx_attribute){
            .name = "momentum", .kind = GHP_ONNX_REAL, .real = cases[i].momentum};
        end_network("n");
        says("y", cases[i].says);
    }
}

/* A softmax at the end is the loss, which PyTorch's takes logits for. */
static void check_softmax(void)
{
    static const struct {
        const char *producer, *op, *says;
    } cases[] = {{"pytorch", "Softmax", "takes the softmax 'p' at the end as part of the loss"},
                 {"pytorch", "LogSoftmax", NULL},
                 {"someone", "Softmax", NULL}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_network(cases[i].producer);
        convolution("node_a", "x", "a.weight", "a.bias");
        end_network("node_a");
        node(cases[i].op, "p", "y", NULL);
        says("p", cases[i].says);
    }
}

static void check_outputs(void)
{
    struct ghp_onnx_value outputs[2];

    begin_network("someone");
    end_network("x");
    node("Relu", "z", "y", NULL);
    for (int i = 0; i < 2; i++)
        outputs[i] = (struct ghp_onnx_value){.name = i == 0 ? "z" : "y",
                                             .type = GHP_ONNX_FLOAT,
                                             .shaped = true,
                                             .n_dims = 2,
                                             .dims = {-1, 4}};
    graph.outputs = outputs;
    graph.n_outputs = 2;
    says("unused", "of 2 outputs 'y' is trained");
    outputs[0].n_dims = 3; /* a head of another rank */
    says("unused", "of 2 outputs 'y' is trained");
    graph.outputs = outputs;
    outputs[0].name = "present.0.key"; /* no head */
    nodes[2].outputs[0] = nodes[2].name = "present.0.key";
    says("unused", NULL);
}

CHECK_TEST(warn)
{
    snprintf(path, sizeof path, "/tmp/ghp-warn-%ld.onnx", (long)getpid());
    check_folded();
    check_without_norms();
    check_unsaid();
    check_modes();
    check_listed();
    check_shared_buffer();
    check_unsure();
    check_single();
    check_scales();
    check_detached();
    check_counted();
    check_softmax();
    check_outputs();
    unlink(path);
    return check_end();
}
