/* core/model/parameter_names.h - parameters by patterns of their names, as options name them. */
#ifndef GHP_CORE_MODEL_PARAMETER_NAMES_H
#define GHP_CORE_MODEL_PARAMETER_NAMES_H

#include "core/model/model.h"

/* Whether a pattern (of fnmatch) names a tensor, or is the name of the module that the tensor is in. */
bool ghp_parameter_is_named(const char *pattern, const char *tensor);

/* Refuses a pattern that names no parameter of the network.
 *
 * option   in messages, without its dashes
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the nearest parameter; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_parameters_check_pattern(const struct ghp_model *model, const char *option,
                                             const char *pattern);

#endif
