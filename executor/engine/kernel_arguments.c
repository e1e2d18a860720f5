/* executor/engine/kernel_arguments.c - see engine/kernel_arguments.h. */
#include "executor/engine/kernel_arguments.h"

#include "core/optimizer/parameter_groups.h"

static void *of(void *const *address, int buffer)
{
    return buffer < 0 ? NULL : address[buffer];
}

struct ghp_tensors ghp_kernel_arguments_tensors(const struct ghp_instr *instr, void *const *address)
{
    const struct ghp_operands *at = &instr->at;
    struct ghp_tensors t = {.y = of(address, at->y),
                            .dy = of(address, at->dy),
                            .saved = of(address, at->saved),
                            .stats = of(address, at->stats),
                            .labels = of(address, at->labels),
                            .metrics = of(address, at->metrics),
                            .scratch = of(address, at->scratch)};

    for (int i = 0; i < GHP_MAX_INPUTS; i++) {
        t.x[i] = of(address, at->x[i]);
        t.dx[i] = of(address, at->dx[i]);
    }
    for (int i = 0; i < GHP_MAX_PARAMS; i++) {
        t.w[i] = of(address, at->w[i]);
        t.w_bf16[i] = of(address, at->w_bf16[i]);
        t.dw[i] = of(address, at->dw[i]);
    }
    for (int i = 0; i < GHP_MAX_STATES; i++) {
        t.state[i] = of(address, at->state[i]);
        t.stats_delta[i] = of(address, at->stats_delta[i]);
    }
    return t;
}

/* Samples of a region that are not padding. */
static int64_t valid_in(struct ghp_region at, int64_t valid)
{
    int64_t n = valid - at.first_sample;

    return n < 0 ? 0 : n > at.samples ? at.samples : n;
}

struct ghp_kernel_arguments ghp_kernel_arguments_of(const struct ghp_program *program,
                                                    const struct ghp_run_options *run,
                                                    const struct ghp_instr *instr,
                                                    const struct ghp_step *step)
{
    const struct ghp_placement *placement = &program->placement;
    const struct ghp_layer *layer = &program->model->layers[instr->layer];
    struct ghp_region at = ghp_placement_region(placement, instr->layouts.x, layer->in);
    struct ghp_kernel_arguments args = {.training = run->weight_owner == NULL,
                                        .stat_count = instr->stat_count,
                                        .seed = run->seed,
                                        .step = step->index,
                                        .layer = instr->layer,
                                        .first_position = at.first_position,
                                        .first_channel = at.first_channel,
                                        .first_row = instr->first_row,
                                        .adds_weight = instr->adds_weight,
                                        .global_channels = ghp_loss_columns(layer)};

    at.first_sample += instr->micro * placement->micro_batch;
    args.first_sample = step->first_sample + at.first_sample;
    args.valid_samples = valid_in(at, step->valid);
    args.stats_delta_share = (double)instr->local.n / (double)program->problem.global_batch;
    args.stats_delta_adds = instr->micro > 0;
    if (run->fault == GHP_FAULT_RANK_MASKS)
        args.first_sample = args.first_position = args.first_channel = 0;
    if (run->fault == GHP_FAULT_LOCAL_STATISTICS)
        args.stat_count = instr->local.n * instr->local.h * instr->local.w;
    return args;
}

void ghp_kernel_update_group(const struct ghp_layer *layer, int slot, struct ghp_update *update)
{
    update->decays = ghp_optimizer_decays(update->optimizer, layer, slot);
    update->rate_scale = ghp_parameter_rate(layer, slot);
    update->given.learning_rate *= update->rate_scale;
}
