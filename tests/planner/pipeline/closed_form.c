/* tests/planner/pipeline/closed_form.c - the formulas of closed_form.h.
 *
 * Nothing here knows of instructions: six terms, each from sums over the network. The symbols are those of
 * docs/results/closed-forms.md, so each function can be read next to its formula. */
#include "core/model/op.h"
#include "tests/planner/pipeline/closed_form.h"

#include <math.h>

struct ghp_closed_form_network ghp_closed_form_network_of(const struct ghp_model *model, int cut)
{
    struct ghp_closed_form_network net = {0};

    net.input_scalars = (double)ghp_shape_elements(model->layers[0].out);
    for (int l = 0; l < model->n_layers; l++) {
        const struct ghp_layer *layer = &model->layers[l];
        double scalars = (double)ghp_shape_elements(layer->out);

        if (!ghp_op_is_weighted(layer->op)) continue;
        if (l <= cut) {
            net.front_flops += (double)ghp_layer_flops(layer);
            net.front_weights += (double)ghp_layer_weights(layer);
            net.front_scalars += scalars;
        } else {
            net.rear_flops += (double)ghp_layer_flops(layer);
            net.rear_weights += (double)ghp_layer_weights(layer);
            net.rear_scalars += scalars;
            net.last_scalars = scalars;
            net.rear_layers++;
        }
    }
    if (net.rear_layers > 0)
        net.boundary_scalars = (double)ghp_shape_elements(model->layers[cut].out);
    return net;
}

int ghp_closed_form_cut(const struct ghp_model *model)
{
    int last_conv = 0;

    for (int l = 0; l < model->n_layers; l++)
        if (model->layers[l].op == GHP_OP_CONV2D) last_conv = l;
    for (int l = last_conv + 1; l < model->n_layers; l++)
        if (model->layers[l].op == GHP_OP_LINEAR) return l - 1;
    return model->n_layers - 1;
}

double ghp_closed_form_gather_s(const struct ghp_closed_form_params *params, double n, double bytes)
{
    if (n <= 1) return 0;
    return (n - 1) / n * bytes / params->bandwidth_Bps + (n - 1) * params->latency_s;
}

/* A ring all-reduce is a reduce-scatter and an all-gather. */
static double reduce_s(const struct ghp_closed_form_params *params, double n, double bytes)
{
    return 2 * ghp_closed_form_gather_s(params, n, bytes);
}

struct ghp_closed_form_time ghp_closed_form_step(const struct ghp_closed_form_network *net,
                                                 const struct ghp_closed_form_params *params)
{
    const double s = params->element_bytes;
    const double g = params->groups;
    const double k = params->workers / g;
    const bool separated = params->rear_workers > 0;
    const double k_m = separated ? params->rear_workers : k;
    const double k_d = separated ? k - k_m : k;
    const double b_g = params->global_batch / g;
    const double boundary_bytes = s * b_g * net->boundary_scalars;
    const double inner_bytes = s * b_g * (net->rear_scalars - net->last_scalars);
    const int inner = net->rear_layers > 0 ? net->rear_layers - 1 : 0;
    struct ghp_closed_form_time t;

    t.front_s = 3 * (b_g / k_d) * net->front_flops / params->flops_per_s;
    t.rear_s = 3 * b_g * net->rear_flops / (k_m * params->flops_per_s);
    if (separated)
        t.boundary_s = fmax(boundary_bytes, boundary_bytes * k_m / k_d) / params->bandwidth_Bps +
                       fmax(k_d, k_m) * params->latency_s;
    else
        t.boundary_s =
            net->rear_layers > 0 ? ghp_closed_form_gather_s(params, k, boundary_bytes) : 0;
    t.boundary_s *= 2;
    t.activations_s = 0;
    if (net->rear_layers > 0 && k_m > 1) {
        t.activations_s = 2 * ghp_closed_form_gather_s(params, k_m, inner_bytes);
        t.activations_s += 2 * (inner - 1) * (k_m - 1) * params->latency_s;
        t.activations_s += ghp_closed_form_gather_s(params, k_m, s * b_g * net->last_scalars);
    }
    t.front_reduce_s = reduce_s(params, g * k_d, s * net->front_weights);
    t.rear_reduce_s = net->rear_layers > 0 ? reduce_s(params, g, s * net->rear_weights / k_m) : 0;
    t.step_s = t.front_s + t.rear_s + t.boundary_s + t.activations_s;
    t.step_s +=
        separated ? fmax(t.front_reduce_s, t.rear_reduce_s) : t.front_reduce_s + t.rear_reduce_s;
    return t;
}

double ghp_closed_form_groups(const struct ghp_closed_form_network *net,
                              const struct ghp_closed_form_params *params)
{
    double a = net->boundary_scalars + net->rear_scalars - net->last_scalars / 2;

    if (net->rear_layers == 0) return 0;
    return sqrt(params->workers * params->global_batch * a / net->rear_weights);
}

struct ghp_closed_form_memory ghp_closed_form_memory(const struct ghp_closed_form_network *net,
                                                     const struct ghp_closed_form_params *params,
                                                     int momenta)
{
    const double s = params->element_bytes;
    const double k = (double)params->workers / params->groups;
    const double k_m = params->rear_workers > 0 ? params->rear_workers : k;
    const double k_d = params->rear_workers > 0 ? k - k_m : k;
    const double b_g = params->global_batch / params->groups;
    struct ghp_closed_form_memory m;

    m.data_bytes = s * ((2 + momenta) * net->front_weights +
                        2 * (b_g / k_d) * (net->input_scalars + net->front_scalars));
    m.model_bytes = s * ((2 + momenta) * net->rear_weights / k_m +
                         2 * b_g * (net->boundary_scalars + net->rear_scalars));
    return m;
}
