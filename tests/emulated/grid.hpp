// tests/emulated/grid.hpp - ghp's own kernels on a processor: what kernels/common.cuh finds in place of CUDA's grids.
//
// The kernels' sources are compiled as they are. Blocks run one after the other, a block's threads as fibers that
// change places at barriers and shuffles; a barrier that not all threads of a block reach ends the program, as does a
// grid that no GPU would take.
#ifndef GHP_TESTS_EMULATED_GRID_HPP
#define GHP_TESTS_EMULATED_GRID_HPP

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "executor/backend/cuda/kernels/runtime.h"
#include "tests/emulated/launch.hpp"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __forceinline__ inline
#define __launch_bounds__(...)

extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;

// A kernel's name: the first word of a call's arguments, and the function of each element that it is given, if any.
std::string emulated_name(const char *call, const std::type_info *function);
// Runs a whole grid; `shared` bytes of dynamic memory for each block.
void emulated_grid(dim3 blocks, dim3 threads, size_t shared, const std::function<void()> &thread);
void *emulated_shared();
void emulated_barrier();
void emulated_warp_barrier();
uint64_t emulated_shuffle(uint64_t value, int offset, bool crosswise);

static inline float rounded_product(float a, float b)
{
    return a * b;
}

#define GHP_DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(emulated_shared())

inline void __syncthreads()
{
    emulated_barrier();
}

inline void __syncwarp()
{
    emulated_warp_barrier();
}

template <typename T> inline T emulated_shuffled(T value, int offset, bool crosswise)
{
    uint64_t bits = 0;

    static_assert(sizeof(T) <= sizeof(bits), "a shuffle takes up to eight bytes");
    std::memcpy(&bits, &value, sizeof(T));
    bits = emulated_shuffle(bits, offset, crosswise);
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

template <typename T> inline T __shfl_down_sync(unsigned, T value, int offset)
{
    return emulated_shuffled(value, offset, false);
}

template <typename T> inline T __shfl_xor_sync(unsigned, T value, int offset)
{
    return emulated_shuffled(value, offset, true);
}

// One thread runs at a time.
inline unsigned long long atomicMin(unsigned long long *at, unsigned long long value)
{
    unsigned long long before = *at;

    if (value < before) *at = value;
    return before;
}

inline float __int_as_float(unsigned bits)
{
    float value;

    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline int64_t global_nanoseconds()
{
    auto now = std::chrono::steady_clock::now().time_since_epoch();

    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

static inline void pause_thread()
{
}

// The type, if it is called with two numbers; else nullptr.
template <typename T> const std::type_info *emulated_function()
{
    return std::is_invocable_r_v<float, T, float, float> ? &typeid(T) : nullptr;
}

template <typename... P, typename... A>
static inline void emulated_launch(const char *call, void (*kernel)(P...), dim3 blocks,
                                   dim3 threads, size_t shared, cudaStream_t stream, A... arguments)
{
    const std::type_info *function = nullptr;

    static_assert((sizeof(P) + ... + 0) <= 4096, "a kernel takes 4 KiB of arguments");
    ((function = function != nullptr ? function : emulated_function<P>()), ...);
    emulated_enqueue(stream, emulated_name(call, function), [=] {
        emulated_grid(blocks, threads, shared, [&] { kernel(static_cast<P>(arguments)...); });
    });
}

#define enqueue(...) emulated_launch(#__VA_ARGS__, __VA_ARGS__)

#endif
