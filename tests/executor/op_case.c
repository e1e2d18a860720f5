/* tests/executor/op_case.c - see op_case.h. */
#include "tests/executor/op_case.h"
#include "tests/check.h"
#include "tests/op_draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW(rows, columns, stride, pad)                                                         \
    {                                                                                              \
        .r = rows, .s = columns, .stride_h = stride, .stride_w = stride, .pad_top = pad,           \
        .pad_left = pad, .pad_bottom = pad, .pad_right = pad, .dilation_h = 1, .dilation_w = 1,    \
        .groups = 1                                                                                \
    }

static struct ghp_local cases[300];
static int n_cases;

struct ghp_local op_case_complete(struct ghp_local local)
{
    if (local.k == 0) local.k = local.c;
    if (local.h == 0) local.h = 1;
    if (local.w == 0) local.w = 1;
    if (local.p == 0) {
        local.p = local.h;
        local.q = local.w;
    }
    if (local.n_inputs == 0) local.n_inputs = 1;
    if (local.window.groups == 0) local.window = (struct ghp_window)WINDOW(1, 1, 1, 0);
    return local;
}

static void add(struct ghp_local local)
{
    if (n_cases == (int)(sizeof cases / sizeof cases[0])) {
        fprintf(stderr, "too few cases: make room for more\n");
        exit(1);
    }
    cases[n_cases++] = op_case_complete(local);
}

struct ghp_local op_case_conv(struct ghp_local l)
{
    const struct ghp_window *w = &l.window;
    l.p = (l.h + w->pad_top + w->pad_bottom - (w->r - 1) * w->dilation_h - 1) / w->stride_h + 1;
    l.q = (l.w + w->pad_left + w->pad_right - (w->s - 1) * w->dilation_w - 1) / w->stride_w + 1;
    return l;
}

static void add_window(struct ghp_local local)
{
    if (local.k == 0) local.k = local.c;
    add(op_case_conv(local));
}

static void add_convolutions(void)
{
    const enum ghp_op conv = GHP_OP_CONV2D;
    add_window((struct ghp_local){
        .op = conv, .n = 2, .c = 3, .h = 9, .w = 8, .k = 16, .window = WINDOW(3, 3, 1, 1)});
    add_window((struct ghp_local){
        .op = conv, .n = 1, .c = 1, .h = 12, .w = 12, .k = 6, .window = WINDOW(5, 5, 1, 2)});
    add_window((struct ghp_local){
        .op = conv, .n = 3, .c = 6, .h = 9, .w = 9, .k = 16, .window = WINDOW(5, 5, 1, 0)});
    add_window((struct ghp_local){
        .op = conv, .n = 2, .c = 16, .h = 7, .w = 7, .k = 10, .window = WINDOW(1, 1, 1, 0)});
    add_window((struct ghp_local){
        .op = conv, .n = 2, .c = 16, .h = 7, .w = 6, .k = 32, .window = WINDOW(1, 1, 2, 0)});
    add_window((struct ghp_local){
        .op = conv, .n = 2, .c = 3, .h = 23, .w = 23, .k = 8, .window = WINDOW(7, 7, 2, 3)});
    add_window((struct ghp_local){
        .op = conv, .n = 1, .c = 3, .h = 27, .w = 27, .k = 16, .window = WINDOW(11, 11, 4, 2)});
    add_window((struct ghp_local){
        .op = conv, .n = 1, .c = 32, .h = 2, .w = 2, .k = 48, .window = WINDOW(3, 3, 1, 1)});
    struct ghp_window odd = WINDOW(3, 2, 2, 0); /* asymmetric in every way, with dilation */
    odd.stride_w = 3;
    odd.pad_top = 2;
    odd.pad_right = 1;
    odd.dilation_h = 2;
    add_window(
        (struct ghp_local){.op = conv, .n = 2, .c = 5, .h = 11, .w = 10, .k = 7, .window = odd});
    struct ghp_window wide = WINDOW(2, 3, 1, 1); /* dilated and padded more from side to side */
    wide.dilation_w = 3;
    wide.pad_left = 4;
    wide.pad_right = 2;
    add_window(
        (struct ghp_local){.op = conv, .n = 2, .c = 5, .h = 6, .w = 9, .k = 9, .window = wide});
    struct ghp_window uneven = WINDOW(3, 3, 2, 0); /* padding at the far edges only */
    uneven.pad_bottom = uneven.pad_right = 1;
    add_window(
        (struct ghp_local){.op = conv, .n = 2, .c = 16, .h = 8, .w = 8, .k = 16, .window = uneven});
    struct ghp_window grouped = WINDOW(3, 3, 1, 1);
    grouped.groups = 2;
    add_window((struct ghp_local){
        .op = conv, .n = 2, .c = 32, .h = 6, .w = 6, .k = 48, .window = grouped});
    add_window(
        (struct ghp_local){.op = conv, .n = 2, .c = 6, .h = 6, .w = 5, .k = 4, .window = grouped});
    struct ghp_window depthwise = WINDOW(3, 3, 2, 1);
    depthwise.groups = 16;
    add_window((struct ghp_local){
        .op = conv, .n = 2, .c = 16, .h = 9, .w = 9, .k = 16, .window = depthwise});
    depthwise.groups = 6;
    add_window((struct ghp_local){
        .op = conv, .n = 1, .c = 6, .h = 9, .w = 9, .k = 12, .window = depthwise});
}

static void add_pools(void)
{
    const enum ghp_op max = GHP_OP_MAX_POOL, avg = GHP_OP_AVG_POOL;
    add_window((struct ghp_local){
        .op = max, .n = 2, .c = 5, .h = 8, .w = 6, .window = WINDOW(2, 2, 2, 0)});
    add_window((struct ghp_local){
        .op = max, .n = 3, .c = 16, .h = 9, .w = 9, .window = WINDOW(3, 3, 2, 1)});
    add_window((struct ghp_local){
        .op = max, .n = 1, .c = 2, .h = 18, .w = 17, .window = WINDOW(17, 16, 1, 0)});
    struct ghp_window tiles = WINDOW(2, 2, 2, 0); /* side by side: in whole registers, */
    add_window((struct ghp_local){.op = max, .n = 3, .c = 32, .h = 8, .w = 6, .window = tiles});
    /* in registers that reach over a pixel's end, */
    static const int64_t uneven[] = {1, 6, 15, 20};
    for (size_t i = 0; i < sizeof uneven / sizeof uneven[0]; i++)
        add_window((struct ghp_local){
            .op = max, .n = 3, .c = uneven[i], .h = 6, .w = 36, .window = tiles});
    for (size_t i = 0; i < sizeof uneven / sizeof uneven[0]; i++) /* even if windows overlap, */
        add_window((struct ghp_local){
            .op = max, .n = 3, .c = uneven[i], .h = 7, .w = 35, .window = WINDOW(3, 3, 2, 1)});
    tiles.r = tiles.stride_h = 3;
    add_window((struct ghp_local){.op = max, .n = 2, .c = 16, .h = 9, .w = 8, .window = tiles});
    tiles.pad_bottom = 1; /* and nearly so */
    add_window((struct ghp_local){.op = max, .n = 2, .c = 16, .h = 8, .w = 8, .window = tiles});
    add_window((struct ghp_local){
        .op = avg, .n = 2, .c = 6, .h = 9, .w = 8, .window = WINDOW(3, 3, 2, 1)});
    struct ghp_window padded = WINDOW(3, 3, 2, 1);
    padded.count_pad = true;
    add_window((struct ghp_local){.op = avg, .n = 2, .c = 6, .h = 9, .w = 8, .window = padded});
    add((struct ghp_local){
        .op = GHP_OP_GLOBAL_AVG_POOL, .n = 3, .c = 10, .h = 7, .w = 5, .p = 1, .q = 1});
}

static void add_dilated_pools(void)
{
    struct ghp_window dilated = WINDOW(3, 2, 2, 1); /* steps over padding, and uneven padding */
    dilated.dilation_h = 2;
    dilated.dilation_w = 3;
    dilated.pad_bottom = 2;
    add_window((struct ghp_local){
        .op = GHP_OP_MAX_POOL, .n = 2, .c = 5, .h = 9, .w = 8, .window = dilated});
    add_window((struct ghp_local){
        .op = GHP_OP_MAX_POOL, .n = 2, .c = 18, .h = 9, .w = 8, .window = dilated});
    add_window((struct ghp_local){
        .op = GHP_OP_AVG_POOL, .n = 2, .c = 5, .h = 9, .w = 8, .window = dilated});
    dilated.count_pad = true;
    add_window((struct ghp_local){
        .op = GHP_OP_AVG_POOL, .n = 2, .c = 5, .h = 9, .w = 8, .window = dilated});
}

/* Larger and smaller, to one pixel and from one, by whole factors and others. */
static void add_resizes(void)
{
    static const int64_t sizes[][4] = {
        {4, 3, 8, 9}, {7, 6, 5, 3}, {1, 5, 6, 1}, {5, 4, 1, 9}, {6, 31, 13, 17}};
    for (int way = 0; way < GHP_RESIZE_COUNT; way++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            add((struct ghp_local){.op = GHP_OP_RESIZE,
                                   .n = 2,
                                   .c = i % 2 == 0 ? 5 : 18,
                                   .h = sizes[i][0],
                                   .w = sizes[i][1],
                                   .p = sizes[i][2],
                                   .q = sizes[i][3],
                                   .resize = (enum ghp_resize)way});
}

static void add_transposed(void)
{
    /* side by side, overlapping, and with gaps; of groups */
    struct ghp_window window = WINDOW(2, 2, 2, 0);
    const struct ghp_local local = {
        .op = GHP_OP_CONV_TRANSPOSE, .n = 2, .c = 6, .h = 5, .w = 4, .k = 9};
    for (int i = 0; i < 6; i++) {
        struct ghp_local l = local;
        if (i == 1) window.r = window.s = 4;
        if (i == 2) window = (struct ghp_window)WINDOW(1, 2, 3, 0);
        if (i == 3) window = (struct ghp_window)WINDOW(3, 3, 1, 1);
        if (i == 1) window.pad_top = window.pad_left = window.pad_right = 1;
        if (i == 3) window.dilation_w = 2;
        if (i == 4) window.groups = 3;
        if (i == 5) window.groups = l.k = 6;
        l.window = window;
        l.p = (l.h - 1) * window.stride_h + (window.r - 1) * window.dilation_h + 1 -
              window.pad_top - window.pad_bottom;
        l.q = (l.w - 1) * window.stride_w + (window.s - 1) * window.dilation_w + 1 -
              window.pad_left - window.pad_right;
        add(l);
    }
}

static void add_activations(void)
{
    static const struct ghp_activation functions[] = {
        {GHP_FUNCTION_LEAKY_RELU, 0.125, 0.0}, {GHP_FUNCTION_SIGMOID, 0.0, 0.0},
        {GHP_FUNCTION_TANH, 0.0, 0.0},         {GHP_FUNCTION_ELU, 0.75, 0.0},
        {GHP_FUNCTION_CLIP, -0.25, 0.5},       {GHP_FUNCTION_AFFINE, -1.5, 0.25}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        add((struct ghp_local){
            .op = GHP_OP_ACTIVATION, .n = 3, .c = 7, .h = 5, .w = 3, .activation = functions[i]});
    static const struct ghp_pointwise curves[] = {{GHP_CURVE_POW, 2.0, 0.0},
                                                  {GHP_CURVE_POW, -1.0, 0.0},
                                                  {GHP_CURVE_POW, 0.5, 0.0},
                                                  {GHP_CURVE_POW, 3.0, 0.0},
                                                  {GHP_CURVE_SOFTPLUS, 0.0, 10.0}};
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++)
        add((struct ghp_local){
            .op = GHP_OP_POINTWISE, .n = 3, .c = 7, .h = 5, .w = 3, .pointwise = curves[i]});
}

static void add_gathers(void)
{
    /* channels in another order, rows backwards, columns in steps */
    add((struct ghp_local){
        .op = GHP_OP_VIEW,
        .n = 2,
        .c = 6,
        .h = 4,
        .w = 5,
        .k = 6,
        .p = 3,
        .q = 2,
        .view = {.n = 4, .offset = 16, .sizes = {2, 3, 3, 2}, .strides = {20, 40, -5, 3}}});
    /* one value of each channel, repeated: gradients meet */
    add((struct ghp_local){.op = GHP_OP_VIEW,
                           .n = 3,
                           .c = 5,
                           .k = 5,
                           .p = 3,
                           .q = 2,
                           .view = {.n = 3, .sizes = {5, 3, 2}, .strides = {1, 0, 0}}});
    add((struct ghp_local){.op = GHP_OP_PAD,
                           .n = 2,
                           .c = 3,
                           .h = 4,
                           .w = 5,
                           .k = 6,
                           .p = 5,
                           .q = 8,
                           .border = {{2, 0, 1}, {1, 1, 2}, GHP_FILL_CONSTANT, 0.75}});
    for (int fill = GHP_FILL_REFLECT; fill <= GHP_FILL_EDGE; fill++)
        add((struct ghp_local){.op = GHP_OP_PAD,
                               .n = 2,
                               .c = 3,
                               .h = 4,
                               .w = 5,
                               .k = 4,
                               .p = 9,
                               .q = 8,
                               .border = {{1, 3, 1}, {0, 2, 2}, (enum ghp_fill)fill, 0.0}});
}

static void add_norms(void)
{
    struct ghp_norm batch = {.epsilon = 1e-5, .momentum = 0.1};
    struct ghp_norm response = {.size = 5, .alpha = 0.5, .beta = 0.75, .k = 2.0};
    add((struct ghp_local){.op = GHP_OP_BATCH_NORM, .n = 5, .c = 6, .h = 4, .w = 3, .norm = batch});
    add((struct ghp_local){
        .op = GHP_OP_BATCH_NORM, .n = 3, .c = 33, .h = 5, .w = 5, .norm = batch});
    add((struct ghp_local){.op = GHP_OP_BATCH_NORM, .n = 7, .c = 20, .norm = batch});
    add((struct ghp_local){
        .op = GHP_OP_FROZEN_BATCH_NORM, .n = 3, .c = 33, .h = 5, .w = 5, .norm = batch});
    add((struct ghp_local){.op = GHP_OP_FROZEN_BATCH_NORM, .n = 7, .c = 32, .norm = batch});
    add((struct ghp_local){.op = GHP_OP_LRN, .n = 2, .c = 16, .h = 3, .w = 3, .norm = response});
    response.beta = 0.6;
    response.size = 3;
    add((struct ghp_local){.op = GHP_OP_LRN, .n = 2, .c = 2, .h = 3, .w = 4, .norm = response});
    response.size = 9;
    add((struct ghp_local){.op = GHP_OP_LRN, .n = 2, .c = 3, .h = 2, .w = 1, .norm = response});
}

/* Rows of fewer and of more channels than a register or a warp takes, and of more than a warp keeps; enough work for
 * two threads. */
static void add_position_norms(void)
{
    static const struct ghp_local shapes[] = {{.n = 2, .c = 16, .h = 3, .w = 3},
                                              {.n = 5, .c = 33, .h = 4, .w = 3},
                                              {.n = 7, .c = 200},
                                              {.n = 3, .c = 31, .h = 15, .w = 15},
                                              {.n = 9, .c = 768},
                                              {.n = 2, .c = 1600},
                                              {.n = 2, .c = 4096},
                                              {.n = 2, .c = 4104}};
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof shapes[0]; i++) {
        struct ghp_local local = shapes[i / 2];
        local.op = i % 2 == 0 ? GHP_OP_LAYER_NORM : GHP_OP_RMS_NORM;
        local.norm.epsilon = 1e-5;
        add(local);
    }
    /* the channels of each head by themselves */
    add((struct ghp_local){.op = GHP_OP_RMS_NORM,
                           .n = 5,
                           .c = 66,
                           .h = 17,
                           .heads.size = 33,
                           .norm = {.epsilon = 1e-5, .offset = 1}});
}

/* Heads that registers divide and others; more positions than turns are carried over; work for two threads. */
static void add_rotary(void)
{
    static const struct ghp_local shapes[] = {
        {.n = 2, .c = 12, .h = 5, .heads = {.size = 6, .base = 100.0}},
        {.n = 1, .c = 32, .h = 131, .heads = {.size = 32, .base = 1e4}},
        {.n = 2, .c = 128, .h = 200, .heads = {.size = 64, .base = 1e4}},
        /* a part of each head, and angles that are scaled */
        {.n = 2, .c = 30, .h = 9, .heads = {.size = 10, .turned = 4, .base = 100.0}},
        {.n = 1,
         .c = 24,
         .h = 70,
         .heads = {.size = 12, .base = 100.0, .factor = 4, .scaling = GHP_ROTARY_LINEAR}},
        {.n = 2,
         .c = 32,
         .h = 70,
         .heads = {.size = 32,
                   .base = 1e3,
                   .factor = 8,
                   .slow = 1,
                   .fast = 4,
                   .original = 32,
                   .scaling = GHP_ROTARY_LLAMA3}},
        {.n = 2,
         .c = 48,
         .h = 70,
         .heads = {.size = 24,
                   .turned = 20,
                   .base = 1e3,
                   .factor = 4,
                   .slow = 1,
                   .fast = 8,
                   .original = 64,
                   .amplitude = 1.25,
                   .truncate = true,
                   .scaling = GHP_ROTARY_YARN}}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct ghp_local local = shapes[i];
        local.op = GHP_OP_ROTARY;
        if (local.heads.turned == 0) local.heads.turned = local.heads.size;
        if (local.heads.amplitude == 0) local.heads.amplitude = 1;
        add(local);
    }
}

struct ghp_local op_case_attention(int64_t n, int64_t positions, struct ghp_heads heads)
{
    int64_t queries = heads.n * heads.size, theirs = heads.n_kv * heads.size;

    return op_case_complete((struct ghp_local){.op = GHP_OP_ATTENTION,
                                               .n = n,
                                               .c = queries + 2 * theirs,
                                               .h = positions,
                                               .k = queries,
                                               .n_inputs = 3,
                                               .slice = {queries, theirs, theirs},
                                               .heads = heads});
}

static void add_heads(int inputs, int64_t n, int64_t positions, int64_t keys,
                      struct ghp_heads heads)
{
    struct ghp_local local = op_case_attention(n, positions, heads);

    local.n_inputs = inputs;
    local.keys = keys;
    add(local);
}

struct attention_shape {
    int64_t n, positions, keys; /* keys: 0, as many as positions */
    struct ghp_heads heads;
};

/* One position, parts of a tile, whole tiles and more; heads of every number of vectors, and of more than a GPU's warp
 * takes at once; keys and values for one head of queries, for several, for all; fewer queries than keys. */
static void add_attention(void)
{
    static const struct attention_shape shapes[] = {
        {2, 1, 0, {.size = 4, .n = 2, .n_kv = 2, .causal = true}},
        {2, 7, 0, {.size = 3, .n = 4, .n_kv = 2, .causal = true}},
        {2, 7, 0, {.size = 3, .n = 4, .n_kv = 2}},
        {1, 96, 0, {.size = 8, .n = 2, .n_kv = 2, .causal = true}},
        {1, 101, 0, {.size = 16, .n = 2, .n_kv = 1}},
        {1, 203, 0, {.size = 5, .n = 2, .n_kv = 1, .causal = true}},
        {1, 40, 0, {.size = 64, .n = 1, .n_kv = 1, .causal = true}},
        {1, 13, 0, {.size = 80, .n = 2, .n_kv = 1}},
        /* windows in a tile, over two, and of more than there is; capped scores */
        {2, 9, 0, {.size = 4, .n = 2, .n_kv = 1, .causal = true, .window = 1}},
        {1, 101, 0, {.size = 3, .n = 1, .n_kv = 1, .causal = true, .window = 7}},
        {1,
         195,
         0,
         {.size = 2, .n = 1, .n_kv = 1, .causal = true, .window = 98, .softcap = 2, .scale = 3}},
        {1, 17, 0, {.size = 8, .n = 2, .n_kv = 1, .softcap = 0.5, .scale = 2}},
        {1, 21, 0, {.size = 8, .n = 2, .n_kv = 1, .causal = true, .window = 64}},
        {1, 19, 0, {.size = 130, .n = 1, .n_kv = 1, .causal = true}},
        /* weights that are dropped */
        {2, 7, 0, {.size = 3, .n = 4, .n_kv = 2, .causal = true, .dropout = 0.3}},
        {1, 101, 0, {.size = 5, .n = 2, .n_kv = 1, .softcap = 2, .dropout = 0.5}},
        {1, 70, 140, {.size = 4, .n = 2, .n_kv = 2, .causal = true, .window = 50, .dropout = 0.2}},
        /* divided positions: tiles of queries and of keys do not begin together */
        {2, 7, 14, {.size = 3, .n = 4, .n_kv = 2, .causal = true}},
        {1, 5, 20, {.size = 3, .n = 2, .n_kv = 1}},
        {1, 96, 192, {.size = 8, .n = 1, .n_kv = 1, .causal = true}},
        {1, 101, 303, {.size = 5, .n = 2, .n_kv = 1, .causal = true}},
        {1, 70, 140, {.size = 4, .n = 2, .n_kv = 2, .causal = true, .window = 50, .softcap = 2}},
        {1, 33, 231, {.size = 4, .n = 1, .n_kv = 1, .causal = true, .window = 120}},
        /* keys of another sequence, which are fewer */
        {2, 9, 1, {.size = 3, .n = 2, .n_kv = 1}},
        {1, 101, 35, {.size = 5, .n = 2, .n_kv = 2, .softcap = 2}}};
    static const struct attention_shape with_ids[] = {
        /* documents and padding, one of them, both; of divided positions; documents of several tiles */
        {2, 9, 0, {.size = 4, .n = 2, .n_kv = 1, .pad_token = 0, .end_token = -1}},
        {2, 13, 0, {.size = 3, .n = 2, .n_kv = 2, .causal = true, .pad_token = -1}},
        {2, 101, 0, {.size = 5, .n = 2, .n_kv = 1, .causal = true, .end_token = 1}},
        {1, 203, 0, {.size = 4, .n = 1, .n_kv = 1, .pad_token = -1, .end_token = 150}},
        {2, 5, 20, {.size = 3, .n = 2, .n_kv = 1, .pad_token = 2, .end_token = 5}},
        {1, 101, 303, {.size = 4, .n = 1, .n_kv = 1, .causal = true, .end_token = 90}},
        {1, 21, 0, {.size = 4, .n = 2, .n_kv = 1, .dropout = 0.4, .pad_token = 2, .end_token = 7}}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        add_heads(3, shapes[i].n, shapes[i].positions, shapes[i].keys, shapes[i].heads);
    for (size_t i = 0; i < sizeof with_ids / sizeof with_ids[0]; i++)
        add_heads(4, with_ids[i].n, with_ids[i].positions, with_ids[i].keys, with_ids[i].heads);
}

/* Windows of one pixel, of one row, more pixels or channels than a warp; seams both ways, one way, and through the only
 * window; each with a table of each sample and without. */
static void add_window_attention(void)
{
    static const struct {
        int64_t n, rows, heads, size;
        struct ghp_tiles tiles;
    } shapes[] = {{2, 2, 2, 3, {.h = 2, .w = 3, .across = 2, .shift_h = 1, .shift_w = 2}},
                  {1, 1, 3, 5, {.h = 1, .w = 1, .across = 4}},
                  {2, 1, 1, 4, {.h = 1, .w = 5, .across = 1, .shift_w = 3}},
                  {1, 1, 1, 2, {.h = 5, .w = 7, .across = 1, .shift_h = 3}},
                  {1, 1, 1, 33, {.h = 2, .w = 2, .across = 1}}};
    for (size_t i = 0; i < 2 * (sizeof shapes / sizeof shapes[0]); i++) {
        const struct ghp_tiles *tiles = &shapes[i / 2].tiles;
        int64_t heads = shapes[i / 2].heads;
        add((struct ghp_local){.op = GHP_OP_WINDOW_ATTENTION,
                               .n = shapes[i / 2].n,
                               .c = heads * shapes[i / 2].size,
                               .h = shapes[i / 2].rows * tiles->across * tiles->h * tiles->w,
                               .n_inputs = 3 + (int)(i % 2),
                               .heads = {.size = shapes[i / 2].size, .n = heads, .n_kv = heads},
                               .tiles = *tiles});
    }
}

/* Enough work for two threads to share. */
static void add_large(void)
{
    struct ghp_norm batch = {.epsilon = 1e-5, .momentum = 0.1};
    struct ghp_norm response = {.size = 5, .alpha = 0.5, .beta = 0.75, .k = 2.0};
    const struct ghp_local big = {.n = 3, .c = 31, .h = 15, .w = 15};
    static const enum ghp_op ops[] = {GHP_OP_BIAS,       GHP_OP_RELU,   GHP_OP_DROPOUT,
                                      GHP_OP_ADD,        GHP_OP_GELU,   GHP_OP_SILU,
                                      GHP_OP_HARD_SWISH, GHP_OP_LRN,    GHP_OP_GLOBAL_AVG_POOL,
                                      GHP_OP_BATCH_NORM, GHP_OP_FLATTEN};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct ghp_local local = big;
        local.op = ops[i];
        local.norm = ops[i] == GHP_OP_LRN ? response : batch;
        local.norm.ratio = 0.25;
        if (ops[i] == GHP_OP_ADD) local.n_inputs = 3;
        if (ops[i] == GHP_OP_GLOBAL_AVG_POOL || ops[i] == GHP_OP_FLATTEN) local.p = local.q = 1;
        if (ops[i] == GHP_OP_FLATTEN) local.k = local.c * local.h * local.w;
        add(local);
    }
    add_window((struct ghp_local){
        .op = GHP_OP_MAX_POOL, .n = 3, .c = 31, .h = 15, .w = 15, .window = WINDOW(3, 3, 2, 1)});
    add_window((struct ghp_local){
        .op = GHP_OP_AVG_POOL, .n = 3, .c = 31, .h = 15, .w = 15, .window = WINDOW(2, 2, 2, 0)});
    add((struct ghp_local){
        .op = GHP_OP_CONCAT, .n = 3, .c = 31, .h = 15, .w = 15, .n_inputs = 2, .slice = {11, 20}});
    add((struct ghp_local){.op = GHP_OP_SOFTMAX_CE, .n = 9, .c = 1000});
}

/* Each operation on one input, by what its attributes make of a small picture. */
static void add_drawn(void)
{
    char keys[512];
    for (int op = 0; op < GHP_OP_COUNT; op++)
        for (int i = 0; op_draw((enum ghp_op)op, i, keys, sizeof keys); i++) {
            const struct ghp_op_facts *facts = ghp_op_of((enum ghp_op)op);
            struct ghp_model model;
            if (facts->least_inputs > 1) break;
            if (op_draw_model((enum ghp_op)op, keys, &model) != GHP_OK) {
                fprintf(stderr, "%s\n", ghp_status_message());
                exit(1);
            }
            const struct ghp_layer *it = &model.layers[ghp_model_find(&model, "it")];
            struct ghp_local local = ghp_local_whole(it);
            local.n = 3;
            if (facts->is_loss) facts->localize(&model, it, 1, &local);
            /* where any size will do, one that no register divides */
            if (facts->shape == NULL && !facts->is_loss) {
                local.c = local.k = 7;
                local.h = local.p = 5;
                local.w = local.q = facts->takes == GHP_TAKES(SEQUENCE) ? 1 : 3;
            }
            add(local);
            ghp_model_release(&model);
        }
}

static void add_products(void)
{
    add((struct ghp_local){.op = GHP_OP_LINEAR, .n = 1, .c = 37, .k = 10});
    add((struct ghp_local){.op = GHP_OP_LINEAR, .n = 5, .c = 48, .k = 33});
    add((struct ghp_local){.op = GHP_OP_LINEAR, .n = 16, .c = 120, .k = 84});
    add((struct ghp_local){.op = GHP_OP_LINEAR, .n = 9, .c = 1, .k = 3});
    add((struct ghp_local){.op = GHP_OP_LINEAR, .n = 1, .c = 37, .h = 3, .k = 10});
    add((struct ghp_local){.op = GHP_OP_LINEAR, .n = 5, .c = 48, .h = 7, .k = 33});
    add((struct ghp_local){.op = GHP_OP_LINEAR, .n = 16, .c = 64, .h = 32, .k = 84});
    add((struct ghp_local){
        .op = GHP_OP_EMBEDDING, .n = 3, .c = 1, .h = 7, .k = 37, .vocabulary = 11});
    add((struct ghp_local){
        .op = GHP_OP_EMBEDDING, .n = 16, .c = 1, .h = 32, .k = 64, .vocabulary = 100});
    add((struct ghp_local){/* more places than a block has threads */
                           .op = GHP_OP_EMBEDDING,
                           .n = 5,
                           .c = 1,
                           .h = 230,
                           .k = 300,
                           .vocabulary = 600});
}

static void add_tables(void)
{
    add((struct ghp_local){.op = GHP_OP_POSITION_EMBEDDING, .n = 16, .c = 48, .h = 32});
    add((struct ghp_local){.op = GHP_OP_PREPEND, .n = 3, .c = 19, .h = 5, .p = 7, .q = 1});
    add((struct ghp_local){.op = GHP_OP_PARAMETER, .n = 3, .c = 2, .k = 19, .p = 5, .q = 7});
    add((struct ghp_local){.op = GHP_OP_BIAS, .n = 3, .c = 6, .h = 5, .w = 4});
    add((struct ghp_local){.op = GHP_OP_BIAS, .n = 9, .c = 40});
}

const struct ghp_local *op_case_all(int *n)
{
    if (n_cases == 0) {
        add_drawn();
        add_convolutions();
        add_pools();
        add_dilated_pools();
        add_resizes();
        add_transposed();
        add_activations();
        add_gathers();
        add_norms();
        add_position_norms();
        add_rotary();
        add_attention();
        add_window_attention();
        add_large();
        add_products();
        add_tables();
        add((struct ghp_local){.op = GHP_OP_DROPOUT, .n = 2, .c = 1500, .norm = {.ratio = 0.5}});
        add((struct ghp_local){.op = GHP_OP_ADD, .n = 2, .c = 5, .h = 4, .w = 3, .n_inputs = 2});
        add((struct ghp_local){.op = GHP_OP_ADD, .n = 2, .c = 5, .h = 4, .w = 3, .n_inputs = 4});
        add((struct ghp_local){.op = GHP_OP_MUL, .n = 2, .c = 5, .h = 4, .w = 3, .n_inputs = 2});
        add((struct ghp_local){.op = GHP_OP_CONCAT,
                               .n = 2,
                               .c = 12,
                               .h = 4,
                               .w = 3,
                               .n_inputs = 3,
                               .slice = {3, 8, 1}});
        add((struct ghp_local){
            .op = GHP_OP_FLATTEN, .n = 3, .c = 21, .h = 4, .w = 3, .k = 252, .p = 1, .q = 1});
        add((struct ghp_local){.op = GHP_OP_FLATTEN, .n = 3, .c = 21});
        add((struct ghp_local){
            .op = GHP_OP_RANDOM_FEATURES, .n = 5, .c = 37, .k = 10, .drawn = {0.25, 3}});
        add((struct ghp_local){
            .op = GHP_OP_RANDOM_FEATURES, .n = 2, .c = 300, .h = 3, .k = 5, .drawn = {0.05, 0}});
        op_case_losses(add);
    }
    *n = n_cases;
    return cases;
}
