/* tests/onnx/test_output.c - which outputs have a loss: vectors of classes, and nothing that would be one softmax over
 * what are many. */
#include "tests/check.h"
#include "tests/onnx_graph.h"

static char path[64];

/* Samples of these axes, whose output they are. */
static void begin_axes(int n, const int64_t *dims)
{
    begin(13, -1, 1, 0, 0);
    ends[0].n_dims = n + 1;
    memcpy(ends[0].dims + 1, dims, (size_t)n * sizeof *dims);
    node("Relu", "y", "x", NULL);
}

static void taken(int64_t classes)
{
    struct ghp_model model;

    save(path, "y");
    if (!CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) return;
    CHECK_EQ(model.layers[model.n_layers - 1].out.c, classes);
    ghp_model_release(&model);
}

static void check_maps(void)
{
    static const int64_t map[3] = {5, 4, 3}, boxes[2] = {6, 4}, pooled[3] = {5, 1, 1},
                         row[3] = {1, 1, 7};
    struct ghp_onnx_metadatum hinge = {"ghp.loss", "{\"op\": \"hinge\"}"};
    struct ghp_model model, again;
    char text[2048];

    begin_axes(3, map); /* of a segmentation: never one softmax over all */
    save(path, "y");
    if (CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) {
        CHECK_EQ(model.layers[model.n_layers - 1].out.c, 5);
        CHECK_EQ(ghp_model_labels(&model), 12);
        CHECK_STATUS(ghp_onnx_save(path, &model, NULL), GHP_OK); /* and comes back as it was */
        if (CHECK_STATUS(ghp_onnx_load(path, &again), GHP_OK)) {
            CHECK(again.hash == model.hash);
            ghp_model_release(&again);
        }
        ghp_model_release(&model);
    }
    begin_axes(3, map);
    said_reading(path, "y", text, sizeof text);
    CHECK(strstr(text, "axis 1 is taken as the classes of each pixel") != NULL);
    graph.texts = &hinge;
    graph.n_texts = 1;
    refused(path, "y", GHP_ERR_INPUT,
            "the output 'y' cannot be the network's: a sample has 60 values on 3 axes");
    CHECK_MESSAGE("one vector of classes for each sample");
    CHECK_MESSAGE("pool or flatten it to batch and classes");
    begin_axes(2, boxes); /* of a detection */
    refused(path, "y", GHP_ERR_INPUT, "a sample has 24 values on 2 axes");
    begin_axes(1, pooled + 1); /* of one number, where the default loss has nothing to tell apart */
    refused(path, "y", GHP_ERR_INPUT, "a sample has one value there");
    CHECK_MESSAGE("name it as 'loss' of ghp.export, or in the metadata 'ghp.loss'");
    begin_axes(3, pooled);
    taken(5);
    begin_axes(3, row);
    taken(7);
    begin_axes(3, map); /* as the message says */
    node("Flatten", "z", "y", NULL);
    nodes[1].outputs[0] = "y";
    nodes[0].outputs[0] = nodes[1].inputs[0] = "map";
    taken(60);
}

/* Each output has a label of its own: nothing is summed over that is not one. */
static void check_multi_label(void)
{
    static const int64_t map[3] = {5, 4, 3};
    struct ghp_onnx_metadatum text = {"ghp.loss",
                                      "{\"op\": \"binary_cross_entropy\", \"multi_label\": true}"};

    begin_axes(3, map);
    graph.texts = &text;
    graph.n_texts = 1;
    taken(60);
    text.value = "{\"op\": \"hinge\"}";
    refused(path, "y", GHP_ERR_INPUT, "the loss hinge is of one vector");
}

/* A number for each output: an image stays one, all else is a vector. */
static void check_numbers(void)
{
    static const int64_t map[3] = {5, 4, 3}, boxes[2] = {6, 4};
    struct ghp_onnx_metadatum text = {"ghp.loss", "{\"op\": \"regression\", \"error\": \"huber\"}"};
    struct ghp_model model, again;

    begin_axes(3, map);
    graph.texts = &text;
    graph.n_texts = 1;
    save(path, "y");
    if (CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) {
        CHECK(ghp_shape_equal(ghp_model_targets(&model), ghp_shape_image(5, 4, 3)));
        CHECK_EQ(ghp_model_labels(&model), 60);
        CHECK_EQ(model.n_layers, 3);
        CHECK_STATUS(ghp_onnx_save(path, &model, NULL), GHP_OK);
        if (CHECK_STATUS(ghp_onnx_load(path, &again), GHP_OK)) {
            CHECK(again.hash == model.hash);
            ghp_model_release(&again);
        }
        ghp_model_release(&model);
    }
    begin_axes(2, boxes); /* an image of one row to ghp */
    graph.texts = &text;
    graph.n_texts = 1;
    taken(6);
    begin_axes(3, map);
    graph.texts = &text;
    graph.n_texts = 1;
    list(node("Transpose", "z", "y", NULL), "perm", (const int64_t[]){0, 2, 3, 1}, 4);
    nodes[1].outputs[0] = "y";
    nodes[0].outputs[0] = nodes[1].inputs[0] = "map";
    taken(60); /* as the array lies */
}

/* Outputs a and b of these widths, keys that a language model keeps, and a loss. */
static void save_two(const int64_t *widths, const char *loss)
{
    static struct ghp_onnx_value outputs[3];
    static struct ghp_onnx_metadatum text;
    static const char *const names[] = {"a", "b", "present.0"};

    for (int i = 0; i < 3; i++)
        outputs[i] = (struct ghp_onnx_value){
            .name = names[i], .type = GHP_ONNX_FLOAT, .n_dims = 2, .dims = {-1, 3}};
    begin(13, -1, 6, 0, 0);
    constant("split", GHP_ONNX_INT64, 1, (const int64_t[]){2}, widths);
    number(node("Split", "a", "x", "split"), "axis", 1);
    out_names[0][1] = "b";
    nodes[0].n_outputs = 2;
    text = (struct ghp_onnx_metadatum){"ghp.loss", loss};
    graph.texts = &text;
    graph.n_texts = 1;
    graph.outputs = outputs;
    graph.n_outputs = 3;
    CHECK_STATUS(ghp_onnx_file_save(path, &graph), GHP_OK);
}

/* Outputs with a weight each lie side by side, logits of fewer classes padded; they come back as they were. */
static void check_several(void)
{
    static const int64_t equal[] = {3, 3}, unequal[] = {2, 4};
    static const char weights[] =
        "{\"op\": \"softmax_cross_entropy\", \"output_weights\": [1, 0.25], \"own_labels\": true}";
    struct ghp_model model, again;

    for (int turn = 0; turn < 2; turn++) {
        save_two(turn == 0 ? equal : unequal, weights);
        if (!CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) continue;
        CHECK_EQ(model.classes, 3 + turn);
        CHECK_EQ(model.layers[model.n_layers - 1].in.c, 6 + 2 * turn);
        CHECK_EQ(ghp_model_labels(&model), 2);
        CHECK_STATUS(ghp_onnx_save(path, &model, NULL), GHP_OK);
        if (CHECK_STATUS(ghp_onnx_load(path, &again), GHP_OK)) {
            CHECK(turn > 0 || again.hash == model.hash); /* a view of a view has another name */
            CHECK_EQ(again.n_layers, model.n_layers);
            CHECK_EQ(again.classes, model.classes);
            ghp_model_release(&again);
        }
        ghp_model_release(&model);
    }
    save_two(unequal,
             "{\"op\": \"losses\", \"losses\": [{\"op\": \"hinge\"}, {\"op\": \"regression\"}]}");
    if (CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) {
        CHECK_EQ(model.classes, 2);
        CHECK_EQ(ghp_model_labels(&model), 5);
        CHECK_STATUS(ghp_onnx_save(path, &model, NULL), GHP_OK);
        if (CHECK_STATUS(ghp_onnx_load(path, &again), GHP_OK)) {
            CHECK_EQ(again.layers[again.n_layers - 1].loss.parts[1].channels, 4);
            ghp_model_release(&again);
        }
        ghp_model_release(&model);
    }
    save_two(unequal, "{\"op\": \"hinge\", \"output_weights\": [1, 1]}");
    CHECK_STATUS(ghp_onnx_load(path, &model), GHP_ERR_INPUT);
    CHECK_MESSAGE("is not that many of equal width");
    save_two(equal, "{\"op\": \"hinge\", \"output_weights\": [1, 0.5, 2]}");
    CHECK_STATUS(ghp_onnx_load(path, &model), GHP_ERR_INPUT);
    CHECK_MESSAGE("there are 2 outputs, and the metadata 'ghp.loss' has output_weights of 3");
}

/* A class for the sample, numbers for each pixel, and for each row of a list: images of one row with losses each. */
static void save_places(const char *loss)
{
    static struct ghp_onnx_value outputs[3] = {
        {.name = "c", .type = GHP_ONNX_FLOAT, .n_dims = 2, .dims = {-1, 2}},
        {.name = "b", .type = GHP_ONNX_FLOAT, .n_dims = 4, .dims = {-1, 4, 2, 3}},
        {.name = "l", .type = GHP_ONNX_FLOAT, .n_dims = 3, .dims = {-1, 8, 3}}};
    static const int64_t widths[] = {2, 4}, list_of[] = {0, 8, 3};
    static struct ghp_onnx_metadatum text;

    text = (struct ghp_onnx_metadatum){"ghp.loss", loss};
    begin(13, -1, 6, 2, 3);
    constant("split", GHP_ONNX_INT64, 1, (const int64_t[]){2}, widths);
    constant("list", GHP_ONNX_INT64, 1, (const int64_t[]){3}, list_of);
    number(node("Split", "a", "x", "split"), "axis", 1);
    out_names[0][1] = "b";
    nodes[0].n_outputs = 2;
    node("GlobalAveragePool", "p", "a", NULL);
    node("Flatten", "c", "p", NULL);
    node("Reshape", "l", "b", "list");
    graph.texts = &text;
    graph.n_texts = 1;
    graph.outputs = outputs;
    graph.n_outputs = 3;
    CHECK_STATUS(ghp_onnx_file_save(path, &graph), GHP_OK);
}

static void check_different_places(void)
{
    struct ghp_model model, again;

    save_places("{\"op\": \"losses\", \"losses\": [{\"op\": \"softmax_cross_entropy\"}, "
                "{\"op\": \"regression\"}, {\"op\": \"softmax_cross_entropy\"}]}");
    if (CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) {
        CHECK(ghp_shape_equal(model.layers[model.n_layers - 1].in, ghp_shape_image(9, 1, 8)));
        CHECK(ghp_shape_equal(ghp_model_targets(&model), ghp_shape_image(6, 1, 8)));
        CHECK_STATUS(ghp_onnx_save(path, &model, NULL), GHP_OK);
        if (CHECK_STATUS(ghp_onnx_load(path, &again), GHP_OK)) {
            CHECK(ghp_shape_equal(ghp_model_targets(&again), ghp_shape_image(6, 1, 8)));
            ghp_model_release(&again);
        }
        ghp_model_release(&model);
    }
    save_places("{\"op\": \"softmax_cross_entropy\", \"output_weights\": [1, 0.5, 2]}");
    CHECK_STATUS(ghp_onnx_load(path, &model), GHP_ERR_INPUT);
    CHECK_MESSAGE("have other positions or pixels than each other");
    CHECK_MESSAGE("give each its own loss");
}

CHECK_TEST(output)
{
    snprintf(path, sizeof path, "/tmp/ghp-output-%ld.onnx", (long)getpid());
    check_maps();
    check_multi_label();
    check_numbers();
    check_several();
    check_different_places();
    unlink(path);
    return check_end();
}
