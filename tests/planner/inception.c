/* tests/planner/inception.c - see inception.h. */
#include "tests/planner/inception.h"

#include <stdio.h>

struct block { /* channels of its convolutions */
    int one, three_reduce, three, five_reduce, five, projection;
    bool pool_before;
};

static const struct block blocks_of[INCEPTION_BLOCKS] = {
    {64, 96, 128, 16, 32, 32, true},      {128, 128, 192, 32, 96, 64, false},
    {192, 96, 208, 16, 48, 64, true},     {160, 112, 224, 24, 64, 64, false},
    {128, 128, 256, 24, 64, 64, false},   {112, 144, 288, 32, 64, 64, false},
    {256, 160, 320, 32, 128, 128, false}, {256, 160, 320, 32, 128, 128, true},
    {384, 192, 384, 48, 128, 128, false},
};

struct writer {
    FILE *file;
    bool norms;
    bool started; /* a layer is there */
};

/* Before each layer. */
static void begin_layer(struct writer *w)
{
    fprintf(w->file, w->started ? ",\n  " : "\n  ");
    w->started = true;
}

/* input ""   the layer before */
static void write_conv(struct writer *w, const char *name, int channels, int kernel, int stride,
                       const char *input)
{
    begin_layer(w);
    fprintf(w->file,
            "{\"name\": \"%s\", \"op\": \"conv2d\", \"channels\": %d, \"kernel\": %d, "
            "\"stride\": %d, \"pad\": %d",
            name, channels, kernel, stride, kernel / 2);
    if (w->norms) fprintf(w->file, ", \"bias\": false");
    if (input[0] != '\0') fprintf(w->file, ", \"inputs\": [\"%s\"]", input);
    fprintf(w->file, "}");
    if (w->norms) fprintf(w->file, ",\n  {\"name\": \"%s.norm\", \"op\": \"batch_norm\"}", name);
    fprintf(w->file, ",\n  {\"name\": \"%s.relu\", \"op\": \"relu\"}", name);
}

static void write_pool(struct writer *w, const char *name)
{
    begin_layer(w);
    fprintf(w->file,
            "{\"name\": \"%s\", \"op\": \"max_pool\", \"kernel\": 3, \"stride\": 2, \"ceil\": "
            "true}",
            name);
}

static void write_norm(struct writer *w, const char *name)
{
    if (!w->norms) fprintf(w->file, ",\n  {\"name\": \"%s\", \"op\": \"lrn\", \"size\": 5}", name);
}

static void write_block(struct writer *w, int number, const char *input)
{
    const struct block *b = &blocks_of[number];
    char name[32];

    snprintf(name, sizeof name, "b%d.1x1", number);
    write_conv(w, name, b->one, 1, 1, input);
    snprintf(name, sizeof name, "b%d.3x3.reduce", number);
    write_conv(w, name, b->three_reduce, 1, 1, input);
    snprintf(name, sizeof name, "b%d.3x3", number);
    write_conv(w, name, b->three, 3, 1, "");
    snprintf(name, sizeof name, "b%d.5x5.reduce", number);
    write_conv(w, name, b->five_reduce, 1, 1, input);
    snprintf(name, sizeof name, "b%d.5x5", number);
    write_conv(w, name, b->five, 5, 1, "");
    begin_layer(w);
    fprintf(w->file,
            "{\"name\": \"b%d.pool\", \"op\": \"max_pool\", \"kernel\": 3, \"stride\": 1, "
            "\"pad\": 1, \"inputs\": [\"%s\"]}",
            number, input);
    snprintf(name, sizeof name, "b%d.projection", number);
    write_conv(w, name, b->projection, 1, 1, "");
    begin_layer(w);
    fprintf(w->file,
            "{\"name\": \"b%d\", \"op\": \"concat\", \"inputs\": [\"b%d.1x1.relu\", "
            "\"b%d.3x3.relu\", \"b%d.5x5.relu\", \"b%d.projection.relu\"]}",
            number, number, number, number, number);
}

bool inception_write(const char *path, int blocks, bool norms)
{
    struct writer w = {.file = fopen(path, "w"), .norms = norms};
    bool written;

    if (w.file == NULL) return false;
    fprintf(w.file,
            "{\"format\": \"ghp.model/1\", \"name\": \"inception%d\", "
            "\"input\": {\"channels\": 3, \"height\": 224, \"width\": 224},\n"
            " \"layers\": [",
            blocks);
    write_conv(&w, "conv1", 64, 7, 2, "");
    write_pool(&w, "pool1");
    write_norm(&w, "norm1");
    write_conv(&w, "conv2.reduce", 64, 1, 1, "");
    write_conv(&w, "conv2", 192, 3, 1, "");
    write_norm(&w, "norm2");
    for (int b = 0; b < blocks; b++) {
        char input[32];

        snprintf(input, sizeof input, blocks_of[b].pool_before ? "pool.b%d" : "b%d",
                 blocks_of[b].pool_before ? b : b - 1);
        if (blocks_of[b].pool_before) write_pool(&w, input);
        write_block(&w, b, input);
    }
    fprintf(w.file, ",\n  {\"name\": \"mean\", \"op\": \"global_avg_pool\"},\n"
                    "  {\"name\": \"flat\", \"op\": \"flatten\"},\n"
                    "  {\"name\": \"fc\", \"op\": \"linear\", \"features\": 1000},\n"
                    "  {\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}\n");
    written = ferror(w.file) == 0;
    return fclose(w.file) == 0 && written;
}
