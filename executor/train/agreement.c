/* executor/train/agreement.c - see agreement.h. */
#include "executor/train/agreement.h"

#include "core/base/file.h"
#include "executor/data/fingerprint.h"
#include "executor/transport/alike.h"
#include "executor/transport/collectives.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* They change numbers without an option. What processors have to offer may differ between hosts, and so may the
 * variables that limit it. */
static const char *const variables[] = {"ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE",
                                        "NVIDIA_TF32_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG"};

static void add_number(struct ghp_alike *alike, const char *name, int64_t value)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, value);
    ghp_alike_add_text(alike, name, text);
}

/* ---- the build and the command ---- */

static struct ghp_alike *linked; /* that libraries are added to */

static void add_library(const char *name, const char *version)
{
    ghp_alike_add_text(linked, name, version);
}

static enum ghp_status agree_on_build(struct ghp_agreeing who, const struct ghp_tool *tool)
{
    struct ghp_alike alike = {.doing = who.doing,
                              .status = GHP_ERR_INPUT,
                              .remedy = "install the same build of ghp on every node"};

    ghp_alike_add_text(&alike, "the program", tool->name);
    ghp_alike_add_text(&alike, "its version", GHP_VERSION);
    linked = &alike;
    if (tool->libraries != NULL) tool->libraries(add_library);
    linked = NULL;
    return ghp_alike_agree(&alike, who.control, who.comm);
}

static void add_option(const char *label, const char *value, void *context)
{
    struct ghp_alike *alike = context;

    ghp_alike_add_text(alike, label, value);
}

enum ghp_status ghp_agree_on_command(struct ghp_agreeing who, const struct ghp_tool *tool,
                                     int arguments)
{
    struct ghp_alike alike = {
        .doing = who.doing, .status = GHP_ERR_USAGE, .remedy = "start all with the same command"};

    if (who.control->size == 1) return GHP_OK;
    GHP_TRY(agree_on_build(who, tool));
    ghp_alike_add_text(&alike, "--help or --version", ghp_opts_done() ? "given" : NULL);
    add_number(&alike, "the number of files", arguments);
    ghp_opts_each_alike(tool, add_option, &alike);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        ghp_alike_add_text(&alike, variables[i], getenv(variables[i]));
    return ghp_alike_agree(&alike, who.control, who.comm);
}

/* ---- what all have opened ---- */

static enum ghp_status hash_file(const char *path, uint64_t *hash)
{
    char *bytes = NULL;
    size_t n = 0;

    GHP_TRY(ghp_file_read(path, &bytes, &n));
    *hash = ghp_hash(bytes, n, GHP_HASH_SEED);
    free(bytes);
    return GHP_OK;
}

enum ghp_status ghp_agree_on_models(struct ghp_agreeing who, const struct ghp_model *models, int n)
{
    struct ghp_alike alike = {
        .doing = who.doing, .status = GHP_ERR_INPUT, .remedy = "give all of them the same network"};
    uint64_t hash = GHP_HASH_SEED;

    if (who.control->size == 1) return GHP_OK;
    for (int i = 0; i < n; i++)
        hash = ghp_hash(&models[i].hash, sizeof models[i].hash, hash);
    add_number(&alike, "the number of models", n);
    ghp_alike_add(&alike, "the model", n == 1 ? models[0].name : "", hash);
    return ghp_alike_agree(&alike, who.control, who.comm);
}

enum ghp_status ghp_agree_on_plan(struct ghp_agreeing who, const struct ghp_plan *plan,
                                  const char *path)
{
    struct ghp_alike alike = {.status = GHP_ERR_INPUT,
                              .remedy = "give all of them the same plan file"};
    uint64_t hash = 0;

    if (who.control->size == 1) return GHP_OK;
    GHP_TRY(ghp_control_agree(who.control, who.comm, hash_file(path, &hash)));
    ghp_alike_add(&alike, "the plan's model", plan->model.name, plan->model_hash);
    add_number(&alike, "the plan's global batch", plan->problem.global_batch);
    ghp_alike_add(&alike, "the plan", path, hash);
    return ghp_alike_agree(&alike, who.control, who.comm);
}

enum ghp_status ghp_agree_on_backend(struct ghp_agreeing who, struct ghp_agreed_backend backend)
{
    struct ghp_alike alike = {.status = GHP_ERR_INPUT,
                              .remedy = "give a --backend and a --precision that every node has"};

    if (who.control->size == 1) return GHP_OK;
    ghp_alike_add_text(&alike, "the backend", backend.name);
    ghp_alike_add_text(&alike, "the precision", backend.precision);
    ghp_alike_add_text(&alike, "numerics", backend.numerics);
    return ghp_alike_agree(&alike, who.control, who.comm);
}

static enum ghp_status add_set(struct ghp_data *data, enum ghp_data_set set,
                               struct ghp_alike *alike)
{
    static const char *const names[GHP_DATA_SET_COUNT][4] = {
        {"the number of training samples", "the names of training images", "the training labels",
         "the training samples"},
        {"the number of test samples", "the names of test images", "the test labels",
         "the test samples"}};
    struct ghp_data_fingerprint fingerprint;

    GHP_TRY(ghp_data_fingerprint_of(data, set, &fingerprint));
    add_number(alike, names[set][0], ghp_data_count(data, set));
    ghp_alike_add(alike, names[set][1], "", fingerprint.names);
    ghp_alike_add(alike, names[set][2], "", fingerprint.labels);
    ghp_alike_add(alike, names[set][3], "", fingerprint.samples);
    return GHP_OK;
}

enum ghp_status ghp_agree_on_samples(struct ghp_agreeing who, struct ghp_data *data)
{
    struct ghp_alike alike = {.status = GHP_ERR_INPUT,
                              .remedy = "give all of them the same data, by --data"};
    enum ghp_status status = GHP_OK;

    if (who.comm->ranks.count == 1) return GHP_OK;
    ghp_alike_add_text(&alike, "the kind of --data", ghp_data_kind(data));
    for (int set = 0; status == GHP_OK && set < GHP_DATA_SET_COUNT; set++)
        status = add_set(data, (enum ghp_data_set)set, &alike);
    GHP_TRY(ghp_control_agree(who.control, who.comm, status));
    ghp_alike_add(&alike, "the normalisation", ghp_data_normalisation(data),
                  ghp_data_normalisation_hash(data));
    return ghp_alike_agree(&alike, who.control, who.comm);
}

/* Drawn weights by their seed, others by the file. */
static enum ghp_status add_weights(const struct ghp_init_choice *choice, struct ghp_alike *alike)
{
    uint64_t hash = 0;

    ghp_alike_add_text(alike, "the kind of first weights",
                       choice->path == NULL ? "random" : choice->ops->text);
    add_number(alike, "their seed", choice->path == NULL ? (int64_t)choice->seed : 0);
    if (choice->path != NULL) GHP_TRY(ghp_init_hash(choice, &hash));
    ghp_alike_add(alike, "the first weights", "", hash);
    return GHP_OK;
}

enum ghp_status ghp_agree_on_weights(struct ghp_agreeing who, const struct ghp_init_choice *choice)
{
    struct ghp_alike alike = {.status = GHP_ERR_INPUT,
                              .remedy = "give all of them the same weights, by --init"};

    if (who.comm->ranks.count == 1) return GHP_OK;
    GHP_TRY(ghp_control_agree(who.control, who.comm, add_weights(choice, &alike)));
    return ghp_alike_agree(&alike, who.control, who.comm);
}
