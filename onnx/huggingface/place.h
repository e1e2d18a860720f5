/* onnx/huggingface/place.h - private to huggingface: what a path says. */
#ifndef GHP_ONNX_HUGGINGFACE_PLACE_H
#define GHP_ONNX_HUGGINGFACE_PLACE_H

#include "onnx/huggingface/network.h"

#include <limits.h>

struct ghp_hf_place {
    char path[PATH_MAX];               /* without "@S" */
    const struct ghp_hf_config *known; /* NULL: a folder */
    int64_t positions;                 /* 0: the whole context */
};

/* Whether the path names a network of this room. */
bool ghp_hf_place_find(const char *path, struct ghp_hf_place *place);

/* Its config, its network and the positions of a sample.
 *
 * Returns   GHP_OK; what ghp_hf_config_load returns; GHP_ERR_INPUT (more positions than the context has) */
enum ghp_status ghp_hf_place_open(const char *path, struct ghp_hf_config *config,
                                  struct ghp_hf_network *network);

#endif
