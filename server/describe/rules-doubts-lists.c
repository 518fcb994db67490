/* rules-doubts-lists.c -- lists and entries that do nothing, or more than it seems. */
#include "server/describe/rules-doubts-private.h"

#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "match/address.h"

bool weir__pattern_is_within(const struct weir__pattern *p, const struct weir__pattern *wide)
{
    struct weir__cidr a, b;
    struct weir_error error;

    if (p->kind == wide->kind && p->len == wide->len && memcmp(p->text, wide->text, p->len) == 0)
        return true;
    if (wide->kind == WEIR__PREFIX)
        return p->kind <= WEIR__PREFIX && p->len >= wide->len &&
               memcmp(p->text, wide->text, wide->len) == 0;
    if (wide->kind != WEIR__CIDR || p->kind != WEIR__CIDR)
        return wide->kind == WEIR__PRESENT;
    if (weir__cidr_parse(p->text, p->len, &a, &error) != WEIR_OK ||
        weir__cidr_parse(wide->text, wide->len, &b, &error) != WEIR_OK || a.prefix < b.prefix ||
        a.address.bits != b.address.bits)
        return false;
    weir__address_mask(&a.address, b.prefix);
    return weir__address_number(&a.address) == weir__address_number(&b.address);
}

bool weir__list_has_around(const struct weir__list_draft *list, const struct weir__pattern *p)
{
    enum weir__pattern_kind kind =
        weir__attribute_is_address(list->attribute) ? WEIR__CIDR : WEIR__EXACT;

    for (size_t i = 0; i < list->n; i++) {
        struct weir__pattern entry = { kind, list->entries[i], strlen(list->entries[i]), true };
        if (weir__pattern_is_within(p, &entry))
            return true;
    }
    return false;
}

const struct weir__list_draft *weir__list_part(const struct weir__draft *draft, const char *name,
                                               const char *attribute)
{
    for (size_t i = 0; i < draft->n_lists; i++)
        if (strcmp(draft->lists[i].name, name) == 0 &&
            strcmp(draft->lists[i].attribute, attribute) == 0)
            return &draft->lists[i];
    return NULL;
}

static bool is_used(const struct weir__draft *draft, const char *name)
{
    for (size_t i = 0; i < draft->n_lists; i++)
        if (draft->lists[i].used && strcmp(draft->lists[i].name, name) == 0)
            return true;
    return strcmp(name, "allow") == 0 || strcmp(name, "deny") == 0;
}

static const char *allow_or_deny(const char *name)
{
    static const char *const denies[] = { "den",    "block",  "ban", "black",
                                          "reject", "refuse", "bad", "drop" };
    static const char *const allows[] = { "allow", "white", "pass", "trust", "good", "accept" };

    for (size_t i = 0; i < sizeof(denies) / sizeof(denies[0]); i++)
        if (strncasecmp(name, denies[i], strlen(denies[i])) == 0)
            return "; did you mean deny?";
    for (size_t i = 0; i < sizeof(allows) / sizeof(allows[0]); i++)
        if (strncasecmp(name, allows[i], strlen(allows[i])) == 0)
            return "; did you mean allow?";
    return "";
}

/* Networks that are most of a kind of address. */
static const char *whole_family(const char *network)
{
    static const char *const wide[][2] = {
        { "0.0.0.0/0", "every IPv4 address" },
        { "::ffff:0:0/96", "every IPv4 address" },
        { "::ffff:0.0.0.0/96", "every IPv4 address" },
        { "0.0.0.0/1", "half of all IPv4 addresses" },
        { "128.0.0.0/1", "half of all IPv4 addresses" },
        { "::/0", "every IPv6 address" },
        { "2000::/3", "every IPv6 address" },
    };

    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
        if (strcmp(network, wide[i][0]) == 0)
            return wide[i][1];
    return NULL;
}

/* Entries that look like patterns.  Says the first. */
static void doubt_values(const struct weir__doubting *r, const struct weir__list_draft *list)
{
    bool path = weir__attribute_is_path(list->attribute),
         agent = strcmp(list->attribute, "header.user-agent") == 0;

    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->entries[i];
        if ((path && strpbrk(text, "|^$")) || (!path && (*text == '^' || strstr(text, ".*")))) {
            weir__doubt(r, list->mark, "%s: an entry is a whole value, no regular expression",
                        weir__quote(text, strlen(text)).text);
            return;
        }
        if (path && text[1] != '\0' && text[strlen(text) - 1] == '/') {
            weir__doubt(r, list->mark, "%s is that page alone; for all below it write a rule",
                        weir__quote(text, strlen(text)).text);
            return;
        }
        if (agent && strpbrk(text, "/ -") == NULL) {
            weir__doubt(r, list->mark,
                        "only a client that says nothing but %s is on it; for all that have it in "
                        "their text write a rule",
                        weir__quote(text, strlen(text)).text);
            return;
        }
    }
}

#define PAIRS_MAX 1000000 /* entries of deny times those of allow: more would be work */

/* deny wins, so an entry of allow within one of deny does nothing.  Says the first. */
static void doubt_allowed(const struct weir__doubting *r, const struct weir__list_draft *allow)
{
    const struct weir__list_draft *deny = weir__list_part(r->draft, "deny", allow->attribute);
    enum weir__pattern_kind kind =
        weir__attribute_is_address(allow->attribute) ? WEIR__CIDR : WEIR__EXACT;

    if (deny == NULL || allow->n > PAIRS_MAX || allow->n * deny->n > PAIRS_MAX)
        return;
    for (size_t i = 0; i < allow->n; i++) {
        struct weir__pattern in = { kind, allow->entries[i], strlen(allow->entries[i]), true };
        if (!weir__list_has_around(deny, &in))
            continue;
        weir__doubt(r, allow->mark, "%s is under deny as well, and deny wins",
                    weir__quote(in.text, in.len).text);
        return;
    }
}

static void doubt_entries(const struct weir__doubting *r, const struct weir__list_draft *list)
{
    bool allow = strcmp(list->name, "allow") == 0;

    if (!allow && strcmp(list->name, "deny") != 0)
        return;
    for (size_t i = 0; strcmp(list->attribute, "ip") == 0 && i < list->n; i++) {
        const char *family = whole_family(list->entries[i]);
        if (family)
            weir__doubt(r, list->mark, "%s is %s: %s", list->entries[i], family,
                        allow ? "no rule limits any" : "all are refused, for ever");
    }
    doubt_values(r, list);
    if (allow && list->n > 0 && weir__attribute_is_free(list->attribute) &&
        strncmp(list->attribute, "header.", 7) == 0)
        weir__doubt(r, list->mark, "any client can send this %s, and then no rule limits it",
                    list->attribute);
    if (allow)
        doubt_allowed(r, list);
}

/* The parts of a list are beside each other. */
void weir__doubt_list(const struct weir__doubting *r, size_t i)
{
    const struct weir__list_draft *list = &r->draft->lists[i];

    weir__doubt_name(r, list->mark, list->attribute);
    doubt_entries(r, list);
    if ((i == 0 || strcmp(list->name, list[-1].name) != 0) && !is_used(r->draft, list->name))
        weir__doubt(r, list->mark, "no rule names the list %s, so it does nothing%s",
                    weir__quote(list->name, strlen(list->name)).text, allow_or_deny(list->name));
}
