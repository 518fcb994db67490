/* rules.c -- any bytes as a rule file: no crash, every problem with a place in the text, and a set
 * is made of all that is read. */
#include "fuzz/fuzz.h"

#include "match/draft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libfyaml 0.7.12 loses a few pages when a quoted text of many pieces is not closed; the sanitizer
 * is told that this is known. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so\n";
}

static bool is_one_line(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL && !strpbrk(text, "\r\n\x1b");
}

static void check_problem(void *context, const struct weir_problem *p)
{
    char out[1024];
    int *told = context;

    check(p->text[0] != '\0' && is_one_line(p->text, sizeof(p->text)) &&
          is_one_line(p->source, sizeof(p->source)));
    check(p->line >= 0 && (p->line == 0) == (p->column == 0));
    check(p->caret >= -1 && p->caret <= (int)strlen(p->source));
    int len = weir_problem_print(out, sizeof(out), "f", p);
    check(len > 0 && (size_t)len < sizeof(out) && (size_t)len == strlen(out));
    ++*told;
}

static void check_draft(const struct weir__draft *d)
{
    check(d->n_rules <= WEIR__RULES_MAX);
    for (size_t i = 0; i < d->n_rules; i++) {
        const struct weir__rule_draft *r = &d->rules[i];
        check(r->name && *r->name && strlen(r->name) <= WEIR__RULE_NAME_MAX);
        check(r->key && r->n_limits >= 1 && r->n_limits <= WEIR__RULE_LIMITS && r->cost >= 0 &&
              r->mode != WEIR_AS_WRITTEN);
        for (size_t k = 0; k < r->matches; k++)
            check(r->match[k].n >= 1 &&
                  r->match[k].patterns[0].len == strlen(r->match[k].patterns[0].text));
        check(!r->ban.set || (r->ban.length > 0 && r->ban.longest >= r->ban.length &&
                              r->ban.forget > 0 && r->ban.factor >= 1));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int told = 0;
    char *text =
        malloc(size ? size : 1); /* of exactly this size, so that a read beyond the end is seen */
    struct weir_rules_options options = { .problem = check_problem, .context = &told };
    struct weir__draft *draft = NULL;
    struct weir_rules *rules = NULL;
    struct weir_error error = { 0 };

    check(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    int code = weir__draft_read(&draft, text, size, &options, &error);
    check((code == WEIR_OK) == (draft != NULL));
    check(code == WEIR_OK ? told == 0 : told > 0 || code != WEIR_INVALID);
    check(code == WEIR_OK || (error.text[0] && memchr(error.text, '\0', sizeof(error.text))));
    if (draft) {
        check_draft(draft);
        check(weir_rules_parse(&rules, text, size, &options, &error) == WEIR_OK);
        weir_rules_destroy(rules);
        weir__draft_destroy(draft);
    }
    free(text);
    return 0;
}
