/* rules-in-force.c -- rules that change while a server runs: by file, by signal, by API; what is
 * told, what is kept, and what a failure leaves.
 *
 * Files are watched by calling weir__in_force_refresh; nothing waits.
 */
#include "unit/test.h"

#include "unit/fixture.h"

#include <pthread.h>
#include <sched.h>

#include "server/serve/rules/rules-in-force.h"

#define TEXTS(...) \
    (const char *const[]){ __VA_ARGS__ }, COUNT_OF(((const char *const[]){ __VA_ARGS__ }))
#define NONE      NULL, 0
#define EDIT(...) (&(struct weir_list_edit){ __VA_ARGS__ })
#define FIVE      "version: 1\nrules:\n  - name: all\n    limit: 5/60\n"
#define SEVEN     "version: 1\nrules:\n  - name: all\n    limit: 7/60\n"
#define WRONG     "version: 1\nrules:\n  - name: all\n    limit: lots\n  - nam: x\n    limit: 1/s\n"
#define VIPS                                                                                \
    "version: 1\nrules:\n  - name: all\n    match: { account: { list: vip } }\n    limit: " \
    "5/60\nlists:\n  vip: { account: [ann] }\n"

/* A server's worth of it: a table, an engine, events, the rules in force. */
struct host {
    struct weir_table *table;
    struct weir *engine;
    struct weir__events *events;
    struct weir__in_force *in_force;
    uint64_t heard;
    char rules[320], table_path[320];
    char told[4096]; /* problems at the start */
};

static int try_start(struct host *h, const char *rules, const char *beside,
                     struct weir_error *error)
{
    h->table = table_with(&(struct weir_table_options){ .keys = 1024, .limiters = 64 });
    assert_ok(weir_create(&h->engine, &(struct weir_options){ .table = h->table }, NULL));
    h->events = weir__events_create();
    assert_non_null(h->events);
    FILE *told = fmemopen(h->told, sizeof(h->told), "w");
    struct weir__in_force_options options = { .engine = h->engine,
                                              .events = h->events,
                                              .rules = rules,
                                              .beside = beside,
                                              .problems = &(struct weir__problems){ .out = told } };
    int code = weir__in_force_create(&h->in_force, &options, NOW, error);
    fclose(told);
    return code;
}

static void start(struct host *h, const char *rules, const char *beside)
{
    struct weir_error error = { 0 };

    h->heard = 0;
    if (try_start(h, rules, beside, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static void stop(struct host *h)
{
    weir__in_force_destroy(h->in_force);
    weir__events_destroy(h->events);
    weir_destroy(h->engine);
    weir_table_destroy(h->table);
    h->in_force = NULL;
    h->told[0] = '\0';
}

static void name_files(struct host *h)
{
    *h = (struct host){ 0 };
    snprintf(h->rules, sizeof(h->rules), "%s", new_path());
    snprintf(h->table_path, sizeof(h->table_path), "%s", new_path());
}

/* Each time at a later moment: two that follow each other within a tick of the kernel's clock would
 * have the same. */
static void write_text(const char *path, const char *text)
{
    static time_t moment = 1000000000;
    struct timespec times[2] = { { .tv_sec = moment }, { .tv_sec = moment } };
    FILE *file = fopen(path, "w");

    moment++;
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void start_five(struct host *h)
{
    name_files(h);
    write_text(h->rules, FIVE);
    start(h, h->rules, NULL);
}

/* Another file in its place, as editors do. */
static void replace_text(const char *path, const char *text)
{
    char other[400];

    snprintf(other, sizeof(other), "%s~", path);
    write_text(other, text);
    assert_int_equal(rename(other, path), 0);
}

static void assert_file(const char *path, const char *wanted)
{
    char got[1024] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    (void)fread(got, 1, sizeof(got) - 1, file);
    fclose(file);
    assert_string_equal(got, wanted);
}

static struct weir__in_force_info info_of(struct host *h)
{
    struct weir__in_force_info info;

    weir__in_force_info(h->in_force, &info);
    return info;
}

/* "reload reload-failed" since it was asked last; the last one as JSON in `json`. */
static const char *heard(struct host *h, char json[WEIR__EVENT_MAX + 1])
{
    static char names[256];
    enum weir__event_kind kind;

    FINALLY(weir__buffer_free) struct weir__buffer line = { 0 };
    uint64_t lost;
    for (names[0] = '\0'; weir__events_next(h->events, &h->heard, &kind, &line, &lost);
         line.len = 0) {
        size_t len = strlen(names);
        snprintf(names + len, sizeof(names) - len, "%s%s", len ? " " : "", weir__event_name(kind));
        if (json != NULL)
            snprintf(json, WEIR__EVENT_MAX + 1, "%.*s", (int)line.len, line.bytes);
    }
    return names;
}

static struct weir_ruling check(struct host *h, const char *name, const char *value)
{
    struct weir_attr attr = { .name = name, .value = value };
    struct weir_ask peek = { .cost = 0, .now = NOW };
    struct weir_ruling ruling;

    weir_check(h->engine, &attr, 1, &peek, &ruling);
    return ruling;
}

/* The limit in force; 0: none. */
static int64_t limit_in_force(struct host *h)
{
    return check(h, "account", "ann").count;
}

static bool is_denied(struct host *h, const char *ip)
{
    return check(h, "ip", ip).decision.reason == WEIR_DENIED;
}

static void assert_text(struct host *h, const char *wanted)
{
    FINALLY(weir__buffer_free) struct weir__buffer text = { 0 };
    weir__in_force_text(h->in_force, &text);
    assert_int_equal(text.len, strlen(wanted));
    if (text.len > 0)
        assert_memory_equal(text.bytes, wanted, text.len);
}

static void set(struct host *h, const char *text)
{
    struct weir_error error = { 0 };

    if (weir__in_force_set(h->in_force, text, strlen(text), NOW + S, NULL, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static void edit(struct host *h, const char *list, const char *attribute, const char *const *add,
                 size_t adds, const char *const *remove, size_t removes)
{
    struct weir_error error = { 0 };

    if (weir__in_force_list_edit(h->in_force, EDIT(list, attribute, add, adds, remove, removes),
                                 NOW, NULL, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static void assert_lists(struct host *h, const char *wanted)
{
    FINALLY(weir__buffer_free) struct weir__buffer json = { 0 };
    weir__in_force_lists(h->in_force, &json);
    weir__buffer_add(&json, "", 1);
    assert_string_equal(json.bytes, wanted);
}

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

static void assert_no_start(struct host *h, const char *rules, const char *beside, const char *says)
{
    struct weir_error error = { 0 };

    assert_int_not_equal(try_start(h, rules, beside, &error), WEIR_OK);
    assert_null(h->in_force);
    assert_contains(error.text, says);
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

static bool look_twice(struct host *h)
{
    bool first = weir__in_force_refresh(h->in_force, NOW + 2 * S);

    return weir__in_force_refresh(h->in_force, NOW + 3 * S) || first;
}

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

/* --------------------------------------------------------------- lists ---- */

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

TEST(test_R3_two_servers_edit_at_once)
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
TEST(test_R3_nobody_slips_in_during_a_reload)
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
