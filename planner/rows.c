/* planner/rows.c - rows of rows.h: their values on a load, the largest of them, and the prices a mix of them makes. */
#include "planner/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- charges ---- */

static double clamp01(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

struct ghp_charges ghp_charges_of(const struct ghp_overlap *overlap)
{
    const double compute = overlap->compute, comm = overlap->comm, link = overlap->link;
    const double hidden[GHP_WORK_COUNT] = {clamp01(comm * (1 - 1 / compute)), clamp01(link - 1)};
    const double *least = hidden[0] < hidden[1] ? &hidden[0] : &hidden[1];
    struct ghp_charge c = {.on = {1, 1},
                           .off = {clamp01(compute * (1 - 1 / comm)), clamp01(link - 1)}};
    struct ghp_charges charges = {.n = 1};

    c.reduce_off = *least;
    charges.variant[0] = c;
    if (hidden[GHP_WORK_LINK] < hidden[GHP_WORK_COMPUTE]) {
        c.reduce_off = hidden[GHP_WORK_COMPUTE];
        c.on[GHP_WORK_LINK] = 1 - (hidden[GHP_WORK_COMPUTE] - hidden[GHP_WORK_LINK]);
        if (c.off[GHP_WORK_LINK] > c.on[GHP_WORK_LINK]) c.off[GHP_WORK_LINK] = c.on[GHP_WORK_LINK];
        charges.variant[charges.n++] = c;
    }
    return charges;
}

struct ghp_charges ghp_instance_charges(const struct ghp_instance *in)
{
    static const struct ghp_charge path = {.on = {1, 1}};

    if (in->n_stages == 1) return ghp_charges_of(&in->profile->overlap);
    return (struct ghp_charges){.n = 1, .variant = {path}};
}

/* ---- loads ---- */

static size_t load_entries(const struct ghp_instance *in)
{
    return 2 * ((size_t)in->n_slots + 1) + (size_t)in->n_items + 1 + (size_t)in->n_items +
           (size_t)in->n_points + (size_t)in->n_layers + 2 * (size_t)in->n_hops;
}

enum ghp_status ghp_load_init(const struct ghp_instance *in, struct ghp_load *load)
{
    double *block = ghp_alloc(load_entries(in), sizeof *block);

    *load = (struct ghp_load){0};
    if (block == NULL) return GHP_NO_MEMORY();
    load->work[0] = block;
    load->work[1] = load->work[0] + in->n_slots + 1;
    load->reduce = load->work[1] + in->n_slots + 1;
    load->idle = load->reduce + in->n_items + 1;
    load->live = load->idle + in->n_items;
    load->receive = load->live + in->n_points;
    load->hop = load->receive + in->n_layers;
    return GHP_OK;
}

void ghp_load_release(struct ghp_load *load)
{
    if (load == NULL) return;
    free(load->work[0]);
    memset(load, 0, sizeof *load);
}

void ghp_load_clear(const struct ghp_instance *in, struct ghp_load *load)
{
    memset(load->work[0], 0, load_entries(in) * sizeof *load->work[0]);
}

void ghp_load_add(const struct ghp_instance *in, struct ghp_load *load, const struct ghp_load *part,
                  double weight)
{
    double *to = load->work[0];
    const double *from = part->work[0];

    for (size_t k = 0, n = load_entries(in); k < n; ++k)
        to[k] += weight * from[k];
}

/* Adds spans as differences over points; the sums follow in ghp_load_set. */
static void add_spans(const struct ghp_instance *in, const struct ghp_spans *spans, int index,
                      double *live)
{
    for (int k = spans->first[index]; k < spans->first[index + 1]; ++k) {
        live[spans->span[k].first] += (double)spans->span[k].bytes;
        if (spans->span[k].last + 1 < in->n_points)
            live[spans->span[k].last + 1] -= (double)spans->span[k].bytes;
    }
}

static void load_layer(const struct ghp_instance *in, int v, int flat, struct ghp_load *load)
{
    const struct ghp_layer_price *p = &in->layer[flat];
    int item = in->n_layers - 1 - v;
    int forward = in->wait_slot[item], backward = in->ready_slot[item];

    for (int k = 0; k < GHP_WORK_COUNT; ++k) {
        load->work[k][forward + 1] = p->forward_s[k];
        load->work[k][backward + 1] = p->before_s[k];
        load->work[k][backward + 2] = p->after_s[k];
        if (in->first_middle >= 0)
            load->work[k][in->first_middle + in->stage[v] + 1] += p->middle_s[k];
    }
    load->reduce[item + 1] = p->reduce_s;
    load->idle[item] = p->reduces ? 0 : 1;
    if (!in->has_memory) return;
    add_spans(in, &in->layer_spans, flat, load->live);
    load->receive[v] = (double)in->receive_bytes[flat];
}

/* Each value becomes the sum up to it. */
static void add_up(double *value, int n)
{
    double sum = 0;

    for (int i = 0; i < n; ++i) {
        sum += value[i];
        value[i] = sum;
    }
}

/* The same for two arrays at once, since each sum has to wait for its last addition. */
static void add_up_both(double *restrict a, double *restrict b, int n)
{
    double sum_a = 0, sum_b = 0;

    for (int i = 0; i < n; ++i) {
        sum_a += a[i];
        sum_b += b[i];
        a[i] = sum_a;
        b[i] = sum_b;
    }
}

static const struct ghp_hop_price *hop_price(const struct ghp_instance *in, int e, int pair)
{
    return &in->hop_price[in->hop[in->hop_of[e]].first_pair + pair - in->first_pair[e]];
}

static void load_hop(const struct ghp_instance *in, int e, const int *choice, struct ghp_load *load)
{
    const struct ghp_hop_price *p = hop_price(in, e, ghp_instance_pair(in, e, choice));
    int h = in->hop_of[e];

    load->hop[2 * h] = p->forward_s;
    load->hop[2 * h + 1] = p->backward_s;
}

void ghp_load_set(const struct ghp_instance *in, const int *choice, struct ghp_load *load)
{
    double metric_s = in->metric_s[choice[in->n_layers - 1]];

    ghp_load_clear(in, load);
    for (int v = 0; v < in->n_layers; ++v)
        load_layer(in, v, in->first_choice[v] + choice[v], load);
    for (int e = 0; e < in->n_edges; ++e) {
        int pair = ghp_instance_pair(in, e, choice);
        const struct ghp_edge_price *p = &in->edge[pair];

        for (int k = 0; k < GHP_WORK_COUNT; ++k) {
            load->work[k][in->edge_slot[2 * e] + 1] = p->forward_s[k];
            load->work[k][in->edge_slot[2 * e + 1] + 1] = p->backward_s[k];
            if (in->first_middle >= 0)
                load->work[k][in->first_middle + in->stage[in->edges[e].to] + 1] +=
                    (in->micro_batches - 1) * (p->forward_s[k] + p->backward_s[k]);
        }
        if (in->hop_of[e] >= 0) load_hop(in, e, choice, load);
        if (in->has_memory) add_spans(in, &in->edge_spans, pair, load->live);
    }
    load->reduce[in->n_items] = metric_s;
    load->idle[in->n_items - 1] = metric_s > 0 ? 0 : 1;
    add_up_both(load->work[0], load->work[1], in->n_slots + 1);
    add_up(load->reduce, in->n_items + 1);
    if (in->has_memory) add_up(load->live, in->n_points);
}

/* ---- rows of stages ---- */

struct range { /* of slots, both included; none where first > last */
    int first, last;
};

/* What a path covers: at most two ranges a stage, a middle, and hops both ways. */
struct cover {
    int n;
    struct range range[2 * GHP_MAX_STAGES + 1];
    int n_hops, hop[GHP_MAX_STAGES];
};

static int forward_end(const struct ghp_instance *in, int stage)
{
    return in->wait_slot[in->n_layers - in->route[stage].end_layer];
}

static int backward_begin(const struct ghp_instance *in, int stage)
{
    return in->ready_slot[in->n_layers - in->route[stage].end_layer];
}

/* The first slot that belongs to a layer going forward (its in-edges'), and the last going backward. */
static int entry_slot(const struct ghp_instance *in, int layer)
{
    const struct ghp_layer *l = &in->how->model->layers[layer];

    return l->n_inputs > 0 ? in->edge_slot[2 * l->first_edge]
                           : in->wait_slot[in->n_layers - 1 - layer];
}

static int exit_slot(const struct ghp_instance *in, int layer)
{
    const struct ghp_layer *l = &in->how->model->layers[layer];

    return l->n_inputs > 0 ? in->edge_slot[2 * (l->first_edge + l->n_inputs - 1) + 1]
                           : in->ready_slot[in->n_layers - 1 - layer] + 1;
}

static struct cover cover_of(const struct ghp_instance *in, const struct ghp_row *row)
{
    struct cover c = {0};
    int from = row->from_slot, to = row->to_slot;

    for (int stage = row->base;; stage = in->route[stage].next) {
        const struct ghp_route *route = &in->route[stage];

        c.range[c.n++] = (struct range){from, forward_end(in, stage)};
        c.range[c.n++] = (struct range){backward_begin(in, stage), to};
        if (stage == row->turn) {
            c.range[c.n++] = (struct range){in->first_middle + stage, in->first_middle + stage};
            return c;
        }
        c.hop[c.n_hops++] = route->hop;
        from = in->edge_slot[2 * in->hop[route->hop].edge]; /* from its arrival on */
        to = in->edge_slot[2 * in->hop[route->hop].edge + 1];
    }
}

static double work_in(const struct ghp_load *load, struct range r)
{
    if (r.first > r.last) return 0;
    return load->work[0][r.last + 1] - load->work[0][r.first] + load->work[1][r.last + 1] -
           load->work[1][r.first];
}

static double hop_in(const struct ghp_load *load, int hop)
{
    return load->hop[2 * hop] + load->hop[2 * hop + 1];
}

/* Seconds that a stage's worker sends in a step: its tensors to later stages, gradients to earlier ones. */
static double sent_by(const struct ghp_instance *in, const struct ghp_load *load, int stage)
{
    double sum = 0;

    for (int h = 0; h < in->n_hops; ++h) {
        if (in->hop[h].from == stage) sum += load->hop[2 * h];
        if (in->hop[h].to == stage) sum += load->hop[2 * h + 1];
    }
    return in->micro_batches * sum;
}

static double reduced_in(const struct ghp_load *load, const struct ghp_row *row)
{
    if (row->from_item > row->to_item) return 0;
    return load->reduce[row->to_item + 1] - load->reduce[row->from_item];
}

static double stage_row_value(const struct ghp_row *row, const struct ghp_instance *in,
                              const struct ghp_load *load)
{
    double sum = 0;
    struct cover c;

    if (row->hops) return sent_by(in, load, row->base);
    sum = reduced_in(load, row);
    if (row->from_slot > row->to_slot) return sum; /* reductions alone */
    c = cover_of(in, row);
    for (int k = 0; k < c.n; ++k)
        sum += work_in(load, c.range[k]);
    for (int k = 0; k < c.n_hops; ++k)
        sum += hop_in(load, c.hop[k]);
    if (row->waiter >= 0) sum -= row->discount * load->idle[row->waiter];
    return sum;
}

/* The longest way from the end of a stage's first forward part to the start of its last backward part. */
struct excursion {
    double seconds[GHP_MAX_STAGES];
    int turn[GHP_MAX_STAGES];
};

static struct excursion excursions(const struct ghp_instance *in, const struct ghp_load *load)
{
    struct excursion x;

    for (int i = in->n_stages - 1; i >= 0; --i) {
        const struct ghp_route *route = &in->route[i];
        double through;
        int edge;

        x.seconds[i] = work_in(load, (struct range){in->first_middle + i, in->first_middle + i});
        x.turn[i] = i;
        if (route->next < 0) continue;
        edge = in->hop[route->hop].edge;
        through =
            hop_in(load, route->hop) + x.seconds[route->next] +
            work_in(load, (struct range){in->edge_slot[2 * edge], forward_end(in, route->next)}) +
            work_in(load,
                    (struct range){backward_begin(in, route->next), in->edge_slot[2 * edge + 1]});
        if (through <= x.seconds[i]) continue;
        x.seconds[i] = through;
        x.turn[i] = x.turn[route->next];
    }
    return x;
}

static double most_between(const struct ghp_instance *in, int from_item, int to_item);

/* The longest path of a base that ends in a wait. */
static double longest_wait_in(const struct ghp_instance *in, const struct ghp_load *load, int base,
                              struct ghp_row *row)
{
    int first = in->n_layers - in->route[base].end_layer,
        end = in->n_layers - in->route[base].first_layer, start = first;
    int begin = entry_slot(in, in->route[base].first_layer);
    double longest = -INFINITY, finish = -INFINITY;
    double forward = work_in(load, (struct range){begin, forward_end(in, base)});

    for (int i = first; i < end; ++i) {
        double ready = work_in(load, (struct range){backward_begin(in, base), in->ready_slot[i]});
        double before = work_in(load, (struct range){begin, in->wait_slot[i] - 1}), length;

        if (finish < ready) {
            finish = ready;
            start = i;
        }
        finish += load->reduce[i + 1] - load->reduce[i];
        if (load->idle[i] > 0.999) continue;
        length = finish + forward - before;
        if (load->idle[i] > 0) length -= most_between(in, start, i) * load->idle[i];
        if (length <= longest) continue;
        longest = length;
        row->from_slot = in->wait_slot[i];
        row->to_slot = in->ready_slot[start];
        row->from_item = start;
        row->to_item = row->waiter = i;
        row->discount = most_between(in, start, i);
    }
    return longest;
}

/* The largest row of a base: its own loop through the excursion, its reductions, its sends, or a wait. */
static double stage_row_longest(const struct ghp_instance *in, const struct ghp_load *load,
                                struct ghp_row *row)
{
    struct excursion x = excursions(in, load);
    double longest = -INFINITY;

    for (int i = 0; i < in->n_stages; ++i) {
        const struct ghp_route *route = &in->route[i];
        struct ghp_row candidate[4];

        for (int k = 0; k < 4; ++k)
            candidate[k] = (struct ghp_row){.from_slot = entry_slot(in, route->first_layer),
                                            .to_slot = exit_slot(in, route->first_layer),
                                            .from_item = 0,
                                            .to_item = -1,
                                            .waiter = -1,
                                            .base = i,
                                            .turn = x.turn[i]};
        candidate[1].from_slot = 0;
        candidate[1].to_slot = -1;
        candidate[1].turn = i;
        candidate[1].from_item = in->n_layers - route->end_layer;
        candidate[1].to_item = in->n_layers - route->first_layer - 1;
        candidate[2].hops = true;
        candidate[2].turn = i;
        bool waits = longest_wait_in(in, load, i, &candidate[3]) > -INFINITY;
        for (int k = 0; k < (waits ? 4 : 3); ++k) {
            double value = stage_row_value(&candidate[k], in, load);

            if (value <= longest) continue;
            longest = value;
            *row = candidate[k];
        }
    }
    return longest;
}

/* ---- rows ---- */

double ghp_row_value(const struct ghp_charges *charges, const struct ghp_row *row,
                     const struct ghp_instance *in, const struct ghp_load *load)
{
    const struct ghp_charge *c;
    double on, sum = 0;

    if (row->variant < 0) return load->live[row->point] + load->receive[row->receiver];
    if (in->n_stages > 1) return stage_row_value(row, in, load);
    c = &charges->variant[row->variant];
    for (int k = 0; k < GHP_WORK_COUNT; ++k) {
        on = row->from_slot <= row->to_slot
                 ? load->work[k][row->to_slot + 1] - load->work[k][row->from_slot]
                 : 0;
        sum += c->off[k] * load->work[k][in->n_slots] + (c->on[k] - c->off[k]) * on;
    }
    on = row->from_item <= row->to_item
             ? load->reduce[row->to_item + 1] - load->reduce[row->from_item]
             : 0;
    sum += c->reduce_off * load->reduce[in->n_items] + (1 - c->reduce_off) * on;
    if (row->waiter >= 0) sum -= row->discount * load->idle[row->waiter];
    return sum;
}

static double most_between(const struct ghp_instance *in, int from_item, int to_item)
{
    double sum = 0;

    for (int i = from_item; i <= to_item; ++i)
        if (i < in->n_layers) sum += in->most_reduce_s[in->n_layers - 1 - i];
    if (to_item == in->n_layers) {
        double most = 0;

        for (int i = 0; i < in->n_choices[in->n_layers - 1]; ++i)
            most = fmax(most, in->metric_s[i]);
        sum += most;
    }
    return sum;
}

static struct ghp_row path_row(const struct ghp_instance *in, const struct ghp_charge *c,
                               int variant, int source, int waiter)
{
    struct ghp_row row = {.variant = variant,
                          .from_slot = in->wait_slot[waiter],
                          .to_slot = in->ready_slot[source],
                          .from_item = source,
                          .to_item = waiter,
                          .waiter = waiter};

    row.discount = (1 - c->reduce_off) * most_between(in, source, waiter);
    return row;
}

/* The longest path that ends in a wait: a reduction starts when its layer's gradient is there and the reduction
 * before it is over. */
static double longest_wait(const struct ghp_instance *in, const struct ghp_charge *c,
                           const struct ghp_load *load, int *source, int *waiter)
{
    double longest = -INFINITY, finish = -INFINITY;
    int start = 0;

    for (int i = 0; i < in->n_items; ++i) {
        double ready = 0, begin = 0, length;

        for (int k = 0; k < GHP_WORK_COUNT; ++k) {
            ready += (c->on[k] - c->off[k]) * load->work[k][in->ready_slot[i] + 1];
            begin += (c->on[k] - c->off[k]) * load->work[k][in->wait_slot[i]];
        }
        if (finish < ready) {
            finish = ready;
            start = i;
        }
        finish += (1 - c->reduce_off) * (load->reduce[i + 1] - load->reduce[i]);
        if (load->idle[i] > 0.999) continue;
        length = finish - begin;
        if (load->idle[i] > 0)
            length -= (1 - c->reduce_off) * most_between(in, start, i) * load->idle[i];
        if (length <= longest) continue;
        longest = length;
        *source = start;
        *waiter = i;
    }
    return longest;
}

double ghp_row_longest(const struct ghp_instance *in, const struct ghp_charges *charges,
                       int variant, const struct ghp_load *load, struct ghp_row *row)
{
    const struct ghp_charge *c = &charges->variant[variant];
    struct ghp_row candidates[3] = {
        {.variant = variant,
         .from_slot = 0,
         .to_slot = in->n_slots - 1,
         .from_item = 0,
         .to_item = -1,
         .waiter = -1},
        {.variant = variant,
         .from_slot = 0,
         .to_slot = -1,
         .from_item = 0,
         .to_item = in->n_items - 1,
         .waiter = -1},
    };
    int n = 2, source = 0, waiter = 0;
    double longest = -INFINITY;

    if (in->n_stages > 1) return stage_row_longest(in, load, row);
    if (longest_wait(in, c, load, &source, &waiter) > -INFINITY)
        candidates[n++] = path_row(in, c, variant, source, waiter);
    for (int k = 0; k < n; ++k) {
        double value = ghp_row_value(charges, &candidates[k], in, load);

        if (value <= longest) continue;
        longest = value;
        *row = candidates[k];
    }
    return longest;
}

double ghp_row_step_s(const struct ghp_instance *in, const struct ghp_charges *charges,
                      const struct ghp_load *load)
{
    struct ghp_row row;
    double longest = 0;

    for (int v = 0; v < charges->n; ++v)
        longest = fmax(longest, ghp_row_longest(in, charges, v, load, &row));
    return longest;
}

/* The fullest point of each stage with the largest segment of its own layers. */
static double stage_row_fullest(const struct ghp_instance *in, const struct ghp_load *load,
                                struct ghp_row *row)
{
    double most = -INFINITY;

    for (int i = 0; i < in->n_stages; ++i) {
        const struct ghp_route *route = &in->route[i];
        struct ghp_row r = *row;
        int shift = in->first_middle >= 0 ? in->n_stages : 0;
        int forward = entry_slot(in, route->first_layer) / 2, end = forward_end(in, i) / 2;
        int back = (backward_begin(in, i) - shift) / 2,
            back_end = (exit_slot(in, route->first_layer) - shift) / 2;

        r.point = forward;
        r.receiver = route->first_layer;
        for (int p = forward; p <= end; ++p)
            if (load->live[p] > load->live[r.point]) r.point = p;
        for (int p = back; p <= back_end; ++p)
            if (load->live[p] > load->live[r.point]) r.point = p;
        for (int v = route->first_layer; v < route->end_layer; ++v)
            if (load->receive[v] > load->receive[r.receiver]) r.receiver = v;
        if (load->live[r.point] + load->receive[r.receiver] <= most) continue;
        most = load->live[r.point] + load->receive[r.receiver];
        *row = r;
    }
    return most;
}

double ghp_row_fullest(const struct ghp_instance *in, const struct ghp_load *load,
                       struct ghp_row *row)
{
    *row = (struct ghp_row){
        .variant = -1, .from_slot = 0, .to_slot = -1, .from_item = 0, .to_item = -1, .waiter = -1};
    if (in->n_stages > 1) return stage_row_fullest(in, load, row);
    for (int p = 1; p < in->n_points; ++p)
        if (load->live[p] > load->live[row->point]) row->point = p;
    for (int v = 1; v < in->n_layers; ++v)
        if (load->receive[v] > load->receive[row->receiver]) row->receiver = v;
    return load->live[row->point] + load->receive[row->receiver];
}

bool ghp_row_same(const struct ghp_row *a, const struct ghp_row *b)
{
    return a->variant == b->variant && a->point == b->point && a->receiver == b->receiver &&
           a->from_slot == b->from_slot && a->to_slot == b->to_slot &&
           a->from_item == b->from_item && a->to_item == b->to_item && a->base == b->base &&
           a->turn == b->turn && a->hops == b->hops;
}

/* ---- prices ---- */

static size_t weight_entries(const struct ghp_instance *in)
{
    return 2 * ((size_t)in->n_slots + 1) + 2 * ((size_t)in->n_items + 1) + (size_t)in->n_points +
           2 + (size_t)in->n_layers + 2 * (size_t)in->n_hops;
}

enum ghp_status ghp_weights_init(const struct ghp_instance *in, struct ghp_weights *w)
{
    double *block = ghp_alloc(weight_entries(in), sizeof *block);

    *w = (struct ghp_weights){0};
    if (block == NULL) return GHP_NO_MEMORY();
    w->work[0] = block;
    w->work[1] = w->work[0] + in->n_slots + 1;
    w->reduce = w->work[1] + in->n_slots + 1;
    w->idle = w->reduce + in->n_items + 1;
    w->live = w->idle + in->n_items + 1;
    w->receive = w->live + in->n_points + 2;
    w->hop = w->receive + in->n_layers;
    return GHP_OK;
}

void ghp_weights_release(struct ghp_weights *w)
{
    if (w == NULL) return;
    free(w->work[0]);
    memset(w, 0, sizeof *w);
}

static void weigh_row(const struct ghp_charge *c, const struct ghp_row *row, double weight,
                      struct ghp_weights *w)
{
    if (row->from_slot <= row->to_slot)
        for (int k = 0; k < GHP_WORK_COUNT; ++k) {
            w->work[k][row->from_slot] += weight * (c->on[k] - c->off[k]);
            w->work[k][row->to_slot + 1] -= weight * (c->on[k] - c->off[k]);
        }
    if (row->from_item <= row->to_item) {
        w->reduce[row->from_item] += weight * (1 - c->reduce_off);
        w->reduce[row->to_item + 1] -= weight * (1 - c->reduce_off);
    }
    if (row->waiter >= 0) w->idle[row->waiter] += weight * row->discount;
    for (int k = 0; k < GHP_WORK_COUNT; ++k)
        w->work[k][0] += weight * c->off[k];
    w->reduce[0] += weight * c->reduce_off;
}

static void weigh_range(struct range r, double weight, struct ghp_weights *w)
{
    for (int k = 0; k < GHP_WORK_COUNT && r.first <= r.last; ++k) {
        w->work[k][r.first] += weight;
        w->work[k][r.last + 1] -= weight;
    }
}

static void weigh_stage_row(const struct ghp_instance *in, const struct ghp_row *row, double weight,
                            struct ghp_weights *w)
{
    struct cover c;

    for (int h = 0; row->hops && h < in->n_hops; ++h) {
        if (in->hop[h].from == row->base) w->hop[2 * h] += weight * in->micro_batches;
        if (in->hop[h].to == row->base) w->hop[2 * h + 1] += weight * in->micro_batches;
    }
    if (row->from_item <= row->to_item) {
        w->reduce[row->from_item] += weight;
        w->reduce[row->to_item + 1] -= weight;
    }
    if (row->waiter >= 0) w->idle[row->waiter] += weight * row->discount;
    if (row->hops || row->from_slot > row->to_slot) return;
    c = cover_of(in, row);
    for (int k = 0; k < c.n; ++k)
        weigh_range(c.range[k], weight, w);
    for (int k = 0; k < c.n_hops; ++k)
        w->hop[2 * c.hop[k]] += weight, w->hop[2 * c.hop[k] + 1] += weight;
}

void ghp_weights_set(const struct ghp_instance *in, const struct ghp_charges *charges,
                     const struct ghp_row *rows, const double *weight, int n, struct ghp_weights *w)
{
    memset(w->work[0], 0, weight_entries(in) * sizeof *w->work[0]);
    for (int k = 0; k < n; ++k) {
        if (rows[k].variant >= 0 && in->n_stages > 1) {
            weigh_stage_row(in, &rows[k], weight[k], w);
            continue;
        }
        if (rows[k].variant >= 0) {
            weigh_row(&charges->variant[rows[k].variant], &rows[k], weight[k], w);
            continue;
        }
        w->live[rows[k].point + 1] += weight[k];
        w->receive[rows[k].receiver] += weight[k];
    }
    for (int k = 0; k < GHP_WORK_COUNT; ++k)
        for (int s = 1; s < in->n_slots; ++s)
            w->work[k][s] += w->work[k][s - 1];
    for (int i = 1; i < in->n_items; ++i)
        w->reduce[i] += w->reduce[i - 1];
    for (int p = 1; p <= in->n_points; ++p)
        w->live[p] += w->live[p - 1];
}

static double spans_cost(const struct ghp_spans *spans, int index, const double *live)
{
    double sum = 0;

    for (int k = spans->first[index]; k < spans->first[index + 1]; ++k)
        sum += (double)spans->span[k].bytes *
               (live[spans->span[k].last + 1] - live[spans->span[k].first]);
    return sum;
}

static double layer_cost(const struct ghp_weights *w, const struct ghp_instance *in, int v, int i)
{
    const struct ghp_layer_price *p = &in->layer[in->first_choice[v] + i];
    int item = in->n_layers - 1 - v;
    int forward = in->wait_slot[item], backward = in->ready_slot[item];
    double sum = p->reduces ? w->reduce[item] * p->reduce_s : -w->idle[item];

    for (int k = 0; k < GHP_WORK_COUNT; ++k)
        sum += w->work[k][forward] * p->forward_s[k] + w->work[k][backward] * p->before_s[k] +
               w->work[k][backward + 1] * p->after_s[k];
    for (int k = 0; in->first_middle >= 0 && k < GHP_WORK_COUNT; ++k)
        sum += w->work[k][in->first_middle + in->stage[v]] * p->middle_s[k];
    if (v == in->n_layers - 1) {
        double metric_s = in->metric_s[i];

        sum += metric_s > 0 ? w->reduce[in->n_items - 1] * metric_s : -w->idle[in->n_items - 1];
    }
    if (in->has_memory)
        sum += spans_cost(&in->layer_spans, in->first_choice[v] + i, w->live) +
               w->receive[v] * (double)in->receive_bytes[in->first_choice[v] + i];
    return sum;
}

static void charge_edge(const struct ghp_weights *w, const struct ghp_domain *domain, int e,
                        struct ghp_frontier *f)
{
    const struct ghp_instance *in = domain->instance;
    int from = in->edges[e].from, to = in->edges[e].to, n_to = in->n_choices[to];
    int forward = in->edge_slot[2 * e], backward = in->edge_slot[2 * e + 1];
    double wf[2] = {w->work[0][forward], w->work[1][forward]};
    double wb[2] = {w->work[0][backward], w->work[1][backward]};
    double *cost = &f->edge_cost[in->first_pair[e]];

    for (int k = 0; in->first_middle >= 0 && k < GHP_WORK_COUNT; ++k) {
        double middle = (in->micro_batches - 1) * w->work[k][in->first_middle + in->stage[to]];

        wf[k] += middle;
        wb[k] += middle;
    }
    for (int a = 0; a < f->n_active[from]; ++a)
        for (int b = 0; b < f->n_active[to]; ++b, ++cost) {
            int pair = in->first_pair[e] + f->active[in->first_choice[from] + a] * n_to +
                       f->active[in->first_choice[to] + b];
            const struct ghp_edge_price *p = &in->edge[pair];

            *cost = wf[0] * p->forward_s[0] + wf[1] * p->forward_s[1] + wb[0] * p->backward_s[0] +
                    wb[1] * p->backward_s[1];
            if (in->has_memory) *cost += spans_cost(&in->edge_spans, pair, w->live);
            if (in->hop_of[e] >= 0) {
                const struct ghp_hop_price *h = hop_price(in, e, pair);

                *cost += w->hop[2 * in->hop_of[e]] * h->forward_s +
                         w->hop[2 * in->hop_of[e] + 1] * h->backward_s;
            }
            if (!domain->pair[pair]) *cost = INFINITY;
        }
}

void ghp_weights_charge(const struct ghp_weights *w, const struct ghp_domain *domain,
                        struct ghp_frontier *frontier)
{
    const struct ghp_instance *in = domain->instance;

    for (int v = 0; v < in->n_layers; ++v)
        for (int k = 0; k < frontier->n_active[v]; ++k)
            frontier->node_cost[in->first_choice[v] + k] =
                layer_cost(w, in, v, frontier->active[in->first_choice[v] + k]);
    for (int e = 0; e < in->n_edges; ++e)
        charge_edge(w, domain, e, frontier);
}
