/* executor/data/class_folders.c - see class_folders.h. */
#include "executor/data/class_folders.h"

#include "core/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PATH_BYTES = 4096, LEAST_ROOM = 64 };

/* ---- names ---- */

struct names { /* in a folder */
    char **at; /* owned, and each of them */
    size_t n, room;
};

static void names_release(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->at[i]);
    free(names->at);
    *names = (struct names){0};
}

static enum ghp_status names_add(struct names *names, const char *name)
{
    if (names->n == names->room) {
        size_t room = names->room > 0 ? 2 * names->room : LEAST_ROOM;
        char **more = realloc(names->at, room * sizeof *more);

        if (more == NULL) return GHP_NO_MEMORY();
        names->at = more;
        names->room = room;
    }
    names->at[names->n] = strdup(name);
    if (names->at[names->n] == NULL) return GHP_NO_MEMORY();
    names->n++;
    return GHP_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Whether an entry of a folder is a folder. */
static bool entry_is_folder(const char *folder, const struct dirent *entry)
{
    char path[PATH_BYTES];

    if (entry->d_type == DT_DIR || entry->d_type == DT_REG) return entry->d_type == DT_DIR;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    return ghp_file_is_folder(path);
}

static bool names_image(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
                           strcasecmp(dot, ".png") == 0);
}

static enum ghp_status leave_out(struct ghp_class_folders *f, const char *folder, const char *name)
{
    char path[PATH_BYTES];

    if (f->left_out++ > 0) return GHP_OK;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    f->one_left_out = strdup(path);
    return f->one_left_out != NULL ? GHP_OK : GHP_NO_MEMORY();
}

/* A folder's folders, or its images, in order. */
static enum ghp_status list(struct ghp_class_folders *f, const char *folder, bool folders,
                            struct names *names)
{
    enum ghp_status status = GHP_OK;
    struct dirent *entry;
    DIR *dir = opendir(folder);

    if (dir == NULL)
        return GHP_FAIL(GHP_ERR_IO,
                        "cannot read the folder '%s': %s; see that it is there and may be read",
                        folder, strerror(errno));
    while (status == GHP_OK && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        if (entry_is_folder(folder, entry) == folders && (folders || names_image(entry->d_name)))
            status = names_add(names, entry->d_name);
        else
            status = leave_out(f, folder, entry->d_name);
    }
    closedir(dir);
    if (names->n > 0) qsort(names->at, names->n, sizeof *names->at, compare_names);
    return status;
}

/* ---- a set ---- */

static size_t pool_bytes(const struct ghp_class_files *files)
{
    return files->n == 0
               ? 0
               : files->name[files->n - 1] + strlen(files->names + files->name[files->n - 1]) + 1;
}

/* Adds a class's names from `first` to `end`. */
static enum ghp_status add_files(struct ghp_class_files *files, const char *class_name, int label,
                                 const struct names *names, const size_t range[2])
{
    size_t used = pool_bytes(files), more = used, n = (size_t)files->n + range[1] - range[0];
    size_t *name;
    int32_t *labels;
    char *pool;

    if (range[0] == range[1]) return GHP_OK;
    for (size_t i = range[0]; i < range[1]; i++)
        more += strlen(class_name) + strlen(names->at[i]) + 2;
    name = realloc(files->name, n * sizeof *name);
    if (name != NULL) files->name = name;
    labels = realloc(files->label, n * sizeof *labels);
    if (labels != NULL) files->label = labels;
    pool = realloc(files->names, more);
    if (pool != NULL) files->names = pool;
    if (name == NULL || labels == NULL || pool == NULL) return GHP_NO_MEMORY();
    for (size_t i = range[0]; i < range[1]; i++) {
        name[files->n] = used;
        labels[files->n++] = label;
        used += (size_t)snprintf(pool + used, more - used, "%s/%s", class_name, names->at[i]) + 1;
    }
    return GHP_OK;
}

/* How many of a class's files train if the set is cut. */
static size_t trains(size_t n, double split)
{
    size_t first = (size_t)floor((double)n * split + 1e-9);

    return first > 0 ? first : 1;
}

/* One class of a set; if the set is cut, of both. */
static enum ghp_status add_class(struct ghp_class_folders *f, int set, int label, double split)
{
    struct ghp_class_files *files = &f->sets[set];
    const char *name = f->classes[label];
    struct names names = {0};
    char path[PATH_BYTES];
    enum ghp_status status = GHP_OK;
    size_t trained;

    files->first[label] = files->n;
    snprintf(path, sizeof path, "%s/%s", files->folder, name);
    if (set == GHP_DATA_TRAIN || ghp_file_is_folder(path)) status = list(f, path, false, &names);
    if (status == GHP_OK && names.n == 0 && set == GHP_DATA_TRAIN)
        status = GHP_FAIL(GHP_ERR_IO,
                          "'%s' has no .jpg, .jpeg or .png files; add the class's images or "
                          "remove the folder",
                          path);
    trained = split > 0 && names.n > 0 ? trains(names.n, split) : names.n;
    if (status == GHP_OK)
        status = add_files(files, name, label, &names, (const size_t[2]){0, trained});
    if (status == GHP_OK && split > 0) {
        f->sets[GHP_DATA_TEST].first[label] = f->sets[GHP_DATA_TEST].n;
        status = add_files(&f->sets[GHP_DATA_TEST], name, label, &names,
                           (const size_t[2]){trained, names.n});
    }
    names_release(&names);
    return status;
}

static enum ghp_status set_init(struct ghp_class_folders *f, int set, const char *folder)
{
    f->sets[set].folder = strdup(folder);
    f->sets[set].first = ghp_alloc((size_t)f->n_classes + 1, sizeof *f->sets[set].first);
    return f->sets[set].folder != NULL && f->sets[set].first != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static enum ghp_status add_set(struct ghp_class_folders *f, int set, double split)
{
    for (int i = 0; i < f->n_classes; i++)
        GHP_TRY(add_class(f, set, i, split));
    for (int i = 0; i < GHP_DATA_SET_COUNT; i++)
        if (f->sets[i].first != NULL) f->sets[i].first[f->n_classes] = f->sets[i].n;
    return GHP_OK;
}

/* ---- all ---- */

static enum ghp_status list_classes(struct ghp_class_folders *f, const char *folder)
{
    struct names names = {0};
    enum ghp_status status = list(f, folder, true, &names);

    f->classes =
        names.at; /* what was listed before a failure, too: all of it is released with `f` */
    f->n_classes = (int)names.n;
    GHP_TRY(status);
    if (f->n_classes > 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_IO,
                    "no data in '%s': it has no folders of classes; put the images of each class "
                    "into a folder of its own",
                    folder);
}

/* Classes that only test have no number. */
static enum ghp_status check_classes(struct ghp_class_folders *f, const char *folder)
{
    struct names names = {0};
    enum ghp_status status = list(f, folder, true, &names);

    for (size_t i = 0; i < names.n && status == GHP_OK; i++)
        if (bsearch(&names.at[i], f->classes, (size_t)f->n_classes, sizeof *f->classes,
                    compare_names) == NULL)
            status = GHP_FAIL(GHP_ERR_INPUT,
                              "'%s/%s' is a class that has no training images; remove it, or add "
                              "some",
                              folder, names.at[i]);
    names_release(&names);
    return status;
}

static enum ghp_status list_both(struct ghp_class_folders *f, const char *folder, const char *train,
                                 double split)
{
    static const char *const tests[] = {"val", "test"};
    char path[PATH_BYTES];

    if (split > 0)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "'%s' says which images train, so there is nothing to cut; leave "
                        "--train-fraction out",
                        train);
    GHP_TRY(list_classes(f, train));
    GHP_TRY(set_init(f, GHP_DATA_TRAIN, train));
    GHP_TRY(add_set(f, GHP_DATA_TRAIN, 0));
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, tests[i]);
        if (!ghp_file_is_folder(path)) continue;
        GHP_TRY(check_classes(f, path));
        GHP_TRY(set_init(f, GHP_DATA_TEST, path));
        return add_set(f, GHP_DATA_TEST, 0);
    }
    return GHP_OK;
}

static bool names_set(const char *name)
{
    return strcmp(name, "train") == 0 || strcmp(name, "val") == 0 || strcmp(name, "test") == 0;
}

/* Whether a folder holds folders; those with a set's name count only if `sets` do. */
static enum ghp_status holds_folders(const char *folder, bool sets, bool *holds)
{
    struct ghp_class_folders here = {0};
    struct names names = {0};
    enum ghp_status status = list(&here, folder, true, &names);

    *holds = false;
    for (size_t i = 0; i < names.n; i++)
        *holds = *holds || sets || !names_set(names.at[i]);
    free(here.one_left_out);
    names_release(&names);
    return status;
}

/* Whether `train` in a folder is a training set. It is a class of that name if it holds no folders and other classes
 * are next to it. */
static enum ghp_status find_set(const char *folder, const char *train, bool *is_set)
{
    bool has_classes = false, is_among_classes = false;

    *is_set = ghp_file_is_folder(train);
    if (!*is_set) return GHP_OK;
    GHP_TRY(holds_folders(train, true, &has_classes));
    GHP_TRY(holds_folders(folder, false, &is_among_classes));
    *is_set = has_classes || !is_among_classes;
    return GHP_OK;
}

static enum ghp_status list_all(struct ghp_class_folders *f, const char *folder, double split)
{
    char train[PATH_BYTES];
    bool is_set;

    snprintf(train, sizeof train, "%s/train", folder);
    GHP_TRY(find_set(folder, train, &is_set));
    if (is_set) return list_both(f, folder, train, split);
    GHP_TRY(list_classes(f, folder));
    for (int set = 0; set < (split > 0 ? GHP_DATA_SET_COUNT : GHP_DATA_TEST); set++)
        GHP_TRY(set_init(f, set, folder));
    return add_set(f, GHP_DATA_TRAIN, split);
}

enum ghp_status ghp_class_folders_open(const char *folder, double split,
                                       struct ghp_class_folders *folders)
{
    enum ghp_status status;

    *folders = (struct ghp_class_folders){0};
    status = list_all(folders, folder, split);
    if (status != GHP_OK) ghp_class_folders_close(folders);
    return status;
}

void ghp_class_folders_close(struct ghp_class_folders *f)
{
    for (int i = 0; i < f->n_classes; i++)
        free(f->classes[i]);
    free(f->classes);
    for (int i = 0; i < GHP_DATA_SET_COUNT; i++) {
        free(f->sets[i].folder);
        free(f->sets[i].name);
        free(f->sets[i].label);
        free(f->sets[i].first);
        free(f->sets[i].names);
    }
    free(f->one_left_out);
    *f = (struct ghp_class_folders){0};
}

void ghp_class_files_path(const struct ghp_class_files *files, int64_t i, char *path, size_t room)
{
    snprintf(path, room, "%s/%s", files->folder, files->names + files->name[i]);
}
