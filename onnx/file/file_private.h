/* onnx/file/file_private.h - private to onnx/file/file.c and onnx/file/tensor.c, which see protobuf's messages. */
#ifndef GHP_ONNX_FILE_PRIVATE_H
#define GHP_ONNX_FILE_PRIVATE_H

#include "onnx/file/file.h"

static inline const char *ghp_onnx_text_of(const char *text)
{
    return text != NULL ? text : "";
}

/* Fills `tensor` from its message. The values stay in the message.
 *
 * message   the library's, outlives `tensor`
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT (too many dimensions, an impossible size, missing values) */
enum ghp_status ghp_onnx_tensor_read(const void *message, struct ghp_onnx_tensor *tensor);

/* The value under a key of the metadata that a graph, node or value has; the format's number of that field says which.
 *
 * value   NULL if there is none; the caller frees it
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_metadata_find(const void *message, unsigned field, const char *key,
                                       char **value);

#endif
