/* tests/core/optimizer/test_parameter_groups.c - learning rates and weight decay by patterns of parameters' names. */
#include "core/optimizer/optimizer.h"
#include "core/optimizer/parameter_groups.h"
#include "tests/check.h"

#include <string.h>

static const char text[] = "{\"format\":\"ghp.model/1\",\"name\":\"net\","
                           "\"input\":{\"channels\":3},\"layers\":["
                           "{\"name\":\"a.fc\",\"op\":\"linear\",\"features\":8,\"fixed\":true},"
                           "{\"name\":\"b.fc\",\"op\":\"linear\",\"features\":8},"
                           "{\"name\":\"b.ln\",\"op\":\"layer_norm\"},"
                           "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}";

static void check_groups(const struct ghp_model *model)
{
    const struct ghp_layer *fc = &model->layers[ghp_model_find(model, "b.fc")],
                           *ln = &model->layers[ghp_model_find(model, "b.ln")];
    const struct ghp_optimizer *sgd = &ghp_optimizer_sgd;

    CHECK(ghp_parameter_rate(fc, 0) == 0.5);
    CHECK(ghp_parameter_rate(fc + 1, 0) == 2);
    CHECK(ghp_parameter_rate(ln, 0) == 0.5);
    CHECK(ghp_parameter_rate(&model->layers[1], 0) == 1);
    CHECK(ghp_optimizer_decays(sgd, fc, 0));
    CHECK(!ghp_optimizer_decays(sgd, fc + 1, 0));
    CHECK(!ghp_optimizer_decays(sgd, ln, 0));
    CHECK(!ghp_optimizer_decays(&ghp_optimizer_adamw, fc + 1, 0));
}

static void refuses(const char *rate, const char *undecayed, const char *says)
{
    struct ghp_parameter_groups groups = {{{rate}, rate != NULL}, {{undecayed}, undecayed != NULL}};
    struct ghp_model model;

    CHECK_STATUS(ghp_model_parse(text, "net", &model), GHP_OK);
    CHECK(ghp_parameter_groups_set(&groups, &model) != GHP_OK);
    if (!CHECK(strstr(ghp_status_message(), says) != NULL))
        fprintf(stderr, "  %s\n", ghp_status_message());
    ghp_model_release(&model);
}

CHECK_TEST(parameter_groups)
{
    struct ghp_parameter_groups groups = {{{"b=0.5", "b.fc.bias=2"}, 2}, {{"*.bias", "b.ln"}, 2}};
    struct ghp_model model;

    CHECK_STATUS(ghp_model_parse(text, "net", &model), GHP_OK);
    CHECK_STATUS(ghp_parameter_groups_set(&groups, &model), GHP_OK);
    check_groups(&model);
    ghp_model_release(&model);
    refuses("b.fc", NULL, "PATTERN=X");
    refuses("b.fc=0", NULL, "ghp-plan --freeze");
    refuses("b.fc=-1", NULL, "cannot read");
    refuses("b.fc=1x", NULL, "cannot read");
    refuses("c.*=1", NULL, "names no parameter");
    refuses("a.*=1", NULL, "are fixed");
    refuses(NULL, "b.fc.weights", "'b.fc.weight'");
    return check_end();
}
