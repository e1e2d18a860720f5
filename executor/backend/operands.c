/* executor/backend/operands.c - one block of memory, cut into the tensors of an operation. */
#include "executor/backend/operands.h"
#include "core/model/precision.h"
#include "core/model/window_attention.h"
#include "executor/platform/random.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { EVERYTHING = -1 };

/* Tensors that passes touch. Only those of a matrix product are large enough to be worth leaving some out. */
static unsigned needs(enum ghp_op op, unsigned passes)
{
    unsigned uses = 0;

    if (!ghp_op_is_weighted(op)) return (unsigned)EVERYTHING;
    for (int pass = 0; pass < GHP_PASS_COUNT; pass++)
        if (passes & 1u << pass) uses |= ghp_op_uses(op, (enum ghp_pass)pass);
    return uses;
}

/* A further input of token ids. */
static bool has_ids(const struct ghp_local *local)
{
    int ids = ghp_op_of(local->op)->ids_input;

    return ids > 0 && local->n_inputs > ids;
}

int ghp_operand_set_inputs(const struct ghp_local *local)
{
    if (has_ids(local)) return ghp_op_of(local->op)->ids_input;
    return local->n_inputs > 1 ? local->n_inputs : 1;
}

int ghp_operand_set_weights(const struct ghp_local *local)
{
    return ghp_op_params(local->op);
}

int64_t ghp_operand_set_input_elements(const struct ghp_local *local, int input)
{
    int64_t positions = local->keys > 0 && input > 0 ? local->keys : local->h;
    int64_t table = ghp_window_table_elements(local, input);

    if (table > 0) return table;
    if (local->slice[0] > 0) return local->n * positions * local->w * local->slice[input];
    return ghp_local_in_elements(local);
}

/* Labels of a loss, ids of a table, or those that an attention reads. */
static int64_t count_ids(const struct ghp_local *local)
{
    return has_ids(local) ? local->n * (local->keys > 0 ? local->keys : local->h)
                          : ghp_local_labels(local);
}

/* Takes the next tensor from the block; with base NULL it only counts. */
struct arena {
    char *base;
    int64_t used;
};

static void *take(struct arena *arena, int64_t bytes)
{
    void *at = arena->base == NULL ? NULL : arena->base + arena->used;
    arena->used += ghp_align(bytes);
    return at;
}

static void take_all(const struct ghp_local *local, int size, unsigned what, struct arena *arena,
                     struct ghp_tensors *at)
{
    int64_t out = ghp_local_out_elements(local) * size;
    int weights = ghp_operand_set_weights(local);
    for (int i = 0; i < ghp_operand_set_inputs(local); i++) {
        int64_t in = ghp_operand_set_input_elements(local, i) *
                     (ghp_op_of(local->op)->takes_ids ? (int)sizeof(int32_t) : size);
        if (what & GHP_AT_X) at->x[i] = take(arena, in);
        if (what & GHP_AT_DX) at->dx[i] = take(arena, in);
    }
    if (has_ids(local) && (what & GHP_AT_X))
        at->x[local->n_inputs - 1] = take(arena, count_ids(local) * (int64_t)sizeof(int32_t));
    if (what & GHP_AT_Y) at->y = take(arena, out);
    if (what & GHP_AT_DY) at->dy = take(arena, out);
    for (int i = 0; i < weights; i++) {
        int64_t bytes = ghp_local_param_elements(local, i) * ghp_parameter_bytes(size);
        if (what & GHP_AT_W) at->w[i] = take(arena, bytes);
        if (what & GHP_AT_DW) at->dw[i] = take(arena, bytes);
    }
    if (what != (unsigned)EVERYTHING) return;
    at->saved = take(arena, ghp_local_saved_bytes(local, size));
    at->metrics = take(arena, GHP_METRIC_COUNT * (int64_t)sizeof(double));
    if (ghp_op_of(local->op)->is_loss)
        at->labels = take(arena, ghp_local_labels(local) * (int64_t)sizeof(int32_t));
    if (ghp_local_stats_bytes(local) > 0)
        at->stats = take(arena, ghp_local_stats_bytes(local) / ghp_local_repeat(local));
    if (ghp_op_of(local->op)->states[0].part == NULL) return;
    for (int i = 0; i < GHP_MAX_STATES; i++)
        at->state[i] = take(arena, local->c * ghp_parameter_bytes(size));
}

int64_t ghp_operand_set_bytes(const struct ghp_local *local, int element_bytes, unsigned passes)
{
    struct ghp_tensors at = {0};
    struct arena arena = {0};
    take_all(local, element_bytes, needs(local->op, passes), &arena, &at);
    return arena.used;
}

/* Uniform in [centre - 1, centre + 1) x span; exact in float for the centres and spans used here. */
struct fill {
    uint32_t stream;
    double centre, span;
};

static void fill_tensor(void *tensor, int64_t elements, int element_bytes, struct fill fill)
{
    enum { CHUNK = 1024 };
    uint32_t random[CHUNK];
    if (tensor == NULL) return;
    for (int64_t first = 0; first < elements; first += CHUNK) {
        uint32_t counter[4] = {(uint32_t)(first / 4), fill.stream, 0, 0};
        int64_t count = elements - first < CHUNK ? elements - first : CHUNK;
        ghp_random_fill(1, counter, (count + 3) / 4, random);
        for (int64_t i = 0; i < count; i++) {
            double value = fill.span * ((double)(random[i] >> 8) * 0x1p-23 - 1.0 + fill.centre);
            if (element_bytes == 8)
                ((double *)tensor)[first + i] = value;
            else if (element_bytes == 4)
                ((float *)tensor)[first + i] = (float)value;
            else
                ((uint16_t *)tensor)[first + i] = ghp_bf16_of((float)value);
        }
    }
}

/* Fills a tensor of the set. */
typedef enum ghp_status fill_fn(const struct ghp_operand_set *set, void *tensor, int64_t elements,
                                int element_bytes, struct fill fill);

static enum ghp_status fill_on_host(const struct ghp_operand_set *set, void *tensor,
                                    int64_t elements, int element_bytes, struct fill fill)
{
    (void)set;
    fill_tensor(tensor, elements, element_bytes, fill);
    return GHP_OK;
}

static enum ghp_status fill_all(const struct ghp_operand_set *set, fill_fn *fill)
{
    const struct ghp_local *local = &set->local;
    const struct ghp_tensors *at = &set->args.at;
    int size = set->element_bytes, wide = ghp_parameter_bytes(size);
    int weights = ghp_operand_set_weights(local);
    bool norm = ghp_op_of(local->op)->states[0].part != NULL; /* running statistics */

    for (int i = 0; !ghp_op_of(local->op)->takes_ids && i < ghp_operand_set_inputs(local); i++)
        GHP_TRY(fill(set, (void *)(uintptr_t)at->x[i], ghp_operand_set_input_elements(local, i),
                     size, (struct fill){(uint32_t)i, 0.0, 1.0}));
    GHP_TRY(fill(set, at->y, ghp_local_out_elements(local), size, (struct fill){20, 0.0, 1.0}));
    GHP_TRY(fill(set, at->dy, ghp_local_out_elements(local), size, (struct fill){21, 0.0, 1.0}));
    for (int i = 0; i < weights; i++)
        GHP_TRY(
            fill(set, at->w[i], ghp_local_param_elements(local, i), wide,
                 (struct fill){22 + (uint32_t)i, norm && i == 0 ? 2.0 : 0.0, norm ? 0.5 : 0.25}));
    if (!norm) return GHP_OK;
    GHP_TRY(fill(set, at->state[0], local->c, wide, (struct fill){24, 0.0, 0.5}));
    return fill(set, at->state[1], local->c, wide, (struct fill){25, 2.0, 0.5});
}

/* Labels or ids, one a position; NULL: it has none. */
static int32_t *ids_of(const struct ghp_operand_set *set)
{
    const struct ghp_op_facts *facts = ghp_op_of(set->local.op);

    if (facts->is_loss) return (int32_t *)(uintptr_t)set->args.at.labels;
    if (has_ids(&set->local)) return (int32_t *)(uintptr_t)set->args.at.x[set->local.n_inputs - 1];
    return facts->takes_ids ? (int32_t *)(uintptr_t)set->args.at.x[0] : NULL;
}

static void make_ids(const struct ghp_local *local, int32_t *ids)
{
    bool is_loss = ghp_op_of(local->op)->is_loss;
    bool numbers = ghp_op_of(local->op)->takes_numbers;
    bool pair = local->c == 1 || local->loss.multi_label; /* one output tells two apart */
    int64_t most = !is_loss ? local->vocabulary : pair ? 2 : local->c;
    int64_t pad = local->heads.pad_token, end = local->heads.end_token;
    const struct ghp_label_outputs outputs = ghp_loss_label_outputs(&local->loss);

    if (has_ids(local)) most = (pad > end ? pad : end) + 2; /* some are neither */
    for (int64_t i = 0; i < count_ids(local); i++) {
        if (local->op == GHP_OP_LOSSES) {
            most = outputs.classes[ghp_label_output(&outputs, i)];
            numbers = most == 0;
        }
        ids[i] = numbers ? ghp_label_of_number((float)(4 * ghp_random_unit(1, 26, (uint64_t)i) - 2))
                         : (int32_t)(ghp_random_u64(1, 26, (uint64_t)i) % (uint64_t)most);
    }
}

/* Large ones lie in huge pages if the system has them, as a worker's arena does. */
void *ghp_operand_set_block(int64_t bytes)
{
    const size_t huge = 2 << 20;
    size_t align = (size_t)bytes >= 2 * huge ? huge : GHP_ALIGN_BYTES;
    size_t whole = ((size_t)bytes / align + 1) * align;
    void *block = aligned_alloc(align, whole);

    if (block != NULL && align == huge) madvise(block, whole, MADV_HUGEPAGE); /* a hint */
    return block;
}

/* The first position of the queries. If positions are divided it is the last worker's, whose causal queries see
 * most. Keys of another sequence may be fewer. */
static int64_t first_position_of(const struct ghp_local *local)
{
    return local->keys > local->h ? local->keys - local->h : 0;
}

/* Everything but memory. */
static struct ghp_operand_set set_of(const struct ghp_local *local, int element_bytes,
                                     unsigned passes)
{
    return (struct ghp_operand_set){.local = *local,
                                    .element_bytes = element_bytes,
                                    .bytes = ghp_operand_set_bytes(local, element_bytes, passes),
                                    .args = {.training = true,
                                             .loss_scale = 1.0 / (double)(local->n * local->h),
                                             .stat_count = local->n * local->h * local->w,
                                             .valid_samples = local->n,
                                             .first_position = first_position_of(local),
                                             .seed = 1,
                                             .global_channels = local->c}};
}

enum ghp_status ghp_operand_set_init(const struct ghp_local *local, int element_bytes,
                                     unsigned passes, struct ghp_operand_set *set)
{
    unsigned what = needs(local->op, passes);

    *set = set_of(local, element_bytes, passes);
    set->memory = ghp_operand_set_block(set->bytes);
    if (set->memory == NULL) {
        int64_t bytes = set->bytes;
        *set = (struct ghp_operand_set){0};
        return GHP_FAIL(
            GHP_ERR_NO_MEMORY,
            "out of memory: the tensors of one '%s' take %lld bytes; use a smaller batch "
            "or more workers",
            ghp_op_name(local->op), (long long)bytes);
    }
    memset(set->memory, 0, (size_t)set->bytes);
    struct arena arena = {.base = set->memory};
    take_all(local, element_bytes, what, &arena, &set->args.at);
    if (ids_of(set) != NULL) make_ids(local, ids_of(set));
    return fill_all(set, fill_on_host);
}

void ghp_operand_set_release(struct ghp_operand_set *set)
{
    if (set->device.ops != NULL)
        ghp_device_release(set->device, set->memory);
    else
        free(set->memory);
    *set = (struct ghp_operand_set){0};
}

/* ---- on a device ---- */

/* Sizes of a weight tensor: a device may store those of convolutions in another order. */
static struct ghp_param_descriptor weight_descriptor(const struct ghp_operand_set *set)
{
    const struct ghp_local *l = &set->local;
    const struct ghp_op_param *param = &ghp_op_of(l->op)->params[0];
    struct ghp_param_descriptor descriptor = {.element_bytes =
                                                  ghp_parameter_bytes(set->element_bytes)};

    if (param->part == NULL) return descriptor;
    descriptor.elements = ghp_local_param_elements(l, 0);
    descriptor.n_dims = ghp_local_param_dims(l, param, descriptor.dims);
    if (descriptor.n_dims < 4) descriptor.n_dims = 0; /* no convolution's: as it is */
    return descriptor;
}

enum ghp_status ghp_operand_set_upload(const struct ghp_operand_set *host,
                                       struct ghp_operand_set *set)
{
    struct ghp_param_descriptor descriptor = weight_descriptor(set);

    GHP_TRY(ghp_device_write(set->device, set->memory, host->memory, host->bytes));
    for (int i = 0; descriptor.n_dims > 1 && i < GHP_MAX_PARAMS; i++) {
        if (set->args.at.w[i] != NULL)
            GHP_TRY(
                ghp_device_put(set->device, &descriptor, host->args.at.w[i], set->args.at.w[i]));
        if (set->args.at.dw[i] != NULL)
            GHP_TRY(
                ghp_device_put(set->device, &descriptor, host->args.at.dw[i], set->args.at.dw[i]));
    }
    return GHP_OK;
}

enum ghp_status ghp_operand_set_fetch(const struct ghp_operand_set *set,
                                      struct ghp_operand_set *host)
{
    struct ghp_param_descriptor descriptor = weight_descriptor(set);

    GHP_TRY(ghp_device_read(set->device, host->memory, set->memory, set->bytes));
    for (int i = 0; descriptor.n_dims > 1 && i < GHP_MAX_PARAMS; i++) {
        if (set->args.at.w[i] != NULL)
            GHP_TRY(
                ghp_device_get(set->device, &descriptor, set->args.at.w[i], host->args.at.w[i]));
        if (set->args.at.dw[i] != NULL)
            GHP_TRY(
                ghp_device_get(set->device, &descriptor, set->args.at.dw[i], host->args.at.dw[i]));
    }
    return GHP_OK;
}

enum { PATTERN_ELEMENTS = 1 << 20 };

/* The first elements from the host, the others as copies of them, twice as many each time. */
static enum ghp_status fill_on_device(const struct ghp_operand_set *set, void *tensor,
                                      int64_t elements, int element_bytes, struct fill fill)
{
    int64_t first = elements < PATTERN_ELEMENTS ? elements : PATTERN_ELEMENTS;
    void *host;
    enum ghp_status status;

    if (tensor == NULL || elements == 0) return GHP_OK;
    host = ghp_alloc((size_t)first, (size_t)element_bytes);
    if (host == NULL) return GHP_NO_MEMORY();
    fill_tensor(host, first, element_bytes, fill);
    status = ghp_device_write(set->device, tensor, host, first * element_bytes);
    for (int64_t done = first; done < elements && status == GHP_OK;) {
        int64_t more = elements - done < done ? elements - done : done;

        status = ghp_device_copy(set->device, GHP_DEVICE_STREAM_COMPUTE,
                                 (struct ghp_copy){(char *)tensor + done * element_bytes, tensor,
                                                   more * element_bytes, GHP_COPY_ON_DEVICE});
        done += more;
    }
    free(host);
    return status;
}

static enum ghp_status send_ids(const struct ghp_operand_set *set)
{
    const struct ghp_local *l = &set->local;
    int32_t *ids;
    enum ghp_status status;

    if (ids_of(set) == NULL) return GHP_OK;
    ids = ghp_alloc((size_t)count_ids(l), sizeof *ids);
    if (ids == NULL) return GHP_NO_MEMORY();
    make_ids(l, ids);
    status = ghp_device_write(set->device, ids_of(set), ids, count_ids(l) * (int64_t)sizeof *ids);
    free(ids);
    return status;
}

enum ghp_status ghp_operand_set_init_to_time(struct ghp_device device,
                                             const struct ghp_local *local, int element_bytes,
                                             unsigned passes, struct ghp_operand_set *set)
{
    struct arena arena = {0};
    void *memory = NULL;
    enum ghp_status status = GHP_OK;

    if (device.ops == NULL) return ghp_operand_set_init(local, element_bytes, passes, set);
    *set = set_of(local, element_bytes, passes);
    set->device = device;
    GHP_TRY_GOTO(status, ghp_device_allocate(device, set->bytes, &memory), fail);
    set->memory = arena.base = memory;
    take_all(local, element_bytes, needs(local->op, passes), &arena, &set->args.at);
    GHP_TRY_GOTO(status, send_ids(set), fail);
    GHP_TRY_GOTO(status, fill_all(set, fill_on_device), fail);
    GHP_TRY_GOTO(status, ghp_device_finish(device, GHP_DEVICE_STREAM_COMPUTE), fail);
    return GHP_OK;
fail:
    ghp_operand_set_release(set);
    return status;
}

enum ghp_status ghp_operand_set_init_on(struct ghp_device device, const struct ghp_local *local,
                                        int element_bytes, unsigned passes,
                                        struct ghp_operand_set *set)
{
    struct ghp_operand_set host;
    enum ghp_status status =
        ghp_operand_set_init_to_time(device, local, element_bytes, passes, set);

    if (status != GHP_OK || device.ops == NULL) return status;
    status = ghp_operand_set_init(local, element_bytes, passes, &host);
    if (status == GHP_OK) status = ghp_operand_set_upload(&host, set);
    ghp_operand_set_release(&host);
    if (status != GHP_OK) ghp_operand_set_release(set);
    return status;
}

enum ghp_status ghp_operand_set_run(struct ghp_operand_set *set, const struct ghp_backend_ops *ops,
                                    struct ghp_backend *backend, enum ghp_pass pass)
{
    struct ghp_kernel *kernel = NULL;
    void *scratch = NULL;
    GHP_TRY(ops->prepare(backend, &set->local, pass, &kernel));
    enum ghp_status status = ghp_device_allocate(set->device, ops->scratch_bytes(kernel), &scratch);
    set->args.at.scratch = scratch;
    if (status == GHP_OK) status = ops->run(kernel, &set->args);
    if (status == GHP_OK) status = ghp_device_finish(set->device, GHP_DEVICE_STREAM_COMPUTE);
    ghp_device_release(set->device, scratch);
    set->args.at.scratch = NULL;
    ops->release(kernel);
    return status;
}
