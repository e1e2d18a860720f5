/* tests/fuzz/fuzz_safetensors.c - the safetensors reader: every tensor that is listed can be read in both precisions,
 * and the file's size pays for it. */
#include "core/model/safetensors.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

static void read_all(struct ghp_safetensors *file, size_t n)
{
    for (int i = 0; i < ghp_safetensors_count(file); i++) {
        const struct ghp_safetensor *t = ghp_safetensors_item(file, i);
        int64_t elements = t->bytes / t->element_bytes;

        GHP_ASSERT(t->bytes <= (int64_t)n);
        for (int element_bytes = 4; element_bytes <= 8; element_bytes += 4) {
            void *values = ghp_alloc((size_t)elements, (size_t)element_bytes);
            enum ghp_status status = ghp_safetensors_read(file, t, element_bytes, values);

            GHP_ASSERT_EQ(status, t->dtype == GHP_DTYPE_OTHER ? GHP_ERR_INPUT : GHP_OK);
            free(values);
        }
        GHP_ASSERT(ghp_safetensors_find(file, t->name) != NULL);
    }
}

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_safetensors *file = NULL;

    (void)bytes;
    if (ghp_safetensors_open(path, &file) != GHP_OK) return false;
    read_all(file, n);
    (void)ghp_safetensors_metadata(file, "format");
    (void)ghp_safetensors_check(file);
    ghp_safetensors_close(file);
    return true;
}
