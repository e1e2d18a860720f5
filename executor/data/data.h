/* executor/data/data.h - where samples come from: a built-in generator, folders of images, files of arrays (NumPy,
 * IDX, CIFAR), files of tokens.
 *
 * A source answers "sample s of the training (or test) set, these channels, as N,H,W,C numbers", or its token ids as
 * int32; and "its labels": one, or one for each position of a sequence; a negative label is ignored. The labels of a
 * loss that takes numbers are an array of the output's shape, [h][w][c] (ghp_label_number); of `losses` of the labels'
 * shape, some of which are classes. A number of several outputs that is NaN is ignored. It knows nothing of workers
 * and order: executor/data/order.h decides which samples make a batch. Every worker opens the source and reads its own
 * part. Images from files are normalised, per channel: usually to zero mean and unit deviation over the whole training
 * set, with whose numbers the test set is normalised too (normalisation.c).
 *
 * A sample of a training set may differ from epoch to epoch (augmentation); it depends on seed, epoch and sample alone,
 * so every plan and every worker sees the same.
 *
 * To add a source: a struct ghp_data_ops in NAME.c and its row in data.c. */
#ifndef GHP_EXECUTOR_DATA_DATA_H
#define GHP_EXECUTOR_DATA_DATA_H

#include "core/model/model.h"
#include "executor/backend/backend.h"

enum ghp_data_set { GHP_DATA_TRAIN, GHP_DATA_TEST, GHP_DATA_SET_COUNT };

/* What a sample's label becomes. */
enum ghp_labels { GHP_LABELS_GIVEN, GHP_LABELS_PARITY /* 0 of even ones, 1 of odd ones */ };
extern const char *const ghp_labels_names[]; /* ends with NULL */

struct ghp_data_request {
    const char *spec; /* "synthetic", "folder:DIR", "idx:DIR", "tokens:FILE,val:FILE", ... */
    /* (0, 1): part of a lone set that trains, the rest tests; 0: none was asked for */
    double split;
    uint64_t seed;          /* of synthetic data, and of augmentation */
    int64_t global_batch;   /* least size of a training set; synthetic makes as many */
    struct ghp_shape shape; /* what the model takes */
    int64_t sample_labels;  /* that the model takes of a sample; ghp_model_labels */
    int classes;
    struct ghp_shape
        targets; /* ghp_model_targets: labels are numbers of this shape; zeroed: classes */
    /* ghp_model_label_outputs; zeroed: one output, whose labels are all classes or all numbers */
    struct ghp_label_outputs outputs;
    /* ghp_data_find_places; of each output the first ones, which alone have labels; 0: all */
    int64_t places[GHP_MAX_INPUTS];
    bool ignores; /* labels that are `ignored_label` are ignored */
    int64_t ignored_label;
    enum ghp_labels labels;
    const char *augment;   /* NULL: crop-flip of folders, none of others; "none"; image/augment.h */
    const char *normalise; /* NULL: as is usual for the source; else --normalise */
    int64_t skip_damaged;  /* files of a folder that may be damaged; 0: none */
};

struct ghp_batch { /* samples wanted by one worker */
    enum ghp_data_set set;
    int64_t epoch;          /* of training, from 0: keys augmentation */
    const int64_t *samples; /* n sample numbers, 0 .. ghp_data_count - 1 */
    int64_t n;
    int64_t first_channel, channels; /* of the sample's channels */
    int element_bytes;               /* 2, 4 or 8: core/model/precision.h */
    void *images;                    /* [n][h][w][channels]; of tokens int32 [n][positions] */
};

struct ghp_data;

/* Whether a source is known, and the files or the folder that it names are there.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (unknown source); GHP_ERR_IO naming what is missing
 * Local
 * Tested    tests/executor/data/test_data.c */
enum ghp_status ghp_data_check_files(const char *spec);

/* Opens a source and checks it against the model.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (unknown source, split or options if none are possible); GHP_ERR_IO (missing
 *           file); GHP_ERR_FORMAT (truncated or wrong file); GHP_ERR_INPUT (shape or classes differ from the model's,
 *           both named; fewer training samples than a batch)
 * Local
 * Tested    tests/executor/data/test_data.c */
enum ghp_status ghp_data_open(const struct ghp_data_request *request, struct ghp_data **data);
void ghp_data_close(struct ghp_data *data); /* accepts NULL */

int64_t ghp_data_count(const struct ghp_data *data,
                       enum ghp_data_set set); /* samples; 0: no such set */
bool ghp_data_from_files(const struct ghp_data *data);
int64_t ghp_data_skipped(const struct ghp_data *data);  /* damaged files, by this worker so far */
const char *ghp_data_text(const struct ghp_data *data); /* one line: what it is, for a report */

/* Writes the images of a batch. Several threads may call it at once.
 *
 * Returns   GHP_OK; GHP_ERR_INTERNAL (a sample that is not in the set); of folders GHP_ERR_IO, GHP_ERR_FORMAT naming
 *           the file that cannot be read, GHP_ERR_NO_MEMORY */
enum ghp_status ghp_data_images(struct ghp_data *data, const struct ghp_batch *batch);
/* Sets the places of outputs of one row that a pad makes as long as others. */
void ghp_data_find_places(const struct ghp_model *model, struct ghp_data_request *request);

/* Writes the labels of n samples, [n][sample_labels]. */
enum ghp_status ghp_data_labels(struct ghp_data *data, enum ghp_data_set set,
                                const int64_t *samples, int64_t n, int32_t *labels);
/* Whether training samples are blended of two (image/blend.h). */
bool ghp_data_blends(const struct ghp_data *data); /* accepts NULL */
/* The second labels of n samples that are, [n], whose labels are given: of both labels the one with the greater
 * fraction is then in `labels`. No fraction is above 0 where both are the same, and in a test set. */
enum ghp_status ghp_data_blend_labels(struct ghp_data *data, const struct ghp_batch *batch,
                                      int32_t *labels, struct ghp_second_label *seconds);
/* How many labels of n samples are not ignored, of each output: labels [outputs.n]. */
enum ghp_status ghp_data_count_labels(struct ghp_data *data, enum ghp_data_set set,
                                      const int64_t *samples, int64_t n,
                                      struct ghp_label_outputs outputs, int64_t *labels);
/* The sum of those labels' weights, by class. */
enum ghp_status ghp_data_weigh_labels(struct ghp_data *data, enum ghp_data_set set,
                                      const int64_t *samples, int64_t n, const double *weights,
                                      double *sum);

#endif
