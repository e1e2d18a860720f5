/* The transfer thread against a transport of the test's: who begins to wait for a message just while the thread looks
 * at messages is served at the pace of one who waits, not after the long pause that goes before nobody does. */
#include "executor/engine/p2p_thread.h"
#include "core/base/clock.h"
#include "executor/platform/step_timer.h"
#include "tests/check.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    TRIES = 40,
    /* at a message, until it is there: pauses between them have grown to 1.5 ms and more by the last but one */
    LOOKS = 12
};

static int looks;         /* the transfer thread's */
static double from_s;     /* when the waiter was seen to wait */
static double pause_s;    /* from there to the next look */
static atomic_bool held;  /* the thread is in the last look but one */
static pid_t waiter;      /* the thread that waits */
static atomic_int unseen; /* times that the waiter's state could not be read */

/* Whether the waiting thread sleeps: in between it only spins, or waits for a message. */
static bool sleeps(void)
{
    char path[64], text[256] = "";
    const char *state;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)waiter);
    file = fopen(path, "r");
    if (file != NULL) {
        if (fgets(text, sizeof text, file) == NULL) text[0] = '\0';
        fclose(file);
    }
    state = strrchr(text, ')'); /* after the name comes one letter */
    if (state == NULL) {
        unseen++;
        return true;
    }
    return state[2] == 'S';
}

static enum ghp_status post(struct ghp_channel *channel, int slot,
                            const struct ghp_p2p_message *message)
{
    (void)channel;
    CHECK_EQ(slot, 0);
    CHECK(message->receives);
    looks = 0;
    return GHP_OK;
}

static enum ghp_status poll(struct ghp_channel *channel, int slot, bool *done)
{
    (void)channel;
    (void)slot;
    looks++;
    if (looks == LOOKS - 1) {
        held = true;
        while (!sleeps())
            sched_yield();
        from_s = ghp_now_s();
    }
    if (looks == LOOKS) pause_s = ghp_now_s() - from_s;
    *done = looks == LOOKS;
    return GHP_OK;
}

static enum ghp_status done(void *context, int message)
{
    (void)message;
    ++*(int *)context;
    return GHP_OK;
}

static const char *name(void *context, int message)
{
    (void)context;
    (void)message;
    return "a message";
}

CHECK_TEST(p2p_thread)
{
    const struct ghp_p2p_ops ops = {.post = post, .poll = poll};
    const struct ghp_control control = {.size = 1, .watchdog_s = 60};
    struct ghp_channel channel = {.ops = &ops};
    struct ghp_message_slice slice = {.rows = 1, .block_bytes = 4, .stride = 4, .scratch = -1};
    char tensor[4] = {0};
    struct ghp_message message = {
        .receives = true, .element_bytes = 4, .n = 1, .slices = &slice, .tensor = tensor};
    int carried = 0;
    struct ghp_p2p_thread_job job = {.control = &control,
                                     .channel = &channel,
                                     .messages = &message,
                                     .n = 1,
                                     .done = done,
                                     .name = name,
                                     .context = &carried};
    struct ghp_p2p_thread *p2p_thread = NULL;
    double least_s = 1;

    waiter = (pid_t)syscall(SYS_gettid);
    if (!CHECK_STATUS(ghp_p2p_thread_open(&job, &p2p_thread), GHP_OK)) return check_end();
    for (int i = 0; i < TRIES; i++) {
        held = false;
        ghp_p2p_thread_post(p2p_thread, 0);
        while (!held)
            sched_yield();
        CHECK_STATUS(ghp_p2p_thread_wait(p2p_thread, 0), GHP_OK);
        CHECK_EQ(carried, i + 1);
        if (pause_s < least_s) least_s = pause_s;
    }
    ghp_p2p_thread_close(p2p_thread);
    CHECK_EQ(unseen, 0);
    fprintf(stderr, "least pause %.3g ms of %d\n", 1e3 * least_s, TRIES);
    /* a pause has at least its length: 1.5 ms whenever the waiter was not seen, 5 us and what the system adds else */
    CHECK(least_s < 0.5e-3);
    return check_end();
}
