/* rule-files.c -- the files that a rule set is read from: which they are, and the two numbers that
 * stand for them. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "rulefile/node.h"
#include "server/serve/rules/rule-files.h"

#define ONE_LIST "version: 1\nlists:\n  deny: { ip: { file: %s } }\n"

static const char *file_with(const char *text)
{
    const char *path = new_path();

    write_at(path, 0, text, strlen(text));
    return path;
}

/* ------------------------------------------------------------- reading ---- */

static void refuse(const char *path, const char *why)
{
    struct weir_error error = { 0 };
    char *text = (char *)16;
    size_t len = 77;

    assert_int_not_equal(weir__rule_files_read(path, &text, &len, &error), WEIR_OK);
    assert_contains(error.text, why);
    assert_ptr_equal(text, (char *)16);
    assert_int_equal(len, 77);
}

TEST(test_reads_regular_files)
{
    struct weir_error error = { 0 };
    char *text = NULL;
    size_t len = 0;

    assert_ok(weir__rule_files_read(file_with("text\n"), &text, &len, &error));
    assert_int_equal(len, 5);
    assert_memory_equal(text, "text\n", 5);
    free(text);
    assert_ok(weir__rule_files_read(file_with(""), &text, &len, &error));
    assert_int_equal(len, 0);
    free(text);
    refuse("./there-is-none", "cannot open './there-is-none': No such file");
    refuse(folder, "is not a regular file");
}

/* A pipe is refused at once: nobody waits for its writer. */
TEST(test_waits_for_no_pipe)
{
    const char *path = new_path();

    assert_int_equal(mkfifo(path, 0600), 0);
    refuse(path, "is not a regular file");
}

TEST(test_too_large)
{
    const char *path = file_with("x");

    assert_int_equal(truncate(path, (off_t)WEIR__RULES_TEXT_MAX + 1), 0);
    refuse(path, "is too large");
}

/* ------------------------------------------------------------- finding ---- */

static void add_file(void *files, const char *path)
{
    weir__rule_files_add(files, path);
}

static struct weir__rule_files found_in(const char *path, const char *text)
{
    struct weir__rule_files files = { 0 };
    struct weir_rules *rules = NULL;

    (void)weir_rules_parse(&rules, text, strlen(text),
                           &(struct weir_rules_options){
                               .name = path, .files = true, .file = add_file, .context = &files },
                           NULL);
    weir_rules_destroy(rules);
    return files;
}

TEST(test_R3_G5_finds_the_files_of_lists_and_fallbacks)
{
    static const char text[] =
        "version: 1\n"
        "lists:\n"
        "  deny: { ip: { file: bad/ips }, account: [ann] }\n"
        "  vip: { account: { file: /etc/vip }, host: { file: [no, text] } }\n"
        "  odd: [x]\n"
        "rules:\n"
        "  - { name: r, limit: 1/s, file: no-list }\n"
        "guards:\n"
        "  - { name: g, fallback: { body_file: sorry.json } }\n"
        "  - { name: h, fallback: { body: no file } }\n";

    struct weir__rule_files files = found_in("/etc/weir/rules.yaml", text);
    assert_int_equal(files.n, 3);
    assert_string_equal(files.named[2], "/etc/weir/sorry.json");
    assert_string_equal(files.named[0], "/etc/weir/bad/ips"); /* beside the rule file */
    assert_string_equal(files.named[1], "/etc/vip");
    weir__rule_files_free(&files);
    assert_int_equal(files.n, 0);
    assert_null(files.named);
    files = found_in("rules.yaml", text);
    assert_string_equal(files.named[0], "bad/ips");
    weir__rule_files_free(&files);
}

TEST(test_finds_none_in_what_is_no_rule_file)
{
    static const char *const texts[] = { "",         "lists",         "[1, 2]",
                                         "lists: x", "lists: { a: b", "\tlists:\n" };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct weir__rule_files files = found_in("rules.yaml", texts[i]);
        assert_int_equal(files.n, 0);
        weir__rule_files_free(&files);
    }
}

/* ------------------------------------------------------------- numbers ---- */

/* A rule file and the file of its list, and what they are known by. */
struct set {
    char rules[320], list[320], text[512];
    struct weir__rule_files files;
};

static struct set make_set(void)
{
    struct set s;

    snprintf(s.list, sizeof(s.list), "%s", file_with("192.0.2.7\n"));
    snprintf(s.text, sizeof(s.text), ONE_LIST, s.list);
    snprintf(s.rules, sizeof(s.rules), "%s", file_with(s.text));
    s.files = found_in(s.rules, s.text);
    assert_int_equal(s.files.n, 1);
    return s;
}

static uint64_t stamp_of(const struct set *s)
{
    return weir__rule_files_stamp(&s->files, s->rules);
}

static uint64_t contents_of(const struct set *s)
{
    return weir__rule_files_contents(&s->files, s->text, strlen(s->text));
}

/* Written again: another time; nothing here waits until it is one. */
static void set_time(const char *path, time_t when)
{
    const struct timespec times[2] = { { .tv_sec = when }, { .tv_sec = when } };

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

TEST(test_R3_numbers_change_with_what_is_in_a_list)
{
    struct set s = make_set();
    uint64_t stamp = stamp_of(&s), contents = contents_of(&s);

    assert_true(stamp_of(&s) == stamp && contents_of(&s) == contents);
    write_at(s.list, 0, "192.0.2.8\n", 10);
    set_time(s.list, 1);
    assert_true(stamp_of(&s) != stamp && contents_of(&s) != contents);
    weir__rule_files_free(&s.files);
}

/* Touched: the stamp says look, and the contents that there is nothing new. */
TEST(test_touched_is_not_changed)
{
    struct set s = make_set();
    uint64_t stamp = stamp_of(&s), contents = contents_of(&s);

    set_time(s.rules, 1);
    assert_true(stamp_of(&s) != stamp && contents_of(&s) == contents);
    weir__rule_files_free(&s.files);
}

/* Another file in its place, as editors and package managers do it. */
TEST(test_replaced_is_seen)
{
    struct set s = make_set();
    struct stat st;

    assert_int_equal(stat(s.list, &st), 0);
    uint64_t stamp = stamp_of(&s);
    const char *other = file_with("192.0.2.7\n");
    set_time(other, st.st_mtime);
    assert_int_equal(rename(other, s.list), 0);
    assert_true(stamp_of(&s) != stamp);
    weir__rule_files_free(&s.files);
}

TEST(test_a_list_that_is_gone_counts_too)
{
    struct set s = make_set();
    uint64_t stamp = stamp_of(&s), contents = contents_of(&s);

    unlink(s.list);
    uint64_t gone = stamp_of(&s), without = contents_of(&s);
    assert_true(gone != stamp && without != contents);
    assert_true(stamp_of(&s) == gone && contents_of(&s) == without);
    weir__rule_files_free(&s.files);
}

/* What is in one file must not count as being in the next. */
TEST(test_contents_tell_files_apart)
{
    struct set s = make_set();

    uint64_t contents = contents_of(&s);
    char moved[540];
    int len = snprintf(moved, sizeof(moved), "%s1", s.text);
    write_at(s.list, 0, "92.0.2.7\n", 9);
    assert_int_equal(truncate(s.list, 9), 0);
    assert_true(weir__rule_files_contents(&s.files, moved, (size_t)len) != contents);
    weir__rule_files_free(&s.files);
}

GROUP(make_folder, remove_folder)
