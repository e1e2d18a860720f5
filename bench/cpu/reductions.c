/* bench/cpu/reductions.c - ghp-reductions: sums over workers by ghp's own transport compared with MPI's own.
 *
 * All ranks sum buffers of several sizes: by ghp in rank order (exact numerics), by ghp level by level (fast), the same
 * without shared memory (messages), and by MPI_Allreduce in place; in turns, each turn's time that of the slowest rank,
 * the least over the turns. They are compared with what the memory gives: all ranks at once copy a buffer of that size.
 * Nothing computes meanwhile. */
#include "core/base/json.h"
#include "core/base/clock.h"
#include "core/base/opts.h"
#include "core/base/table.h"
#include "executor/platform/step_timer.h"
#include "executor/transport/mpi/communicator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 8 };
enum variant { EXACT, FAST, MESSAGES, MPI_OWN, COPY, VARIANTS };

static const char *const variant_names[VARIANTS] = {"exact", "fast", "messages", "mpi", "copy"};
static const int64_t sizes[SIZES] = {4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                     1 << 20, 4 << 20,  16 << 20, 64 << 20};
static int64_t repeats = 15;
static bool as_json;

static const struct ghp_opt options[] = {
    {.name = "repeats",
     .kind = GHP_OPT_INT,
     .target = &repeats,
     .min = 1,
     .max = 100000,
     .help = "turns of each; the least counts"},
    {.name = "json", .kind = GHP_OPT_FLAG, .target = &as_json, .help = "print one JSON object"},
};

static const struct ghp_tool tool = {
    .name = "ghp-reductions",
    .purpose =
        "times sums over all workers: ghp's, in rank order and level by level, and MPI's own",
    .usage = "mpirun -n N ghp-reductions [options]",
    .example = "mpirun -n 2 --bind-to core build/bin/ghp-reductions",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
};

struct buffers {
    struct ghp_transport *transport;
    struct ghp_comm *world;
    int ranks;
    float *data, *other, *scratch;
};

static enum ghp_status run_once(const struct buffers *b, enum variant variant, int64_t bytes)
{
    struct ghp_reduction sum = {.in = b->data,
                                .out = b->data,
                                .elements = bytes / (int64_t)sizeof(float),
                                .element_bytes = sizeof(float),
                                .scratch = b->scratch,
                                .scratch_bytes = GHP_COMM_SEGMENT_BYTES};

    switch (variant) {
    case EXACT:
    case FAST:
    case MESSAGES:
        ghp_mpi_of(b->transport)->shares_memory = variant != MESSAGES;
        b->transport->host->in_rank_order = variant == EXACT;
        return b->world->ops->all_reduce(b->world, &sum);
    case MPI_OWN:
        return MPI_Allreduce(MPI_IN_PLACE, b->data, (int)sum.elements, MPI_FLOAT, MPI_SUM,
                             MPI_COMM_WORLD) == MPI_SUCCESS
                   ? GHP_OK
                   : GHP_FAIL(GHP_ERR_COMM, "MPI_Allreduce failed; see MPI's message above");
    default: memcpy(b->other, b->data, (size_t)bytes); return GHP_OK;
    }
}

/* The least of the turns, the first of which does not count: what others do on the machine only lengthens a turn. */
static enum ghp_status measure(const struct buffers *b, int64_t bytes, double seconds[VARIANTS])
{
    for (int variant = 0; variant < VARIANTS; variant++)
        seconds[variant] = 1e9;
    for (int64_t turn = -1; turn < repeats; turn++)
        for (int variant = 0; variant < VARIANTS; variant++) {
            double took, most = 0;

            memset(b->data, 0, (size_t)bytes); /* sums of sums would overflow */
            GHP_TRY(ghp_control_barrier(b->transport->control, b->world));
            took = ghp_now_s();
            GHP_TRY(run_once(b, (enum variant)variant, bytes));
            took = ghp_now_s() - took;
            MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (turn >= 0 && most < seconds[variant]) seconds[variant] = most;
        }
    return GHP_OK;
}

static enum ghp_status print_table(double seconds[SIZES][VARIANTS], int ranks)
{
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status;

    ghp_table_note(
        t, "sums over %d ranks, the least of %lld turns; ratio: MPI's seconds by ghp's fast", ranks,
        (long long)repeats);
    ghp_table_column(t, "buffer", "KiB", 'r');
    for (int variant = 0; variant < VARIANTS; variant++)
        ghp_table_column(t, variant_names[variant], "ms", 'r');
    ghp_table_column(t, "ratio", "", 'r');
    for (int i = 0; i < SIZES; i++) {
        ghp_table_row(t);
        ghp_table_cell(t, "%lld", (long long)(sizes[i] >> 10));
        for (int variant = 0; variant < VARIANTS; variant++)
            ghp_table_cell(t, "%.3f", 1e3 * seconds[i][variant]);
        ghp_table_cell(t, "%.2f", seconds[i][MPI_OWN] / seconds[i][FAST]);
    }
    status = ghp_table_print(t, stdout);
    ghp_table_close(t);
    return status;
}

static enum ghp_status print_json(double seconds[SIZES][VARIANTS], int ranks)
{
    json_t *rows = json_array();

    for (int i = 0; i < SIZES; i++)
        json_array_append_new(rows, json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "bytes",
                                              (json_int_t)sizes[i], "exact_s", seconds[i][EXACT],
                                              "fast_s", seconds[i][FAST], "messages_s",
                                              seconds[i][MESSAGES], "mpi_s", seconds[i][MPI_OWN],
                                              "copy_s", seconds[i][COPY]));
    return ghp_json_print(json_pack("{s:s, s:i, s:I, s:o}", "format", "ghp.reductions/1", "ranks",
                                    ranks, "repeats", (json_int_t)repeats, "rows", rows),
                          stdout);
}

static enum ghp_status run(struct ghp_transport *transport)
{
    struct buffers b = {.transport = transport, .ranks = transport->control->size};
    double seconds[SIZES][VARIANTS];
    enum ghp_status status = GHP_OK;

    b.data = ghp_alloc((size_t)sizes[SIZES - 1], 1);
    b.other = ghp_alloc((size_t)sizes[SIZES - 1], 1);
    b.scratch = ghp_alloc(GHP_COMM_SEGMENT_BYTES, 1);
    if (b.data == NULL || b.other == NULL || b.scratch == NULL)
        GHP_TRY_GOTO(status, GHP_NO_MEMORY(), done);
    GHP_TRY_GOTO(status,
                 ghp_collectives_group(transport->host,
                                       (struct ghp_ranks){.count = b.ranks, .stride = 1},
                                       GHP_STREAM_COMPUTE, &b.world),
                 done);
    for (int i = 0; i < SIZES; i++)
        GHP_TRY_GOTO(status, measure(&b, sizes[i], seconds[i]), done);
    if (transport->control->rank == 0)
        status = as_json ? print_json(seconds, b.ranks) : print_table(seconds, b.ranks);
done:
    free(b.data);
    free(b.other);
    free(b.scratch);
    return status;
}

int main(int argc, char **argv)
{
    struct ghp_transport *transport = NULL;
    enum ghp_status status = ghp_opts_parse(&tool, argc, argv, NULL, 0, NULL);

    if (status == GHP_OK && !ghp_opts_done()) {
        status = ghp_transport_start(&argc, &argv, 60, &transport);
        if (status == GHP_OK) status = run(transport);
    }
    if (status != GHP_OK) fprintf(stderr, "%s: %s\n", tool.name, ghp_status_message());
    if (status != GHP_OK && transport != NULL)
        transport->control->ops->abort(transport->control, ghp_status_exit_code(status));
    ghp_transport_end(transport);
    return ghp_status_exit_code(status);
}
