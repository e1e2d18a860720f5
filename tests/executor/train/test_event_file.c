/* tests/executor/train/test_event_file.c - an event file byte by byte: each record is as long as it says, with the
 * right checksums, and says what was written. Each open makes a file of its own. */
#include "executor/train/crc32c.h"
#include "core/base/file.h"
#include "executor/train/event_file.h"
#include "tests/check.h"

#include <unistd.h>

enum { VERSION_AT = 11 }; /* after the time (9 bytes) and step 0 (2 bytes) */

static uint64_t number(const char *bytes, int n)
{
    uint64_t value = 0;

    for (int i = n - 1; i >= 0; i--)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

/* The next event of n bytes, past its frame; NULL at the end or where the frame is wrong. */
static const char *next(const char **at, const char *end, size_t *n)
{
    const char *event = *at + 12;

    if (end - *at < 16) return NULL;
    *n = number(*at, 8);
    if (!CHECK(*n <= (size_t)(end - event) - 4)) return NULL;
    CHECK_EQ(number(*at + 8, 4), ghp_crc32c_masked(*at, 8));
    CHECK_EQ(number(event + *n, 4), ghp_crc32c_masked(event, *n));
    *at = event + *n + 4;
    return event;
}

/* Whether the event has a scalar of this tag and value: field 1 of a summary, which has 1 and 2. */
static bool has_scalar(const char *event, size_t n, const char *tag, float value)
{
    unsigned char wanted[80];
    size_t length = strlen(tag), m = 0;

    wanted[m++] = 1 << 3 | 2;
    wanted[m++] = (unsigned char)(length + 7);
    wanted[m++] = 1 << 3 | 2;
    wanted[m++] = (unsigned char)length;
    memcpy(wanted + m, tag, length);
    m += length;
    wanted[m++] = 2 << 3 | 5;
    memcpy(wanted + m, &value, sizeof value); /* tests run on little-endian machines */
    m += sizeof value;
    for (size_t i = 0; i + m <= n; i++)
        if (memcmp(event + i, wanted, m) == 0) return true;
    return false;
}

static void check_events(const char *text, size_t bytes)
{
    const char *at = text, *end = text + bytes, *event;
    size_t n = 0;

    event = next(&at, end, &n);
    CHECK(event != NULL && n == VERSION_AT + 15 && event[0] == (1 << 3 | 1) &&
          memcmp(event + VERSION_AT,
                 "\x1a\x0d"
                 "brain.Event:2",
                 15) == 0);
    event = next(&at, end, &n); /* the mark of a session from step 300 on: a varint of two bytes */
    CHECK(event != NULL && n == 16 && memcmp(event + 9, "\x10\xac\x02\x3a\x02\x08\x01", 7) == 0);
    event = next(&at, end, &n);
    CHECK(event != NULL && has_scalar(event, n, "train/loss", 1.5F));
    CHECK(event != NULL && has_scalar(event, n, "train/learning_rate", 0.25F));
    CHECK(event != NULL && has_scalar(event, n, "train/gradient_norm", 3));
    CHECK(event != NULL && has_scalar(event, n, "train/tokens_per_s", 7));
    event = next(&at, end, &n);
    CHECK(event != NULL && has_scalar(event, n, "test/loss", 0.5F));
    CHECK(event != NULL && has_scalar(event, n, "test/top1", 0.75F));
    CHECK(event != NULL && !has_scalar(event, n, "test/perplexity", 0));
    CHECK(at == end);
}

CHECK_TEST(event_file)
{
    static const struct ghp_metrics_line step = {
        .step = 300, .loss = 1.5, .learning_rate = 0.25, .gradient_norm = 3, .tokens_per_s = 7};
    static const struct ghp_evaluation evaluation = {.loss = 0.5, .accuracy = 0.75};
    struct ghp_event_file *first = NULL, *second = NULL;
    char folder[64], path[4096] = "", *text = NULL;
    size_t n = 0;

    (void)argc, (void)argv;
    snprintf(folder, sizeof folder, "/tmp/ghp-test-events-%ld", (long)getpid());
    if (!CHECK_STATUS(ghp_event_file_open(folder, &first), GHP_OK)) return check_end();
    snprintf(path, sizeof path, "%s", ghp_event_file_path(first));
    CHECK_STATUS(ghp_event_file_begin(first, 300), GHP_OK);
    CHECK_STATUS(ghp_event_file_step(first, &step), GHP_OK);
    CHECK_STATUS(ghp_event_file_evaluation(first, 301, &evaluation), GHP_OK);
    CHECK_STATUS(ghp_event_file_open(folder, &second), GHP_OK);
    if (second != NULL) CHECK(strcmp(ghp_event_file_path(second), path) != 0);
    if (second != NULL) unlink(ghp_event_file_path(second));
    ghp_event_file_close(second);
    ghp_event_file_close(first);
    if (CHECK_STATUS(ghp_file_read(path, &text, &n), GHP_OK)) check_events(text, n);
    free(text);
    unlink(path);
    rmdir(folder);
    CHECK_STATUS(ghp_event_file_open("/nowhere/events", &first), GHP_ERR_IO);
    CHECK_MESSAGE("/nowhere/events");
    return check_end();
}
