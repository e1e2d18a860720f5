/* executor/launcher/question.c - see executor/launcher/question.h. */
#include "executor/launcher/question.h"

#include "core/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_RUN = 127 };

/* In the child, up to the command. */
static _Noreturn void become(const char *command, int out, pid_t parent)
{
    int null = open("/dev/null", O_RDONLY);

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, (long)SIGKILL, 0L, 0L, 0L);
    if (getppid() == parent && null >= 0 && dup2(null, 0) >= 0 && dup2(out, 1) >= 0)
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(CANNOT_RUN);
}

bool ghp_question_ask(struct ghp_question *q, const char *command, double limit_s)
{
    pid_t self = getpid();
    int ends[2];

    *q = (struct ghp_question){.end_s = ghp_now_s() + limit_s};
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    fflush(NULL);
    q->process = fork();
    if (q->process == 0) become(command, ends[1], self);
    close(ends[1]);
    q->out = ends[0];
    if (q->process > 0 && fcntl(q->out, F_SETFL, O_NONBLOCK) == 0) {
        setpgid(q->process, q->process); /* whichever of the two comes first */
        return true;
    }
    if (q->process < 0) {
        close(q->out);
        q->process = 0;
    }
    ghp_question_drop(q);
    return false;
}

/* Reads what is there. */
static void take(struct ghp_question *q)
{
    char bytes[256];
    ssize_t n;

    while ((n = read(q->out, bytes, sizeof(bytes))) > 0) {
        size_t room = sizeof q->text - 1 - q->n, some = (size_t)n < room ? (size_t)n : room;

        memcpy(q->text + q->n, bytes, some);
        q->n += some;
        q->text[q->n] = '\0';
    }
}

enum ghp_answer ghp_question_hear(struct ghp_question *q)
{
    int ended = 0;
    pid_t pid;

    if (q->process == 0) return GHP_ANSWER_AWAITED;
    pid = waitpid(q->process, &ended, WNOHANG);
    take(q);
    if (pid == 0 || (pid < 0 && errno == EINTR)) {
        if (ghp_now_s() < q->end_s) return GHP_ANSWER_AWAITED;
        ghp_question_drop(q);
        return GHP_ANSWER_LATE;
    }
    close(q->out);
    q->process = 0;
    return pid > 0 && WIFEXITED(ended) && WEXITSTATUS(ended) == 0 ? GHP_ANSWER_GIVEN
                                                                  : GHP_ANSWER_FAILED;
}

void ghp_question_drop(struct ghp_question *q)
{
    if (q->process == 0) return;
    if (waitpid(q->process, NULL, WNOHANG) == 0) { /* else its number may be another's by now */
        kill(-q->process, SIGKILL);
        kill(q->process, SIGKILL); /* if it has no group yet */
        while (waitpid(q->process, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    close(q->out);
    q->process = 0;
}
