/* in-force.h -- a server's worth of rules in force: a table, an engine, events, their files. */
#ifndef WEIR_TESTS_UNIT_IN_FORCE_H
#define WEIR_TESTS_UNIT_IN_FORCE_H

#include "unit/fixture.h"

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

static inline int try_start(struct host *h, const char *rules, const char *beside,
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

static inline void start(struct host *h, const char *rules, const char *beside)
{
    struct weir_error error = { 0 };

    h->heard = 0;
    if (try_start(h, rules, beside, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static inline void stop(struct host *h)
{
    weir__in_force_destroy(h->in_force);
    weir__events_destroy(h->events);
    weir_destroy(h->engine);
    weir_table_destroy(h->table);
    h->in_force = NULL;
    h->told[0] = '\0';
}

static inline void name_files(struct host *h)
{
    *h = (struct host){ 0 };
    snprintf(h->rules, sizeof(h->rules), "%s", new_path());
    snprintf(h->table_path, sizeof(h->table_path), "%s", new_path());
}

/* Each time at a later moment: two that follow each other within a tick of the kernel's clock would
 * have the same. */
static inline void write_text(const char *path, const char *text)
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

static inline void start_five(struct host *h)
{
    name_files(h);
    write_text(h->rules, FIVE);
    start(h, h->rules, NULL);
}

/* Another file in its place, as editors do. */
static inline void replace_text(const char *path, const char *text)
{
    char other[400];

    snprintf(other, sizeof(other), "%s~", path);
    write_text(other, text);
    assert_int_equal(rename(other, path), 0);
}

static inline void assert_file(const char *path, const char *wanted)
{
    char got[1024] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    (void)fread(got, 1, sizeof(got) - 1, file);
    fclose(file);
    assert_string_equal(got, wanted);
}

static inline struct weir__in_force_info info_of(struct host *h)
{
    struct weir__in_force_info info;

    weir__in_force_info(h->in_force, &info);
    return info;
}

/* "reload reload-failed" since it was asked last; the last one as JSON in `json`. */
static inline const char *heard(struct host *h, char json[WEIR__EVENT_MAX + 1])
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

static inline struct weir_ruling check(struct host *h, const char *name, const char *value)
{
    struct weir_attr attr = { .name = name, .value = value };
    struct weir_ask peek = { .cost = 0, .now = NOW };
    struct weir_ruling ruling;

    weir_check(h->engine, &attr, 1, &peek, &ruling);
    return ruling;
}

/* The limit in force; 0: none. */
static inline int64_t limit_in_force(struct host *h)
{
    return check(h, "account", "ann").count;
}

static inline bool is_denied(struct host *h, const char *ip)
{
    return check(h, "ip", ip).decision.reason == WEIR_DENIED;
}

static inline void assert_text(struct host *h, const char *wanted)
{
    FINALLY(weir__buffer_free) struct weir__buffer text = { 0 };
    weir__in_force_text(h->in_force, &text);
    assert_int_equal(text.len, strlen(wanted));
    if (text.len > 0)
        assert_memory_equal(text.bytes, wanted, text.len);
}

static inline void set(struct host *h, const char *text)
{
    struct weir_error error = { 0 };

    if (weir__in_force_set(h->in_force, text, strlen(text), NOW + S, NULL, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static inline void edit(struct host *h, const char *list, const char *attribute,
                        const char *const *add, size_t adds, const char *const *remove,
                        size_t removes)
{
    struct weir_error error = { 0 };

    if (weir__in_force_list_edit(h->in_force, EDIT(list, attribute, add, adds, remove, removes),
                                 NOW, NULL, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static inline void assert_lists(struct host *h, const char *wanted)
{
    FINALLY(weir__buffer_free) struct weir__buffer json = { 0 };
    weir__in_force_lists(h->in_force, &json);
    weir__buffer_add(&json, "", 1);
    assert_string_equal(json.bytes, wanted);
}

static inline void assert_no_start(struct host *h, const char *rules, const char *beside,
                                   const char *says)
{
    struct weir_error error = { 0 };

    assert_int_not_equal(try_start(h, rules, beside, &error), WEIR_OK);
    assert_null(h->in_force);
    assert_contains(error.text, says);
}

static inline bool look_twice(struct host *h)
{
    bool first = weir__in_force_refresh(h->in_force, NOW + 2 * S);

    return weir__in_force_refresh(h->in_force, NOW + 3 * S) || first;
}

#endif
