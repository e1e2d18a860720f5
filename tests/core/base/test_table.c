/* tests/core/base/test_table.c - a table is aligned, with its notes and units. */
#include "core/base/table.h"

#include "tests/check.h"

/* The printed table; freed by the caller. */
static char *printed(struct ghp_table *t)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    CHECK_STATUS(ghp_table_print(t, out), GHP_OK);
    fclose(out);
    return text;
}

static void test_full(void)
{
    struct ghp_table *t = ghp_table_open();
    char *text;

    ghp_table_note(t, "profile %s", "5f2c");
    ghp_table_column(t, "layer", NULL, 'l');
    ghp_table_column(t, "forward", "ms", 'r');
    ghp_table_column(t, "source", "", 'l');
    ghp_table_row(t);
    ghp_table_cell(t, "conv%d", 1);
    ghp_table_cell(t, "%.3f", 1.24);
    ghp_table_cell(t, "measured");
    ghp_table_row(t);
    ghp_table_cell(t, "3\xc3\x97"
                      "3 long name");
    ghp_table_cell(t, "%.3f", 10.0);
    text = printed(t);
    CHECK_TEXT(text, "# profile 5f2c\n"
                     "layer          forward  source\n"
                     "                    ms\n"
                     "conv1            1.240  measured\n"
                     "3\xc3\x97"
                     "3 long name   10.000\n");
    free(text);
    text = printed(t); /* printing changes nothing */
    CHECK_EQ(strlen(text), 15 + 31 + 23 + 33 + 24);
    free(text);
    ghp_table_close(t);
}

static void test_without_units(void)
{
    struct ghp_table *t = ghp_table_open();
    char *text;

    ghp_table_column(t, "n", NULL, 'r');
    ghp_table_row(t);
    ghp_table_cell(t, "%d", 100);
    text = printed(t);
    CHECK_TEXT(text, "  n\n100\n");
    free(text);
    ghp_table_close(t);
}

static void test_without_rows(void)
{
    struct ghp_table *t = ghp_table_open();
    char *text;

    ghp_table_note(t, "nothing was found");
    ghp_table_column(t, "layer", NULL, 'l');
    ghp_table_column(t, "forward", "ms", 'r');
    text = printed(t);
    CHECK_TEXT(text, "# nothing was found\n");
    free(text);
    ghp_table_close(t);
}

static void test_nothing(void)
{
    struct ghp_table *t = ghp_table_open();
    char *text = printed(t);

    CHECK_TEXT(text, "");
    free(text);
    ghp_table_close(t);
    ghp_table_close(NULL);
    ghp_table_cell(NULL, "x");
    CHECK_STATUS(ghp_table_print(NULL, stdout), GHP_ERR_NO_MEMORY);
}

CHECK_TEST(table)
{
    test_full();
    test_without_units();
    test_without_rows();
    test_nothing();
    return check_end();
}
