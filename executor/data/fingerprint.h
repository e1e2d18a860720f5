/* executor/data/fingerprint.h - numbers by which processes tell whether they read the same samples, wherever their
 * files lie.
 *
 * Looks at all labels, at samples spread evenly over a set, and at the names of a folder's images. So it takes a part
 * of a second for any size, and does not see a change in one sample that it passes over. */
#ifndef GHP_EXECUTOR_DATA_FINGERPRINT_H
#define GHP_EXECUTOR_DATA_FINGERPRINT_H

#include "executor/data/data.h"

struct ghp_data_fingerprint { /* of one set; all zero for what is made from a seed */
    uint64_t names;           /* of a folder's images, in order */
    uint64_t labels;          /* as they train; of tokens 0, for the samples hold them */
    uint64_t samples;         /* as the files have them */
};

/* Takes a set's fingerprint. A file that cannot be read counts as one without bytes; the training reports it.
 *
 * Returns   GHP_OK; what ghp_data_labels returns; GHP_ERR_NO_MEMORY
 * Local
 * Tested    tests/executor/data/test_data.c */
enum ghp_status ghp_data_fingerprint_of(struct ghp_data *data, enum ghp_data_set set,
                                        struct ghp_data_fingerprint *fingerprint);

/* A hash of the normalisation: equal for equal means and deviations. Local. */
uint64_t ghp_data_normalisation_hash(const struct ghp_data *data);
const char *
ghp_data_normalisation(const struct ghp_data *data);    /* by what, for people; never NULL */
const char *ghp_data_kind(const struct ghp_data *data); /* "idx", "tokens", ... */

#endif
