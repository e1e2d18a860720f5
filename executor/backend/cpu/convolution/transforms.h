/* executor/backend/cpu/convolution/transforms.h - private to winograd.c: the transforms of Winograd's minimal
 * filtering, for as many channels at once as a register holds.
 *
 * In one dimension, r numbers g slid over 6 numbers d give m = 7 - r sums y (a pass forward, or back to the data with g
 * turned round), and m numbers dy slid over the same d give the r gradients of g. Both are products of polynomials,
 * so both are taken at 0, at two pairs of points around it, and at infinity:
 *
 *     y = E_m^T (N E_r g . B d)        dg = E_r^T (N E_m dy . B d)
 *
 * E_n has a row for each point, of its powers 0 to n - 1; N divides by the products of the points' differences; B is
 * what is left, the same for all r + m = 7. In two dimensions each is done along both.
 *
 * Tested  as winograd.h says */
#ifndef GHP_EXECUTOR_BACKEND_CPU_CONVOLUTION_TRANSFORMS_H
#define GHP_EXECUTOR_BACKEND_CPU_CONVOLUTION_TRANSFORMS_H

#include "executor/backend/cpu/kernels_cpu.h"

#include <string.h>

#ifdef __AVX512F__
enum { LANES = 16, PANEL = 4 }; /* numbers of a register, registers of a row of sums */
#else
enum { LANES = 8, PANEL = 2 };
#endif
enum { SIDE = GHP_CONV_TILE, POINTS = SIDE * SIDE, MOST_R = 5, BLOCK = GHP_BLOCK_CHANNELS };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

static ALWAYS_INLINE lanes load(const float *from)
{
    lanes v;
    memcpy(&v, from, sizeof v);
    return v;
}

static ALWAYS_INLINE void store(float *to, lanes v)
{
    memcpy(to, &v, sizeof v);
}

/* ---- transforms along one dimension ---- */

/* The points but 0 and infinity (where only the highest power counts) are near, -near, far, -far. With 1 and 2, which
 * make the least arithmetic, results err twice as much. */
static const float near = 0.625F, far = 1.5F;

/* B d */
static ALWAYS_INLINE void transform_input(const lanes d[SIDE], lanes at[SIDE])
{
    const float near2 = near * near, far2 = far * far;
    lanes even_near = d[4] - far2 * d[2], odd_near = near * (d[3] - far2 * d[1]);
    lanes even_far = d[4] - near2 * d[2], odd_far = far * (d[3] - near2 * d[1]);
    at[0] = near2 * far2 * d[0] - (near2 + far2) * d[2] + d[4];
    at[1] = even_near + odd_near;
    at[2] = even_near - odd_near;
    at[3] = even_far + odd_far;
    at[4] = even_far - odd_far;
    at[5] = near2 * far2 * d[1] - (near2 + far2) * d[3] + d[5];
}

static ALWAYS_INLINE float power(float x, int n)
{
    float y = 1;
    UNROLLED (i, n)
        y *= x;
    return y;
}

/* N E_n g */
static ALWAYS_INLINE void transform_slid(const lanes *g, int n, lanes at[SIDE])
{
    const float near2 = near * near, far2 = far * far, by_near = 1 / (2 * near2 * (near2 - far2)),
                by_far = 1 / (2 * far2 * (far2 - near2));
    lanes even_near = by_near * g[0], odd_near = by_near * near * g[1], even_far = by_far * g[0],
          odd_far = by_far * far * g[1];
    for (int j = 2; j < n; j++) {
        if (j % 2 == 0) {
            even_near += by_near * power(near, j) * g[j];
            even_far += by_far * power(far, j) * g[j];
        } else {
            odd_near += by_near * power(near, j) * g[j];
            odd_far += by_far * power(far, j) * g[j];
        }
    }
    at[0] = g[0] * (1 / (near2 * far2));
    at[1] = even_near + odd_near;
    at[2] = even_near - odd_near;
    at[3] = even_far + odd_far;
    at[4] = even_far - odd_far;
    at[5] = g[n - 1];
}

/* E_n^T p */
static ALWAYS_INLINE void transform_output(const lanes p[SIDE], int n, lanes *y)
{
    lanes even_near = p[1] + p[2], odd_near = p[1] - p[2], even_far = p[3] + p[4],
          odd_far = p[3] - p[4];
    UNROLLED (j, n)
        y[j] = power(near, j) * (j % 2 == 0 ? even_near : odd_near) +
               power(far, j) * (j % 2 == 0 ? even_far : odd_far);
    y[0] += p[0];
    y[n - 1] += p[5];
}

/* ---- along both; numbers of point i lie i * plane after those of point 0 ---- */

static ALWAYS_INLINE void put_input(lanes d[SIDE][SIDE], float *to, int64_t plane)
{
    lanes half[SIDE][SIDE], at[SIDE];
    UNROLLED (i, SIDE)
        transform_input(d[i], half[i]);
    UNROLLED (j, SIDE) {
        lanes column[SIDE];
        UNROLLED (i, SIDE)
            column[i] = half[i][j];
        transform_input(column, at);
        UNROLLED (i, SIDE)
            store(to + (i * SIDE + j) * plane, at[i]);
    }
}

static ALWAYS_INLINE void put_slid(lanes (*g)[MOST_R], int n, float *to, int64_t plane)
{
    lanes half[MOST_R][SIDE], at[SIDE];
    UNROLLED (i, n)
        transform_slid(g[i], n, half[i]);
    UNROLLED (j, SIDE) {
        lanes column[MOST_R];
        UNROLLED (i, n)
            column[i] = half[i][j];
        transform_slid(column, n, at);
        UNROLLED (i, SIDE)
            store(to + (i * SIDE + j) * plane, at[i]);
    }
}

static ALWAYS_INLINE void take_output(const float *from, int64_t plane, int n, lanes (*y)[MOST_R])
{
    lanes half[SIDE][MOST_R], at[SIDE], out[MOST_R];
    UNROLLED (i, SIDE) {
        UNROLLED (j, SIDE)
            at[j] = load(from + (i * SIDE + j) * plane);
        transform_output(at, n, half[i]);
    }
    UNROLLED (j, n) {
        UNROLLED (i, SIDE)
            at[i] = half[i][j];
        transform_output(at, n, out);
        UNROLLED (i, n)
            y[i][j] = out[i];
    }
}

#endif
