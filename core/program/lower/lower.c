/* core/program/lower/lower.c - emits the instructions of layers and edges in point order, schedule step by
 * schedule step of the worker's schedule.
 *
 * Forward, per layer: in-edge reshards, then UPDATE (of the previous step, or a wait for it), then the layer, then
 * sends to later stages. Backward, per layer: gradients from later stages, statistics, weight gradient, reductions that
 * became ready, data gradient, then in-edge reshards and sends to earlier stages. What updates and reduces, and how, is
 * the synchroniser's (program/sync.h). If gradients are clipped, or rates follow norms, a step ends with these norms.
 * Receives of a schedule step are posted at the start of the schedule step before, sends waited for at the end of a
 * later schedule step. */
#include "core/program/lower/buffer_assignment.h"
#include "core/program/lower/edge.h"
#include "core/program/lower/gather.h"
#include "core/program/lower/layer.h"
#include "core/program/lower/lower.h"
#include "core/program/lower/passes.h"
#include "core/program/lower/points.h"
#include "core/program/lower/scaling.h"
#include "core/program/lower/transfer.h"

#include "core/base/hash.h"

#include <stdlib.h>
#include <string.h>

/* ---- recomputed ---- */

static struct ghp_layouts layouts_in(const struct ghp_emitter *e, int layer)
{
    return ghp_placement_layouts(e->lowering, &e->placement, e->splits, layer);
}

static bool is_remote_activation(const struct ghp_emitter *e, int layer)
{
    return !ghp_placement_owns(&e->placement, layer);
}

static enum ghp_status recompute(const struct ghp_emitter *e, int layer)
{
    const struct ghp_layer *l = &e->lowering->model->layers[layer];
    if (e->recomputed[layer]) return GHP_OK;
    e->recomputed[layer] = true;
    for (int i = 0; i < l->n_inputs; i++) {
        int from = l->inputs[i];
        if (!is_remote_activation(e, from) && ghp_lower_recomputes(e->lowering, from))
            GHP_TRY(recompute(e, from));
        GHP_TRY(ghp_emit_edge_forward(e, l->first_edge + i, layouts_in(e, from), e->splits[layer]));
    }
    return ghp_emit_layer_forward(e, layer, e->splits[layer]);
}

/* What the backward passes of a layer read and was not kept. */
static enum ghp_status recompute_for(struct ghp_emitter *e, int layer)
{
    const struct ghp_layer *l = &e->lowering->model->layers[layer];
    struct ghp_local local =
        ghp_local_of(e->lowering->model, layer, e->splits[layer], e->placement.problem);
    bool reads = ghp_op_needs_input(l->op), own;
    enum ghp_status status = GHP_OK;
    if (e->recomputed == NULL || !ghp_lower_needs_gradient(e->lowering, layer)) return GHP_OK;
    own =
        ghp_op_needs_output(l->op) || ghp_local_saved_bytes(&local, e->lowering->element_bytes) > 0;
    e->recompute_at = e->backward_base + ghp_point_backward(e->lowering->model, layer) - e->half;
    if (own && ghp_lower_recomputes(e->lowering, layer)) status = recompute(e, layer);
    for (int i = 0; reads && i < l->n_inputs && status == GHP_OK; i++) {
        int from = l->inputs[i];
        if (e->recomputed[layer] || is_remote_activation(e, from) ||
            !ghp_lower_recomputes(e->lowering, from))
            continue;
        status = recompute(e, from);
        if (status == GHP_OK)
            status =
                ghp_emit_edge_forward(e, l->first_edge + i, layouts_in(e, from), e->splits[layer]);
    }
    e->recompute_at = -1;
    return status;
}

/* ---- pieces and the whole ---- */

static struct ghp_emitter emitter_of(const struct ghp_lowering *lowering, int rank,
                                     struct ghp_program *program)
{
    struct ghp_emitter e = ghp_emitter_of(lowering, rank, program);

    e.shards = &ghp_sync_sharded;
    e.gathers = &ghp_sync_gathered;
    return e;
}

enum ghp_status ghp_lower_layer(const struct ghp_lowering *lowering, int layer,
                                struct ghp_split split, int rank, struct ghp_program *piece)
{
    struct ghp_emitter e = emitter_of(lowering, rank, piece);
    GHP_TRY(ghp_emit_layer_forward(&e, layer, split));
    return lowering->forward_only ? GHP_OK : ghp_emit_layer_backward(&e, layer, split);
}

/* An edge across stages: a lone reader takes the tensor as it wants it, several from `batch`. */
static enum ghp_status lower_crossing(struct ghp_emitter *e, int edge, struct ghp_split from,
                                      struct ghp_split to)
{
    const struct ghp_lowering *lowering = e->lowering;
    const struct ghp_layout batch = {GHP_LAYOUT_BATCH, 1};
    struct ghp_layouts reader = ghp_edge_layouts(lowering->model, edge, to),
                       remote_activation = {batch, batch, batch, batch};
    int a, b, carrier, rank = e->rank;
    bool brings = ghp_edge_carries(lowering, edge, &a, &b),
         back = ghp_edge_needs_gradient(lowering->model, edge);
    struct ghp_transfer t;
    if (ghp_remote_activation_readers(lowering->model, lowering->staging,
                                      lowering->model->edges[edge].from, b, &carrier) == 1)
        remote_activation =
            (struct ghp_layouts){.x = batch, .y = reader.x, .dy = reader.dx, .dx = batch};
    if (brings) {
        t = ghp_edge_transfer_of(lowering, edge, false, ghp_split_layouts(from), remote_activation);
        e->rank = ghp_stage_representative(lowering->staging, a, lowering->problem);
        GHP_TRY(ghp_emit_transfer(e, GHP_INSTR_SEND, edge, false, &t,
                                  ghp_emitter_edge_point(e, edge, false)));
        e->rank = rank;
    }
    GHP_TRY(ghp_emit_edge_forward(e, edge, remote_activation, to));
    if (lowering->forward_only || !back) return GHP_OK;
    GHP_TRY(ghp_emit_edge_backward(e, edge, remote_activation, to));
    if (!brings) return GHP_OK;
    t = ghp_edge_transfer_of(lowering, edge, true, ghp_split_layouts(from), remote_activation);
    return ghp_emit_transfer(e, GHP_INSTR_SEND, edge, true, &t,
                             ghp_emitter_edge_point(e, edge, true));
}

enum ghp_status ghp_lower_edge(const struct ghp_lowering *lowering, int edge, struct ghp_split from,
                               struct ghp_split to, int rank, struct ghp_program *piece)
{
    struct ghp_emitter e = emitter_of(lowering, rank, piece);
    if (is_remote_activation(&e, lowering->model->edges[edge].from))
        return lower_crossing(&e, edge, from, to);
    GHP_TRY(ghp_emit_edge_forward(&e, edge, ghp_split_layouts(from), to));
    return lowering->forward_only ? GHP_OK
                                  : ghp_emit_edge_backward(&e, edge, ghp_split_layouts(from), to);
}

static bool has_loss(const struct ghp_emitter *e)
{
    return ghp_placement_end(&e->placement) == e->lowering->model->n_layers;
}

/* All workers take part if there are stages: those without the loss add nothing. */
static enum ghp_status emit_metrics(const struct ghp_emitter *e, struct ghp_split split)
{
    struct ghp_ranks ranks = ghp_emitter_replica_group(e, ghp_split_sharers(split));
    if (e->placement.n_stages > 1)
        ranks = (struct ghp_ranks){.count = e->lowering->problem.workers, .stride = 1};
    if (ranks.count == 1) return GHP_OK;
    if (!e->lowering->forward_only && ghp_sync_runs_free(e->lowering->method.sync))
        return GHP_OK; /* each has its own */
    struct ghp_instr *instr = ghp_emitter_add(e, GHP_INSTR_METRIC_REDUCE, e->program->n_points - 1);
    if (instr == NULL) return GHP_NO_MEMORY();
    ghp_instr_sum_metrics(
        instr, ranks,
        e->lowering->forward_only ? 1 : ghp_sync_metric_period(e->lowering->method.sync));
    instr->counts = e->placement.n_stages == 1 ||
                    (has_loss(e) && e->placement.number % ghp_split_sharers(split) == 0);
    return GHP_OK;
}

static bool takes_norms(const struct ghp_lowering *lowering)
{
    return ghp_method_clips(&lowering->method) ||
           ghp_lr_scaling_takes_norms(lowering->method.scaling);
}

/* The norm of all gradients, or of each tensor's, when they are reduced: all workers of all stages get the same. */
static enum ghp_status emit_norm(const struct ghp_emitter *e)
{
    int last = e->program->n_instrs - 1, point = e->program->n_points - 1;
    struct ghp_instr *instr;
    if (!takes_norms(e->lowering) || e->lowering->forward_only) return GHP_OK;
    while (last >= 0 && !ghp_instr_reduces(&e->program->instrs[last]))
        last--;
    if (last >= 0) { /* reductions are done in their order */
        instr = ghp_emitter_add(e, GHP_INSTR_WAIT, point);
        if (instr == NULL) return GHP_NO_MEMORY();
        instr->after = last;
    }
    if (ghp_emitter_add(e, GHP_INSTR_NORM, point) == NULL) return GHP_NO_MEMORY();
    instr = ghp_emitter_add(e, GHP_INSTR_NORM_REDUCE, point);
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->ranks = (struct ghp_ranks){.count = e->lowering->problem.workers, .stride = 1};
    instr->bytes = ghp_norm_sums(e->lowering->model, e->program->rates) * (int64_t)sizeof(double);
    return GHP_OK;
}

/* Sends of a layer's output to the later stages that read it, or waits for (and adds) their gradients. */
static enum ghp_status emit_exports(const struct ghp_emitter *e, int layer, bool backward)
{
    const struct ghp_layer *l = &e->lowering->model->layers[layer];
    int from, to;
    if (e->placement.n_stages == 1 || (backward && !l->learns)) return GHP_OK;
    for (int i = 0; i < l->n_consumers; i++) {
        int edge = l->out_edges[backward ? l->n_consumers - 1 - i : i];
        if (!ghp_edge_carries(e->lowering, edge, &from, &to)) continue;
        if (!backward) {
            GHP_TRY(ghp_emit_edge_transfer(e, GHP_INSTR_SEND, edge, false,
                                           ghp_emitter_point(e, layer, false)));
            continue;
        }
        GHP_TRY(ghp_emit_arrival(e, edge, true, ghp_emitter_point(e, layer, true)));
        if (ghp_placement_first_gradient(e->lowering, &e->placement, layer) == edge) continue;
        GHP_TRY(ghp_emit_addition(e, edge, ghp_split_layouts(e->splits[layer]).dy,
                                  ghp_emitter_point(e, layer, true)));
    }
    return GHP_OK;
}

static enum ghp_status emit_start(const struct ghp_emitter *e)
{
    const struct ghp_sync_ops *sync = ghp_lowering_sync(e->lowering);
    if (e->lowering->forward_only) return GHP_OK;
    if (sync->emit_start != NULL) GHP_TRY(sync->emit_start(e));
    return sync == &ghp_sync_sharded
               ? GHP_OK
               : ghp_sync_sharded.emit_start(e); /* of layers whose gradients are sharded */
}

static enum ghp_status emit_forward_step(const struct ghp_emitter *e, struct ghp_layer_range chunk)
{
    const struct ghp_model *model = e->lowering->model;
    int from, to;
    if (e->placement.n_stages > 1 && chunk.end == model->n_layers) GHP_TRY(ghp_emit_labels(e));
    for (int layer = chunk.first; layer < chunk.end; layer++) {
        const struct ghp_layer *l = &model->layers[layer];
        for (int i = 0; i < l->n_inputs; i++) {
            int edge = l->first_edge + i;
            if (ghp_edge_carries(e->lowering, edge, &from, &to))
                GHP_TRY(ghp_emit_arrival(e, edge, false, ghp_emitter_edge_point(e, edge, false)));
            GHP_TRY(ghp_emit_edge_forward(e, edge, layouts_in(e, l->inputs[i]), e->splits[layer]));
        }
        GHP_TRY(ghp_emit_layer_forward(e, layer, e->splits[layer]));
        GHP_TRY(emit_exports(e, layer, false));
    }
    return GHP_OK;
}

static enum ghp_status emit_backward_step(struct ghp_emitter *e, struct ghp_layer_range chunk)
{
    const struct ghp_model *model = e->lowering->model;
    int from, to;
    if (e->recomputed != NULL)
        memset(e->recomputed, 0, (size_t)model->n_layers * sizeof *e->recomputed);
    for (int layer = chunk.end - 1; layer >= chunk.first; layer--) {
        const struct ghp_layer *l = &model->layers[layer];
        GHP_TRY(emit_exports(e, layer, true));
        GHP_TRY(recompute_for(e, layer));
        GHP_TRY(ghp_emit_layer_backward(e, layer, e->splits[layer]));
        for (int i = 0; i < l->n_inputs; i++) {
            int edge = l->first_edge + i;
            GHP_TRY(ghp_emit_edge_backward(e, edge, layouts_in(e, l->inputs[i]), e->splits[layer]));
            if (!ghp_edge_carries(e->lowering, edge, &from, &to) ||
                !ghp_edge_needs_gradient(model, edge))
                continue;
            GHP_TRY(ghp_emit_edge_transfer(e, GHP_INSTR_SEND, edge, true,
                                           ghp_emitter_edge_point(e, edge, true)));
        }
    }
    return GHP_OK;
}

static enum ghp_status emit_deferred_step(const struct ghp_emitter *e, struct ghp_layer_range chunk)
{
    for (int layer = chunk.end - 1; layer >= chunk.first; layer--)
        GHP_TRY(ghp_emit_layer_deferred(e, layer, e->splits[layer]));
    return GHP_OK;
}

/* The next schedule step that receives and sends; n: there is none. */
static int next_step(const struct ghp_schedule_step *schedule, int s, int n)
{
    while (s < n && schedule[s].weights)
        s++;
    return s;
}

/* Steps that defer weight gradients stand between two others, which neither their receives nor their waits count: who
 * waits for whom is as without them. */
static enum ghp_status emit_steps(struct ghp_emitter *e, struct ghp_sends *sends)
{
    struct ghp_schedule_step schedule[GHP_MAX_SCHEDULE_STEPS];
    int n = ghp_stage_schedule(e->lowering->staging, e->placement.stage, e->lowering->forward_only,
                               schedule);
    int u = ghp_staging_micro_batches(e->lowering->staging), slot = 0;
    if (n > 2 * u) e->program->n_points = n * e->half;
    for (int s = 0; s < n; s++) {
        int start = s * e->half, next = next_step(schedule, s + 1, n);
        int begin = e->program->n_instrs;
        struct ghp_layer_range chunk = e->placement.chunk[schedule[s].chunk];
        e->micro = schedule[s].micro;
        e->first = e->micro == 0;
        e->last = e->micro == u - 1;
        e->forward_base = e->backward_base = start;
        if (schedule[s].weights) {
            GHP_TRY(emit_deferred_step(e, chunk));
            continue;
        }
        if (s == 0) GHP_TRY(ghp_emit_receives(e, schedule[0], start));
        if (next < n) GHP_TRY(ghp_emit_receives(e, schedule[next], start));
        if (s == 0) GHP_TRY(emit_start(e));
        GHP_TRY(schedule[s].backward ? emit_backward_step(e, chunk) : emit_forward_step(e, chunk));
        GHP_TRY(ghp_emit_send_waits(e, sends, begin, slot++, next == n, start + e->half - 1));
    }
    e->micro = u - 1;
    return GHP_OK;
}

static enum ghp_status emit_all(struct ghp_emitter *e)
{
    struct ghp_schedule_times times;
    struct ghp_sends sends = {.times = &times};
    enum ghp_status status;
    GHP_TRY(ghp_schedule_times_init(e->lowering->staging, e->lowering->forward_only, &times));
    status = emit_steps(e, &sends);
    free(sends.of);
    ghp_schedule_times_release(&times);
    if (status != GHP_OK) return status;
    if (!e->lowering->forward_only) GHP_TRY(ghp_emit_partner_reductions(e));
    GHP_TRY(emit_norm(e));
    return emit_metrics(e, e->splits[e->lowering->model->n_layers - 1]);
}

/* Makes each instruction's place in the list its point: if layers are recomputed, lifetimes differ within a point. */
static void renumber_points(struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++)
        program->instrs[i].point = i;
    program->n_points = program->n_instrs;
}

static enum ghp_status lower_with(struct ghp_emitter *e, struct ghp_bucket_plan *buckets)
{
    const struct ghp_lowering *lowering = e->lowering;
    bool recomputes = lowering->staging != NULL && lowering->staging->recompute != NULL &&
                      !lowering->forward_only;
    GHP_TRY(ghp_problem_check(e->placement.problem));
    GHP_TRY(ghp_bucket_plan_init(lowering, &e->placement, e->splits, buckets));
    if (recomputes) {
        e->recomputed = ghp_alloc((size_t)lowering->model->n_layers, sizeof *e->recomputed);
        if (e->recomputed == NULL) return GHP_NO_MEMORY();
    }
    GHP_TRY(emit_all(e));
    GHP_TRY(ghp_emit_gathers(e));
    if (recomputes) renumber_points(e->program);
    GHP_TRY(ghp_buffers_assign(lowering, e->splits, buckets, e->program));
    return ghp_lower_run_passes(lowering, e->program);
}

enum ghp_status ghp_lower(const struct ghp_lowering *lowering, const struct ghp_split *splits,
                          int rank, struct ghp_program *program)
{
    struct ghp_bucket_plan buckets = {0};
    struct ghp_emitter e;
    enum ghp_status status = GHP_OK;

    *program = (struct ghp_program){0};
    if (ghp_staging_trivial(lowering->staging)) status = ghp_problem_check(lowering->problem);
    if (status == GHP_OK)
        status = ghp_model_check_sizes(lowering->model, lowering->problem.global_batch,
                                       lowering->problem.workers);
    if (status == GHP_OK)
        status = ghp_staging_check(lowering->staging, lowering->model, lowering->problem);
    if (status == GHP_OK)
        status = ghp_staging_check_tied(lowering->staging, lowering->model, splits);
    if (status == GHP_OK)
        status = ghp_sync_check(lowering->method.sync,
                                &(struct ghp_sync_place){lowering->model, splits, lowering->staging,
                                                         ghp_method_clips(&lowering->method),
                                                         lowering->problem.workers});
    if (status == GHP_OK) status = ghp_lower_check_scaling(lowering, splits);
    if (status != GHP_OK) return status;
    e = emitter_of(lowering, rank, program);
    e.splits = splits;
    e.buckets = &buckets;
    *program = ghp_emitter_program(&e, splits);
    program->n_points *= program->micro_batches * ghp_point_count(lowering->model);
    status = lower_with(&e, &buckets);
    free(e.recomputed);
    ghp_bucket_plan_release(&buckets);
    if (status != GHP_OK) ghp_program_release(program);
    return status;
}

/* ---- all stages ---- */

/* A faster worker may have more samples than the one that its stage waits for: its arena alone. */
static enum ghp_status size_fullest(const struct ghp_lowering *lowering,
                                    const struct ghp_split *splits, int stage,
                                    struct ghp_programs *programs)
{
    const struct ghp_staging *s = lowering->staging;
    int rank = ghp_stage_fullest(s, stage, lowering->problem);
    struct ghp_program fullest = {0};

    if (s == NULL || s->shares == NULL || s->speeds == NULL ||
        s->shares[rank] == s->shares[programs->of[stage].rank])
        return GHP_OK;
    GHP_TRY(ghp_lower(lowering, splits, rank, &fullest));
    if (fullest.peak_bytes > programs->fullest_bytes) programs->fullest_bytes = fullest.peak_bytes;
    ghp_program_release(&fullest);
    return GHP_OK;
}

enum ghp_status ghp_lower_all(const struct ghp_lowering *lowering, const struct ghp_split *splits,
                              struct ghp_programs *programs)
{
    int n = ghp_staging_stages(lowering->staging);
    enum ghp_status status = GHP_OK;

    *programs = (struct ghp_programs){0};
    if (!ghp_staging_trivial(lowering->staging))
        GHP_TRY(ghp_staging_check(lowering->staging, lowering->model, lowering->problem));
    for (int i = 0; i < n && status == GHP_OK; i++) {
        int rank = ghp_stage_representative(lowering->staging, i, lowering->problem);

        status = ghp_lower(lowering, splits, rank, &programs->of[i]);
        if (status == GHP_OK) programs->n = i + 1;
        if (status == GHP_OK) status = size_fullest(lowering, splits, i, programs);
    }
    if (status == GHP_OK && ghp_lowering_sync(lowering)->serves && !lowering->forward_only)
        status = ghp_lower_server(lowering, splits, 0, &programs->server);
    if (status != GHP_OK) ghp_programs_release(programs);
    return status;
}

void ghp_programs_release(struct ghp_programs *programs)
{
    if (programs == NULL) return;
    ghp_program_release(&programs->server);
    for (int i = 0; i < programs->n; i++)
        ghp_program_release(&programs->of[i]);
    programs->n = 0;
}

uint64_t ghp_programs_hash(const struct ghp_programs *programs)
{
    uint64_t hash = GHP_HASH_SEED;

    for (int i = 0; i < programs->n; i++)
        hash = ghp_program_hash(&programs->of[i], hash);
    return programs->server.n_instrs > 0 ? ghp_program_hash(&programs->server, hash) : hash;
}

int64_t ghp_programs_peak_bytes(const struct ghp_programs *programs)
{
    int64_t most = programs->fullest_bytes;

    for (int i = 0; i < programs->n; i++)
        if (programs->of[i].peak_bytes > most) most = programs->of[i].peak_bytes;
    return most;
}

int64_t ghp_programs_sent_bytes(const struct ghp_programs *programs)
{
    int64_t most = 0, sent;

    for (int i = 0; i < programs->n; i++) {
        sent = ghp_program_sent_bytes(&programs->of[i]);
        if (sent > most) most = sent;
    }
    return most;
}
