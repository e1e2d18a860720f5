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
