/* read-value.c -- values of a guard's members: times, numbers, shares, words. */
#include "rulefile/read.h"

#include <string.h>

#include "match/template.h"

#define HOUR (3600 * WEIR_SECOND)

bool weir__read_span(struct weir__reader *r, const struct weir__member *m, weir_time *out)
{
    struct weir_error error = { 0 };
    weir_time time;

    if (m->value == NULL || !weir__read_text(r, m->value, m->name, "a time such as 500ms"))
        return false;
    if (weir_time_parse(&time, m->value->text, &error) != WEIR_OK) {
        weir__say_error(r, m->value, m->name, &error);
        return false;
    }
    if (time < 1 || time > HOUR) {
        weir__say(r, m->value, "%s must be more than 0 and at most 1h", m->name);
        return false;
    }
    *out = time;
    return true;
}

bool weir__read_whole(struct weir__reader *r, const struct weir__member *m, int64_t max,
                      int64_t *out)
{
    return m->value && weir__read_count(r, m->value, m->name, 1, max, out);
}

bool weir__read_small(struct weir__reader *r, const struct weir__member *m, int32_t max,
                      int32_t *out)
{
    int64_t n;

    if (!weir__read_whole(r, m, max, &n))
        return false;
    *out = (int32_t)n;
    return true;
}

/* Digits and a percent sign; -1: it is none. */
static int32_t parse_percent(const char *text)
{
    int32_t n = 0;
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 3 || strcmp(text + digits, "%") != 0)
        return -1;
    for (size_t i = 0; i < digits; i++)
        n = 10 * n + text[i] - '0';
    return n;
}

bool weir__read_percent(struct weir__reader *r, const struct weir__member *m, int32_t least,
                        int32_t *out)
{
    const char *text =
        m->value ? weir__read_text(r, m->value, m->name, "a share such as 50%") : NULL;
    int32_t n = text ? parse_percent(text) : 0;

    if (text == NULL)
        return false;
    if (n < 0)
        weir__say(r, m->value, "%s must be a share such as 50%%; found %s", m->name,
                  weir__quote(text, m->value->n).text);
    else if (n < least || n > 100)
        weir__say(r, m->value, "%s must be from %d%% to 100%%", m->name, least);
    else
        *out = n;
    return n >= least && n <= 100;
}

int weir__read_word(struct weir__reader *r, const struct weir__member *m, const char *like,
                    const char *const *words, size_t n)
{
    const char *text = m->value ? weir__read_text(r, m->value, m->name, like) : NULL;

    for (size_t i = 0; text && i < n; i++) {
        if (strcmp(text, words[i]) == 0)
            return (int)i;
    }
    if (text)
        weir__say(r, m->value, "unknown %s %s; %s", m->name, weir__quote(text, m->value->n).text,
                  weir__hint(text, m->value->n, words, n).text);
    return -1;
}

void weir__read_flag(struct weir__reader *r, const struct weir__member *m, bool *out)
{
    static const char *const words[] = { "false", "true" };
    int word = weir__read_word(r, m, "true or false", words, 2);

    *out = word < 0 ? *out : word == 1;
}

bool weir__read_word_name(struct weir__reader *r, const struct weir__node *key, const char *what,
                          size_t most)
{
    size_t good = weir__attribute_length(key->text);

    if (key->n > 0 && good == key->n && key->n <= most)
        return true;
    weir__say(r, key, "the name of a %s is 1 to %zu letters, digits and . _ -; found %s", what,
              most, weir__quote(key->text, key->n).text);
    return false;
}

size_t weir__problems(const struct weir__reader *r)
{
    return r->report.n + r->report.more;
}
