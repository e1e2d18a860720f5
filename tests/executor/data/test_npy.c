/* Files of NumPy's arrays: every form of header that is taken, samples of bytes and floats in both orders, vectors,
 * several files, two sets, and every way in which a file can be wrong. */
#include "core/model/precision.h"
#include "executor/data/data.h"
#include "executor/data/npy.h"
#include "tests/check.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 6, C = 3, H = 4, W = 5 };

static const char *folder;
static char written[16][256];
static int n_written;

static const char *path_of(const char *name)
{
    static char path[2][256];
    static int turn;
    char *at = path[turn++ % 2];

    snprintf(at, sizeof path[0], "%s/%s", folder, name);
    return at;
}

static void write_raw(const char *name, const void *head, size_t head_bytes, const void *items,
                      size_t bytes)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");

    CHECK(file != NULL && fwrite(head, 1, head_bytes, file) == head_bytes);
    CHECK(bytes == 0 || fwrite(items, 1, bytes, file) == bytes);
    fclose(file);
    if (n_written < 16) snprintf(written[n_written++], sizeof written[0], "%s", path);
}

/* As numpy.save does: the numbers begin at a multiple of 64. */
static void write_npy(const char *name, const char *descr, const char *shape, const void *items,
                      size_t bytes)
{
    char head[128];
    int used = snprintf(head + 10, sizeof head - 10,
                        "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);

    memcpy(head, "\x93NUMPY\1\0\x76\0", 10);
    memset(head + 10 + used, ' ', sizeof head - 10 - (size_t)used);
    head[127] = '\n';
    write_raw(name, head, sizeof head, items, bytes);
}

static void remove_all(void)
{
    while (n_written > 0)
        unlink(written[--n_written]);
}

static struct ghp_data_request request_for(const char *what)
{
    static char spec[300];

    snprintf(spec, sizeof spec, "npy:%s%s%s", *what == '/' ? "" : folder, *what != '\0' ? "/" : "",
             what);
    return (struct ghp_data_request){.spec = *what == '/' ? what : spec,
                                     .global_batch = 4,
                                     .shape = ghp_shape_image(C, H, W),
                                     .sample_labels = 1,
                                     .classes = 10};
}

static unsigned char byte_at(int n, int c, int p)
{
    return (unsigned char)(n * 41 + c * 7 + p * 3);
}

/* All images of the training set, [n][pixel][channel]. */
static void images_of(struct ghp_data *data, int64_t n, struct ghp_shape shape, double *images)
{
    int64_t samples[2 * N];
    struct ghp_batch batch = {
        .samples = samples, .n = n, .channels = shape.c, .element_bytes = 8, .images = images};

    for (int64_t i = 0; i < n; i++)
        samples[i] = i;
    CHECK_STATUS(ghp_data_images(data, &batch), GHP_OK);
}

static void write_all_labels(const char *name, const char *descr, int bytes)
{
    unsigned char labels[N * 8] = {0};

    for (int i = 0; i < N; i++)
        labels[i * bytes] = (unsigned char)(i + 1);
    write_npy(name, descr, "6,", labels, (size_t)(N * bytes));
}

/* One and the same samples in every form. */
static void check_forms(void)
{
    static const char *const descrs[] = {"|u1", "|u1", "<f4", "<f8"};
    static const char *const label_descrs[] = {"<i8", "<u2", "|i1", "<i4"};
    static const int label_bytes[] = {8, 2, 1, 4};
    unsigned char bytes[N * C * H * W];
    float floats[N * C * H * W];
    double doubles[N * C * H * W], first[N * C * H * W], images[N * C * H * W];
    int32_t labels[N];

    for (int form = 0; form < 4; form++) {
        bool last = form % 2 == 0; /* channels last */
        const void *items[] = {bytes, bytes, floats, doubles};
        size_t sizes[] = {1, 1, 4, 8};
        struct ghp_data_request request = request_for("");
        struct ghp_data *data = NULL;

        for (int n = 0; n < N; n++)
            for (int c = 0; c < C; c++)
                for (int p = 0; p < H * W; p++) {
                    int at = last ? (n * H * W + p) * C + c : (n * C + c) * H * W + p;

                    bytes[at] = byte_at(n, c, p);
                    floats[at] = byte_at(n, c, p);
                    doubles[at] = byte_at(n, c, p);
                }
        write_npy("images.npy", descrs[form], last ? "6, 4, 5, 3" : "6, 3, 4, 5", items[form],
                  sizeof(bytes) * sizes[form]);
        write_all_labels("labels.npy", label_descrs[form], label_bytes[form]);
        request.normalise = form < 2 ? "0:0.00392156862745098" : "0:1"; /* 1 / 255 */
        if (!CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) continue;
        CHECK_EQ(ghp_data_count(data, GHP_DATA_TRAIN), N);
        images_of(data, N, request.shape, form == 0 ? first : images);
        for (int i = 0; form > 0 && i < N * C * H * W; i++)
            CHECK_NEAR(images[i], first[i], 1e-12); /* (b / 255) * 255 rounds */
        CHECK_NEAR(first[(2 * H * W + 7) * C + 1], byte_at(2, 1, 7), 1e-12);
        CHECK_STATUS(
            ghp_data_labels(data, GHP_DATA_TRAIN, (const int64_t[]){0, 1, 2, 3, 4, 5}, N, labels),
            GHP_OK);
        for (int i = 0; i < N; i++)
            CHECK_EQ(labels[i], i + 1);
        ghp_data_close(data);
        remove_all();
    }
}

/* What a network of one-dimensional convolutions takes in PyTorch: N,C,W. */
static void check_rows(void)
{
    unsigned char bytes[N * 10];
    double images[N * 10];
    struct ghp_data_request request = request_for("");
    struct ghp_data *data = NULL;

    for (int i = 0; i < N * 10; i++)
        bytes[i] = (unsigned char)(i * 3);
    request.shape = ghp_shape_image(2, 1, 5);
    request.normalise = "none";
    write_npy("images.npy", "|u1", "6, 2, 5", bytes, sizeof(bytes));
    write_all_labels("labels.npy", "<i8", 8);
    if (CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) {
        images_of(data, N, request.shape, images);
        for (int n = 0; n < N; n++)
            for (int p = 0; p < 5; p++)
                for (int c = 0; c < 2; c++)
                    CHECK_NEAR(images[(n * 5 + p) * 2 + c] * 255, bytes[(n * 2 + c) * 5 + p],
                               1e-12);
    }
    ghp_data_close(data);
    remove_all();
}

static void check_files(void)
{
    unsigned char bytes[N * 10];
    float floats[N * 10];
    double images[2 * N * 10];
    struct ghp_data_request request = request_for("");
    struct ghp_data *data = NULL;
    char list[600];

    for (int i = 0; i < N * 10; i++)
        bytes[i] = (unsigned char)(i * 3);
    request.shape = ghp_shape_image(10, 1, 1);
    request.normalise = "none";
    write_npy("images-a.npy", "|u1", "6, 10", bytes, sizeof(bytes));
    write_npy("images-b.npy", "|u1", "6, 10", bytes, sizeof(bytes));
    write_all_labels("labels-a.npy", "<i8", 8);
    write_all_labels("labels-b.npy", "<i8", 8);
    if (CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) {
        CHECK_EQ(ghp_data_count(data, GHP_DATA_TRAIN), 2 * N);
        images_of(data, 2 * N, request.shape, images);
        CHECK(memcmp(images, images + N * 10, N * 10 * sizeof(double)) == 0);
        CHECK(images[7] == 21.0 / 255);
    }
    ghp_data_close(data);
    snprintf(list, sizeof list, "npy:%s/images-b.npy,%s/labels-a.npy", folder, folder);
    request.spec = list;
    request.split = 0.7;
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TRAIN), 4);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TEST), 2);
    ghp_data_close(data);
    *strrchr(list, ',') = '\0';
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_ERR_IO); /* a file is not a folder */
    write_npy("train-images.npy", "|u1", "6, 10", bytes, sizeof(bytes));
    write_all_labels("train-labels.npy", "<i8", 8);
    write_npy("val-images.npy", "|u1", "6, 10", bytes, sizeof(bytes));
    write_all_labels("val-labels.npy", "<i8", 8);
    request.spec = request_for("").spec;
    request.split = 0;
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TRAIN), N);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TEST), N);
    ghp_data_close(data);
    memset(floats, 0, sizeof floats);
    write_npy("val-images.npy", "<f4", "6, 10", floats, sizeof floats);
    request.normalise = "unit"; /* of bytes, in both sets */
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_ERR_USAGE);
    CHECK_MESSAGE("--normalise unit");
    remove_all();
}

/* ---- what is wrong ---- */

static void check_refused(struct ghp_data_request request, enum ghp_status status, const char *says)
{
    struct ghp_data *data = NULL;

    CHECK_STATUS(ghp_data_open(&request, &data), status);
    CHECK_MESSAGE(says);
    CHECK(data == NULL);
    ghp_data_close(data);
}

/* Token ids of any width, with a label for each sample or each position. */
static void check_ids(void)
{
    enum { S = 4 };
    static const char *const descrs[] = {"<i8", "|u1"};
    static const int bytes[] = {8, 1};
    struct ghp_data_request request = request_for("");
    unsigned char ids[N * S * 8];
    int32_t read[S], labels[S];
    struct ghp_data *data = NULL;
    int64_t sample = 2;
    struct ghp_batch batch = {
        .samples = &sample, .n = 1, .channels = 1, .element_bytes = 4, .images = read};

    request.shape = ghp_shape_tokens(S, 30);
    for (int form = 0; form < 2; form++) {
        memset(ids, 0, sizeof ids);
        for (int i = 0; i < N * S; i++)
            ids[i * bytes[form]] = (unsigned char)(i + 3);
        write_npy("images.npy", descrs[form], "6, 4", ids, (size_t)(N * S * bytes[form]));
        request.sample_labels = form == 0 ? 1 : S;
        request.classes = form == 0 ? N + 1 : 30;
        if (form == 0)
            write_all_labels("labels.npy", "<i8", 8);
        else
            write_npy("labels.npy", "|u1", "6, 4", ids, N * S);
        if (!CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) break;
        CHECK_STATUS(ghp_data_images(data, &batch), GHP_OK);
        CHECK_STATUS(ghp_data_labels(data, GHP_DATA_TRAIN, &sample, 1, labels), GHP_OK);
        for (int i = 0; i < S; i++)
            CHECK_EQ(read[i], 2 * S + i + 3);
        CHECK_EQ(labels[0], form == 0 ? 3 : 2 * S + 3);
        ghp_data_close(data);
    }
    request.normalise = "none";
    check_refused(request, GHP_ERR_USAGE, "--normalise is for images");
    request.normalise = NULL;
    request.shape = ghp_shape_tokens(S, 20);
    check_refused(request, GHP_ERR_INPUT, "has the token 20 in sample 4, but");
    request.shape = ghp_shape_tokens(S + 1, 30);
    check_refused(request, GHP_ERR_INPUT, "takes token ids of 5 positions, as N,5; pad or cut");
    remove_all();
}

/* Labels that are ignored may be any number, whatever the classes are; a folder's name may have commas. */
static void check_ignored(void)
{
    unsigned char bytes[N * C * H * W] = {0};
    int64_t labels[N] = {0, 1, -100, 3, 255, 9};
    static const int64_t all[N] = {0, 1, 2, 3, 4, 5};
    struct ghp_data_request request = request_for("a,b");
    struct ghp_data *data = NULL;
    int32_t read[N];
    int64_t n;

    CHECK_EQ(mkdir(path_of("a,b"), 0700), 0);
    write_npy("a,b/images.npy", "|u1", "6, 4, 5, 3", bytes, sizeof(bytes));
    write_npy("a,b/labels.npy", "<i8", "6,", labels, sizeof labels);
    check_refused(request, GHP_ERR_INPUT,
                  "has -100 as label 2; labels are 0 to the classes less one, or the one of "
                  "--ignore-label");
    request.ignores = true;
    request.ignored_label = -100;
    check_refused(request, GHP_ERR_INPUT, "sample 4 of");
    CHECK_MESSAGE("has label 255, but the model has 10 classes (0 to 9); use a model with more, or "
                  "--ignore-label");
    labels[4] = -100;
    write_npy("a,b/labels.npy", "<i8", "6,", labels, sizeof labels);
    for (int turn = 0; turn < 2; turn++) { /* parity is of the labels that are left */
        request.labels = turn == 0 ? GHP_LABELS_GIVEN : GHP_LABELS_PARITY;
        if (!CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) continue;
        CHECK_STATUS(ghp_data_labels(data, GHP_DATA_TRAIN, all, N, read), GHP_OK);
        CHECK_EQ(read[2], -1);
        CHECK_EQ(read[4], -1);
        CHECK_EQ(read[5], turn == 0 ? 9 : 1);
        CHECK_STATUS(ghp_data_count_labels(data, GHP_DATA_TRAIN, all, N,
                                           (struct ghp_label_outputs){1, 1, {1}, {10}}, &n),
                     GHP_OK);
        CHECK_EQ(n, N - 2);
        CHECK(strstr(ghp_data_text(data), "ignored") == NULL);
        ghp_data_close(data);
    }
    labels[2] = labels[4] = 2;
    write_npy("a,b/labels.npy", "<i8", "6,", labels, sizeof labels);
    if (CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK))
        CHECK(strstr(ghp_data_text(data), "none with the label -100 that is ignored") != NULL);
    ghp_data_close(data);
    remove_all();
}

static void must_have_targets(struct ghp_data_request request, const int *order)
{
    struct ghp_data *data = NULL;
    int64_t sample = 4, each = request.sample_labels;
    int32_t labels[C * H * W];

    if (!CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) return;
    CHECK_STATUS(ghp_data_labels(data, GHP_DATA_TRAIN, &sample, 1, labels), GHP_OK);
    for (int i = 0; i < each; i++)
        CHECK(ghp_label_number(labels[i]) == (float)(sample * each + order[i]) / 4);
    ghp_data_close(data);
}

/* Labels that are numbers lie as the network's output does: an image's channels come last. */
static void check_targets(void)
{
    unsigned char bytes[N * C * H * W] = {0};
    float numbers[N * C * H * W];
    double wide[N * C * H * W];
    int plain[C * H * W], turned[C * H * W];
    struct ghp_data_request request = request_for("");

    for (int i = 0; i < N * C * H * W; i++)
        wide[i] = numbers[i] = (float)i / 4;
    for (int i = 0; i < C * H * W; i++) {
        plain[i] = i;
        turned[i] = i % C * H * W + i / C;
    }
    request.classes = 0;
    request.sample_labels = C * H * W;
    write_npy("images.npy", "|u1", "6, 3, 4, 5", bytes, sizeof(bytes));
    write_npy("labels.npy", "<f4", "6, 3, 4, 5", numbers, sizeof numbers);
    request.targets = ghp_shape_image(C, H, W);
    must_have_targets(request, turned);
    request.targets = ghp_shape_image(C * H * W, 1, 1); /* a vector, in the order of the array */
    must_have_targets(request, plain);
    write_npy("labels.npy", "<f8", "6, 4, 5, 3", wide, sizeof wide);
    request.targets = ghp_shape_image(C, H, W);
    must_have_targets(request, plain);
    write_npy("labels.npy", "<f4", "6, 4, 15", numbers, sizeof numbers);
    request.targets = ghp_shape_sequence(C * W, H);
    must_have_targets(request, plain);
    request.targets = ghp_shape_image(C, H, W);
    check_refused(
        request, GHP_ERR_INPUT,
        "has the shape (6,4,15), but the loss takes a number for each output of a sample; "
        "save labels as an array of N,3,4,5 float32");
    write_npy("labels.npy", "<f4", "5, 3, 4, 5", numbers, 5 * C * H * W * sizeof *numbers);
    check_refused(request, GHP_ERR_INPUT, "has 6 samples, but");
    write_npy("labels.npy", "<i4", "6, 3, 4, 5", numbers, sizeof numbers);
    check_refused(request, GHP_ERR_INPUT, "has integers, but the loss takes real numbers; save");
    numbers[3 * C * H * W + 7] = NAN;
    write_npy("labels.npy", "<f4", "6, 3, 4, 5", numbers, sizeof numbers);
    check_refused(request, GHP_ERR_INPUT,
                  "has the number nan in sample 3, which is not a finite float");
    wide[1] = 1e300;
    write_npy("labels.npy", "<f8", "6, 3, 4, 5", wide, sizeof wide);
    check_refused(request, GHP_ERR_INPUT, "has the number 1e+300 in sample 0");
    request.ignores = true;
    check_refused(request, GHP_ERR_USAGE, "--ignore-label is for labels that are classes");
    request.spec = "idx:nowhere";
    check_refused(request, GHP_ERR_INPUT, "has classes as labels, but the loss takes numbers");
    remove_all();
}

/* Some labels of several outputs are classes, which lie as whole numbers, and NaN is ignored. */
static void check_mixed(void)
{
    enum { EACH = 3 };
    unsigned char bytes[N * C * H * W] = {0};
    float labels[N * EACH];
    int32_t read[N * EACH];
    int64_t all[N], counts[2];
    struct ghp_data *data = NULL;
    struct ghp_data_request request = request_for("");

    request.sample_labels = EACH;
    request.targets = ghp_shape_image(EACH, 1, 1);
    request.outputs = (struct ghp_label_outputs){2, EACH, {1, 3}, {5, 0}};
    for (int i = 0; i < N * EACH; i++)
        labels[i] = i % EACH == 0 ? (float)(i % 5) : (float)-i / 4;
    labels[2 * EACH] = labels[4 * EACH + 1] = labels[4 * EACH + 2] = NAN;
    for (int i = 0; i < N; i++)
        all[i] = i;
    write_npy("images.npy", "|u1", "6, 3, 4, 5", bytes, sizeof(bytes));
    write_npy("labels.npy", "<f4", "6, 3", labels, sizeof labels);
    if (CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) {
        CHECK_STATUS(ghp_data_labels(data, GHP_DATA_TRAIN, all, N, read), GHP_OK);
        for (int i = 0; i < N * EACH; i++)
            CHECK(i % EACH == 0      ? read[i] == (isnan(labels[i]) ? -1 : i % 5)
                  : isnan(labels[i]) ? isnan(ghp_label_number(read[i]))
                                     : ghp_label_number(read[i]) == labels[i]);
        CHECK_STATUS(ghp_data_count_labels(data, GHP_DATA_TRAIN, all, N, request.outputs, counts),
                     GHP_OK);
        CHECK_EQ(counts[0], N - 1);
        CHECK_EQ(counts[1], 2 * N - 2);
    }
    ghp_data_close(data);
    labels[EACH] = 5;
    write_npy("labels.npy", "<f4", "6, 3", labels, sizeof labels);
    check_refused(
        request, GHP_ERR_INPUT,
        "has 5 as label 0 of sample 1, which is of 5 classes (0 to 4); correct it, or save "
        "NaN to leave it out");
    labels[EACH] = 0.5;
    write_npy("labels.npy", "<f4", "6, 3", labels, sizeof labels);
    check_refused(request, GHP_ERR_INPUT, "has 0.5 as label 0 of sample 1");
    labels[EACH] = INFINITY;
    write_npy("labels.npy", "<f4", "6, 3", labels, sizeof labels);
    check_refused(request, GHP_ERR_INPUT, "has the number inf in sample 1");
    write_npy("labels.npy", "<f4", "6, 2", labels, N * 2 * sizeof *labels);
    check_refused(
        request, GHP_ERR_INPUT,
        "has the shape (6,2), but the loss takes a number for each output of a sample, or "
        "its class; save labels as an array of N,3 float32");
    request.ignores = true;
    check_refused(request, GHP_ERR_USAGE,
                  "leave it out, and save labels that are to be ignored as NaN");
    remove_all();
}

/* Outputs of different numbers of places: one has the first place alone, the other both. */
static void check_places(void)
{
    enum { EACH = 3, PLACES = 2 };
    unsigned char bytes[N * C * H * W] = {0};
    float labels[N][EACH][PLACES] = {{{0}}};
    struct ghp_data *data = NULL;
    struct ghp_data_request request = request_for("");

    request.sample_labels = EACH * PLACES;
    request.targets = ghp_shape_image(EACH, 1, PLACES);
    request.outputs = (struct ghp_label_outputs){2, EACH, {1, 3}, {5, 0}};
    request.places[0] = 1;
    for (int i = 0; i < N; i++)
        labels[i][0][1] = NAN;
    write_npy("images.npy", "|u1", "6, 3, 4, 5", bytes, sizeof(bytes));
    write_npy("labels.npy", "<f4", "6, 3, 2", labels, sizeof labels);
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    ghp_data_close(data);
    labels[4][0][1] = 2;
    write_npy("labels.npy", "<f4", "6, 3, 2", labels, sizeof labels);
    check_refused(request, GHP_ERR_INPUT,
                  "has 2 as label 0 of sample 4 at place 1, but output 0 has 1; save NaN in places "
                  "that an output does not have");
    remove_all();
}

static void check_refusals(void)
{
    unsigned char bytes[N * C * H * W] = {0};
    int64_t labels[N] = {0, 1, 2, 3, 4, -5};
    struct ghp_data_request request = request_for("");

    check_refused(request, GHP_ERR_IO, "images.npy");
    write_npy("images.npy", "|u1", "6, 4, 5, 3", bytes, sizeof(bytes));
    check_refused(request, GHP_ERR_IO, "labels.npy");
    write_npy("labels.npy", "<i8", "6,", labels, sizeof labels);
    check_refused(request, GHP_ERR_INPUT, "has -5 as label 5");
    labels[5] = 10;
    write_npy("labels.npy", "<i8", "6,", labels, sizeof labels);
    check_refused(request, GHP_ERR_INPUT, "10 classes");
    write_npy("labels.npy", "<i8", "5,", labels, sizeof labels - 8);
    check_refused(request, GHP_ERR_INPUT, "has 6 samples");
    write_npy("labels.npy", "<f8", "6,", labels, sizeof labels);
    check_refused(request, GHP_ERR_INPUT, "holds no labels");
    write_all_labels("labels.npy", "<i8", 8);
    request.shape = ghp_shape_image(C, H, W + 1);
    check_refused(request, GHP_ERR_INPUT,
                  "has the shape (6,4,5,3), but the model takes samples of 3x4x6");
    request.shape = ghp_shape_image(C, H, W);
    request.augment = "crop-flip";
    check_refused(request, GHP_ERR_USAGE, "--augment");
    request.augment = "none";
    request.skip_damaged = 1;
    check_refused(request, GHP_ERR_USAGE, "--skip-damaged");
    request.skip_damaged = 0;
    write_npy("images.npy", "<i2", "6, 4, 5, 3", bytes, sizeof(bytes));
    check_refused(request, GHP_ERR_FORMAT, "cut short");
    write_npy("images.npy", "|i1", "6, 4, 5, 3", bytes, sizeof(bytes));
    check_refused(request, GHP_ERR_INPUT, "signed integers of 1 bytes");
    remove_all();
}

static void check_header(const char *header, enum ghp_status status, const char *says)
{
    struct ghp_npy npy;
    char head[256];
    size_t n = strlen(header);

    memcpy(head, "\x93NUMPY\1\0", 8);
    head[8] = (char)n;
    head[9] = 0;
    memcpy(head + 10, header, n);
    write_raw("a.npy", head, 10 + n, "abcdefgh", 8);
    CHECK_STATUS(ghp_npy_open(path_of("a.npy"), &npy), status);
    if (status == GHP_OK) {
        CHECK_EQ(npy.n * npy.item_bytes, 8);
        CHECK(memcmp(npy.items, "abcdefgh", 8) == 0);
        ghp_npy_close(&npy);
    } else {
        CHECK_MESSAGE(says);
        CHECK_MESSAGE("a.npy");
    }
    remove_all();
}

static void check_headers(void)
{
    check_header("{'descr': '<u2', 'fortran_order': False, 'shape': (4,), }\n", GHP_OK, NULL);
    check_header("{'shape':(2,2),'fortran_order':False,'descr':'<i2'}", GHP_OK, NULL);
    check_header("{'descr': '>u2', 'fortran_order': False, 'shape': (4,), }", GHP_ERR_INPUT,
                 "'>u2'");
    check_header("{'descr': '<f2', 'fortran_order': False, 'shape': (4,), }", GHP_ERR_INPUT,
                 "'<f2'");
    check_header("{'descr': '|b1', 'fortran_order': False, 'shape': (8,), }", GHP_ERR_INPUT,
                 "'|b1'");
    check_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", GHP_ERR_INPUT, "type");
    check_header("{'descr': '<u2', 'fortran_order': True, 'shape': (4,), }", GHP_ERR_INPUT,
                 "Fortran");
    check_header("{'descr': '<u2', 'fortran_order': False, 'shape': (), }", GHP_ERR_INPUT,
                 "single");
    check_header("{'descr': '<u2', 'fortran_order': False, 'shape': (4, 0), }", GHP_ERR_INPUT,
                 "has 0 as");
    check_header("{'descr': '<u2', 'fortran_order': False, 'shape': (1, 1, 1, 1, 4), }",
                 GHP_ERR_INPUT, "dimensions");
    check_header(
        "{'descr': '<u2', 'fortran_order': False, 'shape': (99999999, 99999999, 99999999), }",
        GHP_ERR_INPUT, "2^46");
    check_header("{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }", GHP_ERR_FORMAT,
                 "too long");
    check_header("{'descr': '<u2', 'fortran_order': False, 'shape': (5,), }", GHP_ERR_FORMAT,
                 "cut short");
    check_header("{'descr': '<u2', 'shape': (4,), }", GHP_ERR_FORMAT, "header");
    check_header("{'descr': '<u2', 'descr': '<u2', 'shape': (4,), }", GHP_ERR_FORMAT, "header");
    check_header("{'descr': '<u2', 'fortran_order': False, 'shape': (4", GHP_ERR_FORMAT, "header");
}

static void check_integers(void)
{
    static const unsigned char items[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                          0,    0,    0,    0,    0,    0,    0,    0x80};
    struct ghp_npy npy = {.items = items};
    int64_t value = 0;

    for (int bytes = 1; bytes <= 8; bytes *= 2) {
        npy.item_bytes = bytes;
        npy.kind = 'i';
        CHECK(ghp_npy_integer(&npy, 0, &value));
        CHECK_EQ(value, -1);
        npy.kind = 'u';
        CHECK(ghp_npy_integer(&npy, 0, &value) == (bytes < 8));
        if (bytes < 8) CHECK_EQ(value, (INT64_C(1) << (8 * bytes)) - 1);
    }
    npy.kind = 'i';
    CHECK(ghp_npy_integer(&npy, 1, &value));
    CHECK_EQ(value, INT64_MIN);
}

CHECK_TEST(npy)
{
    folder = check_folder();
    check_forms();
    check_rows();
    check_files();
    check_ids();
    check_ignored();
    check_targets();
    check_mixed();
    check_places();
    check_refusals();
    check_headers();
    check_integers();
    return check_end();
}
