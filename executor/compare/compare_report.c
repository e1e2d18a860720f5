/* executor/compare/compare_report.c - see compare/compare_report.h. */
#include "executor/compare/compare_report.h"

#include "core/base/file.h"
#include "core/base/table.h"
#include "core/base/units.h"
#include "executor/opbench/speed_probe.h"
#include "executor/report/prediction_error.h"

#include <inttypes.h>
#include <math.h>

static const double ms = 1e3;
/* of all cores; less is a system's own housekeeping */
static const double disturbing_fraction = 0.05;

static struct ghp_error_term term_of(const struct ghp_comparison *ab, const struct ghp_setup *s,
                                     int i)
{
    return (struct ghp_error_term){.predicted_s = s->session_plans[i].plan.predicted.step_s,
                                   .measured_s = ab->candidates.standings[i].measured_s};
}

/* Greatest fraction of a round, and which; -1 if none is known. */
static double worst_fraction(const struct ghp_comparison *ab, int *round)
{
    double worst = -1;

    *round = 0;
    for (int r = 0; r < ab->candidates.rounds; r++) {
        double fraction = ghp_cpu_fraction(ab->use[r]);

        if (fraction <= worst) continue;
        worst = fraction;
        *round = r;
    }
    return worst;
}

/* ---- for people ---- */

static void head_notes(struct ghp_table *t, const struct ghp_comparison *ab,
                       const struct ghp_setup *s)
{
    const struct ghp_plan *plan = &s->session_plans[0].plan;
    double coverage = ab->candidates.standings[0].ratio.coverage;

    ghp_table_note(t,
                   "%s, %d worker%s, global batch %" PRId64 "; %s, %s, numerics %s, %d thread(s)",
                   plan->model.name, s->size, ghp_plural(s->size), plan->problem.global_batch,
                   s->exec.backend_ops->name, ghp_precision_name(s->precision),
                   s->exact ? "exact" : "fast", s->threads);
    ghp_table_note(t,
                   "measured: median over %d round(s) of the mean of at most %" PRId64
                   " steps; turns "
                   "alternate, each after %" PRId64 " steps of warm-up",
                   ab->candidates.rounds, ab->steps, ab->warmup_steps);
    if (coverage > 0)
        ghp_table_note(t,
                       "ratio: median of each round's step by the first plan's, and the interval "
                       "(order statistics) that holds it with %.1f %%",
                       100 * coverage);
    else
        ghp_table_note(t, "ratio: median of each round's step by the first plan's; an interval "
                          "takes 6 rounds or more");
    if (s->options->emulate != NULL)
        ghp_table_note(t, "emulated: %s; measured times are those of such machines",
                       s->options->emulate);
    if (s->binding.oversubscribed)
        ghp_table_note(t, "workers share cores: these are the times of an oversubscribed machine");
}

static void disturbance_note(struct ghp_table *t, const struct ghp_comparison *ab)
{
    int round;
    double worst = worst_fraction(ab, &round), all = ghp_cpu_fraction(ab->all_use);

    if (worst <= disturbing_fraction && all <= disturbing_fraction) return;
    if (worst >= 0)
        ghp_table_note(t,
                       "disturbed: other programs took %.1f %% of all cores, in round %d %.1f %%; "
                       "measure again when they rest",
                       100 * all, round + 1, 100 * worst);
    else
        ghp_table_note(t,
                       "disturbed: other programs took %.1f %% of all cores; measure again when "
                       "they rest",
                       100 * all);
}

static struct ghp_speed_probe speed_probe_ratio(const struct ghp_comparison *ab,
                                                const struct ghp_setup *s)
{
    return ghp_speed_probe_ratio(&ab->speed_probe, &s->session_plans[0].plan.profile.speed_probe);
}

static void speed_probe_note(struct ghp_table *t, const struct ghp_comparison *ab,
                             const struct ghp_setup *s)
{
    struct ghp_speed_probe ratio = speed_probe_ratio(ab, s);

    if (ratio.compute_s > 0)
        ghp_table_note(t,
                       "two fixed jobs took %.2f (compute) and %.2f (memory) times as long as when "
                       "this machine was profiled",
                       ratio.compute_s, ratio.memory_s);
}

static void columns(struct ghp_table *t)
{
    ghp_table_column(t, "plan", NULL, 'l');
    ghp_table_column(t, "strategy", NULL, 'l');
    ghp_table_column(t, "predicted", "ms", 'r');
    ghp_table_column(t, "measured", "ms", 'r');
    ghp_table_column(t, "spread", "%", 'r');
    ghp_table_column(t, "error", "%", 'r');
    ghp_table_column(t, "ratio", NULL, 'r');
    ghp_table_column(t, "from", NULL, 'r');
    ghp_table_column(t, "to", NULL, 'r');
}

static void row(struct ghp_table *t, const struct ghp_comparison *ab, const struct ghp_setup *s,
                int i)
{
    const struct ghp_session_plan *e = &s->session_plans[i];
    const struct ghp_standing *standing = &ab->candidates.standings[i];
    struct ghp_error_term term = term_of(ab, s, i);

    ghp_table_row(t);
    ghp_table_cell(t, "%s", e->path);
    ghp_table_cell(t, "%s", ghp_strategy_name(e->plan.strategy));
    if (e->comparable)
        ghp_table_cell(t, "%.3f", ms * term.predicted_s);
    else
        ghp_table_cell(t, "-");
    ghp_table_cell(t, "%.3f", ms * term.measured_s);
    ghp_table_cell(t, "%.1f", 100 * standing->spread);
    if (e->comparable)
        ghp_table_cell(t, "%+.1f", 100 * ghp_term_error(term));
    else
        ghp_table_cell(t, "-");
    ghp_table_cell(t, "%.4f", standing->ratio.median);
    if (standing->ratio.coverage <= 0) return;
    ghp_table_cell(t, "%.4f", standing->ratio.low);
    ghp_table_cell(t, "%.4f", standing->ratio.high);
}

enum ghp_status ghp_compare_report(const struct ghp_comparison *ab, const struct ghp_setup *s,
                                   FILE *out)
{
    const struct ghp_contest *c = &ab->candidates;
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status;
    bool all_comparable = true;

    head_notes(t, ab, s);
    disturbance_note(t, ab);
    speed_probe_note(t, ab, s);
    for (int i = 0; i < s->n_session_plans; i++)
        all_comparable = all_comparable && s->session_plans[i].comparable;
    if (!all_comparable)
        ghp_table_note(t, "no prediction where a plan's profile is not of this backend and "
                          "numerics");
    columns(t);
    for (int i = 0; i < s->n_session_plans; i++)
        row(t, ab, s, i);
    status = ghp_table_print(t, out);
    ghp_table_close(t);
    GHP_TRY(status);
    fprintf(out, "\nwinner '%s'%s\n", s->session_plans[c->winner].path,
            c->certain                            ? ""
            : c->standings[0].ratio.coverage <= 0 ? ", by median alone: too few rounds to be sure"
                                                  : ", by median alone: too close to be sure");
    return ghp_file_flush(out, "the table");
}

/* ---- for programs ---- */

static void put(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static json_t *real_or_null(bool known, double value)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

static json_t *share_json(struct ghp_cpu_use use)
{
    double fraction = ghp_cpu_fraction(use);

    return real_or_null(fraction >= 0, fraction);
}

static json_t *plan_json(const struct ghp_comparison *ab, const struct ghp_setup *s, int i)
{
    const struct ghp_session_plan *e = &s->session_plans[i];
    const struct ghp_standing *standing = &ab->candidates.standings[i];
    struct ghp_error_term term = term_of(ab, s, i);
    json_t *o = json_object(), *rounds = json_array();

    put(o, "plan", json_string(e->path));
    put(o, "strategy", json_string(ghp_strategy_name(e->plan.strategy)));
    put(o, "groups", json_integer(e->plan.groups));
    put(o, "group_size", json_integer(e->plan.group_size));
    put(o, "comparable", json_boolean(e->comparable));
    put(o, "predicted_step_s", real_or_null(e->comparable, term.predicted_s));
    put(o, "measured_step_s", json_real(term.measured_s));
    put(o, "steps", json_integer(ab->turn_steps[i]));
    put(o, "spread", json_real(standing->spread));
    put(o, "error", real_or_null(e->comparable, ghp_term_error(term)));
    put(o, "ratio", json_real(standing->ratio.median));
    put(o, "ratio_low", real_or_null(true, standing->ratio.low));
    put(o, "ratio_high", real_or_null(true, standing->ratio.high));
    for (int r = 0; r < ab->candidates.rounds; r++)
        json_array_append_new(rounds, json_real(ab->seconds[r * ab->candidates.n + i]));
    put(o, "rounds_s", rounds);
    return o;
}

static json_t *rounds_json(const struct ghp_comparison *ab)
{
    json_t *rounds = json_array();

    for (int r = 0; r < ab->candidates.rounds; r++) {
        json_t *o = json_object(), *order = json_array();

        for (int i = 0; i < ab->candidates.n; i++)
            json_array_append_new(order, json_integer(ab->order[r * ab->candidates.n + i] + 1));
        put(o, "order", order);
        put(o, "foreign_share", share_json(ab->use[r]));
        json_array_append_new(rounds, o);
    }
    return rounds;
}

static json_t *speed_probe_json(struct ghp_speed_probe ratio)
{
    json_t *o = json_object();

    put(o, "compute", real_or_null(ratio.compute_s > 0, ratio.compute_s));
    put(o, "memory", real_or_null(ratio.memory_s > 0, ratio.memory_s));
    return o;
}

static void put_option(const char *name, const char *value, void *context)
{
    put(context, name, value != NULL ? json_string(value) : json_null());
}

static void put_setup(json_t *o, const struct ghp_setup *s)
{
    const struct ghp_plan *plan = &s->session_plans[0].plan;

    put(o, "model", json_string(plan->model.name));
    put(o, "workers", json_integer(s->size));
    put(o, "global_batch", json_integer(plan->problem.global_batch));
    put(o, "backend", json_string(s->exec.backend_ops->name));
    put(o, "precision", json_string(ghp_precision_name(s->precision)));
    put(o, "numerics", json_string(s->exact ? "exact" : "fast"));
    put(o, "threads", json_integer(s->threads));
    put(o, "oversubscribed", json_boolean(s->binding.oversubscribed));
    put(o, "data", json_string(ghp_data_text(s->training_config.data)));
    put(o, "seed", json_integer((json_int_t)s->options->seed));
}

json_t *ghp_compare_json(const struct ghp_comparison *ab, const struct ghp_setup *s,
                         json_t *training)
{
    const struct ghp_contest *c = &ab->candidates;
    json_t *o = json_object(), *plans = json_array(), *options = json_object();
    double coverage = c->standings[0].ratio.coverage;

    if (o == NULL || plans == NULL || options == NULL) {
        json_decref(o);
        json_decref(plans);
        json_decref(options);
        json_decref(training);
        return NULL;
    }
    put(o, "format", json_string("ghp.comparison/2"));
    put_setup(o, s);
    put(o, "warmup_steps", json_integer(ab->warmup_steps));
    put(o, "steps", json_integer(ab->steps));
    put(o, "interval_coverage", real_or_null(coverage > 0, coverage));
    put(o, "winner", json_string(s->session_plans[c->winner].path));
    put(o, "winner_certain", json_boolean(c->certain));
    put(o, "foreign_share", share_json(ab->all_use));
    put(o, "speed_probe", speed_probe_json(speed_probe_ratio(ab, s)));
    for (int i = 0; i < c->n; i++)
        json_array_append_new(plans, plan_json(ab, s, i));
    put(o, "plans", plans);
    put(o, "rounds", rounds_json(ab));
    ghp_opts_each(s->session->tool, put_option, options);
    put(o, "options", options);
    put(o, "training", training != NULL ? training : json_null());
    return o;
}
