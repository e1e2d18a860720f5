/* Files of tokens: every kind of them, their windows compared with the definition, and every way in which they can be
 * wrong. */
#include "executor/data/tokens.h"
#include "tests/check.h"

#include <sys/stat.h>
#include <unistd.h>

enum { S = 4, VOCABULARY = 50, HEADER = 256, MOST_TOKENS = 64 };

static const char *folder;

enum kind { BYTES, BARE, SHARD16, SHARD32, KINDS };

static const char *path_of(const char *name)
{
    static char paths[2][256];
    static int turn;

    turn = !turn;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
    return paths[turn];
}

static void write_file(const char *name, const void *bytes, size_t n)
{
    FILE *file = fopen(path_of(name), "wb");

    CHECK(file != NULL && fwrite(bytes, 1, n, file) == n);
    if (file != NULL) fclose(file);
}

/* The definition: token i of a file that begins with `first`. */
static int32_t token(int first, int64_t i)
{
    return (int32_t)((first + i * 7) % VOCABULARY);
}

/* Returns   the file's bytes; those given to `less` are left away at its end */
static size_t write_tokens(const char *name, enum kind kind, int first, int n, size_t less)
{
    static unsigned char bytes[4 * (HEADER + MOST_TOKENS)];
    int32_t header[HEADER] = {kind == SHARD16 ? 20240520 : 20240801, kind == SHARD16 ? 1 : 7, n};
    size_t at = kind >= SHARD16 ? sizeof header : 0, width = kind == BYTES     ? 1
                                                             : kind == SHARD32 ? 4
                                                                               : 2;

    memcpy(bytes, header, at);
    for (int i = 0; i < n; i++, at += width) {
        int32_t id = token(first, i);

        memcpy(bytes + at, &id, width); /* little-endian */
    }
    write_file(name, bytes, at - less);
    return at - less;
}

static enum ghp_status open_list(const char *files, enum kind kind, struct ghp_tokens **tokens)
{
    struct ghp_tokens_request request = {
        .files = files,
        .format = {.bytes = kind == BYTES, .vocabulary = VOCABULARY},
        .positions = S};

    return ghp_tokens_open(&request, tokens);
}

/* A window is tokens [i s, i s + s] of its file. */
static void check_window(const struct ghp_tokens *tokens, int64_t window, int first, int64_t at)
{
    int32_t ids[S], labels[S], alone[S];

    ghp_tokens_window(tokens, window, ids, labels);
    for (int i = 0; i < S; i++) {
        CHECK_EQ(ids[i], token(first, at * S + i));
        CHECK_EQ(labels[i], token(first, at * S + i + 1));
    }
    ghp_tokens_window(tokens, window, NULL, alone);
    CHECK(memcmp(alone, labels, sizeof labels) == 0);
    ghp_tokens_window(tokens, window, alone, NULL);
    CHECK(memcmp(alone, ids, sizeof ids) == 0);
}

/* Files whose lengths end in, just before and just after a window. */
static void check_kind(enum kind kind)
{
    static const int lengths[] = {S + 1, 2 * S, 2 * S + 1, 2 * S + 2, 31};
    enum { FILES = sizeof lengths / sizeof lengths[0] };
    char list[FILES * 128] = "";
    struct ghp_tokens *tokens = NULL;
    int64_t window = 0;

    for (int i = 0; i < FILES; i++) {
        char name[16];

        snprintf(name, sizeof name, "part%d", i);
        write_tokens(name, kind, i, lengths[i], 0);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? "," : "",
                 path_of(name));
    }
    if (!CHECK_STATUS(open_list(list, kind, &tokens), GHP_OK)) return;
    CHECK_EQ(ghp_tokens_windows(tokens), 1 + 1 + 2 + 2 + 7);
    for (int i = 0; i < FILES; i++)
        for (int64_t at = 0; at < (lengths[i] - 1) / S; at++)
            check_window(tokens, window++, i, at);
    CHECK_EQ(window, ghp_tokens_windows(tokens));
    ghp_tokens_close(tokens);
}

static void check_refused(const char *files, enum kind kind, enum ghp_status status,
                          const char *message)
{
    struct ghp_tokens *tokens = NULL;

    CHECK_STATUS(open_list(files, kind, &tokens), status);
    CHECK(tokens == NULL);
    CHECK_MESSAGE(message);
}

static void check_headers(void)
{
    const char *path = path_of("bad");
    int32_t header[HEADER] = {20240520, 1, 20};

    write_tokens("bad", SHARD16, 0, 20, 1);
    check_refused(path, SHARD16, GHP_ERR_FORMAT, "cut short: it has 1063 of the 1064 bytes");
    write_tokens("bad", SHARD32, 0, 20, 80);
    check_refused(path, SHARD32, GHP_ERR_FORMAT, "cut short: it has 1024 of the 1104 bytes");
    write_file("bad", header, 1000);
    check_refused(path, SHARD16, GHP_ERR_FORMAT, "cut short: it has 1000 of the 1024 bytes");
    header[2] = -1;
    write_file("bad", header, sizeof header);
    check_refused(path, SHARD16, GHP_ERR_FORMAT, "promises -1 tokens");
    header[2] = 0;
    write_file("bad", header, sizeof header);
    check_refused(path, SHARD16, GHP_ERR_INPUT, "fewer than one window's 5");
    header[1] = 7; /* the version of 32 bits */
    write_file("bad", header, sizeof header);
    check_refused(path, SHARD16, GHP_ERR_FORMAT, "begins with 20240520, version 7: no tokens");
    header[0] = 20240326; /* a model of llm.c */
    write_file("bad", header, sizeof header);
    check_refused(path, SHARD16, GHP_ERR_FORMAT, "begins with 20240326");
}

static void check_files(void)
{
    const char *path = path_of("bad");
    char list[600];

    write_tokens("bad", BARE, 0, 20, 1);
    check_refused(path, BARE, GHP_ERR_FORMAT, "an odd number of bytes (39)");
    for (enum kind kind = BYTES; kind < KINDS; kind++) {
        write_tokens("bad", kind, 0, S, 0);
        check_refused(path, kind, GHP_ERR_INPUT, "has 4 tokens, fewer than one window's 5");
    }
    write_file("bad", "", 0);
    check_refused(path, BARE, GHP_ERR_INPUT, "has 0 tokens");
    check_refused(folder, BARE, GHP_ERR_IO, "this is a folder");
    check_refused(path_of("absent"), BARE, GHP_ERR_IO, "absent");
    write_tokens("good", BARE, 0, 20, 0);
    snprintf(list, sizeof list, "%s,,%s", path_of("good"), path_of("good"));
    check_refused(list, BARE, GHP_ERR_USAGE, "has an empty name");
    snprintf(list, sizeof list, "%s,%s", path_of("good"), path_of("bad"));
    check_refused(list, BARE, GHP_ERR_INPUT, "bad' has 0 tokens");
}

/* The last token of a file, which is in no window's input, is looked at too. */
static void check_vocabulary(void)
{
    static const size_t begin[KINDS] = {0, 0, 1024, 1024}, width[KINDS] = {1, 2, 2, 4};

    for (enum kind kind = BYTES; kind < KINDS; kind++) {
        size_t n = write_tokens("high", kind, 0, 9, 0);
        FILE *file = fopen(path_of("high"), "rb+");
        char message[64];

        CHECK(file != NULL && fseek(file, (long)(begin[kind] + 8 * width[kind]), SEEK_SET) == 0 &&
              fputc(VOCABULARY, file) == VOCABULARY);
        if (file != NULL) fclose(file);
        snprintf(message, sizeof message, "the id 50 at byte %zu (token 8)", n - width[kind]);
        check_refused(path_of("high"), kind, GHP_ERR_INPUT, message);
    }
}

CHECK_TEST(tokens)
{
    folder = check_folder();
    for (enum kind kind = BYTES; kind < KINDS; kind++)
        check_kind(kind);
    check_headers();
    check_files();
    check_vocabulary();
    return check_end();
}
