// executor/backend/cuda/kernels/philox.cuh - Philox4x32 with ten rounds, numbered as executor/platform/random.h numbers
// its blocks.
//
// Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC11)
#ifndef GHP_EXECUTOR_BACKEND_CUDA_KERNELS_PHILOX_CUH
#define GHP_EXECUTOR_BACKEND_CUDA_KERNELS_PHILOX_CUH

#include <stdint.h>

namespace
{

struct four {
    uint32_t v[4];
};

__host__ __device__ inline four philox(uint64_t seed, uint32_t a, uint32_t b, uint32_t c,
                                       uint32_t d)
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)0xD2511F53u * a, q = (uint64_t)0xCD9E8D57u * c;

        a = (uint32_t)(q >> 32) ^ b ^ k0;
        c = (uint32_t)(p >> 32) ^ d ^ k1;
        b = (uint32_t)q;
        d = (uint32_t)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return four{{a, b, c, d}};
}

} // namespace

#endif
