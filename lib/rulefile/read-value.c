/* read-value.c -- single values: texts, counts, modes, time zones, names of rules and
 * attributes. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/cursor.h"
#include "base/zone.h"
#include "match/key-template.h"
#include "rulefile/read.h"

const char *weir__read_text(struct weir__reader *r, const struct weir__node *node, const char *what,
                            const char *like)
{
    if (node->kind == WEIR__NODE_TEXT)
        return node->text;
    weir__say(r, node, "%s must be %s; found %s", what, like, weir__node_word(node));
    return NULL;
}

bool weir__is_bare_number(const struct weir__node *node)
{
    return node && node->kind == WEIR__NODE_TEXT && strspn(node->text, "0123456789") == node->n;
}

bool weir__read_count(struct weir__reader *r, const struct weir__node *node, const char *what,
                      int64_t min, int64_t max, int64_t *out)
{
    struct weir_error error = { 0 };
    const char *text = weir__read_text(r, node, what, "a whole number");
    struct weir__cursor cursor = { text, text, &error };
    int64_t value = 0;

    if (text == NULL)
        return false;
    int code = weir__cursor_count(&cursor, what, min, &value);
    if (code == WEIR_OK && !weir__cursor_end(&cursor))
        code = weir__fail_at(&error, weir__cursor_column(&cursor), "%s must be one number", what);
    if (code == WEIR_OK && value > max)
        code = weir__fail_at(&error, 1, "%s is too large; the most is %" PRId64, what, max);
    if (code != WEIR_OK) {
        weir__say_error(r, node, "", &error);
        return false;
    }
    *out = value;
    return true;
}

/* What others call it. */
static bool is_shadow(const char *text)
{
    static const char *const names[] = { "dry-run", "dry_run", "dryrun",  "monitor", "log",
                                         "audit",   "test",    "observe", "report" };
    size_t i = 0, n = sizeof(names) / sizeof(names[0]);

    while (i < n && strcasecmp(text, names[i]) != 0)
        i++;
    return i < n;
}

bool weir__read_mode(struct weir__reader *r, const struct weir__node *node, enum weir_mode *out)
{
    static const char *const names[] = { "enforce", "shadow", "off" };
    static const enum weir_mode modes[] = { WEIR_ENFORCE, WEIR_SHADOW, WEIR_OFF };
    const char *text = weir__read_text(r, node, "mode", "enforce, shadow or off");

    for (size_t i = 0; text && i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = modes[i];
            return true;
        }
    }
    if (text)
        weir__say(r, node, "unknown mode %s; %s", weir__quote(text, node->n).text,
                  is_shadow(text) ? "did you mean 'shadow'?"
                                  : weir__hint(text, node->n, names, 3).text);
    return false;
}

const char *weir__read_zone(struct weir__reader *r, const struct weir__node *node)
{
    const struct weir__zone *zone;
    struct weir_error error = { 0 };
    const char *text = weir__read_text(r, node, "zone", "a time zone, such as Europe/Berlin");

    if (text == NULL)
        return NULL;
    if (node->n >= WEIR__ZONE_NAME_SIZE) {
        weir__say(r, node,
                  "the name of a time zone has at most %d bytes; write one such as Europe/Berlin",
                  WEIR__ZONE_NAME_SIZE - 1);
        return NULL;
    }
    if (weir__zone_find(&zone, text, &error) == WEIR_OK)
        return text;
    weir__say_error(r, node, "", &error);
    return NULL;
}

char *weir__read_name(struct weir__reader *r, const struct weir__node *node, const char *what)
{
    const char *text = weir__read_text(r, node, what, "text, such as per-ip");

    if (text == NULL)
        return NULL;
    size_t good = weir__attribute_length(text); /* the same letters */
    if (node->n == 0 || good < node->n) {
        weir__report_add(&r->report, weir__node_place(&r->report, node, (int)good + 1),
                         "%s has only letters, digits and . _ - in it; found %s", what,
                         weir__quote(text, node->n).text);
        return NULL;
    }
    if (node->n > WEIR__RULE_NAME_MAX) {
        weir__say(r, node, "%s has at most %d bytes; this one has %zu", what, WEIR__RULE_NAME_MAX,
                  node->n);
        return NULL;
    }
    return weir__arena_copy(r->arena, text, node->n);
}

/* The rule set uses this attribute from now on. */
static bool note_attribute(struct weir__reader *r, const struct weir__node *node, const char *name)
{
    for (size_t i = 0; i < r->n_attributes; i++) {
        if (strcmp(r->attributes[i], name) == 0)
            return true;
    }
    if (r->n_attributes == WEIR__ATTRIBUTES_MAX) {
        weir__say(r, node, "%s is one attribute too many; the rules of a file can look at %d",
                  weir__quote(name, strlen(name)).text, WEIR__ATTRIBUTES_MAX);
        return false;
    }
    r->attributes[r->n_attributes++] = name;
    return true;
}

/* Header names ignore case. */
char *weir__read_attribute(struct weir__reader *r, const struct weir__node *node, const char *name,
                           size_t len)
{
    size_t good = weir__attribute_length(name);

    if (len == 0 || good < len || len > 63) {
        weir__say(r, node,
                  "an attribute's name is 1 to 63 letters, digits and . _ -, such as ip or "
                  "header.x-plan; found %s",
                  weir__quote(name, len).text);
        return NULL;
    }
    char *copy = weir__arena_copy(r->arena, name, len);
    for (char *c = copy; copy && strncmp(name, "header.", 7) == 0 && *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    return copy && note_attribute(r, node, copy) ? copy : NULL;
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
