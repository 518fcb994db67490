/* admin-bans.c -- keys that rules keep out: listed, banned by hand, let in again. */
#include <string.h>

#include "base/base.h"
#include "server/describe/ban-json.h"
#include "server/serve/admin/admin.h"

/* --------------------------------------------------------------- listing ---- */

/* Bans of a rule that is gone are listed as well: it is only unknown if it has none. */
void weir__admin_bans(struct weir__verb_call *call)
{
    struct weir__text rule = call->values[0].text; /* bytes NULL: all */
    size_t before = call->out.len, n = 0;
    struct weir_ban ban;

    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member_moment(&call->out, "now", weir_table_real(call->server->table, call->now));
    weir__buffer_open(&call->out, "bans", '[');
    for (int64_t at = 0; weir_ban_next(call->server->engine, call->now, &at, &ban);)
        if (!rule.bytes ||
            (strlen(ban.rule) == rule.len && memcmp(ban.rule, rule.bytes, rule.len) == 0)) {
            weir__ban_json(&call->out, call->server->table, &ban, call->now);
            n++;
        }
    weir__buffer_close(&call->out, "]}");
    if (n == 0 && rule.bytes && weir__admin_rule(call, rule, false) == NULL)
        call->out.len = before;
}

/* --------------------------------------------------------------- banning ---- */

static bool read_length(struct weir__verb_call *call, weir_time *out)
{
    struct weir_error error;

    if (weir_time_parse(out, call->values[2].text.bytes, &error) != WEIR_OK)
        return weir__call_fail(call, 400, "for: %s", error.text);
    if (*out <= 0)
        return weir__call_fail(call, 400, "for: a ban lasts a while: 10m, 1h, or 90 for seconds");
    if (*out >= WEIR_NEVER - call->now)
        return weir__call_fail(call, 400, "for: %s is too long: a ban cannot last for centuries",
                               WEIR__SHOWN(call->values[2].text));
    return true;
}

/* The ban of this key, as listings show it. */
struct search {
    const char *rule, *key;
    struct weir_ban found;
};

static bool find_ban(struct weir__verb_call *call, struct search *s)
{
    for (int64_t at = 0; weir_ban_next(call->server->engine, call->now, &at, &s->found);)
        if (strcmp(s->found.rule, s->rule) == 0 && strcmp(s->found.key, s->key) == 0)
            return true;
    return false;
}

static void set_ban(struct weir__verb_call *call, const char *rule, const char *key,
                    weir_time length)
{
    struct weir *weir = call->server->engine;
    struct weir_error error;
    char text[WEIR_KEY_TEXT];
    struct search s = { .rule = rule, .key = text };
    int code = weir_ban_key(weir, rule, key, text, &error);

    if (code == WEIR_OK)
        code = weir_ban_set(weir, rule, key, call->now, call->now + length, &error);
    if (code != WEIR_OK) {
        weir__call_fail_code(call, code, &error);
        return;
    }
    if (!find_ban(call, &s)) { /* somebody has lifted it already, or there was no room for it */
        weir__call_fail(
            call, 409,
            "the ban is not there any more: it was lifted, or had to make room for another");
        return;
    }
    weir__ban_json(&call->out, call->server->table, &s.found, call->now);
    weir__events_emit(
        call->server->events, WEIR__EVENT_BAN, call->now,
        &(struct weir__event_facts){
            .rule = rule, .key = s.found.key, .source = "api", .until = s.found.until });
}

void weir__admin_ban(struct weir__verb_call *call)
{
    weir_time length = 0;
    const char *rule = weir__admin_rule(call, call->values[0].text, false);

    if (rule && read_length(call, &length))
        set_ban(call, rule, call->values[1].text.bytes, length);
}

/* --------------------------------------------------------------- lifting ---- */

/* The key is told as the ban had it: as the rule makes it, or, if the rule has another key by now
 * or is gone, as it was written. */
static void lift_ban(struct weir__verb_call *call, const char *rule, const char *key)
{
    char text[WEIR_KEY_TEXT];
    struct search s = { .rule = rule, .key = text };
    bool made =
        weir_ban_key(call->server->engine, rule, key, text, NULL) == WEIR_OK && find_ban(call, &s);

    if (!weir_ban_lift(call->server->engine, rule, key, call->now)) {
        if (weir__admin_rule(call, call->values[0].text, false))
            weir__call_fail(call, 404, "rule '%s' has not banned %s", rule,
                            WEIR__SHOWN(call->values[1].text));
        return;
    }
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member(&call->out, "rule", rule);
    weir__buffer_member(&call->out, "key", made ? text : key);
    weir__buffer_member_bool(&call->out, "banned", false);
    weir__buffer_close(&call->out, "}");
    weir__events_emit(
        call->server->events, WEIR__EVENT_UNBAN, call->now,
        &(struct weir__event_facts){ .rule = rule, .key = made ? text : key, .source = "api" });
}

/* The rule may be gone: its bans are still there. */
void weir__admin_unban(struct weir__verb_call *call)
{
    lift_ban(call, call->values[0].text.bytes, call->values[1].text.bytes);
}
