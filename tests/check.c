/* tests/check.c - see check.h. */
#include "tests/check.h"

#include <ftw.h>
#include <unistd.h>

int check_count_, check_failures_;

bool check_full(void)
{
    const char *full = getenv("GHP_TEST_FULL");

    return full != NULL && strcmp(full, "1") == 0;
}

static char folder[] = "/tmp/ghp-test-XXXXXX";
static pid_t folder_owner;

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *at)
{
    (void)stat;
    (void)kind;
    (void)at;
    return remove(path);
}

/* A child that was forked leaves its parent's folder alone. */
static void remove_folder(void)
{
    if (getpid() == folder_owner) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *check_folder(void)
{
    if (folder_owner == 0) {
        GHP_ASSERT(mkdtemp(folder) != NULL && atexit(remove_folder) == 0);
        folder_owner = getpid();
    }
    return folder;
}

int check_cases(int full)
{
    return check_full() || full < 10 ? full : (full + 9) / 10;
}
