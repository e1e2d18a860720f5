/* executor/cli/libraries.h - which versions of the foreign libraries this process is linked to.
 *
 * Asks the libraries themselves, so that a replaced shared library shows. Starts none of them. */
#ifndef GHP_EXECUTOR_CLI_LIBRARIES_H
#define GHP_EXECUTOR_CLI_LIBRARIES_H

#include "core/base/opts.h"

/* Says oneDNN, MPI, hwloc and zlib, and the kernels and sources of this build; fits struct ghp_tool's `libraries`. */
void ghp_executor_libraries(ghp_opts_say *say);

/* A hash of the sources of this build's kernels and transports and of the compiler's options: 16 digits. */
extern const char ghp_kernels_hash[];
/* The same of all sources of core, onnx and executor. */
extern const char ghp_sources_hash[];

#endif
