/* executor/backend/operands.h - all tensors of one local operation, filled with numbers that every backend sees alike.
 *
 * What opbench times and what the backend tests compare: the same operation on the same numbers. Numbers are multiples
 * of 2^-23, so that float and double hold the same ones (bfloat16 the nearest to them). Nothing overlaps: y is not x,
 * dx is not dy.
 *
 * Call order: init -> run passes, read and write tensors -> release. */
#ifndef GHP_EXECUTOR_BACKEND_OPERANDS_H
#define GHP_EXECUTOR_BACKEND_OPERANDS_H

#include "executor/backend/backend.h"

struct ghp_operand_set {
    struct ghp_local local;
    int element_bytes; /* 2, 4 or 8: core/model/precision.h; weights, states and what is saved may be wider */
    /* tensors; training, loss scale 1/n, all samples valid, all channels here */
    struct ghp_kernel_arguments args;
    void *memory;             /* owned: one block that holds every tensor */
    int64_t bytes;            /* of memory */
    struct ghp_device device; /* where it lies; zeroed: host memory */
};

/* Every pass, for ghp_operand_set_init. */
enum { GHP_OPERAND_SET_ALL = (1 << GHP_PASS_COUNT) - 1 };

/* Allocates and fills the tensors that the given passes touch.
 *
 * passes   bit 1 << pass for each pass that will run
 * set      filled on success, zeroed on failure; released by the caller
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local
 * Tested    tests/executor/backend/reference/test_reference.c */
enum ghp_status ghp_operand_set_init(const struct ghp_local *local, int element_bytes,
                                     unsigned passes, struct ghp_operand_set *set);
void ghp_operand_set_release(struct ghp_operand_set *set); /* accepts a zeroed one */

/* The same in a device's memory, for measurements of time alone: large tensors repeat their first numbers, which the
 * host makes once. In host memory, ghp_operand_set_init. */
enum ghp_status ghp_operand_set_init_to_time(struct ghp_device device,
                                             const struct ghp_local *local, int element_bytes,
                                             unsigned passes, struct ghp_operand_set *set);
/* The same numbers in a device's memory; in host memory, ghp_operand_set_init. */
enum ghp_status ghp_operand_set_init_on(struct ghp_device device, const struct ghp_local *local,
                                        int element_bytes, unsigned passes,
                                        struct ghp_operand_set *set);
/* All tensors between a set in host memory and one on a device, made for the same operation and passes; waits. */
enum ghp_status ghp_operand_set_upload(const struct ghp_operand_set *host,
                                       struct ghp_operand_set *set);
enum ghp_status ghp_operand_set_fetch(const struct ghp_operand_set *set,
                                      struct ghp_operand_set *host);

/* Bytes that init would allocate. */
int64_t ghp_operand_set_bytes(const struct ghp_local *local, int element_bytes, unsigned passes);

/* Prepares a pass, runs it once on the set's tensors with scratch of its own, and releases it. */
enum ghp_status ghp_operand_set_run(struct ghp_operand_set *set, const struct ghp_backend_ops *ops,
                                    struct ghp_backend *backend, enum ghp_pass pass);

int64_t ghp_operand_set_input_elements(const struct ghp_local *local, int input);
int ghp_operand_set_inputs(const struct ghp_local *local); /* at least 1 */
int ghp_operand_set_weights(
    const struct ghp_local *local); /* weight tensors, each of equal elements */

/* A cache-line aligned block for scratch: never NULL for bytes 0; NULL if memory is short. Free with free(). */
void *ghp_operand_set_block(int64_t bytes);

#endif
