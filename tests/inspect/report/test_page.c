/* tests/inspect/report/test_page.c - no text from a file becomes markup; long names are cut; pages grow. */
#include "inspect/report/page.h"
#include "tests/check.h"

static void check_text(const char *text, const char *expected)
{
    struct ghp_page page = {0};

    ghp_page_text(&page, text);
    CHECK_TEXT(page.text != NULL ? page.text : "", expected);
    ghp_page_release(&page);
}

static void check_name(const char *text, int most, const char *expected)
{
    struct ghp_page page = {0};

    ghp_page_name(&page, text, most);
    CHECK_TEXT(page.text, expected);
    ghp_page_release(&page);
}

static void test_escapes(void)
{
    check_text("<script>alert('a' & \"b\")</script>",
               "&lt;script&gt;alert(&#39;a&#39; &amp; &quot;b&quot;)&lt;/script&gt;");
    check_text("\" onload=\"x", "&quot; onload=&quot;x");
    check_text("a\x01"
               "b\x7f",
               "a\xef\xbf\xbd"
               "b\xef\xbf\xbd");
    check_text("\xc3\xa9", "\xc3\xa9");
    check_text(NULL, "");
}

static void test_names(void)
{
    check_name("conv1", 5, "conv1");
    check_name("conv10", 5, "conv\xe2\x80\xa6");
    check_name("\xc3\xa9\xc3\xa9\xc3\xa9", 3, "\xc3\xa9\xc3\xa9\xc3\xa9");
    check_name("\xc3\xa9\xc3\xa9\xc3\xa9", 2, "\xc3\xa9\xe2\x80\xa6");
    check_name("<<<<", 3, "&lt;&lt;\xe2\x80\xa6"); /* never inside a reference */
}

static void test_quotes(void)
{
    struct ghp_page page = {0};

    ghp_page_quote(&page, "a\"b\\c\nd");
    CHECK_TEXT(page.text, "a\\\"b\\\\c d");
    ghp_page_release(&page);
}

static void test_growth(void)
{
    struct ghp_page page = {0};

    for (int i = 0; i < 10000; i++)
        ghp_page_add(&page, "%04d", i);
    CHECK(!page.failed);
    CHECK_EQ(page.n, 40000);
    CHECK_EQ(strlen(page.text), 40000);
    CHECK(strncmp(page.text + 4 * 1234, "1234", 4) == 0);
    ghp_page_release(&page);
}

CHECK_TEST(page)
{
    test_escapes();
    test_names();
    test_quotes();
    test_growth();
    return check_end();
}
