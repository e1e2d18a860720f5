/* A resumed run's metrics file: lines of steps that will be trained again and a half-written last line are removed; a
 * file of another kind stays as it is. Numbers are written in full. */
#include "core/base/file.h"
#include "executor/train/metrics.h"
#include "tests/check.h"

#include <math.h>
#include <unistd.h>

static char path[80];

static void check_resume(const char *before, struct ghp_metrics_from from, enum ghp_status expected,
                         const char *after)
{
    struct ghp_metrics *m = NULL;
    char *text = NULL;

    CHECK_STATUS(ghp_file_write_atomic(path, before, strlen(before)), GHP_OK);
    if (!CHECK_STATUS(ghp_metrics_open(path, true, &m), GHP_OK)) return;
    CHECK_STATUS(ghp_metrics_resume(m, from), expected);
    ghp_metrics_close(m);
    CHECK_STATUS(ghp_file_read(path, &text, NULL), GHP_OK);
    CHECK_TEXT(text, after);
    free(text);
}

static void check_append(void)
{
    static const struct ghp_metrics_line line = {.step = 1, .loss = 0.5};
    struct ghp_metrics *m = NULL;
    char *text = NULL;

    CHECK_STATUS(ghp_file_write_atomic(path, "{\"step\":0,\"loss\":1}\n{\"st", 24), GHP_OK);
    CHECK_STATUS(ghp_metrics_open(path, true, &m), GHP_OK);
    CHECK_STATUS(ghp_metrics_resume(m, (struct ghp_metrics_from){.step = 1}), GHP_OK);
    CHECK_STATUS(ghp_metrics_step(m, &line), GHP_OK);
    ghp_metrics_close(m);
    CHECK_STATUS(ghp_file_read(path, &text, NULL), GHP_OK);
    CHECK(text != NULL && strncmp(text, "{\"step\":0,\"loss\":1}\n{\"step\":1,", 30) == 0);
    free(text);
}

/* Numbers read back to the same doubles. */
static void check_digits(void)
{
    static const struct ghp_metrics_line line = {.loss = 1.0 / 3, .gradient_norm = 0.1};
    struct ghp_metrics *m = NULL;
    char *text = NULL;

    CHECK_STATUS(ghp_metrics_open(path, false, &m), GHP_OK);
    CHECK_STATUS(ghp_metrics_step(m, &line), GHP_OK);
    ghp_metrics_close(m);
    CHECK_STATUS(ghp_file_read(path, &text, NULL), GHP_OK);
    CHECK(text != NULL && strstr(text, "\"loss\":0.3333333333333333,") != NULL);
    CHECK(text != NULL && strstr(text, "\"gradient_norm\":0.1}") != NULL);
    free(text);
}

/* JSON has no NaN: null. The line is written, and a resumed run continues with it. */
static void check_not_finite(void)
{
    const struct ghp_metrics_line line = {.loss = NAN, .top1 = NAN, .gradient_norm = INFINITY};
    const struct ghp_evaluation evaluation = {.loss = NAN, .accuracy = 0.5, .perplexity = INFINITY};
    const struct ghp_evaluation of_numbers = {.of_numbers = true, .absolute_error = 0.25};
    struct ghp_metrics *m = NULL;
    char *text = NULL;

    CHECK_STATUS(ghp_metrics_open(path, false, &m), GHP_OK);
    CHECK_STATUS(ghp_metrics_step(m, &line), GHP_OK);
    CHECK_STATUS(ghp_metrics_evaluation(m, 1, 0, &evaluation), GHP_OK);
    CHECK_STATUS(ghp_metrics_evaluation(m, 1, 0, &of_numbers), GHP_OK);
    ghp_metrics_close(m);
    CHECK_STATUS(ghp_file_read(path, &text, NULL), GHP_OK);
    CHECK(text != NULL && strstr(text, "\"test_absolute_error\":0.25,") != NULL);
    CHECK(text != NULL && strstr(text, "\"loss\":null,\"top1\":null,") != NULL);
    CHECK(text != NULL && strstr(text, "\"gradient_norm\":null}") != NULL);
    CHECK(text != NULL && strstr(text, "\"test_loss\":null,\"test_top1\":0.5,") != NULL);
    CHECK(text != NULL && strstr(text, "\"test_perplexity\":null}") != NULL);
    check_resume(text, (struct ghp_metrics_from){.step = 1}, GHP_OK, text);
    free(text);
}

CHECK_TEST(metrics)
{
#define STEP(n) "{\"step\":" n ",\"loss\":1.5}\n"
#define TEST(n) "{\"step\":" n ",\"test_loss\":1.5}\n"
#define FROM(n, owes) ((struct ghp_metrics_from){n, owes})
    snprintf(path, sizeof path, "/tmp/ghp-test-metrics-%ld", (long)getpid());
    check_resume(STEP("0") STEP("1") TEST("2") STEP("2"), FROM(2, false), GHP_OK,
                 STEP("0") STEP("1") TEST("2"));
    check_resume(STEP("0") STEP("1") TEST("2") STEP("2"), FROM(2, true), GHP_OK,
                 STEP("0") STEP("1"));
    check_resume(STEP("0") STEP("1") TEST("2") STEP("2"), FROM(1, false), GHP_OK, STEP("0"));
    check_resume(STEP("0") STEP("1") "{\"step\":2,\"lo", FROM(9, false), GHP_OK,
                 STEP("0") STEP("1"));
    check_resume("", FROM(3, false), GHP_OK, "");
    check_resume(STEP("0") "a letter to a friend\n", FROM(3, false), GHP_ERR_FORMAT,
                 STEP("0") "a letter to a friend\n");
    CHECK_MESSAGE(path);
    check_append();
    check_digits();
    check_not_finite();
    unlink(path);
    return check_end();
}
