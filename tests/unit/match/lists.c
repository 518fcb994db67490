/* lists.c -- lists made, asked, and edited beside those in use. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "match/lists.h"

OWNS(weir__lists)

static char *office[] = { "10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "10.0.0.0/8" };
static char *names[] = { "mallory", "eve", "mallory" };

static const struct weir__list_draft drafts[] = {
    { .name = "deny", .attribute = "ip", .entries = office, .n = COUNT_OF(office) },
    { .name = "deny", .attribute = "account", .entries = names, .n = COUNT_OF(names) },
    { .name = "vips", .attribute = "account", .entries = NULL, .n = 0 },
};

static struct weir__lists *make(void)
{
    struct weir__lists *lists = NULL;

    assert_ok(weir__lists_create(&lists, drafts, COUNT_OF(drafts), NULL));
    return lists;
}

static bool has(const struct weir__lists *lists, const char *list, const char *attribute,
                const char *value)
{
    struct weir__address address = { .bits = 0 };
    int at = weir__lists_find(lists, list, attribute);

    assert_true(at >= 0);
    weir__address_parse(value, strlen(value), &address);
    return weir__list_has(&lists->lists[at], value, strlen(value), &address);
}

static int edit(struct weir__lists **lists, const char *list, const char *attribute,
                const char *add, const char *remove)
{
    struct weir__lists *edited = NULL;
    struct weir_error error;
    int code = weir__lists_edit(
        &edited, *lists,
        &(struct weir_list_edit){ list, attribute, &add, add != NULL, &remove, remove != NULL },
        &error);

    if (code == WEIR_OK) {
        weir__lists_destroy(*lists);
        *lists = edited;
    } else {
        assert_null(edited);
        assert_true(error.text[0] != '\0');
    }
    return code;
}

TEST(test_R3_networks_and_exact_values)
{
    struct weir__lists *lists = make();

    assert_int_equal(lists->n, 3);
    assert_int_equal(weir__lists_find(lists, "vips", "account"), 2);
    assert_int_equal(weir__lists_find(lists, "vips", "ip"), -1);
    assert_int_equal(weir__lists_find(lists, "allow", "ip"), -1);
    assert_true(has(lists, "deny", "ip", "10.255.0.1"));
    assert_true(has(lists, "deny", "ip", "::ffff:10.1.1.1"));
    assert_true(has(lists, "deny", "ip", "192.0.2.7"));
    assert_true(has(lists, "deny", "ip", "2001:DB8:0:1::9"));
    assert_false(has(lists, "deny", "ip", "192.0.2.8"));
    assert_false(has(lists, "deny", "ip", "2001:db9::"));
    assert_false(has(lists, "deny", "ip", "10.0.0.0/8")); /* no address */
    assert_true(has(lists, "deny", "account", "eve"));
    assert_false(has(lists, "deny", "account", "ev"));
    assert_false(has(lists, "deny", "account", "evee"));
    assert_false(has(lists, "vips", "account", "eve")); /* of none */
    weir__lists_destroy(lists);
    weir__lists_destroy(NULL);
}

TEST(test_entries_are_kept_sorted_and_once)
{
    OWN(weir__lists) *lists = make();
    const struct weir__list *l = &lists->lists[1];
    assert_int_equal(l->n, 2);
    assert_string_equal(l->entries[0], "eve");
    assert_string_equal(l->entries[1], "mallory");
    assert_int_equal(lists->lists[0].n, 3);
}

TEST(test_R3_an_edit_adds_and_removes)
{
    OWN(weir__lists) *lists = make();
    assert_ok(edit(&lists, "deny", "account", "trudy", "eve"));
    assert_true(has(lists, "deny", "account", "trudy"));
    assert_true(has(lists, "deny", "account", "mallory"));
    assert_false(has(lists, "deny", "account", "eve"));
    assert_ok(edit(&lists, "deny", "ip", "203.0.113.0/24", "10.0.0.0/8"));
    assert_true(has(lists, "deny", "ip", "203.0.113.200"));
    assert_false(has(lists, "deny", "ip", "10.0.0.1"));
    assert_ok(edit(&lists, "vips", "account", "ann", NULL));
    assert_true(has(lists, "vips", "account", "ann"));
    assert_ok(edit(&lists, "deny", "account", "ann", "ann")); /* what is in both is not on it */
    assert_false(has(lists, "deny", "account", "ann"));
    assert_ok(edit(&lists, "deny", "account", NULL, "nobody"));
    assert_int_equal(lists->n, 3);
}

TEST(test_R3_a_list_that_was_not_there_is_made)
{
    OWN(weir__lists) *lists = make();
    assert_ok(edit(&lists, "allow", "client.ip", "198.51.100.0/24", NULL));
    assert_int_equal(weir__lists_find(lists, "allow", "client.ip"),
                     3); /* at the end: the places of the others stay */
    assert_true(has(lists, "allow", "client.ip", "198.51.100.1"));
    assert_true(has(lists, "deny", "account", "eve"));
}

TEST(test_a_bad_entry_changes_nothing)
{
    static const char *const bad[] = { "10.0.0.0/33", "10.0.0.1/8", "ten", "",
                                       "1.2.3",       "2001:db8::g" };

    OWN(weir__lists) *lists = make();
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(edit(&lists, "deny", "ip", bad[i], "10.0.0.0/8"), WEIR_INVALID);
    assert_true(has(lists, "deny", "ip", "10.0.0.1"));
}

/* An address is the same however it is written: what is removed is the network, not its
 * spelling. */
TEST(test_R3_removal_goes_by_what_an_entry_means)
{
    OWN(weir__lists) *lists = make();
    assert_ok(edit(&lists, "deny", "ip", NULL, "2001:DB8::/32"));
    assert_false(has(lists, "deny", "ip", "2001:db8::1"));
    assert_ok(edit(&lists, "deny", "ip", NULL, "192.0.2.7/32"));
    assert_false(has(lists, "deny", "ip", "192.0.2.7"));
    assert_ok(edit(&lists, "deny", "ip", NULL, "::ffff:10.0.0.0/104"));
    assert_false(has(lists, "deny", "ip", "10.0.0.1"));
    assert_int_equal(lists->lists[0].n, 0);
    assert_ok(edit(&lists, "deny", "ip", "2001:DB8:0::1", NULL));
    assert_ok(edit(&lists, "deny", "ip", "2001:db8::1/128", NULL));
    assert_int_equal(lists->lists[0].n, 1); /* once */
}

/* What the file would refuse, and what nobody would ever ask for. */
TEST(test_R3_what_cannot_be_edited)
{
    static const struct {
        const char *list, *attribute, *entry, *says;
    } cases[] = {
        { "dney", "ip", "192.0.2.1", "dney" },
        { "", "ip", "192.0.2.1", "list" },
        { "vips", "ip", "192.0.2.1", "vips" }, /* of account there is one */
        { "deny", "", "x", "attribute" },
        { "deny", "not a name", "x", "not a name" },
        { "allow", "caf\xc3\xa9", "x", "attribute" },
        { "deny", "account", "", "empty" },
        { "deny", "account", "mal*", "pattern" },
        { "vips", "account", "*", "pattern" },
        { "deny", "uri", "login", "path" },
        { "deny", "uri", "/a/../b", "path" },
        { "deny", "uri", "/a?b", "path" },
        { "allow", "uri", "/%61", "path" },
    };
    char name[65];
    OWN(weir__lists) *lists = make();
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int removing = 0; removing < 2; removing++) {
            struct weir__lists *edited = NULL;
            struct weir_error error = { 0 };
            int code = weir__lists_edit(
                &edited, lists,
                &(struct weir_list_edit){ cases[i].list, cases[i].attribute, &cases[i].entry,
                                          !removing, &cases[i].entry, (size_t)removing },
                &error);
            assert_int_equal(code, WEIR_INVALID);
            assert_null(edited);
            assert_contains(error.text, cases[i].says);
        }
    memset(name, 'n', 64);
    name[64] = '\0';
    assert_int_equal(edit(&lists, "deny", name, "x", NULL), WEIR_INVALID);
    assert_ok(edit(&lists, "deny", name + 1, "x", NULL));
}

TEST(test_R3_headers_have_no_case)
{
    OWN(weir__lists) *lists = make();
    assert_ok(edit(&lists, "deny", "header.X-App", "evil", NULL));
    assert_ok(edit(&lists, "deny", "header.x-APP", "worse", NULL));
    assert_int_equal(lists->n, 4);
    assert_true(has(lists, "deny", "header.x-app", "evil"));
    assert_true(has(lists, "deny", "header.x-app", "worse"));
    assert_false(has(lists, "deny", "header.x-app", "EVIL")); /* values do */
    assert_ok(edit(&lists, "deny", "Account", "eve", NULL));
    assert_int_equal(lists->n, 5); /* and so do all other names */
}

TEST(test_R3_a_hundred_thousand_entries)
{
    enum { MANY = 100000 };
    static char texts[MANY][20];
    static char *entries[MANY];
    for (int i = 0; i < MANY; i++) { /* every other address of 10.0.0.0/8's beginning */
        snprintf(texts[i], sizeof(texts[i]), "10.%d.%d.%d", i >> 15, i >> 7 & 255, i << 1 & 255);
        entries[i] = texts[i];
    }
    struct weir__list_draft big[] = {
        { .name = "deny", .attribute = "ip", .entries = entries, .n = MANY },
        { .name = "deny", .attribute = "account", .entries = entries, .n = MANY }
    };
    OWN(weir__lists) *lists = NULL;
    assert_ok(weir__lists_create(&lists, big, 2, NULL));
    for (int i = 0; i < MANY; i++) {
        char other[20];
        snprintf(other, sizeof(other), "10.%d.%d.%d", i >> 15, i >> 7 & 255, (i << 1 & 255) + 1);
        assert_true(has(lists, "deny", "ip", texts[i]));
        assert_false(has(lists, "deny", "ip", other));
        assert_true(has(lists, "deny", "account", texts[i]));
        assert_false(has(lists, "deny", "account", other));
    }
    assert_ok(edit(&lists, "deny", "ip", "192.0.2.0/24", texts[777]));
    assert_false(has(lists, "deny", "ip", texts[777]));
    assert_true(has(lists, "deny", "ip", "192.0.2.9"));
    assert_int_equal(lists->lists[0].n, MANY);
}
