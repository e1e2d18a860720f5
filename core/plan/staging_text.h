/* core/plan/staging_text.h - stages as people write and read them. Needs no solver.
 *
 * Tested   tests/planner/pipeline/test_partition.c */
#ifndef GHP_CORE_PLAN_STAGING_TEXT_H
#define GHP_CORE_PLAN_STAGING_TEXT_H

#include "core/plan/plan.h"

/* Reads `K,LAYER:K,LAYER:K,...,LAYER,LAYER...`: workers of the first stage, then each further stage's first layer and
 * workers, then the first layers of further chunks, which are dealt to the stages in turn. With such chunks the
 * schedule 1f1b becomes interleaved.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE */
enum ghp_status ghp_staging_parse(const char *text, const struct ghp_model *model,
                                  struct ghp_staging *staging);

/* "3 + 1 from fc6, 4 micro-batches (1f1b)"; "1 + 1 from conv3, then from conv5 + fc6, 4 micro-batches
 * (interleaved)". */
const char *ghp_staging_format(const struct ghp_staging *staging, const struct ghp_model *model,
                               char *text, size_t n);

/* Who has how many samples of a micro-batch, and how fast: "samples: 85 on worker 0 (speed 2), 43 on worker 1 (speed
 * 1)"; of equal shares among unlike workers the range of their speeds; else "". */
const char *ghp_shares_format(const struct ghp_plan *plan, char *text, size_t n);

#endif
