/* core/base/opts_outputs.c - command lines: a file that a tool is to write takes nothing of the user's away. */
#include "core/base/file.h"
#include "core/base/opts_private.h"

#include <string.h>
#include <sys/stat.h>

/* A word of the command line that may name a file, and who says so. */
struct word {
    const char *path;         /* NULL: not given */
    const struct ghp_opt *by; /* NULL: a positional argument */
};

static bool same_file(const char *a, const char *b)
{
    struct stat first, second;

    if (stat(a, &first) != 0 || stat(b, &second) != 0) return false;
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino &&
           (S_ISREG(first.st_mode) || S_ISDIR(first.st_mode));
}

/* Refuses the output if another word of the command line names the same file. */
static enum ghp_status check_word(const struct ghp_opt *output, struct word other)
{
    const char *path = *(const char **)output->target;
    char label[64], second[64];
    bool both; /* are to be written */

    if (other.path == NULL || other.by == output) return GHP_OK;
    both = other.by != NULL && other.by->writes != NULL && strcmp(path, other.path) == 0;
    if (!both && !same_file(path, other.path)) return GHP_OK;
    ghp_opts_label(output, label, sizeof label);
    if (other.by == NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "'%s' would write over the input '%s'; give another name",
                        label, path);
    return GHP_FAIL(GHP_ERR_USAGE, "'%s' and '%s' name the same file '%s'; give another name",
                    label, ghp_opts_label(other.by, second, sizeof second), path);
}

static enum ghp_status check_option(const struct ghp_opt *output, const struct ghp_opt *other)
{
    if (other->kind == GHP_OPT_TEXT)
        return check_word(output, (struct word){*(const char **)other->target, other});
    if (other->kind == GHP_OPT_LIST) {
        const struct ghp_opt_list *list = other->target;

        for (int i = 0; i < list->n; i++)
            GHP_TRY(check_word(output, (struct word){list->item[i], other}));
    }
    return GHP_OK;
}

enum ghp_status ghp_opts_check_outputs(const struct ghp_tool *tool, const char *const *positional,
                                       int n_positional)
{
    for (int i = 0; i < tool->n_opts; i++) {
        const struct ghp_opt *output = &tool->opts[i];

        if (output->writes == NULL || *(const char **)output->target == NULL) continue;
        GHP_ASSERT(output->kind == GHP_OPT_TEXT);
        for (int p = 0; p < n_positional; p++)
            GHP_TRY(check_word(output, (struct word){positional[p], NULL}));
        for (int o = 0; o < tool->n_opts; o++)
            GHP_TRY(check_option(output, &tool->opts[o]));
        GHP_TRY(ghp_file_check_replaced(*(const char **)output->target, output->writes));
    }
    return GHP_OK;
}

enum ghp_status ghp_opts_try_outputs(const struct ghp_tool *tool)
{
    for (int i = 0; i < tool->n_opts; i++) {
        const struct ghp_opt *output = &tool->opts[i];

        if (output->writes != NULL && !output->writes_folder &&
            *(const char **)output->target != NULL)
            GHP_TRY(ghp_file_try_write(*(const char **)output->target));
    }
    return GHP_OK;
}
