/* onnx/file/tensor.c - tensors of an ONNX file: their shapes, and their values in whichever way they are held. */
#include "onnx/file/file_private.h"

#include "core/base/file.h"
#include "core/base/units.h"

#include <onnx.pb-c.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool ghp_onnx_type_whole(int type)
{
    return type == GHP_ONNX_INT64 || type == GHP_ONNX_INT32 || type == GHP_ONNX_INT8 ||
           type == GHP_ONNX_UINT8 || type == GHP_ONNX_BOOL;
}

bool ghp_onnx_type_real(int type)
{
    return type == GHP_ONNX_FLOAT || type == GHP_ONNX_DOUBLE || type == GHP_ONNX_FLOAT16 ||
           type == GHP_ONNX_BFLOAT16;
}

static int type_bytes(int type)
{
    switch (type) {
    case GHP_ONNX_INT64:
    case GHP_ONNX_DOUBLE: return 8;
    case GHP_ONNX_FLOAT:
    case GHP_ONNX_INT32: return 4;
    case GHP_ONNX_FLOAT16:
    case GHP_ONNX_BFLOAT16: return 2;
    default: return 1;
    }
}

/* Values in the field of the tensor's type. */
static size_t typed_values(const Onnx__TensorProto *t)
{
    switch (t->data_type) {
    case GHP_ONNX_FLOAT: return t->n_float_data;
    case GHP_ONNX_DOUBLE: return t->n_double_data;
    case GHP_ONNX_INT64: return t->n_int64_data;
    default: return t->n_int32_data;
    }
}

static enum ghp_status find_location(const Onnx__TensorProto *t, struct ghp_onnx_tensor *out)
{
    for (size_t i = 0; i < t->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = t->external_data[i];

        if (strcmp(ghp_onnx_text_of(entry->key), "location") == 0)
            out->location = ghp_onnx_text_of(entry->value);
        if (strcmp(ghp_onnx_text_of(entry->key), "offset") == 0)
            out->location_offset = strtoll(ghp_onnx_text_of(entry->value), NULL, 10);
    }
    if (out->location == NULL || out->location[0] == '\0' || out->location[0] == '/' ||
        strstr(out->location, "..") != NULL || out->location_offset < 0)
        return GHP_FAIL(
            GHP_ERR_FORMAT,
            "tensor '%s' names no file next to the model for its values; save the model "
            "with a relative location",
            out->name);
    return GHP_OK;
}

enum ghp_status ghp_onnx_tensor_read(const void *message, struct ghp_onnx_tensor *out)
{
    const Onnx__TensorProto *t = message;

    *out = (struct ghp_onnx_tensor){
        .name = ghp_onnx_text_of(t->name), .type = t->data_type, .elements = 1, .message = t};
    if (t->n_dims > GHP_ONNX_MAX_DIMS)
        return GHP_FAIL(GHP_ERR_FORMAT, "tensor '%s' has %zu dimensions; use at most %d", out->name,
                        t->n_dims, GHP_ONNX_MAX_DIMS);
    out->n_dims = (int)t->n_dims;
    for (int i = 0; i < out->n_dims; i++) {
        out->dims[i] = t->dims[i];
        if (out->dims[i] < 0 || !ghp_product_fits(out->elements, out->dims[i], INT64_C(1) << 40))
            return GHP_FAIL(
                GHP_ERR_FORMAT,
                "dimension %d of tensor '%s' is %" PRId64
                ", which cannot be a size of a tensor of at most 2^40 elements; repair it",
                i, out->name, out->dims[i]);
        out->elements *= out->dims[i];
    }
    if (!ghp_onnx_type_whole(out->type) && !ghp_onnx_type_real(out->type)) return GHP_OK;
    if (t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return find_location(t, out);
    if (t->has_raw_data ? (int64_t)t->raw_data.len != out->elements * type_bytes(out->type)
                        : (int64_t)typed_values(t) != out->elements)
        return GHP_FAIL(
            GHP_ERR_FORMAT,
            "tensor '%s' does not have the %" PRId64
            " values that its shape says; the file is truncated or damaged: get it again",
            out->name, out->elements);
    return GHP_OK;
}

/* Reads the tensor's part of the open file. */
static enum ghp_status read_range(int fd, const char *path, const struct ghp_onnx_tensor *tensor,
                                  char **owned)
{
    size_t bytes = (size_t)(tensor->elements * type_bytes(tensor->type)), n = 0;
    struct stat about;

    if (fstat(fd, &about) != 0) return ghp_file_fail_read(path, errno);
    if ((int64_t)about.st_size < (int64_t)bytes ||
        tensor->location_offset > (int64_t)about.st_size - (int64_t)bytes)
        return GHP_FAIL(
            GHP_ERR_FORMAT,
            "%s: does not have the values of tensor '%s'; put the file that belongs to the "
            "model there",
            path, tensor->name);
    *owned = ghp_alloc(bytes, 1);
    if (*owned == NULL) return GHP_NO_MEMORY();
    while (n < bytes) {
        ssize_t got =
            pread(fd, *owned + n, bytes - n, (off_t)(tensor->location_offset + (int64_t)n));

        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            free(*owned);
            *owned = NULL;
            return ghp_file_fail_read(path, got < 0 ? errno : EIO);
        }
        n += (size_t)got;
    }
    return GHP_OK;
}

/* The folder of a file as the system resolves it, owned by the caller; NULL with errno.
 *
 * by_name   the folder in which its name is; else the folder of what it is a link to */
static char *folder_of(const char *path, bool by_name)
{
    char *copy = by_name ? strdup(path) : realpath(path, NULL);
    char *slash = copy != NULL ? strrchr(copy, '/') : NULL, *folder;

    if (copy == NULL) return NULL;
    if (slash != NULL) slash[1] = '\0';
    folder = realpath(slash != NULL ? copy : ".", NULL);
    free(copy);
    return folder;
}

/* Whether a resolved file is in a resolved folder, or below. */
static bool is_below(const char *file, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(file, folder, n) == 0 && (file[n] == '/' || n == 1);
}

/* Refuses a link that leads out of the model's folder: a model of somebody else would read any file. The folder that
 * the model's own name is a link into counts, too, as in the cache of Hugging Face's hub. */
static enum ghp_status check_place(const char *model, const char *path)
{
    char *real = realpath(path, NULL);
    bool inside = real == NULL && errno != ENOMEM; /* opening says why */
    bool no_memory = real == NULL && errno == ENOMEM;

    for (int by_name = 0; by_name < 2 && !inside && !no_memory; by_name++) {
        char *folder = folder_of(model, by_name);

        no_memory = folder == NULL && errno == ENOMEM;
        inside = real != NULL && folder != NULL && is_below(real, folder);
        free(folder);
    }
    free(real);
    if (no_memory) return GHP_NO_MEMORY();
    if (inside) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' is a link out of the model's folder; put the file itself there", path);
}

/* Raw values of a tensor, from the message or from the file next to the model (then *owned is to be freed); NULL if
 * they are in a typed field. */
static enum ghp_status raw_values(const struct ghp_onnx_file *file,
                                  const struct ghp_onnx_tensor *tensor, const unsigned char **raw,
                                  char **owned)
{
    const Onnx__TensorProto *t = tensor->message;
    const char *slash = strrchr(file->path, '/');
    int folder = slash == NULL ? 0 : (int)(slash - file->path) + 1;
    enum ghp_status status;
    size_t room;
    char *path;
    int fd = -1;

    *owned = NULL;
    *raw = t->has_raw_data ? t->raw_data.data : NULL;
    if (tensor->location == NULL) return GHP_OK;
    room = (size_t)folder + strlen(tensor->location) + 1;
    path = ghp_alloc(room, 1); /* whole: a path that is cut names another file */
    if (path == NULL) return GHP_NO_MEMORY();
    snprintf(path, room, "%.*s%s", folder, file->path, tensor->location);
    status = check_place(file->path, path);
    if (status == GHP_OK) status = ghp_file_open(path, &fd);
    if (status == GHP_OK) status = read_range(fd, path, tensor, owned);
    if (fd >= 0) close(fd);
    free(path);
    *raw = (const unsigned char *)*owned;
    return status;
}

static int64_t whole_number(const unsigned char *raw, int type, int64_t i)
{
    int64_t wide;
    int32_t narrow;

    switch (type) {
    case GHP_ONNX_INT64: memcpy(&wide, raw + 8 * i, 8); return wide;
    case GHP_ONNX_INT32: memcpy(&narrow, raw + 4 * i, 4); return narrow;
    case GHP_ONNX_INT8: return (int8_t)raw[i];
    default: return raw[i];
    }
}

enum ghp_status ghp_onnx_tensor_ints(const struct ghp_onnx_file *file,
                                     const struct ghp_onnx_tensor *tensor, int64_t *values)
{
    const Onnx__TensorProto *t = tensor->message;
    const unsigned char *raw;
    char *owned;

    if (!ghp_onnx_type_whole(tensor->type))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "tensor '%s' has elements of type %d, where whole numbers are wanted; use "
                        "int64",
                        tensor->name, tensor->type);
    GHP_TRY(raw_values(file, tensor, &raw, &owned));
    for (int64_t i = 0; i < tensor->elements; i++)
        values[i] = raw != NULL                      ? whole_number(raw, tensor->type, i)
                    : tensor->type == GHP_ONNX_INT64 ? t->int64_data[i]
                                                     : t->int32_data[i];
    free(owned);
    return GHP_OK;
}

/* IEEE half precision: sign, 5 bits of exponent, 10 of fraction. */
static float half_number(uint32_t bits)
{
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023, sign = (bits & 0x8000) << 16,
             whole;
    float value;

    if (exponent == 0) {
        value = (float)fraction * 0x1p-24f;
        return sign != 0 ? -value : value;
    }
    whole = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &whole, sizeof value);
    return value;
}

static float narrow_number(uint32_t bits, int type)
{
    float value;

    if (type == GHP_ONNX_FLOAT16) return half_number(bits);
    bits <<= 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float real_number(const unsigned char *raw, int type, int64_t i)
{
    double wide;
    float value;
    uint16_t bits;

    switch (type) {
    case GHP_ONNX_DOUBLE: memcpy(&wide, raw + 8 * i, 8); return (float)wide;
    case GHP_ONNX_FLOAT: memcpy(&value, raw + 4 * i, 4); return value;
    default: memcpy(&bits, raw + 2 * i, 2); return narrow_number(bits, type);
    }
}

enum ghp_status ghp_onnx_tensor_floats(const struct ghp_onnx_file *file,
                                       const struct ghp_onnx_tensor *tensor, float *values)
{
    const Onnx__TensorProto *t = tensor->message;
    const unsigned char *raw;
    char *owned;

    if (!ghp_onnx_type_real(tensor->type))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "tensor '%s' has elements of type %d, where floating-point numbers are "
                        "wanted; use float",
                        tensor->name, tensor->type);
    GHP_TRY(raw_values(file, tensor, &raw, &owned));
    for (int64_t i = 0; i < tensor->elements; i++)
        values[i] = raw != NULL                      ? real_number(raw, tensor->type, i)
                    : tensor->type == GHP_ONNX_FLOAT ? t->float_data[i]
                    : tensor->type == GHP_ONNX_DOUBLE
                        ? (float)t->double_data[i]
                        : narrow_number((uint32_t)t->int32_data[i] & 0xffff, tensor->type);
    free(owned);
    return GHP_OK;
}
