/* profiler/validate/validation_report.c - what held-out collectives say, as a table and as an object. */
#include "profiler/validate/validation.h"
#include "profiler/measure/measure.h"

#include "core/base/table.h"
#include "core/base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const double ms = 1e3;
/* [bytes]; from here on messages cost bandwidth, not latency */
static const int64_t large = 1 << 20;
static const char *const kind_names[GHP_VALIDATION_COUNT] = {"sizes", "groups"};

static bool shown(const struct ghp_validation_trial *trial, enum ghp_validation_kind kind)
{
    return trial->costed[kind] && trial->comm.samples.n > 0;
}

double ghp_validation_error(const struct ghp_validation_trial *trial, enum ghp_validation_kind kind)
{
    double measured_s =
        trial->comm.samples.n > 0 ? ghp_samples_summary(&trial->comm.samples).seconds : 0;

    return measured_s > 0 ? trial->predicted_s[kind] / measured_s - 1 : 0;
}

struct ghp_validation_sum ghp_validation_sum_of(const struct ghp_validation *validation,
                                                enum ghp_validation_kind kind, int64_t from,
                                                int64_t to)
{
    struct ghp_validation_sum sum = {.worst_trial = -1};

    for (int i = 0; i < validation->n; i++) {
        const struct ghp_validation_trial *trial = &validation->trials[i];
        double error = fabs(ghp_validation_error(trial, kind));

        if (!shown(trial, kind) || trial->comm.bytes < from || trial->comm.bytes >= to) continue;
        sum.n += 1;
        sum.mean += (error - sum.mean) / sum.n;
        if (sum.worst_trial >= 0 && error <= sum.worst) continue;
        sum.worst = error;
        sum.worst_trial = i;
    }
    return sum;
}

static int by_table(const void *a, const void *b)
{
    return ghp_worklist_compare_comms(&((const struct ghp_validation_trial *)a)->comm,
                                      &((const struct ghp_validation_trial *)b)->comm);
}

static void sort(struct ghp_validation *validation)
{
    if (validation->n > 0)
        qsort(validation->trials, (size_t)validation->n, sizeof *validation->trials, by_table);
}

static int unmeasured(const struct ghp_validation *validation)
{
    int n = 0;

    for (int i = 0; i < validation->n; i++)
        n += validation->trials[i].comm.samples.n == 0;
    return n;
}

/* ---- for people ---- */

static void add_row(struct ghp_table *t, const struct ghp_validation_trial *trial,
                    enum ghp_validation_kind kind)
{
    struct ghp_timed timed = ghp_samples_summary(&trial->comm.samples);

    ghp_table_row(t);
    ghp_table_cell(t, "%s", kind_names[kind]);
    ghp_table_cell(t, "%s", ghp_comm_name(trial->comm.op));
    ghp_table_cell(t, "%d", trial->comm.count);
    ghp_table_cell(t, "%d", trial->comm.stride);
    ghp_table_cell(t, "%" PRId64, trial->comm.bytes);
    ghp_table_cell(t, "%.3f", ms * trial->predicted_s[kind]);
    ghp_table_cell(t, "%.3f", ms * timed.seconds);
    ghp_table_cell(t, "%.1f", 100 * timed.spread);
    ghp_table_cell(t, "%+.1f", 100 * ghp_validation_error(trial, kind));
}

static enum ghp_status print_rows(const struct ghp_validation_result *result,
                                  const char *profile_path, FILE *out)
{
    struct ghp_table *t = ghp_table_open();
    char seconds[32];
    enum ghp_status status = GHP_OK;

    ghp_table_note(
        t, "profile %s: collectives that are not in it; %d ranks at once on %d node%s%s; %s",
        profile_path, result->ranks, result->nodes, ghp_plural(result->nodes),
        result->oversubscribed ? ", sharing cores" : "",
        ghp_seconds_format(result->seconds, seconds, sizeof seconds));
    ghp_table_note(
        t, "sizes: between the profile's sizes; groups: costed without the table of that op, "
           "count and stride");
    if (unmeasured(&result->validation) > 0)
        ghp_table_note(t, "%d of %d not measured: no time or memory left; raise --budget",
                       unmeasured(&result->validation), result->validation.n);
    ghp_table_column(t, "held out", NULL, 'l');
    ghp_table_column(t, "op", NULL, 'l');
    ghp_table_column(t, "ranks", "ranks", 'r');
    ghp_table_column(t, "stride", "ranks", 'r');
    ghp_table_column(t, "bytes", "", 'r');
    ghp_table_column(t, "predicted", "ms", 'r');
    ghp_table_column(t, "measured", "ms", 'r');
    ghp_table_column(t, "spread", "%", 'r');
    ghp_table_column(t, "error", "%", 'r');
    for (int kind = 0; kind < GHP_VALIDATION_COUNT; kind++)
        for (int i = 0; i < result->validation.n; i++)
            if (shown(&result->validation.trials[i], (enum ghp_validation_kind)kind))
                add_row(t, &result->validation.trials[i], (enum ghp_validation_kind)kind);
    status = ghp_table_print(t, out);
    ghp_table_close(t);
    return status;
}

static void add_sum(struct ghp_table *t, const struct ghp_validation *validation,
                    enum ghp_validation_kind kind, bool is_large)
{
    struct ghp_validation_sum sum =
        ghp_validation_sum_of(validation, kind, is_large ? large : 0, is_large ? INT64_MAX : large);
    const struct ghp_worklist_comm *worst =
        sum.n > 0 ? &validation->trials[sum.worst_trial].comm : NULL;

    ghp_table_row(t);
    ghp_table_cell(t, "%s", kind_names[kind]);
    ghp_table_cell(t, is_large ? "1 MiB and more" : "below 1 MiB");
    ghp_table_cell(t, "%d", sum.n);
    if (worst == NULL) return;
    ghp_table_cell(t, "%.1f", 100 * sum.mean);
    ghp_table_cell(t, "%.1f", 100 * sum.worst);
    ghp_table_cell(t, "%s %d/%d, %" PRId64 " bytes", ghp_comm_name(worst->op), worst->count,
                   worst->stride, worst->bytes);
}

static enum ghp_status print_sums(const struct ghp_validation *validation, FILE *out)
{
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status = GHP_OK;

    ghp_table_note(t, "|error|; the worst by its op, count/stride and bytes");
    ghp_table_column(t, "held out", NULL, 'l');
    ghp_table_column(t, "messages", NULL, 'l');
    ghp_table_column(t, "trials", "", 'r');
    ghp_table_column(t, "mean", "%", 'r');
    ghp_table_column(t, "worst", "%", 'r');
    ghp_table_column(t, "which", NULL, 'l');
    for (int kind = 0; kind < GHP_VALIDATION_COUNT; kind++) {
        add_sum(t, validation, (enum ghp_validation_kind)kind, true);
        add_sum(t, validation, (enum ghp_validation_kind)kind, false);
    }
    status = ghp_table_print(t, out);
    ghp_table_close(t);
    return status;
}

enum ghp_status ghp_validation_print(struct ghp_validation_result *result, const char *profile_path,
                                     FILE *out)
{
    sort(&result->validation);
    GHP_TRY(print_rows(result, profile_path, out));
    return print_sums(&result->validation, out);
}

/* ---- for programs ---- */

static json_t *row_json(const struct ghp_validation_trial *trial, enum ghp_validation_kind kind)
{
    struct ghp_timed timed = ghp_samples_summary(&trial->comm.samples);

    return json_pack("{s:s, s:s, s:i, s:i, s:I, s:f, s:f, s:f, s:i, s:f}", "held_out",
                     kind_names[kind], "op", ghp_comm_name(trial->comm.op), "ranks",
                     trial->comm.count, "stride", trial->comm.stride, "bytes",
                     (json_int_t)trial->comm.bytes, "predicted_s", trial->predicted_s[kind],
                     "measured_s", timed.seconds, "spread", timed.spread, "samples", timed.samples,
                     "error", ghp_validation_error(trial, kind));
}

static json_t *sum_json(const struct ghp_validation *validation, enum ghp_validation_kind kind,
                        bool is_large)
{
    struct ghp_validation_sum sum =
        ghp_validation_sum_of(validation, kind, is_large ? large : 0, is_large ? INT64_MAX : large);

    return json_pack("{s:s, s:I, s:o, s:i, s:o, s:o}", "held_out", kind_names[kind], "from_bytes",
                     (json_int_t)(is_large ? large : 0), "to_bytes",
                     is_large ? json_null() : json_integer(large), "trials", sum.n, "mean_error",
                     sum.n > 0 ? json_real(sum.mean) : json_null(), "worst_error",
                     sum.n > 0 ? json_real(sum.worst) : json_null());
}

json_t *ghp_validation_json(struct ghp_validation_result *result, const char *profile_path)
{
    json_t *rows = json_array(), *sums = json_array();
    const struct ghp_validation *validation = &result->validation;
    bool complete = rows != NULL && sums != NULL;

    sort(&result->validation);
    for (int k = 0; k < GHP_VALIDATION_COUNT; k++) {
        enum ghp_validation_kind kind = (enum ghp_validation_kind)k;

        for (int i = 0; i < validation->n && complete; i++)
            if (shown(&validation->trials[i], kind))
                complete = json_array_append_new(rows, row_json(&validation->trials[i], kind)) == 0;
        for (int below = 0; below < 2 && complete; below++)
            complete = json_array_append_new(sums, sum_json(validation, kind, below == 0)) == 0;
    }
    if (!complete) {
        json_decref(rows);
        json_decref(sums);
        return NULL;
    }
    return json_pack("{s:s, s:s, s:i, s:i, s:b, s:f, s:i, s:i, s:o, s:o}", "way", "held-out",
                     "profile", profile_path, "ranks", result->ranks, "nodes", result->nodes,
                     "oversubscribed", result->oversubscribed, "seconds", result->seconds, "trials",
                     validation->n, "not_measured", unmeasured(validation), "sums", sums,
                     "collectives", rows);
}
