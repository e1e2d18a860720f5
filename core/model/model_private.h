/* core/model/model_private.h - what model*.c and the plan's reader share.
 *
 * A reader fills in of each layer: name, op, inputs, and what its table of attributes lists (of the input layer `out`).
 * Everything else follows from that, layer by layer. */
#ifndef GHP_CORE_MODEL_MODEL_PRIVATE_H
#define GHP_CORE_MODEL_MODEL_PRIVATE_H

#include "core/base/json.h"
#include "core/model/model.h"

/* Shapes and parameters of one layer whose inputs are complete.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the layer and what would fit; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_model_complete_layer(struct ghp_model *model, int layer);

/* GHP_ERR_INPUT: the layer, its operation, and what is wrong with it. */
enum ghp_status ghp_model_fail(const struct ghp_layer *layer, const char *problem);

/* Frees what ghp_model_complete_layer and ghp_model_connect make of a layer. */
void ghp_model_drop_derived(struct ghp_layer *layer);

/* ---- for the operations' shape rules ---- */

/* The output of several inputs that agree in all (concat: but channels, which are summed). Returns GHP_OK;
 * GHP_ERR_INPUT. */
enum ghp_status ghp_shape_join(const struct ghp_model *model, struct ghp_layer *layer, bool concat);

/* Operations that take elements by index count the elements of a sample in 32 bits. Returns GHP_OK; GHP_ERR_INPUT. */
#define GHP_MAX_INDEXED INT64_C(0x7fffffff)
enum ghp_status ghp_shape_check_indexed(const struct ghp_layer *layer);

#define GHP_MAX_CLASSES (INT64_C(1) << 24) /* outputs that a loss takes */

/* Edges, consumers and classes of a model whose layers are complete; refuses layers that nothing reads, a last layer
 * that is not the loss, and names used twice.
 *
 * wrong     receives the layer that the failure is about (-1: the whole model); may be NULL
 *
 * Returns   GHP_OK; GHP_ERR_INPUT; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_model_connect(struct ghp_model *model, int *wrong);

/* ---- reading ---- */

/* What a file may say at most: channels of one layer, and any other size. */
enum { GHP_MODEL_CHANNELS = 1 << 24, GHP_MODEL_SIZE = 1 << 20 };

/* Reads a model from a place in a document, which may be a part of another file.
 *
 * model     filled on success, zeroed on failure; released by the caller
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT; GHP_ERR_INPUT; GHP_ERR_NO_MEMORY, with line and column */
enum ghp_status ghp_model_read(const struct ghp_node *at, struct ghp_model *model);

/* ghp_model_parse of a text that was made from another file: messages name places as the origin does. */
enum ghp_status ghp_model_parse_from(const char *text, const char *name,
                                     const struct ghp_json_origin *origin, struct ghp_model *model);

/* ghp_model_parse of a description that was changed in memory. */
enum ghp_status ghp_model_parse_value(const json_t *description, const char *name,
                                      struct ghp_model *model);

/* Makes a model what another description says, a text or a value: its own with some keys changed.
 *
 * Returns   GHP_OK; as ghp_model_parse, and the model is as before then */
enum ghp_status ghp_model_replace(struct ghp_model *model, const char *text);
enum ghp_status ghp_model_replace_by(struct ghp_model *model, const json_t *description);

/* What the bias that layer `maker` has by default is tied to, as struct ghp_layer has it. If the layer is tied to one of
 * its operation, that is the other's own bias, as a module called twice has one; else 0: nothing. */
int ghp_model_tied_bias(const struct ghp_model *model, int maker);

/* The layer that an item of `layers` in the model's description is about, or -1. */
int ghp_model_item_layer(const struct ghp_model *model, int64_t item);

/* The model's one description in the fewest words: defaults are left out, and a bias that follows its layer is written
 * as a key of that layer. What ghp_model_parse makes of it is the same model. text: one line, freed by the caller.
 *
 * model   its layers complete; need not be connected
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Tested    tests/core/model/test_model.c */
enum ghp_status ghp_model_write(const struct ghp_model *model, char **text);

#endif
