/* core/program/lower/layer.h - the instructions of one layer under its split. */
#ifndef GHP_CORE_PROGRAM_LOWER_LAYER_H
#define GHP_CORE_PROGRAM_LOWER_LAYER_H

#include "core/program/lower/emitter.h"

/* Returns also GHP_ERR_INPUT: a split that the layer, or the worker's stage, cannot take. */
enum ghp_status ghp_emit_layer_forward(const struct ghp_emitter *e, int layer,
                                       struct ghp_split split);
enum ghp_status ghp_emit_layer_backward(const struct ghp_emitter *e, int layer,
                                        struct ghp_split split);
/* The weight gradients that ghp_emit_layer_backward left out, as the schedule asks, and the reductions that are
 * ready. */
enum ghp_status ghp_emit_layer_deferred(const struct ghp_emitter *e, int layer,
                                        struct ghp_split split);
/* The update of all that this worker holds of a layer; nothing of a layer without parameters. */
enum ghp_status ghp_emit_whole_update(const struct ghp_emitter *e, int layer,
                                      struct ghp_split split);
/* The same at a point of the caller's. */
enum ghp_status ghp_emit_layer_update(const struct ghp_emitter *e, int layer,
                                      struct ghp_split split, int point);
/* Those of parameters whose owner is in an earlier stage, which makes its own gradients last: at the step's end. */
enum ghp_status ghp_emit_partner_reductions(const struct ghp_emitter *e);
/* The labels alone, in a last stage that does not load the samples. */
enum ghp_status ghp_emit_labels(const struct ghp_emitter *e);

#endif
