/* tests/core/base/test_file.c - files appear whole or not at all; the hash has FNV-1a's published values. */
#include "core/base/file.h"

#include "tests/check.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder;
static char path[128];

/* Files in the test's folder. */
static int count_files(void)
{
    DIR *dir = opendir(folder);
    int n = 0;

    if (dir == NULL) return -1;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void test_round_trip(void)
{
    static const char bytes[] = "one\0two\n";
    char *text = NULL;
    size_t n = 0;

    CHECK_STATUS(ghp_file_write_atomic(path, bytes, sizeof bytes - 1), GHP_OK);
    CHECK_STATUS(ghp_file_read(path, &text, &n), GHP_OK);
    CHECK_EQ(n, sizeof bytes - 1);
    CHECK_EQ(memcmp(text, bytes, sizeof bytes), 0);
    free(text);
    CHECK_STATUS(ghp_file_write_atomic(path, "", 0), GHP_OK); /* replaces */
    CHECK_STATUS(ghp_file_read(path, &text, NULL), GHP_OK);
    CHECK_TEXT(text, "");
    free(text);
    CHECK_EQ(count_files(), 1);
}

static void test_large(void)
{
    size_t n = 3 * 1000 * 1000 + 1, got = 0;
    char *bytes = ghp_alloc(n, 1), *text = NULL;

    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)('a' + i % 26);
    CHECK_STATUS(ghp_file_write_atomic(path, bytes, n), GHP_OK);
    CHECK_STATUS(ghp_file_read(path, &text, &got), GHP_OK);
    CHECK_EQ(got, n);
    CHECK(text != NULL && memcmp(text, bytes, n) == 0);
    free(text);
    free(bytes);
}

static void test_keeps(void)
{
    char link_path[128];
    struct stat about;

    snprintf(link_path, sizeof link_path, "%s/link", folder);
    CHECK_EQ(chmod(path, 0640), 0);
    CHECK_EQ(symlink("file", link_path), 0);
    CHECK_STATUS(ghp_file_write_atomic(link_path, "x", 1), GHP_OK);
    CHECK_EQ(lstat(link_path, &about), 0);
    CHECK(S_ISLNK(about.st_mode));
    CHECK_EQ(stat(path, &about), 0);
    CHECK_EQ(about.st_mode & 0777, 0640);
    CHECK_EQ(about.st_size, 1);
    unlink(link_path);
    CHECK_STATUS(ghp_file_write_atomic("/dev/null", "x", 1), GHP_OK);
}

static void test_refusals(void)
{
    char bad[160], *text = NULL;
    int files = count_files();

    snprintf(bad, sizeof bad, "%s/none/file", folder);
    CHECK_STATUS(ghp_file_write_atomic(bad, "x", 1), GHP_ERR_IO);
    CHECK_MESSAGE("create its folder first");
    CHECK_STATUS(ghp_file_write_atomic(folder, "x", 1), GHP_ERR_IO);
    CHECK_MESSAGE("this is a folder");
    CHECK_STATUS(ghp_file_read(bad, &text, NULL), GHP_ERR_IO);
    CHECK_MESSAGE("check the name");
    CHECK_STATUS(ghp_file_read(folder, &text, NULL), GHP_ERR_IO);
    CHECK(text == NULL);
    if (geteuid() != 0) { /* root may write everywhere */
        CHECK_EQ(chmod(folder, 0500), 0);
        snprintf(bad, sizeof bad, "%s/other", folder);
        CHECK_STATUS(ghp_file_write_atomic(bad, "x", 1), GHP_ERR_IO);
        CHECK_MESSAGE("choose a place that you may write to");
        CHECK_EQ(chmod(folder, 0700), 0);
    }
    CHECK_EQ(count_files(), files);
}

static void test_hash(void)
{
    char text[17];

    /* values published with the algorithm */
    ghp_hash_text(ghp_hash("", 0, GHP_HASH_SEED), text);
    CHECK_TEXT(text, "cbf29ce484222325");
    ghp_hash_text(ghp_hash("a", 1, GHP_HASH_SEED), text);
    CHECK_TEXT(text, "af63dc4c8601ec8c");
    ghp_hash_text(ghp_hash("foobar", 6, GHP_HASH_SEED), text);
    CHECK_TEXT(text, "85944171f73967e8");
    ghp_hash_text(ghp_hash("bar", 3, ghp_hash("foo", 3, GHP_HASH_SEED)), text);
    CHECK_TEXT(text, "85944171f73967e8");
}

CHECK_TEST(file)
{
    folder = check_folder();
    snprintf(path, sizeof path, "%s/file", folder);
    test_round_trip();
    test_large();
    test_keeps();
    test_refusals();
    test_hash();
    return check_end();
}
