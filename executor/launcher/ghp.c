/* executor/launcher/ghp.c - one door to all tools: `ghp plan ...` is `ghp-plan ...`.
 *
 * It becomes the tool next to it, in the same process, so a tool under mpirun, its signals and its exit code are what
 * they are without it. It knows nothing of what the tools do; a new tool is a row of TOOL_LIST. */
#include "core/base/opts.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "executor/launcher/tasks.h"
#include "executor/launcher/tool_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 64 };

/* name, purpose as the tool's own --help says it */
#define TOOL_LIST(X)                                                                               \
    X("train", "measures, plans and trains a network with one command")                            \
    X("profile", "measures what a machine takes for each part of a network, for ghp-plan")         \
    X("plan", "chooses how to split every layer over the workers, and proves how good that is")    \
    X("expect", "says what a training step should take on a machine, and whether yours is normal") \
    X("run", "trains a network by a plan, and shows predicted next to measured time")              \
    X("launch", "keeps a training alive: restarts ghp-run from the last checkpoint after a "       \
                "failure")                                                                         \
    X("inspect", "shows models, machines, profiles, plans, runs and checkpoints")

#define TOOL_NAME(name, purpose) name,
static const char *const names[] = {TOOL_LIST(TOOL_NAME) "help", NULL};
#undef TOOL_NAME

#define TOOL_LINE(name, purpose) "  " name " " purpose "\n"
static const struct ghp_tool tool = {
    .name = "ghp",
    .purpose = "plans and runs hybrid-parallel training of deep networks",
    .usage = "ghp TOOL [the tool's options]\n"
             "       ghp help TOOL|TASK",
    .example = "ghp train models/vgg-a-32.json --workers 2 --batch 64 -- --steps 100\n"
               "         mpirun -n 4 ghp run plan.json --steps 20",
    .notes = "The tools:\n" TOOL_LIST(TOOL_LINE) "'ghp plan' is the same as 'ghp-plan', and so on. "
                                                 "Each tool has a man page.\n"
                                                 "'ghp help tasks' lists what you may want to do, "
                                                 "each with its page."};
#undef TOOL_LINE

/* Completes the tools' names as the first word, then what the tool itself would offer. */
static const char completions[] =
    "# bash completion of ghp, made by ghp --help=bash\n"
    "_ghp()\n{\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} tool=${COMP_WORDS[1]}\n"
    "    COMPREPLY=()\n"
    "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W '%s--help --version' -- \"$word\")\n"
    "        return\n"
    "    elif [ \"$COMP_CWORD\" = 2 ] && [ \"$tool\" = help ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W '%s%stasks' -- \"$word\")\n"
    "        return\n"
    "    fi\n"
    "    case $tool in\n"
    "    help | -* | '') return ;;\n"
    "    esac\n"
    "    declare -F \"_ghp_$tool\" >/dev/null ||\n"
    "        source <(\"${COMP_WORDS[0]}\" \"$tool\" --help=bash 2>/dev/null)\n"
    "    declare -F \"_ghp_$tool\" >/dev/null || return\n"
    "    COMP_WORDS=(\"ghp-$tool\" \"${COMP_WORDS[@]:2}\") COMP_CWORD=$((COMP_CWORD - 1))\n"
    "    \"_ghp_$tool\"\n}\n"
    "complete -o filenames -F _ghp ghp\n";

/* The names, each with a blank after it, into out (n bytes). */
static void put_names(const char *const *all, char *out, size_t n)
{
    size_t used = 0;

    for (size_t i = 0; all[i] != NULL; i++)
        used += (size_t)snprintf(out + used, n - used, "%s ", all[i]);
    GHP_ASSERT(used < n);
}

static enum ghp_status print_completions(void)
{
    char words[256], tasks[512];

    put_names(names, words, sizeof words);
    put_names(ghp_task_names, tasks, sizeof tasks);
    printf(completions, words, words, tasks);
    return ghp_opts_printed();
}

/* The tool of a word, which may be its whole name ("ghp-plan"); NULL: there is none. */
static const char *find_tool(const char *word)
{
    if (strncmp(word, "ghp-", 4) == 0) word += 4;
    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], word) == 0) return names[i];
    return NULL;
}

static enum ghp_status fail_unknown(const char *word)
{
    const char *nearest = ghp_text_nearest(word, names);
    char all[256];

    if (nearest != NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "ghp has no tool '%s'; did you mean '%s'?", word, nearest);
    return GHP_FAIL(GHP_ERR_USAGE, "ghp has no tool '%s'; give one of %s", word,
                    ghp_text_join(names, all, sizeof all));
}

static enum ghp_status fail_no_task(const char *word)
{
    const char *tool_name = ghp_text_nearest(word, names);
    const char *nearest = tool_name != NULL ? tool_name : ghp_text_nearest(word, ghp_task_names);

    if (nearest != NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "ghp has no tool or task '%s'; did you mean '%s'?", word,
                        nearest);
    return GHP_FAIL(GHP_ERR_USAGE, "ghp has no tool or task '%s'; see 'ghp help tasks'", word);
}

/* In the place of this process; only a failure returns. args[0] is replaced by the tool's path. */
static enum ghp_status become(const char *name, char **args)
{
    char full[NAME_BYTES], path[GHP_TOOL_PATH_BYTES];

    snprintf(full, sizeof full, "ghp-%s", name);
    ghp_tool_path(full, path);
    args[0] = path;
    execvp(path, args);
    return GHP_FAIL(GHP_ERR_IO, "cannot start '%s': %s; install it next to ghp, or on the PATH",
                    path, strerror(errno));
}

/* ghp help tasks, ghp help TASK, ghp help WORD; false: no task is that or has to do with it. */
static bool help_task(const char *word)
{
    if (strcmp(word, "tasks") != 0) return ghp_task_print(word) || ghp_tasks_about(word);
    printf("'ghp help TASK' has a command and the page:\n\n");
    ghp_tasks_about("");
    return true;
}

/* ghp help [TOOL|TASK] */
static enum ghp_status help(int argc, char **argv)
{
    char own[] = "ghp", option[] = "--help", *args[] = {own, option, NULL};
    const char *name;

    if (argc > 3)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "one word too many: '%s'; give ghp help one word, such as ghp help slow",
                        argv[3]);
    name = argc == 3 ? find_tool(argv[2]) : "help";
    if (name == NULL && help_task(argv[2])) return ghp_opts_printed();
    if (name == NULL) return fail_no_task(argv[2]);
    if (strcmp(name, "help") != 0) return become(name, args);
    return ghp_opts_parse(&tool, 2, args, NULL, 0, NULL);
}

static enum ghp_status run(int argc, char **argv)
{
    char all[256];
    const char *name;

    if (argc < 2)
        return GHP_FAIL(GHP_ERR_USAGE, "no tool was named; give one of %s",
                        ghp_text_join(names, all, sizeof all));
    if (strcmp(argv[1], "--help=bash") == 0) return print_completions();
    if (argv[1][0] == '-') return ghp_opts_parse(&tool, argc, argv, NULL, 0, NULL);
    name = find_tool(argv[1]);
    if (name == NULL) return fail_unknown(argv[1]);
    if (strcmp(name, "help") == 0) return help(argc, argv);
    return become(name, argv + 1);
}

/* Whether another process of the same launch says what this one would. Only MPI knows ranks for certain, but to start
 * it for a misspelt word would be dear. */
static bool another_speaks(void)
{
    static const char *const variables[] = {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"};

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *rank = getenv(variables[i]);

        if (rank != NULL) return strcmp(rank, "0") != 0;
    }
    return false;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? find_tool(argv[1]) : NULL;
    bool becomes = name != NULL && strcmp(name, "help") != 0;
    bool silent = !becomes && another_speaks();
    enum ghp_status status;

    ghp_file_guard_standard();
    if (silent &&
        (freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL))
        return 1;
    status = run(argc, argv);
    if (status != GHP_OK) fprintf(stderr, "ghp: %s\n", ghp_status_message());
    if (silent) sleep(1); /* a launcher ends all if one ends with a failure */
    return ghp_status_exit_code(status);
}
