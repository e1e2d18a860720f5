/* tests/onnx/test_operators.c - the rows of operators: one reads each operator, one writes each operation, and
 * docs/reference/onnx.md names all of them. */
#include "core/base/file.h"
#include "onnx/operator/operator.h"
#include "tests/check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Whether a text has the word. */
static bool names(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[n]))
            return true;
    return false;
}

CHECK_TEST(operators)
{
    char *page = NULL;
    int n = 0;

    if (!CHECK_STATUS(ghp_file_read(GHP_SOURCE_DIR "/docs/reference/onnx.md", &page, NULL), GHP_OK))
        return check_end();
    CHECK(names(ghp_onnx_operator_instead("Bernoulli"), "Dropout"));
    CHECK(names(ghp_onnx_operator_instead("GRU"), "recurrence"));
    CHECK(names(ghp_onnx_operator_instead("Hardmax"), "onnx"));
    for (size_t t = 0; ghp_onnx_operators[t] != NULL; t++)
        for (const struct ghp_onnx_operator *row = ghp_onnx_operators[t]; row->name != NULL;
             row++) {
            bool sound = row->since >= 1 && (row->read != NULL || row->write != NULL);

            if (row->read != NULL) {
                sound = sound && ghp_onnx_operator_find(row->name) == row &&
                        row->attributes != NULL;
                for (const char *at = row->attributes; sound && *at != '\0';
                     at = strchr(at, ' ') + 1)
                    sound = strchr(at, ' ') != NULL;
                n++;
            }
            if (row->write != NULL) sound = sound && ghp_onnx_operator_of(row->op) == row;
            if (!CHECK(sound && names(page, row->name))) fprintf(stderr, "  %s\n", row->name);
        }
    CHECK(n > 30);
    CHECK(ghp_onnx_operator_find("Hardmax") == NULL);
    CHECK(ghp_onnx_operator_of(GHP_OP_INPUT) == NULL);
    CHECK(ghp_onnx_operator_allows(ghp_onnx_operator_find("Gemm"), "transB"));
    CHECK(!ghp_onnx_operator_allows(ghp_onnx_operator_find("Gemm"), "trans"));
    free(page);
    return check_end();
}
