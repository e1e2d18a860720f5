/* executor/engine/worker.c - see worker.h: opening, closing, and what others may see. worker/tensors.c says where
 * tensors lie, worker/memory.c allocates, worker/step.c runs steps, worker/kinds.c their instructions: worker/instr.c
 * has those of the compute stream, worker/concurrent.c those of the other streams, worker/update.c updates and
 * norms. */
#include "executor/engine/worker_private.h"

#include "core/program/fuse.h"
#include "executor/engine/kernel_spec.h"
#include "executor/engine/ring.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- opening ---- */

static enum ghp_status make_tables(struct ghp_worker *w)
{
    size_t n = (size_t)w->program.n_instrs, n_buffers = (size_t)w->program.n_buffers;

    w->prepared = ghp_alloc(n, sizeof *w->prepared);
    /* an optimizer shard is updated parameter by parameter */
    w->updates =
        ghp_alloc((n + (size_t)w->program.model->n_layers) * GHP_MAX_PARAMS, sizeof *w->updates);
    w->update_of =
        ghp_alloc((n + (size_t)w->program.model->n_layers) * GHP_MAX_PARAMS, sizeof *w->update_of);
    w->squares = ghp_alloc((size_t)w->program.model->n_layers * GHP_MAX_PARAMS, sizeof *w->squares);
    w->messages = ghp_alloc(n, sizeof *w->messages);
    w->message_instr = ghp_alloc(n, sizeof *w->message_instr);
    w->address = ghp_alloc(n_buffers, sizeof *w->address);
    if (w->prepared == NULL || w->updates == NULL || w->update_of == NULL || w->squares == NULL ||
        w->messages == NULL || w->message_instr == NULL || w->address == NULL)
        return GHP_NO_MEMORY();
    for (int i = 0; i < w->program.n_instrs; i++)
        w->prepared[i] = (struct ghp_prepared_instr){.message = -1, .leader = -1};
    for (int k = 0; k < w->program.n_flush; k++)
        w->prepared[w->program.flush[k]].flushes = true;
    return ghp_step_timer_open(w->program.n_instrs, &w->timer);
}

static int64_t scratch_of(const struct ghp_worker *w, int i)
{
    int scratch = ghp_worker_instr(w, i)->at.scratch;

    return scratch < 0 ? 0 : w->program.buffers[scratch].bytes;
}

/* Whether the backend can have a kernel that does what instruction i fuses. */
static bool can_fuse(const struct ghp_worker *w, int i)
{
    const struct ghp_backend_ops *ops = w->exec.backend_ops;
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    bool sum = instr->kind == GHP_INSTR_ACCUMULATE; /* does a ReLU's backward pass too */

    if (instr->backward && instr->fusion.does.add >= 0)
        return ops->adds != NULL && ops->adds(w->exec.backend, instr->local.op);
    return ghp_backend_fuses(ops, w->exec.backend, sum ? GHP_OP_RELU : instr->local.op,
                             sum ? GHP_PASS_BACKWARD_DATA : instr->pass);
}

/* A kernel of instruction i with what it fuses; NULL if the backend has none that its scratch holds. */
static enum ghp_status find_fused(struct ghp_worker *w, int i, struct ghp_kernel **fused)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_kernel_spec spec =
        ghp_kernel_spec_with(ghp_kernels_spec(&w->kernels, &w->program, instr), instr->fusion.does,
                             ghp_backend_sums(w->exec.backend_ops, w->exec.backend));

    *fused = NULL;
    if (!ghp_kernel_spec_is_fused(spec) || !can_fuse(w, i)) return GHP_OK;
    GHP_TRY(ghp_kernels_find(&w->kernels, &instr->local, instr->pass, spec, fused));
    if (*fused != NULL && w->exec.backend_ops->scratch_bytes(*fused) > scratch_of(w, i))
        *fused = NULL;
    return GHP_OK;
}

/* The kernel of a COMPUTE: with what the program fuses, or, if the backend has none (or not for the other pass that
 * fuses the same), without. */
static enum ghp_status find_kernel(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    struct ghp_prepared_instr *p = &w->prepared[i];
    struct ghp_kernel *fused, *other = NULL;

    GHP_TRY(ghp_kernels_find(&w->kernels, &instr->local, instr->pass,
                             ghp_kernels_spec(&w->kernels, &w->program, instr), &p->kernel));
    GHP_ASSERT(w->exec.backend_ops->scratch_bytes(p->kernel) <= scratch_of(w, i));
    GHP_TRY(find_fused(w, i, &fused));
    if (instr->fusion.with >= 0) GHP_TRY(find_fused(w, instr->fusion.with, &other));
    p->fuses = fused != NULL && (instr->fusion.with < 0 || other != NULL);
    if (p->fuses) p->kernel = fused;
    return GHP_OK;
}

/* A pass that costs nothing in the profile, because it is part of another kernel, must be so here. */
static enum ghp_status check_fused(const struct ghp_worker *w, const struct ghp_instr *instr)
{
    const struct ghp_op_entry *entry;
    char key[GHP_KEY_BYTES];

    if (w->run.profile == NULL || instr->fusion.by < 0 || can_fuse(w, instr->fusion.by))
        return GHP_OK;
    ghp_local_key(&instr->local, key);
    entry = ghp_profile_find(w->run.profile, key, instr->pass);
    if (entry == NULL || strcmp(entry->algorithm, GHP_OP_FUSED) != 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the plan's profile says that another kernel does '%s' (%s) too, but %s has no "
                    "such kernel of '%s' here: the plan's times would not hold; profile this "
                    "machine again with ghp-profile and plan again",
                    key, ghp_pass_name(instr->pass), w->exec.backend_ops->name,
                    ghp_op_name(ghp_worker_instr(w, instr->fusion.by)->local.op));
}

static enum ghp_status prepare_instr(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    struct ghp_prepared_instr *p = &w->prepared[i];
    const char *layer = instr->layer >= 0 ? w->program.model->layers[instr->layer].name
                                          : ghp_kind_of(instr)->of_all;

    snprintf(p->label, GHP_WORKER_LABEL_BYTES, "%s of %s%s", ghp_instr_name(instr), layer,
             instr->backward ? ", backward" : "");
    if (instr->kind == GHP_INSTR_COMPUTE) {
        if (instr->blocks > 0)
            GHP_TRY(ghp_ring_check(ghp_exec_context_device(&w->exec), layer, instr->blocks));
        GHP_TRY(check_fused(w, instr));
        GHP_TRY(find_kernel(w, i));
    }
    if (instr->kind == GHP_INSTR_ACCUMULATE)
        p->fuses = instr->fusion.does.relu >= 0 && can_fuse(w, i);
    if (instr->at.metrics >= 0) w->metrics = instr->at.metrics;
    if (instr->stream != GHP_STREAM_TRANSFER) return GHP_OK;
    p->message = w->n_messages;
    w->message_instr[w->n_messages] = i;
    return ghp_message_open(instr, w->program.rank, &w->messages[w->n_messages++]);
}

/* Whether the backend may run the product and those that follow it at once: by one kernel, with what each fuses. */
static bool joins(const struct ghp_worker *w, int first)
{
    const struct ghp_backend_ops *ops = w->exec.backend_ops;
    const struct ghp_prepared_instr *p = &w->prepared[first];
    const struct ghp_fusion *fusion = &ghp_worker_instr(w, first)->fusion;
    bool whole = p->fuses || (fusion->does.bias < 0 && fusion->does.relu < 0);
    bool may = whole && ops->joins != NULL && ops->joins(p->kernel);

    for (int k = fusion->next; may && k >= 0; k = ghp_worker_instr(w, k)->fusion.next)
        may = w->prepared[k].kernel == p->kernel;
    return may;
}

static void choose_leaders(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++) {
        if (ghp_worker_instr(w, i)->fusion.first != i || !joins(w, i)) continue;
        for (int k = i; k >= 0; k = ghp_worker_instr(w, k)->fusion.next)
            w->prepared[k].leader = ghp_siblings_at(&w->program, i);
    }
}

/* The instruction that waits for the metrics; if nothing is reduced, the loss of the first micro-batch. */
static void choose_metrics_boundary(struct ghp_worker *w)
{
    w->metrics_boundary = w->metric_reduce = -1;
    for (int i = 0; i < w->program.n_instrs && w->metrics_boundary < 0; i++) {
        int wait = ghp_worker_instr(w, i)->wait;

        if (wait < 0 || ghp_worker_instr(w, wait)->kind != GHP_INSTR_METRIC_REDUCE) continue;
        w->metrics_boundary = i;
        w->metric_reduce = wait;
    }
    for (int i = 0; i < w->program.n_instrs && w->metrics_boundary < 0; i++)
        if (ghp_worker_instr(w, i)->kind == GHP_INSTR_COMPUTE &&
            ghp_worker_instr(w, i)->at.metrics >= 0)
            w->metrics_boundary = i;
}

/* One communicator for each distinct (ranks, stream); every worker of a stage meets them in the same order. */
enum ghp_status ghp_worker_connect(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++) {
        const struct ghp_instr *instr = ghp_worker_instr(w, i);

        if (!ghp_instr_sends(instr)) continue;
        GHP_TRY(ghp_collectives_group(w->exec.collectives, instr->ranks, instr->stream,
                                      &w->prepared[i].comm));
    }
    GHP_TRY(ghp_worker_open_servers(w));
    if (w->mixer != NULL) GHP_TRY(w->run.mixing->connect(w->mixer));
    return w->program.placement.n_stages > 1 ? ghp_worker_open_channel(w) : GHP_OK;
}

/* A server drops by itself what workers push. */
static void choose_dropped(struct ghp_worker *w)
{
    w->dropped = -1;
    for (int i = w->program.n_instrs - 1; i >= 0 && w->run.fault == GHP_FAULT_SKIP_UPDATE; i--)
        if (ghp_worker_instr(w, i)->kind == GHP_INSTR_UPDATE) w->dropped = i;
    if (w->run.fault != GHP_FAULT_DROP_REDUCTION || ghp_worker_is_served(w)) return;
    for (int i = w->program.n_instrs - 1; i >= 0; i--)
        if (ghp_instr_reduces(ghp_worker_instr(w, i)) ||
            ghp_worker_instr(w, i)->kind == GHP_INSTR_AVERAGE)
            w->dropped = i;
}

enum ghp_status ghp_worker_open(const struct ghp_exec_context *exec,
                                struct ghp_executable *executable,
                                const struct ghp_run_options *run, struct ghp_worker **worker)
{
    enum ghp_status status = GHP_OK;
    struct ghp_worker *w = ghp_alloc(1, sizeof *w);

    *worker = NULL;
    if (w == NULL) {
        ghp_program_release(&executable->program);
        ghp_kernels_release(&executable->kernels);
        return GHP_NO_MEMORY();
    }
    w->exec = ghp_exec_context_complete(*exec);
    w->kernels = executable->kernels;
    w->program = executable->program;
    *executable = (struct ghp_executable){0};
    w->run = *run;
    w->metrics = w->first_push = -1;
    w->collected = w->whole_kind = GHP_BUFFER_KIND_COUNT;
    w->arena.point = -1;
    GHP_TRY_GOTO(status, ghp_program_check(&w->program), fail);
    GHP_TRY_GOTO(status, ghp_worker_open_rates(w), fail);
    if (run->weight_owner == NULL)
        GHP_TRY_GOTO(status, ghp_fault_check(run->fault, &w->program, run->groups), fail);
    GHP_TRY_GOTO(status, make_tables(w), fail);
    for (int i = 0; i < w->program.n_instrs; i++)
        GHP_TRY_GOTO(status, prepare_instr(w, i), fail);
    choose_leaders(w);
    if (run->emulated_step_s > 0 && run->weight_owner == NULL)
        GHP_TRY_GOTO(status,
                     ghp_pace_open(&w->program, run->paced_by, run->emulated_step_s, &w->pace),
                     fail);
    if (run->mixing != NULL)
        GHP_TRY_GOTO(status,
                     run->mixing->open(
                         &(struct ghp_mixer_place){&w->exec, &w->run, &w->program, &w->mix_numbers},
                         &w->mixer),
                     fail);
    choose_dropped(w);
    choose_metrics_boundary(w);
    GHP_ASSERT(w->metrics >= 0);
    GHP_TRY_GOTO(status, ghp_worker_open_results(w), fail);
    *worker = w;
    return GHP_OK;
fail:
    ghp_worker_close(w);
    return status;
}

void ghp_worker_close(struct ghp_worker *w)
{
    if (w == NULL) return;
    if (w->mixer != NULL) w->run.mixing->close(w->mixer);
    ghp_p2p_thread_close(w->p2p_thread);
    ghp_lanes_close(w->lanes);
    ghp_comm_stream_close(w->comm_stream);
    ghp_in_flight_close(w->in_flight);
    for (int p = 0; p < w->n_messages; p++)
        ghp_message_close(&w->messages[p]);
    if (w->channel != NULL) w->channel->ops->close(w->channel);
    ghp_worker_close_servers(w);
    ghp_device_release(w->arena.device, w->class_weights);
    ghp_arena_close(&w->arena);
    if (w->comm_memory != NULL)
        w->exec.collectives->ops->release_memory(w->exec.collectives, w->comm_memory);
    ghp_step_timer_close(w->timer);
    ghp_pace_close(w->pace);
    free(w->saved_states);
    free(w->ema);
    free(w->messages);
    free(w->message_instr);
    free(w->address);
    free(w->updates);
    free(w->update_of);
    free(w->squares);
    ghp_tensor_rates_close(&w->rates);
    free(w->results);
    free(w->prepared);
    ghp_program_release(&w->program);
    ghp_kernels_release(&w->kernels);
    free(w);
}

/* ---- what others may see ---- */

const struct ghp_program *ghp_worker_program(const struct ghp_worker *w)
{
    return &w->program;
}

const struct ghp_arena *ghp_worker_arena(const struct ghp_worker *w)
{
    return &w->arena;
}

const struct ghp_exec_context *ghp_worker_exec_context(const struct ghp_worker *w)
{
    return &w->exec;
}

const struct ghp_run_options *ghp_worker_run_options(const struct ghp_worker *w)
{
    return &w->run;
}

const struct ghp_placement *ghp_worker_placement(const struct ghp_worker *w)
{
    return &w->program.placement;
}

struct ghp_step_timer *ghp_worker_step_timer(struct ghp_worker *w)
{
    return w->timer;
}

struct ghp_mix_count ghp_worker_mixed(const struct ghp_worker *w)
{
    return w->mixer != NULL ? w->run.mixing->counted(w->mixer) : (struct ghp_mix_count){0};
}

double *ghp_worker_mix_number(struct ghp_worker *w)
{
    if (w->mixer == NULL) return NULL;
    if (w->program.mixing->keeps_sum_weight) return &w->mix_numbers.sum_weight;
    return w->program.mixing->keeps_loss ? &w->mix_numbers.lost : NULL;
}

int64_t ghp_worker_late_steps(const struct ghp_worker *w)
{
    return ghp_pace_late_steps(w->pace);
}

bool ghp_worker_blocks_weights(const struct ghp_worker *w, int layer)
{
    for (int i = 0; i < w->program.n_instrs; i++) {
        const struct ghp_instr *instr = ghp_worker_instr(w, i);

        if (instr->kind == GHP_INSTR_COMPUTE && instr->layer == layer)
            return ghp_backend_blocks_weights(w->exec.backend_ops, w->exec.backend, &instr->local);
    }
    return false; /* a tied layer's copy */
}

/* Weights have an average if they are the same everywhere, whole in host memory. */
static enum ghp_status check_ema(const struct ghp_worker *w)
{
    bool whole = w->program.replicas <= 1 && w->mixer == NULL && w->program.servers == 0;

    for (int i = 0; whole && i < w->program.model->n_layers; i++)
        whole = !ghp_worker_shards_weights(w, i);
    if (!whole)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "--ema averages weights that each worker has whole, and the plan shards "
                        "them or lets workers' differ; leave it out, or plan with --sync allreduce "
                        "and --shard none or gradients");
    if (ghp_device_is_host(w->arena.device)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "--ema has no kernel of backend '%s'; leave it out, or give --backend onednn",
                    w->exec.backend_ops->name);
}

enum ghp_status ghp_worker_begin_ema(struct ghp_worker *w, double decay)
{
    GHP_TRY(check_ema(w));
    return ghp_worker_open_ema(w, decay);
}
