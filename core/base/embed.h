/* core/base/embed.h - what the readers and writers of a document inside another one share: its format, and hashes.
 *
 * An embedded object is the whole document of its noun, its "format" included, so that it can be cut out and used. */
#ifndef GHP_CORE_BASE_EMBED_H
#define GHP_CORE_BASE_EMBED_H

#include "core/base/json.h"

/* A hash written as 16 hexadecimal digits. */
enum ghp_status ghp_embed_hash(const struct ghp_node *at, const char *key, uint64_t *hash);

/* The hash of a value's canonical text; value is taken over, NULL is GHP_ERR_NO_MEMORY. */
enum ghp_status ghp_embed_hash_of(json_t *value, uint64_t *hash);

#endif
