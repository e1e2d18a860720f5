/* tests/core/program/test_sync.c - synchronisers as texts; what is refused by name if workers' weights differ; and the
 * program that averages: each average after the updates of its bucket and before their layers, with the bytes of an
 * all-reduce once in each period, all of the weights and statistics once. One worker averages nothing.
 *
 * With servers, each bucket is pushed once and pulled once, in shards that are all of it together; a worker has no
 * moments and updates nothing of it; a server has its shard of the weights, one moment of it and room for each worker's
 * gradients, and updates a bucket after its push and before its pull. */
#include "core/program/lower/lower.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static struct ghp_sync local(int period)
{
    return (struct ghp_sync){.ops = &ghp_sync_local, .argument = period};
}

static struct ghp_sync bsp(int servers)
{
    return (struct ghp_sync){.ops = &ghp_sync_bsp, .servers = servers};
}

static const char *const good_texts[] = {
    "allreduce", "sharded",    "local:1",        "local:8",    "local:1048576", "bsp",
    "asp",       "ssp:0",      "ssp:10,free",    "easgd:2",    "aladdin:4",     "aladdin:1,printed",
    "gosgd:1",   "gosgd:0.01", "gosgd:0.000001", "gosgd:0.25", "ad-psgd",       "lsgd:2,8",
    "lsgd:1,1",  "dgd:ring",   "dgd:0-1,1-2",    "sgp",        "sgp-overlap:1"};
static const char *const bad_texts[] = {"",
                                        "auto",
                                        "local",
                                        "local:",
                                        "local:0",
                                        "local:x",
                                        "local:8x",
                                        "local:-1",
                                        "local:1048577",
                                        "loca:8",
                                        "sharded:2",
                                        "allreduce:",
                                        "bsp:2",
                                        "asp:1",
                                        "ssp",
                                        "ssp:-1",
                                        "ssp:1,fast",
                                        "ssp:1,",
                                        "easgd",
                                        "easgd:0",
                                        "aladdin:0",
                                        "aladdin,printed",
                                        "gosgd",
                                        "sgp:1",
                                        "sgp-overlap",
                                        "sgp-overlap:0",
                                        "gosgd:0",
                                        "gosgd:1.1",
                                        "gosgd:-0.1",
                                        "gosgd:0.0000001",
                                        "gosgd:x",
                                        "gosgd:0.1x",
                                        "gosgd:",
                                        "ad-psgd:1",
                                        "lsgd",
                                        "lsgd:2",
                                        "lsgd:0,2",
                                        "lsgd:2,0",
                                        "lsgd:2,",
                                        "lsgd:2,8,",
                                        "dgd",
                                        "dgd:",
                                        "dgd:star"};

static void check_texts(void)
{
    char text[GHP_SYNC_TEXT_BYTES];
    struct ghp_sync sync;

    for (size_t i = 0; i < sizeof good_texts / sizeof *good_texts; i++) {
        CHECK_STATUS(ghp_sync_parse(good_texts[i], &sync), GHP_OK);
        ghp_sync_format(sync, text);
        CHECK(strcmp(text, good_texts[i]) == 0);
    }
    for (size_t i = 0; i < sizeof bad_texts / sizeof *bad_texts; i++)
        CHECK_STATUS(ghp_sync_parse(bad_texts[i], &sync), GHP_ERR_INPUT);
    CHECK_EQ(ghp_sync_staleness(local(8)), 7);
    CHECK_NEAR(ghp_sync_mean_staleness(local(8), 4), 3.5, 0);
    CHECK_STATUS(ghp_sync_parse("aladdin", &sync), GHP_OK);
    CHECK(sync.argument == 4 && sync.servers == 1 && ghp_sync_runs_free(sync));
    CHECK_STATUS(ghp_sync_parse("ssp:3", &sync), GHP_OK);
    CHECK(ghp_sync_staleness(sync) == 4 && ghp_sync_keeps_step(sync));
    CHECK_STATUS(ghp_sync_parse("ssp:3,free", &sync), GHP_OK);
    CHECK(ghp_sync_staleness(sync) == -1 && !ghp_sync_keeps_step(sync));
    CHECK_STATUS(ghp_sync_parse("asp", &sync), GHP_OK);
    CHECK_NEAR(ghp_sync_mean_staleness(sync, 8), 7, 0);
    CHECK(ghp_sync_same((struct ghp_sync){0}, ghp_sync_at(0)) &&
          !ghp_sync_same(local(1), local(2)));
}

struct lowered {
    struct ghp_model model;
    struct ghp_split *splits;
    struct ghp_lowering lowering;
    struct ghp_program program;
};

static enum ghp_status lower(struct lowered *l)
{
    ghp_program_release(&l->program);
    return ghp_lower(&l->lowering, l->splits, 0, &l->program);
}

static void open(const char *path, int workers, struct lowered *l)
{
    *l = (struct lowered){0};
    CHECK_STATUS(ghp_model_load(path, &l->model), GHP_OK);
    l->lowering = (struct ghp_lowering){.model = &l->model,
                                        .problem = {workers, 8 * workers},
                                        .element_bytes = 4,
                                        .method.bucket_bytes = 20000,
                                        .method.sync = local(4)};
    l->splits = ghp_alloc((size_t)l->model.n_layers, sizeof *l->splits);
    for (int i = 0; i < l->model.n_layers; i++)
        l->splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    CHECK_STATUS(lower(l), GHP_OK);
    CHECK_STATUS(ghp_program_check(&l->program), GHP_OK);
}

static void close(struct lowered *l)
{
    ghp_program_release(&l->program);
    free(l->splits);
    ghp_model_release(&l->model);
}

/* Each with the word that its message has to have. */
static void check_refusals(struct ghp_sync sync)
{
    struct ghp_staging staging = {.micro_batches = 2};
    struct lowered l;

    open(GHP_SOURCE_DIR "/models/small-resnet.json", 2, &l);
    l.lowering.method.sync = sync;
    l.lowering.method.clip_norm = 1;
    CHECK_STATUS(lower(&l), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "--clip-norm") != NULL);
    l.lowering.method.clip_norm = 0;
    l.lowering.staging = &staging;
    CHECK_STATUS(lower(&l), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "micro-batches") != NULL);
    l.lowering.staging = NULL;
    l.splits[1] = (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = 2};
    CHECK_STATUS(lower(&l), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), l.model.layers[1].name) != NULL);
    l.splits[1] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    for (int i = 0; i < l.model.n_layers; i++)
        l.model.layers[i].norm.ghost_batch = l.model.layers[i].op == GHP_OP_BATCH_NORM ? 2 : 0;
    CHECK_STATUS(lower(&l), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "ghost") != NULL);
    close(&l);
}

/* Weights and statistics in buckets, in bytes. */
static int64_t averaged_bytes(const struct ghp_program *program)
{
    int64_t sum = 0;

    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];

        if (b->buffer_kind != GHP_BUFFER_WEIGHT && b->buffer_kind != GHP_BUFFER_STATE) continue;
        CHECK(program->buffers[b->storage].buffer_kind == GHP_BUFFER_WEIGHT_BUCKET);
        sum += b->bytes;
    }
    return sum;
}

static void check_average(const struct ghp_program *program, int i)
{
    const struct ghp_instr *average = &program->instrs[i];

    for (int j = 0; j < program->n_instrs; j++) {
        const struct ghp_instr *instr = &program->instrs[j];

        if (instr->kind == GHP_INSTR_UPDATE && instr->bucket == average->bucket) CHECK(j < i);
        if (instr->kind == GHP_INSTR_WAIT && instr->after == i)
            CHECK_EQ(instr->layer, average->layer);
        if (instr->kind == GHP_INSTR_COMPUTE && instr->layer == average->layer &&
            instr->pass == GHP_PASS_FORWARD)
            CHECK(program->instrs[j - 1].after == i ||
                  program->instrs[j - 1].pass == GHP_PASS_STATS);
    }
}

/* A flush has each instruction of these kinds once: all updates before the others. Returns how many it has. */
static int check_flush(const struct ghp_program *program)
{
    static const bool flushed[GHP_INSTR_COUNT] = {[GHP_INSTR_UPDATE] = true,
                                                  [GHP_INSTR_ALL_GATHER] = true,
                                                  [GHP_INSTR_MIX] = true,
                                                  [GHP_INSTR_AVERAGE] = true,
                                                  [GHP_INSTR_PULL] = true};
    int n = 0;
    bool spread = false;

    for (int i = 0; i < program->n_instrs; i++)
        n += flushed[program->instrs[i].kind];
    CHECK_EQ(program->n_flush, n);
    for (int k = 0; k < program->n_flush; k++) {
        bool update = program->instrs[program->flush[k]].kind == GHP_INSTR_UPDATE;

        CHECK(flushed[program->instrs[program->flush[k]].kind] && !(update && spread));
        spread = spread || !update;
        for (int j = 0; j < k; j++)
            CHECK(program->flush[j] != program->flush[k]);
    }
    return n;
}

static void check_flushes(void)
{
    static const char *const texts[] = {"allreduce", "sharded", "local:4", "bsp", "easgd:2", "sgp"};
    struct lowered l;

    open(GHP_SOURCE_DIR "/models/lenet5.json", 2, &l);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CHECK_STATUS(ghp_sync_parse(texts[i], &l.lowering.method.sync), GHP_OK);
        CHECK_STATUS(lower(&l), GHP_OK);
        CHECK(check_flush(&l.program) > 0);
    }
    l.lowering.forward_only = true;
    CHECK_STATUS(lower(&l), GHP_OK);
    CHECK_EQ(l.program.n_flush, 0);
    close(&l);
}

static void check_program(const char *path)
{
    int64_t bytes = 0, metrics = 0;
    struct lowered l;

    open(path, 3, &l);
    for (int i = 0; i < l.program.n_instrs; i++) {
        const struct ghp_instr *instr = &l.program.instrs[i];

        CHECK(!ghp_instr_reduces(instr) && instr->kind != GHP_INSTR_STAT_REDUCE);
        if (instr->kind == GHP_INSTR_METRIC_REDUCE) metrics += ghp_instr_sent_bytes(instr);
        if (instr->kind == GHP_INSTR_METRIC_REDUCE)
            CHECK_EQ(instr->bytes, 4 * 3 * 8); /* of 4 steps */
        if (instr->kind != GHP_INSTR_AVERAGE) continue;
        CHECK_EQ(instr->ranks.count, 3);
        CHECK_EQ(ghp_instr_sent_bytes(instr), 2 * (instr->bytes * 2 / 3) / 4);
        bytes += instr->bytes;
        check_average(&l.program, i);
    }
    CHECK_EQ(bytes, averaged_bytes(&l.program));
    CHECK(ghp_program_sent_bytes(&l.program) - metrics <= bytes / 3);
    close(&l);
    open(path, 1, &l);
    for (int i = 0; i < l.program.n_instrs; i++)
        CHECK(l.program.instrs[i].kind != GHP_INSTR_AVERAGE);
    close(&l);
}

/* ---- servers ---- */

static int count(const struct ghp_program *program, enum ghp_buffer_kind kind)
{
    int n = 0;

    for (int i = 0; i < program->n_buffers; i++)
        n += program->buffers[i].buffer_kind == kind;
    return n;
}

static const struct ghp_instr *find(const struct ghp_program *program, enum ghp_instr_kind kind,
                                    int bucket, int *at)
{
    const struct ghp_instr *found = NULL;

    for (int i = 0; i < program->n_instrs; i++) {
        if (program->instrs[i].kind != kind || program->instrs[i].bucket != bucket) continue;
        CHECK(found == NULL);
        found = &program->instrs[i];
        *at = i;
    }
    return found;
}

static void check_bucket(const struct lowered *l, const struct ghp_program *server, int b)
{
    const struct ghp_bucket *bucket = &l->program.buckets[b], *part = &server->buckets[b];
    int update = -1, push = -1, pull = -1, wait = -1, unused;

    CHECK_EQ(part->shard_bytes, bucket->server_shard_bytes);
    CHECK_EQ(bucket->server_shard_bytes * l->lowering.method.sync.servers, bucket->bytes);
    CHECK(find(&l->program, GHP_INSTR_UPDATE, b, &unused) == NULL);
    if (!CHECK(find(&l->program, GHP_INSTR_PUSH, b, &push) != NULL &&
               find(&l->program, GHP_INSTR_PULL, b, &pull) != NULL))
        return;
    CHECK_EQ(ghp_instr_sent_bytes(&l->program.instrs[push]), bucket->bytes);
    CHECK(pull < push);
    for (int i = 0; i < l->program.n_instrs; i++)
        if (l->program.instrs[i].after == pull) wait = i;
    CHECK(wait > pull && l->program.instrs[wait].layer == l->program.instrs[pull].layer);
    if (!CHECK(find(server, GHP_INSTR_UPDATE, b, &update) != NULL &&
               find(server, GHP_INSTR_PUSH, b, &push) != NULL &&
               find(server, GHP_INSTR_PULL, b, &pull) != NULL))
        return;
    CHECK(server->instrs[update].wait == push && update < pull && pull < push);
    CHECK_EQ(ghp_instr_sent_bytes(&server->instrs[pull]),
             l->lowering.problem.workers * bucket->server_shard_bytes);
    CHECK_EQ(server->buffers[part->buffer].bytes,
             l->lowering.problem.workers * bucket->server_shard_bytes);
    CHECK_EQ(server->buffers[part->weight_shard].bytes, bucket->server_shard_bytes);
    CHECK_EQ(server->buffers[part->moment[0]].bytes, bucket->server_shard_bytes);
}

static void check_servers(const char *path, int workers, int servers)
{
    struct ghp_program server;
    int64_t shard_bytes = 0;
    int served = 0;
    struct lowered l;

    open(path, workers, &l);
    l.lowering.method.sync = bsp(servers);
    CHECK_STATUS(lower(&l), GHP_OK);
    CHECK_STATUS(ghp_program_check(&l.program), GHP_OK);
    CHECK_STATUS(ghp_lower_server(&l.lowering, l.splits, servers - 1, &server), GHP_OK);
    CHECK_STATUS(ghp_program_check(&server), GHP_OK);
    CHECK_EQ(server.rank, workers + servers - 1);
    for (int b = 0; b < l.program.n_buckets; b++) {
        if (l.program.buckets[b].server_shard_bytes == 0) continue;
        check_bucket(&l, &server, b);
        shard_bytes += l.program.buckets[b].server_shard_bytes;
        served++;
    }
    CHECK_EQ(server.n_instrs, 3 * served);
    CHECK_EQ(server.peak_bytes, (workers + 2) * shard_bytes);
    CHECK(count(&l.program, GHP_BUFFER_MOMENT) == 0 || l.program.n_buckets > served);
    ghp_program_release(&server);
    close(&l);
}

/* What a mix does depends on the argument: programs that differ in it alone have other names. Without servers a mix
 * sends what the synchroniser says, and one worker has none. */
static void check_mixing(void)
{
    static const char *const texts[] = {
        "easgd:2",   "easgd:8",    "ssp:3",   "ssp:3,free", "aladdin:4",     "aladdin:4,printed",
        "gosgd:0.5", "gosgd:0.25", "ad-psgd", "sgp",        "sgp-overlap:1", "sgp-overlap:2"};
    enum { TEXTS = sizeof texts / sizeof *texts };
    uint64_t hash[TEXTS];
    struct lowered l;
    int unused;

    open(GHP_SOURCE_DIR "/models/lenet5.json", 4, &l);
    for (int i = 0; i < TEXTS; i++) {
        CHECK_STATUS(ghp_sync_parse(texts[i], &l.lowering.method.sync), GHP_OK);
        CHECK_STATUS(lower(&l), GHP_OK);
        CHECK_STATUS(ghp_program_check(&l.program), GHP_OK);
        hash[i] = ghp_program_hash(&l.program, 1);
        for (int j = 0; j < i; j++)
            CHECK(hash[j] != hash[i]);
        if (l.lowering.method.sync.servers > 0) continue;
        if (ghp_sync_runs_free(l.lowering.method.sync)) /* else metrics are sent, too */
            CHECK_EQ(ghp_program_sent_bytes(&l.program), l.lowering.method.sync.argument > 0
                                                             ? l.program.buckets[0].bytes *
                                                                   l.lowering.method.sync.argument /
                                                                   GHP_SYNC_SURE
                                                             : l.program.buckets[0].bytes);
        l.lowering.problem = (struct ghp_problem){1, 8};
        CHECK_STATUS(lower(&l), GHP_OK);
        CHECK(find(&l.program, GHP_INSTR_MIX, 0, &unused) == NULL);
        l.lowering.problem = (struct ghp_problem){4, 32};
    }
    close(&l);
}

CHECK_TEST(sync)
{
    (void)argc, (void)argv;
    check_texts();
    check_refusals(local(4));
    check_refusals(bsp(1));
    check_refusals((struct ghp_sync){.ops = &ghp_sync_ad_psgd});
    check_refusals((struct ghp_sync){.ops = &ghp_sync_sgp});
    check_refusals((struct ghp_sync){.ops = &ghp_sync_gosgd, .argument = 1});
    check_mixing();
    check_flushes();
    check_program(GHP_SOURCE_DIR "/models/lenet5.json");
    check_program(GHP_SOURCE_DIR "/models/small-resnet.json");
    check_servers(GHP_SOURCE_DIR "/models/lenet5.json", 3, 2);
    check_servers(GHP_SOURCE_DIR "/models/lenet5.json", 1, 1);
    check_servers(GHP_SOURCE_DIR "/models/small-resnet.json", 2, 3);
    return check_end();
}
