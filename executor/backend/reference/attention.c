/* executor/backend/reference/attention.c - attention: for each head and position, the mean of the values that it sees,
 * by the softmax of the products of its query with their keys. window_attention: the same of the values of its window;
 * to each product the table's number for the key's place is added.
 *
 * Saved: the logarithm of the sum of a softmax's exponentials, by sample, head and position. */
#include "executor/backend/reference/reference.h"

#include "core/model/attention.h"
#include "core/model/window_attention.h"
#include "executor/platform/random.h"

#include <math.h>

/* One query: of sample n, head, row; its position in the sequence of the keys. */
struct query {
    int64_t n, head, row, position;
};

static int64_t keys_seen(const struct ghp_local *local, struct query q)
{
    return local->heads.causal ? q.position + 1 : ghp_attention_keys(local);
}

/* The query's channels. */
static int64_t own_row(const struct ghp_local *local, struct query q)
{
    return ((q.n * local->h + q.row) * local->heads.n + q.head) * local->heads.size;
}

/* Those of the keys, or values, at a position of the query's sample. */
static int64_t key_row(const struct ghp_local *local, struct query q, int64_t position)
{
    int64_t heads = local->heads.n_kv, head = q.head / (local->heads.n / heads);

    return ((q.n * ghp_attention_keys(local) + position) * heads + head) * local->heads.size;
}

static double product(int64_t n, const double *a, const double *b)
{
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static int64_t saved_at(const struct ghp_local *local, struct query q)
{
    return (q.n * local->heads.n + q.head) * local->h + q.row;
}

static int64_t first_seen(const struct ghp_local *local, struct query q)
{
    return ghp_attention_first(&local->heads, q.position);
}

/* Whether the query sees a key by the tokens between them: neither is padding, and no document ends before the
 * later. */
static bool is_seen(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                    struct query q, int64_t key)
{
    const int32_t *ids = (const int32_t *)args->at.x[3] + q.n * ghp_attention_keys(local);
    int64_t earlier = key < q.position ? key : q.position, later = key + q.position - earlier;

    if (ids[key] == local->heads.pad_token || ids[q.position] == local->heads.pad_token)
        return false;
    for (int64_t i = earlier; i < later; i++)
        if (ids[i] == local->heads.end_token) return false;
    return true;
}

/* Scaled and capped products of the query with all keys that it sees, into scores; -HUGE_VAL of those that tokens
 * hide. */
static void score(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                  struct query q, double *scores)
{
    const double *x = args->at.x[0], *keys = args->at.x[1];
    double cap = local->heads.softcap;

    for (int64_t i = first_seen(local, q); i < keys_seen(local, q); i++) {
        scores[i] = ghp_attention_scale(&local->heads) *
                    product(local->heads.size, x + own_row(local, q), keys + key_row(local, q, i));
        if (cap > 0) scores[i] = cap * tanh(scores[i] / cap);
        if (ghp_attention_has_ids(local) && !is_seen(local, args, q, i)) scores[i] = -HUGE_VAL;
    }
}

/* What dropout multiplies a weight by: the number of a weight is its own, as that of a dropout's element is. */
static double kept(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                   struct query q, int64_t key)
{
    int64_t head = args->first_channel / local->heads.size + q.head;
    int64_t element = ghp_attention_weight(ghp_attention_keys(local), head, q.position) + key;
    struct ghp_random_block block;

    if (local->heads.dropout == 0.0) return 1.0;
    block =
        ghp_random_philox(args->seed, (uint32_t)(element / 4), (uint32_t)(args->first_sample + q.n),
                          (uint32_t)args->step, (uint32_t)args->layer);
    return block.v[element % 4] >= (uint32_t)(local->heads.dropout * 0x1p32)
               ? 1.0 / (1.0 - local->heads.dropout)
               : 0.0;
}

static void forward_query(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                          struct query q)
{
    double *y = (double *)args->at.y + own_row(local, q);
    double *saved = args->at.saved, *scores = args->at.scratch, greatest = -HUGE_VAL, sum = 0.0;
    const double *values = args->at.x[2];
    int64_t size = local->heads.size, first = first_seen(local, q), seen = keys_seen(local, q);

    score(local, args, q, scores);
    for (int64_t i = first; i < seen; i++)
        greatest = fmax(greatest, scores[i]);
    for (int64_t i = first; i < seen && greatest > -HUGE_VAL; i++)
        sum += exp(scores[i] - greatest);
    for (int64_t c = 0; c < size; c++)
        y[c] = 0.0;
    if (saved != NULL) saved[saved_at(local, q)] = 0.0;
    if (greatest == -HUGE_VAL) return; /* padding sees nothing */
    for (int64_t i = first; i < seen; i++)
        ghp_reference_add_scaled(size,
                                 (args->training ? kept(local, args, q, i) : 1.0) *
                                     exp(scores[i] - greatest) / sum,
                                 values + key_row(local, q, i), y);
    if (saved != NULL) saved[saved_at(local, q)] = greatest + log(sum);
}

/* With probabilities p and their gradients g = dy value, times what dropout keeps: a score's gradient is p (g - y dy),
 * and of one that was capped to s the gradient is 1 - (s / cap)^2 of it. */
static void backward_query(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                           struct query q)
{
    int64_t size = local->heads.size, mine = own_row(local, q);
    const double *x = (const double *)args->at.x[0] + mine, *keys = args->at.x[1];
    const double *dy = (const double *)args->at.dy + mine, *values = args->at.x[2];
    double *dx = args->at.dx[0], *dkeys = args->at.dx[1], *dvalues = args->at.dx[2];
    double *scores = args->at.scratch, mean = product(size, (double *)args->at.y + mine, dy);
    double cap = local->heads.softcap;

    score(local, args, q, scores);
    for (int64_t i = first_seen(local, q); i < keys_seen(local, q); i++) {
        int64_t theirs = key_row(local, q, i);
        double p, keep, slope;

        if (scores[i] == -HUGE_VAL) continue; /* hidden by tokens */
        p = exp(scores[i] - ((double *)args->at.saved)[saved_at(local, q)]);
        keep = kept(local, args, q, i);
        slope = p * (keep * product(size, dy, values + theirs) - mean) *
                ghp_attention_scale(&local->heads);
        if (cap > 0) slope *= 1.0 - scores[i] * scores[i] / (cap * cap);
        if (dx != NULL) ghp_reference_add_scaled(size, slope, keys + theirs, dx + mine);
        if (dkeys != NULL) ghp_reference_add_scaled(size, slope, x, dkeys + theirs);
        if (dvalues != NULL) ghp_reference_add_scaled(size, keep * p, dy, dvalues + theirs);
    }
}

static void each_query(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                       void run(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct query q))
{
    int64_t offset = ghp_attention_offset(local, args->first_position);

    for (int64_t n = 0; n < local->n; n++)
        for (int64_t head = 0; head < local->heads.n; head++)
            for (int64_t row = 0; row < local->h; row++)
                run(local, args, (struct query){n, head, row, offset + row});
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    each_query(local, args, forward_query);
}

static void backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    for (int input = 0; input < 3; input++) {
        int64_t positions = input == 0 ? local->h : ghp_attention_keys(local);
        double *dx = args->at.dx[input];

        for (int64_t i = 0; dx != NULL && i < local->n * positions * local->slice[input]; i++)
            dx[i] = 0.0;
    }
    each_query(local, args, backward_query);
}

static int64_t scores_of_a_query(const struct ghp_local *local)
{
    return ghp_attention_keys(local);
}

/* ---- windows of an image ---- */

struct pixel { /* of sample n, window, head; its place in the window */
    int64_t n, window, head, place;
};

static int64_t pixels_of(const struct ghp_local *local)
{
    return local->tiles.h * local->tiles.w;
}

/* The head's channels at a place of the query's window. */
static int64_t pixel_row(const struct ghp_local *local, struct pixel q, int64_t place)
{
    return ((q.n * local->h + q.window * pixels_of(local) + place) * local->heads.n + q.head) *
           local->heads.size;
}

static double *logarithm_at(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct pixel q)
{
    return (double *)args->at.saved + (q.n * local->heads.n + q.head) * local->h +
           q.window * pixels_of(local) + q.place;
}

static int64_t table_at(const struct ghp_local *local, struct pixel q, int64_t key)
{
    return ghp_window_offset(&local->tiles, q.place, key) * local->heads.n + q.head;
}

/* The same in the table of a sample that it reads. */
static int64_t own_table_at(const struct ghp_local *local, struct pixel q, int64_t key)
{
    return q.n * ghp_window_offsets(&local->tiles) * local->heads.n + table_at(local, q, key);
}

/* -HUGE_VAL of a key that is hidden. */
static double window_score(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                           struct pixel q, int64_t key)
{
    const double *x = args->at.x[0], *keys = args->at.x[1], *table = args->at.w[0];
    const double *own = args->at.x[3];
    double number;

    if (!ghp_window_sees(&local->tiles, q.window, local->h / pixels_of(local), q.place, key))
        return -HUGE_VAL;
    number = table[table_at(local, q, key)] +
             (ghp_window_has_table(local) ? own[own_table_at(local, q, key)] : 0.0);
    return ghp_attention_scale(&local->heads) * product(local->heads.size,
                                                        x + pixel_row(local, q, q.place),
                                                        keys + pixel_row(local, q, key)) +
           number;
}

static void forward_pixel(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                          struct pixel q)
{
    const double *values = args->at.x[2];
    double *y = (double *)args->at.y + pixel_row(local, q, q.place), greatest = -HUGE_VAL,
           sum = 0.0;

    for (int64_t key = 0; key < pixels_of(local); key++)
        greatest = fmax(greatest, window_score(local, args, q, key));
    for (int64_t key = 0; key < pixels_of(local); key++)
        sum += exp(window_score(local, args, q, key) - greatest);
    for (int64_t c = 0; c < local->heads.size; c++)
        y[c] = 0.0;
    for (int64_t key = 0; key < pixels_of(local); key++)
        ghp_reference_add_scaled(local->heads.size,
                                 exp(window_score(local, args, q, key) - greatest) / sum,
                                 values + pixel_row(local, q, key), y);
    if (args->at.saved != NULL) *logarithm_at(local, args, q) = greatest + log(sum);
}

struct value_weight { /* of a value, and the gradient of its score */
    double p, slope;
};

static struct value_weight window_weight(const struct ghp_local *local,
                                         const struct ghp_kernel_arguments *args, struct pixel q,
                                         int64_t key)
{
    int64_t size = local->heads.size, mine = pixel_row(local, q, q.place);
    const double *dy = (const double *)args->at.dy + mine, *y = (const double *)args->at.y + mine;
    double p = exp(window_score(local, args, q, key) - *logarithm_at(local, args, q));

    return (struct value_weight){
        p, p * (product(size, dy, (const double *)args->at.x[2] + pixel_row(local, q, key)) -
                product(size, dy, y))};
}

static void backward_pixel(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                           struct pixel q)
{
    const double *x = args->at.x[0], *keys = args->at.x[1], *dy = args->at.dy;
    int64_t size = local->heads.size, mine = pixel_row(local, q, q.place);
    double scale = ghp_attention_scale(&local->heads);

    for (int64_t key = 0; key < pixels_of(local); key++) {
        struct value_weight w = window_weight(local, args, q, key);
        int64_t theirs = pixel_row(local, q, key);
        double *const *dx = (double *const *)args->at.dx;

        if (dx[0] != NULL)
            ghp_reference_add_scaled(size, scale * w.slope, keys + theirs, dx[0] + mine);
        if (dx[1] != NULL)
            ghp_reference_add_scaled(size, scale * w.slope, x + mine, dx[1] + theirs);
        if (dx[2] != NULL) ghp_reference_add_scaled(size, w.p, dy + mine, dx[2] + theirs);
        if (ghp_window_has_table(local) && dx[3] != NULL)
            dx[3][own_table_at(local, q, key)] += w.slope;
    }
}

static void weight_pixel(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                         struct pixel q)
{
    double *table = args->at.dw[0];

    for (int64_t key = 0; key < pixels_of(local); key++)
        table[table_at(local, q, key)] += window_weight(local, args, q, key).slope;
}

static void each_pixel(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                       void run(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct pixel q))
{
    int64_t pixels = pixels_of(local);

    for (int64_t n = 0; n < local->n; n++)
        for (int64_t window = 0; window < local->h / pixels; window++)
            for (int64_t head = 0; head < local->heads.n; head++)
                for (int64_t place = 0; place < pixels; place++)
                    run(local, args, (struct pixel){n, window, head, place});
}

static void window_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    each_pixel(local, args, forward_pixel);
}

static void clear(double *at, int64_t n)
{
    for (int64_t i = 0; at != NULL && i < n; i++)
        at[i] = 0.0;
}

static void window_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    for (int input = 0; input < 3; input++)
        clear(args->at.dx[input], local->n * local->h * local->c);
    if (ghp_window_has_table(local))
        clear(args->at.dx[3], ghp_window_table_elements(local, 3));
    each_pixel(local, args, backward_pixel);
}

static void window_table(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    clear(args->at.dw[0], ghp_window_offsets(&local->tiles) * local->heads.n);
    each_pixel(local, args, weight_pixel);
}

enum {
    READ =
        GHP_REFERENCE_X | GHP_REFERENCE_W | GHP_REFERENCE_Y | GHP_REFERENCE_DY | GHP_REFERENCE_SAVED
};

const struct ghp_reference_kernel ghp_reference_attention[] = {
    {GHP_OP_ATTENTION, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X,
     GHP_REFERENCE_Y | GHP_REFERENCE_SAVED, scores_of_a_query},
    {GHP_OP_ATTENTION, GHP_PASS_BACKWARD_DATA, backward,
     GHP_REFERENCE_X | GHP_REFERENCE_Y | GHP_REFERENCE_DY | GHP_REFERENCE_SAVED, GHP_REFERENCE_DX,
     scores_of_a_query},
    {GHP_OP_WINDOW_ATTENTION, GHP_PASS_FORWARD, window_forward, GHP_REFERENCE_X | GHP_REFERENCE_W,
     GHP_REFERENCE_Y | GHP_REFERENCE_SAVED, NULL},
    {GHP_OP_WINDOW_ATTENTION, GHP_PASS_BACKWARD_DATA, window_backward, READ, GHP_REFERENCE_DX,
     NULL},
    {GHP_OP_WINDOW_ATTENTION, GHP_PASS_BACKWARD_WEIGHT, window_table, READ, GHP_REFERENCE_DW, NULL},
    {.run = NULL},
};
