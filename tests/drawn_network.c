/* tests/drawn_network.c - writes the network of tests that new operations are in by themselves: drawn_network BASE OUT.
 *
 * BASE (tests/executor/gated.json) has what has to be fitted to its place: joins, sizes, views. Every other operation
 * whose output is as large as its input comes after BASE's layer "conv2", by each of its choices, as drawn from its
 * table of attributes: so a new one is in the network, and in the tests that train it. Left out is what other networks
 * have: operations with sizes, and those with statistics of a batch, because BASE is also cut into micro-batches. */
#include "tests/op_draw.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static bool fits(enum ghp_op op)
{
    const struct ghp_op_facts *facts = ghp_op_of(op);

    return !facts->is_input && !facts->is_loss && facts->most_inputs == 1 && facts->shape == NULL &&
           !facts->has_batch_statistics &&
           (facts->takes == 0 || (facts->takes & GHP_TAKES(IMAGE)) != 0);
}

/* Puts the layer before layer i; returns whether that could be done. */
static bool insert(json_t *layers, size_t i, enum ghp_op op, const char *keys)
{
    char text[1024];
    json_t *layer;

    snprintf(text, sizeof text, "{\"name\":\"drawn%zu\",\"op\":\"%s\"%s}", i, ghp_op_name(op),
             keys);
    layer = json_loads(text, 0, NULL);
    return layer != NULL && json_array_insert_new(layers, i, layer) == 0;
}

int main(int argc, char **argv)
{
    json_t *root = argc == 3 ? json_load_file(argv[1], 0, NULL) : NULL;
    json_t *layers = json_object_get(root, "layers");
    size_t at = 0;
    bool good = root != NULL;
    char keys[512];

    while (at < json_array_size(layers) &&
           strcmp(json_string_value(json_object_get(json_array_get(layers, at), "name")),
                  "conv2") != 0)
        at++;
    good = good && ++at < json_array_size(layers);
    for (int op = 0; good && op < GHP_OP_COUNT; op++)
        for (int i = 0;
             good && fits((enum ghp_op)op) && op_draw((enum ghp_op)op, i, keys, sizeof keys); i++)
            good = insert(layers, at++, (enum ghp_op)op, keys);
    good = good && json_dump_file(root, argv[2], JSON_INDENT(1)) == 0;
    if (!good) fprintf(stderr, "usage: drawn_network BASE OUT, with a layer conv2 in BASE\n");
    json_decref(root);
    return good ? 0 : 1;
}
