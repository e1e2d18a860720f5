/* core/model/op/pool/resize.c - more or fewer pixels: each is a mean of those that lie where it is. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const ways[] = {
#define WAY_NAME(id, text) text,
    GHP_RESIZE_LIST(WAY_NAME)
#undef WAY_NAME
        NULL};

static const struct ghp_attribute attributes[] = {{.key = "height",
                                                   .kind = GHP_ATTRIBUTE_INT,
                                                   .required = true,
                                                   .least = 1,
                                                   .most = GHP_MODEL_SIZE,
                                                   .at = {offsetof(struct ghp_layer, out.h)}},
                                                  {.key = "width",
                                                   .kind = GHP_ATTRIBUTE_INT,
                                                   .required = true,
                                                   .least = 1,
                                                   .most = GHP_MODEL_SIZE,
                                                   .at = {offsetof(struct ghp_layer, out.w)}},
                                                  {.key = "mode",
                                                   .kind = GHP_ATTRIBUTE_CHOICE,
                                                   .choices = ways,
                                                   .at = {offsetof(struct ghp_layer, resize)}},
                                                  {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    (void)model;
    layer->out.c = layer->in.c;
    return GHP_OK;
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    snprintf(text, n, " to%" PRId64 "x%" PRId64 " %s", local->p, local->q, ways[local->resize]);
}

const struct ghp_op_facts ghp_op_facts_resize = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_IMAGES,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY, GHP_AT_DX}},
    .key = key,
};
