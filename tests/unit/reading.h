/* reading.h -- rule files from one line of text, and the one problem that a wrong one has. */
#ifndef WEIR_TESTS_UNIT_READING_H
#define WEIR_TESTS_UNIT_READING_H

#include "fixture.h"

#include "match/draft.h"

struct told {
    struct weir_problem problems[128];
    size_t n;
};

static inline void note(void *context, const struct weir_problem *problem)
{
    struct told *told = context;

    assert_true(told->n < COUNT_OF(told->problems));
    told->problems[told->n++] = *problem;
}

static inline struct weir__draft *read_named(const char *text, const char *name)
{
    struct weir_rules_options options = { .name = name, .files = name != NULL };
    struct weir__draft *draft = NULL;
    struct weir_error error = { 0 };

    if (weir__draft_read(&draft, text, strlen(text), &options, &error) != WEIR_OK)
        fail_msg("%s\n%s", text, error.text);
    assert_non_null(draft);
    return draft;
}

static inline struct weir__draft *read_good(const char *text)
{
    return read_named(text, NULL);
}

static inline struct told read_bad_bytes(const char *text, size_t len, const char *name,
                                         struct weir_error *error)
{
    struct told told = { .n = 0 };
    struct weir_rules_options options = {
        .name = name, .files = name != NULL, .problem = note, .context = &told
    };
    struct weir__draft *untouched = (struct weir__draft *)&told, *draft = untouched;

    assert_int_equal(weir__draft_read(&draft, text, len, &options, error), WEIR_INVALID);
    assert_ptr_equal(draft, untouched);
    assert_true(told.n > 0);
    return told;
}

static inline struct told read_bad(const char *text)
{
    struct weir_error error = { 0 };

    return read_bad_bytes(text, strlen(text), NULL, &error);
}

/* The text has one problem: here, and its text has this in it. */
static inline void assert_problem(const char *text, int line, int column, const char *part)
{
    struct told told = read_bad(text);
    const struct weir_problem *p = &told.problems[0];

    if (told.n != 1 || p->line != line || p->column != column || strstr(p->text, part) == NULL)
        fail_msg("%s\n%zu problems, the first %d:%d: %s", text, told.n, p->line, p->column,
                 p->text);
}

/* A rule with these members beside a name and a limit. */
static inline const char *rule_with(const char *members)
{
    static char text[4096];

    snprintf(text, sizeof(text),
             "version: 1\nlists: { vips: { account: [a] } }\nrules:\n  - name: r\n    limit: 1/s\n "
             "   %s\n",
             members);
    return text;
}

static inline struct weir__draft *read_rule(const char *members)
{
    return read_good(rule_with(members));
}

/* In line 6, where rule_with puts them, behind four spaces. */
static inline void assert_rule_problem(const char *members, int column, const char *part)
{
    assert_problem(rule_with(members), 6, column + 4, part);
}

#endif
