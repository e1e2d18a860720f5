/* executor/data/npy.c - see npy.h. */
#include "executor/data/npy.h"

#include "core/base/units.h"
#include "executor/data/mapped_file.h"

#include <string.h>

enum { HEADER_MOST = 1 << 16, FIRST_BYTES = 10, LONG_FIRST_BYTES = 12 };

static const int64_t items_most = INT64_C(1) << 46;

struct reading { /* the header's text, from `at` to `end` */
    const char *path, *at, *end;
    struct ghp_npy *npy;
};

static enum ghp_status fail_header(const struct reading *r)
{
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s' has a header that is not NumPy's ({'descr': ..., 'fortran_order': ..., "
                    "'shape': (...), }); save the array again with numpy.save",
                    r->path);
}

/* ---- words ---- */

static void pass_spaces(struct reading *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n'))
        r->at++;
}

static bool take(struct reading *r, const char *word)
{
    size_t n = strlen(word);

    pass_spaces(r);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

static bool take_number(struct reading *r, int64_t *number)
{
    const char *first;

    pass_spaces(r);
    first = r->at;
    for (*number = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        *number = *number * 10 + (*r->at - '0');
        if (*number > items_most) return false;
    }
    return r->at > first;
}

/* ---- entries ---- */

/* "'<f4'": order, kind, bytes. */
static enum ghp_status read_descr(struct reading *r)
{
    struct ghp_npy *npy = r->npy;
    char order, kind;
    int64_t bytes = 0;
    const char *first;

    if (!take(r, "'") || r->end - r->at < 2) return fail_header(r);
    first = r->at;
    order = *r->at++;
    kind = *r->at++;
    if (!take_number(r, &bytes) || !take(r, "'")) bytes = 0;
    npy->kind = kind;
    npy->item_bytes = (int)bytes;
    if ((order == '<' || (order == '|' && bytes == 1)) &&
        (kind == 'f' ? bytes == 4 || bytes == 8
                     : (kind == 'u' || kind == 'i') &&
                           (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)))
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' has numbers of type '%.*s', which are not taken; save it as uint8, "
                    "float32, float64 or little-endian integers (numpy's astype)",
                    r->path, (int)(r->end - first < 4 ? r->end - first : 4), first);
}

static enum ghp_status read_order(struct reading *r)
{
    if (take(r, "False")) return GHP_OK;
    if (!take(r, "True")) return fail_header(r);
    return GHP_FAIL(GHP_ERR_INPUT, "'%s' is in Fortran order; save numpy.ascontiguousarray of it",
                    r->path);
}

static enum ghp_status read_shape(struct reading *r)
{
    struct ghp_npy *npy = r->npy;

    if (!take(r, "(")) return fail_header(r);
    for (npy->n = 1; !take(r, ")");) {
        int64_t dim;

        if (!take_number(r, &dim)) return fail_header(r);
        if (npy->n_dims == GHP_NPY_DIMENSIONS)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' has more than %d dimensions; reshape it and save it again",
                            r->path, GHP_NPY_DIMENSIONS);
        if (dim < 1 || !ghp_product_fits(npy->n, dim, items_most))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' has %lld as a dimension; save an array that has numbers, fewer "
                            "than 2^46",
                            r->path, (long long)dim);
        npy->dims[npy->n_dims++] = dim;
        npy->n *= dim;
        if (!take(r, ",") && !(r->at < r->end && *r->at == ')')) return fail_header(r);
    }
    return npy->n_dims > 0
               ? GHP_OK
               : GHP_FAIL(GHP_ERR_INPUT, "'%s' is a single number; save an array", r->path);
}

static enum ghp_status read_header(struct reading *r)
{
    static const struct {
        const char *key;
        enum ghp_status (*read)(struct reading *r);
    } entries[] = {
        {"'descr'", read_descr}, {"'fortran_order'", read_order}, {"'shape'", read_shape}};
    enum { ENTRIES = sizeof entries / sizeof entries[0] };
    bool seen[ENTRIES] = {false};
    int n = 0;

    if (!take(r, "{")) return fail_header(r);
    while (!take(r, "}")) {
        int i = 0;

        while (i < ENTRIES && (seen[i] || !take(r, entries[i].key)))
            i++;
        if (i == ENTRIES || !take(r, ":")) return fail_header(r);
        GHP_TRY(entries[i].read(r));
        seen[i] = true;
        n++;
        take(r, ",");
    }
    return n == ENTRIES ? GHP_OK : fail_header(r);
}

/* ---- the file ---- */

static enum ghp_status read_file(const char *path, struct ghp_npy *npy)
{
    const unsigned char *b = npy->memory;
    int64_t first, header, whole;
    struct reading r = {.path = path, .npy = npy};

    if (npy->mapped_bytes < FIRST_BYTES)
        return GHP_FAIL(GHP_ERR_FORMAT, "'%s' is cut short or no .npy file; save it again", path);
    first = b[6] >= 2 ? LONG_FIRST_BYTES : FIRST_BYTES;
    if (memcmp(b, "\x93NUMPY", 6) != 0 || b[6] < 1 || b[6] > 3)
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' is not a .npy file of version 1 to 3; save the array with numpy.save",
                        path);
    header = b[8] + 256 * (int64_t)b[9];
    if (first == LONG_FIRST_BYTES && npy->mapped_bytes >= LONG_FIRST_BYTES)
        header += ((int64_t)b[10] << 16) + ((int64_t)b[11] << 24);
    if (header > HEADER_MOST || first + header > (int64_t)npy->mapped_bytes) return fail_header(&r);
    r.at = (const char *)b + first;
    r.end = r.at + header;
    GHP_TRY(read_header(&r));
    npy->items = b + first + header;
    whole = first + header + npy->n * npy->item_bytes;
    if ((int64_t)npy->mapped_bytes == whole) return GHP_OK;
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s' has %lld bytes, and its header promises %lld: it is %s; save it again",
                    path, (long long)npy->mapped_bytes, (long long)whole,
                    (int64_t)npy->mapped_bytes < whole ? "cut short" : "too long");
}

enum ghp_status ghp_npy_read(const char *path, void *memory, size_t bytes, struct ghp_npy *npy)
{
    *npy = (struct ghp_npy){.memory = memory, .mapped_bytes = bytes};
    return read_file(path, npy);
}

enum ghp_status ghp_npy_open(const char *path, struct ghp_npy *npy)
{
    enum ghp_status status;

    *npy = (struct ghp_npy){0};
    GHP_TRY(ghp_mapped_file_open(path, &npy->memory, &npy->mapped_bytes));
    status = read_file(path, npy);
    if (status != GHP_OK) ghp_npy_close(npy);
    return status;
}

void ghp_npy_close(struct ghp_npy *npy)
{
    ghp_mapped_file_close(npy->memory, npy->mapped_bytes);
    *npy = (struct ghp_npy){0};
}

bool ghp_npy_integer(const struct ghp_npy *npy, int64_t i, int64_t *value)
{
    const unsigned char *at = npy->items + i * npy->item_bytes;
    uint64_t bits = 0, sign = UINT64_C(1) << (8 * npy->item_bytes - 1);

    for (int b = npy->item_bytes - 1; b >= 0; b--)
        bits = bits << 8 | at[b];
    if (npy->kind == 'u' && npy->item_bytes == 8 && (bits & sign) != 0) return false;
    if (npy->kind == 'i' && (bits & sign) != 0)
        *value = -(int64_t)(2 * (sign - 1) + 1 - bits) - 1; /* of two's complement */
    else
        *value = (int64_t)bits;
    return true;
}
