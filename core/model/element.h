/* core/model/element.h - one number of a tensor, by the bytes of its elements (core/model/precision.h).
 *
 * Tested tests/core/model/test_precision.c */
#ifndef GHP_CORE_MODEL_ELEMENT_H
#define GHP_CORE_MODEL_ELEMENT_H

#include "core/model/precision.h"

static inline double ghp_element_get(const void *elements, int64_t i, int element_bytes)
{
    if (element_bytes == 8) return ((const double *)elements)[i];
    if (element_bytes == 4) return (double)((const float *)elements)[i];
    return (double)ghp_bf16_value(((const uint16_t *)elements)[i]);
}

static inline void ghp_element_set(void *elements, int64_t i, int element_bytes, double value)
{
    if (element_bytes == 8)
        ((double *)elements)[i] = value;
    else if (element_bytes == 4)
        ((float *)elements)[i] = (float)value;
    else
        ((uint16_t *)elements)[i] = ghp_bf16_of((float)value);
}

#endif
