/* core/program/fuse.c - see fuse.h. Finds everything in the list as lowered, then changes its order. */
#include "core/program/fuse_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- in a program ---- */

static bool is_forward(const struct ghp_instr *instr)
{
    return instr->kind == GHP_INSTR_COMPUTE && instr->pass == GHP_PASS_FORWARD;
}

static bool same_place(const struct ghp_program *program, int a, int b)
{
    struct ghp_buffer_place one, other;

    if (a < 0 || b < 0 || program->buffers[a].elements != program->buffers[b].elements)
        return false;
    one = ghp_place_of(program, a);
    other = ghp_place_of(program, b);
    return one.storage == other.storage && one.offset == other.offset;
}

/* Works in place on what `before` writes. */
static bool follows(const struct ghp_program *program, const struct ghp_instr *before, int i,
                    unsigned what)
{
    const struct ghp_instr *instr = &program->instrs[i];

    return i < program->n_instrs && is_forward(instr) && ghp_is_fused_as(instr->local.op, what) &&
           instr->micro == before->micro && same_place(program, before->at.y, instr->at.x[0]) &&
           same_place(program, before->at.y, instr->at.y);
}

/* The statistics that a batch norm's forward pass reads, if nothing is summed over workers in between. */
static int local_stats(const struct ghp_program *program, int taker)
{
    const struct ghp_instr *instr = &program->instrs[taker], *before = instr - 1;

    if (taker == 0 || before->kind != GHP_INSTR_COMPUTE || before->pass != GHP_PASS_STATS ||
        before->layer != instr->layer || before->micro != instr->micro)
        return -1;
    return taker - 1;
}

/* The addition of two tensors that alone reads what the batch norm before it writes, which then nobody writes: also not
 * when the addition is recomputed. What the batch norm needs is still there. */
static int addition_behind(const struct ghp_program *program, const struct ghp_model *model,
                           int taker)
{
    const struct ghp_instr *norm = &program->instrs[taker], *add = norm + 1;
    int lone;

    if (taker + 1 >= program->n_instrs || !is_forward(add) ||
        !ghp_is_fused_as(add->local.op, GHP_FUSES_ADD) || add->micro != norm->micro ||
        model->layers[add->layer].n_inputs != 2 ||
        ghp_fuse_reader(model, norm->layer, GHP_FUSES_ADD) != add->layer)
        return -1;
    lone = same_place(program, norm->at.y, add->at.x[0]) +
           same_place(program, norm->at.y, add->at.x[1]);
    return lone == 1 && !ghp_lives_at(program, norm->at.y, add->point + 1) &&
                   ghp_lives_at(program, norm->at.x[0], add->point) &&
                   ghp_lives_at(program, norm->at.saved, add->point)
               ? taker + 1
               : -1;
}

static struct ghp_epilogue behind_norm(const struct ghp_program *program,
                                       const struct ghp_model *model, int taker)
{
    struct ghp_epilogue found = ghp_fuses_nothing;
    int last = taker;

    found.stats = local_stats(program, taker);
    if (found.stats >= 0) found.add = addition_behind(program, model, taker);
    if (found.add >= 0) last = found.add;
    if (follows(program, &program->instrs[last], last + 1, GHP_FUSES_RELU)) found.relu = last + 1;
    return found;
}

/* The update of a weight, or the wait for one. */
static bool makes_ready(const struct ghp_instr *instr)
{
    return instr->kind == GHP_INSTR_UPDATE || (instr->kind == GHP_INSTR_WAIT && instr->edge < 0);
}

/* The addition of two tensors right before a norm that reads its sum, but for what makes the norm's weight ready. No
 * other has it, nor does it do more. -1: none. */
static int addition_before(const struct ghp_program *program, const struct ghp_model *model,
                           int taker)
{
    const struct ghp_instr *norm = &program->instrs[taker], *add;
    int i = taker - 1;

    while (i >= 0 && makes_ready(&program->instrs[i]))
        i--;
    add = &program->instrs[i];
    return i >= 0 && is_forward(add) && ghp_is_fused_as(add->local.op, GHP_FUSES_ADD) &&
                   add->micro == norm->micro && add->recompute == norm->recompute &&
                   add->fusion.by < 0 && add->fusion.does.relu < 0 &&
                   model->layers[add->layer].n_inputs == 2 &&
                   same_place(program, add->at.y, norm->at.x[0])
               ? i
               : -1;
}

/* What the forward pass of instruction `taker` also does. *update: the instruction right after it that makes the bias
 * ready, or -1. */
static struct ghp_epilogue find_forward(const struct ghp_program *program,
                                        const struct ghp_model *model, int taker, int *update)
{
    const struct ghp_instr *first = &program->instrs[taker];
    struct ghp_epilogue found = ghp_fuses_nothing;
    int next = taker + 1;

    *update = -1;
    if (ghp_fuses(first->local.op, GHP_FUSES_STATS)) return behind_norm(program, model, taker);
    if (ghp_fuses(first->local.op, GHP_FUSES_ADD_BEFORE))
        found.add = addition_before(program, model, taker);
    if (ghp_fuses(first->local.op, GHP_FUSES_BIAS)) {
        if (next < program->n_instrs && makes_ready(&program->instrs[next])) *update = next++;
        if (follows(program, first, next, GHP_FUSES_BIAS))
            found.bias = next++;
        else if (*update >= 0)
            return found;
    }
    if (ghp_fuses(first->local.op, GHP_FUSES_RELU) && follows(program, first, next, GHP_FUSES_RELU))
        found.relu = next;
    return found;
}

/* The pass of a layer in the same micro-batch, before instruction i; -1: none. */
static int earlier(const struct ghp_program *program, int i, int layer, enum ghp_pass pass)
{
    int micro = program->instrs[i].micro;

    while (--i >= 0) {
        const struct ghp_instr *instr = &program->instrs[i];

        if (instr->kind == GHP_INSTR_COMPUTE && instr->layer == layer && instr->pass == pass &&
            instr->micro == micro)
            return i;
    }
    return -1;
}

/* The backward pass of a ReLU right after instruction i, in place on what that leaves in `gradient`; -1: none. */
static int relu_behind(const struct ghp_program *program, int i, int gradient)
{
    const struct ghp_instr *next = &program->instrs[i + 1];

    if (i + 1 >= program->n_instrs || next->kind != GHP_INSTR_COMPUTE ||
        !ghp_is_fused_as(next->local.op, GHP_FUSES_RELU) || next->pass != GHP_PASS_BACKWARD_DATA ||
        next->micro != program->instrs[i].micro)
        return -1;
    return same_place(program, gradient, next->at.dy) &&
                   same_place(program, gradient, next->at.dx[0])
               ? i + 1
               : -1;
}

/* ---- the pass ---- */

struct fusing {
    const struct ghp_model *model;
    struct ghp_program *program;
    int *order; /* of each place in the new list: the instruction of the old one */
};

/* Instruction i does all that; each of them is done by one instruction. */
static void note(struct fusing *f, int i, struct ghp_epilogue does)
{
    const int done[] = {does.bias, does.relu, does.stats, does.add, does.gradient};

    f->program->instrs[i].fusion.does = does;
    for (size_t k = 0; k < sizeof done / sizeof *done; k++) {
        if (done[k] < 0) continue;
        GHP_ASSERT(f->program->instrs[done[k]].fusion.by < 0);
        f->program->instrs[done[k]].fusion.by = i;
    }
}

/* Instruction `from` runs in the place of `to`, before it; all from there on run one place later. Those of other
 * streams keep their order, which updates rely on. */
static void move(struct fusing *f, int from, int to)
{
    for (int k = to; k <= from; k++)
        GHP_ASSERT_EQ(f->order[k], k);
    GHP_ASSERT_EQ(f->program->instrs[from].stream, GHP_STREAM_COMPUTE);
    for (int k = from; k > to; k--)
        f->order[k] = k - 1;
    f->order[to] = from;
}

/* What an addition writes or reads lives where the kernel runs that does it. */
static void keep_addition(struct ghp_program *program, const struct ghp_operands *add, int point)
{
    ghp_keep_at(program, add->y, point);
    for (int x = 0; x < 2; x++)
        ghp_keep_at(program, add->x[x], point);
}

/* The bias was reduced before the weights of the product were, whose update waited for both. */
static void fuse_forward(struct fusing *f, int i)
{
    struct ghp_instr *first = &f->program->instrs[i];
    int update;
    struct ghp_epilogue does;

    if (!is_forward(first) || !ghp_fuses(first->local.op, GHP_FUSES_FORWARD)) return;
    if (first->fusion.by >= 0) return; /* an addition whose batch norm has the ReLU too */
    does = find_forward(f->program, f->model, i, &update);
    note(f, i, does);
    if (does.add >= 0) keep_addition(f->program, &f->program->instrs[does.add].at, first->point);
    if (update < 0) return;
    f->program->instrs[update].point = first->point;
    move(f, update, i);
}

/* The convolution right before a batch norm's STATS, in place, but for what makes the norm's weights ready. -1: none,
 * or another tensor comes between. */
static int summed_before(const struct fusing *f, int stats)
{
    const struct ghp_instr *norm = &f->program->instrs[stats], *conv;
    int i = stats - 1;

    while (i >= 0 && makes_ready(&f->program->instrs[i]))
        i--;
    conv = &f->program->instrs[i];
    return i >= 0 && is_forward(conv) && conv->layer == ghp_fuse_summed(f->model, norm->layer) &&
                   conv->micro == norm->micro && !conv->recompute && !norm->recompute &&
                   same_place(f->program, conv->at.y, norm->at.x[0])
               ? i
               : -1;
}

/* The sums of a batch norm's input, by the convolution that makes it. `forward` is the norm's forward pass, whose place
 * for statistics has them until then. */
static void fuse_sums(struct fusing *f, int forward)
{
    struct ghp_program *program = f->program;
    struct ghp_instr *norm = &program->instrs[forward];
    int stats, conv;

    if (!is_forward(norm) || !ghp_fuses(norm->local.op, GHP_FUSES_STATS) || norm->at.saved < 0)
        return;
    stats = earlier(program, forward, norm->layer, GHP_PASS_STATS);
    conv = stats >= 0 ? summed_before(f, stats) : -1;
    if (conv < 0) return;
    program->instrs[conv].fusion.does.sums = forward;
    program->instrs[stats].fusion.does.sums = norm->fusion.does.sums = conv;
    ghp_keep_at(program, norm->at.saved, program->instrs[conv].point);
}

/* Whether the instruction before the sum makes what is added, and reads nothing of what it is added to. */
static bool is_made_before(const struct fusing *f, int i)
{
    const struct ghp_program *program = f->program;
    const struct ghp_instr *sum = &program->instrs[i], *maker = sum - 1;

    return i > 0 && maker->kind == GHP_INSTR_COMPUTE && maker->pass == GHP_PASS_BACKWARD_DATA &&
           maker->layer == f->model->edges[sum->edge].to && maker->micro == sum->micro &&
           same_place(program, maker->at.dx[0], sum->at.x[0]) &&
           ghp_place_of(program, maker->at.dy).storage != ghp_place_of(program, sum->at.dy).storage;
}

/* Fuses a sum of gradients. It takes the mask of a ReLU that follows; else the kernel before it does the sum. */
static void fuse_sum(struct fusing *f, int i)
{
    const struct ghp_instr *sum = &f->program->instrs[i];
    struct ghp_epilogue does = ghp_fuses_nothing;

    if (sum->kind != GHP_INSTR_ACCUMULATE || sum->edge < 0) return;
    if (sum->joins && is_made_before(f, i)) {
        does.add = i;
        note(f, i - 1, does);
        return;
    }
    does.relu = relu_behind(f->program, i, sum->at.dy);
    note(f, i, does);
}

/* Fuses the backward pass of the ReLU before a max pool, if it follows right after the pool's, `data`. */
static void fuse_pool(struct fusing *f, int data)
{
    const struct ghp_program *program = f->program;
    const struct ghp_instr *pool = &program->instrs[data];
    struct ghp_epilogue does = ghp_fuses_nothing;
    int before, forward;

    if (pool->kind != GHP_INSTR_COMPUTE || !ghp_fuses(pool->local.op, GHP_FUSES_RELU_BEFORE) ||
        pool->pass != GHP_PASS_BACKWARD_DATA)
        return;
    before = f->model->layers[pool->layer].inputs[0];
    does.relu = relu_behind(program, data, pool->at.dx[0]);
    if (does.relu < 0 || program->instrs[does.relu].layer != before ||
        ghp_fuse_pool(f->model, before) != pool->layer)
        return;
    forward = earlier(program, data, pool->layer, GHP_PASS_FORWARD);
    if (forward >= 0) note(f, forward, does);
}

/* A convolution's gradient, and the backward pass of the ReLU that made its input right after it, in place. */
static void fuse_mask(struct fusing *f, int data)
{
    const struct ghp_instr *conv = &f->program->instrs[data];
    struct ghp_epilogue does = ghp_fuses_nothing;

    if (conv->kind != GHP_INSTR_COMPUTE || !ghp_fuses(conv->local.op, GHP_FUSES_MASK) ||
        conv->pass != GHP_PASS_BACKWARD_DATA)
        return;
    does.relu = relu_behind(f->program, data, conv->at.dx[0]);
    if (does.relu >= 0 &&
        f->program->instrs[does.relu].layer == ghp_fuse_masked(f->model, conv->layer))
        note(f, data, does);
}

/* Whether the sums that instruction `stats` takes reach `data` as they are, and dx can be written where they are
 * taken. */
static bool has_local_stats(const struct ghp_program *program, int stats, int data)
{
    const struct ghp_instr *last = &program->instrs[data];
    bool local = program->instrs[stats].point == last->point;

    for (int i = stats + 1; i < data; i++)
        local = local && (program->instrs[i].kind != GHP_INSTR_STAT_REDUCE ||
                          program->instrs[i].layer != last->layer);
    return local;
}

/* The ReLU after a batch norm whose backward pass writes the norm's dy; -1: none, or a sum has it. */
static int relu_before(const struct fusing *f, int stats, const struct ghp_instr *norm)
{
    int relu = ghp_fuse_reader(f->model, norm->layer, GHP_FUSES_RELU);

    if (relu >= 0) relu = earlier(f->program, stats, relu, GHP_PASS_BACKWARD_DATA);
    return relu >= 0 && f->program->instrs[relu].fusion.by < 0 &&
                   same_place(f->program, f->program->instrs[relu].at.dy, norm->at.dy)
               ? relu
               : -1;
}

/* A batch norm's backward passes; `data` is the last of them. */
static void fuse_norm(struct fusing *f, int data)
{
    struct ghp_instr *norm = &f->program->instrs[data];
    struct ghp_epilogue does = ghp_fuses_nothing;
    int stats;

    if (norm->kind != GHP_INSTR_COMPUTE || !ghp_fuses(norm->local.op, GHP_FUSES_STATS) ||
        norm->pass != GHP_PASS_BACKWARD_DATA)
        return;
    stats = earlier(f->program, data, norm->layer, GHP_PASS_BACKWARD_STATS);
    if (stats < 0) return;
    does.relu = relu_before(f, stats, norm);
    if (has_local_stats(f->program, stats, data)) {
        does.stats = stats;
        move(f, data, stats + 1);
    } else if (does.relu >= 0) {
        f->program->instrs[stats].fusion.does.relu = does.relu;
        f->program->instrs[stats].fusion.with = data;
        norm->fusion.with = stats;
    }
    note(f, data, does);
}

/* A loss's backward pass `data`, which writes over its output. */
static void fuse_loss(struct fusing *f, int data)
{
    const struct ghp_instr *loss = &f->program->instrs[data];
    struct ghp_epilogue does = ghp_fuses_nothing;
    int forward;

    if (loss->kind != GHP_INSTR_COMPUTE || !ghp_fuses(loss->local.op, GHP_FUSES_GRADIENT) ||
        loss->pass != GHP_PASS_BACKWARD_DATA)
        return;
    forward = earlier(f->program, data, loss->layer, GHP_PASS_FORWARD);
    if (forward < 0 || !same_place(f->program, f->program->instrs[forward].at.y, loss->at.dx[0]))
        return;
    does.gradient = data;
    note(f, forward, does);
}

static void renumber(int *instr, const int *place_of_old)
{
    if (*instr >= 0) *instr = place_of_old[*instr];
}

/* The instructions in their new order, which name each other by it. */
static enum ghp_status reorder(struct fusing *f)
{
    struct ghp_program *program = f->program;
    size_t n = (size_t)program->n_instrs;
    struct ghp_instr *list = ghp_alloc(n + 1, sizeof *list);
    int *places = ghp_alloc(n + 1, sizeof *places);

    if (list == NULL || places == NULL) {
        free(list);
        free(places);
        return GHP_NO_MEMORY();
    }
    for (int k = 0; k < program->n_instrs; k++)
        places[f->order[k]] = k;
    for (int k = 0; k < program->n_instrs; k++) {
        struct ghp_instr *instr = &list[k];
        int names[sizeof instr->fusion / sizeof(int)]; /* it holds nothing else */

        *instr = program->instrs[f->order[k]];
        renumber(&instr->wait, places);
        renumber(&instr->after, places);
        memcpy(names, &instr->fusion, sizeof names);
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            renumber(&names[j], places);
        memcpy(&instr->fusion, names, sizeof names);
    }
    free(places);
    free(program->instrs);
    program->instrs = list;
    program->max_instrs = program->n_instrs;
    return GHP_OK;
}

enum ghp_status ghp_program_fuse(const struct ghp_model *model, struct ghp_program *program)
{
    struct fusing f = {.model = model,
                       .program = program,
                       .order = ghp_alloc((size_t)program->n_instrs + 1, sizeof *f.order)};
    enum ghp_status status;

    if (f.order == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < program->n_instrs; i++)
        f.order[i] = i;
    for (int i = 0; i < program->n_instrs; i++) {
        fuse_forward(&f, i);
        fuse_sums(&f, i);
        fuse_sum(&f, i);
        fuse_pool(&f, i);
        fuse_mask(&f, i);
        fuse_norm(&f, i);
        fuse_loss(&f, i);
    }
    status = reorder(&f);
    free(f.order);
    return status;
}
