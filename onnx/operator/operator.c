/* onnx/operator/operator.c - rows of operators by name, by operation, and all. */
#include "onnx/operator/operator.h"

#include <stdio.h>
#include <string.h>

/* The row behind one (NULL: the first), or NULL behind the last; *table is the one it is in. */
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

bool ghp_onnx_operator_allows(const struct ghp_onnx_operator *row, const char *attribute)
{
    size_t n = strlen(attribute);

    for (const char *at = row->attributes; *at != '\0'; at = strchr(at, ' ') + 1)
        if (strncmp(at, attribute, n) == 0 && at[n] == ' ') return true;
    return false;
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

const char *ghp_onnx_operator_instead(const char *name, char *text, size_t n)
{
    static const char *const drawn[] = {"RandomUniform",    "RandomUniformLike", "RandomNormal",
                                        "RandomNormalLike", "Bernoulli",         "Multinomial"};
    size_t table, used = 0;

    for (size_t i = 0; i < sizeof drawn / sizeof drawn[0]; i++) {
        if (strcmp(name, drawn[i]) != 0) continue;
        snprintf(text, n,
                 "use Dropout of single values, whose random numbers are the only ones, and make "
                 "the module without noise and dropout of whole channels");
        return text;
    }
    used = (size_t)snprintf(text, n, "use ");
    for (const struct ghp_onnx_operator *row = next_row(NULL, &table); row != NULL;
         row = next_row(row, &table))
        if (row->read != NULL && !row->folds && used < n)
            used +=
                (size_t)snprintf(text + used, n - used, "%s%s", used > 4 ? ", " : "", row->name);
    return text;
}
