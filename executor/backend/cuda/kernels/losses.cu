// executor/backend/cuda/kernels/losses.cu - several outputs side by side, each with a loss of its own kind: the rows of
// one after the other are copied together for its own kernels. See kernels/kernels.h.
#include "executor/backend/cuda/kernels/common.cuh"
#include "executor/backend/cuda/kernels/row.h"

extern "C" const struct ghp_cuda_row ghp_cuda_rows_loss[], ghp_cuda_rows_margin_losses[];

namespace
{

const ghp_cuda_row *loss_row_of(ghp_op op, ghp_pass pass)
{
    const ghp_cuda_row *const tables[] = {ghp_cuda_rows_loss, ghp_cuda_rows_margin_losses};

    for (const ghp_cuda_row *row : tables)
        for (; row->launch != NULL; row++)
            if (row->op == op && row->pass == pass) return row;
    return nullptr;
}

// Columns of rows `stride` apart, next to each other; and back.
template <typename T>
__global__ void take_columns_kernel(int64_t n, int64_t columns, int64_t stride, const T *from,
                                    T *to)
{
    for (int64_t i = first_item(); i < n; i += item_stride())
        to[i] = from[i / columns * stride + i % columns];
}

template <typename T>
__global__ void put_columns_kernel(int64_t n, int64_t columns, int64_t stride, const T *from, T *to)
{
    for (int64_t i = first_item(); i < n; i += item_stride())
        to[i / columns * stride + i % columns] = from[i];
}

// Rows of an output before and after its kernels, their labels, and what the kernels take.
int64_t losses_rows_bytes(const ghp_local *local)
{
    return ghp_align(ghp_local_in_elements(local) * (int64_t)sizeof(float));
}

int64_t losses_scratch(const ghp_local *local)
{
    int64_t own = 0;

    for (int i = 0; i < local->loss.outputs; i++) {
        const ghp_local one = ghp_local_output(local, i);
        const ghp_cuda_row *row = loss_row_of(one.op, GHP_PASS_FORWARD);
        int64_t bytes = row->scratch_bytes != nullptr ? row->scratch_bytes(&one) : 0;

        if (bytes > own) own = bytes;
    }
    return 2 * losses_rows_bytes(local) +
           ghp_align(ghp_local_labels(local) * (int64_t)sizeof(int32_t)) + own;
}

// from: x or y; to: y or dx.
cudaError_t losses_run(ghp_launch launch, const ghp_local *local, const ghp_kernel_arguments *args,
                       ghp_pass pass, const void *from, void *to)
{
    const ghp_label_outputs labels = ghp_loss_label_outputs(&local->loss);
    int64_t rows = local->n * local->h * local->w, column = 0, first = 0;
    char *in = (char *)args->at.scratch, *out = in + losses_rows_bytes(local);
    int32_t *label = (int32_t *)(out + losses_rows_bytes(local));
    cudaError_t error = cudaSuccess;

    for (int i = 0; i < labels.n && rows > 0 && error == cudaSuccess; i++) {
        const ghp_local one = ghp_local_output(local, i);
        int64_t each = labels.end[i] - first, n = rows * one.c;
        ghp_kernel_arguments its = *args;

        its.at.x[0] = its.at.y = in;
        if (pass == GHP_PASS_FORWARD) its.at.y = out;
        its.at.dx[0] = out;
        its.at.labels = label;
        its.at.scratch =
            (char *)label + ghp_align(ghp_local_labels(local) * (int64_t)sizeof(int32_t));
        its.global_channels = one.c;
        enqueue(take_columns_kernel<int32_t>, blocks_for(rows * each), kThreads, 0, launch.stream,
                rows * each, each, labels.row, args->at.labels + first, label);
        error = by_type(launch, [&](auto type) {
            typedef decltype(type) T;

            enqueue(take_columns_kernel<T>, blocks_for(n), kThreads, 0, launch.stream, n, one.c,
                    local->c, (const T *)from + column, (T *)in);
        });
        if (error == cudaSuccess) error = loss_row_of(one.op, pass)->launch(launch, &one, &its);
        if (error != cudaSuccess) break;
        error = by_type(launch, [&](auto type) {
            typedef decltype(type) T;

            enqueue(put_columns_kernel<T>, blocks_for(n), kThreads, 0, launch.stream, n, one.c,
                    local->c, (const T *)out, (T *)to + column);
        });
        column += one.c;
        first = labels.end[i];
    }
    return error;
}

cudaError_t losses_forward(ghp_launch launch, const ghp_local *local,
                           const ghp_kernel_arguments *args)
{
    return losses_run(launch, local, args, GHP_PASS_FORWARD, args->at.x[0], args->at.y);
}

cudaError_t losses_backward(ghp_launch launch, const ghp_local *local,
                            const ghp_kernel_arguments *args)
{
    return losses_run(launch, local, args, GHP_PASS_BACKWARD_DATA, args->at.y, args->at.dx[0]);
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_losses[] = {
    {GHP_OP_LOSSES, GHP_PASS_FORWARD, losses_forward, losses_scratch},
    {GHP_OP_LOSSES, GHP_PASS_BACKWARD_DATA, losses_backward, losses_scratch},
    {},
};
