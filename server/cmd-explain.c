/* cmd-explain.c -- `weir explain`: what the rules say to one request, and why.
 *
 * Nothing is taken and nothing is written: with --table the states that are there are looked at, and a limit that the table does not have yet is shown
 * as fresh.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "engine/engine.h"
#include "options.h"
#include "rules-file.h"
#include "rules-words.h"
#include "text.h"

#define ATTRS_MAX 64
#define BAR_WIDTH 20

struct options {
    const char *rules, *table;
    int64_t cost;
    weir_time now;
    bool json, applying;
};

const struct weir__option weir__cmd_explain_options[] = {
    { "rules", 'r', WEIR__OPTION_TEXT, offsetof(struct options, rules), 0, "FILE", "the rules" },
    { "table", 't', WEIR__OPTION_TEXT, offsetof(struct options, table), 0, "FILE", "where the states are; without it every key is fresh" },
    { "cost", 'c', WEIR__OPTION_COUNT, offsetof(struct options, cost), 0, "N", "what the request asks for; default 1" },
    { "now", 0, WEIR__OPTION_MOMENT, offsetof(struct options, now), 0, "TIME",
      "at this time: seconds since 1970, or 2026-11-30T23:59:59Z" },
    { "applying", 'a', WEIR__OPTION_SWITCH, offsetof(struct options, applying), 0, NULL, "leave out the rules that do not apply" },
    { "json", 0, WEIR__OPTION_SWITCH, offsetof(struct options, json), 0, NULL, "as one JSON object" },
    { 0 },
};

struct colours {
    const char *good, *bad, *mild, *dim, *bold, *off;
};

struct show {
    struct colours c;
    const struct weir__explanation *x; /* its list and mode are known before the first rule is shown */
    bool json, applying, begun;
    int width; /* of the limits' texts */
    size_t shown, hidden;
    weir_time now;
};

static struct colours choose_colours(void)
{
    if (!weir__wants_colours())
        return (struct colours){ "", "", "", "", "", "" };
    return (struct colours){ "\033[32m", "\033[31m", "\033[33m", "\033[2m", "\033[1m", "\033[0m" };
}

/* ------------------------------------------------------------- words ---- */

static void print_value(const struct weir__explained *e)
{
    if (e->value == NULL) {
        printf("there is no %s", e->attribute);
        return;
    }
    printf("%s is ", e->attribute);
    weir__words_value(stdout, e->value, e->value_len);
}

static void print_why(const struct weir__explained *e)
{
    switch (e->why) {
    case WEIR__UNMATCHED:
        print_value(e);
        printf(", and it is for ");
        weir__words_condition(stdout, e->condition, 3);
        break;
    case WEIR__EXCEPTED:
        print_value(e);
        printf(", and it is not for ");
        weir__words_condition(stdout, e->condition, 3);
        break;
    case WEIR__NO_KEY:
        printf("its key ");
        weir__words_value(stdout, e->rule->key, strlen(e->rule->key));
        printf(" needs %s, and there is none", e->attribute);
        break;
    case WEIR__SWITCHED_OFF:
        printf("it would apply, but it is switched off");
        break;
    case WEIR__APPLIES:
        break;
    }
}

/* -------------------------------------------------------------- text ---- */

static bool refuses(const struct weir__explained *e)
{
    bool all = e->banned_until == 0;
    for (size_t i = 0; i < e->n_limits; i++)
        all = all && e->limits[i].decision.allowed;
    return !all;
}

/* A list decides before any rule is asked; but in shadow the deny list does not. */
static bool is_asked(const struct show *s)
{
    return s->x->list == NULL || s->x->mode == WEIR_OFF || (s->x->mode == WEIR_SHADOW && strcmp(s->x->list, "deny") == 0);
}

static void print_bar(const struct show *s, const struct weir_decision *d)
{
    static const char *const parts[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    int64_t left = d->remaining < 0 ? 0 : d->remaining > d->limit ? d->limit : d->remaining;
    int eighths = d->limit > 0 ? (int)((double)left / (double)d->limit * BAR_WIDTH * 8) : 0, width = 0;
    const char *colour = !d->allowed ? s->c.bad : weir__level_of(d) > 0 ? s->c.mild : s->c.good;
    printf("%s", colour);
    for (; width < eighths / 8; width++)
        fputs("█", stdout);
    if (eighths % 8 != 0) {
        fputs(parts[eighths % 8], stdout);
        width++;
    }
    printf("%s", s->c.dim);
    for (; width < BAR_WIDTH; width++)
        fputs("·", stdout);
    printf("%s", s->c.off);
}

static void print_limit(const struct show *s, const struct weir__explained_limit *l)
{
    const struct weir_decision *d = &l->decision;
    char limit[192], wait[32];
    weir_limit_print(limit, sizeof limit, l->limit);
    printf("    %-*s ", s->width, limit);
    print_bar(s, d);
    printf(" %lld of %lld left", (long long)d->remaining, (long long)d->limit);
    weir__text_time(wait, sizeof wait, d->allowed ? d->reset : d->retry);
    if (!d->allowed)
        printf(d->retry == WEIR_NEVER ? ", %srefuses: it can never pass at once%s" : ", %srefuses, free in %s%s", s->c.bad,
               d->retry == WEIR_NEVER ? s->c.off : wait, s->c.off);
    else if (d->reset > 0)
        printf(", all again in %s", wait);
    putchar('\n');
    if (l->present.count != 0) {
        weir_limit_print(limit, sizeof limit, &l->present);
        printf("    %s(the table has it as %s: another rule file is in force there)%s\n", s->c.dim, limit, s->c.off);
    }
}

static void print_list(const struct show *s)
{
    const struct weir__explanation *x = s->x;
    bool deny = strcmp(x->list, "deny") == 0;

    printf("%s%s%s %s is on the %s list: ", deny ? s->c.bad : s->c.good, deny ? "✗" : "●", s->c.off, x->list_attribute, x->list);
    printf("%s\n", is_asked(s) ? "it would be refused, but all rules are in shadow"
                   : deny      ? "refused, and no rule is asked"
                               : "let through, and no rule is asked");
}

static void print_rule(const struct show *s, const struct weir__explained *e)
{
    bool no = e->why == WEIR__APPLIES && refuses(e);
    char wait[32];
    if (e->why != WEIR__APPLIES) {
        printf("%s○ %-24s does not apply: ", s->c.dim, e->rule->name);
        print_why(e);
        printf("%s\n", s->c.off);
        return;
    }
    if (!is_asked(s)) {
        printf("%s○ %-24s not asked: it would apply%s\n", s->c.dim, e->rule->name, s->c.off);
        return;
    }
    printf("%s%s%s %s%-24s%s",
           no && e->mode == WEIR_ENFORCE ? s->c.bad
           : no                          ? s->c.mild
                                         : s->c.good,
           no ? "✗" : "●", s->c.off, s->c.bold, e->rule->name, s->c.off);
    if (e->rule->key[0] != '\0') {
        printf(" key ");
        weir__words_value(stdout, e->key, strlen(e->key));
    }
    if (e->mode == WEIR_SHADOW)
        printf("  %sin shadow: %s%s", s->c.mild, no ? "would refuse, but lets through" : "counts only", s->c.off);
    if (e->cost != 1)
        printf("  costs %lld", (long long)e->cost);
    putchar('\n');
    if (e->banned_until != 0) {
        weir__text_time(wait, sizeof wait, e->banned_until - s->now);
        printf("    %sbanned for another %s%s\n", s->c.bad, wait, s->c.off);
    }
    for (size_t i = 0; i < e->n_limits; i++)
        print_limit(s, &e->limits[i]);
}

static void print_ruling(const struct show *s, const struct weir__explanation *x)
{
    const struct weir_ruling *r = &x->ruling;
    char wait[32];
    weir__text_time(wait, sizeof wait, r->decision.retry);
    printf("\n%s%s%s", s->c.bold, r->decision.allowed ? s->c.good : s->c.bad, r->decision.allowed ? "allowed" : "refused");
    printf("%s", s->c.off);
    if (x->mode == WEIR_OFF)
        printf(": all rules are switched off");
    else if (x->list != NULL)
        printf(": %s is on the %s list%s", x->list_attribute, x->list, x->mode == WEIR_SHADOW ? " (all rules are in shadow)" : "");
    else if (!r->decision.allowed && r->decision.retry == WEIR_NEVER)
        printf(" by %s, for ever: it asks for more than can pass at once", r->rule);
    else if (!r->decision.allowed)
        printf(" by %s (%s); free in %s", r->rule, weir_reason_name(r->decision.reason), wait);
    else if (r->rule != NULL)
        printf("; the tightest is %s: %lld of %lld left", r->rule, (long long)r->decision.remaining, (long long)r->decision.limit);
    else
        printf(": %s", r->applied > 0 ? "no rule that applies enforces" : "no rule applies");
    if (r->shadow != NULL)
        printf("; %s, in shadow, would refuse", r->shadow);
    putchar('\n');
    if (s->hidden > 0)
        printf("%s%zu rules that do not apply are left out%s\n", s->c.dim, s->hidden, s->c.off);
}

/* -------------------------------------------------------------- JSON ---- */

static void json_member(const char *name, const char *value)
{
    printf(",\"%s\":", name);
    if (value != NULL)
        weir__json_string(value);
    else
        printf("null");
}

static void json_time(const char *name, weir_time t)
{
    if (t == WEIR_NEVER)
        printf(",\"%s\":null", name);
    else
        printf(",\"%s\":%lld.%09lld", name, (long long)(t / WEIR_SECOND), (long long)(t % WEIR_SECOND));
}

static void json_decision(const struct weir_decision *d)
{
    printf("\"allowed\":%s,\"reason\":\"%s\",\"limit\":%lld,\"remaining\":%lld", d->allowed ? "true" : "false", weir_reason_name(d->reason),
           (long long)d->limit, (long long)d->remaining);
    json_time("retry", d->retry);
    json_time("reset", d->reset);
}

static const char *why_name(enum weir__why why)
{
    static const char *const names[] = { "applies", "off", "unmatched", "excepted", "no-key" };
    return names[why];
}

static void json_limits(const struct weir__explained *e)
{
    printf(",\"limits\":[");
    for (size_t i = 0; i < e->n_limits; i++) {
        char text[192];
        weir_limit_print(text, sizeof text, e->limits[i].limit);
        printf("%s{", i ? "," : "");
        json_decision(&e->limits[i].decision);
        json_member("written", text);
        if (e->limits[i].present.count != 0) {
            weir_limit_print(text, sizeof text, &e->limits[i].present);
            json_member("in_table", text);
        }
        putchar('}');
    }
    putchar(']');
}

static void json_rule(const struct show *s, const struct weir__explained *e)
{
    printf("%s{\"rule\":", s->shown ? "," : "");
    weir__json_string(e->rule->name);
    printf(",\"why\":\"%s\",\"mode\":\"%s\",\"asked\":%s", why_name(e->why), weir_mode_name(e->mode),
           e->why == WEIR__APPLIES && is_asked(s) ? "true" : "false");
    if (e->why == WEIR__APPLIES || e->why == WEIR__SWITCHED_OFF) {
        json_member("key", e->key);
        printf(",\"cost\":%lld,\"refuses\":%s", (long long)e->cost, refuses(e) ? "true" : "false");
        if (e->banned_until != 0)
            json_time("banned_for", e->banned_until - s->now);
        json_limits(e);
    } else {
        json_member("attribute", e->attribute);
    }
    putchar('}');
}

static void json_ruling(const struct weir__explanation *x)
{
    const struct weir_ruling *r = &x->ruling;
    printf("],\"ruling\":{");
    json_decision(&r->decision);
    json_member("rule", r->rule);
    json_member("list", x->list);
    json_member("shadow", r->shadow);
    printf(",\"mode\":\"%s\",\"applied\":%d,\"level\":%d}", weir_mode_name(x->mode), r->applied, r->level);
}

/* -------------------------------------------- attributes for nothing ---- */

/* Whether a rule or a list looks at it; names of headers have no case. */
static bool is_looked_at(const struct weir__attributes *known, const char *name)
{
    char *small = strlen(name) < WEIR__ATTRIBUTE_SIZE ? weir__attribute_small(name) : NULL;
    bool found = small != NULL && weir__attribute_find(known, small, strlen(small)) >= 0;

    free(small);
    return found;
}

static const char *nearest_attribute(const struct weir__attributes *known, const char *name)
{
    const char *names[WEIR__ATTRIBUTES_MAX + 1];
    size_t n = 0;

    for (; n < known->n; n++)
        names[n] = known->names[n];
    names[n] = NULL;
    return weir__text_nearest(names, name, strlen(name));
}

/* The slip that is hardest to see: what is given under another name matches nothing. */
static void print_unused(const struct show *s, const struct weir__attributes *known, const struct weir_attr *attrs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_looked_at(known, attrs[i].name))
            continue;
        const char *near = nearest_attribute(known, attrs[i].name);
        printf("%sno rule looks at ", s->c.mild);
        weir__words_value(stdout, attrs[i].name, strlen(attrs[i].name));
        if (near)
            printf("; did you mean %s?", near);
        printf("%s\n", s->c.off);
    }
}

static void json_unused(const struct weir__attributes *known, const struct weir_attr *attrs, size_t n)
{
    bool first = true;

    printf(",\"unused\":[");
    for (size_t i = 0; i < n; i++) {
        if (is_looked_at(known, attrs[i].name))
            continue;
        printf("%s", first ? "" : ",");
        weir__json_string(attrs[i].name);
        first = false;
    }
    printf("]}\n");
}

/* ----------------------------------------------------------- command ---- */

/* So that the bars of all rules stand below each other, unless a text is very long. */
static int width_of_limits(const struct weir_rules *rules)
{
    int width = 28;

    for (size_t i = 0; i < rules->n_rules; i++) {
        const struct weir__rule_draft *rule = rules->rules[i].draft;
        for (size_t k = 0; k < rule->n_limits; k++) {
            int len = weir_limit_print(NULL, 0, &rule->limits[k]);
            width = len > width && len <= 64 ? len : width;
        }
    }
    return width;
}

/* Before the first rule, or at the end if there is none. */
static void begin(struct show *s)
{
    if (!s->begun && !s->json && s->x->list != NULL && s->x->mode != WEIR_OFF)
        print_list(s);
    s->begun = true;
}

static void show_rule(void *context, const struct weir__explained *e)
{
    struct show *s = context;
    begin(s);
    if (s->applying && e->why != WEIR__APPLIES) {
        s->hidden++;
        return;
    }
    if (s->json)
        json_rule(s, e);
    else
        print_rule(s, e);
    s->shown++;
}

/* name=value; the name is cut off in place. */
static bool read_attrs(const struct weir__command *self, char **words, int n, struct weir_attr *attrs)
{
    if (n > ATTRS_MAX) {
        weir__complain(self->name, "%d attributes are too many: at most %d", n, ATTRS_MAX);
        return false;
    }
    for (int i = 0; i < n; i++) {
        char *equals = strchr(words[i], '=');
        if (equals == NULL || equals == words[i]) {
            weir__complain(self->name, "'%s' is no attribute: write name=value, as in ip=192.0.2.7", words[i]);
            return false;
        }
        *equals = '\0';
        attrs[i] = (struct weir_attr){ .name = words[i], .value = equals + 1 };
    }
    return true;
}

static int explain(const struct weir__command *self, const struct options *o, struct weir *weir, const struct weir_attr *attrs, size_t n)
{
    struct weir__explanation x;
    struct show s = { .c = choose_colours(), .x = &x, .json = o->json, .applying = o->applying };
    struct weir_rules *rules = weir__rules_file_read(self->name, o->rules);
    struct weir_error error;
    if (rules == NULL)
        return WEIR__EXIT_WRONG;
    if (weir_use(weir, rules, 0, &error) != WEIR_OK) {
        weir__complain(self->name, "%s", error.text);
        weir_rules_destroy(rules);
        return WEIR__EXIT_WRONG;
    }
    s.width = width_of_limits(rules);
    s.now = o->now >= 0 ? o->now : weir_table_now(weir_table_of(weir));
    if (o->json)
        printf("{\"rules\":[");
    const struct weir__attributes *known = &weir->force->attributes;
    struct weir_ask ask = { .cost = o->cost, .now = s.now };
    weir__engine_explain(weir, attrs, n, &ask, &x, show_rule, &s);
    begin(&s);
    if (o->json) {
        json_ruling(&x);
        json_unused(known, attrs, n);
    } else {
        print_ruling(&s, &x);
        print_unused(&s, known, attrs, n);
    }
    return x.ruling.decision.allowed ? WEIR__EXIT_OK : WEIR__EXIT_NO;
}

static int open_engine(const struct weir__command *self, const struct options *o, struct weir_table **table, struct weir **weir)
{
    struct weir_error error;
    if (o->table != NULL && weir_table_attach(table, o->table, &error) != WEIR_OK) {
        weir__complain(self->name, "%s", error.text);
        return WEIR__EXIT_WRONG;
    }
    if (weir_create(weir, &(struct weir_options){ .table = *table }, &error) != WEIR_OK) {
        weir__complain(self->name, "%s", error.text);
        return WEIR__EXIT_WRONG;
    }
    if (weir__engine_look(*weir, &error) != WEIR_OK) {
        weir__complain(self->name, "%s", error.text);
        return WEIR__EXIT_WRONG;
    }
    return WEIR__GO_ON;
}

int weir__cmd_explain(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { .cost = 1, .now = -1 };
    struct weir_attr attrs[ATTRS_MAX];
    struct weir_table *table = NULL;
    struct weir *weir = NULL;
    int n, code = weir__options_parse(self, argc, argv, &o, &n);
    if (code != WEIR__GO_ON)
        return code;
    if (o.rules == NULL) {
        weir__complain(self->name, "which rules? usage: weir %s %s", self->name, self->arguments);
        return WEIR__EXIT_WRONG;
    }
    if (!read_attrs(self, argv, n, attrs))
        return WEIR__EXIT_WRONG;
    code = open_engine(self, &o, &table, &weir);
    if (code == WEIR__GO_ON)
        code = explain(self, &o, weir, attrs, (size_t)n);
    weir_destroy(weir);
    weir_table_destroy(table);
    return code;
}
