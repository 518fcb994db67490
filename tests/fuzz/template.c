/* template.c -- any bytes as a key's template: no crash, an error that points into the text, parts
 * that a template can have; and what parses says the same when it is written anew from its
 * parts. */
#include "fuzz/fuzz.h"

#include "match/draft.h"
#include "match/key-template.h"

static void check_error(const struct weir_error *error, size_t length)
{
    check(error->column >= 1 && (size_t)error->column <= length + 1);
    check(memchr(error->text, '\0', sizeof(error->text)) != NULL);
    check(error->text[0] != '\0' && !strpbrk(error->text, "\r\n"));
}

static void check_part(const struct weir__template_part *p, bool first)
{
    size_t len = strlen(p->attribute);

    check(p->before != NULL && (first || p->before[0] != '\0'));
    check(len >= 1 && len <= 63 && weir__attribute_length(p->attribute) == len);
    check(p->fallback == NULL || (p->fallback[0] != '\0' && !strpbrk(p->fallback, "{}")));
    check((p->prefix4 == WEIR__NO_PREFIX) == (p->prefix6 == WEIR__NO_PREFIX));
    check(p->prefix4 == WEIR__NO_PREFIX ||
          (p->prefix4 <= 32 && p->prefix6 <= 128 && weir__attribute_is_address(p->attribute)));
    if (strncmp(p->attribute, "header.", 7) == 0)
        check(strpbrk(p->attribute, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == NULL);
}

static char *write_literal(char *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '{' || *text == '}')
            *out++ = *text;
        *out++ = *text;
    }
    *out = '\0';
    return out;
}

/* The template as it would be written; both prefixes always. */
static void write_template(char *out, const struct weir__template *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct weir__template_part *p = &t->parts[i];
        out = write_literal(out, p->before);
        out += sprintf(out, "{%s", p->attribute);
        if (p->prefix4 != WEIR__NO_PREFIX)
            out += sprintf(out, "/%u/%u", p->prefix4, p->prefix6);
        out += sprintf(out, "%s%s}", p->fallback ? "|" : "", p->fallback ? p->fallback : "");
    }
    write_literal(out, t->parts[t->n].before);
}

static bool same_text(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static void check_again(const struct weir__template *t, size_t length)
{
    char *text = malloc(2 * length + 256);
    struct weir__template again;

    check(text != NULL);
    write_template(text, t);
    check(weir__template_parse(&again, text, NULL) == WEIR_OK && again.n == t->n);
    for (size_t i = 0; i <= t->n; i++) {
        const struct weir__template_part *a = &t->parts[i], *b = &again.parts[i];
        check(same_text(a->before, b->before) && same_text(a->attribute, b->attribute) &&
              same_text(a->fallback, b->fallback));
        check(i == t->n || (a->prefix4 == b->prefix4 && a->prefix6 == b->prefix6));
    }
    weir__template_free(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* of exactly this size, so that a read beyond the end is seen */
    struct weir__template t = { .n = 42 };
    struct weir_error error = { 0 };

    check(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    int code = weir__template_parse(&t, text, &error);
    if (code == WEIR_OK) {
        check(t.n <= WEIR__TEMPLATE_PARTS && t.parts[t.n].attribute == NULL &&
              t.parts[t.n].before != NULL);
        for (size_t i = 0; i < t.n; i++)
            check_part(&t.parts[i], i == 0);
        check_again(&t, strlen(text));
        weir__template_free(&t);
    } else {
        check(t.n == 42);
        check_error(&error, strlen(text));
    }
    free(text);
    return 0;
}
