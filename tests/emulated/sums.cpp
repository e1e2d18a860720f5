// tests/emulated/sums.cpp - the sums that cuDNN's convolutions make of their outputs, on an emulated GPU: of numbers in
// bfloat16, one after the other in float, which rounds more than cuDNN's tiles do.
#include "tests/emulated/launch.hpp"

extern "C" void ghp_emulated_sums(cudaStream_t stream, int64_t rows, int64_t c, const void *y,
                                  float *sums)
{
    emulated_enqueue(stream, "", [=] {
        const uint16_t *at = static_cast<const uint16_t *>(y);

        for (int64_t i = 0; i < 2 * c; i++)
            sums[i] = 0;
        for (int64_t i = 0; i < rows * c; i++) {
            float x = widened(at[i]);

            sums[i % c] += x;
            sums[c + i % c] += x * x;
        }
    });
}
