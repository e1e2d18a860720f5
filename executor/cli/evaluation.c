/* executor/cli/evaluation.c - see evaluation.h. */
#include "executor/cli/evaluation.h"

#include "core/base/json.h"
#include "core/base/opts.h"

#include <math.h>
#include <stdio.h>

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

enum ghp_status ghp_evaluation_print(const struct ghp_training *t, bool as_json)
{
    const struct ghp_evaluation *e = &t->evaluation;
    const char *set = t->evaluates_all ? "all" : "test";
    bool failed = false;

    if (!t->has_evaluation) return GHP_OK;
    if (as_json) {
        json_t *root = json_pack("{s:o, s:o, s:I, s:s, s:f}", "loss", real_or_null(e->loss), "top1",
                                 real_or_null(e->accuracy), "samples", (json_int_t)e->samples,
                                 "set", set, "seconds", e->seconds);

        if (e->perplexity > 0)
            ghp_json_put(root, "perplexity", real_or_null(e->perplexity), &failed);
        GHP_TRY(ghp_json_print_whole(root, failed, stdout));
    } else {
        printf("loss %.6g, accuracy %.4f", e->loss, e->accuracy);
        if (e->perplexity > 0) printf(", perplexity %.6g", e->perplexity);
        printf(" on %s%lld%s samples\n", t->evaluates_all ? "all " : "", (long long)e->samples,
               t->evaluates_all ? "" : " test");
    }
    GHP_TRY(ghp_opts_printed());
    if (isfinite(e->loss)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_DIVERGED, "the loss of these weights is not finite; give others by "
                                      "--init FILE");
}
