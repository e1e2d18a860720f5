/* executor/backend/cpu/convolution/winograd.h - convolutions of 3 x 3 and 5 x 5 windows by Winograd's minimal
 * filtering, on tiles of 6 x 6 inputs.
 *
 * A tile's products are 36 for (7 - r)^2 outputs: of 5 x 5 windows 36 instead of 100, of 3 x 3 ones 36 instead of
 * 144. The library has the latter only, and only before its third generation.
 *
 * For `fast` numerics only, in float: transforms amplify rounding (docs/explanation/exactness.md). */
#ifndef GHP_EXECUTOR_BACKEND_CPU_CONVOLUTION_WINOGRAD_H
#define GHP_EXECUTOR_BACKEND_CPU_CONVOLUTION_WINOGRAD_H

#include "executor/backend/cpu/kernels_cpu.h"

#define GHP_WINOGRAD "winograd"

/* Whether there are such kernels for the passes of that operation, here: they want AVX-512, or AVX2 and FMA. */
bool ghp_winograd_can(const struct ghp_backend *backend, const struct ghp_local *local);

/* A kernel of a pass that ghp_winograd_can says there is, in any formats of a convolution.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Source    A. Lavin, S. Gray: Fast Algorithms for Convolutional Neural Networks, CVPR 2016, section 4
 * Tested    tests/executor/backend/onednn/test_onednn.c, tests/executor/backend/test_kernel_spec.c */
enum ghp_status ghp_winograd_prepare(struct ghp_backend *backend, const struct ghp_local *local,
                                     enum ghp_pass pass, struct ghp_kernel_spec spec,
                                     struct ghp_kernel **kernel);

#endif
