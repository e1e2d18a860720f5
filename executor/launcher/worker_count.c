/* executor/launcher/worker_count.c - see executor/launcher/worker_count.h. */
#include "executor/launcher/worker_count.h"

#include "core/base/clock.h"
#include "core/base/log.h"

#include <stdlib.h>
#include <time.h>

static void warn_late(const struct ghp_worker_count *worker_count)
{
    ghp_warn("--workers-left '%s' has not answered for %g s and was ended; give a command that "
             "does, or a larger --ask-limit",
             worker_count->command, worker_count->limit_s);
}

/* The number that an answer begins with. */
static bool parse(const char *text, int *left)
{
    char *end = NULL;
    long value = strtol(text, &end, 10);

    if (end == text || value < 0 || value > 1 << 20) return false;
    *left = (int)value;
    return true;
}

enum ghp_status ghp_worker_count_ask(struct ghp_worker_count *worker_count,
                                     const volatile sig_atomic_t *stop_requests, int *left)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    enum ghp_answer answer = GHP_ANSWER_FAILED;

    *left = -1;
    ghp_worker_count_cancel(worker_count);
    if (worker_count->command == NULL) return GHP_OK;
    if (ghp_question_ask(&worker_count->question, worker_count->command, worker_count->limit_s))
        while ((answer = ghp_question_hear(&worker_count->question)) == GHP_ANSWER_AWAITED &&
               *stop_requests == 0)
            nanosleep(&moment, NULL);
    if (answer == GHP_ANSWER_LATE) warn_late(worker_count);
    ghp_worker_count_cancel(worker_count);
    if (answer == GHP_ANSWER_LATE || answer == GHP_ANSWER_AWAITED) return GHP_OK;
    if (answer == GHP_ANSWER_GIVEN && parse(worker_count->question.text, left)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "--workers-left '%s' prints no number of workers; give a command that does, "
                    "and exits with 0",
                    worker_count->command);
}

void ghp_worker_count_cancel(struct ghp_worker_count *worker_count)
{
    ghp_question_drop(&worker_count->question);
    worker_count->next_s = ghp_now_s() + worker_count->every_s;
}

bool ghp_worker_count_poll(struct ghp_worker_count *worker_count, int *left)
{
    enum ghp_answer answer;

    if (worker_count->command == NULL) return false;
    if (worker_count->question.process == 0 &&
        (ghp_now_s() < worker_count->next_s ||
         !ghp_question_ask(&worker_count->question, worker_count->command, worker_count->limit_s)))
        return false;
    answer = ghp_question_hear(&worker_count->question);
    if (answer == GHP_ANSWER_AWAITED) return false;
    if (answer == GHP_ANSWER_LATE) warn_late(worker_count);
    ghp_worker_count_cancel(worker_count);
    return answer == GHP_ANSWER_GIVEN && parse(worker_count->question.text, left);
}
