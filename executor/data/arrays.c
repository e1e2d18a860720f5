/* executor/data/arrays.c - `npy:`: samples and labels as NumPy arrays, used where they are mapped.
 *
 * npy:DIR holds images.npy with labels.npy, or several such pairs (images-NAME.npy with labels-NAME.npy, in the order
 * of their names' bytes): a lone set. Or two sets, whose files' names begin with train- and with test- (or val-).
 * npy:IMAGES.npy,LABELS.npy[,IMAGES.npy,LABELS.npy...] names the pairs of a lone set.
 *
 * Images are bytes, float32 or float64, [N][H][W][C] or [N][C][H][W], whichever the model takes (the first if it
 * takes both); of one channel [N][H][W]; of one row [N][C][W]; vectors [N][C]; sequences [N][position][C].
 * A network of tokens takes ids, integers [N][position].
 * Labels are integers, [N] or [N][1]; [N][L] of a model that takes L labels of a sample. A loss that takes numbers has
 * them as float32 or float64, in the shape of the network's output: [N][C], [N][position][C], [N][C][H][W] or
 * [N][H][W][C] (the first if it takes both); if outputs have losses of their own, C is the labels of a position, and
 * classes are whole numbers. NaN of several outputs is ignored. */
#include "core/base/file.h"
#include "executor/data/data_private.h"
#include "executor/data/npy.h"

#include <dirent.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one pair ---- */

/* How the model's samples lie in the array; zeroed if they do not. */
static struct ghp_pictures laid_out(const struct ghp_npy *a, struct ghp_shape wanted)
{
    const int64_t *d = a->dims;
    struct ghp_shape wanted_image = ghp_shape_image(wanted.c, wanted.h, wanted.w);
    struct ghp_pictures here = {.shape = wanted, .pixel_stride = 1};

    if (wanted.vocabulary > 0) {
        here.channel_stride = a->n_dims == 2 && d[1] == wanted.h ? 1 : 0;
        here.pixel_stride = here.channel_stride;
    } else if (wanted.axes == GHP_AXES_SEQUENCE && a->n_dims == 3 && d[1] == wanted.h &&
               d[2] == wanted.c) {
        here.channel_stride = 1;
        here.pixel_stride = d[2];
    } else if (a->n_dims == 4 && ghp_shape_equal(ghp_shape_image(d[3], d[1], d[2]), wanted_image)) {
        here.channel_stride = 1;
        here.pixel_stride = d[3];
    } else if (a->n_dims == 4 && ghp_shape_equal(ghp_shape_image(d[1], d[2], d[3]), wanted_image)) {
        here.channel_stride = d[2] * d[3];
    } else if (a->n_dims == 3 && ghp_shape_equal(ghp_shape_image(1, d[1], d[2]), wanted_image)) {
        here.channel_stride = d[1] * d[2];
    } else if (a->n_dims == 3 && ghp_shape_equal(ghp_shape_image(d[1], 1, d[2]), wanted_image)) {
        here.channel_stride = d[2];
    } else if (a->n_dims == 2 && ghp_shape_equal(ghp_shape_image(d[1], 1, 1), wanted_image)) {
        here.channel_stride = 1;
    } else {
        here = (struct ghp_pictures){0};
    }
    return here;
}

enum { DIMENSIONS_TEXT = GHP_NPY_DIMENSIONS * 24 };

static const char *dimensions_of(const struct ghp_npy *a, char text[DIMENSIONS_TEXT])
{
    size_t used = 0;

    for (int i = 0; i < a->n_dims; i++)
        used += (size_t)snprintf(text + used, DIMENSIONS_TEXT - used, "%s%lld", i > 0 ? "," : "",
                                 (long long)a->dims[i]);
    return text;
}

static enum ghp_status fail_shape(const char *path, const struct ghp_npy *a,
                                  struct ghp_shape wanted)
{
    char theirs[DIMENSIONS_TEXT], mine[GHP_SHAPE_TEXT];

    dimensions_of(a, theirs);
    if (wanted.vocabulary > 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has the shape (%s), but the model takes token ids of %lld positions, "
                        "as N,%lld; pad or cut the samples, or use a model of that many positions",
                        path, theirs, (long long)wanted.h, (long long)wanted.h);
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "'%s' has the shape (%s), but the model takes samples of %s (channels x height "
        "x width), as N,H,W,C or N,C,H,W (N,H,W of one channel, N,C,W of one row, N,C of "
        "vectors; N,positions,channels of sequences); use other data or a model of that input",
        path, theirs, ghp_shape_format(wanted, mine));
}

static enum ghp_status number_of(const char *path, const struct ghp_npy *a, enum ghp_number *number)
{
    *number = a->kind != 'f'       ? GHP_NUMBER_BYTE
              : a->item_bytes == 8 ? GHP_NUMBER_DOUBLE
                                   : GHP_NUMBER_FLOAT;
    if (a->kind == 'f' || (a->kind == 'u' && a->item_bytes == 1)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' has %s integers of %d bytes as images; save them as uint8 or float32",
                    path, a->kind == 'u' ? "unsigned" : "signed", a->item_bytes);
}

/* Looks at all of them, so that none is refused later. */
static enum ghp_status check_ids(const char *path, const struct ghp_npy *a, int64_t vocabulary)
{
    if (a->kind == 'f')
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has floating-point numbers, but the model takes token ids; save them "
                        "as int32",
                        path);
    for (int64_t i = 0; i < a->n; i++) {
        int64_t id = -1;

        if (!ghp_npy_integer(a, i, &id) || id < 0 || id >= vocabulary)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' has the token %lld in sample %lld, but the model's vocabulary is "
                            "%lld (0 to %lld); use tokens of that vocabulary, or a model with more",
                            path, (long long)id, (long long)(i / a->dims[1]), (long long)vocabulary,
                            (long long)vocabulary - 1);
    }
    return GHP_OK;
}

struct pair { /* of files */
    const char *images_path, *labels_path;
    struct ghp_npy images, labels;
};

static enum ghp_status check_count(const struct pair *pair)
{
    if (pair->images.dims[0] == pair->labels.dims[0]) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' has %lld samples, but '%s' has %lld labels; save both again",
                    pair->images_path, (long long)pair->images.dims[0], pair->labels_path,
                    (long long)pair->labels.dims[0]);
}

/* A label that is ignored may be any number, such as -100. */
static enum ghp_status read_labels(const char *path, const struct ghp_npy *a,
                                   const struct ghp_data_request *request, int32_t *labels)
{
    for (int64_t i = 0; i < a->n; i++) {
        int64_t label = -1;
        bool sound = ghp_npy_integer(a, i, &label) && label >= INT32_MIN && label <= INT32_MAX;

        if (!sound || (label < 0 && !(request->ignores && label == request->ignored_label)))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' has %lld as label %lld; labels are 0 to the classes less one, or "
                            "the one of --ignore-label",
                            path, (long long)label, (long long)i);
        labels[i] = (int32_t)label;
    }
    return GHP_OK;
}

/* each   labels of one sample */
static enum ghp_status check_labels(const struct pair *pair, int64_t each)
{
    const char *path = pair->labels_path;
    const struct ghp_npy *a = &pair->labels;

    if (each > 1 && (a->kind == 'f' || a->n != a->dims[0] * each))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' holds no labels that fit: the model takes %lld integers of each "
                        "sample; save them as an array of N,%lld int64",
                        path, (long long)each, (long long)each);
    if (each == 1 && (a->kind == 'f' || a->n != a->dims[0]))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' holds no labels: they are integers, one for each sample; save them "
                        "as an array of N int64",
                        path);
    return check_count(pair);
}

/* The array goes to the set, which may have those of other files. here: how it lies. */
static enum ghp_status add_array(const char *path, struct ghp_npy *a, struct ghp_pictures here,
                                 struct ghp_pictures *pictures, int32_t **labels)
{
    struct ghp_picture_file file = {.n = a->dims[0],
                                    .pixels = a->items,
                                    .picture_bytes = a->n / a->dims[0] * a->item_bytes,
                                    .memory = a->memory,
                                    .mapped_bytes = a->mapped_bytes};

    if (pictures->n > 0 &&
        (here.number != pictures->number || a->kind != pictures->id_kind ||
         a->item_bytes != pictures->id_bytes || here.channel_stride != pictures->channel_stride ||
         here.pixel_stride != pictures->pixel_stride))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has numbers of another type, or in another order, than the files "
                        "before it; save all alike",
                        path);
    pictures->shape = here.shape;
    pictures->number = here.number;
    pictures->id_kind = a->kind;
    pictures->id_bytes = a->item_bytes;
    pictures->channel_stride = here.channel_stride;
    pictures->pixel_stride = here.pixel_stride;
    *a = (struct ghp_npy){0};
    return ghp_pictures_add(pictures, file, labels);
}

static enum ghp_status take_images(const char *path, struct ghp_npy *a,
                                   const struct ghp_data_request *request,
                                   struct ghp_pictures *pictures, int32_t **labels)
{
    struct ghp_pictures here = laid_out(a, request->shape);

    if (here.pixel_stride == 0) return fail_shape(path, a, request->shape);
    here.number = GHP_NUMBER_ID;
    if (here.shape.vocabulary > 0)
        GHP_TRY(check_ids(path, a, here.shape.vocabulary));
    else
        GHP_TRY(number_of(path, a, &here.number));
    return add_array(path, a, here, pictures, labels);
}

/* ---- labels that are numbers ---- */

/* How they lie in an array of the network's output; zeroed if they do not. */
static struct ghp_pictures targets_laid_out(const struct ghp_npy *a, struct ghp_shape wanted)
{
    const int64_t *d = a->dims;
    bool image = wanted.axes == GHP_AXES_IMAGE, row = wanted.h == 1 && a->n_dims == 3;
    bool map = wanted.c == 1 && a->n_dims == 3;
    struct ghp_pictures last = {.shape = wanted, .channel_stride = 1, .pixel_stride = wanted.c},
                        first = {.shape = wanted,
                                 .channel_stride = wanted.h * wanted.w,
                                 .pixel_stride = 1};

    if (a->n != d[0] * ghp_shape_elements(wanted)) return (struct ghp_pictures){0};
    if (wanted.axes == GHP_AXES_VECTOR) return last;
    if (a->n_dims < 2) return (struct ghp_pictures){0};
    if (!image && d[1] == wanted.h) return last;
    if (image && d[1] == wanted.c && (row || (a->n_dims == 4 && d[2] == wanted.h))) return first;
    if (image && d[1] == wanted.h && a->n_dims > 2 && d[2] == wanted.w && (map || a->n_dims == 4))
        return last;
    return (struct ghp_pictures){0};
}

static enum ghp_status fail_targets(const char *path, const struct ghp_npy *a,
                                    const struct ghp_data_request *request)
{
    struct ghp_shape wanted = request->targets;
    char theirs[DIMENSIONS_TEXT], right[96];

    if (wanted.axes == GHP_AXES_VECTOR)
        snprintf(right, sizeof right, "%lld", (long long)wanted.c);
    else if (wanted.axes == GHP_AXES_SEQUENCE)
        snprintf(right, sizeof right, "%lld,%lld", (long long)wanted.h, (long long)wanted.c);
    else
        snprintf(right, sizeof right, "%lld,%lld,%lld", (long long)wanted.c, (long long)wanted.h,
                 (long long)wanted.w);
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' has the shape (%s), but the loss takes a number for each output of a "
                    "sample%s; save labels as an array of N,%s float32",
                    path, dimensions_of(a, theirs), request->outputs.n > 1 ? ", or its class" : "",
                    right);
}

void ghp_data_find_places(const struct ghp_model *model, struct ghp_data_request *request)
{
    const struct ghp_layer *joined = &model->layers[model->layers[model->n_layers - 1].inputs[0]];

    for (int i = 0; joined->op == GHP_OP_CONCAT && i < joined->n_inputs; i++) {
        const struct ghp_layer *output = &model->layers[joined->inputs[i]];

        if (request->outputs.n == joined->n_inputs && output->op == GHP_OP_PAD &&
            output->out.h == 1 && output->border.fill == GHP_FILL_CONSTANT &&
            output->border.before[2] == 0 && output->border.after[2] > 0)
            request->places[i] = output->out.w - output->border.after[2];
    }
}

/* Whether number i of the array is a label: a float, or NaN of several outputs; of classes one of them; and at a place
 * that its output has. */
static enum ghp_status check_target(const char *path, const struct ghp_npy *a,
                                    const struct ghp_pictures *here, int64_t i,
                                    const struct ghp_data_request *request)
{
    const struct ghp_label_outputs *outputs = &request->outputs;
    int64_t each = a->n / a->dims[0], channels = here->shape.c, at = i % each;
    bool last = here->channel_stride == 1; /* the axis of channels */
    int64_t channel = last ? at % channels : at / here->channel_stride;
    int64_t place = last ? at / channels : at % here->channel_stride;
    int output = outputs->n > 1 ? ghp_label_output(outputs, channel) : 0;
    int64_t classes = outputs->n > 1 ? outputs->classes[output] : 0;
    double number = ghp_number_at(here->number, a->items, i);

    if (outputs->n > 1 && isnan(number)) return GHP_OK;
    if (!(fabs(number) <= (double)FLT_MAX))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has the number %g in sample %lld, which is not a finite float; "
                        "correct it, or leave the sample out of both files",
                        path, number, (long long)(i / each));
    if (request->places[output] > 0 && place >= request->places[output])
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has %g as label %lld of sample %lld at place %lld, but output %d has "
                        "%lld; save NaN in places that an output does not have",
                        path, number, (long long)channel, (long long)(i / each), (long long)place,
                        output, (long long)request->places[output]);
    if (classes == 0 || (number >= 0 && number < (double)classes && !(floor(number) < number)))
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' has %g as label %lld of sample %lld, which is of %lld classes (0 to "
                    "%lld); correct it, or save NaN to leave it out",
                    path, number, (long long)channel, (long long)(i / each), (long long)classes,
                    (long long)classes - 1);
}

static enum ghp_status take_targets(struct pair *pair, const struct ghp_data_request *request,
                                    struct ghp_pictures *targets)
{
    const char *path = pair->labels_path;
    struct ghp_npy *a = &pair->labels;
    struct ghp_pictures here = targets_laid_out(a, request->targets);

    if (a->kind != 'f')
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has integers, but the loss takes real numbers; save it as float32",
                        path);
    if (here.pixel_stride == 0) return fail_targets(path, a, request);
    GHP_TRY(check_count(pair));
    GHP_TRY(number_of(path, a, &here.number));
    for (int64_t i = 0; i < a->n; i++) {
        GHP_TRY(check_target(path, a, &here, i, request));
        targets->has_gaps = targets->has_gaps || isnan(ghp_number_at(here.number, a->items, i));
    }
    return add_array(path, a, here, targets, NULL);
}

/* ---- pairs ---- */

static enum ghp_status add_classes(struct pair *pair, const struct ghp_data_request *request,
                                   struct ghp_pictures *pictures)
{
    int32_t *to = NULL;

    GHP_TRY(check_labels(pair, request->sample_labels));
    GHP_TRY(take_images(pair->images_path, &pair->images, request, pictures, &to));
    return read_labels(pair->labels_path, &pair->labels, request, to);
}

static enum ghp_status add_numbers(struct pair *pair, const struct ghp_data_request *request,
                                   struct ghp_pictures *pictures)
{
    if (pictures->targets == NULL) pictures->targets = ghp_alloc(1, sizeof *pictures->targets);
    if (pictures->targets == NULL) return GHP_NO_MEMORY();
    GHP_TRY(take_targets(pair, request, pictures->targets));
    return take_images(pair->images_path, &pair->images, request, pictures, NULL);
}

static enum ghp_status add_pair(const char *images_path, const char *labels_path,
                                const struct ghp_data_request *request,
                                struct ghp_pictures *pictures)
{
    struct pair pair = {.images_path = images_path, .labels_path = labels_path};
    enum ghp_status status = GHP_OK;

    GHP_TRY_GOTO(status, ghp_npy_open(images_path, &pair.images), done);
    GHP_TRY_GOTO(status, ghp_npy_open(labels_path, &pair.labels), done);
    pictures->picture_labels = request->sample_labels;
    status = request->targets.c > 0 ? add_numbers(&pair, request, pictures)
                                    : add_classes(&pair, request, pictures);
done:
    ghp_npy_close(&pair.labels);
    ghp_npy_close(&pair.images);
    return status;
}

/* ---- folders and lists ---- */

/* The part of "PREFIXimagesNAME.npy" after "images"; NULL: another file. */
static const char *suffix_of(const char *file, const char *prefix)
{
    static const char word[] = "images", end[] = ".npy";
    size_t n = strlen(file), before = strlen(prefix) + sizeof word - 1;

    if (n < before + sizeof end - 1 || strncmp(file, prefix, strlen(prefix)) != 0 ||
        strncmp(file + strlen(prefix), word, sizeof word - 1) != 0 ||
        strcmp(file + n - (sizeof end - 1), end) != 0)
        return NULL;
    return file + before;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* All pairs whose names begin so. */
static enum ghp_status add_pairs(const char *folder, const char *prefix,
                                 const struct ghp_data_request *request,
                                 struct ghp_pictures *pictures)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, NULL, by_name);
    enum ghp_status status = GHP_OK;

    if (n < 0)
        return GHP_FAIL(GHP_ERR_IO,
                        "cannot read the folder '%s': %s; name a folder, or two files: "
                        "npy:IMAGES.npy,LABELS.npy",
                        folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        const char *suffix = suffix_of(entries[i]->d_name, prefix);
        char images[GHP_DATA_PATH_BYTES], labels[GHP_DATA_PATH_BYTES];

        if (suffix != NULL && status == GHP_OK) {
            snprintf(images, sizeof images, "%s/%s", folder, entries[i]->d_name);
            snprintf(labels, sizeof labels, "%s/%slabels%s", folder, prefix, suffix);
            status = add_pair(images, labels, request, pictures);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

static enum ghp_status add_folder(const struct ghp_data_request *request, const char *folder,
                                  struct ghp_data *data)
{
    struct ghp_pictures *train = ghp_data_pictures(data, GHP_DATA_TRAIN),
                        *test = ghp_data_pictures(data, GHP_DATA_TEST);

    GHP_TRY(add_pairs(folder, "train-", request, train));
    if (train->n == 0) return add_pairs(folder, "", request, train);
    GHP_TRY(add_pairs(folder, "test-", request, test));
    return test->n == 0 ? add_pairs(folder, "val-", request, test) : GHP_OK;
}

static enum ghp_status add_list(const struct ghp_data_request *request, char *names,
                                struct ghp_data *data)
{
    for (char *at = names, *next; at != NULL; at = next) {
        char *labels = strchr(at, ',');

        if (labels == NULL || labels == at || labels[1] == '\0' || labels[1] == ',')
            return GHP_FAIL(GHP_ERR_USAGE,
                            "'%s' is not a list of pairs; write npy:IMAGES.npy,LABELS.npy without "
                            "spaces",
                            request->spec);
        *labels++ = '\0';
        next = strchr(labels, ',');
        if (next != NULL) *next++ = '\0';
        GHP_TRY(add_pair(at, labels, request, ghp_data_pictures(data, GHP_DATA_TRAIN)));
    }
    return GHP_OK;
}

static enum ghp_status npy_open(const struct ghp_data_request *request, const char *rest,
                                struct ghp_data *data)
{
    enum ghp_status status;
    char *names;

    if (strchr(rest, ',') != NULL && !ghp_file_is_folder(rest)) {
        names = strdup(rest);
        if (names == NULL) return GHP_NO_MEMORY();
        status = add_list(request, names, data);
        free(names);
        GHP_TRY(status);
    } else {
        GHP_TRY(add_folder(request, rest, data));
    }
    return ghp_pictures_divide(data, request, rest);
}

const struct ghp_data_ops ghp_data_npy = {
    .name = "npy",
    .argument = "DIR",
    .files =
        "images.npy and labels.npy, or train-images.npy, train-labels.npy, test-images.npy and "
        "test-labels.npy",
    .open = npy_open,
    .own_bytes = GHP_PICTURES_OWN_BYTES,
    .close = ghp_pictures_close,
    .image = ghp_pictures_image,
    .labels = ghp_pictures_labels};
