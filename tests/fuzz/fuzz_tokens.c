/* tests/fuzz/fuzz_tokens.c - the reader of token files. An input is one file, read as what its header says, then as
 * bytes. */
#include "executor/data/tokens.h"
#include "tests/fuzz/fuzz.h"

enum { POSITIONS = 3, VOCABULARY = 256 };

static bool read_as(const char *path, bool bytes)
{
    struct ghp_tokens_request request = {.files = path,
                                         .format = {.bytes = bytes, .vocabulary = VOCABULARY},
                                         .positions = POSITIONS};
    struct ghp_tokens *tokens = NULL;
    int32_t ids[POSITIONS], labels[POSITIONS];

    if (ghp_tokens_open(&request, &tokens) != GHP_OK) return false;
    for (int64_t i = 0; i < ghp_tokens_windows(tokens); i++) {
        ghp_tokens_window(tokens, i, ids, labels);
        for (int j = 0; j < POSITIONS; j++)
            GHP_ASSERT(ids[j] >= 0 && ids[j] < VOCABULARY && labels[j] >= 0 &&
                       labels[j] < VOCABULARY);
    }
    ghp_tokens_close(tokens);
    return true;
}

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    bool found = read_as(path, false);

    (void)bytes;
    (void)n;
    return read_as(path, true) && found; /* what is a file of tokens is a file of bytes too */
}
