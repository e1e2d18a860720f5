/* tests/core/sharding/test_stage.c - who has what: numbers and ranks are one another's inverse, the workers of each
 * stage hold every sample and channel of a micro-batch once in every layout, schedules run each part once and in order,
 * stagings that cannot be are refused with what would do, and parameters are sharded where they can be. */
#include "core/sharding/schedule.h"
#include "tests/check.h"

enum { LAYERS = 9, POSITIONS = 12, CHANNELS = 12 };

static unsigned state = 5;

static int draw(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (unsigned)n);
}

/* ---- shares ---- */

static struct ghp_staging some_staging(struct ghp_problem *whole)
{
    struct ghp_staging s = {.n = 2 + draw(2), .micro_batches = 1 << draw(3)};
    int group = 0;

    for (int i = 0; i < s.n; i++) {
        struct ghp_stage *stage = &s.stage[i];

        *stage = (struct ghp_stage){.first_layer = 2 * i, .workers = 1 + draw(4)};
        do
            stage->block_size = 1 + draw(stage->workers);
        while (stage->workers % stage->block_size != 0);
        group += stage->workers;
    }
    whole->workers = group * (1 + draw(3));
    whole->global_batch = (int64_t)whole->workers / group * s.micro_batches * 12 *
                          (1 + draw(3)); /* 12: all block sizes divide */
    return s;
}

/* Workers that have each (sample, position, channel) of a stage's micro-batch, for a layout. */
static void check_cover(const struct ghp_staging *s, struct ghp_problem whole, int stage,
                        struct ghp_layout layout)
{
    int64_t samples = whole.global_batch / s->micro_batches;
    int *held = calloc((size_t)samples * POSITIONS * CHANNELS, sizeof *held), wrong = 0;
    struct ghp_shape shape = ghp_shape_sequence(CHANNELS, POSITIONS);
    int copies = layout.kind == GHP_LAYOUT_FULL ? layout.tp_size : 1;

    if (!CHECK(held != NULL)) return;
    for (int r = 0; r < whole.workers; r++) {
        struct ghp_placement placement = ghp_placement_of(s, LAYERS, whole, r);
        struct ghp_region w;

        if (placement.stage != stage) continue;
        w = ghp_placement_region(&placement, layout, shape);
        CHECK(w.first_sample >= 0 && w.first_sample + w.samples <= samples);
        CHECK(w.first_channel >= 0 && w.first_channel + w.channels <= CHANNELS);
        CHECK(w.first_position >= 0 && w.first_position + w.positions <= POSITIONS);
        for (int64_t n = w.first_sample; n < w.first_sample + w.samples; n++)
            for (int64_t p = w.first_position; p < w.first_position + w.positions; p++)
                for (int64_t c = w.first_channel; c < w.first_channel + w.channels; c++)
                    held[(n * POSITIONS + p) * CHANNELS + c]++;
    }
    for (int64_t i = 0; i < samples * POSITIONS * CHANNELS; i++)
        wrong += held[i] != copies;
    CHECK_EQ(wrong, 0);
    free(held);
}

/* A stage's worker that has a sample is the one that says so. */
static void check_workers(const struct ghp_staging *s, struct ghp_problem whole, int stage)
{
    int group = ghp_staging_group(s, whole.workers), from = 0;
    int64_t own = whole.global_batch / s->micro_batches / (whole.workers / group);

    for (int i = 0; i < stage; i++)
        from += s->stage[i].workers;
    for (int g = 0; g < whole.workers / group; g++)
        for (int64_t n = 0; n < own; n++) {
            int k = ghp_stage_worker_of(s, stage, g, whole, n);
            struct ghp_placement placement =
                ghp_placement_of(s, LAYERS, whole, g * group + from + k);
            struct ghp_region w =
                ghp_placement_region(&placement, (struct ghp_layout){GHP_LAYOUT_BATCH, 1},
                                     ghp_shape_sequence(CHANNELS, POSITIONS));

            CHECK(n + g * own >= w.first_sample && n + g * own < w.first_sample + w.samples);
        }
}

static void check_ranks(const struct ghp_staging *s, struct ghp_problem whole)
{
    for (int r = 0; r < whole.workers; r++) {
        struct ghp_placement placement = ghp_placement_of(s, LAYERS, whole, r);
        struct ghp_ranks alone = ghp_placement_ranks(
            &placement, (struct ghp_ranks){.first = placement.number, .count = 1, .stride = 1});
        struct ghp_ranks all = ghp_placement_ranks(
            &placement, (struct ghp_ranks){.count = placement.problem.workers, .stride = 1});

        CHECK_EQ(ghp_ranks_at(alone, 0), r);
        CHECK_EQ(ghp_ranks_index(all, r), placement.number);
        CHECK(ghp_ranks_same(all, all));
        for (int i = 0; i < whole.workers; i++) {
            struct ghp_placement other = ghp_placement_of(s, LAYERS, whole, i);

            CHECK_EQ(ghp_ranks_index(all, i), other.stage == placement.stage ? other.number : -1);
        }
    }
}

/* The representative has the largest share. */
static void check_largest(const struct ghp_staging *s, struct ghp_problem whole, int stage)
{
    struct ghp_placement most =
        ghp_placement_of(s, LAYERS, whole, ghp_stage_representative(s, stage, whole));

    CHECK_EQ(most.stage, stage);
    for (int r = 0; r < whole.workers; r++) {
        struct ghp_placement placement = ghp_placement_of(s, LAYERS, whole, r);

        if (placement.stage == stage)
            CHECK(placement.problem.global_batch <= most.problem.global_batch);
    }
}

static void check_shares(void)
{
    static const enum ghp_layout_kind kinds[] = {GHP_LAYOUT_CHANNEL, GHP_LAYOUT_SEQUENCE,
                                                 GHP_LAYOUT_FULL};

    for (int k = 0; k < 200; k++) {
        struct ghp_problem whole;
        struct ghp_staging s = some_staging(&whole);

        check_ranks(&s, whole);
        for (int i = 0; i < s.n; i++) {
            check_cover(&s, whole, i, (struct ghp_layout){GHP_LAYOUT_BATCH, 1});
            check_workers(&s, whole, i);
            check_largest(&s, whole, i);
            for (int m = 2; m <= s.stage[i].workers; m++) {
                CHECK_EQ(ghp_stage_takes_tp_size(&s, i, whole, m), s.stage[i].block_size % m == 0);
                if (s.stage[i].block_size % m != 0) continue;
                for (int j = 0; j < 3; j++)
                    check_cover(&s, whole, i, (struct ghp_layout){kinds[j], m});
            }
        }
    }
}

/* Shares by hand, of one stage and of two. */
static void check_listed(void)
{
    const int64_t lone[] = {5, 1, 3, 3}, pair[] = {5, 1, 6, 2, 2, 4};
    struct ghp_staging s = {.shares = lone, .micro_batches = 1};
    struct ghp_problem whole = {.workers = 4, .global_batch = 12};

    check_cover(&s, (struct ghp_problem){4, 12}, 0, (struct ghp_layout){GHP_LAYOUT_BATCH, 1});
    CHECK_EQ(ghp_stage_representative(&s, 0, whole), 0);
    CHECK(!ghp_stage_takes_tp_size(&s, 0, whole, 2));
    CHECK_EQ(ghp_placement_of(&s, LAYERS, whole, 2).first_sample, 6);
    s = (struct ghp_staging){.n = 2, .shares = pair, .micro_batches = 2};
    s.stage[0] = (struct ghp_stage){.workers = 2};
    s.stage[1] = (struct ghp_stage){.first_layer = 3, .workers = 1};
    whole = (struct ghp_problem){.workers = 6, .global_batch = 20};
    check_cover(&s, whole, 0, (struct ghp_layout){GHP_LAYOUT_BATCH, 1});
    check_cover(&s, whole, 1, (struct ghp_layout){GHP_LAYOUT_BATCH, 1});
    check_workers(&(struct ghp_staging){.n = 2,
                                        .stage = {{.workers = 2}, {.first_layer = 3, .workers = 1}},
                                        .micro_batches = 2},
                  (struct ghp_problem){.workers = 6, .global_batch = 24}, 0);
}

/* ---- slots ---- */

static void check_slots(void)
{
    for (int stages = 1; stages <= 4; stages++)
        for (int u = 1; u <= 6; u++)
            for (int p = 0; p < GHP_PIPELINE_INTERLEAVED; p++) {
                struct ghp_staging s = {
                    .n = stages, .micro_batches = u, .pipeline = (enum ghp_pipeline)p};

                for (int i = 0; i < stages; i++) {
                    struct ghp_schedule_step slots[18];
                    int n = ghp_stage_schedule(&s, i, false, slots), forward = 0, back = 0,
                        weights = 0, most = 0;
                    bool defers = stages > 1 && p == GHP_PIPELINE_ZB_H1;

                    CHECK_EQ(n, (defers ? 3 : 2) * u);
                    for (int k = 0; k < n; k++) {
                        if (slots[k].weights) {
                            CHECK_EQ(slots[k].micro, weights++);
                            CHECK(slots[k].backward && weights <= back);
                            CHECK(back - weights <=
                                  i); /* as many wait as there are stages before it */
                            continue;
                        }
                        CHECK_EQ(slots[k].micro, slots[k].backward ? back : forward);
                        *(slots[k].backward ? &back : &forward) += 1;
                        CHECK(forward >= back);
                        if (forward - back > most) most = forward - back;
                    }
                    CHECK_EQ(back, u);
                    CHECK_EQ(weights, defers ? u : 0);
                    CHECK_EQ(most, ghp_stage_in_flight(&s, i));
                    CHECK_EQ(ghp_stage_schedule(&s, i, true, slots), u);
                }
            }
}

/* The parts of an interleaved stage: each chunk of each micro-batch forward, later backward, chunk by chunk in the
 * order of the micro-batches; and what is sent can be waited for without deadlock: receivers post, a step ahead of
 * their own, in an order that has no circle. */
static void check_interleaved(void)
{
    for (int stages = 2; stages <= 4; stages++)
        for (int chunks = 2; chunks <= 4; chunks++)
            for (int u = stages; u <= 3 * stages; u += stages) {
                struct ghp_staging s = {.n = stages,
                                        .chunks = chunks,
                                        .micro_batches = u,
                                        .pipeline = GHP_PIPELINE_INTERLEAVED};
                struct ghp_schedule_times times;

                CHECK_STATUS(ghp_schedule_times_init(&s, false, &times), GHP_OK);
                CHECK_EQ(times.steps, 2 * u * chunks);
                for (int i = 0; i < stages; i++) {
                    struct ghp_schedule_step slots[2 * 12 * 4];
                    int n = ghp_stage_schedule(&s, i, false, slots), flight = 0, most = 0;
                    int forward[4] = {0}, back[4] = {0};

                    CHECK_EQ(n, times.steps);
                    for (int k = 0; k < n; k++) {
                        int c = slots[k].chunk;

                        CHECK_EQ(slots[k].micro, (slots[k].backward ? back : forward)[c]++);
                        CHECK(forward[c] >= back[c]);
                        if (slots[k].backward && c + 1 < chunks) CHECK(back[c + 1] >= back[c]);
                        if (!slots[k].backward && c > 0) CHECK(forward[c - 1] >= forward[c]);
                        flight += slots[k].backward ? -1 : 1;
                        if (flight > most) most = flight;
                    }
                    for (int c = 0; c < chunks; c++)
                        CHECK(forward[c] == u && back[c] == u);
                    CHECK_EQ(most, ghp_stage_in_flight(&s, i));
                    CHECK_EQ(ghp_stage_schedule(&s, i, true, slots), u * chunks);
                }
                /* the bubble is that of one chunk: stages - 1 parts forward and backward */
                CHECK_EQ(times.time[times.steps - 1], 2 * (u * chunks + stages - 1) - 1);
                ghp_schedule_times_release(&times);
            }
}

/* ---- refusals ---- */

static void refuse(const struct ghp_staging *s, struct ghp_problem whole, const char *model_text,
                   const char *part)
{
    struct ghp_model model = {0};

    if (!CHECK_STATUS(ghp_model_parse(model_text, "text", &model), GHP_OK)) return;
    CHECK_STATUS(ghp_staging_check(s, &model, whole), GHP_ERR_INPUT);
    CHECK_MESSAGE(part);
    ghp_model_release(&model);
}

static void check_refusals(void)
{
    static const char text[] = "{\"format\": \"ghp.model/1\", \"name\": \"m\", \"input\": "
                               "{\"channels\": 2, \"height\": 4, "
                               "\"width\": 4}, \"layers\": [{\"name\": \"a\", \"op\": \"conv2d\", "
                               "\"channels\": 2, \"kernel\": 1}, "
                               "{\"name\": \"n\", \"op\": \"batch_norm\"}, {\"name\": \"f\", "
                               "\"op\": \"flatten\"}, {\"name\": \"b\", "
                               "\"op\": \"linear\", \"features\": 2}, {\"name\": \"l\", \"op\": "
                               "\"softmax_cross_entropy\"}]}";
    const struct ghp_problem whole = {.workers = 4, .global_batch = 16};
    const int64_t short_list[] = {4, 4, 4, 3}, none[] = {8, 8, 0, 0};
    const bool recomputed[8] = {[3] = true}; /* the batch norm */
    struct ghp_staging s = {.n = 2, .stage = {{.workers = 1}, {.first_layer = 5, .workers = 1}}};

    s.stage[1].first_layer = 2; /* a.bias works in place */
    refuse(&s, whole, text, "cut before a layer that makes its own");
    s.stage[1] = (struct ghp_stage){.first_layer = 4, .workers = 2};
    refuse(&s, whole, text, "make their sum a divisor");
    s.stage[1].workers = 1;
    s.micro_batches = 3;
    refuse(&s, whole, text, "use 2 micro-batches, or a batch of 24");
    refuse(&(struct ghp_staging){.micro_batches = 5}, whole, text,
           "use 4 micro-batches, or a batch of 20");
    refuse(&(struct ghp_staging){.micro_batches = 4},
           (struct ghp_problem){.workers = 2, .global_batch = 12}, text,
           "use 3 micro-batches, or a batch of 16");
    s.micro_batches = 2;
    refuse(&s, whole, text, "local:S");
    s.micro_batches = 1;
    s.stage[0].workers = 3;
    refuse(&s, whole, text, "or a batch of 24");
    refuse(&(struct ghp_staging){.micro_batches = 2}, whole, text, "\"local:S\"");
    s = (struct ghp_staging){.n = 2,
                             .stage = {{.workers = 1}, {.first_layer = 1, .workers = 1}},
                             .micro_batches = 2,
                             .pipeline = GHP_PIPELINE_INTERLEAVED};
    refuse(&s, whole, text, "use --pipeline-schedule 1f1b");
    s.chunks = 2;
    s.later_chunk[0] = 4;
    s.later_chunk[1] = 2;
    refuse(&s, whole, text, "each after the one before");
    s.later_chunk[1] = 5;
    s.pipeline = GHP_PIPELINE_ZB_H1;
    refuse(&s, whole, text, "use --pipeline-schedule interleaved");
    s.pipeline = GHP_PIPELINE_INTERLEAVED;
    s.micro_batches = 1;
    refuse(&s, whole, text, "use a multiple");
    s.micro_batches = 2;
    s.chunks = GHP_MAX_STAGE_CHUNKS + 1;
    refuse(&s, whole, text, "use at most 8");
    refuse(&(struct ghp_staging){.chunks = 2, .micro_batches = 2}, whole, text,
           "use two or more stages");
    refuse(&(struct ghp_staging){.shares = short_list}, whole, text, "make them equal");
    refuse(&(struct ghp_staging){.shares = none}, whole, text, "give each at least one");
    refuse(&(struct ghp_staging){.recompute = recomputed}, whole, text,
           "no input, batch_norm or loss");
}

/* Fewer samples than workers: those of a subgroup share each. */
static void check_few_samples(void)
{
    static const enum ghp_layout_kind kinds[] = {GHP_LAYOUT_CHANNEL, GHP_LAYOUT_FULL,
                                                 GHP_LAYOUT_SEQUENCE};
    const struct ghp_staging alone = {.micro_batches = 1};

    for (int workers = 2; workers <= 12; workers++)
        for (int batch = 1; batch < workers; batch++)
            for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
                struct ghp_problem whole = {.workers = workers, .global_batch = batch};
                struct ghp_layout layout = {kinds[k], ghp_problem_sharers(whole)};

                if (workers % batch != 0 || CHANNELS % layout.tp_size != 0) continue;
                check_cover(&alone, whole, 0, layout);
            }
}

/* Parameters are sharded where a stage has replicas of them and no other stage has them: of tied.json all in one stage;
 * in two stages all but the table that both have; and none where each stage has one worker. */
static void check_sharded(void)
{
    struct ghp_staging s = {.n = 2, .stage = {{.workers = 2}, {.first_layer = 6, .workers = 2}}};
    struct ghp_problem whole = {.workers = 4, .global_batch = 8};
    struct ghp_split splits[16];
    struct ghp_model model;
    int sharded[3] = {0};

    if (!CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/tests/executor/tied.json", &model), GHP_OK))
        return;
    CHECK(model.n_layers <= 16);
    for (int i = 0; i < 3; i++) {
        for (int l = 0; l < model.n_layers; l++)
            splits[l] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
        if (i == 2) s.stage[0].workers = s.stage[1].workers = 1;
        if (i == 2) whole.workers = 2;
        ghp_staging_shard(i > 0 ? &s : NULL, &model, whole, GHP_SHARDING_PASS, splits);
        for (int l = 0; l < model.n_layers; l++)
            sharded[i] += splits[l].sharding == GHP_SHARDING_PASS;
        CHECK((splits[ghp_model_find(&model, "embed")].sharding == GHP_SHARDING_PASS) == (i == 0));
    }
    CHECK(sharded[0] > 4);
    CHECK_EQ(sharded[1], sharded[0] - 2);
    CHECK_EQ(sharded[2], 0);
    ghp_model_release(&model);
}

CHECK_TEST(stage)
{
    check_sharded();
    check_shares();
    check_few_samples();
    check_listed();
    check_slots();
    check_interleaved();
    check_refusals();
    return check_end();
}
