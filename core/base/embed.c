/* core/base/embed.c - see base/embed.h. */
#include "core/base/embed.h"

#include "core/base/hash.h"
#include "core/base/json_lines.h"

#include <stdlib.h>
#include <string.h>

enum ghp_status ghp_embed_hash(const struct ghp_node *at, const char *key, uint64_t *hash)
{
    struct ghp_node node;
    char text[17];

    GHP_TRY(ghp_json_text_n(at, key, text, sizeof text));
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16) {
        GHP_TRY(ghp_json_get(at, key, &node));
        return ghp_json_fail(&node, GHP_ERR_FORMAT,
                             "'%s' is not a hash; write 16 hexadecimal digits", text);
    }
    *hash = strtoull(text, NULL, 16);
    return GHP_OK;
}

enum ghp_status ghp_embed_hash_of(json_t *value, uint64_t *hash)
{
    char *text = NULL;
    enum ghp_status status = ghp_json_compact(value, &text);

    if (status == GHP_OK) *hash = ghp_hash(text, strlen(text), GHP_HASH_SEED);
    free(text);
    json_decref(value);
    return status;
}
