/* executor/cli/evaluation.c - see evaluation.h. */
#include "executor/cli/evaluation.h"

#include "core/base/json.h"
#include "core/base/opts.h"
#include "core/base/table.h"

#include <math.h>
#include <stdio.h>

/* A line for each class that has labels. */
static enum ghp_status print_classes(const struct ghp_hits *hits)
{
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status;

    ghp_table_column(t, "class", NULL, 'r');
    ghp_table_column(t, "labels", NULL, 'r');
    ghp_table_column(t, "accuracy", NULL, 'r');
    ghp_table_column(t, "top-5", NULL, 'r');
    for (int c = 0; c < hits->classes; c++) {
        struct ghp_hits_of of = hits->of_class[c];

        if (of.labels == 0) continue;
        ghp_table_row(t);
        ghp_table_cell(t, "%d", c);
        ghp_table_cell(t, "%lld", (long long)of.labels);
        ghp_table_cell(t, "%.4f", ghp_hits_fraction(of.top1, of.labels));
        ghp_table_cell(t, "%.4f", ghp_hits_fraction(of.top5, of.labels));
    }
    status = ghp_table_print(t, stdout);
    ghp_table_close(t);
    return status;
}

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

enum ghp_status ghp_evaluation_print(const struct ghp_training *t, bool as_json)
{
    const struct ghp_evaluation *e = &t->evaluation;
    const char *set = t->evaluates_all ? "all" : "test";
    double second = e->of_numbers ? e->absolute_error : e->accuracy;
    bool failed = false;

    if (!t->has_evaluation) return GHP_OK;
    if (as_json) {
        json_t *root =
            json_pack("{s:o, s:o, s:I, s:s, s:f}", "loss", real_or_null(e->loss),
                      e->of_numbers ? "absolute_error" : "top1", real_or_null(second), "samples",
                      (json_int_t)e->samples, "set", set, "seconds", e->seconds);

        if (e->perplexity > 0)
            ghp_json_put(root, "perplexity", real_or_null(e->perplexity), &failed);
        failed = failed || root == NULL || !ghp_hits_put(&e->hits, "", root);
        GHP_TRY(ghp_json_print_whole(root, failed, stdout));
    } else {
        printf(e->of_numbers ? "loss %.6g, absolute error %.6g" : "loss %.6g, accuracy %.4f",
               e->loss, second);
        if (e->hits.all.labels > 0)
            printf(", top-5 %.4f", ghp_hits_fraction(e->hits.all.top5, e->hits.all.labels));
        if (e->perplexity > 0) printf(", perplexity %.6g", e->perplexity);
        printf(" on %s%lld%s samples\n", t->evaluates_all ? "all " : "", (long long)e->samples,
               t->evaluates_all ? "" : " test");
        for (int i = 0; i < e->hits.n_outputs; i++)
            printf(e->hits.outputs[i].of_numbers ? "output %d: loss %.6g, absolute error %.6g\n"
                                                 : "output %d: loss %.6g, accuracy %.4f\n",
                   i + 1, e->hits.outputs[i].loss, e->hits.outputs[i].second);
        if (e->hits.of_class != NULL) GHP_TRY(print_classes(&e->hits));
    }
    GHP_TRY(ghp_opts_printed());
    if (isfinite(e->loss)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_DIVERGED, "the loss of these weights is not finite; give others by "
                                      "--init FILE");
}
