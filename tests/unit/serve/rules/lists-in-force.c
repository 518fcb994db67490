/* lists-in-force.c -- lists changed by hand: they survive reloads, restarts and damage, and servers
 * that share them keep the changes of each other. */
#include "unit/test.h"

#include <pthread.h>
#include <sched.h>

#include "unit/in-force.h"

TEST(test_R3_lists_by_hand_survive)
{
    FINALLY(stop) struct host h;
    static const char *const wanted =
        "[{\"list\":\"deny\",\"attribute\":\"ip\",\"entry\":\"192.0.2.0/24\",\"change\":\"added\"},"
        "{\"list\":\"vip\",\"attribute\":\"account\",\"entry\":\"ann\",\"change\":\"removed\"}]";
    name_files(&h);
    write_text(h.rules, VIPS);
    start(&h, h.rules, h.table_path);
    assert_int_equal(limit_in_force(&h), 5);
    edit(&h, "deny", "ip", TEXTS("192.0.2.0/24"), NONE);
    edit(&h, "vip", "account", NONE, TEXTS("ann"));
    assert_string_equal(heard(&h, NULL), "list list");
    for (int i = 0; i < 4; i++) {
        assert_true(is_denied(&h, "192.0.2.9"));
        assert_int_equal(limit_in_force(&h), 0);
        assert_lists(&h, wanted);
        assert_fields(info_of(&h), (entries, 1), (by_hand, 2));
        if (i == 0)
            assert_ok(weir__in_force_reload(h.in_force, "signal", NOW, NULL, NULL));
        if (i == 1)
            set(&h, VIPS "# more\n");
        if (i == 2) {
            stop(&h);
            start(&h, h.rules, h.table_path);
        }
    }
    edit(&h, "deny", "ip", NONE, TEXTS("192.0.2.0/24"));
    edit(&h, "vip", "account", TEXTS("ann"), NONE);
    assert_false(is_denied(&h, "192.0.2.9"));
    assert_int_equal(limit_in_force(&h), 5);
    stop(&h);
    start(&h, h.rules, h.table_path);
    assert_false(is_denied(&h, "192.0.2.9"));
}

TEST(test_R3_lists_that_are_gone_are_skipped_and_come_back)
{
    FINALLY(stop) struct host h;
    name_files(&h);
    write_text(h.rules, VIPS);
    start(&h, h.rules, h.table_path);
    edit(&h, "vip", "account", TEXTS("bob", "cat"), NONE);
    set(&h, FIVE);
    assert_fields(info_of(&h), (skipped, 2), (entries, 0));
    assert_int_equal(check(&h, "account", "bob").count, 5);
    set(&h, VIPS);
    assert_fields(info_of(&h), (skipped, 0), (entries, 3));
    assert_int_equal(check(&h, "account", "bob").count, 5);
    assert_int_equal(check(&h, "account", "dan").count, 0);
}

TEST(test_R3_what_an_edit_has_changed)
{
    FINALLY(stop) struct host h;
    struct weir__in_force_edited e = { 0 };
    name_files(&h);
    write_text(h.rules, VIPS);
    start(&h, h.rules, NULL);
    assert_ok(weir__in_force_list_edit(
        h.in_force, EDIT("vip", "account", TEXTS("ann", "bob", "bob"), NONE), NOW, &e, NULL));
    assert_true(e.added == 1 && e.removed == 0 && e.entries == 2);
    assert_ok(weir__in_force_list_edit(
        h.in_force, EDIT("vip", "account", TEXTS("cat"), TEXTS("ann", "dan")), NOW, &e, NULL));
    assert_true(e.added == 1 && e.removed == 1 && e.entries == 2);
    assert_ok(weir__in_force_list_edit(h.in_force, EDIT("deny", "header.X-App", TEXTS("a"), NONE),
                                       NOW, &e, NULL));
    assert_true(e.added == 1 && e.removed == 0 && e.entries == 1);
    assert_ok(weir__in_force_list_edit(h.in_force, EDIT("deny", "ip", NONE, TEXTS("192.0.2.7")),
                                       NOW, &e, NULL));
    assert_true(e.added == 0 && e.removed == 0 && e.entries == 0);
}

TEST(test_R3_wrong_edits_change_nothing)
{
    FINALLY(stop) struct host h;
    char kept[400];
    struct weir_error error = { 0 };
    name_files(&h);
    snprintf(kept, sizeof(kept), "%s.lists", h.table_path);
    write_text(h.rules, VIPS);
    start(&h, h.rules, h.table_path);
    assert_int_equal(weir__in_force_list_edit(h.in_force, EDIT("vipp", "account", TEXTS("x"), NONE),
                                              NOW, NULL, &error),
                     WEIR_INVALID);
    assert_contains(error.text, "no list 'vipp'");
    assert_int_equal(weir__in_force_list_edit(h.in_force,
                                              EDIT("deny", "ip", TEXTS("192.0.2.1", "x"), NONE),
                                              NOW, NULL, &error),
                     WEIR_INVALID);
    assert_int_equal(
        weir__in_force_list_edit(h.in_force, EDIT("deny", "", TEXTS("x"), NONE), NOW, NULL, &error),
        WEIR_INVALID);
    assert_int_equal(
        weir__in_force_list_edit(h.in_force, EDIT("deny", "ip", NONE, NONE), NOW, NULL, &error),
        WEIR_INVALID);
    assert_int_equal(mkdir(kept, 0700), 0); /* it cannot be kept */
    assert_int_equal(weir__in_force_list_edit(h.in_force,
                                              EDIT("deny", "ip", TEXTS("192.0.2.1"), NONE), NOW,
                                              NULL, &error),
                     WEIR_SYSTEM);
    assert_contains(error.text, kept);
    assert_false(is_denied(&h, "192.0.2.1"));
    assert_lists(&h, "[]");
    assert_string_equal(heard(&h, NULL), "");
}

/* Two servers, one table: the one that makes way for the other edits too until it is gone. */
static void start_two(struct host h[2], const char *first)
{
    name_files(&h[0]);
    name_files(&h[1]);
    write_text(h[0].rules, VIPS);
    start(&h[0], h[0].rules, h[0].table_path);
    if (first != NULL)
        edit(&h[0], "deny", "ip", &first, 1, NONE);
    start(&h[1], h[0].rules, h[0].table_path);
    heard(&h[0], NULL);
}

TEST(test_R3_two_servers_keep_each_others_edits)
{
    struct host h[2];
    char json[WEIR__EVENT_MAX + 1];

    start_two(h, NULL);
    edit(&h[0], "deny", "ip", TEXTS("192.0.2.1"), NONE);
    assert_false(is_denied(&h[1], "192.0.2.1"));
    edit(&h[1], "deny", "ip", TEXTS("192.0.2.2"), NONE); /* goes by what is there by now */
    assert_true(is_denied(&h[1], "192.0.2.1"));
    assert_string_equal(heard(&h[1], NULL), "list list");
    edit(&h[0], "vip", "account", TEXTS("bob"), TEXTS("ann"));
    assert_false(weir__in_force_refresh(h[1].in_force, NOW)); /* one look is enough */
    assert_string_equal(heard(&h[1], json), "list");
    assert_contains(json, "4 changes by hand");
    for (int i = 0; i < 2; i++) {
        assert_false(look_twice(&h[i]));
        assert_true(is_denied(&h[i], "192.0.2.1") && is_denied(&h[i], "192.0.2.2"));
        assert_int_equal(limit_in_force(&h[i]), 0);
        assert_fields(info_of(&h[i]), (by_hand, 4), (entries, 3));
    }
    heard(&h[0], NULL);
    edit(&h[0], "deny", "ip", NONE, TEXTS("192.0.2.1", "192.0.2.2"));
    edit(&h[0], "vip", "account", TEXTS("ann"), TEXTS("bob"));
    assert_false(weir__in_force_refresh_lists(h[1].in_force, NOW));
    assert_false(is_denied(&h[1], "192.0.2.1"));
    assert_int_equal(limit_in_force(&h[1]), 5);
    assert_string_equal(heard(&h[0], NULL), "list list"); /* its own writing is no news */
    for (int i = 0; i < 2; i++)
        stop(&h[i]);
}

static void *edit_many(void *context)
{
    struct host *h = context;
    char entry[32];
    const char *add = entry;

    for (int i = 0; i < 40; i++) {
        snprintf(entry, sizeof(entry), "%.20s-%d", h->told, i);
        edit(h, "deny", "account", &add, 1, NONE);
    }
    return NULL;
}

RACE(test_R3_two_servers_edit_at_once)
{
    struct host h[2];
    pthread_t threads[2];

    start_two(h, "192.0.2.1");
    for (int i = 0; i < 2; i++) {
        snprintf(h[i].told, sizeof(h[i].told), "server%d", i);
        assert_int_equal(pthread_create(&threads[i], NULL, edit_many, &h[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_false(weir__in_force_refresh(h[i].in_force, NOW));
        assert_int_equal(info_of(&h[i]).by_hand, 81);
        assert_int_equal(check(&h[i], "account", "server0-0").decision.reason, WEIR_DENIED);
        assert_int_equal(check(&h[i], "account", "server1-39").decision.reason, WEIR_DENIED);
        stop(&h[i]);
    }
}

/* A file that was emptied of everything is one that says so; one that is gone says nothing. */
TEST(test_lists_that_are_gone_stay_in_force)
{
    struct host h[2];
    char kept[400];

    start_two(h, "192.0.2.1");
    snprintf(kept, sizeof(kept), "%s.lists", h[0].table_path);
    assert_int_equal(unlink(kept), 0);
    assert_false(look_twice(&h[0]));
    assert_true(is_denied(&h[0], "192.0.2.1"));
    edit(&h[0], "deny", "ip", TEXTS("192.0.2.2"), NONE);
    assert_false(look_twice(&h[1]));
    assert_true(is_denied(&h[1], "192.0.2.1") && is_denied(&h[1], "192.0.2.2"));
    for (int i = 0; i < 2; i++)
        stop(&h[i]);
}

TEST(test_damaged_lists_are_told_once_and_change_nothing)
{
    struct host h[2];
    char kept[400], json[WEIR__EVENT_MAX + 1];

    start_two(h, "192.0.2.1");
    snprintf(kept, sizeof(kept), "%s.lists", h[0].table_path);
    write_text(kept, "weir lists 1\nchecksum 0123456789abcdef\nadded deny ip 192.0.2.9\n");
    assert_false(weir__in_force_refresh(h[1].in_force, NOW)); /* somebody may still be writing */
    assert_true(weir__in_force_refresh(h[1].in_force, NOW));
    assert_string_equal(heard(&h[1], json), "reload-failed");
    assert_contains(json, kept);
    assert_contains(info_of(&h[1]).problem, "checksum");
    assert_false(look_twice(&h[1]));
    assert_string_equal(heard(&h[1], NULL), "");
    assert_true(is_denied(&h[1], "192.0.2.1"));
    assert_false(is_denied(&h[1], "192.0.2.9"));
    assert_fails(weir__in_force_list_edit(h[1].in_force,
                                          EDIT("deny", "ip", TEXTS("192.0.2.2"), NONE), NOW, NULL,
                                          &error),
                 WEIR_CORRUPT, kept);
    assert_false(is_denied(&h[1], "192.0.2.2"));
    unlink(kept);
    edit(&h[0], "deny", "ip", TEXTS("192.0.2.3"), NONE);
    assert_false(look_twice(&h[1]));
    assert_true(is_denied(&h[1], "192.0.2.3"));
    assert_string_equal(info_of(&h[1]).problem, "");
    for (int i = 0; i < 2; i++)
        stop(&h[i]);
}

TEST(test_damaged_lists_do_not_start)
{
    FINALLY(stop) struct host h;
    char kept[400];
    name_files(&h);
    snprintf(kept, sizeof(kept), "%s.lists", h.table_path);
    start(&h, "", h.table_path);
    edit(&h, "deny", "ip", TEXTS("192.0.2.1", "192.0.2.2"), NONE);
    stop(&h);
    write_at(kept, 60, "9", 1);
    assert_no_start(&h, "", h.table_path, kept);
}

TEST(test_leftovers_of_a_crash_are_removed)
{
    FINALLY(stop) struct host h;
    char left[2][600], *slash;
    name_files(&h);
    write_text(h.rules, FIVE);
    slash = strrchr(h.rules, '/');
    snprintf(left[0], sizeof(left[0]), "%s/.%s.weir-0123456789abcdef", folder, slash + 1);
    slash = strrchr(h.table_path, '/');
    snprintf(left[1], sizeof(left[1]), "%s/.%s.lists.weir-0123456789abcdef", folder, slash + 1);
    for (int i = 0; i < 2; i++)
        write_text(left[i], "half");
    start(&h, h.rules, h.table_path);
    for (int i = 0; i < 2; i++)
        assert_false(is_there(left[i]));
}

GROUP(make_folder, remove_folder)
