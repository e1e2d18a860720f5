/* executor/data/token_file.h - one file of token ids, mapped into memory.
 *
 *     llm.c's shards   256 int32 {20240520, 1, tokens} then uint16, or {20240801, 7, tokens} then uint32
 *     NumPy            .npy of one dimension of integers (npy.h)
 *     bare             ids alone: uint16 as nanoGPT writes them, or the type that is asked for
 *     bytes            any file; each byte is a token
 *
 * All little-endian. A file that says its type is taken by it. A bare file says nothing, so it is refused if it is text
 * or an archive, or if every second number is zero, as in wider ids that are read as uint16. Knows no windows. */
#ifndef GHP_EXECUTOR_DATA_TOKEN_FILE_H
#define GHP_EXECUTOR_DATA_TOKEN_FILE_H

#include "core/base/status.h"

#include <stdbool.h>

struct ghp_token_file {
    const char *path;          /* borrowed */
    const unsigned char *file; /* mapped; NULL: not mapped */
    int64_t bytes;             /* of the file */
    int64_t begin;             /* of the first token                          [bytes] */
    int token_bytes;           /* 1, 2, 4 or 8 */
    bool is_signed;
    int64_t tokens;
};

struct ghp_token_format {
    bool bytes; /* each byte is a token, whatever the file holds */
    /* of a bare file: "uint16", "int32" ...; NULL: uint16, if the file can be that */
    const char *type;
    int64_t vocabulary; /* ids are 0 .. vocabulary - 1 */
};

/* Maps file->path, finds out what it is, and looks at all its ids.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT (shorter or longer than its header says, half a token at its end, no
 *           file of tokens); GHP_ERR_INPUT naming file and place (an id outside the vocabulary, numbers that are not
 *           integers); GHP_ERR_USAGE (an unknown type, or one for a file that says its own)
 * Local
 * Tested    tests/executor/data/test_token_file.c, tests/fuzz/fuzz_tokens.c */
enum ghp_status ghp_token_file_open(const struct ghp_token_format *format,
                                    struct ghp_token_file *file);
void ghp_token_file_close(struct ghp_token_file *file); /* accepts one that is not mapped */

/* Token i, 0 .. tokens - 1. */
int64_t ghp_token_file_at(const struct ghp_token_file *file, int64_t i);

#endif
