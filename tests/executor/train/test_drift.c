/* What workers find when steps have changed: the slow worker, the slow link, neither, nothing. */
#include "executor/train/drift.h"
#include "executor/platform/step_timer.h"
#include "tests/check.h"

/* A worker that computes so long and exchanges so long, before and now; a step is the sum. */
static struct ghp_drift_message message(double computed_s, double exchanged_s, double computes_s,
                                        double exchanges_s)
{
    return (struct ghp_drift_message){
        .before_s = computed_s + exchanged_s,
        .now_s = computes_s + exchanges_s,
        .computing = {computed_s, computes_s, 3, GHP_DRIFT_BACKWARD},
        .exchanging = {exchanged_s, exchanges_s, 4, GHP_DRIFT_REDUCTION}};
}

static void check_findings(void)
{
    struct ghp_drift_message same[] = {message(10, 2, 11, 2), message(10, 2, 11, 2)};
    struct ghp_drift_message worker[] = {message(10, 2, 10, 12), message(11, 1, 21, 1),
                                         message(10, 2, 11, 11)};
    struct ghp_drift_message link[] = {message(10, 4, 10, 20), message(12, 2, 12, 18)};
    struct ghp_drift_message rest[] = {message(10, 2, 10, 2), message(10, 2, 10, 2)};
    struct ghp_drift_message better[] = {message(20, 2, 10, 2), message(10, 12, 10, 2)};
    struct ghp_drift_message alone[] = {message(10, 0, 20, 0)};
    struct ghp_drift_finding f = ghp_drift_find(same, 2);

    CHECK_EQ(f.place, GHP_DRIFT_NONE);
    f = ghp_drift_find(worker, 3);
    CHECK_EQ(f.place, GHP_DRIFT_WORKER);
    CHECK_EQ(f.worker, 1);
    CHECK_NEAR(f.others_times, 1.1, 1e-12);
    CHECK_EQ(f.part.layer, 3);
    f = ghp_drift_find(link, 2);
    CHECK_EQ(f.place, GHP_DRIFT_LINK);
    CHECK_EQ(f.part.layer, 4);
    CHECK_EQ(f.part.term, GHP_DRIFT_REDUCTION);
    rest[0].now_s = rest[1].now_s = 20;
    CHECK_EQ(ghp_drift_find(rest, 2).place, GHP_DRIFT_ELSEWHERE);
    f = ghp_drift_find(better, 2);
    CHECK_EQ(f.place, GHP_DRIFT_ELSEWHERE);
    CHECK(f.now_s < f.before_s);
    f = ghp_drift_find(alone, 1);
    CHECK_EQ(f.place, GHP_DRIFT_WORKER);
    CHECK_NEAR(f.others_times, 0, 0);
    alone[0].before_s = 0; /* nothing was measured yet */
    CHECK_EQ(ghp_drift_find(alone, 1).place, GHP_DRIFT_NONE);
}

/* The means are of the last steps alone. */
static void check_recent(void)
{
    struct ghp_step_timer *timer = NULL;

    CHECK_STATUS(ghp_step_timer_open(1, &timer), GHP_OK);
    CHECK_NEAR(ghp_step_timer_recent_s(timer, 0, 4), 0, 0);
    for (int step = 0; step < 3 * GHP_STEP_TIMER_STEPS; step++) {
        ghp_step_timer_begin(timer);
        ghp_step_timer_record(timer, 0, (struct ghp_instr_timing){1, 1 + step});
        ghp_step_timer_end(timer, 2 * step);
    }
    CHECK_NEAR(ghp_step_timer_recent_s(timer, 0, 3), 3 * GHP_STEP_TIMER_STEPS - 2, 0);
    CHECK_NEAR(ghp_step_timer_recent_s(timer, -1, 3), 2 * (3 * GHP_STEP_TIMER_STEPS - 2), 0);
    ghp_step_timer_skip(timer);
    CHECK_NEAR(ghp_step_timer_recent_s(timer, 0, 2), 3 * GHP_STEP_TIMER_STEPS - 2, 0);
    ghp_step_timer_forget(timer);
    CHECK_NEAR(ghp_step_timer_recent_s(timer, 0, 3), 0, 0);
    ghp_step_timer_close(timer);
}

/* After a change of program nothing is left of the former one's measure, which has its instructions. */
static void check_restart(void)
{
    struct ghp_drift drift = {.before_s = ghp_alloc(3, sizeof(double)),
                              .step_s = 0.5,
                              .looked_s = 40,
                              .looked = 20,
                              .steps = 16,
                              .found = GHP_DRIFT_WORKER};

    ghp_drift_restart(&drift, 35);
    CHECK(drift.before_s == NULL);
    CHECK_NEAR(drift.step_s, 0, 0);
    CHECK_EQ(drift.found, GHP_DRIFT_NONE);
    CHECK_NEAR(drift.looked_s, 40, 0);
    CHECK_EQ(drift.looked, 35);
    ghp_drift_release(&drift);
}

CHECK_TEST(drift)
{
    check_findings();
    check_recent();
    check_restart();
    return check_end();
}
