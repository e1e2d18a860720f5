/* ghp-test: timeout=120 emulated=yes
 *
 * Updates on a GPU compared with the reference's, for every optimizer: several tensors at once, with and without decay,
 * with gradients as they are and clipped by a norm that the GPU took itself; within float's rounding. The copies in
 * bfloat16 that updates write are the new weights rounded, and so are those that copy_weight makes; a tensor that asks
 * for none gets none. */
#include "core/model/precision.h"
#include "executor/backend/backend.h"
#include "tests/check.h"

#include <math.h>

enum {
    TENSORS = 3,
    LONGEST = 20016,            /* a multiple of 16: each begins as tensors of a program do */
    KINDS = 2 + GHP_MAX_MOMENTS /* gradient, weight, moments */
};

static const int64_t sizes[TENSORS] = {LONGEST - 15, 5, 8192};
static struct ghp_device device;

struct numbers { /* TENSORS x KINDS x LONGEST, on the host and on the device */
    float *host, *reference;
    void *there, *parts, *sum;
    uint16_t *copies;   /* of the weights in bfloat16, TENSORS x LONGEST */
    void *copies_there; /* the same on the device */
};

enum { NO_COPY = 2 /* the tensor whose update writes none */ };

static float *at(float *block, int tensor, int kind)
{
    return block + (tensor * KINDS + kind) * LONGEST;
}

static void copy(void *to, const void *from, int64_t bytes, enum ghp_copy_direction direction)
{
    CHECK_STATUS(ghp_device_copy(device, GHP_DEVICE_STREAM_COMPUTE,
                                 (struct ghp_copy){to, from, bytes, direction}),
                 GHP_OK);
    CHECK_STATUS(ghp_device_finish(device, GHP_DEVICE_STREAM_COMPUTE), GHP_OK);
}

static struct ghp_update update_of(float *block, int tensor, const struct ghp_update *like)
{
    struct ghp_update update = *like;

    update.dw = at(block, tensor, 0);
    update.w = at(block, tensor, 1);
    for (int m = 0; m < like->optimizer->n_moments; m++)
        update.moment[m] = at(block, tensor, 2 + m);
    update.elements = sizes[tensor];
    update.decays = tensor != 1;
    return update;
}

/* The squares of all gradients, by both. */
static double check_square(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                           const struct numbers *n)
{
    struct ghp_squares tensors[TENSORS];
    double expected = 0, sum = 0;

    for (int t = 0; t < TENSORS; t++) {
        tensors[t] = (struct ghp_squares){at(n->there, t, 0), {sizes[t], 4}};
        for (int64_t i = 0; i < sizes[t]; i++)
            expected += (double)at(n->host, t, 0)[i] * at(n->host, t, 0)[i];
    }
    CHECK_STATUS(ops->square(backend, &(struct ghp_square_sum){tensors, TENSORS, n->parts, n->sum}),
                 GHP_OK);
    copy(&sum, n->sum, sizeof sum, GHP_COPY_TO_HOST);
    CHECK_NEAR(sum / expected, 1, 1e-12);
    return expected;
}

/* Copies hold what the weights are now, or what they held before. */
static void check_copies(const struct numbers *n, const char *of, int none)
{
    int wrong = 0;

    copy(n->copies, n->copies_there, TENSORS * LONGEST * 2, GHP_COPY_TO_HOST);
    for (int t = 0; t < TENSORS; t++)
        for (int64_t i = 0; i < LONGEST; i++) {
            bool written = t != none && i < sizes[t];

            wrong += n->copies[t * LONGEST + i] !=
                     (written ? ghp_bf16_of(at(n->host, t, 1)[i]) : (uint16_t)0xffff);
        }
    if (!CHECK_EQ(wrong, 0)) fprintf(stderr, "  copies by %s\n", of);
}

static void clear_copies(const struct numbers *n)
{
    memset(n->copies, 0xff, TENSORS * LONGEST * 2);
    copy(n->copies_there, n->copies, TENSORS * LONGEST * 2, GHP_COPY_TO_DEVICE);
}

static void check_optimizer(const struct ghp_backend_ops *ops, struct ghp_backend *backends[2],
                            struct numbers *n, const struct ghp_optimizer *optimizer, bool clips)
{
    const int64_t bytes = TENSORS * KINDS * LONGEST * (int64_t)sizeof(float);
    struct ghp_update like = {.optimizer = optimizer, .given = ghp_optimizer_usual(optimizer)};
    struct ghp_update updates[TENSORS];
    double squares, worst = 0;

    like.given.weight_decay = 0.1;
    for (int i = 0; i < TENSORS * KINDS * LONGEST; i++) /* moments are not below 0 */
        n->host[i] = n->reference[i] = (float)(i * 7919 % 1009) / 1009.0f;
    copy(n->there, n->host, bytes, GHP_COPY_TO_DEVICE);
    squares = check_square(ops, backends[0], n);
    like.given.clip_norm = 0.5 * sqrt(squares);
    if (optimizer->complete != NULL) optimizer->complete(&like.given, 3);
    like.squares = clips ? n->sum : NULL;
    clear_copies(n);
    for (int t = 0; t < TENSORS; t++) {
        updates[t] = update_of(n->there, t, &like);
        if (t != NO_COPY) updates[t].w_bf16 = (uint16_t *)n->copies_there + t * LONGEST;
    }
    CHECK_STATUS(ops->update_all(backends[0], updates, TENSORS), GHP_OK);
    like.squares = clips ? &squares : NULL;
    for (int t = 0; t < TENSORS; t++) {
        struct ghp_update update = update_of(n->reference, t, &like);

        CHECK_STATUS(ghp_backend_reference.update(backends[1], &update), GHP_OK);
    }
    copy(n->host, n->there, bytes, GHP_COPY_TO_HOST);
    for (int i = 0; i < TENSORS * KINDS * LONGEST; i++)
        worst = fmax(worst, fabs((double)n->host[i] - n->reference[i]));
    if (!CHECK(worst < 1e-6)) /* some roundings of numbers up to 2 */
        fprintf(stderr, "%s%s: %.3g\n", optimizer->name, clips ? ", clipped" : "", worst);
    check_copies(n, optimizer->name, NO_COPY);
    clear_copies(n);
    for (int t = 0; t < TENSORS; t++)
        CHECK_STATUS(ops->copy_weight(backends[0], at(n->there, t, 1),
                                      (uint16_t *)n->copies_there + t * LONGEST, sizes[t]),
                     GHP_OK);
    check_copies(n, "copy_weight", -1);
}

CHECK_TEST(cuda_update)
{
    const struct ghp_backend_config config = {.element_bytes = 4, .threads = 1, .exact = true};
    const struct ghp_backend_ops *ops = ghp_backend_find("cuda");
    struct ghp_backend *backends[2] = {NULL};
    const size_t all = TENSORS * KINDS * LONGEST;
    struct numbers n = {.host = ghp_alloc(all, sizeof(float)),
                        .reference = ghp_alloc(all, sizeof(float)),
                        .copies = ghp_alloc(TENSORS * LONGEST, sizeof(uint16_t))};

    if (!CHECK(ops != NULL)) return check_end();
    if (ops->check() != GHP_OK) SKIP(ghp_status_message());
    CHECK_STATUS(ops->open(&config, &backends[0]), GHP_OK);
    CHECK_STATUS(ghp_backend_reference.open(&config, &backends[1]), GHP_OK);
    device = ghp_backend_device(ops, backends[0]);
    CHECK_STATUS(ghp_device_allocate(device, (int64_t)(all * sizeof(float)), &n.there), GHP_OK);
    CHECK_STATUS(ghp_device_allocate(device, TENSORS * LONGEST * 2, &n.copies_there), GHP_OK);
    CHECK_STATUS(ghp_device_allocate(device, GHP_NORM_PARTS * (int64_t)sizeof(double), &n.parts),
                 GHP_OK);
    CHECK_STATUS(ghp_device_allocate(device, (int64_t)sizeof(double), &n.sum), GHP_OK);
    for (int i = 0; i < 2 * GHP_OPTIMIZERS; i++)
        check_optimizer(ops, backends, &n, ghp_optimizer_at(i / 2), i % 2 == 1);
    ghp_device_release(device, n.copies_there);
    ghp_device_release(device, n.sum);
    ghp_device_release(device, n.parts);
    ghp_device_release(device, n.there);
    free(n.copies);
    free(n.reference);
    free(n.host);
    ops->close(backends[0]);
    ghp_backend_reference.close(backends[1]);
    return check_end();
}
