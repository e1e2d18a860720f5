/* tests/fuzz/replay.c - the main of a harness without libFuzzer: reads every file of the folders it is given, once. */
#include "core/base/file.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static int replay_folder(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    int n = 0;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char name[4096], *bytes = NULL;
        size_t size = 0;

        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        fprintf(stderr, "%s\n", name);
        GHP_ASSERT_EQ(ghp_file_read(name, &bytes, &size), GHP_OK);
        LLVMFuzzerTestOneInput((const uint8_t *)bytes, size);
        free(bytes);
        n++;
    }
    if (folder != NULL) closedir(folder);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;

    for (int i = 1; i < argc; i++)
        n += replay_folder(argv[i]);
    if (n == 0) fprintf(stderr, "no inputs; name folders of them\n");
    return n == 0;
}
