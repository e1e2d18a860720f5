/* tests/fuzz/fuzz_npy.c - the reader of NumPy's arrays: of what is accepted all numbers are read. */
#include "executor/data/npy.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_npy npy;
    int64_t value = 0, product = 1;
    unsigned sum = 0;

    (void)bytes;
    (void)n;
    if (ghp_npy_open(path, &npy) != GHP_OK) return false;
    for (int i = 0; i < npy.n_dims; i++)
        product *= npy.dims[i];
    GHP_ASSERT_EQ(product, npy.n);
    for (int64_t i = 0; i < npy.n * npy.item_bytes; i++)
        sum += npy.items[i];
    for (int64_t i = 0; npy.kind != 'f' && i < npy.n; i++)
        if (ghp_npy_integer(&npy, i, &value)) sum += (unsigned)value;
    GHP_ASSERT(sum + 1 != sum);
    ghp_npy_close(&npy);
    return true;
}
