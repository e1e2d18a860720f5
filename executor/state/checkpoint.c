/* executor/state/checkpoint.c - see checkpoint.h and checkpoint_private.h: a checkpoint's folder, and what its file
 * holds. */
#include "executor/state/checkpoint_private.h"

#include "core/base/file.h"
#include "core/base/folder.h"
#include "core/model/orientation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char format[] = "ghp.checkpoint/1", model_key[] = "model";

enum { KEPT_MOST = 2 }; /* copies of all weights: struct ghp_mixing_facts */

/* What the names of tensors begin with that are of one worker alone. */
static const char replica_prefix[] = "replica.";
/* What the names of the training's own weights begin with, if those under their names are a moving average. */
static const char own_prefix[] = "training.";

const char *const ghp_checkpoint_number_names[GHP_CHECKPOINT_NUMBERS] = {"step", "seed",
                                                                         "global_batch", "samples"};

void ghp_checkpoint_contents_release(struct ghp_checkpoint_contents *c)
{
    for (int i = 0; c->tensors != NULL && i < c->n; i++)
        free((char *)(uintptr_t)c->tensors[i].name);
    free(c->tensors);
    free(c->entries);
    free(c->mixing);
    free(c->rates);
    free(c->norms);
    ghp_tensors_release(&c->list);
}

/* moment: its name and a dot; "": the tensor itself */
static enum ghp_status add_entry(struct ghp_checkpoint_contents *c,
                                 struct ghp_checkpoint_entry entry, const char *moment)
{
    const struct ghp_tensor *t = entry.tensor;
    struct ghp_safetensor *s = &c->tensors[c->n];
    size_t room = strlen(t->param->name) + strlen(moment) + sizeof replica_prefix +
                  GHP_CHECKPOINT_NUMBER_BYTES;
    char *name = ghp_alloc(room, 1);

    if (name == NULL) return GHP_NO_MEMORY();
    if (entry.worker < 0)
        snprintf(name, room, "%s%s", moment, t->param->name);
    else
        snprintf(name, room, "%s%d.%s%s", replica_prefix, entry.worker, moment, t->param->name);
    *s = (struct ghp_safetensor){
        .name = name, .element_bytes = c->element_bytes, .n_dims = t->param->n_dims};
    ghp_param_file_dims(t->param, s->dims);
    c->transposed = c->transposed || t->param->transposed;
    c->entries[c->n++] = entry;
    if (t->param->elements > c->largest) c->largest = t->param->elements;
    c->bytes += t->param->elements * c->element_bytes;
    return GHP_OK;
}

/* Once, or of each worker whose own differ, one after the other. */
static enum ghp_status add_each(struct ghp_checkpoint_contents *c, const struct ghp_tensor *t,
                                const char *moment, enum ghp_buffer_kind buffer_kind)
{
    for (int k = 0; k < c->replicas; k++)
        GHP_TRY(add_entry(
            c, (struct ghp_checkpoint_entry){t, buffer_kind, c->replicas > 1 ? k : -1}, moment));
    return GHP_OK;
}

/* Each worker's copies of weights that its mixes keep. */
static enum ghp_status add_kept(struct ghp_sync sync, struct ghp_checkpoint_contents *c)
{
    static const enum ghp_buffer_kind kinds[KEPT_MOST] = {GHP_BUFFER_FIRST_COPY,
                                                          GHP_BUFFER_SECOND_COPY};
    const struct ghp_mixing_facts *mixing = ghp_sync_ops_of(sync)->mixing;

    for (int k = 0; k < KEPT_MOST && mixing != NULL && mixing->kept[k] != NULL; k++)
        for (int i = 0; i < c->list.n_trained; i++)
            GHP_TRY(add_each(c, &c->list.items[i], mixing->kept[k], kinds[k]));
    return GHP_OK;
}

enum ghp_status ghp_checkpoint_contents_init(const struct ghp_worker *worker,
                                             struct ghp_checkpoint_contents *c)
{
    const struct ghp_program *program = ghp_worker_program(worker);
    const struct ghp_optimizer *optimizer = ghp_worker_program(worker)->optimizer;
    char moment[GHP_CHECKPOINT_NUMBER_BYTES];
    size_t most;

    *c = (struct ghp_checkpoint_contents){.element_bytes =
                                              ghp_parameter_bytes(program->element_bytes),
                                          .replicas = program->replicas};
    GHP_TRY(ghp_tensors_list_init(program->model, &c->list));
    most = (2 + (1 + GHP_MAX_MOMENTS + KEPT_MOST) * (size_t)c->replicas) * (size_t)c->list.n + 1;
    c->entries = ghp_alloc(most, sizeof *c->entries);
    c->tensors = ghp_alloc(most, sizeof *c->tensors);
    if (c->entries == NULL || c->tensors == NULL) return GHP_NO_MEMORY();
    GHP_TRY(ghp_checkpoint_rates_text(worker, &c->rates));
    for (int i = 0; i < c->list.n; i++) {
        const struct ghp_tensor *t = &c->list.items[i];

        GHP_TRY(add_entry(c, (struct ghp_checkpoint_entry){t, ghp_tensor_buffer_kind(t), -1}, ""));
    }
    for (int i = 0; i < c->list.n && c->replicas > 1; i++)
        GHP_TRY(add_each(c, &c->list.items[i], "", ghp_tensor_buffer_kind(&c->list.items[i])));
    for (int m = 0; m < optimizer->n_moments; m++) {
        snprintf(moment, sizeof moment, "%s.", optimizer->moments[m]);
        for (int i = 0; i < c->list.n_trained; i++)
            GHP_TRY(add_each(c, &c->list.items[i], moment, ghp_moment_kind(m)));
    }
    for (int i = 0; i < c->list.n_trained && ghp_worker_ema(worker) > 0; i++)
        GHP_TRY(add_each(c, &c->list.items[i], own_prefix, GHP_BUFFER_WEIGHT));
    return c->replicas > 1 ? add_kept(program->method.sync, c) : GHP_OK;
}

int64_t ghp_checkpoint_entry_bytes(const struct ghp_checkpoint_contents *c, int i)
{
    return c->entries[i].tensor->param->elements * c->element_bytes;
}

/* Whose training a checkpoint is, and how far: " of 'NAME' after N steps"; "" if it cannot be read.
 *
 * Returns whether it is another model's. */
static bool describe(const char *path, const char *model, char *text, size_t n)
{
    struct ghp_safetensors *file = NULL;
    const char *of = NULL, *steps = NULL;
    bool other;

    text[0] = '\0';
    if (ghp_safetensors_open(path, &file) == GHP_OK) {
        of = ghp_safetensors_metadata(file, model_key);
        steps = ghp_safetensors_metadata(file, ghp_checkpoint_number_names[GHP_CHECKPOINT_STEP]);
    }
    if (of != NULL && steps != NULL) snprintf(text, n, " of '%.200s' after %.20s steps", of, steps);
    other = of != NULL && strcmp(of, model) != 0;
    ghp_safetensors_close(file);
    return other;
}

/* The checkpoint that shows whose training a folder holds: the newest, or the one before it. */
static bool find_any(const char *folder, char path[GHP_CHECKPOINT_PATH_BYTES])
{
    struct stat about;

    for (int i = GHP_CHECKPOINT_NEWEST; i <= GHP_CHECKPOINT_PREVIOUS; i++) {
        ghp_checkpoint_path(folder, (enum ghp_checkpoint_generation)i, path);
        if (lstat(path, &about) == 0) return true;
    }
    return false;
}

enum ghp_status ghp_checkpoint_refuse(const char *folder, const char *model, bool resumable)
{
    char path[GHP_CHECKPOINT_PATH_BYTES], whose[GHP_CHECKPOINT_PATH_BYTES];

    if (!find_any(folder, path)) {
        if (!ghp_checkpoint_any_kept(folder, path)) return GHP_OK;
        resumable = false; /* --resume takes one of the other two */
    }
    if (describe(path, model, whose, sizeof whose) || !resumable)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "'%s' holds a training%s; name another folder with --checkpoint, or "
                        "replace that training with --overwrite",
                        folder, whose);
    return GHP_FAIL(GHP_ERR_USAGE,
                    "'%s' holds a training%s; continue it with --resume, replace it with "
                    "--overwrite, or name another folder with --checkpoint",
                    folder, whose);
}

enum ghp_status ghp_checkpoint_prepare(const char *folder)
{
    char path[GHP_CHECKPOINT_PATH_BYTES];
    bool made = false;

    GHP_TRY(ghp_folder_make(folder, &made));
    if (made) ghp_file_sync_folder(folder);
    if (access(folder, W_OK | X_OK) != 0)
        return GHP_FAIL(GHP_ERR_IO,
                        "cannot write checkpoints into '%s'; name a folder that exists or can be "
                        "made, and may be written",
                        folder);
    ghp_checkpoint_path(folder, GHP_CHECKPOINT_NEWEST, path);
    ghp_safetensors_clean(path);
    return GHP_OK;
}

enum ghp_status ghp_checkpoint_try(const char *folder, bool resume)
{
    char path[GHP_CHECKPOINT_PATH_BYTES];
    bool there = access(folder, F_OK) == 0;
    enum ghp_status status = ghp_checkpoint_prepare(folder);

    if (!there) rmdir(folder);
    if (status != GHP_OK || !resume || find_any(folder, path)) return status;
    return ghp_checkpoint_missing(GHP_ERR_IO, folder);
}

enum ghp_status ghp_checkpoint_begin_file(const char *folder, const struct ghp_worker *worker,
                                          struct ghp_checkpoint checkpoint,
                                          const struct ghp_checkpoint_contents *c,
                                          struct ghp_safetensors_writer **writer)
{
    const uint64_t numbers[GHP_CHECKPOINT_NUMBERS] = {(uint64_t)checkpoint.step, checkpoint.seed,
                                                      (uint64_t)checkpoint.global_batch,
                                                      (uint64_t)checkpoint.samples};
    struct ghp_metadatum metadata[3 + GHP_CHECKPOINT_NUMBERS + 9] = {
        {"format", format},
        {model_key, ghp_worker_program(worker)->model->name},
        {ghp_checkpoint_optimizer_key, ghp_worker_program(worker)->optimizer->name}};
    struct ghp_safetensors_list list = {.n = c->n,
                                        .tensors = c->tensors,
                                        .n_metadata =
                                            3 + GHP_CHECKPOINT_NUMBERS + (c->replicas > 1 ? 2 : 0),
                                        .metadata = metadata,
                                        .checksum = true};
    char path[GHP_CHECKPOINT_PATH_BYTES],
        texts[GHP_CHECKPOINT_NUMBERS][GHP_CHECKPOINT_NUMBER_BYTES],
        workers[GHP_CHECKPOINT_NUMBER_BYTES], loss[2 * GHP_CHECKPOINT_NUMBER_BYTES],
        ema[2 * GHP_CHECKPOINT_NUMBER_BYTES];
    char sync[GHP_SYNC_TEXT_BYTES];

    for (int i = 0; i < GHP_CHECKPOINT_NUMBERS; i++) {
        snprintf(texts[i], sizeof texts[i], "%" PRIu64, numbers[i]);
        metadata[3 + i] = (struct ghp_metadatum){ghp_checkpoint_number_names[i], texts[i]};
    }
    ghp_sync_format(ghp_worker_program(worker)->method.sync, sync);
    snprintf(workers, sizeof workers, "%d", c->replicas);
    metadata[3 + GHP_CHECKPOINT_NUMBERS] = (struct ghp_metadatum){ghp_checkpoint_sync_key, sync};
    metadata[4 + GHP_CHECKPOINT_NUMBERS] =
        (struct ghp_metadatum){ghp_checkpoint_workers_key, workers};
    if (c->rates != NULL)
        metadata[list.n_metadata++] = (struct ghp_metadatum){ghp_checkpoint_rates_key, c->rates};
    if (c->mixing != NULL)
        metadata[list.n_metadata++] = (struct ghp_metadatum){ghp_checkpoint_mixing_key, c->mixing};
    if (c->norms != NULL)
        metadata[list.n_metadata++] = (struct ghp_metadatum){ghp_checkpoint_norms_key, c->norms};
    if (c->transposed)
        metadata[list.n_metadata++] = (struct ghp_metadatum){ghp_transposed_key, "true"};
    if (checkpoint.owes_evaluation)
        metadata[list.n_metadata++] =
            (struct ghp_metadatum){ghp_checkpoint_evaluation_key, ghp_checkpoint_due};
    snprintf(ema, sizeof ema, "%.17g", ghp_worker_ema(worker));
    if (ghp_worker_ema(worker) > 0)
        metadata[list.n_metadata++] = (struct ghp_metadatum){ghp_checkpoint_ema_key, ema};
    snprintf(loss, sizeof loss, "%.17g", checkpoint.test_loss);
    if (checkpoint.evaluated)
        metadata[list.n_metadata++] = (struct ghp_metadatum){ghp_checkpoint_loss_key, loss};
    ghp_checkpoint_path(folder, GHP_CHECKPOINT_NEWEST, path);
    return ghp_safetensors_begin(path, &list, writer);
}

bool ghp_checkpoint_is_one(const struct ghp_safetensors *file)
{
    const char *is = ghp_safetensors_metadata(file, "format");

    return is != NULL && strcmp(is, format) == 0;
}

/* "replica.3.": a number between the prefix and a dot. */
static bool is_of_replica(const char *name)
{
    size_t n = strlen(replica_prefix), digits;

    if (strncmp(name, replica_prefix, n) != 0) return false;
    digits = strspn(name + n, "0123456789");
    return digits > 0 && name[n + digits] == '.';
}

bool ghp_checkpoint_is_moment(const char *name)
{
    if (is_of_replica(name) || strncmp(name, own_prefix, strlen(own_prefix)) == 0) return true;
    for (int i = 0; i < GHP_OPTIMIZERS; i++)
        for (int m = 0; m < ghp_optimizer_at(i)->n_moments; m++) {
            const char *moment = ghp_optimizer_at(i)->moments[m];
            size_t n = strlen(moment);

            if (strncmp(name, moment, n) == 0 && name[n] == '.') return true;
        }
    return false;
}

enum ghp_status ghp_checkpoint_world(struct ghp_worker *worker, struct ghp_comm **world)
{
    const struct ghp_exec_context *exec = ghp_worker_exec_context(worker);
    struct ghp_ranks all = {.count = ghp_worker_program(worker)->problem.workers, .stride = 1};

    return ghp_collectives_group(exec->transport->host, all, GHP_STREAM_COMPUTE, world);
}
