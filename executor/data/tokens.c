/* executor/data/tokens.c - see tokens.h. */
#include "executor/data/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_NUMBERS = 256, HEADER_BYTES = 4 * HEADER_NUMBERS };

struct shard { /* one file, mapped */
    char *path;
    const unsigned char *file; /* NULL: not mapped */
    int64_t bytes;             /* of the file */
    int64_t begin;             /* of the first token                          [bytes] */
    int token_bytes;           /* 1, 2 or 4 */
    int64_t tokens;
    int64_t first_window;
};

struct ghp_tokens {
    struct ghp_tokens_request request;
    char *names; /* the files', each ended by a NUL */
    int n;
    struct shard *shards;
    int64_t windows;
};

/* ---- one file ---- */

static enum ghp_status fail_read(const struct shard *s)
{
    return GHP_FAIL(GHP_ERR_IO, "cannot read '%s': %s; see that the file is there and may be read",
                    s->path, strerror(errno));
}

static enum ghp_status map_file(struct shard *s)
{
    enum ghp_status status = GHP_OK;
    struct stat about;
    void *at = NULL;
    int fd = open(s->path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &about) != 0) GHP_TRY_GOTO(status, fail_read(s), done);
    if (!S_ISREG(about.st_mode))
        GHP_TRY_GOTO(
            status, GHP_FAIL(GHP_ERR_IO, "'%s' is no regular file; name a file of tokens", s->path),
            done);
    s->bytes = about.st_size;
    if (s->bytes > 0) at = mmap(NULL, (size_t)s->bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) GHP_TRY_GOTO(status, fail_read(s), done);
    s->file = at;
done:
    if (fd >= 0) close(fd);
    return status;
}

static int64_t header_number(const struct shard *s, int i)
{
    int32_t number;

    memcpy(&number, s->file + (int64_t)i * (int64_t)sizeof(number), sizeof(number));
    return number;
}

/* The tokens of a file whose header says how many there are. */
static enum ghp_status read_header(struct shard *s)
{
    int64_t whole;

    s->begin = HEADER_BYTES;
    s->tokens = s->bytes >= HEADER_BYTES ? header_number(s, 2) : 0;
    whole = HEADER_BYTES + s->tokens * s->token_bytes;
    if (s->bytes >= HEADER_BYTES && s->tokens >= 0 && s->bytes == whole) return GHP_OK;
    if (s->bytes < HEADER_BYTES || (s->tokens >= 0 && s->bytes < whole))
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' is cut short: it has %" PRId64 " of the %" PRId64
                        " bytes that its header promises; fetch the file again",
                        s->path, s->bytes, s->bytes < HEADER_BYTES ? HEADER_BYTES : whole);
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s' has %" PRId64 " bytes, but its header promises %" PRId64
                    " tokens; fetch the file again",
                    s->path, s->bytes, s->tokens);
}

/* Finds out what a file is by its first two numbers; one that begins with none of llm.c's is bare. Those are dates. */
static enum ghp_status recognise(struct shard *s, bool bytes)
{
    static const int64_t magic16 = 20240520, magic32 = 20240801;
    static const int64_t first_date = 20240000, last_date = 20249999;
    int64_t magic = s->bytes >= 8 ? header_number(s, 0) : 0,
            version = s->bytes >= 8 ? header_number(s, 1) : 0;

    s->token_bytes = bytes ? 1 : 2;
    s->tokens = s->bytes / s->token_bytes;
    if (bytes) return GHP_OK;
    if ((magic == magic16 && version == 1) || (magic == magic32 && version == 7)) {
        s->token_bytes = magic == magic16 ? 2 : 4;
        return read_header(s);
    }
    if (magic >= first_date && magic <= last_date)
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' begins with %" PRId64 ", version %" PRId64
                        ": no tokens; give a file that begins with %" PRId64
                        ", version 1, or %" PRId64 ", version 7, or bare 16-bit tokens",
                        s->path, magic, version, magic16, magic32);
    if (s->bytes % 2 != 0)
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' has an odd number of bytes (%" PRId64
                        "), so it is no file of 16-bit tokens; fetch it again, or take its bytes "
                        "as tokens with bytes:FILE",
                        s->path, s->bytes);
    return GHP_OK;
}

static int64_t token_at(const struct shard *s, int64_t i)
{
    const unsigned char *tokens = s->file + s->begin;

    switch (s->token_bytes) {
    case 1: return tokens[i];
    case 2: return ((const uint16_t *)(const void *)tokens)[i];
    default: return ((const uint32_t *)(const void *)tokens)[i];
    }
}

static enum ghp_status check_ids(const struct shard *s, int64_t vocabulary)
{
    for (int64_t i = 0; i < s->tokens; i++)
        if (token_at(s, i) >= vocabulary)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' has the id %" PRId64 " at byte %" PRId64 " (token %" PRId64
                            "), but the model's vocabulary is %" PRId64 " (0 to %" PRId64
                            "); use tokens of that vocabulary, or a model with more",
                            s->path, token_at(s, i), s->begin + i * s->token_bytes, i, vocabulary,
                            vocabulary - 1);
    return GHP_OK;
}

static enum ghp_status open_shard(const struct ghp_tokens_request *request, struct shard *s)
{
    GHP_TRY(map_file(s));
    GHP_TRY(recognise(s, request->bytes));
    if (s->tokens <= request->positions)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has %" PRId64 " tokens, fewer than one window's %" PRId64 " (%" PRId64
                        " positions and the last label); use a larger file, or a "
                        "model of fewer positions",
                        s->path, s->tokens, request->positions + 1, request->positions);
    return check_ids(s, request->vocabulary);
}

/* ---- all files ---- */

/* Cuts the list into the shards' paths. */
static enum ghp_status name_shards(struct ghp_tokens *t)
{
    int n = 1;

    for (const char *at = t->request.files; *at != '\0'; at++)
        n += *at == ',';
    t->names = strdup(t->request.files);
    t->shards = ghp_alloc((size_t)n, sizeof(*t->shards));
    if (t->names == NULL || t->shards == NULL) return GHP_NO_MEMORY();
    for (char *at = t->names, *comma; at != NULL; at = comma) {
        comma = strchr(at, ',');
        if (comma != NULL) *comma++ = '\0';
        if (*at == '\0')
            return GHP_FAIL(GHP_ERR_USAGE,
                            "'%s' has an empty name; write FILE or FILE,FILE without spaces",
                            t->request.files);
        t->shards[t->n++].path = at;
    }
    return GHP_OK;
}

enum ghp_status ghp_tokens_open(const struct ghp_tokens_request *request,
                                struct ghp_tokens **tokens)
{
    enum ghp_status status = GHP_OK;
    struct ghp_tokens *t = ghp_alloc(1, sizeof(*t));

    *tokens = NULL;
    if (t == NULL) return GHP_NO_MEMORY();
    t->request = *request;
    GHP_TRY_GOTO(status, name_shards(t), fail);
    for (int i = 0; i < t->n; i++) {
        struct shard *s = &t->shards[i];

        GHP_TRY_GOTO(status, open_shard(request, s), fail);
        s->first_window = t->windows;
        t->windows += (s->tokens - 1) / request->positions;
    }
    *tokens = t;
    return GHP_OK;
fail:
    ghp_tokens_close(t);
    return status;
}

void ghp_tokens_close(struct ghp_tokens *t)
{
    if (t == NULL) return;
    for (int i = 0; i < t->n; i++)
        if (t->shards[i].file != NULL)
            munmap((void *)(uintptr_t)t->shards[i].file, (size_t)t->shards[i].bytes);
    free(t->shards);
    free(t->names);
    free(t);
}

int64_t ghp_tokens_windows(const struct ghp_tokens *t)
{
    return t->windows;
}

/* The last shard whose first window is not behind this one. */
static const struct shard *shard_of(const struct ghp_tokens *t, int64_t window)
{
    int first = 0, end = t->n;

    while (end - first > 1) {
        int middle = first + (end - first) / 2;

        if (t->shards[middle].first_window <= window)
            first = middle;
        else
            end = middle;
    }
    return &t->shards[first];
}

void ghp_tokens_window(const struct ghp_tokens *t, int64_t window, int32_t *ids, int32_t *labels)
{
    const struct shard *s = shard_of(t, window);
    int64_t positions = t->request.positions, first = (window - s->first_window) * positions;

    GHP_ASSERT(window >= 0 && window < t->windows);
    for (int64_t i = 0; ids != NULL && i < positions; i++)
        ids[i] = (int32_t)token_at(s, first + i);
    for (int64_t i = 0; labels != NULL && i < positions; i++)
        labels[i] = (int32_t)token_at(s, first + i + 1);
}
