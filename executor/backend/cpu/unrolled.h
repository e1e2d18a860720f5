/* executor/backend/cpu/unrolled.h - a loop over a tile: unrolled, or sums would not stay in registers. */
#ifndef GHP_EXECUTOR_BACKEND_CPU_UNROLLED_H
#define GHP_EXECUTOR_BACKEND_CPU_UNROLLED_H

#ifdef __clang__
#define UNROLLED(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)
#else
#define UNROLLED(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)
#endif

#endif
