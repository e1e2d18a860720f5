/* tests/core/sharding/test_transfer.c - who sends which part to whom: with tensors moved by hand every receiver gets
 * each element it holds once (of partial sums each part once) and nothing else, partners are those that share
 * something, both sides count the same traffic, and its cost is that of the fullest link. */
#include "core/cost/profile.h"
#include "tests/check.h"

enum { LAYERS = 6, POSITIONS = 12, CHANNELS = 8, SAMPLE = POSITIONS * CHANNELS };

static unsigned state = 11;

static int draw(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (unsigned)n);
}

static struct ghp_layout some_layout(const struct ghp_stage *stage, bool partial)
{
    static const enum ghp_layout_kind kinds[] = {GHP_LAYOUT_CHANNEL, GHP_LAYOUT_FULL,
                                                 GHP_LAYOUT_SEQUENCE, GHP_LAYOUT_PARTIAL};
    int block_size = stage->block_size, m;

    do
        m = 1 + draw(block_size);
    while (block_size % m != 0 || CHANNELS % m != 0);
    if (m == 1) return (struct ghp_layout){GHP_LAYOUT_BATCH, 1};
    return (struct ghp_layout){kinds[draw(partial ? 4 : 3)], m};
}

static struct ghp_transfer some_transfer(struct ghp_staging *s)
{
    struct ghp_transfer t = {.staging = s,
                             .n_layers = LAYERS,
                             .from_stage = draw(2),
                             .shape = ghp_shape_sequence(CHANNELS, POSITIONS),
                             .element_bytes = 4};

    *s = (struct ghp_staging){.n = 2, .micro_batches = 1 + draw(2)};
    for (int i = 0; i < 2; i++) {
        s->stage[i] = (struct ghp_stage){.first_layer = 3 * i, .workers = 1 + draw(4)};
        do
            s->stage[i].block_size = 1 + draw(s->stage[i].workers);
        while (s->stage[i].workers % s->stage[i].block_size != 0);
    }
    t.to_stage = 1 - t.from_stage;
    t.whole.workers = (s->stage[0].workers + s->stage[1].workers) * (1 + draw(2));
    t.whole.global_batch =
        12LL * s->micro_batches * t.whole.workers / (s->stage[0].workers + s->stage[1].workers);
    t.from = some_layout(&s->stage[t.from_stage], true);
    t.to = some_layout(&s->stage[t.to_stage], false);
    t.shape.c -= draw(2); /* parts that do not come out even end in padding */
    return t;
}

/* How often each element of the micro-batch comes to a receiver. */
static void check_receiver(const struct ghp_transfer *t, int rank)
{
    struct ghp_placement own = ghp_placement_of(t->staging, t->n_layers, t->whole, rank);
    struct ghp_region want = ghp_placement_region(&own, t->to, t->shape);
    struct ghp_peers from = ghp_transfer_senders(t, &own);
    int64_t samples = t->whole.global_batch / t->staging->micro_batches;
    int *got = calloc((size_t)samples * SAMPLE, sizeof *got), wrong = 0;
    int parts = t->from.kind == GHP_LAYOUT_PARTIAL ? t->from.tp_size : 1;
    bool joins = false;

    if (!CHECK(got != NULL)) return;
    for (int r = 0; r < t->whole.workers; r++) {
        struct ghp_placement sender = ghp_placement_of(t->staging, t->n_layers, t->whole, r);
        struct ghp_slice p;
        bool partner = r >= from.first && r < from.first + from.n;
        bool same_group = r / own.group == rank / own.group;

        if (sender.stage != t->from_stage) {
            CHECK(!partner);
            continue;
        }
        if (!ghp_transfer_slice(t, &sender, &own, &p)) continue;
        if (!CHECK(partner && same_group)) continue;
        joins = joins || p.unpacks || parts > 1;
        for (int64_t n = p.first_sample; n < p.first_sample + p.samples; n++)
            for (int64_t s = p.first_position; s < p.first_position + p.positions; s++)
                for (int64_t c = p.first_channel; c < p.first_channel + p.channels; c++)
                    got[n * SAMPLE + s * CHANNELS + c]++;
    }
    for (int64_t n = 0; n < samples; n++)
        for (int64_t i = 0; i < SAMPLE; i++) {
            int64_t s = i / CHANNELS, c = i % CHANNELS;
            if (c >= t->shape.c) continue;
            bool inside = n >= want.first_sample && n < want.first_sample + want.samples &&
                          s >= want.first_position && s < want.first_position + want.positions &&
                          c >= want.first_channel && c < want.first_channel + want.channels;

            wrong += got[n * SAMPLE + i] != (inside ? parts : 0);
        }
    CHECK_EQ(wrong, 0);
    if (joins) CHECK(ghp_transfer_joins(t));
    free(got);
}

static void check_traffic(const struct ghp_transfer *t)
{
    struct ghp_traffic sent = {0}, received = {0};

    for (int r = 0; r < t->whole.workers; r++) {
        struct ghp_placement placement = ghp_placement_of(t->staging, t->n_layers, t->whole, r);
        bool out = placement.stage == t->from_stage;
        struct ghp_traffic one = out ? ghp_transfer_sent(t, r) : ghp_transfer_received(t, r);
        struct ghp_traffic *sum = out ? &sent : &received;

        sum->messages += one.messages;
        sum->bytes += one.bytes;
    }
    CHECK_EQ(sent.messages, received.messages);
    CHECK_EQ(sent.bytes, received.bytes);
}

/* A rank of the transfer finds the workers of both stages of its group, and itself, in the order of the ranks. */
static void check_ranks(const struct ghp_transfer *t, int rank)
{
    struct ghp_ranks both = ghp_transfer_ranks(t, rank);
    int group = ghp_staging_group(t->staging, t->whole.workers), found = 0;

    for (int r = 0; r < t->whole.workers; r++) {
        int stage = ghp_placement_of(t->staging, t->n_layers, t->whole, r).stage;
        bool is_in = r / group == rank / group && (stage == t->from_stage || stage == t->to_stage);

        CHECK_EQ(ghp_ranks_index(both, r), is_in ? found : -1);
        if (is_in) CHECK_EQ(ghp_ranks_at(both, found++), r);
    }
    CHECK_EQ(both.count, found);
}

/* Stages next to each other, and with another between them. */
static void check_both_stages(void)
{
    struct ghp_staging s = {.n = 3, .stage = {{0, 2, 2}, {2, 1, 1}, {4, 3, 3}}};

    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++) {
            struct ghp_transfer t = {.staging = &s,
                                     .n_layers = LAYERS,
                                     .whole = {.workers = 12, .global_batch = 24},
                                     .from_stage = from,
                                     .to_stage = to};

            for (int r = 0; r < 12 && from != to; r++) {
                int stage = ghp_placement_of(&s, LAYERS, t.whole, r).stage;

                if (stage == from || stage == to) check_ranks(&t, r);
            }
        }
}

static void check_random(void)
{
    for (int k = 0; k < 500; k++) {
        struct ghp_staging s;
        struct ghp_transfer t = some_transfer(&s);

        for (int r = 0; r < t.whole.workers; r++)
            if (ghp_placement_of(&s, LAYERS, t.whole, r).stage == t.to_stage) check_receiver(&t, r);
        check_traffic(&t);
    }
}

/* ---- costs ---- */

static double cost_of(const struct ghp_profile *p, const struct ghp_transfer *t)
{
    struct ghp_cost cost = {0};

    CHECK_STATUS(ghp_profile_transfer(p, t, &cost), GHP_OK);
    return cost.seconds;
}

/* Two groups of (3, 1), all groups on one node of 8 or on nodes of 1 and 4; 16 samples of 8 floats a group. */
static void check_costs(void)
{
    struct ghp_profile p = {0};
    struct ghp_staging s = {
        .n = 2, .stage = {{.workers = 3, .block_size = 1}, {.first_layer = 3, .workers = 1}}};
    struct ghp_transfer t = {.staging = &s,
                             .whole = {8, 32},
                             .n_layers = LAYERS,
                             .to_stage = 1,
                             .from = {GHP_LAYOUT_BATCH, 1},
                             .to = {GHP_LAYOUT_BATCH, 1},
                             .shape = ghp_shape_image(8, 1, 1),
                             .element_bytes = 4};
    const double bytes = 16 * 8 * 4;

    if (!CHECK_STATUS(ghp_profile_init(&p, "analytic", "exact", 4), GHP_OK)) return;
    p.machine.intra = (struct ghp_link){1e-6, 1e9, 0};
    p.machine.inter = (struct ghp_link){1e-5, 1e8, 0};
    p.machine.nodes = 8;
    p.machine.packages = p.machine.cores = p.machine.threads = 1;
    CHECK_STATUS(ghp_profile_finalize(&p), GHP_OK);
    /* the receiver takes three messages over its link */
    CHECK_NEAR(cost_of(&p, &t), bytes / 1e8 + 3 * 1e-5, 1e-12);
    t.from_stage = 1;
    t.to_stage = 0;
    CHECK_NEAR(cost_of(&p, &t), bytes / 1e8 + 3 * 1e-5, 1e-12);
    p.machine.nodes = 1;
    p.machine.cores = p.machine.threads = 8;
    CHECK_STATUS(ghp_profile_finalize(&p), GHP_OK);
    CHECK_NEAR(cost_of(&p, &t), bytes / 1e9 + 3 * 1e-6, 1e-12);
    /* a measured message counts as its ratio to the analytic model says: here twice */
    CHECK_STATUS(
        ghp_profile_add_comm(&p, &(struct ghp_comm_entry){.op = GHP_COMM_TRANSFER,
                                                          .count = 2,
                                                          .stride = 4,
                                                          .bytes = (int64_t)bytes,
                                                          .seconds = 2 * (bytes / 1e9 + 1e-6)}),
        GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&p), GHP_OK);
    CHECK_NEAR(cost_of(&p, &t), 2 * (bytes / 1e9 + 3 * 1e-6), 1e-12);
    ghp_profile_release(&p);
}

CHECK_TEST(transfer)
{
    check_random();
    check_both_stages();
    check_costs();
    return check_end();
}
