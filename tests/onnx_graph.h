/* tests/onnx_graph.h - an ONNX graph under construction, for tests: constants and nodes by name.
 *
 *     begin(13, -1, 4, 0, 0);                  opset 13, symbolic batch, samples 'x' of 4 values
 *     node("Relu", "y", "x", NULL);            operation, output (the node's name, too), inputs
 *     save(path, "y");                         the file, whose output is 'y' */
#ifndef GHP_TESTS_ONNX_GRAPH_H
#define GHP_TESTS_ONNX_GRAPH_H

#include "core/base/file.h"
#include "core/base/log.h"
#include "onnx/file/file.h"
#include "onnx/onnx.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NODES = 64 };
static struct ghp_onnx_tensor tensors[MOST_NODES];
static struct ghp_onnx_node nodes[MOST_NODES];
static struct ghp_onnx_value ends[2];
static struct ghp_onnx_file graph;
static const char *in_names[MOST_NODES][5], *out_names[MOST_NODES][3];
static struct ghp_onnx_attribute attributes[MOST_NODES][8];

static inline void begin(int64_t opset, int64_t batch, int64_t c, int64_t h, int64_t w)
{
    memset(attributes, 0, sizeof attributes);
    ends[0] = (struct ghp_onnx_value){
        .name = "x", .type = GHP_ONNX_FLOAT, .n_dims = h > 0 ? 4 : 2, .dims = {batch, c, h, w}};
    graph = (struct ghp_onnx_file){.name = "graph",
                                   .opset = opset,
                                   .nodes = nodes,
                                   .tensors = tensors,
                                   .inputs = ends,
                                   .outputs = ends + 1,
                                   .n_inputs = 1,
                                   .n_outputs = 1};
}

/* Token ids for samples of `positions` positions each. */
static inline void begin_ids(int64_t opset, int64_t batch, int64_t positions)
{
    begin(opset, batch, positions, 0, 0);
    ends[0].type = GHP_ONNX_INT64;
}

static inline void constant(const char *name, int type, int n_dims, const int64_t *dims,
                            const void *values)
{
    struct ghp_onnx_tensor *t = &tensors[graph.n_tensors++];

    *t = (struct ghp_onnx_tensor){
        .name = name, .type = type, .n_dims = n_dims, .elements = 1, .values = values};
    for (int i = 0; i < n_dims; i++) {
        t->dims[i] = dims[i];
        t->elements *= dims[i];
    }
}

static inline struct ghp_onnx_node *node(const char *op, const char *out, const char *a,
                                         const char *b)
{
    int i = graph.n_nodes++;

    in_names[i][0] = a;
    in_names[i][1] = b;
    out_names[i][0] = out;
    nodes[i] = (struct ghp_onnx_node){.name = out,
                                      .op = op,
                                      .n_inputs = b != NULL ? 2 : 1,
                                      .inputs = in_names[i],
                                      .n_outputs = 1,
                                      .outputs = out_names[i],
                                      .attributes = attributes[i]};
    return &nodes[i];
}

/* The same of three inputs. */
static inline struct ghp_onnx_node *node3(const char *op, const char *out, const char *a,
                                          const char *b, const char *c)
{
    struct ghp_onnx_node *made = node(op, out, a, b);

    in_names[graph.n_nodes - 1][2] = c;
    made->n_inputs = 3;
    return made;
}

static inline void number(struct ghp_onnx_node *at, const char *name, int64_t value)
{
    at->attributes[at->n_attributes++] =
        (struct ghp_onnx_attribute){.name = name, .kind = GHP_ONNX_INT, .integer = value};
}

static inline void list(struct ghp_onnx_node *at, const char *name, const int64_t *values, int n)
{
    at->attributes[at->n_attributes++] =
        (struct ghp_onnx_attribute){.name = name, .kind = GHP_ONNX_INTS, .n = n, .ints = values};
}

static inline void save(const char *to, const char *output)
{
    ends[1] = (struct ghp_onnx_value){
        .name = output, .type = GHP_ONNX_FLOAT, .n_dims = 2, .dims = {-1, 2}};
    CHECK_STATUS(ghp_onnx_file_save(to, &graph), GHP_OK);
}

/* The graph up to this output, saved there, is not taken: so it ends, and says this. */
static inline void refused(const char *to, const char *output, enum ghp_status status,
                           const char *said)
{
    struct ghp_model model;

    save(to, output);
    CHECK_STATUS(ghp_onnx_load(to, &model), status);
    CHECK_MESSAGE(said);
}

/* What reading the graph up to this output, saved there, says on stderr, into text. */
static inline void said_reading(const char *to, const char *output, char *text, size_t n)
{
    char *bytes = NULL, log[80];
    int kept = dup(2);
    struct ghp_model model;

    save(to, output);
    snprintf(log, sizeof log, "%s.log", to);
    CHECK(freopen(log, "w", stderr) != NULL);
    ghp_log_open("test", true);
    enum ghp_status status = ghp_onnx_load(to, &model);
    ghp_log_open("test", false);
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
    CHECK_STATUS(status, GHP_OK);
    ghp_model_release(&model);
    CHECK_STATUS(ghp_file_read(log, &bytes, NULL), GHP_OK);
    snprintf(text, n, "%s", bytes);
    free(bytes);
    unlink(log);
}

#endif
