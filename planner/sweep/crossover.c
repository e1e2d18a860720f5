/* planner/sweep/crossover.c - see sweep/crossover.h. */
#include "planner/sweep/crossover.h"

#include "core/base/file.h"
#include "planner/make/sync_choice.h"

#include <inttypes.h>

enum { MOST_PLANS = 3 * GHP_CROSSOVER_DOUBLINGS };

static const double near_enough = 1.0 / 32; /* relative: the change is known as well as this */

struct seen { /* what the plan of a batch splits */
    int64_t batch;
    bool splits[GHP_PART_COUNT];
};

struct finder {
    const struct ghp_plan_request *request;
    struct ghp_crossovers *found;
    int n;
    struct seen seen[MOST_PLANS];
};

static void note(const struct ghp_plan *plan, struct finder *f, struct seen *seen)
{
    f->found->tokens = ghp_model_tokens(&plan->model);
    for (int v = 0; v < plan->model.n_layers; v++) {
        const struct ghp_layer *l = &plan->model.layers[v];
        bool end = ghp_layer_is_end(&plan->model, l);

        if (plan->splits[v].kind == GHP_SPLIT_DATA) continue;
        if (end) seen->splits[GHP_PART_ENDS] = true;
        if (!end && (l->op == GHP_OP_LINEAR || l->op == GHP_OP_ATTENTION))
            seen->splits[GHP_PART_BLOCKS] = true;
    }
}

/* Whether the best plan of a batch splits the part; made once. */
static enum ghp_status look(struct finder *f, int64_t batch, enum ghp_part part, bool *splits)
{
    struct ghp_plan_request request = *f->request;
    struct ghp_plan plan = {0};
    enum ghp_status status;
    int i = 0;

    while (i < f->n && f->seen[i].batch != batch)
        i++;
    if (i == f->n) {
        GHP_ASSERT(f->n < MOST_PLANS);
        f->seen[f->n++] = (struct seen){.batch = batch};
        request.problem.global_batch = batch;
        request.decision_only = true;
        request.simplify = false; /* which is faster is asked for */
        request.time_limit_s /= MOST_PLANS;
        status = ghp_plan_make_synced(&request, &plan);
        if (status == GHP_OK) note(&plan, f, &f->seen[i]);
        ghp_plan_release(&plan);
        if (status != GHP_OK && status != GHP_ERR_INFEASIBLE && status != GHP_ERR_MISSING)
            return status;
    }
    *splits = f->seen[i].splits[part];
    return GHP_OK;
}

static enum ghp_status find_part(struct finder *f, enum ghp_part part)
{
    int64_t workers = f->request->problem.workers, low = 0, high = 0;
    bool splits;

    for (int k = 0; k < GHP_CROSSOVER_DOUBLINGS; k++) {
        GHP_TRY(look(f, workers << k, part, &splits));
        if (splits) low = workers << k;
        if (splits) high = 0;
        if (!splits && high == 0) high = workers << k;
    }
    while (low > 0 && high > 0 && high - low > workers &&
           (double)(high - low) > near_enough * (double)high) {
        int64_t middle = low + (high - low) / workers / 2 * workers;

        GHP_TRY(look(f, middle, part, &splits));
        *(splits ? &low : &high) = middle;
    }
    f->found->of[part].split = low;
    f->found->of[part].data = high;
    return GHP_OK;
}

enum ghp_status ghp_crossovers_find(const struct ghp_plan_request *request,
                                    struct ghp_crossovers *crossovers)
{
    struct finder f = {.request = request, .found = crossovers};

    *crossovers = (struct ghp_crossovers){0};
    for (int part = 0; part < GHP_PART_COUNT; part++)
        GHP_TRY(find_part(&f, (enum ghp_part)part));
    if (crossovers->tokens > 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE, "--crossovers counts tokens, and no batch of this network that "
                                   "can be planned has any; leave it out");
}

enum ghp_status ghp_crossovers_print(const struct ghp_crossovers *c, FILE *out)
{
    static const char *const names[] = {"blocks", "embedding and output layer"};

    for (int part = 0; part < GHP_PART_COUNT; part++) {
        int64_t split = c->of[part].split * c->tokens, data = c->of[part].data * c->tokens;

        if (split == 0)
            fprintf(out, "# %s: by data whatever the batch\n", names[part]);
        else if (data == 0)
            fprintf(out, "# %s: split up to %" PRId64 " tokens a step, and no end in sight\n",
                    names[part], split);
        else
            fprintf(out,
                    "# %s: split up to %" PRId64 " tokens a step, by data from %" PRId64 " on\n",
                    names[part], split, data);
    }
    return ghp_file_flush(out, "the table");
}
