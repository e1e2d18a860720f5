/* core/base/opts_manual.c - command lines: the man page, the page of the reference and bash's completions, from the
 * option table.
 *
 * --help=man, --help=md and --help=bash print them. The build makes files of the first and the last, which installation
 * puts where man and bash look; `ninja reference` writes docs/reference/cli. */
#include "core/base/opts_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTE_SIZE = 1024 };

static const char *const own_tools[] = {"ghp",      "ghp-expect",  "ghp-inspect", "ghp-launch",
                                        "ghp-plan", "ghp-profile", "ghp-run",     "ghp-train"};

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

/* n bytes of text, less than NOTE_SIZE, as put_roff has them. */
static void put_roff_part(const char *text, size_t n, bool begins)
{
    char part[NOTE_SIZE];

    GHP_ASSERT(n < sizeof part);
    memcpy(part, text, n);
    part[n] = '\0';
    put_roff(part, begins);
}

/* Lines of their own: a form of a command each, or what continues the one before it after a backslash. */
static void put_lines(const char *heading, const char *text)
{
    bool continues = false;

    printf(".SH %s\n.nf\n", heading);
    for (size_t n; *text != '\0'; text += n + (text[n] == '\n')) {
        text += strspn(text, " ");
        n = strcspn(text, "\n");
        if (continues) printf("    ");
        put_roff_part(text, n, !continues);
        printf("\n");
        continues = n > 0 && text[n - 1] == '\\';
    }
    printf(".fi\n");
}

/* The notes from the first list on, with the line above it that introduces it; their end if there is none. */
static const char *find_list(const char *notes)
{
    const char *list = strstr(notes, ":\n  ");

    if (list == NULL) return notes + strlen(notes);
    while (list > notes && list[-1] != '\n')
        --list;
    return list;
}

/* A section of the notes up to `end`, if there are any: paragraphs, and a list's rows as tagged ones. */
static void put_section(const char *heading, const char *notes, const char *end)
{
    if (notes < end) printf(".SH %s\n", heading);
    for (size_t n; notes < end; notes += n + (notes[n] == '\n')) {
        const char *rest = notes;

        n = strcspn(notes, "\n");
        printf(notes[0] == ' ' ? ".TP\n\\fB" : ".PP\n");
        if (notes[0] == ' ') {
            size_t name = strcspn(notes + 2, " ");

            put_roff_part(notes + 2, name, true);
            printf("\\fR\n");
            rest += name + 2;
            rest += strspn(rest, " ");
        }
        put_roff_part(rest, n - (size_t)(rest - notes), true);
        printf("\n");
    }
}

enum ghp_status ghp_opts_print_man(const struct ghp_tool *tool)
{
    const char *notes = tool->notes != NULL ? tool->notes : "", *end = notes + strlen(notes);
    /* long lists do not stand before the options */
    const char *lists = tool->n_opts > 0 ? find_list(notes) : end;
    char codes[512];
    bool more = false;

    printf(".\\\" made by %s --help=man\n.TH ", tool->name);
    put_upper(tool->name);
    printf(" 1 \"\" \"ghp %s\" \"ghp\"\n.nh\n.ad l\n.SH NAME\n", GHP_VERSION);
    put_roff(tool->name, true);
    printf(" \\- ");
    put_roff(tool->purpose, false);
    printf("\n");
    put_lines("SYNOPSIS", tool->usage);
    put_section("DESCRIPTION", notes, lists);
    put_options(tool);
    put_section("NOTES", lists, end);
    printf(".SH \"EXIT STATUS\"\n");
    put_roff(ghp_opts_exit_codes(tool, codes, sizeof codes), true);
    printf(".\n");
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

/* ---- Markdown ---- */

enum { WIDTH = 120 };

/* n bytes of text; a page of docs/ that it names becomes a link from docs/reference/cli. */
static void put_markdown(FILE *out, const char *text, size_t n)
{
    for (const char *after = text + n; text < after; text++) {
        const char *end = strncmp(text, "docs/", 5) == 0 ? strstr(text, ".md") : NULL;

        if (end != NULL) {
            int path = (int)(end - text) - 5;

            fprintf(out, "[docs/%.*s.md](../../%.*s.md)", path, text + 5, path, text + 5);
            text = end + 2;
            continue;
        }
        if (strchr("|*<\\", *text) != NULL) putc('\\', out);
        putc(*text, out);
    }
}

static void put_row(const struct ghp_opt *opt)
{
    char text[GHP_OPTS_TEXT_SIZE];
    const char *argument = ghp_opts_argument(opt);

    printf("| ");
    if (opt->letter != 0) printf("`-%c`%s", opt->letter, opt->name != NULL ? ", " : "");
    if (opt->name != NULL) printf("`--%s%s", opt->name, argument[0] != '\0' ? " " : "");
    for (; opt->name != NULL && *argument != '\0'; argument++)
        printf("%s%c", *argument == '|' ? "\\" : "", *argument);
    printf("%s | ", opt->name != NULL ? "`" : "");
    ghp_opts_text(opt, text, sizeof text);
    put_markdown(stdout, text, strlen(text));
    printf(" |\n");
}

static void put_table(const char *title)
{
    printf("\n## %s\n\n| option | what it does |\n|---|---|\n", title);
}

/* n bytes of text as a paragraph, or as an item that begins with a name, in lines of at most WIDTH columns. */
static enum ghp_status put_wrapped(const char *name, int n_name, const char *text, size_t n)
{
    char *line = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&line, &size);
    bool failed;

    if (out == NULL) return GHP_NO_MEMORY();
    if (n_name > 0) fprintf(out, "* `%.*s`: ", n_name, name);
    put_markdown(out, text, n);
    failed = ferror(out) != 0;
    failed = fclose(out) != 0 || failed;
    for (const char *at = line; !failed && *at != '\0'; at += strspn(at, " ")) {
        int indent = n_name > 0 && at > line ? 2 : 0;
        size_t most = ghp_opts_line_length(at, (size_t)(WIDTH - indent));

        printf("%*s%.*s\n", indent, "", (int)most, at);
        at += most;
    }
    free(line);
    return failed ? GHP_NO_MEMORY() : GHP_OK;
}

/* Paragraphs, and a list's rows as its items. */
static enum ghp_status put_notes(const char *notes)
{
    bool in_list = false;

    printf("\n## Notes\n");
    for (size_t n; *notes != '\0'; notes += n + (notes[n] == '\n')) {
        size_t name = notes[0] == ' ' ? strcspn(notes + 2, " ") : 0, rest = name > 0 ? name + 2 : 0;

        n = strcspn(notes, "\n");
        rest += strspn(notes + rest, " ");
        if (name == 0 || !in_list) putchar('\n');
        GHP_TRY(put_wrapped(notes + 2, (int)name, notes + rest, n - rest));
        in_list = name > 0;
    }
    return GHP_OK;
}

enum ghp_status ghp_opts_print_markdown(const struct ghp_tool *tool)
{
    const struct ghp_exit_code *code = tool->exit_codes;

    printf("# %s\n\n<!-- made by `%s --help=md`; do not edit -->\n\n`%s` %s.\n\n", tool->name,
           tool->name, tool->name, tool->purpose);
    printf("```text\nusage: %s\n```\n\nDefaults are in brackets. Example:\n\n```sh\n%s\n```\n",
           tool->usage, tool->example);
    for (int i = 0; i < tool->n_opts; i++) {
        if (i == 0 && tool->opts[i].kind != GHP_OPT_HEADING) put_table("Options");
        if (tool->opts[i].kind == GHP_OPT_HEADING)
            put_table(tool->opts[i].help);
        else
            put_row(&tool->opts[i]);
    }
    put_table("General");
    for (int i = 0; i < GHP_OPTS_GENERAL; i++)
        put_row(&ghp_opts_general[i]);
    if (tool->notes != NULL) GHP_TRY(put_notes(tool->notes));
    printf("\n## Exit codes\n\n| code | meaning |\n|---|---|\n"
           "| 0 | done |\n| 1 | failed |\n| 2 | bad usage |\n");
    for (; code != NULL && code->meaning != NULL; code++) {
        printf("| %d | ", code->code);
        put_markdown(stdout, code->meaning, strlen(code->meaning));
        printf(" |\n");
    }
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
