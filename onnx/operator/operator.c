/* onnx/operator/operator.c - rows of operators by name, by operation, and all. */
#include "onnx/operator/operator.h"

#include <stdio.h>
#include <string.h>

/* The row after one (NULL: the first), or NULL after the last; *table is the one it is in. */
static const struct ghp_onnx_operator *next_row(const struct ghp_onnx_operator *row, size_t *table)
{
    if (row == NULL)
        *table = 0;
    else
        row++;
    if (row == NULL || row->name == NULL) row = ghp_onnx_operators[row == NULL ? 0 : ++*table];
    return row;
}

const struct ghp_onnx_operator *ghp_onnx_operator_find(const char *name)
{
    size_t table;

    for (const struct ghp_onnx_operator *row = next_row(NULL, &table); row != NULL;
         row = next_row(row, &table))
        if (row->read != NULL && strcmp(row->name, name) == 0) return row;
    return NULL;
}

const struct ghp_onnx_operator *ghp_onnx_operator_of(enum ghp_op op)
{
    size_t table;

    for (const struct ghp_onnx_operator *row = next_row(NULL, &table); row != NULL;
         row = next_row(row, &table))
        if (row->write != NULL && row->op == op) return row;
    return NULL;
}

/* Whether a list of names, with a blank after each, has this one. */
static bool is_among(const char *names, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = names; *at != '\0'; at = strchr(at, ' ') + 1)
        if (strncmp(at, name, n) == 0 && at[n] == ' ') return true;
    return false;
}

bool ghp_onnx_operator_allows(const struct ghp_onnx_operator *row, const char *attribute)
{
    return is_among(row->attributes, attribute);
}

enum ghp_status ghp_onnx_part_run(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  const char *op, const char *const inputs[2], const char *part,
                                  const char **out)
{
    const char *name = ghp_onnx_node_name(node), *output = node->outputs[0];
    size_t n = strlen(name) + strlen(output) + 32;
    const char **names = ghp_onnx_keep(im, 3, sizeof *names);
    char *made = ghp_onnx_keep(im, 2 * n, 1);
    struct ghp_onnx_node each = {.name = name,
                                 .op = op,
                                 .domain = "",
                                 .rules = "",
                                 .scopes = "",
                                 .call = "",
                                 .n_inputs = inputs[1] != NULL ? 2 : 1,
                                 .n_outputs = 1};

    if (names == NULL || made == NULL) return GHP_NO_MEMORY();
    if (part != NULL) {
        snprintf(made, n, "%s.%s", output, part);
        snprintf(made + n, n, "%s.%s", name, part);
        output = made;
        each.name = made + n;
    }
    names[0] = inputs[0];
    names[1] = inputs[1];
    names[2] = output;
    each.inputs = names;
    each.outputs = names + 2;
    if (out != NULL) *out = output;
    return ghp_onnx_operator_find(op)->read(im, &each);
}

/* What to use in place of operators that are not supported; each name ends with a blank. */
static const struct {
    const char *names, *instead;
} remedies[] = {
    {"RandomUniform RandomUniformLike RandomNormal RandomNormalLike Bernoulli Multinomial ",
     "use Dropout of single values, whose random numbers are the only ones, and make the module "
     "without noise and dropout of whole channels"},
    {"LSTM GRU RNN Scan Loop ",
     "ghp has no recurrence: use an attention over the positions (nn.TransformerEncoder), or "
     "convolutions of one row (nn.Conv1d)"},
    {"If ", "export with dynamo=True, or make the module without a branch on values"},
    {"Einsum ", "write the product as Linear, or as an attention by "
                "nn.functional.scaled_dot_product_attention"},
    {"GridSample AffineGrid RoiAlign DeformConv ",
     "ghp takes pixels at fixed places: use nn.Upsample, a pool or a convolution"},
    {"ReduceProd ReduceLogSum ReduceLogSumExp ",
     "use ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceL1, ReduceL2 or ReduceSumSquare"},
    {"ArgMax ArgMin TopK NonZero NonMaxSuppression Unique ScatterElements "
     "GatherElements GatherND OneHot Where Equal Less LessOrEqual Greater GreaterOrEqual And Or "
     "Not Xor ",
     "ghp makes no choices by a sample's values: use Relu, Clip, Max, Min, Softmax or a pool"},
    {"Sign Floor Ceil Round Mod IsNaN IsInf ",
     "its gradient is 0 almost everywhere: compute it before the network, in the data"},
    {"Erf Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh ",
     "use Tanh, Sigmoid, Gelu, Softplus, Sin, Cos, Exp, Log, Sqrt, Abs or Pow"},
    {"QuantizeLinear DequantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul "
     "ConvInteger MatMulInteger ",
     "ghp trains floating-point numbers: export the module before it is quantized"},
};

const char *ghp_onnx_operator_instead(const char *name)
{
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++)
        if (is_among(remedies[i].names, name)) return remedies[i].instead;
    return "use operators of docs/reference/onnx.md, \"What is read\"";
}
