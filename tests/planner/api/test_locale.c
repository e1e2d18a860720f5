/* A caller whose locale has a decimal comma gets the same plan, written with points, and its own locale back. */
#include "core/base/file.h"
#include "planner/api/ghp.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *folder;

/* Makes the locale, and enters it. */
static bool enter_comma(void)
{
    char command[256];

    snprintf(command, sizeof command,
             "localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    return system(command) >= 0 && setenv("LOCPATH", folder, 1) == 0 &&
           setlocale(LC_ALL, "de_DE.UTF-8") != NULL &&
           strcmp(localeconv()->decimal_point, ",") == 0;
}

/* The plan's file, made in the locale of this moment. NULL on failure. The caller frees it. */
static char *plan_text(const char *profile_path)
{
    const struct ghp_planning wanted = {.workers = 4, .batch = 64};
    struct ghp_model *model = NULL;
    struct ghp_profile *profile = NULL;
    struct ghp_plan *plan = NULL;
    char path[64], *text = NULL, *line = NULL;

    snprintf(path, sizeof path, "%s/plan.json", folder);
    if (CHECK_EQ(ghp_model_open(GHP_SOURCE_DIR "/models/vgg-a-32.json", &model), 0) &&
        CHECK_EQ(ghp_profile_open(profile_path, &profile), 0) &&
        CHECK_EQ(ghp_plan_compute(model, profile, &wanted, &plan), 0)) {
        CHECK_EQ(ghp_plan_store(plan, path), 0);
        CHECK_STATUS(ghp_file_read(path, &text, NULL), GHP_OK);
        CHECK_EQ(ghp_plan_explain(plan, ghp_plan_layer(plan, 1), &line), 0);
        CHECK(line != NULL && strstr(line, "0,") == NULL);
        free(line);
        ghp_plan_close(plan);
    }
    ghp_profile_close(profile);
    ghp_model_close(model);
    return text;
}

/* The predicted step as the file has it. */
static double step_of(const char *text)
{
    const char *at = text != NULL ? strstr(text, "\"step_s\":") : NULL;

    return at != NULL ? strtod(at + strlen("\"step_s\":"), NULL) : -1;
}

CHECK_TEST(locale)
{
    struct ghp_profile analytic;
    char profile_path[64], *points, *commas;
    double point_s, comma_s;
    bool made;

    folder = check_folder();
    snprintf(profile_path, sizeof profile_path, "%s/profile.json", folder);
    if (!CHECK_STATUS(analytic_profile(1e12, 1e8, 1e-5, &analytic), GHP_OK)) return check_end();
    CHECK_STATUS(ghp_profile_save(profile_path, &analytic), GHP_OK);
    ghp_profile_release(&analytic);
    points = plan_text(profile_path);
    made = enter_comma();
    commas = made ? plan_text(profile_path) : NULL;
    if (made) CHECK_TEXT(localeconv()->decimal_point, ",");
    setlocale(LC_ALL, "C");
    if (made) {
        point_s = step_of(points);
        comma_s = step_of(commas);
        CHECK(point_s > 0);
        CHECK_NEAR(comma_s, point_s, 0);
    }
    free(points);
    free(commas);
    if (!made) printf("skipped: localedef makes no locale with a decimal comma here\n");
    return made ? check_end() : 77;
}
