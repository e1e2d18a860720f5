/* inspect/report/blocks.c - see report/blocks.h. */
#include "inspect/report/blocks.h"

#include <stdlib.h>
#include <string.h>

static bool begins_block(const struct ghp_plan *plan, int layer)
{
    const struct ghp_layer *l = &plan->model.layers[layer];
    int before = l->n_inputs == 1 ? l->inputs[0] : -1;

    if (ghp_op_is_weighted(l->op) || ghp_op_of(l->op)->is_loss) return true;
    return before <= 0 || plan->model.layers[before].n_consumers != 1 ||
           !ghp_split_same(plan->splits[before], plan->splits[layer]);
}

static void fold_layers(const struct ghp_plan *plan, struct ghp_blocks *b)
{
    for (int v = 0; v < plan->model.n_layers; v++) {
        if (begins_block(plan, v)) {
            b->of_layer[v] = b->n;
            b->blocks[b->n++] = (struct ghp_block){.first = v, .last = v};
        } else {
            b->of_layer[v] = b->of_layer[plan->model.layers[v].inputs[0]];
            b->blocks[b->of_layer[v]].last = v;
        }
    }
    for (int e = 0; e < plan->model.n_edges; e++) {
        int from = b->of_layer[plan->model.edges[e].from],
            to = b->of_layer[plan->model.edges[e].to];

        if (from != to)
            b->links[b->n_links++] =
                (struct ghp_wire){.from = from, .to = to, .edge = e, .lane = -1, .track = -1};
    }
}

/* Blocks come after those they read, so one pass in their order does. */
static void set_ranks(struct ghp_blocks *b)
{
    for (int k = 0; k < b->n; k++) {
        for (int i = 0; i < b->n_links; i++)
            if (b->links[i].to == k && b->blocks[k].rank <= b->blocks[b->links[i].from].rank)
                b->blocks[k].rank = b->blocks[b->links[i].from].rank + 1;
        if (b->blocks[k].rank >= b->n_ranks) b->n_ranks = b->blocks[k].rank + 1;
    }
}

/* Whether no block before `until` stands at that rank and lane. */
static bool is_free(const struct ghp_blocks *b, int until, int rank, int lane)
{
    for (int k = 0; k < until; k++)
        if (b->blocks[k].rank == rank && b->blocks[k].lane == lane) return false;
    return true;
}

/* Each block under the leftmost it reads, if that place is free; else in the first free lane. */
static void set_lanes(struct ghp_blocks *b)
{
    for (int k = 0; k < b->n; k++) {
        struct ghp_block *block = &b->blocks[k];
        int wish = -1;

        for (int i = 0; i < b->n_links; i++)
            if (b->links[i].to == k && (wish < 0 || b->blocks[b->links[i].from].lane < wish))
                wish = b->blocks[b->links[i].from].lane;
        block->lane = wish > 0 ? wish : 0;
        if (is_free(b, k, block->rank, block->lane)) continue;
        for (block->lane = 0; !is_free(b, k, block->rank, block->lane);)
            block->lane++;
    }
}

static bool lane_is_free(const struct ghp_blocks *b, const struct ghp_wire *link, int lane)
{
    for (int rank = b->blocks[link->from].rank + 1; rank < b->blocks[link->to].rank; rank++)
        if (!is_free(b, b->n, rank, lane)) return false;
    return true;
}

/* Whether two links pass the same place; those that change columns go all the way up. */
static bool overlap(const struct ghp_blocks *b, const struct ghp_wire *a, const struct ghp_wire *c)
{
    int column = b->blocks[a->from].column;

    if (column != b->blocks[c->from].column || a->left_lane != c->left_lane) return false;
    if (b->blocks[a->to].column != column || b->blocks[c->to].column != column) return true;
    return b->blocks[a->from].rank < b->blocks[c->to].rank &&
           b->blocks[c->from].rank < b->blocks[a->to].rank;
}

/* The first track that no earlier link uses there. */
static int free_track(const struct ghp_blocks *b, int link)
{
    for (int track = 0;; track++) {
        bool taken = false;

        for (int i = 0; i < link && !taken; i++)
            taken = b->links[i].track == track && overlap(b, &b->links[i], &b->links[link]);
        if (!taken) return track;
    }
}

/* The last lane with a block at the link's ranks, its ends included. */
static int last_lane(const struct ghp_blocks *b, const struct ghp_wire *link)
{
    int lane = 0;

    for (int k = 0; k < b->n; k++)
        if (b->blocks[k].rank >= b->blocks[link->from].rank &&
            b->blocks[k].rank <= b->blocks[link->to].rank && b->blocks[k].lane > lane)
            lane = b->blocks[k].lane;
    return lane;
}

static void route(struct ghp_blocks *b)
{
    for (int i = 0; i < b->n_links; i++) {
        struct ghp_wire *link = &b->links[i];
        const struct ghp_block *from = &b->blocks[link->from], *to = &b->blocks[link->to];

        link->lane = link->track = -1;
        if (from->column == to->column && to->rank == from->rank + 1) continue;
        if (from->column == to->column && lane_is_free(b, link, from->lane))
            link->lane = from->lane;
        else if (from->column == to->column && lane_is_free(b, link, to->lane))
            link->lane = to->lane;
        if (link->lane >= 0) continue;
        link->left_lane =
            from->column == to->column ? last_lane(b, link) : b->lanes[from->column] - 1;
        link->track = free_track(b, i);
    }
}

/* Tensors that pass from ranks before `rank` to it and later ones. */
static int crossing(const struct ghp_blocks *b, int rank)
{
    int n = 0;

    for (int i = 0; i < b->n_links; i++)
        n += b->blocks[b->links[i].from].rank < rank && b->blocks[b->links[i].to].rank >= rank;
    return n;
}

/* A rank near `ideal`, above `after`, that the fewest tensors cross into. */
static int best_break(const struct ghp_blocks *b, int ideal, int reach, int after)
{
    int best = ideal > after ? ideal : after + 1;

    for (int d = 0; d <= reach; d++)
        for (int side = -1; side <= 1; side += 2) {
            int rank = ideal + side * d;

            if (rank > after && rank < b->n_ranks && crossing(b, rank) < crossing(b, best))
                best = rank;
        }
    return best;
}

void ghp_blocks_fold(struct ghp_blocks *b, int columns)
{
    int want = columns < b->n_ranks ? columns : b->n_ranks;
    int reach = b->n_ranks / want / 4, ranks;

    b->n_columns = 0;
    b->first_rank[0] = 0;
    for (int c = 1; c < want; c++) {
        int rank = best_break(b, c * b->n_ranks / want, reach, b->first_rank[b->n_columns]);

        if (rank < b->n_ranks) b->first_rank[++b->n_columns] = rank;
    }
    ranks = b->first_rank[++b->n_columns] = b->n_ranks;
    GHP_ASSERT(ranks > 0);
    for (int c = 0; c < b->n_columns; c++) {
        b->lanes[c] = b->tracks[c] = 0;
        for (int k = 0; k < b->n; k++) {
            struct ghp_block *block = &b->blocks[k];

            if (block->rank < b->first_rank[c] || block->rank >= b->first_rank[c + 1]) continue;
            block->column = c;
            if (block->lane >= b->lanes[c]) b->lanes[c] = block->lane + 1;
        }
    }
    route(b);
    for (int i = 0; i < b->n_links; i++) {
        int c = b->blocks[b->links[i].from].column;

        if (b->links[i].left_lane == b->lanes[c] - 1 && b->links[i].track >= b->tracks[c])
            b->tracks[c] = b->links[i].track + 1;
    }
}

enum ghp_status ghp_blocks_init(const struct ghp_plan *plan, struct ghp_blocks *b)
{
    size_t layers = (size_t)plan->model.n_layers, edges = (size_t)plan->model.n_edges;

    *b = (struct ghp_blocks){0};
    b->blocks = ghp_alloc(layers, sizeof *b->blocks);
    b->links = ghp_alloc(edges + 1, sizeof *b->links);
    b->of_layer = ghp_alloc(layers, sizeof *b->of_layer);
    b->first_rank = ghp_alloc(layers + 1, sizeof *b->first_rank);
    b->lanes = ghp_alloc(layers, sizeof *b->lanes);
    b->tracks = ghp_alloc(layers, sizeof *b->tracks);
    if (!b->blocks || !b->links || !b->of_layer || !b->first_rank || !b->lanes || !b->tracks) {
        ghp_blocks_release(b);
        return GHP_NO_MEMORY();
    }
    fold_layers(plan, b);
    set_ranks(b);
    set_lanes(b);
    ghp_blocks_fold(b, 1);
    return GHP_OK;
}

void ghp_blocks_release(struct ghp_blocks *b)
{
    if (b == NULL) return;
    free(b->blocks);
    free(b->links);
    free(b->of_layer);
    free(b->first_rank);
    free(b->lanes);
    free(b->tracks);
    *b = (struct ghp_blocks){0};
}
