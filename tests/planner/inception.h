/* tests/planner/inception.h - networks with branches and concatenations, like GoogLeNet: a stem, a number of inception
 * blocks of its widths, a classifier.
 *
 * Source  Szegedy et al., Going deeper with convolutions, table 1 (arXiv:1409.4842); without its auxiliary
 *         classifiers */
#ifndef GHP_TESTS_PLANNER_INCEPTION_H
#define GHP_TESTS_PLANNER_INCEPTION_H

#include <stdbool.h>

enum { INCEPTION_BLOCKS = 9 };

/* Writes the network's description.
 *
 * blocks   1 .. INCEPTION_BLOCKS
 * norms    a batch norm after each convolution, and no LRN
 *
 * Returns   whether it was written */
bool inception_write(const char *path, int blocks, bool norms);

#endif
