/* core/cost/profile.h - what the machine was measured to do: seconds per local operation, collective, copy and update.
 *
 * A profile answers "how long does this instruction take here, and how do you know?". Each answer says `measured`
 * (this very thing was timed), `interpolated` (between measured sizes, or affine in the batch) or `analytic` (a
 * fitted or given formula). It never guesses in silence: without an entry or an analytic model the answer is
 * GHP_ERR_MISSING.
 *
 * Call order: ghp_profile_load or ghp_profile_init + add -> ghp_profile_finalize (sorts) -> find / cost -> release. */
#ifndef GHP_CORE_COST_PROFILE_H
#define GHP_CORE_COST_PROFILE_H

#include "core/program/program.h"
#include "core/cost/machine.h"
#include "core/model/precision.h"
#include "core/program/program.h"
#include "core/cost/speeds.h"

enum ghp_source {
    GHP_SOURCE_MEASURED,
    GHP_SOURCE_INTERPOLATED,
    GHP_SOURCE_ANALYTIC,
    GHP_SOURCE_COUNT
};

/* What an operation takes with its tensors in these formats. */
struct ghp_op_memory_format {
    bool x, y; /* blocked: docs/explanation/cpu.md */
    double seconds;
    char algorithm[64];
};

enum { GHP_OP_MEMORY_FORMATS = 4 };

/* The algorithm of what another kernel does too, in no time (core/program/fuse.h). */
#define GHP_OP_FUSED "fused"

struct ghp_op_entry {
    char *key; /* ghp_local_key */
    enum ghp_pass pass;
    double seconds; /* mean of the samples that nothing disturbed */
    double spread;  /* (third quartile - first quartile) / mean */
    enum ghp_source source;
    int64_t scratch_bytes; /* what the backend's implementation asks for */
    char *algorithm;       /* backend's name for it, e.g. "jit:avx512_core" */
    /* fraction of the seconds that is due to the other workers running it at once, and not others; 0: none, or
     * unknown */
    double contention;
    /* of those that a program can ask for, seconds and algorithm in the likeliest among them; 0: they have no choice */
    int n_memory_formats;
    struct ghp_op_memory_format memory_formats[GHP_OP_MEMORY_FORMATS];
};

struct ghp_comm_entry {
    enum ghp_comm_op op;
    /* ranks of a group, distance between them; all groups of that kind ran at once */
    int count, stride;
    int64_t bytes;
    double seconds, spread;
    enum ghp_source source;
};

struct ghp_rate { /* seconds = latency_s + bytes / bandwidth_Bps; bandwidth 0: free (seconds = 0) */
    double latency_s, bandwidth_Bps, spread;
    enum ghp_source source;
};

struct ghp_overlap {      /* slowdowns (>= 1) while both streams are busy */
    double compute, comm; /* compute instruction concurrent with a gradient reduction */
    double link;          /* blocking reshard concurrent with a gradient reduction: both */
    double comm_long;     /* as comm, of long reductions; 0: as others */
    /* a reshard concurrent with a reduction also waits so long, however short */
    double queueing_delay_s;
    /* how much longer than its entry a collective takes that follows computing */
    double arrival_delay_s;
    double launch_delay_s; /* how long computing stands still when a reduction starts during it */
};

enum { /* reductions: comm holds up to the first size, comm_long from the second on, [bytes] */
       GHP_OVERLAP_BYTES = 4 << 20,
       GHP_OVERLAP_LONG_BYTES = 16 << 20
};

/* Slowdown of a reduction of `bytes` bytes during computing. Between the two sizes it is interpolated by the logarithm
 * of the bytes. */
double ghp_overlap_comm(const struct ghp_overlap *overlap, int64_t bytes);
/* The least of them over all sizes. */
double ghp_overlap_least_comm(const struct ghp_overlap *overlap);

/* Slowdowns of a blocking reshard that takes alone_s >= 0 by itself, and of the reduction that runs at the same time.
 * The reshard shares the link and also waits in the queue. The reduction loses only what the reshard carries. Without a
 * queue both slowdowns are `link`. */
struct ghp_sharing {
    double reshard, reduction;
};
struct ghp_sharing ghp_overlap_sharing(const struct ghp_overlap *overlap, double alone_s);

struct
    ghp_speed_probe { /* of the machine while it was measured: seconds of two fixed jobs; 0: not known */
    double compute_s, memory_s;
};

struct ghp_analytic_model { /* flops_per_s 0: no analytic model for computation */
    double flops_per_s;
    double memory_Bps; /* traffic of ops without flops; 0: free */
    double batch_half; /* samples at which half of flops_per_s is reached; 0: at any */
    /* attention's matrix of scores goes through the memory, as before flash attention; not in files */
    bool stores_scores;
    /* of seconds by the model, as of entries: twice its mean error if operations were measured; 0: it is given */
    double spread;
    double comm_spread; /* the same of the links' model, compared with measured collectives */
};

struct ghp_profile {
    char *backend;  /* "onednn", "reference", "cuda", "analytic" */
    bool on_device; /* it computes in the memory of a device, not in the host's */
    /* steps that can be recorded (ghp_program.is_recordable) are: each ends when its last reduction has; not in
     * files */
    bool joins;
    char *numerics;    /* "exact", "fast" */
    int element_bytes; /* 2, 4 or 8: core/model/precision.h */
    bool tf32;         /* products of numbers rounded to 10 bits; element_bytes 4 */
    /* Which operations the backend computes, by enum ghp_op; without knows_has: not known. */
    bool knows_has, has[GHP_OP_COUNT];
    int workers; /* ranks that ran at once while measuring; 0: analytic */
    int threads; /* of each of them; 0: not known */
    /* memory of a device that a worker takes in addition to its arena; 0: none, or unknown */
    int64_t reserved_bytes;
    /* workers make the next samples while a step runs, in memory of their own (GHP_BUFFER_PREFETCH) */
    bool prefetch;
    /* what the vocabularies of networks are padded to for it (core/model/vocabulary.h); 0: nothing */
    int64_t vocabulary_multiple;
    char *created; /* ISO 8601 UTC, and where: provenance only */
    char *host;
    char *data; /* source whose samples `load` was measured of; NULL: generated ones */
    struct ghp_machine machine; /* links carry the analytic model for collectives */
    struct ghp_analytic_model analytic;
    struct ghp_rate copy, load, accumulate; /* bytes written */
    /* the same, by enum ghp_optimizer_index; bandwidth 0 of another than sgd: not known */
    struct ghp_rate update[GHP_OPTIMIZERS];
    struct ghp_rate squares; /* bytes read; bandwidth 0: not known, as an accumulation */
    /* bytes of gradients that the kernel adds which makes them: the time in addition to that kernel's entry; bandwidth
     * 0: no kernel adds them */
    struct ghp_rate fused_accumulate;
    struct ghp_overlap overlap;
    struct ghp_speed_probe speed_probe;
    /* fraction by which other programs, or a machine whose speed changed, may have lengthened what was measured; 0:
     * none */
    double disturbed;
    /* of the workers that were measured; entries and rates are the slowest's */
    struct ghp_speeds speeds;
    int n_ops, max_ops;
    struct ghp_op_entry *ops; /* sorted by (key, pass) once finalized */
    int n_comms, max_comms;
    struct ghp_comm_entry *comms; /* sorted by (op, count, stride, bytes) once finalized */
    uint64_t hash;                /* of the canonical file text */
    bool finalized;
};

struct ghp_cost {
    double seconds;
    double spread;
    enum ghp_source source;
    /* of the seconds: due to all other workers running it at once, and not others; below 0: these cost more */
    double contention_s;
    bool crosses;  /* a collective's: goes from node to node, and begins when that link is free */
    double owed_s; /* how long the link is occupied after it, while nobody waits for that */
};

/* Who else runs an instruction where it is run. */
struct ghp_contention {
    int at_once, workers; /* of all workers, those that run it at once: a stage's; >= 1 */
    double speed;         /* as in struct ghp_placement */
};

/* The contention of the program's worker. */
struct ghp_contention ghp_contention_of(const struct ghp_program *program);

/* Seconds of a costed instruction there: the contention's part in proportion to the others that run it too, and all
 * of what workers do alone divided by their speed.
 *
 * Source   docs/explanation/time-model.md 3
 * Tested   tests/core/cost/test_profile.c */
double ghp_cost_contended(const struct ghp_instr *instr, const struct ghp_cost *cost,
                          struct ghp_contention contention);

enum ghp_status ghp_profile_load(const char *path, struct ghp_profile *profile);
enum ghp_status ghp_profile_save(const char *path, const struct ghp_profile *profile);
/* As ghp_machine_json and ghp_machine_read; what is read is finalized. */
json_t *ghp_profile_json(const struct ghp_profile *profile);
enum ghp_status ghp_profile_read(const struct ghp_node *at, struct ghp_profile *profile);
void ghp_profile_release(struct ghp_profile *profile);

/* Zeroed profile with the given names (copied). */
enum ghp_status ghp_profile_init(struct ghp_profile *profile, const char *backend,
                                 const char *numerics, int element_bytes);
/* Refuses a network with an operation that the profile's backend is known not to compute.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT with the operation and the layer
 * Local     Tested tests/core/cost/test_profile.c */
enum ghp_status ghp_profile_check_model(const struct ghp_profile *profile,
                                        const struct ghp_model *model);
/* Adds or replaces by key; strings are copied. */
enum ghp_status ghp_profile_add_op(struct ghp_profile *profile, const struct ghp_op_entry *entry);
enum ghp_status ghp_profile_add_comm(struct ghp_profile *profile,
                                     const struct ghp_comm_entry *entry);
enum ghp_status ghp_profile_finalize(struct ghp_profile *profile); /* sorts, and computes `hash` */

const struct ghp_op_entry *ghp_profile_find(const struct ghp_profile *profile, const char *key,
                                            enum ghp_pass pass);

/* The same, or if the profile has none the entry of that operation over the nearest number of samples; NULL: it
 * has none of any. */
const struct ghp_op_entry *ghp_profile_nearest(const struct ghp_profile *profile,
                                               const struct ghp_local *local, enum ghp_pass pass);

/* Seconds for one pass of a local operation: its entry; else affine in the batch through entries that differ in n only;
 * else the analytic model. GHP_ERR_MISSING names the key and the ghp-profile options that would measure it. */
enum ghp_status ghp_profile_op(const struct ghp_profile *profile, const struct ghp_local *local,
                               enum ghp_pass pass, struct ghp_cost *cost);
/* The same with its tensors in these formats, if all entries that cost it know them; else as above. */
enum ghp_status ghp_profile_op_in(const struct ghp_profile *profile, const struct ghp_local *local,
                                  enum ghp_pass pass, struct ghp_nchw16c nchw16c,
                                  struct ghp_cost *cost);
/* Whether there are entries that cost it, and all know those formats. */
bool ghp_profile_knows(const struct ghp_profile *profile, const struct ghp_local *local,
                       enum ghp_pass pass, struct ghp_nchw16c nchw16c);
/* Whether any operation was measured in formats that it has a choice of. */
bool ghp_profile_has_memory_formats(const struct ghp_profile *profile);
/* What an entry says of the formats; NULL: nothing. */
const struct ghp_op_memory_format *ghp_op_entry_in(const struct ghp_op_entry *entry,
                                                   struct ghp_nchw16c nchw16c);
/* All its seconds times a factor. */
void ghp_op_entry_scale(struct ghp_op_entry *entry, double factor);
/* Scratch bytes the backend asks for (0 under an analytic model). */
enum ghp_status ghp_profile_scratch(const struct ghp_profile *profile,
                                    const struct ghp_local *local, enum ghp_pass pass,
                                    int64_t *bytes);

/* Seconds for a collective over `ranks` while all groups of the same kind run at once. Entries: log-byte interpolation;
 * beyond them the analytic model of the machine's links, scaled to meet the nearest entry. Source
 * docs/explanation/time-model.md. */
enum ghp_status ghp_profile_comm(const struct ghp_profile *profile, enum ghp_comm_op op,
                                 int64_t bytes, struct ghp_ranks ranks, int workers,
                                 struct ghp_cost *cost);

/* Seconds for a transfer between two stages, in all groups at once. Source docs/explanation/stages.md 4. */
enum ghp_status ghp_profile_transfer(const struct ghp_profile *profile,
                                     const struct ghp_transfer *transfer, struct ghp_cost *cost);

/* Twice the mean error of the links' model, compared with the measured collectives of 64 KiB and more, as a fraction of
 * their seconds; 0: there are none. The profile is finalized. Local. Tested tests/core/cost/test_profile.c */
double ghp_profile_comm_spread(const struct ghp_profile *profile);

/* Ring model only, over the slowest link that the ranks cross; groups that share a node share its outer link. */
double ghp_machine_comm_s(const struct ghp_machine *machine, enum ghp_comm_op op, int64_t bytes,
                          struct ghp_ranks ranks, int workers);

/* The rate of an optimizer's update. It is that of sgd for NULL and if the optimizer's own is not known. */
const struct ghp_rate *ghp_profile_update(const struct ghp_profile *profile,
                                          const struct ghp_optimizer *optimizer);

/* Seconds for one instruction. */
enum ghp_status ghp_profile_cost(const struct ghp_profile *profile, const struct ghp_instr *instr,
                                 int workers, struct ghp_cost *cost);

/* The part of `profile` that `program` asks for, as a profile of its own (what a plan carries). */
enum ghp_status ghp_profile_subset(const struct ghp_profile *profile,
                                   const struct ghp_program *program, struct ghp_profile *subset);

static inline struct ghp_precision ghp_profile_precision(const struct ghp_profile *profile)
{
    return (struct ghp_precision){profile->element_bytes, profile->tf32};
}

/* What a worker's arena may take of its part of a GPU, if the profile is of GPUs whose memory is known [bytes];
 * 0: no such limit. */
int64_t ghp_profile_device_limit(const struct ghp_profile *profile, int workers);

/* A worker's part of the memory of its node, or by the analytic model of its GPU if the machine has any [bytes];
 * 0: unknown, else at least 1. */
int64_t ghp_profile_memory_per_worker(const struct ghp_profile *profile, int workers);

/* The same of several programs together. */
enum ghp_status ghp_profile_subset_of(const struct ghp_profile *profile,
                                      const struct ghp_program *programs, int n,
                                      struct ghp_profile *subset);

const char *ghp_source_name(enum ghp_source source);
#endif
