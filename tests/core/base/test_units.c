/* tests/core/base/test_units.c - quantities as text and back, and the small texts of messages. */
#include "core/base/text.h"
#include "core/base/units.h"

#include "tests/check.h"

static char out[64];

static void test_texts(void)
{
    CHECK_TEXT(ghp_bytes_format(0.0, out, sizeof out), "0 B");
    CHECK_TEXT(ghp_bytes_format(512.0, out, sizeof out), "512 B");
    CHECK_TEXT(ghp_bytes_format(1024.0, out, sizeof out), "1.00 KiB");
    CHECK_TEXT(ghp_bytes_format(12.5 * 1048576.0, out, sizeof out), "12.5 MiB");
    CHECK_TEXT(ghp_bytes_format(3.0 * 1073741824.0, out, sizeof out), "3.00 GiB");
    CHECK_TEXT(ghp_bytes_format(1048575.9, out, sizeof out), "1.00 MiB");
    CHECK_TEXT(ghp_seconds_format(0.0, out, sizeof out), "0 s");
    CHECK_TEXT(ghp_seconds_format(1.24e-3, out, sizeof out), "1.24 ms");
    CHECK_TEXT(ghp_seconds_format(38e-6, out, sizeof out), "38.0 us");
    CHECK_TEXT(ghp_seconds_format(2.5, out, sizeof out), "2.50 s");
    CHECK_TEXT(ghp_seconds_format(185.0, out, sizeof out), "3 min 05 s");
    CHECK_TEXT(ghp_seconds_format(7800.0, out, sizeof out), "2 h 10 min");
    CHECK_TEXT(ghp_count_format(17.0, out, sizeof out), "17");
    CHECK_TEXT(ghp_count_format(60600.0, out, sizeof out), "60.6 k");
    CHECK_TEXT(ghp_count_format(132.9e6, out, sizeof out), "132.9 M");
    CHECK_TEXT(ghp_count_format(999999.0, out, sizeof out), "1.0 M");
}

static void test_parse(void)
{
    int64_t bytes = -1;

    CHECK_STATUS(ghp_bytes_parse("4GiB", &bytes), GHP_OK);
    CHECK_EQ(bytes, INT64_C(4) << 30);
    CHECK_STATUS(ghp_bytes_parse("1.5 KiB", &bytes), GHP_OK);
    CHECK_EQ(bytes, 1536);
    CHECK_STATUS(ghp_bytes_parse("1000000", &bytes), GHP_OK);
    CHECK_EQ(bytes, 1000000);
    CHECK_STATUS(ghp_bytes_parse("9007199254740993", &bytes), GHP_OK);
    CHECK_EQ(bytes, INT64_C(9007199254740993));
    CHECK_STATUS(ghp_bytes_parse("2MB", &bytes), GHP_OK);
    CHECK_EQ(bytes, 2000000);
}

static void test_refusals(void)
{
    static const char *const bad[] = {"",     "GiB", "-1",  "4 gallons", "4GiBs",
                                      "0x10", "nan", "inf", " 4",        "1e400"};
    int64_t bytes = 77;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_STATUS(ghp_bytes_parse(bad[i], &bytes), GHP_ERR_USAGE);
    CHECK_STATUS(ghp_bytes_parse("8388608TiB", &bytes), GHP_ERR_USAGE);
    CHECK_EQ(bytes, 77);
}

static void test_messages(void)
{
    static const char *const names[] = {"model", "memory", "batch", NULL};

    CHECK_TEXT(ghp_text_number(0.1, out, sizeof out), "0.1");
    CHECK_TEXT(ghp_text_number(1e20, out, sizeof out), "1e+20");
    CHECK_TEXT(ghp_text_number(1234567.0, out, sizeof out), "1234567");
    CHECK_NEAR(strtod(ghp_text_number(1.0 / 3.0, out, sizeof out), NULL), 1.0 / 3.0, 0.0);
    CHECK_TEXT(ghp_text_range(1.0, 8.0, out, sizeof out), "from 1 to 8");
    CHECK_TEXT(ghp_text_range(1.0, (double)INT64_MAX, out, sizeof out), "of at least 1");
    CHECK_TEXT(ghp_text_range((double)INT64_MIN, 8.0, out, sizeof out), "of at most 8");
    CHECK_TEXT(ghp_text_range(-INFINITY, INFINITY, out, sizeof out), "");
    CHECK_TEXT(ghp_text_nearest("modle", names), "model");
    CHECK_TEXT(ghp_text_nearest("bach", names), "batch");
    CHECK(ghp_text_nearest("zzzzz", names) == NULL);
    CHECK_TEXT(ghp_text_join(names, out, sizeof out), "model, memory, batch");
    CHECK_TEXT(ghp_text_join(names, out, 12), "model, m...");
}

/* What a terminal takes for a command, or shows as another line, is not printed. */
static void test_printable(void)
{
    static const struct {
        const char *text, *safe;
    } cases[] = {{"conv1 + fc", "conv1 + fc"},
                 {"a\x1b[2Jb\nc\td\x7f", "a?[2Jb?c?d?"},
                 {"na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80",
                  "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80"},
                 {"\xc2\x9b"
                  "31m \xc2\xa0",
                  "??31m \xc2\xa0"}, /* C1: an escape in two bytes */
                 {"\x9b"
                  "31m",
                  "?31m"},
                 {"cut \xe2\x82", "cut ??"},
                 {"\xe2\x1b[0m", "??[0m"},
                 {"\xff\xc0\xaf", "???"},
                 {"", ""}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(out, sizeof out, "%s", cases[i].text);
        ghp_text_printable(out);
        CHECK_TEXT(out, cases[i].safe);
    }
}

static void check_ends(void)
{
    CHECK(ghp_text_begins("onnx::Conv_1", "onnx::") && ghp_text_begins("a", "a"));
    CHECK(ghp_text_begins("a", "") && !ghp_text_begins("on", "onnx::") &&
          !ghp_text_begins("", "a"));
    CHECK(ghp_text_ends("fc.weight", ".weight") && ghp_text_ends("a", "a") &&
          ghp_text_ends("a", ""));
    CHECK(!ghp_text_ends("weight", ".weight") && !ghp_text_ends("fc.weights", ".weight"));
}

CHECK_TEST(units)
{
    test_printable();
    test_texts();
    test_parse();
    test_refusals();
    test_messages();
    check_ends();
    return check_end();
}
