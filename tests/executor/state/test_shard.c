/* Parts of parameters and statistics: taken by each member and put back, they give the whole; where they lie, by index;
 * their sizes are those of the worker's buffers. Each kind of layer that has some is tried, under every split. */
#include "executor/state/shard.h"
#include "core/sharding/local.h"
#include "tests/check.h"

enum { MOST = 512 };

static const char text[] =
    "{\"format\":\"ghp.model/"
    "1\",\"name\":\"m\",\"input\":{\"channels\":4,\"height\":6,\"width\":6},"
    "\"layers\":["
    "{\"name\":\"conv\",\"op\":\"conv2d\",\"channels\":12,\"kernel\":[3,2]},"
    "{\"name\":\"grouped\",\"op\":\"conv2d\",\"channels\":8,\"kernel\":[1,2],\"groups\":4},"
    "{\"name\":\"norm\",\"op\":\"batch_norm\"},"
    "{\"name\":\"each\",\"op\":\"layer_norm\"},"
    "{\"name\":\"flat\",\"op\":\"flatten\"},"
    "{\"name\":\"one\",\"op\":\"linear\",\"features\":1},"
    "{\"name\":\"more\",\"op\":\"linear\",\"features\":8},"
    "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}";

static const char sequence[] =
    "{\"format\":\"ghp.model/1\",\"name\":\"s\",\"input\":{\"channels\":4,\"positions\":12},"
    "\"layers\":[{\"name\":\"place\",\"op\":\"position_embedding\"},"
    "{\"name\":\"norm\",\"op\":\"layer_norm\"},"
    "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}";

/* A vocabulary that most numbers of workers do not divide. */
static const char tokens[] =
    "{\"format\":\"ghp.model/1\",\"name\":\"t\",\"input\":{\"positions\":12,\"vocabulary\":7},"
    "\"layers\":[{\"name\":\"e\",\"op\":\"embedding\",\"channels\":12},"
    "{\"name\":\"o\",\"op\":\"linear\",\"features\":7},"
    "{\"name\":\"l\",\"op\":\"softmax_cross_entropy\"}]}";

/* The dimension that a split divides, -1: none. */
static int divided_by(enum ghp_split_kind split, const struct ghp_op_param *kind)
{
    enum ghp_dim by = split == GHP_SPLIT_POSITION ? GHP_DIM_POSITION : GHP_DIM_CHANNEL;

    if (split == GHP_SPLIT_DATA || split == GHP_SPLIT_FULL) return -1;
    if (split == GHP_SPLIT_IN) return 1;
    if (split == GHP_SPLIT_OUT && kind->dims[0] == GHP_DIM_VOCABULARY) return 1;
    if (kind->dims[0] != GHP_DIM_POSITION && split != GHP_SPLIT_POSITION) return 0;
    for (int i = 0; i < GHP_MAX_DIMS; i++)
        if (kind->dims[i] == by) return i;
    return -1;
}

static int64_t index_at(const struct ghp_param *whole, int64_t element, int dim)
{
    for (int i = whole->n_dims - 1; i > dim; i--)
        element /= whole->dims[i];
    return element % whole->dims[dim];
}

static void check_tensor(const struct ghp_op_param *kind, const struct ghp_local *local,
                         struct ghp_split split, const struct ghp_param *tensor, int workers)
{
    double whole[MOST], again[MOST] = {0}, part[MOST];
    int dim = divided_by(split.kind, kind);
    bool divides = dim >= 0;
    int64_t held = 0;

    if (!CHECK(tensor->elements <= MOST)) return;
    for (int i = 0; i < MOST; i++)
        whole[i] = i + 1;
    for (int number = 0; number < workers; number++) {
        struct ghp_shard shard = ghp_shard_of(kind, local, split, number, tensor);
        int64_t n = ghp_shard_elements(shard), sizes = 1;

        CHECK_EQ(shard.tp_size, divides ? split.tp_size : 1);
        for (int i = 0; i < tensor->n_dims; i++)
            sizes *= shard.dims[i];
        CHECK_EQ(sizes, n);
        ghp_shard_take(shard, 8, whole, part);
        ghp_shard_put(shard, 8, part, again);
        held += shard.rows * shard.valid;
        for (int64_t i = 0; i < n && divides; i++) {
            if (i % shard.run >= shard.valid)
                CHECK_EQ((int64_t)part[i], 0);
            else
                CHECK_EQ(index_at(tensor, (int64_t)part[i] - 1, dim) /
                             ghp_part_of(tensor->dims[dim], split.tp_size),
                         number % split.tp_size);
        }
    }
    CHECK(memcmp(whole, again, (size_t)tensor->elements * sizeof *whole) == 0);
    CHECK_EQ(held * (divides ? split.tp_size : 1), tensor->elements * workers);
}

static int check_layer(const struct ghp_model *model, int layer, struct ghp_problem problem)
{
    const struct ghp_layer *l = &model->layers[layer];
    const struct ghp_op_facts *facts = ghp_op_of(l->op);
    struct ghp_split splits[GHP_MAX_CHOICES];
    int n = ghp_split_choices(l, problem, splits, GHP_MAX_CHOICES), tensors = 0;

    for (int i = 0; i < n; i++) {
        struct ghp_local local = ghp_local_of(model, layer, splits[i], problem);

        for (int p = 0; p < l->n_params; p++) {
            struct ghp_shard shard =
                ghp_shard_of(&facts->params[p], &local, splits[i], 0, &l->params[p]);

            CHECK_EQ(ghp_shard_elements(shard), ghp_local_param_elements(&local, p));
            check_tensor(&facts->params[p], &local, splits[i], &l->params[p], problem.workers);
        }
        for (int s = 0; s < l->n_states; s++)
            check_tensor(&facts->states[s], &local, splits[i], &l->states[s], problem.workers);
        tensors += l->n_params + l->n_states;
    }
    return tensors;
}

static int check_model(const char *description)
{
    struct ghp_model model;
    int tensors = 0;

    if (!CHECK_STATUS(ghp_model_parse(description, "m", &model), GHP_OK)) return 0;
    for (int workers = 1; workers <= 4; workers++)
        for (int v = 0; v < model.n_layers; v++)
            tensors += check_layer(&model, v, (struct ghp_problem){workers, 12});
    ghp_model_release(&model);
    return tensors;
}

CHECK_TEST(shard)
{
    CHECK(check_model(text) > 100);
    CHECK(check_model(sequence) > 20);
    CHECK(check_model(tokens) > 20);
    return check_end();
}
