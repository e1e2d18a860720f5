/* bench/cpu/look.c - ghp-look: what it costs that an update looks at what it writes (docs/results/recovery.md).
 *
 * The updates of all parameters of a network run in turns by the kernels of the backend and by the same source compiled
 * without NaN and infinity (bench/CMakeLists.txt), where x - x is 0 and the look is gone. On one thread; medians over
 * the turns, the quartiles of the difference in a turn, and the difference of the least times, which other programs
 * disturb less. */
#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/opts.h"
#include "executor/backend/cpu/kernels_cpu.h"
#include "executor/state/tensors.h"
#include "onnx/network.h"

#include <stdio.h>
#include <stdlib.h>

extern const struct ghp_update_kernel ghp_cpu_update_sgd[], ghp_cpu_update_adamw[],
    ghp_look_update_sgd[], ghp_look_update_adamw[];

enum { WITH, WITHOUT, WAYS };
enum { WEIGHT, GRADIENT, FIRST_MOMENT, SECOND_MOMENT, TENSORS };

static const char *const optimizers[] = {"sgd", "adamw", NULL};
static const char *path;
static int optimizer;
static int64_t turns = 25;

static const struct ghp_opt options[] = {
    {.name = "model",
     .kind = GHP_OPT_TEXT,
     .target = &path,
     .argument = "MODEL",
     .help = "network whose parameters are updated; needed"},
    {.name = "optimizer",
     .kind = GHP_OPT_CHOICE,
     .target = &optimizer,
     .choices = optimizers,
     .help = "whose update"},
    {.name = "turns",
     .kind = GHP_OPT_INT,
     .target = &turns,
     .min = 4,
     .max = 10000,
     .help = "of each way"},
};

static const struct ghp_tool tool = {
    .name = "ghp-look",
    .purpose = "times updates of all parameters, with and without the look at what they write",
    .usage = "ghp-look --model MODEL [options]",
    .example = "build/bin/ghp-look --model models/lenet5.json",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
};

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* The quantile of n values, which it sorts. */
static double quantile(double *values, int64_t n, double fraction)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[(int64_t)(fraction * (double)(n - 1) + 0.5)];
}

/* Seconds of one update of every parameter; their numbers lie one after the other. */
static double update_all(const struct ghp_update_kernel *kernel,
                         const struct ghp_tensors_list *list, float *const *tensors)
{
    struct ghp_update update = {.optimizer = kernel->optimizer,
                                .decays = true,
                                .given = ghp_optimizer_usual(kernel->optimizer)};
    double begin_s = ghp_now_s();
    int64_t at = 0;

    update.given.correction1 = update.given.correction2 = 1;
    for (int i = 0; i < list->n_trained; i++) {
        int64_t n = list->items[i].param->elements;

        update.w = tensors[WEIGHT] + at;
        update.dw = tensors[GRADIENT] + at;
        update.moment[0] = tensors[FIRST_MOMENT] + at;
        update.moment[1] = tensors[SECOND_MOMENT] + at;
        update.elements = n;
        ghp_update_judge(&update, (double)kernel->run_float(&update, (struct ghp_range){0, n}));
        at += n;
    }
    return ghp_now_s() - begin_s;
}

static enum ghp_status measure(const struct ghp_tensors_list *list, float *const *tensors,
                               double *const *seconds)
{
    const struct ghp_update_kernel *const kernels[][WAYS] = {
        {ghp_cpu_update_sgd, ghp_look_update_sgd}, {ghp_cpu_update_adamw, ghp_look_update_adamw}};
    json_t *o;

    for (int64_t t = -1; t < turns; t++) /* the first turn warms up */
        for (int k = 0; k < WAYS; k++) {
            int way = (int)((t + 1 + k) % WAYS);
            double s = update_all(kernels[optimizer][way], list, tensors);

            if (t >= 0) seconds[way][t] = s;
        }
    for (int64_t t = 0; t < turns; t++)
        seconds[WAYS][t] = seconds[WITH][t] - seconds[WITHOUT][t];
    o = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "with_s", quantile(seconds[WITH], turns, 0.5),
                  "without_s", quantile(seconds[WITHOUT], turns, 0.5), "difference_s",
                  quantile(seconds[WAYS], turns, 0.5), "low_s",
                  quantile(seconds[WAYS], turns, 0.25), "high_s",
                  quantile(seconds[WAYS], turns, 0.75), "least_difference_s",
                  quantile(seconds[WITH], turns, 0) - quantile(seconds[WITHOUT], turns, 0));
    return ghp_json_print(o, stdout);
}

static enum ghp_status run(void)
{
    struct ghp_model model = {0};
    struct ghp_tensors_list list = {0};
    float *tensors[TENSORS] = {NULL};
    double *seconds[WAYS + 1] = {NULL};
    enum ghp_status status;
    int64_t n = 0;

    if (path == NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "no network given; give one with --model MODEL");
    GHP_TRY(ghp_network_load(path, &model));
    status = ghp_tensors_list_init(&model, &list);
    for (int i = 0; i < list.n_trained; i++)
        n += list.items[i].param->elements;
    for (int t = 0; t < TENSORS && status == GHP_OK; t++) {
        tensors[t] = ghp_alloc((size_t)n + 1, sizeof(float));
        if (tensors[t] == NULL) status = GHP_NO_MEMORY();
        for (int64_t i = 0; status == GHP_OK && i < n; i++)
            tensors[t][i] = 1e-3F * (float)(i % 1000);
    }
    for (int k = 0; k <= WAYS && status == GHP_OK; k++) {
        seconds[k] = ghp_alloc((size_t)turns, sizeof(double));
        if (seconds[k] == NULL) status = GHP_NO_MEMORY();
    }
    if (status == GHP_OK) status = measure(&list, tensors, seconds);
    for (int t = 0; t < TENSORS; t++)
        free(tensors[t]);
    for (int k = 0; k <= WAYS; k++)
        free(seconds[k]);
    ghp_tensors_release(&list);
    ghp_model_release(&model);
    return status;
}

int main(int argc, char **argv)
{
    enum ghp_status status = ghp_opts_parse(&tool, argc, argv, NULL, 0, NULL);

    if (status == GHP_OK && !ghp_opts_done()) status = run();
    if (status != GHP_OK) fprintf(stderr, "%s: %s\n", tool.name, ghp_status_message());
    return ghp_status_exit_code(status);
}
