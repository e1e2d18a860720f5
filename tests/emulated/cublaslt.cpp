// tests/emulated/cublaslt.cpp - as much of cuBLASLt as ghp uses, on an emulated GPU.
//
// Built as a library of cuBLASLt's name, which ghp opens like the real one: executor/backend/cuda/linear.c runs as it
// is. A product follows from its descriptors alone, columns first, and is computed when its stream comes to it. Its
// workspace is filled with rubbish before. What cuBLASLt refuses fails: sizes and types that do not fit each other,
// tensors less aligned than was promised, a workspace that is too small, a bias without an address.
//
// There is one algorithm. As it may be with cuBLASLt, it does not take all: no sums of fewer than four products, and no
// bias or ReLU for an odd number of rows. With GHP_EMULATED_SINGLE set it takes no batches. GHP_EMULATED_TELL: stderr
// gets a line for each product that is to take fewer multiprocessors than there are.
#include "tests/emulated/launch.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cublasLt.h>
#include <vector>

namespace
{

constexpr uint64_t kAlgorithm = 0x67687001;
constexpr size_t kWorkspace = 4096;

struct operation {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void *bias = nullptr;
    int32_t bias_type = -1; // the result's
    int64_t bias_stride = 0;
    int32_t multiprocessors = 0; // all
};

struct layout {
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t stride; // of columns
    int32_t batch = 1;
    int64_t batch_stride = 0;
};

struct rules {
    uint64_t workspace = 0;
    uint32_t aligned = 256; // the least of the tensors'
};

struct product { // d = a b + beta d
    operation how;
    layout a, b, d;
    const void *at_a, *at_b;
    void *at_d, *workspace;
    size_t workspace_bytes;
    float alpha, beta;
};

operation *of(cublasLtMatmulDesc_t desc)
{
    return reinterpret_cast<operation *>(desc);
}

layout *of(cublasLtMatrixLayout_t desc)
{
    return reinterpret_cast<layout *>(desc);
}

rules *of(cublasLtMatmulPreference_t desc)
{
    return reinterpret_cast<rules *>(desc);
}

bool is_bf16(cudaDataType_t type)
{
    return type == CUDA_R_16BF;
}

bool adds_bias(const operation &how)
{
    return how.epilogue == CUBLASLT_EPILOGUE_BIAS || how.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

bool applies_relu(const operation &how)
{
    return how.epilogue == CUBLASLT_EPILOGUE_RELU || how.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

uint64_t rows_of(const layout &l, cublasOperation_t transposed)
{
    return transposed == CUBLAS_OP_N ? l.rows : l.columns;
}

uint64_t columns_of(const layout &l, cublasOperation_t transposed)
{
    return transposed == CUBLAS_OP_N ? l.columns : l.rows;
}

// ---- what is taken ----

bool is_whole(const layout &l)
{
    return (is_bf16(l.type) || l.type == CUDA_R_32F) && l.stride >= (int64_t)l.rows &&
           l.batch >= 1 && l.batch_stride >= 0;
}

// No product writes over another's result.
bool is_apart(const layout &d)
{
    return d.batch == 1 || d.batch_stride >= d.stride * (int64_t)d.columns;
}

bool types_fit(const operation &how, const layout &a, const layout &b, const layout &d)
{
    bool wide = a.type == CUDA_R_32F;

    if (a.type != b.type || how.scale != CUDA_R_32F || (wide && is_bf16(d.type))) return false;
    if (adds_bias(how) && how.bias_type != -1 && how.bias_type != (int32_t)d.type) return false;
    return how.compute == CUBLAS_COMPUTE_32F ||
           (wide && how.compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}

bool fits(const operation &how, const layout &a, const layout &b, const layout &d)
{
    return is_whole(a) && is_whole(b) && is_whole(d) && is_apart(d) && types_fit(how, a, b, d) &&
           a.batch == d.batch && b.batch == d.batch && rows_of(a, how.a) == d.rows &&
           columns_of(b, how.b) == d.columns && columns_of(a, how.a) == rows_of(b, how.b);
}

bool is_taken(const operation &how, const layout &a, const layout &d)
{
    return columns_of(a, how.a) >= 4 &&
           (d.batch == 1 || std::getenv("GHP_EMULATED_SINGLE") == nullptr) &&
           (how.epilogue == CUBLASLT_EPILOGUE_DEFAULT || d.rows % 2 == 0);
}

bool is_aligned(const void *at, uint64_t bytes)
{
    return at != nullptr && reinterpret_cast<uintptr_t>(at) % bytes == 0;
}

// ---- computing ----

double number(const void *at, cudaDataType_t type, uint64_t i)
{
    return is_bf16(type) ? widened(static_cast<const uint16_t *>(at)[i])
                         : static_cast<const float *>(at)[i];
}

void put_number(void *at, cudaDataType_t type, uint64_t i, double value)
{
    if (is_bf16(type))
        static_cast<uint16_t *>(at)[i] = narrowed((float)value);
    else
        static_cast<float *>(at)[i] = (float)value;
}

// An operand of the product, `rows` numbers for each of `columns`.
std::vector<float> read_matrix(const void *at, const layout &l, bool transposed)
{
    uint64_t rows = transposed ? l.columns : l.rows, columns = transposed ? l.rows : l.columns;
    std::vector<float> numbers(rows * columns);

    for (uint64_t j = 0; j < columns; j++)
        for (uint64_t i = 0; i < rows; i++) {
            uint64_t row = transposed ? j : i, column = transposed ? i : j;

            numbers[j * rows + i] = (float)number(at, l.type, column * (uint64_t)l.stride + row);
        }
    return numbers;
}

// A column of the result: bias and ReLU come after what is added.
void finish_column(const product &p, uint64_t column, const std::vector<double> &sums)
{
    for (uint64_t i = 0; i < p.d.rows; i++) {
        uint64_t place = column * (uint64_t)p.d.stride + i;
        double value = p.alpha * sums[i];

        if (p.beta != 0) value += p.beta * number(p.at_d, p.d.type, place);
        if (adds_bias(p.how)) value += number(p.how.bias, p.d.type, i);
        if (applies_relu(p.how)) value = value > 0 ? value : 0;
        put_number(p.at_d, p.d.type, place, value);
    }
}

uint64_t bytes_of(cudaDataType_t type)
{
    return is_bf16(type) ? sizeof(uint16_t) : sizeof(float);
}

const void *moved(const void *at, cudaDataType_t type, int64_t numbers)
{
    return static_cast<const char *>(at) + numbers * (int64_t)bytes_of(type);
}

// One product of a batch.
product one_of(product p, int32_t i)
{
    p.at_a = moved(p.at_a, p.a.type, i * p.a.batch_stride);
    p.at_b = moved(p.at_b, p.b.type, i * p.b.batch_stride);
    p.at_d = const_cast<void *>(moved(p.at_d, p.d.type, i * p.d.batch_stride));
    p.how.bias = moved(p.how.bias, p.d.type, i * p.how.bias_stride);
    return p;
}

// The sums over inner places go in their order, whatever comes after them: padding with zeros changes no bit.
void multiply(const product &p)
{
    uint64_t rows = p.d.rows, inner = columns_of(p.a, p.how.a);

    std::memset(p.workspace, 0xcb, p.workspace_bytes);
    std::vector<float> a = read_matrix(p.at_a, p.a, p.how.a != CUBLAS_OP_N),
                       b = read_matrix(p.at_b, p.b, p.how.b != CUBLAS_OP_N);
    std::vector<double> sums(rows);

    for (uint64_t j = 0; j < p.d.columns; j++) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (uint64_t l = 0; l < inner; l++) {
            double factor = b[j * inner + l];

            for (uint64_t i = 0; i < rows; i++)
                sums[i] += factor * a[l * rows + i];
        }
        finish_column(p, j, sums);
    }
}

// As cuBLAS counts: rows x columns x inner places.
std::string name_of(const product &p)
{
    char text[128], times[32] = "";

    if (p.d.batch > 1) std::snprintf(times, sizeof(times), ", %d at once", p.d.batch);
    std::snprintf(text, sizeof(text), "cublasLtMatmul %c%c %llux%llux%llu %s to %s%s%s%s%s",
                  p.how.a == CUBLAS_OP_N ? 'n' : 't', p.how.b == CUBLAS_OP_N ? 'n' : 't',
                  (unsigned long long)p.d.rows, (unsigned long long)p.d.columns,
                  (unsigned long long)columns_of(p.a, p.how.a),
                  is_bf16(p.a.type) ? "bf16" : "float", is_bf16(p.d.type) ? "bf16" : "float",
                  adds_bias(p.how) ? ", bias" : "", applies_relu(p.how) ? ", ReLU" : "",
                  p.beta != 0 ? ", added" : "", times);
    return text;
}

} // namespace

extern "C" {

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "an invalid value";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    static int something;

    *handle = reinterpret_cast<cublasLtHandle_t>(&something);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    operation *made = new operation();

    made->compute = compute;
    made->scale = scale;
    *desc = reinterpret_cast<cublasLtMatmulDesc_t>(made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    delete of(desc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void *from, size_t bytes)
{
    operation *o = of(desc);
    void *to = which == CUBLASLT_MATMUL_DESC_TRANSA              ? (void *)&o->a
               : which == CUBLASLT_MATMUL_DESC_TRANSB            ? (void *)&o->b
               : which == CUBLASLT_MATMUL_DESC_EPILOGUE          ? (void *)&o->epilogue
               : which == CUBLASLT_MATMUL_DESC_BIAS_POINTER      ? (void *)&o->bias
               : which == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE    ? (void *)&o->bias_type
               : which == CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE ? (void *)&o->bias_stride
               : which == CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET   ? (void *)&o->multiprocessors
                                                                 : nullptr;
    bool wide = which == CUBLASLT_MATMUL_DESC_BIAS_POINTER ||
                which == CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE;
    size_t expected = wide ? sizeof(int64_t) : sizeof(int32_t);

    if (to == nullptr || bytes != expected) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(to, from, bytes);
    if (to == &o->multiprocessors && std::getenv("GHP_EMULATED_TELL") != nullptr)
        std::fprintf(stderr, "emulated cuBLASLt: %d multiprocessors\n", o->multiprocessors);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *desc, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t stride)
{
    *desc = reinterpret_cast<cublasLtMatrixLayout_t>(new layout{type, rows, columns, stride});
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t desc,
                                                cublasLtMatrixLayoutAttribute_t which,
                                                const void *from, size_t bytes)
{
    layout *l = of(desc);
    bool count = which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;

    if ((!count && which != CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) ||
        bytes != (count ? sizeof(l->batch) : sizeof(l->batch_stride)))
        return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(count ? (void *)&l->batch : (void *)&l->batch_stride, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t desc)
{
    delete of(desc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *desc)
{
    *desc = reinterpret_cast<cublasLtMatmulPreference_t>(new rules());
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t desc)
{
    delete of(desc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t desc,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void *from, size_t bytes)
{
    rules *r = of(desc);
    uint32_t number = 0;

    if (which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
        if (bytes != sizeof(r->workspace)) return CUBLAS_STATUS_INVALID_VALUE;
        std::memcpy(&r->workspace, from, bytes);
        return CUBLAS_STATUS_SUCCESS;
    }
    if (bytes != sizeof(number)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&number, from, bytes);
    if (which != CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        r->aligned = std::min(r->aligned, number);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t how,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t found[], int *n)
{
    *n = 0;
    if (!fits(*of(how), *of(a), *of(b), *of(d))) return CUBLAS_STATUS_INVALID_VALUE;
    if (most < 1 || of(preference)->workspace < kWorkspace || !is_taken(*of(how), *of(a), *of(d)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    found[0] = cublasLtMatmulHeuristicResult_t();
    found[0].algo.data[0] = kAlgorithm;
    found[0].algo.data[1] = of(preference)->aligned;
    found[0].workspaceSize = kWorkspace;
    found[0].state = CUBLAS_STATUS_SUCCESS;
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t how,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    if (!fits(*of(how), *of(a), *of(b), *of(d)) || algorithm->data[0] != kAlgorithm)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_taken(*of(how), *of(a), *of(d))) return CUBLAS_STATUS_NOT_SUPPORTED;
    result->workspaceSize = kWorkspace;
    result->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
}

// c is d, with d's layout: ghp adds to what is there, or to nothing.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t how, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    product p = {*of(how),
                 *of(a_layout),
                 *of(b_layout),
                 *of(d_layout),
                 a,
                 b,
                 d,
                 workspace,
                 workspace_bytes,
                 *static_cast<const float *>(alpha),
                 *static_cast<const float *>(beta)};
    uint64_t aligned = algorithm->data[1];

    if (algorithm->data[0] != kAlgorithm || !fits(p.how, p.a, p.b, p.d) || c != d ||
        c_layout != d_layout || workspace_bytes < kWorkspace || !is_aligned(workspace, 256))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_taken(p.how, p.a, p.d)) return CUBLAS_STATUS_NOT_SUPPORTED;
    for (int32_t i = 0; i < p.d.batch; i++) {
        product one = one_of(p, i);

        if (!is_aligned(one.at_a, aligned) || !is_aligned(one.at_b, aligned) ||
            !is_aligned(one.at_d, aligned) || (adds_bias(p.how) && !is_aligned(one.how.bias, 2)))
            return CUBLAS_STATUS_INVALID_VALUE;
    }
    emulated_enqueue(stream, name_of(p), [p] {
        for (int32_t i = 0; i < p.d.batch; i++)
            multiply(one_of(p, i));
    });
    return CUBLAS_STATUS_SUCCESS;
}
}
