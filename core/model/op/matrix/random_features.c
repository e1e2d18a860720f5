/* core/model/op/matrix/random_features.c - sqrt(2) cos(sigma U x + q): features whose products are about those of a
 * Gaussian kernel of width 1 / sigma. U is normal, q uniform in [0, 2 pi); neither is trained or kept: both follow from
 * `seed`, by Philox blocks of (seed; a, b, 0x72666561, d) as executor/platform/random.h has them:
 *
 *     q_k            2 pi v[0] / 2^32 of block (k, 0, 1)
 *     U_kc           radius (cos, sin)(2 pi v[1] / 2^32) for even and odd c, radius = sqrt(-2 ln((v[0] + 1) / 2^32)),
 *                    of block (c / 2, k, 0)
 *
 * Source   Rahimi and Recht, NIPS 2007 */
#include "core/model/attributes.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>

static const struct ghp_attribute attributes[] = {{.key = "features",
                                                   .kind = GHP_ATTRIBUTE_INT,
                                                   .required = true,
                                                   .least = 1,
                                                   .most = 1 << 20,
                                                   .at = {offsetof(struct ghp_layer, out.c)}},
                                                  {.key = "sigma",
                                                   .kind = GHP_ATTRIBUTE_REAL,
                                                   .least = 1e-9,
                                                   .most = 1e6,
                                                   .usual = 1,
                                                   .at = {offsetof(struct ghp_layer, drawn.sigma)}},
                                                  {.key = "seed",
                                                   .kind = GHP_ATTRIBUTE_INT,
                                                   .least = 0,
                                                   .most = 9e15,
                                                   .at = {offsetof(struct ghp_layer, drawn.seed)}},
                                                  {0}};

static void key(const struct ghp_local *local, char *text, size_t n)
{
    snprintf(text, n, " k%" PRId64 " sigma%g seed%" PRId64, local->k, local->drawn.sigma,
             local->drawn.seed);
}

const struct ghp_op_facts ghp_op_facts_random_features = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_ROWS,
    .shape = ghp_shape_features,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_X | GHP_AT_DY, GHP_AT_DX}},
    .flops = ghp_product_flops,
    .divides = ghp_divides_samples,
    .by_position = true,
    .key = key,
};
