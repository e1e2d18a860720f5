/* executor/state/checkpoint_save.c - see checkpoint.h: the workers' state gathered into an image, which a thread writes
 * during the training; or straight into the file, one tensor after the other. Both make the same bytes. */
#include "executor/state/checkpoint_private.h"

#include "core/base/clock.h"
#include "core/model/orientation.h"
#include "executor/platform/failpoint.h"
#include "executor/platform/memory.h"
#include "executor/platform/task_thread.h"
#include "executor/state/parameters.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the file ---- */

/* The newest file, if it is whole and of this training, gets the name of the one before it as well; without links it
 * has that name alone until the new file appears. */
static void keep_previous(const struct ghp_checkpoint_folder *folder)
{
    char newest[GHP_CHECKPOINT_PATH_BYTES], previous[GHP_CHECKPOINT_PATH_BYTES];

    ghp_checkpoint_path(folder->path, GHP_CHECKPOINT_NEWEST, newest);
    ghp_checkpoint_path(folder->path, GHP_CHECKPOINT_PREVIOUS, previous);
    if (folder->newest || !folder->previous) unlink(previous);
    if (folder->newest && link(newest, previous) != 0) (void)rename(newest, previous);
}

/* Rank 0: the file is complete. Frees the writer. */
static enum ghp_status appear(const struct ghp_checkpoint_folder *folder,
                              struct ghp_checkpoint checkpoint,
                              struct ghp_safetensors_writer *writer)
{
    enum ghp_status status = ghp_safetensors_sync(writer);

    if (status != GHP_OK) {
        ghp_safetensors_abandon(writer);
        return status;
    }
    keep_previous(folder);
    ghp_failpoint_reach(GHP_FAILPOINT_RENAME);
    GHP_TRY(ghp_safetensors_finish(writer));
    ghp_checkpoint_keep_named(folder, checkpoint);
    return GHP_OK;
}

static void note_saved(struct ghp_checkpoint_folder *folder)
{
    folder->previous = folder->newest || folder->previous;
    folder->newest = true;
}

/* ---- the image ---- */

struct ghp_checkpoint_image {
    struct ghp_checkpoint_folder *folder; /* nothing of it changes while the thread writes */
    const struct ghp_worker *worker;      /* for the names in the file */
    struct ghp_checkpoint checkpoint;     /* that is in it */
    struct ghp_checkpoint_contents contents;
    char *values;
    struct ghp_task_thread *thread; /* NULL: nothing is being written */
    int64_t ticket;
    double begun_s, disk_s, core_s; /* of the writing; the seconds are the thread's to set, */
    atomic_bool written;            /* before this */
};

/* On the thread: the whole file. */
static enum ghp_status write_image(struct ghp_checkpoint_image *image)
{
    const struct ghp_checkpoint_contents *c = &image->contents;
    struct ghp_safetensors_writer *writer = NULL;
    const char *at = image->values;

    GHP_TRY(ghp_checkpoint_begin_file(image->folder->path, image->worker, image->checkpoint, c,
                                      &writer));
    for (int i = 0; i < c->n; i++) {
        enum ghp_status status;

        if (i == c->n / 2) ghp_failpoint_reach(GHP_FAILPOINT_WRITE);
        status = ghp_safetensors_append(writer, at, ghp_checkpoint_entry_bytes(c, i));

        at += ghp_checkpoint_entry_bytes(c, i);
        if (status == GHP_OK) continue;
        ghp_safetensors_abandon(writer);
        return status;
    }
    return appear(image->folder, image->checkpoint, writer);
}

static enum ghp_status write_on_thread(void *context, int job)
{
    struct ghp_checkpoint_image *image = context;
    double core_s = ghp_thread_cpu_s();
    enum ghp_status status = write_image(image);

    (void)job;
    image->disk_s = ghp_now_s() - image->begun_s;
    image->core_s = ghp_thread_cpu_s() - core_s;
    atomic_store(&image->written, true);
    return status;
}

/* Rank 0: the image, made once; NULL if there is no memory for it, or no thread is wanted. */
static struct ghp_checkpoint_image *image_of(struct ghp_checkpoint_folder *folder,
                                             const struct ghp_worker *worker)
{
    struct ghp_checkpoint_image *image = folder->image;
    int64_t room = ghp_memory_available();

    if (!folder->concurrent) return NULL;
    if (image != NULL) return image;
    image = ghp_alloc(1, sizeof *image);
    if (image == NULL) return NULL;
    *image = (struct ghp_checkpoint_image){.folder = folder, .worker = worker};
    if (ghp_checkpoint_contents_init(worker, &image->contents) == GHP_OK &&
        (room < 0 || room > image->contents.bytes))
        image->values = ghp_alloc((size_t)image->contents.bytes + 1, 1);
    folder->image = image;
    if (image->values != NULL) {
        folder->cost.image_bytes = image->contents.bytes;
        return image;
    }
    ghp_checkpoint_release(folder);
    return NULL;
}

/* The image is complete: the thread writes it, or this one if there is no further thread. */
static enum ghp_status write_concurrently(struct ghp_checkpoint_image *image)
{
    image->begun_s = ghp_now_s();
    atomic_store(&image->written, false);
    if (ghp_task_thread_open(1, write_on_thread, image, &image->thread) != GHP_OK)
        return write_image(image);
    image->ticket = ghp_task_thread_post(image->thread, 0);
    return GHP_OK;
}

bool ghp_checkpoint_under_way(const struct ghp_checkpoint_folder *folder)
{
    return folder->image != NULL && folder->image->thread != NULL;
}

bool ghp_checkpoint_written(const struct ghp_checkpoint_folder *folder)
{
    return ghp_checkpoint_under_way(folder) && atomic_load(&folder->image->written);
}

enum ghp_status ghp_checkpoint_finish(struct ghp_checkpoint_folder *folder, int64_t *step)
{
    struct ghp_checkpoint_image *image = folder->image;
    double begin_s = ghp_now_s();
    enum ghp_status status;

    if (!ghp_checkpoint_under_way(folder)) return GHP_OK;
    *step = image->checkpoint.step;
    status = ghp_task_thread_wait(image->thread, image->ticket);
    ghp_task_thread_close(image->thread);
    image->thread = NULL;
    folder->cost.waited_s += ghp_now_s() - begin_s;
    if (status != GHP_OK) return status;
    folder->cost.concurrent++;
    folder->cost.disk_s += image->disk_s;
    folder->cost.core_s += image->core_s;
    note_saved(folder);
    return GHP_OK;
}

void ghp_checkpoint_release(struct ghp_checkpoint_folder *folder)
{
    struct ghp_checkpoint_image *image = folder->image;

    if (image == NULL) return;
    ghp_task_thread_close(image->thread);
    ghp_checkpoint_contents_release(&image->contents);
    free(image->values);
    free(image);
    folder->image = NULL;
}

/* ---- gathering ---- */

struct saving {
    struct ghp_comm *world;
    struct ghp_checkpoint_contents contents;
    void *whole; /* room for one tensor, and for those of all replicas after it */
    /* rank 0, one of the two: where the next values go */
    char *image;
    struct ghp_safetensors_writer *writer;
    char *mixing, *norms;    /* the contents', as long as these are not made */
    enum ghp_status written; /* a write that fails does not stop the gathering, in which all are */
};

/* Rank 0: entry i's values where they lie, as files hold them. */
static void orient(struct saving *to, int i, void *values)
{
    const struct ghp_checkpoint_contents *c = &to->contents;

    if ((to->image == NULL && to->writer == NULL) || to->written != GHP_OK) return;
    to->written = ghp_param_to_file(c->entries[i].tensor->param, c->element_bytes, values);
}

/* One tensor's values, of rank 0. */
static void put(struct saving *to, const void *values, int64_t bytes)
{
    if (to->image != NULL) {
        memcpy(to->image, values, (size_t)bytes);
        to->image += bytes;
    } else if (to->writer != NULL && to->written == GHP_OK) {
        to->written = ghp_safetensors_append(to->writer, values, bytes);
    }
}

/* Entry i: a whole tensor, straight into an image; or, of the first replica, as many entries, of which each worker has
 * one. */
static enum ghp_status gather_entry(struct ghp_worker *worker, struct saving *to, int i)
{
    const struct ghp_checkpoint_entry *e = &to->contents.entries[i];
    int64_t bytes = ghp_checkpoint_entry_bytes(&to->contents, i);
    char *all = (char *)to->whole + (e->worker < 0 ? 0 : bytes);

    if (e->worker > 0) return GHP_OK;
    if (e->worker < 0 && to->image != NULL) {
        GHP_TRY(ghp_parameters_gather(worker, e->tensor, e->buffer_kind, to->image));
        orient(to, i, to->image);
        to->image += bytes;
        return GHP_OK;
    }
    GHP_TRY(ghp_parameters_gather(worker, e->tensor, e->buffer_kind, to->whole));
    if (e->worker == 0) GHP_TRY(to->world->ops->all_gather(to->world, to->whole, all, bytes));
    for (int k = 0; k < (e->worker < 0 ? 1 : to->contents.replicas); k++) {
        orient(to, i, all + k * bytes);
        put(to, all + k * bytes, bytes);
    }
    return GHP_OK;
}

/* The tensors, or the replicas' mean; then moments, and each replica's own. */
static enum ghp_status gather_all(struct ghp_worker *worker, struct saving *to)
{
    GHP_TRY(ghp_worker_take_mean(worker));
    for (int i = 0; i < to->contents.list.n; i++)
        GHP_TRY(gather_entry(worker, to, i));
    GHP_TRY(ghp_worker_return_mean(worker));
    for (int i = to->contents.list.n; i < to->contents.n; i++)
        GHP_TRY(gather_entry(worker, to, i));
    return GHP_OK;
}

/* All workers agree on `status`. A failure costs the checkpoint alone. */
static enum ghp_status agree(struct ghp_worker *worker, struct ghp_comm *world,
                             enum ghp_status status)
{
    struct ghp_control *control = ghp_worker_exec_context(worker)->transport->control;

    status = ghp_control_agree(control, world, status);
    if (status == GHP_OK || status == GHP_ERR_COMM) return status;
    return GHP_FAIL(GHP_ERR_IO, "%s", ghp_status_message());
}

/* A text has one owner. */
static void hand_over(char **to, char **from)
{
    free(*to);
    *to = *from;
    *from = NULL;
}

/* What this worker needs before all gather: room, and of rank 0 an image or a file. */
static enum ghp_status prepare(struct ghp_checkpoint_folder *folder, struct ghp_worker *worker,
                               struct ghp_checkpoint checkpoint, struct saving *to)
{
    struct ghp_checkpoint_contents *c = &to->contents;
    bool first = ghp_worker_program(worker)->rank == 0;
    struct ghp_checkpoint_image *image;

    GHP_TRY(ghp_checkpoint_contents_init(worker, &to->contents));
    hand_over(&to->contents.mixing, &to->mixing);
    hand_over(&to->contents.norms, &to->norms);
    to->whole = ghp_alloc((size_t)((c->replicas > 1 ? 1 + c->replicas : 1) * c->largest) + 1,
                          (size_t)c->element_bytes);
    if (to->whole == NULL) return GHP_NO_MEMORY();
    if (!first) return GHP_OK;
    image = image_of(folder, worker);
    if (image == NULL)
        return ghp_checkpoint_begin_file(folder->path, worker, checkpoint, c, &to->writer);
    image->checkpoint = checkpoint;
    hand_over(&image->contents.rates, &to->contents.rates); /* of this step, as what follows */
    hand_over(&image->contents.mixing, &to->contents.mixing);
    hand_over(&image->contents.norms, &to->contents.norms);
    to->image = image->values;
    return GHP_OK;
}

/* Rank 0: all values are there. */
static enum ghp_status complete(struct ghp_checkpoint_folder *folder,
                                struct ghp_checkpoint checkpoint, struct saving *to)
{
    struct ghp_safetensors_writer *writer = to->writer;

    if (to->written != GHP_OK) return to->written;
    if (to->image != NULL) return write_concurrently(folder->image);
    if (writer == NULL) return GHP_OK;
    to->writer = NULL;
    return appear(folder, checkpoint, writer);
}

enum ghp_status ghp_checkpoint_save(struct ghp_checkpoint_folder *folder, struct ghp_worker *worker,
                                    struct ghp_checkpoint checkpoint)
{
    struct saving to = {.written = GHP_OK};
    double begin_s = ghp_now_s();
    enum ghp_status status = GHP_OK;

    GHP_ASSERT(!ghp_checkpoint_under_way(folder));
    GHP_TRY_GOTO(status, ghp_checkpoint_world(worker, &to.world), done);
    to.world->label = "writing a checkpoint";
    GHP_TRY_GOTO(status, ghp_checkpoint_mixing_text(worker, to.world, &to.mixing), done);
    GHP_TRY_GOTO(status, ghp_checkpoint_norms_text(&folder->norms, worker, to.world, &to.norms),
                 done);
    GHP_TRY_GOTO(status, agree(worker, to.world, prepare(folder, worker, checkpoint, &to)), done);
    ghp_failpoint_reach(GHP_FAILPOINT_GATHER);
    GHP_TRY_GOTO(status, gather_all(worker, &to), done);
    GHP_TRY_GOTO(status, agree(worker, to.world, complete(folder, checkpoint, &to)), done);
    if (!ghp_checkpoint_under_way(folder)) note_saved(folder);
    folder->cost.bytes = to.contents.bytes;
    folder->cost.saves++;
    if (ghp_checkpoint_under_way(folder))
        folder->cost.gather_s += ghp_now_s() - begin_s;
    else
        folder->cost.between_s += ghp_now_s() - begin_s;
done:
    ghp_safetensors_abandon(to.writer);
    free(to.whole);
    free(to.mixing);
    free(to.norms);
    ghp_checkpoint_contents_release(&to.contents);
    return status;
}
