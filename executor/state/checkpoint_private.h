/* executor/state/checkpoint_private.h - what a checkpoint's file holds, entry by entry: shared by its writer
 * (checkpoint_save.c) and its reader (checkpoint_load.c), and private to them. */
#ifndef GHP_EXECUTOR_STATE_CHECKPOINT_PRIVATE_H
#define GHP_EXECUTOR_STATE_CHECKPOINT_PRIVATE_H

#include "core/base/checkpoint_name.h"
#include "core/model/safetensors.h"
#include "executor/state/checkpoint.h"
#include "executor/state/tensors.h"

enum { GHP_CHECKPOINT_NUMBER_BYTES = 24 };

/* Keys of the metadata. sync (the synchroniser) and workers (their number) are there only if workers' weights differ,
 * ema (the decay) only if weights are moving averages. evaluation is there only if one is owed, and is then `due`; the
 * test loss only if one was made. */
extern const char ghp_checkpoint_optimizer_key[], ghp_checkpoint_sync_key[],
    ghp_checkpoint_workers_key[], ghp_checkpoint_evaluation_key[], ghp_checkpoint_ema_key[],
    ghp_checkpoint_due[], ghp_checkpoint_loss_key[];

/* The whole numbers of the metadata, as texts: a seed is beyond what JSON readers hold exactly. */
enum ghp_checkpoint_number {
    GHP_CHECKPOINT_STEP,
    GHP_CHECKPOINT_SEED,
    GHP_CHECKPOINT_BATCH,
    GHP_CHECKPOINT_SAMPLES,
    GHP_CHECKPOINT_NUMBERS
};
extern const char *const ghp_checkpoint_number_names[GHP_CHECKPOINT_NUMBERS];

struct ghp_checkpoint_entry { /* a tensor in a role */
    const struct ghp_tensor *tensor;
    enum ghp_buffer_kind buffer_kind;
    int worker; /* whose, if workers' weights differ; else -1: the tensor, or the mean of all */
};

struct ghp_checkpoint_contents { /* all entries, in file order; owned */
    struct ghp_tensors_list list;
    int n;
    struct ghp_checkpoint_entry *entries;
    struct ghp_safetensor *tensors; /* names owned */
    int64_t largest;                /* elements */
    int64_t bytes;                  /* of all values */
    int element_bytes;
    bool transposed; /* some parameters are (model/orientation.h) */
    int replicas;    /* whose weights differ; 1: none */
    char *mixing;    /* owned: numbers of each worker's mixes; NULL: they have none */
    char *rates;     /* owned: what learning rates by norms have learnt; NULL: they follow none */
    char *norms;     /* owned: what importance sampling has learnt; NULL: there is none */
};

/* Returns GHP_OK; GHP_ERR_NO_MEMORY, and may be released. Local. */
enum ghp_status ghp_checkpoint_contents_init(const struct ghp_worker *worker,
                                             struct ghp_checkpoint_contents *c);
void ghp_checkpoint_contents_release(struct ghp_checkpoint_contents *c); /* accepts a zeroed one */

/* Bytes of the values of entry i. */
int64_t ghp_checkpoint_entry_bytes(const struct ghp_checkpoint_contents *c, int i);

/* Begins the file of these contents under a temporary name. Returns as ghp_safetensors_begin. Local. */
enum ghp_status ghp_checkpoint_begin_file(const char *folder, const struct ghp_worker *worker,
                                          struct ghp_checkpoint checkpoint,
                                          const struct ghp_checkpoint_contents *c,
                                          struct ghp_safetensors_writer **writer);

/* What learning rates by norms have learnt, and back from a file of the same scaling.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (another scaling's); GHP_ERR_FORMAT
 * Local */
extern const char ghp_checkpoint_rates_key[];
enum ghp_status ghp_checkpoint_rates_text(const struct ghp_worker *worker, char **text);
enum ghp_status ghp_checkpoint_read_rates(const char *path, const struct ghp_safetensors *file,
                                          struct ghp_worker *worker);

/* The numbers of each worker with which mixing continues, and this worker's back from a file.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT; GHP_ERR_NO_MEMORY
 * Collective over `world`, all workers; reading is local */
extern const char ghp_checkpoint_mixing_key[];
enum ghp_status ghp_checkpoint_mixing_text(struct ghp_worker *worker, struct ghp_comm *world,
                                           char **text);
enum ghp_status ghp_checkpoint_read_mixing(const char *path, const struct ghp_safetensors *file,
                                           struct ghp_worker *worker);

/* What importance sampling has learnt, and back from a file that has it.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT; GHP_ERR_NO_MEMORY
 * Collective over `world`, all workers; reading is local */
extern const char ghp_checkpoint_norms_key[];
enum ghp_status ghp_checkpoint_norms_text(const struct ghp_checkpoint_norms *norms,
                                          struct ghp_worker *worker, struct ghp_comm *world,
                                          char **text);
enum ghp_status ghp_checkpoint_read_norms(const char *path, const struct ghp_safetensors *file,
                                          const struct ghp_checkpoint_norms *norms);

/* Rank 0: the newest file is there, and gets a further name if it is to be kept; the ones that are not to be kept any
 * more go. A failure is a warning. Local. */
void ghp_checkpoint_keep_named(const struct ghp_checkpoint_folder *folder,
                               struct ghp_checkpoint checkpoint);
/* Whether the folder has one that was kept, and its path. Local. */
bool ghp_checkpoint_any_kept(const char *folder, char path[GHP_CHECKPOINT_PATH_BYTES]);

/* All workers of the worker's run, in host memory. Collective over them. */
enum ghp_status ghp_checkpoint_world(struct ghp_worker *worker, struct ghp_comm **world);

#endif
