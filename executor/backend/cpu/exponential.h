/* executor/backend/cpu/exponential.h - functions of floats without branches, so that loops over them become vectors.
 *
 * Errors are a few units in the last place. NaN stays NaN. Tested where they are used:
 * tests/executor/backend/onednn/test_onednn.c. */
#ifndef GHP_EXECUTOR_BACKEND_CPU_EXPONENTIAL_H
#define GHP_EXECUTOR_BACKEND_CPU_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

/* e^x of x <= 88; below -87, where float's normal numbers end, 0. With n = x / ln 2 rounded it is 2^n times a
 * polynomial of x - n ln 2: adding 3 2^22 rounds to a whole number and leaves it in the lowest bits, from where it is
 * added to the exponent. ln 2 has two parts, of which n times the first is exact. */
static inline __attribute__((always_inline)) float ghp_exponential(float x)
{
    const float rounder = 12582912.0f, first = 0.693359375f, second = -2.12194440e-4f;
    float least = x < -87.0f ? -87.0f : x;
    float shifted = least * 1.44269504f + rounder, n = shifted - rounder;
    float r = (least - n * first) - n * second;
    float p = 1.3836742e-3f;
    uint32_t bits, power;

    p = p * r + 8.3748987e-3f;
    p = p * r + 4.1668233e-2f;
    p = p * r + 1.6666420e-1f;
    p = p * r + 0.49999991f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&power, &shifted, sizeof power);
    bits += power << 23;
    memcpy(&p, &bits, sizeof p);
    return x < -87.0f ? 0.0f : p;
}

/* Near 0 x times a polynomial of x^2, fitted for x up to 0.6, where 1 - 2 / (e^(2 x) + 1) would cancel; 1 from 10
 * on. */
static inline __attribute__((always_inline)) float ghp_tanh(float x)
{
    float size = x < 0.0f ? -x : x, square = x * x, p = -5.8564278e-3f;
    float far = 1.0f - 2.0f / (ghp_exponential(size < 10.0f ? 2.0f * size : 20.0f) + 1.0f);

    p = p * square + 2.0757475e-2f;
    p = p * square - 5.3769920e-2f;
    p = p * square + 0.13331705f;
    p = p * square - 0.33333284f;
    p = p * square + 1.0f;
    return size < 0.6f ? x * p : x < 0.0f ? -far : far;
}

/* e^(t^2) erfc(t) of t >= 0: a polynomial of (t - 3) / (t + 3), fitted for t up to 10. */
static inline __attribute__((always_inline)) float ghp_scaled_erfc(float t)
{
    float u = (t - 3.0f) / (t + 3.0f), p = 5.5807199e-5f;

    p = p * u + 2.8624339e-5f;
    p = p * u - 5.9468893e-4f;
    p = p * u + 7.1584550e-4f;
    p = p * u + 4.2689661e-3f;
    p = p * u - 2.4394244e-2f;
    p = p * u + 7.1665846e-2f;
    p = p * u - 1.5011579e-1f;
    p = p * u + 0.24560380f;
    p = p * u - 0.32623357f;
    return p * u + 0.17900115f;
}

#endif
