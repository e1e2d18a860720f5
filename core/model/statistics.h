/* core/model/statistics.h - whose samples the statistics of a network's batch norms are of.
 *
 * The key `statistics` of a layer says so in a file (docs/reference/formats.md). Here all batch norms of a network get
 * the same.
 *
 * Tested   tests/core/model/test_statistics.c, tests/tools/plan/test_batch_norm.sh */
#ifndef GHP_CORE_MODEL_STATISTICS_H
#define GHP_CORE_MODEL_STATISTICS_H

#include "core/model/model.h"

/* The first layer that has statistics of the batch, or NULL. */
const struct ghp_layer *ghp_model_batch_norm(const struct ghp_model *model);

/* Whether all such layers take the statistics of the global batch, and there is one. */
bool ghp_model_has_global_statistics(const struct ghp_model *model);

/* Gives all batch norms these statistics: the network is another one then, with another hash.
 *
 * statistics   "global", "local", or "local:S" for each S samples
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT (other statistics); GHP_ERR_NO_MEMORY; the model is as before then
 * Local */
enum ghp_status ghp_model_set_statistics(struct ghp_model *model, const char *statistics);

enum { GHP_STATISTICS_TEXT_SIZE = 32 };

/* The statistics that an option asks for: "global", "local", or a number S for "local:S".
 *
 * text   as ghp_model_set_statistics takes it
 *
 * Returns   GHP_OK; GHP_ERR_USAGE */
enum ghp_status ghp_statistics_parse(const char *option, char text[GHP_STATISTICS_TEXT_SIZE]);

/* What ghp_model_set_statistics gives a network the statistics of this layer by.
 *
 * Returns   text */
const char *ghp_statistics_format(const struct ghp_layer *layer,
                                  char text[GHP_STATISTICS_TEXT_SIZE]);

#endif
