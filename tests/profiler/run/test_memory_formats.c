/* tests/profiler/run/test_memory_formats.c - in which pairs of formats operations are measured: those of
 * layers split by channels too, wherever their slices are whole blocks; nothing next to a local response norm; nothing
 * without a choice; a tied layer by what goes with its owner's split. */
#include "profiler/run/run_private.h"
#include "tests/check.h"

#include <string.h>

static const char text[] =
    "{\"format\": \"ghp.model/1\", \"name\": \"tiny\", "
    "\"input\": {\"channels\": 3, \"height\": 8, \"width\": 8}, \"layers\": [\n"
    "{\"name\": \"a\", \"op\": \"conv2d\", \"channels\": 64, \"kernel\": 3, \"pad\": 1},\n"
    "{\"name\": \"batch\", \"op\": \"batch_norm\"},\n"
    "{\"name\": \"relu\", \"op\": \"relu\"},\n"
    "{\"name\": \"b\", \"op\": \"conv2d\", \"channels\": 128, \"kernel\": 3, \"pad\": 1},\n"
    "{\"name\": \"pool\", \"op\": \"max_pool\", \"kernel\": 2},\n"
    "{\"name\": \"c\", \"op\": \"conv2d\", \"channels\": 48, \"kernel\": 3, \"pad\": 1},\n"
    "{\"name\": \"norm\", \"op\": \"lrn\", \"size\": 5},\n"
    "{\"name\": \"flat\", \"op\": \"flatten\"},\n"
    "{\"name\": \"fc\", \"op\": \"linear\", \"features\": 16},\n"
    "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}\n";

static const char tied_text[] = "{\"format\": \"ghp.model/1\", \"name\": \"tied\", "
                                "\"input\": {\"vocabulary\": 64, \"positions\": 4}, \"layers\": [\n"
                                "{\"name\": \"table\", \"op\": \"embedding\", \"channels\": 32},\n"
                                "{\"name\": \"fc\", \"op\": \"linear\", \"features\": 32},\n"
                                "{\"name\": \"head\", \"op\": \"linear\", \"features\": 64, "
                                "\"bias\": false, \"tied\": \"table\"},\n"
                                "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}\n";

enum { WORKERS = 8 };

static struct ghp_model model;

/* The pairs of an operation's forward pass by its channels, as text, in their order: "xy", "-y", "x-", "--". */
static const char *pairs(const struct ghp_worklist *worklist, enum ghp_op op, int64_t c, int64_t k)
{
    static char found[64];

    found[0] = '\0';
    for (int i = 0; i < worklist->n_ops; i++) {
        const struct ghp_worklist_op *o = &worklist->ops[i];

        if (o->local.op != op || o->pass != GHP_PASS_FORWARD || o->local.c != c || o->local.k != k)
            continue;
        found[0] = '\0';
        for (int w = 0; w < o->n_variants; w++) {
            size_t used = strlen(found);

            snprintf(found + used, sizeof found - used, "%s%c%c", used > 0 ? " " : "",
                     o->variants[w].x ? 'x' : '-', o->variants[w].y ? 'y' : '-');
        }
        CHECK_EQ(o->memory_formats, o->n_variants > 1 || op == GHP_OP_CONV2D);
    }
    return found;
}

static void check(bool exact, void (*look)(const struct ghp_worklist *worklist))
{
    static const int64_t batch = 16;
    const struct ghp_backend_config config = {.element_bytes = 4, .threads = 1, .exact = exact};
    const struct ghp_profiling_request request = {
        .models = &model, .n_models = 1, .batches = &batch, .n_batches = 1};
    const struct ghp_worklist_request wanted = {.models = &model,
                                                .n_models = 1,
                                                .batches = &batch,
                                                .n_batches = 1,
                                                .workers = WORKERS,
                                                .ranks = WORKERS,
                                                .element_bytes = 4};
    struct ghp_profiling_result result = {.workers = WORKERS};
    struct ghp_profiling run = {.request = &request, .result = &result};

    run.m.backend_ops = &ghp_backend_onednn;
    run.m.element_bytes = 4;
    if (!CHECK_STATUS(ghp_backend_onednn.open(&config, &run.m.backend), GHP_OK)) exit(1);
    CHECK_STATUS(ghp_worklist_collect(&wanted, &run.worklist), GHP_OK);
    CHECK_STATUS(ghp_profiling_memory_formats(&run), GHP_OK);
    look(&run.worklist);
    ghp_worklist_release(&run.worklist);
    ghp_backend_onednn.close(run.m.backend);
}

static void look_fast(const struct ghp_worklist *worklist)
{
    CHECK_TEXT(pairs(worklist, GHP_OP_CONV2D, 3, 64), "-y --");
    CHECK_TEXT(pairs(worklist, GHP_OP_CONV2D, 3, 16), "-y --"); /* out:4 */
    CHECK_TEXT(pairs(worklist, GHP_OP_CONV2D, 3, 8), "--");     /* out:8: no whole block */
    CHECK_TEXT(pairs(worklist, GHP_OP_CONV2D, 64, 128), "xy -- x- -y");
    CHECK_TEXT(pairs(worklist, GHP_OP_CONV2D, 64, 16), "xy -- x- -y");  /* out:8 */
    CHECK_TEXT(pairs(worklist, GHP_OP_CONV2D, 32, 128), "xy -- x- -y"); /* in:2 */
    CHECK_TEXT(pairs(worklist, GHP_OP_CONV2D, 8, 128), "-y --");        /* in:8 */
    CHECK_TEXT(pairs(worklist, GHP_OP_CONV2D, 128, 48), "x- --"); /* its output is normalized */
    CHECK_TEXT(pairs(worklist, GHP_OP_RELU, 32, 32), "xy --");    /* channel:2 */
    CHECK_TEXT(pairs(worklist, GHP_OP_RELU, 8, 8), "--");
    CHECK_TEXT(pairs(worklist, GHP_OP_MAX_POOL, 16, 16), "xy --");
    CHECK_TEXT(pairs(worklist, GHP_OP_BATCH_NORM, 64, 64), "xy --");
    CHECK_TEXT(pairs(worklist, GHP_OP_LRN, 48, 48), "--");
    CHECK_TEXT(pairs(worklist, GHP_OP_LINEAR, 768, 16), "--");
}

static void look_tied(const struct ghp_worklist *worklist)
{
    CHECK_TEXT(pairs(worklist, GHP_OP_LINEAR, 32, 64), "--");
    CHECK_TEXT(pairs(worklist, GHP_OP_LINEAR, 32, 8), "--"); /* out:8 */
}

/* Direct algorithms are as quick on plain tensors. */
static void look_exact(const struct ghp_worklist *worklist)
{
    for (int i = 0; i < worklist->n_ops; i++)
        CHECK_EQ(worklist->ops[i].n_variants, 1);
    CHECK(worklist->n_ops > 0);
}

CHECK_TEST(memory_formats)
{
    CHECK_STATUS(ghp_model_parse(text, "tiny", &model), GHP_OK);
    check(false, look_fast);
    check(true, look_exact);
    ghp_model_release(&model);
    CHECK_STATUS(ghp_model_parse(tied_text, "tied", &model), GHP_OK);
    check(false, look_tied);
    ghp_model_release(&model);
    return check_end();
}
