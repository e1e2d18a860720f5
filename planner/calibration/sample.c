/* planner/calibration/sample.c - see calibration/sample.h. */
#include "planner/calibration/sample.h"

#include "core/program/lower.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ghp_observations_release(struct ghp_observations *o)
{
    if (o == NULL) return;
    for (int i = 0; i < o->n_runs; ++i)
        ghp_program_release(&o->runs[i].program);
    free(o->runs);
    free(o->items);
    *o = (struct ghp_observations){0};
}

void ghp_part_text(struct ghp_part part, char *text, size_t n)
{
    static const char *const names[] = {[GHP_PART_LAW] = "law of computation",
                                        [GHP_PART_LINK] = "law of the links",
                                        [GHP_PART_COPY] = "copy",
                                        [GHP_PART_UPDATE] = "update",
                                        [GHP_PART_LOAD] = "load",
                                        [GHP_PART_ACCUMULATE] = "accumulate",
                                        [GHP_PART_BESIDE_COMPUTE] = "computing beside a reduction",
                                        [GHP_PART_BESIDE_COMM] = "reducing beside computation",
                                        [GHP_PART_BESIDE_LINK] = "exchanging beside a reduction",
                                        [GHP_PART_BETWEEN] = "between instructions",
                                        [GHP_PART_EXCHANGE] = "waiting for partners, exchange",
                                        [GHP_PART_REDUCTION] = "waiting for partners, reduction"};

    if (part.kind == GHP_PART_COMPUTE)
        snprintf(text, n, "%s %s", ghp_op_name((enum ghp_op)part.op),
                 ghp_pass_name((enum ghp_pass)part.which));
    else if (part.kind == GHP_PART_COMM)
        snprintf(text, n, "%s over %d", ghp_comm_name((enum ghp_comm_op)part.op), part.which);
    else
        snprintf(text, n, "%s", names[part.kind]);
}

double ghp_observation_slowed(const struct ghp_observation *o, const struct ghp_overlap *overlap,
                              int kind)
{
    struct ghp_sharing sharing = ghp_overlap_sharing(overlap, o->exchange_s);

    if (kind == 0) return overlap->compute;
    if (kind == 1) return ghp_overlap_comm(overlap, o->bytes);
    return o->beside ? sharing.reduction : sharing.exchange;
}

double ghp_observation_slowdown(const struct ghp_observation *o, const struct ghp_overlap *overlap)
{
    double lost = 0;

    for (int i = 0; i < 3; ++i)
        lost += o->shares[i] * (1 - 1 / ghp_observation_slowed(o, overlap, i));
    return 1 / (1 - lost);
}

/* ---- whether a run fits ---- */

static enum ghp_status check_profile(const struct ghp_record *r, const struct ghp_profile *profile)
{
    bool analytic = strcmp(profile->backend, "analytic") == 0;

    if (profile->workers > 0 && profile->workers != r->extent.workers)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "run '%s' is of %d workers, but the profile was measured with %d at once; "
                        "give runs of %d workers, or measure with ghp-profile --workers %d",
                        r->path, r->extent.workers, profile->workers, profile->workers,
                        r->extent.workers);
    if (!ghp_precision_same(ghp_profile_precision(profile), r->precision))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "run '%s' is in %s, but the profile in %s; give a profile and runs of one "
                        "precision",
                        r->path, ghp_precision_name(r->precision),
                        ghp_precision_name(ghp_profile_precision(profile)));
    if (analytic ||
        (strcmp(profile->backend, r->backend) == 0 && strcmp(profile->numerics, r->numerics) == 0))
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "run '%s' is of %s with numerics %s, but the profile of %s with numerics %s; "
                    "run again with ghp-run --backend %s --numerics %s",
                    r->path, r->backend, r->numerics, profile->backend, profile->numerics,
                    profile->backend, profile->numerics);
}

static enum ghp_status check_model(const struct ghp_record *r, const struct ghp_model *model)
{
    bool same = r->model_hash == model->hash && r->n_layers == model->n_layers;

    for (int i = 0; same && i < model->n_layers; ++i)
        same = strcmp(r->layers[i].name, model->layers[i].name) == 0;
    if (!same)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "run '%s' trained '%s', which is not the model '%s' given here; give its "
                        "own model file as it was, or another run",
                        r->path, r->model, model->name);
    if (strcmp(r->fault, "none") != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "run '%s' trained with the fault '%s', which changes its times; give a run "
                        "without --fault",
                        r->path, r->fault);
    return GHP_OK;
}

static bool same_instr(const struct ghp_model *model, const struct ghp_instr *a,
                       const struct ghp_record_instr *b)
{
    const char *layer = a->layer >= 0 ? model->layers[a->layer].name : NULL;
    bool same_layer =
        layer == NULL || b->layer == NULL ? layer == b->layer : strcmp(layer, b->layer) == 0;

    return same_layer && strcmp(ghp_instr_name(a), b->name) == 0 && a->bytes == b->bytes &&
           a->copy_bytes == b->copy_bytes && (a->stream == GHP_STREAM_COMM) == b->beside;
}

static enum ghp_status lower_run(const struct ghp_model *model, const struct ghp_record *r,
                                 struct ghp_program *program)
{
    struct ghp_lowering how = {.model = model,
                               .extent = r->extent,
                               .element_bytes = r->precision.element_bytes,
                               .bucket_bytes = r->bucket_bytes};
    struct ghp_split *splits = ghp_alloc((size_t)r->n_layers, sizeof *splits);
    enum ghp_status status;
    int i = 0;

    if (splits == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v < r->n_layers; ++v)
        splits[v] = r->layers[v].split;
    status = ghp_lower(&how, splits, 0, program);
    free(splits);
    if (status != GHP_OK) return status;
    while (i < program->n_instrs && i < r->n_instrs &&
           same_instr(model, &program->instrs[i], &r->instrs[i]))
        ++i;
    if (i == program->n_instrs && i == r->n_instrs) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "instruction %d of run '%s' is not what this version of ghp makes of its plan; "
                    "run the plan again with ghp-run --run",
                    i, r->path);
}

/* ---- shares beside the other stream ---- */

static double overlap_s(double a, double a_end, double b, double b_end)
{
    return fmax(0, fmin(a_end, b_end) - fmax(a, b));
}

/* The part of an instruction's own seconds, which end where it ends, that run beside another instruction; reductions
 * of the steps before and after count too. */
static double share_of(const struct ghp_record *r, int i, int other)
{
    const struct ghp_record_instr *a = &r->instrs[i], *b = &r->instrs[other];
    double end = a->measured_start_s + a->measured_s, start = end - a->measured_own_s, sum = 0;
    double other_end = b->measured_start_s + b->measured_s,
           other_start = other_end - b->measured_own_s;

    for (int k = -2; k <= 2; ++k)
        sum += overlap_s(start, end, other_start + k * r->measured_step_s,
                         other_end + k * r->measured_step_s);
    return a->measured_own_s > 0 ? sum / a->measured_own_s : 0;
}

static enum ghp_status find_shares(const struct ghp_profile *profile,
                                   const struct ghp_run_case *run, int i, struct ghp_observation *o)
{
    double sum = 0, exchanges_s = 0;
    int exchanges = 0;

    for (int other = 0; other < run->program.n_instrs; ++other) {
        const struct ghp_instr *b = &run->program.instrs[other];
        bool link = o->beside ? ghp_instr_sends(b) : o->sends;
        int kind = link ? 2 : o->beside ? 1 : 0;
        struct ghp_price price;
        double share;

        if ((b->stream == GHP_STREAM_COMM) == o->beside) continue;
        if (!o->beside && !ghp_instr_sends(b))
            continue; /* a reduction over one worker does nothing */
        share = share_of(run->record, i, other);
        o->shares[kind] += share;
        if (!link || !o->beside || !(share > 0)) continue;
        GHP_TRY(ghp_profile_price(profile, b, run->record->extent.workers, &price));
        exchanges_s += price.seconds;
        ++exchanges;
    }
    if (exchanges > 0) o->exchange_s = exchanges_s / exchanges;
    for (int k = 0; k < 3; ++k)
        sum += o->shares[k];
    for (int k = 0; k < 3 && sum > 1; ++k) /* starts are of one step, durations means */
        o->shares[k] /= sum;
    return GHP_OK;
}

/* ---- joining ---- */

static bool has_ops(const struct ghp_profile *profile, int op, int pass)
{
    const char *name = ghp_op_name((enum ghp_op)op);
    size_t length = strlen(name);

    for (int i = 0; i < profile->n_ops; ++i)
        if ((int)profile->ops[i].pass == pass && strncmp(profile->ops[i].key, name, length) == 0 &&
            profile->ops[i].key[length] == ' ')
            return true;
    return false;
}

static bool has_comms(const struct ghp_profile *profile, int op, int count)
{
    for (int i = 0; i < profile->n_comms; ++i)
        if ((int)profile->comms[i].op == op && profile->comms[i].count == count) return true;
    return false;
}

/* The part that prices an instruction; false where none does that could be corrected: a collective whose group size
 * was not measured while others were. */
static bool part_of(const struct ghp_profile *profile, const struct ghp_instr *instr,
                    struct ghp_part *part)
{
    *part = (struct ghp_part){0};
    switch (instr->kind) {
    case GHP_INSTR_COMPUTE:
        *part = (struct ghp_part){GHP_PART_COMPUTE, (int)instr->local.op, (int)instr->pass};
        if (!has_ops(profile, part->op, part->which)) *part = (struct ghp_part){GHP_PART_LAW, 0, 0};
        return true;
    case GHP_INSTR_LOAD: part->kind = GHP_PART_LOAD; return true;
    case GHP_INSTR_UPDATE: part->kind = GHP_PART_UPDATE; return true;
    case GHP_INSTR_ACCUMULATE: part->kind = GHP_PART_ACCUMULATE; return true;
    default: break;
    }
    part->kind = GHP_PART_COPY;
    if (!ghp_instr_sends(instr)) return true;
    *part = (struct ghp_part){GHP_PART_LINK, 0, 0};
    if (profile->n_comms == 0) return true;
    *part = (struct ghp_part){GHP_PART_COMM, (int)instr->comm, instr->ranks.count};
    return has_comms(profile, part->op, part->which);
}

static bool same_part(struct ghp_part a, struct ghp_part b)
{
    return a.kind == b.kind && a.op == b.op && a.which == b.which;
}

/* Adds the observation that instruction i of a run is, if it is one. */
static enum ghp_status observe_instr(const struct ghp_profile *profile,
                                     struct ghp_observations *all, int run, int i)
{
    const struct ghp_run_case *c = &all->runs[run];
    const struct ghp_record_instr *said = &c->record->instrs[i];
    struct ghp_observation *o = &all->items[all->n];
    struct ghp_instr instr = c->program.instrs[i];
    struct ghp_price whole, part;

    GHP_TRY(ghp_profile_price(profile, &instr, c->record->extent.workers, &whole));
    part = whole;
    if (ghp_instr_sends(&instr) && instr.copy_bytes > 0) {
        instr.copy_bytes = 0;
        GHP_TRY(ghp_profile_price(profile, &instr, c->record->extent.workers, &part));
    }
    *o = (struct ghp_observation){.run = run,
                                  .price_s = part.seconds,
                                  .copy_s = whole.seconds - part.seconds,
                                  .own_s = said->measured_own_s,
                                  .partners_s = said->measured_partners_s,
                                  .sends = ghp_instr_sends(&instr),
                                  .exchange_s = whole.seconds,
                                  .bytes = instr.bytes,
                                  .beside = instr.stream == GHP_STREAM_COMM};
    if (!(o->price_s > 0) || !(o->own_s > 0) || !part_of(profile, &instr, &o->part)) return GHP_OK;
    GHP_TRY(find_shares(profile, c, i, o));
    while (!same_part(all->items[o->first].part, o->part))
        ++o->first; /* ends at the observation itself */
    ++all->n;
    return GHP_OK;
}

static enum ghp_status observe_run(const struct ghp_model *model, const struct ghp_profile *profile,
                                   struct ghp_observations *all, int run)
{
    struct ghp_run_case *c = &all->runs[run];
    int in_line = 0;

    GHP_TRY(check_model(c->record, model));
    GHP_TRY(check_profile(c->record, profile));
    if (c->record->extent.workers != all->runs[0].record->extent.workers)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "run '%s' is of %d workers, but run '%s' of %d; give runs of one worker "
                        "count",
                        c->record->path, c->record->extent.workers, all->runs[0].record->path,
                        all->runs[0].record->extent.workers);
    GHP_TRY(lower_run(model, c->record, &c->program));
    for (int i = 0; i < c->program.n_instrs; ++i)
        in_line += c->program.instrs[i].stream == GHP_STREAM_COMPUTE;
    c->between_s = in_line > 0 ? fmax(0, c->record->measured_between_s) / in_line : 0;
    for (int i = 0; i < c->program.n_instrs; ++i)
        GHP_TRY(observe_instr(profile, all, run, i));
    return GHP_OK;
}

enum ghp_status ghp_observe(const struct ghp_model *model, const struct ghp_record *records, int n,
                            const struct ghp_profile *profile, struct ghp_observations *out)
{
    enum ghp_status status = GHP_OK;
    size_t most = 0;

    for (int i = 0; i < n; ++i)
        most += (size_t)records[i].n_instrs;
    *out = (struct ghp_observations){.runs = ghp_alloc((size_t)n, sizeof *out->runs),
                                     .items = ghp_alloc(most, sizeof *out->items)};
    if (out->runs == NULL || out->items == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), done);
    out->n_runs = n;
    for (int i = 0; i < n; ++i)
        out->runs[i].record = &records[i];
    for (int i = 0; i < n; ++i)
        GHP_TRY_GOTO(status, observe_run(model, profile, out, i), done);
done:
    if (status != GHP_OK) ghp_observations_release(out);
    return status;
}
