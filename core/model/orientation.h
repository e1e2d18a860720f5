/* core/model/orientation.h - parameters as files of tensors hold them: checkpoints, and what a module saves.
 *
 * A linear layer's weight is [K][C] in ghp. The module of one that is `transposed` computes x @ weight, so files under
 * the module's names hold [C][K].
 *
 * Tested  tests/core/model/test_orientation.c, tests/tools/together/test_way_back.sh */
#ifndef GHP_CORE_MODEL_ORIENTATION_H
#define GHP_CORE_MODEL_ORIENTATION_H

#include "core/model/model.h"
#include "core/model/safetensors.h"

/* The key in a checkpoint's metadata that says that its model has transposed parameters. Checkpoints of older versions
 * lack it; their parameters are in ghp's order. */
extern const char ghp_transposed_key[];
/* Whether a file has transposed parameters as their module has them: any file but such a checkpoint.
 *
 * path    of the file, for the message
 * model   whose parameters it is read for
 *
 * Returns   GHP_OK; GHP_ERR_INPUT: the file is a checkpoint of transposed parameters, and the model has none. It is
 *           then of an older plan of the same network. */
enum ghp_status ghp_file_orientation(const char *path, const struct ghp_safetensors *file,
                                     const struct ghp_model *model, bool *oriented);

/* The parameter's dimensions in files. */
void ghp_param_file_dims(const struct ghp_param *param, int64_t dims[GHP_MAX_DIMS]);

/* All values of a parameter from ghp's order into that of files, in place, and back. A parameter that is not transposed
 * stays as it is.
 *
 * element_bytes   of a value, 4 or 8
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY, and the values are as before */
enum ghp_status ghp_param_to_file(const struct ghp_param *param, int element_bytes, void *values);
enum ghp_status ghp_param_from_file(const struct ghp_param *param, int element_bytes, void *values);

#endif
