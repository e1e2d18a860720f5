/* executor/data/data_private.h - what a data source has to bring; only data*.c and tests' benches include this. */
#ifndef GHP_EXECUTOR_DATA_DATA_PRIVATE_H
#define GHP_EXECUTOR_DATA_DATA_PRIVATE_H

#include "core/model/precision.h"
#include "executor/data/data.h"

enum { GHP_DATA_TEXT_BYTES = 256, GHP_DATA_PATH_BYTES = 4096, GHP_DATA_BYTE_VALUES = 256 };

struct ghp_tokens; /* executor/data/tokens.h */

struct ghp_data_ops {
    const char *name;     /* what stands before the colon of a spec */
    const char *argument; /* what stands behind it, for messages; NULL: nothing, it has no files */
    const char *files;    /* what its folder holds, for messages: pictures; NULL: none */
    bool has_tokens;      /* its samples are token ids, int32 whatever the precision */
    /* rest: what stands behind the colon */
    enum ghp_status (*open)(const struct ghp_data_request *request, const char *rest,
                            struct ghp_data *data);
    /* One sample of the batch's set: its channels of the batch, [h][w][channels]; or its ids, int32 [positions]. */
    void (*image)(const struct ghp_data *data, int64_t sample, const struct ghp_batch *batch,
                  void *image);
    /* Its labels, [sample_labels]. */
    void (*labels)(const struct ghp_data *data, enum ghp_data_set set, int64_t sample,
                   int32_t *labels);
};

/* Images as files bring them: bytes, all of one set after the other. */
struct ghp_pictures {
    int64_t n;
    struct ghp_shape shape;
    unsigned char *pixels; /* [n][c][h][w], owned */
    unsigned char *labels; /* [n], owned */
};

struct ghp_data {
    const struct ghp_data_ops *ops;
    struct ghp_shape shape;
    int64_t sample_labels;
    int32_t *labels_of_one; /* [sample_labels], where labels are counted */
    int classes;            /* labels are 0 .. classes - 1 */
    bool ignores;           /* one of them is ignored */
    int64_t ignored_label;
    int64_t count[GHP_DATA_SET_COUNT];
    char text[GHP_DATA_TEXT_BYTES];
    /* sources of files: pictures or tokens */
    struct ghp_pictures pictures[GHP_DATA_SET_COUNT];
    struct ghp_tokens *tokens[GHP_DATA_SET_COUNT]; /* owned; NULL: none */
    /* a lone set that was cut: where in it the set starts */
    int64_t first[GHP_DATA_SET_COUNT];
    int source[GHP_DATA_SET_COUNT]; /* which pictures or tokens the set is in */
    double *value;                  /* [c][256]: what a byte becomes, owned */
    /* synthetic */
    uint64_t seed;
    int64_t tile_h, tile_w; /* of the class patterns */
    float noise[256];       /* what a random byte adds */
    float *patterns;        /* [classes][c][tile_h][tile_w], owned */
};

/* Element i of an image of element_bytes numbers. */
static inline void ghp_data_put(void *image, int64_t i, int element_bytes, double value)
{
    if (element_bytes == 8)
        ((double *)image)[i] = value;
    else if (element_bytes == 4)
        ((float *)image)[i] = (float)value;
    else
        ((uint16_t *)image)[i] = ghp_bf16_of((float)value);
}

extern const struct ghp_data_ops ghp_data_synthetic;
extern const struct ghp_data_ops ghp_data_idx;
extern const struct ghp_data_ops ghp_data_cifar10;
extern const struct ghp_data_ops ghp_data_tokens;
extern const struct ghp_data_ops ghp_data_bytes;

/* struct ghp_data_ops of sources with pictures: image, labels */
void ghp_pictures_image(const struct ghp_data *data, int64_t sample, const struct ghp_batch *batch,
                        void *image);
void ghp_pictures_labels(const struct ghp_data *data, enum ghp_data_set set, int64_t sample,
                         int32_t *labels);

/* A set for training and one for testing from what the files hold: a lone set is cut at `split`.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (a lone set without split, or a split with both sets) */
enum ghp_status ghp_pictures_share(struct ghp_data *data, const struct ghp_data_request *request,
                                   const char *folder);

#endif
