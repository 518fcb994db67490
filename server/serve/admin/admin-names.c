/* admin-names.c -- names of rules and guards, as an operator writes them. */
#include "server/serve/admin/admin.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "server/base/complain.h"

/* Puts the names of the rules in force, and perhaps of their guards, into `names` as far as there
 * is room; returns how many there are. */
static size_t list_names(struct weir *weir, bool guards, const char **names, size_t room)
{
    struct weir_rule_info rule;
    struct weir_ruled_guard view;
    size_t n = 0;

    for (int64_t at = 0; weir_rule_next(weir, &at, &rule); n++)
        if (n < room)
            names[n] = rule.name;
    for (int64_t at = 0; guards && weir_ruled_guard_next(weir, &at, &view); n++)
        if (n < room)
            names[n] = view.name;
    return n;
}

/* Ended by NULL; NULL: no memory.  The names themselves stay as long as the engine. */
static const char **known_names(struct weir *weir, bool guards)
{
    size_t n = list_names(weir, guards, NULL, 0);
    const char **names = calloc(n + 1, sizeof(*names));

    if (names != NULL)
        list_names(weir, guards, names, n);
    return names;
}

static const char *find_rule(struct weir__verb_call *call, const char *const *names,
                             const char *what, struct weir__text value)
{
    for (const char *const *name = names; *name; name++)
        if (strlen(*name) == value.len && memcmp(*name, value.bytes, value.len) == 0)
            return *name;
    weir__call_fail(call, 404, "there is no %s %s; %s", what, WEIR__SHOWN(value),
                    *names ? weir__hint(value.bytes, value.len, names, WEIR__TO_NULL).text
                           : "no rules are in force");
    return NULL;
}

const char *weir__admin_rule(struct weir__verb_call *call, struct weir__text value, bool guards)
{
    const char **names = known_names(call->server->engine, guards), *found = NULL;

    if (names == NULL)
        weir__call_no_memory(call);
    else
        found = find_rule(call, names, guards ? "rule or guard" : "rule", value);
    free(names);
    return found;
}
