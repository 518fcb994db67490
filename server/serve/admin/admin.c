/* admin.c -- what an operator can ask of the server: the rows, how one is found, and what their
 * functions share.
 *
 * The functions are in admin-*.c, by subject.  None of them runs on a loop's thread: they read and
 * write files, or may wait for somebody who changes the rules and holds the engine's mutex
 * meanwhile.
 */
#include "server/serve/admin/admin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "engine/engine.h"
#include "rulefile/problem.h"
#include "server/serve/admin/admin-parts.h"
#include "server/base/text.h"

#define RULE      "rule", "name of a rule"
#define KEY       "key", "the key, as listings show it: 192.0.2.7, 192.0.2.0/24:ann"
#define LIST      "list", "allow, deny, or a list that the rules name"
#define ATTRIBUTE "attribute", "what the entries are: ip, account, header.x-app"
#define TEXT      "text", "the rules, as a rule file has them"

enum { ARGUMENTS = false, RAW_BODY = true, NEEDED = false, OPTIONAL = true };

/* clang-format off */
const struct weir__admin weir__admin_rows[] = {
    { "WEIR.STATUS", "GET", "/v1/status", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_status,
      "How the server is doing: version, uptime, connections, rules in force, table, totals.",
      { { 0 } } },
    { "WEIR.SETTINGS", "GET", "/v1/settings", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_settings,
      "The settings in force; secrets are not shown.",
      { { 0 } } },
    { "WEIR.RULES", "GET", "/v1/rules", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_rules,
      "The rules in force: their text, and which they are (hash, source, since when).",
      { { 0 } } },
    { "WEIR.RULES.SET", "PUT", "/v1/rules", WEIR__ROLE_ADMIN, RAW_BODY, WEIR__REST_NONE, weir__admin_rules_set,
      "Puts other rules in force, and keeps them.  If anything is wrong with them, nothing changes.",
      { { TEXT, NEEDED } } },
    { "WEIR.RULES.CHECK", "POST", "/v1/rules/check", WEIR__ROLE_ADMIN, RAW_BODY, WEIR__REST_NONE, weir__admin_rules_check,
      "Says whether a text would do as rules, and everything that is wrong with it.",
      { { TEXT, NEEDED } } },
    { "WEIR.RULES.RELOAD", "POST", "/v1/rules/reload", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_rules_reload,
      "Reads the rule file again.  If anything is wrong with it, nothing changes.",
      { { 0 } } },
    { "WEIR.BANS", "GET", "/v1/bans", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_bans,
      "The bans in force, of all rules or of one.",
      { { RULE, OPTIONAL } } },
    { "WEIR.BAN", "POST", "/v1/bans", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_ban,
      "Keeps a key of a rule out for a time; of one that is out already, the end changes.",
      { { RULE, NEEDED }, { KEY, NEEDED }, { "for", "how long: 10m, 1h, 90s", NEEDED } } },
    { "WEIR.UNBAN", "DELETE", "/v1/bans", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_unban,
      "Lifts a ban, and forgets those before it.",
      { { RULE, NEEDED }, { KEY, NEEDED } } },
    { "WEIR.LISTS", "GET", "/v1/lists", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_lists,
      "The lists that rules look at, and what was changed in them by hand.",
      { { 0 } } },
    { "WEIR.LIST.ADD", "POST", "/v1/lists", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_ENTRIES, weir__admin_list_add,
      "Adds entries to a list: addresses and networks, or whole values.",
      { { LIST, NEEDED }, { ATTRIBUTE, NEEDED } } },
    { "WEIR.LIST.REMOVE", "DELETE", "/v1/lists", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_ENTRIES, weir__admin_list_remove,
      "Removes entries from a list.",
      { { LIST, NEEDED }, { ATTRIBUTE, NEEDED } } },
    { "WEIR.MODES", "GET", "/v1/modes", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_modes,
      "The mode of the whole set, of every rule and of every guard: as written, by hand, in force; and what each has done.",
      { { 0 } } },
    { "WEIR.MODE", "PUT", "/v1/modes", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_mode,
      "Switches a rule or a guard, or all of them, by hand.",
      { { "mode", "enforce, shadow (decide and count, but let through), off, or as-written", NEEDED },
        { "rule", "name of a rule or a guard; without it, all of them", OPTIONAL } } },
    { "WEIR.GUARDS", "GET", "/v1/guards", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_guards,
      "The guards: how they are doing, what they have done, how they are set; of one of them, what has changed lately too.",
      { { "guard", "name of a guard; without it, all of them", OPTIONAL } } },
    { "WEIR.GUARD.FORCE", "PUT", "/v1/guards", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_guard_force,
      "Forces a guard's breaker by hand, or ends that; it begins anew then, closed.",
      { { "guard", "name of a guard", NEEDED }, { "force", "open (refuse all), closed (whatever happens), or none", NEEDED } } },
    { "WEIR.DEGRADE", "GET", "/v1/degradation", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_degradation,
      "The degradation, 0 (none) to 9.",
      { { 0 } } },
    { "WEIR.DEGRADE.SET", "PUT", "/v1/degradation", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_degradation_set,
      "Sets the degradation by hand, or lets it follow the guards.",
      { { "degradation", "0 (none) to 9; auto: it follows the guards' breakers and system protection", NEEDED } } },
    { "WEIR.RESET", "POST", "/v1/reset", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_ATTRIBUTES, weir__admin_reset,
      "Forgets what the request's keys have used, and lifts their bans; answers how many rules have such a key.",
      { { "rule", "name of a rule; * for every rule that applies to the request", NEEDED } } },
    { "WEIR.EXPLAIN", "POST", "/v1/explain", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_ATTRIBUTES, weir__admin_explain,
      "What every rule says to a request, and why.  Nothing is taken.",
      { { 0 } } },
    { "WEIR.TOP", "GET", "/v1/top", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_top,
      "The keys that were refused most in the last ten to twenty minutes.",
      { { "n", "how many at the most; default 20", OPTIONAL } } },
    { "WEIR.EVENTS", "GET", "/v1/events/recent", WEIR__ROLE_ADMIN, ARGUMENTS, WEIR__REST_NONE, weir__admin_events,
      "The events that are kept, oldest first.",
      { { "after", "number of the last event that is known already; default 0", OPTIONAL } } },
    { 0 },
};
/* clang-format on */

/* --------------------------------------------------------------- finding ---- */

const struct weir__admin *weir__admin_by_command(const char *name, size_t len)
{
    for (const struct weir__admin *row = weir__admin_rows; row->command; row++)
        if (strlen(row->command) == len && strncasecmp(row->command, name, len) == 0)
            return row;
    return NULL;
}

static bool is_text(const char *text, const char *bytes, size_t len)
{
    return strlen(text) == len && memcmp(text, bytes, len) == 0;
}

const struct weir__admin *weir__admin_by_path(const char *method, size_t method_len,
                                              const char *path, size_t path_len, bool *path_known)
{
    bool known = false;
    const struct weir__admin *row = weir__admin_rows;

    for (; row->command; row++) {
        if (!is_text(row->path, path, path_len))
            continue;
        known = true;
        if (is_text(row->method, method, method_len))
            break;
    }
    *path_known = known;
    return row->command ? row : NULL;
}

/* --------------------------------------------------------------- failing ---- */

/* What somebody sent may be in it: it stays one line, and nothing that a terminal obeys. */
void weir__admin_fail(struct weir__admin_call *call, int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(call->message, sizeof(call->message), format, args);
    va_end(args);
    for (unsigned char *c = (unsigned char *)call->message; *c; c++)
        *c = *c < ' ' || *c == 0x7f ? '?' : *c;
    call->status = status;
}

void weir__admin_no_memory(struct weir__admin_call *call)
{
    weir__admin_fail(call, 503, "out of memory");
}

void weir__admin_fail_code(struct weir__admin_call *call, int code, const struct weir_error *error)
{
    int status = code == WEIR_NO_MEMORY                        ? 503
                 : code == WEIR_SYSTEM || code == WEIR_CORRUPT ? 500
                                                               : 400;

    weir__admin_fail(call, status, "%s", error->text);
}

/* ------------------------------------------------------------ parameters ---- */

char *weir__admin_copy(struct weir__admin_call *call, struct weir__span value, const char *name)
{
    if (value.bytes == NULL) {
        weir__admin_fail(call, 400, "%s is missing", name);
        return NULL;
    }
    if (memchr(value.bytes, 0, value.len)) {
        weir__admin_fail(call, 400, "%s has a NUL byte in it: %s", name, WEIR__SHOWN(value));
        return NULL;
    }
    char *copy = malloc(value.len + 1);
    if (copy == NULL) {
        weir__admin_no_memory(call);
        return NULL;
    }
    memcpy(copy, value.bytes, value.len);
    copy[value.len] = '\0';
    return copy;
}

bool weir__admin_count(struct weir__admin_call *call, size_t i, const char *name, int64_t min,
                       int64_t max, int64_t *out)
{
    struct weir__span value = call->values[i];
    int64_t n = 0;
    size_t at = 0;

    if (value.bytes == NULL)
        return true;
    for (; at < value.len && value.bytes[at] >= '0' && value.bytes[at] <= '9' && n <= max; at++)
        n = n > (INT64_MAX - 9) / 10 ? INT64_MAX : n * 10 + (value.bytes[at] - '0');
    if (value.len == 0 || at < value.len || n < min || n > max) {
        weir__admin_fail(call, 400, "%s is a whole number from %lld to %lld, and not %s", name,
                         (long long)min, (long long)max, WEIR__SHOWN(value));
        return false;
    }
    *out = n;
    return true;
}

/* An empty value has to point to a NUL byte: that is what a length of 0 means to the engine. */
static bool read_attribute(struct weir__admin_call *call, struct weir__span name,
                           struct weir__span value, struct weir_attr *out)
{
    if (name.len == 0 || memchr(name.bytes, 0, name.len)) {
        weir__admin_fail(
            call, 400,
            "%s is no name of an attribute: write ip, uri, account or the like, and its value",
            WEIR__SHOWN(name));
        return false;
    }
    *out = (struct weir_attr){ .name = name.bytes,
                               .name_len = name.len,
                               .value = value.len ? value.bytes : "",
                               .value_len = value.len };
    return true;
}

bool weir__admin_attributes(struct weir__admin_call *call,
                            struct weir_attr attrs[WEIR__CHECK_ATTRS], size_t *n)
{
    if (call->n_rest % 2 != 0) {
        weir__admin_fail(call, 400, "attribute %s has no value: write name value name value ...",
                         WEIR__SHOWN(call->rest[call->n_rest - 1]));
        return false;
    }
    if (call->n_rest / 2 > WEIR__CHECK_ATTRS) {
        weir__admin_fail(call, 400, "%zu attributes are too many: at most %d", call->n_rest / 2,
                         WEIR__CHECK_ATTRS);
        return false;
    }
    for (size_t i = 0; i < call->n_rest; i += 2)
        if (!read_attribute(call, call->rest[i], call->rest[i + 1], &attrs[i / 2]))
            return false;
    *n = call->n_rest / 2;
    return true;
}

char **weir__admin_entries(struct weir__admin_call *call)
{
    if (call->n_rest == 0) {
        weir__admin_fail(call, 400, "entries are missing: name one or more, such as 192.0.2.0/24");
        return NULL;
    }
    char **texts = calloc(call->n_rest, sizeof(*texts));
    if (texts == NULL) {
        weir__admin_no_memory(call);
        return NULL;
    }
    for (size_t i = 0; i < call->n_rest; i++) {
        texts[i] = weir__admin_copy(call, call->rest[i], "an entry");
        if (texts[i] == NULL) {
            weir__admin_free(texts, i);
            return NULL;
        }
    }
    return texts;
}

void weir__admin_free(char **texts, size_t n)
{
    for (size_t i = 0; texts != NULL && i < n; i++)
        free(texts[i]);
    free(texts);
}

/* ----------------------------------------------------------------- rules ---- */

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

static const char *find_rule(struct weir__admin_call *call, const char *const *names,
                             const char *what, struct weir__span value)
{
    for (const char *const *name = names; *name; name++)
        if (is_text(*name, value.bytes, value.len))
            return *name;
    const char *near = weir__nearest(value.bytes, value.len, names, WEIR__TO_NULL);
    if (near)
        weir__admin_fail(call, 404, "there is no %s %s; did you mean '%s'?", what,
                         WEIR__SHOWN(value), near);
    else
        weir__admin_fail(call, 404, "there is no %s %s; %s", what, WEIR__SHOWN(value),
                         *names ? "WEIR.MODES (weir mode, GET /v1/modes) lists them"
                                : "no rules are in force");
    return NULL;
}

static const char *find_name(struct weir__admin_call *call, struct weir__span value, bool guards)
{
    if (value.bytes == NULL) {
        weir__admin_fail(call, 400, "rule is missing");
        return NULL;
    }
    const char **names = known_names(call->server->engine, guards), *found = NULL;
    if (names == NULL)
        weir__admin_no_memory(call);
    else
        found = find_rule(call, names, guards ? "rule or guard" : "rule", value);
    free(names);
    return found;
}

const char *weir__admin_rule(struct weir__admin_call *call, struct weir__span value)
{
    return find_name(call, value, false);
}

const char *weir__admin_switch(struct weir__admin_call *call, struct weir__span value)
{
    return find_name(call, value, true);
}
