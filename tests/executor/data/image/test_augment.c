/* ghp-test: timeout=120
 *
 * What is drawn for a sample, by what key and within which limits; and changed pixels compared with torchvision's
 * (augment.py says within what), unless the python3 of GHP_PYTHON has no torchvision.
 *
 * The list has a line a sample: the file of its bytes before and after, channels, size, vflipped, gray, the order of
 * four changes and by how much, the erased rectangle, RandAugment's operations and by how much. */
#include "executor/data/image/augment.h"
#include "tests/check.h"

#include <sys/wait.h>
#include <unistd.h>

enum { W = 37, H = 24 };

static const struct ghp_image_size size = {W, H};
static const unsigned char fill[3] = {124, 116, 104};

static void test_text(void)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {{"area=0.5", "area takes two numbers"},
                 {"area=1:0.5", "area takes two numbers"},
                 {"aspect=0:1", "aspect takes two numbers"},
                 {"flip=2", "flip takes a number of 0 to 1"},
                 {"hue=0.6", "hue takes a number"},
                 {"hue=nan", "hue takes a number"},
                 {"erase=", "erase takes a number"},
                 {"randaugment=2", "as in randaugment=2:9; '2' is not that"},
                 {"randaugment=1.5:9", "as in randaugment=2:9"},
                 {"randaugment=9:9", "operations, 1 to 8"},
                 {"mixup=1.5", "mixup takes a number of 0 to 1"},
                 {"crop", "'crop' is not one of them"},
                 {"", "'' is not one of them"},
                 {"flip=0.5,,", "'' is not one of them"}};
    struct ghp_augmentation a;

    CHECK_STATUS(ghp_augment_parse("crop-flip", &a), GHP_OK);
    CHECK(memcmp(&a, &ghp_augment_usual, sizeof a) == 0);
    CHECK_STATUS(ghp_augment_parse("area=0.25:0.5,flip=0,hue=0.1,erase=1", &a), GHP_OK);
    CHECK(a.crop.area[0] == 0.25 && a.crop.area[1] == 0.5 && a.crop.flip == 0);
    CHECK(a.crop.aspect[0] == 0.75 && a.colour[GHP_COLOUR_HUE] == 0.1 && a.erase == 1);
    CHECK_STATUS(ghp_augment_parse("randaugment=3:2,cutmix=1", &a), GHP_OK);
    CHECK(a.rand[0] == 3 && a.rand[1] == 2 && a.blending.cutmix == 1 && a.blending.mixup == 0);
    CHECK(ghp_augment_only_blends("cutmix=1,mixup=0.2"));
    CHECK(!ghp_augment_only_blends("cutmix=1,flip=0") && !ghp_augment_only_blends("crop-flip"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_STATUS(ghp_augment_parse(wrong[i].text, &a), GHP_ERR_USAGE);
        CHECK_MESSAGE(wrong[i].says);
    }
}

/* Draws for many samples: within limits, as often as asked for, each order of changes, no two epochs alike. */
static void test_draws(void)
{
    enum { N = 4000 };
    struct ghp_augmentation a;
    struct ghp_augmented d, again, other;
    int flipped = 0, gray = 0, erased = 0, first[GHP_COLOUR_COUNT] = {0};

    CHECK_STATUS(
        ghp_augment_parse("vflip=0.25,gray=0.1,erase=0.5,brightness=0.4,contrast=2,hue=0.1", &a),
        GHP_OK);
    for (int i = 0; i < N; i++) {
        struct ghp_crop_key key = {7, 3, i};

        d = ghp_augment_draw(&a, size, key);
        again = ghp_augment_draw(&a, size, key);
        key.epoch++;
        other = ghp_augment_draw(&a, size, key);
        CHECK(memcmp(d.by, again.by, sizeof d.by) == 0);
        CHECK(memcmp(d.by, other.by, sizeof d.by) != 0);
        CHECK(d.by[GHP_COLOUR_BRIGHTNESS] >= 0.6 && d.by[GHP_COLOUR_BRIGHTNESS] < 1.4);
        CHECK(d.by[GHP_COLOUR_CONTRAST] >= 0 && d.by[GHP_COLOUR_CONTRAST] < 3);
        CHECK(d.by[GHP_COLOUR_SATURATION] == 1);
        CHECK(fabs(d.by[GHP_COLOUR_HUE]) <= 0.1);
        CHECK(d.erased.first_x >= 0 && d.erased.end_x <= W && d.erased.first_y >= 0 &&
              d.erased.end_y <= H);
        flipped += d.vflipped;
        gray += d.gray;
        erased += d.erased.end_x > 0;
        first[d.order[0]]++;
    }
    /* five standard deviations of a part of N draws */
    CHECK_NEAR(flipped, 0.25 * N, 5 * sqrt(N * 0.25 * 0.75));
    CHECK_NEAR(gray, 0.1 * N, 5 * sqrt(N * 0.1 * 0.9));
    CHECK_NEAR(erased, 0.5 * N, 5 * sqrt(N * 0.5 * 0.5));
    for (int i = 0; i < GHP_COLOUR_COUNT; i++)
        CHECK_NEAR(first[i], 0.25 * N, 5 * sqrt(N * 0.25 * 0.75));
}

/* Fractions of Beta(a, a), another sample, rectangles of their share's area. */
static void test_blends(void)
{
    enum { N = 4000, SAMPLES = 50 };
    const struct ghp_blending both = {.mixup = 0.5, .cutmix = 1};
    int boxes = 0, first = 0, quarter = 0, mixed = 0;

    for (int i = 0; i < N; i++) {
        struct ghp_crop_key key = {7, i / SAMPLES, i % SAMPLES};
        struct ghp_blend d = ghp_blend_draw(&both, size, SAMPLES, key),
                         again = ghp_blend_draw(&both, size, SAMPLES, key);
        int64_t area = (d.box.end_x - d.box.first_x) * (d.box.end_y - d.box.first_y);

        CHECK(d.other == again.other && d.fraction == again.fraction && d.cutmix == again.cutmix);
        CHECK(d.other >= 0 && d.other < SAMPLES && d.other != key.sample);
        CHECK(d.fraction >= 0 && d.fraction <= 1);
        boxes += d.cutmix;
        first += d.other == 0;
        if (d.cutmix) {
            CHECK(d.box.first_x >= 0 && d.box.end_x <= W && d.box.first_y >= 0 && d.box.end_y <= H);
            CHECK_NEAR(d.fraction, (double)area / (W * H), 1e-12);
        } else {
            mixed++;
            quarter += d.fraction < 0.25;
        }
    }
    /* five standard deviations; a part by Beta(1/2, 1/2) is below 1/4 a third of the time */
    CHECK_NEAR(boxes, 0.5 * N, 5 * sqrt(N * 0.25));
    CHECK_NEAR(first, (double)N / SAMPLES, 5 * sqrt((double)N / SAMPLES));
    CHECK_NEAR(quarter, mixed / 3.0, 5 * sqrt(mixed * 2.0 / 9));
}

static void test_blended_numbers(void)
{
    const struct ghp_blend mixup = {.fraction = 0.25},
                           cutmix = {.cutmix = true, .box = {1, 0, 3, 1}};
    double other[12] = {8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};

    for (int i = 0; i < 2; i++) { /* two rows of three pixels, of two channels */
        double image[12] = {0};
        struct ghp_blended numbers = {{3, 2}, 2, sizeof *image, other, image};

        ghp_blend_apply(i == 0 ? &mixup : &cutmix, numbers);
        for (int k = 0; k < 12; k++)
            CHECK(image[k] == (i == 0 ? 0.25 * other[k] : k >= 2 && k < 6 ? other[k] : 0));
    }
}

static void write_file(const char *folder, const char *name, int i, const unsigned char *pixels,
                       int n)
{
    char path[128];
    FILE *out;

    snprintf(path, sizeof path, "%s/%s%d", folder, name, i);
    out = fopen(path, "wb");
    fwrite(pixels, 1, (size_t)n, out);
    fclose(out);
}

static void write_sample(FILE *list, const char *folder, int i)
{
    static const char *const recipes[] = {
        "brightness=0.4",
        "contrast=0.8",
        "saturation=1.5",
        "hue=0.5",
        "gray=1",
        "vflip=1",
        "erase=1",
        "randaugment=1:9",
        "randaugment=1:17",
        "randaugment=1:30",
        "vflip=0.5,brightness=0.4,contrast=0.4,saturation=0.4,hue=0.1,gray=0.2,erase=0.5"};
    unsigned char pixels[W * H * 3];
    int channels = i % 5 == 4 ? 1 : 3, n = W * H * channels;
    struct ghp_augmentation a;
    struct ghp_augmented d;

    for (int k = 0; k < n; k++) /* smooth, with all of black, white and gray in it */
        pixels[k] =
            (unsigned char)fmin(255, fmax(0, 128 + 160 * sin(0.01 * (i + 3) * k + k % channels)));
    CHECK_STATUS(ghp_augment_parse(recipes[i % (int)(sizeof recipes / sizeof *recipes)], &a),
                 GHP_OK);
    d = ghp_augment_draw(&a, size, (struct ghp_crop_key){5, 0, i});
    write_file(folder, "before", i, pixels, n);
    CHECK_STATUS(ghp_augment_apply(&d, size, channels, fill, pixels), GHP_OK);
    write_file(folder, "after", i, pixels, n);
    fprintf(list, "%s/before%d %s/after%d %d %d %d %d %d", folder, i, folder, i, channels, W, H,
            d.vflipped, d.gray);
    for (int k = 0; k < GHP_COLOUR_COUNT; k++)
        fprintf(list, " %d %.17g", (int)d.order[k], d.by[d.order[k]]);
    fprintf(list, " %d %d %d %d", (int)d.erased.first_x, (int)d.erased.first_y, (int)d.erased.end_x,
            (int)d.erased.end_y);
    for (int k = 0; k < d.rand.n; k++)
        fprintf(list, " %d %.17g", (int)d.rand.ops[k].op, d.rand.ops[k].by);
    fputc('\n', list);
}

CHECK_TEST(augment)
{
    const char *python = getenv("GHP_PYTHON"), *folder = check_folder();
    char command[512];
    FILE *list;
    int code;

    test_text();
    test_draws();
    test_blends();
    test_blended_numbers();
    snprintf(command, sizeof command, "%s/list", folder);
    list = fopen(command, "w");
    for (int i = 0; i < check_cases(400); i++)
        write_sample(list, folder, i);
    fclose(list);
    snprintf(command, sizeof command, "%s %s/tests/executor/data/augment.py %s/list >&2",
             python != NULL ? python : "python3", GHP_SOURCE_DIR, folder);
    code = system(command);
    if (WIFEXITED(code) && WEXITSTATUS(code) == 77 && check_end() == 0)
        SKIP("the comparison, without torchvision; name a python3 with GHP_PYTHON");
    CHECK_EQ(code, 0);
    return check_end();
}
