/* executor/train/hits.c - see hits.h. */
#include "executor/train/hits.h"

#include "core/model/element.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const ghp_hits_detail_names[] = {"top1", "top5", "classes", "outputs", NULL};

/* What workers say of a row, doubles: numbers of enum, then TOP logits of each part of its classes. */
enum { ROW_LOGIT, ROW_PART, ROW_AHEAD, ROW_NUMBERS };
enum { TOP = 5 };

struct ghp_hits_counter {
    struct ghp_worker *worker;
    struct ghp_hits *hits;
    struct ghp_comm *world;
    struct ghp_observer observer;
    const struct ghp_step *step;
    int64_t batch, labels_each; /* samples; labels of each, those of several outputs together */
    int64_t rows_each;          /* rows of classes of a sample */
    int64_t columns;            /* of the first of several outputs in each; 0: there is one */
    int parts;                  /* that the classes of a row are divided into; 1: not */
    int64_t row_numbers;
    double *rows;    /* [batch * rows_each][row_numbers] */
    int32_t *labels; /* [batch * labels_each] */
    double *logits;  /* [classes], of one row */
    struct ghp_reduction sum;
};

enum ghp_status ghp_hits_check(const struct ghp_model *model, enum ghp_hits_detail detail)
{
    const struct ghp_layer *loss = &model->layers[model->n_layers - 1];
    bool multi_label = loss->loss.multi_label || loss->loss.parts[0].multi_label;

    if (detail == GHP_HITS_OUTPUTS && loss->loss.outputs == 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the loss '%s' of '%s' is of one output; leave --eval-metrics outputs out",
                        loss->name, model->name);
    if (detail == GHP_HITS_TOP1 || detail == GHP_HITS_OUTPUTS ||
        (ghp_loss_columns(loss) > 1 && !multi_label && model->classes > 0))
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the outputs of '%s' before its loss '%s' are not one for each class, so none "
                    "are the five greatest; leave --eval-metrics out",
                    model->name, loss->name);
}

/* ---- what was counted ---- */

double ghp_hits_fraction(int64_t hits, int64_t labels)
{
    return labels > 0 ? (double)hits / (double)labels : 0;
}

static int put(json_t *object, const char *prefix, const char *key, json_t *value)
{
    char name[32];

    snprintf(name, sizeof name, "%s%s", prefix, key);
    return json_object_set_new(object, name, value);
}

static bool put_outputs(const struct ghp_hits *hits, const char *prefix, json_t *object)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < hits->n_outputs; i++) {
        const struct ghp_output_result *of = &hits->outputs[i];
        const char *second = of->of_numbers ? "absolute_error" : "top1";

        failed |= json_array_append_new(
            array,
            json_pack("{s:o, s:o}", "loss", isfinite(of->loss) ? json_real(of->loss) : json_null(),
                      second, isfinite(of->second) ? json_real(of->second) : json_null()));
    }
    return (put(object, prefix, "outputs", array) | failed) == 0;
}

bool ghp_hits_put(const struct ghp_hits *hits, const char *prefix, json_t *object)
{
    const struct ghp_hits_of *all = &hits->all;
    json_t *labels, *top1, *top5;
    int failed = 0;

    if (hits->detail == GHP_HITS_TOP1) return true;
    if (hits->detail == GHP_HITS_OUTPUTS) return put_outputs(hits, prefix, object);
    failed |= put(object, prefix, "top5", json_real(ghp_hits_fraction(all->top5, all->labels)));
    if (hits->of_class == NULL) return failed == 0;
    labels = json_array();
    top1 = json_array();
    top5 = json_array();
    for (int c = 0; c < hits->classes; c++) {
        struct ghp_hits_of of = hits->of_class[c];
        bool has = of.labels > 0;

        failed |= json_array_append_new(labels, json_integer((json_int_t)of.labels));
        failed |= json_array_append_new(top1, has ? json_real(ghp_hits_fraction(of.top1, of.labels))
                                                  : json_null());
        failed |= json_array_append_new(top5, has ? json_real(ghp_hits_fraction(of.top5, of.labels))
                                                  : json_null());
    }
    failed |= put(object, prefix, "class_labels", labels);
    failed |= put(object, prefix, "class_top1", top1);
    failed |= put(object, prefix, "class_top5", top5);
    return failed == 0;
}

/* ---- what this worker sees ---- */

/* The row's first n logits. */
static void read_row(const struct ghp_observed *o, int64_t row, int64_t n, double *logits)
{
    int64_t first = row * o->row;

    for (int64_t i = 0; i < n && o->nchw16c; i++)
        logits[i] = ghp_observed_get(o, row * o->at.channels + i);
    for (int64_t i = 0; i < n && !o->nchw16c; i++)
        logits[i] = ghp_element_get(o->values, first + i, o->element_bytes);
}

/* Logits before which the label's does not come. */
static int64_t count_ahead(const double *logits, int64_t n, int64_t label)
{
    int64_t ahead = 0;

    for (int64_t i = 0; i < label; i++)
        ahead += logits[i] >= logits[label];
    for (int64_t i = label + 1; i < n; i++)
        ahead += logits[i] > logits[label];
    return ahead;
}

/* The greatest ones, in falling order. */
static void find_greatest(const double *logits, int64_t n, double greatest[TOP])
{
    for (int k = 0; k < TOP; k++)
        greatest[k] = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        int k = TOP - 1;

        if (!(logits[i] > greatest[k])) continue;
        for (; k > 0 && logits[i] > greatest[k - 1]; k--)
            greatest[k] = greatest[k - 1];
        greatest[k] = logits[i];
    }
}

/* The place of a part's row in the batch. */
static int64_t row_of(const struct ghp_hits_counter *c, const struct ghp_observed *o, int64_t row)
{
    int64_t each = o->at.positions * o->shape.w, sample = o->at.first_sample + row / each;

    return sample * c->rows_each + o->at.first_position * o->shape.w + row % each;
}

/* The first output's, if there are several. */
static int32_t label_of(const struct ghp_hits_counter *c, int64_t row)
{
    return c->labels[row * (c->labels_each / c->rows_each)];
}

static enum ghp_status see(void *context, const struct ghp_observed *o)
{
    struct ghp_hits_counter *c = context;
    int part = o->row > 0 ? (int)(o->at.first_channel / o->row) : 0;
    int64_t rows = o->at.samples * o->at.positions * o->shape.w;
    int64_t n = c->columns > 0 ? c->columns : o->at.channels;

    if (o->layout.kind == GHP_LAYOUT_FULL &&
        ghp_worker_placement(c->worker)->number % o->layout.tp_size != 0)
        return GHP_OK; /* another member of the subgroup says it */
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = row_of(c, o, r);
        double *to = c->rows + at * c->row_numbers;
        int64_t label = label_of(c, at) < 0 ? -1 : label_of(c, at) - o->at.first_channel;

        if (label_of(c, at) < 0) continue;
        read_row(o, r, n, c->logits);
        if (c->parts > 1) find_greatest(c->logits, n, to + ROW_NUMBERS + part * TOP);
        if (label < 0 || label >= n) continue;
        to[ROW_LOGIT] = c->logits[label];
        to[ROW_PART] = part;
        to[ROW_AHEAD] = (double)count_ahead(c->logits, n, label);
    }
    return GHP_OK;
}

/* ---- what all say ---- */

static int64_t count_others(const struct ghp_hits_counter *c, const double *row)
{
    int64_t ahead = (int64_t)row[ROW_AHEAD];

    for (int part = 0; part < c->parts && c->parts > 1; part++)
        for (int k = 0; k < TOP && part != (int)row[ROW_PART]; k++) {
            double other = row[ROW_NUMBERS + part * TOP + k];

            ahead += part < (int)row[ROW_PART] ? other >= row[ROW_LOGIT] : other > row[ROW_LOGIT];
        }
    return ahead;
}

static void count(struct ghp_hits_of *of, int64_t ahead)
{
    of->labels++;
    of->top1 += ahead == 0;
    of->top5 += ahead < TOP;
}

enum ghp_status ghp_hits_batch(struct ghp_hits_counter *c, const struct ghp_step *step)
{
    c->step = step;
    memset(c->rows, 0, (size_t)(c->batch * c->rows_each * c->row_numbers) * sizeof *c->rows);
    return ghp_data_labels(step->data, step->set, step->samples, c->batch, c->labels);
}

enum ghp_status ghp_hits_add(struct ghp_hits_counter *c)
{
    c->world->label = "counting hits";
    GHP_TRY(c->world->ops->all_reduce(c->world, &c->sum));
    for (int64_t r = 0; r < c->step->valid * c->rows_each; r++) {
        int64_t ahead;

        if (label_of(c, r) < 0) continue;
        ahead = count_others(c, c->rows + r * c->row_numbers);
        count(&c->hits->all, ahead);
        if (c->hits->of_class != NULL) count(&c->hits->of_class[label_of(c, r)], ahead);
    }
    return GHP_OK;
}

/* ---- begin and end ---- */

static enum ghp_status allocate(struct ghp_hits_counter *c)
{
    int64_t rows = c->batch * c->rows_each, numbers = rows * c->row_numbers;
    int64_t scratch = ghp_receive_bytes(numbers * (int64_t)sizeof(double), c->world->ranks.count);

    c->rows = ghp_alloc((size_t)numbers, sizeof *c->rows);
    c->labels = ghp_alloc((size_t)(c->batch * c->labels_each), sizeof *c->labels);
    c->logits = ghp_alloc((size_t)c->hits->classes, sizeof *c->logits);
    c->sum = (struct ghp_reduction){.in = c->rows,
                                    .out = c->rows,
                                    .elements = numbers,
                                    .element_bytes = sizeof(double),
                                    .scratch = ghp_alloc((size_t)scratch, 1),
                                    .scratch_bytes = scratch};
    if (c->hits->detail == GHP_HITS_CLASSES)
        c->hits->of_class = ghp_alloc((size_t)c->hits->classes, sizeof *c->hits->of_class);
    return c->rows != NULL && c->labels != NULL && c->logits != NULL && c->sum.scratch != NULL &&
                   (c->hits->of_class != NULL || c->hits->detail != GHP_HITS_CLASSES)
               ? GHP_OK
               : GHP_NO_MEMORY();
}

enum ghp_status ghp_hits_begin(struct ghp_worker *worker, struct ghp_hits *hits,
                               struct ghp_hits_counter **counter)
{
    const struct ghp_program *program = ghp_worker_program(worker);
    const struct ghp_model *model = program->model;
    const struct ghp_layer *loss = &model->layers[model->n_layers - 1];
    struct ghp_split split = program->splits[model->n_layers - 1];
    struct ghp_layout logits = ghp_split_layouts(split).x;
    struct ghp_hits_counter *c = ghp_alloc(1, sizeof *c);
    enum ghp_status status = GHP_OK;

    if (c == NULL) return GHP_NO_MEMORY();
    c->worker = worker;
    c->hits = hits;
    hits->classes = model->classes;
    c->batch = program->problem.global_batch;
    c->labels_each = ghp_model_labels(model);
    c->rows_each = c->labels_each / ghp_model_label_outputs(model).row;
    c->columns = loss->loss.outputs > 1 ? ghp_loss_columns(loss) : 0;
    c->parts = logits.kind == GHP_LAYOUT_CHANNEL ? logits.tp_size : 1;
    c->row_numbers = ROW_NUMBERS + (c->parts > 1 ? c->parts * TOP : 0);
    GHP_TRY_GOTO(
        status,
        ghp_collectives_group(ghp_worker_exec_context(worker)->transport->host,
                              (struct ghp_ranks){.count = program->problem.workers, .stride = 1},
                              GHP_STREAM_COMPUTE, &c->world),
        fail);
    GHP_TRY_GOTO(status, allocate(c), fail);
    c->observer = (struct ghp_observer){.see_logits = see, .context = c};
    ghp_worker_observe(worker, &c->observer);
    *counter = c;
    return GHP_OK;
fail:
    ghp_hits_release(c);
    return status;
}

void ghp_hits_release(struct ghp_hits_counter *c)
{
    if (c == NULL) return;
    ghp_worker_observe(c->worker, NULL);
    free(c->sum.scratch);
    free(c->logits);
    free(c->labels);
    free(c->rows);
    free(c);
}
