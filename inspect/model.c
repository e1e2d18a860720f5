/* inspect/model.c - tables of a model and of a machine. */
#include "inspect/inspect.h"

#include "core/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The operation's attributes other than its shapes: "3x3 stride 2 pad 1". */
static const char *window_text(const struct ghp_layer *layer, char text[128])
{
    const struct ghp_window *w = &layer->window;
    int n = 0;

    text[0] = '\0';
    if (w->r == 0) {
        if (layer->op == GHP_OP_DROPOUT)
            snprintf(text, 128, "%sratio %g",
                     layer->norm.drop == GHP_DROP_SAMPLES    ? "samples, "
                     : layer->norm.drop == GHP_DROP_CHANNELS ? "channels, "
                                                             : "",
                     layer->norm.ratio);
        if (layer->op == GHP_OP_ATTENTION && layer->heads.dropout > 0)
            snprintf(text, 128, "dropout %g", layer->heads.dropout);
        if (layer->op == GHP_OP_LRN) snprintf(text, 128, "size %lld", (long long)layer->norm.size);
        if (layer->op == GHP_OP_BATCH_NORM && layer->norm.local_stats)
            snprintf(text, 128, "local statistics");
        return text;
    }
    n = snprintf(text, 128, "%lldx%lld", (long long)w->r, (long long)w->s);
    if (w->stride_h > 1 || w->stride_w > 1)
        n += snprintf(text + n, 128 - (size_t)n, " stride %lldx%lld", (long long)w->stride_h,
                      (long long)w->stride_w);
    if (w->pad_top + w->pad_left + w->pad_bottom + w->pad_right > 0)
        n += snprintf(text + n, 128 - (size_t)n, " pad %lld,%lld,%lld,%lld", (long long)w->pad_top,
                      (long long)w->pad_left, (long long)w->pad_bottom, (long long)w->pad_right);
    if (w->dilation_h > 1 || w->dilation_w > 1)
        n += snprintf(text + n, 128 - (size_t)n, " dilation %lldx%lld", (long long)w->dilation_h,
                      (long long)w->dilation_w);
    if (w->groups > 1) snprintf(text + n, 128 - (size_t)n, " groups %lld", (long long)w->groups);
    return text;
}

void ghp_inspect_fixed(struct ghp_sheet *sheet, const struct ghp_model *model)
{
    int64_t fixed = 0, all = 0;
    int first_fixed = -1, first_trained = -1;

    for (int v = model->n_layers - 1; v >= 0; v--) {
        const struct ghp_layer *l = &model->layers[v];

        all += ghp_layer_weights(l);
        if (l->fixed) fixed += ghp_layer_weights(l);
        if (l->n_params > 0) *(l->fixed ? &first_fixed : &first_trained) = v;
    }
    if (fixed > 0 && first_trained >= 0)
        ghp_sheet_note(sheet,
                       "not trained: %lld of %lld weights, as those of '%s'; '%s' is the first "
                       "layer that is trained",
                       (long long)fixed, (long long)all, model->layers[first_fixed].name,
                       model->layers[first_trained].name);
}

void ghp_inspect_model(struct ghp_display *report, const struct ghp_model *model)
{
    static const struct ghp_column columns[] = {
        {"layer", "layer", "", 't', 0, 0},
        {"op", "op", "", 't', 0, 0},
        {"window", "window", "", 't', 0, 0},
        {"in", "in", "CxHxW", 't', 0, 0},
        {"out", "out", "CxHxW", 't', 0, 0},
        {"weights", "weights", "scalars", 'i', 0, 0},
        {"forward_flops", "forward", "MFLOP/sample", 'r', 1e-6, 3},
        {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "layers", columns);
    int64_t weights = 0, matrices = 0, flops = 0, outputs = 0;
    char in[GHP_SHAPE_TEXT], out[GHP_SHAPE_TEXT], window[128], total[24];
    const struct ghp_layer *loss = &model->layers[model->n_layers - 1];
    const int of = loss->loss.outputs;
    char labels[48] = "numbers as labels", *end;

    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *layer = &model->layers[i];

        weights += ghp_layer_weights(layer);
        if (ghp_op_is_weighted(layer->op)) matrices += ghp_layer_weights(layer);
        flops += ghp_layer_flops(layer);
        outputs += ghp_shape_elements(layer->out);
        ghp_sheet_row(sheet);
        ghp_sheet_text(sheet, layer->name);
        ghp_sheet_text(sheet, ghp_op_name(layer->op));
        ghp_sheet_text(sheet, window_text(layer, window));
        ghp_sheet_text(sheet, i == 0 ? "" : ghp_shape_format(layer->in, in));
        ghp_sheet_text(sheet, ghp_shape_format(layer->out, out));
        ghp_sheet_int(sheet, ghp_layer_weights(layer));
        ghp_sheet_real(sheet, (double)ghp_layer_flops(layer));
    }
    if (model->classes > 0) snprintf(labels, sizeof labels, "%d classes", model->classes);
    if (loss->op == GHP_OP_LOSSES) snprintf(labels, sizeof labels, "different losses");
    end = labels + strlen(labels);
    if (of > 0) snprintf(end, sizeof labels - (size_t)(end - labels), ", %d outputs", of);
    ghp_sheet_note(sheet, "model %s: %d layers with input and biases, %s, hash %016llx",
                   model->name, model->n_layers, labels, (unsigned long long)model->hash);
    ghp_sheet_note(sheet,
                   "weights %lld (%s), without biases and norms %lld; forward %.6g GFLOP a sample; "
                   "outputs %lld a "
                   "sample",
                   (long long)weights, ghp_count_format((double)weights, total, sizeof total),
                   (long long)matrices, (double)flops * 1e-9, (long long)outputs);
    ghp_inspect_fixed(sheet, model);
    ghp_display_text(report, "name", model->name);
    ghp_display_int(report, "weights", weights);
    ghp_display_int(report, "weights_without_biases", matrices);
    ghp_display_int(report, "forward_flops", flops);
    ghp_display_sheet(report, sheet);
}

/* What data sheets promise, and which they are. */
static void note_peak(struct ghp_sheet *sheet, const struct ghp_machine *machine)
{
    const struct ghp_gpus *gpus = &machine->gpus;
    const char *key;
    json_t *value;

    if (gpus->count > 0) ghp_sheet_note(sheet, "%d x %s a node", gpus->count, gpus->name);
    for (int p = 0; p < GHP_PRECISIONS; p++)
        if (machine->peak.flops_per_s[p] > 0)
            ghp_sheet_note(sheet, "peak of a %s in %s: %.4g TFLOP/s",
                           gpus->count > 0 ? "GPU" : "node", ghp_precision_names[p],
                           machine->peak.flops_per_s[p] * 1e-12);
    if (machine->peak.memory_Bps > 0)
        ghp_sheet_note(sheet, "peak of a %s's memory: %.4g GB/s", gpus->count > 0 ? "GPU" : "node",
                       machine->peak.memory_Bps * 1e-9);
    json_object_foreach(machine->sources, key, value)
        ghp_sheet_note(sheet, "source of %s: %s", key, json_string_value(value));
}

void ghp_inspect_machine(struct ghp_display *report, const struct ghp_machine *machine)
{
    static const struct ghp_column columns[] = {
        {"link", "link", "", 't', 0, 0},
        {"latency_s", "latency", "us", 'r', 1e6, 2},
        {"bandwidth_Bps", "bandwidth", "GB/s", 'r', 1e-9, 3},
        {NULL, NULL, NULL, 0, 0, 0}};
    const struct ghp_link *links[] = {&machine->intra, &machine->inter};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "links", columns);
    char memory[32];

    ghp_sheet_note(
        sheet,
        "machine %s: %d node%s, each of %d package%s, %d cores, %d hardware threads, %s of memory",
        machine->name, machine->nodes, ghp_plural(machine->nodes), machine->packages,
        ghp_plural(machine->packages), machine->cores, machine->threads,
        machine->memory_bytes > 0
            ? ghp_bytes_format((double)machine->memory_bytes, memory, sizeof memory)
            : "unknown size");
    note_peak(sheet, machine);
    ghp_display_text(report, "machine", machine->name);
    ghp_display_int(report, "nodes", machine->nodes);
    ghp_display_int(report, "packages", machine->packages);
    ghp_display_int(report, "cores", machine->cores);
    ghp_display_int(report, "threads", machine->threads);
    ghp_display_int(report, "memory_bytes", machine->memory_bytes);
    for (int i = 0; i < 2; i++) {
        ghp_sheet_row(sheet);
        ghp_sheet_text(sheet, i == 0 ? "inside a node" : "between nodes");
        ghp_sheet_real(sheet, links[i]->latency_s);
        ghp_sheet_real(sheet,
                       links[i]->bandwidth_Bps > 0 ? links[i]->bandwidth_Bps : NAN); /* unknown */
    }
    ghp_display_sheet(report, sheet);
}
