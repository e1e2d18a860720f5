/* core/optimizer/parameter_groups.h - parameters whose updates differ from the others': by a multiple of the learning
 * rate, or without weight decay. What PyTorch has in an optimizer's parameter groups.
 *
 * A run's choice, not the network's: it is noted in the parameters themselves, and no file holds it.
 *
 * Tested   tests/core/optimizer/test_parameter_groups.c, tests/tools/learn/test_freeze.sh */
#ifndef GHP_CORE_OPTIMIZER_PARAMETER_GROUPS_H
#define GHP_CORE_OPTIMIZER_PARAMETER_GROUPS_H

#include "core/base/opts.h"
#include "core/model/model.h"

#define GHP_LEAST_RATE_SCALE 1e-9
#define GHP_MOST_RATE_SCALE 1e9

struct ghp_parameter_groups {
    struct ghp_opt_list rates; /* "PATTERN=X"; of several that name a parameter the last counts */
    struct ghp_opt_list undecayed; /* patterns */
};

/* The rows of a tool's option table that set it. */
#define GHP_PARAMETER_GROUP_OPTIONS(groups)                                                        \
    {.name = "lr-scale",                                                                           \
     .kind = GHP_OPT_LIST,                                                                         \
     .target = &(groups).rates,                                                                    \
     .argument = "PATTERN=X",                                                                      \
     .help = "X times the learning rate for these parameters, such as 'layer4.*=0.1'"},            \
    {                                                                                              \
        .name = "weight-decay-except", .kind = GHP_OPT_LIST, .target = &(groups).undecayed,        \
        .argument = "PATTERN", .help = "parameters without weight decay, such as '*.bias'"         \
    }

/* Notes the groups in a network's parameters.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (no such multiple); GHP_ERR_INPUT (a pattern names nothing, or only parameters that
 *           are fixed); GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_parameter_groups_set(const struct ghp_parameter_groups *groups,
                                         struct ghp_model *model);

/* Times the learning rate. */
double ghp_parameter_rate(const struct ghp_layer *layer, int slot);

#endif
