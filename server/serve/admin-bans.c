/* admin-bans.c -- keys that rules keep out: listed, banned by hand, let in again. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "rules/problem.h"
#include "serve/admin-parts.h"

static void add_ban(struct weir__buffer *out, const struct weir_ban *ban, weir_time now)
{
    weir__buffer_text(out, "{");
    weir__buffer_member(out, "rule", ban->rule);
    weir__buffer_member(out, "key", ban->key);
    weir__buffer_member_moment(out, "since", ban->since);
    weir__buffer_member_moment(out, "until", ban->until);
    weir__buffer_member_number(out, "left_ms", weir__admin_ms(ban->until - now));
    weir__buffer_member_number(out, "strikes", ban->strikes);
    weir__buffer_text(out, "}");
}

/* --------------------------------------------------------------- listing ---- */

struct listing {
    const struct weir__admin_call *call;
    struct weir__span rule; /* bytes NULL: all */
    size_t n;
};

static bool list_ban(void *context, const struct weir_ban *ban)
{
    struct listing *l = context;

    if (l->rule.bytes && (strlen(ban->rule) != l->rule.len || memcmp(ban->rule, l->rule.bytes, l->rule.len) != 0))
        return true;
    weir__buffer_text(l->call->out, l->n++ ? "," : "");
    add_ban(l->call->out, ban, l->call->now);
    return true;
}

/* Bans of a rule that is gone are listed as well: it is only unknown if it has none. */
void weir__admin_bans(struct weir__admin_call *call)
{
    struct listing l = { .call = call, .rule = call->values[0] };
    size_t before = call->out->len;

    weir__buffer_text(call->out, "{");
    weir__buffer_member_moment(call->out, "now", call->now);
    weir__buffer_text(call->out, ",\"bans\":[");
    weir_ban_list(call->server->engine, call->now, list_ban, &l);
    weir__buffer_text(call->out, "]}");
    if (l.n == 0 && l.rule.bytes && weir__admin_rule(call, l.rule) == NULL)
        call->out->len = before;
}

/* --------------------------------------------------------------- banning ---- */

static bool read_length(struct weir__admin_call *call, weir_time *out)
{
    struct weir_error error;
    char *text = weir__admin_copy(call, call->values[2], "for");
    int code = text ? weir_time_parse(out, text, &error) : WEIR_OK;

    free(text);
    if (text == NULL)
        return false;
    if (code != WEIR_OK)
        weir__admin_fail(call, 400, "for: %s", error.text);
    else if (*out <= 0)
        weir__admin_fail(call, 400, "for: a ban lasts a while: 10m, 1h, 90s");
    else if (*out >= WEIR_NEVER - call->now)
        weir__admin_fail(call, 400, "for: %s is too long: centuries are more than a ban can last", WEIR__SHOWN(call->values[2]));
    return call->status == 200;
}

struct search {
    const char *rule, *key;
    char shortened[WEIR__KEY_TEXT]; /* the key, as it is listed if it is long */
    struct weir_ban found;          /* rule "": none */
};

/* 192.0.2.7 is 192.0.2.0/24 to a rule of {ip/24}, and an address is listed in its usual form, however it was written. */
static bool is_address_of(const char *key, const char *listed)
{
    struct weir__cidr own, net;

    if (weir__cidr_parse(key, strlen(key), &own, NULL) != WEIR_OK || weir__cidr_parse(listed, strlen(listed), &net, NULL) != WEIR_OK)
        return false;
    if (own.address.bits != net.address.bits)
        return false;
    weir__address_mask(&own.address, net.prefix);
    return memcmp(own.address.bytes, net.address.bytes, net.address.bits / 8u) == 0;
}

/* The same text is certain; else the same address will do. */
static bool find_ban(void *context, const struct weir_ban *ban)
{
    struct search *s = context;

    if (strcmp(ban->rule, s->rule) != 0)
        return true;
    bool exact = strcmp(ban->key, s->shortened) == 0;
    if (exact || is_address_of(s->key, ban->key))
        s->found = *ban;
    return !exact;
}

static void set_ban(struct weir__admin_call *call, const char *rule, const char *key, weir_time length)
{
    struct weir *weir = call->server->engine;
    struct search s = { .rule = rule, .key = key };
    struct weir_error error;
    int code = weir_ban_set(weir, rule, key, call->now, call->now + length, &error);

    if (code != WEIR_OK) {
        weir__admin_fail_code(call, code, &error);
        return;
    }
    weir__key_text_shorten(weir->table->secrets, key, s.shortened);
    weir_ban_list(weir, call->now, find_ban, &s);
    if (s.found.rule[0] == '\0') { /* somebody has lifted it already, or there was no room for it */
        weir__admin_fail(call, 409, "the ban is not there any more: it was lifted, or had to make room for another");
        return;
    }
    add_ban(call->out, &s.found, call->now);
    weir__events_emit(call->server->events, WEIR__EVENT_BAN, call->now,
                      &(struct weir__event_facts){ .rule = rule, .key = s.found.key, .source = "api", .until = s.found.until });
}

void weir__admin_ban(struct weir__admin_call *call)
{
    weir_time length = 0;
    const char *rule = weir__admin_rule(call, call->values[0]);
    char *key = rule ? weir__admin_copy(call, call->values[1], "key") : NULL;

    if (key && read_length(call, &length))
        set_ban(call, rule, key, length);
    free(key);
}

/* --------------------------------------------------------------- lifting ---- */

static void lift_ban(struct weir__admin_call *call, const char *rule, const char *key)
{
    if (!weir_ban_lift(call->server->engine, rule, key, call->now)) {
        if (weir__admin_rule(call, call->values[0]))
            weir__admin_fail(call, 404, "rule '%s' has not banned %s", rule, WEIR__SHOWN(call->values[1]));
        return;
    }
    weir__buffer_text(call->out, "{");
    weir__buffer_member(call->out, "rule", rule);
    weir__buffer_member(call->out, "key", key);
    weir__admin_member_bool(call->out, "banned", false);
    weir__buffer_text(call->out, "}");
    weir__events_emit(call->server->events, WEIR__EVENT_UNBAN, call->now,
                      &(struct weir__event_facts){ .rule = rule, .key = key, .source = "api" });
}

/* The rule may be gone: its bans are still there. */
void weir__admin_unban(struct weir__admin_call *call)
{
    char *rule = weir__admin_copy(call, call->values[0], "rule");
    char *key = rule ? weir__admin_copy(call, call->values[1], "key") : NULL;

    if (key)
        lift_ban(call, rule, key);
    free(key);
    free(rule);
}
