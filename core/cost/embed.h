/* core/cost/embed.h - nouns as parts of other nouns' files: a machine inside a profile, both inside a plan.
 *
 * Private to core's readers and writers, but for hashes, which whoever makes a plan or reads a run needs.
 * The embedded object is the whole document of the noun, its "format" included, so that it can be cut out and used. */
#ifndef GHP_CORE_COST_EMBED_H
#define GHP_CORE_COST_EMBED_H

#include "core/base/json.h"
#include "core/cost/machine.h"
#include "core/cost/profile.h"

/* A noun as a JSON value; the caller owns the reference.  NULL when out of memory. */
json_t *ghp_machine_json(const struct ghp_machine *machine);
json_t *ghp_profile_json(const struct ghp_profile *profile);

/* Reads a noun from a place in a document; filled on success (a profile is sealed), zeroed on failure.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT, GHP_ERR_INPUT (with line and column); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_machine_read(const struct ghp_node *at, struct ghp_machine *machine);
enum ghp_status ghp_profile_read(const struct ghp_node *at, struct ghp_profile *profile);

/* A hash written as 16 hexadecimal digits. */
enum ghp_status ghp_embed_hash(const struct ghp_node *at, const char *key, uint64_t *hash);

/* The hash of a value's canonical text; value is taken over, NULL is GHP_ERR_NO_MEMORY. */
enum ghp_status ghp_embed_hash_of(json_t *value, uint64_t *hash);

/* The hash of the machine's canonical text: struct ghp_plan's machine_hash.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_machine_hash(const struct ghp_machine *machine, uint64_t *hash);

#endif
