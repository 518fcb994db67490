/* enter.c -- the guards of a request: weir_check, and work that begins.
 *
 * check.c gathers the facts, decides lists and bans, lets the request pass the guards here, and asks the limits last: what a limit has
 * granted cannot be given back without a trace, what a guard has can.  A refusal anywhere undoes what was entered, so that nothing has
 * changed.
 *
 * An allow list lets a request past limits and shedding.  It is work in progress all the same: it enters, with the highest priority, and a
 * guard refuses it when its breaker is open, it is switched off by the level of degradation, or all permits are out.
 */
#include <string.h>

#include "engine/engine.h"

#define PRIORITY_MOST 7

/* ------------------------------------------------------- what a guard sees ---- */

/* The attribute's value, or what stands for it; len 0: neither. */
static struct weir_key pick(const struct weir__pick *p, const struct weir__facts *facts)
{
    const struct weir__value *v = p->attribute >= 0 ? &facts->values[p->attribute] : NULL;
    if (v != NULL && v->len != 0)
        return (struct weir_key){ v->text, v->len };
    return p->text ? (struct weir_key){ p->text, strlen(p->text) } : (struct weir_key){ "", 0 };
}

/* A word that means nothing counts as none. */
static int8_t priority_of(const struct weir__guard *g, const struct weir__facts *facts, int8_t asked)
{
    struct weir_key word = pick(&g->priority, facts);
    int8_t found = asked;
    if (word.len == 0 || !weir__priority_read(g->draft->words, g->draft->n_words, word.bytes, word.len, &found))
        found = asked;
    return found < -8 ? -8 : found > PRIORITY_MOST ? PRIORITY_MOST : found;
}

/* Who has no class that is known is of the last one. */
static uint8_t class_of(const struct weir__guard *g, const struct weir__facts *facts, uint8_t asked)
{
    if (g->user_class.attribute < 0 && g->user_class.text == NULL)
        return asked;
    struct weir_key word = pick(&g->user_class, facts);
    int found = weir__class_find(&g->draft->options, word.bytes, word.len);
    return (uint8_t)(found < 0 ? (int)g->draft->n_classes - 1 : found);
}

/* A request is one piece of work, whatever it costs. */
void weir__guard_ask(const struct weir_rules *rules, uint32_t guard, const uint64_t *secrets, const struct weir__facts *facts,
                     const struct weir_ask *from, unsigned char made[WEIR__KEY_MAX], struct weir_ask *out)
{
    const struct weir__guard *g = &rules->guards[guard];
    const struct weir__rule *rule = &rules->rules[rules->n_rules + guard];
    *out = (struct weir_ask){ .key = from->key, .cost = 1, .now = from->now < 0 ? 0 : from->now };
    out->priority = priority_of(g, facts, from->priority);
    out->user_class = class_of(g, facts, from->user_class);
    struct weir_key user;
    if (rule->key_kind != WEIR__KEY_NONE && weir__rule_key(secrets, rule, facts, made, &user))
        out->key = user;
}

/* ------------------------------------------------------------------ gate ---- */

/* Those that are off do not count. */
static void note(struct weir__gate *gate, const struct weir__force *f, uint32_t place, const struct weir_ruling *ruling)
{
    if (weir__post_mode(&f->posts[place], ruling->mode) == WEIR_OFF)
        return;
    if (gate->n < WEIR_ENTRY_MAX)
        gate->guards[gate->n++] = place - (uint32_t)f->rules->n_rules;
    else
        gate->cut = true;
}

void weir__gate_find(struct weir__gate *gate, const struct weir__force *force, struct weir__facts *facts, const struct weir_ruling *ruling)
{
    uint32_t found[WEIR__FOUND_MAX], from = 0;
    size_t n;
    gate->favoured = ruling->list != NULL && *ruling->list == 'a';
    do {
        n = force->rules->n_guards ? weir__match_find_guards(force->rules, facts, from, found) : 0;
        for (size_t i = 0; i < n; i++)
            note(gate, force, found[i], ruling);
        from = n > 0 ? found[n - 1] + 1 : 0;
    } while (n == WEIR__FOUND_MAX);
}

void weir__gate_undo(struct weir__gate *gate)
{
    struct weir_entry *entry = gate->entry;
    while (entry->n > 0) {
        entry->n--;
        weir__guard_undo(entry->entered[entry->n].guard, &entry->entered[entry->n].permit, gate->ask->now < 0 ? 0 : gate->ask->now);
    }
}

/* What the permit is of; none is kept of a guard that does not count it. */
static void keep(struct weir__gate *gate, struct weir_guard *guard, const struct weir_permit *permit)
{
    struct weir_entry *entry = gate->entry;
    if (permit->word == 0)
        return;
    entry->entered[entry->n].guard = guard;
    entry->entered[entry->n++].permit = *permit;
}

static bool pass_guard(struct weir__gate *gate, const struct weir__force *f, uint32_t i, const struct weir_ask *ask,
                       struct weir_ruling *ruling)
{
    const struct weir__post *post = &f->posts[f->rules->n_rules + i];
    struct weir__enter_how how = { .leased = gate->leased, .favoured = gate->favoured, .waits = gate->waits };
    struct weir_permit permit;
    struct weir_decision d;
    how.mode = weir__post_mode(post, ruling->mode);
    gate->guard = f->stations[i].guard;
    gate->priority = ask->priority;
    gate->user_class = ask->user_class;
    if (!weir__guard_enter(gate->guard, ask, &how, &permit, &d)) {
        ruling->guard = post->name;
        ruling->decision = d;
        ruling->level = 3;
        return false;
    }
    if (d.reason != WEIR_GRANTED && ruling->shadow == NULL)
        ruling->shadow = post->name;
    keep(gate, gate->guard, &permit);
    return true;
}

bool weir__gate_pass(struct weir__gate *gate, const struct weir__force *force, const uint64_t *secrets, const struct weir__facts *facts,
                     struct weir_ruling *ruling)
{
    unsigned char made[WEIR__KEY_MAX];
    struct weir_ask ask;
    ruling->cut = ruling->cut || gate->cut;
    for (size_t i = 0; i < gate->n; i++) {
        weir__guard_ask(force->rules, gate->guards[i], secrets, facts, gate->ask, made, &ask);
        if (gate->favoured)
            ask.priority = PRIORITY_MOST;
        if (!pass_guard(gate, force, gate->guards[i], &ask, ruling)) {
            weir__gate_undo(gate);
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- public ---- */

bool weir_check_enter(struct weir *weir, const struct weir_attr *attrs, size_t n, const struct weir_ask *ask, struct weir_entry *entry,
                      struct weir_ruling *ruling)
{
    struct weir__gate gate = { .ask = ask, .entry = entry };
    entry->n = 0;
    return weir__check_gated(weir, attrs, n, &gate, ruling, NULL);
}

void weir_check_exit(struct weir *weir, struct weir_entry *entry, enum weir_outcome outcome, weir_time now)
{
    (void)weir; /* the guards know their table; rules may have changed since */
    for (uint32_t i = 0; i < entry->n; i++)
        weir_exit(entry->entered[i].guard, &entry->entered[i].permit, outcome, now);
    entry->n = 0;
}

/* --------------------------------------------------------------- listing ---- */

static struct weir_queue_options queue_of(const struct weir__guard_draft *d)
{
    struct weir_queue_options q = { .max = d->queue, .order = d->order };
    for (size_t i = 0; i < d->n_classes; i++)
        q.weights[i] = d->options.classes[i].weight;
    return q;
}

static void view(const struct weir *weir, const struct weir__force *f, size_t i, struct weir__guard_view *out)
{
    const struct weir__post *post = &f->posts[f->rules->n_rules + i];
    const struct weir__guard_draft *d = f->rules->guards[i].draft;
    *out = (struct weir__guard_view){
        .name = post->name,
        .guard = f->stations[i].guard,
        .modes = { post->mode, weir__mode_load(post->switched), weir__post_mode(post, weir__force_mode(weir, f)) },
        .waits = d->queue > 0,
        .queue = queue_of(d),
        .wait = d->wait,
        .fallback = f->stations[i].fallback,
    };
}

/* The guard of this name, or the number of all. */
static size_t find(const struct weir__force *f, const char *name)
{
    size_t i = 0;
    while (i < f->rules->n_guards && strcmp(f->posts[f->rules->n_rules + i].name, name) != 0)
        i++;
    return i;
}

/* By its name if there is one, else by its number. */
static bool look(struct weir *weir, const char *name, size_t i, struct weir__guard_view *out)
{
    size_t stripe = weir__engine_enter(weir);
    const struct weir__force *f = __atomic_load_n(&weir->force, __ATOMIC_SEQ_CST);
    if (f != NULL && name != NULL)
        i = find(f, name);
    bool is = f != NULL && i < f->rules->n_guards;
    if (is)
        view(weir, f, i, out);
    weir__engine_leave(weir, stripe);
    return is;
}

bool weir__engine_guard(struct weir *weir, size_t i, struct weir__guard_view *out)
{
    return look(weir, NULL, i, out);
}

bool weir__engine_guard_find(struct weir *weir, const char *name, struct weir__guard_view *out)
{
    return look(weir, name, 0, out);
}

bool weir_fallback_get(struct weir *weir, const char *guard, struct weir_fallback *out)
{
    struct weir__guard_view v;
    if (!look(weir, guard, 0, &v) || v.fallback.status == 0)
        return false;
    *out = v.fallback;
    return true;
}
