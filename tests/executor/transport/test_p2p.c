/* ghp-test: np=3 np_full=2,4 timeout=120
 *
 * Messages between all pairs of workers in both directions at once: several tags, sizes from nothing to beyond what MPI
 * sends eagerly, posted in another order on every worker, sends and receives mixed, by workers that come late. */
#include "executor/transport/transport.h"
#include "tests/check.h"

#include <unistd.h>

enum { TAGS = 3, EACH = 3, ROUNDS = 4, WATCHDOG_S = 30 };

static const int64_t sizes[] = {0, 1, 37, 4096, 70000, 1 << 20};

struct
    mail { /* all messages of this worker: both directions, peers, tags, and several of one tag */
    int n;
    struct ghp_p2p_message *messages;
    int *order;
    bool *done;
};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* What from tells to in its i-th message of a tag. */
static uint32_t name_of(const int from_to[2], int tag, int i, int round)
{
    return (uint32_t)((((from_to[0] * 16 + from_to[1]) * 16 + tag) * 16 + i) * 16 + round);
}

static unsigned char byte_of(uint32_t name, int64_t at)
{
    return (unsigned char)((name * 2654435761u + (uint32_t)at * 40503u) >> 13);
}

static int64_t bytes_of(uint32_t name)
{
    return sizes[name * 2654435761u % (sizeof sizes / sizeof sizes[0])];
}

static struct ghp_p2p_message message_of(uint32_t name, int peer, int tag, bool receives)
{
    int64_t bytes = bytes_of(name);
    unsigned char *data = ghp_alloc((size_t)bytes + 1, 1);

    for (int64_t i = 0; i < bytes && !receives; i++)
        data[i] = byte_of(name, i);
    return (struct ghp_p2p_message){
        .data = data, .bytes = bytes, .peer = peer, .tag = tag, .receives = receives};
}

static void mail_open(const struct ghp_control *control, int round, struct mail *mail)
{
    size_t most = (size_t)(2 * control->size * TAGS * EACH);

    *mail = (struct mail){.messages = ghp_alloc(most, sizeof *mail->messages),
                          .order = ghp_alloc(most, sizeof *mail->order),
                          .done = ghp_alloc(most, sizeof *mail->done)};
    for (int peer = 0; peer < control->size; peer++) {
        if (peer == control->rank) continue;
        for (int tag = 0; tag < TAGS; tag++)
            for (int i = 0; i < EACH; i++) {
                uint32_t out = name_of((int[]){control->rank, peer}, tag, i, round);
                uint32_t in = name_of((int[]){peer, control->rank}, tag, i, round);

                mail->messages[mail->n++] = message_of(out, peer, tag, false);
                mail->messages[mail->n++] = message_of(in, peer, tag, true);
            }
    }
}

static bool same_way(const struct ghp_p2p_message *a, const struct ghp_p2p_message *b)
{
    return a->peer == b->peer && a->tag == b->tag && a->receives == b->receives;
}

/* A drawn order; messages of one tag between two workers keep theirs. */
static void mail_shuffle(struct mail *mail, uint32_t seed)
{
    bool *taken = ghp_alloc((size_t)mail->n + 1, sizeof *taken);

    for (int n = 0; n < mail->n; n++) {
        int at = (int)(next_random(&seed) % (uint32_t)mail->n), first = 0;

        while (taken[at])
            at = (at + 1) % mail->n;
        while (taken[first] || !same_way(&mail->messages[first], &mail->messages[at]))
            first++;
        taken[first] = true;
        mail->order[n] = first;
    }
    free(taken);
}

static void mail_check(const struct ghp_control *control, const struct mail *mail, int round)
{
    int place = 0;

    for (int peer = 0; peer < control->size; peer++) {
        if (peer == control->rank) continue;
        for (int tag = 0; tag < TAGS; tag++)
            for (int i = 0; i < EACH; i++, place += 2) {
                uint32_t in = name_of((int[]){peer, control->rank}, tag, i, round);
                const unsigned char *data = mail->messages[place + 1].data;
                int64_t wrong = 0;

                for (int64_t at = 0; at < bytes_of(in); at++)
                    wrong += data[at] != byte_of(in, at);
                CHECK_EQ(wrong, 0);
                CHECK_EQ(data[bytes_of(in)], 0); /* and not a byte more */
            }
    }
}

static void mail_close(struct mail *mail)
{
    for (int i = 0; i < mail->n; i++)
        free(mail->messages[i].data);
    free(mail->messages);
    free(mail->order);
    free(mail->done);
}

/* Posts some, looks at some, by chance, until all are done. */
static void exchange(const struct ghp_control *control, struct ghp_channel *channel, int round)
{
    uint32_t state = (uint32_t)(control->rank * 977 + round * 31 + 7);
    struct mail mail;
    int posted = 0, left;

    mail_open(control, round, &mail);
    mail_shuffle(&mail, state);
    left = mail.n;
    if (round % control->size == control->rank) usleep(20000);
    while (left > 0) {
        int slot = (int)(next_random(&state) % (uint32_t)mail.n);

        if (posted < mail.n && next_random(&state) % 3 == 0) {
            int i = mail.order[posted++];

            if (!CHECK_STATUS(channel->ops->post(channel, i, &mail.messages[i]), GHP_OK)) return;
            if (next_random(&state) % 16 == 0) usleep(300);
        }
        for (int i = 0; i < posted; i++) { /* in turns from a drawn place on */
            int at = mail.order[(slot + i) % posted];

            if (mail.done[at]) continue;
            if (!CHECK_STATUS(channel->ops->poll(channel, at, &mail.done[at]), GHP_OK)) return;
            left -= mail.done[at];
        }
    }
    mail_check(control, &mail, round);
    mail_close(&mail);
}

CHECK_TEST(p2p)
{
    struct ghp_transport *transport = NULL;
    struct ghp_channel *channel = NULL;
    char byte = 0;
    struct ghp_p2p_message large = {.data = &byte, .bytes = GHP_P2P_MESSAGE_BYTES + INT64_C(1)};

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, WATCHDOG_S, &transport), GHP_OK)) return 1;
    CHECK_STATUS(transport->p2p->ops->open(transport->p2p,
                                           2 * transport->control->size * TAGS * EACH, &channel),
                 GHP_OK);
    for (int round = 0; channel != NULL && round < ROUNDS; round++)
        exchange(transport->control, channel, round);
    if (channel != NULL) {
        CHECK_STATUS(channel->ops->post(channel, 0, &large), GHP_ERR_INPUT);
        channel->ops->close(channel);
    }
    ghp_transport_end(transport);
    return check_end();
}
