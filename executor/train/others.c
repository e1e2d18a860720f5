/* executor/train/others.c - see train/others.h. */
#include "executor/train/others.h"

#include "executor/mixing/mix_server.h"
#include "executor/platform/backoff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The others may be in the middle of a step. */
static const struct ghp_backoff backoff = {20e-6, 20000, 500000, 4};

/* So often a worker comes to nothing more than its end. */
static const int64_t last_meeting = INT64_MAX;

struct peer {
    struct ghp_other_word known, heard, said; /* heard, said: of the messages under way */
    bool hears, says;                         /* a message is under way */
};

struct ghp_others {
    struct ghp_control *control;
    struct ghp_channel *channel;
    int n, rank;
    bool meets;      /* it waits for all to be here */
    struct peer *of; /* known: of the own one what it says next */
};

static enum ghp_status post(struct ghp_others *p, int i, bool receives)
{
    struct peer *peer = &p->of[i];
    const struct ghp_p2p_message message = {.data = receives ? &peer->heard : &peer->said,
                                            .bytes = sizeof(struct ghp_other_word),
                                            .peer = i,
                                            .tag = GHP_MIX_TAG_PEERS,
                                            .receives = receives};

    if (receives)
        peer->hears = true;
    else
        peer->says = true;
    return p->channel->ops->post(p->channel, 2 * i + receives, &message);
}

enum ghp_status ghp_others_open(const struct ghp_exec_context *exec, int workers,
                                struct ghp_others **peers)
{
    struct ghp_p2p *p2p = exec->transport->p2p;
    struct ghp_others *p = ghp_alloc(1, sizeof *p);
    enum ghp_status status = GHP_OK;

    *peers = NULL;
    if (p == NULL) return GHP_NO_MEMORY();
    *p = (struct ghp_others){.control = exec->transport->control,
                             .n = workers,
                             .rank = exec->transport->control->rank,
                             .of = ghp_alloc((size_t)workers, sizeof *p->of)};
    if (p->of == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    GHP_TRY_GOTO(status, p2p->ops->open(p2p, 2 * workers, &p->channel), fail);
    for (int i = 0; i < workers; i++)
        if (i != p->rank) GHP_TRY_GOTO(status, post(p, i, true), fail);
    *peers = p;
    return GHP_OK;
fail:
    free(p->of);
    free(p);
    return status;
}

struct ghp_other_word *ghp_others_mine(struct ghp_others *p)
{
    return &p->of[p->rank].known;
}

const struct ghp_other_word *ghp_others_of(const struct ghp_others *p, int worker)
{
    return &p->of[worker].known;
}

struct ghp_other_word ghp_others_all(const struct ghp_others *p)
{
    struct ghp_other_word all = {0};

    for (int i = 0; i < p->n; i++) {
        const struct ghp_other_word *one = &p->of[i].known;

        all.steps += one->steps;
        all.results += one->results;
        all.loss += one->loss;
        all.correct += one->correct;
        all.samples += one->samples;
        if (one->signal > all.signal) all.signal = one->signal;
        if (one->ends_after > all.ends_after) all.ends_after = one->ends_after;
    }
    return all;
}

/* Messages that have come or gone; what is said is the newest, and goes when the last one has gone. */
static enum ghp_status look(struct ghp_others *p, int i)
{
    struct peer *peer = &p->of[i];
    const struct ghp_other_word *mine = &p->of[p->rank].known;
    bool done = false;

    if (peer->says) {
        GHP_TRY(p->channel->ops->poll(p->channel, 2 * i, &done));
        peer->says = !done;
    }
    /* who is here has said all; what he says next is of the time after */
    while (peer->hears && !(p->meets && peer->known.meetings >= mine->meetings)) {
        GHP_TRY(p->channel->ops->poll(p->channel, 2 * i + 1, &done));
        if (!done) return GHP_OK;
        peer->hears = false;
        peer->known = peer->heard;
        if (peer->known.meetings < last_meeting) GHP_TRY(post(p, i, true));
    }
    return GHP_OK;
}

static enum ghp_status say(struct ghp_others *p, int i)
{
    struct peer *peer = &p->of[i];
    const struct ghp_other_word *mine = &p->of[p->rank].known;

    GHP_TRY(look(p, i));
    if (peer->says || memcmp(&peer->said, mine, sizeof *mine) == 0) return GHP_OK;
    peer->said = *mine;
    return post(p, i, false);
}

enum ghp_status ghp_others_tell(struct ghp_others *p)
{
    for (int i = 0; i < p->n; i++)
        if (i != p->rank) GHP_TRY(say(p, i));
    return GHP_OK;
}

static bool is_here(const struct ghp_others *p, int i)
{
    const struct ghp_other_word *mine = &p->of[p->rank].known;

    return i == p->rank || (p->of[i].known.meetings >= mine->meetings && !p->of[i].says &&
                            memcmp(&p->of[i].said, mine, sizeof *mine) == 0);
}

static enum ghp_status fail_missing(const struct ghp_others *p, double waited_s)
{
    char missing[256] = "";

    for (int i = 0; i < p->n; i++) {
        size_t used = strlen(missing);

        if (!is_here(p, i) && used + 16 < sizeof missing)
            snprintf(missing + used, sizeof missing - used, "%s%d", used > 0 ? ", " : "", i);
    }
    return GHP_FAIL(GHP_ERR_COMM,
                    "rank %d waited %.0f s for all workers to meet: rank(s) %s did not come; see "
                    "why they stopped, or raise --watchdog if they are only slow",
                    p->rank, waited_s, missing);
}

static enum ghp_status wait_for_all(struct ghp_others *p)
{
    struct ghp_backoff_wait wait = ghp_backoff_begin(&backoff);

    p->meets = true;
    for (;;) {
        int here = 0;

        GHP_TRY(ghp_others_tell(p));
        for (int i = 0; i < p->n; i++)
            here += is_here(p, i);
        if (here == p->n) return GHP_OK;
        if (ghp_backoff_pause(&wait) &&
            ghp_backoff_waited_s(&wait) > ghp_control_limit_s(p->control))
            return fail_missing(p, ghp_backoff_waited_s(&wait));
    }
}

enum ghp_status ghp_others_meet(struct ghp_others *p)
{
    enum ghp_status status;

    p->of[p->rank].known.meetings++;
    status = wait_for_all(p);
    p->meets = false;
    return status;
}

void ghp_others_close(struct ghp_others *p)
{
    if (p == NULL) return;
    p->of[p->rank].known.meetings = last_meeting;
    if (wait_for_all(p) == GHP_OK) p->channel->ops->close(p->channel);
    free(p->of);
    free(p);
}
