/* profiler/run/resume.h - an earlier profile file is continued: what it measured is kept, what it only estimated is
 * not.
 *
 * Private to profiler/.  Tested  tests/profiler/run/test_resume.c */
#ifndef GHP_PROFILER_RUN_RESUME_H
#define GHP_PROFILER_RUN_RESUME_H

#include "profiler/worklist/worklist.h"
#include "core/cost/profile.h"

/* Loads the file at `path` if there is one, and keeps its measured entries.
 *
 * fresh     a new profile that says how and where will be measured (backend, numerics, precision, workers, machine);
 *           on success it has become the one to continue with
 * resumed   receives whether there was a file
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (the file was measured otherwise: names the difference and --fresh); load failures
 * Local */
enum ghp_status ghp_resume_load(const char *path, struct ghp_profile *fresh, bool *resumed);

/* Takes operations and rates over from the file at `path`: a profile of the same processors, ranks and threads, whose
 * links or nodes may be others. Collectives and slowdowns are left to be measured (slowdowns are 0 then).
 *
 * Returns   as ghp_resume_load; a missing file is a failure too
 * Local */
enum ghp_status ghp_resume_like(const char *path, struct ghp_profile *fresh);

/* Sets kept for what the profile has measured. Local. */
void ghp_resume_mark(const struct ghp_profile *profile, struct ghp_worklist *worklist);

#endif
