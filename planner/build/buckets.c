/* planner/build/buckets.c - bucket sizes of gradient reductions, tried on plans that a search kept. */
#include "planner/build/build_private.h"

#include "planner/build/staged.h"

static bool fits(const struct ghp_build_context *m, int64_t peak_bytes)
{
    return m->request->memory_bytes == 0 || peak_bytes <= m->request->memory_bytes;
}

enum ghp_status ghp_build_tune_bucket(const struct ghp_build_context *m,
                                      const struct ghp_search_result *r, int *kept, int64_t *bucket)
{
    double best_s = r->kept[0].step_s;

    *kept = 0;
    *bucket = m->how.bucket_bytes;
    if (m->request->bucket_bytes != GHP_BUCKET_AUTO) return GHP_OK;
    for (int k = 0; k < r->n_kept; ++k)
        for (int s = 1; s < GHP_BUILD_BUCKET_SIZES; ++s) {
            int64_t size = ghp_build_bucket_sizes[s];
            double step_s;
            int64_t peak;

            GHP_TRY(ghp_search_evaluate(&m->instance, r->kept[k].choice, size, &step_s, &peak));
            if (!fits(m, peak) || step_s >= best_s * (1 - GHP_BRANCH_SAME)) continue;
            best_s = step_s;
            *kept = k;
            *bucket = size;
        }
    return GHP_OK;
}

enum ghp_status ghp_build_predict(const struct ghp_build_context *m, const int *choice,
                                  int64_t bucket, struct ghp_split *splits,
                                  struct ghp_prediction *predicted)
{
    struct ghp_lowering how = m->how;

    how.bucket_bytes = bucket;
    ghp_instance_splits(&m->instance, choice, splits);
    return ghp_plan_predict(&how, splits, m->request->profile, predicted);
}
