/* onnx/operator/attention.c - attention of a sequence to itself, causal or not, or to another. */
#include "onnx/operator/attention.h"

#include "core/model/window_attention.h"
#include "onnx/operator/embedding.h"
#include "onnx/operator/join.h"
#include "onnx/operator/operator.h"
#include "onnx/operator/rows.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/role.h"
#include "onnx/read/settle.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Channels of heads of `size` channels each, whose first ones are `apart`. */
static void part_heads(int64_t size, int64_t apart, struct ghp_onnx_channels *channels)
{
    if (apart == size || channels->n == size) return;
    channels->runs = channels->n / size;
    channels->step = apart;
}

enum ghp_status ghp_onnx_heads_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  const struct ghp_onnx_array *x, int64_t named, const char *what,
                                  struct ghp_onnx_heads *heads)
{
    /* heads that are repeated have one axis more, which is joined */
    bool repeated = x->n == 5 && x->joined == 4u && x->strides[2] == 0;
    /* PyTorch's multi-head attention has samples and heads as one axis */
    bool by_head = x->n == 4 && x->joined == 2u;
    bool one = x->n == 4 && x->dims[1] > 1 && x->strides[1] == 0; /* repeated, and no other */
    bool windows = x->n == 5 && (x->joined & ~2u) == 0; /* samples and windows may be one axis */
    int head = windows ? 2 : 1, at = x->n - 2, channel = x->n - 1;
    int64_t size, step; /* step: from one channel to the next */
    bool sound;

    if (x->base != NULL || !ghp_onnx_is_sequence(im, x->layer) || x->lead > 0 ||
        (x->joined != 0 && !repeated && !by_head && !windows) ||
        (x->n != 3 && x->n != 4 && !repeated && !windows) || (x->n == 3 && named < 1))
        return ghp_onnx_fail(im, node,
                             "has an %s that is not a sequence with heads; give batch, heads, "
                             "positions and channels, or the number of heads",
                             what);
    step = im->model.layers[x->layer].out.h;
    heads->n = x->n == 3 ? named : one ? 1 : x->dims[head];
    heads->repeats = repeated ? x->dims[2] : one ? x->dims[1] : 1;
    heads->positions = x->dims[at];
    heads->windows = windows ? x->dims[1] : 1;
    size = x->dims[channel];
    heads->channels = (struct ghp_onnx_channels){
        .layer = x->layer, .first = x->offset / step, .n = x->n == 3 ? size : size * heads->n};
    sound = x->offset % step == 0 && heads->windows * heads->positions == step &&
            (!windows || x->strides[1] == heads->positions) &&
            (x->strides[at] == 1 || x->dims[at] == 1) &&
            (x->strides[channel] == step || size == 1) &&
            (x->n == 3 || heads->n == 1 ||
             (x->strides[head] % step == 0 && x->strides[head] >= size * step));
    if (sound && x->n > 3) part_heads(size, x->strides[head] / step, &heads->channels);
    if (sound && heads->channels.n % heads->n == 0) return GHP_OK;
    return ghp_onnx_fail(im, node,
                         "has an %s whose heads are not %" PRId64
                         " runs of a sequence's channels; reshape it so in the file",
                         what, heads->n);
}

/* ---- masks ---- */

/* What a mask's value says: 1 seen, 0 hidden, -1 neither. */
static int sees(double value, enum ghp_onnx_mask kind)
{
    const double hidden = -1e4; /* exp of it is 0 in every float format */

    if (kind == GHP_ONNX_MASK_TAKEN) value = -value;
    if (kind == GHP_ONNX_MASK_KEEPS) return value != 0;
    if (kind == GHP_ONNX_MASK_HIDES) return value == 0;
    return value == 0 ? 1 : value <= hidden ? 0 : -1;
}

/* The mask with its repetitions taken out, and then its last two axes made `sides`: queries and keys. */
static enum ghp_status spread(struct ghp_onnx_import *im, const struct ghp_onnx_array *mask,
                              const int64_t sides[2], struct ghp_onnx_array *planes,
                              const double **values, bool *fits)
{
    struct ghp_onnx_array once = *mask;
    int64_t dims[GHP_ONNX_MAX_DIMS] = {0};
    int n = mask->n < 2 ? 2 : mask->n;

    for (int d = 0; d < once.n; d++)
        if (once.strides[d] == 0 && once.dims[d] > 0) once.dims[d] = 1;
    GHP_TRY(ghp_onnx_values(im, &once, values));
    *planes = once;
    planes->offset = 0;
    for (int64_t d = once.n - 1, stride = 1; d >= 0; stride *= once.dims[d], --d)
        planes->strides[d] = stride;
    for (int d = 0; d < n; d++)
        dims[d] = d >= n - 2 ? sides[d - (n - 2)] : once.dims[d];
    *fits = ghp_onnx_expand(planes, n, dims);
    return GHP_OK;
}

enum ghp_status ghp_onnx_mask_read(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   const struct ghp_onnx_array *mask, enum ghp_onnx_mask kind,
                                   const int64_t sides[2], bool *causal)
{
    int64_t queries = sides[0], keys = sides[1];
    int64_t index[GHP_ONNX_MAX_DIMS] = {0}, at = 0, elements;
    bool all = true, before = queries == keys, fits;
    struct ghp_onnx_array planes;
    const double *values;

    if (queries > 1 << 15 || keys > 1 << 15)
        return ghp_onnx_fail(im, node, "has a mask of more than 2^15 positions; use is_causal");
    GHP_TRY(spread(im, mask, sides, &planes, &values, &fits));
    elements = fits ? ghp_onnx_elements(&planes) : 0;
    for (int64_t i = 0; i < elements; i++) {
        int said = sees(values[at], kind);

        all = all && said == 1;
        before = before && said == (i % keys <= i / keys % queries);
        ghp_onnx_next_element(&planes, index, &at);
    }
    *causal = !all;
    if (elements > 0 && (all || before)) return GHP_OK;
    return ghp_onnx_fail(im, node,
                         "has a mask that is neither causal nor empty; ghp has no other masks");
}

static enum ghp_status check_unused(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    for (int i = 1; i < node->n_outputs; i++)
        if (ghp_onnx_wanted(im, node, i))
            return ghp_onnx_fail(im, node, "hands its keys, values or scores on; ghp keeps them");
    for (int i = 4; i < node->n_inputs; i++)
        if (ghp_onnx_in(im, node, i) != NULL)
            return ghp_onnx_fail(im, node, "reads keys of the past; ghp trains whole sequences");
    return GHP_OK;
}

/* ---- windows: the table ---- */

bool ghp_onnx_windows_is_bias(struct ghp_onnx_import *im, const struct ghp_onnx_array *c)
{
    const struct ghp_onnx_array *table;

    if (ghp_onnx_role_is_number(c) || c->base->tensor != NULL || c->base->of == NULL) return false;
    table = ghp_onnx_named(im, c->base->of);
    return table->base != NULL && table->n == 2 && c->n >= 3 &&
           table->dims[1] == c->dims[c->n - 3] && /* heads, which a mask does not have */
           (c->base->role != GHP_ONNX_UNKNOWN || ghp_onnx_elements(c) > ghp_onnx_elements(table));
}

/* Whether the bias [head][query][key] is what windows of these sides look up. */
static bool looks_up(const struct ghp_tiles *tiles, int64_t heads, const double *table,
                     const double *bias)
{
    int64_t pixels = tiles->h * tiles->w;

    for (int64_t head = 0; head < heads; head++)
        for (int64_t query = 0; query < pixels; query++)
            for (int64_t key = 0; key < pixels; key++)
                if (*bias++ != table[ghp_window_offset(tiles, query, key) * heads + head])
                    return false;
    return true;
}

/* The masks of biases with masks added to them, [window][head][query][key]: whatever differs from the first window is
 * hidden. *mask becomes NULL if it is something else. */
static enum ghp_status part_masks(struct ghp_onnx_import *im, const double *all, int64_t windows,
                                  int64_t heads, int64_t pixels, const double **mask)
{
    int64_t pairs = pixels * pixels;
    double *parted;

    GHP_TRY(ghp_onnx_room(im, windows * pairs, &parted));
    *mask = parted;
    for (int64_t i = 0; i < windows * heads * pairs; i++) {
        double more = all[i] - all[i % (heads * pairs)],
               *to = &parted[i / (heads * pairs) * pairs + i % pairs];

        if (more != 0 && !(more <= -99)) *mask = NULL; /* -100 was added to a float */
        if (i / pairs % heads > 0 && (*to < 0) != (more < 0)) *mask = NULL;
        *to = more;
    }
    return GHP_OK;
}

enum ghp_status ghp_onnx_windows_bias(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      const struct ghp_onnx_array *c,
                                      struct ghp_onnx_scores *scores)
{
    const struct ghp_onnx_array *table = ghp_onnx_named(im, c->base->of);
    int64_t pixels = scores->q.dims[scores->q.n - 2], heads = scores->q.dims[scores->q.n - 3];
    int64_t windows = scores->q.n == 5 ? scores->q.dims[1] : 1,
            planes = ghp_onnx_elements(c) / (heads * pixels * pixels);
    const double *values, *bias;
    bool uniform = true;
    double value;

    if (table->base == NULL || table->n != 2 || table->dims[1] != heads ||
        ghp_onnx_elements(c) != planes * heads * pixels * pixels ||
        (planes != 1 && (planes != windows || scores->hidden != NULL)) ||
        scores->table.name != NULL || scores->computed_table > 0)
        return ghp_onnx_fail(
            im, node,
            "adds to scores what it computes from '%.96s'; ghp adds a table with a "
            "row for each place of a key relative to its query, once",
            c->base->of);
    GHP_TRY(ghp_onnx_uniform(im, table, &uniform, &value));
    GHP_TRY(ghp_onnx_values(im, table, &values));
    GHP_TRY(ghp_onnx_values(im, c, &bias));
    if (planes > 1) {
        GHP_TRY(part_masks(im, bias, windows, heads, pixels, &scores->hidden));
        uniform = uniform || scores->hidden == NULL;
    }
    for (int64_t h = 1; h <= pixels && h <= GHP_WINDOW_MOST && !uniform; h++) {
        struct ghp_tiles tiles = {.h = h, .w = pixels / h};

        if (h * tiles.w != pixels || tiles.w > GHP_WINDOW_MOST ||
            ghp_window_offsets(&tiles) != table->dims[0] || !looks_up(&tiles, heads, values, bias))
            continue;
        scores->table = *table;
        scores->tiles = tiles;
        return GHP_OK;
    }
    return ghp_onnx_fail(
        im, node,
        "looks numbers up in '%.96s' otherwise than by the place of a key relative "
        "to its query in a window, or they are all one number; write the file with "
        "random numbers there",
        c->base->of);
}

/* ---- windows: the mask ---- */

bool ghp_onnx_windows_is_mask(const struct ghp_onnx_scores *scores, const struct ghp_onnx_array *c)
{
    int64_t pixels = scores->q.dims[scores->q.n - 2];
    int windows = c->n - 4; /* the axis before heads, queries and keys */

    return scores->q.n == 5 && windows >= 0 && c->dims[windows] == scores->q.dims[1] &&
           c->dims[windows] > 1 && c->dims[c->n - 1] == pixels && c->dims[c->n - 2] == pixels;
}

enum ghp_status ghp_onnx_windows_mask(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      const struct ghp_onnx_array *c,
                                      struct ghp_onnx_scores *scores)
{
    static const char several[] =
        "has several masks, or other masks for each head; ghp has one a window";
    int64_t pixels = scores->q.dims[scores->q.n - 2], n = scores->q.dims[1] * pixels * pixels;
    struct ghp_onnx_array once = *c;
    const double *values;

    for (int d = 0; d < once.n; d++)
        if (once.strides[d] == 0 && once.dims[d] > 0) once.dims[d] = 1;
    if (ghp_onnx_elements(&once) != n) return ghp_onnx_fail(im, node, several);
    GHP_TRY(ghp_onnx_values(im, &once, &values));
    for (int64_t i = 0; i < n; i++) {
        if (scores->hidden != NULL && (values[i] < 0) != (scores->hidden[i] < 0))
            return ghp_onnx_fail(im, node, several);
        /* exp of -100 is 4e-44, nothing next to the pixel's own weight */
        if (values[i] != 0 && !(values[i] <= -100))
            return ghp_onnx_fail(im, node,
                                 "adds %g to scores of windows; ghp hides pixels, as -100 does",
                                 values[i]);
    }
    scores->hidden = values;
    return GHP_OK;
}

/* Whether the mask is that of these tiles. The last window, which has both seams, tells most of them apart. */
static bool hides(const struct ghp_tiles *tiles, int64_t windows, const double *mask)
{
    int64_t pixels = tiles->h * tiles->w;

    for (int64_t window = windows - 1; window >= 0; --window)
        for (int64_t query = 0; query < pixels; query++)
            for (int64_t key = 0; key < pixels; key++)
                if (ghp_window_sees(tiles, window, windows, query, key) !=
                    (mask[(window * pixels + query) * pixels + key] >= 0))
                    return false;
    return true;
}

/* The shift, and the windows in a row, that a mask is of. */
static bool find_shift(const double *mask, int64_t windows, struct ghp_tiles *tiles)
{
    for (tiles->across = 1; tiles->across <= windows; tiles->across++)
        for (tiles->shift_h = 0; tiles->shift_h < tiles->h; tiles->shift_h++)
            for (tiles->shift_w = 0; tiles->shift_w < tiles->w; tiles->shift_w++)
                if (windows % tiles->across == 0 && hides(tiles, windows, mask)) return true;
    return false;
}

/* The table of windows that have none of their own: zeros that stay so. Without tiles, for windows of any sides. */
static enum ghp_status no_table(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                int64_t pixels, struct ghp_layer *like,
                                struct ghp_onnx_array *table)
{
    struct ghp_tiles *tiles = &like->tiles;

    if (tiles->h == 0) {
        for (tiles->h = GHP_WINDOW_MOST; pixels % tiles->h != 0;)
            --tiles->h;
        tiles->w = pixels / tiles->h;
    }
    if (tiles->w > GHP_WINDOW_MOST)
        return ghp_onnx_fail(im, node,
                             "attends within windows of %" PRId64
                             " pixels, which are not at most %d x %d; use smaller ones",
                             pixels, GHP_WINDOW_MOST, GHP_WINDOW_MOST);
    like->fixed = true;
    return ghp_onnx_of_values(
        im, false,
        (struct ghp_onnx_sizes){2, (int64_t[]){ghp_window_offsets(tiles), like->heads.n}}, NULL,
        table);
}

/* The window_attention layer of queries, keys and values. */
static enum ghp_status attend_within(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     const struct ghp_onnx_attended *of, struct ghp_layer *like,
                                     const struct ghp_onnx_heads *queries, int *layer)
{
    struct ghp_onnx_source source = {.array = of->table, .scale = 1};

    if (of->causal || of->softcap > 0 || of->dropout > 0 || like->heads.n != like->heads.n_kv)
        return ghp_onnx_fail(im, node,
                             "has windows with a causal mask, capped scores, dropped weights or "
                             "shared keys; ghp has them in attention over whole sequences: leave "
                             "them out");
    like->op = GHP_OP_WINDOW_ATTENTION;
    like->deviation = ghp_onnx_usual_deviation(GHP_OP_WINDOW_ATTENTION);
    like->tiles = of->tiles;
    if (of->table.name == NULL)
        GHP_TRY(no_table(im, node, queries->positions, like, &source.array));
    if (of->computed_table > 0) {
        like->n_inputs = 4;
        like->inputs[3] = of->computed_table - 1;
    }
    like->tiles.across = queries->windows;
    if (of->hidden != NULL && !find_shift(of->hidden, queries->windows, &like->tiles))
        return ghp_onnx_fail(
            im, node,
            "hides pixels of windows otherwise than an image that was rolled up and "
            "to the left does; ghp has no other masks of windows");
    like->heads = (struct ghp_heads){.n = like->heads.n, .scale = like->heads.scale};
    GHP_TRY(ghp_onnx_emit(
        im, like, ghp_onnx_hint(im, node, of->table.name != NULL ? &of->table : NULL), layer));
    source.layer = *layer;
    return ghp_onnx_weight_from(im, node, source);
}

/* ---- the layer ---- */

/* If a layer of heads only scales another, takes that one instead, and the scale becomes the attention's. */
static void take_scale(const struct ghp_onnx_import *im, struct ghp_onnx_array *x, double *scale)
{
    const struct ghp_layer *layer = &im->model.layers[x->layer];

    if (layer->op != GHP_OP_ACTIVATION || layer->activation.function != GHP_FUNCTION_AFFINE ||
        layer->activation.beta != 0)
        return;
    *scale *= layer->activation.alpha;
    x->layer = layer->inputs[0];
}

/* Whether it is what ghp scales by unless told, but for roundings of files. */
static bool is_usual(double scale, int64_t size)
{
    double usual = 1 / sqrt((double)size);

    return fabs(scale - usual) <= 1e-6 * usual;
}

/* Multiplies the heads of queries, a layer, by the factors of scores. */
static enum ghp_status multiply_heads(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      const struct ghp_onnx_attended *of, int64_t heads,
                                      int *queries)
{
    const struct ghp_shape shape = im->model.layers[*queries].out;
    const struct ghp_onnx_array wide = {.layer = of->factors - 1,
                                        .n = 4,
                                        .dims = {im->batch, heads, shape.c / heads, shape.h},
                                        .strides = {0, of->factor_step, 0, 0},
                                        .offset = of->first_factor};
    struct ghp_onnx_layer_name hint = ghp_onnx_hint(im, node, NULL);
    struct ghp_layer view = {
        .op = GHP_OP_VIEW, .n_inputs = 1, .inputs = {wide.layer}, .out = shape};
    struct ghp_layer mul = {.op = GHP_OP_MUL, .n_inputs = 2, .inputs = {*queries}};

    if (of->factors == 0) return GHP_OK;
    GHP_TRY(ghp_onnx_view_of(&wide, shape, &view.view));
    view.view.sequence = true;
    GHP_TRY(ghp_onnx_emit(im, &view, ghp_onnx_part(hint, ".factors"), &mul.inputs[1]));
    return ghp_onnx_emit(im, &mul, ghp_onnx_part(hint, ".scaled"), queries);
}

static enum ghp_status check_attended(const struct ghp_onnx_import *im,
                                      const struct ghp_onnx_node *node,
                                      const struct ghp_onnx_heads heads[3], double scale)
{
    if (heads[0].repeats != 1)
        return ghp_onnx_fail(im, node, "repeats its queries; ghp repeats keys and values only");
    if (heads[1].n != heads[2].n)
        return ghp_onnx_fail(im, node,
                             "has %" PRId64 " heads of keys, but %" PRId64
                             " of values; use as many of both",
                             heads[1].n, heads[2].n);
    for (int i = 1; i < 3; i++)
        if (heads[i].repeats != 1 && heads[i].repeats * heads[i].n != heads[0].n)
            return ghp_onnx_fail(im, node,
                                 "repeats %" PRId64
                                 " heads of keys or values to other than the %" PRId64
                                 " of queries; repair the file",
                                 heads[i].n, heads[0].n);
    if (scale != 0 && !(scale > 0))
        return ghp_onnx_fail(im, node, "scales its scores by %g; ghp scales by positive numbers",
                             scale);
    return GHP_OK;
}

enum ghp_status ghp_onnx_attend(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                const struct ghp_onnx_attended *of)
{
    static const char *const parts[3] = {".q", ".k", ".v"};
    static const char *const inputs[3] = {"input 0", "input 1", "input 2"};
    struct ghp_layer like = {.op = GHP_OP_ATTENTION,
                             .n_inputs = 3,
                             .heads = {.causal = of->causal, .pad_token = -1, .end_token = -1}};
    struct ghp_onnx_array x[3] = {of->x[0], of->x[1], of->x[2]}, made;
    struct ghp_onnx_heads heads[3];
    double scale = of->scale;
    int layer;

    for (int i = 0; i < 2 && scale != 0; i++)
        take_scale(im, &x[i], &scale);
    for (int i = 0; i < 3; i++)
        GHP_TRY(ghp_onnx_heads_of(im, node, &x[i], of->named[i], inputs[i], &heads[i]));
    GHP_TRY(check_attended(im, node, heads, scale));
    if (scale > 0 && !is_usual(scale, heads[0].channels.n / heads[0].n)) like.heads.scale = scale;
    like.heads.softcap = of->softcap;
    like.heads.dropout = of->dropout;
    like.heads.n = heads[0].n;
    like.heads.n_kv = heads[1].n;
    for (int i = 0; i < 3; i++)
        GHP_TRY(ghp_onnx_take_channels(im, node, heads[i].channels, parts[i], &like.inputs[i]));
    GHP_TRY(multiply_heads(im, node, of, heads[0].n, &like.inputs[0]));
    if (of->table.name != NULL || of->computed_table > 0 || heads[0].windows > 1)
        GHP_TRY(attend_within(im, node, of, &like, &heads[0], &layer));
    else
        GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    made = ghp_onnx_of_sequence(im, layer);
    if (x[0].n > 3) {
        int64_t size = x[0].dims[x[0].n - 1], step = heads[0].windows * heads[0].positions;
        int64_t *strides = made.strides + x[0].n - 3;

        made.n = x[0].n;
        made.joined = x[0].joined;
        memcpy(made.dims, x[0].dims, (size_t)made.n * sizeof *made.dims);
        memcpy(strides, (int64_t[]){size * step, 1, step}, 3 * sizeof *strides);
        if (made.n == 5) made.strides[1] = heads[0].positions;
    }
    return ghp_onnx_define(im, node, 0, &made);
}

/* The ratio of weights that is dropped, as ghp's own metadata has it: the operator has no such attribute. */
static enum ghp_status read_dropout(const struct ghp_onnx_import *im,
                                    const struct ghp_onnx_node *node, double *ratio)
{
    json_t *ratios = NULL;

    *ratio = 0;
    for (int i = 0; i < im->file->n_texts; i++)
        if (strcmp(im->file->texts[i].key, GHP_ONNX_ATTENTION_DROPOUT) == 0)
            ratios = json_loads(im->file->texts[i].value, 0, NULL);
    *ratio = json_number_value(json_object_get(ratios, node->name));
    json_decref(ratios);
    if (*ratio >= 0 && *ratio <= 0.999) return GHP_OK;
    return ghp_onnx_fail(im, node, "drops %g of its weights; use 0 to 0.999 in the metadata '%s'",
                         *ratio, GHP_ONNX_ATTENTION_DROPOUT);
}

static enum ghp_status read_attention(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t heads = ghp_onnx_int(node, "q_num_heads", 0),
            kv_heads = ghp_onnx_int(node, "kv_num_heads", 0);
    struct ghp_onnx_attended of = {.named = {heads, kv_heads, kv_heads},
                                   .scale = ghp_onnx_real(node, "scale", 0),
                                   .softcap = ghp_onnx_real(node, "softcap", 0)};
    struct ghp_onnx_array *x, *mask = ghp_onnx_in(im, node, 3);
    int64_t sides[2];

    GHP_TRY(check_unused(im, node));
    GHP_TRY(read_dropout(im, node, &of.dropout));
    for (int i = 0; i < 3; i++) {
        GHP_TRY(ghp_onnx_joined_in(im, node, i, &x));
        of.x[i] = *x;
    }
    if (mask != NULL) {
        GHP_TRY(ghp_onnx_constant_in(im, node, 3, &mask));
        for (int i = 0; i < 2; i++)
            sides[i] = of.x[i].n > 1 ? of.x[i].dims[of.x[i].n - 2] : 0;
        GHP_TRY(ghp_onnx_mask_read(im, node, mask,
                                   mask->base->whole ? GHP_ONNX_MASK_KEEPS : GHP_ONNX_MASK_ADDED,
                                   sides, &of.causal));
    }
    of.causal = of.causal || ghp_onnx_int(node, "is_causal", 0) != 0;
    return ghp_onnx_attend(im, node, &of);
}

static enum ghp_status write_attention(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    struct ghp_onnx_node *node;

    if (l->heads.window > 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (attention) has a window, which ghp does not write as ONNX; "
                        "write the network with "
                        "--export-hf instead",
                        l->name);
    if (l->n_inputs > 3)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (attention) reads token ids, which ghp does not write as ONNX; "
                        "write the network with --export-hf instead",
                        l->name);
    node = ghp_export_join(ex, i, "Attention");
    ghp_export_int(ex, node, "q_num_heads", l->heads.n);
    ghp_export_int(ex, node, "kv_num_heads", l->heads.n_kv);
    ghp_export_int(ex, node, "is_causal", l->heads.causal);
    if (l->heads.scale > 0) ghp_export_real(ex, node, "scale", l->heads.scale);
    if (l->heads.softcap > 0) ghp_export_real(ex, node, "softcap", l->heads.softcap);
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_attention[] = {
    {.name = "Attention",
     .since = 23,
     .attributes = "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap "
                   "softmax_precision ",
     .read = read_attention,
     .op = GHP_OP_ATTENTION,
     .write = write_attention},
    {0}};
