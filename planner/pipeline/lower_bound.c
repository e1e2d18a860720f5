/* planner/pipeline/lower_bound.c - see pipeline/lower_bound.h. */
#include "planner/pipeline/lower_bound.h"

#include <math.h>
#include <stdlib.h>

static bool in_line(const struct ghp_instr *instr)
{
    return instr->stream == GHP_STREAM_COMPUTE && !ghp_instr_sends(instr);
}

/* The least over a layer's splits, updates apart. */
static enum ghp_status least_of(const struct ghp_floors *floors, const struct ghp_lowering *how,
                                int layer, int degrees, double least[2])
{
    struct ghp_split splits[GHP_MAX_CHOICES];
    struct ghp_program piece = {0};
    enum ghp_status status = GHP_OK;
    int n = ghp_split_choices(&how->model->layers[layer], how->extent, splits, GHP_MAX_CHOICES);

    least[0] = least[1] = INFINITY;
    for (int i = 0; i < n && status == GHP_OK; ++i) {
        double sum[2] = {0, 0};

        if (degrees % splits[i].degree != 0) continue;
        piece.n_instrs = 0;
        status = ghp_lower_layer(how, layer, splits[i], 0, &piece);
        for (int k = 0; k < piece.n_instrs && status == GHP_OK; ++k) {
            struct ghp_price price;

            if (!in_line(&piece.instrs[k])) continue;
            status =
                ghp_profile_price(floors->profile, &piece.instrs[k], how->extent.workers, &price);
            /* where they are least: in a stage of one worker, or run by all at once */
            price.seconds -= fmax(price.company_s, 0);
            if (status == GHP_OK) sum[piece.instrs[k].kind == GHP_INSTR_UPDATE] += price.seconds;
        }
        least[0] = fmin(least[0], sum[0]);
        least[1] = fmin(least[1], sum[1]);
    }
    ghp_program_release(&piece);
    return status;
}

static enum ghp_status fill_floor(const struct ghp_floors *floors, struct ghp_floor *f)
{
    struct ghp_lowering how = *floors->how;
    int n = how.model->n_layers, workers = f->workers > 0 ? f->workers : f->degrees;

    how.extent = (struct ghp_extent){.workers = workers, .global_batch = f->share * workers};
    f->work = ghp_alloc(2 * ((size_t)n + 1), sizeof *f->work);
    if (f->work == NULL) return GHP_NO_MEMORY();
    f->update = f->work + n + 1;
    for (int v = 0; v < n; ++v) {
        double least[2];

        GHP_TRY(least_of(floors, &how, v, f->degrees, least));
        f->work[v + 1] = f->work[v] + least[0];
        f->update[v + 1] = f->update[v] + least[1];
    }
    return GHP_OK;
}

enum ghp_status ghp_floor_find(struct ghp_floors *floors, int64_t share, int degrees, int workers,
                               const struct ghp_floor **floor)
{
    size_t slot;
    struct ghp_floor *f;

    if (!floors->ghosts) workers = 0;
    slot = (size_t)(share * 31 + degrees * 7 + workers) & (GHP_FLOORS - 1);
    for (f = floors->of[slot]; f != NULL; f = f->next)
        if (f->share == share && f->degrees == degrees && f->workers == workers) break;
    *floor = f;
    if (f != NULL) return GHP_OK;
    f = ghp_alloc(1, sizeof *f);
    if (f == NULL) return GHP_NO_MEMORY();
    *f = (struct ghp_floor){
        .share = share, .degrees = degrees, .workers = workers, .next = floors->of[slot]};
    floors->of[slot] = f;
    *floor = f;
    return fill_floor(floors, f);
}

void ghp_floors_release(struct ghp_floors *floors)
{
    for (int i = 0; i < GHP_FLOORS; ++i)
        while (floors->of[i] != NULL) {
            struct ghp_floor *f = floors->of[i];

            floors->of[i] = f->next;
            free(f->work);
            free(f);
        }
}
