/* executor/data/data.c - the list of sources, what is common to those that read files, and the checks against the
 * model. */
#include "executor/data/data_private.h"
#include "executor/data/image/augment.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const ghp_labels_names[] = {"given", "parity", NULL};

static const struct ghp_data_ops *const sources[] = {
    &ghp_data_synthetic, &ghp_data_folder,   &ghp_data_npy,    &ghp_data_idx,
    &ghp_data_cifar10,   &ghp_data_cifar100, &ghp_data_tokens, &ghp_data_bytes};

/* ---- opening ---- */

static enum ghp_status find_source(const char *spec, const struct ghp_data_ops **ops,
                                   const char **rest)
{
    char known[GHP_DATA_TEXT_BYTES] = "";
    size_t used = 0;
    const char *colon = strchr(spec, ':');
    size_t n = colon != NULL ? (size_t)(colon - spec) : strlen(spec);

    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (strlen(sources[i]->name) != n || strncmp(sources[i]->name, spec, n) != 0) continue;
        if ((sources[i]->argument == NULL) != (colon == NULL) ||
            (colon != NULL && colon[1] == '\0'))
            break;
        *ops = sources[i];
        *rest = colon != NULL ? colon + 1 : NULL;
        return GHP_OK;
    }
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s%s%s", i > 0 ? ", " : "",
                                 sources[i]->name, sources[i]->argument != NULL ? ":" : "",
                                 sources[i]->argument != NULL ? sources[i]->argument : "");
    return GHP_FAIL(GHP_ERR_USAGE, "unknown data '%s'; use one of %s", spec, known);
}

enum ghp_status ghp_data_check_files(const char *spec)
{
    const struct ghp_data_ops *ops = NULL;
    const char *rest = NULL;

    GHP_TRY(find_source(spec, &ops, &rest));
    if (rest == NULL || access(rest, F_OK) == 0) return GHP_OK;
    if (ops->files != NULL && strchr(rest, ',') == NULL)
        return GHP_FAIL(GHP_ERR_IO, "no data in '%s'; it must hold %s", rest, ops->files);
    for (const char *at = rest; *at != '\0'; at += *at == ',') {
        size_t n = strcspn(at, ",");
        char name[GHP_DATA_PATH_BYTES];
        const char *file = name;

        snprintf(name, sizeof name, "%.*s", (int)n, at);
        at += n;
        if (ops->has_tokens) file = ghp_token_list_file(name);
        if (file != NULL && *file != '\0' && access(file, F_OK) != 0)
            return GHP_FAIL(GHP_ERR_IO, "cannot read '%s' of --data %s: %s; see that it is there",
                            file, spec, strerror(errno));
    }
    return GHP_OK;
}

/* Labels of all pictures of a set that are classes, and how many. */
static int64_t pictures_labels(const struct ghp_data *data, int set, int32_t **labels)
{
    const struct ghp_pictures *pictures = ghp_data_pictures(data, set);

    *labels = pictures != NULL ? pictures->labels : NULL;
    return *labels != NULL ? pictures->n * ghp_pictures_count_labels(pictures) : 0;
}

static enum ghp_status check_labels(const struct ghp_data *data,
                                    const struct ghp_data_request *request)
{
    int32_t *labels;

    for (int i = 0; i < GHP_DATA_SET_COUNT; i++)
        for (int64_t s = 0; s < pictures_labels(data, i, &labels); s++)
            if (labels[s] >= request->classes)
                return GHP_FAIL(GHP_ERR_INPUT,
                                "sample %lld of '%s' has label %d, but the model has %d classes (0 "
                                "to %d); use a model with more, or --ignore-label to leave that "
                                "label out",
                                (long long)(s / request->sample_labels), request->spec, labels[s],
                                request->classes, request->classes - 1);
    return GHP_OK;
}

/* Labels of sets that were read become -1 if they are ignored, before anything else is made of them.
 * Returns how many are. */
static int64_t ignore_labels(struct ghp_data *data)
{
    int64_t ignored = 0;
    int32_t *labels;

    for (int i = 0; data->ignores && i < GHP_DATA_SET_COUNT; i++)
        for (int64_t s = 0; s < pictures_labels(data, i, &labels); s++) {
            if (labels[s] != data->ignored_label) continue;
            labels[s] = -1;
            ignored++;
        }
    return ignored;
}

/* Labels of several outputs may be of both kinds, and some may be left out. */
static void take_outputs(struct ghp_data *data, const struct ghp_data_request *request)
{
    data->outputs = request->outputs;
    for (int i = 0; i < data->outputs.n && request->targets.c > 0; i++)
        data->mixes = data->mixes || data->outputs.classes[i] > 0;
    for (int i = 0; i < GHP_DATA_SET_COUNT; i++) {
        const struct ghp_pictures *pictures = ghp_data_pictures(data, i);

        if (pictures != NULL && pictures->targets != NULL)
            data->has_gaps = data->has_gaps || pictures->targets->has_gaps;
    }
}

/* Changes the labels of sets that were read. */
static void change_labels(struct ghp_data *data, enum ghp_labels to)
{
    int32_t *labels;

    for (int i = 0; to == GHP_LABELS_PARITY && i < GHP_DATA_SET_COUNT; i++)
        for (int64_t s = 0; s < pictures_labels(data, i, &labels); s++)
            if (labels[s] >= 0) labels[s] %= 2;
}

/* Samples that are read as they are: images, or arrays of ids. */
static bool has_pictures(const struct ghp_data_ops *ops)
{
    return ops->argument != NULL && !ops->has_tokens;
}

static bool has_images(const struct ghp_data_ops *ops, const struct ghp_data_request *request)
{
    return has_pictures(ops) && request->shape.vocabulary == 0;
}

/* Whether --augment was given, and asks for something. */
static bool changes_samples(const struct ghp_data_request *request)
{
    return request->augment != NULL && strcmp(request->augment, "none") != 0 &&
           strcmp(request->augment, "auto") != 0;
}

static enum ghp_status read_blending(const struct ghp_data_request *request,
                                     struct ghp_blending *blending)
{
    struct ghp_augmentation augmentation;

    if (!changes_samples(request)) return GHP_OK;
    GHP_TRY(ghp_augment_parse(request->augment, &augmentation));
    *blending = augmentation.blending;
    if (!ghp_blending_is_on(blending)) return GHP_OK;
    if (request->sample_labels != 1)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "--augment mixup and cutmix are for one label a sample, and the model takes "
            "%lld; leave them out",
            (long long)request->sample_labels);
    if (request->ignores)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--ignore-label leaves samples out that --augment mixup and cutmix blend "
                        "with others; leave one of them out");
    return GHP_OK;
}

/* Options that mean nothing to a source are mistakes. */
static enum ghp_status check_options(const struct ghp_data_ops *ops,
                                     const struct ghp_data_request *request)
{
    bool is_folder = ops == &ghp_data_folder;

    if (request->normalise != NULL && !has_images(ops, request))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--normalise is for images from files, and '%s' has none; leave it out",
                        request->spec);
    if (request->labels != GHP_LABELS_GIVEN && !has_images(ops, request))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--labels parity is for labelled images from files, and '%s' has none; "
                        "leave it out",
                        request->spec);
    if (changes_samples(request) && !is_folder &&
        (request->shape.vocabulary > 0 || !ghp_augment_only_blends(request->augment)))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--augment %s is for folder:DIR, and not for '%s'; leave it out%s",
                        request->augment, request->spec,
                        request->shape.vocabulary > 0 ? "" : ", or all keys but mixup and cutmix");
    if (request->skip_damaged > 0 && !is_folder)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--skip-damaged is for folder:DIR, whose samples have files of their own, "
                        "and not for '%s'; leave it out",
                        request->spec);
    return GHP_OK;
}

/* Labels that are to be numbers. */
static enum ghp_status check_targets(const struct ghp_data_ops *ops,
                                     const struct ghp_data_request *request)
{
    if (request->targets.c == 0) return GHP_OK;
    if (ops != &ghp_data_npy && ops->argument != NULL)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has classes as labels, but the loss takes numbers; save samples and "
                        "numbers as arrays (npy:IMAGES.npy,LABELS.npy), or use a model with a loss "
                        "of classes",
                        request->spec);
    if (!request->ignores && request->labels == GHP_LABELS_GIVEN) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "%s is for labels that are classes, but the loss takes numbers; leave it out%s",
                    request->ignores ? "--ignore-label" : "--labels parity",
                    request->ignores && request->outputs.n > 1
                        ? ", and save labels that are to be ignored as NaN"
                        : "");
}

/* Whether the source has samples of the kind that the model takes: tokens, or numbers. */
static enum ghp_status check_kind(const struct ghp_data_ops *ops,
                                  const struct ghp_data_request *request)
{
    int64_t vocabulary = request->shape.vocabulary;

    if (ops->has_tokens && vocabulary == 0)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "'%s' has tokens, but the model does not take tokens; use a model whose input "
            "has a vocabulary, or other data",
            request->spec);
    if (!has_pictures(ops) && !ops->has_tokens) return GHP_OK; /* it makes what is taken */
    if (has_pictures(ops) && vocabulary > 0 && ops != &ghp_data_npy)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has images, but the model takes tokens; give tokens:FILE, or arrays "
                        "of ids and labels (npy:IDS.npy,LABELS.npy)",
                        request->spec);
    if (!ops->has_tokens) return GHP_OK;
    if (request->sample_labels != request->shape.h)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has a label for each of %lld positions, but the model takes %lld; "
                        "use a model with a loss at each position, or arrays of ids and labels "
                        "(npy:IDS.npy,LABELS.npy)",
                        request->spec, (long long)request->shape.h,
                        (long long)request->sample_labels);
    if (request->classes < vocabulary)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the model takes tokens 0 to %lld, but its loss has %d classes; use a "
                        "model with as many as its vocabulary",
                        (long long)vocabulary - 1, request->classes);
    return GHP_OK;
}

static enum ghp_status check_data(const struct ghp_data *data,
                                  const struct ghp_data_request *request)
{
    const struct ghp_pictures *pictures = ghp_data_pictures(data, data->source[GHP_DATA_TRAIN]);
    struct ghp_shape d = data->shape, m = request->shape;
    char theirs[GHP_SHAPE_TEXT], mine[GHP_SHAPE_TEXT];

    if (!ghp_shape_equal(d, m))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has samples of %s (channels x height x width), but the model takes "
                        "%s; use other data or a model of that input",
                        request->spec, ghp_shape_format(d, theirs), ghp_shape_format(m, mine));
    if (has_pictures(data->ops) &&
        request->sample_labels != (pictures != NULL ? ghp_pictures_count_labels(pictures) : 1))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has one label a sample, but the model takes %lld; save images "
                        "and labels as NumPy arrays (npy:DIR), or use a model that takes one",
                        request->spec, (long long)request->sample_labels);
    if (data->count[GHP_DATA_TRAIN] < request->global_batch)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has %lld training samples, fewer than the global batch of %lld; plan "
                        "with a batch of at most %lld%s",
                        request->spec, (long long)data->count[GHP_DATA_TRAIN],
                        (long long)request->global_batch, (long long)data->count[GHP_DATA_TRAIN],
                        request->split > 0 ? ", or raise --train-fraction" : "");
    return check_labels(data, request);
}

/* ignored   labels of sets that were read */
static void describe(struct ghp_data *data, const struct ghp_data_request *request, int64_t ignored)
{
    const char *by = data->normalisation.text;
    bool can_be = data->ops->has_tokens && request->ignored_label >= 0 &&
                  request->ignored_label < request->shape.vocabulary;
    char none[64] = "";

    if (data->ignores && ignored == 0 && !can_be && data->ops->argument != NULL &&
        data->ops->files_of == NULL)
        snprintf(none, sizeof none, ", none with the label %lld that is ignored",
                 (long long)request->ignored_label);
    snprintf(data->text, sizeof data->text, "%s: %lld training and %lld test samples%s%s%s%s",
             request->spec, (long long)data->count[GHP_DATA_TRAIN],
             (long long)data->count[GHP_DATA_TEST], none,
             ghp_data_blends(data) ||
                     (data->ops->augments != NULL && data->ops->augments(data->own))
                 ? ", augmented"
                 : "",
             by != NULL ? ", normalised by " : "", by != NULL ? by : "");
}

enum ghp_status ghp_data_open(const struct ghp_data_request *request, struct ghp_data **result)
{
    enum ghp_status status = GHP_OK;
    const struct ghp_data_ops *ops = NULL;
    const char *rest = NULL;
    struct ghp_data *data;
    int64_t ignored;

    *result = NULL;
    GHP_TRY(find_source(request->spec, &ops, &rest));
    data = ghp_alloc(1, sizeof *data);
    if (data == NULL) return GHP_NO_MEMORY();
    data->ops = ops;
    data->sample_labels = request->sample_labels;
    data->ignores = request->ignores;
    data->ignored_label = request->ignored_label;
    data->seed = request->seed;
    data->labels_of_one = ghp_alloc((size_t)data->sample_labels, sizeof *data->labels_of_one);
    data->own = ghp_alloc(1, ops->own_bytes);
    if (data->labels_of_one == NULL || data->own == NULL)
        GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    GHP_TRY_GOTO(status, check_options(ops, request), fail);
    GHP_TRY_GOTO(status, check_targets(ops, request), fail);
    GHP_TRY_GOTO(status, check_kind(ops, request), fail);
    GHP_TRY_GOTO(status, read_blending(request, &data->blending), fail);
    GHP_TRY_GOTO(status, ops->open(request, rest, data), fail);
    ignored = ignore_labels(data);
    change_labels(data, request->labels);
    take_outputs(data, request);
    GHP_TRY_GOTO(status, check_data(data, request), fail);
    if (has_images(ops, request)) GHP_TRY_GOTO(status, ghp_normalisation_init(data, request), fail);
    describe(data, request, ignored);
    *result = data;
    return GHP_OK;
fail:
    ghp_data_close(data);
    return status;
}

void ghp_data_close(struct ghp_data *data)
{
    if (data == NULL) return;
    if (data->own != NULL) data->ops->close(data->own);
    free(data->own);
    ghp_normalisation_release(&data->normalisation);
    free(data->labels_of_one);
    free(data);
}

int64_t ghp_data_count(const struct ghp_data *data, enum ghp_data_set set)
{
    return data->count[set];
}

bool ghp_data_from_files(const struct ghp_data *data)
{
    return data->ops->argument != NULL;
}

int64_t ghp_data_skipped(const struct ghp_data *data)
{
    return data->ops->skipped != NULL ? data->ops->skipped(data->own) : 0;
}

const char *ghp_data_text(const struct ghp_data *data)
{
    return data->text;
}

/* ---- reading ---- */

static enum ghp_status check_sample(const struct ghp_data *data, enum ghp_data_set set,
                                    int64_t sample)
{
    if (sample >= 0 && sample < data->count[set]) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INTERNAL, "sample %lld of %lld was asked for; report this",
                    (long long)sample, (long long)data->count[set]);
}

bool ghp_data_blends(const struct ghp_data *data)
{
    return data != NULL && ghp_blending_is_on(&data->blending);
}

/* What the batch's sample i is blended with; it has no fraction if the batch is of a test set. */
static struct ghp_blend blend_of(const struct ghp_data *data, const struct ghp_batch *batch,
                                 int64_t i)
{
    struct ghp_image_size size = {data->shape.w, data->shape.h};

    if (!ghp_data_blends(data) || batch->set != GHP_DATA_TRAIN) return (struct ghp_blend){0};
    return ghp_blend_draw(&data->blending, size, data->count[GHP_DATA_TRAIN],
                          (struct ghp_crop_key){data->seed, batch->epoch, batch->samples[i]});
}

/* Blends another sample into one of `bytes` bytes. */
static enum ghp_status blend(const struct ghp_data *data, const struct ghp_batch *batch,
                             const struct ghp_blend *drawn, int64_t bytes, void *image)
{
    void *other = malloc((size_t)bytes);
    enum ghp_status status =
        other != NULL ? data->ops->image(data, drawn->other, batch, other) : GHP_NO_MEMORY();

    if (status == GHP_OK)
        ghp_blend_apply(drawn, (struct ghp_blended){.to = {data->shape.w, data->shape.h},
                                                    .channels = batch->channels,
                                                    .element_bytes = batch->element_bytes,
                                                    .other = other,
                                                    .image = image});
    free(other);
    return status;
}

enum ghp_status ghp_data_images(struct ghp_data *data, const struct ghp_batch *batch)
{
    int64_t bytes = batch->channels * data->shape.h * data->shape.w *
                    ghp_shape_element_bytes(data->shape, batch->element_bytes);

    for (int64_t i = 0; i < batch->n; i++) {
        char *image = (char *)batch->images + i * bytes;
        struct ghp_blend drawn;

        GHP_TRY(check_sample(data, batch->set, batch->samples[i]));
        GHP_TRY(data->ops->image(data, batch->samples[i], batch, image));
        drawn = blend_of(data, batch, i);
        if (drawn.fraction > 0) GHP_TRY(blend(data, batch, &drawn, bytes, image));
    }
    return GHP_OK;
}

/* Label i of a sample, which lies as a number: as it is, or as the class that it is, -1 of NaN. */
static int32_t class_or_number(const struct ghp_data *data, int64_t i, int32_t label)
{
    float number = ghp_label_number(label);

    if (data->outputs.classes[ghp_label_output(&data->outputs, i)] == 0) return label;
    return isnan(number) ? -1 : (int32_t)number;
}

enum ghp_status ghp_data_labels(struct ghp_data *data, enum ghp_data_set set,
                                const int64_t *samples, int64_t n, int32_t *labels)
{
    for (int64_t i = 0; i < n; i++) {
        GHP_TRY(check_sample(data, set, samples[i]));
        data->ops->labels(data, set, samples[i], labels + i * data->sample_labels);
    }
    for (int64_t i = 0; data->mixes && i < n * data->sample_labels; i++)
        labels[i] = class_or_number(data, i, labels[i]);
    for (int64_t i = 0; data->ignores && i < n * data->sample_labels; i++)
        if (labels[i] == data->ignored_label) labels[i] = -1;
    return GHP_OK;
}

enum ghp_status ghp_data_blend_labels(struct ghp_data *data, const struct ghp_batch *batch,
                                      int32_t *labels, struct ghp_second_label *seconds)
{
    for (int64_t i = 0; i < batch->n; i++) {
        struct ghp_blend drawn = blend_of(data, batch, i);
        int32_t other = labels[i];

        if (drawn.fraction > 0) GHP_TRY(ghp_data_labels(data, batch->set, &drawn.other, 1, &other));
        if (other == labels[i]) drawn.fraction = 0;
        if (drawn.fraction > 0.5) {
            int32_t own = labels[i];

            labels[i] = other;
            other = own;
            drawn.fraction = 1 - drawn.fraction;
        }
        seconds[i] = (struct ghp_second_label){other, drawn.fraction};
    }
    return GHP_OK;
}

enum ghp_status ghp_data_count_labels(struct ghp_data *data, enum ghp_data_set set,
                                      const int64_t *samples, int64_t n,
                                      struct ghp_label_outputs outputs, int64_t *labels)
{
    for (int i = 0; i < outputs.n; i++)
        labels[i] = n * (data->sample_labels / outputs.row) *
                    (outputs.end[i] - (i > 0 ? outputs.end[i - 1] : 0));
    for (int64_t i = 0; (data->ignores || data->has_gaps) && i < n; i++) {
        GHP_TRY(ghp_data_labels(data, set, &samples[i], 1, data->labels_of_one));
        for (int64_t at = 0; at < data->sample_labels; at++) {
            int output = ghp_label_output(&outputs, at);
            int32_t label = data->labels_of_one[at];

            labels[output] -=
                outputs.classes[output] > 0 ? label < 0 : isnan(ghp_label_number(label)) != 0;
        }
    }
    return GHP_OK;
}

enum ghp_status ghp_data_weigh_labels(struct ghp_data *data, enum ghp_data_set set,
                                      const int64_t *samples, int64_t n, const double *weights,
                                      double *sum)
{
    *sum = 0;
    for (int64_t i = 0; i < n; i++) {
        GHP_TRY(ghp_data_labels(data, set, &samples[i], 1, data->labels_of_one));
        for (int64_t at = 0; at < data->sample_labels; at++)
            if (data->labels_of_one[at] >= 0) *sum += weights[data->labels_of_one[at]];
    }
    return GHP_OK;
}
