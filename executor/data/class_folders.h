/* executor/data/class_folders.h - which images a folder of classes holds, in which order.
 *
 *     DIR/CLASS/NAME.jpg                                  one set
 *     DIR/train/CLASS/NAME.jpg, DIR/val/CLASS/NAME.jpg    two; test in place of val where that is missing
 *
 * Classes are numbered from 0 by their names' bytes, those of the training set; files follow class by class, by their
 * names' bytes. Names that begin with a dot are passed over; files that do not end in .jpg, .jpeg or .png (in any case)
 * and folders in a class's folder are left out, and counted. Reads names, no files. */
#ifndef GHP_EXECUTOR_DATA_CLASS_FOLDERS_H
#define GHP_EXECUTOR_DATA_CLASS_FOLDERS_H

#include "executor/data/data.h"

struct ghp_class_files { /* of one set */
    char *folder;        /* owned; NULL: there is none */
    int64_t n;
    size_t *name;   /* [n] where in `names` its path after `folder` begins, owned */
    int32_t *label; /* [n], owned */
    int64_t *first; /* [classes + 1] the first file of each class, and their end, owned */
    char *names;    /* each ended by a NUL, owned */
};

struct ghp_class_folders {
    char **classes; /* [n_classes] by name, owned */
    int n_classes;
    struct ghp_class_files sets[GHP_DATA_SET_COUNT];
    int64_t left_out;   /* files and folders */
    char *one_left_out; /* one of them, owned; NULL: none */
};

/* Lists the folder.
 *
 * split   (0, 1): of a lone set that part of each class trains, at least one file, and the rest tests; else 0
 *
 * Returns   GHP_OK; GHP_ERR_IO (no such folder, no classes, a class without images); GHP_ERR_INPUT (a class that only
 *           tests); GHP_ERR_USAGE (split of two sets); GHP_ERR_NO_MEMORY
 * Local
 * Tested    tests/executor/data/test_folder.c */
enum ghp_status ghp_class_folders_open(const char *folder, double split,
                                       struct ghp_class_folders *folders);
void ghp_class_folders_close(struct ghp_class_folders *folders); /* accepts a zeroed one */

/* Writes a file's path. */
void ghp_class_files_path(const struct ghp_class_files *files, int64_t i, char *path, size_t room);

#endif
