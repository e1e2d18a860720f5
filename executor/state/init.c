/* executor/state/init.c - see init.h. */
#include "executor/state/init.h"

#include "core/base/log.h"
#include "core/model/lora.h"
#include "core/model/orientation.h"
#include "core/model/parameter_names.h"
#include "core/base/text.h"
#include "executor/state/parameters.h"
#include "onnx/network.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 96, EXCEPTED = -1 };

static const struct ghp_init_ops *const kinds[] = {&ghp_init_safetensors, &ghp_init_onnx,
                                                   &ghp_init_huggingface};

/* ---- what was asked for ---- */

static enum ghp_status parse_seed(const char *text, uint64_t *seed)
{
    char *end = NULL;

    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--init 'random:%s' has no seed; write a whole number of at least 0 after the "
                    "colon",
                    text);
}

enum ghp_status ghp_init_parse(const char *text, uint64_t seed, struct ghp_init_choice *choice)
{
    static const char random[] = "random", colon[] = "random:";
    char known[TEXT_BYTES] = "";
    size_t used = 0;

    *choice = (struct ghp_init_choice){.seed = seed};
    if (text == NULL || strcmp(text, random) == 0) return GHP_OK;
    if (strncmp(text, colon, strlen(colon)) == 0)
        return parse_seed(text + strlen(colon), &choice->seed);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i]->names(text)) {
            choice->ops = kinds[i];
            choice->path = text;
            return GHP_OK;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "",
                                 kinds[i]->text);
    }
    return GHP_FAIL(GHP_ERR_USAGE, "unknown --init '%s'; use random, random:SEED or %s", text,
                    known);
}

enum ghp_status ghp_init_usual(const char *model_path, uint64_t seed,
                               struct ghp_init_choice *choice)
{
    bool has;

    *choice = (struct ghp_init_choice){.seed = seed};
    GHP_TRY(ghp_network_has_weights(model_path, &has));
    for (size_t i = 0; has && i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i]->names(model_path))
            *choice = (struct ghp_init_choice){.seed = seed, .ops = kinds[i], .path = model_path};
    return GHP_OK;
}

/* ---- a file against the model ---- */

struct match { /* one file and the model's list; owned but for the choice */
    const struct ghp_init_choice *choice;
    void *file;
    struct ghp_tensors_list list;
    const char **have, **want; /* NULL-terminated names of the file, of the model */
    int *item;                 /* the file's item of each of the model's tensors, or EXCEPTED */
    bool oriented;             /* the file's tensors are as their module has them */
};

static void match_release(struct match *m)
{
    free(m->item);
    free(m->want);
    free(m->have);
    ghp_tensors_release(&m->list);
    m->choice->ops->close(m->file);
}

/* Whether all names begin with a text. */
static bool all_begin(const char *const *names, const char *text)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strncmp(names[i], text, strlen(text)) != 0) return false;
    return names[0] != NULL;
}

/* Drops what PyTorch puts in front of all names of a wrapped module: DistributedDataParallel, torch.compile. */
static void drop_wrappers(struct match *m)
{
    static const char *const wrappers[] = {"module.", "_orig_mod."};

    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0];) {
        if (!all_begin(m->have, wrappers[i]) || all_begin(m->want, wrappers[i])) {
            i++;
            continue;
        }
        for (int j = 0; m->have[j] != NULL; j++)
            m->have[j] += strlen(wrappers[i]);
        ghp_note("'%s': the names of its tensors are read without '%s'", m->choice->path,
                 wrappers[i]);
        i = 0; /* one within the other, in either order */
    }
}

static enum ghp_status match_open(const struct ghp_model *model, struct match *m)
{
    const struct ghp_init_ops *ops = m->choice->ops;
    int n;

    GHP_TRY(ops->open(m->choice->path, &m->file));
    if (ops->orientation != NULL)
        GHP_TRY(ops->orientation(m->choice->path, m->file, model, &m->oriented));
    GHP_TRY(ghp_tensors_list_init(model, &m->list));
    n = ops->count(m->file);
    m->have = ghp_alloc((size_t)n + 1, sizeof *m->have);
    m->want = ghp_alloc((size_t)m->list.n + 1, sizeof *m->want);
    m->item = ghp_alloc((size_t)m->list.n + 1, sizeof *m->item);
    if (m->have == NULL || m->want == NULL || m->item == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < n; i++)
        m->have[i] = ops->item(m->file, i).name;
    for (int i = 0; i < m->list.n; i++)
        m->want[i] = m->list.items[i].param->name;
    drop_wrappers(m);
    return GHP_OK;
}

/* Dimensions as [2][3]. */
static const char *dims_text(int n_dims, const int64_t *dims, char *out)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < n_dims; i++)
        used += (size_t)snprintf(out + used, TEXT_BYTES - used, "[%" PRId64 "]", dims[i]);
    return n_dims > 0 ? out : "one number";
}

static int index_of(const char *name, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

/* ", the nearest is 'NAME'" if there is one. */
static const char *nearest_text(const char *name, const char *const *names, char *out, size_t n)
{
    const char *nearest = ghp_text_nearest(name, names);

    if (nearest == NULL) return "";
    snprintf(out, n, ", the nearest is '%s'", nearest);
    return out;
}

static enum ghp_status fail_missing(const struct match *m, const char *name)
{
    char nearest[2 * TEXT_BYTES];

    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' has no tensor '%s'%s; give a file of all tensors of the model, under its "
                    "names, or draw this one by --init-except '%s'",
                    m->choice->path, name, nearest_text(name, m->have, nearest, sizeof nearest),
                    name);
}

static enum ghp_status fail_extra(const struct match *m, const char *name)
{
    char nearest[2 * TEXT_BYTES];

    return GHP_FAIL(
        GHP_ERR_INPUT,
        "'%s' has a tensor '%s' that the model does not have%s; give a file of the model's "
        "tensors alone, or leave this one out by --init-except '%s'",
        m->choice->path, name, nearest_text(name, m->want, nearest, sizeof nearest), name);
}

static enum ghp_status check_dims(const struct match *m, const struct ghp_param *want, int item)
{
    struct ghp_init_tensor have = m->choice->ops->item(m->file, item);
    int64_t dims[GHP_MAX_DIMS];
    char theirs[TEXT_BYTES], ours[TEXT_BYTES];

    memcpy(dims, want->dims, sizeof dims);
    if (m->oriented) ghp_param_file_dims(want, dims);
    if (have.n_dims == want->n_dims &&
        memcmp(have.dims, dims, (size_t)want->n_dims * sizeof *dims) == 0)
        return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "'%s': tensor '%s' is %s, but the model's is %s; give weights of this model, or "
        "draw this one by --init-except '%s'",
        m->choice->path, want->name, dims_text(have.n_dims, have.dims, theirs),
        dims_text(want->n_dims, dims, ours), want->name);
}

static bool is_excepted(const struct match *m, const char *name)
{
    const struct ghp_opt_list *except = m->choice->except;

    for (int i = 0; except != NULL && i < except->n; i++)
        if (ghp_parameter_is_named(except->item[i], name)) return true;
    return false;
}

static bool names_one(const char *pattern, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++)
        if (ghp_parameter_is_named(pattern, names[i])) return true;
    return false;
}

/* Refuses a pattern that excepts nothing, and says which of the model's tensors are drawn. */
static enum ghp_status check_except(const struct match *m)
{
    const struct ghp_opt_list *except = m->choice->except;
    char nearest[2 * TEXT_BYTES], text[4 * TEXT_BYTES];
    const char **drawn;
    int n = 0;

    if (except == NULL || except->n == 0) return GHP_OK;
    for (int i = 0; i < except->n; i++)
        if (!names_one(except->item[i], m->want) && !names_one(except->item[i], m->have))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "--init-except '%s' names no tensor of the model or of '%s'%s; give a "
                            "name or a pattern such as 'fc.*'",
                            except->item[i], m->choice->path,
                            nearest_text(except->item[i], m->want, nearest, sizeof nearest));
    drawn = ghp_alloc((size_t)m->list.n + 1, sizeof *drawn);
    if (drawn == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < m->list.n; i++)
        if (is_excepted(m, m->want[i])) drawn[n++] = m->want[i];
    if (n > 0)
        ghp_note("'%s': %d of %d tensors are drawn from the seed: %s", m->choice->path, n,
                 m->list.n, ghp_text_join(drawn, text, sizeof text));
    free(drawn);
    return GHP_OK;
}

/* Whether the file has none of the matrices of core/model/lora.h that the model has: it is of the network before. */
static bool begins_lora(const struct match *m)
{
    int n = 0;

    for (int i = 0; m->have[i] != NULL; i++)
        if (ghp_lora_has_tensor(m->have[i])) return false;
    for (int i = 0; i < m->list.n; i++)
        n += ghp_lora_has_tensor(m->want[i]);
    if (n > 0) ghp_note("'%s': %d tensors of lora_A and lora_B begin here", m->choice->path, n);
    return n > 0;
}

static enum ghp_status match_names(struct match *m)
{
    bool lora = begins_lora(m);

    GHP_TRY(check_except(m));
    for (int i = 0; i < m->list.n; i++) {
        m->item[i] = EXCEPTED;
        if (is_excepted(m, m->want[i]) || (lora && ghp_lora_has_tensor(m->want[i]))) continue;
        m->item[i] = index_of(m->want[i], m->have);
        if (m->item[i] < 0) return fail_missing(m, m->want[i]);
        GHP_TRY(check_dims(m, m->list.items[i].param, m->item[i]));
    }
    for (int i = 0; m->have[i] != NULL; i++)
        if (index_of(m->have[i], m->want) < 0 && !is_excepted(m, m->have[i]))
            return fail_extra(m, m->have[i]);
    return GHP_OK;
}

static enum ghp_status take_values(struct match *m, struct ghp_worker *worker, int element_bytes)
{
    enum ghp_status status = GHP_OK;
    int64_t largest = 1;
    void *whole;

    for (int i = 0; i < m->list.n; i++)
        if (m->list.items[i].param->elements > largest) largest = m->list.items[i].param->elements;
    whole = ghp_alloc((size_t)largest, (size_t)element_bytes);
    if (whole == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < m->list.n; i++) {
        const struct ghp_tensor *t = &m->list.items[i];

        if (m->item[i] == EXCEPTED) continue; /* it is drawn already */
        GHP_TRY_GOTO(status, m->choice->ops->read(m->file, m->item[i], element_bytes, whole), done);
        GHP_TRY_GOTO(status,
                     ghp_tensors_check_finite(m->choice->path, t->param->name, t->param->elements,
                                              element_bytes, whole),
                     done);
        if (worker == NULL) continue;
        if (m->oriented)
            GHP_TRY_GOTO(status, ghp_param_from_file(t->param, element_bytes, whole), done);
        GHP_TRY_GOTO(status, ghp_parameters_scatter(worker, t, ghp_tensor_buffer_kind(t), whole),
                     done);
    }
done:
    free(whole);
    return status;
}

enum ghp_status ghp_init_weights(struct ghp_worker *worker, const struct ghp_init_choice *choice)
{
    struct match m = {.choice = choice};
    enum ghp_status status;

    GHP_TRY(ghp_parameters_init(worker, choice->seed)); /* moments too */
    if (choice->path == NULL) return GHP_OK;
    status = match_open(ghp_worker_program(worker)->model, &m);
    if (status == GHP_OK) status = match_names(&m);
    if (status == GHP_OK)
        status =
            take_values(&m, worker, ghp_parameter_bytes(ghp_worker_program(worker)->element_bytes));
    match_release(&m);
    return status;
}

enum ghp_status ghp_init_try(const struct ghp_model *model, const struct ghp_init_choice *choice)
{
    struct match m = {.choice = choice};
    enum ghp_status status;

    if (choice->path == NULL) return GHP_OK;
    status = match_open(model, &m);
    if (status == GHP_OK) status = match_names(&m);
    if (status == GHP_OK) status = take_values(&m, NULL, (int)sizeof(float));
    match_release(&m);
    return status;
}
