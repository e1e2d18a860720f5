/* executor/transport/alike.c - see alike.h. */
#include "executor/transport/alike.h"

#include "core/base/hash.h"
#include "executor/transport/collectives.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 3, SAID_BYTES = 256 * SHOWN, WORD_BYTES = 6 };

void ghp_alike_add(struct ghp_alike *alike, const char *name, const char *text, uint64_t hash)
{
    struct ghp_alike_subject *subject = &alike->subjects[alike->n];

    GHP_ASSERT(alike->n < GHP_ALIKE_MOST);
    alike->n++;
    snprintf(subject->name, sizeof subject->name, "%s", name);
    if (text == NULL) text = "not given";
    if (strlen(text) < sizeof subject->text)
        snprintf(subject->text, sizeof subject->text, "%s", text);
    else
        snprintf(subject->text, sizeof subject->text, "%.*s...", GHP_ALIKE_TEXT_BYTES - 4, text);
    subject->hash = hash;
}

void ghp_alike_add_text(struct ghp_alike *alike, const char *name, const char *text)
{
    /* a value that reads "not given" differs from an option that is not given */
    uint64_t hash = ghp_hash(&(char){text != NULL}, 1, GHP_HASH_SEED);

    if (text != NULL) hash = ghp_hash(text, strlen(text), hash);
    ghp_alike_add(alike, name, text, hash);
}

/* A message has a double, which holds 53 bits of a whole number. */
static double word_of(uint64_t hash)
{
    return (double)(ghp_hash(&hash, sizeof hash, GHP_HASH_SEED) >> 11);
}

/* The first member with another value than the first one's; 0: there is none. */
static enum ghp_status find_other(struct ghp_control *control, struct ghp_comm *comm, double mine,
                                  int *other)
{
    const struct ghp_control_message *messages;

    *other = 0;
    GHP_TRY(
        control->ops->tell(control, comm, (struct ghp_control_message){.value = mine}, &messages));
    for (int i = comm->ranks.count - 1; i > 0; i--)
        if (messages[i].value != messages[0].value) *other = i;
    return GHP_OK;
}

struct two_texts { /* of the first member, and of another */
    char of[2][GHP_ALIKE_TEXT_BYTES + WORD_BYTES];
};

/* Word by word, in the messages that all send. */
static enum ghp_status tell_text(struct ghp_control *control, struct ghp_comm *comm, int other,
                                 const char *mine, struct two_texts *texts)
{
    const struct ghp_control_message *messages;

    for (int at = 0; at < GHP_ALIKE_TEXT_BYTES; at += WORD_BYTES) {
        uint64_t word = 0;

        for (int i = 0; i < WORD_BYTES && at + i < GHP_ALIKE_TEXT_BYTES; i++)
            word |= (uint64_t)(unsigned char)mine[at + i] << (8 * i);
        GHP_TRY(control->ops->tell(control, comm,
                                   (struct ghp_control_message){.value = (double)word}, &messages));
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < WORD_BYTES; i++)
                texts->of[k][at + i] =
                    (char)((uint64_t)messages[k == 0 ? 0 : other].value >> (8 * i) & 0xff);
    }
    for (int k = 0; k < 2; k++)
        texts->of[k][GHP_ALIKE_TEXT_BYTES - 1] = '\0';
    return GHP_OK;
}

/* Says one subject that differs. */
static size_t say(const struct ghp_alike_subject *subject, const struct two_texts *texts,
                  struct ghp_ranks ranks, int other, char *said, size_t n)
{
    int a = ghp_ranks_at(ranks, 0), b = ghp_ranks_at(ranks, other);

    if (strcmp(texts->of[0], texts->of[1]) == 0)
        return (size_t)snprintf(said, n, "%s of worker %d and of worker %d differ%s%s%s",
                                subject->name, a, b, texts->of[0][0] != '\0' ? " ('" : "",
                                texts->of[0], texts->of[0][0] != '\0' ? "' on both)" : "");
    return (size_t)snprintf(said, n, "%s is %s on worker %d and %s on worker %d", subject->name,
                            texts->of[0], a, texts->of[1], b);
}

/* They differ: says what in. */
static enum ghp_status fail(const struct ghp_alike *alike, struct ghp_control *control,
                            struct ghp_comm *comm)
{
    char said[SAID_BYTES] = "";
    size_t used = 0;
    int first = 0, shown = 0, more = 0;

    GHP_TRY(find_other(control, comm, alike->n, &first));
    if (first > 0)
        return GHP_FAIL(alike->status,
                        "workers %d and %d are not of the same build of ghp; install the same on "
                        "every node",
                        ghp_ranks_at(comm->ranks, 0), ghp_ranks_at(comm->ranks, first));
    for (int i = 0; i < alike->n; i++) {
        struct two_texts texts;
        int other;

        GHP_TRY(find_other(control, comm, word_of(alike->subjects[i].hash), &other));
        if (other == 0) continue;
        if (first == 0) first = other;
        if (shown == SHOWN) {
            more++;
            continue;
        }
        GHP_TRY(tell_text(control, comm, other, alike->subjects[i].text, &texts));
        if (shown++ > 0) used += (size_t)snprintf(said + used, sizeof said - used, ", ");
        used +=
            say(&alike->subjects[i], &texts, comm->ranks, other, said + used, sizeof said - used);
    }
    if (more > 0) snprintf(said + used, sizeof said - used, ", and %d more", more);
    return GHP_FAIL(alike->status, "workers %d and %d do not %s the same: %s; %s",
                    ghp_ranks_at(comm->ranks, 0), ghp_ranks_at(comm->ranks, first),
                    alike->doing != NULL ? alike->doing : "train", said, alike->remedy);
}

enum ghp_status ghp_alike_agree(const struct ghp_alike *alike, struct ghp_control *control,
                                struct ghp_comm *comm)
{
    uint64_t all = GHP_HASH_SEED;
    enum ghp_status status;
    int other;

    for (int i = 0; i < alike->n; i++) {
        const struct ghp_alike_subject *subject = &alike->subjects[i];

        all = ghp_hash(subject->name, strlen(subject->name), all);
        all = ghp_hash(&subject->hash, sizeof subject->hash, all);
    }
    comm->label = "comparing what workers were told";
    GHP_TRY(find_other(control, comm, word_of(all), &other));
    if (other == 0) return GHP_OK;
    status = fail(alike, control, comm);
    return ghp_control_agree(control, comm, status);
}
