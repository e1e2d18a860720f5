/* The format byte by byte against a file made by hand, a round trip in both precisions, and files that are wrong. */
#include "core/model/safetensors.h"
#include "tests/check.h"
#include "tests/core/base/no_memory.h"

#include <unistd.h>

static char path[80];

static void write_bytes(const char *header, size_t data_bytes)
{
    static const float values[6] = {1, 2, 3, 4, 5, 6.5f};
    uint64_t n = strlen(header);
    FILE *file = fopen(path, "wb");

    fwrite(&n, 8, 1, file);
    fwrite(header, 1, n, file);
    fwrite(values, 1, data_bytes, file);
    fclose(file);
}

static void check_reading(void)
{
    struct ghp_safetensors *file = NULL;
    const struct ghp_safetensor *t;
    double wide[6];
    float narrow[6];

    write_bytes("{\"__metadata__\":{\"step\":\"7\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],"
                "\"data_offsets\":[0,24]}}  ",
                24);
    if (!CHECK_STATUS(ghp_safetensors_open(path, &file), GHP_OK)) return;
    CHECK_EQ(ghp_safetensors_count(file), 1);
    CHECK_TEXT(ghp_safetensors_metadata(file, "step"), "7");
    CHECK(ghp_safetensors_metadata(file, "none") == NULL);
    CHECK(ghp_safetensors_find(file, "b") == NULL);
    t = ghp_safetensors_find(file, "a");
    CHECK(t != NULL && t->n_dims == 2 && t->dims[0] == 2 && t->dims[1] == 3);
    CHECK_STATUS(ghp_safetensors_read(file, t, 4, narrow), GHP_OK);
    CHECK_STATUS(ghp_safetensors_read(file, t, 8, wide), GHP_OK);
    for (int i = 0; i < 6; i++)
        CHECK((double)narrow[i] == wide[i]);
    CHECK(wide[5] == 6.5);
    ghp_safetensors_close(file);
}

static void check_refusals(void)
{
    struct ghp_safetensors *file = NULL;

    write_bytes("{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", 20);
    CHECK_STATUS(ghp_safetensors_open(path, &file), GHP_ERR_FORMAT);
    CHECK_MESSAGE("truncated");
    write_bytes("{\"a\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[0,24]}}", 24);
    CHECK_STATUS(ghp_safetensors_open(path, &file), GHP_ERR_FORMAT);
    write_bytes("{\"a\":{\"dtype\":\"Q7\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", 24);
    CHECK_STATUS(ghp_safetensors_open(path, &file), GHP_ERR_FORMAT);
    write_bytes("{\"a\":{\"dtype\"", 0);
    CHECK_STATUS(ghp_safetensors_open(path, &file), GHP_ERR_FORMAT);
    truncate(path, 3);
    CHECK_STATUS(ghp_safetensors_open(path, &file), GHP_ERR_FORMAT);
    unlink(path);
    CHECK_STATUS(ghp_safetensors_open(path, &file), GHP_ERR_IO);
}

static void check_round_trip(int element_bytes)
{
    enum { N = 5000 };
    struct ghp_safetensor tensors[] = {
        {.name = "w \"1\"", .element_bytes = element_bytes, .n_dims = 2, .dims = {50, 100}},
        {.name = "b", .element_bytes = element_bytes, .n_dims = 1, .dims = {3}}};
    struct ghp_metadatum metadata[] = {{"format", "x/1"}, {"seed", "18446744073709551615"}};
    struct ghp_safetensors_list list = {
        .n = 2, .tensors = tensors, .n_metadata = 2, .metadata = metadata};
    struct ghp_safetensors_writer *writer = NULL;
    struct ghp_safetensors *file = NULL;
    double out[N] = {0}, in[N];
    float narrow[N];

    for (int i = 0; i < N; i++) {
        out[i] = 1.0 / (i + 1);
        narrow[i] = (float)out[i];
    }
    CHECK_STATUS(ghp_safetensors_begin(path, &list, &writer), GHP_OK);
    CHECK(access(path, F_OK) != 0); /* appears only when complete */
    CHECK_STATUS(ghp_safetensors_append(writer, element_bytes == 8 ? (void *)out : (void *)narrow,
                                        N * element_bytes),
                 GHP_OK);
    CHECK_STATUS(ghp_safetensors_append(writer, element_bytes == 8 ? (void *)out : (void *)narrow,
                                        3 * element_bytes),
                 GHP_OK);
    CHECK_STATUS(ghp_safetensors_finish(writer), GHP_OK);
    if (!CHECK_STATUS(ghp_safetensors_open(path, &file), GHP_OK)) return;
    CHECK_TEXT(ghp_safetensors_metadata(file, "seed"), "18446744073709551615");
    CHECK_STATUS(ghp_safetensors_read(file, ghp_safetensors_find(file, "w \"1\""), 8, in), GHP_OK);
    for (int i = 0; i < N; i++)
        CHECK(in[i] == (element_bytes == 8 ? out[i] : (double)narrow[i]));
    CHECK_STATUS(ghp_safetensors_read(file, ghp_safetensors_find(file, "b"), 4, narrow), GHP_OK);
    CHECK(narrow[2] == (float)out[2]);
    ghp_safetensors_close(file);
    unlink(path);
    CHECK_STATUS(ghp_safetensors_begin(path, &list, &writer), GHP_OK);
    ghp_safetensors_abandon(writer);
    CHECK(access(path, F_OK) != 0);
}

/* A file that names its content: whichever of its bits is changed, the file does not open, or its check fails. Files of
 * before, without a word that they have a checksum, are checked all the same. */
static void check_checksum(void)
{
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    struct ghp_safetensor tensor = {.name = "a", .element_bytes = 4, .n_dims = 1, .dims = {6}};
    struct ghp_metadatum text = {"step", "\"xxh3\":\"0000000000000000"};
    const struct ghp_safetensors_list list = {
        .n = 1, .tensors = &tensor, .n_metadata = 1, .metadata = &text, .checksum = true};
    struct ghp_safetensors_writer *writer = NULL;
    struct ghp_safetensors *file = NULL;
    long bytes, unnoticed = 0, checksum_at = -1;
    char header[256] = "", *found;
    FILE *raw;

    CHECK_EQ(ghp_safetensors_sum("", 0), (int64_t)UINT64_C(0x2d06800538d394c2)); /* as published */
    CHECK_STATUS(ghp_safetensors_begin(path, &list, &writer), GHP_OK);
    CHECK_STATUS(ghp_safetensors_append(writer, values, sizeof values), GHP_OK);
    CHECK_STATUS(ghp_safetensors_sync(writer), GHP_OK);
    CHECK(access(path, F_OK) != 0);
    CHECK_STATUS(ghp_safetensors_finish(writer), GHP_OK);
    if (!CHECK_STATUS(ghp_safetensors_open(path, &file), GHP_OK)) return;
    CHECK_STATUS(ghp_safetensors_check(file), GHP_OK);
    CHECK_TEXT(ghp_safetensors_metadata(file, "step"), text.value);
    ghp_safetensors_close(file);
    raw = fopen(path, "r+b");
    CHECK(raw != NULL && fseek(raw, 0, SEEK_END) == 0);
    bytes = ftell(raw);
    for (long bit = 0; bit < 8 * bytes; bit++) {
        int byte;

        CHECK(fseek(raw, bit / 8, SEEK_SET) == 0);
        byte = fgetc(raw);
        CHECK(fseek(raw, bit / 8, SEEK_SET) == 0 && fputc(byte ^ 1 << bit % 8, raw) != EOF &&
              fflush(raw) == 0);
        if (ghp_safetensors_open(path, &file) == GHP_OK && ghp_safetensors_check(file) == GHP_OK)
            unnoticed++;
        ghp_safetensors_close(file);
        CHECK(fseek(raw, bit / 8, SEEK_SET) == 0 && fputc(byte, raw) != EOF);
    }
    CHECK_EQ(unnoticed, 0);
    /* another word in its place: the file's sum is another one, and is looked at */
    CHECK(fflush(raw) == 0 && fseek(raw, 8, SEEK_SET) == 0);
    CHECK(fread(header, 1, sizeof header - 1, raw) > 0);
    found = strstr(header, "\"checksum\":");
    if (CHECK(found != NULL)) checksum_at = 8 + (found - header) + 1;
    CHECK(fseek(raw, checksum_at, SEEK_SET) == 0 && fputs("formerly", raw) != EOF);
    fclose(raw);
    CHECK_STATUS(ghp_safetensors_open(path, &file), GHP_OK);
    CHECK(ghp_safetensors_has_checksum(file) && ghp_safetensors_metadata(file, "checksum") == NULL);
    CHECK_STATUS(ghp_safetensors_check(file), GHP_ERR_FORMAT);
    CHECK_MESSAGE("use another copy");
    ghp_safetensors_close(file);
    unlink(path);
}

/* Writes a file of three tensors and two texts; the file, where it was written, has them all.
 *
 * format   the first text: its length decides where the header's text grows */
static enum ghp_status write_all(void *format)
{
    static const double values[6] = {1, 2, 3, 4, 5, 6};
    struct ghp_safetensor tensors[] = {
        {.name = "a.weight", .element_bytes = 8, .n_dims = 2, .dims = {2, 3}},
        {.name = "a.bias", .element_bytes = 8, .n_dims = 1, .dims = {2}},
        {.name = "b.weight", .element_bytes = 4, .n_dims = 3, .dims = {1, 2, 1}}};
    struct ghp_metadatum metadata[] = {{"format", format}, {"step", "7"}};
    const struct ghp_safetensors_list list = {
        .n = 3, .tensors = tensors, .n_metadata = 2, .metadata = metadata};
    struct ghp_safetensors_writer *writer = NULL;
    struct ghp_safetensors *file = NULL;
    enum ghp_status status;

    status = ghp_safetensors_begin(path, &list, &writer);
    for (int i = 0; status == GHP_OK && i < 3; i++)
        status = ghp_safetensors_append(writer, values, tensors[i].bytes);
    if (status != GHP_OK) {
        ghp_safetensors_abandon(writer);
        return status;
    }
    status = ghp_safetensors_finish(writer);
    no_memory_after = -2 - no_memory_after; /* what was written is read undisturbed */
    if (status == GHP_OK && CHECK_STATUS(ghp_safetensors_open(path, &file), GHP_OK)) {
        CHECK_EQ(ghp_safetensors_count(file), 3);
        for (int i = 0; i < 3; i++) {
            const struct ghp_safetensor *t = ghp_safetensors_find(file, tensors[i].name);

            if (!CHECK(t != NULL)) continue;
            CHECK_EQ(t->n_dims, tensors[i].n_dims);
            for (int d = 0; d < t->n_dims; d++)
                CHECK_EQ(t->dims[d], tensors[i].dims[d]);
        }
        CHECK_TEXT(ghp_safetensors_metadata(file, "format"), format);
        CHECK_TEXT(ghp_safetensors_metadata(file, "step"), "7");
    }
    ghp_safetensors_close(file);
    no_memory_after = -2 - no_memory_after;
    return status;
}

/* Opens the file; all of it is there. */
static enum ghp_status read_all(void *context)
{
    struct ghp_safetensors *file = NULL;
    enum ghp_status status = ghp_safetensors_open(path, &file);

    (void)context;
    if (status == GHP_OK) CHECK_EQ(ghp_safetensors_count(file), 3);
    ghp_safetensors_close(file);
    return status;
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/ghp-test-%ld.safetensors", (long)getpid());
    check_reading();
    check_refusals();
    check_round_trip(4);
    check_round_trip(8);
    check_checksum();
    for (int n = 0; n < 15; n++) { /* formats of 3, 5 ... 31 characters */
        char format[64];

        snprintf(format, sizeof format, "x/1%.*s", 2 * n, "yzyzyzyzyzyzyzyzyzyzyzyzyzyz");
        no_memory_each("writing", write_all, format);
    }
    no_memory_each("reading", read_all, NULL);
    unlink(path);
    return check_end();
}
