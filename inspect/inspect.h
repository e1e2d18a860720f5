/* inspect/inspect.h - the sheets that ghp-inspect shows for each kind of file.
 *
 * Reads files and the core's own functions; needs no solver. Each function adds sheets and values to a report.
 * To add a kind of file: its function here and its row in the table of ghp-inspect.c.
 *
 * Tested  tests/tools/inspect/test_inspect.sh */
#ifndef GHP_INSPECT_INSPECT_H
#define GHP_INSPECT_INSPECT_H

#include "core/plan/plan_set.h"
#include "inspect/sheet.h"

/* Layers with shapes, weights and forward operations, and their sums. */
void ghp_inspect_model(struct ghp_display *report, const struct ghp_model *model);

/* Notes which parameters stay as they are; nothing if all are trained. */
void ghp_inspect_fixed(struct ghp_sheet *sheet, const struct ghp_model *model);

/* Nodes, cores, memory, links. */
void ghp_inspect_machine(struct ghp_display *report, const struct ghp_machine *machine);

/* Operations with the seconds of their passes and their bytes, collectives, rates.
 *
 * model   NULL: a row for each local operation; else a row for each layer, undivided, at the largest number of samples
 *         that the profile was made for
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_INPUT (no layer of the model is in the profile) */
enum ghp_status ghp_inspect_profile(struct ghp_display *report, const struct ghp_profile *profile,
                                    const struct ghp_model *model);

/* Header, splits, predictions next to those of the baselines, phases, memory, certificate.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT, GHP_ERR_MISSING (the plan carries too little to simulate it); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_inspect_plan(struct ghp_display *report, const struct ghp_plan *plan);

/* Recomputes the plan's cost, memory and certificate with the profile that it was made with, and reports which of them
 * agree with the file.
 *
 * profile_path   another profile; NULL: the one that the plan names
 *
 * Returns   as ghp_plan_verify; errors of reading the profile */
enum ghp_status ghp_inspect_verify(struct ghp_display *report, const struct ghp_plan *plan,
                                   const char *path, const char *profile_path);

/* A row for each number of workers of a set; the numbers that were left out, with the reason. */
void ghp_inspect_plan_set(struct ghp_display *report, const struct ghp_plan_set *set);

/* The margin over data parallelism and the error, the cost terms of each layer's split, its second best, where it
 * flips.
 *
 * layer   NULL: all layers; else this one, with each other split, its layouts and its instructions */
enum ghp_status ghp_inspect_explain(struct ghp_display *report, const struct ghp_plan *plan,
                                    const char *layer);

/* The parts of that explanation which the plan file has (inspect/why.c): every split of a layer and its second best;
 * the values at which choices flip (layer -1: all layers; those without a flip are only counted); how far quantities
 * may move, if that was asked for. */
void ghp_inspect_choices(struct ghp_display *report, const struct ghp_plan *plan, int layer);
void ghp_inspect_break_even(struct ghp_display *report, const struct ghp_plan *plan, int layer);

/* Shows, for transformers, the number of tokens a step below which tensor-parallel blocks, and vocabulary-parallel
 * embedding and output layers, are faster than data parallelism. It follows from the layers' break-even batches. Next
 * to them the numbers of an ideal machine without latency: 2P / ((8L + 4) h) for P parameters, L blocks and width h,
 * and V / 2 for V words. */
void ghp_inspect_crossovers(struct ghp_display *report, const struct ghp_plan *plan);

/* Fails because the model does not have a layer of this name; the message names similar ones.
 *
 * Returns   GHP_ERR_USAGE; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_inspect_no_layer(const struct ghp_model *model, const char *name);

/* The best other split of a layer that the plan knows, or NULL. */
const struct ghp_alternative *ghp_inspect_second_best(const struct ghp_plan *plan, int layer);

/* What differs between two plans, and what each difference costs when it alone is applied to the first.
 *
 * profile   costs both; finalized */
enum ghp_status ghp_inspect_difference(struct ghp_display *report, const struct ghp_plan *a,
                                       const struct ghp_plan *b, const struct ghp_profile *profile);

/* A file of ghp-run: its single values, which terms cause the prediction's error, then each list of records as a table,
 * with predicted next to measured times.
 *
 * format   "ghp.run/2" or "ghp.comparison/2"
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_inspect_run(struct ghp_display *report, const char *path, const char *format);

/* Whether a path names a checkpoint: a folder that has one, or a safetensors file. */
bool ghp_inspect_names_checkpoint(const char *path);

/* A checkpoint. For a folder both generations are listed, with steps, optimizer, size and whether the checksum holds.
 * The model and the tensors of the newest whole one follow.
 *
 * path   a folder of ghp-run --checkpoint, or a file in it
 *
 * Returns   GHP_OK; GHP_ERR_IO, GHP_ERR_FORMAT (no file can be continued from: the newest one's failure) */
enum ghp_status ghp_inspect_checkpoint(struct ghp_display *report, const char *path);

/* The causes of the predicted step's error, over one run or several together: the terms of the step and the layers,
 * largest error first, and a sentence that names them.
 *
 * Terms are computation by operation and pass, exchanges by collective, group size and class of bytes, copies, updates,
 * loading, waiting for stragglers (an exchange's seconds beyond those of its last rank to arrive), waiting for
 * reductions, and the time between instructions. Measured terms sum to the measured step. Reductions overlap with the
 * step and have a table of their own.
 *
 * Returns   GHP_OK; GHP_ERR_IO, GHP_ERR_FORMAT; GHP_ERR_INPUT (a run of an older version, or without prediction);
 *           GHP_ERR_NO_MEMORY */
enum ghp_status ghp_inspect_prediction_error(struct ghp_display *report, const char *const *paths,
                                             int n);

/* The profile that a plan was made with.
 *
 * path      NULL: the plan's own profile_path, as written or else next to the plan file
 * plan_path the plan's file
 * profile   filled; with the plan's overrides if the plan is a what-if
 *
 * Returns   GHP_OK; GHP_ERR_IO, GHP_ERR_FORMAT; GHP_ERR_INPUT (the plan was made for another profile) */
enum ghp_status ghp_inspect_find_profile(const struct ghp_plan *plan, const char *plan_path,
                                         const char *path, struct ghp_profile *profile);

/* Writes a network as ONNX (onnx/onnx.h).
 *
 * checkpoint   safetensors with a tensor for each parameter and statistic; NULL: none, ones and zeros
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (a layer that ONNX cannot express; a tensor that is missing or of another size);
 *           GHP_ERR_IO; GHP_ERR_FORMAT; GHP_ERR_NO_MEMORY
 * Tested    tests/tools/networks/test_onnx.sh */
enum ghp_status ghp_inspect_export(struct ghp_display *report, const struct ghp_model *model,
                                   const char *path, const char *checkpoint);

/* Writes a network as a folder of transformers (onnx/huggingface/huggingface.h).
 *
 * origin   what the model was read from, if transformers has it (ghp_hf_save); else NULL
 *
 * Returns   as ghp_inspect_export; GHP_ERR_INPUT also if the network is not of a family of transformers
 * Tested    tests/tools/networks/test_huggingface.sh */
struct ghp_inspect_hf {
    const char *folder;     /* where the network goes; NULL: it is not written */
    const char *adapter;    /* where its low-rank matrices go, as the PEFT library has them */
    const char *checkpoint; /* safetensors with a tensor for each parameter */
    int64_t max_shard;      /* as in struct ghp_hf_source */
};
enum ghp_status ghp_inspect_export_hf(struct ghp_display *report, const struct ghp_model *model,
                                      const char *origin, const struct ghp_inspect_hf *hf);
/* The same for a plan's network. Its origin is the network that the plan was made for, if ghp_network_find finds it. */
enum ghp_status ghp_inspect_export_hf_plan(struct ghp_display *report, const struct ghp_plan *plan,
                                           const char *plan_path, const struct ghp_inspect_hf *hf);

#endif
