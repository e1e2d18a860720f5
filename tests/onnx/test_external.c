/* tests/onnx/test_external.c - values that an ONNX file has in another file: only the tensor's range of it is read, and
 * no file outside the model's folder is, whatever links say. */
#include "core/base/file.h"
#include "onnx/file/file.h"
#include "tests/check.h"
#include "tests/core/base/no_memory.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOM = 512 };

static char folder[64], outside[64]; /* side by side */
static const float two[2] = {1.5f, -2};

/* One field of a message: its number, and n bytes, fewer than 128. */
static size_t put_field(unsigned char *at, int number, const void *bytes, size_t n)
{
    at[0] = (unsigned char)(number << 3 | 2);
    at[1] = (unsigned char)n;
    memcpy(at + 2, bytes, n);
    return n + 2;
}

static size_t put_entry(unsigned char *at, const char *key, const char *value)
{
    unsigned char entry[128];
    size_t n = put_field(entry, 1, key, strlen(key));

    n += put_field(entry + n, 2, value, strlen(value));
    return put_field(at, 13, entry, n);
}

/* Reads a tensor of two floats, described by a file in the folder, whose values are at a place and offset. */
static enum ghp_status read_at(const char *location, const char *offset, float *values)
{
    unsigned char message[ROOM] = {1 << 3, 2, 2 << 3, GHP_ONNX_FLOAT};
    struct ghp_onnx_file file;
    char path[80];
    size_t n = 4;
    enum ghp_status status;

    n += put_entry(message + n, "location", location);
    n += put_entry(message + n, "offset", offset);
    message[n++] = 14 << 3; /* held elsewhere */
    message[n++] = 1;
    snprintf(path, sizeof path, "%s/tensor", folder);
    CHECK_STATUS(ghp_file_write_atomic(path, message, n), GHP_OK);
    GHP_TRY(ghp_onnx_file_open_tensor(path, &file));
    status = ghp_onnx_tensor_floats(&file, file.tensors, values);
    ghp_onnx_file_close(&file);
    return status;
}

/* Bytes that this process has read so far; -1: the system does not say. */
static long long bytes_read(void)
{
    FILE *file = fopen("/proc/self/io", "r");
    long long n = -1;

    if (file == NULL) return -1;
    if (fscanf(file, "rchar: %lld", &n) != 1) n = -1;
    fclose(file);
    return n;
}

/* Two floats in the middle of a file of 256 MiB. */
static void check_range(void)
{
    const long long mib = 1 << 20;
    float values[2] = {0};
    long long began;
    char path[80];
    FILE *file;

    snprintf(path, sizeof path, "%s/weights", folder);
    file = fopen(path, "wb");
    if (!CHECK(file != NULL)) return;
    CHECK(fseek(file, 128 * mib, SEEK_SET) == 0 && fwrite(two, sizeof two, 1, file) == 1);
    CHECK(fclose(file) == 0 && truncate(path, 256 * mib) == 0);
    began = bytes_read();
    CHECK_STATUS(read_at("weights", "134217728", values), GHP_OK);
    CHECK(values[0] == two[0] && values[1] == two[1]);
    if (began >= 0) CHECK(bytes_read() - began < mib);
    CHECK_STATUS(read_at("weights", "268435448", values), GHP_OK); /* the last two */
    CHECK_STATUS(read_at("weights", "268435449", values), GHP_ERR_FORMAT);
    CHECK_MESSAGE("does not have the values of tensor");
}

/* Links that stay in the folder are followed; others, of files and of folders, are not. */
static void check_links(void)
{
    float values[2];
    char from[80], to[160];

    snprintf(from, sizeof from, "%s/secret", outside);
    CHECK_STATUS(ghp_file_write_atomic(from, two, sizeof two), GHP_OK);
    snprintf(to, sizeof to, "%s/leads", folder);
    CHECK_EQ(symlink(from, to), 0);
    CHECK_STATUS(read_at("leads", "0", values), GHP_ERR_INPUT);
    CHECK_MESSAGE("is a link out of the model's folder; put the file itself there");
    snprintf(to, sizeof to, "%s/below", folder);
    CHECK_EQ(symlink(outside, to), 0);
    CHECK_STATUS(read_at("below/secret", "0", values), GHP_ERR_INPUT);
    CHECK_MESSAGE("is a link out of the model's folder");
    snprintf(to, sizeof to, "%s/stays", folder);
    CHECK_EQ(symlink("weights", to), 0);
    CHECK_STATUS(read_at("stays", "134217728", values), GHP_OK);
    CHECK(values[0] == two[0]);
    CHECK_STATUS(read_at("../nowhere", "0", values), GHP_ERR_FORMAT);
    CHECK_MESSAGE("save the model with a relative location");
}

/* A tensor whose place is a link out of the folder is refused; its file was written before. */
static enum ghp_status refuse(void *tensor)
{
    struct ghp_onnx_file file;
    float values[2];
    enum ghp_status status;

    GHP_TRY(ghp_onnx_file_open_tensor(tensor, &file));
    status = ghp_onnx_tensor_floats(&file, file.tensors, values);
    ghp_onnx_file_close(&file);
    CHECK(status != GHP_OK);
    return status == GHP_ERR_INPUT ? GHP_OK : status;
}

int main(void)
{
    char path[80];
    float unused;

    snprintf(folder, sizeof folder, "%s/model", check_folder());
    snprintf(outside, sizeof outside, "%s/outside", check_folder());
    if (!CHECK(mkdir(folder, 0700) == 0 && mkdir(outside, 0700) == 0)) return check_end();
    check_range();
    check_links();
    CHECK_STATUS(read_at("leads", "0", &unused), GHP_ERR_INPUT);
    snprintf(path, sizeof path, "%s/tensor", folder);
    no_memory_each("looking where a link leads", refuse, path);
    return check_end();
}
