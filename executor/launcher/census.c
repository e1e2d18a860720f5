/* executor/launcher/census.c - see executor/launcher/census.h. */
#include "executor/launcher/census.h"

#include "core/base/clock.h"
#include "core/base/log.h"

#include <stdlib.h>
#include <time.h>

static void warn_late(const struct ghp_census *census)
{
    ghp_warn("--workers-left '%s' has not answered for %g s and was ended; give a command that "
             "does, or a larger --ask-limit",
             census->command, census->limit_s);
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

enum ghp_status ghp_census_count(struct ghp_census *census,
                                 const volatile sig_atomic_t *stop_requests, int *left)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    enum ghp_answer answer = GHP_ANSWER_FAILED;

    *left = -1;
    ghp_census_forget(census);
    if (census->command == NULL) return GHP_OK;
    if (ghp_question_ask(&census->question, census->command, census->limit_s))
        while ((answer = ghp_question_hear(&census->question)) == GHP_ANSWER_AWAITED &&
               *stop_requests == 0)
            nanosleep(&moment, NULL);
    if (answer == GHP_ANSWER_LATE) warn_late(census);
    ghp_census_forget(census);
    if (answer == GHP_ANSWER_LATE || answer == GHP_ANSWER_AWAITED) return GHP_OK;
    if (answer == GHP_ANSWER_GIVEN && parse(census->question.text, left)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "--workers-left '%s' prints no number of workers; give a command that does, "
                    "and exits with 0",
                    census->command);
}

void ghp_census_forget(struct ghp_census *census)
{
    ghp_question_drop(&census->question);
    census->next_s = ghp_now_s() + census->every_s;
}

bool ghp_census_look(struct ghp_census *census, int *left)
{
    enum ghp_answer answer;

    if (census->command == NULL) return false;
    if (census->question.process == 0 &&
        (ghp_now_s() < census->next_s ||
         !ghp_question_ask(&census->question, census->command, census->limit_s)))
        return false;
    answer = ghp_question_hear(&census->question);
    if (answer == GHP_ANSWER_AWAITED) return false;
    if (answer == GHP_ANSWER_LATE) warn_late(census);
    ghp_census_forget(census);
    return answer == GHP_ANSWER_GIVEN && parse(census->question.text, left);
}
