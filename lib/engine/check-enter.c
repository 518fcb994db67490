/* check-enter.c -- the guards of a request: weir_check for work that begins.
 *
 * check.c gathers the facts, decides lists and bans, enters the guards here, and asks the limits
 * last: a guard's grant can be undone without a trace, a limit's cannot.  A refusal anywhere undoes
 * the entries, so that nothing has changed.
 *
 * An allow list lets a request past limits and shedding.  It is still work in progress: it enters,
 * with the highest priority, and a guard refuses it if the breaker is open, the degradation has
 * switched the guard off, or all permits are out.
 */
#include <string.h>

#include "engine/fleet.h"
#include "engine/waiting-lines.h"

/* ------------------------------------------------------- a guard's view ---- */

/* A request is one piece of work, whatever it costs. */
void weir__guard_ask(const struct weir_rules *rules, uint32_t guard, const uint64_t *secrets,
                     const struct weir__facts *facts, const struct weir_ask *from,
                     unsigned char made[WEIR__KEY_MAX], struct weir_ask *out)
{
    const struct weir__guard_rule *g = &rules->guards[guard];
    const struct weir__rule *rule = &rules->rules[rules->n_rules + guard];

    *out = (struct weir_ask){ .key = from->key, .cost = 1, .now = from->now < 0 ? 0 : from->now };
    out->priority = weir__pick_priority(g, facts, from->priority);
    out->user_class = weir__pick_class(g, facts, from->user_class);
    struct weir_key user;
    if (rule->key_kind != WEIR__KEY_NONE && weir__rule_key(secrets, rule, facts, made, &user))
        out->key = user;
}

bool weir__guard_key(const struct weir__guard_rule *guard, const uint64_t *secrets,
                     const struct weir__facts *facts, unsigned char made[WEIR__KEY_MAX],
                     struct weir_key *key)
{
    *key = (struct weir_key){ "", 0 };
    return guard->by_key.key_kind != WEIR__KEY_NONE &&
           weir__rule_key(secrets, &guard->by_key, facts, made, key);
}

/* ------------------------------------------------------------------ admission ---- */

/* A guard in shadow makes room: the last of them.  False: none is. */
static bool make_room(struct weir__admission *admission, const struct weir__active *f,
                      enum weir_mode mode)
{
    size_t i = admission->n;

    while (i > 0 && weir__post_mode(&f->posts[f->rules->n_rules + admission->guards[i - 1]],
                                    mode) != WEIR_SHADOW)
        i--;
    if (i == 0)
        return false;
    admission->n--;
    memmove(&admission->guards[i - 1], &admission->guards[i],
            (admission->n + 1 - i) * sizeof(*admission->guards));
    return true;
}

/* Guards that are off do not count, and those in shadow have the room that is left. */
static void note(struct weir__admission *admission, const struct weir__active *f, uint32_t place,
                 enum weir_mode all)
{
    uint32_t guard = place - (uint32_t)f->rules->n_rules;
    enum weir_mode mode = weir__post_mode(&f->posts[place], all);

    if (mode == WEIR_OFF)
        return;
    bool fits = admission->n < WEIR_ENTRY_MAX;
    admission->cut = admission->cut || !fits;
    if (fits || (mode == WEIR_ENFORCE && make_room(admission, f, all)))
        admission->guards[admission->n++] = guard;
    else if (mode == WEIR_ENFORCE && admission->over == 0)
        admission->over = guard + 1;
}

void weir__admission_find(struct weir__admission *admission, const struct weir__active *active,
                          struct weir__facts *facts, const struct weir_ruling *ruling, bool listed)
{
    struct weir__matches m;

    admission->listed = listed;
    weir__matches_begin(&m, active->rules, active->rules->guard_match, facts);
    do
        for (size_t i = 0; i < m.n; i++)
            note(admission, active, m.found[i], (enum weir_mode)ruling->mode);
    while (weir__matches_more(&m));
}

void weir_check_undo_enter(struct weir_entry *entry)
{
    while (entry->n > 0) {
        entry->n--;
        weir__guard_undo(entry->entered[entry->n].guard, &entry->entered[entry->n].permit);
        if (entry->n > 0)
            weir__guard_uncount(entry->entered[entry->n].guard, -1); /* as keep has done */
    }
}

/* A guard without permits has none to keep. */
static void keep(struct weir__admission *admission, struct weir_guard *guard,
                 const struct weir_permit *permit)
{
    struct weir_entry *entry = admission->entry;

    if (permit->word == 0)
        return;
    if (entry->n > 0)
        weir__guard_uncount(guard, 1);
    entry->entered[entry->n].guard = guard;
    entry->entered[entry->n++].permit = *permit;
}

static weir_time wait_of(const struct weir *weir, const struct weir__active *f, size_t i,
                         const struct weir_ask *ask)
{
    const struct weir__guard_draft *draft = f->rules->guards[i].draft;
    struct weir_guard *guard = f->stations[i].guard;
    bool fits =
        draft->by_fit &&
        weir__guard_fits(guard, ask, weir__line_length(weir, guard, ask->now), draft->queue);

    return weir__draft_wait(draft, ask->priority, ask->user_class, fits);
}

static bool pass_guard(struct weir__admission *admission, const struct weir__active *f, uint32_t i,
                       const struct weir_ask *ask, const struct weir_key *key,
                       struct weir_ruling *ruling)
{
    const struct weir__post *post = &f->posts[f->rules->n_rules + i];
    struct weir__enter_how how = { .leased = admission->leased,
                                   .favoured = admission->again || admission->listed,
                                   .again = admission->again,
                                   .key = key };
    struct weir_permit permit;
    struct weir_decision d;

    how.waits = admission->queued =
        admission->waits && (admission->in_line || wait_of(admission->weir, f, i, ask) > 0);
    how.mode = weir__post_mode(post, ruling->mode);
    admission->guard = f->stations[i].guard;
    how.behind = admission->occupied != NULL &&
                 admission->occupied(admission->context, admission->guard, ask);
    admission->priority = ask->priority;
    admission->user_class = ask->user_class;
    if (!weir__guard_enter(admission->guard, ask, &how, &permit, &d)) {
        ruling->guard = post->name;
        ruling->decision = d;
        ruling->level = 3;
        if (d.reason == WEIR_BUSY && how.waits)
            admission->key_id = weir__guard_key_id(admission->guard, *key, &admission->key_max);
        return false;
    }
    if (d.reason != WEIR_GRANTED && ruling->shadow == NULL)
        ruling->shadow = post->name;
    keep(admission, admission->guard, &permit);
    return true;
}

static void name_key(const struct weir__admission *admission, const struct weir__rule *by_key,
                     const uint64_t *secrets, const struct weir__facts *facts)
{
    const struct weir_entry *entry = admission->entry;
    char text[WEIR_KEY_TEXT];

    if (entry->n == 0 || entry->entered[entry->n - 1].guard != admission->guard)
        return; /* let in without a permit */
    size_t len = weir__rule_key_text(secrets, by_key, facts, text);
    admission->named(admission->context, admission->guard, &entry->entered[entry->n - 1].permit,
                     text, len);
}

/* Whether this guard has asked before if it is shed; from now on it has.  Only after other rules
 * there can be more of them than there is room for: then the first may ask once more. */
static bool was_asked(const struct weir__admission *admission, const struct weir_guard *guard)
{
    uint16_t *asked = admission->asked ? admission->asked->guards : NULL;
    uint16_t id = (uint16_t)(guard->id + 1); /* 0: none */
    size_t i = 0;

    if (asked == NULL)
        return false;
    while (i < WEIR_ENTRY_MAX && asked[i] != 0 && asked[i] != id)
        i++;
    if (i < WEIR_ENTRY_MAX && asked[i] == id)
        return true;
    if (i == WEIR_ENTRY_MAX)
        memmove(asked, asked + 1, --i * sizeof(*asked));
    asked[i] = id;
    return false;
}

/* None that enforces is left out. */
static bool refuse_too_many(struct weir__admission *admission, const struct weir__active *f,
                            struct weir_ruling *ruling)
{
    admission->guard = f->stations[admission->over - 1].guard;
    ruling->guard = f->posts[f->rules->n_rules + admission->over - 1].name;
    ruling->decision = (struct weir_decision){ .reason = WEIR_TOO_MANY, .retry = WEIR_NEVER };
    ruling->level = 3;
    return false;
}

bool weir__admission_pass(struct weir__admission *admission, const struct weir__active *active,
                          const uint64_t *secrets, const struct weir__facts *facts,
                          struct weir_ruling *ruling)
{
    unsigned char made[WEIR__KEY_MAX], made_key[WEIR__KEY_MAX];
    struct weir_ask ask;
    struct weir_key key;

    ruling->cut = ruling->cut || admission->cut;
    if (__builtin_expect(admission->over != 0, 0))
        return refuse_too_many(admission, active, ruling);
    for (size_t i = 0; i < admission->n; i++) {
        const struct weir__guard_rule *g = &active->rules->guards[admission->guards[i]];
        weir__guard_ask(active->rules, admission->guards[i], secrets, facts, admission->ask, made,
                        &ask);
        (void)weir__guard_key(g, secrets, facts, made_key, &key);
        if (admission->listed)
            ask.priority = WEIR_PRIORITY_MAX;
        const struct weir_guard *guard = active->stations[admission->guards[i]].guard;
        admission->again = was_asked(admission, guard);
        if (!pass_guard(admission, active, admission->guards[i], &ask, &key, ruling)) {
            if ((ruling->decision.reason == WEIR_KEY_BUSY || admission->key_id != 0) &&
                admission->key != NULL)
                weir__rule_key_text(secrets, &g->by_key, facts, admission->key);
            weir_check_undo_enter(admission->entry);
            return false;
        }
        if (admission->named != NULL && key.len > 0)
            name_key(admission, &g->by_key, secrets, facts);
    }
    return true;
}

/* ---------------------------------------------------------------- public ---- */

bool weir_check_enter(struct weir *weir, const struct weir_attr *attrs, size_t n,
                      const struct weir_ask *ask, struct weir_entry *entry,
                      struct weir_ruling *ruling)
{
    struct weir__admission admission = { .ask = ask, .entry = entry };

    entry->n = 0;
    return weir__check_admitted(weir, attrs, n, &admission, ruling, NULL);
}

bool weir__check_enter_alone(struct weir *weir, const struct weir_request *request,
                             const struct weir__alone_rules *alone,
                             const struct weir__entering *entering, struct weir_ruling *ruling,
                             char told[WEIR_KEY_TEXT])
{
    struct weir__admission admission = {
        .ask = &request->ask, .entry = entering->entry, .asked = entering->asked, .alone = alone
    };

    entering->entry->n = 0;
    return weir__check_admitted(weir, request->attrs, request->n, &admission, ruling, told);
}

bool weir_check_exit(struct weir *weir, struct weir_entry *entry, enum weir_outcome outcome,
                     weir_time now)
{
    bool all = true;

    (void)weir; /* the guards know their table; rules may have changed since */
    for (uint32_t i = 0; i < entry->n; i++)
        all = weir_exit(entry->entered[i].guard, &entry->entered[i].permit, outcome, now) && all;
    entry->n = 0;
    return all;
}

bool weir_check_renew(struct weir *weir, struct weir_entry *entry, weir_time now)
{
    bool all = true;

    (void)weir;
    for (uint32_t i = 0; i < entry->n; i++)
        all = weir_permit_renew(entry->entered[i].guard, &entry->entered[i].permit, now) && all;
    return all;
}

/* --------------------------------------------------------------- listing ---- */

static void view(const struct weir *weir, const struct weir__active *f, size_t i,
                 struct weir_ruled_guard *out)
{
    const struct weir__post *post = &f->posts[f->rules->n_rules + i];

    *out = (struct weir_ruled_guard){
        .name = post->name,
        .guard = f->stations[i].guard,
        .modes = { post->mode, weir__mode_load(post->switched),
                   weir__post_mode(post, weir__active_mode(weir, f)) },
        .fallback = f->stations[i].fallback,
        .waits = f->rules->guards[i].draft->queue > 0,
    };
}

/* The guard of this name, or the number of all. */
static size_t find(const struct weir__active *f, const char *name)
{
    size_t i = 0;

    while (i < f->rules->n_guards && strcmp(f->posts[f->rules->n_rules + i].name, name) != 0)
        i++;
    return i;
}

bool weir_ruled_guard_next(struct weir *weir, int64_t *at, struct weir_ruled_guard *out)
{
    const struct weir__active *f;
    struct weir__stripe *stripe = weir__engine_hold(weir, &f);
    bool is = f != NULL && (uint64_t)*at < f->rules->n_guards;

    if (is)
        view(weir, f, (size_t)(*at)++, out);
    weir__engine_release(stripe);
    return is;
}

bool weir_ruled_guard_find(struct weir *weir, const char *name, struct weir_ruled_guard *out)
{
    const struct weir__active *f;
    struct weir__stripe *stripe = weir__engine_hold(weir, &f);
    size_t i = f != NULL ? find(f, name) : 0;
    bool is = f != NULL && i < f->rules->n_guards;

    if (is)
        view(weir, f, i, out);
    weir__engine_release(stripe);
    return is;
}

bool weir_ruled_queue_get(struct weir *weir, const char *guard, struct weir_queue_options *out,
                          weir_time *wait_max)
{
    const struct weir__active *f;
    struct weir__stripe *stripe = weir__engine_hold(weir, &f);
    size_t i = f != NULL ? find(f, guard) : 0;
    bool is = f != NULL && i < f->rules->n_guards && f->rules->guards[i].draft->queue > 0;

    if (is) {
        const struct weir__guard_draft *d = f->rules->guards[i].draft;
        *out = (struct weir_queue_options){ .max = d->queue, .order = d->order };
        for (size_t k = 0; k < d->n_classes; k++)
            out->weights[k] = d->options.classes[k].weight;
        *wait_max = d->wait;
    }
    weir__engine_release(stripe);
    return is;
}

weir_time weir__ruled_wait(struct weir *weir, const char *guard, const struct weir_ask *ask)
{
    const struct weir__active *f;
    struct weir__stripe *stripe = weir__engine_hold(weir, &f);
    size_t i = f != NULL ? find(f, guard) : 0;
    bool is = f != NULL && i < f->rules->n_guards;
    weir_time wait = is ? wait_of(weir, f, i, ask) : 0;

    weir__engine_release(stripe);
    return wait;
}

bool weir__ruled_user(struct weir *weir, const char *guard, struct weir_key user,
                      struct weir__user_key *out)
{
    const struct weir__active *f;
    struct weir__stripe *stripe = weir__engine_hold(weir, &f);
    size_t i = f != NULL ? find(f, guard) : 0;
    bool is = f != NULL && i < f->rules->n_guards && f->rules->guards[i].by_key.key.n == 1;

    if (is) {
        const struct weir__guard_rule *g = &f->rules->guards[i];
        struct weir_attr attr = { .name = g->by_key.key.parts[0].attribute,
                                  .value = user.bytes,
                                  .value_len = user.len };
        weir__facts_gather(&f->attributes, f->lists, &attr, 1, &out->facts);
        is = weir__guard_key(g, weir->table->secrets, &out->facts, out->made, &out->key);
        out->len = weir__rule_key_text(weir->table->secrets, &g->by_key, &out->facts, out->text);
    }
    weir__engine_release(stripe);
    return is;
}

bool weir_fallback_get(struct weir *weir, const char *guard, struct weir_fallback *out, char *body,
                       size_t size)
{
    const struct weir__active *f;
    struct weir__stripe *stripe = weir__engine_hold(weir, &f);
    size_t i = f != NULL && guard != NULL ? find(f, guard) : SIZE_MAX;
    bool is = f != NULL && i < f->rules->n_guards && f->stations[i].fallback.status != 0;

    if (is) {
        *out = f->stations[i].fallback;
        if (size > 0)
            memcpy(body, f->rules->guards[i].draft->fallback.body,
                   out->len < size ? out->len : size);
    }
    weir__engine_release(stripe);
    return is;
}
