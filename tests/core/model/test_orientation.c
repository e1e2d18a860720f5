/* tests/core/model/test_orientation.c - parameters as files hold them, and back. */
#include "core/model/orientation.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static const char network[] =
    "{\"format\": \"ghp.model/1\", \"name\": \"n\", \"input\": {\"channels\": 3, "
    "\"height\": 1, \"width\": 1}, \"layers\": ["
    "{\"name\": \"a\", \"op\": \"linear\", \"features\": 2%s},"
    "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}";

static bool parse(const char *key, struct ghp_model *model)
{
    char text[512];

    snprintf(text, sizeof text, network, key);
    return CHECK_STATUS(ghp_model_parse(text, "n", model), GHP_OK);
}

static void test_turns(void)
{
    struct ghp_model model;
    int64_t dims[GHP_MAX_DIMS];
    double values[6] = {1, 2, 3, 4, 5, 6};
    const double there[6] = {1, 4, 2, 5, 3, 6}, back[6] = {1, 2, 3, 4, 5, 6};
    const struct ghp_param *weight;

    if (!parse(", \"transposed\": true", &model)) return;
    weight = &model.layers[1].params[0];
    ghp_param_file_dims(weight, dims);
    CHECK(weight->dims[0] == 2 && weight->dims[1] == 3 && dims[0] == 3 && dims[1] == 2);
    CHECK_STATUS(ghp_param_to_file(weight, sizeof *values, values), GHP_OK);
    CHECK(memcmp(values, there, sizeof values) == 0);
    CHECK_STATUS(ghp_param_from_file(weight, sizeof *values, values), GHP_OK);
    CHECK(memcmp(values, back, sizeof values) == 0);
    ghp_param_file_dims(&model.layers[2].params[0], dims); /* the bias */
    CHECK(dims[0] == 2);
    ghp_model_release(&model);
}

static void test_stays(void)
{
    struct ghp_model model;
    int64_t dims[GHP_MAX_DIMS];
    float values[6] = {1, 2, 3, 4, 5, 6};
    const float as_before[6] = {1, 2, 3, 4, 5, 6};

    if (!parse("", &model)) return;
    ghp_param_file_dims(&model.layers[1].params[0], dims);
    CHECK(dims[0] == 2 && dims[1] == 3);
    CHECK_STATUS(ghp_param_to_file(&model.layers[1].params[0], sizeof *values, values), GHP_OK);
    CHECK(memcmp(values, as_before, sizeof values) == 0);
    ghp_model_release(&model);
}

CHECK_TEST(orientation)
{
    test_turns();
    test_stays();
    return check_end();
}
