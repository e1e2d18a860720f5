/* core/base/opts_manual.c - command lines: the man page and bash's completions, from the option table.
 *
 * --help=man and --help=bash print them; the build makes files of them, which installation puts where man and bash
 * look. */
#include "core/base/opts_private.h"

#include <stdio.h>
#include <string.h>

static const char *const own_tools[] = {"ghp",         "ghp-inspect", "ghp-launch", "ghp-plan",
                                        "ghp-profile", "ghp-run",     "ghp-train"};

/* ---- the man page ---- */

/* Text in roff: hyphens that can be copied, no escapes or requests of its own; `begins`: it starts a line. */
static void put_roff(const char *text, bool begins)
{
    for (; *text != '\0'; text++) {
        if (begins && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        begins = *text == '\n';
        switch (*text) {
        case '\\': fputs("\\e", stdout); break;
        case '-': fputs("\\-", stdout); break;
        case '\'': fputs("\\(aq", stdout); break;
        case '"': fputs("\\(dq", stdout); break;
        case '^': fputs("\\(ha", stdout); break;
        case '~': fputs("\\(ti", stdout); break;
        case '`': fputs("\\(ga", stdout); break;
        default: putchar(*text);
        }
    }
}

/* Names in capitals, as title lines want them. */
static void put_upper(const char *text)
{
    for (; *text != '\0'; text++)
        putchar(*text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text);
}

static void put_option(const struct ghp_opt *opt)
{
    char text[GHP_OPTS_TEXT_SIZE];
    const char *argument = ghp_opts_argument(opt);

    printf(".TP\n");
    if (opt->letter != 0) printf("\\fB\\-%c\\fR%s", opt->letter, opt->name != NULL ? ", " : "");
    if (opt->name != NULL) {
        printf("\\fB\\-\\-");
        put_roff(opt->name, false);
        printf("\\fR");
    }
    if (argument[0] != '\0') {
        printf(" \\fI");
        put_roff(argument, false);
        printf("\\fR");
    }
    printf("\n");
    put_roff(ghp_opts_text(opt, text, sizeof text), true);
    printf(".\n");
}

static void put_options(const struct ghp_tool *tool)
{
    printf(".SH OPTIONS\nDefaults are in brackets.\n");
    for (int i = 0; i < tool->n_opts; i++) {
        if (tool->opts[i].kind != GHP_OPT_HEADING) {
            put_option(&tool->opts[i]);
            continue;
        }
        printf(".SS ");
        put_roff(tool->opts[i].help, false);
        printf("\n");
    }
    printf(".SS General\n");
    for (int i = 0; i < GHP_OPTS_GENERAL; i++)
        put_option(&ghp_opts_general[i]);
}

/* Lines as they are. */
static void put_lines(const char *heading, const char *text)
{
    printf(".SH %s\n.nf\n", heading);
    put_roff(text, true);
    printf("\n.fi\n");
}

enum ghp_status ghp_opts_print_man(const struct ghp_tool *tool)
{
    bool more = false;

    printf(".\\\" made by %s --help=man\n.TH ", tool->name);
    put_upper(tool->name);
    printf(" 1 \"\" \"ghp %s\" \"ghp\"\n.SH NAME\n", GHP_VERSION);
    put_roff(tool->name, true);
    printf(" \\- ");
    put_roff(tool->purpose, false);
    printf("\n");
    put_lines("SYNOPSIS", tool->usage);
    if (tool->notes != NULL) {
        printf(".SH DESCRIPTION\n");
        put_roff(tool->notes, true);
        printf("\n");
    }
    put_options(tool);
    printf(".SH \"EXIT STATUS\"\n");
    put_roff(ghp_opts_exit_codes(tool), true);
    printf("\n");
    put_lines("EXAMPLES", tool->example);
    printf(".SH \"SEE ALSO\"\n");
    for (size_t i = 0; i < sizeof own_tools / sizeof own_tools[0]; i++) {
        if (strcmp(own_tools[i], tool->name) == 0) continue;
        printf("%s\\fB", more ? ", " : "");
        put_roff(own_tools[i], false);
        printf("\\fR(1)");
        more = true;
    }
    printf("\n");
    return ghp_opts_printed();
}

/* ---- bash ---- */

/* The option's forms as alternatives of a case: "--output | -o". */
static void put_forms(const struct ghp_opt *opt)
{
    if (opt->name != NULL) printf("--%s", opt->name);
    if (opt->name != NULL && opt->letter != 0) printf(" | ");
    if (opt->letter != 0) printf("-%c", opt->letter);
}

/* The words that begin as what is typed, and what a further flag of compgen adds. */
static void put_words(const char *flag, const char *const *words)
{
    printf("        mapfile -t COMPREPLY < <(compgen %s-W '", flag);
    for (int i = 0; words[i] != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", words[i]);
    printf("' -- \"$word\")\n");
}

/* What may follow the option. */
static void put_values(const struct ghp_opt *opt)
{
    if (opt->kind == GHP_OPT_FLAG || opt->kind == GHP_OPT_HEADING) return;
    printf("    ");
    put_forms(opt);
    printf(")\n");
    if (opt->kind == GHP_OPT_CHOICE) {
        put_words("", opt->choices);
    } else if (opt->known != NULL) {
        put_words("-f ", opt->known);
    } else if (opt->kind == GHP_OPT_TEXT || opt->kind == GHP_OPT_LIST) {
        printf("        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n");
    }
    printf("        return\n        ;;\n");
}

static void put_function(const struct ghp_tool *tool)
{
    for (const char *c = tool->name; *c != '\0'; c++)
        putchar(*c == '-' ? '_' : *c);
}

enum ghp_status ghp_opts_print_bash(const struct ghp_tool *tool)
{
    printf("# bash completion of %s, made by %s --help=bash\n_", tool->name, tool->name);
    put_function(tool);
    printf("()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    # --name=value comes as three words\n"
           "    if [[ $word == '=' ]]; then\n"
           "        word=\n"
           "    elif [[ $before == '=' ]]; then\n"
           "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "    fi\n"
           "    COMPREPLY=()\n"
           "    case $before in\n");
    for (int i = 0; i < tool->n_opts; i++)
        put_values(&tool->opts[i]);
    printf("    esac\n"
           "    if [[ $word == -* ]]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W '");
    for (int i = 0; i < GHP_OPTS_GENERAL; i++)
        printf("%s--%s", i > 0 ? " " : "", ghp_opts_general[i].name);
    for (int i = 0; i < tool->n_opts; i++)
        if (tool->opts[i].kind != GHP_OPT_HEADING && tool->opts[i].name != NULL)
            printf(" --%s", tool->opts[i].name);
    printf("' -- \"$word\")\n"
           "    else\n"
           "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
           "    fi\n}\ncomplete -o filenames -F _");
    put_function(tool);
    printf(" %s\n", tool->name);
    return ghp_opts_printed();
}
