/* tests/onnx/test_warn.c - what is said of files in which PyTorch's exporters left something of a module out. */
#include "tests/check.h"
#include "tests/onnx_graph.h"

static char path[64];
static float floats[256];

/* Reading the graph says so, or where NULL nothing. */
static void says(const char *output, const char *wanted)
{
    char said[600];

    said_reading(path, output, said, sizeof said);
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

static void check_folded(void)
{
    begin_network("pytorch"); /* by the exporter with dynamo: a bias called as the weight */
    convolution("node_a", "x", "a.weight", "a.weight_bias");
    end_network("node_a");
    says("y", "folded batch norms into 1 convolutions, the first 'node_a'");
    begin_network("pytorch"); /* by the other one */
    convolution("a", "x", "onnx::Conv_12", "onnx::Conv_13");
    convolution("b", "a", "onnx::Conv_14", "onnx::Conv_15");
    end_network("b");
    says("y", "folded batch norms into 2 convolutions, the first 'a'");
    begin_network("someone"); /* whose names mean nothing */
    convolution("node_a", "x", "a.weight", "a.weight_bias");
    end_network("node_a");
    says("y", NULL);
}

/* Biases of their own: only the exporter with dynamo keeps these names where it folds. */
static void check_uncertain(void)
{
    for (int dynamo = 0; dynamo < 2; dynamo++) {
        begin_network("pytorch");
        convolution(dynamo ? "node_a" : "/a", "x", "a.weight", "a.bias");
        convolution("b", dynamo ? "node_a" : "/a", "b.weight", "b.bias");
        end_network("b");
        says("y", dynamo ? "if the module has batch norms" : NULL);
    }
}

/* Such a scale is not trained, and a warning says so. */
static void check_scales(void)
{
    static const char *const scales[] = {"n.weight", "val_3"};

    for (int constant_scale = 0; constant_scale < 2; constant_scale++) {
        struct ghp_onnx_node *at;
        struct ghp_model model;

        begin_network("pytorch");
        constant(scales[constant_scale], GHP_ONNX_FLOAT, 1, (int64_t[]){4}, floats);
        constant("n.bias", GHP_ONNX_FLOAT, 1, (int64_t[]){4}, floats);
        constant("mean", GHP_ONNX_FLOAT, 1, (int64_t[]){4}, floats);
        constant("variance", GHP_ONNX_FLOAT, 1, (int64_t[]){4}, floats);
        at = node3("BatchNormalization", "n", "x", scales[constant_scale], "n.bias");
        in_names[0][3] = "mean";
        in_names[0][4] = "variance";
        at->n_inputs = 5;
        end_network("n");
        says("y", constant_scale ? "have a scale that is no weight of the module" : NULL);
        if (!CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) continue;
        CHECK_EQ(model.layers[1].norm.fixed, constant_scale == 1);
        ghp_model_release(&model);
    }
}

/* What PyTorch's exporter leaves of detach(): the name of an Identity. */
static void check_detached(void)
{
    for (int pytorch = 0; pytorch < 2; pytorch++) {
        begin_network(pytorch ? "pytorch" : "someone");
        node("Identity", "node_detach", "x", NULL);
        node("Sigmoid", "gate", "node_detach", NULL);
        node("Mul", "gated", "x", "gate");
        end_network("gated");
        says("y", pytorch ? "node 'node_detach' is a detach() of the module" : NULL);
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
    check_uncertain();
    check_scales();
    check_detached();
    check_outputs();
    unlink(path);
    return check_end();
}
