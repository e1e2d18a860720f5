/* tests/driver.h - the table that a driver of tests is made of; CMake writes it (cmake/GhpTest.cmake). */
#ifndef GHP_TESTS_DRIVER_H
#define GHP_TESTS_DRIVER_H

#include <stddef.h>

struct check_topic {
    const char *name; /* NULL ends the table */
    int (*run)(int argc, char **argv);
};
extern const struct check_topic check_topics[];

#endif
