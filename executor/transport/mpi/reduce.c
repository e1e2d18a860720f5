/* executor/transport/mpi/reduce.c - sums over ranks: all_reduce and reduce_scatter.
 *
 * A level's phase goes by messages, or over a shared segment if the level has one: then its post lays out what its
 * finish, on the other ranks, awaits and adds or takes. */
#include "executor/transport/mpi/hierarchy.h"
#include "executor/transport/summands.h"

#include <string.h>

enum {
    DIRECT_BYTES = 2048, /* sums up to this size: everybody sends all to all and adds alone */
    DIRECT_SHARED_BYTES = 32 << 10, /* the same over a shared segment: of all ranks together */
    EVEN_ELEMENTS = 64 /* parts on shared segments begin at multiples, where lines begin, too */
};

/* ---- all_reduce ---- */

/* A sum of `most` elements at once, with as much scratch for each of `slots` segments. */
struct sum {
    const struct ghp_reduction *of;
    struct ghp_mpi_hierarchy hierarchy;
    int64_t most;
    int slots;
};

static struct ghp_shared_segment *shared_of(const struct sum *sum)
{
    return sum->hierarchy.of[0].shared;
}

static int64_t up_to_multiple(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* How many elements go at once, a multiple of `unit`: what the shared segment's slots hold. What then travels in
 * messages, or travels in messages alone, must fit into its part of scratch. Rounded up if there is room: a few
 * elements left over would go alone, and take as long on the way as many. */
static int64_t fitting(const struct sum *sum, int64_t bytes, int64_t unit)
{
    const struct ghp_shared_segment *shared = shared_of(sum);
    int64_t room = ghp_mpi_smaller(sum->of->scratch_bytes, GHP_MPI_MESSAGE_BYTES) / sum->slots;
    int64_t most = ghp_mpi_smaller(bytes, ghp_mpi_segment_bytes(bytes));

    if (shared != NULL)
        room =
            sum->hierarchy.n == 1 ? shared->slot_bytes : ghp_mpi_smaller(room, shared->slot_bytes);
    if (shared != NULL && sum->hierarchy.n == 1) most = room;
    room /= sum->of->element_bytes;
    most = ghp_mpi_smaller(most / sum->of->element_bytes, room);
    if (shared != NULL && up_to_multiple(most, unit * EVEN_ELEMENTS) <= room)
        return up_to_multiple(most, unit * EVEN_ELEMENTS);
    if (up_to_multiple(most, unit) <= room) return up_to_multiple(most, unit);
    if (shared != NULL && room >= unit * EVEN_ELEMENTS) unit *= EVEN_ELEMENTS;
    return room / unit * unit;
}

/* A segment holds scratch until all levels have added it, while the next is already on its way. */
static struct sum sum_in_segments(const struct ghp_reduction *of,
                                  struct ghp_mpi_hierarchy hierarchy, int64_t bytes, int64_t unit)
{
    struct sum sum = {.of = of, .hierarchy = hierarchy, .slots = 1};

    sum.most = fitting(&sum, bytes, unit);
    if (sum.most * of->element_bytes >= bytes) return sum;
    sum.slots = hierarchy.n + 1;
    sum.most = fitting(&sum, bytes, unit);
    return sum;
}

static char *slot_of(const struct sum *sum, int64_t segment)
{
    return ghp_mpi_at(sum->of->scratch, segment % sum->slots * sum->most * sum->of->element_bytes);
}

/* Elements [at, at + n) of the buffer; each member of the level sums a slice of `each` of them. */
struct run {
    int64_t at, n, each;
};

static struct run run_of(const struct ghp_mpi_level *level, int64_t at, int64_t n)
{
    return (struct run){at, n, (n + level->count - 1) / level->count};
}

static struct run slice(struct run run, int index)
{
    int64_t begin = ghp_mpi_smaller(index * run.each, run.n),
            end = ghp_mpi_smaller(begin + run.each, run.n);

    return (struct run){.at = run.at + begin, .n = end - begin};
}

/* What a segment's phase is about: on the way in the levels in order, on the way back in reverse. */
static struct run run_at(const struct sum *sum, int64_t segment, int level)
{
    int64_t begin = segment * sum->most;
    struct run run =
        run_of(&sum->hierarchy.of[0], begin, ghp_mpi_smaller(sum->most, sum->of->elements - begin));

    for (int i = 0; i < level; i++) {
        struct run own = slice(run, sum->hierarchy.of[i].index);

        run = run_of(&sum->hierarchy.of[i + 1], own.at, own.n);
    }
    return run;
}

static int level_of(const struct sum *sum, int phase)
{
    return phase < sum->hierarchy.n ? phase : 2 * sum->hierarchy.n - 1 - phase;
}

static uint32_t chunk_of(const struct ghp_shared_segment *shared, int64_t segment)
{
    return shared->next + (uint32_t)segment;
}

/* The place in a segment's chunk at which a rank publishes a member's slice. */
static char *laid_of(const struct sum *sum, struct run run, int64_t segment, int rank, int member)
{
    const struct ghp_shared_segment *shared = shared_of(sum);

    return ghp_shared_segment_at(shared, rank, chunk_of(shared, segment)) +
           member * run.each * sum->of->element_bytes;
}

static enum ghp_status publish_parts(const struct sum *sum, struct run run, int64_t segment)
{
    const struct ghp_shared_segment *shared = shared_of(sum);
    int64_t e = sum->of->element_bytes;
    uint32_t chunk = chunk_of(shared, segment);

    GHP_TRY(ghp_shared_segment_acquire(shared, chunk));
    for (int i = 1; i < shared->count; i++) {
        int r = ghp_mpi_later(&sum->hierarchy.of[0], i);
        struct run to = slice(run, r);

        memcpy(laid_of(sum, run, segment, shared->index, r), ghp_mpi_at(sum->of->out, to.at * e),
               (size_t)(to.n * e));
    }
    ghp_shared_segment_signal(shared, GHP_SHARED_SEGMENT_PUBLISHED, chunk);
    return GHP_OK;
}

static enum ghp_status publish_total(const struct sum *sum, struct run run, int64_t segment)
{
    const struct ghp_shared_segment *shared = shared_of(sum);
    int64_t e = sum->of->element_bytes;
    struct run own = slice(run, shared->index);

    memcpy(laid_of(sum, run, segment, shared->index, shared->index),
           ghp_mpi_at(sum->of->out, own.at * e), (size_t)(own.n * e));
    ghp_shared_segment_signal(shared, GHP_SHARED_SEGMENT_ADDED, chunk_of(shared, segment));
    return GHP_OK;
}

static enum ghp_status take_totals(const struct sum *sum, struct run run, int64_t segment)
{
    const struct ghp_shared_segment *shared = shared_of(sum);
    int64_t e = sum->of->element_bytes;
    uint32_t chunk = chunk_of(shared, segment);

    GHP_TRY(ghp_shared_segment_await(shared, GHP_SHARED_SEGMENT_ADDED, chunk));
    for (int i = 1; i < shared->count; i++) {
        int r = ghp_mpi_earlier(&sum->hierarchy.of[0], i);
        struct run from = slice(run, r);

        memcpy(ghp_mpi_at(sum->of->out, from.at * e), laid_of(sum, run, segment, r, r),
               (size_t)(from.n * e));
    }
    ghp_shared_segment_signal(shared, GHP_SHARED_SEGMENT_CONSUMED, chunk);
    return GHP_OK;
}

static enum ghp_status post_scatter(struct ghp_mpi_comm *comm, const struct sum *sum,
                                    const struct ghp_mpi_level *level, struct run run,
                                    char *scratch)
{
    int64_t e = sum->of->element_bytes, own = slice(run, level->index).n;

    for (int i = 1; i < level->count && own > 0; i++) {
        int r = ghp_mpi_earlier(level, i);
        GHP_TRY(
            ghp_mpi_receive(comm, scratch + r * run.each * e, own * e, ghp_mpi_peer_at(level, r)));
    }
    for (int i = 1; i < level->count; i++) {
        int r = ghp_mpi_later(level, i);
        struct run to = slice(run, r);
        if (to.n > 0)
            GHP_TRY(ghp_mpi_send(comm, ghp_mpi_at(sum->of->out, to.at * e), to.n * e,
                                 ghp_mpi_peer_at(level, r)));
    }
    return GHP_OK;
}

static enum ghp_status post_gather(struct ghp_mpi_comm *comm, const struct sum *sum,
                                   const struct ghp_mpi_level *level, struct run run)
{
    int64_t e = sum->of->element_bytes;
    struct run own = slice(run, level->index);

    for (int i = 1; i < level->count; i++) {
        int r = ghp_mpi_earlier(level, i);
        struct run to = slice(run, r);
        if (to.n > 0)
            GHP_TRY(ghp_mpi_receive(comm, ghp_mpi_at(sum->of->out, to.at * e), to.n * e,
                                    ghp_mpi_peer_at(level, r)));
    }
    for (int i = 1; i < level->count && own.n > 0; i++)
        GHP_TRY(ghp_mpi_send(comm, ghp_mpi_at(sum->of->out, own.at * e), own.n * e,
                             ghp_mpi_peer_at(level, ghp_mpi_later(level, i))));
    return GHP_OK;
}

static enum ghp_status post_sum(struct ghp_mpi_comm *comm, const void *work, int64_t segment,
                                int phase)
{
    const struct sum *sum = work;
    int i = level_of(sum, phase);
    struct run run = run_at(sum, segment, i);

    if (sum->hierarchy.of[i].shared != NULL)
        return phase == i ? publish_parts(sum, run, segment) : publish_total(sum, run, segment);
    if (phase < sum->hierarchy.n)
        return post_scatter(comm, sum, &sum->hierarchy.of[i], run, slot_of(sum, segment));
    return post_gather(comm, sum, &sum->hierarchy.of[i], run);
}

/* Adds what has come of this rank's part. */
static enum ghp_status add_parts(const struct sum *sum, const struct ghp_mpi_level *level,
                                 struct run run, int64_t segment)
{
    int64_t e = sum->of->element_bytes;
    struct run own = slice(run, level->index);
    char *out = ghp_mpi_at(sum->of->out, own.at * e);
    struct ghp_summands summands = {
        .count = level->count, .index = level->index, .n = own.n, .stride = run.each, .own = out};

    summands.scratch = slot_of(sum, segment);
    if (level->shared != NULL) {
        GHP_TRY(ghp_shared_segment_await(level->shared, GHP_SHARED_SEGMENT_PUBLISHED,
                                         chunk_of(level->shared, segment)));
        summands.stride = level->shared->rank_bytes / e;
        summands.scratch = laid_of(sum, run, segment, 0, level->index);
    }
    ghp_summands_add(&summands, sum->of->element_bytes, out);
    return GHP_OK;
}

static enum ghp_status finish_sum(const void *work, int64_t segment, int phase)
{
    const struct sum *sum = work;
    int i = level_of(sum, phase);
    const struct ghp_mpi_level *level = &sum->hierarchy.of[i];
    struct run run = run_at(sum, segment, i);

    if (phase < sum->hierarchy.n) return add_parts(sum, level, run, segment);
    return level->shared != NULL ? take_totals(sum, run, segment) : GHP_OK;
}

/* A small sum: everybody gets everything and adds by itself, in the same order. */
static enum ghp_status all_reduce_direct(struct ghp_mpi_comm *comm, const struct ghp_reduction *sum)
{
    int64_t bytes = sum->elements * sum->element_bytes;
    struct ghp_mpi_level all = {0, 1, comm->count, comm->index, NULL};

    for (int i = 1; i < all.count; i++) {
        int r = ghp_mpi_earlier(&all, i);
        GHP_TRY(ghp_mpi_receive(comm, ghp_mpi_at(sum->scratch, r * bytes), bytes, r));
    }
    for (int i = 1; i < all.count; i++)
        GHP_TRY(ghp_mpi_send(comm, sum->out, bytes, ghp_mpi_later(&all, i)));
    GHP_TRY(ghp_mpi_wait(comm, comm->request_set));
    ghp_summands_add(&(struct ghp_summands){.count = all.count,
                                            .index = all.index,
                                            .n = sum->elements,
                                            .stride = sum->elements,
                                            .own = sum->out,
                                            .scratch = sum->scratch},
                     sum->element_bytes, sum->out);
    return GHP_OK;
}

/* The same over a shared segment. */
static enum ghp_status all_reduce_on_chunk(struct ghp_shared_segment *shared,
                                           const struct ghp_reduction *sum)
{
    int64_t bytes = sum->elements * sum->element_bytes;
    uint32_t chunk = shared->next++;

    GHP_TRY(ghp_shared_segment_acquire(shared, chunk));
    memcpy(ghp_shared_segment_at(shared, shared->index, chunk), sum->out, (size_t)bytes);
    ghp_shared_segment_signal(shared, GHP_SHARED_SEGMENT_PUBLISHED, chunk);
    GHP_TRY(ghp_shared_segment_await(shared, GHP_SHARED_SEGMENT_PUBLISHED, chunk));
    ghp_summands_add(&(struct ghp_summands){.count = shared->count,
                                            .index = shared->index,
                                            .n = sum->elements,
                                            .stride = shared->rank_bytes / sum->element_bytes,
                                            .own = sum->out,
                                            .scratch = ghp_shared_segment_at(shared, 0, chunk)},
                     sum->element_bytes, sum->out);
    ghp_shared_segment_signal(shared, GHP_SHARED_SEGMENT_CONSUMED, chunk);
    return GHP_OK;
}

static enum ghp_status run_segments(struct ghp_mpi_comm *comm, struct ghp_shared_segment *shared,
                                    const struct ghp_mpi_pipeline *pipeline)
{
    GHP_TRY(ghp_mpi_pipeline_run(comm, pipeline));
    if (shared != NULL) shared->next += (uint32_t)pipeline->segments;
    return GHP_OK;
}

static struct sum all_reduce_of(const struct ghp_mpi_comm *comm, const struct ghp_reduction *of)
{
    int64_t bytes = of->elements * of->element_bytes;

    return sum_in_segments(of,
                           ghp_mpi_hierarchy_of(comm, bytes, comm->transport->host.in_rank_order),
                           bytes, comm->count);
}

static int64_t segments_of(const struct sum *sum)
{
    return (sum->of->elements + sum->most - 1) / sum->most;
}

int64_t ghp_mpi_all_reduce_segments(const struct ghp_mpi_comm *comm, const struct ghp_reduction *of)
{
    struct sum sum = all_reduce_of(comm, of);

    return segments_of(&sum);
}

enum ghp_status ghp_mpi_all_reduce(struct ghp_mpi_comm *comm, const struct ghp_reduction *of)
{
    int64_t bytes = of->elements * of->element_bytes;
    struct sum sum;
    struct ghp_shared_segment *shared;
    struct ghp_mpi_pipeline pipeline = {.work = &sum, .post = post_sum, .finish = finish_sum};

    GHP_ASSERT(of->in == of->out);
    if (comm->count == 1 || of->elements == 0) return GHP_OK;
    sum = all_reduce_of(comm, of);
    shared = shared_of(&sum);
    if (shared != NULL && sum.hierarchy.n == 1 && bytes * comm->count <= DIRECT_SHARED_BYTES)
        return all_reduce_on_chunk(shared, of);
    if (shared == NULL && bytes <= DIRECT_BYTES && bytes * comm->count <= of->scratch_bytes)
        return all_reduce_direct(comm, of);
    GHP_ASSERT(sum.most >= comm->count);
    pipeline.segments = segments_of(&sum);
    pipeline.phases = 2 * sum.hierarchy.n;
    return run_segments(comm, shared, &pipeline);
}

/* ---- reduce_scatter ---- */

/* A segment is `each` elements of every rank's part. What has arrived lies in scratch (on a shared segment: what is
 * for others, in this rank's slot) peer by peer of the first level, a place for each node at every peer; what the
 * first level added lies at this rank's own places in scratch, and what arrives over the second at those of a peer
 * whose parts have been added. */
struct scattering {
    struct sum sum;
    int nodes; /* members of the second level, 1 without */
    int64_t each;
};

static int64_t offset_of(const struct scattering *s, int peer, int node)
{
    return (peer * s->nodes + node) * s->each * s->sum.of->element_bytes;
}

static char *place_of(const struct scattering *s, int64_t segment, int peer, int node)
{
    return slot_of(&s->sum, segment) + offset_of(s, peer, node);
}

/* What this rank has of the part that the peer in that node is to get. */
static const char *input_of(const struct scattering *s, int64_t segment, int peer, int node)
{
    const struct ghp_reduction *of = s->sum.of;
    int64_t part = (int64_t)node * s->sum.hierarchy.of[0].count + peer;

    return (const char *)of->in + (part * of->elements + segment * s->each) * of->element_bytes;
}

static int64_t elements_at(const struct scattering *s, int64_t segment)
{
    return ghp_mpi_smaller(s->each, s->sum.of->elements - segment * s->each);
}

/* A peer of the first level, whose places are free once its parts have been added. */
static int scratch_owner(const struct scattering *s)
{
    return ghp_mpi_later(&s->sum.hierarchy.of[0], 1);
}

static enum ghp_status post_in_node(struct ghp_mpi_comm *comm, const struct scattering *s,
                                    int64_t segment)
{
    const struct ghp_mpi_level *level = &s->sum.hierarchy.of[0];
    int64_t bytes = elements_at(s, segment) * s->sum.of->element_bytes;

    for (int i = 1; i < level->count; i++) {
        int r = ghp_mpi_earlier(level, i);
        for (int node = 0; node < s->nodes; node++)
            GHP_TRY(ghp_mpi_receive(comm, place_of(s, segment, r, node), bytes,
                                    ghp_mpi_peer_at(level, r)));
    }
    for (int i = 1; i < level->count; i++) {
        int r = ghp_mpi_later(level, i);
        for (int node = 0; node < s->nodes; node++)
            GHP_TRY(ghp_mpi_send(comm, input_of(s, segment, r, node), bytes,
                                 ghp_mpi_peer_at(level, r)));
    }
    return GHP_OK;
}

static enum ghp_status publish_scattered(const struct scattering *s, int64_t segment)
{
    const struct ghp_shared_segment *shared = shared_of(&s->sum);
    size_t bytes = (size_t)(elements_at(s, segment) * s->sum.of->element_bytes);
    uint32_t chunk = chunk_of(shared, segment);

    GHP_TRY(ghp_shared_segment_acquire(shared, chunk));
    for (int i = 1; i < shared->count; i++) {
        int r = ghp_mpi_later(&s->sum.hierarchy.of[0], i);

        for (int node = 0; node < s->nodes; node++)
            memcpy(ghp_shared_segment_at(shared, shared->index, chunk) + offset_of(s, r, node),
                   input_of(s, segment, r, node), bytes);
    }
    ghp_shared_segment_signal(shared, GHP_SHARED_SEGMENT_PUBLISHED, chunk);
    return GHP_OK;
}

static enum ghp_status post_between_nodes(struct ghp_mpi_comm *comm, const struct scattering *s,
                                          int64_t segment)
{
    const struct ghp_mpi_level *level = &s->sum.hierarchy.of[1];
    int me = s->sum.hierarchy.of[0].index;
    int64_t bytes = elements_at(s, segment) * s->sum.of->element_bytes;

    for (int i = 1; i < level->count; i++) {
        int r = ghp_mpi_earlier(level, i);
        GHP_TRY(ghp_mpi_receive(comm, place_of(s, segment, scratch_owner(s), r), bytes,
                                ghp_mpi_peer_at(level, r)));
    }
    for (int i = 1; i < level->count; i++) {
        int r = ghp_mpi_later(level, i);
        GHP_TRY(ghp_mpi_send(comm, place_of(s, segment, me, r), bytes, ghp_mpi_peer_at(level, r)));
    }
    return GHP_OK;
}

static enum ghp_status post_scattering(struct ghp_mpi_comm *comm, const void *work, int64_t segment,
                                       int phase)
{
    const struct scattering *s = work;

    if (phase > 0) return post_between_nodes(comm, s, segment);
    return shared_of(&s->sum) != NULL ? publish_scattered(s, segment)
                                      : post_in_node(comm, s, segment);
}

/* The sums over this rank's node, of its own part and those of its peers in other nodes. */
static enum ghp_status add_in_node(const struct scattering *s, int64_t segment, char *result)
{
    const struct ghp_reduction *of = s->sum.of;
    const struct ghp_shared_segment *shared = shared_of(&s->sum);
    int me = s->sum.hierarchy.of[0].index;
    struct ghp_summands summands = {.count = s->sum.hierarchy.of[0].count,
                                    .index = me,
                                    .n = elements_at(s, segment),
                                    .stride = s->nodes * s->each};

    if (shared != NULL) {
        GHP_TRY(ghp_shared_segment_await(shared, GHP_SHARED_SEGMENT_PUBLISHED,
                                         chunk_of(shared, segment)));
        summands.stride = shared->rank_bytes / of->element_bytes;
    }
    for (int node = 0; node < s->nodes; node++) {
        summands.own = input_of(s, segment, me, node);
        summands.scratch = shared == NULL
                               ? place_of(s, segment, 0, node)
                               : ghp_shared_segment_at(shared, 0, chunk_of(shared, segment)) +
                                     offset_of(s, me, node);
        ghp_summands_add(&summands, of->element_bytes,
                         s->nodes == 1 ? result : place_of(s, segment, me, node));
    }
    if (shared != NULL)
        ghp_shared_segment_signal(shared, GHP_SHARED_SEGMENT_CONSUMED, chunk_of(shared, segment));
    return GHP_OK;
}

static enum ghp_status finish_scattering(const void *work, int64_t segment, int phase)
{
    const struct scattering *s = work;
    const struct ghp_reduction *of = s->sum.of;
    const struct ghp_mpi_level *level = &s->sum.hierarchy.of[phase];
    int me = s->sum.hierarchy.of[0].index;
    char *result = ghp_mpi_at(of->out, segment * s->each * of->element_bytes);

    if (phase == 0) return add_in_node(s, segment, result);
    ghp_summands_add(&(struct ghp_summands){.count = level->count,
                                            .index = level->index,
                                            .n = elements_at(s, segment),
                                            .stride = s->each,
                                            .own = place_of(s, segment, me, level->index),
                                            .scratch = place_of(s, segment, scratch_owner(s), 0)},
                     of->element_bytes, result);
    return GHP_OK;
}

enum ghp_status ghp_mpi_reduce_scatter(struct ghp_mpi_comm *comm, const struct ghp_reduction *of)
{
    int64_t bytes = of->elements * of->element_bytes * comm->count;
    struct ghp_mpi_hierarchy hierarchy =
        ghp_mpi_hierarchy_of(comm, bytes, comm->transport->host.in_rank_order);
    struct scattering s = {.sum = sum_in_segments(of, hierarchy, bytes, comm->count),
                           .nodes = hierarchy.n > 1 ? hierarchy.of[1].count : 1};
    struct ghp_mpi_pipeline pipeline = {
        .work = &s, .phases = hierarchy.n, .post = post_scattering, .finish = finish_scattering};

    if (of->elements == 0) return GHP_OK;
    if (comm->count == 1) {
        if (of->out != of->in) memcpy(of->out, of->in, (size_t)bytes);
        return GHP_OK;
    }
    s.each = s.sum.most / comm->count;
    GHP_ASSERT(s.each >= 1);
    pipeline.segments = (of->elements + s.each - 1) / s.each;
    return run_segments(comm, shared_of(&s.sum), &pipeline);
}
