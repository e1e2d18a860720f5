/* tests/executor/opbench/test_speed_probe.c - the two jobs take their time on every backend, and ratios are what they
 * say. */
#include "executor/opbench/speed_probe.h"
#include "tests/check.h"

static void check_backend(const struct ghp_backend_ops *ops, int element_bytes)
{
    struct ghp_backend_config config = {.element_bytes = element_bytes, .threads = 1};
    struct ghp_backend *backend = NULL;
    struct ghp_speed_prober *prober = NULL;
    struct ghp_speed_probe speed_probe = {0};

    if (!ops->has_precision(element_bytes)) return;
    CHECK_STATUS(ops->open(&config, &backend), GHP_OK);
    CHECK_STATUS(ghp_speed_prober_open(ops, backend, &prober), GHP_OK);
    CHECK_STATUS(ghp_speed_prober_time(prober, &speed_probe), GHP_OK);
    CHECK(speed_probe.compute_s > 0 && speed_probe.memory_s > 0);
    ghp_speed_prober_close(prober);
    ghp_speed_prober_close(NULL);
    ops->close(backend);
}

CHECK_TEST(speed_probe)
{
    struct ghp_speed_probe now = {3, 4}, profiled = {2, 0};

    check_backend(&ghp_backend_reference, 4);
    check_backend(&ghp_backend_reference, 8);
    check_backend(&ghp_backend_onednn, 4);
    CHECK_NEAR(ghp_speed_probe_ratio(&now, &profiled).compute_s, 1.5, 0);
    CHECK_NEAR(ghp_speed_probe_ratio(&now, &profiled).memory_s, 0, 0);
    return check_end();
}
