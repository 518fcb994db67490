/* unknown-keys.c -- the keys of a mapping: found by their names; unknown ones are reported, with
 * the nearest known one. */
#include "rulefile/read.h"

#include <string.h>

static struct weir__member *find_member(struct weir__member *members, size_t n,
                                        const struct weir__node *key)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(members[i].name, key->text) == 0)
            return &members[i];
    }
    return NULL;
}

/* Another tool's word for it, or a near one. */
static const char *meant(const struct weir__node *key, const char *const *names, size_t n)
{
    static const char *const others[][2] = {
        { "rate", "limit" }, { "rates", "limit" }, { "by", "key" }, { "when", "match" }
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        for (size_t k = 0; strcmp(key->text, others[i][0]) == 0 && k < n; k++) {
            if (strcmp(names[k], others[i][1]) == 0)
                return names[k];
        }
    }
    return weir__nearest(key->text, key->n, names, n);
}

#define GUARD_ACROSS                                                                            \
    "a guard cannot be across the fleet: a host that is cut off would lose or double permits; " \
    "for concurrency: 60 over 3 hosts give each concurrency: 20"

/* Words of other versions and of other places. */
static const char *not_now(const char *word, const char *what)
{
    static const struct {
        const char *word, *what, *text;
    } words[] = {
        { "level", "a rule file", "'level' is now called degradation" },
        { "across", "guard", GUARD_ACROSS },
        { "across", "concurrency", GUARD_ACROSS },
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(word, words[i].word) == 0 && strcmp(what, words[i].what) == 0)
            return words[i].text;
    }
    return NULL;
}

/* The member probably meant counts as there, so that it is not reported missing too. */
static void say_unknown(struct weir__reader *r, struct weir__node *key, const char *what,
                        struct weir__member *members, size_t n)
{
    const char *names[24] = { NULL }, *other = not_now(key->text, what);
    size_t known = 0;

    if (other) {
        weir__say(r, key, "%s", other);
        return;
    }
    for (; known < n && known < 24; known++)
        names[known] = members[known].name;
    const char *near = meant(key, names, known);
    for (size_t i = 0; near && i < n; i++) {
        if (members[i].name == near && members[i].key == NULL)
            members[i].key = key;
    }
    weir__say(r, key, "unknown key %s in %s; %s", weir__quote(key->text, key->n).text, what,
              weir__hint(near ? near : key->text, near ? strlen(near) : key->n, names, known).text);
}

bool weir__read_members(struct weir__reader *r, const struct weir__node *node, const char *what,
                        struct weir__member *members, size_t n)
{
    if (node->kind != WEIR__NODE_MAPPING) {
        weir__say(r, node, "%s must be a mapping, such as %s: ...; found %s", what, members[0].name,
                  weir__node_word(node));
        return false;
    }
    for (size_t i = 0; i < node->n; i++) {
        struct weir__node *key = node->items[2 * i], *value = node->items[2 * i + 1];
        struct weir__member *m = find_member(members, n, key);
        if (m == NULL) {
            say_unknown(r, key, what, members, n);
        } else if (value->kind == WEIR__NODE_NOTHING) {
            weir__say(r, key, "'%s' has no value; give it one, or leave it out", m->name);
            m->key = key; /* it is there: not reported as missing too */
        } else {
            m->key = key;
            m->value = value;
        }
    }
    return true;
}
