/* executor/mixing/mixer_private.h - private to executor/mixing: what a mixer has. */
#ifndef GHP_EXECUTOR_MIXING_MIXER_PRIVATE_H
#define GHP_EXECUTOR_MIXING_MIXER_PRIVATE_H

#include "executor/mixing/flat.h"
#include "executor/mixing/mixer.h"
#include "executor/platform/task_thread.h"

#include <stdatomic.h>

struct ghp_mixer_ops { /* of one synchroniser */
    const struct ghp_sync_ops *sync;
    int slots; /* messages under way at once, of each server or in all */
    /* Before an update that no mix comes before; or NULL. */
    enum ghp_status (*start)(struct ghp_mixer *m);
    enum ghp_status (*mix)(struct ghp_mixer *m, const struct ghp_step *of);
    /* On the thread, again and again beside the step; NULL: messages alone go on. */
    enum ghp_status (*carry)(struct ghp_mixer *m);
};

enum { GHP_MIXER_COPIES = 4 };

struct ghp_mixer {
    const struct ghp_mixer_ops *ops;
    struct ghp_mixer_place place;
    const struct ghp_instr *instr; /* the MIX */
    int rank, workers, servers;
    struct ghp_flat x, g, copies[GHP_MIXER_COPIES];
    int64_t cut_bytes;
    struct ghp_channel *channel;
    int n_slots;
    bool *open;        /* a slot: a message is under way */
    int64_t *arriving; /* and so many bytes of weights are to come by it */
    struct ghp_mix_word word;
    struct ghp_mix_answer *answers; /* of each server */
    bool gave_weights;              /* to the servers */
    int64_t pulled, slowest; /* ssp: mixes when X was pulled; steps of the slowest worker then */
    struct ghp_task_thread *thread;
    int64_t ticket;
    atomic_bool halts;
    struct ghp_mix_count count;
};

/* A message under way in a slot; it is counted as bytes of weights where it is of the cut's size. */
enum ghp_status ghp_mixer_post(struct ghp_mixer *m, int slot, struct ghp_p2p_message message);
/* Looks at all messages under way. */
enum ghp_status ghp_mixer_progress(struct ghp_mixer *m);
/* Waits until n slots from `first` on are empty; label: for the failure. */
enum ghp_status ghp_mixer_wait(struct ghp_mixer *m, int first, int n, const char *label);
/* Aladdin: X of each server that has come. */
enum ghp_status ghp_mixer_expect_again(struct ghp_mixer *m);

extern const struct ghp_mixer_ops ghp_mixer_asp, ghp_mixer_ssp, ghp_mixer_easgd, ghp_mixer_aladdin;

#endif
