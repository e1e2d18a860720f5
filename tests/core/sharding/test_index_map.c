/* tests/core/sharding/test_index_map.c - views and pads: which are refused, which keep channels apart, and their
 * tables. */
#include "core/sharding/index_table.h"
#include "tests/check.h"

#include <string.h>

static enum ghp_status check_shape(struct ghp_layer *layer)
{
    return ghp_op_of(layer->op)->shape(NULL, layer);
}

static bool keeps_channels(const struct ghp_layer *layer)
{
    return ghp_op_of(layer->op)->divides(layer, GHP_SPLIT_CHANNEL) > 0;
}

static struct ghp_layer view_of(int n, const int64_t *sizes, const int64_t *strides, int64_t offset)
{
    struct ghp_layer layer = {
        .name = (char *)(uintptr_t) "v", .op = GHP_OP_VIEW, .in = ghp_shape_image(4, 2, 3)};

    layer.view = (struct ghp_view){.n = n, .offset = offset};
    memcpy(layer.view.sizes, sizes, (size_t)n * sizeof *sizes);
    memcpy(layer.view.strides, strides, (size_t)n * sizeof *strides);
    layer.out = ghp_shape_image(4, 2, 3);
    return layer;
}

static void check_views(void)
{
    const int64_t sizes[] = {4, 2, 3}, same[] = {6, 3, 1}, swapped[] = {1, 12, 4};
    struct ghp_layer layer = view_of(3, sizes, same, 0);

    CHECK_STATUS(check_shape(&layer), GHP_OK);
    CHECK(keeps_channels(&layer));
    layer.view.offset = 1; /* one too far */
    CHECK_STATUS(check_shape(&layer), GHP_ERR_INPUT);
    CHECK_MESSAGE("reaches beyond the 24 elements");
    layer.view.offset = -1;
    CHECK_STATUS(check_shape(&layer), GHP_ERR_INPUT);
    layer = view_of(3, sizes, swapped, 0);
    CHECK_STATUS(check_shape(&layer), GHP_OK);
    CHECK(!keeps_channels(&layer));
    layer.view.strides[0] = INT64_MAX;
    CHECK_STATUS(check_shape(&layer), GHP_ERR_INPUT);
    layer = view_of(2, (const int64_t[]){4, 6}, (const int64_t[]){6, 1}, 0); /* rows not apart */
    CHECK_STATUS(check_shape(&layer), GHP_ERR_INPUT);
    CHECK_MESSAGE("do not multiply to");
    layer = view_of(3, (const int64_t[]){4, 0, 3}, same, 0);
    CHECK_STATUS(check_shape(&layer), GHP_ERR_INPUT);
    layer = view_of(3, sizes, (const int64_t[]){6, -3, 1}, 3); /* rows backwards */
    CHECK(keeps_channels(&layer));
    layer = view_of(3, sizes, (const int64_t[]){6, 3, 1}, 0);
    layer.in.c = 8; /* half of the channels */
    CHECK(!keeps_channels(&layer));
}

static void check_pads(void)
{
    struct ghp_layer layer = {
        .name = (char *)(uintptr_t) "p", .op = GHP_OP_PAD, .in = ghp_shape_image(2, 3, 3)};

    layer.border =
        (struct ghp_border){.before = {0, 2, 1}, .after = {0, 0, 1}, .fill = GHP_FILL_REFLECT};
    CHECK_STATUS(check_shape(&layer), GHP_OK);
    CHECK(layer.out.c == 2 && layer.out.h == 5 && layer.out.w == 5);
    CHECK(keeps_channels(&layer));
    layer.border.before[1] = 3; /* more than there is to mirror */
    CHECK_STATUS(check_shape(&layer), GHP_ERR_INPUT);
    CHECK_MESSAGE("use 0 to 2");
    layer.border.fill = GHP_FILL_EDGE;
    CHECK_STATUS(check_shape(&layer), GHP_OK);
    layer.border.before[0] = 1;
    CHECK(!keeps_channels(&layer));
    layer.border.after[2] = INT64_MAX;
    CHECK_STATUS(check_shape(&layer), GHP_ERR_INPUT);
}

/* Two channels of 1x2 pixels: [c][w] in the attributes, [w][c] in memory. */
static void check_table(void)
{
    struct ghp_local local = {.op = GHP_OP_VIEW,
                              .n = 1,
                              .c = 2,
                              .h = 1,
                              .w = 2,
                              .k = 4,
                              .p = 1,
                              .q = 1,
                              .view = {.n = 1, .offset = 3, .sizes = {4}, .strides = {-1}}};
    struct ghp_local pad = {.op = GHP_OP_PAD,
                            .n = 1,
                            .c = 2,
                            .h = 1,
                            .w = 2,
                            .k = 2,
                            .p = 1,
                            .q = 3,
                            .border = {.before = {0, 0, 1}}};
    int32_t table[6];

    ghp_index_map_table(&local, 1, table); /* c1w1, c1w0, c0w1, c0w0 */
    CHECK(table[0] == 3 && table[1] == 1 && table[2] == 2 && table[3] == 0);
    ghp_index_map_table(&pad, 1, table);
    CHECK(table[0] == GHP_INDEX_MAP_NOTHING && table[1] == GHP_INDEX_MAP_NOTHING);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(table[2 + i], i);
}

/* A table of runs says what the table of all elements says. */
static void check_runs_of(const struct ghp_local *local, int64_t wanted)
{
    enum { MOST = 4 * 6 * 6 };
    int32_t all[MOST], starts[MOST];
    int64_t run = ghp_index_map_run(local), n = local->k * local->p * local->q;

    CHECK_EQ(run, wanted);
    ghp_index_map_table(local, 1, all);
    ghp_index_map_table(local, run, starts);
    for (int64_t i = 0; i < n; i++) {
        int64_t start = starts[i / run];
        CHECK_EQ(all[i], start == GHP_INDEX_MAP_NOTHING ? start : start + i % run);
    }
}

static void check_runs(void)
{
    static const struct {
        int64_t c, h, w, k, p, q, run;
        struct ghp_view view;
    } views[] = {
        {4, 1, 1, 4, 2, 3, 4, {.n = 3, .sizes = {4, 2, 3}, .strides = {1, 0, 0}}}, /* repeated */
        {4, 2, 3, 4, 3, 2, 4, {.n = 3, .sizes = {4, 3, 2}, .strides = {6, 1, 3}}}, /* turned */
        {4, 2, 3, 4, 2, 3, 2, {.n = 4, .sizes = {2, 2, 2, 3}, .strides = {12, 6, 3, 1}}},
        {4, 2, 3, 2, 2, 3, 2, {.n = 3, .offset = 12, .sizes = {2, 2, 3}, .strides = {6, 3, 1}}},
        {4, 2, 3, 4, 2, 3, 1, {.n = 3, .offset = 18, .sizes = {4, 2, 3}, .strides = {-6, 3, 1}}},
        {4, 2, 3, 3, 2, 4, 1, {.n = 3, .sizes = {3, 2, 4}, .strides = {1, 3, 6}}},
        {4, 2, 3, 4, 1, 1, 1, {.n = 2, .sizes = {4, 1}, .strides = {0, 0}}},
        {4, 2, 3, 1, 2, 3, 1, {.n = 2, .sizes = {2, 3}, .strides = {3, 1}}}};
    struct ghp_local pad = {.op = GHP_OP_PAD, .n = 1, .c = 3, .h = 2, .w = 2, .k = 3, .p = 3, .q = 4};

    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        struct ghp_local local = {.op = GHP_OP_VIEW,
                                  .n = 1,
                                  .c = views[i].c,
                                  .h = views[i].h,
                                  .w = views[i].w,
                                  .k = views[i].k,
                                  .p = views[i].p,
                                  .q = views[i].q,
                                  .view = views[i].view};
        check_runs_of(&local, views[i].run);
    }
    pad.border = (struct ghp_border){.before = {0, 1, 1}, .after = {0, 0, 1}};
    check_runs_of(&pad, 3);
    pad.k = 4;
    pad.border.before[0] = 1;
    check_runs_of(&pad, 1);
}

CHECK_TEST(index_map)
{
    check_runs();
    check_views();
    check_pads();
    check_table();
    return check_end();
}
