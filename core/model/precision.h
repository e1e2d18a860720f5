/* core/model/precision.h - in which numbers a network is trained.
 *
 *     name     tensors of the network    weights, their gradients, momenta, statistics    products
 *     float    4 bytes                   4 bytes                                          of floats
 *     double   8                         8                                                of doubles
 *     tf32     4                         4                                                of numbers rounded to 10 bits
 *     bf16     2 (bfloat16)              4                                                of bfloat16, added in float
 *
 * Everywhere else a precision is its element_bytes - the bytes of one number of a network's tensors - and, if
 * products matter, whether they are tf32's.
 *
 * Tested tests/core/model/test_precision.c */
#ifndef GHP_CORE_MODEL_PRECISION_H
#define GHP_CORE_MODEL_PRECISION_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct ghp_precision {
    int element_bytes; /* 2, 4 or 8 */
    bool tf32;         /* only with 4 */
};

enum { GHP_PRECISIONS = 4 };
extern const char
    *const ghp_precision_names[GHP_PRECISIONS + 1]; /* NULL-terminated, as listed above */

/* The precision at an index into the names, and the index of a precision. */
struct ghp_precision ghp_precision_of(int index);
int ghp_precision_index(struct ghp_precision precision); /* -1: not one of them */
const char *ghp_precision_name(struct ghp_precision precision);
bool ghp_precision_same(struct ghp_precision a, struct ghp_precision b);

/* The unit in the last place of such a number of about 1: of a network's tensors, or of tf32's products. */
double ghp_precision_unit(struct ghp_precision precision);

/* Bytes of one number of a weight, a momentum, a statistic or what a normalisation keeps. */
static inline int ghp_parameter_bytes(int element_bytes)
{
    return element_bytes < 4 ? 4 : element_bytes;
}

/* bfloat16 is the upper half of a float; rounded to the nearest, ties to even. */
static inline uint16_t ghp_bf16_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u); /* not a number */
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float ghp_bf16_value(uint16_t number)
{
    uint32_t bits = (uint32_t)number << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A label of 32 bits is a class, or of a loss that takes numbers the bits of a float. */
static inline float ghp_label_number(int32_t label)
{
    float number;

    memcpy(&number, &label, sizeof number);
    return number;
}

static inline int32_t ghp_label_of_number(float number)
{
    int32_t label;

    memcpy(&label, &number, sizeof label);
    return label;
}

#endif
