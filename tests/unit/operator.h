/* operator.h -- a server whose verbs are called as an operator would, and its answers: always one
 * strict JSON text. */
#ifndef WEIR_TESTS_UNIT_OPERATOR_H
#define WEIR_TESTS_UNIT_OPERATOR_H

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

__attribute__((unused)) static const char one_rule[] =
    "version: 1\nrules:\n- { name: only, key: \"{ip}\", limit: 7/60 }\n";

/* ----------------------------------------------------------------- server ---- */

static struct weir__settings settings;
static char rules_path[300];

static inline void write_rules(const char *text)
{
    FILE *file = fopen(rules_path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static inline int start(void **state)
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

static inline int stop(void **state)
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

static inline bool go_on(void *context, const struct weir__json_value *v)
{
    return true;
}

/* As a strict reader sees it. */
static inline void assert_json(const char *text, size_t len)
{
    const char *what;
    long at = weir__json_walk(text, len, NULL, go_on, NULL, &what);

    if (at >= 0)
        fail_msg("%.*s: at %ld: %s was expected", (int)len, text, at, what);
}

static inline void assert_message(void)
{
    assert_true(last.message[0] != '\0');
    for (const unsigned char *c = (const unsigned char *)last.message; *c; c++)
        assert_true(*c >= ' ' && *c != 0x7f);
}

/* Every word is a block of its own, with nothing behind it, so that a step too far is seen by a
 * sanitizer. */
static inline int run_spans(const struct weir__verb *row, const struct weir__text *words, size_t n)
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
static inline int run(const char *line)
{
    struct weir__text words[WORDS_MAX] = { { 0 } };
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

static inline int run_text(const char *command, const char *text, size_t len)
{
    return run_spans(weir__verb_by_command(command, strlen(command)),
                     &(struct weir__text){ text, len }, 1);
}

static inline void good(const char *line)
{
    if (run(line) != 200)
        fail_msg("%s: %d %s", line, last.status, last.message);
}

static inline void bad(const char *line, int status, const char *says)
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

static inline bool look(void *context, const struct weir__json_value *v)
{
    struct search *s = context;

    if (v->path_len != strlen(s->path) || memcmp(v->path, s->path, v->path_len) != 0)
        return true;
    snprintf(s->found, sizeof(s->found), "%.*s", (int)v->len, v->text);
    s->is = true;
    return false;
}

static inline const char *value_in(const char *json, size_t len, const char *path)
{
    static struct search s;
    static char scratch[WEIR__EVENTS_KEPT * WEIR__EVENT_MAX];
    const char *what;

    s = (struct search){ .path = path };
    assert_true(len <= sizeof(scratch));
    weir__json_walk(json, len, scratch, look, &s, &what);
    return s.is ? s.found : NULL;
}

static inline void answer_has(const char *const *pairs)
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

static inline void answers_not(const char *path)
{
    assert_null(value_in(answered.bytes, answered.len, path));
}

/* A member of the newest event of the kind; NULL: there is none. */
static inline const char *event_of(enum weir__event_kind wanted, const char *path)
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

static inline void told(enum weir__event_kind kind, const char *path, const char *wanted)
{
    const char *got = event_of(kind, path);

    if (got == NULL || strcmp(got, wanted) != 0)
        fail_msg("event %s has %s: %s and not %s", weir__event_name(kind), path,
                 got ? got : "nothing", wanted);
}

static inline int free_answer(void **state)
{
    weir__buffer_free(&answered);
    return remove_folder(state);
}

#endif
