/* tests/core/base/test_status.c - failures are made, passed, prefixed and named. */
#include "tests/check.h"

static enum ghp_status fail_with(int n)
{
    return GHP_FAIL(GHP_ERR_INPUT, "cannot use %d; use 4", n);
}

static enum ghp_status pass(int n, bool *went_on)
{
    GHP_TRY(n == 0 ? GHP_OK : fail_with(n));
    *went_on = true;
    return GHP_OK;
}

static enum ghp_status pass_by_goto(int n, bool *released)
{
    enum ghp_status status;

    GHP_TRY_GOTO(status, n == 0 ? GHP_OK : fail_with(n), out);
out:
    *released = true;
    return status;
}

static void test_passing(void)
{
    bool flag = false;

    CHECK_TEXT(ghp_status_message(), "");
    CHECK_STATUS(pass(6, &flag), GHP_ERR_INPUT);
    CHECK(!flag);
    CHECK_TEXT(ghp_status_message(), "cannot use 6; use 4");
    CHECK_STATUS(pass(0, &flag), GHP_OK);
    CHECK(flag);
    flag = false;
    CHECK_STATUS(pass_by_goto(3, &flag), GHP_ERR_INPUT);
    CHECK(flag);
}

static void test_prefix(void)
{
    char longer[4000];

    (void)fail_with(6);
    ghp_status_prefix("layer '%s'", "conv1");
    CHECK_TEXT(ghp_status_message(), "layer 'conv1': cannot use 6; use 4");
    /* a message may be wrapped in itself */
    CHECK_STATUS(GHP_FAIL(GHP_ERR_IO, "%s, too", ghp_status_message()), GHP_ERR_IO);
    CHECK_TEXT(ghp_status_message(), "layer 'conv1': cannot use 6; use 4, too");
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    (void)GHP_FAIL(GHP_ERR_IO, "%s", longer);
    CHECK_EQ(strlen(ghp_status_message()), 2047);
    ghp_status_prefix("%s", longer);
    CHECK_EQ(strlen(ghp_status_message()), 2047);
}

/* A message is one line, whatever a file says. */
static void test_one_line(void)
{
    CHECK_STATUS(GHP_FAIL(GHP_ERR_FORMAT, "unknown key '%s'", "a\x1b[2J\nghp: all is well"),
                 GHP_ERR_FORMAT);
    CHECK_TEXT(ghp_status_message(), "unknown key 'a?[2J?ghp: all is well'");
    ghp_status_prefix("a\nb");
    CHECK_TEXT(ghp_status_message(), "a?b: unknown key 'a?[2J?ghp: all is well'");
}

static void test_names(void)
{
    CHECK_TEXT(ghp_status_name(GHP_OK), "ok");
    CHECK_TEXT(ghp_status_name(GHP_ERR_INFEASIBLE), "no feasible plan");
    CHECK_EQ(ghp_status_exit_code(GHP_OK), 0);
    CHECK_EQ(ghp_status_exit_code(GHP_ERR_USAGE), 2);
    CHECK_EQ(ghp_status_exit_code(GHP_ERR_INFEASIBLE), 3);
    CHECK_EQ(ghp_status_exit_code(GHP_ERR_FORMAT), 1);
}

static void test_alloc(void)
{
    volatile size_t huge = SIZE_MAX / 2; /* volatile: the compiler would object */
    unsigned char *bytes = ghp_alloc(3, 5);
    void *nothing = ghp_alloc(0, 8);

    CHECK(nothing != NULL);
    CHECK(ghp_alloc(huge, 4) == NULL);
    CHECK(bytes != NULL);
    for (int i = 0; i < 15; i++)
        CHECK_EQ(bytes[i], 0);
    CHECK_STATUS(GHP_NO_MEMORY(), GHP_ERR_NO_MEMORY);
    free(nothing);
    free(bytes);
}

CHECK_TEST(status)
{
    test_passing();
    test_prefix();
    test_one_line();
    test_names();
    test_alloc();
    GHP_ASSERT(1 + 1 == 2);
    GHP_ASSERT_EQ(1 + 1, 2);
    return check_end();
}
