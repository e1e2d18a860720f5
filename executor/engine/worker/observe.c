/* executor/engine/worker/observe.c - which tensor an instruction shows to the observer (engine/observer.h). */
#include "executor/engine/worker_private.h"

void ghp_worker_observe(struct ghp_worker *w, const struct ghp_observer *observer)
{
    GHP_ASSERT(observer == NULL || ghp_device_is_host(ghp_exec_context_device(&w->exec)));
    w->observer = observer;
}

/* Whether another instruction's kernel did its work. */
static bool done_by_another(const struct ghp_worker *w, int i)
{
    int by = ghp_worker_instr(w, i)->fusion.by;

    return by >= 0 && w->prepared[by].fuses;
}

/* The last of the layers whose forward passes the instruction's kernel does. */
static int last_forward(const struct ghp_worker *w, int i)
{
    const struct ghp_epilogue *does = &ghp_worker_instr(w, i)->fusion.does;
    const int others[] = {does->bias, does->add, does->relu};
    int last = i;

    for (size_t o = 0; w->prepared[i].fuses && o < sizeof(others) / sizeof(others[0]); o++)
        if (others[o] > last && ghp_worker_instr(w, others[o])->pass == GHP_PASS_FORWARD)
            last = others[o];
    return last;
}

static enum ghp_status show(struct ghp_worker *w, const struct ghp_instr *instr, bool gradient)
{
    int layer = instr->layer, buffer = gradient ? instr->at.dy : instr->at.y;
    const struct ghp_placement *placement = &w->program.placement;
    const struct ghp_shape shape = w->work.model->layers[layer].out;
    struct ghp_layouts layouts = ghp_split_layouts(w->work.splits[layer]);
    struct ghp_observed o = {.layer = layer,
                             .gradient = gradient,
                             .shape = shape,
                             .layout = gradient ? layouts.dy : layouts.y,
                             .nchw16c = w->program.buffers[buffer].nchw16c,
                             .element_bytes = ghp_shape_element_bytes(shape, w->work.element_bytes),
                             .values = w->address[buffer]};

    o.at = ghp_placement_window(placement, o.layout, shape);
    o.at.first_sample += instr->micro * placement->micro_batch;
    o.row = o.at.channels;
    if (o.at.first_channel + o.at.channels > shape.c)
        o.at.channels = shape.c > o.at.first_channel ? shape.c - o.at.first_channel : 0;
    return w->observer->see(w->observer->context, &o);
}

enum ghp_status ghp_worker_show_output(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    bool loads = instr->kind == GHP_INSTR_LOAD && instr->at.y >= 0;
    bool makes = instr->kind == GHP_INSTR_COMPUTE && instr->pass == GHP_PASS_FORWARD &&
                 !instr->recompute && instr->at.y >= 0 && !done_by_another(w, i);

    if (loads) return show(w, instr, false);
    return makes ? show(w, ghp_worker_instr(w, last_forward(w, i)), false) : GHP_OK;
}

/* The layer's first backward pass of this micro-batch: later ones may have written over dy. */
static bool begins_backward(const struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);

    for (int j = i - 1; j >= 0; j--) {
        const struct ghp_instr *before = ghp_worker_instr(w, j);

        if (before->kind == GHP_INSTR_COMPUTE && before->layer == instr->layer &&
            before->micro == instr->micro && ghp_pass_is_backward(before->pass) &&
            !done_by_another(w, j))
            return false;
    }
    return true;
}

enum ghp_status ghp_worker_show_gradient(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    int relu = w->prepared[i].fuses ? instr->fusion.does.relu : -1;

    if (instr->kind != GHP_INSTR_COMPUTE || !ghp_pass_is_backward(instr->pass) ||
        instr->at.dy < 0 || done_by_another(w, i) || !begins_backward(w, i))
        return GHP_OK;
    /* a kernel that leaves out what a ReLU behind it does reads the gradient of the ReLU's output */
    return show(w, relu >= 0 ? ghp_worker_instr(w, relu) : instr, true);
}
