/* executor/launcher/tasks.h - what `ghp help TASK` knows: for each task one command and the page that explains it.
 *
 * A new task is a row in tasks.c.
 *
 * Tested  tests/tools/together/test_tasks.sh */
#ifndef GHP_EXECUTOR_LAUNCHER_TASKS_H
#define GHP_EXECUTOR_LAUNCHER_TASKS_H

#include <stdbool.h>

/* The names of all tasks; NULL ends them. */
extern const char *const ghp_task_names[];

/* Prints the task's purpose, command and page to stdout. Returns false if there is no such task. */
bool ghp_task_print(const char *name);

/* Prints a line for each task whose purpose has the word, in upper or lower case, or has it with blanks for its
 * hyphens. "" is in all. Returns false if none has. */
bool ghp_tasks_about(const char *word);

#endif
