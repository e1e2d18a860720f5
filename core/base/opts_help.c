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

enum { HELP_COLUMN = 32, HELP_WIDTH = 100 };

static bool no; /* for options that no variable stands behind */

const struct ghp_opt ghp_opts_general[GHP_OPTS_GENERAL] = {
    {.name = "help",
     .letter = 'h',
     .kind = GHP_OPT_FLAG,
     .target = &no,
     .help =
         "print this text and end; --help=man: as a man page; --help=bash: completions for bash"},
    {.name = "version",
     .kind = GHP_OPT_FLAG,
     .target = &no,
     .help = "print the version, and those of the libraries as linked, and end"}};

/* A list's items, separated by commas. */
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

/* The default as --help shows it, or NULL where there is none to show. */
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

/* The longest part of text that fits on a line: up to its last blank, or a whole word. */
static size_t line_length(const char *text, size_t width)
{
    size_t n = strlen(text), cut = width;

    if (n <= width) return n;
    while (cut > 0 && text[cut] != ' ')
        --cut;
    return cut > 0 ? cut : strcspn(text, " ");
}

/* Prints the text in the help column; used is what the line holds already. */
static void print_wrapped(const char *text, int used)
{
    if (used >= HELP_COLUMN) {
        putchar('\n');
        used = 0;
    }
    do {
        size_t n = line_length(text, HELP_WIDTH - HELP_COLUMN);

        printf("%*s%.*s\n", HELP_COLUMN - used, "", (int)n, text);
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

    snprintf(out, n, "%s%s%s%s%s%s%s", opt->help, opt->kind == GHP_OPT_CHOICE ? ": " : "",
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
    print_wrapped(ghp_opts_text(opt, text, sizeof text), (int)strlen(left));
}

enum ghp_status ghp_opts_printed(void)
{
    return ghp_file_flush(stdout, "to standard output");
}

const char *ghp_opts_exit_codes(const struct ghp_tool *tool)
{
    return tool->trains
               ? "0 done, 1 tried and failed, 2 bad usage, 3 sound question, answer \"no\", "
                 "4 ended early by a signal."
               : "0 done, 1 tried and failed, 2 bad usage, 3 sound question, answer \"no\".";
}

enum ghp_status ghp_opts_print_help(const struct ghp_tool *tool)
{
    printf("%s - %s\n\nusage: %s\n", tool->name, tool->purpose, tool->usage);
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
    if (tool->notes != NULL) printf("\n%s\n", tool->notes);
    printf("\nDefaults are in brackets.\n"
           "Exit codes: %s\n"
           "Example: %s\n",
           ghp_opts_exit_codes(tool), tool->example);
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
