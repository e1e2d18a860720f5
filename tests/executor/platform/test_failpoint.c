/* A failpoint that is set: what is refused, and that it happens to the right worker, at the right time. */
#include "executor/platform/failpoint.h"
#include "tests/check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* What becomes of a process that meets updates three times: a signal that stopped it, or 100 + its exit code. */
static int meet(const char *asked)
{
    int state = 0, met = 0;
    pid_t pid = fork();

    if (pid == 0) {
        if (ghp_failpoint_set(asked) != GHP_OK) _exit(2);
        for (int time = 0; time < 3; time++) {
            ghp_failpoint_reach(GHP_FAILPOINT_FORWARD);
            ghp_failpoint_reach(GHP_FAILPOINT_UPDATE);
        }
        _exit(7);
    }
    if (waitpid(pid, &state, WUNTRACED) != pid) return -1;
    met = WIFSTOPPED(state) ? WSTOPSIG(state) : 100 + WEXITSTATUS(state);
    if (!WIFSTOPPED(state)) return met;
    kill(pid, SIGCONT);
    waitpid(pid, &state, 0);
    CHECK_EQ(WEXITSTATUS(state), 7); /* only once */
    return met;
}

CHECK_TEST(failpoint)
{
    static const char *const refused[] = {"",
                                          "stop",
                                          "stop@",
                                          "kill@update",
                                          "stop@nobody",
                                          "stop@update:",
                                          "stop@update:0",
                                          "stop@update:x",
                                          "stop@update:1:-1",
                                          "stop@update:1:2:3",
                                          "stop@updat"};

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        CHECK_STATUS(ghp_failpoint_set(refused[i]), GHP_ERR_USAGE);
    CHECK_MESSAGE("as in stop@forward:3:0");
    ghp_failpoint_reach(GHP_FAILPOINT_UPDATE); /* nothing was asked for */
    CHECK_EQ(meet("stop@update"), SIGSTOP);
    CHECK_EQ(meet("stop@update:3:0"), SIGSTOP);
    CHECK_EQ(meet("exit@update:2"), 100);
    CHECK_EQ(meet("stop@update:4"), 107);
    CHECK_EQ(meet("stop@update:1:1"), 107); /* another worker */
    CHECK_EQ(meet("stop@backward"), 107);
    return check_end();
}
