/* executor/launcher/tool_path.h - where ghp's other tools are.
 *
 * Tested  tests/tools/run/test_train.sh, test_launch.sh */
#ifndef GHP_EXECUTOR_LAUNCHER_TOOL_PATH_H
#define GHP_EXECUTOR_LAUNCHER_TOOL_PATH_H

enum { GHP_TOOL_PATH_BYTES = 4096 };

/* The tool of that name in this program's folder, else the one on the path. Local. */
void ghp_tool_path(const char *name, char path[GHP_TOOL_PATH_BYTES]);

#endif
