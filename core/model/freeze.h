/* core/model/freeze.h - layers that keep the weights they begin with, by the names of their tensors.
 *
 * The choice becomes part of the network: a layer's key `fixed` says it (docs/reference/formats.md), and a batch norm
 * becomes a `frozen_batch_norm`. So plans, profiles and runs know it without being told again.
 *
 * Tested   tests/core/model/test_freeze.c, tests/tools/learn/test_freeze.sh */
#ifndef GHP_CORE_MODEL_FREEZE_H
#define GHP_CORE_MODEL_FREEZE_H

#include "core/base/opts.h"
#include "core/model/model.h"

struct ghp_freeze {
    /* Patterns of fnmatch for names of tensors. A module's name stands for all tensors below it. */
    struct ghp_opt_list patterns, except;
};

/* Fixes all layers whose tensors the patterns name, less those that `except` names. A batch norm among them that the
 * file has fixed already becomes a `frozen_batch_norm` too. The network is another one then, with another hash.
 *
 * Returns   GHP_OK (also without patterns); GHP_ERR_INPUT: a pattern names nothing, only some of the tensors of a
 *           layer are named, or nothing is left to train; GHP_ERR_NO_MEMORY. The model is as before then
 * Local */
enum ghp_status ghp_model_freeze(struct ghp_model *model, const struct ghp_freeze *freeze);

/* ---- its steps ---- */

/* Which layers the patterns name; one flag a layer. Returns as ghp_model_freeze. */
enum ghp_status ghp_freeze_choose(const struct ghp_model *model, const struct ghp_freeze *freeze,
                                  bool *named);
/* The description with these layers fixed, next to those that are; the model itself is as before.
 *
 * norms   batch norms among them stay on their running statistics
 * text    the caller frees it
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_freeze_write(struct ghp_model *model, const bool *named, bool norms,
                                 char **text);

#endif
