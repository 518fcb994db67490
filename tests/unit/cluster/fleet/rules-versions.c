/* rules-versions.c -- the rules of a fleet in a redis-server, by weir-fleet.h. */
#include "unit/test.h"

#include <signal.h>
#include <stdlib.h>

#include "cluster/fleet/rules-versions.h"
#include "vectors/runner/redis-server.h"
#include "weir-fleet.h"

static struct redis_server server;

static struct weir_redis *begin(void)
{
    struct weir_redis *redis;
    struct weir_error error = { .text = "" };
    char url[160];

    assert_ok(redis_server_start(&server, NULL, &error));
    snprintf(url, sizeof(url), "unix://%s/socket", server.directory);
    assert_ok(weir_redis_create(&redis, url, NULL, &error));
    return redis;
}

static void end(struct weir_redis *redis)
{
    weir_redis_destroy(redis);
    redis_server_stop(&server);
}

static int64_t set(struct weir_redis *redis, const char *text, int64_t base, const char *id)
{
    return weir_fleet_rules_set(redis, NULL,
                                &(struct weir_fleet_change){ .text = text,
                                                             .len = strlen(text),
                                                             .base = base,
                                                             .author = "ann",
                                                             .note = "why not",
                                                             .id = id },
                                NULL);
}

TEST(test_D6_versions_from_c)
{
    struct weir_redis *redis = begin();
    struct weir_fleet_history history;
    struct weir_fleet_version v = { .number = 7 };
    char *text = NULL;

    assert_ok(weir_fleet_history(redis, NULL, &history, NULL));
    assert_fields(history, (newest, 0), (all, 0), (n, 0));
    assert_ok(weir_fleet_rules_get(redis, NULL, 0, &v, NULL, NULL));
    assert_int_equal(v.number, 0);
    assert_int_equal(set(redis, "one", 0, NULL), 1);
    assert_int_equal(set(redis, "two", 1, NULL), 2);
    assert_ok(weir_fleet_rules_get(redis, "default", 0, &v, &text, NULL));
    assert_fields(v, (number, 2), (origin, 0), (bytes, 3));
    assert_string_equal(text, "two");
    assert_string_equal(v.author, "ann");
    assert_string_equal(v.note, "why not");
    assert_true(v.time > 0 && v.edit > 0);
    free(text);
    assert_int_equal(weir_fleet_rollback(redis, NULL, 1, "bob", NULL, NULL), 3);
    assert_ok(weir_fleet_history(redis, NULL, &history, NULL));
    assert_fields(history, (newest, 3), (all, 3), (n, 3));
    assert_string_equal(history.stage, "");
    assert_fields(history.versions[0], (number, 3), (origin, 1), (bytes, 3));
    assert_string_equal(history.versions[0].author, "bob");
    assert_ok(weir_fleet_rules_get(redis, NULL, -1, &v, &text, NULL));
    assert_string_equal(text, "one");
    free(text);
    assert_ok(weir_fleet_history(redis, "another", &history, NULL));
    assert_int_equal(history.newest, 0);
    end(redis);
}

static void report(struct weir_redis *redis, const char *node, const char *runs,
                   const char *refused, const char *why)
{
    const struct weir__text words[] = { WEIR__VERSIONS_TEXT("poll"), WEIR__VERSIONS_TEXT(node),
                                        WEIR__VERSIONS_TEXT(runs), WEIR__VERSIONS_TEXT(refused),
                                        WEIR__VERSIONS_TEXT(why) };
    struct weir__buffer reply = { 0 };
    struct weir__versions_list list;

    assert_ok(weir__rules_call(redis, NULL, words, 5, &reply, &list, NULL));
    weir__buffer_free(&reply);
}

TEST(test_D6_nodes_and_status_from_c)
{
    struct weir_redis *redis = begin();
    struct weir_fleet_status status;
    struct weir_fleet_node nodes[4] = { { .name = "untouched" } };

    assert_int_equal(weir_fleet_nodes(redis, NULL, NULL, 0, NULL), 0);
    assert_ok(weir_fleet_status(redis, NULL, &status, NULL));
    assert_fields(status, (newest, 0), (nodes, 0), (silent, 0));
    assert_int_equal(set(redis, "one", 0, NULL), 1);
    assert_int_equal(set(redis, "two", 1, NULL), 2);
    report(redis, "node-1", "2", "0", "");
    report(redis, "node-2", "1", "2", "line 7: no");
    assert_int_equal(weir_fleet_nodes(redis, NULL, nodes, 1, NULL), 2);
    assert_int_equal(nodes[1].runs, 0);
    assert_int_equal(weir_fleet_nodes(redis, NULL, nodes, 4, NULL), 2);
    const struct weir_fleet_node *bad = &nodes[strcmp(nodes[0].name, "node-2") != 0];
    assert_string_equal(bad->name, "node-2");
    assert_string_equal(bad->why, "line 7: no");
    assert_fields(*bad, (follows, true), (runs, 1), (refused, 2), (member, false), (part, 0));
    assert_true(bad->heard >= 0 && bad->heard < 600 * WEIR_SECOND);
    assert_ok(weir_fleet_status(redis, "default", &status, NULL));
    assert_fields(status, (newest, 2), (all, 2), (nodes, 2), (current, 1), (refused, 1));
    assert_string_equal(status.stage, "");
    assert_int_equal(weir_fleet_nodes(redis, "a b", nodes, 4, NULL), WEIR_INVALID);
    assert_int_equal(weir_fleet_status(redis, "a b", &status, NULL), WEIR_INVALID);
    end(redis);
}

/* Nobody overwrites another's change unnoticed, and a repeat makes no second version. */
TEST(test_D6_two_editors_from_c)
{
    struct weir_redis *redis = begin();
    struct weir_fleet_version v;
    struct weir_error error = { .text = "" };

    assert_int_equal(set(redis, "one", 0, "first"), 1);
    assert_int_equal(set(redis, "one", 0, "first"), 1);
    assert_int_equal(set(redis, "two", 0, NULL), WEIR_EXISTS);
    assert_int_equal(set(redis, "two", 1, "second"), 2);
    assert_int_equal(set(redis, "three", 1, "third"), WEIR_EXISTS);
    assert_int_equal(set(redis, "two", 1, "second"), 2);
    assert_ok(weir_fleet_rules_get(redis, NULL, 0, &v, NULL, NULL));
    struct weir_fleet_change change = {
        .text = "four", .len = 4, .base = 2, .base_edit = v.edit + 1
    };
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, &error), WEIR_EXISTS);
    assert_non_null(strstr(error.text, "another than the one"));
    change.base_edit = v.edit;
    change.stage = "node-1";
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, &error), WEIR_INVALID);
    assert_non_null(strstr(error.text, "no node node-1 follows"));
    report(redis, "node-1", "2", "0", "");
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, &error), 3);
    struct weir_fleet_history history;
    assert_ok(weir_fleet_history(redis, NULL, &history, NULL));
    assert_fields(history, (newest, 3), (all, 2));
    assert_string_equal(history.stage, "node-1");
    assert_int_equal(weir_fleet_publish(redis, NULL, 2, &error), WEIR_EXISTS);
    report(redis, "node-1", "2", "3", "line 7: no");
    assert_int_equal(weir_fleet_publish(redis, NULL, 3, &error), WEIR_INVALID);
    assert_non_null(strstr(error.text, "has refused version 3"));
    report(redis, "node-1", "3", "0", "");
    assert_ok(weir_fleet_publish(redis, NULL, 3, &error));
    assert_ok(weir_fleet_publish(redis, NULL, 3, &error)); /* again */
    assert_ok(weir_fleet_history(redis, NULL, &history, NULL));
    assert_fields(history, (newest, 3), (all, 3));
    assert_string_equal(history.stage, "");
    end(redis);
}

/* An id that was used for another change makes nothing a repeat; nor does an empty one. */
TEST(test_D6_an_id_is_of_one_change)
{
    struct weir_redis *redis = begin();
    static const char *const ids[] = { "id", "" };

    for (int64_t i = 0; i < 2; i++) {
        int64_t n = 3 * i;
        assert_int_equal(set(redis, "one", n, ids[i]), n + 1);
        assert_int_equal(set(redis, "two", n, ids[i]), WEIR_EXISTS);
        assert_int_equal(set(redis, "two", n + 1, ids[i]), n + 2);
        assert_int_equal(set(redis, "three", n + 2, ids[i]), n + 3);
    }
    end(redis);
}

/* A deployment that runs each night has nothing to say; but the text comes to nodes that do not
 * have it, and a rollback is always one. */
TEST(test_D6_the_same_text_is_no_change)
{
    struct weir_redis *redis = begin();
    struct weir_fleet_change change = { .text = "one", .len = 3, .base = 1 };
    struct weir_fleet_history history;
    char warning[WEIR__RULES_WARNING];

    assert_int_equal(set(redis, "one", 0, NULL), 1);
    assert_int_equal(set(redis, "one", 1, NULL), 1);
    assert_int_equal(set(redis, "one", 1, "id"), 1);
    assert_int_equal(set(redis, "one", 0, NULL), WEIR_EXISTS);
    report(redis, "a", "1", "0", "");
    report(redis, "b", "1", "0", "");
    change.stage = "a"; /* which runs it */
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, NULL), 1);
    change.text = "two";
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, NULL), 2);
    change.base = 2;
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, NULL), 2);
    change.stage = "b";
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, NULL), 3);
    assert_int_equal(set(redis, "two", 3, NULL), 4);
    assert_ok(weir_fleet_history(redis, NULL, &history, NULL));
    assert_fields(history, (newest, 4), (all, 4), (n, 4));
    assert_int_equal(weir_fleet_rollback(redis, NULL, 4, NULL, NULL, NULL), 5);
    change.base = 5;
    change.text = "six";
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, NULL), 6);
    report(redis, "b", "5", "6", "no such timezone"); /* it may try again, and still nobody else */
    change.base = 6;
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, NULL), 7);
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, NULL), WEIR_EXISTS);
    assert_ok(weir__rules_publish(redis, NULL, 7, warning, NULL));
    assert_string_equal(
        warning, "its stage b has not told that it runs version 7: no node may have tried it");
    assert_ok(weir__rules_publish(redis, NULL, 7, warning, NULL)); /* again */
    assert_string_equal(warning, "");
    change.base = 7;
    change.text = "sev";
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, NULL), 8);
    report(redis, "b", "8", "0", "");
    assert_ok(weir__rules_publish(redis, NULL, 8, warning, NULL));
    assert_string_equal(warning, "");
    end(redis);
}

TEST(test_D6_wrong_words_from_c)
{
    struct weir_redis *redis = begin();
    struct weir_fleet_history history;
    char *large = calloc(1, WEIR__VERSIONS_TEXT_MAX + 1);
    struct weir_fleet_change change = { .text = large, .len = WEIR__VERSIONS_TEXT_MAX + 1 };

    assert_int_equal(weir_fleet_history(redis, "a b", &history, NULL), WEIR_INVALID);
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, NULL), WEIR_INVALID);
    change = (struct weir_fleet_change){ .text = "x", .len = 1, .stage = "a b" };
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, NULL), WEIR_INVALID);
    change = (struct weir_fleet_change){ .text = "x", .len = 1, .base = -1 };
    assert_int_equal(weir_fleet_rules_set(redis, NULL, &change, NULL), WEIR_INVALID);
    assert_int_equal(weir_fleet_rollback(redis, NULL, 0, NULL, NULL, NULL), WEIR_INVALID);
    assert_int_equal(weir_fleet_rollback(redis, NULL, 1, NULL, NULL, NULL), WEIR_INVALID);
    assert_int_equal(weir_fleet_publish(redis, NULL, 0, NULL), WEIR_INVALID);
    assert_int_equal(weir_fleet_publish(redis, NULL, 1, NULL), WEIR_EXISTS);
    assert_ok(weir_fleet_history(redis, NULL, &history, NULL));
    assert_int_equal(history.newest, 0);
    free(large);
    end(redis);
}

/* Redis keeps the last 50; a history never overflows. */
TEST(test_D6_a_long_history_from_c)
{
    struct weir_redis *redis = begin();
    struct weir_fleet_history history;

    for (int64_t i = 0; i < 120; i++)
        assert_int_equal(set(redis, i % 2 ? "text" : "other", i, NULL), i + 1);
    assert_ok(weir_fleet_history(redis, NULL, &history, NULL));
    assert_true(history.n >= 50 && history.n <= WEIR_FLEET_VERSIONS);
    assert_int_equal(history.versions[0].number, 120);
    assert_int_equal(weir_fleet_rollback(redis, NULL, 1, NULL, NULL, NULL), WEIR_INVALID);
    end(redis);
}

TEST(test_D6_a_stopped_redis_from_c)
{
    struct weir_redis *redis = begin();
    struct weir_fleet_history history;
    struct weir_error error = { .text = "" };

    assert_int_equal(set(redis, "one", 0, NULL), 1);
    kill(server.pid, SIGSTOP);
    assert_int_equal(weir_fleet_history(redis, NULL, &history, &error), WEIR_SYSTEM);
    assert_int_equal(set(redis, "two", 1, "again"), WEIR_SYSTEM);
    kill(server.pid, SIGCONT);
    int64_t version;
    while ((version = set(redis, "two", 1, "again")) == WEIR_SYSTEM)
        continue;
    assert_int_equal(version, 2); /* whether the first was carried out or not */
    assert_ok(weir_fleet_history(redis, NULL, &history, &error));
    assert_int_equal(history.newest, 2);
    end(redis);
}
