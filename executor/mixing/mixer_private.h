/* executor/mixing/mixer_private.h - private to executor/mixing: what a mixer has. */
#ifndef GHP_EXECUTOR_MIXING_MIXER_PRIVATE_H
#define GHP_EXECUTOR_MIXING_MIXER_PRIVATE_H

#include "executor/mixing/flat.h"
#include "executor/mixing/mixer.h"
#include "executor/platform/task_thread.h"

#include <stdatomic.h>

struct ghp_mixer_ops { /* of one synchroniser */
    const struct ghp_sync_ops *sync;
    int slots;       /* messages under way at once, of each server or worker; */
    int other_slots; /* and of all together */
    bool in_step; /* all workers mix at once, behind the same step; needs a communicator of all */
    bool
        in_pieces; /* without servers: weights go in several messages, so they may be of any size */
    bool has_lost; /* the losses since they were told last are a training's state; */
    bool has_share; /* or this worker's share when nothing is under way */
    /* What it needs besides, on opening; or NULL. */
    enum ghp_status (*prepare)(struct ghp_mixer *m);
    /* Before an update that no mix comes before; or NULL. */
    enum ghp_status (*start)(struct ghp_mixer *m);
    enum ghp_status (*mix)(struct ghp_mixer *m, const struct ghp_step *of);
    /* Whenever messages were looked at, beside the step or waiting: what has come is dealt with. NULL: nothing. */
    enum ghp_status (*carry)(struct ghp_mixer *m);
    /* Without servers: x has all of what has come. */
    void (*take)(struct ghp_mixer *m);
    /* Of workers who go in step and have messages under way: all that was sent to it is in x; else NULL. */
    enum ghp_status (*settle)(struct ghp_mixer *m);
    bool whole_shares; /* a worker's share is 1 at first, not 1 / N, and rates are divided by it */
};

enum { GHP_MIXER_COPIES = 4 };

struct ghp_mixer_slot {
    bool open; /* a message is under way, */
    bool receives;
    int peer;
    int64_t weight_bytes; /* and so many bytes of weights by it */
};

enum ghp_mix_hello_kind {
    GHP_MIX_HELLO_WEIGHTS, /* weights follow, to be taken, or to be answered by others */
    GHP_MIX_HELLO_MET      /* nothing follows until all have met */
};

struct ghp_mix_hello { /* from a worker to another one */
    int64_t kind;      /* enum ghp_mix_hello_kind */
    double share;      /* gosgd: of the weights that follow */
};

struct ghp_mix_partner { /* what a worker has to do with another one */
    struct ghp_mix_hello heard, said;
    bool listens; /* for its next hello */
    bool waits;   /* it said that weights follow, which nobody has taken */
    bool met;
};

struct ghp_push {         /* sgp */
    float sent, received; /* shares of the messages under way */
    double held;          /* of what has come and is not in x */
    bool expects;         /* a message of the step `next` may come */
    int64_t next, last;   /* step whose message comes next; in which one was sent last */
    int64_t due;          /* waited for: of this step and before */
};

struct ghp_mixer {
    const struct ghp_mixer_ops *ops;
    struct ghp_mixer_place place;
    const struct ghp_instr *instr; /* the MIX */
    int rank, workers, servers;
    struct ghp_flat x, g, copies[GHP_MIXER_COPIES];
    int64_t cut_bytes;
    struct ghp_channel *channel;
    int n_slots;
    struct ghp_mixer_slot *slots;
    struct ghp_mix_header header;
    struct ghp_mix_answer *answers; /* of each server */
    bool gave_weights;              /* to the servers */
    int *neighbours;                /* dgd: by rank; owned */
    int n_neighbours;
    struct ghp_comm *world; /* of all workers, where the synchroniser meets */
    struct ghp_control_message
        lost;                /* lsgd: sum of the losses since they were told last, and how many */
    int64_t *led;            /* lsgd: how often each worker led a group; owned */
    int64_t pulled, slowest; /* ssp: mixes when X was pulled; steps of the slowest worker then */
    struct ghp_mix_partner *partners; /* without servers: of each worker */
    bool listens;                     /* to all of them */
    int last_heard;
    int from;          /* whose weights arrive; -1: nobody's */
    double held_share; /* gosgd: of what has arrived and is not in x */
    struct ghp_push push;
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
/* Aladdin: X of each server that has come. */
enum ghp_status ghp_mixer_expect_again(struct ghp_mixer *m);

/* lsgd: the worker of the least loss among `count` from `first` on, the first of several, and of NaNs the first. */
int ghp_mixer_leader(const struct ghp_control_message *losses, int first, int count);

/* ---- without servers (mix_peers.c) ---- */

enum { GHP_MIXER_HEARD, GHP_MIXER_SAID, GHP_MIXER_PEER_SLOTS };  /* of each worker */
enum { GHP_MIXER_SENT, GHP_MIXER_TAKEN, GHP_MIXER_WHOLE_SLOTS }; /* behind these: of weights */

int ghp_mixer_peer_slot(const struct ghp_mixer *m, int kind, int worker);
int ghp_mixer_whole_slot(const struct ghp_mixer *m, int kind);
/* From now on, what other workers say is heard. */
enum ghp_status ghp_mixer_listen(struct ghp_mixer *m);
/* One of the others, again. */
enum ghp_status ghp_mixer_listen_to(struct ghp_mixer *m, int worker);
/* A worker that said that weights follow, each in turn; -1: none. It is then listened to no more. */
int ghp_mixer_heard(struct ghp_mixer *m);
enum ghp_status ghp_mixer_say(struct ghp_mixer *m, int worker, struct ghp_mix_hello hello);
/* The weights at `from` go; those of another come to `to`. */
enum ghp_status ghp_mixer_send_weights(struct ghp_mixer *m, int worker, struct ghp_flat from);
enum ghp_status ghp_mixer_take_weights(struct ghp_mixer *m, int worker, struct ghp_flat to);
/* All that anybody has sent is taken; last: and nothing more is heard. Collective over all workers. */
enum ghp_status ghp_mixer_meet(struct ghp_mixer *m, bool last);

extern const struct ghp_mixer_ops ghp_mixer_asp, ghp_mixer_ssp, ghp_mixer_easgd, ghp_mixer_aladdin,
    ghp_mixer_gosgd, ghp_mixer_ad_psgd, ghp_mixer_lsgd, ghp_mixer_dgd, ghp_mixer_sgp,
    ghp_mixer_sgp_overlap;

#endif
