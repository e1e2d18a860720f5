/* tests/inspect/report/test_report.c - what reports are made of: blocks stand apart, lines pass no block, terms sum to
 * the streams' work. */
#include "inspect/report/report.h"

#include "planner/make/make.h"
#include "inspect/report/blocks.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#define MODEL(name) GHP_SOURCE_DIR "/models/" name ".json"

static struct ghp_profile profile;

static void make(const char *path, int workers, int64_t batch, struct ghp_plan *plan)
{
    struct ghp_plan_request wishes = {.model_path = path,
                                      .profile_path = "analytic",
                                      .profile = &profile,
                                      .problem = {workers, batch},
                                      .time_limit_s = 5,
                                      .gap = 0.05};

    CHECK_STATUS(ghp_plan_make(&wishes, plan), GHP_OK);
}

/* Every layer is in one block of its own split, alone in its place; blocks come after what they read. */
static void check_blocks(const struct ghp_plan *plan, const struct ghp_blocks *b)
{
    for (int v = 0; v < plan->model.n_layers; v++) {
        CHECK(b->of_layer[v] >= 0 && b->of_layer[v] < b->n);
        CHECK(ghp_split_same(plan->splits[v], plan->splits[b->blocks[b->of_layer[v]].first]));
    }
    for (int k = 0; k < b->n; k++)
        for (int l = 0; l < k; l++)
            CHECK(b->blocks[k].rank != b->blocks[l].rank || b->blocks[k].lane != b->blocks[l].lane);
    for (int i = 0; i < b->n_links; i++)
        CHECK(b->blocks[b->links[i].from].rank < b->blocks[b->links[i].to].rank);
}

/* A line over several ranks passes through a lane without blocks, or next to all blocks. */
static void check_lines(const struct ghp_blocks *b)
{
    for (int i = 0; i < b->n_links; i++) {
        const struct ghp_wire *w = &b->links[i];
        const struct ghp_block *from = &b->blocks[w->from], *to = &b->blocks[w->to];
        bool neighbours = from->column == to->column && to->rank == from->rank + 1;

        CHECK(neighbours || w->lane >= 0 || w->track >= 0);
        for (int k = 0; k < b->n && !neighbours && from->column == to->column; k++) {
            const struct ghp_block *other = &b->blocks[k];
            bool between = other->rank > from->rank && other->rank < to->rank;

            CHECK(!between || w->lane < 0 || other->lane != w->lane);
            CHECK(!between || w->track < 0 || other->lane <= w->left_lane);
        }
        for (int j = 0; j < i; j++) /* two lines never share a track in one column */
            CHECK(w->track < 0 || w->track != b->links[j].track ||
                  w->left_lane != b->links[j].left_lane ||
                  from->column != b->blocks[b->links[j].from].column ||
                  b->blocks[b->links[j].to].rank <= from->rank ||
                  to->rank <= b->blocks[b->links[j].from].rank);
    }
}

static void test_blocks(const char *path, int workers, int64_t batch, int n_least)
{
    struct ghp_plan plan = {0};
    struct ghp_blocks b;

    make(path, workers, batch, &plan);
    CHECK_STATUS(ghp_blocks_init(&plan, &b), GHP_OK);
    CHECK(b.n >= n_least && b.n <= plan.model.n_layers);
    check_blocks(&plan, &b);
    check_lines(&b);
    for (int columns = 2; columns <= 7; columns++) {
        ghp_blocks_fold(&b, columns);
        CHECK(b.n_columns >= 1 && b.n_columns <= columns);
        CHECK_EQ(b.first_rank[b.n_columns], b.n_ranks);
        for (int c = 0; c < b.n_columns; c++)
            CHECK(b.first_rank[c] < b.first_rank[c + 1]);
        check_lines(&b);
    }
    ghp_blocks_release(&b);
    ghp_plan_release(&plan);
}

/* The layers' terms are the two streams' work, and what they send is what the plan says. */
static void test_terms(const char *path, int workers, int64_t batch)
{
    struct ghp_plan plan = {0};
    struct ghp_report report;
    double sum_s = 0, sent = 0;

    make(path, workers, batch, &plan);
    CHECK_STATUS(ghp_report_init(&plan, NULL, &report), GHP_OK);
    for (int v = 0; v < plan.model.n_layers; v++) {
        sum_s += ghp_report_work_s(&report.terms[v]);
        sent += report.terms[v].sent_bytes;
    }
    /* sums in another order: some thousand roundings */
    CHECK(fabs(sum_s - report.timing.serial_s) <= 1e-12 * report.timing.serial_s);
    CHECK(fabs(sent - (double)plan.predicted.sent_bytes) <=
          1e-12 * (double)plan.predicted.sent_bytes);
    ghp_report_release(&report);
    ghp_plan_release(&plan);
}

CHECK_TEST(report)
{
    CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK);
    test_blocks(MODEL("lenet5"), 4, 64, 5);
    test_blocks(MODEL("vgg16"), 16, 1024, 16);
    test_blocks(MODEL("resnet50"), 8, 256, 54);
    test_blocks(MODEL("small-resnet"), 4, 64, 8);
    test_terms(MODEL("vgg16"), 16, 1024);
    test_terms(MODEL("resnet50"), 8, 256);
    ghp_profile_release(&profile);
    return check_end();
}
