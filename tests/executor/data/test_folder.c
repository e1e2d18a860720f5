/* Folders of images: order, classes and sets, what is left out; samples that are the same in any order and from any
 * thread; and damaged files, which others stand in for. */
#include "executor/data/class_folders.h"
#include "executor/data/samples.h"
#include "tests/check.h"
#include "tests/executor/data/pictures.h"

#include <sys/stat.h>
#include <unistd.h>

enum { CLASSES = 3, FILES = 4, SIDE = 24, VALUES = SIDE * SIDE * 3 };

static const char *folder;
static char command[256];

static void make_folder(const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(mkdir(path, 0777) == 0);
}

static void write_text(const char *name, const char *text, size_t n)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(text, 1, n, file) == n);
    fclose(file);
}

/* Files 1.jpg, 2.png, 3.jpg, ... of a class, other ones for each class. */
static void write_class(const char *name, int n, unsigned seed)
{
    char path[300];

    make_folder(name);
    for (int i = 1; i <= n; i++) {
        struct picture p =
            picture_make(40 + 7 * i, 60 - 3 * i, i % 3 == 0 ? 1 : 3, seed * 100 + (unsigned)i);

        snprintf(path, sizeof path, "%s/%s/%d.%s", folder, name, i,
                 i % 2 == 0 ? "png"
                 : i == 3   ? "JPEG"
                            : "jpg");
        if (i % 2 == 0)
            picture_png(path, &p, false);
        else
            picture_jpeg(path, &p, (struct picture_way){90, false, true});
        picture_release(&p);
    }
}

static void remove_all(void)
{
    snprintf(command, sizeof command, "rm -rf '%s'/*", folder);
    CHECK(system(command) == 0);
}

static struct ghp_data_request request_for(const char *augment)
{
    static char spec[128];

    snprintf(spec, sizeof spec, "folder:%s", folder);
    return (struct ghp_data_request){.spec = spec,
                                     .seed = 5,
                                     .global_batch = 4,
                                     .shape = ghp_shape_image(3, SIDE, SIDE),
                                     .sample_labels = 1,
                                     .classes = CLASSES,
                                     .augment = augment};
}

static void check_refused(struct ghp_data_request request, enum ghp_status status, const char *says)
{
    struct ghp_data *data = NULL;

    CHECK_STATUS(ghp_data_open(&request, &data), status);
    CHECK_MESSAGE(says);
    ghp_data_close(data);
}

/* ---- names ---- */

static void check_names(void)
{
    struct ghp_class_folders f;
    char path[300];

    write_class("b", 3, 1);
    write_class("B", 2, 2);
    write_class("a b", 1, 3);
    write_text("b/notes.txt", "x", 1);
    write_text("b/.hidden.jpg", "x", 1);
    write_text("loose.jpg", "x", 1);
    CHECK_STATUS(ghp_class_folders_open(folder, 0, &f), GHP_OK);
    CHECK_EQ(f.n_classes, 3);
    CHECK_TEXT(f.classes[0], "B"); /* by bytes */
    CHECK_TEXT(f.classes[1], "a b");
    CHECK_EQ(f.sets[GHP_DATA_TRAIN].n, 6);
    CHECK_EQ(f.sets[GHP_DATA_TRAIN].first[2], 3);
    CHECK_EQ(f.sets[GHP_DATA_TRAIN].label[3], 2);
    ghp_class_files_path(&f.sets[GHP_DATA_TRAIN], 5, path, sizeof path);
    CHECK_TEXT(path + strlen(folder), "/b/3.JPEG");
    CHECK_EQ(f.left_out, 2);
    ghp_class_folders_close(&f);
    CHECK_STATUS(ghp_class_folders_open(folder, 0.5, &f), GHP_OK);
    CHECK_EQ(f.sets[GHP_DATA_TRAIN].n, 1 + 1 + 1); /* of each class the first half, one at least */
    CHECK_EQ(f.sets[GHP_DATA_TEST].n, 1 + 0 + 2);
    ghp_class_files_path(&f.sets[GHP_DATA_TEST], 1, path, sizeof path);
    CHECK_TEXT(path + strlen(folder), "/b/2.png");
    CHECK_EQ(f.sets[GHP_DATA_TEST].label[1], 2);
    ghp_class_folders_close(&f);
    remove_all();
}

/* A folder that is called "train" is a set if it holds classes, and a class if it holds images and has others next to
 * it. */
static void check_class_named_train(void)
{
    struct ghp_class_folders f;

    write_class("train", 2, 1);
    CHECK_STATUS(ghp_class_folders_open(folder, 0, &f), GHP_ERR_IO);
    CHECK_MESSAGE("train': it has no folders of classes");
    write_class("bus", 3, 2);
    CHECK_STATUS(ghp_class_folders_open(folder, 0, &f), GHP_OK);
    CHECK_EQ(f.n_classes, 2);
    CHECK_TEXT(f.classes[1], "train");
    CHECK_EQ(f.sets[GHP_DATA_TRAIN].n, 5);
    ghp_class_folders_close(&f);
    write_class("train/cat", 2, 3);
    CHECK_STATUS(ghp_class_folders_open(folder, 0, &f), GHP_OK);
    CHECK_EQ(f.n_classes, 1);
    CHECK_TEXT(f.classes[0], "cat");
    ghp_class_folders_close(&f);
    remove_all();
}

static void check_sets(void)
{
    struct ghp_data_request request = request_for("none");
    struct ghp_data *data = NULL;
    int32_t label;

    make_folder("train");
    make_folder("test");
    write_class("train/cat", 2, 1);
    write_class("train/dog", 3, 2);
    write_class("test/dog", 2, 3);
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TRAIN), 5);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TEST), 2);
    CHECK_STATUS(ghp_data_labels(data, GHP_DATA_TEST, (const int64_t[1]){0}, 1, &label), GHP_OK);
    CHECK_EQ(label, 1);
    ghp_data_close(data);
    request.split = 0.5;
    check_refused(request, GHP_ERR_USAGE, "--train-fraction");
    request.split = 0;
    request.classes = 1;
    check_refused(request, GHP_ERR_INPUT,
                  "2 folders of classes, the last 'dog', but the model has 1");
    request.classes = CLASSES;
    request.normalise = "train";
    check_refused(request, GHP_ERR_USAGE, "--normalise train");
    request.normalise = "0.5,0.5:0.5";
    check_refused(request, GHP_ERR_USAGE, "2 means and 1 deviations");
    request.normalise = "0.5:0";
    check_refused(request, GHP_ERR_USAGE, "positive");
    request.normalise = NULL;
    request.shape = ghp_shape_image(4, SIDE, SIDE);
    check_refused(request, GHP_ERR_INPUT, "1 or 3 channels");
    request.shape = ghp_shape_image(3, SIDE, SIDE);
    make_folder("test/owl");
    check_refused(request, GHP_ERR_INPUT, "test/owl' is a class that has no training images");
    make_folder("train/owl");
    check_refused(request, GHP_ERR_IO, "train/owl' has no .jpg");
    remove_all();
    check_refused(request, GHP_ERR_IO, "no folders of classes");
    request.spec = "folder:/nowhere/at/all";
    check_refused(request, GHP_ERR_IO, "/nowhere/at/all");
}

/* ---- samples ---- */

static enum ghp_status make(struct ghp_data *data, int64_t epoch, int64_t sample, float *image)
{
    struct ghp_batch batch = {.epoch = epoch,
                              .samples = &sample,
                              .n = 1,
                              .channels = 3,
                              .element_bytes = 4,
                              .images = image};

    return ghp_data_images(data, &batch);
}

static bool equal(const float *a, const float *b)
{
    return memcmp(a, b, VALUES * sizeof(float)) == 0;
}

/* A batch by three threads compared with one sample after the other, from a source of its own; channels alone;
 * epochs. */
static void check_samples(const char *augment)
{
    struct ghp_data_request request = request_for(augment);
    struct ghp_data *data = NULL, *again = NULL;
    int64_t n = CLASSES * FILES, samples[CLASSES * FILES];
    float *images = calloc((size_t)n, VALUES * sizeof(float)), one[VALUES], other[VALUES],
          channel[SIDE * SIDE];
    struct ghp_load load = {.images = n,
                            .channels = 3,
                            .image_bytes = VALUES * (int64_t)sizeof(float),
                            .element_bytes = 4,
                            .threads = 3};
    struct ghp_supply supply = {.samples = samples, .n = n, .epoch = 3};
    struct ghp_batch part = {.samples = (const int64_t[1]){5},
                             .n = 1,
                             .epoch = 3,
                             .first_channel = 2,
                             .channels = 1,
                             .element_bytes = 4,
                             .images = channel};

    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_STATUS(ghp_data_open(&request, &again), GHP_OK);
    for (int64_t i = 0; i < n; i++)
        samples[i] = n - 1 - i;
    supply.data = data;
    CHECK_STATUS(ghp_samples_images(&load, &supply, (struct ghp_range){0, n}, images), GHP_OK);
    for (int64_t i = 0; i < n; i++) {
        CHECK_STATUS(make(again, 3, samples[i], one), GHP_OK);
        CHECK(equal(one, images + i * VALUES));
        CHECK_STATUS(make(again, 4, samples[i], other), GHP_OK);
        CHECK(equal(one, other) == (strcmp(augment, "none") == 0));
    }
    CHECK_STATUS(make(again, 3, 5, one), GHP_OK);
    CHECK_STATUS(ghp_data_images(again, &part), GHP_OK);
    for (int i = 0; i < SIDE * SIDE; i++)
        CHECK(channel[i] == one[3 * i + 2]);
    free(images);
    ghp_data_close(again);
    ghp_data_close(data);
}

/* ---- damage ---- */

static void check_damage(void)
{
    struct ghp_data_request request = request_for("crop-flip");
    struct ghp_data *data = NULL, *sound = NULL;
    int64_t n = CLASSES * FILES, samples[CLASSES * FILES];
    float images[VALUES], stood_in[VALUES], *batch = calloc((size_t)n, VALUES * sizeof(float));
    struct ghp_load load = {.images = n,
                            .channels = 3,
                            .image_bytes = VALUES * (int64_t)sizeof(float),
                            .element_bytes = 4,
                            .threads = 3};
    struct ghp_supply supply = {.samples = samples, .n = n};

    for (int64_t i = 0; i < n; i++)
        samples[i] = i;
    write_text("1/1.jpg", "", 0);
    write_text("1/4.png", "\x89PNG\r\n\x1a\n half", 13);
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_STATUS(make(data, 0, 3, images), GHP_OK);
    CHECK_STATUS(make(data, 0, 4, images), GHP_ERR_FORMAT);
    CHECK_MESSAGE("1/1.jpg' is empty");
    CHECK_MESSAGE("--skip-damaged");
    supply.data = data;
    CHECK_STATUS(ghp_samples_images(&load, &supply, (struct ghp_range){0, n}, batch),
                 GHP_ERR_FORMAT);
    CHECK_MESSAGE("1/1.jpg' is empty"); /* the first, whichever thread met which */
    ghp_data_close(data);

    request.skip_damaged = 1;
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_STATUS(make(data, 0, 4, images), GHP_OK);
    CHECK_STATUS(make(data, 0, 4, images), GHP_OK); /* it counts once */
    CHECK_STATUS(make(data, 0, 7, images), GHP_ERR_FORMAT);
    CHECK_MESSAGE("1/4.png");
    CHECK_MESSAGE("1 others were skipped");
    ghp_data_close(data);

    request.skip_damaged = 2;
    request.augment = "none";
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_STATUS(ghp_data_open(&request, &sound), GHP_OK);
    CHECK_STATUS(make(sound, 0, 5, images), GHP_OK);
    CHECK_STATUS(make(data, 0, 4, stood_in), GHP_OK); /* the next one */
    CHECK(equal(images, stood_in));
    CHECK_STATUS(make(data, 0, 7, stood_in),
                 GHP_OK); /* after the last comes the first, and as that is damaged the second */
    CHECK(equal(images, stood_in));
    CHECK_EQ(ghp_data_skipped(data), 2);
    CHECK_EQ(ghp_data_skipped(sound), 0);
    ghp_data_close(sound);
    ghp_data_close(data);

    write_text("1/2.png", "GIF", 3);
    write_text("1/3.JPEG", "GIF", 3);
    request.skip_damaged = 9;
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_STATUS(make(data, 0, 6, images), GHP_ERR_INPUT);
    CHECK_MESSAGE("all 4 images of class '1'");
    ghp_data_close(data);
    free(batch);
}

CHECK_TEST(folder)
{
    folder = check_folder();
    check_names();
    check_class_named_train();
    check_sets();
    for (int i = 0; i < CLASSES; i++)
        write_class((const char[2]){(char)('0' + i), '\0'}, FILES, (unsigned)i);
    check_samples("none");
    check_samples("brightness=0.4,erase=1,randaugment=2:9,mixup=1");
    check_damage();
    return check_end();
}
