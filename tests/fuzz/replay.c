/* tests/fuzz/replay.c - the main of a harness without libFuzzer: reads every file of the folders it is given, once.
 * A folder of which the reader accepts no file tests refusals alone: that is a failure, except after the word --any. */
#include "core/base/file.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns   how many of the folder's files the reader accepts */
static int replay_folder(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    int n = 0;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char name[4096], *bytes = NULL;
        size_t size = 0;

        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        fprintf(stderr, "%s\n", name);
        GHP_ASSERT_EQ(ghp_file_read(name, &bytes, &size), GHP_OK);
        if (fuzz_try((const unsigned char *)bytes, size))
            n++;
        else
            fprintf(stderr, "  refused: %s\n", ghp_status_message());
        free(bytes);
    }
    if (folder != NULL) closedir(folder);
    return n;
}

int main(int argc, char **argv)
{
    int empty = argc < 2;
    bool any = false;

    if (argc < 2) fprintf(stderr, "no inputs; name folders of them\n");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--any") == 0) {
            any = true;
            continue;
        }
        if (replay_folder(argv[i]) > 0 || any) continue;
        fprintf(stderr, "%s: the reader accepts no file of it; make one anew\n", argv[i]);
        empty = 1;
    }
    return empty;
}
