/* core/opts_private.h - what opts.c and opts_help.c share; for no one else. */
#ifndef GHP_CORE_OPTS_PRIVATE_H
#define GHP_CORE_OPTS_PRIVATE_H

#include "core/opts.h"

#include <stddef.h>

enum { GHP_OPTS_VALUE_SIZE = 1024 }; /* room for ghp_opts_value */

/* "--name" or "-o" into out (n bytes); returns out. */
const char *ghp_opts_label(const struct ghp_opt *opt, char *out, size_t n);

/* Whether min and max mean something. */
bool ghp_opts_bounded(const struct ghp_opt *opt);

/* The present value as text into out (n bytes); NULL for a TEXT that is NULL and for a heading. */
const char *ghp_opts_value(const struct ghp_opt *opt, char *out, size_t n);

/* Prints --help and --version to stdout.  Returns GHP_OK; GHP_ERR_IO */
enum ghp_status ghp_opts_print_help(const struct ghp_tool *tool);
enum ghp_status ghp_opts_print_version(const struct ghp_tool *tool);

#endif
