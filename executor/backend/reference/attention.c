/* executor/backend/reference/attention.c - attention: for each head and position, the mean of the values that it sees,
 * by the softmax of the products of its query with their keys.
 *
 * Saved: the logarithm of the sum of a softmax's exponentials, by sample, head and position. */
#include "executor/backend/reference/reference.h"

#include "core/model/attention.h"
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

const struct ghp_reference_kernel ghp_reference_attention[] = {
    {GHP_OP_ATTENTION, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X,
     GHP_REFERENCE_Y | GHP_REFERENCE_SAVED, scores_of_a_query},
    {GHP_OP_ATTENTION, GHP_PASS_BACKWARD_DATA, backward,
     GHP_REFERENCE_X | GHP_REFERENCE_Y | GHP_REFERENCE_DY | GHP_REFERENCE_SAVED, GHP_REFERENCE_DX,
     scores_of_a_query},
    {.run = NULL},
};
