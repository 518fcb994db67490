/* explain-json.c -- what the rules say to one request, and why, as one JSON object.
 *
 * Times are seconds, null for never: as `weir explain --json` has had them from the beginning.
 */
#include "explain-json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules-words.h"
#include "text.h"

struct show {
    struct weir__buffer *out;
    const struct weir__explanation *x; /* its list and mode are known before the first rule is shown */
    weir_time now;
    bool applying;
    size_t shown;
};

/* Whether the rule, by itself, refuses. */
static bool refuses(const struct weir__explained *rule)
{
    bool no = rule->banned_until != 0;

    for (size_t i = 0; i < rule->n_limits; i++)
        no = no || !rule->limits[i].decision.allowed;
    return no;
}

/* Whether rules are asked at all: a list decides before any of them is; but in shadow the deny list does not. */
static bool asks_rules(const struct weir__explanation *x)
{
    return x->list == NULL || x->mode == WEIR_OFF || (x->mode == WEIR_SHADOW && strcmp(x->list, "deny") == 0);
}

/* Whether a rule or a list looks at an attribute of this name; names of headers have no case. */
static bool is_used(const struct weir__attributes *known, const struct weir_attr *attr)
{
    size_t len = attr->name_len ? attr->name_len : strlen(attr->name);
    char *name = len < WEIR__ATTRIBUTE_SIZE ? strndup(attr->name, len) : NULL;
    char *small = name ? weir__attribute_small(name) : NULL;
    bool found = small != NULL && weir__attribute_find(known, small, strlen(small)) >= 0;

    free(small);
    free(name);
    return found;
}

static const char *yes_or_no(bool is)
{
    return is ? "true" : "false";
}

static void add_member(struct weir__buffer *out, const char *name, const char *value)
{
    if (value != NULL)
        weir__buffer_member(out, name, value);
    else
        weir__buffer_format(out, ",\"%s\":null", name);
}

static void add_time(struct weir__buffer *out, const char *name, weir_time t)
{
    if (t == WEIR_NEVER)
        weir__buffer_format(out, ",\"%s\":null", name);
    else
        weir__buffer_format(out, ",\"%s\":%lld.%09lld", name, (long long)(t / WEIR_SECOND), (long long)(t % WEIR_SECOND));
}

static void add_decision(struct weir__buffer *out, const struct weir_decision *d)
{
    weir__buffer_format(out, "\"allowed\":%s,\"reason\":\"%s\",\"limit\":%lld,\"remaining\":%lld", yes_or_no(d->allowed),
                        weir_reason_name(d->reason), (long long)d->limit, (long long)d->remaining);
    add_time(out, "retry", d->retry);
    add_time(out, "reset", d->reset);
}

static void add_limits(struct weir__buffer *out, const struct weir__explained *e)
{
    weir__buffer_text(out, ",\"limits\":[");
    for (size_t i = 0; i < e->n_limits; i++) {
        char text[192];
        weir_limit_print(text, sizeof text, e->limits[i].limit);
        weir__buffer_text(out, i ? ",{" : "{");
        add_decision(out, &e->limits[i].decision);
        add_member(out, "written", text);
        if (e->limits[i].present.count != 0) {
            weir_limit_print(text, sizeof text, &e->limits[i].present);
            add_member(out, "in_table", text);
        }
        weir__buffer_text(out, "}");
    }
    weir__buffer_text(out, "]");
}

static const char *why_name(enum weir__why why)
{
    static const char *const names[] = { "applies", "off", "unmatched", "excepted", "no-key" };
    return names[why];
}

/* --------------------------------------------- why a rule does not apply ---- */

static void write_value(FILE *to, const struct weir__explained *e)
{
    if (e->value == NULL) {
        fprintf(to, "there is no %s", e->attribute);
        return;
    }
    fprintf(to, "%s is ", e->attribute);
    weir__words_value(to, e->value, e->value_len);
}

static void write_why(FILE *to, const struct weir__explained *e)
{
    switch (e->why) {
    case WEIR__UNMATCHED:
        write_value(to, e);
        fputs(", and it is for ", to);
        weir__words_condition(to, e->condition, 3);
        break;
    case WEIR__EXCEPTED:
        write_value(to, e);
        fputs(", and it is not for ", to);
        weir__words_condition(to, e->condition, 3);
        break;
    case WEIR__NO_KEY:
        fputs("its key ", to);
        weir__words_value(to, e->rule->key, strlen(e->rule->key));
        fprintf(to, " needs %s, and there is none", e->attribute);
        break;
    case WEIR__SWITCHED_OFF:
        fputs("it would apply, but it is switched off", to);
        break;
    case WEIR__APPLIES:
        break;
    }
}

/* In words, which name what the request has. */
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
        add_member(out, "because", text);
    free(text);
}

/* ------------------------------------------------------------------ rules ---- */

static void add_rule(void *context, const struct weir__explained *e)
{
    struct show *s = context;

    if (s->applying && e->why != WEIR__APPLIES)
        return;
    weir__buffer_text(s->out, s->shown++ ? ",{" : "{");
    weir__buffer_member(s->out, "rule", e->rule->name);
    weir__buffer_format(s->out, ",\"why\":\"%s\",\"mode\":\"%s\",\"asked\":%s", why_name(e->why), weir_mode_name(e->mode),
                        yes_or_no(e->why == WEIR__APPLIES && asks_rules(s->x)));
    if (e->why == WEIR__APPLIES || e->why == WEIR__SWITCHED_OFF) {
        add_member(s->out, "key", e->key);
        weir__buffer_format(s->out, ",\"cost\":%lld,\"refuses\":%s", (long long)e->cost, yes_or_no(refuses(e)));
        if (e->banned_until != 0)
            add_time(s->out, "banned_for", e->banned_until - s->now);
        add_limits(s->out, e);
    } else {
        add_member(s->out, "attribute", e->attribute);
    }
    if (e->why != WEIR__APPLIES)
        add_because(s->out, e);
    weir__buffer_text(s->out, "}");
}

static void add_ruling(struct weir__buffer *out, const struct weir__explanation *x)
{
    const struct weir_ruling *r = &x->ruling;

    weir__buffer_text(out, "\"ruling\":{");
    add_decision(out, &r->decision);
    add_member(out, "rule", r->rule);
    add_member(out, "list", x->list);
    add_member(out, "list_attribute", x->list != NULL ? x->list_attribute : NULL);
    add_member(out, "shadow", r->shadow);
    weir__buffer_format(out, ",\"mode\":\"%s\",\"applied\":%d,\"level\":%d}", weir_mode_name(x->mode), r->applied, r->level);
}

/* ------------------------------------------------ attributes for nothing ---- */

static const char *nearest_attribute(const struct weir__attributes *known, const struct weir_attr *attr)
{
    const char *names[WEIR__ATTRIBUTES_MAX + 1];
    size_t n = 0;

    for (; n < known->n; n++)
        names[n] = known->names[n];
    names[n] = NULL;
    return weir__text_nearest(names, attr->name, attr->name_len ? attr->name_len : strlen(attr->name));
}

static void add_name(struct weir__buffer *out, bool first, const char *name, size_t len)
{
    weir__buffer_text(out, first ? "" : ",");
    if (name != NULL)
        weir__buffer_json(out, name, len);
    else
        weir__buffer_text(out, "null");
}

/* What is given under another name matches nothing: the slip that is hardest to see. */
static void add_unused(struct weir *weir, struct weir__buffer *out, const struct weir_attr *attrs, size_t n)
{
    size_t stripe = weir__engine_enter(weir), shown = 0;
    const struct weir__force *force = __atomic_load_n(&weir->force, __ATOMIC_SEQ_CST);
    struct weir__buffer meant = { 0 };

    weir__buffer_text(out, "\"unused\":[");
    for (size_t i = 0; i < n; i++) {
        if (force != NULL && is_used(&force->attributes, &attrs[i]))
            continue;
        const char *near = force != NULL ? nearest_attribute(&force->attributes, &attrs[i]) : NULL;
        add_name(out, shown == 0, attrs[i].name, attrs[i].name_len ? attrs[i].name_len : strlen(attrs[i].name));
        add_name(&meant, shown++ == 0, near, near != NULL ? strlen(near) : 0);
    }
    weir__buffer_text(out, "],\"meant\":[");
    weir__buffer_add(out, meant.bytes, meant.len);
    weir__buffer_text(out, "]");
    out->failed = out->failed || meant.failed;
    weir__buffer_free(&meant);
    weir__engine_leave(weir, stripe);
}

bool weir__explain_json(struct weir *weir, const struct weir_attr *attrs, size_t n, const struct weir_ask *ask, bool applying,
                        struct weir__buffer *out)
{
    struct weir__explanation x;
    struct show s = { .out = out, .x = &x, .now = ask->now, .applying = applying };

    weir__buffer_text(out, "{\"rules\":[");
    weir__engine_explain(weir, attrs, n, ask, &x, add_rule, &s);
    weir__buffer_text(out, "],");
    add_ruling(out, &x);
    weir__buffer_text(out, ",");
    add_unused(weir, out, attrs, n);
    weir__buffer_text(out, "}");
    return x.ruling.decision.allowed;
}
