/* executor/data/pictures.c - which pictures of a folder train, and which test. */
#include "executor/data/data_private.h"

#include <math.h>
#include <string.h>

enum ghp_status ghp_pictures_share(struct ghp_data *data, const struct ghp_data_request *request,
                                   const char *folder)
{
    const struct ghp_pictures *train = &data->pictures[GHP_DATA_TRAIN],
                              *test = &data->pictures[GHP_DATA_TEST];
    int lone = train->n > 0 ? GHP_DATA_TRAIN : GHP_DATA_TEST;

    if (train->n == 0 && test->n == 0)
        return GHP_FAIL(GHP_ERR_IO, "no data in '%s'; it must hold %s", folder, data->ops->files);
    if (train->n > 0 && test->n > 0) {
        if (request->split > 0)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "'%s' has both a training and a test set, so there is nothing to cut; "
                            "leave --train-fraction out",
                            folder);
        for (int set = 0; set < GHP_DATA_SET_COUNT; set++) {
            data->count[set] = data->pictures[set].n;
            data->source[set] = set;
        }
        data->shape = train->shape;
        if (memcmp(&train->shape, &test->shape, sizeof(train->shape)) != 0)
            return GHP_FAIL(
                GHP_ERR_FORMAT,
                "the training and test images in '%s' differ in size; use files of one data set",
                folder);
        return GHP_OK;
    }
    if (request->split <= 0 && lone == GHP_DATA_TEST)
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "'%s' has only the t10k (test) set; cut it in order with --train-fraction F, such "
            "as --train-fraction 0.8",
            folder);
    data->shape = data->pictures[lone].shape;
    data->source[GHP_DATA_TRAIN] = data->source[GHP_DATA_TEST] = lone;
    data->count[GHP_DATA_TRAIN] = data->pictures[lone].n;
    if (request->split > 0)
        data->count[GHP_DATA_TRAIN] =
            (int64_t)floor((double)data->pictures[lone].n * request->split + 1e-9);
    data->first[GHP_DATA_TEST] = data->count[GHP_DATA_TRAIN];
    data->count[GHP_DATA_TEST] = data->pictures[lone].n - data->count[GHP_DATA_TRAIN];
    return GHP_OK;
}
