/* tests/fuzz/fuzz.c - see fuzz.h. Inputs live in memory (memfd), so that no disk slows the fuzzer down. */
#include "tests/fuzz/fuzz.h"

#include "core/base/file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static char folder[PATH_BYTES / 2];
static pid_t owner;

static void remove_folder(void)
{
    DIR *files = getpid() == owner ? opendir(folder) : NULL;
    struct dirent *file;

    while (files != NULL && (file = readdir(files)) != NULL)
        unlinkat(dirfd(files), file->d_name, 0);
    if (files != NULL) closedir(files);
    rmdir(folder);
}

char *fuzz_path(const char *name, char *out, size_t room)
{
    if (folder[0] == '\0') {
        const char *base = getenv("TMPDIR");

        snprintf(folder, sizeof folder, "%s/ghp-fuzz-XXXXXX", base != NULL ? base : "/tmp");
        GHP_ASSERT(mkdtemp(folder) != NULL);
        owner = getpid();
        atexit(remove_folder);
    }
    snprintf(out, room, "%s/%s", folder, name);
    return out;
}

void fuzz_write(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");

    GHP_ASSERT(file != NULL);
    GHP_ASSERT_EQ(fwrite(bytes, 1, n, file), n);
    GHP_ASSERT_EQ(fclose(file), 0);
}

void fuzz_equal(const char *path, const char *other)
{
    char *a = NULL, *b = NULL;
    size_t n_a = 0, n_b = 0;

    GHP_ASSERT_EQ(ghp_file_read(path, &a, &n_a), GHP_OK);
    GHP_ASSERT_EQ(ghp_file_read(other, &b, &n_b), GHP_OK);
    GHP_ASSERT_EQ(n_a, n_b);
    GHP_ASSERT_EQ(memcmp(a, b, n_a), 0);
    free(a);
    free(b);
}

bool fuzz_try(const unsigned char *bytes, size_t n)
{
    static int fd = -1;
    static char path[64];

    if (fd < 0) {
        fd = memfd_create("input", MFD_CLOEXEC);
        GHP_ASSERT(fd >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    GHP_ASSERT_EQ(ftruncate(fd, 0), 0);
    GHP_ASSERT_EQ(pwrite(fd, bytes, n, 0), n);
    return fuzz_read(path, bytes, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* What libFuzzer calls: refused inputs are worth keeping too. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    (void)fuzz_try(bytes, n);
    return 0;
}
