/* requests.h -- shared by the tests of rules: rule sets from a line or two of YAML, requests from
 * "ip=192.0.2.1 uri=/login", and the rest that a rule has left for one. */
#ifndef WEIR_TESTS_UNIT_REQUESTS_H
#define WEIR_TESTS_UNIT_REQUESTS_H

#include "fixture.h"

#include "engine/engine.h"
#include "engine/explain.h"

#define RULES(lines) "version: 1\nrules:\n" lines

/* -------------------------------------------------------- rules and engines ---- */

static inline struct weir_rules *rules_of(const char *yaml)
{
    struct weir_rules *rules = NULL;
    struct weir_error error = { 0 };

    if (weir_rules_parse(&rules, yaml, strlen(yaml), NULL, &error) != WEIR_OK)
        fail_msg("%s\n%s", error.text, yaml);
    assert_non_null(rules);
    return rules;
}

static inline struct weir *engine_on(struct weir_table *table)
{
    struct weir *weir = NULL;
    struct weir_error error = { 0 };

    if (weir_create(&weir, &(struct weir_options){ .table = table, .keys = 1000 }, &error) !=
        WEIR_OK)
        fail_msg("%s", error.text);
    assert_non_null(weir);
    return weir;
}

static inline void use(struct weir *weir, const char *yaml, weir_time now)
{
    struct weir_error error = { 0 };

    if (weir_use(weir, rules_of(yaml), now, &error) != WEIR_OK)
        fail_msg("%s\n%s", error.text, yaml);
}

static inline struct weir *engine_of(const char *yaml)
{
    struct weir *weir = engine_on(NULL);

    use(weir, yaml, NOW);
    return weir;
}

/* ----------------------------------------------------------------- requests ---- */

#define ATTR(its_name, its_value)                \
    {                                            \
        .name = (its_name), .value = (its_value) \
    }

struct request {
    struct weir_attr attrs[16];
    size_t n;
};

/* "ip=192.0.2.1 uri=/login": a space ends a value, and a request has no more than 16. */
static inline struct request request_of(const char *text)
{
    struct request r = { .n = 0 };

    while (*text != '\0') {
        size_t name = strcspn(text, "="), value = strcspn(text + name + 1, " ");
        assert_true(r.n < COUNT_OF(r.attrs));
        r.attrs[r.n++] = (struct weir_attr){ .name = text,
                                             .value = value ? text + name + 1 : "",
                                             .name_len = name,
                                             .value_len = value };
        text += name + 1 + value;
        text += *text == ' ';
    }
    return r;
}

static inline struct weir_ruling check_attrs(struct weir *weir, const struct weir_attr *attrs,
                                             size_t n, const struct weir_ask *ask)
{
    struct weir_ruling ruling;

    memset(&ruling, 0xa5, sizeof(ruling));
    bool allowed = weir_check(weir, attrs, n, ask, &ruling);
    assert_int_equal(allowed, ruling.decision.allowed);
    return ruling;
}

static inline struct weir_ruling check_cost(struct weir *weir, const char *request, int64_t cost,
                                            weir_time now)
{
    struct request r = request_of(request);

    return check_attrs(weir, r.attrs, r.n, &(struct weir_ask){ .cost = cost, .now = now });
}

static inline struct weir_ruling check(struct weir *weir, const char *request, weir_time now)
{
    return check_cost(weir, request, 1, now);
}

static inline bool passes(struct weir *weir, const char *request, weir_time now)
{
    return check(weir, request, now).decision.allowed;
}

/* How many of the next `n` pass. */
static inline int pass_of(struct weir *weir, int n, const char *request, weir_time now)
{
    int passed = 0;

    for (int i = 0; i < n; i++)
        passed += passes(weir, request, now);
    return passed;
}

static inline void assert_rule(const struct weir_ruling *ruling, const char *rule)
{
    if (rule == NULL)
        assert_null(ruling->rule);
    else if (ruling->rule == NULL)
        fail_msg("no rule, wanted %s", rule);
    else
        assert_string_equal(ruling->rule, rule);
}

#define assert_refused_by(ruling, name)          \
    do {                                         \
        assert_false((ruling).decision.allowed); \
        assert_rule(&(ruling), name);            \
    } while (0)

#define assert_allowed_by(ruling, name)         \
    do {                                        \
        assert_true((ruling).decision.allowed); \
        assert_rule(&(ruling), name);           \
    } while (0)

/* ------------------------------------------------------------------ looking ---- */

struct look {
    const char *rule;
    bool found;
    struct weir__explained told;
};

static inline void look_at_rule(void *context, const struct weir__explained *e)
{
    struct look *look = context;

    if (strcmp(e->rule->name, look->rule) == 0) {
        look->told = *e;
        look->found = true;
    }
}

static inline struct weir__explained explained(struct weir *weir, const char *rule,
                                               const char *request, weir_time now)
{
    struct look look = { .rule = rule };
    struct request r = request_of(request);
    struct weir__explanation all;

    weir__engine_explain(weir, r.attrs, r.n, &(struct weir_ask){ .cost = 0, .now = now }, &all,
                         look_at_rule, &look);
    if (!look.found)
        fail_msg("there is no rule %s", rule);
    return look.told;
}

/* What the rule's first limit has left for the request: a peek. */
static inline int64_t rule_left(struct weir *weir, const char *rule, const char *request,
                                weir_time now)
{
    struct weir__explained e = explained(weir, rule, request, now);

    assert_int_equal(e.why, WEIR__APPLIES);
    return e.limits[0].decision.remaining;
}

static inline struct weir_rule_info info_of(struct weir *weir, const char *rule)
{
    struct weir_rule_info info;

    for (int64_t at = 0; weir_rule_next(weir, &at, &info);)
        if (strcmp(info.name, rule) == 0)
            return info;
    fail_msg("there is no rule %s", rule);
    return info;
}

/* ------------------------------------------------------------------ by hand ---- */

static inline int edit_list(struct weir *weir, const char *list, const char *attribute,
                            const char *add, const char *remove)
{
    struct weir_error error = { 0 };
    int code = weir_list_edit(
        weir,
        &(struct weir_list_edit){ list, attribute, &add, add != NULL, &remove, remove != NULL },
        &error);

    assert_true(code == WEIR_OK || error.text[0] != '\0');
    return code;
}

static inline int64_t reset(struct weir *weir, const char *rule, const char *request, weir_time now)
{
    struct request r = request_of(request);
    struct weir_error error = { 0 };
    int64_t n = weir_reset(weir, rule, r.attrs, r.n, now, &error);

    assert_true(n >= 0 || error.text[0] != '\0');
    return n;
}

#define BIG (1 << 18)

/* The lines of `n` rules, r0 on, each as the format says, which has room for its number. */
__attribute__((format(printf, 2, 0))) static inline struct weir *engine_of_many(int n,
                                                                                const char *format)
{
    FINALLY(memory_drop) char *yaml = malloc(BIG);
    size_t len = (size_t)snprintf(yaml, BIG, "version: 1\nrules:\n");
    for (int i = 0; i < n; i++)
        len += (size_t)snprintf(yaml + len, BIG - len, format, i);
    assert_true(len < BIG - 1);
    struct weir *weir = engine_of(yaml);
    return weir;
}

/* Three that apply to one request. */
__attribute__((unused)) static const char three[] =
    RULES("- { name: per-ip, key: \"{ip}\", limit: 5/60 }\n"
          "- { name: per-account, key: \"{account}\", limit: 3/60 }\n"
          "- { name: all, limit: 100/60 }\n");

#endif
