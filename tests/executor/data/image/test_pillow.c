/* ghp-test: timeout=120
 *
 * Samples compared with Pillow's: the same files decoded, cropped, resized, mirrored and normalised by both (pillow.py
 * says within what). Skips where the python3 of GHP_PYTHON has no Pillow and numpy.
 *
 * The list has a line a sample: file, channels, reduction, the box, the pixels that may be looked at, mirrored, size,
 * and the file of its bytes. */
#include "executor/data/image/augment.h"
#include "executor/data/image/resize.h"
#include "tests/check.h"
#include "tests/executor/data/pictures.h"

#include <sys/wait.h>
#include <unistd.h>

static const char *folder;

static void write_sample(FILE *list, const char *path, int channels, struct ghp_image_size to,
                         int i)
{
    static int n;
    struct ghp_image_file file = picture_read(path);
    struct ghp_image_request request = {.channels = channels};
    unsigned char *pixels = malloc((size_t)(to.w * to.h * channels));
    struct ghp_image_size size;
    struct ghp_image image;
    struct ghp_crop crop;
    char name[128];
    FILE *out;

    CHECK_STATUS(ghp_image_measure(&file, &size), GHP_OK);
    crop = i == 0 ? ghp_crop_centre(size, to)
                  : ghp_crop_random(size, &ghp_augment_usual.crop, (struct ghp_crop_key){3, 0, i});
    request.part = ghp_crop_needed(&crop, to);
    request.reduction = ghp_crop_reduction(&crop, to);
    CHECK_STATUS(ghp_image_decode(&file, &request, &image), GHP_OK);
    CHECK_STATUS(ghp_resize(&image, &crop, to, pixels), GHP_OK);
    snprintf(name, sizeof name, "%s/sample%d", folder, n++);
    out = fopen(name, "wb");
    fwrite(pixels, 1, (size_t)(to.w * to.h * channels), out);
    fclose(out);
    fprintf(list, "%s %d %d %.17g %.17g %.17g %.17g %d %d %d %d %d %d %d %s\n", path, channels,
            image.reduction, crop.left, crop.top, crop.right, crop.bottom, (int)crop.seen.first_x,
            (int)crop.seen.first_y, (int)crop.seen.end_x, (int)crop.seen.end_y, crop.mirrored,
            (int)to.w, (int)to.h, name);
    ghp_image_release(&image);
    free(pixels);
    free((unsigned char *)(uintptr_t)file.bytes);
}

static void write_samples(FILE *list)
{
    static const struct ghp_image_size pictures[] = {{320, 240}, {150, 211}, {900, 700}};
    struct ghp_image_size to = {64, 64};
    char path[128];

    for (int i = 0; i < 3; i++)
        for (int channels = 1; channels <= 3; channels += 2)
            for (int png = 0; png < 2; png++) {
                struct picture p =
                    picture_make((int)pictures[i].w, (int)pictures[i].h, channels, (unsigned)i);

                snprintf(path, sizeof path, "%s/picture%d%d%d", folder, i, channels, png);
                if (png)
                    picture_png(path, &p, false);
                else
                    picture_jpeg(path, &p, (struct picture_way){92, i == 1, i != 1});
                for (int s = 0; s < check_cases(40); s++)
                    write_sample(list, path, 3, to, s);
                if (png) write_sample(list, path, 1, to, 1);
                picture_release(&p);
            }
}

CHECK_TEST(pillow)
{
    const char *python = getenv("GHP_PYTHON");
    char command[512];
    FILE *list;
    int code;

    folder = check_folder();
    snprintf(command, sizeof command, "%s/list", folder);
    list = fopen(command, "w");
    write_samples(list);
    fclose(list);
    snprintf(command, sizeof command, "%s %s/tests/executor/data/pillow.py %s/list >&2",
             python != NULL ? python : "python3", GHP_SOURCE_DIR, folder);
    code = system(command);
    if (WIFEXITED(code) && WEXITSTATUS(code) == 77)
        SKIP("no Pillow and numpy; name a python3 with GHP_PYTHON");
    CHECK_EQ(code, 0);
    return check_end();
}
