/* tests/core/sharding/test_neighbours.c - graphs of workers: their texts; of every name and number of workers that it
 * fits, neighbours are neighbours of each other and rows and columns of P sum to 1; the complete graph's P is 1 / N; of
 * a ring of 8 the second largest eigenvalue is that of the circle. What is not connected, or does not fit, is refused
 * by name. */
#include "core/sharding/neighbours.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

static void check_texts(void)
{
    static const char *const good[] = {"ring", "torus", "complete", "0-1", "0-1,1-2,2-0"};
    static const char *const bad[] = {"",     "Ring", "0",    "0-",     "0-0",
                                      "0-1,", "0-1;", "-1-2", "0-1000", "ring,0-1"};
    char text[GHP_NEIGHBOURS_TEXT_BYTES], many[40 * 4 + 1] = "";
    struct ghp_neighbours graph;

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK(ghp_neighbours_parse(good[i], &graph));
        ghp_neighbours_format(&graph, text);
        CHECK(strcmp(text, good[i]) == 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!ghp_neighbours_parse(bad[i], &graph));
    for (int i = 0; i < 33; i++)
        memcpy(many + 4 * i, i < 32 ? "0-1," : "0-1", 5 - (i == 32));
    CHECK(!ghp_neighbours_parse(many, &graph)); /* an edge too many */
    many[32 * 4 - 1] = '\0';
    CHECK(ghp_neighbours_parse(many, &graph) && graph.n_edges == GHP_NEIGHBOURS_EDGES_MOST);
}

static void check_matrix(const struct ghp_neighbours *graph, int n)
{
    for (int u = 0; u < n; u++) {
        double row = 0, column = 0;

        for (int v = 0; v < n; v++) {
            row += ghp_neighbours_weight(graph, n, u, v);
            column += ghp_neighbours_weight(graph, n, v, u);
            CHECK(ghp_neighbours_joins(graph, n, u, v) == ghp_neighbours_joins(graph, n, v, u));
            CHECK(ghp_neighbours_weight(graph, n, u, v) >= 0);
            if (graph->kind == GHP_NEIGHBOURS_COMPLETE)
                CHECK_NEAR(ghp_neighbours_weight(graph, n, u, v), 1.0 / n, 1e-15);
        }
        CHECK_NEAR(row, 1, 1e-14);
        CHECK_NEAR(column, 1, 1e-14);
        CHECK(!ghp_neighbours_joins(graph, n, u, u));
    }
}

/* P x = lambda x for x = cos(2 pi v / 8). */
static void check_ring_of_eight(void)
{
    const struct ghp_neighbours ring = {.kind = GHP_NEIGHBOURS_RING};
    double turn = 2 * acos(-1.0) / 8, lambda = 1 - (2 - 2 * cos(turn)) / 3;

    for (int u = 0; u < 8; u++) {
        double sum = 0;

        for (int v = 0; v < 8; v++)
            sum += ghp_neighbours_weight(&ring, 8, u, v) * cos(turn * v);
        CHECK_NEAR(sum, lambda * cos(turn * u), 1e-14);
    }
    CHECK_NEAR(lambda, .805, 5e-4);
}

static void check_refused(const char *text, int workers, const char *word)
{
    struct ghp_neighbours graph;

    CHECK(ghp_neighbours_parse(text, &graph));
    CHECK_STATUS(ghp_neighbours_check(&graph, workers), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), word) != NULL);
}

CHECK_TEST(neighbours)
{
    struct ghp_neighbours graph, path;

    (void)argc;
    (void)argv;
    check_texts();
    CHECK(ghp_neighbours_parse("0-1,1-2,2-3,1-0", &path));
    CHECK_STATUS(ghp_neighbours_check(&path, 4), GHP_OK);
    check_matrix(&path, 4);
    CHECK_EQ(ghp_neighbours_most_degree(&path, 4), 2);
    for (int n = 1; n <= 20; n++)
        for (int kind = 0; kind < GHP_NEIGHBOURS_EDGES; kind++) {
            graph = (struct ghp_neighbours){.kind = (enum ghp_neighbours_kind)kind};
            if (ghp_neighbours_check(&graph, n) == GHP_OK)
                check_matrix(&graph, n);
            else
                CHECK(kind == GHP_NEIGHBOURS_TORUS &&
                      strstr(ghp_status_message(), "torus") != NULL);
        }
    graph = (struct ghp_neighbours){.kind = GHP_NEIGHBOURS_TORUS};
    CHECK(ghp_neighbours_most_degree(&graph, 16) == 4 &&
          ghp_neighbours_most_degree(&graph, 8) == 3);
    check_ring_of_eight();
    check_refused("torus", 7, "torus");
    check_refused("0-1,2-3", 4, "not connected");
    check_refused("0-1,1-2", 4, "worker 3");
    check_refused("0-1,1-4", 4, "1-4");
    return check_end();
}
