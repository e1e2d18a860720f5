/* ghp-test: np=2 np_full=1,6 timeout=60
 *
 * Every layout change against a tensor that every rank knows: each rank takes its part of the old layout out of it, the
 * exchange runs, and the result must be its part of the new one. A partial tensor is the true one in unequal shares.
 * Tensors lie plain or in blocks of 16 channels, each as it can; where positions are exchanged, plain. */
#include "core/program/lower/points.h"
#include "executor/engine/kernel_arguments.h"
#include "executor/engine/reshard.h"
#include "tests/check.h"

enum { HEIGHT = 12, WIDTH = 2, PIXELS = HEIGHT * WIDTH, LANES = GHP_BLOCK_CHANNELS };

static struct ghp_transport *transport;
static int64_t channels = 96;
static int rank, workers, both,
    turned; /* steps between blocked tensors; between one and a plain one */
static struct ghp_problem problem;

/* Whole numbers: sums are exact in any order. */
static double truth(int64_t n, int64_t pixel, int64_t c)
{
    return (double)((n * 31 + pixel * 7 + c * 3) % 64);
}

/* The place of a channel of a pixel in a blocked tensor of `all` channels. */
static int64_t place(int64_t all, int64_t n, int64_t p, int64_t c)
{
    return ((n * (all / LANES) + c / LANES) * PIXELS + p) * LANES + c % LANES;
}

/* This rank's part of a layout; of partial: its share. padding: in channels that the tensor does not have. */
static void take(struct ghp_layout layout, bool nchw16c, double padding, double *out)
{
    struct ghp_region at =
        ghp_region_of(layout, ghp_shape_image(channels, HEIGHT, WIDTH), problem, rank);
    int member = rank % layout.tp_size;
    bool partial = layout.kind == GHP_LAYOUT_PARTIAL;
    int64_t i = 0;

    for (int64_t n = 0; n < at.samples; n++)
        for (int64_t p = 0; p < at.positions * WIDTH; p++)
            for (int64_t c = 0; c < at.channels; c++, i++) {
                double value =
                    truth(at.first_sample + n, at.first_position * WIDTH + p, at.first_channel + c);

                if (at.first_channel + c >= channels) value = padding;
                if (partial) value = member == 0 ? value - 5.0 * (layout.tp_size - 1) : 5.0;
                out[nchw16c ? place(at.channels, n, p, c) : i] = value;
            }
}

static int64_t elements_of(struct ghp_layout layout)
{
    return ghp_layout_samples(layout, problem) * ghp_layout_channels(layout, channels) *
           ghp_layout_positions(layout, HEIGHT) * WIDTH;
}

static void run_step(const struct ghp_reshard_step *step, struct ghp_nchw16c nchw16c,
                     const double *x, double *y)
{
    struct ghp_layout whole = {GHP_LAYOUT_FULL, step->tp_size};
    struct ghp_instr instr = {
        .kind = GHP_INSTR_RESHARD, .step = *step, .comm = ghp_reshard_comm(step->op)};
    size_t bytes = 2 * (size_t)elements_of(whole) * sizeof(double);
    struct ghp_reshard_job exchange = {.instr = &instr,
                                       .problem = problem,
                                       .rank = rank,
                                       .element_bytes = 8,

                                       .x = x,
                                       .y = y,
                                       .nchw16c = nchw16c,
                                       .scratch = malloc(bytes),
                                       .receive = malloc(4096),
                                       .receive_bytes = 4096};

    instr.local = (struct ghp_local){
        .n = ghp_layout_samples(whole, problem), .c = channels, .h = HEIGHT, .w = WIDTH};
    instr.ranks = ghp_ranks_subgroup(rank, step->tp_size);
    if (instr.comm != GHP_COMM_NONE)
        CHECK_STATUS(
            ghp_collectives_group(transport->host, instr.ranks, GHP_STREAM_COMPUTE, &exchange.comm),
            GHP_OK);
    CHECK_STATUS(ghp_reshard_run(&exchange), GHP_OK);
    free(exchange.receive);
    free(exchange.scratch);
}

static bool has_positions(const struct ghp_reshard_step *step)
{
    return step->from.kind == GHP_LAYOUT_SEQUENCE || step->to.kind == GHP_LAYOUT_SEQUENCE;
}

/* Whether the tensor before step `s` can be blocked if that is wanted; after a step that does not pack it stays so. */
static bool can_block(const struct ghp_reshard *reshard, int s, bool wanted)
{
    int last = reshard->n_steps - 1;
    struct ghp_layout layout = s <= last ? reshard->steps[s].from : reshard->steps[last].to;

    if (s <= last && has_positions(&reshard->steps[s])) return false;
    if (s <= last && !ghp_reshard_packs(reshard->steps[s].op) && !can_block(reshard, s + 1, wanted))
        return false;
    if (s > 0 && has_positions(&reshard->steps[s - 1])) return false;
    return wanted && ghp_whole_blocks(ghp_layout_channels(layout, channels));
}

/* wanted: bit s for the tensor before step s, the next bit for the one after it. */
static void check_change(struct ghp_layout from, struct ghp_layout to, unsigned wants)
{
    struct ghp_reshard reshard;
    size_t most = (size_t)(2 * problem.global_batch * channels * PIXELS);
    double *now, *next, *wanted;
    struct ghp_nchw16c nchw16c = {0};
    int64_t wrong = 0;

    if (!ghp_reshard_find(from, to, &reshard) || wants >> (reshard.n_steps + 1) != 0) return;
    nchw16c.y = reshard.n_steps > 0 && can_block(&reshard, 0, (wants & 1) != 0);
    now = calloc(most, sizeof(double));
    next = calloc(most, sizeof(double));
    wanted = calloc(most, sizeof(double));
    take(from, nchw16c.y, reshard.n_steps > 0 ? 99.0 : 0.0, now); /* nobody reads it */
    for (int s = 0; s < reshard.n_steps; s++) {
        const struct ghp_reshard_step *step = &reshard.steps[s];
        double *swap = now;

        nchw16c.x = nchw16c.y;
        if (ghp_reshard_packs(step->op))
            nchw16c.y = can_block(&reshard, s + 1, (wants >> (s + 1) & 1) != 0);
        both += nchw16c.x && nchw16c.y;
        turned += nchw16c.x != nchw16c.y;
        run_step(step, nchw16c, now, next);
        now = next;
        next = swap;
    }
    take(to, nchw16c.y, 0.0, wanted);
    for (int64_t i = 0; i < elements_of(to); i++)
        wrong += now[i] != wanted[i];
    if (!CHECK_EQ(wrong, 0)) {
        char a[32], b[32];

        ghp_layout_format(from, a, sizeof a);
        ghp_layout_format(to, b, sizeof b);
        fprintf(stderr, "    from %s to %s, wanted blocked %#x\n", a, b, wants);
    }
    free(wanted);
    free(next);
    free(now);
}

CHECK_TEST(reshard)
{
    struct ghp_layout layouts[64];
    int n = 0;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    rank = transport->control->rank;
    workers = transport->control->size;
    problem = (struct ghp_problem){.workers = workers, .global_batch = 2 * workers};
    layouts[n++] = (struct ghp_layout){GHP_LAYOUT_BATCH, 1};
    for (int tp_size = 2; tp_size <= workers; tp_size++)
        for (int kind = GHP_LAYOUT_CHANNEL; workers % tp_size == 0 && kind < GHP_LAYOUT_COUNT;
             kind++)
            layouts[n++] = (struct ghp_layout){(enum ghp_layout_kind)kind, tp_size};
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++)
            for (unsigned wants = 0; wants < 16 && layouts[to].kind != GHP_LAYOUT_PARTIAL; wants++)
                check_change(layouts[from], layouts[to], wants);
    channels = 95; /* which nobody's parts come out of; such tensors lie plain */
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++)
            if (layouts[to].kind != GHP_LAYOUT_PARTIAL) check_change(layouts[from], layouts[to], 0);
    CHECK((both > 0 && turned > 0) == (workers > 1));
    ghp_transport_end(transport);
    return check_end();
}
