/* list-changes.c -- lists changed by hand: edits, the file, what a damaged one is answered, and the
 * lists that come of it. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "server/serve/rules/list-changes.h"
#include "written-lists.h"

OWNS(weir__lists)
OWNS(weir__list_changes)

#define TEXTS(...) \
    (const char *const[]){ __VA_ARGS__ }, COUNT_OF(((const char *const[]){ __VA_ARGS__ }))
#define NONE      NULL, 0
#define EDIT(...) (&(struct weir_list_edit){ __VA_ARGS__ })

static void edit(struct weir__list_changes **o, const char *list, const char *attribute,
                 const char *const *add, size_t adds, const char *const *remove, size_t removes)
{
    struct weir__list_changes *next = NULL;
    struct weir__lists *written = written_lists();
    struct weir_error error = { 0 };

    if (weir__list_changes_edit(&next, *o, written,
                                EDIT(list, attribute, add, adds, remove, removes),
                                &error) != WEIR_OK)
        fail_msg("%s", error.text);
    weir__list_changes_destroy(*o);
    weir__lists_destroy(written);
    *o = next;
}

/* "+deny ip 192.0.2.9;-vip account ann;" */
static void assert_overlay(const struct weir__list_changes *o, const char *wanted)
{
    char got[1024] = "";

    for (size_t i = 0; i < o->n; i++) {
        const struct weir__list_changes_entry *e = &o->entries[i];
        size_t len = strlen(got);
        snprintf(got + len, sizeof(got) - len, "%c%s %s %s;", e->added ? '+' : '-', e->list,
                 e->attribute, e->entry);
    }
    assert_string_equal(got, wanted);
}

TEST(test_edits)
{
    OWN(weir__list_changes) *o = weir__list_changes_create();
    edit(&o, "deny", "ip", TEXTS("203.0.113.9", "10.0.0.0/8"), NONE);
    assert_overlay(o, "+deny ip 10.0.0.0/8;+deny ip 203.0.113.9;");
    edit(&o, "allow", "account", TEXTS("ann"), NONE);
    edit(&o, "deny", "ip", TEXTS("203.0.113.9/32"), TEXTS("192.0.2.7"));
    assert_overlay(
        o, "+allow account ann;+deny ip 10.0.0.0/8;-deny ip 192.0.2.7;+deny ip 203.0.113.9;");
    edit(&o, "deny", "ip", TEXTS("192.0.2.7"), TEXTS("10.0.0.0/8"));
    assert_overlay(o, "+allow account ann;+deny ip 192.0.2.7;+deny ip 203.0.113.9;");
    edit(&o, "deny", "header.X-Key", TEXTS("k"), NONE);
    assert_overlay(
        o, "+allow account ann;+deny header.x-key k;+deny ip 192.0.2.7;+deny ip 203.0.113.9;");
}

/* Otherwise adding and removing addresses all year would fill it with entries that are gone. */
TEST(test_removing_what_was_added_leaves_nothing)
{
    OWN(weir__list_changes) *o = weir__list_changes_create();
    edit(&o, "deny", "ip", TEXTS("203.0.113.9", "203.0.113.10"), NONE);
    edit(&o, "deny", "ip", NONE, TEXTS("203.0.113.9", "203.0.113.10", "203.0.113.11"));
    assert_overlay(o, "");
    edit(&o, "vip", "account", NONE, TEXTS("ann"));
    assert_overlay(o, "-vip account ann;");
    edit(&o, "deny", "ip", TEXTS("203.0.113.9"), TEXTS("203.0.113.9")); /* removed last */
    assert_overlay(o, "-vip account ann;");
}

static void assert_refused(const char *attribute, const char *entry, const char *says)
{
    struct weir__list_changes *o = weir__list_changes_create(), *out = NULL;

    OWN(weir__lists) *written = written_lists();
    struct weir_error error = { 0 };
    assert_int_equal(weir__list_changes_edit(&out, o, written,
                                             EDIT("deny", attribute, TEXTS(entry), NONE), &error),
                     WEIR_INVALID);
    assert_null(out);
    assert_contains(error.text, says);
    weir__list_changes_destroy(o);
}

TEST(test_wrong_entries)
{
    char long_one[WEIR__LIST_CHANGES_ENTRY_MAX + 2];

    memset(long_one, 'a', sizeof(long_one) - 1);
    long_one[sizeof(long_one) - 1] = '\0';
    assert_refused("account", long_one, "at most 1024 bytes");
    assert_refused("account", "", "not empty");
    assert_refused("account", "a*", "no patterns");
    assert_refused("ip", "192.0.2.1/24", "192.0.2.0/24");
}

TEST(test_bound)
{
    size_t n = WEIR__LIST_CHANGES_MAX;
    const char **entries = calloc(n + 1, sizeof(*entries));

    FINALLY(memory_drop) char *texts = calloc(n + 1, 8);
    struct weir__list_changes *o = weir__list_changes_create(), *out = NULL;
    struct weir_error error = { 0 };
    for (size_t i = 0; i <= n; i++)
        entries[i] = (snprintf(texts + 8 * i, 8, "%zu", i), texts + 8 * i);
    assert_int_equal(weir__list_changes_edit(&out, o, NULL,
                                             EDIT("deny", "account", entries, n + 1, NONE), &error),
                     WEIR_INVALID);
    assert_ok(
        weir__list_changes_edit(&out, o, NULL, EDIT("deny", "account", entries, n, NONE), &error));
    weir__list_changes_destroy(o);
    o = out;
    out = NULL;
    assert_int_equal(weir__list_changes_edit(&out, o, NULL,
                                             EDIT("deny", "account", entries + n, 1, NONE), &error),
                     WEIR_INVALID);
    assert_contains(error.text, "100001");
    assert_null(out);
    assert_ok(weir__list_changes_edit(&out, o, NULL, EDIT("deny", "account", entries, 1, NONE),
                                      &error)); /* it is there already */
    weir__list_changes_destroy(out);
    weir__list_changes_destroy(o);
    free(entries);
}

/* ----------------------------------------------------------- the file ---- */

static struct weir__list_changes *some(void)
{
    struct weir__list_changes *o = weir__list_changes_create();

    edit(&o, "deny", "ip", TEXTS("203.0.113.9", "2001:db8::/32"), TEXTS("192.0.2.7"));
    edit(&o, "allow", "account", TEXTS(" ann  smith ", "100%", "a\nb\r\t\x7f", "\xc3\xa9", "%0a"),
         NONE);
    return o;
}

TEST(test_print_and_parse)
{
    struct weir__list_changes *o = some(), *again = NULL;
    struct weir__buffer text = { 0 }, twice = { 0 };
    struct weir_error error = { 0 };

    weir__list_changes_print(o, &text);
    assert_false(text.failed);
    if (weir__list_changes_parse(&again, text.bytes, text.len, "t.lists", &error) != WEIR_OK)
        fail_msg("%s", error.text);
    weir__list_changes_print(again, &twice);
    assert_int_equal(text.len, twice.len);
    assert_memory_equal(text.bytes, twice.bytes, text.len);
    assert_int_equal(again->n, o->n);
    for (size_t i = 0; i < o->n; i++) {
        assert_string_equal(again->entries[i].entry, o->entries[i].entry);
        assert_int_equal(again->entries[i].added, o->entries[i].added);
    }
    weir__list_changes_destroy(o);
    weir__list_changes_destroy(again);
    weir__buffer_free(&text);
    weir__buffer_free(&twice);
}

static void assert_damaged(const char *text, size_t len)
{
    struct weir__list_changes *out = NULL;
    struct weir_error error = { 0 };
    char *exact = malloc(len + 1) /* so that the sanitizers see a read beyond it */,
         *begin = exact + 1;

    memcpy(begin, text, len);
    assert_int_equal(weir__list_changes_parse(&out, begin, len, "t.lists", &error), WEIR_CORRUPT);
    assert_null(out);
    assert_contains(error.text, "t.lists:");
    assert_contains(error.text, "move it away");
    free(exact);
}

/* Every byte that is another, and every end that is missing, is seen: never half of it. */
TEST(test_damage_is_seen)
{
    OWN(weir__list_changes) *o = some();
    FINALLY(weir__buffer_free) struct weir__buffer text = { 0 };
    weir__list_changes_print(o, &text);
    for (size_t len = 0; len < text.len; len++)
        assert_damaged(text.bytes, len);
    for (size_t i = 0; i < text.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            text.bytes[i] = (char)(text.bytes[i] ^ 1 << bit);
            assert_damaged(text.bytes, text.len);
            text.bytes[i] = (char)(text.bytes[i] ^ 1 << bit);
        }
    }
    weir__buffer_add(&text, "\n", 1);
    assert_damaged(text.bytes, text.len);
}

/* A checksum that fits does not make a line right. */
TEST(test_wrong_lines)
{
    static const char *const bodies[] = { "added deny ip\n",
                                          "added deny ip nonsense\n",
                                          "maybe deny ip 192.0.2.7\n",
                                          "added deny ip 192.0.2.7",
                                          "\n",
                                          "added deny account \n",
                                          "added deny account %\n",
                                          "added deny account %zz\n",
                                          "added deny account %00\n",
                                          "added  ip 192.0.2.7\n",
                                          "added d/y ip 192.0.2.7\n",
                                          "added deny ip 192.0.2.1/24\n" };
    struct weir_error error;
    char text[256], right[17];
    struct weir__list_changes *out = NULL;

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        int len =
            snprintf(text, sizeof(text), "weir lists 1\nchecksum 0000000000000000\n%s", bodies[i]);
        assert_int_equal(weir__list_changes_parse(&out, text, (size_t)len, "t.lists", &error),
                         WEIR_CORRUPT);
        assert_contains(error.text, "t.lists:2: ");
        assert_int_equal(sscanf(strstr(error.text, "write "), "write %16s", right),
                         1); /* it says what would be right */
        memcpy(text + strlen("weir lists 1\nchecksum "), right, 16);
        assert_int_equal(weir__list_changes_parse(&out, text, (size_t)len, "t.lists", &error),
                         WEIR_CORRUPT);
        assert_contains(error.text, "t.lists:3: ");
    }
    assert_null(out);
    assert_damaged("weir lists 2\nchecksum 0000000000000000\n", 39);
}

TEST(test_read)
{
    const char *path = new_path();
    struct weir__list_changes *out = NULL, *o = some();

    FINALLY(weir__buffer_free) struct weir__buffer text = { 0 };
    struct weir_error error = { 0 };
    assert_ok(weir__list_changes_read(&out, path, &error)); /* nobody has changed anything yet */
    assert_int_equal(out->n, 0);
    weir__list_changes_destroy(out);
    out = NULL;
    weir__list_changes_print(o, &text);
    write_at(path, 0, text.bytes, text.len);
    assert_ok(weir__list_changes_read(&out, path, &error));
    assert_int_equal(out->n, o->n);
    weir__list_changes_destroy(out);
    out = NULL;
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(weir__list_changes_read(&out, path, &error), WEIR_CORRUPT);
    assert_contains(error.text, path);
    assert_int_equal(weir__list_changes_read(&out, folder, &error), WEIR_SYSTEM);
    assert_null(out);
    weir__list_changes_destroy(o);
}

static void put(const char *path, const struct timespec times[2], const char *text)
{
    assert_int_equal(truncate(path, 0), 0);
    write_at(path, 0, text, strlen(text));
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

TEST(test_stamp)
{
    static const struct timespec one[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } },
                                 two[2] = { { .tv_sec = 1000 }, { 1000, 1 } };
    const char *path = new_path();

    assert_int_equal(weir__list_changes_stamp(path), 0);
    write_at(path, 0, "x", 1);
    put(path, one, "weir lists 1\nchecksum 0123456789abcdef\nadded deny ip 192.0.2.1\n");
    uint64_t first = weir__list_changes_stamp(path);
    assert_int_not_equal(first, 0);
    assert_int_equal(weir__list_changes_stamp(path), first);
    put(path, one,
        "weir lists 1\nchecksum 0123456789abcdee\nadded deny ip 192.0.2.2\n"); /* in the same tick,
                                                                                  as long, in its
                                                                                  place */
    assert_int_not_equal(weir__list_changes_stamp(path), first);
    put(path, two, "weir lists 1\nchecksum 0123456789abcdef\nadded deny ip 192.0.2.1\n");
    assert_int_not_equal(weir__list_changes_stamp(path), first);
    put(path, one, "weir lists 1\nchecksum 0123456789abcdef\nadded deny ip 192.0.2.1\n");
    assert_int_equal(weir__list_changes_stamp(path), first);
    assert_int_not_equal(weir__list_changes_stamp(folder), 0);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody waits for a writer */
    struct weir__list_changes *out = NULL;
    assert_int_not_equal(weir__list_changes_stamp(path), 0);
    assert_int_equal(weir__list_changes_read(&out, path, NULL), WEIR_SYSTEM);
}

/* ------------------------------------------------------------- effect ---- */

static bool has(const struct weir__lists *lists, const char *list, const char *attribute,
                const char *value)
{
    struct weir__address address = { .bits = 0 };
    int at = weir__lists_find(lists, list, attribute);

    weir__address_parse(value, strlen(value), &address);
    return at >= 0 && weir__list_has(&lists->lists[at], value, strlen(value), &address);
}

TEST(test_R3_apply)
{
    OWN(weir__list_changes) *o = weir__list_changes_create();
    struct weir__lists *written = written_lists(), *changed = NULL;
    size_t skipped = 77;
    assert_ok(weir__list_changes_apply(o, written, &changed, &skipped, NULL));
    assert_null(changed);
    assert_int_equal(skipped, 0);
    edit(&o, "deny", "ip", TEXTS("203.0.113.0/24"), TEXTS("192.0.2.0/24"));
    edit(&o, "allow", "account", TEXTS("root"), NONE);
    edit(&o, "gone", "account", TEXTS("x", "y"), NONE);
    edit(&o, "vip", "account", TEXTS("bob"), TEXTS("ann"));
    assert_ok(weir__list_changes_apply(o, written, &changed, &skipped, NULL));
    assert_int_equal(skipped, 2);
    assert_true(has(changed, "deny", "ip", "203.0.113.77"));
    assert_true(has(changed, "deny", "ip", "192.0.2.7"));
    assert_false(has(changed, "deny", "ip", "192.0.2.8"));
    assert_true(has(changed, "allow", "account", "root"));
    assert_true(has(changed, "vip", "account", "bob"));
    assert_false(has(changed, "vip", "account", "ann"));
    assert_int_equal(weir__lists_find(changed, "deny", "ip"),
                     weir__lists_find(written, "deny", "ip")); /* rules know lists by place */
    assert_int_equal(weir__lists_find(changed, "vip", "account"),
                     weir__lists_find(written, "vip", "account"));
    weir__lists_destroy(changed);
    weir__lists_destroy(written);
}

TEST(test_json)
{
    OWN(weir__list_changes) *o = weir__list_changes_create();
    FINALLY(weir__buffer_free) struct weir__buffer json = { 0 };
    weir__list_changes_json(o, &json);
    weir__buffer_text(&json, "\n");
    edit(&o, "vip", "account", TEXTS("a\"b"), TEXTS("ann"));
    weir__list_changes_json(o, &json);
    weir__buffer_add(&json, "", 1);
    assert_string_equal(
        json.bytes,
        "[]\n"
        "[{\"list\":\"vip\",\"attribute\":\"account\",\"entry\":\"a\\\"b\",\"change\":\"added\"},"
        "{\"list\":\"vip\",\"attribute\":\"account\",\"entry\":\"ann\",\"change\":\"removed\"}]");
}

GROUP(make_folder, remove_folder)
