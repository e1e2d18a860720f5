// tests/emulated/kernels.cpp - ghp's kernels as they are, on emulated grids.
#define GHP_GRID_HEADER "tests/emulated/grid.hpp"
#include "executor/backend/cuda/kernels/elementwise.cu"
#include "executor/backend/cuda/kernels/conv.cu"
#include "executor/backend/cuda/kernels/move.cu"
#include "executor/backend/cuda/kernels/norm.cu"
#include "executor/backend/cuda/kernels/position_norm.cu"
#include "executor/backend/cuda/kernels/pool.cu"
