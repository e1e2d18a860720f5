/* Messages between stages, carried by hand: every receiver's tensor is what the senders' tensors make, bit for bit,
 * whatever the layouts. Partial sums are added in the order of the senders; those in bfloat16 are added in float and
 * rounded once. So they are by the ways of a device, here with the reference's sums, which are not in bfloat16. */
#include "core/model/precision.h"
#include "executor/engine/message.h"
#include "tests/check.h"

enum { LAYERS = 6, CHANNELS = 12, POSITIONS = 12, WIDTH = 2, MOST_WORKERS = 16 };

static unsigned state = 5;

static int draw(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (unsigned)n);
}

struct case_of { /* one transfer of all workers */
    struct ghp_staging staging;
    struct ghp_transfer transfer;
    struct ghp_message messages[MOST_WORKERS];
    bool by_device; /* joined as on a device */
    char *tensors[MOST_WORKERS], *scratch[MOST_WORKERS];
};

static struct ghp_layout some_layout(const struct ghp_stage *stage, bool partial)
{
    static const enum ghp_layout_kind kinds[] = {GHP_LAYOUT_CHANNEL, GHP_LAYOUT_FULL,
                                                 GHP_LAYOUT_SEQUENCE, GHP_LAYOUT_PARTIAL};
    int m;

    do
        m = 1 + draw(stage->block_size);
    while (stage->block_size % m != 0);
    if (m == 1) return (struct ghp_layout){GHP_LAYOUT_BATCH, 1};
    return (struct ghp_layout){kinds[draw(partial ? 4 : 3)], m};
}

static void draw_case(struct case_of *c, int element_bytes)
{
    struct ghp_staging *s = &c->staging;
    struct ghp_transfer *t = &c->transfer;
    int stages = 0, groups = 1 + draw(2);

    *s = (struct ghp_staging){.n = 2, .micro_batches = 1 + draw(2)};
    for (int i = 0; i < 2; i++) {
        s->stage[i] = (struct ghp_stage){.first_layer = 3 * i, .workers = 1 + draw(4)};
        do
            s->stage[i].block_size = 1 + draw(s->stage[i].workers);
        while (s->stage[i].workers % s->stage[i].block_size != 0);
        stages += s->stage[i].workers;
    }
    *t = (struct ghp_transfer){.staging = s,
                               .n_layers = LAYERS,
                               .from_stage = draw(2),
                               .shape = ghp_shape_image(CHANNELS, POSITIONS, WIDTH),
                               .element_bytes = element_bytes};
    t->to_stage = 1 - t->from_stage;
    t->whole.workers = stages * groups;
    t->whole.global_batch = 12LL * s->micro_batches * groups;
    t->from = some_layout(&s->stage[t->from_stage], true);
    t->to = some_layout(&s->stage[t->to_stage], false);
    c->by_device = draw(2) == 0 && (element_bytes > 2 || t->from.kind != GHP_LAYOUT_PARTIAL);
}

/* An element of a sender's part, with more digits than a float has: by chance, but the same wherever it is asked
 * for. */
static double part_value(int part, int64_t sample, int64_t pixel, int64_t channel)
{
    uint64_t bits =
        (uint64_t)(((sample * POSITIONS * WIDTH + pixel) * CHANNELS + channel) * 8 + part + 1);

    bits *= 0x9e3779b97f4a7c15u;
    bits ^= bits >> 29;
    bits *= 0xbf58476d1ce4e5b9u;
    return (double)(bits >> 12) * 0x1p-52 - 0.5;
}

static void put(char *tensor, int64_t i, int element_bytes, double value)
{
    if (element_bytes == 8)
        ((double *)(void *)tensor)[i] = value;
    else if (element_bytes == 4)
        ((float *)(void *)tensor)[i] = (float)value;
    else
        ((uint16_t *)(void *)tensor)[i] = ghp_bf16_of((float)value);
}

/* What a receiver has there, in the order of the senders. */
static void put_sum(char *tensor, int64_t i, const struct ghp_transfer *t, const int64_t at[3])
{
    int parts = t->from.kind == GHP_LAYOUT_PARTIAL ? t->from.tp_size : 1;
    double wide = 0;
    float sum = 0;

    for (int p = 0; p < parts; p++) {
        double value = part_value(p, at[0], at[1], at[2]);
        float narrow = (float)value;

        wide += value;
        sum += t->element_bytes == 2 ? ghp_bf16_value(ghp_bf16_of(narrow)) : narrow;
    }
    put(tensor, i, t->element_bytes, t->element_bytes == 8 ? wide : (double)sum);
}

/* Fills a worker's tensor, as sender or as a receiver should find it. */
static void fill(const struct ghp_transfer *t, const struct ghp_placement *placement, bool receives,
                 char *tensor)
{
    struct ghp_layout layout = receives ? t->to : t->from;
    struct ghp_region w = ghp_placement_region(placement, layout, t->shape);
    int part = layout.kind == GHP_LAYOUT_PARTIAL ? placement->number % layout.tp_size : 0;
    int64_t i = 0;

    for (int64_t n = w.first_sample; n < w.first_sample + w.samples; n++)
        for (int64_t pixel = w.first_position * WIDTH;
             pixel < (w.first_position + w.positions) * WIDTH; pixel++)
            for (int64_t c = w.first_channel; c < w.first_channel + w.channels; c++, i++)
                if (receives)
                    put_sum(tensor, i, t, (int64_t[]){n, pixel, c});
                else
                    put(tensor, i, t->element_bytes, part_value(part, n, pixel, c));
}

static int64_t tensor_bytes(const struct ghp_transfer *t, const struct ghp_placement *placement,
                            bool receives)
{
    struct ghp_region w = ghp_placement_region(placement, receives ? t->to : t->from, t->shape);

    return w.samples * w.channels * w.positions * WIDTH * t->element_bytes;
}

static void open_worker(struct case_of *c, int rank)
{
    const struct ghp_transfer *t = &c->transfer;
    struct ghp_placement placement = ghp_placement_of(t->staging, LAYERS, t->whole, rank);
    bool receives = placement.stage == t->to_stage;
    struct ghp_traffic traffic =
        receives ? ghp_transfer_received(t, rank) : ghp_transfer_sent(t, rank);
    struct ghp_instr instr = {.kind = receives ? GHP_INSTR_RECEIVE : GHP_INSTR_SEND,
                              .transfer = *t};

    c->tensors[rank] = ghp_alloc((size_t)tensor_bytes(t, &placement, receives), 1);
    c->scratch[rank] = ghp_alloc((size_t)traffic.packed_bytes + 1, 1);
    if (c->tensors[rank] == NULL || c->scratch[rank] == NULL) exit(1);
    if (!receives) fill(t, &placement, false, c->tensors[rank]);
    CHECK_STATUS(ghp_message_open(&instr, rank, &c->messages[rank]), GHP_OK);
    ghp_message_place(&c->messages[rank], c->tensors[rank], c->scratch[rank]);
    if (!receives) ghp_message_pack(&c->messages[rank]);
}

/* One message from each partner. */
static void deliver(const struct case_of *c, int rank)
{
    const struct ghp_exec_context exec = {.backend_ops = &ghp_backend_reference};

    for (int i = 0; i < c->messages[rank].n; i++) {
        struct ghp_p2p_message to = ghp_message_of_slice(&c->messages[rank], i);
        const struct ghp_message *sender = &c->messages[to.peer];
        int found = 0;

        for (int j = 0; j < sender->n; j++) {
            struct ghp_p2p_message from = ghp_message_of_slice(sender, j);

            if (from.peer != rank || !CHECK_EQ(from.bytes, to.bytes)) continue;
            memcpy(to.data, from.data, (size_t)to.bytes);
            found++;
        }
        CHECK_EQ(found, 1);
    }
    if (c->by_device)
        CHECK_STATUS(ghp_message_join_on(&c->messages[rank], &exec), GHP_OK);
    else
        ghp_message_join(&c->messages[rank]);
}

static bool check_receiver(const struct case_of *c, int rank)
{
    const struct ghp_transfer *t = &c->transfer;
    struct ghp_placement placement = ghp_placement_of(t->staging, LAYERS, t->whole, rank);
    int64_t bytes = tensor_bytes(t, &placement, true);
    char *right = ghp_alloc((size_t)bytes, 1);
    bool same;

    if (right == NULL) exit(1);
    deliver(c, rank);
    fill(t, &placement, true, right);
    same = memcmp(right, c->tensors[rank], (size_t)bytes) == 0;
    free(right);
    return same;
}

/* Returns whether partial sums were added. */
static bool check_case(int element_bytes)
{
    struct case_of c = {0};
    const struct ghp_transfer *t = &c.transfer;
    int wrong = 0;

    draw_case(&c, element_bytes);
    for (int r = 0; r < t->whole.workers; r++)
        open_worker(&c, r);
    for (int r = 0; r < t->whole.workers; r++)
        if (c.messages[r].receives) wrong += !check_receiver(&c, r);
    if (!CHECK_EQ(wrong, 0))
        fprintf(stderr, "  %d bytes an element, layout %d of degree %d to layout %d of degree %d\n",
                element_bytes, (int)t->from.kind, t->from.tp_size, (int)t->to.kind, t->to.tp_size);
    for (int r = 0; r < t->whole.workers; r++) {
        ghp_message_close(&c.messages[r]);
        free(c.tensors[r]);
        free(c.scratch[r]);
    }
    return t->from.kind == GHP_LAYOUT_PARTIAL;
}

CHECK_TEST(message)
{
    static const int sizes[] = {2, 4, 8};

    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        int added = 0;

        for (int k = 0; k < 800; k++)
            added += check_case(sizes[s]);
        CHECK(added > 20);
    }
    return check_end();
}
