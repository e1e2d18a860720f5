/* planner/pipeline/lower_bound.c - see pipeline/lower_bound.h. */
#include "planner/pipeline/lower_bound.h"

#include <math.h>
#include <stdlib.h>

static bool in_line(const struct ghp_instr *instr)
{
    return instr->stream == GHP_STREAM_COMPUTE && !ghp_instr_sends(instr);
}

enum { WORK, UPDATE, DATA, PARTS }; /* DATA: WORK without weight gradients */

static bool makes_weights(const struct ghp_instr *instr)
{
    return instr->backward &&
           (instr->kind != GHP_INSTR_COMPUTE || instr->pass == GHP_PASS_BACKWARD_WEIGHT);
}

/* The last stage loads the labels, and this may be another one. */
static void leave_labels_out(struct ghp_instr *load, const struct ghp_lowering *lowering)
{
    int64_t samples = ghp_layout_samples(load->layouts.y, lowering->problem);

    load->bytes -= samples * ghp_model_labels(lowering->model) * (int64_t)sizeof(int32_t);
}

/* The least over a layer's splits, of each part. */
static enum ghp_status least_of(const struct ghp_lower_bounds *lower_bounds,
                                const struct ghp_lowering *lowering, int layer, int tp_sizes,
                                double least[PARTS])
{
    struct ghp_split splits[GHP_MAX_CHOICES];
    struct ghp_program piece = {0};
    enum ghp_status status = GHP_OK;
    int n = ghp_split_choices(&lowering->model->layers[layer], lowering->problem, splits,
                              GHP_MAX_CHOICES);

    for (int part = 0; part < PARTS; part++)
        least[part] = INFINITY;
    for (int i = 0; i < n && status == GHP_OK; i++) {
        double sum[PARTS] = {0};

        if (tp_sizes % splits[i].tp_size != 0) continue;
        piece.n_instrs = 0;
        status = ghp_lower_layer(lowering, layer, splits[i], 0, &piece);
        for (int k = 0; k < piece.n_instrs && status == GHP_OK; k++) {
            struct ghp_cost cost;

            if (!in_line(&piece.instrs[k])) continue;
            if (piece.instrs[k].kind == GHP_INSTR_LOAD)
                leave_labels_out(&piece.instrs[k], lowering);
            status = ghp_profile_cost(lower_bounds->profile, &piece.instrs[k],
                                      lowering->problem.workers, &cost);
            /* where they are least: in a stage of one worker, or run by all at once */
            cost.seconds -= fmax(cost.contention_s, 0);
            if (status != GHP_OK) break;
            if (piece.instrs[k].kind == GHP_INSTR_UPDATE) {
                sum[UPDATE] += cost.seconds;
                continue;
            }
            sum[WORK] += cost.seconds;
            if (!makes_weights(&piece.instrs[k])) sum[DATA] += cost.seconds;
        }
        for (int part = 0; part < PARTS; part++)
            least[part] = fmin(least[part], sum[part]);
    }
    ghp_program_release(&piece);
    return status;
}

static enum ghp_status fill_lower_bound(const struct ghp_lower_bounds *lower_bounds,
                                        struct ghp_lower_bound *f)
{
    struct ghp_lowering lowering = *lower_bounds->lowering;
    int n = lowering.model->n_layers, workers = f->workers > 0 ? f->workers : f->tp_sizes;

    lowering.problem =
        (struct ghp_problem){.workers = workers, .global_batch = f->samples * workers};
    f->work = ghp_alloc(PARTS * ((size_t)n + 1), sizeof *f->work);
    if (f->work == NULL) return GHP_NO_MEMORY();
    f->update = f->work + n + 1;
    f->data = f->update + n + 1;
    for (int v = 0; v < n; v++) {
        double least[PARTS];

        GHP_TRY(least_of(lower_bounds, &lowering, v, f->tp_sizes, least));
        f->work[v + 1] = f->work[v] + least[WORK];
        f->update[v + 1] = f->update[v] + least[UPDATE];
        f->data[v + 1] = f->data[v] + least[DATA];
    }
    return GHP_OK;
}

enum ghp_status ghp_lower_bound_compute(struct ghp_lower_bounds *lower_bounds, int64_t samples,
                                        int tp_sizes, int workers,
                                        const struct ghp_lower_bound **lower_bound)
{
    size_t slot;
    struct ghp_lower_bound *f;

    if (!lower_bounds->ghost_batches) workers = 0;
    slot = (size_t)(samples * 31 + tp_sizes * 7 + workers) & (GHP_LOWER_BOUNDS - 1);
    for (f = lower_bounds->of[slot]; f != NULL; f = f->next)
        if (f->samples == samples && f->tp_sizes == tp_sizes && f->workers == workers) break;
    *lower_bound = f;
    if (f != NULL) return GHP_OK;
    f = ghp_alloc(1, sizeof *f);
    if (f == NULL) return GHP_NO_MEMORY();
    *f = (struct ghp_lower_bound){.samples = samples,
                                  .tp_sizes = tp_sizes,
                                  .workers = workers,
                                  .next = lower_bounds->of[slot]};
    lower_bounds->of[slot] = f;
    *lower_bound = f;
    return fill_lower_bound(lower_bounds, f);
}

void ghp_lower_bounds_release(struct ghp_lower_bounds *lower_bounds)
{
    for (int i = 0; i < GHP_LOWER_BOUNDS; i++)
        while (lower_bounds->of[i] != NULL) {
            struct ghp_lower_bound *f = lower_bounds->of[i];

            lower_bounds->of[i] = f->next;
            free(f->work);
            free(f);
        }
}
