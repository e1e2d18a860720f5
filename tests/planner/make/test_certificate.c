/* ghp-test: timeout=120
 * tests/planner/make/test_certificate.c - a certificate has one step, one bound and one gap, and they hold, however
 * early the time limit comes: on random instances every combination of splits is simulated, and none is below the
 * bound; the table and the object say the same; "optimal" means gap 0. */
#include "planner/make/make.h"
#include "inspect/summary.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <unistd.h>

enum { CASES = 160 };

static char model_path[64];

/* The fastest of all combinations, each layer reduced alone. */
static double fastest(const struct random_case *c)
{
    struct ghp_plan shell = {.model = c->model, .problem = c->problem};
    struct ghp_lowering lowering = ghp_plan_lowering(&shell, &c->profile);
    struct ghp_split choices[16][64], splits[16];
    int n[16], at[16] = {0}, layers = c->model.n_layers, v = 0;
    double best = INFINITY;

    for (int u = 0; u < layers; u++)
        n[u] = ghp_split_choices(&c->model.layers[u], c->problem, choices[u], 64);
    while (v < layers) {
        struct ghp_prediction p;

        for (int u = 0; u < layers; u++)
            splits[u] = choices[u][at[u]];
        if (!CHECK_STATUS(ghp_plan_predict(&lowering, splits, &c->profile, &p), GHP_OK))
            return best;
        best = fmin(best, p.step_s);
        for (v = 0; v < layers && ++at[v] == n[v]; v++)
            at[v] = 0;
    }
    return best;
}

static void check_texts(const struct ghp_plan *plan)
{
    const struct ghp_certificate *c = &plan->certificate;
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"step_s", c->step_s}, {"bound_s", c->bound_s}, {"gap", c->gap}};
    char *table = NULL, *text = NULL, line[GHP_CERTIFICATE_SENTENCE_SIZE + 8];
    char status[GHP_CERTIFICATE_STATUS_SIZE], sentence[GHP_CERTIFICATE_SENTENCE_SIZE];
    size_t n;
    FILE *out = open_memstream(&table, &n);
    json_t *object, *certificate;

    CHECK_STATUS(ghp_summary_print(plan, out), GHP_OK);
    fclose(out);
    snprintf(line, sizeof line, "# %s (", ghp_certificate_sentence(c, sentence));
    if (!CHECK(strstr(table, line) != NULL)) fprintf(stderr, "no '%s' in\n%s", line, table);
    free(table);
    out = open_memstream(&text, &n);
    CHECK_STATUS(ghp_summary_json(plan, NULL, out), GHP_OK);
    fclose(out);
    object = json_loads(text, 0, NULL);
    certificate = json_object_get(object, "certificate");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        CHECK_NEAR(json_number_value(json_object_get(certificate, numbers[i].key)),
                   numbers[i].value, 0);
    CHECK_TEXT(json_string_value(json_object_get(certificate, "status")),
               ghp_certificate_status(c->proof, c->trial, status));
    json_decref(object);
    free(text);
}

/* best_s   of what the certificate is about; 0: not known */
static void check_certificate(const struct ghp_plan *plan, const struct ghp_plan_request *request,
                              double best_s)
{
    const struct ghp_certificate *c = &plan->certificate;
    bool optimal = c->proof == GHP_PROOF_OPTIMAL;
    bool proven = optimal || c->proof == GHP_PROOF_WITHIN_GAP;

    CHECK(c->step_s > 0);
    CHECK(c->bound_s >= 0 && c->bound_s <= c->step_s);
    CHECK_NEAR(c->gap, (c->step_s - c->bound_s) / c->step_s, 1e-12);
    CHECK_EQ(proven, c->gap <= request->gap + 1e-12);
    CHECK(!optimal || c->gap <= 0);
    if (best_s > 0) {
        CHECK(c->bound_s <= best_s * (1 + 1e-8));
        CHECK(c->step_s >= best_s * (1 - 1e-8));
    }
    CHECK_STATUS(ghp_plan_verify(plan, request->profile), GHP_OK);
    check_texts(plan);
}

/* One case under one set of request, from no time at all to enough. */
static void check_case(const struct random_case *c, uint64_t seed, double best_s)
{
    static const double limits_s[] = {0, 1e-4, 1e-3, 30};
    struct ghp_plan_request request = {.model_path = model_path,
                                       .profile_path = "random",
                                       .profile = &c->profile,
                                       .problem = c->problem,
                                       .recompute = GHP_RECOMPUTE_MODE_NEVER,
                                       .method.bucket_bytes = seed % 2 == 0 ? GHP_BUCKET_AUTO : 0,
                                       .time_limit_s = limits_s[seed / 2 % 4],
                                       .gap = seed % 5 == 0 ? 0.05 : 0,
                                       .simplify = seed % 3 == 0,
                                       .pipeline_mode = seed % 7 == 0 ? GHP_PIPELINE_MODE_AUTO
                                                                      : GHP_PIPELINE_MODE_OFF,
                                       .space = {.max_stages = 2, .max_micro_batches = 4}};
    struct ghp_plan plan;

    if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
    check_certificate(&plan, &request,
                      request.pipeline_mode == GHP_PIPELINE_MODE_AUTO ? 0 : best_s);
    ghp_plan_release(&plan);
}

CHECK_TEST(certificate)
{
    int fd;

    snprintf(model_path, sizeof model_path, "/tmp/ghp-certificate-XXXXXX");
    fd = mkstemp(model_path);
    if (!CHECK(fd >= 0)) return check_end();
    close(fd);
    for (uint64_t seed = 0; seed < (uint64_t)check_cases(CASES); seed++) {
        struct random_case c;

        if (!CHECK_STATUS(random_case_make(7000 + seed / 8, 1000, &c), GHP_OK)) break;
        random_case_write_model(model_path, c.text);
        check_case(&c, seed, fastest(&c));
        random_case_release(&c);
    }
    unlink(model_path);
    return check_end();
}
