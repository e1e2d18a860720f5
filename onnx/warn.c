/* onnx/warn.c - see warn.h. */
#include "onnx/warn.h"

#include "core/base/log.h"
#include "onnx/read/attribute.h"

#include <stdio.h>
#include <string.h>

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

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
        heads +=
            !begins(file->outputs[i].name, "present") && !begins(file->outputs[i].name, "past");
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

/* A tensor that is no module's, by its name: the exporter without dynamo calls what it computed by its node, the one
 * with dynamo calls a bias that it made by the weight. */
static bool is_made_bias(const char *name)
{
    return begins(name, "onnx::") || ends(name, "_bias");
}

static void warn_of_folded_norms(const struct ghp_onnx_import *import)
{
    const struct ghp_onnx_file *file = import->file;
    int norms = 0, convolutions = 0, biases = 0, folded = 0;
    const char *first = "";
    bool dynamo = file->n_nodes > 0 && begins(file->nodes[0].name, "node_");

    for (int i = 0; i < file->n_nodes; ++i) {
        const struct ghp_onnx_node *node = &file->nodes[i];
        bool convolution = strcmp(node->op, "Conv") == 0;
        bool biased = convolution && node->n_inputs > 2 && node->inputs[2][0] != '\0';

        norms += strcmp(node->op, "BatchNormalization") == 0;
        convolutions += convolution;
        biases += biased;
        if (!biased || !is_made_bias(node->inputs[2])) continue;
        if (folded++ == 0) first = ghp_onnx_node_name(node);
    }
    if (folded > 0)
        ghp_warn("%s: PyTorch's exporter folded batch norms into %d convolutions, the first '%.96s'; "
                 "ghp trains the network without them: export it with optimize=False "
                 "(dynamo=True) or training=TrainingMode.TRAINING (dynamo=False)",
                 file->path, folded, first);
    else if (dynamo && norms == 0 && convolutions > 1 && biases == convolutions)
        ghp_warn("%s: no batch norm, and a bias for each convolution: if the module has batch "
                 "norms, PyTorch's exporter folded them, and ghp trains without; then export it "
                 "with optimize=False",
                 file->path);
}

/* A scale that is no parameter (affine=False) is not trained (onnx/operator/norm.c). */
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

void ghp_onnx_warn(const struct ghp_onnx_import *import)
{
    warn_of_shared(import);
    warn_of_assumed(import);
    warn_of_outputs(import);
    warn_of_detached(import);
    if (strcmp(import->file->producer, "pytorch") != 0) return;
    warn_of_folded_norms(import);
    warn_of_constant_scales(import);
}
