/* core/sharding/index_table.c - see sharding/index_table.h. */
#include "core/sharding/index_table.h"

/* Place in memory of element (c, h, w). */
static int32_t place(const struct ghp_local *local, const int64_t at[3])
{
    return (int32_t)((at[1] * local->w + at[2]) * local->c + at[0]);
}

static int32_t view_source(const struct ghp_local *local, int64_t element)
{
    const struct ghp_view *view = &local->view;
    int64_t from = view->offset, plane = local->h * local->w;

    for (int i = view->n - 1; i >= 0; --i) {
        from += element % view->sizes[i] * view->strides[i];
        element /= view->sizes[i];
    }
    return place(local, (int64_t[3]){from / plane, from % plane / local->w, from % local->w});
}

static int32_t pad_source(const struct ghp_local *local, const int64_t out[3])
{
    const struct ghp_border *b = &local->border;
    const int64_t size[3] = {local->c, local->h, local->w};
    int64_t at[3];

    for (int i = 0; i < 3; ++i) {
        at[i] = out[i] - b->before[i];
        if (at[i] >= 0 && at[i] < size[i]) continue;
        if (b->fill == GHP_FILL_CONSTANT) return GHP_INDEX_MAP_NOTHING;
        if (b->fill == GHP_FILL_REFLECT)
            at[i] = at[i] < 0 ? -at[i] : 2 * (size[i] - 1) - at[i];
        else
            at[i] = at[i] < 0 ? 0 : size[i] - 1;
    }
    return place(local, at);
}

void ghp_index_map_table(const struct ghp_local *local, int32_t *table)
{
    bool view = local->op == GHP_OP_VIEW;

    for (int64_t k = 0; k < local->k; ++k)
        for (int64_t p = 0; p < local->p; ++p)
            for (int64_t q = 0; q < local->q; ++q)
                table[(p * local->q + q) * local->k + k] =
                    view ? view_source(local, (k * local->p + p) * local->q + q)
                         : pad_source(local, (int64_t[3]){k, p, q});
}
