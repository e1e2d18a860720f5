/* tests/planner/random_case.c - writes a random description, parses it, and draws a machine for it. */
#include "tests/planner/random_case.h"
#include "tests/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t random_next(struct random_source *source) /* splitmix64 */
{
    uint64_t z = source->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int random_below(struct random_source *source, int n)
{
    return (int)(random_next(source) % (uint64_t)n);
}

double random_between(struct random_source *source, double low, double high)
{
    return low * pow(high / low, (double)(random_next(source) >> 11) * 0x1p-53);
}

/* ---- networks ---- */

struct writer {
    struct random_source *source;
    char *text;
    size_t n, max;
    int layers;
    struct ghp_shape shape[32]; /* of each layer written; 0 is the input */
    int unread[32];             /* whether a later layer has read it */
};

static void put(struct writer *w, const char *fmt, ...)
{
    va_list arguments;

    va_start(arguments, fmt);
    w->n += (size_t)vsnprintf(w->text + w->n, w->max - w->n, fmt, arguments);
    va_end(arguments);
}

/* Begins layer l<i>, which reads layer `from` (and `other` if that is not -1). */
static void begin_layer(struct writer *w, const char *op, int from, int other)
{
    w->layers++;
    put(w, "%s{\"name\": \"l%d\", \"op\": \"%s\"", w->layers > 1 ? ", " : "", w->layers, op);
    if (other >= 0)
        put(w, ", \"inputs\": [\"l%d\", \"l%d\"]", from, other);
    else if (from != w->layers - 1)
        put(w, ", \"inputs\": [\"l%d\"]", from);
    w->shape[w->layers] = w->shape[from];
    w->unread[from] = 0;
    if (other >= 0) w->unread[other] = 0;
    w->unread[w->layers] = 1;
}

static int some_channels(struct writer *w)
{
    static const int counts[] = {1, 2, 3, 4, 4, 6, 8, 8, 12};

    return counts[random_below(w->source, (int)(sizeof counts / sizeof counts[0]))];
}

static void put_weighted(struct writer *w, int from)
{
    int channels = w->layers < 8 ? some_channels(w) : 2,
        kernel = 1 + 2 * random_below(w->source, 2);
    bool vector = w->shape[from].h == 1 && w->shape[from].w == 1;

    begin_layer(w, vector ? "linear" : "conv2d", from, -1);
    if (vector)
        put(w, ", \"features\": %d", channels);
    else
        put(w, ", \"channels\": %d, \"kernel\": %d, \"pad\": %d", channels, kernel, kernel / 2);
    put(w, ", \"bias\": false}");
    w->shape[w->layers].c = channels;
}

/* Another layer (not the input) with the same height and width, and channels where `all`; -1: none. */
static int partner(struct writer *w, int from, bool all)
{
    for (int tries = 0; tries < 4 && w->layers > 1; tries++) {
        int other = 1 + random_below(w->source, w->layers);

        if (other == from || w->shape[other].h != w->shape[from].h ||
            w->shape[other].w != w->shape[from].w)
            continue;
        if (!all || w->shape[other].c == w->shape[from].c) return other;
    }
    return -1;
}

static void put_plain(struct writer *w, int from)
{
    static const char *const ops[] = {"relu", "relu", "bias", "batch_norm", "max_pool", "dropout"};
    int kind = random_below(w->source, 9), other = from > 0 ? partner(w, from, kind != 8) : -1;

    if (kind >= 6 && other >= 0) {
        begin_layer(w, kind == 8 ? "concat" : "add", from, other);
        put(w, "}");
        if (kind == 8) w->shape[w->layers].c += w->shape[other].c;
        return;
    }
    if (kind >= 6 || (kind == 4 && (w->shape[from].h % 2 != 0 || w->shape[from].w % 2 != 0)))
        kind = 0;
    begin_layer(w, ops[kind], from, -1);
    put(w, kind == 4 ? ", \"kernel\": 2}" : kind == 5 ? ", \"ratio\": 0.5}" : "}");
    if (kind == 4) {
        w->shape[w->layers].h /= 2;
        w->shape[w->layers].w /= 2;
    }
}

/* Joins the layers that nobody reads, two by two, so that one is left (where heights and widths agree). */
static void put_joins(struct writer *w)
{
    for (;;) {
        int a = w->layers, b = w->layers - 1;

        while (b > 0 && !w->unread[b])
            --b;
        if (b <= 0 || w->shape[a].h != w->shape[b].h || w->shape[a].w != w->shape[b].w ||
            w->layers > 8)
            return;
        bool add = w->shape[a].c == w->shape[b].c && random_below(w->source, 3) > 0;
        int64_t c = w->shape[a].c + w->shape[b].c;

        begin_layer(w, add ? "add" : "concat", a, b);
        put(w, "}");
        if (!add) w->shape[w->layers].c = c;
    }
}

/* One vector, then the classifier and the loss. */
static void put_end(struct writer *w)
{
    int last = w->layers;

    if (w->shape[last].h > 1 || w->shape[last].w > 1) {
        struct ghp_shape *s = &w->shape[last];
        bool flatten = random_below(w->source, 2) == 0;
        int64_t c = flatten ? s->c * s->h * s->w : s->c;

        begin_layer(w, flatten ? "flatten" : "global_avg_pool", last, -1);
        put(w, "}");
        w->shape[w->layers] = ghp_shape_image(c, 1, 1);
    }
    if (random_below(w->source, 4) > 0) put_weighted(w, w->layers);
    while (w->shape[w->layers].c < 2)
        put_weighted(w, w->layers); /* a classifier has two classes */
    begin_layer(w, "softmax_cross_entropy", w->layers, -1);
    put(w, "}]}");
}

/* Whether every layer but the last is read by somebody. */
static bool all_read(const struct writer *w)
{
    for (int i = 1; i < w->layers; i++)
        if (w->unread[i]) return false;
    return true;
}

static bool write_model(struct random_source *source, char *text, size_t max)
{
    struct writer w = {.source = source, .text = text, .max = max};
    int size = random_below(source, 3) == 0 ? 1 : 2 * (1 + random_below(source, 3)),
        n = 1 + random_below(source, 4);
    bool graph = random_below(source, 3) > 0;

    w.shape[0] = ghp_shape_image(some_channels(&w), size, size);
    put(&w,
        "{\"format\": \"ghp.model/1\", \"name\": \"random\", \"input\": {\"channels\": %d, "
        "\"height\": %d, \"width\": %d}, "
        "\"layers\": [",
        (int)w.shape[0].c, size, size);
    put_weighted(&w, 0);
    while (w.layers < n) {
        int from = graph ? 1 + random_below(source, w.layers) : w.layers;

        if (random_below(source, 2) == 0)
            put_weighted(&w, from);
        else
            put_plain(&w, from);
    }
    put_joins(&w);
    put_end(&w);
    return all_read(&w) && w.layers <= 7;
}

/* ---- machines ---- */

static double sometimes_none(struct random_source *s, double low, double high)
{
    return random_below(s, 4) == 0 ? 0 : random_between(s, low, high);
}

static struct ghp_rate some_rate(struct random_source *s)
{
    return (struct ghp_rate){.latency_s = sometimes_none(s, 1e-8, 1e-6),
                             .bandwidth_Bps = sometimes_none(s, 1e8, 1e11),
                             .source = GHP_SOURCE_ANALYTIC};
}

static enum ghp_status base_profile(int nodes, int cores, struct ghp_profile *p)
{
    GHP_TRY(ghp_profile_init(p, "analytic", "exact", 4));
    free(p->machine.pus);
    p->machine.pus = ghp_alloc((size_t)cores, sizeof *p->machine.pus);
    if (p->machine.pus == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < cores; i++)
        p->machine.pus[i] = i;
    p->machine.nodes = nodes;
    p->machine.packages = 1;
    p->machine.cores = p->machine.threads = p->machine.n_pus = cores;
    p->machine.memory_bytes = (int64_t)1 << 36;
    p->overlap = (struct ghp_overlap){.compute = 1, .comm = 1, .link = 1};
    return GHP_OK;
}

static enum ghp_status draw_profile(struct random_source *s, int workers, bool slow,
                                    struct ghp_profile *p)
{
    int nodes = workers;

    while (workers % nodes != 0 || random_below(s, 3) == 0)
        nodes = 1 + random_below(s, workers);
    GHP_TRY(base_profile(nodes, workers / nodes, p));
    p->analytic = (struct ghp_analytic_model){.flops_per_s = random_between(s, 1e7, 1e11),
                                              .memory_Bps = sometimes_none(s, 1e8, 1e11)};
    p->machine.intra =
        (struct ghp_link){sometimes_none(s, 1e-7, 1e-4), random_between(s, 1e7, 1e11), 0};
    p->machine.inter = (struct ghp_link){
        sometimes_none(s, 1e-7, 1e-4), random_between(s, 1e7, 1e10), sometimes_none(s, 1e7, 1e10)};
    p->copy = some_rate(s);
    p->update[0] = some_rate(s);
    p->load = some_rate(s);
    p->accumulate = some_rate(s);
    if (slow)
        p->overlap = (struct ghp_overlap){.compute = random_between(s, 1, 2.5),
                                          .comm = random_between(s, 1, 2.5),
                                          .link = random_between(s, 1, 2.5),
                                          .comm_long = random_between(s, 1, 2.5),
                                          .queueing_delay_s = sometimes_none(s, 1e-6, 1e-2),
                                          .arrival_delay_s = sometimes_none(s, 1e-6, 1e-3),
                                          .launch_delay_s = sometimes_none(s, 1e-6, 1e-3)};
    return ghp_profile_finalize(p);
}

enum ghp_status analytic_profile(double flops_per_s, double bandwidth_Bps, double latency_s,
                                 struct ghp_profile *profile)
{
    GHP_TRY(base_profile(4096, 1, profile));
    profile->analytic.flops_per_s = flops_per_s;
    profile->machine.intra = profile->machine.inter =
        (struct ghp_link){latency_s, bandwidth_Bps, 0};
    return ghp_profile_finalize(profile);
}

/* ---- cases ---- */

double random_case_combinations(const struct ghp_model *model, struct ghp_problem problem)
{
    struct ghp_split splits[GHP_MAX_CHOICES];
    double n = 1;

    for (int v = 0; v < model->n_layers; v++)
        n *= ghp_split_choices(&model->layers[v], problem, splits, GHP_MAX_CHOICES);
    return n;
}

unsigned random_case_shardings(struct random_source *source)
{
    const unsigned all = (1u << GHP_SHARDING_COUNT) - 1;

    switch (random_below(source, 4)) {
    case 0: return 0;
    case 1: return all;
    default: return (unsigned)random_below(source, (int)all + 1);
    }
}

static bool is_graph(const struct ghp_model *model)
{
    for (int v = 0; v < model->n_layers; v++)
        if (model->layers[v].n_inputs > 1) return true;
    return false;
}

enum ghp_status random_case_tied(uint64_t seed, double most, struct random_case *c)
{
    static const int workers[] = {1, 2, 2, 3, 4, 4, 6, 8}, sizes[] = {2, 4, 6, 8, 12};
    static const char *const middles[] = {"", "{\"op\": \"gelu\", \"name\": \"a\"}, ",
                                          "{\"op\": \"layer_norm\", \"name\": \"a\"}, "};
    static const char add[] = "{\"op\": \"add\", \"name\": \"b\", \"inputs\": [\"a\", \"e\"]}, ";
    struct random_source s = {.state = seed * UINT64_C(0x632be59bd9b4e019) + 7};

    memset(c, 0, sizeof *c);
    for (;;) {
        int words = sizes[random_below(&s, 5)], width = sizes[random_below(&s, 5)];
        int kind = random_below(&s, 5);
        char linear[256];

        c->problem.workers = workers[random_below(&s, (int)(sizeof workers / sizeof workers[0]))];
        c->problem.global_batch = (int64_t)c->problem.workers * (1 + random_below(&s, 4));
        snprintf(linear, sizeof linear,
                 "{\"op\": \"linear\", \"name\": \"a\", \"features\": %d}, %s", width,
                 kind == 4 ? add : "");
        snprintf(c->text, sizeof c->text,
                 "{\"format\": \"ghp.model/1\", \"name\": \"tied\", \"input\": {\"positions\": %d, "
                 "\"vocabulary\": %d}, \"layers\": [{\"name\": \"e\", \"op\": \"embedding\", "
                 "\"channels\": %d}, %s{\"name\": \"o\", \"op\": \"linear\", \"features\": %d, "
                 "\"bias\": false, \"tied\": \"e\"}, {\"name\": \"l\", \"op\": "
                 "\"softmax_cross_entropy\"}]}",
                 1 + random_below(&s, 4), words, width, kind < 3 ? middles[kind] : linear, words);
        GHP_TRY(ghp_model_parse(c->text, "tied", &c->model));
        if (random_case_combinations(&c->model, c->problem) <= most) break;
        ghp_model_release(&c->model);
    }
    c->slow = random_below(&s, 3) == 0;
    return draw_profile(&s, c->problem.workers, c->slow, &c->profile);
}

enum ghp_status random_case_make(uint64_t seed, double most, struct random_case *c)
{
    static const int workers[] = {1, 2, 2, 3, 4, 4, 4, 6, 6, 8, 8, 8};
    struct random_source s = {.state = seed * UINT64_C(0x632be59bd9b4e019) + 1};

    bool graph = random_below(&s, 5) < 2;

    memset(c, 0, sizeof *c);
    for (;;) {
        c->problem.workers = workers[random_below(&s, (int)(sizeof workers / sizeof workers[0]))];
        c->problem.global_batch = (int64_t)c->problem.workers * (1 + random_below(&s, 8));
        if (!write_model(&s, c->text, sizeof c->text)) continue;
        GHP_TRY(ghp_model_parse(c->text, "random", &c->model));
        double n = random_case_combinations(&c->model, c->problem);
        if (is_graph(&c->model) == graph && n <= most && (n > 20 || random_below(&s, 10) == 0))
            break;
        ghp_model_release(&c->model);
    }
    c->slow = random_below(&s, 3) == 0;
    return draw_profile(&s, c->problem.workers, c->slow, &c->profile);
}

void random_case_write_model(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    if (!CHECK(f != NULL)) return;
    CHECK(fputs(text, f) >= 0);
    CHECK_EQ(fclose(f), 0);
}

void random_case_release(struct random_case *c)
{
    ghp_model_release(&c->model);
    ghp_profile_release(&c->profile);
}
