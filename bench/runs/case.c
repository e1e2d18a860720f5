/* bench/runs/case.c - see case.h. */
#include "bench/runs/case.h"

#include "core/cost/profile_peak.h"
#include "core/plan/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ghp_run_case_refuse(struct ghp_run_case *item, const char *fmt, ...)
{
    va_list args;

    if (item->reason[0] != '\0') return;
    va_start(args, fmt);
    vsnprintf(item->reason, sizeof item->reason, fmt, args);
    va_end(args);
}

static bool is_given(const struct ghp_run_row *row, enum ghp_column column)
{
    return row->text[column][0] != '\0' && strcmp(row->text[column], "none") != 0 &&
           strcmp(row->text[column], "no") != 0;
}

/* What no plan of ghp's has, or no step's model can have. */
static void check_row(struct ghp_run_case *item)
{
    const struct ghp_run_row *row = item->row;
    int64_t dp = ghp_run_row_number(row, GHP_COLUMN_DP, 0);
    enum ghp_param_sharding sharding;

    if (!(item->measured_s > 0)) ghp_run_case_refuse(item, "no seconds of a step are published");
    if (ghp_run_row_has(row, GHP_COLUMN_NOTE, "input-bound"))
        ghp_run_case_refuse(item, "waited for its input, not for its step");
    if (is_given(row, GHP_COLUMN_SHARDING) && !ghp_run_case_sharding(row, &sharding))
        ghp_run_case_refuse(item, "ghp does not know how '%s' shards",
                            row->text[GHP_COLUMN_SHARDING]);
    if (ghp_run_row_has(row, GHP_COLUMN_MODEL, "lora") ||
        ghp_run_row_has(row, GHP_COLUMN_NOTE, "lora"))
        ghp_run_case_refuse(item, "adapters are trained, and not the network");
    if (ghp_run_row_has(row, GHP_COLUMN_SPLIT, "spatial"))
        ghp_run_case_refuse(item, "images are split spatially");
    if (ghp_run_row_number(row, GHP_COLUMN_VPP, 1) > 1)
        ghp_run_case_refuse(item, "pipeline stages are interleaved");
    if (ghp_run_row_number(row, GHP_COLUMN_EP, 1) > 1)
        ghp_run_case_refuse(item, "experts are divided");
    if (ghp_run_row_number(row, GHP_COLUMN_CP, 1) > 1)
        ghp_run_case_refuse(item, "attention is divided by positions");
    if (is_given(row, GHP_COLUMN_RECOMPUTE) && !ghp_run_row_has(row, GHP_COLUMN_RECOMPUTE, "full"))
        ghp_run_case_refuse(item, "what is recomputed is not whole blocks: %s",
                            row->text[GHP_COLUMN_RECOMPUTE]);
    if (ghp_run_row_number(row, GHP_COLUMN_GLOBAL_BATCH, 0) < 1 || item->devices < 1)
        ghp_run_case_refuse(item, "no batch, or no number of devices, is published");
    if (dp > 0 && dp * ghp_run_row_number(row, GHP_COLUMN_TP, 1) *
                          ghp_run_row_number(row, GHP_COLUMN_PP, 1) !=
                      item->devices)
        ghp_run_case_refuse(item, "dp, tp and pp do not make %d devices", item->devices);
}

/* The first word that the row has counts: what computes in half precision keeps weights in fp32. */
static void read_precision(struct ghp_run_case *item)
{
    static const struct {
        const char *word;
        struct ghp_precision precision;
        bool fp16;
    } words[] = {{"fp8", {0, false}, false},  {"int8", {0, false}, false},
                 {"bf16", {2, false}, false}, {"bfloat16", {2, false}, false},
                 {"fp16", {2, false}, true},  {"float16", {2, false}, true},
                 {"half", {2, false}, true},  {"mixed", {2, false}, true},
                 {"amp", {2, false}, true},   {"tf32", {4, true}, false},
                 {"fp32", {4, false}, false}, {"float32", {4, false}, false},
                 {"fp64", {8, false}, false}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!ghp_run_row_has(item->row, GHP_COLUMN_PRECISION, words[i].word)) continue;
        item->precision = words[i].precision;
        item->fp16 = words[i].fp16;
        break;
    }
    if (item->row->text[GHP_COLUMN_PRECISION][0] == '\0')
        ghp_run_case_refuse(item, "no precision is published");
    if (item->precision.element_bytes == 0)
        ghp_run_case_refuse(item, "ghp does not compute in %s",
                            item->row->text[GHP_COLUMN_PRECISION]);
}

enum ghp_status ghp_run_case_open(const struct ghp_run_row *row, const char *models,
                                  struct ghp_run_case *item)
{
    *item = (struct ghp_run_case){.row = row,
                                  .measured_s = ghp_run_row_seconds(row, GHP_COLUMN_STEP),
                                  .devices = ghp_run_row_count(row, GHP_COLUMN_DEVICES, 0)};
    check_row(item);
    read_precision(item);
    if (item->reason[0] == '\0') GHP_TRY(ghp_run_case_model(item, models));
    if (item->reason[0] == '\0') GHP_TRY(ghp_run_case_machine(item));
    if (item->reason[0] == '\0') GHP_TRY(ghp_run_case_plan(item));
    return GHP_OK;
}

void ghp_run_case_close(struct ghp_run_case *item)
{
    ghp_model_release(&item->model);
    ghp_machine_release(&item->machine);
    free(item->splits);
    free(item->recompute);
    *item = (struct ghp_run_case){0};
}

/* Makes all computation `rate` times as fast: products, traffic of the memory and updates, but not the links. */
static void scale(struct ghp_profile *profile, double rate)
{
    profile->analytic.flops_per_s *= rate;
    profile->analytic.memory_Bps *= rate;
    profile->copy.bandwidth_Bps *= rate;
    profile->load.bandwidth_Bps *= rate;
    profile->accumulate.bandwidth_Bps *= rate;
    profile->fused_accumulate.bandwidth_Bps *= rate;
    for (int i = 0; i < GHP_OPTIMIZERS; i++)
        profile->update[i].bandwidth_Bps *= rate;
}

enum ghp_status ghp_run_case_step(const struct ghp_run_case *item, double rate, double *step_s)
{
    struct ghp_profile profile;
    enum ghp_status status;

    GHP_TRY(ghp_profile_peak(&item->machine, item->devices, item->precision, &profile));
    scale(&profile, rate);
    profile.analytic.stores_scores = item->stores_scores;
    status = ghp_plan_predict_step(&item->lowering, item->splits, &profile, step_s, NULL);
    ghp_profile_release(&profile);
    return status;
}
