/* core/base/opts.c - command lines: the parser.  --help is printed by opts_help.c and opts_manual.c. */
#include "core/base/opts.h"

#include "core/base/file.h"
#include "core/base/opts_private.h"
#include "core/base/text.h"
#include "core/base/units.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMES_SIZE = 512, FIRST_LONG = 256 }; /* getopt_long's value of option i is FIRST_LONG + i */

static bool done;
static bool wants_version; /* else help, in this form: */
static const char *help_form;

bool ghp_opts_done(void)
{
    return done;
}

/* The allowed range of an option, for messages. */
static const char *range_of(const struct ghp_opt *opt, char *out, size_t n)
{
    char low[32], high[32];

    if (ghp_opts_bounded(opt) && opt->kind == GHP_OPT_BYTES) {
        snprintf(out, n, "from %s to %s", ghp_bytes_format(opt->min, low, sizeof low),
                 ghp_bytes_format(opt->max, high, sizeof high));
        return out;
    }
    if (ghp_opts_bounded(opt)) return ghp_text_range(opt->min, opt->max, out, n);
    snprintf(out, n, "%s", opt->kind == GHP_OPT_BYTES ? "of at least 0" : "");
    return out;
}

static enum ghp_status fail_value(const struct ghp_opt *opt, const char *text, const char *wanted)
{
    char label[64], range[80];

    range_of(opt, range, sizeof range);
    return GHP_FAIL(GHP_ERR_USAGE, "bad value '%s' for '%s'; give %s%s%s", text,
                    ghp_opts_label(opt, label, sizeof label), wanted, range[0] != '\0' ? " " : "",
                    range);
}

static bool in_range(const struct ghp_opt *opt, double value)
{
    return !ghp_opts_bounded(opt) || (value >= opt->min && value <= opt->max);
}

static enum ghp_status set_int(const struct ghp_opt *opt, const char *text)
{
    char *end = NULL;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || !in_range(opt, (double)value))
        return fail_value(opt, text, "a whole number");
    *(int64_t *)opt->target = (int64_t)value;
    return GHP_OK;
}

static enum ghp_status set_real(const struct ghp_opt *opt, const char *text)
{
    char *end = NULL;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(value) || !in_range(opt, value))
        return fail_value(opt, text, "a number");
    *(double *)opt->target = value;
    return GHP_OK;
}

static enum ghp_status set_bytes(const struct ghp_opt *opt, const char *text)
{
    int64_t value;

    if (ghp_bytes_parse(text, &value) != GHP_OK || !in_range(opt, (double)value))
        return fail_value(opt, text, "a size such as 512MiB or 4GiB");
    *(int64_t *)opt->target = value;
    return GHP_OK;
}

static enum ghp_status set_choice(const struct ghp_opt *opt, const char *text)
{
    char names[NAMES_SIZE], label[64];
    const char *meant = text;

    for (int i = 0; opt->synonyms != NULL && opt->synonyms[i] != NULL; i += 2)
        if (strcmp(opt->synonyms[i], text) == 0) meant = opt->synonyms[i + 1];
    if (ghp_text_begins(meant, "--"))
        return GHP_FAIL(GHP_ERR_USAGE, "bad value '%s' for '%s'; give '%s' in its place", text,
                        ghp_opts_label(opt, label, sizeof label), meant);
    for (int i = 0; opt->choices[i] != NULL; i++) {
        if (strcmp(opt->choices[i], meant) != 0) continue;
        *(int *)opt->target = i;
        return GHP_OK;
    }
    return GHP_FAIL(GHP_ERR_USAGE, "bad value '%s' for '%s'; give one of %s", text,
                    ghp_opts_label(opt, label, sizeof label),
                    ghp_text_join(opt->choices, names, sizeof names));
}

static enum ghp_status set_item(const struct ghp_opt *opt, const char *text)
{
    struct ghp_opt_list *list = opt->target;
    char label[64];

    if (list->n >= GHP_OPT_LIST_MAX)
        return GHP_FAIL(GHP_ERR_USAGE, "too many '%s'; give at most %d",
                        ghp_opts_label(opt, label, sizeof label), GHP_OPT_LIST_MAX);
    list->item[list->n++] = text;
    return GHP_OK;
}

/* Names go into files that are UTF-8, such as plans and runs. */
static enum ghp_status check_text(const char *text)
{
    if (ghp_text_is_utf8(text)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE, "'%s' is not UTF-8; rename the file, or correct the text", text);
}

/* Sets the target of an option that occurred; text is its value, NULL for a flag. */
static enum ghp_status set_target(const struct ghp_opt *opt, const char *text, bool *seen)
{
    char label[64];

    if (*seen && opt->kind != GHP_OPT_LIST)
        return GHP_FAIL(GHP_ERR_USAGE, "option '%s' is given twice; give it once",
                        ghp_opts_label(opt, label, sizeof label));
    *seen = true;
    GHP_ASSERT(text != NULL || opt->kind == GHP_OPT_FLAG);
    if (text != NULL) GHP_TRY(check_text(text));
    switch (opt->kind) {
    case GHP_OPT_FLAG: *(bool *)opt->target = true; break;
    case GHP_OPT_INT: return set_int(opt, text);
    case GHP_OPT_REAL: return set_real(opt, text);
    case GHP_OPT_TEXT: *(const char **)opt->target = text; break;
    case GHP_OPT_CHOICE: return set_choice(opt, text);
    case GHP_OPT_BYTES: return set_bytes(opt, text);
    case GHP_OPT_LIST: return set_item(opt, text);
    case GHP_OPT_HEADING: break;
    }
    return GHP_OK;
}

/* What getopt_long wants to know, built from the table. */
struct forms {
    /* one for each long name, former ones too, then help, version and the end */
    struct option *longs;
    char *letters;      /* ":o:..." */
    bool *seen;         /* n_opts entries */
    const char **names; /* long names, NULL-terminated, for the nearest match */
};

static void forms_release(struct forms *forms)
{
    free(forms->longs);
    free(forms->letters);
    free(forms->seen);
    free(forms->names);
}

static enum ghp_status forms_init(const struct ghp_tool *tool, struct forms *forms)
{
    size_t n = (size_t)tool->n_opts, n_long = 0, n_names = 0, n_letters = 0;

    forms->longs = ghp_alloc(2 * n + 3, sizeof *forms->longs);
    forms->letters = ghp_alloc(2 * n + 3, 1);
    forms->seen = ghp_alloc(n, sizeof *forms->seen);
    forms->names = ghp_alloc(n + 3, sizeof *forms->names);
    if (!forms->longs || !forms->letters || !forms->seen || !forms->names) return GHP_NO_MEMORY();
    forms->letters[n_letters++] = ':';
    for (size_t i = 0; i < n; i++) {
        const struct ghp_opt *opt = &tool->opts[i];
        int has_value = opt->kind == GHP_OPT_FLAG ? no_argument : required_argument;

        if (opt->kind == GHP_OPT_HEADING) continue;
        GHP_ASSERT(opt->target != NULL && opt->help != NULL);
        if (opt->name != NULL) {
            forms->names[n_names++] = opt->name;
            forms->longs[n_long++] =
                (struct option){opt->name, has_value, NULL, FIRST_LONG + (int)i};
        }
        if (opt->former != NULL)
            forms->longs[n_long++] =
                (struct option){opt->former, has_value, NULL, FIRST_LONG + (int)i};
        if (opt->letter == 0) continue;
        forms->letters[n_letters++] = opt->letter;
        if (has_value == required_argument) forms->letters[n_letters++] = ':';
    }
    forms->names[n_names++] = "help";
    forms->longs[n_long++] = (struct option){"help", optional_argument, NULL, FIRST_LONG + (int)n};
    forms->names[n_names++] = "version";
    forms->longs[n_long++] = (struct option){"version", no_argument, NULL, FIRST_LONG + (int)n + 1};
    if (strchr(forms->letters, 'h') == NULL) forms->letters[n_letters++] = 'h';
    return GHP_OK;
}

/* The option that getopt_long's answer stands for; n_opts for help, n_opts + 1 for version, -1 for none. */
static int option_of(const struct ghp_tool *tool, int answer)
{
    if (answer >= FIRST_LONG) return answer - FIRST_LONG;
    for (int i = 0; i < tool->n_opts; i++)
        if (tool->opts[i].kind != GHP_OPT_HEADING && tool->opts[i].letter != 0 &&
            tool->opts[i].letter == answer)
            return i;
    return answer == 'h' ? tool->n_opts : -1;
}

/* The longest name that the given one continues: "batch" of "batch-size". NULL: there is none. */
static const char *shorter_name(const char *name, const char *const *names)
{
    const char *found = NULL;

    for (int i = 0; names[i] != NULL; i++) {
        size_t n = strlen(names[i]);

        if (strncmp(name, names[i], n) == 0 && name[n] == '-' &&
            (found == NULL || n > strlen(found)))
            found = names[i];
    }
    return found;
}

/* The name that was most likely meant, or NULL. If the given name continues another one, the rest is compared by
 * itself: "batch-size" is not taken for "batch-norm". */
static const char *nearest_name(const char *name, const char *const *names)
{
    const char *nearest = ghp_text_nearest(name, names), *shorter = shorter_name(name, names);
    const char *rest[] = {NULL, NULL};

    if (nearest == NULL || shorter == NULL) return nearest != NULL ? nearest : shorter;
    if (!ghp_text_begins(nearest, shorter)) return nearest;
    rest[0] = nearest + strlen(shorter);
    return ghp_text_nearest(name + strlen(shorter), rest) != NULL ? nearest : shorter;
}

/* What the tool says of an option that it does not have: its row, or the end of the list; NULL: it has no hints. */
static const struct ghp_opts_hint *hint_of(const struct ghp_tool *tool, const char *name)
{
    const struct ghp_opts_hint *hint = tool->hints;

    while (hint != NULL && hint->name != NULL && strcmp(hint->name, name) != 0)
        hint++;
    return hint;
}

/* The failure of an argument that getopt_long did not know. */
static enum ghp_status fail_unknown(const struct ghp_tool *tool, const struct forms *forms,
                                    const char *argument)
{
    char name[64];
    const char *nearest;
    const struct ghp_opts_hint *hint;
    int known = optopt != 0 ? option_of(tool, optopt) : -1;

    if (known >= 0)
        return GHP_FAIL(GHP_ERR_USAGE, "option '%s' takes no value; leave the value out", argument);
    if (optopt != 0)
        return GHP_FAIL(GHP_ERR_USAGE, "unknown option '-%c'; see '%s --help'", optopt, tool->name);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
    nearest = nearest_name(name, forms->names);
    hint = hint_of(tool, name);
    if (hint != NULL && hint->remedy != NULL && (hint->name != NULL || nearest == NULL))
        return GHP_FAIL(GHP_ERR_USAGE, "unknown option '--%s'; %s", name, hint->remedy);
    if (nearest != NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "unknown option '--%s'; did you mean '--%s'?", name,
                        nearest);
    return GHP_FAIL(GHP_ERR_USAGE, "unknown option '--%s'; see '%s --help'", name, tool->name);
}

/* --help and its forms. */
static enum ghp_status print_help(const struct ghp_tool *tool, const char *form)
{
    if (form == NULL) return ghp_opts_print_help(tool, tool->common == NULL);
    if (strcmp(form, "all") == 0) return ghp_opts_print_help(tool, true);
    if (strcmp(form, "md") == 0) return ghp_opts_print_markdown(tool);
    if (strcmp(form, "man") == 0) return ghp_opts_print_man(tool);
    if (strcmp(form, "bash") == 0) return ghp_opts_print_bash(tool);
    return GHP_FAIL(GHP_ERR_USAGE, "bad value '%s' for '--help'; give all, man, md, bash, or none",
                    form);
}

/* Handles the options, in order; stops at --help and --version. */
static enum ghp_status parse_options(const struct ghp_tool *tool, struct forms *forms, int argc,
                                     char **argv)
{
    int answer;

    opterr = 0;
    optind = 0; /* makes getopt_long start again */
    while ((answer = getopt_long(argc, argv, forms->letters, forms->longs, NULL)) != -1) {
        int i;

        if (answer == '?') return fail_unknown(tool, forms, argv[optind - 1]);
        if (answer == ':')
            return GHP_FAIL(GHP_ERR_USAGE, "option '%s' needs a value; see '%s --help'",
                            argv[optind - 1], tool->name);
        i = option_of(tool, answer);
        GHP_ASSERT(i >= 0);
        if (i >= tool->n_opts) {
            done = true;
            wants_version = i != tool->n_opts;
            help_form = optarg;
            if (optarg == NULL && optind < argc && strcmp(argv[optind], "all") == 0)
                help_form = argv[optind];
            return GHP_OK;
        }
        GHP_TRY(set_target(&tool->opts[i], optarg, &forms->seen[i]));
    }
    return GHP_OK;
}

/* Hands over what is left after the options. */
static enum ghp_status take_positional(const struct ghp_tool *tool, int argc, char **argv,
                                       const char **positional, int max_positional)
{
    int n = argc - optind;

    if (n > max_positional)
        return GHP_FAIL(GHP_ERR_USAGE, "too many arguments at '%s': at most %d; see '%s --help'",
                        argv[optind + max_positional], max_positional, tool->name);
    for (int i = 0; i < n; i++) {
        GHP_TRY(check_text(argv[optind + i]));
        positional[i] = argv[optind + i];
    }
    return GHP_OK;
}

/* ---- files that are to be written ---- */

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

/* Whether the files that the tool is to write may be written, as struct ghp_opt's `writes` says. */
static enum ghp_status check_outputs(const struct ghp_tool *tool, const char *const *positional,
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

enum ghp_status ghp_opts_read(const struct ghp_tool *tool, int argc, char **argv,
                              const char **positional, int max_positional, int *n_positional)
{
    enum ghp_status status;
    struct forms forms = {0};

    ghp_file_guard_standard();
    done = false;
    if (n_positional != NULL) *n_positional = 0;
    GHP_TRY_GOTO(status, forms_init(tool, &forms), out);
    GHP_TRY_GOTO(status, parse_options(tool, &forms, argc, argv), out);
    if (done) goto out;
    GHP_TRY_GOTO(status, take_positional(tool, argc, argv, positional, max_positional), out);
    if (n_positional != NULL) *n_positional = argc - optind;
    status = check_outputs(tool, positional, argc - optind);
out:
    forms_release(&forms);
    return status;
}

enum ghp_status ghp_opts_answer(const struct ghp_tool *tool)
{
    GHP_ASSERT(done);
    return wants_version ? ghp_opts_print_version(tool) : print_help(tool, help_form);
}

enum ghp_status ghp_opts_parse(const struct ghp_tool *tool, int argc, char **argv,
                               const char **positional, int max_positional, int *n_positional)
{
    GHP_TRY(ghp_opts_read(tool, argc, argv, positional, max_positional, n_positional));
    return done ? ghp_opts_answer(tool) : ghp_opts_try_outputs(tool);
}
