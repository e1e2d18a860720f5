/* core/model/vocabulary.h - words that are not there, so that a GPU's products by a vocabulary come out even.
 *
 * The logits of a sequence have a column a word, and 50,257 of them make rows that begin at no multiple of 16 bytes:
 * tensor cores take those at a fraction of their rate. A network's key `vocabulary_multiple` says to what its columns
 * are rounded up in memory, with the weights that make them and a table of tokens that is tied to these. The padding
 * weights are zeros and stay so, losses leave the padding out, and files have none of it. A key of the network, for
 * then all that is made of it has the same shapes; but its hash is that without, as it is the same training.
 *
 * Tested   tests/core/model/test_vocabulary.c, tests/tools/learn/test_vocabulary.sh */
#ifndef GHP_CORE_MODEL_VOCABULARY_H
#define GHP_CORE_MODEL_VOCABULARY_H

#include "core/model/padding.h"

/* Gives a network this key, unless it has one or the multiple is 0.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; the model is as before then */
enum ghp_status ghp_model_set_vocabulary(struct ghp_model *model, int64_t multiple);

#endif
