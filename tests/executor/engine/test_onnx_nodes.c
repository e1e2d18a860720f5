/* ghp-test: timeout=120
 *
 * ONNX's own test vectors (Debian: libonnx-testdata) through ghp's reader and its reference backend in float: every
 * vector whose operations ghp has runs and agrees, or stands in the table below with the reason why not. A vector that
 * is refused without standing there fails the test, and so does one that stands there and would run.
 *
 * Inputs are samples where ghp can take them so; what only works on constants (a Transpose that moves the first axis)
 * is compared as what shape arithmetic folds. */
#include "onnx/graph.h"
#include "onnx/operator/operator.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "tests/check.h"
#include "tests/executor/onnx_pass.h"

#include <dirent.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA "/usr/share/libonnx-testdata/data"

enum { MAX_TENSORS = 16, RTOL = 1000, SKIPPED = 77 };

static const struct exclusion {
    const char *prefix; /* of the vector's name, then of its output; * is anything */
    const char *reason;
    bool silent;
} exclusions[] = {
#include "tests/executor/engine/onnx_excluded.h"
};

struct vector { /* one test's files */
    char path[512];
    const char *name;
    struct ghp_onnx_file model;
    int n_inputs;
    struct ghp_onnx_file inputs[MAX_TENSORS]; /* as the model's inputs */
    bool data[MAX_TENSORS];                   /* a sample, not a constant */
};

static struct {
    int run, folded, excluded, failed;
} count;

static float *floats_of(const struct ghp_onnx_file *file)
{
    const struct ghp_onnx_tensor *tensor = &file->tensors[0];
    float *values = ghp_alloc((size_t)tensor->elements, sizeof *values);
    int64_t *ints;

    if (ghp_onnx_type_real(tensor->type)) {
        CHECK_STATUS(ghp_onnx_tensor_floats(file, tensor, values), GHP_OK);
        return values;
    }
    ints = ghp_alloc((size_t)tensor->elements, sizeof *ints);
    CHECK_STATUS(ghp_onnx_tensor_ints(file, tensor, ints), GHP_OK);
    for (int64_t i = 0; i < tensor->elements; i++)
        values[i] = (float)ints[i];
    free(ints);
    return values;
}

/* ---- the forward pass ---- */

/* Samples, each with all its inputs one after another. */
static float *samples_of(const struct vector *v, int64_t batch)
{
    int64_t all = 0, offset = 0;
    float *samples;

    for (int i = 0; i < v->n_inputs; i++)
        if (v->data[i]) all += v->inputs[i].tensors[0].elements / batch;
    samples = ghp_alloc((size_t)(batch * all), sizeof *samples);
    for (int i = 0; i < v->n_inputs; i++) {
        int64_t each = v->inputs[i].tensors[0].elements / batch;
        float *values;

        if (!v->data[i]) continue;
        values = floats_of(&v->inputs[i]);
        for (int64_t n = 0; n < batch; n++)
            memcpy(samples + n * all + offset, values + n * each, (size_t)each * sizeof *values);
        free(values);
        offset += each;
    }
    return samples;
}

static bool trains(const struct ghp_onnx_file *file)
{
    for (int i = 0; i < file->n_nodes; i++)
        if (ghp_onnx_int(&file->nodes[i], "training_mode", 0) != 0) return true;
    return false;
}

static bool is_log(const struct ghp_onnx_file *file, const char *output)
{
    for (int i = 0; i < file->n_nodes; i++)
        if (strcmp(file->nodes[i].op, "LogSoftmax") == 0 &&
            strcmp(file->nodes[i].outputs[0], output) == 0)
            return true;
    return false;
}

/* The graph's output, in ONNX's order. */
static float *forward(const struct ghp_onnx_import *import, const struct vector *v)
{
    float *samples = samples_of(v, import->batch), *out;

    out = onnx_pass_run(&(struct onnx_pass){.import = import,
                                            .batch = import->batch,
                                            .training = trains(&v->model),
                                            .samples = samples});
    for (int64_t i = 0; is_log(&v->model, import->output.name) &&
                        i < import->batch * ghp_onnx_elements(&import->output);
         i++)
        out[i] = logf(out[i]);
    free(samples);
    return out;
}

/* ---- one vector ---- */

static bool all_inputs_alike(const char *op)
{
    static const char *const names[] = {"Add", "Concat", "Div", "Mul", "Sub", "Sum"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], op) == 0) return true;
    return false;
}

/* Whether an input is read as samples somewhere: first, or by an operation whose inputs are all alike. */
static bool reads_samples(const struct ghp_onnx_file *file, const char *input)
{
    for (int i = 0; i < file->n_nodes; i++)
        for (int k = 0; k < file->nodes[i].n_inputs; k++)
            if (strcmp(file->nodes[i].inputs[k], input) == 0 &&
                (k == 0 || all_inputs_alike(file->nodes[i].op)))
                return true;
    return false;
}

static void choose_data(struct vector *v)
{
    int64_t batch = 0;

    for (int i = 0; i < v->n_inputs; i++) {
        const struct ghp_onnx_tensor *tensor = &v->inputs[i].tensors[0];
        bool real =
            v->model.inputs[i].type == GHP_ONNX_FLOAT || v->model.inputs[i].type == GHP_ONNX_DOUBLE;

        v->data[i] =
            real && tensor->n_dims > 0 && reads_samples(&v->model, v->model.inputs[i].name);
        if (v->data[i] && batch == 0) batch = tensor->dims[0];
        if (v->data[i] && tensor->dims[0] != batch) v->data[i] = false;
    }
}

static enum ghp_status import_as(const struct vector *v, const char *output,
                                 struct ghp_onnx_import *import)
{
    struct ghp_onnx_binding bindings[MAX_TENSORS];
    struct ghp_onnx_options options = {.bindings = bindings, .output = output, .open_end = true};
    const double *folded;

    for (int i = 0; i < v->n_inputs; i++)
        if (!v->data[i])
            bindings[options.n_bindings++] =
                (struct ghp_onnx_binding){v->model.inputs[i].name, &v->inputs[i]};
    GHP_TRY(ghp_onnx_import_graph(&v->model, &options, import));
    return import->output.base != NULL ? ghp_onnx_values(import, &import->output, &folded) : GHP_OK;
}

/* |value - wanted| <= 1e-7 + 1e-3 |wanted|, as ONNX's own runner asks for. */
static void compare(const char *name, const float *values, const struct ghp_onnx_file *wanted)
{
    float *exact = floats_of(wanted);
    double worst = 0.0;
    int64_t n = wanted->tensors[0].elements;

    for (int64_t i = 0; i < n; i++) {
        double error = fabs((double)values[i] - (double)exact[i]);

        if (!(error <= 1e-7 + fabs((double)exact[i]) / RTOL)) worst = fmax(worst, error + 1e-30);
        if (isnan(error)) worst = HUGE_VAL;
    }
    if (!CHECK(worst == 0.0)) {
        fprintf(stderr, "  %s: differs by %g\n", name, worst);
        count.failed++;
    }
    free(exact);
}

static const struct exclusion *exclusion_of(const char *name)
{
    for (size_t i = 0; i < sizeof exclusions / sizeof exclusions[0]; i++) {
        char start[120];

        snprintf(start, sizeof start, "%s*", exclusions[i].prefix);
        if (fnmatch(start, name, 0) == 0) return &exclusions[i];
    }
    return NULL;
}

/* Runs an imported output and compares it; false if it has another size, which is a failure. */
static void judge(const struct vector *v, struct ghp_onnx_import *import, const char *name,
                  const struct ghp_onnx_file *wanted)
{
    const double *values;
    float *out;
    int64_t n = ghp_onnx_elements(&import->output);

    if (import->output.base == NULL) {
        if (CHECK_EQ(n * import->batch, wanted->tensors[0].elements)) {
            out = forward(import, v);
            compare(name, out, wanted);
            free(out);
        }
        count.run++;
        return;
    }
    CHECK_EQ(n, wanted->tensors[0].elements);
    CHECK_STATUS(ghp_onnx_values(import, &import->output, &values), GHP_OK);
    out = ghp_alloc((size_t)n, sizeof *out);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)values[i];
    compare(name, out, wanted);
    free(out);
    count.folded++;
}

static void check_output(struct vector *v, int k, const struct ghp_onnx_file *wanted)
{
    const char *output = v->model.outputs[k].name;
    const struct exclusion *reason;
    struct ghp_onnx_import import;
    char name[300];
    enum ghp_status status;

    snprintf(name, sizeof name, "%s %s", v->name, output);
    reason = exclusion_of(name);
    choose_data(v);
    status = import_as(v, output, &import);
    if (status != GHP_OK) { /* what holds for constants only */
        char refused[1024];

        snprintf(refused, sizeof refused, "%s", ghp_status_message());
        ghp_onnx_import_release(&import);
        memset(v->data, 0, sizeof v->data);
        status = import_as(v, output, &import);
        if (status != GHP_OK && reason == NULL) {
            CHECK(status == GHP_OK);
            fprintf(stderr, "  %s is refused: %s; as a constant: %s\n", name, refused,
                    ghp_status_message());
            count.failed++;
        }
    }
    if (status == GHP_OK && !CHECK(reason == NULL || reason->silent))
        fprintf(stderr, "  %s runs now\n", name);
    if (reason != NULL) {
        printf("excluded  %-60s %s\n", name, reason->reason);
        count.excluded++;
    } else if (status == GHP_OK) {
        judge(v, &import, name, wanted);
    }
    ghp_onnx_import_release(&import);
}

static bool open_tensors(struct vector *v, const char *kind, int n, struct ghp_onnx_file *files)
{
    for (int i = 0; i < n; i++) {
        char path[600];

        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", v->path, kind, i);
        if (ghp_onnx_file_open_tensor(path, &files[i]) == GHP_OK) continue;
        while (i > 0)
            ghp_onnx_file_close(&files[--i]);
        return false;
    }
    return true;
}

static bool known(const struct ghp_onnx_file *file)
{
    for (int i = 0; i < file->n_nodes; i++)
        if (ghp_onnx_operator_find(file->nodes[i].op) == NULL) return false;
    return file->n_nodes > 0 && file->opset >= 7 && file->n_inputs <= MAX_TENSORS &&
           file->n_outputs <= MAX_TENSORS;
}

/* Inputs that have initializers are constants of the file already. */
static void drop_initialized(struct ghp_onnx_file *file)
{
    int n = 0;

    for (int i = 0; i < file->n_inputs; i++) {
        bool constant = false;

        for (int t = 0; t < file->n_tensors; t++)
            constant = constant || strcmp(file->tensors[t].name, file->inputs[i].name) == 0;
        if (!constant) file->inputs[n++] = file->inputs[i];
    }
    file->n_inputs = n;
}

static bool check_vector(const char *folder, const char *name)
{
    struct vector v = {.name = name};
    struct ghp_onnx_file outputs[MAX_TENSORS] = {{0}};
    char path[600];
    bool in_scope;

    snprintf(v.path, sizeof v.path, "%s/%s/%s", DATA, folder, name);
    snprintf(path, sizeof path, "%s/model.onnx", v.path);
    if (ghp_onnx_file_open(path, &v.model) != GHP_OK) return false;
    in_scope = known(&v.model);
    if (in_scope) drop_initialized(&v.model);
    v.n_inputs = v.model.n_inputs;
    if (in_scope && open_tensors(&v, "input", v.n_inputs, v.inputs)) {
        if (open_tensors(&v, "output", v.model.n_outputs, outputs)) {
            for (int k = 0; k < v.model.n_outputs; k++) {
                check_output(&v, k, &outputs[k]);
                ghp_onnx_file_close(&outputs[k]);
            }
        }
        for (int i = 0; i < v.n_inputs; i++)
            ghp_onnx_file_close(&v.inputs[i]);
    }
    ghp_onnx_file_close(&v.model);
    return in_scope;
}

CHECK_TEST(onnx_nodes)
{
    static const char *const folders[] = {"node", "pytorch-converted", "pytorch-operator"};
    int vectors = 0;

    if (access(DATA "/node", R_OK) != 0) {
        printf("skipped: ONNX's test vectors are not installed (Debian: libonnx-testdata)\n");
        return SKIPPED;
    }
    for (size_t f = 0; f < sizeof folders / sizeof folders[0]; f++) {
        struct dirent **names = NULL;
        char path[300];
        int n;

        snprintf(path, sizeof path, "%s/%s", DATA, folders[f]);
        n = scandir(path, &names, NULL, alphasort);
        for (int i = 0; i < n; i++) {
            if (names[i]->d_name[0] != '.' && check_vector(folders[f], names[i]->d_name)) vectors++;
            free(names[i]);
        }
        free(names);
    }
    printf(
        "%d vectors of ghp's operations: %d outputs computed, %d folded, %d excluded, %d failed\n",
        vectors, count.run, count.folded, count.excluded, count.failed);
    CHECK(vectors > 100); /* the package is whole */
    return check_end();
}
