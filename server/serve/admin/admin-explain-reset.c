/* admin-explain-reset.c -- one request's keys: explains the rules' answers, and resets the keys. */
#include <stdio.h>
#include <string.h>

#include "engine/explain.h"
#include "server/describe/explain-json.h"
#include "server/serve/admin/admin.h"
#include "weir-fleet.h"

/* What the fleet knows: what this node has drawn is in the rules' limits. */
static void add_accounts(struct weir__verb_call *call)
{
    struct weir_fleet_account accounts[WEIR_ALL_MAX];
    struct weir_error error = { .text = "" };
    struct weir__buffer *out = &call->out;
    int64_t n =
        weir_fleet_peek(call->server->fleet, call->attrs, call->n_attrs, 1, accounts, &error);

    weir__buffer_member_or_null(out, "accounts_why", n < 0 ? error.text : NULL);
    weir__buffer_open(out, "accounts", '[');
    for (int64_t i = 0; i < n; i++) {
        const struct weir_decision *d = &accounts[i].decision;
        weir__buffer_open(out, NULL, '{');
        weir__buffer_member(out, "rule", accounts[i].rule);
        weir__buffer_member_number(out, "index", accounts[i].limit_index);
        weir__buffer_member(out, "key", accounts[i].key);
        weir__buffer_member_bool(out, "allowed", d->allowed);
        weir__buffer_member_number(out, "limit", d->limit);
        weir__buffer_member_number(out, "remaining", d->remaining);
        weir__buffer_member_ms(out, "retry_ms", d->retry);
        weir__buffer_member_ms(out, "reset_ms", d->reset);
        weir__buffer_close(out, "}");
    }
    weir__buffer_close(out, "]");
}

void weir__admin_explain(struct weir__verb_call *call)
{
    weir__explain_json_begin(call->server->engine, call->attrs, call->n_attrs,
                             &(struct weir_ask){ .cost = 1, .now = call->now }, false, &call->out);
    if (call->server->fleet)
        add_accounts(call);
    weir__buffer_close(&call->out, "}");
}

static bool is_star(struct weir__text value)
{
    return value.len == 1 && value.bytes[0] == '*';
}

/* What a reset does: the rules with a key of this request, the bans that it lifts, and the rules
 * whose bans stay. */
struct lifted {
    const char *only; /* of this rule; NULL: of all that apply */
    size_t n;
    struct {
        char rule[64], key[WEIR_KEY_TEXT];
    } bans[WEIR_ALL_MAX];
    struct weir__buffer rules, still; /* JSON: names, the beginning of a list */
};

static void note_ban(void *context, const struct weir__explained *e)
{
    struct lifted *l = context;

    if (l->only != NULL && strcmp(e->rule->name, l->only) != 0)
        return;
    if (e->why == WEIR__APPLIES || e->why == WEIR__SWITCHED_OFF)
        weir__buffer_member(&l->rules, NULL, e->rule->name);
    else if (e->stays_banned && l->only == NULL)
        weir__buffer_member(&l->still, NULL, e->rule->name);
    if (e->banned_until == 0 || l->n == WEIR_ALL_MAX)
        return;
    snprintf(l->bans[l->n].rule, sizeof(l->bans[0].rule), "%s", e->rule->name);
    snprintf(l->bans[l->n++].key, sizeof(l->bans[0].key), "%s", e->key);
}

static void note_bans(const struct weir__verb_call *call, struct lifted *l)
{
    struct weir__explanation e;

    weir__buffer_open(&l->rules, NULL, '[');
    weir__buffer_open(&l->still, NULL, '[');
    weir__engine_explain(call->server->engine, call->attrs, call->n_attrs,
                         &(struct weir_ask){ .cost = 1, .now = call->now }, &e, note_ban, l);
}

static void tell(const struct weir__verb_call *call, const char *rule, int64_t reset,
                 const struct lifted *l)
{
    struct weir__events *events = call->server->events;

    weir__events_emit(events, WEIR__EVENT_RESET, call->now,
                      &(struct weir__event_facts){ .rule = rule, .source = "api", .count = reset });
    for (size_t i = 0; i < l->n; i++)
        weir__events_emit(events, WEIR__EVENT_UNBAN, call->now,
                          &(struct weir__event_facts){
                              .rule = l->bans[i].rule, .key = l->bans[i].key, .source = "api" });
}

static void add_names(struct weir__buffer *out, const char *name, struct weir__buffer *names)
{
    weir__buffer_close(names, "]");
    weir__buffer_member_name(out, name);
    weir__buffer_add(out, names->bytes, names->len);
    out->failed |= names->failed;
}

static void reset(struct weir__verb_call *call, const char *rule, struct lifted *l)
{
    struct weir_error error;

    note_bans(call, l);
    int64_t n =
        call->server->fleet
            ? weir_fleet_reset(call->server->fleet, rule, call->attrs, call->n_attrs, &error)
            : weir_reset(call->server->engine, rule, call->attrs, call->n_attrs, call->now, &error);
    if (n == WEIR_SYSTEM) {
        weir__call_fail(call, 503, "reset on this node alone: %s", error.text);
        return;
    }
    if (n < 0) {
        weir__call_fail_code(call, (int)n, &error);
        return;
    }
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member_or_null(&call->out, "rule", rule);
    weir__buffer_member_number(&call->out, "reset", n);
    add_names(&call->out, "rules", &l->rules);
    add_names(&call->out, "still_banned", &l->still);
    weir__buffer_close(&call->out, "}");
    if (n > 0)
        tell(call, rule, n, l);
}

void weir__admin_reset(struct weir__verb_call *call)
{
    bool all = is_star(call->values[0].text);
    const char *rule = all ? NULL : weir__admin_rule(call, call->values[0].text, false);
    struct lifted lifted = { .only = rule, .n = 0 };

    if (all || rule != NULL)
        reset(call, rule, &lifted);
    weir__buffer_free(&lifted.rules);
    weir__buffer_free(&lifted.still);
}
