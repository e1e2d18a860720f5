/* tests/core/optimizer/test_lr_scaling.c - names of learning-rate scalings, what the whole schedule is multiplied by,
 * and with which optimizers and clipping they are refused. */
#include "core/optimizer/lr_scaling.h"
#include "tests/check.h"

static const struct ghp_lr_scaling *named(const char *name)
{
    for (int i = 1; ghp_lr_scaling_names[i] != NULL; i++)
        if (strcmp(ghp_lr_scaling_names[i], name) == 0) return ghp_lr_scaling_at(i);
    return NULL;
}

static void refuse(const char *name, const struct ghp_optimizer *optimizer, bool clips,
                   const char *word)
{
    CHECK_STATUS(ghp_lr_scaling_check(named(name), optimizer, clips), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), word) != NULL);
}

CHECK_TEST(lr_scaling)
{
    CHECK(ghp_lr_scaling_at(0) == NULL && named("lena") != NULL);
    CHECK_NEAR(ghp_lr_scaling_whole(named("linear"), 8), 8, 0);
    CHECK_NEAR(ghp_lr_scaling_whole(named("lars"), 8), 1, 0);
    CHECK_NEAR(ghp_lr_scaling_whole(NULL, 8), 1, 0);
    refuse("lamb", NULL, false, "--optimizer adamw");
    refuse("lena", &ghp_optimizer_adamw, false, "--optimizer sgd");
    refuse("adascale", &ghp_optimizer_sgd, true, "--clip-norm");
    CHECK_STATUS(ghp_lr_scaling_check(named("linear"), &ghp_optimizer_adamw, true), GHP_OK);
    return check_end();
}
