/* executor/state/checkpoint.c - see checkpoint.h. */
#include "executor/state/checkpoint.h"

#include "core/base/file.h"
#include "core/base/log.h"
#include "executor/state/parameters.h"
#include "core/model/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, NUMBER_BYTES = 24 };

static const char format[] = "ghp.checkpoint/1", optimizer_key[] = "optimizer";

/* Where workers' weights differ: by which synchroniser, over how many, and what their tensors' names begin with. */
static const char sync_key[] = "sync", workers_key[] = "workers", replica_prefix[] = "replica.";

/* The whole numbers of the metadata, as texts: a seed is beyond what JSON readers hold exactly. */
enum { NUMBER_STEP, NUMBER_SEED, NUMBER_BATCH, NUMBER_SAMPLES, N_NUMBERS };
static const char *const number_names[N_NUMBERS] = {"step", "seed", "global_batch", "samples"};

/* One entry of the file: a tensor in a role. */
struct entry {
    const struct ghp_tensor *tensor;
    enum ghp_buffer_kind buffer_kind;
    int worker; /* whose, where workers' weights differ; else -1: the tensor, or the mean of all */
};

struct contents { /* all entries, in file order; owned */
    struct ghp_tensors_list list;
    int n;
    struct entry *entries;
    struct ghp_safetensor *tensors; /* names owned: contents_release */
    int64_t largest;                /* elements */
    int element_bytes;
    int replicas; /* whose weights differ; 1: none */
};

static void contents_release(struct contents *c)
{
    for (int i = 0; c->tensors != NULL && i < c->n; i++)
        free((char *)(uintptr_t)c->tensors[i].name);
    free(c->tensors);
    free(c->entries);
    ghp_tensors_release(&c->list);
}

/* moment: its name and a dot; "": the tensor itself */
static enum ghp_status add_entry(struct contents *c, struct entry entry, const char *moment)
{
    const struct ghp_tensor *t = entry.tensor;
    struct ghp_safetensor *s = &c->tensors[c->n];
    size_t room = strlen(t->param->name) + strlen(moment) + sizeof replica_prefix + NUMBER_BYTES;
    char *name = ghp_alloc(room, 1);

    if (name == NULL) return GHP_NO_MEMORY();
    if (entry.worker < 0)
        snprintf(name, room, "%s%s", moment, t->param->name);
    else
        snprintf(name, room, "%s%d.%s%s", replica_prefix, entry.worker, moment, t->param->name);
    *s = (struct ghp_safetensor){
        .name = name, .element_bytes = c->element_bytes, .n_dims = t->param->n_dims};
    memcpy(s->dims, t->param->dims, sizeof(s->dims));
    c->entries[c->n++] = entry;
    if (t->param->elements > c->largest) c->largest = t->param->elements;
    return GHP_OK;
}

/* Once, or of each worker whose own differ, one after the other. */
static enum ghp_status add_each(struct contents *c, const struct ghp_tensor *t, const char *moment,
                                enum ghp_buffer_kind buffer_kind)
{
    for (int k = 0; k < c->replicas; k++)
        GHP_TRY(add_entry(c, (struct entry){t, buffer_kind, c->replicas > 1 ? k : -1}, moment));
    return GHP_OK;
}

static enum ghp_status contents_init(const struct ghp_worker *worker, struct contents *c)
{
    const struct ghp_work *work = ghp_worker_work(worker);
    const struct ghp_optimizer *optimizer = ghp_worker_program(worker)->optimizer;
    char moment[NUMBER_BYTES];
    size_t most;

    *c = (struct contents){.element_bytes = ghp_parameter_bytes(work->element_bytes),
                           .replicas = ghp_sync_replicas(work->sync, work->problem.workers)};
    GHP_TRY(ghp_tensors_list(work->model, &c->list));
    most = (1 + (1 + GHP_MAX_MOMENTS) * (size_t)c->replicas) * (size_t)c->list.n + 1;
    c->entries = ghp_alloc(most, sizeof(*c->entries));
    c->tensors = ghp_alloc(most, sizeof(*c->tensors));
    if (c->entries == NULL || c->tensors == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < c->list.n; i++) {
        const struct ghp_tensor *t = &c->list.items[i];

        GHP_TRY(add_entry(c, (struct entry){t, ghp_tensor_buffer_kind(t), -1}, ""));
    }
    for (int i = 0; i < c->list.n && c->replicas > 1; i++)
        GHP_TRY(add_each(c, &c->list.items[i], "", ghp_tensor_buffer_kind(&c->list.items[i])));
    for (int m = 0; m < optimizer->n_moments; m++) {
        snprintf(moment, sizeof moment, "%s.", optimizer->moments[m]);
        for (int i = 0; i < c->list.n_params; i++)
            GHP_TRY(add_each(c, &c->list.items[i], moment, ghp_moment_kind(m)));
    }
    return GHP_OK;
}

enum generation { NEWEST, PREVIOUS };
static const char *const file_names[] = {"checkpoint.safetensors",
                                         "checkpoint.previous.safetensors"};

static void path_in(const char *folder, enum generation generation, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%s", folder, file_names[generation]);
}

enum ghp_status ghp_checkpoint_prepare(const char *folder)
{
    char path[PATH_BYTES];

    if (mkdir(folder, 0777) == 0) ghp_file_sync_folder(folder);
    if (access(folder, W_OK | X_OK) != 0)
        return GHP_FAIL(GHP_ERR_IO,
                        "cannot write checkpoints into '%s'; name a folder that exists or can be "
                        "made, and may be written",
                        folder);
    path_in(folder, NEWEST, path);
    ghp_safetensors_clean(path);
    return GHP_OK;
}

static enum ghp_status begin(const char *folder, const struct ghp_worker *worker,
                             struct ghp_checkpoint checkpoint, const struct contents *c,
                             struct ghp_safetensors_writer **writer)
{
    const uint64_t numbers[N_NUMBERS] = {(uint64_t)checkpoint.step, checkpoint.seed,
                                         (uint64_t)checkpoint.global_batch,
                                         (uint64_t)checkpoint.samples};
    struct ghp_metadatum metadata[3 + N_NUMBERS + 2] = {
        {"format", format},
        {"model", ghp_worker_work(worker)->model->name},
        {optimizer_key, ghp_worker_program(worker)->optimizer->name}};
    struct ghp_safetensors_list list = {.n = c->n,
                                        .tensors = c->tensors,
                                        .n_metadata = 3 + N_NUMBERS + (c->replicas > 1 ? 2 : 0),
                                        .metadata = metadata,
                                        .checksum = true};
    char path[PATH_BYTES], texts[N_NUMBERS][NUMBER_BYTES], workers[NUMBER_BYTES];
    char sync[GHP_SYNC_TEXT_BYTES];

    for (int i = 0; i < N_NUMBERS; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%" PRIu64, numbers[i]);
        metadata[3 + i] = (struct ghp_metadatum){number_names[i], texts[i]};
    }
    ghp_sync_format(ghp_worker_work(worker)->sync, sync);
    snprintf(workers, sizeof(workers), "%d", c->replicas);
    metadata[3 + N_NUMBERS] = (struct ghp_metadatum){sync_key, sync};
    metadata[4 + N_NUMBERS] = (struct ghp_metadatum){workers_key, workers};
    path_in(folder, NEWEST, path);
    return ghp_safetensors_begin(path, &list, writer);
}

static enum ghp_status world_of(struct ghp_worker *worker, struct ghp_comm **world)
{
    const struct ghp_exec_context *exec = ghp_worker_exec_context(worker);
    struct ghp_ranks all = {.count = ghp_worker_work(worker)->problem.workers, .stride = 1};

    return ghp_collectives_group(exec->transport->host, all, GHP_STREAM_COMPUTE, world);
}

struct writing { /* of a file */
    struct ghp_comm *world;
    void *whole; /* room for one tensor, and for those of all replicas behind it */
    struct ghp_safetensors_writer *writer; /* of rank 0; else NULL */
    enum ghp_status written; /* a write that fails does not stop the gathering, in which all are */
};

/* Entry i: a whole tensor; or, of the first replica, as many entries, of which each worker has one. */
static enum ghp_status write_entry(struct ghp_worker *worker, const struct contents *c, int i,
                                   struct writing *to)
{
    const struct entry *e = &c->entries[i];
    int64_t bytes = e->tensor->param->elements * c->element_bytes;
    char *all = (char *)to->whole + (e->worker < 0 ? 0 : bytes);

    if (e->worker > 0) return GHP_OK;
    GHP_TRY(ghp_parameters_gather(worker, e->tensor, e->buffer_kind, to->whole));
    if (e->worker == 0) GHP_TRY(to->world->ops->all_gather(to->world, to->whole, all, bytes));
    for (int k = 0; k < (e->worker < 0 ? 1 : c->replicas); k++)
        if (to->writer != NULL && to->written == GHP_OK)
            to->written = ghp_safetensors_append(to->writer, all + k * bytes, bytes);
    return GHP_OK;
}

/* The tensors, or the replicas' mean; then moments, and each replica's own. */
static enum ghp_status gather_all(struct ghp_worker *worker, const struct contents *c,
                                  struct writing *to)
{
    GHP_TRY(ghp_worker_take_mean(worker));
    for (int i = 0; i < c->list.n; i++)
        GHP_TRY(write_entry(worker, c, i, to));
    GHP_TRY(ghp_worker_return_mean(worker));
    for (int i = c->list.n; i < c->n; i++)
        GHP_TRY(write_entry(worker, c, i, to));
    return GHP_OK;
}

/* The newest file, if it is whole and of this training, gets the name of the one before it as well; without links it
 * has that name alone until the new file appears. */
static void keep_previous(const struct ghp_checkpoint_folder *folder)
{
    char newest[PATH_BYTES], previous[PATH_BYTES];

    path_in(folder->path, NEWEST, newest);
    path_in(folder->path, PREVIOUS, previous);
    if (folder->newest || !folder->previous) unlink(previous);
    if (folder->newest && link(newest, previous) != 0) (void)rename(newest, previous);
}

/* Rank 0: the file is complete. Frees the writer. */
static enum ghp_status appear(const struct ghp_checkpoint_folder *folder,
                              struct ghp_safetensors_writer *writer)
{
    enum ghp_status status = ghp_safetensors_sync(writer);

    if (status != GHP_OK) {
        ghp_safetensors_abandon(writer);
        return status;
    }
    keep_previous(folder);
    return ghp_safetensors_finish(writer);
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

enum ghp_status ghp_checkpoint_save(struct ghp_checkpoint_folder *folder, struct ghp_worker *worker,
                                    struct ghp_checkpoint checkpoint)
{
    const struct ghp_work *work = ghp_worker_work(worker);
    struct writing to = {.written = GHP_OK};
    struct contents c = {0};
    enum ghp_status status = GHP_OK;

    GHP_TRY_GOTO(status, world_of(worker, &to.world), done);
    to.world->label = "writing a checkpoint";
    status = contents_init(worker, &c);
    if (status == GHP_OK) {
        int rooms = c.replicas > 1 ? 1 + c.replicas : 1;

        to.whole = ghp_alloc((size_t)(rooms * c.largest) + 1, (size_t)c.element_bytes);
        if (to.whole == NULL) status = GHP_NO_MEMORY();
    }
    if (status == GHP_OK && work->rank == 0)
        status = begin(folder->path, worker, checkpoint, &c, &to.writer);
    GHP_TRY_GOTO(status, agree(worker, to.world, status), done);
    GHP_TRY_GOTO(status, gather_all(worker, &c, &to), done);
    if (to.writer != NULL && to.written == GHP_OK) {
        to.written = appear(folder, to.writer);
        to.writer = NULL;
    }
    GHP_TRY_GOTO(status, agree(worker, to.world, to.written), done);
    folder->previous = folder->newest || folder->previous;
    folder->newest = true;
done:
    ghp_safetensors_abandon(to.writer);
    free(to.whole);
    contents_release(&c);
    return status;
}

/* ---- loading ---- */

static enum ghp_status check_contents(const char *path, const struct ghp_safetensors *file,
                                      const struct contents *c)
{
    for (int i = 0; i < c->n; i++) {
        const struct ghp_safetensor *want = &c->tensors[i],
                                    *have = ghp_safetensors_find(file, want->name);

        if (have == NULL)
            return GHP_FAIL(
                GHP_ERR_INPUT,
                "'%s' has no tensor '%s': it is of another model; resume with the plan's own model",
                path, want->name);
        if (have->n_dims != want->n_dims ||
            memcmp(have->dims, want->dims, (size_t)want->n_dims * sizeof(*want->dims)) != 0)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s': tensor '%s' has other dimensions than the model's; resume with "
                            "the plan's own model",
                            path, want->name);
    }
    for (int i = 0; i < ghp_safetensors_count(file); i++) {
        const char *name = ghp_safetensors_item(file, i)->name;
        bool known = false;

        for (int j = 0; j < c->n && !known; j++)
            known = strcmp(name, c->tensors[j].name) == 0;
        if (!known)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' has a tensor '%s' that the model has not; resume with the model "
                            "it was made by",
                            path, name);
    }
    return GHP_OK;
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
    if (is_of_replica(name)) return true;
    for (int i = 0; i < GHP_OPTIMIZERS; i++)
        for (int m = 0; m < ghp_optimizer_at(i)->n_moments; m++) {
            const char *moment = ghp_optimizer_at(i)->moments[m];
            size_t n = strlen(moment);

            if (strncmp(name, moment, n) == 0 && name[n] == '.') return true;
        }
    return false;
}

/* Its moments are the optimizer's own. Files without the name are of sgd. */
static enum ghp_status check_optimizer(const char *path, const struct ghp_safetensors *file,
                                       const struct ghp_optimizer *optimizer)
{
    const char *made_by = ghp_safetensors_metadata(file, optimizer_key);

    if (made_by == NULL) made_by = ghp_optimizer_sgd.name;
    if (strcmp(made_by, optimizer->name) == 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' is of a training by the optimizer '%s', and the plan is for '%s'; plan "
                    "with --optimizer %s, or start from its weights with --init",
                    path, made_by, optimizer->name, made_by);
}

/* Replicas that differ go on as those that they were. */
static enum ghp_status check_sync(const char *path, const struct ghp_safetensors *file,
                                  const struct ghp_work *work)
{
    const char *made_by = ghp_safetensors_metadata(file, sync_key),
               *over = ghp_safetensors_metadata(file, workers_key);
    bool differ = ghp_sync_replicas(work->sync, work->problem.workers) > 1;
    char sync[GHP_SYNC_TEXT_BYTES], workers[NUMBER_BYTES];

    if (made_by == NULL && !differ) return GHP_OK;
    ghp_sync_format(work->sync, sync);
    snprintf(workers, sizeof(workers), "%d", work->problem.workers);
    if (made_by != NULL && over != NULL && strcmp(made_by, sync) == 0 && strcmp(over, workers) == 0)
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' is of a training by %s over %s worker(s), and the plan is by %s over %s: "
                    "workers whose weights differ go on as those that they were; plan by the same "
                    "over as many, or start from its weights with --init",
                    path, made_by != NULL ? made_by : "all-reduce",
                    over != NULL ? over : "any number of", sync, workers);
}

/* A number of decimal digits alone, up to 2^64 - 1. */
static bool parse_number(const char *text, uint64_t *value)
{
    char *end = NULL;

    if (text == NULL || text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static enum ghp_status read_metadata(const char *path, const struct ghp_safetensors *file,
                                     struct ghp_checkpoint *checkpoint)
{
    uint64_t numbers[N_NUMBERS] = {0};

    if (!ghp_checkpoint_is_one(file))
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' is no %s; resume from one that ghp-run wrote, or start from its "
                        "weights with --init",
                        path, format);
    for (int i = 0; i < N_NUMBERS; i++) {
        const char *text = ghp_safetensors_metadata(file, number_names[i]);

        if (!parse_number(text, &numbers[i]) || (i != NUMBER_SEED && numbers[i] > INT64_MAX))
            return GHP_FAIL(GHP_ERR_FORMAT,
                            "'%s': '%s' in its metadata is %s, no number; use a checkpoint that "
                            "ghp-run wrote",
                            path, number_names[i], text != NULL ? text : "missing");
    }
    *checkpoint = (struct ghp_checkpoint){.step = (int64_t)numbers[NUMBER_STEP],
                                          .seed = numbers[NUMBER_SEED],
                                          .global_batch = (int64_t)numbers[NUMBER_BATCH],
                                          .samples = (int64_t)numbers[NUMBER_SAMPLES]};
    return GHP_OK;
}

/* Whether the entry is the last of a moment. */
static bool ends_moment(const struct contents *c, int i)
{
    enum ghp_buffer_kind kind = c->entries[i].buffer_kind;

    return ghp_buffer_kind_is_moment(kind) &&
           (i + 1 == c->n || c->entries[i + 1].buffer_kind != kind);
}

static enum ghp_status scatter_all(struct ghp_worker *worker, struct ghp_safetensors *file,
                                   const struct contents *c)
{
    int element_bytes = ghp_parameter_bytes(ghp_worker_work(worker)->element_bytes);
    enum ghp_status status = GHP_OK;
    void *whole = ghp_alloc((size_t)c->largest + 1, (size_t)element_bytes);

    if (whole == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < c->n; i++) {
        const struct ghp_safetensor *t = ghp_safetensors_find(file, c->tensors[i].name);

        if (c->entries[i].worker >= 0 && c->entries[i].worker != ghp_worker_work(worker)->rank)
            continue;
        GHP_TRY_GOTO(status, ghp_safetensors_read(file, t, element_bytes, whole), done);
        GHP_TRY_GOTO(
            status,
            ghp_parameters_scatter(worker, c->entries[i].tensor, c->entries[i].buffer_kind, whole),
            done);
        if (ends_moment(c, i))
            GHP_TRY_GOTO(status, ghp_worker_distribute(worker, c->entries[i].buffer_kind), done);
    }
done:
    free(whole);
    return status;
}

static enum ghp_status read_file(const char *path, struct ghp_worker *worker,
                                 struct ghp_checkpoint *checkpoint)
{
    struct ghp_safetensors *file = NULL;
    struct contents c = {0};
    enum ghp_status status = contents_init(worker, &c);

    if (status != GHP_OK) goto done;
    GHP_TRY_GOTO(status, ghp_safetensors_open(path, &file), done);
    GHP_TRY_GOTO(status, ghp_safetensors_check(file), done);
    GHP_TRY_GOTO(status, read_metadata(path, file, checkpoint), done);
    GHP_TRY_GOTO(status, check_optimizer(path, file, ghp_worker_program(worker)->optimizer), done);
    GHP_TRY_GOTO(status, check_sync(path, file, ghp_worker_work(worker)), done);
    GHP_TRY_GOTO(status, check_contents(path, file, &c), done);
    status = scatter_all(worker, file, &c);
done:
    ghp_safetensors_close(file);
    contents_release(&c);
    return status;
}

/* What all workers together make of the file that each has read, `mine`: its step, and how the reading ended.
 * *damaged: some could not read it, and nobody found anything else wrong; the same on every worker. */
static enum ghp_status agree_on_file(struct ghp_worker *worker, struct ghp_comm *world,
                                     struct ghp_word mine, bool *damaged)
{
    struct ghp_control *control = ghp_worker_exec_context(worker)->transport->control;
    const struct ghp_word *words = &mine;
    int unread = 0, wrong = 0;
    bool apart = false;

    if (world->ranks.count > 1) GHP_TRY(control->ops->tell(control, world, mine, &words));
    for (int i = 0; i < world->ranks.count; i++) {
        int64_t status = words[i].status;

        if (status == GHP_ERR_IO || status == GHP_ERR_FORMAT)
            unread++;
        else if (status != GHP_OK)
            wrong++;
        apart = apart || words[i].value != words[0].value;
    }
    *damaged = unread > 0 && wrong == 0;
    GHP_TRY(ghp_control_agree(control, world, (enum ghp_status)mine.status));
    if (!apart) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT, "workers see checkpoints of different steps; name a folder on a "
                                   "file system that all nodes share");
}

static enum ghp_status load(const struct ghp_checkpoint_folder *folder, enum generation generation,
                            struct ghp_worker *worker, struct ghp_checkpoint *checkpoint,
                            bool *damaged)
{
    struct ghp_comm *world = NULL;
    enum ghp_status status;
    char path[PATH_BYTES];

    *damaged = false;
    GHP_TRY(world_of(worker, &world));
    world->label = "reading a checkpoint";
    path_in(folder->path, generation, path);
    status = read_file(path, worker, checkpoint);
    return agree_on_file(worker, world,
                         (struct ghp_word){status == GHP_OK ? (double)checkpoint->step : 0, status},
                         damaged);
}

enum ghp_status ghp_checkpoint_load(struct ghp_checkpoint_folder *folder, struct ghp_worker *worker,
                                    struct ghp_checkpoint *checkpoint)
{
    bool damaged = false, both = false;
    enum ghp_status status = load(folder, NEWEST, worker, checkpoint, &damaged);
    char why[PATH_BYTES], path[PATH_BYTES];

    folder->newest = status == GHP_OK;
    folder->previous = true;
    if (!damaged) return status;
    snprintf(why, sizeof(why), "%s", ghp_status_message());
    path_in(folder->path, PREVIOUS, path);
    if (load(folder, PREVIOUS, worker, checkpoint, &both) == GHP_OK) {
        ghp_warn("%s; going on from the checkpoint before it, '%s', of %" PRId64 " steps", why,
                 path, checkpoint->step);
        return GHP_OK;
    }
    if (access(path, F_OK) != 0) return GHP_FAIL(status, "%s", why);
    return GHP_FAIL(status, "%s; nor can the one before it be used: %s", why, ghp_status_message());
}
