/* core/base/opts_private.h - what opts*.c share; for no one else. */
#ifndef GHP_CORE_BASE_OPTS_PRIVATE_H
#define GHP_CORE_BASE_OPTS_PRIVATE_H

#include "core/base/opts.h"

#include <stddef.h>

#ifndef GHP_VERSION
#error "the build defines GHP_VERSION"
#endif

enum {
    GHP_OPTS_VALUE_SIZE = 1024, /* room for ghp_opts_value */
    GHP_OPTS_TEXT_SIZE = 2048,  /* room for ghp_opts_text */
    GHP_OPTS_GENERAL = 2
};

/* The tool's exit codes, for help and manual, into out (n bytes); returns out. */
const char *ghp_opts_exit_codes(const struct ghp_tool *tool, char *out, size_t n);

/* --help and --version, for texts. */
extern const struct ghp_opt ghp_opts_general[GHP_OPTS_GENERAL];

/* "--name" or "-o" into out (n bytes); returns out. */
const char *ghp_opts_label(const struct ghp_opt *opt, char *out, size_t n);

/* Whether min and max mean something. */
bool ghp_opts_bounded(const struct ghp_opt *opt);

/* The present value as text into out (n bytes); NULL for a TEXT that is NULL and for a heading. */
const char *ghp_opts_value(const struct ghp_opt *opt, char *out, size_t n);

/* What the option's value is called; "" if it takes none. */
const char *ghp_opts_argument(const struct ghp_opt *opt);

/* The option's help with its choices and its default, into out (n bytes); returns out. */
const char *ghp_opts_text(const struct ghp_opt *opt, char *out, size_t n);

/* The longest part of text that fits on a line: up to its last blank, or a whole word. */
size_t ghp_opts_line_length(const char *text, size_t width);

/* Print to stdout: --help (all: --help all), --version, --help=man, --help=md, --help=bash.
 *
 * Return   GHP_OK; GHP_ERR_IO */
enum ghp_status ghp_opts_print_help(const struct ghp_tool *tool, bool all);
enum ghp_status ghp_opts_print_version(const struct ghp_tool *tool);
enum ghp_status ghp_opts_print_man(const struct ghp_tool *tool);
enum ghp_status ghp_opts_print_markdown(const struct ghp_tool *tool);
enum ghp_status ghp_opts_print_bash(const struct ghp_tool *tool);

#endif
