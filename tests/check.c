/* tests/check.c - see check.h. */
#include "tests/check.h"

int check_count_, check_failures_;

bool check_full(void)
{
    const char *full = getenv("GHP_TEST_FULL");

    return full != NULL && strcmp(full, "1") == 0;
}

int check_cases(int full)
{
    return check_full() || full < 10 ? full : (full + 9) / 10;
}
