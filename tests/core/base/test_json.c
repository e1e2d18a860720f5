/* tests/core/base/test_json.c - JSON is read strictly, with line and column, and written so that it reads
 * back alike. */
#include "core/base/json.h"

#include "core/base/file.h"

#include "tests/check.h"

#include <unistd.h>

static const char sample[] = "{\n"
                             "  \"format\": \"ghp.test/1\",\n"
                             "  \"count\": 7, \"rate\": 2.5, \"on\": true,\n"
                             "  \"na\\u006de\": \"\xc3\xa9t\\u00e9\", \"kind\": \"b\",\n"
                             "  \"a.b\": 1, \"a\": {\"b\": 2},\n"
                             "  \"layers\": [{\"kernel\": [3, 3]}, \"x]}\\\"\",\n"
                             "    {\"kernel\": [3, -5], \"flag\": false}]\n"
                             "}\n";

static struct ghp_json doc;
static struct ghp_node root;

/* Editors of some systems begin a file of UTF-8 with a mark. */
static void test_mark(void)
{
    struct ghp_json marked;
    struct ghp_node at;
    int64_t value = 0;

    CHECK_STATUS(ghp_json_parse("\xef\xbb\xbf{\"value\": 3}", "t", NULL, &marked), GHP_OK);
    at = ghp_json_root(&marked);
    CHECK_STATUS(ghp_json_int(&at, "value", 1, 10, &value), GHP_OK);
    CHECK_EQ(value, 3);
    ghp_json_release(&marked);
}

static void test_values(void)
{
    static const char *const kinds[] = {"a", "b", NULL};
    int64_t count = 0;
    double rate = 0.0;
    bool on = false;
    char *name = NULL, buf[8];
    int kind = -1;

    CHECK_STATUS(ghp_json_int(&root, "count", 1, 10, &count), GHP_OK);
    CHECK_EQ(count, 7);
    CHECK_STATUS(ghp_json_real(&root, "rate", 0.0, 10.0, &rate), GHP_OK);
    CHECK_NEAR(rate, 2.5, 0.0);
    CHECK_STATUS(ghp_json_real(&root, "count", 0.0, 10.0, &rate), GHP_OK);
    CHECK_NEAR(rate, 7.0, 0.0);
    CHECK_STATUS(ghp_json_bool(&root, "on", &on), GHP_OK);
    CHECK(on);
    CHECK_STATUS(ghp_json_text(&root, "name", &name), GHP_OK);
    CHECK_TEXT(name, "\xc3\xa9t\xc3\xa9");
    free(name);
    CHECK_STATUS(ghp_json_text_n(&root, "name", buf, 6), GHP_OK);
    CHECK_STATUS(ghp_json_text_n(&root, "name", buf, 5), GHP_ERR_INPUT);
    CHECK_STATUS(ghp_json_choice(&root, "kind", kinds, &kind), GHP_OK);
    CHECK_EQ(kind, 1);
    CHECK_STATUS(ghp_json_opt_int(&root, "none", 1, 2, &count), GHP_OK);
    CHECK_EQ(count, 7);
    CHECK_STATUS(ghp_json_opt_int(&root, "count", 1, 2, &count), GHP_ERR_INPUT);
    CHECK_EQ(count, 7);
}

static void test_places(void)
{
    struct ghp_node layers, layer, kernel, item;
    int64_t value = 0;
    size_t n = 0;

    CHECK_STATUS(ghp_json_array(&root, "layers", &layers, &n), GHP_OK);
    CHECK_EQ(n, 3);
    CHECK_STATUS(ghp_json_item(&layers, 2, &layer), GHP_OK);
    CHECK_STATUS(ghp_json_array(&layer, "kernel", &kernel, &n), GHP_OK);
    CHECK_STATUS(ghp_json_item(&kernel, 1, &item), GHP_OK);
    CHECK_TEXT(item.where, "layers[2].kernel[1]");
    CHECK_STATUS(ghp_json_fail(&item, GHP_ERR_INPUT, "%d is negative; use 5", -5), GHP_ERR_INPUT);
    CHECK_TEXT(ghp_status_message(), "t.json:7:20: 'layers[2].kernel[1]': -5 is negative; use 5");
    CHECK_STATUS(ghp_json_int(&layer, "flag", 0, 1, &value), GHP_ERR_FORMAT);
    CHECK_TEXT(ghp_status_message(),
               "t.json:7:33: 'layers[2].flag': this is true or false; write a whole number");
    CHECK_STATUS(ghp_json_int(&root, "count", 8, 9, &value), GHP_ERR_INPUT);
    CHECK_TEXT(ghp_status_message(),
               "t.json:3:12: 'count': 7 is out of range; use a whole number from 8 to 9");
    CHECK_STATUS(ghp_json_int(&root, "a.b", 8, 9, &value), GHP_ERR_INPUT);
    CHECK_MESSAGE("t.json:5:10: ");
    CHECK_STATUS(ghp_json_get(&root, "a", &item), GHP_OK);
    CHECK_STATUS(ghp_json_int(&item, "c", 8, 9, &value), GHP_ERR_FORMAT);
    CHECK_TEXT(ghp_status_message(), "t.json:5:18: 'a': key 'c' is missing; add it");
    CHECK_STATUS(ghp_json_item(&layers, 3, &item), GHP_ERR_FORMAT);
    CHECK_STATUS(ghp_json_item(&root, 0, &item), GHP_ERR_FORMAT);
    CHECK_STATUS(ghp_json_item(&layers, 1, &layers), GHP_OK); /* in place */
    CHECK_TEXT(layers.where, "layers[1]");
}

static void test_deep(void)
{
    struct ghp_json deep;
    struct ghp_node at;
    char text[601], *c = text;

    for (int i = 0; i < 300; i++)
        *c++ = '[';
    for (int i = 0; i < 300; i++)
        *c++ = ']';
    *c = '\0';
    CHECK_STATUS(ghp_json_parse(text, "deep", NULL, &deep), GHP_OK);
    at = ghp_json_root(&deep);
    for (int i = 0; i < 299; i++)
        CHECK_STATUS(ghp_json_item(&at, 0, &at), GHP_OK);
    CHECK_STATUS(ghp_json_fail(&at, GHP_ERR_INPUT, "x"), GHP_ERR_INPUT); /* `where` is cut */
    CHECK_MESSAGE("deep:1:");
    ghp_json_release(&deep);
}

/* Keys alike as far as `where` goes: an error at the second is not put at the first. */
static void test_long_keys(void)
{
    char text[1200], first[256], second[400];
    struct ghp_json both;
    struct ghp_node at;

    memset(first, 'k', sizeof first);
    memset(second, 'k', sizeof second);
    first[255] = second[399] = '\0';
    snprintf(text, sizeof text, "{\n\"%s\": 1,\n\"%s\": {\"n\": 2}}", first, second);
    CHECK_STATUS(ghp_json_parse(text, "t", NULL, &both), GHP_OK);
    at = ghp_json_root(&both);
    CHECK_STATUS(ghp_json_get(&at, second, &at), GHP_OK);
    CHECK_STATUS(ghp_json_get(&at, "n", &at), GHP_OK);
    CHECK_STATUS(ghp_json_fail(&at, GHP_ERR_INPUT, "x"), GHP_ERR_INPUT);
    CHECK_MESSAGE("t:1:1: "); /* the part of the place that fits: the document */
    ghp_json_release(&both);
}

static void test_keys(void)
{
    static const char *const all[] = {"format", "count", "rate", "on",     "name", "kind",
                                      "a.b",    "a",     "none", "layers", NULL};
    static const char *const few[] = {"format", "count", "rates", NULL};
    static const char *const one[] = {"format", "count", NULL};

    CHECK_STATUS(ghp_json_only_keys(&root, all), GHP_OK);
    CHECK_STATUS(ghp_json_only_keys(&root, few), GHP_ERR_FORMAT);
    CHECK_TEXT(ghp_status_message(),
               "t.json:3:23: 'rate': unknown key 'rate'; did you mean 'rates'?");
    CHECK_STATUS(ghp_json_only_keys(&root, one), GHP_ERR_FORMAT);
    CHECK_MESSAGE("use one of format, count");
}

static void test_refusals(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "t:1:1: "},
        {"{\n \"a\": 1,\n", "t:3:1: "},
        {"{\"a\": 1", "cut short"},
        {"{\"a\": 1, \"a\": 2}", "keep one of the two keys"},
        {"{\"a\": 1} x", "remove the text"},
        {"{\"a\": 1e999}", "double or int64"},
        {"{\"a\": 99999999999999999999}", "double or int64"},
        {"{\"a\": NaN}", "t:1:"},
        {"{'a': 1}", "correct the JSON"},
        {"[1]", "t:1:1: the document is not an object"},
        {"{\"a\": 1}", "key 'format' is missing"},
        {"{\"format\": \"ghp.run/2\"}", "t:1:12: 'format': the format is 'ghp.run/2'; give a file "
                                        "of format 'ghp.plan/2'"},
        {"{\"format\": \"ghp.plan/7\"}", "t:1:12: 'format': the format is 'ghp.plan/7', but this "
                                         "version of ghp reads 'ghp.plan/2'; "
                                         "make the file again with the tool that wrote it"},
        {"{\"format\": 1}", "not a text"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ghp_json broken;

        CHECK_STATUS(ghp_json_parse(bad[i].text, "t", "ghp.plan/2", &broken), GHP_ERR_FORMAT);
        CHECK_MESSAGE(bad[i].message);
        CHECK(broken.root == NULL);
    }
}

static void test_saving(void)
{
    char path[] = "/tmp/ghp-test-json-XXXXXX", *text = NULL;
    json_t *value = json_pack("{s:f, s:i, s:[i,i]}", "z", 0.1, "a", 3, "m", 1, 2);
    struct ghp_json loaded;
    struct ghp_node top;
    double z = 0.0;
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    close(fd);
    CHECK_STATUS(ghp_json_text_of(value, &text), GHP_OK);
    CHECK_TEXT(text, "{\n \"z\": 0.10000000000000001,\n \"a\": 3,\n \"m\": [\n  1,\n  2\n ]\n}\n");
    free(text);
    CHECK_STATUS(ghp_json_save(path, value), GHP_OK);
    CHECK_STATUS(ghp_json_load(path, NULL, &loaded), GHP_OK);
    top = ghp_json_root(&loaded);
    CHECK_STATUS(ghp_json_real(&top, "z", 0.0, 1.0, &z), GHP_OK);
    CHECK_NEAR(z, 0.1, 0.0);
    CHECK_STATUS(ghp_json_save("/nonexistent/x.json", value), GHP_ERR_IO);
    CHECK_STATUS(ghp_json_save(path, NULL), GHP_ERR_INTERNAL);
    ghp_json_release(&loaded);
    ghp_json_release(&loaded);
    ghp_json_release(NULL);
    CHECK_STATUS(ghp_json_load("/nonexistent/x.json", NULL, &loaded), GHP_ERR_IO);
    /* Jansson takes a zero byte after a number for a space: the search for an error's line then never ended */
    CHECK_STATUS(ghp_file_write_atomic(path, "{\"a\": 1\0}", 9), GHP_OK);
    CHECK_STATUS(ghp_json_load(path, NULL, &loaded), GHP_ERR_FORMAT);
    CHECK_MESSAGE("zero byte");
    json_decref(value);
    unlink(path);
}

CHECK_TEST(json)
{
    CHECK_STATUS(ghp_json_parse(sample, "t.json", "ghp.test/1", &doc), GHP_OK);
    root = ghp_json_root(&doc);
    test_mark();
    test_values();
    test_places();
    test_deep();
    test_long_keys();
    test_keys();
    test_refusals();
    test_saving();
    ghp_json_release(&doc);
    return check_end();
}
