/* bench/data/loader.c - ghp-loader: how fast a folder of images becomes batches, and nothing else.
 *
 * Makes whole batches as a step's load does (executor/data/samples.h), in the order of a training, on a number of
 * threads; the first batch is not timed. bench/data/loader runs it and PyTorch. */
#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/opts.h"
#include "executor/data/order.h"
#include "executor/data/samples.h"

#include <stdio.h>
#include <stdlib.h>

static const char *source;
static int64_t side = 224, threads = 1, batch = 64, batches = 40;
static const char *augment;

static const struct ghp_opt options[] = {
    {.name = "data",
     .kind = GHP_OPT_TEXT,
     .target = &source,
     .argument = "SOURCE",
     .help = "folder:DIR, or another source of images of that size (ghp-run --data)"},
    {.name = "side",
     .kind = GHP_OPT_INT,
     .target = &side,
     .min = 1,
     .max = 4096,
     .help = "of samples: 3 x SIDE x SIDE"},
    {.name = "threads",
     .kind = GHP_OPT_INT,
     .target = &threads,
     .min = 1,
     .max = 4096,
     .help = "that load"},
    {.name = "batch",
     .kind = GHP_OPT_INT,
     .target = &batch,
     .min = 1,
     .max = 1e6,
     .help = "images"},
    {.name = "batches",
     .kind = GHP_OPT_INT,
     .target = &batches,
     .min = 1,
     .max = 1e6,
     .help = "that are timed"},
    {.name = "augment",
     .kind = GHP_OPT_TEXT,
     .target = &augment,
     .argument = "HOW",
     .help = "as of ghp-run"},
};

static const struct ghp_tool tool = {
    .name = "ghp-loader",
    .purpose = "times the making of batches of images from files, and prints one JSON object",
    .usage = "ghp-loader --data folder:DIR [options]",
    .example = "build/bin/ghp-loader --data folder:images --threads 2",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
};

static enum ghp_status load_all(struct ghp_data *data, struct ghp_order *order, float *images)
{
    int64_t image_bytes = 3 * side * side * (int64_t)sizeof(float);
    struct ghp_load load = {.images = batch,
                            .channels = 3,
                            .image_bytes = image_bytes,
                            .element_bytes = (int)sizeof(float),
                            .threads = (int)threads};
    struct ghp_supply supply = {.data = data, .n = batch};
    double begin = 0, seconds;
    json_t *result;

    for (int64_t i = 0; i <= batches; i++) {
        if (i == 1) begin = ghp_now_s();
        supply.samples = ghp_order_batch(order, i);
        supply.epoch = ghp_order_epoch(order, i);
        GHP_TRY(ghp_samples_images(&load, &supply, (struct ghp_range){0, batch}, images));
    }
    seconds = ghp_now_s() - begin;
    result = json_pack("{s:I,s:f,s:f}", "images", (json_int_t)(batches * batch), "seconds", seconds,
                       "images_per_s", (double)(batches * batch) / seconds);
    return ghp_json_print(result, stdout);
}

static enum ghp_status run(void)
{
    struct ghp_data_request request = {.spec = source,
                                       .seed = 1,
                                       .global_batch = batch,
                                       .shape = ghp_shape_image(3, side, side),
                                       .sample_labels = 1,
                                       .classes = INT32_MAX,
                                       .augment = augment};
    struct ghp_data *data = NULL;
    struct ghp_order order = {0};
    float *images = ghp_alloc((size_t)(batch * side), (size_t)(3 * side) * sizeof *images);
    enum ghp_status status = images != NULL ? GHP_OK : GHP_NO_MEMORY();

    if (status == GHP_OK && source == NULL)
        status = GHP_FAIL(GHP_ERR_USAGE, "no data; give --data folder:DIR");
    if (status == GHP_OK) status = ghp_data_open(&request, &data);
    if (status == GHP_OK)
        status = ghp_order_init(&order, ghp_data_count(data, GHP_DATA_TRAIN), batch, 1);
    if (status == GHP_OK) status = load_all(data, &order, images);
    ghp_order_release(&order);
    ghp_data_close(data);
    free(images);
    return status;
}

int main(int argc, char **argv)
{
    enum ghp_status status = ghp_opts_parse(&tool, argc, argv, NULL, 0, NULL);

    ghp_log_open(tool.name, true);
    if (status == GHP_OK && !ghp_opts_done()) status = run();
    if (status != GHP_OK) fprintf(stderr, "%s: %s\n", tool.name, ghp_status_message());
    return ghp_status_exit_code(status);
}
