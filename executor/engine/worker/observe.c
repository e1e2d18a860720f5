/* executor/engine/worker/observe.c - which tensor an instruction shows to the observer (engine/observer.h). */
#include "executor/engine/worker_private.h"

#include <stdlib.h>

void ghp_worker_observe(struct ghp_worker *w, const struct ghp_observer *observer)
{
    w->observer = observer;
}

/* The last of the layers whose forward passes the instruction's kernel does. */
static int last_forward(const struct ghp_worker *w, int i)
{
    const struct ghp_epilogue *does = &ghp_worker_instr(w, i)->fusion.does;
    const int others[] = {does->bias, does->add, does->relu};
    int last = i;

    for (size_t o = 0; w->prepared[i].fuses && o < sizeof others / sizeof others[0]; o++)
        if (others[o] > last && ghp_worker_instr(w, others[o])->pass == GHP_PASS_FORWARD)
            last = others[o];
    return last;
}

typedef enum ghp_status see_function(void *context, const struct ghp_observed *observed);

/* A tensor on a device: a copy of it in host memory, and back. */
static enum ghp_status see_copy(struct ghp_worker *w, see_function *see, struct ghp_observed *o,
                                int64_t bytes)
{
    struct ghp_copy copy = {NULL, o->values, bytes, GHP_COPY_TO_HOST};
    enum ghp_status status = GHP_OK;

    copy.to = ghp_alloc((size_t)bytes, 1);
    if (copy.to == NULL) return GHP_NO_MEMORY();
    o->values = copy.to;
    GHP_TRY_GOTO(status, ghp_device_copy(w->arena.device, GHP_DEVICE_STREAM_COMPUTE, copy), done);
    GHP_TRY_GOTO(status, ghp_exec_context_finish(&w->exec, GHP_DEVICE_STREAM_COMPUTE), done);
    GHP_TRY_GOTO(status, see(w->observer->context, o), done);
    copy = (struct ghp_copy){(void *)(uintptr_t)copy.from, copy.to, bytes, GHP_COPY_TO_DEVICE};
    GHP_TRY_GOTO(status, ghp_device_copy(w->arena.device, GHP_DEVICE_STREAM_COMPUTE, copy), done);
    status = ghp_exec_context_finish(&w->exec, GHP_DEVICE_STREAM_COMPUTE);
done:
    free(o->values);
    return status;
}

enum shown { OUTPUT, GRADIENT, LOGITS };

static enum ghp_status show(struct ghp_worker *w, const struct ghp_instr *instr, enum shown what)
{
    int layer = instr->layer;
    int buffer = what == GRADIENT ? instr->at.dy : what == LOGITS ? instr->at.x[0] : instr->at.y;
    see_function *see = what == LOGITS ? w->observer->see_logits : w->observer->see;
    const struct ghp_placement *placement = &w->program.placement;
    const struct ghp_shape shape = w->program.model->layers[layer].out;
    int64_t bytes; /* with padding */
    struct ghp_observed o = {.layer = layer,
                             .gradient = what == GRADIENT,
                             .shape = shape,
                             .layout = what == GRADIENT ? instr->layouts.dy
                                       : what == LOGITS ? instr->layouts.x
                                                        : instr->layouts.y,
                             .nchw16c = w->program.buffers[buffer].nchw16c,
                             .element_bytes =
                                 ghp_shape_element_bytes(shape, w->program.element_bytes),
                             .values = w->address[buffer]};

    if (see == NULL) return GHP_OK;
    o.at = ghp_placement_region(placement, o.layout, shape);
    o.at.first_sample += instr->micro * placement->micro_batch;
    o.row = o.at.channels;
    bytes = ghp_observed_elements(&o) * o.element_bytes;
    if (o.at.first_channel + o.at.channels > shape.c)
        o.at.channels = shape.c > o.at.first_channel ? shape.c - o.at.first_channel : 0;
    return ghp_device_is_host(w->arena.device) ? see(w->observer->context, &o)
                                               : see_copy(w, see, &o, bytes);
}

enum ghp_status ghp_worker_show_output(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    bool loads = instr->kind == GHP_INSTR_LOAD && instr->at.y >= 0;
    bool makes = instr->kind == GHP_INSTR_COMPUTE && instr->pass == GHP_PASS_FORWARD &&
                 instr->block + 1 >= instr->blocks && !instr->recompute && instr->at.y >= 0 &&
                 !ghp_worker_done_by_another(w, i);

    if (loads) return show(w, instr, OUTPUT);
    return makes ? show(w, ghp_worker_instr(w, last_forward(w, i)), OUTPUT) : GHP_OK;
}

/* The layer's first backward pass of this micro-batch: later ones may have written over dy. */
static bool begins_backward(const struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);

    for (int j = i - 1; j >= 0; j--) {
        const struct ghp_instr *before = ghp_worker_instr(w, j);

        if (before->kind == GHP_INSTR_COMPUTE && before->layer == instr->layer &&
            before->micro == instr->micro && ghp_pass_is_backward(before->pass) &&
            !ghp_worker_done_by_another(w, j))
            return false;
    }
    return true;
}

enum ghp_status ghp_worker_show_gradient(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    int relu = w->prepared[i].fuses && instr->fusion.does.relu < i ? instr->fusion.does.relu : -1;

    if (instr->kind != GHP_INSTR_COMPUTE || !ghp_pass_is_backward(instr->pass) ||
        instr->at.dy < 0 || ghp_worker_done_by_another(w, i) || !begins_backward(w, i))
        return GHP_OK;
    /* a kernel that does a ReLU's backward pass before its own reads the gradient of the ReLU's output */
    return show(w, relu >= 0 ? ghp_worker_instr(w, relu) : instr, GRADIENT);
}

enum ghp_status ghp_worker_show_logits(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    bool is_loss = instr->kind == GHP_INSTR_COMPUTE && instr->pass == GHP_PASS_FORWARD &&
                   instr->at.metrics >= 0 && !instr->recompute;

    return is_loss ? show(w, instr, LOGITS) : GHP_OK;
}
