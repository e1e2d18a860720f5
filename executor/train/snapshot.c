/* executor/train/snapshot.c - see snapshot.h. */
#include "executor/train/snapshot.h"

#include "core/model/precision.h"
#include "executor/state/parameters.h"

#include <math.h>
#include <stdlib.h>

static enum ghp_status keep_values(int n, const struct ghp_tensors_list *list, double ***values)
{
    *values = ghp_alloc((size_t)n + 1, sizeof **values);
    if (*values == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < n; i++) {
        (*values)[i] = ghp_alloc((size_t)list->items[i].param->elements, sizeof(double));
        if ((*values)[i] == NULL) return GHP_NO_MEMORY();
        for (int64_t e = 0; e < list->items[i].param->elements; e++)
            (*values)[i][e] =
                NAN; /* what is never filled in differs; and the memory is resident before any is counted */
    }
    return GHP_OK;
}

enum ghp_status ghp_snapshot_init(const struct ghp_model *model, bool keeps, struct ghp_snapshot *s)
{
    enum ghp_status status = GHP_OK;

    *s = (struct ghp_snapshot){.keeps = keeps};
    GHP_TRY_GOTO(status, ghp_tensors_list_init(model, &s->list), fail);
    if (!keeps) return GHP_OK;
    GHP_TRY_GOTO(status, keep_values(s->list.n, &s->list, &s->weights), fail);
    GHP_TRY_GOTO(status, keep_values(s->list.n_trained, &s->list, &s->gradients), fail);
    return GHP_OK;
fail:
    ghp_snapshot_release(s);
    return status;
}

void ghp_snapshot_release(struct ghp_snapshot *s)
{
    if (s == NULL) return;
    for (int i = 0; s->weights != NULL && i < s->list.n; i++)
        free(s->weights[i]);
    for (int i = 0; s->gradients != NULL && i < s->list.n_trained; i++)
        free(s->gradients[i]);
    free(s->weights);
    free(s->gradients);
    ghp_tensors_release(&s->list);
    *s = (struct ghp_snapshot){0};
}

static enum ghp_status gather_one(struct ghp_worker *worker, const struct ghp_tensor *t,
                                  enum ghp_buffer_kind buffer_kind, double *keep)
{
    int element_bytes = ghp_parameter_bytes(ghp_worker_program(worker)->element_bytes);
    int64_t n = t->param->elements;
    void *whole = ghp_alloc((size_t)n, (size_t)element_bytes);
    enum ghp_status status;

    if (whole == NULL) return GHP_NO_MEMORY();
    status = ghp_parameters_gather(worker, t, buffer_kind, whole);
    for (int64_t i = 0; status == GHP_OK && keep != NULL && i < n; i++)
        keep[i] =
            element_bytes == 8 ? ((const double *)whole)[i] : (double)((const float *)whole)[i];
    free(whole);
    return status;
}

enum ghp_status ghp_snapshot_gradients(struct ghp_snapshot *s, struct ghp_worker *worker)
{
    for (int i = 0; i < s->list.n_trained; i++)
        GHP_TRY(gather_one(worker, &s->list.items[i], GHP_BUFFER_WEIGHT_GRADIENT,
                           s->keeps ? s->gradients[i] : NULL));
    return GHP_OK;
}

enum ghp_status ghp_snapshot_weights(struct ghp_snapshot *s, struct ghp_worker *worker)
{
    s->optimizer = ghp_worker_program(worker)->optimizer;
    GHP_TRY(ghp_worker_take_mean(worker));
    for (int i = 0; i < s->list.n; i++) {
        const struct ghp_tensor *t = &s->list.items[i];

        GHP_TRY(gather_one(worker, t, ghp_tensor_buffer_kind(t), s->keeps ? s->weights[i] : NULL));
    }
    return ghp_worker_return_mean(worker);
}
