/* executor/engine/observer.h - sees the tensors of a step as its instructions make them: each layer's output after its
 * forward pass, the gradient of that output before its backward pass, and the logits that enter the loss.
 *
 * A device's tensors are seen as copies in host memory, and such steps are enqueued one by one. What a kernel does
 * together with others (core/program/fuse.h) has no tensor of its own in between: of a bias and a ReLU that a
 * convolution's kernel does, the ReLU's output is seen. So two programs of one network may show different tensors,
 * and an observer compares those that both show. An observer may overwrite a tensor; the step then continues with
 * the new values. */
#ifndef GHP_EXECUTOR_ENGINE_OBSERVER_H
#define GHP_EXECUTOR_ENGINE_OBSERVER_H

#include "core/program/program.h"

struct ghp_observed { /* this worker's part of one tensor */
    int layer;
    bool gradient;          /* of the loss by the layer's output; else that output */
    struct ghp_shape shape; /* of the whole tensor, a sample */
    struct ghp_layout layout;
    struct ghp_region at; /* of the global batch and the whole tensor, without padding */
    int64_t row;          /* channels of a pixel in memory, with padding */
    bool nchw16c;         /* in blocks of channels: [n][c / 16][h][w][16]; else [n][h][w][c] */
    int element_bytes;    /* 2, 4, 8; token ids: 4, int32 */
    void *values;
};

struct ghp_observer { /* a failure ends the step with it */
    /* outputs and gradients; or NULL */
    enum ghp_status (*see)(void *context, const struct ghp_observed *observed);
    /* the loss's input, as of the loss's layer; or NULL */
    enum ghp_status (*see_logits)(void *context, const struct ghp_observed *observed);
    void *context;
};

/* Value i of a part, counted [n][h][w][c] without padding; and in place of it another, rounded to its precision.
 * Local. Tested tests/executor/train/verify/test_layerwise.c */
double ghp_observed_get(const struct ghp_observed *observed, int64_t i);
void ghp_observed_set(const struct ghp_observed *observed, int64_t i, double value);
int64_t ghp_observed_elements(const struct ghp_observed *observed);

#endif
