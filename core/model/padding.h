/* core/model/padding.h - the key `vocabulary_multiple`, and what it makes of a network's layers: model/vocabulary.h.
 *
 * Tested   tests/core/model/test_vocabulary.c */
#ifndef GHP_CORE_MODEL_PADDING_H
#define GHP_CORE_MODEL_PADDING_H

#include "core/base/json.h"
#include "core/model/model.h"

/* The key in networks, and in profiles if the machine wants padded vocabularies. */
#define ghp_vocabulary_key "vocabulary_multiple"

enum { GHP_MOST_VOCABULARY_MULTIPLE = 4096 };

/* The key of an object; 0 if it has none. */
enum ghp_status ghp_vocabulary_read(const struct ghp_node *at, int64_t *multiple);

/* Not 0 if memory is short; nothing is put for 0. */
int ghp_vocabulary_put(json_t *object, int64_t multiple);

/* The text of a network's description without the key.
 *
 * text   owned by the caller */
enum ghp_status ghp_vocabulary_left_out(json_t *network, char **text);

/* Sets `columns` and `rows` of a connected network's layers, by its multiple. */
void ghp_model_pad_vocabulary(struct ghp_model *model);

#endif
