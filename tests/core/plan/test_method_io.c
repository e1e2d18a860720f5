/* tests/core/plan/test_method_io.c - each choice of a method is written, read back as it was, and named where two
 * methods differ, with the one's method but for that part. */
#include "core/plan/method_io.h"
#include "tests/check.h"

#include <stdlib.h>

static const struct ghp_method plain = {.bucket_bytes = 1 << 20};

/* Written and read. */
static struct ghp_method read_back(const struct ghp_method *method)
{
    json_t *object = json_object();
    struct ghp_json json = {0};
    struct ghp_method back = {0};
    struct ghp_node root;
    bool failed = false;
    char *text;

    ghp_method_write(method, object, &failed);
    CHECK(!failed);
    text = json_dumps(object, 0);
    CHECK_STATUS(ghp_json_parse(text, "method", NULL, &json), GHP_OK);
    root = ghp_json_root(&json);
    CHECK_STATUS(ghp_method_read(&root, &back), GHP_OK);
    ghp_json_release(&json);
    free(text);
    json_decref(object);
    return back;
}

/* Checks that one part of `changed` is not as in `plain`. */
static void check_part(const struct ghp_method *changed, const char *what, const char *text)
{
    struct ghp_method_difference rows[GHP_METHOD_PARTS];
    struct ghp_method back = read_back(changed);

    CHECK_EQ(ghp_method_differences(changed, &back, rows), 0);
    if (!CHECK_EQ(ghp_method_differences(&plain, changed, rows), 1)) return;
    CHECK_TEXT(rows[0].what, what);
    CHECK_TEXT(rows[0].texts[1], text);
    CHECK_EQ(ghp_method_differences(changed, &rows[0].with, rows), 0);
}

CHECK_TEST(method_io)
{
    struct ghp_method method = plain;
    struct ghp_method_difference rows[GHP_METHOD_PARTS];

    (void)argc, (void)argv;
    CHECK_EQ(ghp_method_differences(&plain, &plain, rows), 0);
    CHECK_STATUS(ghp_sync_parse("local:8", &method.sync), GHP_OK);
    check_part(&method, "synchroniser", "local:8");
    CHECK_STATUS(ghp_sync_parse("bsp", &method.sync), GHP_OK);
    method.sync.servers = 3;
    CHECK_EQ(read_back(&method).sync.servers, 3);
    method = plain;
    method.optimizer = &ghp_optimizer_adamw;
    check_part(&method, "optimizer", "adamw");
    CHECK_STATUS(ghp_method_check_alike(&plain, &method), GHP_ERR_INPUT);
    method = plain;
    method.clip_norm = 0.5;
    check_part(&method, "gradients clipped to norm", "0.5");
    CHECK_STATUS(ghp_method_check_alike(&plain, &method), GHP_ERR_INPUT);
    method = plain;
    method.scaling = ghp_lr_scaling_at(1);
    check_part(&method, "learning-rate scaling", ghp_lr_scaling_names[1]);
    method = plain;
    method.reduces_bf16 = true;
    check_part(&method, "precision in which gradients are reduced", "bf16");
    CHECK_STATUS(ghp_method_check_alike(&plain, &method), GHP_OK);
    CHECK_STATUS(ghp_method_check_reduced(&method, false, 4), GHP_OK);
    CHECK_STATUS(ghp_method_check_reduced(&method, false, 8), GHP_ERR_INPUT);
    CHECK_STATUS(ghp_method_check_reduced(&method, true, 2), GHP_ERR_INPUT);
    CHECK_STATUS(ghp_method_check_reduced(&plain, true, 8), GHP_OK);
    CHECK_STATUS(ghp_sync_parse("sharded", &method.sync), GHP_OK);
    CHECK_STATUS(ghp_method_check_reduced(&method, false, 4), GHP_ERR_INPUT);
    method = plain;
    method.bucket_bytes = 2 << 20;
    check_part(&method, "gradients reduced together, up to", "2.00 MiB");
    CHECK_STATUS(ghp_method_check_alike(&plain, &method), GHP_OK);
    return check_end();
}
