/* onnx/network.h - loads a network from a file of any format: ghp's own description, ONNX, or a folder of Hugging
 * Face's transformers.
 *
 * core/model reads descriptions and knows neither of the others; every tool opens networks here.
 *
 * Tested  tests/onnx/test_export.c, tests/tools/networks/test_onnx.sh */
#ifndef GHP_ONNX_NETWORK_H
#define GHP_ONNX_NETWORK_H

#include "core/base/status.h"
#include "core/model/lora.h"
#include "core/model/model.h"
#include "onnx/folded.h"

/* Reads a path that ends in .onnx by ghp_onnx_load, a folder or known name by ghp_hf_load, any other by ghp_model_load.
 * Then gives its batch norms the statistics of ghp_network_batch_norm, fixes the layers of ghp_network_freeze and
 * adapts those of ghp_network_lora.
 *
 * Returns   as the three, ghp_model_freeze, ghp_model_lora and ghp_network_check_name; GHP_ERR_USAGE (no such
 *           statistics, or no batch norm)
 * Local */
enum ghp_status ghp_network_load(const char *path, struct ghp_model *model);

/* Whether the weights that a network's own files hold can be loaded. A folder is looked at by the names and sizes of
 * its tensors, an ONNX file is read.
 *
 * Returns   GHP_OK (also if there are none); as ghp_hf_weights_open and ghp_onnx_tensors_read
 * Tested    tests/tools/run/test_first_weights.sh */
enum ghp_status ghp_network_check_weights(const char *path);
/* Whether its own files hold weights, whatever state they are in; not without a path.
 *
 * Returns   GHP_OK; as ghp_onnx_has_weights */
enum ghp_status ghp_network_has_weights(const char *path, bool *has);

/* Refuses what users give in place of a network, with what to do: PyTorch's files and code, weights alone, a folder
 * without a config.json, and a known network by another name.
 *
 * Returns   GHP_OK (also if there is nothing to say); GHP_ERR_INPUT
 * Tested    tests/tools/together/test_mistakes.sh */
enum ghp_status ghp_network_check_name(const char *path);

/* Refuses a network given in place of a plan, with the command that plans it.
 *
 * Returns   GHP_OK (also if the file cannot be read); GHP_ERR_INPUT
 * Tested    tests/tools/together/test_mistakes.sh */
enum ghp_status ghp_network_check_plan(const char *path);

/* The row of a tool's option table that sets it. */
#define GHP_NETWORK_OPTION                                                                         \
    {                                                                                              \
        .name = "folded-batch-norm", .kind = GHP_OPT_FLAG,                                         \
        .target = &ghp_network_takes_folded_norms,                                                 \
        .help = "take an ONNX file whose batch norms PyTorch's exporter folded away; the network " \
                "trains without them"                                                              \
    }

/* The statistics of all batch norms of loaded networks, as the option below gives them; NULL: as the files say. */
extern const char *ghp_network_batch_norm;

/* The row of a tool's option table that sets it. */
#define GHP_BATCH_NORM_OPTION                                                                      \
    {                                                                                              \
        .name = "batch-norm", .kind = GHP_OPT_TEXT, .target = &ghp_network_batch_norm,             \
        .argument = "local|global|S",                                                              \
        .help =                                                                                    \
            "statistics of all batch norms: local: of each worker's own samples, as PyTorch's "    \
            "DDP takes them; global: of the whole batch; S: of each S samples. Without it as "     \
            "the network's file says, or else global"                                              \
    }

/* Which layers of the networks loaded keep their first weights, as the options below give it. */
extern struct ghp_freeze ghp_network_freeze;
/* Which layers get low-rank matrices, as the options below give it. */
extern struct ghp_lora ghp_network_lora;

/* The rows of a tool's option table that set both. */
#define GHP_TUNING_OPTIONS                                                                         \
    {.name = "freeze",                                                                             \
     .kind = GHP_OPT_LIST,                                                                         \
     .target = &ghp_network_freeze.patterns,                                                       \
     .argument = "PATTERN",                                                                        \
     .help = "parameters that keep their first weights, such as 'layer1.*' or the name of a "      \
             "module; nothing computes their gradients, and batch norms among them stay on their " \
             "running statistics, also those exported with requires_grad=False"},                  \
        {.name = "freeze-except",                                                                  \
         .kind = GHP_OPT_LIST,                                                                     \
         .target = &ghp_network_freeze.except,                                                     \
         .argument = "PATTERN",                                                                    \
         .help = "parameters that --freeze names, or --lora would leave as they are, and are "     \
                 "trained all the same, such "                                                     \
                 "as 'fc.*'"},                                                                     \
        {.name = "lora",                                                                           \
         .kind = GHP_OPT_TEXT,                                                                     \
         .target = &ghp_network_lora.rank,                                                         \
         .argument = "RANK[:ALPHA]",                                                               \
         .help = "low-rank adaptation: the network stays, and linear layers get a trained "        \
                 "product of two matrices of that "                                                \
                 "rank, times ALPHA / RANK (without ALPHA: 1)"},                                   \
    {                                                                                              \
        .name = "lora-targets", .kind = GHP_OPT_LIST, .target = &ghp_network_lora.targets,         \
        .argument = "PATTERN",                                                                     \
        .help = "linear layers that --lora adapts, by name or its last part, such as '*_proj'; "   \
                "without it q_proj and "                                                           \
                "v_proj, or query and value"                                                       \
    }

/* Whether a path names a network that is not a JSON file of ghp: an ONNX file, a folder or a known name. */
bool ghp_network_names(const char *path);

/* What a plan notes as its network's path: absolute if the network's files may hold weights (ONNX, a folder), as given
 * otherwise.
 *
 * path   NULL gives NULL
 * kept   the caller frees it
 *
 * Returns   GHP_OK; GHP_ERR_IO (the working directory has no path); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_network_keep(const char *path, char **kept);

/* Finds the network of a plan: at the path where it was planned, or by its name in the plan's folder.
 *
 * kept    as the plan has it, or NULL
 * found   the caller frees it; NULL if the network is not there and had no weights: a description in JSON, or a known
 *         name
 *
 * Returns   GHP_OK; GHP_ERR_IO (it is in neither place, and may have had weights); GHP_ERR_NO_MEMORY
 * Local: workers may see different files */
enum ghp_status ghp_network_find(const char *kept, const char *plan_path, char **found);

#endif
