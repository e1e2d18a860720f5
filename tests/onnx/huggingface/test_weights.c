/* The weights of a folder: each parameter compared with the place in the file that it is by definition, names with and
 * without prefix, what else files hold, and every way in which a file can be another network's. */
#include "onnx/huggingface/huggingface.h"
#include "tests/check.h"
#include "tests/onnx/huggingface/folder.h"

struct expected { /* a parameter, and where it lies in the file */
    const char *param;
    int64_t rows, in; /* [rows][in]; in 0: a vector */
    const char *tensor;
    int64_t first,
        across; /* element [r][c] is element first + r + c * across of [in][out], across 0: of [out][in] */
};

static const struct expected gpt2[] = {
    {"wte.weight", 7, 4, "wte.weight", 0, 0},
    {"wpe.weight", 5, 4, "wpe.weight", 0, 0},
    {"h.0.ln_1.weight", 4, 0, "h.0.ln_1.weight", 0, 0},
    {"h.1.ln_1.bias", 4, 0, "h.1.ln_1.bias", 0, 0},
    {"h.0.attn.q.weight", 4, 4, "h.0.attn.c_attn.weight", 0, 12},
    {"h.0.attn.k.weight", 4, 4, "h.0.attn.c_attn.weight", 4, 12},
    {"h.1.attn.v.weight", 4, 4, "h.1.attn.c_attn.weight", 8, 12},
    {"h.0.attn.q.bias", 4, 0, "h.0.attn.c_attn.bias", 0, 0},
    {"h.1.attn.k.bias", 4, 0, "h.1.attn.c_attn.bias", 4, 0},
    {"h.0.attn.v.bias", 4, 0, "h.0.attn.c_attn.bias", 8, 0},
    {"h.1.attn.c_proj.weight", 4, 4, "h.1.attn.c_proj.weight", 0, 4},
    {"h.0.mlp.c_fc.weight", 16, 4, "h.0.mlp.c_fc.weight", 0, 16},
    {"h.0.mlp.c_proj.weight", 4, 16, "h.0.mlp.c_proj.weight", 0, 4},
    {"h.1.mlp.c_proj.bias", 4, 0, "h.1.mlp.c_proj.bias", 0, 0},
    {"ln_f.bias", 4, 0, "ln_f.bias", 0, 0},
    {NULL, 0, 0, NULL, 0, 0}};

static const struct expected llama[] = {
    {"embed_tokens.weight", 7, 4, "embed_tokens.weight", 0, 0},
    {"layers.1.self_attn.q_proj.weight", 4, 4, "layers.1.self_attn.q_proj.weight", 0, 0},
    {"layers.0.self_attn.k_proj.weight", 2, 4, "layers.0.self_attn.k_proj.weight", 0, 0},
    {"layers.0.mlp.down_proj.weight", 4, 6, "layers.0.mlp.down_proj.weight", 0, 0},
    {"norm.weight", 4, 0, "norm.weight", 0, 0},
    {"lm_head.weight", 7, 4, "lm_head.weight", 0, 0},
    {NULL, 0, 0, NULL, 0, 0}};

static int find(const struct ghp_hf_weights *weights, const char *name)
{
    for (int i = 0; i < ghp_hf_weights_count(weights); i++)
        if (strcmp(ghp_hf_weights_item(weights, i).name, name) == 0) return i;
    return -1;
}

static void check_one(struct ghp_hf_weights *weights, const struct expected *e)
{
    int item = find(weights, e->param);
    int64_t in = e->in > 0 ? e->in : 1;
    struct ghp_hf_weight weight;
    float values[128];

    if (!CHECK(item >= 0)) return;
    weight = ghp_hf_weights_item(weights, item);
    CHECK_EQ(weight.n_dims, e->in > 0 ? 2 : 1);
    CHECK_EQ(weight.dims[0], e->rows);
    if (e->in > 0) CHECK_EQ(weight.dims[1], e->in);
    CHECK_STATUS(ghp_hf_weights_read(weights, item, 4, values), GHP_OK);
    for (int64_t r = 0; r < e->rows; r++)
        for (int64_t c = 0; c < in; c++) {
            int64_t at = e->across > 0 ? e->first + r + c * e->across : (e->first + r) * in + c;

            CHECK(values[r * in + c] == folder_value(e->tensor, at));
        }
}

static void check_all(const struct expected *list, int n)
{
    struct ghp_hf_weights *weights = NULL;

    if (!CHECK_STATUS(ghp_hf_weights_open(folder_path(), &weights), GHP_OK)) return;
    CHECK_EQ(ghp_hf_weights_count(weights), n);
    for (; list->param != NULL; list++)
        check_one(weights, list);
    ghp_hf_weights_close(weights);
}

static void check_refused(const char *path, enum ghp_status status, const char *message)
{
    struct ghp_hf_weights *weights = NULL;

    CHECK_STATUS(ghp_hf_weights_open(path, &weights), status);
    CHECK(weights == NULL);
    CHECK_MESSAGE(message);
}

static const struct expected own_head[] = {{"lm_head.weight", 7, 4, "lm_head.weight", 0, 0},
                                           {NULL, 0, 0, NULL, 0, 0}};

static void check_head(bool tied)
{
    struct ghp_model model = {0};

    if (!CHECK_STATUS(ghp_hf_load(folder_path(), &model), GHP_OK)) return;
    CHECK_EQ(model.layers[ghp_model_find(&model, "lm_head")].tied > 0, tied);
    ghp_model_release(&model);
}

static void check_families(void)
{
    static const struct entry mask = {"@h.0.attn.bias", 4, {1, 1, 5, 5}},
                              head = {"lm_head.weight", 2, {7, 4}},
                              table = {"@layers.0.self_attn.rotary_emb.inv_freq", 1, {1}};

    folder_write_config(gpt2_config);
    folder_write_tensors(gpt2_entries, (struct folder_change){.prefix = "transformer."});
    check_all(gpt2, 2 + BLOCKS * (12 + 4) + 2);
    folder_write_tensors(gpt2_entries, (struct folder_change){.prefix = "", .extra = &mask});
    check_all(gpt2, 2 + BLOCKS * (12 + 4) + 2);
    folder_write_tensors(gpt2_entries, (struct folder_change){
                                           .prefix = "", .extra = &head, .extra_is = "wte.weight"});
    check_all(gpt2, 2 + BLOCKS * (12 + 4) + 2);
    check_head(true);
    /* config.json says tied, and the file has another output layer */
    folder_write_tensors(gpt2_entries, (struct folder_change){.prefix = "", .extra = &head});
    check_all(gpt2, 2 + BLOCKS * (12 + 4) + 2 + 1);
    check_all(own_head, 2 + BLOCKS * (12 + 4) + 2 + 1);
    check_head(false);
    folder_write_config(llama_config);
    folder_write_tensors(llama_entries,
                         (struct folder_change){.prefix = "model.", .extra = &table});
    check_all(llama, 1 + BLOCKS * 9 + 2);
}

static void check_others(void)
{
    static const struct entry wide = {"@ln_f.weight", 1, {5}},
                              flat = {"@h.%d.mlp.c_fc.weight", 2, {16, 4}},
                              further = {"@h.2.ln_1.weight", 1, {4}};

    folder_write_config(gpt2_config);
    folder_write_tensors(
        gpt2_entries, (struct folder_change){.prefix = "transformer.", .without = "@wpe.weight"});
    check_refused(folder_path(), GHP_ERR_INPUT,
                  "/model.safetensors' has no tensor 'transformer.wpe.weight'");
    folder_write_tensors(
        gpt2_entries,
        (struct folder_change){.prefix = "", .without = "@ln_f.weight", .extra = &wide});
    check_refused(folder_path(), GHP_ERR_INPUT,
                  "tensor 'ln_f.weight' is [5], but by config.json it is [4]");
    folder_write_tensors(
        gpt2_entries,
        (struct folder_change){.prefix = "", .without = "@h.%d.mlp.c_fc.weight", .extra = &flat});
    check_refused(folder_path(), GHP_ERR_INPUT,
                  "tensor 'h.0.mlp.c_fc.weight' is [16][4], but by config.json it is [4][16]");
    folder_write_tensors(gpt2_entries,
                         (struct folder_change){.prefix = "transformer.", .extra = &further});
    check_refused(folder_path(), GHP_ERR_INPUT,
                  "has a tensor 'transformer.h.2.ln_1.weight', which");
    folder_write_config(llama_config);
    check_refused(folder_path(), GHP_ERR_INPUT, "has no tensor 'model.embed_tokens.weight'");
    check_refused("gpt2-124m", GHP_ERR_INPUT, "a network without weights");
    check_refused("no-such-folder", GHP_ERR_IO, "not a folder with a config.json");
}

CHECK_TEST(weights)
{
    check_families();
    check_others();
    folder_remove();
    return check_end();
}
