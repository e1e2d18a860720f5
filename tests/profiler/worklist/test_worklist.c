/* tests/profiler/worklist/test_worklist.c - what is measured: each thing once, the most valuable first, sizes on
 * a grid. */
#include "profiler/worklist/worklist.h"
#include "tests/check.h"

static struct ghp_model models[2];
static const int64_t batches[2] = {32, 64};

static struct ghp_worklist_request request(void)
{
    return (struct ghp_worklist_request){.models = models,
                                         .n_models = 1,
                                         .batches = batches,
                                         .n_batches = 1,
                                         .workers = 4,
                                         .ranks = 4,
                                         .element_bytes = 4,
                                         .bucket_bytes = 1 << 20};
}

static int count_value(const struct ghp_worklist *worklist, enum ghp_value value)
{
    int n = 0;

    for (int i = 0; i < worklist->n_ops; i++)
        n += worklist->ops[i].value == value;
    return n;
}

static const struct ghp_worklist_op *find(const struct ghp_worklist *worklist,
                                          const struct ghp_worklist_op *op)
{
    for (int i = 0; i < worklist->n_ops; i++)
        if (worklist->ops[i].pass == op->pass && strcmp(worklist->ops[i].key, op->key) == 0)
            return &worklist->ops[i];
    return NULL;
}

static void test_order(void)
{
    struct ghp_worklist_request wanted = request();
    struct ghp_worklist worklist = {0};

    CHECK_STATUS(ghp_worklist_collect(&wanted, &worklist), GHP_OK);
    CHECK(worklist.n_ops > 100);
    for (int i = 1; i < worklist.n_ops; i++) {
        const struct ghp_worklist_op *a = &worklist.ops[i - 1], *b = &worklist.ops[i];

        CHECK(a->value <= b->value);
        if (a->value == b->value) CHECK(a->flops >= b->flops);
        CHECK(a->pass != b->pass || strcmp(a->key, b->key) != 0);
    }
    for (int v = 0; v < GHP_VALUE_COUNT; v++)
        CHECK(count_value(&worklist, (enum ghp_value)v) > 0);
    CHECK_EQ(worklist.ops[0].value, GHP_VALUE_DATA);
    CHECK_EQ(worklist.ops[0].local.n, 32 / 4);
    CHECK_EQ(worklist.ops[0].local.op, GHP_OP_CONV2D);
    ghp_worklist_release(&worklist);
}

/* A larger request asks for everything that a smaller one asks for. */
static void test_grows(void)
{
    struct ghp_worklist_request small = request(), large = request();
    struct ghp_worklist a = {0}, b = {0};

    large.n_models = 2;
    large.n_batches = 2;
    CHECK_STATUS(ghp_worklist_collect(&small, &a), GHP_OK);
    CHECK_STATUS(ghp_worklist_collect(&large, &b), GHP_OK);
    CHECK(b.n_ops > a.n_ops);
    for (int i = 0; i < a.n_ops; i++) {
        const struct ghp_worklist_op *same = find(&b, &a.ops[i]);

        CHECK(same != NULL);
        if (same != NULL)
            CHECK(same->value <= a.ops[i].value || a.ops[i].value == GHP_VALUE_SECOND);
    }
    ghp_worklist_release(&a);
    ghp_worklist_release(&b);
}

static void test_comms(int ranks)
{
    struct ghp_worklist_request wanted = request();
    struct ghp_worklist worklist = {0};
    int kinds = 0, jumps = 0, pairs = 0, long_pairs = 0;

    wanted.ranks = ranks;
    CHECK_STATUS(ghp_worklist_collect(&wanted, &worklist), GHP_OK);
    CHECK_EQ(worklist.n_comms > 0, ranks > 1);
    for (int i = 0; i < worklist.n_comms; i++) {
        const struct ghp_worklist_comm *a = &worklist.comms[i];
        bool fresh = true, last = true;

        for (int j = 0; j < i; j++) {
            const struct ghp_worklist_comm *b = &worklist.comms[j];
            bool same = b->op == a->op && b->count == a->count && b->stride == a->stride;

            fresh = fresh && !same;
            CHECK(!same || b->bytes < a->bytes);
        }
        for (int j = i + 1; j < worklist.n_comms; j++) {
            const struct ghp_worklist_comm *b = &worklist.comms[j];

            last = last && !(b->op == a->op && b->count == a->count && b->stride == a->stride);
        }
        kinds += fresh;
        pairs += a->count == 2 && last;
        long_pairs += a->count == 2 && last && a->bytes >= 2 << 20;
        CHECK(i == 0 || a->bytes >= a[-1].bytes); /* small ones first */
        CHECK(a->count >= 2 && a->count * a->stride <= ranks);
        CHECK(a->bytes > 0);
        if (a->op != GHP_COMM_ALL_REDUCE) CHECK_EQ(a->bytes % (a->count * 4), 0);
    }
    /* messages between two ranks of 63 and of 64 KiB, where the sizes asked for leave a gap there */
    for (int i = 0; i < worklist.n_comms; i++)
        for (int j = i + 1; j < worklist.n_comms; j++) {
            const struct ghp_worklist_comm *a = &worklist.comms[i], *b = &worklist.comms[j];

            jumps += a->op == b->op && a->count == b->count && a->stride == b->stride &&
                     a->bytes == (int64_t)a->count * (63 << 10) &&
                     b->bytes == (int64_t)a->count * (64 << 10);
        }
    CHECK(ranks == 1 || jumps >= 2);
    CHECK_EQ(long_pairs, pairs); /* a message of 1 MiB shows a link's rate */
    /* all_reduce over 4, 2 and 2 apart; the three others over 2 and over 4 */
    CHECK_EQ(kinds, ranks == 4 ? 3 + 3 * 2 : ranks >= 2 ? 1 + 3 : 0);
    ghp_worklist_release(&worklist);
}

/* Shorter than all others of their kind: what a plan that shards parameters asks for. */
static void test_named(void)
{
    const struct ghp_worklist_comm named[] = {
        {.op = GHP_COMM_ALL_GATHER, .count = 4, .stride = 1, .bytes = 64},
        {.op = GHP_COMM_ALL_GATHER, .count = 8, .stride = 1, .bytes = 64},
        {.op = GHP_COMM_ALL_GATHER, .count = 4, .stride = 1, .bytes = 65},
        {.op = GHP_COMM_ALL_GATHER, .count = 4, .stride = 1, .bytes = INT64_C(1) << 60}};
    struct ghp_worklist_request wanted = request();
    struct ghp_worklist without, worklist;

    CHECK_STATUS(ghp_worklist_collect(&wanted, &without), GHP_OK);
    wanted.named = named;
    wanted.n_named = 4;
    CHECK_STATUS(ghp_worklist_collect(&wanted, &worklist), GHP_OK);
    for (int k = 0; k < 4; k++) {
        int found = 0;

        for (int i = 0; i < worklist.n_comms; i++)
            found += ghp_worklist_compare_comms(&worklist.comms[i], &named[k]) == 0;
        CHECK_EQ(found, k == 0);
        for (int i = 0; i < without.n_comms; i++)
            CHECK(ghp_worklist_compare_comms(&without.comms[i], &named[k]) != 0);
    }
    ghp_worklist_release(&without);
    ghp_worklist_release(&worklist);
}

static void test_refusal(void)
{
    struct ghp_worklist_request wanted = request();
    struct ghp_worklist worklist = {0};

    wanted.workers = 5;
    CHECK_STATUS(ghp_worklist_collect(&wanted, &worklist), GHP_ERR_INPUT);
    CHECK_EQ(worklist.n_ops, 0);
}

/* Workers of unlike speeds ask for their own shares too, first of all: 11, 11, 5 and 5 samples of 32. */
static void test_shares(void)
{
    double speed[] = {2, 2, 1, 1};
    const struct ghp_speeds speeds = {.n = 4, .of = speed};
    struct ghp_worklist_request wanted = request();
    struct ghp_worklist equal = {0}, own = {0};
    int more = 0, fewer = 0;

    CHECK_STATUS(ghp_worklist_collect(&wanted, &equal), GHP_OK);
    wanted.speeds = &speeds;
    CHECK_STATUS(ghp_worklist_collect(&wanted, &own), GHP_OK);
    for (int i = 0; i < equal.n_ops; i++)
        CHECK(find(&own, &equal.ops[i]) != NULL);
    for (int i = 0; i < own.n_ops; i++) {
        if (find(&equal, &own.ops[i]) != NULL) continue;
        CHECK_EQ(own.ops[i].value, GHP_VALUE_DATA);
        more += own.ops[i].local.n == 11;
        fewer += own.ops[i].local.n == 5;
        CHECK(own.ops[i].local.n == 11 || own.ops[i].local.n == 5);
    }
    CHECK(more > 10 && more == fewer);
    CHECK_EQ(own.n_comms, equal.n_comms);
    ghp_worklist_release(&own);
    ghp_worklist_release(&equal);
}

static const struct ghp_worklist_op
    *favourite; /* weighs as much as all others; NULL: nothing weighs */

static double weight(const struct ghp_worklist_op *op)
{
    if (favourite == NULL || op->value != GHP_VALUE_DATA) return 0;
    return op == favourite ? 1e15 : op->flops;
}

/* What is drawn weighs something, is drawn once, and what weighs much is always drawn. */
static void test_draw(void)
{
    enum { MOST = 6 };
    struct ghp_worklist_request wanted = request();
    const struct ghp_worklist_op *ops[MOST];
    struct ghp_worklist worklist = {0};
    int n;

    CHECK_STATUS(ghp_worklist_collect(&wanted, &worklist), GHP_OK);
    CHECK_EQ(ghp_worklist_draw(&worklist, weight, MOST, ops), 0);
    for (int i = 0; i < worklist.n_ops && worklist.ops[i].value == GHP_VALUE_DATA; i++) {
        bool there = false;

        favourite = &worklist.ops[i];
        n = ghp_worklist_draw(&worklist, weight, MOST, ops);
        CHECK(n >= 1 && n <= MOST);
        for (int k = 0; k < n; k++) {
            there = there || ops[k] == favourite;
            CHECK(weight(ops[k]) > 0);
            CHECK(k == 0 || ops[k] > ops[k - 1]);
        }
        CHECK(there);
    }
    favourite = NULL;
    ghp_worklist_release(&worklist);
}

/* Three of four batch norms of stage 1 add what is added after them, the first one in the network does not. */
static void test_majority(void)
{
    struct ghp_worklist_request wanted = request();
    struct ghp_model resnet;
    struct ghp_worklist worklist = {0};
    int found = 0;

    CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/resnet50.json", &resnet), GHP_OK);
    wanted.models = &resnet;
    wanted.workers = wanted.ranks = 1;
    CHECK_STATUS(ghp_worklist_collect(&wanted, &worklist), GHP_OK);
    for (int i = 0; i < worklist.n_ops; i++) {
        const struct ghp_worklist_op *op = &worklist.ops[i];

        if (op->pass != GHP_PASS_FORWARD || op->local.op != GHP_OP_BATCH_NORM) continue;
        if (op->local.h == 56) CHECK_EQ(op->epilogue.add >= 0, op->local.c == 256);
        found += op->epilogue.add >= 0;
    }
    CHECK_EQ(found, 4); /* one of each stage */
    ghp_worklist_release(&worklist);
    ghp_model_release(&resnet);
}

CHECK_TEST(worklist)
{
    CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/vgg-a-32.json", &models[0]), GHP_OK);
    CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/lenet5.json", &models[1]), GHP_OK);
    test_order();
    test_grows();
    test_comms(1);
    test_comms(2);
    test_comms(3);
    test_comms(4);
    test_named();
    test_refusal();
    test_shares();
    test_draw();
    test_majority();
    ghp_model_release(&models[1]);
    ghp_model_release(&models[0]);
    return check_end();
}
