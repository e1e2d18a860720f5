/* executor/data/folder.h - `folder:DIR`: a file a sample, decoded when it is asked for.
 *
 * A sample of the training set is a random part of its image, resized and mirrored by (seed, epoch, sample); without
 * augmentation, and in the test set, its middle (image/crop.h). Bytes are then normalised as those of any source.
 *
 * A file that cannot be read or decoded fails the run by its name. Up to skip_damaged of them, counted by each worker
 * over all sets, are named and skipped instead: the next sound file of the same class, in the order of names and from
 * the last on to the first, stands in, cropped as the sample it stands for; so labels stay, and which file that is
 * depends on the files alone. */
#ifndef GHP_EXECUTOR_DATA_FOLDER_H
#define GHP_EXECUTOR_DATA_FOLDER_H

#include "executor/data/data.h"

struct ghp_folder;

void ghp_folder_close(struct ghp_folder *folder); /* accepts NULL */
bool ghp_folder_augments(const struct ghp_folder *folder);
int64_t
ghp_folder_damaged(const struct ghp_folder *folder); /* files that this worker skipped so far */

#endif
