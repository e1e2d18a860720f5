/* core/model/safetensors.c - see safetensors.h. Numbers are little-endian, as on every machine that ghp runs on. */
#include "core/model/safetensors.h"

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/leftover.h"
#include "core/base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL /* the header alone, no library */
#include <xxhash.h>

enum { LENGTH_BYTES = 8, LARGEST_HEADER = 100 << 20, CONVERTED_AT_ONCE = 4096 };

/* The checksum in a header follows this key, with as many digits as no_checksum has. A quote within a text of the
 * header has a backslash before it, so what is found is a key. Another key says that there is a checksum, so that a
 * file in which one of the two is damaged is not taken for a file without checksum. */
static const char checksum_kind[] = "checksum", checksum_name[] = "xxh3",
                  checksum_key[] = "\"xxh3\":\"", no_checksum[] = "0000000000000000";
enum { CHECKSUM_DIGITS = sizeof no_checksum - 1 };

/* The digits in a header; NULL if it has none. */
static char *checksum_digits(char *header)
{
    char *key = strstr(header, checksum_key), *digits;

    if (key == NULL) return NULL;
    digits = key + strlen(checksum_key);
    return strlen(digits) >= CHECKSUM_DIGITS ? digits : NULL;
}

/* ---- writing ---- */

struct ghp_safetensors_writer {
    FILE *file;
    char *path, *temporary;
    int n, next;       /* tensors, and the one whose values come next */
    int64_t *bytes;    /* of each */
    long digits_at;    /* of the checksum in the file */
    XXH3_state_t *sum; /* of what is written; NULL: there is no checksum */
};

/* NULL without memory. */
static json_t *tensor_json(const struct ghp_safetensor *t)
{
    json_t *dims = json_array(), *entry = NULL;
    bool whole = dims != NULL;

    for (int i = 0; i < t->n_dims; i++)
        whole = whole && json_array_append_new(dims, json_integer(t->dims[i])) == 0;
    if (whole)
        entry = json_pack("{s:s, s:O, s:[I, I]}", "dtype", t->element_bytes == 8 ? "F64" : "F32",
                          "shape", dims, "data_offsets", (json_int_t)t->offset,
                          (json_int_t)(t->offset + t->bytes));
    json_decref(dims);
    return entry;
}

/* The header's text, padded so that the data part is aligned; NULL without memory. */
static char *header_text(const struct ghp_safetensors_list *list, size_t *bytes)
{
    json_t *root = json_object(), *metadata = json_object();
    char *text = NULL, *padded = NULL;
    bool whole = metadata != NULL;
    int64_t offset = 0;

    for (int i = 0; i < list->n_metadata; i++)
        whole = whole && json_object_set_new(metadata, list->metadata[i].key,
                                             json_string(list->metadata[i].value)) == 0;
    if (list->checksum)
        whole = whole &&
                json_object_set_new(metadata, checksum_kind, json_string(checksum_name)) == 0 &&
                json_object_set_new(metadata, checksum_name, json_string(no_checksum)) == 0;
    whole = json_object_set_new(root, "__metadata__", metadata) == 0 && whole;
    for (int i = 0; i < list->n; i++) {
        struct ghp_safetensor *t = &list->tensors[i];

        t->offset = offset;
        t->bytes = t->element_bytes;
        for (int d = 0; d < t->n_dims; d++)
            t->bytes *= t->dims[d];
        offset += t->bytes;
        whole = whole && json_object_set_new(root, t->name, tensor_json(t)) == 0;
    }
    if (whole) text = ghp_json_line_of(root);
    json_decref(root);
    if (text != NULL) {
        *bytes = (strlen(text) + LENGTH_BYTES - 1) / LENGTH_BYTES * LENGTH_BYTES;
        padded = malloc(*bytes + 1);
    }
    if (padded != NULL) snprintf(padded, *bytes + 1, "%-*s", (int)*bytes, text);
    free(text);
    return padded;
}

static enum ghp_status fail_write(const struct ghp_safetensors_writer *w)
{
    return ghp_file_fail_write(w->path, errno);
}

/* The next bytes of the file. */
static enum ghp_status put(struct ghp_safetensors_writer *w, const void *bytes, size_t n)
{
    if (w->sum != NULL) XXH3_64bits_update(w->sum, bytes, n);
    return n == 0 || fwrite(bytes, n, 1, w->file) == 1 ? GHP_OK : fail_write(w);
}

static enum ghp_status write_header(struct ghp_safetensors_writer *w,
                                    const struct ghp_safetensors_list *list)
{
    size_t bytes = 0;
    char *text = header_text(list, &bytes);
    uint64_t length = bytes;
    enum ghp_status status;

    if (text == NULL) return GHP_NO_MEMORY();
    if (list->checksum) {
        w->digits_at = LENGTH_BYTES + (long)(checksum_digits(text) - text);
        w->sum = XXH3_createState();
        if (w->sum == NULL || XXH3_64bits_reset(w->sum) != XXH_OK) {
            free(text);
            return GHP_NO_MEMORY();
        }
    }
    status = put(w, &length, LENGTH_BYTES);
    if (status == GHP_OK) status = put(w, text, bytes);
    free(text);
    return status;
}

static void writer_free(struct ghp_safetensors_writer *w)
{
    if (w->file != NULL) fclose(w->file);
    XXH3_freeState(w->sum);
    free(w->bytes);
    free(w->temporary);
    free(w->path);
    free(w);
}

void ghp_safetensors_abandon(struct ghp_safetensors_writer *w)
{
    if (w == NULL) return;
    if (w->file != NULL) unlink(w->temporary);
    writer_free(w);
}

enum ghp_status ghp_safetensors_begin(const char *path, const struct ghp_safetensors_list *list,
                                      struct ghp_safetensors_writer **writer)
{
    enum ghp_status status = GHP_OK;
    struct ghp_safetensors_writer *w = ghp_alloc(1, sizeof *w);
    enum { COUNTER_BYTES = 8 };
    size_t room = (size_t)ghp_leftover_name(path, NULL, 0) + COUNTER_BYTES;
    int fd;

    *writer = NULL;
    if (w == NULL) return GHP_NO_MEMORY();
    w->n = list->n;
    w->path = strdup(path);
    w->temporary = ghp_alloc(room, 1);
    w->bytes = ghp_alloc((size_t)list->n + 1, sizeof *w->bytes);
    if (w->path == NULL || w->temporary == NULL || w->bytes == NULL)
        GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    fd = ghp_file_open_temporary(path, w->temporary, room);
    if (fd < 0) GHP_TRY_GOTO(status, fail_write(w), fail);
    w->file = fdopen(fd, "wb");
    if (w->file == NULL) {
        close(fd);
        unlink(w->temporary);
        GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    }
    GHP_TRY_GOTO(status, write_header(w, list), fail);
    for (int i = 0; i < list->n; i++)
        w->bytes[i] = list->tensors[i].bytes;
    *writer = w;
    return GHP_OK;
fail:
    ghp_safetensors_abandon(w);
    return status;
}

enum ghp_status ghp_safetensors_append(struct ghp_safetensors_writer *w, const void *values,
                                       int64_t bytes)
{
    GHP_ASSERT(w->next < w->n);
    GHP_ASSERT_EQ(bytes, w->bytes[w->next]);
    w->next++;
    return put(w, values, (size_t)bytes);
}

enum ghp_status ghp_safetensors_sync(struct ghp_safetensors_writer *w)
{
    char digits[CHECKSUM_DIGITS + 1];

    GHP_ASSERT_EQ(w->next, w->n);
    if (w->sum != NULL) {
        ghp_hash_text(XXH3_64bits_digest(w->sum), digits);
        if (fseek(w->file, w->digits_at, SEEK_SET) != 0 ||
            fwrite(digits, CHECKSUM_DIGITS, 1, w->file) != 1)
            return fail_write(w);
    }
    return fflush(w->file) == 0 && fsync(fileno(w->file)) == 0 ? GHP_OK : fail_write(w);
}

enum ghp_status ghp_safetensors_finish(struct ghp_safetensors_writer *w)
{
    enum ghp_status status = ghp_safetensors_sync(w);

    if (status == GHP_OK && rename(w->temporary, w->path) != 0) status = fail_write(w);
    if (status != GHP_OK) {
        ghp_safetensors_abandon(w);
        return status;
    }
    ghp_file_sync_folder(w->path);
    writer_free(w);
    return GHP_OK;
}

void ghp_safetensors_clean(const char *path)
{
    ghp_leftover_clean(path);
}

/* ---- reading ---- */

struct ghp_safetensors {
    FILE *file;
    char *path;
    struct ghp_json header;
    int64_t data_at, data_bytes; /* where the data part begins in the file, and its size */
    int n;
    struct ghp_safetensor *tensors;
};

static enum ghp_status read_dims(const struct ghp_node *entry, struct ghp_safetensor *t)
{
    struct ghp_node shape;
    size_t n = 0;

    GHP_TRY(ghp_json_array(entry, "shape", &shape, &n));
    if (n > GHP_MAX_DIMS)
        return ghp_json_fail(&shape, GHP_ERR_FORMAT,
                             "%zu dimensions; ghp's tensors have at most %d", n, GHP_MAX_DIMS);
    t->n_dims = (int)n;
    t->bytes = t->element_bytes;
    for (size_t i = 0; i < n; i++) {
        json_int_t d = json_integer_value(json_array_get(shape.value, i));

        if (d < 1 || !ghp_product_fits(t->bytes, d, INT64_MAX))
            return ghp_json_fail(&shape, GHP_ERR_FORMAT,
                                 "dimension %zu is not a usable size; the file is damaged", i);
        t->dims[i] = d;
        t->bytes *= d;
    }
    return GHP_OK;
}

/* What the format knows, in one order. */
static const char *const dtype_names[] = {"F32", "F64",     "F16",     "BF16", "BOOL", "U8",
                                          "I8",  "F8_E5M2", "F8_E4M3", "I16",  "U16",  "I32",
                                          "U32", "I64",     "U64",     NULL};
static const int dtype_bytes[] = {4, 8, 2, 2, 1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8};

static enum ghp_status read_entry(const struct ghp_safetensors *f, const struct ghp_node *entry,
                                  struct ghp_safetensor *t)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets", NULL};
    struct ghp_node offsets;
    int dtype = 0;
    size_t n = 0;
    json_int_t first, last;

    GHP_TRY(ghp_json_only_keys(entry, keys));
    GHP_TRY(ghp_json_choice(entry, "dtype", dtype_names, &dtype));
    t->dtype = dtype < GHP_DTYPE_OTHER ? (enum ghp_dtype)dtype : GHP_DTYPE_OTHER;
    t->element_bytes = dtype_bytes[dtype];
    GHP_TRY(read_dims(entry, t));
    GHP_TRY(ghp_json_array(entry, "data_offsets", &offsets, &n));
    first = json_integer_value(json_array_get(offsets.value, 0));
    last = json_integer_value(json_array_get(offsets.value, 1));
    if (n != 2 || first < 0 || last < first || last - first != t->bytes || last > f->data_bytes)
        return ghp_json_fail(&offsets, GHP_ERR_FORMAT,
                             "%" PRId64 " to %" PRId64 " does not hold the tensor's %" PRId64
                             " bytes within the file's %" PRId64
                             "; the file is truncated or damaged",
                             (int64_t)first, (int64_t)last, t->bytes, f->data_bytes);
    t->offset = first;
    return GHP_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* The tensors must follow each other without gap or overlap and end where the file does: what is written is then what
 * is read, and a file that was cut or joined is noticed. */
static enum ghp_status check_filled(const struct ghp_safetensors *f)
{
    int64_t(*spans)[2] = ghp_alloc((size_t)f->n + 1, sizeof *spans), end = 0;

    if (spans == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < f->n; i++) {
        spans[i][0] = f->tensors[i].offset;
        spans[i][1] = f->tensors[i].bytes;
    }
    qsort(spans, (size_t)f->n, sizeof *spans, compare_offsets);
    for (int i = 0; i < f->n && spans[i][0] == end; i++)
        end += spans[i][1];
    free(spans);
    if (end == f->data_bytes) return GHP_OK;
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s': after %" PRId64 " of its %" PRId64
                    " bytes of numbers, tensors overlap or leave a gap; write the file again",
                    f->path, end, f->data_bytes);
}

static enum ghp_status read_entries(struct ghp_safetensors *f)
{
    struct ghp_node root = ghp_json_root(&f->header), entry;
    const char *name;
    json_t *value;

    if (!json_is_object(root.value))
        return ghp_json_fail(&root, GHP_ERR_FORMAT,
                             "not an object; this is not a safetensors file");
    f->tensors = ghp_alloc(json_object_size(root.value) + 1, sizeof *f->tensors);
    if (f->tensors == NULL) return GHP_NO_MEMORY();
    json_object_foreach(root.value, name, value)
    {
        if (strcmp(name, "__metadata__") == 0) continue;
        GHP_TRY(ghp_json_get(&root, name, &entry));
        GHP_TRY(read_entry(f, &entry, &f->tensors[f->n]));
        f->tensors[f->n].name = name;
        f->n++;
    }
    return check_filled(f);
}

/* Whether the file is what Git LFS has in its place until it is fetched. Leaves the file at its beginning. */
static bool is_lfs_pointer(FILE *file)
{
    static const char begin[] = "version https://git-lfs";
    char bytes[sizeof begin] = "";
    size_t n = fread(bytes, 1, sizeof begin - 1, file);

    rewind(file);
    return n == sizeof begin - 1 && strcmp(bytes, begin) == 0;
}

static enum ghp_status read_header(struct ghp_safetensors *f)
{
    uint64_t length = 0;
    struct stat info;
    enum ghp_status status;
    char *text;

    if (is_lfs_pointer(f->file))
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' is a pointer of Git LFS, not the file itself; fetch that by 'git lfs "
                        "pull' in its folder",
                        f->path);
    if (fstat(fileno(f->file), &info) != 0 || fread(&length, LENGTH_BYTES, 1, f->file) != 1 ||
        length > LARGEST_HEADER || (int64_t)length > (int64_t)info.st_size - LENGTH_BYTES)
        return GHP_FAIL(
            GHP_ERR_FORMAT,
            "'%s' is not a safetensors file, or it is truncated; use one that ghp-run wrote",
            f->path);
    f->data_at = LENGTH_BYTES + (int64_t)length;
    f->data_bytes = (int64_t)info.st_size - f->data_at;
    text = ghp_alloc(length + 1, 1);
    if (text == NULL) return GHP_NO_MEMORY();
    if (fread(text, 1, length, f->file) != length)
        status = GHP_FAIL(GHP_ERR_IO, "cannot read '%s': %s; see that the file is complete",
                          f->path, strerror(errno));
    else if (memchr(text, '\0', length) != NULL)
        status =
            GHP_FAIL(GHP_ERR_FORMAT,
                     "'%s': its header has a zero byte; this is not a safetensors file", f->path);
    else
        status = ghp_json_parse(text, f->path, NULL, &f->header);
    free(text);
    return status == GHP_OK ? read_entries(f) : status;
}

enum ghp_status ghp_safetensors_open(const char *path, struct ghp_safetensors **file)
{
    enum ghp_status status = GHP_OK;
    struct ghp_safetensors *f = ghp_alloc(1, sizeof *f);
    int fd;

    *file = NULL;
    if (f == NULL) return GHP_NO_MEMORY();
    f->path = strdup(path);
    if (f->path == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    GHP_TRY_GOTO(status, ghp_file_open(path, &fd), fail);
    f->file = fdopen(fd, "rb");
    if (f->file == NULL) {
        close(fd);
        GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    }
    GHP_TRY_GOTO(status, read_header(f), fail);
    *file = f;
    return GHP_OK;
fail:
    ghp_safetensors_close(f);
    return status;
}

void ghp_safetensors_close(struct ghp_safetensors *f)
{
    if (f == NULL) return;
    if (f->file != NULL) fclose(f->file);
    ghp_json_release(&f->header);
    free(f->tensors);
    free(f->path);
    free(f);
}

int ghp_safetensors_count(const struct ghp_safetensors *f)
{
    return f->n;
}

const struct ghp_safetensor *ghp_safetensors_item(const struct ghp_safetensors *f, int i)
{
    return &f->tensors[i];
}

const struct ghp_safetensor *ghp_safetensors_find(const struct ghp_safetensors *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->tensors[i].name, name) == 0) return &f->tensors[i];
    return NULL;
}

const char *ghp_safetensors_metadata(const struct ghp_safetensors *f, const char *key)
{
    return json_string_value(json_object_get(json_object_get(f->header.root, "__metadata__"), key));
}

/* ---- checksum ---- */

uint64_t ghp_safetensors_sum(const void *bytes, size_t n)
{
    return XXH3_64bits(bytes, n);
}

bool ghp_safetensors_has_checksum(const struct ghp_safetensors *f)
{
    return ghp_safetensors_metadata(f, checksum_name) != NULL;
}

/* The hash of all bytes, but of '0' for the digits, which go to `digits`. */
static enum ghp_status sum_file(struct ghp_safetensors *f, char digits[CHECKSUM_DIGITS + 1],
                                uint64_t *sum)
{
    enum { AT_ONCE = 1 << 16 };
    size_t room = (size_t)f->data_at > AT_ONCE ? (size_t)f->data_at : AT_ONCE, n;
    char *chunk = ghp_alloc(room + 1, 1), *at = NULL;
    XXH3_state_t *state = XXH3_createState();
    bool good;

    if (chunk == NULL || state == NULL || XXH3_64bits_reset(state) != XXH_OK) {
        free(chunk);
        XXH3_freeState(state);
        return GHP_NO_MEMORY();
    }
    good = fseeko(f->file, 0, SEEK_SET) == 0 && fread(chunk, (size_t)f->data_at, 1, f->file) == 1;
    if (good) at = checksum_digits(chunk + LENGTH_BYTES);
    if (at != NULL) {
        memcpy(digits, at, CHECKSUM_DIGITS);
        memcpy(at, no_checksum, CHECKSUM_DIGITS);
    }
    XXH3_64bits_update(state, chunk, (size_t)f->data_at);
    for (int64_t left = f->data_bytes; good && left > 0; left -= (int64_t)n) {
        n = left < (int64_t)room ? (size_t)left : room;
        good = fread(chunk, n, 1, f->file) == 1;
        XXH3_64bits_update(state, chunk, n);
    }
    *sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    free(chunk);
    if (good) return GHP_OK;
    return GHP_FAIL(GHP_ERR_IO, "cannot read '%s': %s; see that the file is complete", f->path,
                    strerror(errno));
}

/* Whether a file says that it has a checksum, by either of the two keys. */
static bool says_checksum(const struct ghp_safetensors *f)
{
    return ghp_safetensors_has_checksum(f) || ghp_safetensors_metadata(f, checksum_kind) != NULL;
}

enum ghp_status ghp_safetensors_check(struct ghp_safetensors *f)
{
    uint64_t unused;

    return says_checksum(f) ? ghp_safetensors_check_sum(f, &unused) : GHP_OK;
}

enum ghp_status ghp_safetensors_check_sum(struct ghp_safetensors *f, uint64_t *sum)
{
    char said[CHECKSUM_DIGITS + 1] = "", is[CHECKSUM_DIGITS + 1];

    *sum = 0;
    GHP_TRY(sum_file(f, said, sum));
    ghp_hash_text(*sum, is);
    if (!says_checksum(f) || strcmp(said, is) == 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s' is damaged: its checksum is %s, and it says %s; use another copy, or "
                    "leave '%s' and '%s' out of a file that was changed on purpose",
                    f->path, is, said[0] != '\0' ? said : "none that can be read", checksum_kind,
                    checksum_name);
}

/* ---- numbers ---- */

static double of_half(uint16_t h)
{
    int exponent = (h >> 10) & 31, fraction = h & 1023;
    double size = exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                  : exponent > 0 ? ldexp(1024 + fraction, exponent - 25)
                                 : ldexp(fraction, -24);

    return h >> 15 != 0 ? -size : size;
}

static double of_bfloat16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* Number i of a chunk of the file. */
static double value_at(const struct ghp_safetensor *t, const void *chunk, int64_t i)
{
    switch (t->dtype) {
    case GHP_DTYPE_FLOAT: return (double)((const float *)chunk)[i];
    case GHP_DTYPE_DOUBLE: return ((const double *)chunk)[i];
    case GHP_DTYPE_HALF: return of_half(((const uint16_t *)chunk)[i]);
    case GHP_DTYPE_BFLOAT16: return of_bfloat16(((const uint16_t *)chunk)[i]);
    case GHP_DTYPE_OTHER: break;
    }
    return NAN;
}

/* n numbers from the file, n <= CONVERTED_AT_ONCE. */
static bool read_some(FILE *file, const struct ghp_safetensor *t, int element_bytes, int64_t n,
                      void *out)
{
    double chunk[CONVERTED_AT_ONCE]; /* room for the widest */

    if (t->element_bytes == element_bytes)
        return fread(out, (size_t)element_bytes, (size_t)n, file) == (size_t)n;
    if (fread(chunk, (size_t)t->element_bytes, (size_t)n, file) != (size_t)n) return false;
    for (int64_t i = 0; i < n; i++) {
        if (element_bytes == 8)
            ((double *)out)[i] = value_at(t, chunk, i);
        else
            ((float *)out)[i] = (float)value_at(t, chunk, i);
    }
    return true;
}

enum ghp_status ghp_safetensors_read(struct ghp_safetensors *f, const struct ghp_safetensor *t,
                                     int element_bytes, void *values)
{
    int64_t n = t->bytes / t->element_bytes;
    bool good;

    if (t->dtype == GHP_DTYPE_OTHER)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' in '%s' is not of floating-point numbers; store it as F32, F64, F16 "
                        "or BF16",
                        t->name, f->path);
    good = fseeko(f->file, (off_t)(f->data_at + t->offset), SEEK_SET) == 0;
    for (int64_t done = 0; good && done < n; done += CONVERTED_AT_ONCE) {
        int64_t some = n - done < CONVERTED_AT_ONCE ? n - done : CONVERTED_AT_ONCE;

        good = read_some(f->file, t, element_bytes, some, (char *)values + done * element_bytes);
    }
    if (good) return GHP_OK;
    return GHP_FAIL(GHP_ERR_IO, "cannot read '%s' from '%s': %s; see that the file is complete",
                    t->name, f->path, strerror(errno));
}
