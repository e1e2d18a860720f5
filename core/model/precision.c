/* core/model/precision.c - see precision.h. */
#include "core/model/precision.h"

#include <stddef.h>

const char *const ghp_precision_names[GHP_PRECISIONS + 1] = {"float", "double", "tf32", "bf16",
                                                             NULL};

static const struct ghp_precision precisions[GHP_PRECISIONS] = {
    {4, false}, {8, false}, {4, true}, {2, false}};

struct ghp_precision ghp_precision_of(int index)
{
    return precisions[index];
}

bool ghp_precision_same(struct ghp_precision a, struct ghp_precision b)
{
    return a.element_bytes == b.element_bytes && a.tf32 == b.tf32;
}

double ghp_precision_unit(struct ghp_precision precision)
{
    if (precision.tf32) return 0x1p-10;
    return precision.element_bytes == 8 ? 0x1p-52 : precision.element_bytes == 2 ? 0x1p-7 : 0x1p-23;
}

int ghp_precision_index(struct ghp_precision precision)
{
    for (int i = 0; i < GHP_PRECISIONS; i++)
        if (ghp_precision_same(precisions[i], precision)) return i;
    return -1;
}

const char *ghp_precision_name(struct ghp_precision precision)
{
    int index = ghp_precision_index(precision);

    return index >= 0 ? ghp_precision_names[index] : "unknown";
}
