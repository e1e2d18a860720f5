/* core/program/sync.h - synchronisers: who combines which gradients or weights with whom, and when.
 *
 * A synchroniser is a pass of the lowering: it emits what stands around a layer's own passes, and says which buffers
 * that needs. The planner costs what it emits and the executor runs it, so a synchroniser states no cost of its own:
 * its communication, what the forward pass waits for, the bytes it sends and the elements it updates are in its
 * instructions.
 *
 *     allreduce   gradients are summed by all-reduce, and every worker updates all the weights it holds
 *     sharded     gradients are reduce-scattered; each worker of a replica group updates its optimizer shard, the 1/R
 *                 part of a bucket for R workers, and has moments for that alone; the weights are all-gathered before
 *                 the next forward pass reads them
 *     local:TAU   each worker trains by its own samples, and every TAU steps takes the mean of all workers' weights
 *     bsp         ranks of their own, the servers, have the weights: they sum all workers' gradients, update, and send
 *                 the weights back
 *     asp, ssp:S, easgd:T, aladdin:PI
 *                 servers have weights of their own, which each worker meets when it comes, without waiting for others
 *     gosgd:P, ad-psgd
 *                 a worker's weights meet another worker's, chosen by chance
 *     lsgd:GROUPS,TAU
 *                 each worker trains alone, drawn towards the workers with the least loss in its group and of all
 *     dgd:GRAPH   each worker takes the weighted mean of its own weights and its neighbours' in a graph, in each step
 *     sgp, sgp-overlap:TAU
 *                 each worker sends half of its weights to the next one of a directed graph, in each step
 *
 * All but the first four *mix*: between two steps a worker's weights, all in one bucket, meet others' in one
 * instruction (struct ghp_mixing_facts).
 *
 * docs/reference/synchronisers.md says what each costs, and what it is held against. To add one: a file sync/NAME.c
 * with its ops, and its line in sync/all.c.
 *
 * Source   part-reduce and part-broadcast: Das et al., arXiv 1602.06709, 2016
 * Tested   tests/core/program/test_sync.c, tests/executor/train/test_sync.c */
#ifndef GHP_CORE_PROGRAM_SYNC_H
#define GHP_CORE_PROGRAM_SYNC_H

#include "core/program/instr.h"
#include "core/sharding/neighbours.h"

struct ghp_emitter; /* core/program/lower/emitter.h */

/* What a run by it is compared with. */
enum ghp_sync_equality {
    GHP_SYNC_EQUALS_ONE_WORKER, /* weights as of one worker that trains with the global batch */
    GHP_SYNC_EQUALS_REPLICAS,   /* as of one process that trains the workers' replicas in turn */
    GHP_SYNC_EQUALS_NOTHING     /* chance decides who meets whom when */
};

struct ghp_sync;

/* What is true of a synchroniser that mixes. */
struct ghp_mixing_facts {
    bool asynchronous; /* no worker waits for another's step: metrics are each one's own */
    bool alone_is_sgd; /* one worker, of one, trains to the bits of one without servers */
    bool updates;      /* workers update by their own gradients */
    int copies;        /* of all weights, that a worker has in addition to its own */
    /* What a checkpoint calls the first of these, with a dot; NULL: it does not have them. */
    const char *kept[2];
    int arrivals;        /* of a server: shards of all weights for each worker */
    bool server_moments; /* of a server: moments for each worker */
    bool server_sum;     /* of a server: a sum of what arrived */
    /* A worker's sum weight is 1 at first, not 1 / N, and rates are divided by it. */
    bool whole_sum_weights;
    /* By what number of its own each worker's mixes continue: its sum weight; its losses since they were told last. */
    bool keeps_sum_weight, keeps_loss;
    /* An extreme worker sets the pace of all, so that one slow worker slows all of them. */
    bool (*in_step)(struct ghp_sync sync);
    struct ghp_mix_traffic (*traffic)(struct ghp_sync sync, int workers);
    /* NULL: 0, always. -1: nothing bounds it, or it depends on the training. */
    int (*staleness)(struct ghp_sync sync);
    double (*mean_staleness)(struct ghp_sync sync, int workers);
};

struct ghp_sync_ops {
    const char *name;    /* in plans and options, before the argument */
    const char *purpose; /* half a sentence */
    /* Its argument's name, mostly steps from one combining to the next; NULL: none. */
    const char *argument;
    int least, usual;  /* of it: its least value; what it is if left out, -1: it must be there */
    bool is_chance;    /* it is a probability, in millionths; in texts from 0 to 1 */
    int least_workers; /* fewer have nobody to meet; 0: any number will do */
    /* a word after the argument that asks for another rule; NULL: there is none */
    const char *other;
    /* For an argument that is not a number of steps: `read` takes the text after the colon, `write` makes it, and
     * `wants` says in refusals what is expected. Else NULL. */
    bool (*read)(const char *text, struct ghp_sync *sync);
    void (*write)(struct ghp_sync sync, char text[GHP_NEIGHBOURS_TEXT_BYTES]);
    const char *wants;
    /* Whether this number of workers can use it; NULL: any number can. */
    enum ghp_status (*check)(struct ghp_sync sync, int workers);
    const char *const *shown; /* with which arguments a comparison of all has it; NULL ends */
    const struct ghp_mixing_facts *mixing; /* NULL: it does not mix */
    enum ghp_sync_equality equality;
    bool reduces; /* gradients are summed over the replicas, bucket by bucket */
    bool gathers; /* forward passes wait for weights that others have changed */
    /* Each worker has weights of its own between two combinings: they and the running statistics lie in buckets, and
     * gradients are means over its own samples. */
    bool replicas;
    /* servers have the weights of all layers with gradients to sum, and their moments */
    bool serves;

    /* Each worker of a replica group updates its optimizer shard of every bucket, but for layers whose statistics of
     * ghost batches are added on every worker; buckets are of layers that all have optimizer shards, or none. */
    bool shards;

    /* Emit, in order: at the start of a step; before a layer's first forward pass; when a layer's gradients are
     * complete. NULL: nothing; before a layer, its whole update. A piece of one layer (lower.h) has the last two alone,
     * and they emit all that the layer is to be costed for. Return GHP_OK or GHP_ERR_NO_MEMORY. */
    enum ghp_status (*emit_start)(const struct ghp_emitter *e);
    enum ghp_status (*emit_before)(const struct ghp_emitter *e, int layer, struct ghp_split split);
    enum ghp_status (*emit_ready)(const struct ghp_emitter *e, int layer, struct ghp_split split);
};

extern const struct ghp_sync_ops ghp_sync_allreduce, ghp_sync_sharded, ghp_sync_local, ghp_sync_bsp,
    ghp_sync_asp, ghp_sync_ssp, ghp_sync_easgd, ghp_sync_aladdin, ghp_sync_gosgd, ghp_sync_ad_psgd;
extern const struct ghp_sync_ops ghp_sync_lsgd, ghp_sync_dgd, ghp_sync_sgp, ghp_sync_sgp_overlap;
/* Synchronises layers whose weights are gathered for use, whatever the plan's synchroniser. No option asks for it. */
extern const struct ghp_sync_ops ghp_sync_gathered;

struct ghp_sync { /* zeroed: allreduce */
    const struct ghp_sync_ops *ops;
    int argument;                /* ops->least .. GHP_SYNC_MOST if it takes one, else 0 */
    bool other;                  /* by its other rule */
    int groups;                  /* lsgd: of workers, each with a leader; else 0 */
    struct ghp_neighbours graph; /* dgd; else zeroed */
    /* ranks that follow the workers', 1 .. GHP_SYNC_SERVERS_MOST if it has servers, else 0 */
    int servers;
};

enum {
    GHP_SYNC_MOST = 1 << 20,
    GHP_SYNC_SURE = 1000000, /* of a probability: 1 */
    GHP_SYNC_SERVERS_MOST = 1 << 10,
    GHP_SYNC_TEXT_BYTES = GHP_NEIGHBOURS_TEXT_BYTES + 16
};

/* What a synchroniser is checked against. */
struct ghp_sync_place {
    const struct ghp_model *model;
    const struct ghp_split *splits; /* one a layer; NULL: not yet known */
    const struct ghp_staging *staging;
    bool clips;
    int workers; /* 0: not yet known */
};

/* "local:8" as options and plans have it. One server, if it has servers.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming what there is
 * Local. Tested tests/core/program/test_sync.c */
enum ghp_status ghp_sync_parse(const char *text, struct ghp_sync *sync);
void ghp_sync_format(struct ghp_sync sync, char text[GHP_SYNC_TEXT_BYTES]);

/* Checks that the synchroniser works there: replicas that differ, and servers, need all of every layer on each worker.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the layer or the part of the plan
 * Local. Tested tests/core/program/test_sync.c */
enum ghp_status ghp_sync_check(struct ghp_sync sync, const struct ghp_sync_place *place);

const struct ghp_sync_ops *ghp_sync_ops_of(struct ghp_sync sync); /* never NULL */
bool ghp_sync_same(struct ghp_sync a, struct ghp_sync b);
/* Steps from one combining to the next; 1 if it mixes. */
int ghp_sync_period(struct ghp_sync sync);
/* Steps after which the workers sum what they count in each step (its loss). Workers that average rarely need not wait
 * for the others in between. */
enum { GHP_SYNC_METRICS_MOST = 1024 };
int ghp_sync_metric_period(struct ghp_sync sync);
/* Steps of other workers that a forward pass may lack; -1: nothing bounds them. */
int ghp_sync_staleness(struct ghp_sync sync);
/* lsgd: steps from one choice of a leader of all workers to the next; more than its argument if there are groups. */
enum { GHP_SYNC_LEADER_PERIODS = 4 };
int ghp_sync_leader_period(struct ghp_sync sync);
/* The mean of the staleness over the steps; -1: it depends on the training. */
double ghp_sync_mean_staleness(struct ghp_sync sync, int workers);
/* Whether no worker waits for another's step. */
bool ghp_sync_runs_free(struct ghp_sync sync);
/* Whether one slow worker slows all of them. */
bool ghp_sync_keeps_step(struct ghp_sync sync);
/* The number of replicas whose weights differ: `workers`, or 1 if all have the same weights. */
int ghp_sync_replicas(struct ghp_sync sync, int workers);

/* Whether each worker has all weights of a plan: then every layer is split by data. */
bool ghp_sync_wants_data(struct ghp_sync sync);

/* Names of all, for help; NULL ends. */
extern const char *const ghp_sync_names[];
enum { GHP_SYNC_PLAIN = 2 }; /* the first ones, which work with every split */

/* The synchroniser at a place among the names; an argument is 1. */
struct ghp_sync ghp_sync_at(int index);
const char *ghp_sync_equality_text(enum ghp_sync_equality equality);

#endif
