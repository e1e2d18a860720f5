/* tests/core/plan/test_space.c - the space holds whatever any plan's whole program asks for, each thing once, and no
 * more. */
#include "core/plan/space.h"
#include "tests/check.h"

enum { MAX_ITEMS = 4096, MAX_LAYERS = 16, ASSIGNMENTS = 4000 };

/* A chain with a skip connection. */
static const char text[] =
    "{\"format\": \"ghp.model/1\", \"name\": \"tiny\", "
    "\"input\": {\"channels\": 4, \"height\": 4, \"width\": 4}, \"layers\": [\n"
    "{\"name\": \"conv1\", \"op\": \"conv2d\", \"channels\": 4, \"kernel\": 3, \"pad\": 1, "
    "\"bias\": false},\n"
    "{\"name\": \"relu1\", \"op\": \"relu\"},\n"
    "{\"name\": \"sum\", \"op\": \"add\", \"inputs\": [\"conv1\", \"relu1\"]},\n"
    "{\"name\": \"flat\", \"op\": \"flatten\"},\n"
    "{\"name\": \"fc\", \"op\": \"linear\", \"features\": 4},\n"
    "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}\n";

struct found {
    int n_locals, n_comms;
    struct ghp_space_local locals[MAX_ITEMS];
    struct ghp_space_comm comms[MAX_ITEMS];
    char keys[MAX_ITEMS][GHP_KEY_BYTES];
    bool local_used[MAX_ITEMS], comm_used[MAX_ITEMS];
};

static enum ghp_status take_local(void *context, const struct ghp_space_local *item)
{
    struct found *found = context;

    CHECK(found->n_locals < MAX_ITEMS);
    CHECK(item->uses >= 1);
    ghp_local_key(&item->local, found->keys[found->n_locals]);
    found->locals[found->n_locals++] = *item;
    return GHP_OK;
}

static enum ghp_status take_comm(void *context, const struct ghp_space_comm *item)
{
    struct found *found = context;

    CHECK(found->n_comms < MAX_ITEMS);
    CHECK(item->count >= 2 && item->stride >= 1 && item->bytes > 0);
    found->comms[found->n_comms++] = *item;
    return GHP_OK;
}

static int find_local(const struct found *found, const struct ghp_instr *instr)
{
    char wanted[GHP_KEY_BYTES];
    int at = -1;

    ghp_local_key(&instr->local, wanted);
    for (int i = 0; i < found->n_locals; i++) {
        if (found->locals[i].pass != instr->pass || strcmp(found->keys[i], wanted) != 0) continue;
        CHECK_EQ(at, -1); /* once only */
        at = i;
    }
    return at;
}

static int find_comm(const struct found *found, const struct ghp_instr *instr)
{
    int at = -1;

    for (int i = 0; i < found->n_comms; i++) {
        const struct ghp_space_comm *c = &found->comms[i];

        if (c->op != instr->comm || c->count != instr->ranks.count ||
            c->stride != instr->ranks.stride || c->bytes != instr->bytes)
            continue;
        CHECK_EQ(at, -1);
        at = i;
    }
    return at;
}

/* Marks what one whole program asks for; each of it must have been found. */
static void mark(struct found *found, const struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        int at = 0;

        if (instr->kind == GHP_INSTR_COMPUTE) {
            at = find_local(found, instr);
            CHECK(at >= 0);
            if (at >= 0) found->local_used[at] = true;
        }
        if (instr->comm != GHP_COMM_NONE && instr->ranks.count > 1) {
            at = find_comm(found, instr);
            CHECK(at >= 0);
            if (at >= 0) found->comm_used[at] = true;
        }
    }
}

/* Many assignments of splits to layers: of each edge's at most 81 pairs none is left out but by a miracle, and the
 * numbers are the same in every run. */
static void mark_many(struct found *found, const struct ghp_lowering *lowering)
{
    const struct ghp_model *model = lowering->model;
    static struct ghp_split choices[MAX_LAYERS][GHP_MAX_CHOICES];
    int n[MAX_LAYERS] = {0};
    struct ghp_split splits[MAX_LAYERS];
    uint64_t random = 1;

    CHECK(model->n_layers <= MAX_LAYERS);
    for (int l = 0; l < model->n_layers; l++)
        n[l] = ghp_split_choices(&model->layers[l], lowering->problem, choices[l], GHP_MAX_CHOICES);
    for (int i = 0; i < ASSIGNMENTS; i++) {
        struct ghp_program program = {0};

        for (int l = 0; l < model->n_layers; l++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            splits[l] = choices[l][(random >> 33) % (uint64_t)n[l]];
        }
        CHECK_STATUS(ghp_lower(lowering, splits, 0, &program), GHP_OK);
        mark(found, &program);
        ghp_program_release(&program);
    }
}

static void test_complete(int workers)
{
    static struct found found;
    struct ghp_model model = {0};
    struct ghp_lowering lowering = {.model = &model,
                                    .element_bytes = 4}; /* bucket_bytes 0: each layer alone */

    memset(&found, 0, sizeof found);
    lowering.problem = (struct ghp_problem){.workers = workers, .global_batch = 4};
    if (!CHECK_STATUS(ghp_model_parse(text, "tiny", &model), GHP_OK)) return;
    CHECK_STATUS(ghp_space_locals(&model, lowering.problem, take_local, &found), GHP_OK);
    CHECK_STATUS(ghp_space_comms(&model, lowering.problem, 4, take_comm, &found), GHP_OK);
    mark_many(&found, &lowering);
    CHECK(found.n_locals > 0);
    for (int i = 0; i < found.n_locals; i++)
        CHECK(found.local_used[i]);
    for (int i = 0; i < found.n_comms; i++)
        CHECK(found.comm_used[i]);
    CHECK_EQ(found.n_comms > 0, workers > 1);
    ghp_model_release(&model);
}

/* Nobody wants the gradient of the images. */
static void test_first_layer(void)
{
    static struct found found;
    struct ghp_model model = {0};
    struct ghp_problem problem = {.workers = 1, .global_batch = 4};

    memset(&found, 0, sizeof found);
    if (!CHECK_STATUS(ghp_model_parse(text, "tiny", &model), GHP_OK)) return;
    CHECK_STATUS(ghp_space_locals(&model, problem, take_local, &found), GHP_OK);
    for (int i = 0; i < found.n_locals; i++)
        CHECK(found.locals[i].layer != 1 || found.locals[i].pass != GHP_PASS_BACKWARD_DATA);
    ghp_model_release(&model);
}

static enum ghp_status stop(void *context, const struct ghp_space_local *item)
{
    (void)item;
    *(int *)context += 1;
    return GHP_FAIL(GHP_ERR_MISSING, "enough");
}

static void test_refusals(void)
{
    struct ghp_model model = {0};
    struct ghp_problem odd = {.workers = 3, .global_batch = 4},
                       one = {.workers = 1, .global_batch = 4};
    int visits = 0;

    if (!CHECK_STATUS(ghp_model_parse(text, "tiny", &model), GHP_OK)) return;
    CHECK_STATUS(ghp_space_locals(&model, odd, stop, &visits), GHP_ERR_INPUT);
    CHECK_EQ(visits, 0);
    CHECK_STATUS(ghp_space_locals(&model, one, stop, &visits), GHP_ERR_MISSING);
    CHECK_EQ(visits, 1);
    ghp_model_release(&model);
}

CHECK_TEST(space)
{
    test_complete(1);
    test_complete(2);
    test_complete(4);
    test_first_layer();
    test_refusals();
    return check_end();
}
