/* executor/data/data_private.h - what a data source has to bring; only data*.c and tests' benches include this. */
#ifndef GHP_EXECUTOR_DATA_DATA_PRIVATE_H
#define GHP_EXECUTOR_DATA_DATA_PRIVATE_H

#include "core/model/element.h"
#include "executor/data/data.h"
#include "executor/data/image/blend.h"

enum { GHP_DATA_TEXT_BYTES = 256, GHP_DATA_PATH_BYTES = 4096, GHP_DATA_BYTE_VALUES = 256 };

struct ghp_class_files; /* executor/data/class_folders.h */

/* The file that an item of a list of token files names, without its mark; NULL if it names none ("type=uint32"). */
const char *ghp_token_list_file(const char *item);

struct ghp_data_ops {
    const char *name;     /* what stands before the colon of a spec */
    const char *argument; /* what stands after it, for messages; NULL: nothing, it has no files */
    const char *files;    /* what its folder holds, for messages: pictures; NULL: none */
    bool has_tokens;      /* its samples are token ids, int32 whatever the precision */
    size_t own_bytes;     /* of its own state, data->own, zeroed before it is opened */
    /* rest: the text after the colon */
    enum ghp_status (*open)(const struct ghp_data_request *request, const char *rest,
                            struct ghp_data *data);
    void (*close)(void *own); /* frees what it made in its state, after a failed opening too */
    /* One sample of the batch's set: its channels of the batch, [h][w][channels]; or its ids, int32 [positions].
     * Called by several threads at once. */
    enum ghp_status (*image)(const struct ghp_data *data, int64_t sample,
                             const struct ghp_batch *batch, void *image);
    /* Its labels, [sample_labels]. */
    void (*labels)(const struct ghp_data *data, enum ghp_data_set set, int64_t sample,
                   int32_t *labels);
    /* If each sample is a file, else NULL: whether it augments; files that this worker skipped so far; a set's files. */
    bool (*augments)(const void *own);
    int64_t (*skipped)(const void *own);
    const struct ghp_class_files *(*files_of)(const void *own, enum ghp_data_set set);
};

/* Samples of a fixed size as files bring them, used where they lie: number i of channel c of picture p is number
 * c * channel_stride + i * pixel_stride of the picture's own. */
enum ghp_number { GHP_NUMBER_BYTE, GHP_NUMBER_FLOAT, GHP_NUMBER_DOUBLE, GHP_NUMBER_ID };

struct ghp_picture_file { /* one after the other in memory */
    int64_t first, n;     /* of the pictures */
    const unsigned char *pixels;
    int64_t picture_bytes; /* from one picture to the next */
    void *memory;          /* they are in there; owned */
    size_t mapped_bytes;   /* 0: from malloc */
};

struct ghp_pictures { /* of one set */
    int64_t n;
    struct ghp_shape shape;
    enum ghp_number number;
    int64_t channel_stride, pixel_stride; /* [numbers] */
    char id_kind;                         /* of ids: as struct ghp_npy has them */
    int id_bytes;
    struct ghp_picture_file *files; /* owned */
    int n_files;
    int64_t picture_labels;       /* of one picture; 0: 1 */
    int32_t *labels;              /* [n][picture_labels], owned; NULL: they are numbers */
    struct ghp_pictures *targets; /* which are these, one of each picture; owned */
    bool has_gaps;                /* of targets: some are NaN, which are ignored */
};

/* What a number of a channel becomes: of a byte, a table's entry; of others, (number - mean) / deviation. */
struct ghp_normalisation {
    double *value;            /* [c][256], owned */
    double *mean, *deviation; /* [c], owned */
    bool unit;                /* each sample is then divided by its length; of bytes alone */
    const char *text;         /* for people: by what */
};

struct ghp_data {
    const struct ghp_data_ops *ops;
    struct ghp_shape shape;
    int64_t sample_labels;
    int32_t *labels_of_one; /* [sample_labels], if labels are counted */
    int classes;            /* labels are 0 .. classes - 1 */
    struct ghp_label_outputs outputs;
    bool mixes;    /* labels lie as numbers, and some are classes */
    bool has_gaps; /* some of these are NaN: ignored */
    bool ignores; /* one of them is ignored */
    int64_t ignored_label;
    int64_t count[GHP_DATA_SET_COUNT];
    char text[GHP_DATA_TEXT_BYTES];
    void *own; /* the source's state; owned */
    /* a lone set that was cut: where in it the set starts */
    int64_t first[GHP_DATA_SET_COUNT];
    int source[GHP_DATA_SET_COUNT]; /* which pictures or tokens the set is in */
    struct ghp_normalisation normalisation;
    uint64_t seed;
    struct ghp_blending blending;
};

/* Number `at` of an array of FLOAT or DOUBLE, at any address. */
static inline double ghp_number_at(enum ghp_number number, const unsigned char *array, int64_t at)
{
    double wide;
    float narrow;

    if (number == GHP_NUMBER_DOUBLE) {
        memcpy(&wide, array + at * (int64_t)sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, array + at * (int64_t)sizeof narrow, sizeof narrow);
    return narrow;
}

/* A loop for each kind of number: `pixels` bytes, from_stride apart, as a table's numbers, to_stride apart. */
struct ghp_bytes {
    const unsigned char *from;
    const double *value;
    int64_t pixels, from_stride, to_stride;
};
void ghp_bytes_put(struct ghp_bytes bytes, int element_bytes, void *to);

extern const struct ghp_data_ops ghp_data_synthetic;
extern const struct ghp_data_ops ghp_data_idx;
extern const struct ghp_data_ops ghp_data_cifar10, ghp_data_cifar100;
extern const struct ghp_data_ops ghp_data_npy;
extern const struct ghp_data_ops ghp_data_folder; /* folder.c */
extern const struct ghp_data_ops ghp_data_tokens;
extern const struct ghp_data_ops ghp_data_bytes;

/* struct ghp_data_ops of sources with pictures: own_bytes, close, image, labels */
enum { GHP_PICTURES_OWN_BYTES = GHP_DATA_SET_COUNT * sizeof(struct ghp_pictures) };
void ghp_pictures_close(void *own);
struct ghp_pictures *ghp_data_pictures(const struct ghp_data *data,
                                       int set); /* NULL: it has none */
enum ghp_status ghp_pictures_image(const struct ghp_data *data, int64_t sample,
                                   const struct ghp_batch *batch, void *image);
int64_t ghp_pictures_count_labels(const struct ghp_pictures *pictures); /* of one picture */
void ghp_pictures_labels(const struct ghp_data *data, enum ghp_data_set set, int64_t sample,
                         int32_t *labels);

/* Adds a file's pictures to the set, with room for their labels; takes file->memory, in a failure too.
 *
 * labels   receives where the file's labels go, [file->n][picture_labels]; NULL: there are none, or they are numbers
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_pictures_add(struct ghp_pictures *pictures, struct ghp_picture_file file,
                                 int32_t **labels);

/* A set for training and one for testing from what the files hold: a lone set is cut at `split`.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (a lone set without split, or a split with both sets) */
enum ghp_status ghp_pictures_divide(struct ghp_data *data, const struct ghp_data_request *request,
                                    const char *folder);

/* The normalisation that was asked for, of a source that has images and whose sets are known.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (no such normalisation, or not of this source); GHP_ERR_NO_MEMORY
 * Tested    tests/executor/data/test_data.c */
enum ghp_status ghp_normalisation_init(struct ghp_data *data,
                                       const struct ghp_data_request *request);
void ghp_normalisation_release(struct ghp_normalisation *normalisation);

#endif
