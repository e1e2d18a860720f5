/* onnx/huggingface/recognise.h - private to huggingface: which family's network a model is, whatever is fixed in it or
 * added to its layers (core/model/lora.h).
 *
 * It is not asked layer by layer: the config that its sizes suggest is made into a network again, and the two must be
 * the same. */
#ifndef GHP_ONNX_HUGGINGFACE_RECOGNISE_H
#define GHP_ONNX_HUGGINGFACE_RECOGNISE_H

#include "onnx/huggingface/origin.h"

struct ghp_hf_recognised {
    struct ghp_hf_config config;
    struct ghp_hf_network network;
    struct ghp_hf_origin origin; /* zeroed: none, or it is another network now */
};

/* folder   what is to be written, which must not be the origin
 * origin   as of ghp_hf_save
 * r        released by the caller; zeroed on failure
 *
 * Returns   as ghp_hf_save
 * Tested    tests/onnx/huggingface/test_save.c */
enum ghp_status ghp_hf_recognise(const char *folder, const struct ghp_model *model,
                                 const char *origin, struct ghp_hf_recognised *r);
void ghp_hf_recognised_release(struct ghp_hf_recognised *r); /* accepts a zeroed one */

#endif
