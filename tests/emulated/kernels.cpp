// tests/emulated/kernels.cpp - ghp's kernels as they are, on emulated grids.
#define GHP_GRID_HEADER "tests/emulated/grid.hpp"
#include "executor/kernels.cu"
#include "executor/kernels_conv.cu"
#include "executor/kernels_move.cu"
#include "executor/kernels_norm.cu"
#include "executor/kernels_pool.cu"
