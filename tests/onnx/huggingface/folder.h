/* tests/onnx/huggingface/folder.h - a folder of transformers, made here: a config and tensors whose values tell which
 * they are. */
#ifndef GHP_TESTS_HUGGINGFACE_FOLDER_H
#define GHP_TESTS_HUGGINGFACE_FOLDER_H

#include <stddef.h>
#include <stdint.h>

struct entry {        /* a tensor of a file */
    const char *name; /* "%d": once for each block */
    int n_dims;
    int64_t dims[4];
};

enum { BLOCKS = 2 };

/* Small networks: 7 words, 5 positions, 4 channels, 2 heads of 2 channels (llama: 1 of keys and values), 2 blocks. The
 * lists are what save_pretrained of transformers writes for such a config. */
extern const char *const gpt2_config, *const llama_config;
extern const struct entry gpt2_entries[], llama_entries[]; /* end with a NULL name */

/* The folder of this process, made at the first call. */
const char *folder_path(void);
void folder_remove(void);
void folder_write_config(const char *text);
/* Writes the tensors of the list, except for the one named `without` (NULL: all), and also `extra` (NULL: none).
 * prefix: what "@" in front of a name stands for. */
struct folder_change {
    const char *prefix, *without;
    const struct entry *extra;
    const char *extra_is; /* whose values the extra one has; NULL: its own */
};
void folder_write_tensors(const struct entry *entries, struct folder_change change);
/* Value i of a tensor; name without "@". */
float folder_value(const char *name, int64_t i);

#endif
