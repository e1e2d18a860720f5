/* core/base/opts.h - command lines: one table of options drives the parser, --help and the dump of the configuration.
 *
 * A tool lists its options once, with the variables they set; the variables' values before parsing are the
 * defaults that --help shows.
 *
 *     static const char *plan_path = "plan.json";
 *     static const struct ghp_opt options[] = {
 *         {.kind = GHP_OPT_HEADING, .help = "Output"},
 *         {.name = "output", .letter = 'o', .kind = GHP_OPT_TEXT, .target = &plan_path,
 *          .argument = "PLAN", .help = "where the plan goes"},
 *     };
 *
 * --help and --version belong to every tool; they print to stdout, and then ghp_opts_done() tells main to end.
 * --help prints the common options, --help all (or --help=all) every one. --help=man prints the man page, --help=md a
 * page of the reference and --help=bash the completions, from the same table.
 * Options and positional arguments may be mixed; "--" ends the options; "-" alone is positional. As in
 * getopt_long, which is underneath, a long name may be shortened if that is unambiguous.
 * A default outside an option's own range means "not set", and --help does not show it.
 *
 * Tested  tests/core/base/test_opts.c */
#ifndef GHP_CORE_BASE_OPTS_H
#define GHP_CORE_BASE_OPTS_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define GHP_OPT_LIST_MAX 16

enum ghp_opt_kind {
    GHP_OPT_FLAG,   /* bool *          set to true; takes no value */
    GHP_OPT_INT,    /* int64_t *       */
    GHP_OPT_REAL,   /* double *        finite */
    GHP_OPT_TEXT,   /* const char **   points into argv */
    GHP_OPT_CHOICE, /* int *           index into choices */
    GHP_OPT_BYTES,  /* int64_t *       [bytes]; read by ghp_bytes_parse */
    GHP_OPT_LIST,   /* struct ghp_opt_list *; may be given several times */
    GHP_OPT_HEADING /* no option: help is a heading in --help */
};

/* How an option may differ between the processes that work on one task. */
enum ghp_opt_alike {
    GHP_OPT_SAME_VALUE, /* all have one value */
    GHP_OPT_SAME_GIVEN, /* all are given it or none is: one of them uses the value */
    GHP_OPT_OWN_VALUE   /* each may have its own: nothing that they do together depends on it */
};

/* The target of GHP_OPT_LIST. */
struct ghp_opt_list {
    const char *item[GHP_OPT_LIST_MAX]; /* point into argv */
    int n;                              /* items given */
};

/* One option (or heading). */
struct ghp_opt {
    const char *name; /* long name without the dashes; NULL: the letter only */
    char letter;      /* short name, 0 for none */
    enum ghp_opt_kind kind;
    void *target;         /* as enum ghp_opt_kind says */
    const char *argument; /* what --help calls the value, for example "N"; NULL: by kind */
    const char *help;     /* one sentence, lower case, no full stop */
    double min, max;      /* allowed range of INT, REAL, BYTES, both included; both 0: unbounded */
    const char *const *choices; /* CHOICE: NULL-terminated names */
    /* TEXT: names that are completed in addition to files; may be NULL */
    const char *const *known;
    const char *former; /* a former long name that is still taken, and shown nowhere; may be NULL */
    /* CHOICE: pairs of another spelling, shown nowhere, and its choice, or "--OPTION VALUE" in its place; or NULL */
    const char *const *synonyms;
    /* TEXT that names a file or folder to be written. It is refused if another argument names the same one, or if it is
     * a file of another kind (ghp_file_check_replaced); NULL: an input, or no file */
    const char *writes;
    bool writes_folder; /* with `writes`: it names a folder */
    enum ghp_opt_alike alike;
};

/* Takes a library's name and the version that is linked. */
typedef void ghp_opts_say(const char *name, const char *version);

/* An exit code of one tool, in addition to those of all: 0 done, 1 failed, 2 bad usage. */
struct ghp_exit_code {
    int code;
    const char *meaning; /* lower case, no full stop; NULL ends the list */
};

/* What to say of an option that a tool does not have. */
struct ghp_opts_hint {
    const char *name;   /* NULL ends the list */
    const char *remedy; /* of the end: for any other option; may be NULL */
};

/* A tool's command line. */
struct ghp_tool {
    const char *name;           /* "ghp-plan" */
    const char *purpose;        /* one sentence */
    const char *usage;          /* what follows "usage: ", may have several lines */
    const char *example;        /* a command that works in the source tree */
    const struct ghp_opt *opts; /* n_opts entries */
    int n_opts;
    const char *common; /* long names that --help shows, with blanks between them; NULL: all */
    /* further help, may be NULL: paragraphs, and rows "  WORD meaning" of a list, a line each */
    const char *notes;
    /* says the linked libraries other than core's; may be NULL */
    void (*libraries)(ghp_opts_say *say);
    const struct ghp_opts_hint *hints;      /* of options that users look for here; may be NULL */
    const struct ghp_exit_code *exit_codes; /* may be NULL */
};

/* Parses a command line into the targets.
 *
 * argc, argv       as main got them; the targets may point into argv
 * positional       receives the arguments that are not options, max_positional entries; may be NULL if that is 0
 * n_positional     receives how many; may be NULL
 *
 * Returns   GHP_OK (after --help or --version too: see ghp_opts_done); GHP_ERR_USAGE (unknown option with the nearest
 *           match, value missing, outside its range or malformed, option given twice, too many arguments, an output
 *           that would destroy an input or another kind of file) */
enum ghp_status ghp_opts_parse(const struct ghp_tool *tool, int argc, char **argv,
                               const char **positional, int max_positional, int *n_positional);

/* Whether the last ghp_opts_parse answered --help or --version: main then returns 0. */
bool ghp_opts_done(void);

/* The two halves of ghp_opts_parse, for a tool of which one process of several answers: read says nothing, and where
 * ghp_opts_done() holds after it, answer prints what was asked for. argv is still needed then.
 *
 * Returns   as ghp_opts_parse */
enum ghp_status ghp_opts_read(const struct ghp_tool *tool, int argc, char **argv,
                              const char **positional, int max_positional, int *n_positional);
enum ghp_status ghp_opts_answer(const struct ghp_tool *tool);

/* Tries every file that the tool is to write, before its work; ghp_opts_parse does so too. One process calls it: files
 * are looked for where it runs.
 *
 * Returns   GHP_OK; GHP_ERR_IO, with what to do */
enum ghp_status ghp_opts_try_outputs(const struct ghp_tool *tool);

/* Flushes stdout, at a tool's end. Returns GHP_OK; GHP_ERR_IO if not all that was printed could be written */
enum ghp_status ghp_opts_printed(void);

/* Calls fn for every option in which processes that work together may not differ, with its label ("--name") and what
 * must be the same: the value as ghp_opts_each gives it, or "given"; NULL for an option that is not set. */
void ghp_opts_each_alike(const struct ghp_tool *tool,
                         void (*fn)(const char *label, const char *value_text, void *ctx),
                         void *ctx);

/* Calls fn for every option with its present value as text: numbers so that they read back alike, flags "true" and
 * "false", a list's items separated by commas; value_text is NULL if a TEXT is NULL. */
void ghp_opts_each(const struct ghp_tool *tool,
                   void (*fn)(const char *name, const char *value_text, void *ctx), void *ctx);

#endif
