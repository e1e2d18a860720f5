/* executor/transport/summands.h - numbers of several workers, added in the workers' order: every sum of tensors
 * on processors.
 *
 * The same summands give the same bits on every rank that adds them. bfloat16 is added in float and rounded once.
 *
 * Tested    tests/executor/transport/test_transport.c, test_message.c */
#ifndef GHP_EXECUTOR_TRANSPORT_SUMMANDS_H
#define GHP_EXECUTOR_TRANSPORT_SUMMANDS_H

#include <stdint.h>

/* n elements of each of `count` > 1 members. The summand of member `index` is `own`, the others' are in scratch,
 * `stride` elements apart; index -1: all are. */
struct ghp_summands {
    int count, index;
    int64_t n, stride; /* [elements] */
    const void *own, *scratch;
};

/* out = sum of the summands in the members' order; out may be own.
 *
 * element_bytes   2, 4 or 8 */
void ghp_summands_add(const struct ghp_summands *summands, int element_bytes, void *out);

#endif
