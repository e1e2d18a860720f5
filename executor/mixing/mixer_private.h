/* executor/mixing/mixer_private.h - private to executor/mixing: what all mixers have, and what each scheme says of
 * itself. A scheme's own state stands in the file of the scheme. */
#ifndef GHP_EXECUTOR_MIXING_MIXER_PRIVATE_H
#define GHP_EXECUTOR_MIXING_MIXER_PRIVATE_H

#include "executor/mixing/flat.h"
#include "executor/mixing/mixer.h"
#include "executor/platform/task_thread.h"

#include <stdatomic.h>

struct ghp_mixer_ops { /* of one scheme */
    const char *name;  /* as its program's terms have it */
    int slots;         /* messages under way at once, of each server or worker; */
    int other_slots;   /* and of all together */
    bool in_step; /* all workers mix at once, after the same step; needs a communicator of all */
    /* Without servers: weights go in several messages, so they may be of any size. */
    bool in_segments;
    /* Bytes of its own state, m->own, zeroed at first; and in addition for each server, or for each worker where
     * no servers exist. */
    size_t own_bytes, own_bytes_each;
    /* All but mix may be NULL: it then does nothing. */
    void (*prepare)(struct ghp_mixer *m);          /* on opening */
    enum ghp_status (*start)(struct ghp_mixer *m); /* before an update that no mix comes before */
    enum ghp_status (*mix)(struct ghp_mixer *m, const struct ghp_step *of);
    /* Handles the messages that have come. Called whenever messages were looked at, during a step or while waiting. */
    enum ghp_status (*carry)(struct ghp_mixer *m);
    /* Between steps: what was sent is there, and taken. */
    enum ghp_status (*settle)(struct ghp_mixer *m);
    /* With servers: as ghp_mixer_move. */
    enum ghp_status (*move)(struct ghp_mixer *m, enum ghp_buffer_kind kind, bool receives);
    enum ghp_status (*end)(struct ghp_mixer *m); /* nothing is under way any more */
};

enum { GHP_MIXER_COPIES = 4 };

struct ghp_mixer_slot {
    bool open; /* a message is under way */
    bool receives;
    int peer;
    int64_t weight_bytes; /* bytes of weights in the message */
};

struct ghp_mixer {
    const struct ghp_mixer_ops *ops;
    struct ghp_mixer_place place;
    const struct ghp_mix_terms *terms;
    const struct ghp_instr *instr; /* the MIX */
    int rank, workers, servers;
    struct ghp_flat x, g, copies[GHP_MIXER_COPIES];
    int64_t server_shard_bytes;
    double limit_s; /* of a wait: a server may wait for other workers, another worker for nobody */
    struct ghp_channel *channel;
    int n_slots;
    struct ghp_mixer_slot *slots;
    void *own;              /* the scheme's state; owned */
    struct ghp_comm *world; /* of all workers, if they mix in step */
    struct ghp_task_thread *thread;
    int64_t ticket;
    atomic_bool halts;
    struct ghp_mix_count count;
};

/* A message under way in a slot; by its tag it is counted as bytes of weights. */
enum ghp_status ghp_mixer_post(struct ghp_mixer *m, int slot, struct ghp_p2p_message message);
/* Looks at all messages under way, and deals with what has come. */
enum ghp_status ghp_mixer_progress(struct ghp_mixer *m);
/* Waits until n slots from `first` on are empty; label: for the failure, which names the ranks. */
enum ghp_status ghp_mixer_wait(struct ghp_mixer *m, int first, int n, const char *label);
/* The same until `is_done` says so. */
struct ghp_mixer_awaited {
    bool (*is_done)(const struct ghp_mixer *m, const struct ghp_mixer_awaited *a);
    int first, n; /* slots whose peers are missing if they are not empty */
    const char *label;
};
enum ghp_status ghp_mixer_wait_for(struct ghp_mixer *m, const struct ghp_mixer_awaited *a);

/* lsgd: the worker of the least loss among `count` from `first` on, the first of several, and of NaNs the first. */
int ghp_mixer_leader(const struct ghp_control_message *losses, int first, int count);

static inline bool ghp_mixer_has(const struct ghp_mixer *m, enum ghp_fault fault)
{
    return m->place.run->fault == fault;
}

extern const struct ghp_mixer_ops ghp_mixer_asp, ghp_mixer_ssp, ghp_mixer_easgd, ghp_mixer_aladdin,
    ghp_mixer_gosgd, ghp_mixer_ad_psgd, ghp_mixer_lsgd, ghp_mixer_dgd, ghp_mixer_sgp,
    ghp_mixer_sgp_overlap;

#endif
