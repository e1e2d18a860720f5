/* Files of tokens as data: which windows train and which test, that samples are their windows, and every way in which
 * the data does not fit the model. */
#include "executor/data/data.h"
#include "tests/check.h"

#include <unistd.h>

enum { S = 4, VOCABULARY = 40, WINDOWS = 9, TOKENS = WINDOWS * S + 1 };

static const char *folder;
static char spec[400];

static void write_tokens(const char *name, int first)
{
    uint16_t ids[TOKENS];
    char path[128];
    FILE *file;

    for (int i = 0; i < TOKENS; i++)
        ids[i] = (uint16_t)((first + i) % VOCABULARY);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(ids, sizeof ids, 1, file) == 1);
    if (file != NULL) fclose(file);
}

static struct ghp_data_request request_for(const char *format)
{
    snprintf(spec, sizeof spec, format, folder, folder);
    return (struct ghp_data_request){.spec = spec,
                                     .global_batch = 2,
                                     .shape = ghp_shape_tokens(S, VOCABULARY),
                                     .sample_labels = S,
                                     .classes = VOCABULARY};
}

/* Sample `sample` of a set is the window that begins with token `at` of a file that begins with `first`. */
static void check_sample(struct ghp_data *data, enum ghp_data_set set, int64_t sample, int at)
{
    int64_t samples[2] = {0, sample};
    int32_t ids[2 * S], labels[2 * S];
    struct ghp_batch batch = {.set = set,
                              .samples = samples,
                              .n = 2,
                              .channels = 1,
                              .element_bytes = sizeof(int32_t),
                              .images = ids};

    CHECK_STATUS(ghp_data_images(data, &batch), GHP_OK);
    CHECK_STATUS(ghp_data_labels(data, set, samples, 2, labels), GHP_OK);
    for (int i = 0; i < S; i++) {
        CHECK_EQ(ids[S + i], (at + i) % VOCABULARY);
        CHECK_EQ(labels[S + i], (at + i + 1) % VOCABULARY);
    }
}

static void check_sets(void)
{
    struct ghp_data_request request = request_for("tokens:%s/a");
    struct ghp_data *data = NULL;

    if (!CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) return;
    CHECK(ghp_data_from_files(data));
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TRAIN), WINDOWS);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TEST), 0);
    check_sample(data, GHP_DATA_TRAIN, 8, 8 * S);
    ghp_data_close(data);

    request.split = 0.7;
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TRAIN), 6);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TEST), 3);
    check_sample(data, GHP_DATA_TRAIN, 5, 5 * S);
    check_sample(data, GHP_DATA_TEST, 2, 8 * S);
    ghp_data_close(data);

    request = request_for("tokens:val:%s/b,%s/a");
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TRAIN), WINDOWS);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TEST), WINDOWS);
    check_sample(data, GHP_DATA_TRAIN, 3, 3 * S);
    check_sample(data, GHP_DATA_TEST, 3, 11 + 3 * S);
    ghp_data_close(data);
}

static void check_refused(struct ghp_data_request request, enum ghp_status status,
                          const char *message)
{
    struct ghp_data *data = NULL;

    CHECK_STATUS(ghp_data_open(&request, &data), status);
    CHECK(data == NULL);
    CHECK_MESSAGE(message);
}

static void check_refusals(void)
{
    struct ghp_data_request request = request_for("tokens:val:%s/b,%s/a");

    request.split = 0.5;
    check_refused(request, GHP_ERR_USAGE, "has files that test, so there is nothing to cut");
    check_refused(request_for("tokens:val:%s/b"), GHP_ERR_USAGE, "names no file that trains");
    check_refused(request_for("tokens:"), GHP_ERR_USAGE, "tokens:FILE, bytes:FILE");
    request = request_for("bytes:%s/a"); /* its bytes are below 40 */
    request.shape.vocabulary = 0;
    check_refused(request, GHP_ERR_INPUT, "has tokens, but the model does not take tokens");
    request = request_for("tokens:%s/a");
    request.sample_labels = 1;
    check_refused(request, GHP_ERR_INPUT, "a label for each of 4 positions, but the model takes 1");
    request.sample_labels = S;
    request.classes = VOCABULARY - 1;
    check_refused(request, GHP_ERR_INPUT, "tokens 0 to 39, but its loss has 39 classes");
    request.classes = VOCABULARY;
    request.shape.vocabulary = 36;
    request.classes = 36;
    check_refused(request, GHP_ERR_INPUT, "/a' has the id 36 at byte 72 (token 36)");
    request.shape.vocabulary = VOCABULARY;
    request.classes = VOCABULARY;
    request.global_batch = WINDOWS + 1;
    check_refused(request, GHP_ERR_INPUT, "9 training samples, fewer than the global batch of 10");
}

CHECK_TEST(token_windows)
{
    struct ghp_data_request request;
    struct ghp_data *data = NULL;

    folder = check_folder();
    write_tokens("a", 0);
    write_tokens("b", 11);
    check_sets();
    check_refusals();
    request = request_for("bytes:%s/a");
    if (CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK))
        CHECK_EQ(ghp_data_count(data, GHP_DATA_TRAIN), (2 * TOKENS - 1) / S);
    ghp_data_close(data);
    return check_end();
}
