/* core/base/opts_help.c - command lines: --help, --version (opts_manual.c: --help=man) and the dump of the
 * configuration, from the option table. */
#include "core/base/opts.h"

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/opts_private.h"
#include "core/base/text.h"
#include "core/base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 26, HELP_WIDTH = 80, CODES_SIZE = 512, NOTE_SIZE = 1024 };

static bool no; /* for options without a variable */

const struct ghp_opt ghp_opts_general[GHP_OPTS_GENERAL] = {
    {.name = "help",
     .letter = 'h',
     .kind = GHP_OPT_FLAG,
     .target = &no,
     .help =
         "print this; --help all: every option; --help=man, --help=md, --help=bash: other forms"},
    {.name = "version",
     .kind = GHP_OPT_FLAG,
     .target = &no,
     .help = "print the version, and those of the linked libraries, and end"}};

const char *ghp_opts_label(const struct ghp_opt *opt, char *out, size_t n)
{
    if (opt->name != NULL)
        snprintf(out, n, "--%s", opt->name);
    else
        snprintf(out, n, "-%c", opt->letter);
    return out;
}

bool ghp_opts_bounded(const struct ghp_opt *opt)
{
    return opt->min < 0.0 || opt->min > 0.0 || opt->max < 0.0 || opt->max > 0.0;
}

/* A list's items, separated by commas. */
static const char *list_value(const struct ghp_opt_list *list, char *out, size_t n)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < list->n && used < n; i++) {
        int wrote = snprintf(out + used, n - used, "%s%s", i == 0 ? "" : ",", list->item[i]);
        if (wrote < 0) break;
        used += (size_t)wrote;
    }
    return out;
}

const char *ghp_opts_value(const struct ghp_opt *opt, char *out, size_t n)
{
    switch (opt->kind) {
    case GHP_OPT_FLAG: return *(const bool *)opt->target ? "true" : "false";
    case GHP_OPT_INT:
    case GHP_OPT_BYTES: snprintf(out, n, "%" PRId64, *(const int64_t *)opt->target); return out;
    case GHP_OPT_REAL: return ghp_text_number(*(const double *)opt->target, out, n);
    case GHP_OPT_TEXT: return *(const char *const *)opt->target;
    case GHP_OPT_CHOICE: return opt->choices[*(const int *)opt->target];
    case GHP_OPT_LIST: return list_value(opt->target, out, n);
    case GHP_OPT_HEADING: break;
    }
    return NULL;
}

const char *ghp_opts_argument(const struct ghp_opt *opt)
{
    if (opt->argument != NULL) return opt->argument;
    switch (opt->kind) {
    case GHP_OPT_INT: return "N";
    case GHP_OPT_REAL: return "X";
    case GHP_OPT_BYTES: return "SIZE";
    case GHP_OPT_CHOICE: return "NAME";
    case GHP_OPT_TEXT:
    case GHP_OPT_LIST: return "TEXT";
    case GHP_OPT_FLAG:
    case GHP_OPT_HEADING: break;
    }
    return "";
}

static double number_of(const struct ghp_opt *opt)
{
    if (opt->kind == GHP_OPT_REAL) return *(const double *)opt->target;
    if (opt->kind == GHP_OPT_INT || opt->kind == GHP_OPT_BYTES)
        return (double)*(const int64_t *)opt->target;
    return 0.0;
}

/* A default outside of the option's own range says that it is not set. */
static bool is_set(const struct ghp_opt *opt)
{
    if (opt->kind == GHP_OPT_TEXT) return *(const char *const *)opt->target != NULL;
    return !ghp_opts_bounded(opt) || (number_of(opt) >= opt->min && number_of(opt) <= opt->max);
}

/* The default as --help shows it, or NULL if there is none to show. */
static const char *default_of(const struct ghp_opt *opt, char *out, size_t n)
{
    double number = number_of(opt);

    if (opt->kind == GHP_OPT_FLAG && !*(const bool *)opt->target) return NULL;
    if (!is_set(opt)) return NULL;
    if (opt->kind == GHP_OPT_BYTES) {
        if (number < 0.0 || (!ghp_opts_bounded(opt) && !(number > 0.0))) return NULL;
        return ghp_bytes_format(number, out, n);
    }
    const char *value = ghp_opts_value(opt, out, n);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

size_t ghp_opts_line_length(const char *text, size_t width)
{
    size_t n = strlen(text), end = width;

    if (n <= width) return n;
    while (end > 0 && text[end] != ' ')
        --end;
    return end > 0 ? end : strcspn(text, " ");
}

/* Prints the text from a column on; used is what the line holds already. */
static void print_wrapped(const char *text, int column, int used)
{
    if (used >= column && used > 0) {
        putchar('\n');
        used = 0;
    }
    do {
        size_t most = (size_t)(HELP_WIDTH - column), n = ghp_opts_line_length(text, most);

        printf("%*s%.*s\n", column - used, "", (int)n, text);
        text += n;
        while (*text == ' ')
            text++;
        used = 0;
    } while (*text != '\0');
}

const char *ghp_opts_text(const struct ghp_opt *opt, char *out, size_t n)
{
    char value[GHP_OPTS_VALUE_SIZE], names[512];
    const char *shown = default_of(opt, value, sizeof value);

    const char *before_names = strpbrk(opt->help, ":;") != NULL ? "; one of: " : ": ";

    snprintf(out, n, "%s%s%s%s%s%s%s", opt->help, opt->kind == GHP_OPT_CHOICE ? before_names : "",
             opt->kind == GHP_OPT_CHOICE ? ghp_text_join(opt->choices, names, sizeof names) : "",
             opt->kind == GHP_OPT_LIST ? " (may be repeated)" : "", shown != NULL ? " [" : "",
             shown != NULL ? shown : "", shown != NULL ? "]" : "");
    return out;
}

static void print_option(const struct ghp_opt *opt)
{
    char left[128], text[GHP_OPTS_TEXT_SIZE], letter[8] = "    ";

    if (opt->letter != 0)
        snprintf(letter, sizeof letter, "-%c%s", opt->letter, opt->name ? ", " : "");
    snprintf(left, sizeof left, "  %s%s%s%s%s", letter, opt->name ? "--" : "",
             opt->name ? opt->name : "", opt->kind == GHP_OPT_FLAG ? "" : " ",
             ghp_opts_argument(opt));
    printf("%s", left);
    print_wrapped(ghp_opts_text(opt, text, sizeof text), HELP_COLUMN, (int)strlen(left));
}

enum ghp_status ghp_opts_printed(void)
{
    return ghp_file_flush(stdout, "to standard output");
}

const char *ghp_opts_exit_codes(const struct ghp_tool *tool, char *out, size_t n)
{
    const struct ghp_exit_code *code = tool->exit_codes;
    int used = snprintf(out, n, "0 done, 1 failed, 2 bad usage");

    for (; code != NULL && code->meaning != NULL && used > 0 && (size_t)used < n; code++)
        used += snprintf(out + used, n - (size_t)used, ", %d %s", code->code, code->meaning);
    return out;
}

/* Whether the option has this long name, of n bytes. */
static bool is_named(const struct ghp_opt *opt, const char *name, size_t n)
{
    return opt->name != NULL && strlen(opt->name) == n && memcmp(opt->name, name, n) == 0;
}

static void print_common(const struct ghp_tool *tool)
{
    printf("\nCommon options; '%s --help all' has the others\n", tool->name);
    for (const char *name = tool->common; *name != '\0'; name += strspn(name, " ")) {
        size_t n = strcspn(name, " ");
        int i = 0;

        while (i < tool->n_opts && !is_named(&tool->opts[i], name, n))
            i++;
        GHP_ASSERT(i < tool->n_opts);
        print_option(&tool->opts[i]);
        name += n;
    }
    print_option(&ghp_opts_general[0]);
}

/* Paragraphs, and a list's rows in two columns. */
static void print_notes(const char *notes)
{
    char line[NOTE_SIZE];

    for (size_t n; *notes != '\0'; notes += n + (notes[n] == '\n')) {
        int name = 0;

        n = strcspn(notes, "\n");
        GHP_ASSERT(n < sizeof line);
        memcpy(line, notes, n);
        line[n] = '\0';
        if (line[0] == ' ') name = 2 + (int)strcspn(line + 2, " ");
        printf("%.*s", name, line);
        print_wrapped(line + name + strspn(line + name, " "), name > 0 ? HELP_COLUMN : 0, name);
    }
}

static void print_all(const struct ghp_tool *tool)
{
    if (tool->n_opts > 0 && tool->opts[0].kind != GHP_OPT_HEADING) printf("\nOptions\n");
    for (int i = 0; i < tool->n_opts; i++) {
        if (tool->opts[i].kind == GHP_OPT_HEADING)
            printf("\n%s\n", tool->opts[i].help);
        else
            print_option(&tool->opts[i]);
    }
    printf("\nGeneral\n");
    for (int i = 0; i < GHP_OPTS_GENERAL; i++)
        print_option(&ghp_opts_general[i]);
    if (tool->notes == NULL) return;
    putchar('\n');
    print_notes(tool->notes);
}

enum ghp_status ghp_opts_print_help(const struct ghp_tool *tool, bool all)
{
    char codes[CODES_SIZE], line[CODES_SIZE + 16];

    snprintf(line, sizeof line, "%s - %s", tool->name, tool->purpose);
    print_wrapped(line, 0, 0);
    printf("\nusage: %s\n", tool->usage);
    if (all)
        print_all(tool);
    else
        print_common(tool);
    printf("\nDefaults are in brackets.\n");
    snprintf(line, sizeof line, "Exit codes: %s", ghp_opts_exit_codes(tool, codes, sizeof codes));
    print_wrapped(line, 0, 0);
    printf("Example: %s\n", tool->example);
    return ghp_opts_printed();
}

static void say_library(const char *name, const char *version)
{
    printf("%s %s\n", name, version);
}

enum ghp_status ghp_opts_print_version(const struct ghp_tool *tool)
{
    printf("%s (ghp) %s\n", tool->name, GHP_VERSION);
    say_library("jansson", jansson_version_str()); /* core's own, so every tool's */
    if (tool->libraries != NULL) tool->libraries(say_library);
    return ghp_opts_printed();
}

void ghp_opts_each(const struct ghp_tool *tool,
                   void (*fn)(const char *name, const char *value_text, void *ctx), void *ctx)
{
    for (int i = 0; i < tool->n_opts; i++) {
        const struct ghp_opt *opt = &tool->opts[i];
        char value[GHP_OPTS_VALUE_SIZE], letter[2] = {opt->letter, '\0'};

        if (opt->kind == GHP_OPT_HEADING) continue;
        fn(opt->name != NULL ? opt->name : letter, ghp_opts_value(opt, value, sizeof value), ctx);
    }
}

void ghp_opts_each_alike(const struct ghp_tool *tool,
                         void (*fn)(const char *label, const char *value_text, void *ctx),
                         void *ctx)
{
    for (int i = 0; i < tool->n_opts; i++) {
        const struct ghp_opt *opt = &tool->opts[i];
        char value[GHP_OPTS_VALUE_SIZE], label[64];
        const char *text = NULL;

        if (opt->kind == GHP_OPT_HEADING || opt->alike == GHP_OPT_OWN_VALUE) continue;
        if (is_set(opt))
            text = opt->alike == GHP_OPT_SAME_GIVEN ? "given"
                                                    : ghp_opts_value(opt, value, sizeof value);
        fn(ghp_opts_label(opt, label, sizeof label), text, ctx);
    }
}
