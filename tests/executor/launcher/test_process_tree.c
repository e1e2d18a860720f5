/* tests/executor/launcher/test_process_tree.c - a child's child whose parent has died is found and killed, though it
 * left its process group; a process of somebody else is not. */
#include "executor/launcher/process_tree.h"

#include "tests/check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void sleep_on(void)
{
    setpgid(0, 0);
    for (;;)
        pause();
}

/* A child that has a child and, where it is to, dies; the grandchild's number. */
static pid_t start(bool dies)
{
    pid_t grandchild = 0, child;
    int ends[2];

    CHECK(pipe(ends) == 0);
    child = fork();
    if (child == 0) {
        pid_t pid = fork();

        if (pid == 0) sleep_on();
        if (write(ends[1], &pid, sizeof pid) != (ssize_t)sizeof pid || dies) _exit(0);
        sleep_on();
    }
    CHECK(child > 0 && read(ends[0], &grandchild, sizeof grandchild) == (ssize_t)sizeof(pid_t));
    if (dies) CHECK(waitpid(child, NULL, 0) == child);
    close(ends[0]);
    close(ends[1]);
    return grandchild;
}

CHECK_TEST(process_tree)
{
    pid_t orphan, other;

    (void)argc, (void)argv;
    CHECK_STATUS(ghp_process_tree_adopt(), GHP_OK);
    orphan = start(true);
    other = start(false);
    CHECK(kill(orphan, 0) == 0 && kill(other, 0) == 0);
    CHECK_EQ(ghp_process_tree_kill(), 0);
    CHECK(kill(orphan, 0) != 0 && kill(other, 0) != 0); /* not even buried ones are left */
    CHECK(kill(getppid(), 0) == 0);
    CHECK_EQ(ghp_process_tree_kill(), 0);
    return check_end();
}
