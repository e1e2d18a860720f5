/* planner/staging_text.h - stages as people write and read them.  Needs no solver.
 *
 * Tested   tests/planner/test_allocate.c */
#ifndef GHP_PLANNER_STAGING_TEXT_H
#define GHP_PLANNER_STAGING_TEXT_H

#include "core/stage.h"

/* Reads `K,LAYER:K,LAYER:K...`: workers of the first stage, then each further stage's first layer and workers.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE */
enum ghp_status ghp_staging_parse(const char *text, const struct ghp_model *model,
                                  struct ghp_staging *staging);

/* "3 + 1 from fc6, 4 micro-batches (1f1b)". */
const char *ghp_staging_text(const struct ghp_staging *staging, const struct ghp_model *model,
                             char *text, size_t n);

#endif
