/* onnx/folded.c - see folded.h. */
#include "onnx/folded.h"

#include "core/base/text.h"
#include "core/base/units.h"
#include "onnx/file/file.h"
#include "onnx/read/attribute.h"

#include <string.h>

bool ghp_network_takes_folded_norms;

/* Whether a node is a convolution or product that a batch norm went into: by what its optimizer wrote, or by tensors
 * that do not belong to a module. The exporter without dynamo names a tensor that it computed after its node. The one
 * with dynamo names a bias that it made after the weight. */
static bool is_folded(const struct ghp_onnx_node *node)
{
    if (node->rules != NULL && strstr(node->rules, "FuseBatchNorm") != NULL) return true;
    if (strcmp(node->op, "Conv") != 0 || node->n_inputs < 3) return false;
    return (ghp_text_begins(node->inputs[1], "onnx::") &&
            ghp_text_begins(node->inputs[2], "onnx::")) ||
           ghp_text_ends(node->inputs[2], "_bias");
}

/* A module in training with some of its batch norms in evaluation mode: ghp has one mode for all. */
static enum ghp_status check_modes(const struct ghp_onnx_file *file)
{
    const struct ghp_onnx_node *evaluated = NULL;
    bool trains = false;

    for (int i = 0; i < file->n_nodes; i++) {
        enum ghp_onnx_mode mode = ghp_onnx_mode(file, &file->nodes[i]);

        trains = trains || mode == GHP_ONNX_TRAINING;
        if (mode == GHP_ONNX_EVALUATION && evaluated == NULL) evaluated = &file->nodes[i];
    }
    if (!trains || evaluated == NULL) return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "%s: the batch norm '%.96s' is in evaluation mode, and others are in training mode; ghp "
        "trains all by the batch's statistics: export after module.train(), or make those that "
        "keep theirs torchvision.ops.FrozenBatchNorm2d",
        file->path, ghp_onnx_node_name(evaluated));
}

enum ghp_status ghp_onnx_check_folded(const struct ghp_onnx_file *file)
{
    const struct ghp_onnx_node *first = NULL;
    int n = 0;

    if (strcmp(file->producer, "pytorch") != 0) return GHP_OK;
    GHP_TRY(check_modes(file));
    if (ghp_network_takes_folded_norms) return GHP_OK;
    for (int i = 0; i < file->n_nodes; i++)
        if (is_folded(&file->nodes[i]) && n++ == 0) first = &file->nodes[i];
    if (n == 0) return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "%s: PyTorch's exporter folded batch norms into %d node%s, the first '%.96s', so "
        "that the network would train without them; export it after module.train() "
        "with optimize=False (dynamo=True) or training=TrainingMode.TRAINING "
        "(dynamo=False), or give --folded-batch-norm to train it so",
        file->path, n, ghp_plural(n), first->name);
}
