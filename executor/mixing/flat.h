/* executor/mixing/flat.h - arithmetic on weights that lie in a row, whatever layers they are of: what meets when
 * workers' weights mix. In host memory.
 *
 * Tested  tests/executor/mixing/test_flat.c */
#ifndef GHP_EXECUTOR_MIXING_FLAT_H
#define GHP_EXECUTOR_MIXING_FLAT_H

#include <stdint.h>

struct ghp_flat { /* float, or double if element_bytes is 8 */
    void *at;
    int64_t n;
    int element_bytes;
};

/* All of one call have the same n and element_bytes, and do not overlap. */
void ghp_flat_copy(struct ghp_flat to, struct ghp_flat from);
void ghp_flat_clear(struct ghp_flat x);
/* to = by * from; both may be the same */
void ghp_flat_scale(struct ghp_flat to, double by, struct ghp_flat from);
/* x = of_x * x + of_y * y, of each element in double */
void ghp_flat_combine(struct ghp_flat x, double of_x, struct ghp_flat y, double of_y);
/* x += by * y */
void ghp_flat_add(struct ghp_flat x, double by, struct ghp_flat y);
/* to = x - y */
void ghp_flat_subtract(struct ghp_flat to, struct ghp_flat x, struct ghp_flat y);
/* x += by * (y - x): the bits of x if y is x */
void ghp_flat_pull(struct ghp_flat x, double by, struct ghp_flat y);
/* e = by * (x - y); y += e; x -= e: x + y stays */
void ghp_flat_draw(struct ghp_flat x, struct ghp_flat y, double by);
/* e = (other - mine) / 2; x += e; moved += e: a worker that does so with the two swapped moves by -e */
void ghp_flat_meet(struct ghp_flat x, struct ghp_flat moved, struct ghp_flat mine,
                   struct ghp_flat other);

#endif
