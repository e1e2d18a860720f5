/* tests/executor/onnx_meaning.h - whether an ONNX graph of some nodes means the layers that it should, and computes
 * their values: for the tests of what exporters write. */
#ifndef GHP_TESTS_EXECUTOR_ONNX_MEANING_H
#define GHP_TESTS_EXECUTOR_ONNX_MEANING_H

#include "tests/check.h"
#include "tests/executor/onnx_pass.h"
#include "tests/onnx_graph.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 3, WIDE = 4, ALL = BATCH * WIDE };

static char path[64];
static float samples[ALL];
static const float weights[WIDE] = {1, -0.5f, 2, 0.25f};

static inline void number_of(const char *name, float value)
{
    static float values[16];

    values[graph.n_tensors] = value;
    constant(name, GHP_ONNX_FLOAT, 0, NULL, &values[graph.n_tensors]);
}

static inline void weights_of(const char *name, const float *values)
{
    constant(name, GHP_ONNX_FLOAT, 1, (int64_t[]){WIDE}, values);
}

/* The graph is one layer of `op`, and a bias or none, and gives these values. */
static inline void means(const char *output, enum ghp_op op, int layers,
                         double (*y)(const float *x, int i))
{
    const struct ghp_onnx_options options = {.output = output, .open_end = true};
    struct ghp_onnx_import import = {0};
    struct ghp_onnx_file file;
    float *out;

    save(path, output);
    if (!CHECK_STATUS(ghp_onnx_file_open(path, &file), GHP_OK)) return;
    if (CHECK_STATUS(ghp_onnx_import_graph(&file, &options, &import), GHP_OK) &&
        CHECK_EQ(import.model.n_layers, 1 + layers) && CHECK_EQ(import.model.layers[1].op, op)) {
        out = onnx_pass_run(
            &(struct onnx_pass){.import = &import, .batch = BATCH, .samples = samples});
        for (int i = 0; i < ALL; i++) {
            double wanted = y(samples + i / WIDE * WIDE, i % WIDE);

            /* a float has 6e-8, and some ten of them are rounded on the way */
            CHECK_NEAR((double)out[i], wanted, 1e-6 * (1 + fabs(wanted)));
        }
        free(out);
    }
    ghp_onnx_import_release(&import);
    ghp_onnx_file_close(&file);
}

static inline void put_real(struct ghp_onnx_node *at, const char *name, double value)
{
    at->attributes[at->n_attributes++] =
        (struct ghp_onnx_attribute){.name = name, .kind = GHP_ONNX_REAL, .real = value};
}

/* Names the file and fills the samples. */
static inline void begin_meanings(const char *name)
{
    snprintf(path, sizeof path, "/tmp/ghp-%s-%ld.onnx", name, (long)getpid());
    for (int i = 0; i < ALL; i++)
        samples[i] = (float)((i * 37 + 11) % 64 - 32) / 8;
}

#endif
