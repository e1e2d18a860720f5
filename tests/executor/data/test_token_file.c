/* What a file of token ids is taken for: each type of ids bare and as NumPy's, and what is refused with the words to
 * type instead. */
#include "executor/data/token_file.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKENS = 40, VOCABULARY = 50257, LARGE_VOCABULARY = 128256 };

static char path[64];

static int64_t id_of(int64_t i)
{
    return 300 + i * 997 % 49000;
}

/* Writes the ids as little-endian numbers after `head`. */
static void write_ids(const char *head, size_t head_bytes, int width)
{
    FILE *file = fopen(path, "wb");

    if (!CHECK(file != NULL)) return;
    fwrite(head, 1, head_bytes, file);
    for (int64_t i = 0; i < TOKENS; i++) {
        int64_t id = id_of(i);

        fwrite(&id, 1, (size_t)width, file);
    }
    fclose(file);
}

static void write_text(const char *text, size_t n)
{
    FILE *file = fopen(path, "wb");

    if (CHECK(file != NULL)) fwrite(text, 1, n, file);
    if (file != NULL) fclose(file);
}

/* A header of .npy for integers of this kind and width, and a shape. */
static size_t write_npy(const char *descr, const char *shape, char *head, size_t room)
{
    int n = snprintf(head + 10, room - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", descr, shape);

    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = (char)n;
    head[9] = 0;
    return (size_t)n + 10;
}

static void check_taken(const char *type)
{
    struct ghp_token_format format = {.type = type, .vocabulary = VOCABULARY};
    struct ghp_token_file file = {.path = path};

    if (!CHECK_STATUS(ghp_token_file_open(&format, &file), GHP_OK)) return;
    CHECK_EQ(file.tokens, TOKENS);
    for (int64_t i = 0; i < TOKENS; i++)
        CHECK_EQ(ghp_token_file_at(&file, i), id_of(i));
    ghp_token_file_close(&file);
}

static void check_refused(struct ghp_token_format format, enum ghp_status status,
                          const char *message)
{
    struct ghp_token_file file = {.path = path};

    if (format.vocabulary == 0) format.vocabulary = VOCABULARY;
    CHECK_STATUS(ghp_token_file_open(&format, &file), status);
    CHECK_MESSAGE(message);
    ghp_token_file_close(&file);
}

static void check_bare(void)
{
    write_ids("", 0, 2);
    check_taken(NULL);
    check_taken("uint16");
    check_refused((struct ghp_token_format){.type = "int16"}, GHP_ERR_INPUT, "has the id -");
    check_refused((struct ghp_token_format){.type = "uint8"}, GHP_ERR_USAGE,
                  "unknown type of tokens 'uint8'");
    check_refused((struct ghp_token_format){.type = "uint16", .bytes = true}, GHP_ERR_USAGE,
                  "leave type=uint16 out");
    write_ids("", 0, 4);
    check_taken("uint32");
    check_taken("int32");
    check_refused((struct ghp_token_format){0}, GHP_ERR_FORMAT, "type=uint32");
    check_refused((struct ghp_token_format){.vocabulary = LARGE_VOCABULARY}, GHP_ERR_FORMAT,
                  "type=uint32");
    write_ids("", 0, 8);
    check_taken("int64");
    check_refused((struct ghp_token_format){0}, GHP_ERR_FORMAT, "type=int64");
    check_refused((struct ghp_token_format){.vocabulary = LARGE_VOCABULARY}, GHP_ERR_FORMAT,
                  "type=int64");
    write_ids("\0\0", 2, 4);
    check_refused((struct ghp_token_format){.type = "int32"}, GHP_ERR_FORMAT,
                  "not a multiple of int32's 4");
}

static void check_numpy(void)
{
    static const char *const descr[] = {"<u2", "<i4", "<u4", "<i8", "<u8"};
    static const int width[] = {2, 4, 4, 8, 8};
    char head[128];

    for (size_t i = 0; i < sizeof width / sizeof width[0]; i++) {
        write_ids(head, write_npy(descr[i], "40,", head, sizeof head), width[i]);
        check_taken(NULL);
        check_refused((struct ghp_token_format){.type = "uint32"}, GHP_ERR_USAGE,
                      "says its type itself");
    }
    write_ids(head, write_npy("<i2", "40,", head, sizeof head), 2);
    check_refused((struct ghp_token_format){0}, GHP_ERR_INPUT, "has the id -");
    write_ids(head, write_npy("<f4", "40,", head, sizeof head), 4);
    check_refused((struct ghp_token_format){0}, GHP_ERR_INPUT, "integers of one dimension");
    write_ids(head, write_npy("<u2", "4, 10", head, sizeof head), 2);
    check_refused((struct ghp_token_format){0}, GHP_ERR_INPUT, "array.reshape(-1)");
}

static void check_others(void)
{
    static const char text[] =
        "To be, or not to be: that is the question.\nWhether 'tis nobler in the mind to suffer";

    write_text(text, 80);
    check_refused((struct ghp_token_format){0}, GHP_ERR_FORMAT,
                  "is text, not token ids; write its ids with a "
                  "tokenizer, or take its bytes as tokens with bytes:");
    write_text("PK\x03\x04 and more", 13);
    check_refused((struct ghp_token_format){0}, GHP_ERR_FORMAT, "a zip archive");
    write_text("\x1f\x8b\x08 and more.", 14);
    check_refused((struct ghp_token_format){0}, GHP_ERR_FORMAT, "compressed by gzip");
}

CHECK_TEST(token_file)
{
    int fd;

    snprintf(path, sizeof path, "/tmp/ghp-test-token-file-XXXXXX");
    fd = mkstemp(path);
    if (!CHECK(fd >= 0)) return check_end();
    close(fd);
    check_bare();
    check_numpy();
    check_others();
    unlink(path);
    return check_end();
}
