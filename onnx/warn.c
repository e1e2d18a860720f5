/* onnx/warn.c - see warn.h. */
#include "onnx/warn.h"

#include "core/base/log.h"
#include "onnx/read/attribute.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void warn_of_assumed(const struct ghp_onnx_import *import)
{
    if (import->assumed != NULL)
        ghp_warn("%s: the input '%.96s' is taken as that of whole windows without padding: masks "
                 "are ones, and positions count from 0",
                 import->file->path, import->assumed);
}

static void warn_of_pixels(const struct ghp_onnx_import *import)
{
    if (import->pixels)
        ghp_warn(
            "%s: the output '%.96s' is a map, and axis 1 is taken as the classes of each pixel: "
            "a sample has a label for each pixel",
            import->file->path, import->output.name);
}

/* Warns if there are several outputs, such as those of auxiliary classifiers and heads, of which one is trained. */
static void warn_of_outputs(const struct ghp_onnx_import *import)
{
    const struct ghp_onnx_file *file = import->file;
    const struct ghp_model *model = &import->model;
    int heads = 0;

    for (int i = 0; i < file->n_outputs; i++)
        heads += !ghp_onnx_is_cache(file->outputs[i].name);
    if (heads > 1 && model->layers[model->n_layers - 1].loss.outputs == 0)
        ghp_warn("%s: of %d outputs '%.96s' is trained, and what only others need is left out; "
                 "export the module with the one that is meant, or give each a weight: "
                 "output_weights of the metadata 'ghp.loss' (docs/reference/several-outputs.md)",
                 file->path, heads, import->output.name);
}

static void warn_of_detached(const struct ghp_onnx_import *import)
{
    if (import->detached == NULL) return;
    if (import->detached->apart)
        ghp_warn("%s: node '%.96s' runs without gradients, or under autocast, in the module; ghp "
                 "trains through it: take it out of torch.no_grad() and torch.autocast(), or train "
                 "the module without ghp",
                 import->file->path, ghp_onnx_node_name(import->detached));
    else
        ghp_warn("%s: node '%.96s' is a detach() of the module, which hands no gradient back; ghp "
                 "trains through it: leave detach() out, or train the module without ghp",
                 import->file->path, ghp_onnx_node_name(import->detached));
}

/* nn.CrossEntropyLoss takes logits: modules that end in a softmax and are trained by it have another loss. */
static void warn_of_softmax(const struct ghp_onnx_import *import)
{
    const struct ghp_onnx_node *last = import->makers[import->output.layer];

    if (import->options.open_end || last == NULL || strcmp(last->op, "Softmax") != 0) return;
    ghp_warn("%s: ghp takes the softmax '%.96s' at the end as part of the loss; "
             "nn.CrossEntropyLoss after it is another one, a softmax of a softmax: leave the "
             "softmax out of the module",
             import->file->path, ghp_onnx_node_name(last));
}

/* Tensors of which the file does not say whether they are parameters. */
static void warn_of_unsure(const struct ghp_onnx_import *import)
{
    const struct ghp_onnx_unsure *unsure = &import->unsure;

    if (unsure->n == 0) return;
    if (unsure->made)
        ghp_warn("%s: the exporter computed '%.96s' and %d more tensors, and does not say from "
                 "what; ghp trains them as they are: export with optimize=False (dynamo=True) or "
                 "do_constant_folding=False (dynamo=False)",
                 import->file->path, unsure->tensor, unsure->n - 1);
    else
        ghp_warn("%s: the file does not say whether '%.96s' and %d more tensors are parameters; "
                 "ghp trains them: export with dynamo=True, or name the parameters in the metadata "
                 "'ghp.parameters' (docs/how-to/from-pytorch.md)",
                 import->file->path, unsure->tensor, unsure->n - 1);
}

/* Batch norms that the file has in evaluation mode are trained over the batch's own statistics. */
static void warn_of_evaluation(const struct ghp_onnx_import *import)
{
    const struct ghp_onnx_file *file = import->file;
    const char *first = "";
    int n = 0;

    for (int i = 0; i < file->n_nodes; i++) {
        if (ghp_onnx_mode(file, &file->nodes[i]) == GHP_ONNX_EVALUATION && n++ == 0)
            first = ghp_onnx_node_name(&file->nodes[i]);
    }
    if (n > 0)
        ghp_warn("%s: %d batch norms, the first '%.96s', are in evaluation mode; ghp trains them "
                 "with the batch's statistics: export after module.train(), or use "
                 "torchvision.ops.FrozenBatchNorm2d for those that are to keep theirs",
                 file->path, n, first);
}

/* Whether a batch norm has the momentum that the exporter without dynamo writes of momentum=None: 1 - 1/k in the k-th
 * batch of the module. Nobody chooses other numbers than 1, 1/2 and short decimals. */
static bool has_counted_momentum(const struct ghp_onnx_node *node)
{
    double factor = 1 - ghp_onnx_real(node, "momentum", 0.9), batches = 1 / factor,
           digits = 1e4 * factor; /* a whole number: somebody may have written it */

    if (factor < 1e-3) return false; /* a float does not tell such numbers of batches apart */
    if (fabs(batches - round(batches)) > 1e-7 * batches * batches) return false;
    return batches < 3 || fabs(digits - round(digits)) > 1e-3; /* a float has 6e-8 */
}

static void warn_of_counted(const struct ghp_onnx_import *import)
{
    const struct ghp_onnx_file *file = import->file;

    for (int i = 0; i < file->n_nodes; i++) {
        const struct ghp_onnx_node *node = &file->nodes[i];

        if (ghp_onnx_mode(file, node) != GHP_ONNX_TRAINING || !has_counted_momentum(node)) continue;
        ghp_warn("%s: batch norm '%.96s' has the momentum %.4g, as momentum=None is written in a "
                 "module's first batches; ghp keeps it, and its running statistics are not means "
                 "of all batches: give the module a momentum",
                 file->path, ghp_onnx_node_name(node), 1 - ghp_onnx_real(node, "momentum", 0.9));
        return;
    }
}

/* A scale that seems to be no parameter (affine=False), if the file does not say: it is not trained
 * (onnx/operator/norm.c). */
static void warn_of_constant_scales(const struct ghp_onnx_import *import)
{
    const struct ghp_onnx_file *file = import->file;
    const char *first = "";
    int n = 0;

    for (int i = 0; i < file->n_nodes; i++) {
        const struct ghp_onnx_node *node = &file->nodes[i];

        if (strcmp(node->op, "BatchNormalization") != 0 || !ghp_onnx_has_fixed_scale(file, node))
            continue;
        if (n++ == 0) first = ghp_onnx_node_name(node);
    }
    if (n > 0)
        ghp_warn("%s: %d batch norms, the first '%.96s', have a scale that is not a weight of the "
                 "module (affine=False); ghp does not train their scales and shifts either",
                 file->path, n, first);
}

/* What the exporter does not write, and how the file says it. */
static void note_unsaid(const struct ghp_onnx_import *import)
{
    bool dynamo = import->file->signature[0] != '\0';

    if (import->parameters != NULL) return;
    ghp_note("%s: ghp trains all parameters, since PyTorch's exporter does not write "
             "requires_grad=False%s; before you save the program, set "
             "program.model.metadata_props[\"ghp.parameters\"] = json.dumps([n for n, p in "
             "module.named_parameters(remove_duplicate=False) if p.requires_grad]) "
             "(docs/how-to/from-pytorch.md)",
             import->file->path,
             dynamo ? ""
                    : ", nor with dynamo=False torch.no_grad(), detach(), divisor_override and "
                      "momentum=None; export with dynamo=True");
}

void ghp_onnx_warn(const struct ghp_onnx_import *import)
{
    warn_of_assumed(import);
    warn_of_pixels(import);
    warn_of_outputs(import);
    warn_of_detached(import);
    if (strcmp(import->file->producer, "pytorch") != 0) return;
    warn_of_unsure(import);
    warn_of_evaluation(import);
    warn_of_softmax(import);
    note_unsaid(import);
    if (import->file->signature[0] != '\0' || import->parameters != NULL) return;
    warn_of_constant_scales(import);
    warn_of_counted(import);
}
