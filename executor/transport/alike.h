/* executor/transport/alike.h - whether all ranks were told the same, and if not, what differs and who was told what.
 *
 * A list has subjects, each with a text for people and a hash of all that must be the same. All ranks make the list of
 * the same subjects in the same order. If all are alike, one message a rank is sent; only else the subjects are
 * compared one by one.
 *
 * Call order: a zeroed list with its doing and remedy -> add ... -> agree. */
#ifndef GHP_EXECUTOR_TRANSPORT_ALIKE_H
#define GHP_EXECUTOR_TRANSPORT_ALIKE_H

#include "executor/transport/control.h"

enum { GHP_ALIKE_MOST = 128, GHP_ALIKE_NAME_BYTES = 64, GHP_ALIKE_TEXT_BYTES = 64 };

struct ghp_alike_subject {
    char name[GHP_ALIKE_NAME_BYTES]; /* such as "--lr" */
    char text
        [GHP_ALIKE_TEXT_BYTES]; /* this rank's value, cut if it is long; "": there is none to show */
    uint64_t hash;              /* of the whole value */
};

struct ghp_alike {
    const char *doing;      /* what they are to do alike, such as "measure"; NULL: "train" */
    const char *remedy;     /* what to do about a difference; borrowed */
    enum ghp_status status; /* of the failure */
    int n;
    struct ghp_alike_subject subjects[GHP_ALIKE_MOST];
};

/* Adds a subject.
 *
 * text   its value for people; NULL: "not given"
 * hash   of what must be the same. Local */
void ghp_alike_add(struct ghp_alike *alike, const char *name, const char *text, uint64_t hash);
/* The same if the text is all that must be the same. */
void ghp_alike_add_text(struct ghp_alike *alike, const char *name, const char *text);

/* Compares the list with that of all members.
 *
 * Returns   GHP_OK; alike->status on every member, naming up to three subjects, two workers and their values;
 *           GHP_ERR_COMM
 * Collective over comm, of host memory; needs no memory
 * Tested    tests/executor/transport/test_transport.c, tests/tools/run/test_ranks.sh */
enum ghp_status ghp_alike_agree(const struct ghp_alike *alike, struct ghp_control *control,
                                struct ghp_comm *comm);

#endif
