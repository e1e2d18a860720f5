/* tests/fuzz/fuzz.h - what a fuzzing harness is: a function that reads one input, given as a file.
 *
 * fuzz_NAME.c defines fuzz_read; fuzz.c hands it the inputs that libFuzzer makes up (builds with GHP_FUZZ) or the
 * files of tests/fuzz/seeds/NAME and of corpus/NAME.tar.xz (every build). To add a reader: fuzz_NAME.c, some small
 * files in seeds/NAME, no further line.
 *
 * A reader may refuse any input, but must not crash, leak, hang, or take memory that the input's size does not bear
 * out. What it accepts must survive being written and read again. */
#ifndef GHP_TESTS_FUZZ_H
#define GHP_TESTS_FUZZ_H

#include "core/base/status.h"

#include <stdbool.h>

/* Reads one input.
 *
 * path   a file that holds the input's n bytes; the same path holds other bytes at the next call
 *
 * Returns   whether the reader accepts it: it must accept at least one of its seeds */
bool fuzz_read(const char *path, const unsigned char *bytes, size_t n);

/* fuzz_read of bytes in memory. */
bool fuzz_try(const unsigned char *bytes, size_t n);

/* A path in a folder of this process's own, removed with it. Writes at most room bytes of `out`, returns out. */
char *fuzz_path(const char *name, char *out, size_t room);

/* Makes a file there. */
void fuzz_write(const char *path, const void *bytes, size_t n);

/* Both files have the same bytes; ends the program where they differ. */
void fuzz_equal(const char *path, const char *other);

/* Defines fuzz_read for a struct `name` with name_load, name_save and name_release: what is accepted is written, read
 * and written again to equal bytes; `more` is done with it, as `value`. */
#define FUZZ_WRITTEN_AGAIN(name, more)                                                             \
    bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)                         \
    {                                                                                              \
        struct name value = {0}, again = {0};                                                      \
        char first[512], second[512];                                                              \
                                                                                                   \
        (void)bytes;                                                                               \
        (void)n;                                                                                   \
        if (name##_load(path, &value) != GHP_OK) return false;                                     \
        fuzz_path("first", first, sizeof first);                                                   \
        fuzz_path("second", second, sizeof second);                                                \
        GHP_ASSERT_EQ(name##_save(first, &value), GHP_OK);                                         \
        GHP_ASSERT_EQ(name##_load(first, &again), GHP_OK);                                         \
        GHP_ASSERT_EQ(name##_save(second, &again), GHP_OK);                                        \
        fuzz_equal(first, second);                                                                 \
        more;                                                                                      \
        name##_release(&again);                                                                    \
        name##_release(&value);                                                                    \
        return true;                                                                               \
    }

#endif
