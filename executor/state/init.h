/* executor/state/init.h - a training's first weights: drawn from a seed, or read from a file of named tensors.
 *
 * The file must hold exactly the model's tensors - weights and running statistics - whole, under the model's names,
 * with the model's dimensions; numbers are converted to the training's precision. Tensors can be excepted by name, such
 * as those of a new head: the model's are drawn, the file's are left out. Every worker reads the file and keeps its
 * part. Moments start at zero either way.
 *
 * To add a kind of file: a struct ghp_init_ops in init_NAME.c and its row in init.c. A kind lists only weights and
 * statistics of the network. It leaves out anything else in its files, such as a trainer's own state. */
#ifndef GHP_EXECUTOR_STATE_INIT_H
#define GHP_EXECUTOR_STATE_INIT_H

#include "core/base/opts.h"
#include "core/model/model.h"

struct ghp_worker;

struct ghp_init_tensor { /* one entry of a file */
    const char *name;    /* the model's; owned by the file */
    int n_dims;
    int64_t dims[GHP_MAX_DIMS];
    bool is_filled; /* the file has no values for it, only one number that is repeated */
};

struct ghp_init_ops { /* a kind of file; `file` is what its open made */
    const char *text; /* what is written of its files in messages, such as "FILE.safetensors" */
    bool (*names)(const char *path); /* whether a path is of one */
    /* GHP_ERR_IO, GHP_ERR_FORMAT */
    enum ghp_status (*open)(const char *path, void **file);
    void (*close)(void *file); /* accepts NULL */
    int (*count)(const void *file);
    struct ghp_init_tensor (*item)(const void *file, int i);
    /* As ghp_file_orientation (model/orientation.h); NULL: its tensors are in ghp's order. */
    enum ghp_status (*orientation)(const char *path, const void *file,
                                   const struct ghp_model *model, bool *oriented);
    /* all values of item i in C order, as element_bytes (4 or 8) numbers; may fail if they are not such numbers */
    enum ghp_status (*read)(void *file, int i, int element_bytes, void *values);
};

extern const struct ghp_init_ops ghp_init_safetensors, ghp_init_onnx, ghp_init_huggingface;

struct ghp_init_choice {            /* which weights; zeroed: drawn from seed 0 */
    uint64_t seed;                  /* of what is drawn */
    const struct ghp_init_ops *ops; /* NULL: drawn */
    const char *path;               /* borrowed; NULL: drawn */
    /* patterns (fnmatch) of tensors that are not taken from the file; borrowed; NULL: none */
    const struct ghp_opt_list *except;
};

/* What --init says: "random" (the training's own seed), "random:SEED", or a file's name.
 *
 * text   borrowed as long as the choice is used; NULL is "random"
 * seed   of the training
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (no number after random:, a file of no known kind)
 * Tested    tests/executor/state/test_init.c */
enum ghp_status ghp_init_parse(const char *text, uint64_t seed, struct ghp_init_choice *choice);

/* What a training starts from if --init says nothing: the weights in the file or folder that its network came from.
 * If that holds none, they are drawn from the seed.
 *
 * model_path   where the network is now (onnx/network.h), of any kind, or NULL; borrowed as long as the choice is used
 *
 * Returns   GHP_OK; GHP_ERR_IO, GHP_ERR_FORMAT, GHP_ERR_INPUT (it cannot be read, so its content is unknown)
 * Local: workers may see different files */
enum ghp_status ghp_init_usual(const char *model_path, uint64_t seed,
                               struct ghp_init_choice *choice);

/* A hash of what a file's tensors are called, of their dimensions, and of the values of smaller ones: equal for equal
 * files, wherever they lie.
 *
 * choice   of a file
 *
 * Returns   GHP_OK; GHP_ERR_IO, GHP_ERR_FORMAT, GHP_ERR_NO_MEMORY
 * Local
 * Tested    tests/tools/run/test_ranks.sh */
enum ghp_status ghp_init_hash(const struct ghp_init_choice *choice, uint64_t *hash);

/* Fills the worker's weights and statistics, and zeroes its moments.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT; GHP_ERR_INPUT naming a tensor that is missing, too much or of other
 *           dimensions, and the nearest name, or a pattern that names none; GHP_ERR_NO_MEMORY
 * Local: every worker reads the file */
enum ghp_status ghp_init_weights(struct ghp_worker *worker, const struct ghp_init_choice *choice);

/* Whether ghp_init_weights would take the weights: reads them all, and keeps none.
 *
 * Returns   as ghp_init_weights
 * Local
 * Tested    tests/tools/run/test_train.sh */
enum ghp_status ghp_init_try(const struct ghp_model *model, const struct ghp_init_choice *choice);

#endif
