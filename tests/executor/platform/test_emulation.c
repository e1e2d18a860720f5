/* Emulated machines: what is read and said of them, that computing keeps its pace, and when messages pass a port. */
#include "core/base/clock.h"
#include "executor/engine/pace.h"
#include "executor/platform/emulation.h"
#include "executor/transport/mpi/port.h"
#include "tests/check.h"

static void check_texts(void)
{
    static const char *const wrong[] = {"",
                                        "step",
                                        "step=",
                                        "step=40min",
                                        "port=1e9s",
                                        "step=-1",
                                        "slow=0:2",
                                        "step=1,slow=0",
                                        "step=1,slow=0:2,slow=0:3",
                                        "step=1,,",
                                        "speed=2",
                                        "latency=0",
                                        "step=1,port=1e400"};
    char text[GHP_EMULATION_TEXT_BYTES];
    struct ghp_emulation e;

    if (CHECK_STATUS(
            ghp_emulation_parse("step=40ms,port=1.25e8,latency=20us,slow=3:2,slow=5:1.5", &e),
            GHP_OK)) {
        CHECK_NEAR(e.step_s, 0.04, 1e-15);
        CHECK_NEAR(e.port_Bps, 1.25e8, 0);
        CHECK_NEAR(e.latency_s, 20e-6, 1e-18);
        CHECK_NEAR(ghp_stragglers_factor(&e.slow, 5), 1.5, 0);
        CHECK(strcmp(ghp_emulation_format(&e, text),
                     "step=0.04s,port=1.25e+08,latency=2e-05s,slow=3:2,slow=5:1.5") == 0);
    }
    CHECK_STATUS(ghp_emulation_parse("latency=1ms", &e), GHP_OK);
    CHECK(ghp_emulation_delays(&e));
    CHECK_STATUS(ghp_emulation_parse("step=2", &e), GHP_OK);
    CHECK(!ghp_emulation_delays(&e));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_STATUS(ghp_emulation_parse(wrong[i], &e), GHP_ERR_USAGE);
}

static void sleep_for(double seconds)
{
    ghp_emulation_sleep_until(ghp_now_s() + seconds);
}

/* Four parts of 5 ms, the second without end: what it takes too long is taken off the next ones. A sleep is never too
 * short; how long it may be depends on who else computes. */
static void check_pace(void)
{
    struct ghp_instr instrs[6] = {{.kind = GHP_INSTR_LOAD},
                                  {.kind = GHP_INSTR_ACCUMULATE},
                                  {.kind = GHP_INSTR_WAIT},
                                  {.kind = GHP_INSTR_ACCUMULATE},
                                  {.kind = GHP_INSTR_ALL_REDUCE, .stream = GHP_STREAM_COMM},
                                  {.kind = GHP_INSTR_ACCUMULATE}};
    const struct ghp_program program = {.instrs = instrs, .n_instrs = 6};
    struct ghp_pace *pace;
    double begin_s, behind_s, second_s;

    if (!CHECK_STATUS(ghp_pace_open(&program, NULL, 20e-3, &pace), GHP_OK)) return;
    ghp_pace_step(pace);
    begin_s = ghp_now_s();
    for (int i = 0; i < 6; i++) {
        ghp_pace_begin(pace, i);
        if (i == 1) {
            second_s = ghp_now_s();
            sleep_for(8e-3);
            ghp_pace_end(pace, i);
            second_s = ghp_now_s() - second_s;
            behind_s = ghp_pace_behind_s(pace);
            CHECK(behind_s >= 3e-3 - 1e-6 && behind_s <= second_s + 1e-3);
            continue;
        }
        ghp_pace_end(pace, i);
    }
    CHECK(ghp_now_s() - begin_s >= 20e-3 - 1e-6);
    ghp_pace_step(pace);
    ghp_pace_begin(pace, 5);
    sleep_for(10e-3);
    ghp_pace_end(pace, 5);
    CHECK(ghp_pace_behind_s(pace) >= 5e-3 - 1e-6);
    ghp_pace_step(pace); /* that was too late to make up for */
    CHECK_NEAR(ghp_pace_behind_s(pace), 0, 0);
    CHECK(ghp_pace_late_steps(pace) >= 1);
    ghp_pace_close(pace);
    ghp_pace_step(NULL);
    ghp_pace_begin(NULL, 0);
    ghp_pace_end(NULL, 0);
}

/* 1000 bytes/s and 0.5 s: messages leave one after the other, and a port takes two that come together in turn. */
static void check_port(void)
{
    static const struct ghp_emulation link = {.port_Bps = 1000, .latency_s = 0.5};
    struct ghp_mpi_port from, to;
    double first_s, second_s, now_s = ghp_now_s();

    ghp_mpi_port_init(&from, &link);
    ghp_mpi_port_init(&to, &link);
    first_s = ghp_mpi_port_leave(&from, 2000);
    second_s = ghp_mpi_port_leave(&from, 1000);
    CHECK(first_s >= now_s + 2);
    CHECK_NEAR(second_s, first_s + 1, 1e-9);
    CHECK_NEAR(ghp_mpi_port_arrive(&to, 2000, first_s), first_s + 0.5, 1e-9);
    CHECK_NEAR(ghp_mpi_port_arrive(&to, 1000, second_s), second_s + 0.5, 1e-9);
    CHECK_NEAR(ghp_mpi_port_arrive(&to, 1000, second_s), second_s + 1.5, 1e-9);
    CHECK_NEAR(ghp_mpi_port_arrive(&to, 1000, second_s + 10), second_s + 10.5, 1e-9);
}

CHECK_TEST(emulation)
{
    (void)argc;
    (void)argv;
    check_texts();
    check_pace();
    check_port();
    return check_end();
}
