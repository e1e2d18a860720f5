/* tests/executor/op_define.c - what each operation is, written down as plainly as it goes: one output element at a
 * time, by index, in double. */
#include "tests/executor/op_case.h"

#include "executor/platform/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct place { /* of one output element */
    int64_t n, p, q, k;
};

static double x_at(const struct ghp_operand_set *set, int64_t n, int64_t h, int64_t w, int64_t c)
{
    const struct ghp_local *l = &set->local;
    return op_case_get(set, set->args.at.x[0], ((n * l->h + h) * l->w + w) * l->c + c);
}

static double conv_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_local *l = &set->local;
    const struct ghp_window *win = &l->window;
    int64_t group_c = l->c / win->groups, group = o.k / (l->k / win->groups);
    double sum = 0.0;
    for (int64_t c = 0; c < group_c; c++)
        for (int64_t r = 0; r < win->r; r++)
            for (int64_t s = 0; s < win->s; s++) {
                int64_t h = o.p * win->stride_h - win->pad_top + r * win->dilation_h;
                int64_t w = o.q * win->stride_w - win->pad_left + s * win->dilation_w;
                if (h < 0 || h >= l->h || w < 0 || w >= l->w) continue;
                sum += x_at(set, o.n, h, w, group * group_c + c) *
                       op_case_get(set, set->args.at.w[0],
                                   ((o.k * group_c + c) * win->r + r) * win->s + s);
            }
    return sum;
}

static double linear_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_local *l = &set->local;
    double sum = 0.0;
    for (int64_t c = 0; c < l->c; c++)
        sum += x_at(set, o.n, o.p, o.q, c) * op_case_get(set, set->args.at.w[0], o.k * l->c + c);
    return sum;
}

/* A Box-Muller pair stands in channels 2 i and 2 i + 1. */
static double random_feature_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_local *l = &set->local;
    const double turn = 2 * acos(-1) / 4294967296.0;
    uint64_t seed = (uint64_t)l->drawn.seed;
    double z = turn * ghp_random_philox(seed, (uint32_t)o.k, 0, 0x72666561, 1).v[0];
    for (int64_t c = 0; c < l->c; c++) {
        struct ghp_random_block r =
            ghp_random_philox(seed, (uint32_t)(c / 2), (uint32_t)o.k, 0x72666561, 0);
        double u = sqrt(2 * (32 * log(2) - log(r.v[0] + 1.0)));
        u *= c % 2 == 0 ? cos(turn * r.v[1]) : sin(turn * r.v[1]);
        z += l->drawn.sigma * u * x_at(set, o.n, o.p, o.q, c);
    }
    return sqrt(2) * cos(z);
}

static double pool_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_local *l = &set->local;
    const struct ghp_window *win = &l->window;
    double greatest = -HUGE_VAL, sum = 0.0;
    int64_t count = 0;
    for (int64_t r = 0; r < win->r; r++)
        for (int64_t s = 0; s < win->s; s++) {
            int64_t h = o.p * win->stride_h - win->pad_top + r * win->dilation_h;
            int64_t w = o.q * win->stride_w - win->pad_left + s * win->dilation_w;
            if (h < 0 || h >= l->h || w < 0 || w >= l->w) continue;
            greatest = fmax(greatest, x_at(set, o.n, h, w, o.k));
            sum += x_at(set, o.n, h, w, o.k);
            count++;
        }
    if (l->op == GHP_OP_MAX_POOL) return greatest;
    return sum / (double)(win->count_pad ? win->r * win->s : count);
}

static double mean_over(const struct ghp_operand_set *set, struct place o, bool all_samples,
                        double about, int power)
{
    const struct ghp_local *l = &set->local;
    int64_t first = all_samples ? 0 : o.n, end = all_samples ? l->n : o.n + 1;
    double sum = 0.0;
    for (int64_t n = first; n < end; n++)
        for (int64_t h = 0; h < l->h; h++)
            for (int64_t w = 0; w < l->w; w++) {
                double d = x_at(set, n, h, w, o.k) - about;
                sum += power == 2 ? d * d : d;
            }
    return sum / (double)((end - first) * l->h * l->w);
}

static double norm_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_tensors *at = &set->args.at;
    double mean = op_case_get(set, at->state[0], o.k),
           variance = op_case_get(set, at->state[1], o.k);
    if (set->args.training && set->local.op == GHP_OP_BATCH_NORM) {
        mean = mean_over(set, o, true, 0.0, 1);
        variance = mean_over(set, o, true, mean, 2);
    }
    return (x_at(set, o.n, o.p, o.q, o.k) - mean) / sqrt(variance + set->local.norm.epsilon) *
               op_case_get(set, at->w[0], o.k) +
           op_case_get(set, at->w[1], o.k);
}

static double lrn_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_norm *norm = &set->local.norm;
    double sum = 0.0;
    for (int64_t c = o.k - norm->size / 2; c <= o.k + norm->size / 2; c++)
        if (c >= 0 && c < set->local.c) sum += pow(x_at(set, o.n, o.p, o.q, c), 2.0);
    return x_at(set, o.n, o.p, o.q, o.k) /
           pow(norm->k + norm->alpha / (double)norm->size * sum, norm->beta);
}

static double position_norm_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_local *l = &set->local;
    int64_t size = l->heads.size > 0 ? l->heads.size : l->c, first = o.k / size * size;
    double sum = 0.0, squares = 0.0, channels = (double)size;
    for (int64_t c = first; c < first + size; c++)
        sum += x_at(set, o.n, o.p, o.q, c);
    double mean = l->op == GHP_OP_LAYER_NORM ? sum / channels : 0.0;
    for (int64_t c = first; c < first + size; c++)
        squares += pow(x_at(set, o.n, o.p, o.q, c) - mean, 2.0);
    return (x_at(set, o.n, o.p, o.q, o.k) - mean) / sqrt(squares / channels + l->norm.epsilon) *
           (op_case_get(set, set->args.at.w[0], o.k % size) + l->norm.offset);
}

/* What a pair's angle is multiplied by: the factor's inverse of slow pairs, 1 of fast ones. */
static double scale_at(const struct ghp_heads *h, int64_t pair, double turn)
{
    double length = 2 * acos(-1.0) / turn, original = (double)h->original, part;
    if (h->scaling == GHP_ROTARY_UNSCALED) return 1.0;
    if (h->scaling == GHP_ROTARY_LINEAR) return 1.0 / h->factor;
    if (h->scaling == GHP_ROTARY_LLAMA3) {
        if (length < original / h->fast) return 1.0;
        if (length > original / h->slow) return 1.0 / h->factor;
        part = (original / length - h->slow) / (h->fast - h->slow);
        return (1.0 - part) / h->factor + part;
    }
    double to_pair = (double)h->turned / 2 / log(h->base);
    double first = to_pair * log(original / (h->fast * 2 * acos(-1.0)));
    double last = to_pair * log(original / (h->slow * 2 * acos(-1.0)));
    if (h->truncate) {
        first = floor(first);
        last = ceil(last);
    }
    if (first < 0) first = 0;
    if (last > (double)h->turned - 1) last = (double)h->turned - 1;
    part = (double)pair < first  ? 0
           : (double)pair > last ? 1
                                 : ((double)pair - first) / (last - first);
    return part / h->factor + 1.0 - part;
}

/* A complex number times e^(i angle); the first half of a head's channels are real parts. */
static double rotary_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_heads *heads = &set->local.heads;
    int64_t half = heads->turned / 2, channel = o.k % heads->size, pair = channel % half;
    bool real = channel < half;
    double turn = exp(-(double)pair / (double)half * log(heads->base)), angle, other;
    if (channel >= 2 * half) return x_at(set, o.n, o.p, 0, o.k);
    angle = (double)(set->args.first_position + o.p) * turn * scale_at(heads, pair, turn);
    other = x_at(set, o.n, o.p, 0, real ? o.k + half : o.k - half);
    return heads->amplitude *
           (x_at(set, o.n, o.p, 0, o.k) * cos(angle) + (real ? -other : other) * sin(angle));
}

/* What dropout of an attention's weights multiplies one by, of query p, key q and head k. */
static double kept_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_kernel_arguments *args = &set->args;
    const struct ghp_heads *heads = &set->local.heads;
    int64_t keys = set->local.keys > 0 ? set->local.keys : set->local.h;
    int64_t head = args->first_channel / heads->size + o.k, i = (head * keys + o.p) * keys + o.q;
    struct ghp_random_block block =
        ghp_random_philox(args->seed, (uint32_t)(i / 4), (uint32_t)(args->first_sample + o.n),
                          (uint32_t)args->step, (uint32_t)args->layer);
    return block.v[i % 4] < heads->dropout * 0x1p32 ? 0.0 : 1.0 / (1.0 - heads->dropout);
}

/* Whether position p and that of the query are in one document, and no padding. */
static bool together(const struct ghp_operand_set *set, int64_t n, int64_t p, int64_t place)
{
    const struct ghp_local *l = &set->local;
    int64_t keys = l->keys > 0 ? l->keys : l->h, ends = 0;
    const int32_t *ids = l->n_inputs > 3 ? (const int32_t *)set->args.at.x[3] + n * keys : NULL;
    if (ids == NULL) return true;
    for (int64_t i = p < place ? p : place; i < (p < place ? place : p); i++)
        ends += ids[i] == l->heads.end_token;
    return ends == 0 && ids[p] != l->heads.pad_token && ids[place] != l->heads.pad_token;
}

/* One channel of a position: the softmax's terms are not scaled by their greatest. */
static double attention_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_local *l = &set->local;
    const struct ghp_heads *heads = &l->heads;
    int64_t head = o.k / heads->size, kv = head * heads->n_kv / heads->n;
    int64_t keys = l->keys > 0 ? l->keys : l->h, place = o.p;
    double sum = 0.0, weights = 0.0;
    if (l->keys > 0) place += set->args.first_position;
    for (int64_t p = 0; p < (heads->causal ? place + 1 : keys); p++) {
        if (heads->window > 0 && place - p >= heads->window) continue;
        if (!together(set, o.n, p, place)) continue;
        int64_t theirs = (o.n * keys + p) * l->slice[1] + kv * heads->size;
        double product = 0.0;
        for (int64_t c = 0; c < heads->size; c++)
            product += op_case_get(set, set->args.at.x[0],
                                   (o.n * l->h + o.p) * l->slice[0] + head * heads->size + c) *
                       op_case_get(set, set->args.at.x[1], theirs + c);
        double score = product * (heads->scale > 0 ? heads->scale : pow((double)heads->size, -0.5));
        if (heads->softcap > 0)
            score = heads->softcap * (1.0 - 2.0 / (exp(2.0 * score / heads->softcap) + 1.0));
        double weight = exp(score);
        weights += weight;
        if (heads->dropout > 0 && set->args.training)
            weight *= kept_at(set, (struct place){o.n, place, p, head});
        sum += weight * op_case_get(set, set->args.at.x[2], theirs + o.k % heads->size);
    }
    return weights > 0 ? sum / weights : 0;
}

static double dropout_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_kernel_arguments *args = &set->args;
    double x = x_at(set, o.n, o.p, o.q, o.k), ratio = set->local.norm.ratio;
    int64_t element = ((args->first_position + o.p) * set->local.w + o.q) * args->global_channels +
                      args->first_channel + o.k;
    if (set->local.norm.drop == GHP_DROP_SAMPLES) element = 0;
    if (set->local.norm.drop == GHP_DROP_CHANNELS) element = args->first_channel + o.k;
    if (!args->training) return x;
    struct ghp_random_block block =
        ghp_random_philox(args->seed, (uint32_t)(element / 4), (uint32_t)(args->first_sample + o.n),
                          (uint32_t)args->step, (uint32_t)args->layer);
    return (double)block.v[element % 4] < ratio * 0x1p32 ? 0.0 : x / (1.0 - ratio);
}

static double softmax_at(const struct ghp_operand_set *set, struct place o)
{
    double sum = 0.0;
    for (int64_t c = 0; c < set->local.c; c++)
        sum += exp(x_at(set, o.n, o.p, o.q, c));
    return exp(x_at(set, o.n, o.p, o.q, o.k)) / sum;
}

/* Probabilities of the output that the place is of, if its loss makes them. */
static double losses_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_loss *loss = &set->local.loss;
    double sum = 0.0;
    int64_t first = 0;
    int i = 0;
    while (o.k >= first + loss->parts[i].channels)
        first += loss->parts[i++].channels;
    if (loss->parts[i].op != GHP_OP_SOFTMAX_CE) return x_at(set, o.n, o.p, o.q, o.k);
    for (int64_t c = first; c < first + loss->parts[i].channels; c++)
        sum += exp(x_at(set, o.n, o.p, o.q, c));
    return exp(x_at(set, o.n, o.p, o.q, o.k)) / sum;
}

/* Each input pixel is spread over a window of outputs. */
static double transposed_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_local *l = &set->local;
    const struct ghp_window *w = &l->window;
    int64_t groups = w->groups > 1 ? w->groups : 1, in = l->c / groups, out = l->k / groups;
    int64_t first = o.k / out * in;
    double sum = 0.0;
    for (int64_t h = 0; h < l->h; h++)
        for (int64_t x = 0; x < l->w; x++)
            for (int64_t r = 0; r < w->r; r++)
                for (int64_t s = 0; s < w->s; s++) {
                    if (h * w->stride_h + r * w->dilation_h - w->pad_top != o.p ||
                        x * w->stride_w + s * w->dilation_w - w->pad_left != o.q)
                        continue;
                    for (int64_t c = first; c < first + in; c++)
                        sum += x_at(set, o.n, h, x, c) *
                               op_case_get(set, set->args.at.w[0],
                                           ((c * out + o.k % out) * w->r + r) * w->s + s);
                }
    return sum;
}

/* The weight of input pixel j in output i. */
static double resize_weight(enum ghp_resize way, const int64_t sizes[2], int64_t i, int64_t j)
{
    double in = (double)sizes[0], out = (double)sizes[1], at = 0.0;
    int64_t first = i * sizes[0] / sizes[1],
            end = (int64_t)ceil((double)((i + 1) * sizes[0]) / out - 1e-9);
    if (way == GHP_RESIZE_NEAREST) return j == first ? 1.0 : 0.0;
    if (way == GHP_RESIZE_AREA) return j >= first && j < end ? 1.0 / (double)(end - first) : 0.0;
    if (way == GHP_RESIZE_LINEAR) at = (2.0 * (double)i + 1.0) * in / (2.0 * out) - 0.5;
    if (way == GHP_RESIZE_CORNERS && sizes[1] > 1) at = (double)i / (out - 1.0) * (in - 1.0);
    at = at < 0.0 ? 0.0 : at > in - 1.0 ? in - 1.0 : at;
    return (double)j > at - 1.0 && (double)j < at + 1.0 ? 1.0 - fabs(at - (double)j) : 0.0;
}

static double resize_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_local *l = &set->local;
    double sum = 0.0;
    for (int64_t h = 0; h < l->h; h++)
        for (int64_t w = 0; w < l->w; w++)
            sum += resize_weight(l->resize, (int64_t[]){l->h, l->p}, o.p, h) *
                   resize_weight(l->resize, (int64_t[]){l->w, l->q}, o.q, w) *
                   x_at(set, o.n, h, w, o.k);
    return sum;
}

/* Windows, and pixels in them, are counted along rows. Rolled pixels are where they came from. */
static double window_attention_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_local *l = &set->local;
    const struct ghp_tiles *t = &l->tiles;
    int64_t pixels = t->h * t->w, first = o.p / pixels * pixels, head = o.k / l->heads.size;
    int64_t rows = l->h / pixels / t->across * t->h, columns = t->across * t->w;
    int64_t window_y = o.p / pixels / t->across, window_x = o.p / pixels % t->across;
    int64_t y = o.p % pixels / t->w, x = o.p % pixels % t->w;
    double scale = l->heads.scale > 0 ? l->heads.scale : pow((double)l->heads.size, -0.5);
    double sum = 0.0, all = 0.0;
    for (int64_t i = 0; i < pixels; i++) {
        int64_t down = i / t->w, right = i % t->w;
        bool wraps_y = (window_y * t->h + y + t->shift_h >= rows) !=
                       (window_y * t->h + down + t->shift_h >= rows);
        bool wraps_x = (window_x * t->w + x + t->shift_w >= columns) !=
                       (window_x * t->w + right + t->shift_w >= columns);
        double score = 0.0;
        if (wraps_y || wraps_x) continue; /* other ends of the image */
        for (int64_t c = head * l->heads.size; c < (head + 1) * l->heads.size; c++)
            score += scale * op_case_get(set, set->args.at.x[0], (o.n * l->h + o.p) * l->c + c) *
                     op_case_get(set, set->args.at.x[1], (o.n * l->h + first + i) * l->c + c);
        int64_t places = (2 * t->h - 1) * (2 * t->w - 1);
        int64_t place = (y - down + t->h - 1) * (2 * t->w - 1) + x - right + t->w - 1;
        score += op_case_get(set, set->args.at.w[0], place * l->heads.n + head);
        if (l->n_inputs > 3) /* a table of the sample */
            score +=
                op_case_get(set, set->args.at.x[3], (o.n * places + place) * l->heads.n + head);
        all += exp(score);
        sum +=
            exp(score) * op_case_get(set, set->args.at.x[2], (o.n * l->h + first + i) * l->c + o.k);
    }
    return sum / all;
}

static double activation_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_activation *a = &set->local.activation;
    double x = x_at(set, o.n, o.p, o.q, o.k);
    switch (a->function) {
    case GHP_FUNCTION_LEAKY_RELU: return fmax(x, 0.0) + a->alpha * fmin(x, 0.0);
    case GHP_FUNCTION_SIGMOID: return 0.5 + 0.5 * tanh(0.5 * x);
    case GHP_FUNCTION_TANH: return 1.0 - 2.0 / (exp(2.0 * x) + 1.0);
    case GHP_FUNCTION_ELU: return fmax(x, 0.0) + a->alpha * expm1(fmin(x, 0.0));
    case GHP_FUNCTION_CLIP: return fmin(fmax(x, a->alpha), a->beta);
    default: return a->alpha * x + a->beta;
    }
}

/* The sigmoid of 2 u is (1 + tanh u) / 2. */
static double gelu_at(const struct ghp_operand_set *set, struct place o)
{
    double x = x_at(set, o.n, o.p, o.q, o.k);
    if (set->local.norm.gelu == GHP_GELU_ERF) return x * (0.5 + 0.5 * erf(x / sqrt(2.0)));
    return x / (1.0 + exp(-2.0 * sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * pow(x, 3.0))));
}

static double silu_at(const struct ghp_operand_set *set, struct place o)
{
    double x = x_at(set, o.n, o.p, o.q, o.k);
    return 0.5 * x * (1.0 + tanh(0.5 * x));
}

static double hard_swish_at(const struct ghp_operand_set *set, struct place o)
{
    double x = x_at(set, o.n, o.p, o.q, o.k);
    return x * fmin(fmax(x / 6.0 + 0.5, 0.0), 1.0);
}

static double pointwise_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_pointwise *by = &set->local.pointwise;
    double x = x_at(set, o.n, o.p, o.q, o.k);
    switch (by->curve) {
    case GHP_CURVE_EXP: return sinh(x) + cosh(x);
    case GHP_CURVE_POW: return exp(by->exponent * log(x));
    case GHP_CURVE_LOG: return log1p(x - 1.0);
    case GHP_CURVE_SOFTPLUS: return x > by->threshold ? x : log(1.0 + exp(x));
    case GHP_CURVE_ABS: return fmax(x, -x);
    case GHP_CURVE_SIN: return cos(x - 0.5 * acos(-1.0));
    default: return 1.0 - 2.0 * pow(sin(0.5 * x), 2.0);
    }
}

/* Counts up to the element through all sizes, the last fastest. */
static double view_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_local *l = &set->local;
    const struct ghp_view *view = &l->view;
    int64_t index[GHP_MAX_VIEW] = {0}, from = view->offset;
    for (int64_t e = (o.k * l->p + o.p) * l->q + o.q; e > 0; e--)
        for (int i = view->n - 1; i >= 0 && ++index[i] == view->sizes[i]; i--)
            index[i] = 0;
    for (int i = 0; i < view->n; i++)
        from += index[i] * view->strides[i];
    return x_at(set, o.n, from / l->w % l->h, from % l->w, from / l->w / l->h);
}

static int64_t mirrored(int64_t at, int64_t size, bool edge)
{
    if (edge) return at < 0 ? 0 : at >= size ? size - 1 : at;
    return at < 0 ? -at : at >= size ? 2 * size - 2 - at : at;
}

static double pad_at(const struct ghp_operand_set *set, struct place o)
{
    const struct ghp_local *l = &set->local;
    const struct ghp_border *b = &l->border;
    int64_t c = o.k - b->before[0], h = o.p - b->before[1], w = o.q - b->before[2];
    bool inside = c >= 0 && c < l->c && h >= 0 && h < l->h && w >= 0 && w < l->w;
    bool edge = b->fill == GHP_FILL_EDGE;
    if (!inside && b->fill == GHP_FILL_CONSTANT) return b->value;
    return x_at(set, o.n, mirrored(h, l->h, edge), mirrored(w, l->w, edge),
                mirrored(c, l->c, edge));
}

static double join_at(const struct ghp_operand_set *set, struct place o, int64_t element)
{
    const struct ghp_local *l = &set->local;
    if (l->op == GHP_OP_CONCAT) {
        int input = 0;
        int64_t channel = o.k;
        while (channel >= l->slice[input])
            channel -= l->slice[input++];
        int64_t pixel = (o.n * l->h + o.p) * l->w + o.q;
        return op_case_get(set, set->args.at.x[input], pixel * l->slice[input] + channel);
    }
    if (l->op == GHP_OP_MUL)
        return op_case_get(set, set->args.at.x[0], element) *
               op_case_get(set, set->args.at.x[1], element);
    double sum = 0.0;
    for (int input = 0; input < l->n_inputs; input++)
        sum += op_case_get(set, set->args.at.x[input], element);
    return sum;
}

static double element_at(const struct ghp_operand_set *set, struct place o, int64_t element)
{
    const struct ghp_local *l = &set->local;
    switch (l->op) {
    case GHP_OP_CONV2D: return conv_at(set, o);
    case GHP_OP_CONV_TRANSPOSE: return transposed_at(set, o);
    case GHP_OP_RESIZE: return resize_at(set, o);
    case GHP_OP_SOFTMAX: return softmax_at(set, o);
    case GHP_OP_LINEAR: return linear_at(set, o);
    case GHP_OP_BIAS:
        return x_at(set, o.n, o.p, o.q, o.k) + op_case_get(set, set->args.at.w[0], o.k);
    case GHP_OP_EMBEDDING:
        return op_case_get(set, set->args.at.w[0],
                           ((const int32_t *)set->args.at.x[0])[o.n * l->h + o.p] * l->k + o.k);
    case GHP_OP_POSITION_EMBEDDING:
        return x_at(set, o.n, o.p, o.q, o.k) +
               op_case_get(set, set->args.at.w[0], o.p * l->c + o.k);
    case GHP_OP_PARAMETER:
        return op_case_get(set, set->args.at.w[0], (o.k * l->p + o.p) * l->q + o.q);
    case GHP_OP_PREPEND:
        return o.p < l->p - l->h ? op_case_get(set, set->args.at.w[0], o.p * l->c + o.k)
                                 : x_at(set, o.n, o.p - (l->p - l->h), o.q, o.k);
    case GHP_OP_RELU: return fmax(x_at(set, o.n, o.p, o.q, o.k), 0.0);
    case GHP_OP_ACTIVATION: return activation_at(set, o);
    case GHP_OP_GELU: return gelu_at(set, o);
    case GHP_OP_SILU: return silu_at(set, o);
    case GHP_OP_HARD_SWISH: return hard_swish_at(set, o);
    case GHP_OP_POINTWISE: return pointwise_at(set, o);
    case GHP_OP_VIEW: return view_at(set, o);
    case GHP_OP_PAD: return pad_at(set, o);
    case GHP_OP_MAX_POOL:
    case GHP_OP_AVG_POOL: return pool_at(set, o);
    case GHP_OP_GLOBAL_AVG_POOL: return mean_over(set, o, false, 0.0, 1);
    case GHP_OP_BATCH_NORM:
    case GHP_OP_FROZEN_BATCH_NORM: return norm_at(set, o);
    case GHP_OP_LRN: return lrn_at(set, o);
    case GHP_OP_LAYER_NORM:
    case GHP_OP_RMS_NORM: return position_norm_at(set, o);
    case GHP_OP_ROTARY: return rotary_at(set, o);
    case GHP_OP_ATTENTION: return attention_at(set, o);
    case GHP_OP_WINDOW_ATTENTION: return window_attention_at(set, o);
    case GHP_OP_DROPOUT: return dropout_at(set, o);
    case GHP_OP_FLATTEN: {
        int64_t pixels = l->h * l->w, pixel = o.k % pixels;
        return x_at(set, o.n, pixel / l->w, pixel % l->w, o.k / pixels);
    }
    case GHP_OP_SOFTMAX_CE: return softmax_at(set, o);
    case GHP_OP_HINGE:
    case GHP_OP_SQUARED_ERROR:
    case GHP_OP_BINARY_CE:
    case GHP_OP_REGRESSION: return x_at(set, o.n, o.p, o.q, o.k);
    case GHP_OP_LOSSES: return losses_at(set, o);
    case GHP_OP_RANDOM_FEATURES: return random_feature_at(set, o);
    case GHP_OP_ADD:
    case GHP_OP_MUL:
    case GHP_OP_CONCAT: return join_at(set, o, element);
    default:
        fprintf(stderr, "%s: has no definition; write it down here\n",
                op_case_text(l, GHP_PASS_FORWARD));
        exit(1);
    }
}

void op_case_define(const struct ghp_operand_set *set, double *y)
{
    const struct ghp_local *l = &set->local;
    int64_t element = 0;
    for (int64_t n = 0; n < l->n; n++)
        for (int64_t p = 0; p < l->p; p++)
            for (int64_t q = 0; q < l->q; q++)
                for (int64_t k = 0; k < l->k; k++, element++)
                    y[element] = element_at(set, (struct place){n, p, q, k}, element);
}
