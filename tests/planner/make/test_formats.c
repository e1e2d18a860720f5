/* tests/planner/make/test_formats.c - plans in blocks of channels: what a plan says is what its costs are of,
 * in the file and after it, layers split by channels among them; where stages hand over what would lie blocked, it is
 * made again without. ghp-test: timeout=120 */
#include "core/base/file.h"
#include "core/plan/space.h"
#include "planner/labelling/memory_format.h"
#include "planner/make/make.h"
#include "tests/check.h"

#include <unistd.h>

#define MODEL GHP_SOURCE_DIR "/models/vgg-a-32.json"

#define STAGES "1,conv3:1"

enum { WORKERS = 2, BATCH = 32 };

static struct ghp_profile profile, bare; /* bare: analytic models alone */
static double gain;                      /* of blocks, in each pass of a convolution */

/* A convolution is `gain` times as fast in blocks, and 30 % slower where one side has to be reordered; what only moves
 * memory takes as long in both. */
static enum ghp_status add_entry(void *context, const struct ghp_space_local *item)
{
    const struct ghp_local *l = &item->local;
    const bool conv = l->op == GHP_OP_CONV2D,
               apart = l->op == GHP_OP_RELU || l->op == GHP_OP_BIAS || l->op == GHP_OP_MAX_POOL ||
                       l->op == GHP_OP_FLATTEN,
               x = (conv || apart) && l->h * l->w > 1 && l->c % 16 == 0,
               y = (conv || apart) && l->p * l->q > 1 && l->k % 16 == 0;
    struct ghp_cost cost = {0};
    char key[GHP_KEY_BYTES];
    struct ghp_op_entry entry = {.key = key, .pass = item->pass, .algorithm = (char[]){"some"}};

    (void)context;
    ghp_local_key(l, key);
    CHECK_STATUS(ghp_profile_op(&bare, l, item->pass, &cost), GHP_OK);
    entry.seconds = cost.seconds;
    if (conv || x || y)
        entry.memory_formats[entry.n_memory_formats++] =
            (struct ghp_op_memory_format){false, false, cost.seconds, "plain"};
    if (x || y)
        entry.memory_formats[entry.n_memory_formats++] =
            (struct ghp_op_memory_format){x, y, cost.seconds / (conv ? gain : 1), "blocks"};
    for (int side = 0; side < 2 && conv && x && y; side++)
        entry.memory_formats[entry.n_memory_formats++] =
            (struct ghp_op_memory_format){side == 0, side == 1, cost.seconds * 1.3, "mixed"};
    return ghp_profile_add_op(&profile, &entry);
}

static void init_profile(struct ghp_profile *p)
{
    CHECK_STATUS(ghp_profile_init(p, "onednn", "fast", 4), GHP_OK);
    p->machine.nodes = 2;
    p->machine.intra = p->machine.inter = (struct ghp_link){1e-6, 1e11, 0};
    p->analytic = (struct ghp_analytic_model){.flops_per_s = 1e11, .memory_Bps = 1e10};
    p->copy = p->update[0] = (struct ghp_rate){1e-6, 1e12, 0, GHP_SOURCE_ANALYTIC};
    CHECK_STATUS(ghp_profile_finalize(p), GHP_OK);
}

static void open_profile(double gain_here)
{
    struct ghp_model model;

    gain = gain_here;
    init_profile(&bare);
    init_profile(&profile);
    CHECK_STATUS(ghp_model_load(MODEL, &model), GHP_OK);
    CHECK_STATUS(ghp_space_locals(&model, (struct ghp_problem){WORKERS, BATCH}, add_entry, NULL),
                 GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    ghp_model_release(&model);
    ghp_profile_release(&bare);
}

static struct ghp_plan_request request(const char *force)
{
    return (struct ghp_plan_request){.model_path = MODEL,
                                     .profile_path = "p.json",
                                     .profile = &profile,
                                     .problem = {WORKERS, BATCH},
                                     .time_limit_s = 30,
                                     .method.bucket_bytes = GHP_BUCKET_AUTO,
                                     .force = force,
                                     .simplify = true};
}

static int count(const struct ghp_plan *plan)
{
    int n = 0;

    for (int v = 0; v < plan->model.n_layers && plan->nchw16c != NULL; v++)
        n += plan->nchw16c[v];
    return n;
}

static void check_verifies(const struct ghp_plan *plan)
{
    CHECK_STATUS(ghp_plan_verify(plan, &profile), GHP_OK);
    CHECK_STATUS(ghp_plan_verify(plan, &plan->profile), GHP_OK);
}

/* Saved and loaded it is the same; with the key removed its costs are others; an unsound one is not saved. */
static void check_file(const struct ghp_plan *plan)
{
    char path[64];
    struct ghp_plan loaded;

    snprintf(path, sizeof path, "/tmp/ghp-formats-%d.json", (int)getpid());
    CHECK_STATUS(ghp_plan_save(path, plan), GHP_OK);
    if (!CHECK_STATUS(ghp_plan_load(path, &loaded), GHP_OK)) return;
    CHECK_EQ(
        memcmp(loaded.nchw16c, plan->nchw16c, (size_t)plan->model.n_layers * sizeof *plan->nchw16c),
        0);
    CHECK_STATUS(ghp_plan_verify(&loaded, &loaded.profile), GHP_OK);
    free(loaded.nchw16c);
    loaded.nchw16c = NULL;
    CHECK_STATUS(ghp_plan_verify(&loaded, &loaded.profile), GHP_ERR_INPUT);
    loaded.nchw16c = ghp_alloc((size_t)plan->model.n_layers, sizeof *loaded.nchw16c);
    loaded.nchw16c[0] = true; /* what is loaded is plain */
    CHECK_STATUS(ghp_plan_save(path, &loaded),
                 GHP_ERR_INTERNAL); /* what cannot be read is not written */
    CHECK_MESSAGE("cannot be blocked");
    ghp_plan_release(&loaded);
    unlink(path);
}

static void test_plan(void)
{
    struct ghp_plan_request w = request(NULL);
    struct ghp_plan fast = {0}, slow = {0};

    open_profile(2);
    CHECK_STATUS(ghp_plan_make(&w, &fast), GHP_OK);
    CHECK(count(&fast) > 10);
    CHECK(!fast.nchw16c[0]);
    check_verifies(&fast);
    check_file(&fast);
    ghp_profile_release(&profile);
    open_profile(0.5); /* blocks are slower */
    CHECK_STATUS(ghp_plan_make(&w, &slow), GHP_OK);
    CHECK(slow.nchw16c != NULL);
    CHECK_EQ(count(&slow), 0);
    check_verifies(&slow);
    CHECK(fast.predicted.step_s < slow.predicted.step_s);
    ghp_plan_release(&fast);
    ghp_plan_release(&slow);
    ghp_profile_release(&profile);
}

/* One convolution split by channels: it computes in blocks as all do. */
static void test_split(void)
{
    struct ghp_plan_request w = request("*=data,conv3=out:2");
    struct ghp_plan plan = {0};
    struct ghp_program program;
    int c, passes = 0;

    open_profile(2);
    if (!CHECK_STATUS(ghp_plan_make(&w, &plan), GHP_OK)) return;
    c = ghp_model_find(&plan.model, "conv3");
    struct ghp_lowering lowering = ghp_plan_lowering(&plan, &profile);
    CHECK(plan.splits[c].tp_size == 2 && plan.nchw16c != NULL);
    CHECK(plan.nchw16c[c] && plan.nchw16c[c - 1]);
    CHECK_STATUS(ghp_lower(&lowering, plan.splits, 0, &program), GHP_OK);
    for (int i = 0; i < program.n_instrs; i++) {
        const struct ghp_instr *instr = &program.instrs[i];
        struct ghp_cost blocks, plain;

        if (instr->kind != GHP_INSTR_COMPUTE || instr->layer != c) continue;
        CHECK(instr->nchw16c.x && instr->nchw16c.y);
        CHECK_STATUS(ghp_profile_cost(&profile, instr, WORKERS, &blocks), GHP_OK);
        CHECK_STATUS(ghp_profile_op(&profile, &instr->local, instr->pass, &plain), GHP_OK);
        CHECK_NEAR(blocks.seconds, plain.seconds / 2, 1e-9 * plain.seconds);
        passes++;
    }
    CHECK_EQ(passes, 3);
    check_verifies(&plan);
    ghp_program_release(&program);
    ghp_plan_release(&plan);
    ghp_profile_release(&profile);
}

/* Two stages: what the first hands over is plain, the rest as before. */
static void test_stages(void)
{
    struct ghp_plan_request w = request(NULL);
    struct ghp_plan plan = {0};
    int c;

    w.stages = STAGES;
    open_profile(2);
    if (!CHECK_STATUS(ghp_plan_make(&w, &plan), GHP_OK)) return;
    c = ghp_model_find(&plan.model, "conv3");
    struct ghp_lowering lowering = ghp_plan_lowering(&plan, &profile);
    CHECK(plan.staging.n == 2 && plan.staging.stage[1].first_layer == c && plan.nchw16c != NULL);
    CHECK(ghp_plan_formats_hold(&lowering, plan.nchw16c));
    CHECK(!plan.nchw16c[c - 1] && plan.nchw16c[c]);
    CHECK(count(&plan) > 3);
    check_verifies(&plan);
    ghp_plan_release(&plan);
    ghp_profile_release(&profile);
}

CHECK_TEST(formats)
{
    test_plan();
    test_split();
    test_stages();
    return check_end();
}
