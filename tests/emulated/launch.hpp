// tests/emulated/launch.hpp - what the emulated libraries ask of the program that opens them, and numbers in bfloat16.
#ifndef GHP_TESTS_EMULATED_LAUNCH_HPP
#define GHP_TESTS_EMULATED_LAUNCH_HPP

#include <cstdint>
#include <cstring>
#include <cuda_runtime_api.h>
#include <functional>
#include <string>

// Puts a kernel's work into a stream's order. `name` is what it is called where launches are counted;
// empty: it is part of the kernel before it.
void emulated_enqueue(cudaStream_t stream, const std::string &name, std::function<void()> work);
// The same of work that waits for other processes: other streams continue meanwhile.
void emulated_enqueue_waiting(cudaStream_t stream, const std::string &name,
                              std::function<void()> work);
// Does what can be done of all streams' work: while the host waits for other processes.
void emulated_progress();

static inline float widened(uint16_t number)
{
    uint32_t bits = (uint32_t)number << 16;
    float value;

    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

// Rounded to the nearest, to even ones between two.
static inline uint16_t narrowed(float value)
{
    uint32_t bits;

    std::memcpy(&bits, &value, sizeof(bits));
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
