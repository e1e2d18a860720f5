/* bench/lab/probe.c - ghp-lab-probe: what the links between hosts, and the memory inside them, carry.
 *
 * For a look at the lab, or at a cluster, before trusting figures measured on it. Not a profile: ghp-profile measures
 * what training will ask for, with ghp's own transport; this measures plain MPI calls.
 *
 *     latency     half a round trip of one byte
 *     one-way     messages from one rank to another until the last one is acknowledged
 *     two-way     the same both ways at once; the rate is that of one direction
 *     all-reduce  one rank a host; the rate is that of a ring, 2 (p - 1) / p * bytes / seconds
 *
 * Between hosts each host is tried against the first one, by their first ranks; inside a host its first two ranks.
 * Ranks that a measurement does not need sleep, so that they take no core from those that it does.
 *
 * Adding a measurement: a name in test_names, its body in time_once, its calls in measure_size.
 *
 * Tested  tests/tools/bench/test_lab.sh */
#include "core/base/json.h"
#include "core/base/opts.h"
#include "core/base/status.h"
#include "core/base/table.h"
#include "core/base/units.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    REPEATS_MAX = 1000,
    NAME_BYTES = MPI_MAX_PROCESSOR_NAME, /* of a host's name, NUL included */
    TAG = 1
};

enum test { LATENCY, ONE_WAY, TWO_WAY, ALL_REDUCE };
static const char *const test_names[] = {"latency", "one-way", "two-way", "all-reduce"};

/* The hosts of the ranks, and what all ranks agreed to do. */
struct probe {
    int rank, n_ranks; /* in MPI_COMM_WORLD */
    int n_hosts;
    int *first;            /* [n_hosts] lowest rank of each host */
    int *second;           /* [n_hosts] the next one; -1 on a host of one rank */
    char *names;           /* [n_ranks][NAME_BYTES] each rank's host */
    MPI_Comm leaders;      /* the hosts' first ranks; MPI_COMM_NULL elsewhere */
    float *send, *receive; /* [max_bytes / 4, rounded up] */
    int64_t bytes[GHP_OPT_LIST_MAX];
    int n_sizes;
    int64_t repeats;
    struct ghp_table *table; /* rank 0 */
    json_t *results;         /* rank 0 with --json */
};

/* One measurement: which, between whom, how large. */
struct trial {
    enum test test;
    int from, to;  /* world ranks; of an all-reduce, the first and the last leader */
    int64_t bytes; /* of one message */
};

static bool is_member(const struct probe *p, const struct trial *t)
{
    if (t->test == ALL_REDUCE) return p->leaders != MPI_COMM_NULL;
    return p->rank == t->from || p->rank == t->to;
}

/* A barrier whose waiting ranks sleep. */
static void rest_together(void)
{
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done)
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

/* Messages sent back to back in one repeat: enough for 1 MiB, so that small ones are not timed by their start. */
static int messages_of(const struct trial *t)
{
    const int64_t window_bytes = 1 << 20;
    if (t->test == LATENCY) return 16;
    return t->bytes >= window_bytes ? 1 : (int)(window_bytes / t->bytes);
}

/* Seconds of one message of a trial, on t->from; on the other members the value means nothing.
 * Collective over the members of the trial */
static double time_once(const struct probe *p, const struct trial *t)
{
    const int n = messages_of(t), bytes = (int)t->bytes;
    const int other = p->rank == t->from ? t->to : t->from;
    char done = 0;
    if (t->test == ALL_REDUCE) MPI_Barrier(p->leaders);
    const double start_s = MPI_Wtime();
    for (int i = 0; i < n; i++) {
        if (t->test == ALL_REDUCE)
            MPI_Allreduce(p->send, p->receive, bytes / 4, MPI_FLOAT, MPI_SUM, p->leaders);
        else if (t->test == TWO_WAY)
            MPI_Sendrecv(p->send, bytes, MPI_BYTE, other, TAG, p->receive, bytes, MPI_BYTE, other,
                         TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (p->rank == t->from)
            MPI_Send(p->send, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
        else
            MPI_Recv(p->receive, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (t->test == LATENCY && p->rank == t->from)
            MPI_Recv(&done, 1, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (t->test == LATENCY)
            MPI_Send(&done, 1, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
    }
    if (t->test == ONE_WAY && p->rank == t->from)
        MPI_Recv(&done, 1, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (t->test == ONE_WAY)
        MPI_Send(&done, 1, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
    const double seconds = (MPI_Wtime() - start_s) / n;
    return t->test == LATENCY ? seconds / 2 : seconds;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Bytes that cross a link, in one direction, for one message of the trial. */
static double link_bytes(const struct probe *p, const struct trial *t)
{
    if (t->test != ALL_REDUCE) return (double)t->bytes;
    return 2.0 * (p->n_hosts - 1) / p->n_hosts * (double)t->bytes;
}

/* Adds a measured trial to the table and the JSON array; times_s ascends. Rank 0 only. */
static void record(const struct probe *p, const struct trial *t, const double *times_s)
{
    const int64_t n = p->repeats;
    const double median_s = (times_s[(n - 1) / 2] + times_s[n / 2]) / 2;
    const double spread = (times_s[n - 1] - times_s[0]) / median_s;
    const double rate_Bps = link_bytes(p, t) / median_s, best_Bps = link_bytes(p, t) / times_s[0];
    const char *from = p->names + (size_t)t->from * NAME_BYTES;
    const char *to = p->names + (size_t)t->to * NAME_BYTES;
    if (t->test == ALL_REDUCE) to = "all";
    char size[32];
    ghp_table_row(p->table);
    ghp_table_cell(p->table, "%s", test_names[t->test]);
    ghp_table_cell(p->table, "%s", from);
    ghp_table_cell(p->table, "%s", to);
    ghp_table_cell(p->table, "%s", ghp_bytes_format((double)t->bytes, size, sizeof size));
    ghp_table_cell(p->table, "%.4f", median_s * 1e3);
    if (t->test == LATENCY) {
        ghp_table_cell(p->table, "-");
        ghp_table_cell(p->table, "-");
    } else {
        ghp_table_cell(p->table, "%.0f", 8e-6 * rate_Bps);
        ghp_table_cell(p->table, "%.0f", 8e-6 * best_Bps);
    }
    ghp_table_cell(p->table, "%.0f", 100 * spread);
    if (p->results == NULL) return;
    json_array_append_new(p->results,
                          json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:f, s:f, s:f, s:f}", "test",
                                    test_names[t->test], "from", from, "to", to, "from_rank",
                                    t->from, "to_rank", t->to, "bytes", (json_int_t)t->bytes,
                                    "measured_s", median_s, "rate_Bps", rate_Bps, "best_rate_Bps",
                                    best_Bps, "spread", spread));
}

/* Times a trial, after one repeat to warm up, and records it on rank 0.
 * Collective over MPI_COMM_WORLD */
static void measure(const struct probe *p, struct trial t)
{
    double times_s[REPEATS_MAX] = {0};
    rest_together();
    if (is_member(p, &t))
        for (int64_t i = -1; i < p->repeats; i++) {
            const double seconds = time_once(p, &t);
            if (i >= 0) times_s[i] = seconds;
        }
    rest_together();
    MPI_Bcast(times_s, (int)p->repeats, MPI_DOUBLE, t.from, MPI_COMM_WORLD);
    qsort(times_s, (size_t)p->repeats, sizeof times_s[0], by_value);
    if (p->rank == 0) record(p, &t, times_s);
}

/* Latency once, or the other tests at one size; size -1 is latency. */
static void measure_size(const struct probe *p, int size)
{
    const bool latency = size < 0;
    const int64_t bytes = latency ? 1 : p->bytes[size];
    for (int h = 0; h < p->n_hosts; h++) {
        if (p->second[h] < 0) continue;
        measure(p, (struct trial){latency ? LATENCY : ONE_WAY, p->first[h], p->second[h], bytes});
    }
    for (int h = 1; h < p->n_hosts; h++) {
        const int a = p->first[0], b = p->first[h];
        measure(p, (struct trial){latency ? LATENCY : ONE_WAY, a, b, bytes});
        if (latency) continue;
        measure(p, (struct trial){ONE_WAY, b, a, bytes});
        measure(p, (struct trial){TWO_WAY, a, b, bytes});
    }
    if (!latency && p->n_hosts > 1)
        measure(p, (struct trial){ALL_REDUCE, p->first[0], p->first[p->n_hosts - 1], bytes});
}

/* Fails on every rank where it failed on one. Collective over MPI_COMM_WORLD */
static enum ghp_status agree(enum ghp_status status)
{
    int mine = (int)status, worst = 0;
    MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (status == GHP_OK && worst != 0)
        return GHP_FAIL((enum ghp_status)worst,
                        "another rank could not set up; see its host's memory");
    return status;
}

/* Finds the hosts (ranks that can share memory are on one) and who is on them.
 * Collective over MPI_COMM_WORLD */
static enum ghp_status find_hosts(struct probe *p)
{
    int length = 0, host = 0;
    char name[NAME_BYTES] = "";
    MPI_Comm inside;
    p->first = ghp_alloc((size_t)p->n_ranks, sizeof *p->first);
    p->second = ghp_alloc((size_t)p->n_ranks, sizeof *p->second);
    p->names = ghp_alloc((size_t)p->n_ranks, NAME_BYTES);
    int *lowest = ghp_alloc((size_t)p->n_ranks, sizeof *lowest); /* of each rank's host */
    const bool ok = p->first != NULL && p->second != NULL && p->names != NULL && lowest != NULL;
    enum ghp_status status = agree(ok ? GHP_OK : GHP_NO_MEMORY());
    if (status != GHP_OK) goto out;
    MPI_Get_processor_name(name, &length);
    MPI_Allgather(name, NAME_BYTES, MPI_CHAR, p->names, NAME_BYTES, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, p->rank, MPI_INFO_NULL, &inside);
    int mine = p->rank;
    MPI_Bcast(&mine, 1, MPI_INT, 0, inside);
    MPI_Comm_free(&inside);
    MPI_Allgather(&mine, 1, MPI_INT, lowest, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < p->n_ranks; r++) {
        for (host = 0; host < p->n_hosts && p->first[host] != lowest[r];)
            host++;
        if (host == p->n_hosts) {
            p->first[p->n_hosts] = r;
            p->second[p->n_hosts++] = -1;
        } else if (p->second[host] < 0) {
            p->second[host] = r;
        }
    }
    MPI_Comm_split(MPI_COMM_WORLD, mine == p->rank ? 0 : MPI_UNDEFINED, p->rank, &p->leaders);
out:
    free(lowest);
    return status;
}

/* Reads the sizes and allocates the two messages. */
static enum ghp_status prepare(struct probe *p, const struct ghp_opt_list *sizes)
{
    const int64_t max_bytes = 1 << 30;
    int64_t largest = 4;
    for (int i = 0; i < sizes->n; i++) {
        GHP_TRY(ghp_bytes_parse(sizes->item[i], &p->bytes[i]));
        if (p->bytes[i] < 4 || p->bytes[i] > max_bytes || p->bytes[i] % 4 != 0)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "cannot use --bytes '%s': not a multiple of 4 from 4 to 1GiB",
                            sizes->item[i]);
        if (p->bytes[i] > largest) largest = p->bytes[i];
    }
    p->n_sizes = sizes->n;
    p->send = ghp_alloc((size_t)largest, 1);
    p->receive = ghp_alloc((size_t)largest, 1);
    if (p->send == NULL || p->receive == NULL) return GHP_NO_MEMORY();
    memset(p->send, 0,
           (size_t)largest); /* touched, so that the first message does not wait for pages */
    memset(p->receive, 0, (size_t)largest);
    return GHP_OK;
}

static void describe(const struct probe *p)
{
    const char *lab = getenv("GHP_LAB");
    ghp_table_note(p->table, "%d ranks on %d hosts, %s", p->n_ranks, p->n_hosts,
                   lab != NULL ? lab : "outside the lab");
    ghp_table_note(p->table,
                   "time and rate: medians of %lld repeats; best: the shortest; spread: (longest - "
                   "shortest) / median",
                   (long long)p->repeats);
    for (int r = 0; r < p->n_ranks; r++)
        ghp_table_note(p->table, "rank %d on %s", r, p->names + (size_t)r * NAME_BYTES);
    ghp_table_column(p->table, "test", "", 'l');
    ghp_table_column(p->table, "from", "", 'l');
    ghp_table_column(p->table, "to", "", 'l');
    ghp_table_column(p->table, "message", "", 'r');
    ghp_table_column(p->table, "time", "ms", 'r');
    ghp_table_column(p->table, "rate", "Mbit/s", 'r');
    ghp_table_column(p->table, "best", "Mbit/s", 'r');
    ghp_table_column(p->table, "spread", "%", 'r');
}

/* Prints one object, or the table. Rank 0 only. */
static enum ghp_status report(const struct probe *p)
{
    if (p->results == NULL) return ghp_table_print(p->table, stdout);
    json_t *hosts = json_array();
    for (int r = 0; r < p->n_ranks; r++)
        json_array_append_new(hosts, json_string(p->names + (size_t)r * NAME_BYTES));
    json_t *root =
        json_pack("{s:s, s:i, s:o, s:I, s:O}", "format", "ghp.lab-probe/1", "n_hosts", p->n_hosts,
                  "host_of_rank", hosts, "repeats", (json_int_t)p->repeats, "results", p->results);
    return ghp_json_print(root, stdout);
}

static enum ghp_status run(struct probe *p, int argc, char **argv)
{
    struct ghp_opt_list sizes = {{NULL}, 0};
    bool json = false;
    const struct ghp_opt options[] = {
        {.name = "bytes",
         .letter = 'b',
         .kind = GHP_OPT_LIST,
         .target = &sizes,
         .argument = "SIZE",
         .help = "message size, may be given several times; 64KiB, 1MiB and 4MiB if not given"},
        {.name = "repeats",
         .letter = 'r',
         .kind = GHP_OPT_INT,
         .target = &p->repeats,
         .argument = "N",
         .help = "timed repeats of each measurement",
         .min = 1,
         .max = REPEATS_MAX},
        {.name = "json", .kind = GHP_OPT_FLAG, .target = &json, .help = "print one JSON object"},
    };
    const struct ghp_tool tool = {
        .name = "ghp-lab-probe",
        .purpose = "Measures what the links between hosts, and the memory inside them, carry.",
        .usage = "mpirun -n P ghp-lab-probe [options]",
        .example = "bench/lab/run --hosts 2 --rate 200mbit -- ghp-lab-probe",
        .opts = options,
        .n_opts = (int)(sizeof options / sizeof options[0])};
    p->repeats = 5;
    if (p->rank != 0 &&
        freopen("/dev/null", "w", stdout) == NULL) /* --help is for rank 0 to print */
        return GHP_FAIL(GHP_ERR_IO, "cannot open /dev/null; check the machine");
    GHP_TRY(ghp_opts_parse(&tool, argc, argv, NULL, 0, NULL));
    if (ghp_opts_done()) return GHP_OK;
    if (sizes.n == 0) sizes = (struct ghp_opt_list){{"64KiB", "1MiB", "4MiB"}, 3};
    if (p->n_ranks < 2)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot measure with 1 rank; start it by bench/lab/run or mpirun -n 2");
    GHP_TRY(agree(prepare(p, &sizes)));
    GHP_TRY(find_hosts(p));
    if (p->rank == 0) {
        p->table = ghp_table_open();
        p->results = json ? json_array() : NULL;
        describe(p);
    }
    for (int size = -1; size < p->n_sizes; size++)
        measure_size(p, size);
    return p->rank == 0 ? report(p) : GHP_OK;
}

static void release(struct probe *p)
{
    if (p->leaders != MPI_COMM_NULL) MPI_Comm_free(&p->leaders);
    ghp_table_close(p->table);
    json_decref(p->results);
    free(p->send);
    free(p->receive);
    free(p->names);
    free(p->second);
    free(p->first);
}

int main(int argc, char **argv)
{
    struct probe p = {.leaders = MPI_COMM_NULL};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p.n_ranks);
    const enum ghp_status status = run(&p, argc, argv);
    if (status != GHP_OK && p.rank == 0)
        fprintf(stderr, "ghp-lab-probe: %s\n", ghp_status_message());
    release(&p);
    MPI_Finalize();
    return ghp_status_exit_code(status);
}
