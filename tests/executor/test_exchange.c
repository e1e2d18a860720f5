/* ghp-test: np=1,2,4,6 timeout=60
 *
 * Every layout change against a tensor that every rank knows: each rank cuts its part of the old layout out of it, the
 * exchange runs, and the result must be its part of the new one. A partial tensor is the true one in unequal shares. */
#include "core/lower.h"
#include "executor/call.h"
#include "executor/exchange.h"
#include "tests/check.h"

enum { CHANNELS = 24, HEIGHT = 3, WIDTH = 2 };

static struct ghp_transport *transport;
static int rank, workers;
static struct ghp_extent extent;

/* Whole numbers: sums are exact in any order. */
static double truth(int64_t n, int64_t pixel, int64_t c)
{
    return (double)((n * 31 + pixel * 7 + c * 3) % 64);
}

/* This rank's part of a layout; of partial: its share. */
static void cut(struct ghp_layout layout, double *out)
{
    struct ghp_window_at at = ghp_window_of(layout, CHANNELS, extent, rank);
    int member = rank % layout.degree;
    bool partial = layout.kind == GHP_LAYOUT_PARTIAL;

    for (int64_t n = 0; n < at.samples; n++)
        for (int64_t p = 0; p < HEIGHT * WIDTH; p++)
            for (int64_t c = 0; c < at.channels; c++) {
                double value = truth(at.first_sample + n, p, at.first_channel + c);

                if (partial) value = member == 0 ? value - 5.0 * (layout.degree - 1) : 5.0;
                out[(n * HEIGHT * WIDTH + p) * at.channels + c] = value;
            }
}

static int64_t elements_of(struct ghp_layout layout)
{
    return ghp_layout_samples(layout, extent) * ghp_layout_channels(layout, CHANNELS) * HEIGHT *
           WIDTH;
}

static void run_step(const struct ghp_reshard_step *step, const double *x, double *y)
{
    struct ghp_layout whole = {GHP_LAYOUT_FULL, step->degree};
    struct ghp_instr instr = {
        .kind = GHP_INSTR_RESHARD, .step = *step, .comm = ghp_reshard_comm(step->op)};
    size_t bytes = (size_t)elements_of(whole) * sizeof(double);
    struct ghp_exchange exchange = {.instr = &instr,
                                    .extent = extent,
                                    .rank = rank,
                                    .element_bytes = 8,
                                    .transport_ops = &ghp_transport_mpi,
                                    .x = x,
                                    .y = y,
                                    .scratch = malloc(bytes),
                                    .receive = malloc(4096),
                                    .receive_bytes = 4096};

    instr.local = (struct ghp_local){
        .n = ghp_layout_samples(whole, extent), .c = CHANNELS, .h = HEIGHT, .w = WIDTH};
    instr.ranks = ghp_ranks_subgroup(rank, step->degree);
    if (instr.comm != GHP_COMM_NONE)
        CHECK_STATUS(
            ghp_transport_mpi.group(transport, instr.ranks, GHP_STREAM_COMPUTE, &exchange.comm),
            GHP_OK);
    CHECK_STATUS(ghp_exchange_run(&exchange), GHP_OK);
    free(exchange.receive);
    free(exchange.scratch);
}

static void check_change(struct ghp_layout from, struct ghp_layout to)
{
    struct ghp_reshard reshard;
    size_t most = (size_t)(extent.global_batch * CHANNELS * HEIGHT * WIDTH);
    double *now, *next, *wanted;
    int64_t wrong = 0;

    if (!ghp_reshard_find(from, to, &reshard)) return;
    now = calloc(most, sizeof(double));
    next = calloc(most, sizeof(double));
    wanted = calloc(most, sizeof(double));
    cut(from, now);
    cut(to, wanted);
    for (int s = 0; s < reshard.n_steps; s++) {
        double *swap = now;

        run_step(&reshard.steps[s], now, next);
        now = next;
        next = swap;
    }
    for (int64_t i = 0; i < elements_of(to); i++)
        wrong += now[i] != wanted[i];
    if (!CHECK_EQ(wrong, 0)) {
        char a[32], b[32];

        ghp_layout_text(from, a, sizeof(a));
        ghp_layout_text(to, b, sizeof(b));
        fprintf(stderr, "    from %s to %s\n", a, b);
    }
    free(wanted);
    free(next);
    free(now);
}

int main(int argc, char **argv)
{
    struct ghp_layout layouts[64];
    int n = 0;

    if (!CHECK_STATUS(ghp_transport_mpi.open(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    rank = ghp_transport_mpi.rank(transport);
    workers = ghp_transport_mpi.size(transport);
    extent = (struct ghp_extent){.workers = workers, .global_batch = 2 * workers};
    layouts[n++] = (struct ghp_layout){GHP_LAYOUT_BATCH, 1};
    for (int degree = 2; degree <= workers; degree++)
        for (int kind = GHP_LAYOUT_CHANNEL; workers % degree == 0 && kind <= GHP_LAYOUT_PARTIAL;
             kind++)
            layouts[n++] = (struct ghp_layout){(enum ghp_layout_kind)kind, degree};
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++)
            if (layouts[to].kind != GHP_LAYOUT_PARTIAL) check_change(layouts[from], layouts[to]);
    ghp_transport_mpi.close(transport);
    return check_end();
}
