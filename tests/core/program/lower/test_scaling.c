/* tests/core/program/lower/test_scaling.c - what learning rates by norms need of a program: norms of each layer's own
 * gradients once a micro-batch, before anything is added to them; one reduction of two doubles a tensor; and what is
 * not possible is refused by name. */
#include "core/program/lower/lower.h"
#include "tests/check.h"

#include <stdlib.h>

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

static const struct ghp_lr_scaling *named(const char *name)
{
    for (int i = 1; ghp_lr_scaling_names[i] != NULL; i++)
        if (strcmp(ghp_lr_scaling_names[i], name) == 0) return ghp_lr_scaling_at(i);
    return NULL;
}

static void open(const char *path, const char *scaling, struct lowered *l)
{
    *l = (struct lowered){0};
    CHECK_STATUS(ghp_model_load(path, &l->model), GHP_OK);
    l->lowering = (struct ghp_lowering){.model = &l->model,
                                        .problem = {2, 16},
                                        .element_bytes = 4,
                                        .method.scaling = named(scaling)};
    l->splits = ghp_alloc((size_t)l->model.n_layers, sizeof *l->splits);
    for (int i = 0; i < l->model.n_layers; i++)
        l->splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
}

static void close(struct lowered *l)
{
    ghp_program_release(&l->program);
    free(l->splits);
    ghp_model_release(&l->model);
}

static int tensors_of(const struct ghp_model *model)
{
    int n = 0;

    for (int i = 0; i < model->n_layers; i++)
        n += model->layers[i].n_params;
    return n;
}

/* Checks that each layer with parameters has one for each micro-batch, right after its pass. */
static void check_norms(const struct lowered *l, int micro_batches)
{
    int own = 0, all = 0, learning = 0;

    for (int i = 0; i < l->model.n_layers; i++)
        learning += l->model.layers[i].n_params > 0;
    for (int i = 0; i < l->program.n_instrs; i++) {
        const struct ghp_instr *instr = &l->program.instrs[i];

        if (instr->kind == GHP_INSTR_NORM_REDUCE)
            CHECK_EQ(instr->bytes, 16 * tensors_of(&l->model));
        all += instr->kind == GHP_INSTR_NORM;
        if (instr->kind != GHP_INSTR_WORKER_NORM) continue;
        own++;
        CHECK(l->program.instrs[i - 1].pass == GHP_PASS_BACKWARD_WEIGHT &&
              l->program.instrs[i - 1].layer == instr->layer);
        for (int p = 0; p < l->model.layers[instr->layer].n_params; p++)
            CHECK(instr->at.dw[p] >= 0 && instr->at.dw[p] == l->program.instrs[i - 1].at.dw[p]);
    }
    CHECK_EQ(own, ghp_lr_scaling_takes_batches(l->lowering.method.scaling)
                      ? micro_batches * learning
                      : 0);
    CHECK_EQ(all, 1);
}

static void check_programs(void)
{
    static const char *const names[] = {"lars", "lena"};
    struct ghp_staging parts = {.micro_batches = 4};
    struct lowered l;

    for (int k = 0; k < 2; k++) {
        open(GHP_SOURCE_DIR "/models/lenet5.json", names[k], &l);
        CHECK_STATUS(lower(&l), GHP_OK);
        CHECK_STATUS(ghp_program_check(&l.program), GHP_OK);
        check_norms(&l, 1);
        l.lowering.staging = &parts;
        CHECK_STATUS(lower(&l), GHP_OK);
        CHECK_STATUS(ghp_program_check(&l.program), GHP_OK);
        check_norms(&l, 4);
        close(&l);
    }
}

static void refuse(struct lowered *l, const char *word)
{
    if (CHECK_STATUS(lower(l), GHP_ERR_INPUT)) CHECK(strstr(ghp_status_message(), word) != NULL);
}

static void check_refusals(void)
{
    struct ghp_staging stages = {.n = 2, .micro_batches = 1};
    struct lowered l;

    open(GHP_SOURCE_DIR "/models/lenet5.json", "adascale", &l);
    l.lowering.method.optimizer = &ghp_optimizer_adamw;
    refuse(&l, "--optimizer sgd");
    l.lowering.method.optimizer = NULL;
    l.lowering.method.sync = (struct ghp_sync){.ops = &ghp_sync_local, .argument = 4};
    refuse(&l, "'local'");
    l.lowering.method.sync = (struct ghp_sync){0};
    l.splits[1] = (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = 2};
    refuse(&l, l.model.layers[1].name);
    l.lowering.method.scaling = named("lars");
    CHECK_STATUS(lower(&l), GHP_OK);
    l.splits[1] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    stages.stage[0].workers = stages.stage[1].workers = 1;
    stages.stage[1].first_layer = 4;
    l.lowering.staging = &stages;
    refuse(&l, "stages");
    close(&l);
    open(GHP_SOURCE_DIR "/models/small-resnet.json", "lena", &l);
    refuse(&l, "\"statistics\": \"local:S\"");
    close(&l);
    open(GHP_SOURCE_DIR "/tests/executor/tied.json", "lena", &l);
    refuse(&l, "shares its weights");
    close(&l);
}

CHECK_TEST(scaling)
{
    check_programs();
    check_refusals();
    return check_end();
}
