/* planner/calibration/calibrate.c - see calibrate.h. */
#include "planner/calibration/calibrate.h"

#include "core/cost/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Entries are never corrected below this part of what the factor alone makes of them. */
static const double least_part = 0.25;

struct measured_values { /* of the profile before any correction */
    double *op_s, *comm_s;
    struct ghp_rate rates[4]; /* copy, update, load, accumulate */
    struct ghp_overlap overlap;
    struct ghp_law law;
    struct ghp_link intra, inter;
};

struct trial {
    const struct ghp_observations *observations;
    struct ghp_profile *profile;
    struct measured_values measured;
    struct ghp_calibration constants; /* what the profile shows while runs are priced */
    struct ghp_correction *corrections;
    int n;
    bool *counts; /* [run] */
};

void ghp_calibrate_release(struct ghp_calibrate_result *result)
{
    if (result == NULL) return;
    free(result->runs);
    free(result->corrections);
    *result = (struct ghp_calibrate_result){0};
}

/* ---- applying ---- */

static struct ghp_rate *rate_of(struct ghp_profile *profile, int i)
{
    struct ghp_rate *const rates[] = {&profile->copy, &profile->update, &profile->load,
                                      &profile->accumulate};

    return rates[i];
}

static enum ghp_status remember(const struct ghp_profile *profile, struct measured_values *m)
{
    m->op_s = ghp_alloc((size_t)profile->n_ops, sizeof *m->op_s);
    m->comm_s = ghp_alloc((size_t)profile->n_comms, sizeof *m->comm_s);
    if (m->op_s == NULL || m->comm_s == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < profile->n_ops; ++i)
        m->op_s[i] = profile->ops[i].seconds;
    for (int i = 0; i < profile->n_comms; ++i)
        m->comm_s[i] = profile->comms[i].seconds;
    m->rates[0] = profile->copy;
    m->rates[1] = profile->update;
    m->rates[2] = profile->load;
    m->rates[3] = profile->accumulate;
    m->overlap = profile->overlap;
    m->law = profile->law;
    m->intra = profile->machine.intra;
    m->inter = profile->machine.inter;
    return GHP_OK;
}

static void undo(struct trial *t)
{
    struct ghp_profile *p = t->profile;

    for (int i = 0; i < p->n_ops; ++i) {
        if (p->ops[i].seconds > 0)
            ghp_op_entry_scale(&p->ops[i], t->measured.op_s[i] / p->ops[i].seconds);
        p->ops[i].seconds = t->measured.op_s[i];
        p->ops[i].calibrated = false;
    }
    for (int i = 0; i < p->n_comms; ++i) {
        p->comms[i].seconds = t->measured.comm_s[i];
        p->comms[i].calibrated = false;
    }
    for (int i = 0; i < 4; ++i)
        *rate_of(p, i) = t->measured.rates[i];
    p->overlap = t->measured.overlap;
    p->law = t->measured.law;
    p->machine.intra = t->measured.intra;
    p->machine.inter = t->measured.inter;
    t->constants = (struct ghp_calibration){0};
    p->calibration = NULL;
}

static bool is_operation(const char *key, enum ghp_op op)
{
    size_t n = strlen(ghp_op_name(op));

    return strncmp(key, ghp_op_name(op), n) == 0 && key[n] == ' ';
}

static void apply_ops(struct ghp_profile *p, const struct ghp_correction *c)
{
    for (int i = 0; i < p->n_ops; ++i) {
        if ((int)p->ops[i].pass != c->part.which ||
            !is_operation(p->ops[i].key, (enum ghp_op)c->part.op))
            continue;
        ghp_op_entry_scale(&p->ops[i], c->factor);
        p->ops[i].calibrated = true;
    }
}

static void apply_comms(struct ghp_profile *p, const struct ghp_correction *c)
{
    for (int i = 0; i < p->n_comms; ++i) {
        double alone_s = c->factor * p->comms[i].seconds;

        if ((int)p->comms[i].op != c->part.op || p->comms[i].count != c->part.which) continue;
        p->comms[i].seconds = fmax(alone_s + c->extra_s, least_part * alone_s);
        p->comms[i].calibrated = true;
    }
}

static void apply_rate(struct ghp_rate *rate, double factor)
{
    rate->latency_s *= factor;
    rate->bandwidth_Bps /= factor;
    rate->calibrated = true;
}

static void apply_link(struct ghp_link *link, double factor)
{
    link->latency_s *= factor;
    link->bandwidth_Bps /= factor;
}

static void apply(struct trial *t, const struct ghp_correction *c)
{
    struct ghp_profile *p = t->profile;

    switch (c->part.kind) {
    case GHP_PART_COMPUTE: apply_ops(p, c); break;
    case GHP_PART_COMM: apply_comms(p, c); break;
    case GHP_PART_LAW:
        p->law.flops_per_s /= c->factor;
        p->law.memory_Bps /= c->factor;
        break;
    case GHP_PART_LINK:
        apply_link(&p->machine.intra, c->factor);
        apply_link(&p->machine.inter, c->factor);
        break;
    case GHP_PART_COPY:
    case GHP_PART_UPDATE:
    case GHP_PART_LOAD:
    case GHP_PART_ACCUMULATE:
        apply_rate(rate_of(p, (int)c->part.kind - GHP_PART_COPY), c->factor);
        break;
    case GHP_PART_BESIDE_COMPUTE:
    case GHP_PART_BESIDE_COMM:
    case GHP_PART_BESIDE_LINK: ghp_correction_slow(c, &p->overlap); break;
    case GHP_PART_BETWEEN: t->constants.instruction_s = c->extra_s; break;
    case GHP_PART_EXCHANGE: t->constants.exchange_s = c->extra_s; break;
    case GHP_PART_REDUCTION: t->constants.reduction_s = c->extra_s; break;
    }
}

/* Corrects the profile by the runs that count. */
static enum ghp_status fit(struct trial *t)
{
    undo(t);
    GHP_TRY(ghp_corrections_estimate(t->observations, t->counts, &t->measured.overlap,
                                     t->corrections, &t->n));
    for (int i = 0; i < t->n; ++i)
        apply(t, &t->corrections[i]);
    t->profile->calibration = &t->constants;
    return GHP_OK;
}

/* ---- judging ---- */

static enum ghp_status predict(const struct trial *t, int run, double *seconds)
{
    struct ghp_timing timing;

    GHP_TRY(ghp_simulate(&t->observations->runs[run].program, t->profile, &timing));
    *seconds = timing.step_s;
    ghp_timing_release(&timing);
    return GHP_OK;
}

/* Predicts each run by the runs of other plans, or by the other runs where all are of one plan. */
static enum ghp_status hold_out(struct trial *t, struct ghp_calibrate_result *r)
{
    bool one_plan = true;

    for (int i = 1; i < r->n_runs; ++i)
        one_plan = one_plan && ghp_record_same_plan(r->runs[0].record, r->runs[i].record);
    for (int i = 0; i < r->n_runs; ++i)
        r->runs[i].held_out_s = NAN;
    r->validated = r->n_runs > 1;
    for (int i = 0; r->validated && i < r->n_runs; ++i) {
        if (!isnan(r->runs[i].held_out_s)) continue;
        for (int k = 0; k < r->n_runs; ++k)
            t->counts[k] =
                one_plan ? k != i : !ghp_record_same_plan(r->runs[i].record, r->runs[k].record);
        GHP_TRY(fit(t));
        for (int k = 0; k < r->n_runs; ++k)
            if (!t->counts[k]) GHP_TRY(predict(t, k, &r->runs[k].held_out_s));
    }
    return GHP_OK;
}

static void add_error(struct ghp_calibration_error *error, double predicted_s, double measured_s,
                      int n)
{
    double relative = fabs(predicted_s - measured_s) / measured_s;

    error->mean += relative / n;
    error->worst = fmax(error->worst, relative);
}

static void judge(struct ghp_calibrate_result *r)
{
    for (int i = 0; i < r->n_runs; ++i) {
        const struct ghp_calibrated_run *run = &r->runs[i];
        double measured_s = run->record->measured_step_s;

        add_error(&r->before, run->before_s, measured_s, r->n_runs);
        add_error(&r->after, run->after_s, measured_s, r->n_runs);
        if (r->validated) add_error(&r->held_out, run->held_out_s, measured_s, r->n_runs);
    }
    r->helps = r->validated && r->held_out.mean <= GHP_CALIBRATION_HELPS * r->before.mean;
}

/* ---- the provenance ---- */

static char *now_text(void)
{
    time_t now = time(NULL);
    char text[32] = "";
    struct tm utc;

    if (gmtime_r(&now, &utc) != NULL) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return strdup(text);
}

/* Puts what was done into the profile. */
static enum ghp_status sign(struct trial *t, const struct ghp_calibrate_result *r)
{
    struct ghp_calibration *c = ghp_calibration_open(r->n_runs, t->n);
    bool failed = false;
    char term[64];

    if (c == NULL) return GHP_NO_MEMORY();
    c->created = now_text();
    c->profile_hash = t->profile->hash; /* not sealed anew yet: the measured one's */
    c->instruction_s = t->constants.instruction_s;
    c->exchange_s = t->constants.exchange_s;
    c->reduction_s = t->constants.reduction_s;
    c->before = r->before;
    c->after = r->after;
    c->held_out = r->held_out;
    c->validated = r->validated;
    for (int i = 0; i < r->n_runs; ++i) {
        c->runs[i] =
            (struct ghp_calibration_run){strdup(r->runs[i].record->path), r->runs[i].record->hash};
        failed |= c->runs[i].path == NULL;
    }
    for (int i = 0; i < t->n; ++i) {
        const struct ghp_correction *from = &t->corrections[i];

        ghp_part_text(from->part, term, sizeof term);
        c->factors[i] = (struct ghp_calibration_factor){strdup(term), from->factor, from->extra_s,
                                                        from->n, from->weight_s};
        failed |= c->factors[i].term == NULL;
    }
    if (failed || c->created == NULL) {
        ghp_calibration_close(c);
        return GHP_NO_MEMORY();
    }
    t->profile->calibration = c;
    return ghp_profile_seal(t->profile);
}

/* ---- all of it ---- */

static enum ghp_status run_trial(struct trial *t, struct ghp_calibrate_result *r)
{
    enum ghp_status status = GHP_OK;

    for (int i = 0; i < r->n_runs; ++i)
        GHP_TRY(predict(t, i, &r->runs[i].before_s));
    GHP_TRY_GOTO(status, hold_out(t, r), fail);
    for (int i = 0; i < r->n_runs; ++i)
        t->counts[i] = true;
    GHP_TRY_GOTO(status, fit(t), fail);
    for (int i = 0; i < r->n_runs; ++i)
        GHP_TRY_GOTO(status, predict(t, i, &r->runs[i].after_s), fail);
    judge(r);
    GHP_TRY_GOTO(status, sign(t, r), fail);
    r->n_corrections = t->n;
    return GHP_OK;
fail:
    if (t->profile->calibration == &t->constants) t->profile->calibration = NULL;
    return status;
}

enum ghp_status ghp_calibrate(const struct ghp_model *model, const struct ghp_record *records,
                              int n, struct ghp_profile *profile, struct ghp_calibrate_result *r)
{
    struct ghp_observations observations;
    struct trial t = {.profile = profile, .observations = &observations};
    enum ghp_status status;

    *r = (struct ghp_calibrate_result){0};
    if (profile->calibration != NULL)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the profile was calibrated already, %s; give the one that ghp-profile "
                        "measured, with all the runs",
                        profile->calibration->created);
    GHP_TRY(ghp_observe(model, records, n, profile, &observations));
    r->runs = ghp_alloc((size_t)n, sizeof *r->runs);
    r->corrections = ghp_alloc((size_t)observations.n + 6, sizeof *r->corrections);
    t.counts = ghp_alloc((size_t)n, sizeof *t.counts);
    t.corrections = r->corrections;
    if (r->runs == NULL || r->corrections == NULL || t.counts == NULL)
        GHP_TRY_GOTO(status, GHP_NO_MEMORY(), done);
    r->n_runs = n;
    for (int i = 0; i < n; ++i)
        r->runs[i].record = &records[i];
    GHP_TRY_GOTO(status, remember(profile, &t.measured), done);
    GHP_TRY_GOTO(status, run_trial(&t, r), done);
done:
    free(t.measured.op_s);
    free(t.measured.comm_s);
    free(t.counts);
    ghp_observations_release(&observations);
    if (status != GHP_OK) ghp_calibrate_release(r);
    return status;
}
