/* ghp-test: np=2 np_full=1
 *
 * First weights from a file: a checkpoint's weights come back bit for bit under another plan and without its momenta; a
 * file that other trainers write is read in half precision and its counters are left out; tensors that are missing, too
 * much or of other dimensions are refused by name, and those that are excepted are drawn or left out. */
#include "executor/state/checkpoint.h"
#include "executor/state/init.h"
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <sys/stat.h>
#include <unistd.h>

static const char tiny_model[] =
    "{\"format\":\"ghp.model/1\",\"name\":\"tiny\",\"input\":{\"channels\":3},\"layers\":["
    "{\"name\":\"norm\",\"op\":\"batch_norm\"},{\"name\":\"fc\",\"op\":\"linear\",\"features\":2},"
    "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}";

/* All tensors of the tiny model; one a line, so that a case can leave one out or change one. */
#define NORM                                                                                       \
    "\"norm.weight\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"                   \
    "\"norm.bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[12,24]},"                    \
    "\"norm.running_mean\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[24,36]},"            \
    "\"norm.running_var\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[36,48]},"
#define COUNTER                                                                                    \
    "\"norm.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[48,56]},"
#define FC_BIAS "\"fc.bias\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[56,60]},"
#define FC_WEIGHT "\"fc.weight\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[60,72]}"

static struct ghp_transport *transport;
static struct ghp_comm *world;
static char folder[BENCH_FOLDER], path[2 * BENCH_FOLDER];

static int rank_of_world(void)
{
    return transport->control->rank;
}

/* Rank 0 writes header and values; all wait for it. */
static void write_file(const char *header)
{
    static const uint16_t halves[8] = {0x3f80, 0xc000, 0x3c00, 0xc000, 0x3555, 0x0001, 0x7bff, 0};
    float norms[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    uint64_t n = strlen(header), counter = 77;

    CHECK_STATUS(ghp_control_barrier(transport->control, world),
                 GHP_OK); /* the last one has been read */
    if (rank_of_world() == 0) {
        FILE *file = fopen(path, "wb");

        CHECK(file != NULL);
        fwrite(&n, sizeof n, 1, file);
        fwrite(header, 1, n, file);
        fwrite(norms, sizeof norms, 1, file);
        fwrite(&counter, sizeof counter, 1, file);
        fwrite(halves, sizeof halves, 1, file);
        CHECK(fclose(file) == 0);
    }
    CHECK_STATUS(ghp_control_barrier(transport->control, world), GHP_OK);
}

static double value_of(struct ghp_worker *worker, const char *name, int at)
{
    struct ghp_tensors_list list;
    double value = NAN;

    CHECK_STATUS(ghp_tensors_list_init(ghp_worker_program(worker)->model, &list), GHP_OK);
    for (int i = 0; i < list.n; i++) {
        const struct ghp_tensor *t = &list.items[i];
        double whole[8] = {0};

        if (strcmp(t->param->name, name) != 0) continue;
        CHECK_STATUS(ghp_parameters_gather(worker, t, ghp_tensor_buffer_kind(t), whole), GHP_OK);
        value = whole[at];
    }
    ghp_tensors_release(&list);
    return value;
}

/* Every one of them is a double, so that nothing is rounded. */
static void check_value(struct ghp_worker *worker, const char *name, int at, double expected)
{
    CHECK_NEAR(value_of(worker, name, at), expected, 0);
}

static void check_foreign(struct ghp_worker *worker, const struct ghp_init_choice *choice)
{
    write_file("{" NORM COUNTER FC_BIAS FC_WEIGHT "}");
    CHECK_STATUS(ghp_init_weights(worker, choice), GHP_OK);
    check_value(worker, "norm.weight", 0, 1);
    check_value(worker, "norm.running_var", 2, 12);
    check_value(worker, "fc.bias", 0, 1);
    check_value(worker, "fc.bias", 1, -2);
    check_value(worker, "fc.weight", 0, 1);
    check_value(worker, "fc.weight", 1, -2);
    check_value(worker, "fc.weight", 2, 1365.0 / 4096); /* 1/3 in half precision */
    check_value(worker, "fc.weight", 3, 0x1p-24);       /* the least of all */
    check_value(worker, "fc.weight", 4, 65504);         /* the greatest */
}

static void check_refusals(struct ghp_worker *worker, const struct ghp_init_choice *choice)
{
    write_file(
        "{" NORM COUNTER
        "\"fc.biases\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[56,60]}," FC_WEIGHT "}");
    CHECK_STATUS(ghp_init_weights(worker, choice), GHP_ERR_INPUT);
    CHECK_MESSAGE("no tensor 'fc.bias', the nearest is 'fc.biases'");
    write_file("{" NORM
               "\"norm.count\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[48,56]}," FC_BIAS
                   FC_WEIGHT "}");
    CHECK_STATUS(ghp_init_weights(worker, choice), GHP_ERR_INPUT);
    CHECK_MESSAGE("a tensor 'norm.count' that the model does not have");
    write_file("{" NORM COUNTER FC_BIAS
               "\"fc.weight\":{\"dtype\":\"F16\",\"shape\":[3,2],\"data_offsets\":[60,72]}}");
    CHECK_STATUS(ghp_init_weights(worker, choice), GHP_ERR_INPUT);
    CHECK_MESSAGE("'fc.weight' is [3][2], but the model's is [2][3]");
    write_file("{" NORM COUNTER FC_BIAS
               "\"fc.weight\":{\"dtype\":\"I16\",\"shape\":[2,3],\"data_offsets\":[60,72]}}");
    CHECK_STATUS(ghp_init_weights(worker, choice), GHP_ERR_INPUT);
    CHECK_MESSAGE("not of floating-point numbers");
}

/* A file for another head: the tensors that are excepted are drawn as without a file, the others are its own. */
static void check_except(struct ghp_worker *worker, struct ghp_init_choice choice)
{
    struct ghp_opt_list except = {{"fc.*"}, 1}, none = {{"head.*"}, 1}, bias = {{"fc.bias"}, 1};
    struct ghp_init_choice drawn = {.seed = choice.seed};
    double weight[6];

    CHECK_STATUS(ghp_init_weights(worker, &drawn), GHP_OK);
    for (int i = 0; i < 6; i++)
        weight[i] = value_of(worker, "fc.weight", i);
    choice.except = &except;
    write_file("{" NORM COUNTER FC_BIAS
               "\"fc.weight\":{\"dtype\":\"F16\",\"shape\":[3,2],\"data_offsets\":[60,72]}}");
    CHECK_STATUS(ghp_init_weights(worker, &choice), GHP_OK);
    check_value(worker, "norm.weight", 0, 1);
    for (int i = 0; i < 6; i++)
        check_value(worker, "fc.weight", i, weight[i]);
    except.item[0] = "fc"; /* a module stands for its parameters */
    CHECK_STATUS(ghp_init_weights(worker, &choice), GHP_OK);
    check_value(worker, "fc.weight", 5, weight[5]);
    choice.except = &bias;
    CHECK_STATUS(ghp_init_weights(worker, &choice), GHP_ERR_INPUT);
    CHECK_MESSAGE("'fc.weight' is [3][2]");
    CHECK_MESSAGE("--init-except 'fc.weight'");
    choice.except = &none;
    CHECK_STATUS(ghp_init_weights(worker, &choice), GHP_ERR_INPUT);
    CHECK_MESSAGE("--init-except 'head.*' names no tensor");
    write_file(
        "{" NORM COUNTER
        "\"head.bias\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[56,60]}," FC_WEIGHT "}");
    CHECK_STATUS(ghp_init_weights(worker, &choice), GHP_ERR_INPUT);
    CHECK_MESSAGE("no tensor 'fc.bias'");
    none = (struct ghp_opt_list){{"head.*", "fc.bias"}, 2};
    CHECK_STATUS(ghp_init_weights(worker, &choice), GHP_OK);
    check_value(worker, "fc.weight", 4, 65504);
    check_value(worker, "fc.bias", 1, 0); /* biases are drawn as zeros */
}

static void check_file(void)
{
    struct ghp_init_choice choice;
    struct ghp_split *splits;
    struct ghp_worker *worker = NULL;
    struct bench b;
    char model[2 * BENCH_FOLDER];

    snprintf(model, sizeof model, "%s/tiny.json", folder);
    if (rank_of_world() == 0) {
        FILE *file = fopen(model, "w");

        CHECK(file != NULL && fputs(tiny_model, file) >= 0 && fclose(file) == 0);
    }
    CHECK_STATUS(ghp_control_barrier(transport->control, world), GHP_OK);
    if (!CHECK_STATUS(bench_open(&b, transport, model, "reference", 8), GHP_OK)) return;
    splits = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    CHECK_STATUS(bench_worker(&b, splits, &worker), GHP_OK);
    CHECK_STATUS(ghp_init_parse(path, 1, &choice), GHP_OK);
    check_foreign(worker, &choice);
    check_refusals(worker, &choice);
    check_except(worker, choice);
    if (rank_of_world() == 0) CHECK_EQ(unlink(model), 0);
    ghp_worker_close(worker);
    free(splits);
    bench_close(&b);
}

/* Trains a step, saves, and starts again from the file under another plan with another seed. */
static void check_checkpoint(void)
{
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_init_choice choice;
    struct ghp_split *before, *after;
    struct ghp_worker *worker = NULL;
    struct ghp_snapshot saved = {0}, fresh = {0};
    struct ghp_tensors_list list;
    struct bench b;

    CHECK_STATUS(
        bench_open(&b, transport, GHP_SOURCE_DIR "/models/small-resnet.json", "reference", 8),
        GHP_OK);
    before = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    after = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_OUT, 0,
                        b.rank_plan.lowering.problem.workers);
    CHECK_STATUS(bench_worker(&b, before, &worker), GHP_OK);
    CHECK_STATUS(bench_steps(&b, worker, 0, 1), GHP_OK);
    CHECK_STATUS(ghp_snapshot_init(&b.model, true, &saved), GHP_OK);
    CHECK_STATUS(ghp_snapshot_init(&b.model, true, &fresh), GHP_OK);
    CHECK_STATUS(ghp_snapshot_weights(&saved, worker), GHP_OK);
    CHECK_STATUS(ghp_checkpoint_save(&kept, worker, (struct ghp_checkpoint){.step = 1}), GHP_OK);
    ghp_worker_close(worker);
    CHECK_STATUS(ghp_init_parse(path, BENCH_SEED + 1, &choice), GHP_OK);
    CHECK_STATUS(bench_worker(&b, after, &worker), GHP_OK);
    CHECK_STATUS(ghp_init_weights(worker, &choice), GHP_OK);
    CHECK_STATUS(ghp_snapshot_weights(&fresh, worker), GHP_OK);
    CHECK_STATUS(ghp_tensors_list_init(&b.model, &list), GHP_OK);
    for (int i = 0; i < list.n; i++)
        CHECK_EQ(memcmp(saved.weights[i], fresh.weights[i],
                        (size_t)list.items[i].param->elements * sizeof(double)),
                 0);
    ghp_tensors_release(&list);
    ghp_snapshot_release(&fresh);
    ghp_snapshot_release(&saved);
    ghp_worker_close(worker);
    free(after);
    free(before);
    bench_close(&b);
}

static void check_parsing(void)
{
    struct ghp_init_choice choice;

    CHECK_STATUS(ghp_init_parse(NULL, 5, &choice), GHP_OK);
    CHECK(choice.path == NULL && choice.seed == 5);
    CHECK_STATUS(ghp_init_parse("random", 6, &choice), GHP_OK);
    CHECK(choice.path == NULL && choice.seed == 6);
    CHECK_STATUS(ghp_init_parse("random:7", 6, &choice), GHP_OK);
    CHECK(choice.path == NULL && choice.seed == 7);
    CHECK_STATUS(ghp_init_parse("random:", 6, &choice), GHP_ERR_USAGE);
    CHECK_STATUS(ghp_init_parse("random:-1", 6, &choice), GHP_ERR_USAGE);
    CHECK_STATUS(ghp_init_parse("weights.npz", 6, &choice), GHP_ERR_USAGE);
    CHECK_MESSAGE("FILE.safetensors");
}

CHECK_TEST(init)
{
    int workers;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    workers = transport->control->size;
    world = bench_workers(transport, workers);
    bench_make_folder(transport, workers, "init", folder);
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    check_parsing();
    check_checkpoint();
    check_file();
    bench_remove_folder(transport, workers, folder);
    ghp_transport_end(transport);
    return check_end();
}
