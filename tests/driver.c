/* tests/driver.c - the main of a room's tests: runs the topic that its first argument names, with the arguments after
 * it; without arguments it lists its topics. Exit code: the test's; 2 for an unknown topic. */
#include "tests/driver.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    for (const struct check_topic *topic = check_topics; topic->name != NULL; topic++) {
        if (argc < 2)
            puts(topic->name);
        else if (strcmp(topic->name, argv[1]) == 0)
            return topic->run(argc - 1, argv + 1);
    }
    if (argc < 2) return 0;
    fprintf(stderr, "%s: no topic '%s'; run it without arguments for a list\n", argv[0], argv[1]);
    return 2;
}
