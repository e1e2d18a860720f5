/* executor/data/token_file.c - see token_file.h. */
#include "executor/data/token_file.h"

#include "executor/data/mapped_file.h"
#include "executor/data/npy.h"

#include <inttypes.h>
#include <string.h>

enum { HEADER_NUMBERS = 256, HEADER_BYTES = 4 * HEADER_NUMBERS };

/* 16-bit numbers that a bare file has at least, to be judged by their values. Fewer could look like text, or like the
 * halves of wider ids, by chance. */
enum { LEAST_TO_JUDGE = 32 };

static const struct token_type {
    const char *name;
    int bytes;
    bool is_signed;
} types[] = {{"uint16", 2, false}, {"int16", 2, true},   {"uint32", 4, false},
             {"int32", 4, true},   {"uint64", 8, false}, {"int64", 8, true}};

static enum ghp_status map_file(struct ghp_token_file *f)
{
    void *memory;
    size_t bytes;

    GHP_TRY(ghp_mapped_file_open(f->path, &memory, &bytes));
    f->file = memory;
    f->bytes = (int64_t)bytes;
    return GHP_OK;
}

int64_t ghp_token_file_at(const struct ghp_token_file *f, int64_t i)
{
    const unsigned char *at = f->file + f->begin + i * f->token_bytes;
    uint16_t two;
    uint32_t four;
    int64_t eight;

    switch (f->token_bytes) {
    case 1: return f->is_signed ? (int8_t)*at : *at;
    case 2: memcpy(&two, at, sizeof two); return f->is_signed ? (int16_t)two : two;
    case 4:
        memcpy(&four, at, sizeof four);
        return f->is_signed ? (int64_t)(int32_t)four : (int64_t)four;
    default: memcpy(&eight, at, sizeof eight); return eight; /* beyond int64 it is below 0 */
    }
}

/* ---- files that say what they are ---- */

static int64_t header_number(const struct ghp_token_file *f, int i)
{
    int32_t number;

    memcpy(&number, f->file + (int64_t)i * (int64_t)sizeof(number), sizeof(number));
    return number;
}

/* The tokens of a file whose header says how many there are. */
static enum ghp_status read_header(struct ghp_token_file *f)
{
    int64_t whole;

    f->begin = HEADER_BYTES;
    f->tokens = f->bytes >= HEADER_BYTES ? header_number(f, 2) : 0;
    whole = HEADER_BYTES + f->tokens * f->token_bytes;
    if (f->bytes >= HEADER_BYTES && f->tokens >= 0 && f->bytes == whole) return GHP_OK;
    if (f->bytes < HEADER_BYTES || (f->tokens >= 0 && f->bytes < whole))
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' is cut short: it has %" PRId64 " of the %" PRId64
                        " bytes that its header promises; fetch the file again",
                        f->path, f->bytes, f->bytes < HEADER_BYTES ? HEADER_BYTES : whole);
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s' has %" PRId64 " bytes, but its header promises %" PRId64
                    " tokens; fetch the file again",
                    f->path, f->bytes, f->tokens);
}

/* Takes one of llm.c's shards, which begin with a date and a version; another file is left as it is. */
static enum ghp_status read_shard(struct ghp_token_file *f)
{
    static const int64_t magic16 = 20240520, magic32 = 20240801;
    static const int64_t first_date = 20240000, last_date = 20249999;
    int64_t magic = f->bytes >= 8 ? header_number(f, 0) : 0,
            version = f->bytes >= 8 ? header_number(f, 1) : 0;

    if ((magic == magic16 && version == 1) || (magic == magic32 && version == 7)) {
        f->token_bytes = magic == magic16 ? 2 : 4;
        return read_header(f);
    }
    if (magic < first_date || magic > last_date) return GHP_OK;
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s' begins with %" PRId64 ", version %" PRId64
                    ": no tokens; give a file that begins with %" PRId64 ", version 1, or %" PRId64
                    ", version 7, a .npy file, or bare 16-bit tokens",
                    f->path, magic, version, magic16, magic32);
}

static bool is_numpy(const struct ghp_token_file *f)
{
    return f->bytes >= 6 && memcmp(f->file, "\x93NUMPY", 6) == 0;
}

static enum ghp_status read_numpy(struct ghp_token_file *f)
{
    struct ghp_npy npy;
    bool is_list;

    GHP_TRY(ghp_npy_read(f->path, (void *)(uintptr_t)f->file, (size_t)f->bytes, &npy));
    f->begin = npy.items - (const unsigned char *)npy.memory;
    f->token_bytes = npy.item_bytes;
    f->is_signed = npy.kind == 'i';
    f->tokens = npy.n;
    is_list = npy.kind != 'f' && npy.n_dims == 1;
    if (is_list) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' is not a list of token ids, which are integers of one dimension; save "
                    "array.reshape(-1).astype('uint32') of it",
                    f->path);
}

/* ---- bare files ---- */

static const struct token_type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, name) == 0) return &types[i];
    return NULL;
}

static enum ghp_status fail_type(const char *name)
{
    return GHP_FAIL(GHP_ERR_USAGE,
                    "unknown type of tokens '%s'; write type=uint16, int16, uint32, int32, uint64 "
                    "or int64",
                    name);
}

/* What begins as files of other programs do. */
static const char *archive_of(const struct ghp_token_file *f)
{
    static const struct {
        const char *magic, *name;
    } archives[] = {{"PK\x03\x04", "a zip archive (.npz, .pt)"},
                    {"\x1f\x8b\x08", "compressed by gzip"},
                    {"\x28\xb5\x2f\xfd", "compressed by zstd"},
                    {"PAR1", "a Parquet file"},
                    {"ARROW1", "an Arrow file"}};

    for (size_t i = 0; i < sizeof archives / sizeof archives[0]; i++) {
        size_t n = strlen(archives[i].magic);

        if ((size_t)f->bytes >= n && memcmp(f->file, archives[i].magic, n) == 0)
            return archives[i].name;
    }
    return NULL;
}

/* Whether all bytes are those of text, of UTF-8 too, up to the first half megabyte. */
static bool is_text(const struct ghp_token_file *f)
{
    int64_t most = f->bytes < 1 << 19 ? f->bytes : 1 << 19;

    for (int64_t i = 0; i < most; i++) {
        unsigned char c = f->file[i];

        if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') return false;
        if (c == 0x7f || c == 0xc0 || c == 0xc1 || c >= 0xf5) return false;
    }
    return f->bytes >= LEAST_TO_JUDGE;
}

/* Whether the file's numbers can be ids of this vocabulary that are `width` bytes wide, told by their upper halves. */
static bool could_be(const struct ghp_token_file *f, int width, int64_t vocabulary)
{
    int halves = width / 2;

    if (f->bytes % width != 0 || f->bytes / 2 < LEAST_TO_JUDGE) return false;
    for (int64_t i = 0; i < f->bytes / 2; i++) {
        int64_t most = i % halves == 0 ? UINT16_MAX : i % halves == 1 ? (vocabulary - 1) >> 16 : 0;

        if (ghp_token_file_at(f, i) > most) return false;
    }
    return true;
}

/* Whether uint16 can be what a bare file holds, of which nobody said the type. */
static enum ghp_status judge(const struct ghp_token_file *f, int64_t vocabulary)
{
    const char *archive = archive_of(f);
    int width;

    if (archive != NULL)
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' is %s, not token ids; unpack it, and save the ids with numpy.save or "
                        "as bare integers",
                        f->path, archive);
    if (is_text(f))
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' is text, not token ids; write its ids with a tokenizer, or take its "
                        "bytes as tokens with bytes:%s",
                        f->path, f->path);
    width = could_be(f, 8, vocabulary) ? 8 : could_be(f, 4, vocabulary) ? 4 : 2;
    if (width == 2) return GHP_OK;
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s' has ids of %d bits, not 16, as no upper half of them is above %" PRId64
                    "; say so with tokens:%s,type=%s",
                    f->path, 8 * width, (vocabulary - 1) >> 16, f->path,
                    width == 4 ? "uint32" : "int64");
}

static enum ghp_status read_bare(const struct ghp_token_format *format, struct ghp_token_file *f)
{
    const struct token_type *type = find_type(format->type != NULL ? format->type : "uint16");

    if (type == NULL) return fail_type(format->type);
    f->token_bytes = type->bytes;
    f->is_signed = type->is_signed;
    f->tokens = f->bytes / f->token_bytes;
    if (format->type == NULL) GHP_TRY(judge(f, format->vocabulary));
    if (f->bytes % f->token_bytes == 0) return GHP_OK;
    if (f->token_bytes == 2)
        return GHP_FAIL(
            GHP_ERR_FORMAT,
            "'%s' has an odd number of bytes (%" PRId64
            "), so it is not a file of 16-bit tokens; fetch it again, or take its bytes "
            "as tokens with bytes:FILE",
            f->path, f->bytes);
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s' has %" PRId64 " bytes, which is not a multiple of %s's %d; fetch it "
                    "again, or say its type",
                    f->path, f->bytes, type->name, type->bytes);
}

/* ---- all ---- */

static enum ghp_status recognise(const struct ghp_token_format *format, struct ghp_token_file *f)
{
    f->token_bytes = 1;
    f->tokens = f->bytes;
    if (format->bytes && format->type == NULL) return GHP_OK;
    if (format->bytes)
        return GHP_FAIL(GHP_ERR_USAGE, "'%s' is taken byte by byte; leave type=%s out", f->path,
                        format->type);
    if (is_numpy(f))
        GHP_TRY(read_numpy(f));
    else
        GHP_TRY(read_shard(f));
    if (f->begin == 0) return read_bare(format, f);
    if (format->type == NULL) return GHP_OK;
    if (find_type(format->type) == NULL) return fail_type(format->type);
    return GHP_FAIL(GHP_ERR_USAGE, "'%s' says its type itself; leave type=%s out", f->path,
                    format->type);
}

static enum ghp_status check_ids(const struct ghp_token_file *f, int64_t vocabulary)
{
    for (int64_t i = 0; i < f->tokens; i++) {
        int64_t id = ghp_token_file_at(f, i);

        if (id < 0 || id >= vocabulary)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' has the id %" PRId64 " at byte %" PRId64 " (token %" PRId64
                            "), but the model's vocabulary is %" PRId64 " (0 to %" PRId64
                            "); use tokens of that vocabulary, or a model with more",
                            f->path, id, f->begin + i * f->token_bytes, i, vocabulary,
                            vocabulary - 1);
    }
    return GHP_OK;
}

enum ghp_status ghp_token_file_open(const struct ghp_token_format *format, struct ghp_token_file *f)
{
    GHP_TRY(map_file(f));
    GHP_TRY(recognise(format, f));
    return check_ids(f, format->vocabulary);
}

void ghp_token_file_close(struct ghp_token_file *f)
{
    ghp_mapped_file_close((void *)(uintptr_t)f->file, (size_t)f->bytes);
    f->file = NULL;
}
