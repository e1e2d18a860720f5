/* plan.c - plans a network by ghp's library, and says what the plan gains over data parallelism.
 *
 *     cc plan.c $(pkg-config --cflags --libs ghp) -o plan
 *     ./plan vgg16.json profile.json 16 512 plan.json */
#include <ghp.h>

#include <stdio.h>
#include <stdlib.h>

/* The step of the best plan of a strategy; with `path`, the plan is stored and its layers are printed. */
static int plan(const struct ghp_model *model, const struct ghp_profile *profile,
                struct ghp_planning wanted, const char *path, struct ghp_step_cost *cost)
{
    struct ghp_plan *found;
    int failed = ghp_plan_compute(model, profile, &wanted, &found);

    if (failed) return failed;
    failed = ghp_plan_cost(found, NULL, cost);
    if (!failed && path != NULL) failed = ghp_plan_store(found, path);
    for (int i = 0; !failed && path != NULL && i < ghp_plan_layers(found); i++) {
        char split[32];

        printf("%-24s %s\n", ghp_plan_layer(found, i),
               ghp_plan_split(found, i, split, sizeof split));
    }
    ghp_plan_close(found);
    return failed;
}

int main(int argc, char **argv)
{
    struct ghp_model *model = NULL;
    struct ghp_profile *profile = NULL;
    struct ghp_planning best = {0}, by_data;
    struct ghp_step_cost cost, data_cost;
    int failed;

    if (argc != 6) {
        fprintf(stderr, "usage: plan MODEL PROFILE WORKERS BATCH PLAN\n");
        return 2;
    }
    best.workers = (int)strtol(argv[3], NULL, 10);
    best.batch = strtoll(argv[4], NULL, 10);
    by_data = best;
    by_data.strategy = "data";
    failed = ghp_model_open(argv[1], &model);
    if (!failed) failed = ghp_profile_open(argv[2], &profile);
    if (!failed) failed = plan(model, profile, best, argv[5], &cost);
    if (!failed) failed = plan(model, profile, by_data, NULL, &data_cost);
    if (failed)
        fprintf(stderr, "plan: %s\n", ghp_error());
    else
        printf("a step of %.3f ms; by data %.3f ms\n", 1e3 * cost.step_s, 1e3 * data_cost.step_s);
    ghp_profile_close(profile);
    ghp_model_close(model);
    return failed;
}
