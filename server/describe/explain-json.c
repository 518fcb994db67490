/* explain-json.c -- the rules' answer to one request, and why, as one JSON object. */
#include "server/describe/explain-json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "server/describe/rules-words.h"

struct show {
    struct weir__buffer *out;
    const struct weir__explanation
        *x; /* its list and mode are known before the first rule is shown */
    weir_time now;
    bool applying;
    const char *guard; /* the first that refuses; NULL: none */
    enum weir_reason reason;
};

/* Whether the rule, by itself, refuses. */
static bool refuses(const struct weir__explained *rule)
{
    bool no = rule->banned_until != 0;

    for (size_t i = 0; i < rule->n_limits; i++)
        no = no || (!rule->limits[i].decision.allowed && /* dry: it draws first */
                    rule->limits[i].decision.reason != WEIR_DRY);
    return no;
}

/* Whether rules are asked at all: a list decides before any of them is; but in shadow the deny list
 * does not. */
static bool asks_rules(const struct weir__explanation *x)
{
    return x->list == NULL || x->mode == WEIR_OFF ||
           (x->mode == WEIR_SHADOW && strcmp(x->list, "deny") == 0);
}

static void add_decision(struct weir__buffer *out, const struct weir_decision *d)
{
    weir__buffer_member_bool(out, "allowed", d->allowed);
    weir__buffer_member(out, "reason", weir_reason_name(d->reason));
    weir__buffer_member_number(out, "limit", d->limit);
    weir__buffer_member_number(out, "remaining", d->remaining);
    weir__buffer_member_ms(out, "retry_ms", d->allowed ? WEIR_NEVER : d->retry);
    weir__buffer_member_ms(out, "reset_ms", d->reset);
}

static void add_limits(struct weir__buffer *out, const struct weir__explained *e)
{
    weir__buffer_open(out, "limits", '[');
    for (size_t i = 0; i < e->n_limits; i++) {
        char text[192];
        weir_limit_print(text, sizeof(text), e->limits[i].limit);
        weir__buffer_open(out, NULL, '{');
        add_decision(out, &e->limits[i].decision);
        weir__buffer_member(out, "written", text);
        if (e->limits[i].present.count != 0) {
            weir_limit_print(text, sizeof(text), &e->limits[i].present);
            weir__buffer_member(out, "in_table", text);
        }
        weir__buffer_close(out, "}");
    }
    weir__buffer_close(out, "]");
}

static const char *why_name(enum weir__why why)
{
    static const char *const names[] = { "applies", "off", "unmatched", "excepted", "no-key" };

    return names[why];
}

static const char *across_name(enum weir__across across)
{
    static const char *const names[] = { NULL, "purse", "share", "open", "closed", "none" };

    return names[across];
}

/* --------------------------------------------- why a rule does not apply ---- */

static void write_value(FILE *to, const struct weir__explained *e)
{
    if (e->value == NULL) {
        fprintf(to, "there is no %s", e->attribute);
        return;
    }
    fprintf(to, "%s is ", e->attribute);
    weir__rules_words_value(to, e->value, e->value_len);
}

static void write_why(FILE *to, const struct weir__explained *e)
{
    switch (e->why) {
    case WEIR__UNMATCHED:
        write_value(to, e);
        fputs(", and it is for ", to);
        weir__rules_words_condition(to, e->condition, 3);
        break;
    case WEIR__EXCEPTED:
        write_value(to, e);
        fputs(", and it is not for ", to);
        weir__rules_words_condition(to, e->condition, 3);
        break;
    case WEIR__NO_KEY:
        fputs("its key ", to);
        weir__rules_words_value(to, e->rule->key, strlen(e->rule->key));
        fprintf(to, " needs %s, and there is none", e->attribute);
        break;
    case WEIR__SWITCHED_OFF:
        fputs("it would apply, but it is switched off", to);
        break;
    case WEIR__APPLIES:
        break;
    }
}

/* In words, with the request's own values. */
static void add_because(struct weir__buffer *out, const struct weir__explained *e)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);

    if (to != NULL) {
        write_why(to, e);
        fclose(to);
    }
    if (text == NULL)
        out->failed = true;
    else
        weir__buffer_member(out, "because", text);
    free(text);
}

/* ------------------------------------------------------------------ rules ---- */

static void add_rule(void *context, const struct weir__explained *e)
{
    struct show *s = context;

    if (s->applying && e->why != WEIR__APPLIES)
        return;
    weir__buffer_open(s->out, NULL, '{');
    weir__buffer_member(s->out, "rule", e->rule->name);
    weir__buffer_member(s->out, "why", why_name(e->why));
    weir__buffer_member(s->out, "mode", weir_mode_name(e->mode));
    weir__buffer_member_bool(s->out, "asked", e->why == WEIR__APPLIES && asks_rules(s->x));
    if (e->why == WEIR__APPLIES || e->why == WEIR__SWITCHED_OFF) {
        weir__buffer_member(s->out, "key", e->key);
        weir__buffer_member_number(s->out, "cost", e->cost);
        weir__buffer_member_bool(s->out, "refuses", refuses(e));
        if (e->banned_until != 0)
            weir__buffer_member_ms(s->out, "banned_for_ms",
                                   e->banned_until == WEIR_NEVER ? WEIR_NEVER
                                                                 : e->banned_until - s->now);
        if (e->across != WEIR__ACROSS_HOST)
            weir__buffer_member(s->out, "fleet", across_name(e->across));
        add_limits(s->out, e);
    } else {
        weir__buffer_member_or_null(s->out, "attribute", e->attribute);
    }
    if (e->why != WEIR__APPLIES)
        add_because(s->out, e);
    weir__buffer_close(s->out, "}");
}

/* ----------------------------------------------------------------- guards ---- */

static void add_state(struct weir__buffer *out, const struct weir__explained_guard *g)
{
    weir__buffer_member(out, "user", g->as_rule.key);
    if (*g->key) {
        weir__buffer_member(out, "key", g->key);
        weir__buffer_member_number(out, "key_in_flight", g->key_in_flight);
        weir__buffer_member_number(out, "max_per_key", g->guard->options.max_per_key);
    }
    weir__buffer_member_number(out, "priority", g->priority);
    weir__buffer_member_or_null(
        out, "class",
        g->user_class < g->guard->n_classes ? g->guard->options.classes[g->user_class].name : NULL);
    weir__buffer_member_bool(out, "refuses", g->refuses);
    weir__buffer_member(out, "reason", weir_reason_name(g->reason));
    weir__buffer_member_number(out, "in_flight", g->info.in_flight);
    weir__buffer_member_number(out, "limit", g->info.limit);
    weir__buffer_member(out, "breaker", weir_breaker_state_name(g->info.breaker));
    weir__buffer_member_number(out, "admitted_percent", g->info.admitted_percent);
}

static void add_guard(void *context, const struct weir__explained_guard *g)
{
    struct show *s = context;
    const struct weir__explained *e = &g->as_rule;

    bool first = s->guard == NULL || /* or there are too many, which is seen before any is asked */
                 (g->reason == WEIR_TOO_MANY && s->reason != WEIR_TOO_MANY);

    if (first && e->why == WEIR__APPLIES && e->mode == WEIR_ENFORCE && g->refuses) {
        s->guard = e->rule->name;
        s->reason = g->reason;
    }
    if (s->applying && e->why != WEIR__APPLIES)
        return;
    weir__buffer_open(s->out, NULL, '{');
    weir__buffer_member(s->out, "guard", e->rule->name);
    weir__buffer_member(s->out, "why", why_name(e->why));
    weir__buffer_member(s->out, "mode", weir_mode_name(e->mode));
    if (e->why == WEIR__APPLIES)
        add_state(s->out, g);
    else
        add_because(s->out, e);
    weir__buffer_close(s->out, "}");
}

static void add_ruling(struct weir__buffer *out, const struct weir__explanation *x)
{
    const struct weir_ruling *r = &x->ruling;

    weir__buffer_open(out, "ruling", '{');
    add_decision(out, &r->decision);
    weir__buffer_member_or_null(out, "rule", r->rule);
    weir__buffer_member_or_null(out, "list", x->list);
    weir__buffer_member_or_null(out, "list_attribute", x->list != NULL ? x->list_attribute : NULL);
    weir__buffer_member_or_null(out, "shadow", r->shadow);
    weir__buffer_member(out, "mode", weir_mode_name(x->mode));
    weir__buffer_member_number(out, "applied", r->applied);
    weir__buffer_member_number(out, "level", r->level);
    weir__buffer_close(out, "}");
}

/* What weir_check_enter would say: lists and bans, then the guards, then the limits. */
static void add_enter(const struct show *s)
{
    const struct weir_decision *d = &s->x->ruling.decision;
    bool first = !d->allowed && (d->reason == WEIR_DENIED || d->reason == WEIR_BANNED);
    const char *guard = first ? NULL : s->guard;

    weir__buffer_open(s->out, "enter", '{');
    weir__buffer_member_bool(s->out, "allowed", d->allowed && guard == NULL);
    weir__buffer_member_or_null(s->out, "guard", guard);
    weir__buffer_member(s->out, "reason",
                        weir_reason_name(guard ? s->reason : (enum weir_reason)d->reason));
    weir__buffer_close(s->out, "}");
}

bool weir__explain_json_begin(struct weir *weir, const struct weir_attr *attrs, size_t n,
                              const struct weir_ask *ask, bool applying, struct weir__buffer *out)
{
    struct weir__explanation x;
    struct show s = { .out = out, .x = &x, .now = ask->now, .applying = applying };

    weir__buffer_open(out, NULL, '{');
    weir__buffer_open(out, "rules", '[');
    weir__engine_explain(weir, attrs, n, ask, &x, add_rule, &s);
    weir__buffer_close(out, "]");
    weir__buffer_open(out, "guards", '[');
    weir__engine_explain_guards(weir, attrs, n, ask, add_guard, &s);
    weir__buffer_close(out, "]");
    add_ruling(out, &x);
    add_enter(&s);
    weir__unused_json(weir, attrs, n, out);
    return x.ruling.decision.allowed;
}

bool weir__explain_json(struct weir *weir, const struct weir_attr *attrs, size_t n,
                        const struct weir_ask *ask, bool applying, struct weir__buffer *out)
{
    bool allowed = weir__explain_json_begin(weir, attrs, n, ask, applying, out);

    weir__buffer_close(out, "}");
    return allowed;
}
