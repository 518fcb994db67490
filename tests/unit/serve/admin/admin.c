/* admin.c -- what an operator can ask of the server: every row, with what is right and with what is
 * not; every answer one strict JSON text. */
#include "unit/test.h"

#include "unit/bare-server.h"
#include "unit/no-settings.h"

#include "server/serve/admin/admin.h"
#include "server/serve/decide/waiting.h"
#include "wire/json.h"

static const char rules_text[] =
    "version: 1\n"
    "lists:\n"
    "  allow: { ip: [10.0.0.0/8] }\n"
    "  office: { account: [ann, bob] }\n"
    "rules:\n"
    "- { name: per-ip, key: \"{ip}\", limit: 2/60, ban: { refusals: 100/60, for: 10m } }\n"
    "- { name: nets, match: { uri: /net }, key: \"{ip/24}\", limit: 5/60 }\n"
    "- { name: login, match: { uri: /login }, key: \"{account}\", limit: [3/60, 100/3600], mode: "
    "shadow }\n";

/* ----------------------------------------------------------------- server ---- */

static struct weir__settings settings;
static char rules_path[300];

static void write_rules(const char *text)
{
    FILE *file = fopen(rules_path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int start(void **state)
{
    struct weir_error error = { 0 };

    snprintf(rules_path, sizeof(rules_path), "%s/rules.yaml", folder);
    write_rules(rules_text);
    settings = no_settings;
    settings.resp = "127.0.0.1:7379,/run/weir.sock";
    settings.http = "127.0.0.1:7380";
    settings.admin_token = "not to be seen";
    settings.rules = rules_path;
    open_server(private_table(false, 1000));
    server.settings = &settings;
    server.started = NOW - 90 * S;
    server.guards = weir__guards_create(server.table);
    server.lines = weir__lines_create(&server);
    assert_true(server.guards && server.lines);
    struct weir__in_force_options options = { .engine = server.engine,
                                              .events = server.events,
                                              .rules = rules_path };
    if (weir__in_force_create(&server.in_force, &options, NOW, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    return 0;
}

static int stop(void **state)
{
    weir__in_force_destroy(server.in_force);
    weir__lines_destroy(server.lines);
    weir__guards_destroy(server.guards);
    close_server();
    return 0;
}

/* ------------------------------------------------------------------ calls ---- */

#define WORDS_MAX 200

static struct weir__buffer answered;
static struct weir__verb_call last;

static bool go_on(void *context, const struct weir__json_value *v)
{
    return true;
}

/* As a strict reader sees it. */
static void assert_json(const char *text, size_t len)
{
    const char *what;
    long at = weir__json_walk(text, len, NULL, go_on, NULL, &what);

    if (at >= 0)
        fail_msg("%.*s: at %ld: %s was expected", (int)len, text, at, what);
}

static void assert_message(void)
{
    assert_true(last.message[0] != '\0');
    for (const unsigned char *c = (const unsigned char *)last.message; *c; c++)
        assert_true(*c >= ' ' && *c != 0x7f);
}

/* Every word is a block of its own, with nothing behind it, so that a step too far is seen by a
 * sanitizer. */
static int run_spans(const struct weir__verb *row, const struct weir__text *words, size_t n)
{
    struct weir__text own[WORDS_MAX] = { { 0 } };

    weir__buffer_free(&answered);
    weir__call_begin(&last, row, NULL, false);
    last.server = &server;
    last.now = NOW;
    for (size_t i = 0; i < n; i++) {
        own[i] = (struct weir__text){ malloc(words[i].len + (words[i].len == 0)), words[i].len };
        memcpy((char *)own[i].bytes, words[i].bytes, words[i].len);
    }
    bool good = weir__call_words(&last, own, n) && weir__call_keep(&last);
    for (size_t i = 0; i < n; i++)
        free((char *)own[i].bytes);
    if (good)
        row->run(&last);
    answered = last.out;
    last.out = (struct weir__buffer){ 0 };
    weir__call_end(&last);
    assert_false(answered.failed);
    if (last.status == 200 || answered.len > 0)
        assert_json(answered.bytes, answered.len);
    if (last.status != 200)
        assert_message();
    return last.status;
}

/* "WEIR.BAN per-ip 192.0.2.7 10m"; a word "_" is empty. */
static int run(const char *line)
{
    struct weir__text words[WORDS_MAX];
    size_t n = 0, command = strcspn(line, " ");
    const struct weir__verb *row = weir__verb_by_command(line, command);

    assert_non_null(row);
    for (const char *at = line + command; *at;) {
        at++;
        words[n++] = (struct weir__text){ at, strcspn(at, " ") };
        at += words[n - 1].len;
        if (words[n - 1].len == 1 && words[n - 1].bytes[0] == '_')
            words[n - 1].len = 0;
    }
    return run_spans(row, words, n);
}

static int run_text(const char *command, const char *text, size_t len)
{
    return run_spans(weir__verb_by_command(command, strlen(command)),
                     &(struct weir__text){ text, len }, 1);
}

static void good(const char *line)
{
    if (run(line) != 200)
        fail_msg("%s: %d %s", line, last.status, last.message);
}

static void bad(const char *line, int status, const char *says)
{
    if (run(line) != status)
        fail_msg("%s: %d %s", line, last.status, last.message);
    assert_contains(last.message, says);
    assert_int_equal(answered.len, 0);
}

/* ---------------------------------------------------------------- answers ---- */

struct search {
    const char *path;
    char found[1024];
    bool is;
};

static bool look(void *context, const struct weir__json_value *v)
{
    struct search *s = context;

    if (v->path_len != strlen(s->path) || memcmp(v->path, s->path, v->path_len) != 0)
        return true;
    snprintf(s->found, sizeof(s->found), "%.*s", (int)v->len, v->text);
    s->is = true;
    return false;
}

static const char *value_in(const char *json, size_t len, const char *path)
{
    static struct search s;
    static char scratch[WEIR__EVENTS_KEPT * WEIR__EVENT_MAX];
    const char *what;

    s = (struct search){ .path = path };
    assert_true(len <= sizeof(scratch));
    weir__json_walk(json, len, scratch, look, &s, &what);
    return s.is ? s.found : NULL;
}

static void answer_has(const char *const *pairs)
{
    for (; *pairs; pairs += 2) {
        const char *got = value_in(answered.bytes, answered.len, pairs[0]);
        if (got == NULL || strcmp(got, pairs[1]) != 0)
            fail_msg("%s is %s and not %s in %.*s", pairs[0], got ? got : "missing", pairs[1],
                     (int)answered.len, answered.bytes);
    }
}

/* Path, value, path, value, ... */
#define answers(...) answer_has((const char *const[]){ __VA_ARGS__, NULL })

static void answers_not(const char *path)
{
    assert_null(value_in(answered.bytes, answered.len, path));
}

/* A member of the newest event of the kind; NULL: there is none. */
static const char *event_of(enum weir__event_kind wanted, const char *path)
{
    static char newest[WEIR__EVENT_MAX + 1];
    struct weir__buffer json = { 0 };
    enum weir__event_kind kind;
    uint64_t after = 0, lost;

    newest[0] = '\0';
    for (; weir__events_next(server.events, &after, &kind, &json, &lost); json.len = 0)
        if (kind == wanted)
            snprintf(newest, sizeof(newest), "%.*s", (int)json.len, json.bytes);
    weir__buffer_free(&json);
    return newest[0] ? value_in(newest, strlen(newest), path) : NULL;
}

static void told(enum weir__event_kind kind, const char *path, const char *wanted)
{
    const char *got = event_of(kind, path);

    if (got == NULL || strcmp(got, wanted) != 0)
        fail_msg("event %s has %s: %s and not %s", weir__event_name(kind), path,
                 got ? got : "nothing", wanted);
}

/* ------------------------------------------------------------------- rows ---- */

static const struct weir__schema *schema_of(const char *name)
{
    const struct weir__schema *s = weir__schemas;

    while (s->name && strcmp(s->name, name) != 0)
        s++;
    return s->name ? s : NULL;
}

static const struct weir__verb *by_path(const char *method, const char *path, bool *known)
{
    return weir__verb_by_path((struct weir__text){ method, strlen(method) },
                              (struct weir__text){ path, strlen(path) }, known);
}

TEST(test_S6_rows_are_sound)
{
    bool known;

    for (const struct weir__verb *row = weir__verbs; row->summary; row++) {
        bool words = false, optional = false;
        assert_true(row->summary[0] && (row->command || row->path));
        assert_true(row->run || (!row->path || row->http));
        assert_true(row->run || (!row->command || row->resp));
        assert_true(row->how != WEIR__VERB_AWAY || row->role != WEIR__ROLE_NONE);
        assert_true((row->arity != 0) == (row->command && !row->run && !row->id) ||
                    row->args[0].name == NULL);
        if (row->command) /* no name is there twice */
            assert_ptr_equal(weir__verb_by_command(row->command, strlen(row->command)), row);
        if (row->path)
            assert_ptr_equal(by_path(row->method ? row->method : "GET", row->path, &known), row);
        if (row->path && row->answer[0] >= 'A' && row->answer[0] <= 'Z' &&
            strcmp(row->answer, "Settings") != 0)
            assert_non_null(schema_of(row->answer));
        for (const struct weir__arg *a = row->args; a->name; a++) {
            bool chosen = a->kind == WEIR__ARG_CHOICE || a->kind == WEIR__ARG_UNIT ||
                          a->kind == WEIR__ARG_SWITCH;
            assert_true(chosen == (a->choices != NULL) || a->kind == WEIR__ARG_COUNT);
            assert_true(a->word || a->kind == WEIR__ARG_ATTRIBUTES || !words);
            if (a->word == NULL && a->needed) /* those that may be missing are last */
                assert_false(optional);
            optional = optional || (a->word == NULL && !a->needed);
            words = words || a->word;
        }
    }
}

/* Every name in a type leads to a schema. */
TEST(test_S6_schemas_are_sound)
{
    for (const struct weir__schema *s = weir__schemas; s->name; s++)
        for (const struct weir__field *f = s->fields; f->name; f++) {
            char name[64] = "";
            sscanf(f->type + (f->type[0] == '['), "%63[A-Za-z]", name);
            if (name[0] >= 'A' && name[0] <= 'Z' && schema_of(name) == NULL)
                fail_msg("%s.%s: there is no schema %s", s->name, f->name, name);
        }
}

TEST(test_S6_rows_are_found)
{
    bool known;

    assert_string_equal(weir__verb_by_command("weir.bans", 9)->command, "WEIR.BANS");
    assert_null(weir__verb_by_command("WEIR.BANSX", 10));
    assert_null(weir__verb_by_command("WEIR.BAN\0", 9));
    assert_null(weir__verb_by_command("", 0));
    assert_null(by_path("PATCH", "/v1/bans", &known));
    assert_true(known);
    assert_null(by_path("get", "/v1/bans", &known)); /* methods have a case */
    assert_true(known);
    assert_null(by_path("GET", "/v1/bansx", &known));
    assert_false(known);
    assert_string_equal(by_path("DELETE", "/v1/bans", &known)->command, "WEIR.UNBAN");
}

/* Whatever is sent, the answer is a strict JSON text or one line that says what is wrong. */
TEST_WITH(test_S6_rows_take_anything, start, stop)
{
    static char long_text[100000];
    const struct weir__text odd[] = { { "", 0 },
                                      { "\0", 1 },
                                      { "per-ip", 6 },
                                      { "per-ip\0", 7 },
                                      { "*", 1 },
                                      { "\xff\xfe\x80", 3 },
                                      { "allow", 5 },
                                      { "ip", 2 },
                                      { "\r\n\x1b[31m\"\\{}", 11 },
                                      { "10m", 3 },
                                      { "99999999999999999999", 20 },
                                      { "-1", 2 },
                                      { "off", 3 },
                                      { long_text, sizeof(long_text) } };
    uint64_t seed = 4;

    memset(long_text, 'x', sizeof(long_text));
    for (const struct weir__verb *row = weir__verbs; row->summary; row++) {
        for (int i = 0; row->command && row->how == WEIR__VERB_AWAY && i < 300; i++) {
            struct weir__text words[8];
            size_t n = random64(&seed) % 8;
            for (size_t k = 0; k < n; k++)
                words[k] = odd[random64(&seed) % COUNT_OF(odd)];
            int status = run_spans(row, words, n);
            assert_true(status == 200 || status == 400 || status == 404 || status == 422);
        }
    }
}

TEST_WITH(test_S6_what_is_missing_is_said, start, stop)
{
    bad("WEIR.BAN", 400, "rule is missing");
    bad("WEIR.BAN per-ip", 400, "key is missing");
    bad("WEIR.BAN per-ip 192.0.2.7", 400, "for is missing");
    bad("WEIR.UNBAN per-ip", 400, "key is missing");
    bad("WEIR.MODE", 400, "mode is missing");
    bad("WEIR.LIST.ADD", 400, "list is missing");
    bad("WEIR.LIST.ADD allow", 400, "attribute is missing");
    bad("WEIR.LIST.ADD allow ip", 400, "entries are missing");
    bad("WEIR.RESET", 400, "rule is missing");
    bad("WEIR.RULES.SET", 400, "missing");
    bad("WEIR.EXPLAIN ip", 400, "'ip' has no value");
    bad("WEIR.EXPLAIN _ 1", 400, "the name of an attribute is empty");
}

/* ----------------------------------------------------------------- status ---- */

TEST_WITH(test_S6_status, start, stop)
{
    char number[24];

    server.connections = 3;
    weir__counter_add(&loops[0].counters, WEIR__COUNT_CHECK_ALLOWED, 40);
    weir__counter_add(&loops[1].counters, WEIR__COUNT_CHECK_ALLOWED, 2);
    good("WEIR.STATUS");
    snprintf(number, sizeof(number), "%d", (int)getpid());
    answers("version", WEIR_VERSION, "pid", number, "now", "1970-01-01T00:16:40.000Z", "started",
            "1970-01-01T00:15:10.000Z", "uptime_ms", "90000", "threads", "2", "connections", "3",
            "draining", "false", "memory", "true", "addresses.resp.0", "127.0.0.1:7379",
            "addresses.resp.1", "/run/weir.sock", "addresses.http.0", "127.0.0.1:7380",
            "rules.rules", "3", "rules.limits", "4", "rules.source", rules_path, "rules.problem",
            "null", "modes.by_hand", "null", "modes.rules_by_hand", "0", "table.file", "null",
            "table.keys", "0", "totals.check_allowed", "42", "checks.checked", "0");
    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.7", NOW), 2);
    good("WEIR.STATUS");
    answers("checks.checked", "5", "checks.refused", "3");
    server.draining = 1;
    good("WEIR.STATUS");
    answers("draining", "true");
}

TEST_WITH(test_S6_settings_hide_secrets, start, stop)
{
    good("WEIR.SETTINGS");
    assert_null(memmem(answered.bytes, answered.len, "not to be seen", 14));
    answers("rules", rules_path);
}

TEST_WITH(test_S6_top, start, stop)
{
    good("WEIR.TOP");
    answers_not("top.0.key");
    for (int i = 0; i < 5; i++)
        weir__top_add(server.top, 0, "per-ip", "192.0.2.7", 9, 1);
    weir__top_add(server.top, 1, "per-ip", "192.0.2.8", 9, 1);
    good("WEIR.TOP 1");
    answers("top.0.rule", "per-ip", "top.0.key", "192.0.2.7", "top.0.refused", "5");
    answers_not("top.1.key");
    bad("WEIR.TOP 0", 400, "a whole number from 1 to 1000, not '0'");
    bad("WEIR.TOP _", 400, "whole number");
    bad("WEIR.TOP 1001", 400, "whole number");
    bad("WEIR.TOP 18446744073709551617", 400, "whole number");
    bad("WEIR.TOP ten", 400, "'ten'");
}

TEST_WITH(test_S6_events, start, stop)
{
    char line[64];
    uint64_t before = weir__events_latest(server.events);

    good("WEIR.MODE shadow per-ip");
    good("WEIR.MODE off");
    snprintf(line, sizeof(line), "WEIR.EVENTS %llu", (unsigned long long)before);
    good(line);
    answers("0.event", "mode", "0.rule", "per-ip", "0.mode", "shadow", "1.mode", "off");
    answers_not("1.rule");
    answers_not("2.event");
    snprintf(line, sizeof(line), "WEIR.EVENTS %llu", (unsigned long long)before + 2);
    good(line);
    assert_int_equal(answered.len, 2); /* [] */
    for (int i = 0; i < WEIR__EVENTS_KEPT + 10; i++)
        weir__events_emit(server.events, WEIR__EVENT_STOP, NOW, NULL);
    good("WEIR.EVENTS");
    snprintf(line, sizeof(line), "%d.event", WEIR__EVENTS_KEPT - 1);
    answers(line, "stop");
    snprintf(line, sizeof(line), "%d.event", WEIR__EVENTS_KEPT);
    answers_not(line);
    bad("WEIR.EVENTS -1", 400, "'-1'");
    bad("WEIR.EVENTS 1x", 400, "'1x'");
}

/* ------------------------------------------------------------------ rules ---- */

static const char one_rule[] = "version: 1\nrules:\n- { name: only, key: \"{ip}\", limit: 7/60 }\n";

TEST_WITH(test_S6_rules_are_shown, start, stop)
{
    good("WEIR.RULES");
    answers("text", rules_text, "cause", "start", "version", "1", "problem_at", "null");
    assert_int_equal(strlen(value_in(answered.bytes, answered.len, "hash")), 16);
}

TEST_WITH(test_S6_rules_set, start, stop)
{
    char hash[32];

    good("WEIR.RULES");
    snprintf(hash, sizeof(hash), "%s", value_in(answered.bytes, answered.len, "hash"));
    assert_int_equal(run_text("WEIR.RULES.SET", one_rule, strlen(one_rule)), 200);
    answers("rules", "1", "cause", "api", "version", "2");
    assert_string_not_equal(value_in(answered.bytes, answered.len, "hash"), hash);
    assert_non_null(event_of(WEIR__EVENT_RELOAD, "hash"));
    good("WEIR.RULES");
    answers("text", one_rule);
    bad("WEIR.BAN per-ip 192.0.2.7 1m", 404, "no rule 'per-ip'");
    good("WEIR.BAN only 192.0.2.7 1m");
}

/* R6: all that is wrong is told, and the old rules stay. */
TEST_WITH(test_S6_rules_refused, start, stop)
{
    static const char wrong[] =
        "version: 1\nrules:\n- { name: one, limt: 7/60 }\n- { name: two, limit: 7/0 }\n";

    for (int check = 0; check < 2; check++) {
        const char *command = check ? "WEIR.RULES.CHECK" : "WEIR.RULES.SET";
        assert_int_equal(run_text(command, wrong, strlen(wrong)), 422);
        assert_contains(last.message, "limt");
        answers("problems.0.line", "3");
        assert_non_null(value_in(answered.bytes, answered.len, "problems.0.column"));
        assert_contains(value_in(answered.bytes, answered.len, "problems.0.text"), "limt");
        answers("problems.1.line", "4");
        assert_int_equal(run_text(command, "", 0), 422);
        assert_int_equal(run_text(command, "\0\xff", 2), 422);
    }
    good("WEIR.RULES");
    answers("text", rules_text, "version", "1");
}

TEST_WITH(test_S6_rules_check_changes_nothing, start, stop)
{
    assert_int_equal(run_text("WEIR.RULES.CHECK", one_rule, strlen(one_rule)), 200);
    assert_memory_equal(answered.bytes, "{\"problems\":[]}", answered.len);
    good("WEIR.RULES");
    answers("text", rules_text, "version", "1");
}

TEST_WITH(test_S6_rules_reload, start, stop)
{
    write_rules(one_rule);
    good("WEIR.RULES.RELOAD");
    answers("rules", "1");
    write_rules("version: 1\nrules: 7\n");
    assert_int_equal(run("WEIR.RULES.RELOAD"), 422);
    assert_contains(last.message, "rules");
    answers("problems.0.line", "2");
    assert_string_not_equal(value_in(answered.bytes, answered.len, "problems.0.column"), "0");
    assert_null(strstr(value_in(answered.bytes, answered.len, "problems.0.text"), rules_path));
    assert_non_null(event_of(WEIR__EVENT_RELOAD_FAILED, "text"));
    good("WEIR.RULES");
    answers("text", one_rule);
    assert_string_not_equal(value_in(answered.bytes, answered.len, "problem"), "null");
}

/* ------------------------------------------------------------------- bans ---- */

TEST_WITH(test_R4_ban_and_unban, start, stop)
{
    good("WEIR.BANS");
    answers_not("bans.0.rule");
    good("WEIR.BAN per-ip 192.0.2.7 10m");
    answers("rule", "per-ip", "key", "192.0.2.7", "since", "1970-01-01T00:16:40.000Z", "until",
            "1970-01-01T00:26:40.000Z", "left_ms", "600000", "strikes", "1");
    told(WEIR__EVENT_BAN, "key", "192.0.2.7");
    told(WEIR__EVENT_BAN, "until", "1970-01-01T00:26:40.000Z");
    assert_false(passes(server.engine, "ip=192.0.2.7", NOW));
    good("WEIR.BAN per-ip 192.0.2.7 20m"); /* another end */
    answers("until", "1970-01-01T00:36:40.000Z");
    good("WEIR.BANS per-ip");
    answers("bans.0.key", "192.0.2.7", "bans.0.left_ms", "1200000");
    answers_not("bans.1.key");
    good("WEIR.BANS login");
    answers_not("bans.0.key");
    good("WEIR.UNBAN per-ip 192.0.2.7");
    answers("rule", "per-ip", "banned", "false");
    told(WEIR__EVENT_UNBAN, "key", "192.0.2.7");
    assert_true(passes(server.engine, "ip=192.0.2.7", NOW));
    bad("WEIR.UNBAN per-ip 192.0.2.7", 404, "rule 'per-ip' has not banned '192.0.2.7'");
}

/* The answer has the key as the rule makes it, and the listings show it. */
TEST_WITH(test_R4_ban_of_a_network, start, stop)
{
    good("WEIR.BAN nets 198.51.100.7 1h");
    answers("key", "198.51.100.0/24");
    told(WEIR__EVENT_BAN, "key", "198.51.100.0/24");
    assert_false(passes(server.engine, "ip=198.51.100.99 uri=/net", NOW));
    good("WEIR.BAN nets 203.0.113.99 1h"); /* of the same moment: it is not mistaken for the one
                                              above */
    answers("key", "203.0.113.0/24");
    good("WEIR.BAN nets 198.51.100.8 1h");
    answers("key", "198.51.100.0/24");
    good("WEIR.BAN per-ip 2001:DB8:0::7 1h");
    answers("key", "2001:db8::/64");
    good("WEIR.BAN login _ 1h"); /* an empty account is a key like any other */
    good("WEIR.UNBAN nets 198.51.100.200");
    answers("key", "198.51.100.0/24");
    told(WEIR__EVENT_UNBAN, "key", "198.51.100.0/24");
    assert_true(passes(server.engine, "ip=198.51.100.99 uri=/net", NOW));
}

/* A long one is listed by its beginning and its hash; that is how it is answered. */
TEST_WITH(test_R4_ban_of_a_long_key, start, stop)
{
    char line[600] = "WEIR.BAN login ";

    memset(line + strlen(line), 'a', 400);
    strcat(line, " 1h");
    good(line);
    const char *key = value_in(answered.bytes, answered.len, "key");
    assert_true(key != NULL && strlen(key) < 160 && strncmp(key, "aaaa", 4) == 0 &&
                strstr(key, "...") != NULL);
}

TEST_WITH(test_R4_wrong_bans, start, stop)
{
    const struct weir__verb *ban = weir__verb_by_command("WEIR.BAN", 8);
    struct weir__text words[] = { { "per-ip", 6 }, { "192.0.2.7\0x", 11 }, { "10m", 3 } };

    bad("WEIR.BAN per-pi 192.0.2.7 10m", 404, "there is no rule 'per-pi'; did you mean 'per-ip'?");
    bad("WEIR.BAN quite-another 192.0.2.7 10m", 404,
        "WEIR.MODES (weir mode, GET /v1/modes) lists them");
    bad("WEIR.BANS per-pi", 404, "did you mean 'per-ip'?");
    bad("WEIR.UNBAN per-pi 192.0.2.7", 404, "did you mean 'per-ip'?");
    bad("WEIR.BAN per-ip nobody 10m", 400, "address");
    bad("WEIR.BAN nets 198.51.0.0/16 10m", 400, "/24");
    bad("WEIR.BAN per-ip 192.0.2.7 soon", 400, "for: ");
    bad("WEIR.BAN per-ip 192.0.2.7 0s", 400, "10m, 1h, 90s");
    bad("WEIR.BAN per-ip 192.0.2.7 9223372036s", 400, "too long");
    assert_int_equal(run_spans(ban, words, 3), 400);
    assert_contains(last.message, "NUL");
    good("WEIR.BANS");
    answers_not("bans.0.key");
}

/* When their rule is gone they are listed and lifted as before. */
TEST_WITH(test_R4_bans_outlive_their_rule, start, stop)
{
    good("WEIR.BAN login ann 10m");
    assert_int_equal(run_text("WEIR.RULES.SET", one_rule, strlen(one_rule)), 200);
    good("WEIR.BANS login");
    answers("bans.0.key", "ann");
    good("WEIR.UNBAN login ann");
    told(WEIR__EVENT_UNBAN, "key", "ann");
    bad("WEIR.BANS login", 404, "no rule 'login'");
}

/* ------------------------------------------------------------------ lists ---- */

TEST_WITH(test_R3_list_changes_by_admin, start, stop)
{
    good("WEIR.LISTS");
    answers("lists.0.list", "allow", "lists.0.attribute", "ip", "lists.0.entries", "1",
            "lists.1.list", "office");
    answers_not("changes.0.list");
    assert_true(passes(server.engine, "ip=203.0.113.5", NOW));
    good("WEIR.LIST.ADD deny ip 203.0.113.0/24 2001:db8::/32");
    answers("list", "deny", "attribute", "ip", "entries", "2", "changed", "2");
    told(WEIR__EVENT_LIST, "list", "deny");
    assert_false(passes(server.engine, "ip=203.0.113.5", NOW));
    told(WEIR__EVENT_LIST, "text", "2 added, 0 removed");
    good("WEIR.LIST.ADD deny ip 203.0.113.0/24");
    answers("changed", "0");
    told(WEIR__EVENT_LIST, "text", "0 added, 0 removed");
    good("WEIR.LISTS");
    answers("changes.0.list", "deny", "changes.0.change", "added");
    good("WEIR.LIST.REMOVE deny ip 203.0.113.0/24");
    answers("entries", "1", "changed", "1");
    assert_true(passes(server.engine, "ip=203.0.113.5", NOW));
    good("WEIR.LIST.ADD deny header.X-App evil"); /* names of headers have no case */
    answers("attribute", "header.x-app", "entries", "1", "changed", "1");
    good("WEIR.RULES.RELOAD"); /* the rules are read again, and the changes are still there */
    assert_false(passes(server.engine, "ip=2001:db8::1", NOW));
}

TEST_WITH(test_R3_wrong_list_changes, start, stop)
{
    const struct weir__verb *add = weir__verb_by_command("WEIR.LIST.ADD", 13);
    struct weir__text words[] = {
        { "deny", 4 }, { "ip", 2 }, { "192.0.2.1", 9 }, { "192.0.2.1\0", 10 }
    };

    bad("WEIR.LIST.ADD offic account ann", 404, "did you mean 'office'?");
    bad("WEIR.LIST.ADD office ip 192.0.2.1", 400, "no list 'office' of ip");
    bad("WEIR.LIST.ADD deny ip 192.0.2.300", 400, "192.0.2.300");
    bad("WEIR.LIST.ADD deny account a*", 400, "*");
    bad("WEIR.LIST.ADD deny ip 192.0.2.1 nonsense", 400, "nonsense");
    bad("WEIR.LIST.ADD deny a/b x", 400, "no attribute");
    assert_int_equal(run_spans(add, words, 4), 400);
    assert_contains(last.message, "NUL");
    good("WEIR.LISTS");
    answers_not("changes.0.list");
    answers_not("lists.2.list");
    assert_true(passes(server.engine, "ip=192.0.2.1", NOW)); /* all or nothing */
}

/* ----------------------------------------------------------------- guards ---- */

static struct weir_guard *make_guard(const char *name, const struct weir_guard_options *options)
{
    struct weir_guard *guard = NULL;
    struct weir_error error = { 0 };

    if (weir_guard_create(&guard, server.table, name, options, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    return guard;
}

TEST_WITH(test_G1_guards_are_listed, start, stop)
{
    struct weir_permit permit;
    struct weir_decision d;

    good("WEIR.GUARDS");
    answers("degradation", "0");
    assert_null(value_in(answered.bytes, answered.len, "guards.0.guard"));
    struct weir_guard *db = make_guard(
        "db", &(struct weir_guard_options){ .max = 3, .breaker = { .error_percent = 50 } });
    make_guard("pool", &(struct weir_guard_options){ .max = 9,
                                                     .classes = { { "gold", 3 }, { "free", 1 } } });
    assert_true(weir_enter(db, &(struct weir_ask){ .now = NOW }, &permit, &d));
    good("WEIR.GUARDS");
    answers("guards.0.guard", "db", "guards.0.in_rules", "false", "guards.0.in_flight", "1",
            "guards.0.limit", "3", "guards.0.breaker", "closed",
            "guards.0.options.breaker.error_percent", "50", "guards.1.breaker", "null",
            "guards.1.options.classes.1.class", "free");
    assert_null(value_in(answered.bytes, answered.len, "guards.0.changes.0.number"));
    assert_true(weir_exit(db, &permit, WEIR_FAILED, NOW));
    good("WEIR.GUARDS db");
    answers("guards.0.outcomes.error", "1");
    assert_null(value_in(answered.bytes, answered.len, "guards.1.guard"));
    bad("WEIR.GUARDS dn", 404, "did you mean 'db'");
    bad("WEIR.GUARDS quite-another", 404, "WEIR.GUARDS (weir guards, GET /v1/guards) lists them");
}

TEST_WITH(test_G4_a_guard_is_forced, start, stop)
{
    struct weir_permit permit;
    struct weir_decision d;
    struct weir_guard *db = make_guard(
        "db", &(struct weir_guard_options){ .max = 3, .breaker = { .error_percent = 50 } });

    good("WEIR.GUARD.FORCE db open");
    answers("force", "open");
    assert_false(weir_enter(db, &(struct weir_ask){ .now = NOW }, &permit, &d));
    good("WEIR.GUARDS db");
    answers("guards.0.changes.0.event", "guard-forced", "guards.0.changes.0.to", "1");
    good("WEIR.GUARD.FORCE db none");
    assert_true(weir_enter(db, &(struct weir_ask){ .now = NOW }, &permit, &d));
    bad("WEIR.GUARD.FORCE db shut", 400, "force must be none, open or closed, not 'shut'");
    bad("WEIR.GUARD.FORCE", 400, "guard is missing");
    bad("WEIR.GUARD.FORCE db", 400, "force is missing");
    bad("WEIR.GUARD.FORCE bd open", 404, "did you mean 'db'");
}

TEST_WITH(test_G5_degradation_by_hand, start, stop)
{
    good("WEIR.DEGRADE");
    answers("degradation", "0", "by_hand", "false");
    good("WEIR.DEGRADE.SET 7");
    answers("degradation", "7", "by_hand", "true");
    bad("WEIR.DEGRADE.SET 10", 400, "a whole number from 0 to 9, or auto");
    bad("WEIR.DEGRADE.SET -1", 400, "a whole number from 0 to 9, or auto");
    bad("WEIR.DEGRADE.SET", 400, "degradation is missing");
    good("WEIR.DEGRADE.SET auto");
    answers("by_hand", "false");
}

/* ------------------------------------------------------------------ modes ---- */

TEST_WITH(test_R5_switch, start, stop)
{
    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.7", NOW), 2);
    good("WEIR.MODES");
    answers("as_written", "enforce", "by_hand", "null", "in_force", "enforce", "rules.0.rule",
            "per-ip", "rules.0.as_written", "enforce", "rules.0.by_hand", "null", "rules.0.allowed",
            "2", "rules.0.refused", "3", "rules.0.banned", "0", "rules.2.as_written", "shadow",
            "rules.2.in_force", "shadow");
    good("WEIR.MODE shadow per-ip");
    answers("rule", "per-ip", "by_hand", "shadow", "in_force", "shadow");
    told(WEIR__EVENT_MODE, "rule", "per-ip");
    told(WEIR__EVENT_MODE, "mode", "shadow");
    assert_true(passes(server.engine, "ip=192.0.2.7", NOW));
    good("WEIR.MODE as-written per-ip");
    answers("by_hand", "null", "in_force", "enforce");
    assert_false(passes(server.engine, "ip=192.0.2.7", NOW));
    good("WEIR.MODE off");
    answers("rule", "null", "by_hand", "off", "as_written", "enforce");
    assert_true(passes(server.engine, "ip=192.0.2.7", NOW));
    good("WEIR.MODES");
    answers("in_force", "off", "rules.0.in_force", "off", "rules.0.shadow_refused", "1");
    good("WEIR.MODE as-written");
    assert_false(passes(server.engine, "ip=192.0.2.7", NOW));
}

TEST_WITH(test_R5_wrong_switch, start, stop)
{
    bad("WEIR.MODE enfroce", 400, "mode must be as-written, enforce, shadow or off, not 'enfroce'");
    bad("WEIR.MODE zzzzzzzz per-ip", 400, "as-written, enforce, shadow or off");
    bad("WEIR.MODE off per_ip", 404, "did you mean 'per-ip'?");
    bad("WEIR.MODE off _", 404, "no rule or guard ''");
    good("WEIR.MODES");
    answers("by_hand", "null");
}

/* ------------------------------------------------------------------- keys ---- */

TEST_WITH(test_S6_reset, start, stop)
{
    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.7 uri=/net", NOW), 2);
    good("WEIR.RESET per-ip ip 192.0.2.7 uri /net");
    answers("rule", "per-ip", "reset", "1");
    told(WEIR__EVENT_RESET, "rule", "per-ip");
    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.7 uri=/net", NOW),
                     2); /* of `nets` 1 is left */
    good("WEIR.RESET * ip 192.0.2.7 uri /net");
    answers("rule", "null");
    assert_int_equal(rule_left(server.engine, "per-ip", "ip=192.0.2.7 uri=/net", NOW), 2);
    assert_int_equal(rule_left(server.engine, "nets", "ip=192.0.2.7 uri=/net", NOW), 5);
    good("WEIR.BAN per-ip 192.0.2.7 1h");
    good("WEIR.RESET per-ip ip 192.0.2.7");
    assert_true(passes(server.engine, "ip=192.0.2.7", NOW)); /* the ban is gone too */
    good("WEIR.RESET login ip 192.0.2.7");                   /* which does not apply */
    answers("reset", "0");
    bad("WEIR.RESET per-pi ip 192.0.2.7", 404, "did you mean 'per-ip'?");
    bad("WEIR.RESET per-ip ip", 400, "has no value");
}

#define LONG_NAME "a-name-of-more-than-63-bytes-a-name-of-more-than-63-bytes-a-name-of-m"

TEST_WITH(test_S6_explain, start, stop)
{
    char line[1024] = "WEIR.EXPLAIN";

    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.7", NOW), 2);
    good("WEIR.EXPLAIN ip 192.0.2.7 uri /other url /x account _");
    answers("rules.0.rule", "per-ip", "rules.0.why", "applies", "rules.0.key", "192.0.2.7",
            "rules.0.refuses", "true", "rules.0.limits.0.remaining", "0", "rules.1.why",
            "unmatched", "rules.1.attribute", "uri", "ruling.allowed", "false", "ruling.rule",
            "per-ip", "unused.0", "url");
    answers_not("unused.1");
    good("WEIR.EXPLAIN tenant _ " LONG_NAME " x"); /* neither can count for anything */
    answers("unused.0", "tenant", "unused.1", LONG_NAME);
    good("WEIR.EXPLAIN ip 10.1.1.1");
    answers("ruling.list", "allow", "rules.0.asked", "false");
    good("WEIR.EXPLAIN"); /* a request of which nothing is known */
    answers("rules.0.why", "no-key");
    for (int i = 0; i < 65; i++)
        strcat(line, " ip 10.1.1.1");
    bad(line, 400, "more than 64 attributes");
}

static int free_answer(void **state)
{
    weir__buffer_free(&answered);
    return remove_folder(state);
}

GROUP(make_folder, free_answer)
