/* executor/data/tokens.h - files of token ids as windows of a fixed length: inputs, and labels one position ahead.
 *
 * Window i of a file holds its tokens [i s, i s + s]: s inputs, and the token after each is its label. A window's last
 * token is the next one's first. Windows of several files follow each other, and none lies in two files. What is left
 * after a file's last window is not used.
 *
 * Files are mapped, not read: they may be larger than memory. All ids are looked at once, when a file is opened, so
 * that none is refused later. Knows no order, no sets and no workers. */
#ifndef GHP_EXECUTOR_DATA_TOKENS_H
#define GHP_EXECUTOR_DATA_TOKENS_H

#include "executor/data/token_file.h"

struct ghp_tokens_request {
    const char *files; /* names, separated by commas */
    struct ghp_token_format format;
    int64_t positions; /* s of a window, >= 1 */
};

struct ghp_tokens;

/* Opens the files and looks at all their ids.
 *
 * Returns   what ghp_token_file_open returns; GHP_ERR_INPUT (a file shorter than a window); GHP_ERR_USAGE (a list with
 *           an empty name); GHP_ERR_NO_MEMORY
 * Local
 * Tested    tests/executor/data/test_tokens.c, tests/fuzz/fuzz_tokens.c */
enum ghp_status ghp_tokens_open(const struct ghp_tokens_request *request,
                                struct ghp_tokens **tokens);
void ghp_tokens_close(struct ghp_tokens *tokens); /* accepts NULL */

int64_t ghp_tokens_windows(const struct ghp_tokens *tokens); /* >= 1 */

/* Writes window `window`, 0 .. ghp_tokens_windows - 1.
 *
 * ids      [s] inputs, or NULL
 * labels   [s] the token after each, or NULL */
void ghp_tokens_window(const struct ghp_tokens *tokens, int64_t window, int32_t *ids,
                       int32_t *labels);

#endif
