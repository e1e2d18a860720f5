/* onnx/network.c - see network.h. */
#include "onnx/network.h"

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/model/statistics.h"
#include "onnx/huggingface/huggingface.h"
#include "onnx/onnx.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what users give in place of a network ---- */

static bool ends(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);

    return n > m && strcmp(path + n - m, end) == 0;
}

/* PyTorch's files: an object of Python, or the code that makes one. Neither can be read without PyTorch. */
static bool is_pytorch(const char *path)
{
    static const char *const names[] = {".pt", ".pth", ".pt2", ".ckpt", ".pkl", ".bin", ".py"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (ends(path, names[i])) return true;
    return false;
}

/* Hugging Face's names of the known networks, without the account. */
static const char *known_name(const char *path)
{
    static const char *const names[][2] = {{"gpt2", "gpt2-124m"},
                                           {"gpt2-small", "gpt2-124m"},
                                           {"gpt2-medium", "gpt2-355m"},
                                           {"gpt2-large", "gpt2-774m"},
                                           {"gpt2-xl", "gpt2-1558m"}};
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    size_t n = strcspn(base, "@");

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i][0]) == n && strncmp(names[i][0], base, n) == 0) return names[i][1];
    return NULL;
}

enum ghp_status ghp_network_check_name(const char *path)
{
    struct stat info;
    bool there = stat(path, &info) == 0;

    if (ghp_network_names(path)) return GHP_OK;
    if (there && S_ISDIR(info.st_mode) && access(path, X_OK) != 0)
        return ghp_file_fail_read(path, errno);
    if (there && S_ISDIR(info.st_mode))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' is a folder without a config.json or a checkpoint; give a file, or a "
                        "folder that save_pretrained of transformers wrote",
                        path);
    if (there && S_ISREG(info.st_mode) && is_pytorch(path))
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "'%s' is PyTorch's, which ghp does not read; export the module to ONNX with "
            "torch.onnx.export, as docs/how-to/from-pytorch.md does, and give that file",
            path);
    if (there && S_ISREG(info.st_mode) && ends(path, ".safetensors"))
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "'%s' has weights, and no network; give the folder with its config.json, or "
            "a network's file, and this to ghp-run --init",
            path);
    if (!there && known_name(path) != NULL)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' is not there; give '%s' for that network without weights, or the "
                        "folder that save_pretrained of transformers wrote",
                        path, known_name(path));
    if (!there && strpbrk(path, "/.") == NULL)
        return GHP_FAIL(GHP_ERR_IO,
                        "cannot read '%s': No such file or directory; give a network's file, such "
                        "as models/resnet50.json, or one of gpt2-124m, gpt2-355m, gpt2-774m and "
                        "gpt2-1558m",
                        path);
    return GHP_OK;
}

/* Whether a file is a description of ghp's, by its first bytes. */
static bool is_description(const char *path)
{
    char head[64] = "";
    int fd = -1;
    ssize_t n = ghp_file_open(path, &fd) == GHP_OK ? read(fd, head, sizeof head - 1) : 0;

    if (fd >= 0) close(fd);
    return n > 0 && strstr(head, "\"ghp.model/") != NULL;
}

enum ghp_status ghp_network_check_plan(const char *path)
{
    if (!ghp_network_names(path) && !is_description(path)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' is a network, not a plan; 'ghp-train %s --workers N --batch B' makes a "
                    "plan of it and trains by that, and ghp-plan makes the plan alone",
                    path, path);
}

/* ---- loading ---- */

const char *ghp_network_batch_norm;
struct ghp_freeze ghp_network_freeze;
struct ghp_lora ghp_network_lora;

static enum ghp_status set_statistics(const char *path, const char *option, struct ghp_model *model)
{
    char text[GHP_STATISTICS_TEXT_SIZE];

    if (ghp_statistics_parse(option, text) != GHP_OK)
        return GHP_FAIL(GHP_ERR_USAGE, "--batch-norm: %s", ghp_status_message());
    if (ghp_model_batch_norm(model) == NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--batch-norm was given, and '%s' has no batch norm; leave it out", path);
    return ghp_model_set_statistics(model, text);
}

static enum ghp_status load(const char *path, struct ghp_model *model)
{
    if (ghp_onnx_names(path)) return ghp_onnx_load(path, model);
    return ghp_hf_names(path) ? ghp_hf_load(path, model) : ghp_model_load(path, model);
}

/* With --lora all that --freeze-except does not name stays, so it needs no --freeze. */
static enum ghp_status tune(struct ghp_model *model)
{
    const struct ghp_freeze *freeze = &ghp_network_freeze;

    if (ghp_network_lora.rank == NULL || freeze->patterns.n > 0)
        GHP_TRY(ghp_model_freeze(model, freeze));
    return ghp_model_lora(model, &ghp_network_lora, &freeze->except);
}

/* Says of batch norms whose scale and shift are fixed that their running statistics change, which `--freeze` stops. */
static void say_statistics(const char *path, const struct ghp_model *model)
{
    const char *first = NULL;
    char more[32] = "";
    int n = 0;

    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *layer = &model->layers[i];

        if (layer->op == GHP_OP_BATCH_NORM && layer->fixed && n++ == 0) first = layer->name;
    }
    if (n > 1) snprintf(more, sizeof more, " and %d more", n - 1);
    if (n > 0)
        ghp_note("%s: batch norm '%s'%s keep%s scale and shift, and %s running statistics change, "
                 "as with requires_grad=False in PyTorch's train mode; to keep the statistics too, "
                 "as module.eval() does, name the batch norm%s: --freeze '%s'",
                 path, first, more, n > 1 ? "" : "s", n > 1 ? "their" : "its", n > 1 ? "s" : "",
                 first);
}

enum ghp_status ghp_network_load(const char *path, struct ghp_model *model)
{
    enum ghp_status status;

    *model = (struct ghp_model){0};
    GHP_TRY(ghp_network_check_name(path));
    GHP_TRY(load(path, model));
    status = ghp_network_batch_norm == NULL ? GHP_OK
                                            : set_statistics(path, ghp_network_batch_norm, model);
    if (status == GHP_OK) status = tune(model);
    if (status == GHP_OK) say_statistics(path, model);
    if (status != GHP_OK) ghp_model_release(model);
    return status;
}

/* Tensors may lie in files of their own, which only reading them opens. */
static enum ghp_status read_tensors(const char *path)
{
    struct ghp_onnx_tensors *tensors = NULL;
    enum ghp_status status = ghp_onnx_tensors_open(path, &tensors);
    int n = status == GHP_OK ? ghp_onnx_tensors_count(tensors) : 0;

    for (int i = 0; i < n && status == GHP_OK; i++) {
        struct ghp_onnx_weight weight = ghp_onnx_tensors_item(tensors, i);
        float *values = ghp_alloc((size_t)weight.elements, sizeof *values);

        status = values != NULL ? ghp_onnx_tensors_read(tensors, i, values) : GHP_NO_MEMORY();
        free(values);
    }
    ghp_onnx_tensors_close(tensors);
    return status;
}

enum ghp_status ghp_network_check_weights(const char *path)
{
    struct ghp_hf_weights *weights = NULL;
    enum ghp_status status = GHP_OK;

    if (ghp_onnx_names(path)) return read_tensors(path);
    if (ghp_hf_has_weights(path)) status = ghp_hf_weights_open(path, &weights);
    ghp_hf_weights_close(weights);
    return status;
}

enum ghp_status ghp_network_has_weights(const char *path, bool *has)
{
    *has = false;
    if (path == NULL) return GHP_OK;
    if (ghp_onnx_names(path)) return ghp_onnx_has_weights(path, has);
    *has = ghp_hf_has_weights(path);
    return GHP_OK;
}

bool ghp_network_names(const char *path)
{
    return ghp_onnx_names(path) || ghp_hf_names(path);
}

/* ---- where a plan finds it again ---- */

enum ghp_status ghp_network_keep(const char *path, char **kept)
{
    char here[PATH_MAX] = "";
    size_t n;

    *kept = NULL;
    if (path == NULL) return GHP_OK;
    if (path[0] != '/' && (ghp_onnx_names(path) || ghp_hf_is_folder(path))) {
        if (getcwd(here, sizeof here) == NULL)
            return GHP_FAIL(GHP_ERR_IO,
                            "cannot find the working directory: %s; give '%s' as an absolute path",
                            strerror(errno), path);
        while (path[0] == '.' && path[1] == '/')
            for (path += 2; path[0] == '/';)
                path++;
    }
    n = strlen(here) + strlen(path) + 2;
    *kept = ghp_alloc(n, 1);
    if (*kept == NULL) return GHP_NO_MEMORY();
    snprintf(*kept, n, "%s%s%s", here, here[0] != '\0' ? "/" : "", path);
    return GHP_OK;
}

/* Whether a network is there. A folder without its config.json does not count. */
static bool is_there(const char *path)
{
    return (access(path, F_OK) == 0 && !ghp_file_is_folder(path)) || ghp_onnx_is_there(path) ||
           ghp_hf_is_folder(path);
}

/* The path's last part. Slashes at its end belong to it. */
static const char *last_part(const char *path)
{
    const char *at = path + strlen(path);

    while (at > path && at[-1] == '/')
        at--;
    while (at > path && at[-1] != '/')
        at--;
    return at;
}

/* Whether a network of that path never had weights. */
static bool is_bare(const char *path)
{
    size_t n = strlen(path);

    return ghp_hf_names(path) || (n > 5 && strcmp(path + n - 5, ".json") == 0);
}

enum ghp_status ghp_network_find(const char *kept, const char *plan_path, char **found)
{
    const char *names[3] = {kept, kept, NULL}; /* the last two in the plan's folder */
    size_t folder = (size_t)(last_part(plan_path) - plan_path), n;

    *found = NULL;
    if (kept == NULL) return GHP_OK;
    names[2] = last_part(kept);
    n = folder + strlen(kept) + 1;
    *found = ghp_alloc(n, 1);
    if (*found == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < 3; i++) {
        if (i == 1 && kept[0] == '/') continue;
        snprintf(*found, n, "%.*s%s", i > 0 ? (int)folder : 0, plan_path, names[i]);
        if (is_there(*found)) return GHP_OK;
    }
    free(*found);
    *found = NULL;
    if (is_bare(kept)) return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_IO,
        "'%s', the network of the plan, is not there, nor '%s' next to the plan; put it "
        "there for its weights, or give --init FILE or --init random",
        kept, names[2]);
}
