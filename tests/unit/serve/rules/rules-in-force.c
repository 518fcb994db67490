/* rules-in-force.c -- rules that change while a server runs: by file, by signal, by API; what is
 * told, what is kept, and what a failure leaves.
 *
 * Files are watched by calling weir__in_force_refresh; nothing waits.
 */
#include "unit/test.h"

#include <pthread.h>
#include <sched.h>

#include "unit/in-force.h"

/* --------------------------------------------------------------- start ---- */

TEST(test_start_with_a_file)
{
    FINALLY(stop) struct host h;
    start_five(&h);
    struct weir__in_force_info info = info_of(&h);
    assert_int_equal(limit_in_force(&h), 5);
    assert_int_equal(strlen(info.hash), 16);
    assert_string_equal(info.source, h.rules);
    assert_string_equal(info.cause, "start");
    assert_fields(info, (since, NOW), (version, 1), (rules, 1), (limits, 1), (guards, 0));
    assert_string_equal(info.problem, "");
    assert_text(&h, FIVE);
    assert_string_equal(heard(&h, NULL), "");
}

TEST(test_start_without_rules)
{
    FINALLY(stop) struct host h;
    name_files(&h);
    start(&h, "", NULL);
    assert_string_equal(info_of(&h).hash, "");
    assert_int_equal(info_of(&h).version, 0);
    assert_text(&h, "");
    assert_true(check(&h, "ip", "192.0.2.7").decision.allowed);
    edit(&h, "deny", "ip", TEXTS("192.0.2.7"), NONE); /* lists work all the same */
    assert_true(is_denied(&h, "192.0.2.7"));
    assert_false(weir__in_force_refresh(h.in_force, NOW));
    assert_fails(weir__in_force_reload(h.in_force, "signal", NOW, NULL, &error), WEIR_INVALID,
                 "no rule file");
}

TEST(test_R6_a_wrong_file_does_not_start)
{
    FINALLY(stop) struct host h;
    char place[400];
    name_files(&h);
    assert_no_start(&h, h.rules, NULL, "No such file");
    stop(&h);
    write_text(h.rules, "");
    assert_no_start(&h, h.rules, NULL, "empty");
    stop(&h);
    write_text(h.rules, WRONG);
    snprintf(place, sizeof(place), "%s:4:", h.rules);
    assert_no_start(&h, h.rules, NULL, place);
    assert_contains(h.told, place);
    assert_contains(h.told, "nam"); /* the second problem too */
    stop(&h);
    assert_no_start(&h, folder, NULL, "not a regular file");
}

/* -------------------------------------------------------------- reload ---- */

TEST(test_R6_reload)
{
    FINALLY(stop) struct host h;
    char json[WEIR__EVENT_MAX + 1], before[17];
    start_five(&h);
    snprintf(before, sizeof(before), "%s", info_of(&h).hash);
    write_text(h.rules, SEVEN);
    assert_ok(weir__in_force_reload(h.in_force, "signal", NOW + S, NULL, NULL));
    assert_int_equal(limit_in_force(&h), 7);
    assert_string_equal(heard(&h, json), "reload");
    assert_contains(json, info_of(&h).hash);
    assert_string_not_equal(before, info_of(&h).hash);
    assert_string_equal(info_of(&h).cause, "signal");
    assert_fields(info_of(&h), (version, 2), (since, NOW + S));
    assert_ok(weir__in_force_reload(h.in_force, "signal", NOW + S, NULL,
                                    NULL)); /* the same once more: somebody wants it */
    assert_string_equal(heard(&h, NULL), "reload");
}

TEST(test_R6_a_bad_reload_changes_nothing)
{
    FINALLY(stop) struct host h;
    char json[WEIR__EVENT_MAX + 1];
    struct weir_error error = { 0 };
    start_five(&h);
    write_text(h.rules, WRONG);
    struct weir__buffer problems = { 0 };
    assert_int_equal(weir__in_force_reload(h.in_force, "signal", NOW + S, &problems, &error),
                     WEIR_INVALID);
    assert_contains(error.text, ":4:");
    weir__buffer_add(&problems, "", 1);
    assert_contains(problems.bytes, "[{\"line\":4,");
    assert_contains(problems.bytes, ",{\"line\":5,");
    weir__buffer_free(&problems);
    assert_int_equal(limit_in_force(&h), 5);
    assert_text(&h, FIVE);
    assert_int_equal(info_of(&h).version, 1);
    assert_contains(info_of(&h).problem, ":4:");
    assert_contains(info_of(&h).problem, "more)");
    assert_int_equal(info_of(&h).problem_at, NOW + S);
    assert_string_equal(heard(&h, json), "reload-failed");
    assert_contains(json, ":4:");
    write_text(h.rules, FIVE);
    assert_ok(weir__in_force_reload(h.in_force, "signal", NOW + S, NULL, &error));
    assert_string_equal(info_of(&h).problem, "");
}

/* Rules that are right, but that the table has no room for. */
TEST(test_R6_rules_that_do_not_fit_change_nothing)
{
    FINALLY(stop) struct host h;
    char text[8192] = "version: 1\nrules:\n";
    FINALLY(weir__buffer_free) struct weir__buffer problems = { 0 };
    struct weir_error error = { 0 };
    start_five(&h);
    for (size_t i = 0; i < 70; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "  - name: r%zu\n    key: \"{ip}\"\n    limit: 1/s\n", i);
    assert_int_equal(weir__in_force_set(h.in_force, text, strlen(text), NOW, &problems, &error),
                     WEIR_NO_MEMORY);
    assert_contains(error.text, "limiters");
    assert_memory_equal(problems.bytes, "[]", 2);
    assert_int_equal(limit_in_force(&h), 5);
    assert_file(h.rules, FIVE);
    write_text(h.rules, text);
    assert_int_equal(weir__in_force_reload(h.in_force, "signal", NOW, NULL, &error),
                     WEIR_NO_MEMORY);
    assert_int_equal(limit_in_force(&h), 5);
}

/* ---------------------------------------------------------------- look ---- */

TEST(test_R6_look)
{
    FINALLY(stop) struct host h;
    start_five(&h);
    for (int i = 0; i < 4; i++)
        assert_false(weir__in_force_refresh(h.in_force, NOW));
    replace_text(h.rules, SEVEN);
    assert_false(weir__in_force_refresh(h.in_force, NOW)); /* somebody may still be writing */
    assert_true(weir__in_force_refresh(h.in_force, NOW + S));
    assert_int_equal(limit_in_force(&h), 7);
    assert_string_equal(info_of(&h).cause, "file");
    assert_string_equal(heard(&h, NULL), "reload");
    assert_false(look_twice(&h));
    replace_text(h.rules, SEVEN); /* the same text is nothing */
    assert_false(look_twice(&h));
    assert_string_equal(heard(&h, NULL), "");
    write_text(h.rules, FIVE);
    assert_true(look_twice(&h));
    assert_int_equal(limit_in_force(&h), 5);
}

TEST(test_R6_a_failed_look_is_told_once)
{
    FINALLY(stop) struct host h;
    start_five(&h);
    static const char *const bad[] = { "", WRONG, NULL };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (bad[i] != NULL)
            write_text(h.rules, bad[i]);
        else
            unlink(h.rules);
        assert_true(look_twice(&h));
        assert_string_equal(heard(&h, NULL), "reload-failed");
        assert_string_not_equal(info_of(&h).problem, "");
        if (bad[i] != NULL)
            replace_text(h.rules, bad[i]); /* touched, but the same */
        assert_false(look_twice(&h));
        assert_false(look_twice(&h));
        assert_string_equal(heard(&h, NULL), "");
        assert_int_equal(limit_in_force(&h), 5);
    }
    write_text(h.rules, FIVE);
    assert_true(look_twice(&h));
    assert_string_equal(info_of(&h).problem, "");
}

/* As a volume of Kubernetes: a link to a folder that is turned over. */
TEST(test_look_follows_links)
{
    FINALLY(stop) struct host h;
    char one[400], two[400];
    name_files(&h);
    snprintf(one, sizeof(one), "%s.one", h.rules);
    snprintf(two, sizeof(two), "%s.two", h.rules);
    write_text(one, FIVE);
    write_text(two, SEVEN);
    assert_int_equal(symlink(one, h.rules), 0);
    start(&h, h.rules, NULL);
    assert_false(look_twice(&h));
    assert_int_equal(unlink(h.rules), 0);
    assert_int_equal(symlink(two, h.rules), 0);
    assert_true(look_twice(&h));
    assert_int_equal(limit_in_force(&h), 7);
}

TEST(test_R3_files_of_lists_are_watched)
{
    FINALLY(stop) struct host h;
    char text[800], list[400];
    name_files(&h);
    snprintf(list, sizeof(list), "%s.txt", h.rules);
    snprintf(text, sizeof(text), "version: 1\nlists:\n  deny: { ip: { file: %s } }\n",
             strrchr(list, '/') + 1);
    write_text(list, "192.0.2.1\n");
    write_text(h.rules, text);
    start(&h, h.rules, NULL);
    assert_true(is_denied(&h, "192.0.2.1"));
    assert_false(look_twice(&h));
    write_text(list, "192.0.2.1\n192.0.2.2\n");
    assert_true(look_twice(&h));
    assert_true(is_denied(&h, "192.0.2.2"));
    assert_int_equal(info_of(&h).entries, 2);
    unlink(list);
    assert_true(look_twice(&h));
    assert_true(is_denied(&h, "192.0.2.2"));
    assert_false(look_twice(&h));
    write_text(list, "192.0.2.3\n"); /* it was missing, and is watched all the same */
    assert_true(look_twice(&h));
    assert_true(is_denied(&h, "192.0.2.3"));
    assert_false(is_denied(&h, "192.0.2.2"));
}

/* -------------------------------------------------------------- by API ---- */

TEST(test_R6_set_is_kept_in_the_file)
{
    FINALLY(stop) struct host h;
    name_files(&h);
    write_text(h.rules, FIVE);
    assert_int_equal(chmod(h.rules, 0640), 0);
    start(&h, h.rules, h.table_path);
    set(&h, SEVEN);
    assert_int_equal(limit_in_force(&h), 7);
    assert_file(h.rules, SEVEN);
    assert_string_equal(heard(&h, NULL), "reload");
    assert_string_equal(info_of(&h).cause, "api");
    assert_string_equal(info_of(&h).source, h.rules);
    assert_false(look_twice(&h)); /* its own writing is no news */
    stop(&h);
    start(&h, h.rules, h.table_path);
    assert_int_equal(limit_in_force(&h), 7);
}

TEST(test_R6_set_without_a_file_is_kept_beside_the_table)
{
    FINALLY(stop) struct host h;
    char kept[400];
    name_files(&h);
    snprintf(kept, sizeof(kept), "%s.rules", h.table_path);
    start(&h, "", h.table_path);
    assert_false(look_twice(&h));
    assert_false(is_there(kept));
    set(&h, SEVEN);
    assert_file(kept, SEVEN);
    stop(&h);
    start(&h, "", h.table_path);
    assert_int_equal(limit_in_force(&h), 7);
    assert_string_equal(info_of(&h).source, kept);
    stop(&h);
    write_text(h.rules, FIVE);
    start(&h, h.rules, h.table_path); /* a file that is named goes before */
    assert_int_equal(limit_in_force(&h), 5);
    stop(&h);
    assert_int_equal(truncate(kept, 0), 0);
    assert_no_start(&h, "", h.table_path, "empty");
}

TEST(test_set_in_memory)
{
    FINALLY(stop) struct host h;
    name_files(&h);
    start(&h, NULL, NULL);
    set(&h, SEVEN);
    assert_int_equal(limit_in_force(&h), 7);
    assert_string_equal(info_of(&h).source, "api");
    assert_text(&h, SEVEN);
    assert_int_equal(weir__in_force_set(h.in_force,
                                        "version: 1\nlists:\n  deny: { ip: { file: x } }\n", 46,
                                        NOW, NULL, NULL),
                     WEIR_INVALID);
    assert_int_equal(limit_in_force(&h), 7);
}

TEST(test_R6_wrong_texts_are_refused_with_all_problems)
{
    FINALLY(stop) struct host h;
    FINALLY(weir__buffer_free) struct weir__buffer problems = { 0 };
    struct weir_error error = { 0 };
    start_five(&h);
    assert_ok(weir__in_force_check(h.in_force, SEVEN, strlen(SEVEN), &problems, &error));
    assert_int_equal(problems.len, 2);
    problems.len = 0;
    assert_int_equal(weir__in_force_set(h.in_force, WRONG, strlen(WRONG), NOW, &problems, &error),
                     WEIR_INVALID);
    weir__buffer_add(&problems, "", 1);
    assert_contains(problems.bytes, "[{\"line\":4,\"column\":12,\"text\":\"");
    assert_contains(problems.bytes, "},{\"line\":5,");
    assert_contains(error.text, ":4:12: ");
    problems.len = 0;
    assert_int_equal(weir__in_force_check(h.in_force, "", 0, &problems, &error), WEIR_INVALID);
    assert_true(problems.len > 2);
    assert_int_equal(limit_in_force(&h), 5);
    assert_file(h.rules, FIVE);
    assert_string_equal(heard(&h, NULL), "");
    assert_string_equal(info_of(&h).problem, ""); /* the sender knows */
}

static void assert_refused(struct host *h, const char *file)
{
    char text[800];
    struct weir_error error = { 0 };

    FINALLY(weir__buffer_free) struct weir__buffer problems = { 0 };
    snprintf(text, sizeof(text), "version: 1\nlists:\n  deny: { ip: { file: %s } }\n", file);
    assert_int_equal(weir__in_force_check(h->in_force, text, strlen(text), &problems, &error),
                     WEIR_INVALID);
    assert_int_equal(weir__in_force_set(h->in_force, text, strlen(text), NOW, &problems, &error),
                     WEIR_INVALID);
    assert_contains(error.text, ":3:");
    assert_contains(error.text, "below");
    weir__buffer_add(&problems, "", 1);
    assert_null(strstr(problems.bytes, "root:"));
}

/* Problems quote the lines of a list's file: a sender of rules is not thereby given all that
 * the server can read. */
TEST(test_R6_lists_of_a_text_that_was_sent_are_near)
{
    FINALLY(stop) struct host h;
    char text[800], far[800], list[400];
    name_files(&h);
    snprintf(list, sizeof(list), "%s.txt", h.rules);
    write_text(list, "192.0.2.1\n");
    snprintf(far, sizeof(far), FIVE "lists:\n  deny: { ip: { file: %s } }\n", list);
    snprintf(text, sizeof(text), SEVEN "lists:\n  deny: { ip: { file: %s } }\n",
             strrchr(list, '/') + 1);
    write_text(h.rules, far); /* in the rule file it may be anywhere */
    start(&h, h.rules, NULL);
    assert_true(is_denied(&h, "192.0.2.1"));
    assert_refused(&h, "/etc/passwd");
    assert_refused(&h, "../x");
    assert_refused(&h, list);
    assert_file(h.rules, far);
    assert_int_equal(limit_in_force(&h), 5);
    set(&h, text);
    assert_int_equal(limit_in_force(&h), 7);
    assert_true(is_denied(&h, "192.0.2.1"));
    write_text(list, "192.0.2.2\n"); /* watched as any other */
    assert_true(look_twice(&h));
    assert_true(is_denied(&h, "192.0.2.2"));
    write_text(h.rules, far);
    assert_ok(weir__in_force_reload(h.in_force, "signal", NOW, NULL, NULL));
}

static void assert_unread(struct host *h, const char *below, const char *name)
{
    char text[800];

    snprintf(text, sizeof(text), "version: 1\nlists:\n  deny: { ip: { file: %s/%s } }\n", below,
             name);
    assert_fails(weir__in_force_set(h->in_force, text, strlen(text), NOW, NULL, &error),
                 WEIR_INVALID, "cannot read the file");
}

/* No part of the name may lead elsewhere: neither the file nor a folder on the way to it. */
TEST(test_R6_lists_of_a_text_that_was_sent_follow_no_links)
{
    struct host h;
    char inner[400], deep[440], list[480], link[480], out[440], text[800];

    name_files(&h);
    snprintf(inner, sizeof(inner), "%s.d", h.rules);
    snprintf(deep, sizeof(deep), "%s/deep", inner);
    snprintf(list, sizeof(list), "%s/list", deep);
    snprintf(link, sizeof(link), "%s/link", deep);
    snprintf(out, sizeof(out), "%s/out", inner);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(mkdir(deep, 0700), 0);
    write_text(list, "192.0.2.1\n");
    assert_int_equal(symlink("list", link), 0);
    assert_int_equal(symlink("deep", out), 0);
    write_text(h.rules, FIVE);
    start(&h, h.rules, NULL);
    const char *below = strrchr(inner, '/') + 1;
    assert_unread(&h, below, "deep/link");
    assert_unread(&h, below, "out/list");
    assert_unread(&h, below, "deep");
    assert_int_equal(limit_in_force(&h), 5);
    snprintf(text, sizeof(text), SEVEN "lists:\n  deny: { ip: { file: .//%s/deep//list } }\n",
             below);
    set(&h, text);
    assert_true(is_denied(&h, "192.0.2.1"));
    stop(&h);
    unlink(out);
    unlink(link);
    unlink(list);
    rmdir(deep);
    rmdir(inner);
}

TEST(test_set_that_cannot_be_kept_is_no_set)
{
    FINALLY(stop) struct host h;
    char inner[400], path[512];
    name_files(&h);
    snprintf(inner, sizeof(inner), "%s.d", h.rules);
    snprintf(path, sizeof(path), "%s/rules", inner);
    assert_int_equal(mkdir(inner, 0700), 0);
    write_text(path, FIVE);
    start(&h, path, NULL);
    unlink(path);
    rmdir(inner);
    assert_fails(weir__in_force_set(h.in_force, SEVEN, strlen(SEVEN), NOW, NULL, &error),
                 WEIR_SYSTEM, path);
    assert_int_equal(limit_in_force(&h), 5);
    assert_text(&h, FIVE);
}

/* ------------------------------------------------------------- threads ---- */

struct visitor {
    struct host *host;
    bool stop;
    int64_t let_in, asked;
};

static void *visit(void *context)
{
    struct visitor *v = context;

    while (!__atomic_load_n(&v->stop, __ATOMIC_RELAXED)) {
        struct weir__in_force_info info;
        v->let_in += !is_denied(v->host, "192.0.2.7");
        __atomic_fetch_add(&v->asked, 1, __ATOMIC_RELAXED);
        weir__in_force_info(v->host->in_force, &info);
    }
    return NULL;
}

/* A client shut out by hand stays out while rules come and go: there is no moment between the
 * rules and the lists. */
RACE(test_R3_nobody_slips_in_during_a_reload)
{
    FINALLY(stop) struct host h;
    pthread_t thread;
    struct visitor v = { .host = &h };
    name_files(&h);
    start(&h, "", NULL);
    set(&h, FIVE);
    edit(&h, "deny", "ip", TEXTS("192.0.2.7"), NONE);
    assert_int_equal(pthread_create(&thread, NULL, visit, &v), 0);
    while (__atomic_load_n(&v.asked, __ATOMIC_RELAXED) == 0)
        sched_yield();
    for (int i = 0; i < 100; i++) {
        set(&h, i % 2 ? FIVE : SEVEN);
        edit(&h, "deny", "ip", TEXTS("203.0.113.1"), TEXTS("203.0.113.2"));
    }
    __atomic_store_n(&v.stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    assert_int_equal(v.let_in, 0);
}

GROUP(make_folder, remove_folder)
