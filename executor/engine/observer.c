/* executor/engine/observer.c - see observer.h. */
#include "executor/engine/observer.h"

#include "core/model/element.h"
#include "core/sharding/local.h"

int64_t ghp_observed_elements(const struct ghp_observed *o)
{
    return o->at.samples * o->at.positions * o->shape.w * o->at.channels;
}

/* The place of value i, in elements. */
static int64_t place_of(const struct ghp_observed *o, int64_t i)
{
    int64_t pixels = o->at.positions * o->shape.w;
    int64_t channel = i % o->at.channels, pixel = i / o->at.channels % pixels,
            sample = i / o->at.channels / pixels;

    if (!o->nchw16c) return (sample * pixels + pixel) * o->row + channel;
    return ((sample * (o->row / GHP_BLOCK_CHANNELS) + channel / GHP_BLOCK_CHANNELS) * pixels +
            pixel) *
               GHP_BLOCK_CHANNELS +
           channel % GHP_BLOCK_CHANNELS;
}

double ghp_observed_get(const struct ghp_observed *o, int64_t i)
{
    int64_t at = place_of(o, i);

    if (o->shape.vocabulary > 0 && !o->gradient) return ((const int32_t *)o->values)[at];
    return ghp_element_get(o->values, at, o->element_bytes);
}

void ghp_observed_set(const struct ghp_observed *o, int64_t i, double value)
{
    int64_t at = place_of(o, i);

    if (o->shape.vocabulary > 0 && !o->gradient)
        ((int32_t *)o->values)[at] = (int32_t)value;
    else
        ghp_element_set(o->values, at, o->element_bytes, value);
}
