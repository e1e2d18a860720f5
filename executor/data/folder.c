/* executor/data/folder.c - `folder:DIR`: a file a sample, decoded when it is asked for.
 *
 * A sample of the training set is a random part of its image, resized and changed by (seed, epoch, sample)
 * (image/augment.h); without augmentation, and in the test set, its middle (image/crop.h). Bytes are then normalised as
 * those of any source.
 *
 * A file that cannot be read or decoded fails the run by its name. Up to skip_damaged of them, counted by each worker
 * over all sets, are named and skipped instead: the next sound file of the same class, in the order of names and from
 * the last on to the first, stands in, cropped as the sample it stands for; so labels stay, and which file that is
 * depends on the files alone. */

#include "core/base/file.h"
#include "core/base/log.h"
#include "executor/data/class_folders.h"
#include "executor/data/data_private.h"
#include "executor/data/image/augment.h"
#include "executor/data/image/resize.h"

#include <pthread.h>
#include <stdatomic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct folder {
    struct ghp_class_folders listed;
    struct ghp_image_size size; /* of samples */
    int channels;
    bool augments;
    struct ghp_augmentation augmentation;
    int64_t skip_damaged;
    pthread_mutex_t lock; /* of what follows; marks are read without it */
    _Atomic int64_t damaged;
    atomic_bool *is_damaged[GHP_DATA_SET_COUNT]; /* [n] of each set, owned */
};

struct wanted { /* one sample */
    const struct ghp_data *data;
    struct folder *folder;
    enum ghp_data_set set;
    struct ghp_crop_key key;
};

/* ---- one file ---- */

static bool is_augmented(const struct wanted *w)
{
    return w->set == GHP_DATA_TRAIN && w->folder->augments;
}

static struct ghp_crop crop_of(const struct wanted *w, struct ghp_image_size picture)
{
    return is_augmented(w) ? ghp_crop_random(picture, &w->folder->augmentation.crop, w->key)
                           : ghp_crop_centre(picture, w->folder->size);
}

/* The byte of a channel that is normalised to the least number: the mean. */
static unsigned char mean_byte(const struct ghp_data *data, int channel)
{
    const double *value = data->normalisation.value + channel * GHP_DATA_BYTE_VALUES;
    int mean = 0;

    for (int byte = 1; byte < GHP_DATA_BYTE_VALUES; byte++)
        if (fabs(value[byte]) < fabs(value[mean])) mean = byte;
    return (unsigned char)mean;
}

static enum ghp_status augment(const struct wanted *w, unsigned char *pixels)
{
    struct folder *f = w->folder;
    struct ghp_augmented drawn = ghp_augment_draw(&f->augmentation, f->size, w->key);
    bool erases = drawn.erased.end_x > 0;
    unsigned char fill[3];

    for (int c = 0; c < f->channels && erases; c++)
        fill[c] = mean_byte(w->data, c);
    return ghp_augment_apply(&drawn, f->size, f->channels, fill, pixels);
}

/* The sample's bytes from this file, [h][w][channels]. */
static enum ghp_status decode(const struct wanted *w, const struct ghp_image_file *file,
                              unsigned char *pixels)
{
    struct ghp_image_request request = {.channels = w->folder->channels};
    struct ghp_image_size picture;
    struct ghp_image image;
    struct ghp_crop crop;
    enum ghp_status status;

    GHP_TRY(ghp_image_measure(file, &picture));
    crop = crop_of(w, picture);
    request.part = ghp_crop_needed(&crop, w->folder->size);
    request.reduction = ghp_crop_reduction(&crop, w->folder->size);
    GHP_TRY(ghp_image_decode(file, &request, &image));
    status = ghp_resize(&image, &crop, w->folder->size, pixels);
    ghp_image_release(&image);
    return status == GHP_OK && is_augmented(w) ? augment(w, pixels) : status;
}

static enum ghp_status read_file(const struct wanted *w, int64_t i, unsigned char *pixels)
{
    char path[GHP_DATA_PATH_BYTES], *bytes = NULL;
    struct ghp_image_file file = {.path = path};
    enum ghp_status status;

    ghp_class_files_path(&w->folder->listed.sets[w->set], i, path, sizeof path);
    GHP_TRY(ghp_file_read(path, &bytes, &file.n));
    file.bytes = (const unsigned char *)bytes;
    status = decode(w, &file, pixels);
    free(bytes);
    return status;
}

/* ---- damaged files ---- */

/* Counts and names the file, whose failure was this thread's last, unless it is one too many. */
static enum ghp_status skip(struct folder *f, enum ghp_data_set set, int64_t i,
                            enum ghp_status status)
{
    char why[GHP_DATA_PATH_BYTES];
    bool is_new, allowed;

    if (status != GHP_ERR_FORMAT && status != GHP_ERR_IO) return status;
    pthread_mutex_lock(&f->lock);
    is_new = !atomic_load(&f->is_damaged[set][i]);
    allowed = !is_new || f->damaged < f->skip_damaged;
    if (is_new && allowed) {
        f->damaged++;
        atomic_store(&f->is_damaged[set][i], true);
        ghp_warn_here("%s (skipped, %lld of at most %lld)", ghp_status_message(),
                      (long long)f->damaged, (long long)f->skip_damaged);
    }
    pthread_mutex_unlock(&f->lock);
    if (allowed) return GHP_OK;
    snprintf(why, sizeof why, "%s", ghp_status_message());
    if (f->skip_damaged == 0) return GHP_FAIL(status, "%s, or give --skip-damaged N", why);
    return GHP_FAIL(status, "%s; %lld others were skipped, as many as --skip-damaged allows", why,
                    (long long)f->skip_damaged);
}

/* Makes the sample from its file, or from the first sound one after it in its class. */
static enum ghp_status make_pixels(const struct wanted *w, unsigned char *pixels)
{
    struct folder *f = w->folder;
    const struct ghp_class_files *files = &f->listed.sets[w->set];
    int64_t sample = w->key.sample, label = files->label[sample], first = files->first[label],
            n = files->first[label + 1] - first;

    for (int64_t i = 0; i < n; i++) {
        int64_t at = first + (sample - first + i) % n;
        enum ghp_status status;

        if (atomic_load(&f->is_damaged[w->set][at])) continue;
        status = read_file(w, at, pixels);
        if (status == GHP_OK) return GHP_OK;
        GHP_TRY(skip(f, w->set, at, status));
    }
    return GHP_FAIL(GHP_ERR_INPUT,
                    "all %lld images of class '%s' in '%s' are damaged; fetch them again",
                    (long long)n, f->listed.classes[label], files->folder);
}

/* ---- the source ---- */

static enum ghp_status folder_image(const struct ghp_data *data, int64_t sample,
                                    const struct ghp_batch *batch, void *image)
{
    struct wanted wanted = {data, data->own, batch->set, {data->seed, batch->epoch, sample}};
    int64_t pixels = data->shape.h * data->shape.w, channels = data->shape.c;
    unsigned char *bytes = malloc((size_t)(pixels * channels));
    enum ghp_status status = bytes != NULL ? make_pixels(&wanted, bytes) : GHP_NO_MEMORY();

    for (int64_t c = 0; status == GHP_OK && c < batch->channels; c++) {
        int64_t channel = batch->first_channel + c;

        ghp_bytes_put(
            (struct ghp_bytes){.from = bytes + channel,
                               .value = data->normalisation.value + channel * GHP_DATA_BYTE_VALUES,
                               .pixels = pixels,
                               .from_stride = channels,
                               .to_stride = batch->channels},
            batch->element_bytes, (char *)image + c * batch->element_bytes);
    }
    free(bytes);
    return status;
}

static void folder_labels(const struct ghp_data *data, enum ghp_data_set set, int64_t sample,
                          int32_t *labels)
{
    const struct folder *f = data->own;

    labels[0] = f->listed.sets[set].label[sample];
}

static enum ghp_status check_request(const struct ghp_data_request *request,
                                     const struct ghp_class_folders *listed)
{
    struct ghp_shape shape = request->shape;
    char text[GHP_SHAPE_TEXT];

    if (shape.axes != GHP_AXES_IMAGE || (shape.c != 1 && shape.c != 3))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has images, and the model takes %s; use a model of 1 or 3 channels "
                        "and some height and width",
                        request->spec, ghp_shape_format(shape, text));
    if (listed->n_classes > request->classes)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has %d folders of classes, the last '%s', but the model has %d "
                        "classes; use a model with more, or leave some out",
                        request->spec, listed->n_classes, listed->classes[listed->n_classes - 1],
                        request->classes);
    return GHP_OK;
}

static void say_left_out(const struct ghp_class_folders *listed)
{
    if (listed->left_out > 0)
        ghp_warn("%lld files or folders are not images in a class's folder, such as '%s'; they are "
                 "left out",
                 (long long)listed->left_out, listed->one_left_out);
}

static enum ghp_status folder_open(const struct ghp_data_request *request, const char *path,
                                   struct ghp_data *data)
{
    struct folder *f = data->own;

    pthread_mutex_init(&f->lock, NULL);
    data->shape = request->shape;
    f->size = (struct ghp_image_size){request->shape.w, request->shape.h};
    f->channels = (int)request->shape.c;
    f->augments = request->augment == NULL || strcmp(request->augment, "none") != 0;
    f->augmentation = ghp_augment_usual;
    if (f->augments && request->augment != NULL)
        GHP_TRY(ghp_augment_parse(request->augment, &f->augmentation));
    f->skip_damaged = request->skip_damaged;
    GHP_TRY(ghp_class_folders_open(path, request->split, &f->listed));
    GHP_TRY(check_request(request, &f->listed));
    say_left_out(&f->listed);
    for (int i = 0; i < GHP_DATA_SET_COUNT; i++) {
        data->count[i] = f->listed.sets[i].n;
        f->is_damaged[i] = ghp_alloc((size_t)data->count[i], sizeof *f->is_damaged[i]);
        if (f->is_damaged[i] == NULL) return GHP_NO_MEMORY();
    }
    return GHP_OK;
}

static void folder_close(void *own)
{
    struct folder *f = own;

    ghp_class_folders_close(&f->listed);
    for (int i = 0; i < GHP_DATA_SET_COUNT; i++)
        free(f->is_damaged[i]);
    pthread_mutex_destroy(&f->lock);
}

static bool folder_augments(const void *own)
{
    return ((const struct folder *)own)->augments;
}

static int64_t folder_skipped(const void *own)
{
    return ((const struct folder *)own)->damaged;
}

static const struct ghp_class_files *folder_files(const void *own, enum ghp_data_set set)
{
    return &((const struct folder *)own)->listed.sets[set];
}

const struct ghp_data_ops ghp_data_folder = {.name = "folder",
                                             .argument = "DIR",
                                             .own_bytes = sizeof(struct folder),
                                             .open = folder_open,
                                             .close = folder_close,
                                             .image = folder_image,
                                             .labels = folder_labels,
                                             .augments = folder_augments,
                                             .skipped = folder_skipped,
                                             .files_of = folder_files};
