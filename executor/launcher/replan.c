/* executor/launcher/replan.c - see executor/launcher/replan.h. */
#include "executor/launcher/replan.h"

#include "core/base/log.h"
#include "core/plan/plan_set.h"
#include "core/plan/what_if.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const double nothing = 1.05;    /* times as long: not worth an option */
static const double least_gain = 0.03; /* of a step: predictions are as far off in the mean */

/* ---- what is slow ---- */

struct ghp_slowdown ghp_slowdown_after(struct ghp_slowdown s, const struct ghp_beat_change *change)
{
    bool same_worker = s.worker == change->worker;

    if (change->now_s < change->before_s) return (struct ghp_slowdown){0, 1, 1};
    if (change->cause == GHP_BEAT_SLOW_LINKS) s.links *= change->times;
    if (change->cause != GHP_BEAT_SLOW_WORKER) return s;
    s.factor = same_worker ? s.factor * change->times : change->times;
    s.worker = change->worker;
    return s;
}

const char *ghp_slowdown_say(const struct ghp_slowdown *s, char text[GHP_REPLAN_TEXT_BYTES])
{
    char worker[80] = "", links[80] = "";

    if (s->factor > nothing)
        snprintf(worker, sizeof worker, "worker %d computes %.3g times as long", s->worker,
                 s->factor);
    if (s->links > nothing)
        snprintf(links, sizeof links, "exchanges take %.3g times as long", s->links);
    snprintf(text, GHP_REPLAN_TEXT_BYTES, "%s%s%s", worker,
             worker[0] != '\0' && links[0] != '\0' ? ", " : "", links);
    return text;
}

int ghp_slowdown_sets(const struct ghp_slowdown *s,
                      char sets[GHP_SLOWDOWN_SETS][GHP_SLOWDOWN_SET_BYTES])
{
    int n = 0;

    if (s->factor > nothing) {
        snprintf(sets[n++], GHP_SLOWDOWN_SET_BYTES, "slow.worker=%d", s->worker);
        snprintf(sets[n++], GHP_SLOWDOWN_SET_BYTES, "slow.factor=%.4g", s->factor);
    }
    if (s->links > nothing)
        snprintf(sets[n++], GHP_SLOWDOWN_SET_BYTES, "slow.links=%.4g", s->links);
    return n;
}

/* ---- what another plan gains ---- */

enum ghp_status ghp_replan_predict(const char *path, int workers,
                                   const struct ghp_beat_change *change, double *step_s)
{
    struct ghp_slowdown slowdown = ghp_slowdown_after((struct ghp_slowdown){0, 1, 1}, change);
    char sets[GHP_SLOWDOWN_SETS][GHP_SLOWDOWN_SET_BYTES];
    const char *set[GHP_SLOWDOWN_SETS];
    struct ghp_what_if what_if = {.set = set, .workers = workers};
    struct ghp_prediction predicted = {0};
    struct ghp_lowering lowering;
    struct ghp_plan plan;
    enum ghp_status status;

    what_if.n_set = ghp_slowdown_sets(&slowdown, sets);
    for (int i = 0; i < what_if.n_set; i++)
        set[i] = sets[i];
    GHP_TRY(ghp_plan_load_for(path, workers, &plan));
    GHP_TRY_GOTO(status, ghp_what_if_apply(&what_if, &plan.profile, NULL), done);
    lowering = ghp_plan_lowering(&plan, &plan.profile);
    status = ghp_plan_predict(&lowering, plan.splits, &plan.profile, &predicted);
    *step_s = predicted.step_s;
done:
    ghp_plan_release(&plan);
    return status;
}

bool ghp_replan_pays(double now_s, double step_s, int64_t steps_left, double restart_s)
{
    return now_s - step_s > least_gain * now_s && (now_s - step_s) * (double)steps_left > restart_s;
}

/* ---- making it ---- */

void ghp_replan_begin(struct ghp_replan *r, int workers)
{
    ghp_question_drop(&r->question);
    r->workers = workers;
    r->change = (struct ghp_beat_change){0};
    if (!(r->slowdown.factor > 0)) r->slowdown = (struct ghp_slowdown){0, 1, 1};
}

/* Its answer is its end, which is read without waiting. */
static enum ghp_replan_news start(struct ghp_replan *r)
{
    char sets[GHP_SLOWDOWN_SETS][GHP_SLOWDOWN_SET_BYTES], options[GHP_REPLAN_TEXT_BYTES] = "";
    int n_sets = ghp_slowdown_sets(&r->slowdown, sets);
    char *command = NULL, workers[16];
    size_t used = 0;
    bool asked;

    for (int i = 0; i < n_sets; i++)
        used += (size_t)snprintf(options + used, sizeof options - used, " --set %s", sets[i]);
    snprintf(workers, sizeof workers, "%d", r->workers);
    snprintf(r->path, sizeof r->path, "%s/replanned.%d.json", r->folder, ++r->made);
    if (setenv("GHP_WORKERS", workers, 1) != 0 || setenv("GHP_REPLANNED", r->path, 1) != 0 ||
        asprintf(&command, "%s%s --output \"$GHP_REPLANNED\" >/dev/null", r->command, options) < 0)
        return GHP_REPLAN_FAILED;
    unlink(r->path);
    asked = ghp_question_ask(&r->question, command, INFINITY); /* planning has its own limit */
    free(command);
    return asked ? GHP_REPLAN_NOTHING : GHP_REPLAN_FAILED;
}

static enum ghp_replan_news take(struct ghp_replan *r, const struct ghp_beat_change *change)
{
    bool was_slow = r->slowdown.factor > nothing || r->slowdown.links > nothing;
    char text[GHP_REPLAN_TEXT_BYTES];

    r->change = *change;
    r->slowdown = ghp_slowdown_after(r->slowdown, change);
    if (ghp_slowdown_say(&r->slowdown, text)[0] == '\0')
        return was_slow ? GHP_REPLAN_RECOVERED : GHP_REPLAN_NOTHING;
    if (change->cause == GHP_BEAT_OTHER) return GHP_REPLAN_NOTHING;
    ghp_note("%s: planning again", text);
    return start(r);
}

enum ghp_replan_news ghp_replan_look(struct ghp_replan *r, const struct ghp_beat *beat)
{
    enum ghp_answer answer;

    if (r->command == NULL) return GHP_REPLAN_NOTHING;
    if (r->question.process == 0)
        return beat->change.number > r->change.number ? take(r, &beat->change) : GHP_REPLAN_NOTHING;
    answer = ghp_question_hear(&r->question);
    if (answer == GHP_ANSWER_AWAITED) return GHP_REPLAN_NOTHING;
    return answer == GHP_ANSWER_GIVEN && access(r->path, R_OK) == 0 ? GHP_REPLAN_MADE
                                                                    : GHP_REPLAN_FAILED;
}
