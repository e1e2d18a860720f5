/* onnx/warn.c - see warn.h. */
#include "onnx/warn.h"

#include "core/base/log.h"
#include "core/base/text.h"
#include "onnx/read/attribute.h"

#include <stdio.h>
#include <string.h>

/* Tensors that nodes share are copied: what is trained then is not the file's network. */
static void warn_of_shared(const struct ghp_onnx_import *import)
{
    const struct ghp_onnx_shared *s = &import->shared;
    char more[64] = "";

    if (s->n == 0) return;
    if (s->n > 1)
        snprintf(more, sizeof more, ", and %d more node%s one", s->n - 1,
                 s->n > 2 ? "s share" : " shares");
    ghp_warn("%s: nodes '%.96s' and '%.96s' share the tensor '%.96s'%s; ghp trains a copy for "
             "each: they "
             "will differ",
             import->file->path, ghp_onnx_node_name(s->nodes[0]), ghp_onnx_node_name(s->nodes[1]),
             s->tensor != NULL ? s->tensor : "", more);
}

static void warn_of_assumed(const struct ghp_onnx_import *import)
{
    if (import->assumed != NULL)
        ghp_warn("%s: the input '%.96s' is taken as that of whole windows without padding: masks "
                 "are ones, and positions count from 0",
                 import->file->path, import->assumed);
}

/* Of several outputs, such as those of auxiliary classifiers and heads, one is trained. Keys and values that a language
 * model hands to its next call are no head. */
static void warn_of_outputs(const struct ghp_onnx_import *import)
{
    const struct ghp_onnx_file *file = import->file;
    int heads = 0;

    for (int i = 0; i < file->n_outputs; ++i)
        heads += !ghp_text_begins(file->outputs[i].name, "present") &&
                 !ghp_text_begins(file->outputs[i].name, "past");
    if (heads > 1)
        ghp_warn("%s: of %d outputs '%.96s' is trained, and what only others need is left out; "
                 "export the module with the one that is meant",
                 file->path, heads, import->output.name);
}

static void warn_of_detached(const struct ghp_onnx_import *import)
{
    if (import->detached != NULL)
        ghp_warn("%s: node '%.96s' is a detach() of the module, which hands no gradient back; ghp "
                 "trains through it: leave detach() out, or train the module without ghp",
                 import->file->path, ghp_onnx_node_name(import->detached));
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
                 "'ghp.parameters' (docs/from-pytorch.md)",
                 import->file->path, unsure->tensor, unsure->n - 1);
}

/* Batch norms that the file has in evaluation mode are trained over the batch's own statistics. */
static void warn_of_evaluation(const struct ghp_onnx_import *import)
{
    const struct ghp_onnx_file *file = import->file;
    const char *first = "";
    int n = 0;

    for (int i = 0; i < file->n_nodes; ++i) {
        if (ghp_onnx_mode(file, &file->nodes[i]) == GHP_ONNX_EVALUATION && n++ == 0)
            first = ghp_onnx_node_name(&file->nodes[i]);
    }
    if (n > 0)
        ghp_warn("%s: %d batch norms, the first '%.96s', are in evaluation mode; ghp trains them "
                 "with the batch's statistics: export after module.train(), or use "
                 "torchvision.ops.FrozenBatchNorm2d for those that are to keep theirs",
                 file->path, n, first);
}

/* A scale that seems to be no parameter (affine=False), where the file does not say: it is not trained
 * (onnx/operator/norm.c). */
static void warn_of_constant_scales(const struct ghp_onnx_import *import)
{
    const struct ghp_onnx_file *file = import->file;
    const char *first = "";
    int n = 0;

    for (int i = 0; i < file->n_nodes; ++i) {
        const struct ghp_onnx_node *node = &file->nodes[i];

        if (strcmp(node->op, "BatchNormalization") != 0 || !ghp_onnx_has_fixed_scale(file, node))
            continue;
        if (n++ == 0) first = ghp_onnx_node_name(node);
    }
    if (n > 0)
        ghp_warn("%s: %d batch norms, the first '%.96s', have a scale that is no weight of the "
                 "module (affine=False); ghp does not train their scales and shifts either",
                 file->path, n, first);
}

/* What neither exporter writes, and only the metadata can say in part. */
static void note_unsaid(const struct ghp_onnx_import *import)
{
    if (import->parameters != NULL) return;
    ghp_note("%s: ghp trains all parameters through all operations, since PyTorch's exporter does "
             "not write requires_grad=False and torch.no_grad()%s; name what is trained in the "
             "metadata 'ghp.parameters' (docs/from-pytorch.md)",
             import->file->path,
             import->file->signature[0] != '\0'
                 ? ""
                 : ", nor detach(), divisor_override and momentum=None");
}

void ghp_onnx_warn(const struct ghp_onnx_import *import)
{
    warn_of_shared(import);
    warn_of_assumed(import);
    warn_of_outputs(import);
    warn_of_detached(import);
    if (strcmp(import->file->producer, "pytorch") != 0) return;
    warn_of_unsure(import);
    warn_of_evaluation(import);
    note_unsaid(import);
    if (import->file->signature[0] == '\0' && import->parameters == NULL)
        warn_of_constant_scales(import);
}
