/* tests/fuzz/fuzz_metrics.c - the metrics file of a resumed run: what is left of an accepted one is the beginning of
 * what was there, and is left as it is when resumed once more. */
#include "core/base/file.h"
#include "executor/train/metrics.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* Returns   whether it is accepted; its bytes then, which the caller frees */
static bool resume(const char *path, bool owes_evaluation, char **left, size_t *n)
{
    struct ghp_metrics *metrics = NULL;
    enum ghp_status status;

    GHP_ASSERT_EQ(ghp_metrics_open(path, true, &metrics), GHP_OK);
    status = ghp_metrics_resume(metrics,
                                (struct ghp_metrics_from){2, .owes_evaluation = owes_evaluation});
    ghp_metrics_close(metrics);
    if (status != GHP_OK) return false;
    GHP_ASSERT_EQ(ghp_file_read(path, left, n), GHP_OK);
    return true;
}

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    char own[512], *once = NULL, *twice = NULL;
    size_t n_once, n_twice;
    bool owes_evaluation = n % 2 == 1;

    (void)path;
    fuzz_write(fuzz_path("metrics", own, sizeof own), bytes, n);
    if (!resume(own, owes_evaluation, &once, &n_once)) return false;
    GHP_ASSERT(n_once <= n && memcmp(once, bytes, n_once) == 0);
    GHP_ASSERT(resume(own, owes_evaluation, &twice, &n_twice));
    GHP_ASSERT(n_once == n_twice && memcmp(once, twice, n_once) == 0);
    free(once);
    free(twice);
    return true;
}
