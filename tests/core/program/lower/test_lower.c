/* tests/core/program/lower/test_lower.c - programs of many plans are sound, add up from their pieces, and fit their
 * memory.
 *
 * Oracles: ghp_program_check (every read has a writer, no live buffers overlap), the pieces' own instruction lists,
 * bytes counted by hand for a small network, and point order. Whether the numbers trained are right is the business of
 * tests/executor/test_equality. */
#include "core/program/lower/lower.h"
#include "tests/check.h"

#include <string.h>

static const char chain[] =
    "{\"format\":\"ghp.model/"
    "1\",\"name\":\"chain\",\"input\":{\"channels\":4,\"height\":4,\"width\":4},\"layers\":["
    "{\"name\":\"conv\",\"op\":\"conv2d\",\"channels\":8,\"kernel\":3,\"pad\":1,\"bias\":true},"
    "{\"name\":\"relu\",\"op\":\"relu\"},"
    "{\"name\":\"pool\",\"op\":\"max_pool\",\"kernel\":2},"
    "{\"name\":\"flat\",\"op\":\"flatten\"},"
    "{\"name\":\"fc\",\"op\":\"linear\",\"features\":8,\"bias\":false},"
    "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}";

static uint32_t state = 2463534242u;

static int draw(int below)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (int)(state % (uint32_t)below);
}

static void random_splits(const struct ghp_model *model, struct ghp_problem problem,
                          struct ghp_split *splits)
{
    struct ghp_split choices[GHP_MAX_CHOICES];
    for (int l = 0; l < model->n_layers; l++) {
        int n = ghp_split_choices(&model->layers[l], problem, choices, GHP_MAX_CHOICES);
        splits[l] = choices[draw(n)];
    }
}

/* As a hash that does not depend on order, so that pieces may come in any. */
static uint64_t instr_mark(const struct ghp_instr *i)
{
    uint64_t mark = 1469598103934665603u;
    /* updates stand before their layers, at the start of the step, or where a product took them along */
    bool update = i->kind == GHP_INSTR_UPDATE || i->kind == GHP_INSTR_ALL_GATHER;
    int point = update ? 0 : i->point;
    int64_t parts[] = {
        (int64_t)i->kind, point,      i->layer,      i->edge,        (int64_t)i->pass,
        (int64_t)i->comm, i->bytes,   i->copy_bytes, i->ranks.first, i->ranks.count,
        i->ranks.stride,  i->local.n, i->local.c,    i->local.k};
    for (size_t j = 0; j < sizeof parts / sizeof parts[0]; j++)
        mark = (mark ^ (uint64_t)parts[j]) * 1099511628211u;
    return mark;
}

static void check_pieces(const struct ghp_lowering *lowering, const struct ghp_split *splits,
                         const struct ghp_program *whole)
{
    struct ghp_program pieces = {0};
    for (int l = 0; l < lowering->model->n_layers; l++)
        CHECK_STATUS(ghp_lower_layer(lowering, l, splits[l], whole->rank, &pieces), GHP_OK);
    for (int e = 0; e < lowering->model->n_edges; e++)
        CHECK_STATUS(ghp_lower_edge(lowering, e, splits[lowering->model->edges[e].from],
                                    splits[lowering->model->edges[e].to], whole->rank, &pieces),
                     GHP_OK);
    uint64_t a = 0, b = 0;
    for (int i = 0; i < pieces.n_instrs; i++)
        a += instr_mark(&pieces.instrs[i]);
    for (int i = 0; i < whole->n_instrs; i++)
        if (whole->instrs[i].kind != GHP_INSTR_METRIC_REDUCE &&
            whole->instrs[i].kind != GHP_INSTR_WAIT)
            b += instr_mark(&whole->instrs[i]);
    CHECK(a == b);
    ghp_program_release(&pieces);
}

static void check_order(const struct ghp_program *program)
{
    for (int i = 1; i < program->n_instrs; i++)
        CHECK(program->instrs[i - 1].point <= program->instrs[i].point);
}

static void test_random(const char *name, int rounds)
{
    char path[512];
    struct ghp_model model;
    snprintf(path, sizeof path, "%s/models/%s.json", GHP_SOURCE_DIR, name);
    if (!CHECK_STATUS(ghp_model_load(path, &model), GHP_OK)) return;
    struct ghp_split *splits = ghp_alloc((size_t)model.n_layers, sizeof *splits);
    const int workers[] = {1, 2, 4, 6, 8};
    for (int i = 0; i < rounds; i++) {
        int n = workers[draw(5)];
        struct ghp_lowering lowering = {.model = &model,
                                        .problem = {n, n * (1 + draw(3))},
                                        .element_bytes = 4,
                                        .method.sync = ghp_sync_at(i % 2)};
        random_splits(&model, lowering.problem, splits);
        struct ghp_program program;
        if (!CHECK_STATUS(ghp_lower(&lowering, splits, draw(n), &program), GHP_OK)) break;
        CHECK_STATUS(ghp_program_check(&program), GHP_OK);
        CHECK(program.peak_bytes >= program.live_bytes);
        check_order(&program);
        check_pieces(&lowering, splits, &program);
        ghp_program_release(&program);
        lowering.method.bucket_bytes = 100000;
        if (!CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) break;
        CHECK_STATUS(ghp_program_check(&program), GHP_OK);
        ghp_program_release(&program);
        lowering.forward_only = true;
        if (!CHECK_STATUS(ghp_lower(&lowering, splits, n - 1, &program), GHP_OK)) break;
        CHECK_STATUS(ghp_program_check(&program), GHP_OK);
        ghp_program_release(&program);
    }
    free(splits);
    ghp_model_release(&model);
}

static const struct ghp_program *sorted;

static int as_placed(const void *a, const void *b)
{
    const struct ghp_buffer *x = &sorted->buffers[*(const int *)a],
                            *y = &sorted->buffers[*(const int *)b];
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    if (x->first_point != y->first_point) return x->first_point < y->first_point ? -1 : 1;
    return *(const int *)a < *(const int *)b ? -1 : 1;
}

static bool live_together(const struct ghp_buffer *a, const struct ghp_buffer *b)
{
    return a->first_point <= b->last_point && b->first_point <= a->last_point;
}

/* The smallest gap that fits a buffer, the lowest of several, by trying every end of those that were placed before and
 * live while it does. */
static int64_t find_slowly(const struct ghp_program *program, const int *order, int placed,
                           int64_t base)
{
    const struct ghp_buffer *b = &program->buffers[order[placed]];
    int64_t best = -1, best_size = INT64_MAX, top = base;
    for (int i = -1; i < placed; i++) {
        int64_t at = base, next = INT64_MAX;
        if (i >= 0 && !live_together(b, &program->buffers[order[i]])) continue;
        if (i >= 0) at = program->buffers[order[i]].offset + program->buffers[order[i]].bytes;
        for (int j = 0; j < placed; j++) {
            const struct ghp_buffer *o = &program->buffers[order[j]];
            if (!live_together(b, o)) continue;
            if (o->offset + o->bytes > top) top = o->offset + o->bytes;
            if (o->offset < at + 1 && o->offset + o->bytes > at) next = at; /* taken there */
            if (o->offset >= at && o->offset < next) next = o->offset;
        }
        if (next == INT64_MAX || next - at < b->bytes || next - at > best_size) continue;
        if (next - at == best_size && best < at) continue;
        best = at;
        best_size = next - at;
    }
    return best >= 0 ? best : top;
}

static void check_placed(const struct ghp_program *program)
{
    int *order = ghp_alloc((size_t)program->n_buffers + 1, sizeof *order), n = 0;
    int64_t base = 0;
    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];
        if (b->storage != i) continue;
        CHECK(b->last_point >= b->first_point);
        if (b->persistent)
            base += b->bytes;
        else
            order[n++] = i;
    }
    sorted = program;
    qsort(order, (size_t)n, sizeof *order, as_placed);
    for (int i = 0; i < n; i++)
        CHECK_EQ(program->buffers[order[i]].offset, find_slowly(program, order, i, base));
    free(order);
}

/* Buffers lie where a slow search puts them, at a few micro-batches and at many. */
static void test_placement(void)
{
    struct ghp_model model;
    if (!CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/gpt-nano.json", &model), GHP_OK))
        return;
    struct ghp_split *splits = ghp_alloc((size_t)model.n_layers, sizeof *splits);
    bool *recompute = ghp_alloc((size_t)model.n_layers, sizeof *recompute);
    for (int i = 0; i < 12; i++) {
        struct ghp_staging staging = {.micro_batches = 2 + draw(10),
                                      .pipeline = (enum ghp_pipeline)(i % 2),
                                      .recompute = i % 3 == 0 ? recompute : NULL};
        struct ghp_lowering lowering = {.model = &model,
                                        .problem = {2, 4LL * staging.micro_batches},
                                        .element_bytes = 4,
                                        .staging = &staging};
        struct ghp_program program;
        for (int l = 0; l < model.n_layers; l++) {
            splits[l] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
            recompute[l] = ghp_stage_may_recompute(&model.layers[l]) && draw(3) == 0;
        }
        if (!CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) break;
        CHECK_STATUS(ghp_program_check(&program), GHP_OK);
        check_placed(&program);
        ghp_program_release(&program);
    }
    free(recompute);
    free(splits);
    ghp_model_release(&model);
}

static int count_buffer_kind(const struct ghp_program *program, enum ghp_buffer_kind buffer_kind)
{
    int n = 0;
    for (int i = 0; i < program->n_buffers; i++)
        n += program->buffers[i].buffer_kind == buffer_kind;
    return n;
}

/* One worker, batch 2, by hand: conv+bias+relu share one buffer, so does the way back. */
static void test_memory_by_hand(void)
{
    struct ghp_model model;
    if (!CHECK_STATUS(ghp_model_parse(chain, "chain", &model), GHP_OK)) return;
    CHECK_EQ(model.n_layers, 8); /* input conv conv.bias relu pool flat fc loss */
    struct ghp_split splits[8];
    for (int l = 0; l < 8; l++)
        splits[l] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    struct ghp_lowering lowering = {.model = &model, .problem = {1, 2}, .element_bytes = 4};
    struct ghp_program program;
    if (!CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) return;
    /* outputs: input, conv (= bias = relu), pool, flat, fc, probabilities */
    CHECK_EQ(count_buffer_kind(&program, GHP_BUFFER_OUTPUT), 6);
    /* gradients: of flat's, pool's input, and of relu's (= bias's = conv's output); the loss's lies over its output */
    CHECK_EQ(count_buffer_kind(&program, GHP_BUFFER_EDGE_GRADIENT), 3);
    /* weight, gradient, momentum; the bias' 32 bytes round up to 64 */
    int64_t parameters = 3 * (1152 + 64 + 1024);
    int64_t metrics = 64;
    int64_t input = 2 * 64 * 4, conv = 2 * 128 * 4, pool = 2 * 32 * 4, saved = 64;
    /* the widest point is pool's backward: input, conv's output, indices, both gradients; labels are gone */
    int64_t live =
        parameters + metrics + input + conv + saved + pool /* its dy */ + conv /* its dx */;
    CHECK_EQ(program.live_bytes, live);
    CHECK_EQ(count_buffer_kind(&program, GHP_BUFFER_COMM), 0);
    CHECK_EQ(count_buffer_kind(&program, GHP_BUFFER_PREFETCH), 0);
    ghp_program_release(&program);
    lowering.prefetch = true; /* the next step's input is in memory too, at all points */
    if (!CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) return;
    CHECK_STATUS(ghp_program_check(&program), GHP_OK);
    CHECK_EQ(count_buffer_kind(&program, GHP_BUFFER_PREFETCH), 1);
    CHECK_EQ(program.live_bytes, live + input);
    ghp_program_release(&program);
    lowering.forward_only = true;
    if (!CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) return;
    CHECK_EQ(count_buffer_kind(&program, GHP_BUFFER_PREFETCH), 0);
    ghp_program_release(&program);
    ghp_model_release(&model);
}

static int count_kind(const struct ghp_program *program, enum ghp_instr_kind kind)
{
    int n = 0;
    for (int i = 0; i < program->n_instrs; i++)
        n += program->instrs[i].kind == kind;
    return n;
}

/* Who reduces what, docs/explanation/time-model.md: an `in` split's bias is added once, after the reduction. */
static void test_who_reduces(void)
{
    struct ghp_model model;
    if (!CHECK_STATUS(ghp_model_parse(chain, "chain", &model), GHP_OK)) return;
    struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1},
                     in = {.kind = GHP_SPLIT_IN, .tp_size = 2},
                     channel = {.kind = GHP_SPLIT_CHANNEL, .tp_size = 2},
                     full = {.kind = GHP_SPLIT_FULL, .tp_size = 2},
                     out = {.kind = GHP_SPLIT_OUT, .tp_size = 2};
    struct ghp_split splits[8] = {channel, in, channel, channel, channel, channel, in, full};
    struct ghp_lowering lowering = {.model = &model, .problem = {4, 8}, .element_bytes = 4};
    struct ghp_program program;
    if (!CHECK_STATUS(ghp_lower(&lowering, splits, 3, &program), GHP_OK)) return;
    CHECK_STATUS(ghp_program_check(&program), GHP_OK);
    CHECK_EQ(count_kind(&program, GHP_INSTR_ALL_REDUCE), 3);
    for (int i = 0; i < program.n_instrs; i++) {
        const struct ghp_instr *instr = &program.instrs[i];
        if (instr->kind != GHP_INSTR_ALL_REDUCE) continue;
        CHECK_EQ(instr->ranks.count, 2); /* rank 3 holds shard 1 with rank 1 */
        CHECK_EQ(instr->ranks.first, 1);
        CHECK_EQ(instr->ranks.stride, 2);
    }
    /* forward: conv partial -> channel, fc partial -> full; backward: loss full -> fc full (none),
     * fc channel -> flat channel (none), bias channel -> conv full (gather) */
    CHECK_EQ(count_kind(&program, GHP_INSTR_RESHARD), 3);
    ghp_program_release(&program);
    splits[1] = out;
    splits[0] = data;
    if (!CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) return;
    CHECK_STATUS(ghp_program_check(&program), GHP_OK);
    CHECK_EQ(count_kind(&program, GHP_INSTR_RESHARD), 2); /* gather the input; fc partial -> full */
    ghp_program_release(&program);
    splits[1] = (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = 3};
    CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_ERR_INPUT);
    lowering.problem.global_batch = 7;
    CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_ERR_INPUT);
    ghp_model_release(&model);
}

static enum ghp_status some_scratch(void *context, const struct ghp_local *local,
                                    enum ghp_pass pass, int64_t *bytes)
{
    (void)context;
    (void)pass;
    *bytes = 64 * local->n;
    return GHP_OK;
}

/* The hash says every field of an instruction that matters, and nothing of the backend at hand. */
static void test_hash(void)
{
    struct ghp_model model;
    const struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1},
                           out = {.kind = GHP_SPLIT_OUT, .tp_size = 2};
    struct ghp_split splits[8] = {data, data, data, data, data, data, out, data};
    struct ghp_lowering lowering = {.model = &model, .problem = {4, 8}, .element_bytes = 4};
    struct ghp_program program;
    uint64_t whole;

    if (!CHECK_STATUS(ghp_model_parse(chain, "chain", &model), GHP_OK)) return;
    if (!CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) return;
    whole = ghp_program_hash(&program, 1);
    CHECK(whole != ghp_program_hash(&program, 2));
    for (int i = 0; i < program.n_instrs; i++) {
        struct ghp_instr *instr = &program.instrs[i], kept = *instr;
        int *const numbers[] = {&instr->point,  &instr->layer,       &instr->edge,
                                &instr->micro,  &instr->ranks.first, &instr->ranks.count,
                                &instr->bucket, &instr->wait,        &instr->after};

        for (size_t f = 0; f < sizeof numbers / sizeof numbers[0]; f++) {
            ++*numbers[f];
            CHECK(ghp_program_hash(&program, 1) != whole);
            *instr = kept;
        }
        instr->bytes++;
        CHECK(ghp_program_hash(&program, 1) != whole);
        *instr = kept;
        instr->nchw16c.y = !kept.nchw16c.y;
        CHECK(ghp_program_hash(&program, 1) != whole);
        *instr = kept;
        instr->local.n++;
        CHECK(ghp_program_hash(&program, 1) != whole);
        *instr = kept;
        instr->at.scratch++;
        CHECK(ghp_program_hash(&program, 1) == whole);
        *instr = kept;
        if (i == 0 || memcmp(&program.instrs[i - 1], &kept, sizeof kept) == 0) continue;
        program.instrs[i] = program.instrs[i - 1];
        program.instrs[i - 1] = kept;
        CHECK(ghp_program_hash(&program, 1) != whole);
        program.instrs[i - 1] = program.instrs[i];
        program.instrs[i] = kept;
    }
    CHECK(ghp_program_hash(&program, 1) == whole);
    ghp_program_release(&program);
    lowering.scratch = (struct ghp_scratch_source){.bytes = some_scratch};
    if (!CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) return;
    CHECK(ghp_program_hash(&program, 1) == whole);
    ghp_program_release(&program);
    ghp_model_release(&model);
}

CHECK_TEST(lower)
{
    test_placement();
    test_memory_by_hand();
    test_who_reduces();
    test_hash();
    test_random("lenet5", 150);
    test_random("small-resnet", 100);
    return check_end();
}
