/* executor/data/tokens.c - see tokens.h. */
#include "executor/data/tokens.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct shard {
    struct ghp_token_file file;
    int64_t first_window;
};

struct ghp_tokens {
    int64_t positions; /* of a window */
    char *names;       /* the files', each ended by a NUL */
    int n;
    struct shard *shards; /* [n] */
    int64_t windows;
};

static enum ghp_status open_shard(const struct ghp_tokens_request *request, struct shard *s)
{
    GHP_TRY(ghp_token_file_open(&request->format, &s->file));
    if (s->file.tokens > request->positions) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' has %" PRId64 " tokens, fewer than one window's %" PRId64 " (%" PRId64
                    " positions and the last label); use a larger file, or a "
                    "model of fewer positions",
                    s->file.path, s->file.tokens, request->positions + 1, request->positions);
}

/* Cuts the list into the shards' paths. */
static enum ghp_status name_shards(const char *files, struct ghp_tokens *t)
{
    int n = 1;

    for (const char *at = files; *at != '\0'; at++)
        n += *at == ',';
    t->names = strdup(files);
    t->shards = ghp_alloc((size_t)n, sizeof *t->shards);
    if (t->names == NULL || t->shards == NULL) return GHP_NO_MEMORY();
    for (char *at = t->names, *comma; at != NULL; at = comma) {
        comma = strchr(at, ',');
        if (comma != NULL) *comma++ = '\0';
        if (*at == '\0')
            return GHP_FAIL(GHP_ERR_USAGE,
                            "'%s' has an empty name; write FILE or FILE,FILE without spaces",
                            files);
        t->shards[t->n++].file.path = at;
    }
    return GHP_OK;
}

enum ghp_status ghp_tokens_open(const struct ghp_tokens_request *request,
                                struct ghp_tokens **tokens)
{
    enum ghp_status status = GHP_OK;
    struct ghp_tokens *t = ghp_alloc(1, sizeof *t);

    *tokens = NULL;
    if (t == NULL) return GHP_NO_MEMORY();
    t->positions = request->positions;
    GHP_TRY_GOTO(status, name_shards(request->files, t), fail);
    for (int i = 0; i < t->n; i++) {
        struct shard *s = &t->shards[i];

        GHP_TRY_GOTO(status, open_shard(request, s), fail);
        s->first_window = t->windows;
        t->windows += (s->file.tokens - 1) / request->positions;
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
        ghp_token_file_close(&t->shards[i].file);
    free(t->shards);
    free(t->names);
    free(t);
}

int64_t ghp_tokens_windows(const struct ghp_tokens *t)
{
    return t->windows;
}

/* The last shard whose first window does not come after this one. */
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
    int64_t positions = t->positions, first = (window - s->first_window) * positions;

    GHP_ASSERT(window >= 0 && window < t->windows);
    for (int64_t i = 0; ids != NULL && i < positions; i++)
        ids[i] = (int32_t)ghp_token_file_at(&s->file, first + i);
    for (int64_t i = 0; labels != NULL && i < positions; i++)
        labels[i] = (int32_t)ghp_token_file_at(&s->file, first + i + 1);
}
