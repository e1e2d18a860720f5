/* executor/engine/fuse.c - see fuse.h. */
#include "executor/engine/fuse.h"

static const struct ghp_epilogue nothing = {-1, -1, -1, -1, -1};

/* The only reader of a layer's output, where it is of that kind; else -1. */
static int reader_of(const struct ghp_model *model, int layer, enum ghp_op op)
{
    const struct ghp_layer *l = &model->layers[layer];
    int next = l->n_consumers == 1 ? model->edges[l->out_edges[0]].to : -1;

    return next >= 0 && model->layers[next].op == op ? next : -1;
}

/* ---- in a program ---- */

static bool is_forward(const struct ghp_instr *instr, enum ghp_op op)
{
    return instr->kind == GHP_INSTR_COMPUTE && instr->pass == GHP_PASS_FORWARD &&
           instr->local.op == op;
}

static bool same_place(const struct ghp_program *program, int a, int b)
{
    return a >= 0 && b >= 0 && ghp_buffer_offset(program, a) == ghp_buffer_offset(program, b) &&
           program->buffers[a].elements == program->buffers[b].elements;
}

/* Works in place on what `before` writes. */
static bool follows(const struct ghp_program *program, const struct ghp_instr *before, int i,
                    enum ghp_op op)
{
    const struct ghp_instr *instr = &program->instrs[i];

    return i < program->n_instrs && is_forward(instr, op) && instr->micro == before->micro &&
           same_place(program, before->at.y, instr->at.x[0]) &&
           same_place(program, before->at.y, instr->at.y);
}

static bool lives_at(const struct ghp_program *program, int buffer, int point)
{
    const struct ghp_buffer *b;

    if (buffer < 0) return true;
    while (program->buffers[buffer].storage != buffer)
        buffer = program->buffers[buffer].storage;
    b = &program->buffers[buffer];
    return b->persistent || b->last_point >= point;
}

/* The statistics that a batch norm's forward pass reads, where nothing is summed over workers in between. */
static int local_stats(const struct ghp_program *program, int taker)
{
    const struct ghp_instr *instr = &program->instrs[taker], *before = instr - 1;

    if (taker == 0 || before->kind != GHP_INSTR_COMPUTE || before->pass != GHP_PASS_STATS ||
        before->layer != instr->layer || before->micro != instr->micro)
        return -1;
    return taker - 1;
}

/* The addition of two tensors that alone reads what the batch norm before it writes, and what the batch norm needs is
 * still there. */
static int addition_behind(const struct ghp_program *program, const struct ghp_model *model,
                           int taker)
{
    const struct ghp_instr *norm = &program->instrs[taker], *add = norm + 1;
    int lone;

    if (taker + 1 >= program->n_instrs || !is_forward(add, GHP_OP_ADD) ||
        add->micro != norm->micro || model->layers[add->layer].n_inputs != 2 ||
        reader_of(model, norm->layer, GHP_OP_ADD) != add->layer)
        return -1;
    lone = same_place(program, norm->at.y, add->at.x[0]) +
           same_place(program, norm->at.y, add->at.x[1]);
    return lone == 1 && lives_at(program, norm->at.x[0], add->point) &&
                   lives_at(program, norm->at.saved, add->point)
               ? taker + 1
               : -1;
}

static struct ghp_epilogue behind_norm(const struct ghp_program *program,
                                       const struct ghp_model *model, int taker)
{
    struct ghp_epilogue found = nothing;
    int last = taker;

    found.stats = local_stats(program, taker);
    if (found.stats >= 0) found.add = addition_behind(program, model, taker);
    if (found.add >= 0) last = found.add;
    if (follows(program, &program->instrs[last], last + 1, GHP_OP_RELU)) found.relu = last + 1;
    return found;
}

/* What has a ReLU behind it applied, and of products a bias added, by its own kernel. */
static bool is_product(enum ghp_op op)
{
    return op == GHP_OP_CONV2D || op == GHP_OP_LINEAR;
}

static bool fuses_with(enum ghp_op op)
{
    return is_product(op) || op == GHP_OP_BATCH_NORM || op == GHP_OP_ADD;
}

struct ghp_epilogue ghp_fuse_find(const struct ghp_program *program, const struct ghp_model *model,
                                  int taker)
{
    const struct ghp_instr *first = &program->instrs[taker];
    struct ghp_epilogue found = nothing;
    int next = taker + 1;

    if (!fuses_with(first->local.op) || !is_forward(first, first->local.op)) return nothing;
    if (first->local.op == GHP_OP_BATCH_NORM) return behind_norm(program, model, taker);
    if (first->local.op == GHP_OP_ADD) {
        if (follows(program, first, next, GHP_OP_RELU)) found.relu = next;
        return found;
    }
    if (next < program->n_instrs && program->instrs[next].kind == GHP_INSTR_UPDATE)
        found.update = next++;
    if (next < program->n_instrs && follows(program, first, next, GHP_OP_BIAS))
        found.bias = next++;
    else if (found.update >= 0)
        return nothing;
    if (next < program->n_instrs && follows(program, first, next, GHP_OP_RELU)) found.relu = next;
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

/* The backward pass of a ReLU right behind instruction i, in place on what that leaves in `gradient`; -1: none. */
static int relu_behind(const struct ghp_program *program, int i, int gradient)
{
    const struct ghp_instr *next = &program->instrs[i + 1];

    if (i + 1 >= program->n_instrs || next->kind != GHP_INSTR_COMPUTE ||
        next->local.op != GHP_OP_RELU || next->pass != GHP_PASS_BACKWARD_DATA ||
        next->micro != program->instrs[i].micro)
        return -1;
    return same_place(program, gradient, next->at.dy) &&
                   same_place(program, gradient, next->at.dx[0])
               ? i + 1
               : -1;
}

int ghp_fuse_find_sum(const struct ghp_program *program, int sum)
{
    const struct ghp_instr *first = &program->instrs[sum];

    if (first->kind != GHP_INSTR_ACCUMULATE || first->edge < 0) return -1;
    return relu_behind(program, sum, first->at.dy);
}

struct ghp_relu_mask ghp_fuse_find_relu_mask(const struct ghp_program *program,
                                             const struct ghp_model *model, int data)
{
    static const struct ghp_relu_mask none = {-1, -1};
    const struct ghp_instr *pool = &program->instrs[data];
    struct ghp_relu_mask found;
    int before;

    if (pool->kind != GHP_INSTR_COMPUTE || pool->local.op != GHP_OP_MAX_POOL ||
        pool->pass != GHP_PASS_BACKWARD_DATA)
        return none;
    before = model->layers[pool->layer].inputs[0];
    found.relu = relu_behind(program, data, pool->at.dx[0]);
    found.forward = earlier(program, data, pool->layer, GHP_PASS_FORWARD);
    if (found.relu < 0 || found.forward < 0 || program->instrs[found.relu].layer != before ||
        reader_of(model, before, GHP_OP_MAX_POOL) != pool->layer)
        return none;
    return found;
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

struct ghp_prologue ghp_fuse_find_back(const struct ghp_program *program,
                                       const struct ghp_model *model, int data)
{
    struct ghp_prologue found = {-1, -1, false};
    const struct ghp_instr *last = &program->instrs[data];
    int relu;

    if (last->kind != GHP_INSTR_COMPUTE || last->local.op != GHP_OP_BATCH_NORM ||
        last->pass != GHP_PASS_BACKWARD_DATA)
        return found;
    found.stats = earlier(program, data, last->layer, GHP_PASS_BACKWARD_STATS);
    if (found.stats < 0) return found;
    found.local_stats = has_local_stats(program, found.stats, data);
    relu = reader_of(model, last->layer, GHP_OP_RELU);
    if (relu >= 0) relu = earlier(program, found.stats, relu, GHP_PASS_BACKWARD_DATA);
    if (relu >= 0 && same_place(program, program->instrs[relu].at.dy, last->at.dy))
        found.relu = relu;
    return found;
}

/* ---- in a model ---- */

struct ghp_epilogue ghp_fuse_layers(const struct ghp_model *model, int taker,
                                    struct ghp_fuse_scope scope)
{
    struct ghp_epilogue found = nothing;
    enum ghp_op op = model->layers[taker].op;
    int last = taker;

    if (!fuses_with(op) || (op == GHP_OP_LINEAR && !scope.linear)) return nothing;
    if (is_product(op)) found.bias = reader_of(model, taker, GHP_OP_BIAS);
    if (op == GHP_OP_BATCH_NORM && scope.local_stats) {
        found.stats = taker;
        found.add = reader_of(model, taker, GHP_OP_ADD);
        if (found.add != taker + 1 || model->layers[found.add].n_inputs != 2) found.add = -1;
    }
    if (found.bias >= 0) last = found.bias;
    if (found.add >= 0) last = found.add;
    found.relu = reader_of(model, last, GHP_OP_RELU);
    return found;
}

static bool is_read_by(const struct ghp_model *model, int layer, int reader)
{
    const struct ghp_layer *l = &model->layers[layer];
    bool reads = false;

    for (int i = 0; i < l->n_consumers; i++)
        reads = reads || model->edges[l->out_edges[i]].to == reader;
    return reads;
}

static bool is_fused_away(const struct ghp_model *model, int layer, enum ghp_pass pass,
                          struct ghp_fuse_scope scope)
{
    const struct ghp_layer *l = &model->layers[layer];

    if (l->op == GHP_OP_BATCH_NORM) return scope.local_stats;
    /* by the batch norm before it, or the max pool behind; or its last reader's gradient is added just before */
    if (pass != GHP_PASS_FORWARD)
        return reader_of(model, layer, GHP_OP_MAX_POOL) >= 0 ||
               (model->layers[l->inputs[0]].op == GHP_OP_BATCH_NORM &&
                reader_of(model, l->inputs[0], GHP_OP_RELU) == layer) ||
               (l->n_consumers > 1 && is_read_by(model, layer, layer + 1));
    for (int i = 0; i < model->n_layers; i++) {
        struct ghp_epilogue epilogue = ghp_fuse_layers(model, i, scope);

        if (epilogue.bias == layer || epilogue.relu == layer || epilogue.add == layer) return true;
    }
    return false;
}

/* Whether a pass of such layers can be another's work. */
static bool can_be_taken(enum ghp_op op, enum ghp_pass pass)
{
    bool forward = pass == GHP_PASS_FORWARD;

    if (op == GHP_OP_BATCH_NORM) return pass == GHP_PASS_STATS || pass == GHP_PASS_BACKWARD_STATS;
    if (op == GHP_OP_RELU) return forward || pass == GHP_PASS_BACKWARD_DATA;
    return forward && (op == GHP_OP_BIAS || op == GHP_OP_ADD);
}

bool ghp_fuse_always(const struct ghp_model *model, int layer, enum ghp_pass pass,
                     struct ghp_fuse_scope scope)
{
    const struct ghp_layer *l = &model->layers[layer];
    bool of_images = pass == GHP_PASS_FORWARD && l->op != GHP_OP_ADD;

    if (!can_be_taken(l->op, pass)) return false;
    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *other = &model->layers[i];
        bool alike = other->op == l->op && other->out.h == l->out.h && other->out.w == l->out.w;

        alike = alike && (of_images || other->out.c == l->out.c);
        if (alike && !is_fused_away(model, i, pass, scope)) return false;
    }
    return true;
}

struct ghp_memory_format ghp_fuse_memory_format(struct ghp_memory_format memory_formats,
                                                struct ghp_epilogue epilogue)
{
    memory_formats.bias = epilogue.bias >= 0;
    memory_formats.relu = epilogue.relu >= 0;
    memory_formats.stats = epilogue.stats >= 0;
    memory_formats.add = epilogue.add >= 0;
    return memory_formats;
}
