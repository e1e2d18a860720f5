/* executor/state/checkpoint_load.c - see checkpoint.h: a checkpoint read into the workers. */
#include "executor/state/checkpoint_private.h"

#include "core/base/log.h"
#include "core/model/orientation.h"
#include "executor/state/parameters.h"
#include "executor/transport/alike.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether it is a moment of a parameter that is fixed now, and was trained when the file was written. */
static bool is_of_fixed(const struct ghp_checkpoint_contents *c, const char *name)
{
    size_t n = strlen(name);

    for (int i = c->list.n_trained; ghp_checkpoint_is_moment(name) && i < c->list.n; i++) {
        const char *fixed = c->list.items[i].param->name;
        size_t m = strlen(fixed);

        if (!c->list.items[i].is_state && n > m && name[n - m - 1] == '.' &&
            strcmp(name + n - m, fixed) == 0)
            return true;
    }
    return false;
}

/* Why a tensor is missing: its parameter was frozen when the file was written, or the file is of another model. */
static enum ghp_status refuse_missing(const char *path, const struct ghp_safetensors *file,
                                      const char *name, const char *param)
{
    if (ghp_checkpoint_is_moment(name) && ghp_safetensors_find(file, param) != NULL)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has no tensor '%s': '%s' was frozen in that training; plan with the "
                        "--freeze of that training, or start from its weights with --init",
                        path, name, param);
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "'%s' has no tensor '%s': it is of another model; resume with the plan's own model", path,
        name);
}

static enum ghp_status check_contents(const char *path, const struct ghp_safetensors *file,
                                      const struct ghp_checkpoint_contents *c, bool oriented)
{
    for (int i = 0; i < c->n; i++) {
        const struct ghp_safetensor *want = &c->tensors[i],
                                    *have = ghp_safetensors_find(file, want->name);
        const int64_t *dims = oriented ? want->dims : c->entries[i].tensor->param->dims;

        if (have == NULL)
            return refuse_missing(path, file, want->name, c->entries[i].tensor->param->name);
        if (have->n_dims != want->n_dims ||
            memcmp(have->dims, dims, (size_t)want->n_dims * sizeof *dims) != 0)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s': tensor '%s' has other dimensions than the model's; resume with "
                            "the plan's own model",
                            path, want->name);
    }
    for (int i = 0; i < ghp_safetensors_count(file); i++) {
        const char *name = ghp_safetensors_item(file, i)->name;
        bool known = is_of_fixed(c, name);

        for (int j = 0; j < c->n && !known; j++)
            known = strcmp(name, c->tensors[j].name) == 0;
        if (!known)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' has a tensor '%s' that the model does not have; resume with the "
                            "model that made it",
                            path, name);
    }
    return GHP_OK;
}

/* Its moments are the optimizer's own. Files without the name are of sgd. */
static enum ghp_status check_optimizer(const char *path, const struct ghp_safetensors *file,
                                       const struct ghp_optimizer *optimizer)
{
    const char *made_by = ghp_safetensors_metadata(file, ghp_checkpoint_optimizer_key);

    if (made_by == NULL) made_by = ghp_optimizer_sgd.name;
    if (strcmp(made_by, optimizer->name) == 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' is of a training by the optimizer '%s', and the plan is for '%s'; plan "
                    "with --optimizer %s, or start from its weights with --init",
                    path, made_by, optimizer->name, made_by);
}

/* Replicas that differ continue as those that they were. */
static enum ghp_status check_sync(const char *path, const struct ghp_safetensors *file,
                                  const struct ghp_program *program)
{
    const char *made_by = ghp_safetensors_metadata(file, ghp_checkpoint_sync_key),
               *over = ghp_safetensors_metadata(file, ghp_checkpoint_workers_key);
    bool differ = program->replicas > 1;
    char sync[GHP_SYNC_TEXT_BYTES], workers[GHP_CHECKPOINT_NUMBER_BYTES];

    if (made_by == NULL && !differ) return GHP_OK;
    ghp_sync_format(program->method.sync, sync);
    snprintf(workers, sizeof workers, "%d", program->problem.workers);
    if (made_by != NULL && over != NULL && strcmp(made_by, sync) == 0 && strcmp(over, workers) == 0)
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' is of a training with %s on %s worker(s), and the plan is with %s on %s: "
                    "workers whose weights differ cannot change their number; plan with the same, "
                    "or start from its weights with --init",
                    path, made_by != NULL ? made_by : "all-reduce",
                    over != NULL ? over : "any number of", sync, workers);
}

static enum ghp_status check_ema(const char *path, const struct ghp_safetensors *file,
                                 const struct ghp_worker *worker)
{
    const char *made_by = ghp_safetensors_metadata(file, ghp_checkpoint_ema_key);

    if ((made_by != NULL) == (ghp_worker_ema(worker) > 0)) return GHP_OK;
    if (made_by != NULL)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' is of a training with --ema %s; resume with it, or start from its "
                        "averages with --init",
                        path, made_by);
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' is of a training without --ema; leave it out, or start from its weights "
                    "with --init",
                    path);
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
    uint64_t numbers[GHP_CHECKPOINT_NUMBERS] = {0};
    const char *evaluation = ghp_safetensors_metadata(file, ghp_checkpoint_evaluation_key);

    if (!ghp_checkpoint_is_one(file))
        return GHP_FAIL(
            GHP_ERR_FORMAT,
            "'%s' is not a checkpoint; resume from one that ghp-run wrote, or start from its "
            "weights with --init",
            path);
    for (int i = 0; i < GHP_CHECKPOINT_NUMBERS; i++) {
        const char *text = ghp_safetensors_metadata(file, ghp_checkpoint_number_names[i]);

        if (!parse_number(text, &numbers[i]) ||
            (i != GHP_CHECKPOINT_SEED && numbers[i] > INT64_MAX))
            return GHP_FAIL(GHP_ERR_FORMAT,
                            "'%s': '%s' in its metadata is %s, no number; use a checkpoint that "
                            "ghp-run wrote",
                            path, ghp_checkpoint_number_names[i], text != NULL ? text : "missing");
    }
    *checkpoint = (struct ghp_checkpoint){
        .step = (int64_t)numbers[GHP_CHECKPOINT_STEP],
        .seed = numbers[GHP_CHECKPOINT_SEED],
        .global_batch = (int64_t)numbers[GHP_CHECKPOINT_BATCH],
        .samples = (int64_t)numbers[GHP_CHECKPOINT_SAMPLES],
        .owes_evaluation = evaluation != NULL && strcmp(evaluation, ghp_checkpoint_due) == 0};
    return GHP_OK;
}

/* Whether the entry is the last of a moment. */
static bool ends_moment(const struct ghp_checkpoint_contents *c, int i)
{
    enum ghp_buffer_kind kind = c->entries[i].buffer_kind;

    return ghp_buffer_kind_is_moment(kind) &&
           (i + 1 == c->n || c->entries[i + 1].buffer_kind != kind);
}

static enum ghp_status scatter_all(const char *path, struct ghp_worker *worker,
                                   struct ghp_safetensors *file,
                                   const struct ghp_checkpoint_contents *c, bool oriented)
{
    int element_bytes = ghp_parameter_bytes(ghp_worker_program(worker)->element_bytes);
    enum ghp_status status = GHP_OK;
    void *whole = ghp_alloc((size_t)c->largest + 1, (size_t)element_bytes);

    if (whole == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < c->n; i++) {
        const struct ghp_safetensor *t = ghp_safetensors_find(file, c->tensors[i].name);

        if (i == c->list.n) GHP_TRY_GOTO(status, ghp_worker_give_weights(worker), done);
        if (c->entries[i].worker >= 0 && c->entries[i].worker != ghp_worker_program(worker)->rank)
            continue;
        GHP_TRY_GOTO(status, ghp_safetensors_read(file, t, element_bytes, whole), done);
        GHP_TRY_GOTO(status,
                     ghp_tensors_check_finite(path, t->name, c->entries[i].tensor->param->elements,
                                              element_bytes, whole),
                     done);
        if (oriented)
            GHP_TRY_GOTO(status,
                         ghp_param_from_file(c->entries[i].tensor->param, element_bytes, whole),
                         done);
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

/* content: set to a number of the file's own */
static enum ghp_status read_file(const char *path, struct ghp_worker *worker,
                                 const struct ghp_checkpoint_norms *norms,
                                 struct ghp_checkpoint *checkpoint, uint64_t *content)
{
    struct ghp_safetensors *file = NULL;
    struct ghp_checkpoint_contents c = {0};
    bool oriented = false;
    enum ghp_status status = ghp_checkpoint_contents_init(worker, &c);

    if (status != GHP_OK) goto done;
    GHP_TRY_GOTO(status, ghp_safetensors_open(path, &file), done);
    GHP_TRY_GOTO(status, ghp_safetensors_check_sum(file, content), done);
    GHP_TRY_GOTO(status, read_metadata(path, file, checkpoint), done);
    GHP_TRY_GOTO(status, check_optimizer(path, file, ghp_worker_program(worker)->optimizer), done);
    GHP_TRY_GOTO(status, check_sync(path, file, ghp_worker_program(worker)), done);
    GHP_TRY_GOTO(status, check_ema(path, file, worker), done);
    GHP_TRY_GOTO(status,
                 ghp_file_orientation(path, file, ghp_worker_program(worker)->model, &oriented),
                 done);
    GHP_TRY_GOTO(status, check_contents(path, file, &c, oriented), done);
    GHP_TRY_GOTO(status, ghp_checkpoint_read_rates(path, file, worker), done);
    GHP_TRY_GOTO(status, ghp_checkpoint_read_mixing(path, file, worker), done);
    if (checkpoint->samples == norms->samples) /* else the code that knows them refuses it */
        GHP_TRY_GOTO(status, ghp_checkpoint_read_norms(path, file, norms), done);
    status = scatter_all(path, worker, file, &c, oriented);
done:
    ghp_safetensors_close(file);
    ghp_checkpoint_contents_release(&c);
    return status;
}

/* What all workers together make of the file that each has read; `mine` is how the reading ended.
 * *damaged: some could not read it, and nobody found anything else wrong; the same on every worker. */
static enum ghp_status agree_on_reading(struct ghp_control *control, struct ghp_comm *world,
                                        enum ghp_status end, bool *damaged)
{
    const struct ghp_control_message mine = {.status = end}, *messages = &mine;
    int unread = 0, wrong = 0;

    if (world->ranks.count > 1) GHP_TRY(control->ops->tell(control, world, mine, &messages));
    for (int i = 0; i < world->ranks.count; i++) {
        int64_t status = messages[i].status;

        if (status == GHP_ERR_IO || status == GHP_ERR_FORMAT)
            unread++;
        else if (status != GHP_OK)
            wrong++;
    }
    *damaged = unread > 0 && wrong == 0;
    return ghp_control_agree(control, world, end);
}

/* All workers have read the same file, wherever each has its own. */
static enum ghp_status agree_on_content(struct ghp_control *control, struct ghp_comm *world,
                                        int64_t step, uint64_t content)
{
    struct ghp_alike alike = {.status = GHP_ERR_INPUT,
                              .remedy = "give all of them the same checkpoint, such as in a folder "
                                        "that all nodes share"};
    char text[32];

    if (world->ranks.count == 1) return GHP_OK;
    snprintf(text, sizeof text, "%" PRId64, step);
    ghp_alike_add_text(&alike, "the checkpoint's step", text);
    ghp_alike_add(&alike, "the checkpoint", "", content);
    return ghp_alike_agree(&alike, control, world);
}

static enum ghp_status load(const struct ghp_checkpoint_folder *folder,
                            enum ghp_checkpoint_generation generation, struct ghp_worker *worker,
                            struct ghp_checkpoint *checkpoint, bool *damaged)
{
    struct ghp_control *control = ghp_worker_exec_context(worker)->transport->control;
    struct ghp_comm *world = NULL;
    uint64_t content = 0;
    enum ghp_status status;
    char path[GHP_CHECKPOINT_PATH_BYTES];

    *damaged = false;
    GHP_TRY(ghp_checkpoint_world(worker, &world));
    world->label = "reading a checkpoint";
    ghp_checkpoint_path(folder->path, generation, path);
    status = read_file(path, worker, &folder->norms, checkpoint, &content);
    GHP_TRY(agree_on_reading(control, world, status, damaged));
    return agree_on_content(control, world, checkpoint->step, content);
}

enum ghp_status ghp_checkpoint_load(struct ghp_checkpoint_folder *folder, struct ghp_worker *worker,
                                    struct ghp_checkpoint *checkpoint)
{
    bool damaged = false, both = false;
    enum ghp_status status = load(folder, GHP_CHECKPOINT_NEWEST, worker, checkpoint, &damaged);
    char why[GHP_CHECKPOINT_PATH_BYTES], path[GHP_CHECKPOINT_PATH_BYTES];

    folder->newest = status == GHP_OK;
    folder->previous = true;
    if (!damaged) return status;
    snprintf(why, sizeof why, "%s", ghp_status_message());
    ghp_checkpoint_path(folder->path, GHP_CHECKPOINT_PREVIOUS, path);
    if (load(folder, GHP_CHECKPOINT_PREVIOUS, worker, checkpoint, &both) == GHP_OK) {
        ghp_warn("%s; continuing from the checkpoint before it, '%s', of %" PRId64 " steps", why,
                 path, checkpoint->step);
        return GHP_OK;
    }
    if (access(path, F_OK) != 0) {
        ghp_checkpoint_path(folder->path, GHP_CHECKPOINT_NEWEST, path);
        if (access(path, F_OK) == 0)
            return GHP_FAIL(status,
                            "%s; there is no checkpoint before it: put a copy of one in its place, "
                            "or begin again with --overwrite instead of --resume",
                            why);
        return ghp_checkpoint_missing(status, folder->path);
    }
    return GHP_FAIL(
        status,
        "%s; nor can the one before it be used: %s; or begin again with --overwrite instead "
        "of --resume",
        why, ghp_status_message());
}
