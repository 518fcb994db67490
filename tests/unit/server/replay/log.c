/* log.c -- access logs as files: their lines, formats and packings, stdin, and what disks do to
 * them. */
#include "unit/test.h"

#include "unit/log-lines.h"

#include <sys/wait.h>
#include <zlib.h>

/* -------------------------------------------------------------------- files ---- */

static const char *file_with(const void *bytes, size_t size)
{
    const char *path = new_path();

    write_at(path, 0, bytes, size);
    return path;
}

static struct weir__log *open_log(const char *path, const char *format)
{
    struct weir__log *log = NULL;
    struct weir_error error = { 0 };

    if (weir__log_open(&log, path, format, NULL, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    return log;
}

/* Reads it all; the last return value in *code. */
static struct weir__log_figures read_all(const char *path, const char *format, int64_t *entries,
                                         int *code, struct weir_error *error)
{
    struct weir__log *log = open_log(path, format);
    struct weir__log_figures figures;

    for (*entries = 0; (*code = weir__log_next(log, &entry, error)) > 0; ++*entries)
        assert_true(entry.line >= 1);
    assert_int_equal(weir__log_next(log, &entry, error), *code); /* and so it stays */
    weir__log_figures(log, &figures);
    weir__log_close(log);
    return figures;
}

static void assert_file(const void *bytes, size_t size, int64_t lines, int64_t entries, int64_t bad)
{
    int64_t got;
    int code;
    struct weir__log_figures f = read_all(file_with(bytes, size), "auto", &got, &code, NULL);

    assert_int_equal(code, 0);
    assert_int_equal(f.lines, lines);
    assert_int_equal(got, entries);
    assert_fields(f, (bad, bad), (bytes_read, size), (bytes_all, size));
}

static void assert_text(const char *text, int64_t lines, int64_t entries, int64_t bad)
{
    assert_file(text, strlen(text), lines, entries, bad);
}

TEST(test_line_ends)
{
    assert_text("", 0, 0, 0);
    assert_text("\n", 1, 0, 0);
    assert_text("x", 1, 0, 1);
    assert_text(GOOD, 1, 1, 0);
    assert_text(GOOD "\n", 1, 1, 0);
    assert_text(GOOD "\r\n" GOOD "\r\n", 2, 2, 0);
    assert_text("\n\r\n \t\n" GOOD "\n\n" GOOD, 6, 2, 0);
    assert_text(GOOD "\nnonsense\n" GOOD "\n", 3, 2, 1);
}

TEST(test_first_line_tells_the_format)
{
    assert_text("\n\n {\"ts\":1}\n{\"ts\":2}\n" GOOD "\n", 5, 2, 1);
    assert_text(GOOD "\n{\"ts\":2}\n", 2, 1, 1);
}

TEST(test_entries_know_their_line)
{
    struct weir__log *log =
        open_log(file_with("\n" GOOD "\r\nbad\n" GOOD " x", 2 * strlen(GOOD) + 9), "combined");
    struct weir__log_figures figures;

    assert_int_equal(weir__log_next(log, &entry, NULL), 1);
    assert_fields(entry, (line, 2), (text_len, strlen(GOOD)));
    assert_memory_equal(entry.text, GOOD, strlen(GOOD));
    assert_int_equal(weir__log_next(log, &entry, NULL), 1);
    assert_fields(entry, (line, 4), (text_len, strlen(GOOD) + 2));
    assert_int_equal(weir__log_next(log, &entry, NULL), 0);
    weir__log_figures(log, &figures);
    assert_int_equal(figures.first_bad, 3);
    assert_string_equal(figures.first_bad_why,
                        "column 1: expected ADDRESS - USER [TIME] \"REQUEST\" STATUS BYTES");
    weir__log_close(log);
}

/* Lines of all lengths around the block's end come whole and in their order. */
TEST(test_lines_across_blocks)
{
    enum { LINES = 9000 };
    char *text = malloc(LINES * 300), *at = text;
    struct weir__log *log;

    for (int i = 0; i < LINES; i++)
        at += sprintf(at, HEAD "\"GET /%d HTTP/1.0\" 200 %d \"-\" \"%.*s\"\n", i, i, i % 150,
                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    log = open_log(file_with(text, (size_t)(at - text)), "auto");
    for (int i = 0; i < LINES; i++) {
        assert_int_equal(weir__log_next(log, &entry, NULL), 1);
        assert_fields(entry, (bytes, i), (line, i + 1));
    }
    assert_int_equal(weir__log_next(log, &entry, NULL), 0);
    weir__log_close(log);
    free(text);
}

/* A good line of exactly this many bytes, by the length of its agent. */
static char *long_line(char *out, size_t len)
{
    size_t n = (size_t)sprintf(out, GOOD " \"-\" \"");

    memset(out + n, 'a', len - n);
    out[len - 1] = '"';
    return out + len;
}

TEST(test_long_lines)
{
    char *text = malloc(3 << 20), *at;

    at = long_line(text, WEIR__LOG_LINE);
    assert_file(text, WEIR__LOG_LINE, 1, 1, 0);
    memcpy(at, "\r\n" GOOD, strlen(GOOD) + 2);
    assert_file(text, WEIR__LOG_LINE + strlen(GOOD) + 2, 2, 2, 0);
    at = long_line(text, WEIR__LOG_LINE + 1);
    assert_file(text, WEIR__LOG_LINE + 1, 1, 0, 1);
    memcpy(at, "\n" GOOD, strlen(GOOD) + 1);
    assert_file(text, WEIR__LOG_LINE + strlen(GOOD) + 2, 2, 1, 1);
    at = long_line(text, 2 << 20);
    assert_file(text, 2 << 20, 1, 0, 1);
    memcpy(at, "\n" GOOD "\n", strlen(GOOD) + 2);
    assert_file(text, (2 << 20) + strlen(GOOD) + 2, 2, 1, 1);
    memset(text, '\0', 2 << 20);
    assert_file(text, (2 << 20) + strlen(GOOD) + 2, 2, 1, 1);
    memset(text, '\n', 2 << 20);
    assert_file(text, 2 << 20, 2 << 20, 0, 0);
    free(text);
}

TEST(test_first_bad_says_why)
{
    int64_t entries;
    int code;

    FINALLY(memory_drop) char *text = malloc(WEIR__LOG_LINE + 100);

    long_line(text, WEIR__LOG_LINE + 50);
    struct weir__log_figures f =
        read_all(file_with(text, WEIR__LOG_LINE + 50), "auto", &entries, &code, NULL);
    assert_string_equal(f.first_bad_why,
                        "column 65537: expected the end of the line: it may have 65536 bytes");
    f = read_all(file_with("{\"ts\":1}\n{\"ts\":1 2}", 19), "auto", &entries, &code, NULL);
    assert_int_equal(f.first_bad, 2);
    assert_string_equal(f.first_bad_why, "column 9: expected ',' or '}'");
}

/* --------------------------------------------------------------------- gzip ---- */

/* As one gzip member; returns its length. */
static size_t pack(const char *text, size_t len, unsigned char *out, size_t room)
{
    z_stream z = { 0 };

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)text;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

TEST(test_gzip)
{
    unsigned char bytes[4096];
    const char *text = GOOD "\n" GOOD "\n" GOOD;
    size_t len = pack(text, strlen(text), bytes, sizeof(bytes));

    assert_file(bytes, len, 3, 3, 0);
    len += pack("\n" GOOD "\n", strlen(GOOD) + 2, bytes + len,
                sizeof(bytes) - len); /* the second member goes on in the line */
    assert_file(bytes, len, 4, 4, 0);
    memset(bytes + len, 0, 600);
    assert_file(bytes, len + 600, 4, 4, 0);
    len = pack("", 0, bytes, sizeof(bytes));
    assert_file(bytes, len, 0, 0, 0);
}

/* More than the buffers hold, in members that end anywhere. */
TEST(test_gzip_of_many_members)
{
    enum { LINES = 20000 };
    size_t size = LINES * (strlen(GOOD) + 20), packed = 0, len = 0;
    FINALLY(memory_drop) char *text = malloc(size);
    FINALLY(memory_drop) unsigned char *bytes = malloc(size);

    for (uint64_t i = 0, seed = 1; i < LINES; i++)
        len += (size_t)sprintf(text + len, GOOD " %016llx\n", (unsigned long long)random64(&seed));
    for (size_t from = 0; from < len; from += 99991)
        packed += pack(text + from, len - from < 99991 ? len - from : 99991, bytes + packed,
                       size - packed);
    assert_true(packed > 3 * 65536);
    assert_file(bytes, packed, LINES, LINES, 0);
}

static void assert_damaged(const unsigned char *bytes, size_t len, int64_t entries,
                           const char *says)
{
    struct weir_error error = { 0 };
    int64_t got;
    int code;
    struct weir__log_figures f = read_all(file_with(bytes, len), "auto", &got, &code, &error);

    assert_int_equal(code, WEIR_CORRUPT);
    assert_int_equal(got, entries);
    assert_int_equal(f.bad, 0);
    assert_contains(error.text, says);
    assert_contains(error.text, folder); /* it names the file */
}

TEST(test_damaged_gzip_gives_what_it_has)
{
    unsigned char bytes[8192];
    char text[8192];
    size_t len = 0, packed;
    uint64_t seed = 7;

    for (int i = 0; i < 50; i++)
        len += (size_t)sprintf(text + len, GOOD " %08x\n", (unsigned)random64(&seed));
    packed = pack(text, len, bytes, sizeof(bytes));
    assert_damaged(bytes, packed - 1, 50, "it was cut");
    assert_damaged(bytes, 2, 0, "it was cut");
    assert_damaged(bytes, 12, 0, "it was cut");
    memcpy(bytes + packed, "garbage", 7);
    assert_damaged(bytes, packed + 7, 50, "bytes after its gzip data");
    bytes[packed] = 0x1f;
    assert_damaged(bytes, packed + 7, 50, "damaged");
    bytes[packed - 8] ^= 1; /* its check sum */
    assert_damaged(bytes, packed, 50, "damaged");
    bytes[3] = 0xff;
    assert_damaged(bytes, packed, 0, "damaged");
}

/* Cut anywhere: whole lines and an error; half a line is not given out as if it were one. */
TEST(test_cut_gzip)
{
    unsigned char bytes[4096];
    const char *text = GOOD "\n" HEAD "\"POST /somewhere/else HTTP/2.0\" 301 178\n";
    size_t packed = pack(text, strlen(text), bytes, sizeof(bytes));

    for (size_t n = 2; n < packed; n++) {
        int64_t entries;
        int code;
        struct weir__log_figures f = read_all(file_with(bytes, n), "auto", &entries, &code, NULL);
        assert_int_equal(code, WEIR_CORRUPT);
        assert_int_equal(f.bad, 0);
        assert_true(entries <= 2);
    }
}

/* ------------------------------------------------------------------ opening ---- */

static void assert_refused(const char *path, const char *format, const char *map, int code,
                           const char *says)
{
    struct weir__log *log = NULL;
    struct weir_error error = { 0 };

    assert_int_equal(weir__log_open(&log, path, format, map, &error), code);
    assert_null(log);
    assert_contains(error.text, says);
}

TEST(test_combined_map)
{
    struct weir__log *log = NULL;
    struct weir__log_entry e;
    struct weir_error error = { 0 };
    const char *path =
        file_with("192.0.2.1 - joe [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5\n", 69);
    const char *want[][2] = {
        { "account", "joe" }, { "host", "joe" }, { "user", "192.0.2.1" }, { "ip", "192.0.2.1" }
    };

    assert_ok(weir__log_open(&log, path, "auto",
                             "account=user,host=user,user=ip,bytes=header.referer", NULL));
    assert_int_equal(weir__log_next(log, &e, NULL), 1);
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        size_t found = 0;
        for (size_t k = 0; k < e.n; k++) {
            const struct weir_attr *a = &e.attrs[k];
            assert_false(a->name_len == 5 &&
                         memcmp(a->name, "bytes", 5) == 0); /* mapped to what the line has not */
            if (a->name_len == strlen(want[i][0]) &&
                memcmp(a->name, want[i][0], a->name_len) == 0) {
                assert_int_equal(a->value_len, strlen(want[i][1]));
                assert_memory_equal(a->value, want[i][1], a->value_len);
                found++;
            }
        }
        assert_int_equal(found, 1);
    }
    weir__log_close(log);
    assert_ok(weir__log_open(&log, path, "auto", "account=uid", NULL)); /* it might be JSON */
    assert_int_equal(weir__log_next(log, &e, &error), WEIR_INVALID);
    assert_non_null(strstr(error.text, "has no field 'uid'"));
    weir__log_close(log);
}

TEST(test_refused)
{
    const char *path = file_with("", 0);

    assert_refused(new_path(), "auto", NULL, WEIR_SYSTEM, "No such file");
    assert_refused(folder, "auto", NULL, WEIR_INVALID, "is a directory");
    assert_refused(path, "xml", NULL, WEIR_INVALID,
                   "'xml' is not a log format; there are auto, combined and json");
    assert_refused(path, "combined", "a=b", WEIR_INVALID,
                   "has no field 'b': of a combined log there are ip, user, host");
    assert_refused(path, "combined", "time=user", WEIR_INVALID,
                   "is a combined log: time cannot be mapped");
    assert_refused(path, "json", "a", WEIR_INVALID, "ATTRIBUTE=FIELD");
    weir__log_close(NULL);
}

/* Byte by byte through a pipe: the gzip magic may come in two reads, and nothing is known of the
 * size. */
static void read_from_stdin(const void *bytes, size_t size, int64_t entries)
{
    int ends[2], saved = dup(STDIN_FILENO), code;
    int64_t got;

    assert_int_equal(pipe(ends), 0);
    if (fork() == 0) {
        for (size_t i = 0; i < size; i++)
            if (write(ends[1], (const char *)bytes + i, 1) != 1)
                _exit(1);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    struct weir__log_figures f = read_all("-", "auto", &got, &code, NULL);
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    close(saved);
    close(ends[0]);
    wait(NULL);
    assert_int_equal(code, 0);
    assert_int_equal(got, entries);
    assert_fields(f, (bytes_all, -1), (bytes_read, size));
}

TEST(test_stdin)
{
    unsigned char bytes[4096];
    const char *text = GOOD "\n" GOOD;

    read_from_stdin(text, strlen(text), 2);
    read_from_stdin(bytes, pack(text, strlen(text), bytes, sizeof(bytes)), 2);
    read_from_stdin("", 0, 0);
}

GROUP(make_folder, remove_folder)
