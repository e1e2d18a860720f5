/* core/plan/method_io.h - a method as plans have it, and as people are told it: its keys, and how two differ.
 * Another choice of training is said here once, and plans, summaries and comparisons have it.
 *
 * Tested   tests/core/plan/test_method_io.c */
#ifndef GHP_CORE_PLAN_METHOD_IO_H
#define GHP_CORE_PLAN_METHOD_IO_H

#include "core/base/json.h"
#include "core/program/method.h"

/* Its keys in a plan, or in what is said of one. *failed is set if memory is short. */
void ghp_method_write(const struct ghp_method *method, json_t *object, bool *failed);
/* Reads the keys into a zeroed method. Keys that plans of earlier versions lack stand for all-reduce, sgd, and neither
 * clipping nor scaling.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT naming the key */
enum ghp_status ghp_method_read(const struct ghp_node *object, struct ghp_method *method);

/* Whether a training by the one can continue by the other. Returns GHP_OK; GHP_ERR_INPUT naming the options. */
enum ghp_status ghp_method_check_alike(const struct ghp_method *a, const struct ghp_method *b);

/* Whether `workers` workers can be divided into groups of `within`; 0: no groups. Returns GHP_OK; GHP_ERR_INPUT saying
 * what else. */
enum ghp_status ghp_method_check_within(int within, int workers);

/* Whether gradients can travel as it says, of a plan that shards parameters or not. Returns GHP_OK; GHP_ERR_INPUT. */
enum ghp_status ghp_method_check_reduced(const struct ghp_method *method, bool shards,
                                         int element_bytes);
/* By `reduces_bf16`; NULL ends. */
extern const char *const ghp_reduce_precision_names[];

/* A part in which two differ. */
enum { GHP_METHOD_PARTS = 7 };
struct ghp_method_difference {
    const char *what;
    char texts[2][GHP_SYNC_TEXT_BYTES]; /* what the one has, and the other */
    struct ghp_method with;             /* the one with the other's part */
};
/* Returns how many there are. */
int ghp_method_differences(const struct ghp_method *a, const struct ghp_method *b,
                           struct ghp_method_difference rows[GHP_METHOD_PARTS]);

#endif
