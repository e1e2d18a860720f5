/* onnx/read/role.h - which constants of a file are trained: its *roles*.
 *
 * PyTorch's exporter with dynamo lists the parameters and buffers of a module. The exporter without dynamo has no such
 * list; a name that ends in .weight or .bias is then taken as a parameter's. The metadata 'ghp.parameters', a list of
 * names as JSON, comes before both. Other files do not say it: arrays are trained, single values are not.
 *
 * Tested  tests/onnx/test_warn.c, tests/tools/networks/test_parameters.sh */
#ifndef GHP_ONNX_READ_ROLE_H
#define GHP_ONNX_READ_ROLE_H

#include "onnx/read/import.h"

/* The names that the file's metadata lists under a key, read if *names is NULL; it stays NULL without the key.
 *
 * remedy   what to write there instead of something else than a list of names
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (a malformed list) */
enum ghp_status ghp_onnx_listed_names(const struct ghp_onnx_import *im, const char *key,
                                      const char *remedy, json_t **names);
bool ghp_onnx_is_listed(const json_t *names, const char *name); /* names may be NULL */

/* Sets the role of a constant that the file holds. Returns GHP_OK; GHP_ERR_INPUT (a malformed list);
 * GHP_ERR_NO_MEMORY. */
enum ghp_status ghp_onnx_role_of_tensor(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_array *array);
/* Sets the role of a constant that a node makes, by what it is made of. */
void ghp_onnx_role_of_made(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                           const struct ghp_onnx_array *array);
/* Hands the role of one constant to another that is computed from it. */
void ghp_onnx_role_hand_on(const struct ghp_onnx_array *from, const struct ghp_onnx_array *to);

/* Says of a constant that it is a parameter's but for the elements that are held; `held` lives as long as the
 * import. */
void ghp_onnx_role_hold(const struct ghp_onnx_array *parameter, const struct ghp_onnx_array *made,
                        const bool *held);
/* Elements that are held at zero. */
int64_t ghp_onnx_role_zeros(const struct ghp_onnx_array *array);
/* Refuses layers that would train what the file holds; once they are all there. Returns GHP_OK; GHP_ERR_INPUT. */
enum ghp_status ghp_onnx_role_check_held(const struct ghp_onnx_import *im);

/* Whether a constant is a number that nobody trains, such as an epsilon. */
bool ghp_onnx_role_is_number(const struct ghp_onnx_array *array);
/* Whether a constant is a parameter itself, or may be one. */
bool ghp_onnx_role_may_train(const struct ghp_onnx_array *array);

/* Refuses a constant that depends on a parameter if ghp takes a number, and a single value that may depend on one. */
enum ghp_status ghp_onnx_role_check_number(const struct ghp_onnx_import *im,
                                           const struct ghp_onnx_node *node,
                                           const struct ghp_onnx_array *array);
/* Refuses what a file computes from a parameter, or from what may be one; GHP_ERR_INPUT. */
enum ghp_status ghp_onnx_role_fail_computed(const struct ghp_onnx_import *im,
                                            const struct ghp_onnx_node *node,
                                            const struct ghp_onnx_array *array);
/* What a layer does with its source's values by their role: trains them, keeps them, or refuses. */
enum ghp_status ghp_onnx_role_apply(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    const struct ghp_onnx_source *source);

#endif
