/* tests/core/base/test_opts.c - one table parses, refuses, prints --help and dumps the configuration. */
#include "core/base/file.h"
#include "core/base/opts.h"

#include "tests/check.h"

#include <unistd.h>

static const char *const modes[] = {"exact", "fast", NULL};
static const char *const synonyms[] = {"deterministic", "exact", "given", "--steps 5", NULL};

/* The targets; reset before each command line. */
static struct targets {
    bool json;
    int64_t steps, memory_bytes;
    double rate;
    const char *output;
    int mode;
    struct ghp_opt_list models;
} got;

static const struct targets defaults = {
    .steps = 100, .memory_bytes = -1, .rate = 0.01, .output = "plan.json", .mode = 1};

static const struct ghp_opt options[] = {
    {.kind = GHP_OPT_HEADING, .help = "Training"},
    {.name = "steps",
     .letter = 's',
     .kind = GHP_OPT_INT,
     .target = &got.steps,
     .min = 1,
     .max = 1000,
     .help = "steps to train"},
    {.name = "rate",
     .kind = GHP_OPT_REAL,
     .target = &got.rate,
     .min = 0,
     .max = INFINITY,
     .help = "learning rate"},
    {.name = "mode",
     .kind = GHP_OPT_CHOICE,
     .target = &got.mode,
     .choices = modes,
     .former = "precision",
     .synonyms = synonyms,
     .help = "numerics"},
    {.name = "memory",
     .kind = GHP_OPT_BYTES,
     .target = &got.memory_bytes,
     .help = "memory of a worker"},
    {.kind = GHP_OPT_HEADING, .help = "Output"},
    {.name = "model", .kind = GHP_OPT_LIST, .target = &got.models, .help = "a network"},
    {.name = "output",
     .letter = 'o',
     .kind = GHP_OPT_TEXT,
     .target = &got.output,
     .writes = "\"ghp.plan/|digraph",
     .alike = GHP_OPT_SAME_GIVEN,
     .argument = "PLAN",
     .help = "where the plan goes"},
    {.name = "json",
     .kind = GHP_OPT_FLAG,
     .target = &got.json,
     .alike = GHP_OPT_OWN_VALUE,
     .help = "print one JSON object"},
};

static const struct ghp_exit_code exit_codes[] = {{3, "no plan fits"}, {0, NULL}};

static const struct ghp_tool tool = {
    .name = "ghp-test",
    .purpose = "tests the parser",
    .usage = "ghp-test [options] FILE",
    .example = "ghp-test models/lenet5.json",
    .opts = options,
    .n_opts = sizeof options / sizeof options[0],
    .common = "mode steps",
    .exit_codes = exit_codes,
};

static const char *positional[2];
static int n_positional;

/* Parses a command line, its words separated by blanks, over the defaults. */
static enum ghp_status parse(const char *line)
{
    static char words[512];
    static char *argv[32];
    int argc = 0;
    char *rest = NULL;

    got = defaults;
    snprintf(words, sizeof words, "ghp-test %s", line);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    argv[argc] = NULL;
    return ghp_opts_parse(&tool, argc, argv, positional, 2, &n_positional);
}

static void test_values(void)
{
    CHECK_STATUS(parse(""), GHP_OK);
    CHECK_EQ(got.steps, 100);
    CHECK_EQ(n_positional, 0);
    CHECK_STATUS(parse("--steps 5 first --rate=-0 --mode exact --memory 4GiB -o x --json second"),
                 GHP_OK);
    CHECK_EQ(got.steps, 5);
    CHECK_EQ(got.mode, 0);
    CHECK_EQ(got.memory_bytes, INT64_C(4) << 30);
    CHECK_TEXT(got.output, "x");
    CHECK(got.json);
    CHECK_EQ(n_positional, 2);
    CHECK_TEXT(positional[0], "first");
    CHECK_TEXT(positional[1], "second");
    CHECK_STATUS(parse("-s7 --model a --model=b -- --json"), GHP_OK);
    CHECK_EQ(got.steps, 7);
    CHECK_EQ(got.models.n, 2);
    CHECK_TEXT(got.models.item[1], "b");
    CHECK(!got.json);
    CHECK_TEXT(positional[0], "--json");
    CHECK(!ghp_opts_done());
}

/* Former names and other spellings mean the same, count as given, and are shown nowhere. */
static void test_former(void)
{
    CHECK_STATUS(parse("--precision exact"), GHP_OK);
    CHECK_EQ(got.mode, 0);
    CHECK_STATUS(parse("--mode deterministic"), GHP_OK);
    CHECK_EQ(got.mode, 0);
    CHECK_STATUS(parse("--mode fast --precision exact"), GHP_ERR_USAGE);
    CHECK_STATUS(parse("--precisoin exact"), GHP_ERR_USAGE);
    CHECK(strstr(ghp_status_message(), "did you mean") == NULL);
}

static void test_refusals(void)
{
    static const struct {
        const char *line, *message;
    } bad[] = {
        {"--stesp 5", "unknown option '--stesp'; did you mean '--steps'?"},
        {"--steps-done 5", "unknown option '--steps-done'; did you mean '--steps'?"},
        {"--colour=red", "unknown option '--colour'; see 'ghp-test --help'"},
        {"-x", "unknown option '-x'; see 'ghp-test --help'"},
        {"--steps 0", "bad value '0' for '--steps'; give a whole number from 1 to 1000"},
        {"--steps 1001", "from 1 to 1000"},
        {"--steps 5x", "bad value '5x'"},
        {"--steps 99999999999999999999", "bad value"},
        {"--steps=", "bad value ''"},
        {"--rate -1", "bad value '-1' for '--rate'; give a number of at least 0"},
        {"--rate nan", "bad value 'nan'"},
        {"--mode slow", "bad value 'slow' for '--mode'; give one of exact, fast"},
        {"--mode given", "bad value 'given' for '--mode'; give '--steps 5' in its place"},
        {"--memory much", "bad value 'much' for '--memory'; give a size such as 512MiB or 4GiB"},
        {"--output", "option '--output' needs a value"},
        {"-o", "option '-o' needs a value"},
        {"--steps 1 --steps 2", "option '--steps' is given twice; give it once"},
        {"-o a --output b", "option '--output' is given twice"},
        {"--json=yes", "option '--json=yes' takes no value"},
        {"a b c", "too many arguments at 'c': at most 2;"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_STATUS(parse(bad[i].line), GHP_ERR_USAGE);
        CHECK_MESSAGE(bad[i].message);
    }
    CHECK_EQ(ghp_status_exit_code(GHP_ERR_USAGE), 2);
}

/* Makes a file that holds `text`. */
static void put(const char *name, const char *text)
{
    CHECK_STATUS(ghp_file_write_atomic(name, text, strlen(text)), GHP_OK);
}

/* An output takes no input away, and no file of another kind. */
static void test_outputs(void)
{
    static char folder[] = "/tmp/ghp-test-opts-XXXXXX";
    static const char *const made[] = {"outputs.plan", "outputs.dot", "outputs.empty",
                                       "outputs.model", "outputs.link"};

    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQ(chdir(folder), 0);
    put("outputs.plan", "{\"format\": \"ghp.plan/1\"}");
    put("outputs.dot", "digraph");
    put("outputs.empty", "");
    put("outputs.model", "{\"format\": \"ghp.model/1\"}");
    CHECK_EQ(symlink("outputs.plan", "outputs.link"), 0);
    CHECK_STATUS(parse("-o outputs.plan"), GHP_OK);
    CHECK_STATUS(parse("-o outputs.dot outputs.plan"), GHP_OK);
    CHECK_STATUS(parse("-o outputs.empty"), GHP_OK);
    CHECK_STATUS(parse("-o outputs.none outputs.none"), GHP_OK); /* the reader will say it */
    CHECK_STATUS(parse("-o /dev/null /dev/null"), GHP_OK);
    CHECK_STATUS(parse("-o outputs.model"), GHP_ERR_USAGE);
    CHECK_MESSAGE("'outputs.model' is there and of another kind");
    CHECK_STATUS(parse("-o outputs.link x outputs.plan"), GHP_ERR_USAGE);
    CHECK_MESSAGE("'--output' would write over the input 'outputs.link'");
    CHECK_STATUS(parse("--model outputs.dot --model outputs.plan -o ./outputs.plan"),
                 GHP_ERR_USAGE);
    CHECK_MESSAGE("'--output' and '--model' name the same file");
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        CHECK_EQ(unlink(made[i]), 0);
    CHECK_EQ(chdir("/tmp"), 0);
    CHECK_EQ(rmdir(folder), 0);
}

/* What a command line prints on stdout; freed by the caller. */
static char *output_of(const char *line)
{
    char *text = ghp_alloc(8192, 1);
    FILE *file = tmpfile();
    int saved = dup(STDOUT_FILENO);

    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    CHECK_STATUS(parse(line), GHP_OK);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(file);
    CHECK(fread(text, 1, 8191, file) > 0);
    fclose(file);
    return text;
}

static void test_help(void)
{
    char *text = output_of("--help"), *all = output_of("--help=all");

    CHECK(ghp_opts_done());
    CHECK(strstr(text, "\nCommon options; 'ghp-test --help all' has the others\n"
                       "      --mode NAME         numerics: exact, fast [fast]\n"
                       "  -s, --steps N           steps to train [100]\n  -h, --help") != NULL);
    CHECK(strstr(text, "where the plan goes") == NULL);
    CHECK(strstr(text, "\nExit codes: 0 done, 1 failed, 2 bad usage, 3 no plan fits\n") != NULL);
    free(text);
    text = output_of("--help all");
    CHECK_TEXT(text, all);
    free(all);
    CHECK(strstr(text, "usage: ghp-test [options] FILE\n") != NULL);
    CHECK(strstr(text, "\nTraining\n  -s, --steps N           steps to train [100]\n") != NULL);
    CHECK(strstr(text, "numerics: exact, fast [fast]\n") != NULL);
    CHECK(strstr(text, "where the plan goes [plan.json]\n") != NULL);
    CHECK(strstr(text, "memory of a worker\n") != NULL); /* -1: not set */
    CHECK(strstr(text, "a network (may be repeated)\n") != NULL);
    CHECK(strstr(text, "Example: ghp-test models/lenet5.json\n") != NULL);
    free(text);
    text = output_of("--version --steps 0"); /* what follows is not looked at */
    CHECK(strncmp(text, "ghp-test (ghp) ", 15) == 0);
    free(text);
    CHECK_STATUS(parse(""), GHP_OK);
    CHECK(!ghp_opts_done());
}

static void collect(const char *name, const char *value, void *ctx)
{
    char *text = ctx;
    size_t n = strlen(text);

    snprintf(text + n, 512 - n, "%s=%s;", name, value != NULL ? value : "(null)");
}

static void test_dump(void)
{
    char text[512] = "";

    CHECK_STATUS(parse("--rate 0.1 --model a --model b --json"), GHP_OK);
    got.output = NULL;
    ghp_opts_each(&tool, collect, text);
    CHECK_TEXT(text, "steps=100;rate=0.1;mode=fast;memory=-1;model=a,b;output=(null);json=true;");
}

/* What must be the same of several processes; an option beyond its range is not given. */
static void test_alike(void)
{
    char text[512] = "";

    CHECK_STATUS(parse("--rate 0.1 -o here --json"), GHP_OK);
    got.steps = -1;
    ghp_opts_each_alike(&tool, collect, text);
    CHECK_TEXT(text, "--steps=(null);--rate=0.1;--mode=fast;--memory=-1;--model=;--output=given;");
}

CHECK_TEST(opts)
{
    test_values();
    test_former();
    test_refusals();
    test_outputs();
    test_help();
    test_dump();
    test_alike();
    return check_end();
}
