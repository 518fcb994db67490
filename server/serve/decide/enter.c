/* enter.c -- entering guards and leaving them, the same for every protocol. */
#include "server/serve/decide/enter.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "guard/guard.h"
#include "base/base.h"
#include "server/serve/decide/units-wait.h"
#include "server/serve/decide/waiting.h"
#include "server/serve/events/top-keys.h"
#include "server/serve/net/peer.h"
#include "weir-fleet.h"

/* The error text, and its status. */
__attribute__((format(printf, 3, 4))) static int wrong(struct weir_error *error, int status,
                                                       const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return status;
}

/* ---------------------------------------------------------------- enter ---- */

static int read_class(struct weir_guard *guard, struct weir__text name, uint8_t *out,
                      struct weir_error *error)
{
    const struct weir__guard_plan *plan = weir__guard_plan_of(guard);
    const char *names[WEIR_CLASSES];
    size_t n = 0;

    if (name.len == 0)
        return 200;
    for (; n < (size_t)plan->shed.classes && plan->options.classes[n].weight > 0; n++) {
        names[n] = plan->options.classes[n].name;
        if (strlen(names[n]) != name.len || memcmp(names[n], name.bytes, name.len) != 0)
            continue;
        *out = (uint8_t)n;
        return 200;
    }
    return wrong(error, 400, "guard '%s' has no class %s; %s", weir__guard_name(guard),
                 weir__quote(name.bytes, name.len).text,
                 n ? weir__hint(name.bytes, name.len, names, n).text : "it has none");
}

/* Permits of guards that are off, or let through in shadow beyond what there is room for, are
 * none. */
static void keep(struct weir__entered *out, struct weir_guard *guard,
                 const struct weir_permit *permit)
{
    weir_time lease = weir__guard_plan_of(guard)->lease;

    if (permit->word == 0)
        return;
    out->permits.each[out->permits.n].guard = guard->id;
    out->permits.each[out->permits.n++].permit = *permit;
    out->lease = out->lease == 0 || lease < out->lease ? lease : out->lease;
}

/* As the rules and the switch by hand have it; a guard that is in the table only: as
 * its options have it, and without a queue. */
static struct weir__enter_how how_to(struct weir__server *server, const struct weir_guard *guard,
                                     const struct weir_ask *ask, bool again)
{
    struct weir_ruled_guard view;
    bool ruled = weir_ruled_guard_find(server->engine, weir__guard_name(guard), &view);

    return (struct weir__enter_how){
        .mode = ruled ? view.modes.in_force : WEIR_AS_WRITTEN,
        .leased = true,
        .favoured = again,
        .again = again,
        .waits = ask->wait_max > 0 &&
                 (again ||
                  (ruled && weir__ruled_wait(server->engine, weir__guard_name(guard), ask) > 0)),
        .behind = !again && weir__lines_occupied(server->lines, guard, ask)
    };
}

/* The key of a named enter, as people read it. */
static struct weir_key shown_key(const struct weir_ask *ask, const struct weir__user_key *user)
{
    return user ? (struct weir_key){ user->text, user->len } : ask->key;
}

/* An enter of one guard by its name has got a permit. */
static void note_named(struct weir__server *server, const struct weir_guard *guard,
                       const struct weir_permit *permit, const struct weir_ask *ask,
                       const struct weir__user_key *user)
{
    struct weir_key key = shown_key(ask, user);

    weir__guard_keys_note(weir__guards_keys(server->guards), guard, permit, key.bytes, key.len);
}

/* ... or was refused one. */
static void tell_key(struct weir__entered *out, const struct weir_ask *ask,
                     const struct weir__user_key *user)
{
    struct weir_key key = shown_key(ask, user);
    size_t len = key.len < sizeof(out->key) ? key.len : sizeof(out->key) - 1;

    memcpy(out->key, key.bytes, len);
    out->key[len] = '\0';
}

static int enter_one(struct weir__server *server, const struct weir__enter *e, struct weir_ask *ask,
                     bool again, struct weir__entered *out, struct weir_error *error)
{
    struct weir_guard *guard = weir__guards_find(server->guards, e->guard.bytes, e->guard.len);
    struct weir_permit permit = { 0 };
    struct weir_ruling *r = &out->ruling;
    struct weir__user_key user;

    if (guard == NULL)
        return weir__guards_unknown(server->guards, e->guard.bytes, e->guard.len, error);
    int status = read_class(guard, e->user_class, &ask->user_class, error);
    if (status != 200)
        return status;
    struct weir__enter_how how = how_to(server, guard, ask, again);
    bool keyed = ask->key.len && weir__guard_plan_of(guard)->max_per_key,
         ruled =
             keyed && weir__ruled_user(server->engine, weir__guard_name(guard), ask->key, &user);
    if (ruled)
        how.key = &user.key;
    *r = (struct weir_ruling){ .guard = weir__guard_name(guard), .mode = WEIR_ENFORCE };
    if (weir__guard_enter(guard, ask, &how, &permit, &r->decision)) {
        keep(out, guard, &permit);
        if (keyed && permit.word != 0)
            note_named(server, guard, &permit, ask, ruled ? &user : NULL);
    } else if (keyed)
        tell_key(out, ask, ruled ? &user : NULL);
    if (!r->decision.allowed && how.waits && r->decision.reason == WEIR_BUSY)
        out->key_id = weir__guard_key_id(guard, how.key ? *how.key : ask->key, &out->key_max);
    r->level = r->decision.allowed ? 0 : 3;
    out->guard = guard;
    out->priority = ask->priority;
    out->user_class = ask->user_class;
    out->queued = how.waits;
    return 200;
}

static bool is_occupied(void *context, const struct weir_guard *guard, const struct weir_ask *ask)
{
    const struct weir__server *server = context;

    return weir__lines_occupied(server->lines, guard, ask);
}

static void note_key_of(void *context, const struct weir_guard *guard,
                        const struct weir_permit *permit, const char *key, size_t len)
{
    const struct weir__server *server = context;

    weir__guard_keys_note(weir__guards_keys(server->guards), guard, permit, key, len);
}

static void enter_by_rules(struct weir__server *server, const struct weir__enter *e,
                           const struct weir_ask *ask, const struct weir__try *how,
                           struct weir__entered *out)
{
    struct weir_entry entry = { 0 };
    struct weir__admission gate = { .ask = ask,
                                    .entry = &entry,
                                    .leased = true,
                                    .asked = &out->asked,
                                    .waits = e->wait_max > 0,
                                    .in_line = how->again,
                                    .alone = how->alone,
                                    .occupied =
                                        how->again ? NULL : is_occupied, /* not overtaking */
                                    .named = note_key_of,
                                    .context = server };

    if (weir__check_admitted(server->engine, e->attrs, e->n, &gate, &out->ruling, out->key))
        for (uint32_t i = 0; i < entry.n; i++)
            keep(out, entry.entered[i].guard, &entry.entered[i].permit);
    const struct weir_decision *d = &out->ruling.decision;
    out->uncounted = !d->allowed && d->reason == WEIR_BUSY && gate.queued;
    out->guard = gate.guard;
    out->priority = gate.priority;
    out->user_class = gate.user_class;
    out->queued = gate.queued;
    out->key_id = gate.key_id;
    out->key_max = gate.key_max;
}

int weir__enter_once(struct weir__server *server, const struct weir__enter *e,
                     const struct weir__try *how, struct weir__entered *out,
                     struct weir_error *error)
{
    struct weir_ask ask = { .key = { e->user.bytes, e->user.len },
                            .cost = e->cost,
                            .wait_max = e->wait_max,
                            .now = how->now,
                            .priority = (int8_t)e->priority };

    *out = (struct weir__entered){ .asked = how->asked };
    if (e->guard.len)
        return enter_one(server, e, &ask, how->again, out, error);
    ask.wait_max -= how->waited < ask.wait_max ? how->waited : ask.wait_max;
    enter_by_rules(server, e, &ask, how, out);
    return 200;
}

/* The guard has counted its own refusals; not those of its queue, nor that it was busy for a
 * waiter. */
static void count_turned_away(const struct weir__entered *entered)
{
    enum weir_reason reason = (enum weir_reason)entered->ruling.decision.reason;

    if (entered->turned_away || reason == WEIR_LATE || (reason == WEIR_BUSY && entered->queued))
        weir__guard_count_refused(entered->guard, reason);
}

/* The key that has all of its permits out is one of the most limited. */
static void note_key(struct weir__loop *loop, const struct weir__entered *entered)
{
    size_t len = strlen(entered->key);

    if (len > 0 && entered->ruling.decision.reason == WEIR_KEY_BUSY)
        weir__top_add(loop->server->top, loop->index, entered->ruling.guard, entered->key, len, 1);
}

/* Once for each ask; notes a refusal and its queue. */
static void count(struct weir__loop *loop, const struct weir__entered *entered)
{
    bool allowed = entered->ruling.decision.allowed;

    weir__counter_add(&loop->counters,
                      allowed ? WEIR__COUNT_ENTER_ALLOWED : WEIR__COUNT_ENTER_REFUSED, 1);
    if (!allowed && entered->uncounted)
        weir__count_refused_later(loop->server->engine);
    if (!allowed && entered->ruling.guard != NULL) {
        count_turned_away(entered);
        note_key(loop, entered);
    } else if (!allowed)
        weir__ask_note_refused(loop, &entered->ruling, entered->key, weir__loop_now(loop));
    if (!allowed && entered->ruling.fleet && loop->server->fleet)
        weir_fleet_refused(loop->server->fleet, &entered->ruling, entered->key, 1);
}

/* Its time is over, and the guard that is busy would have let it wait. */
static bool is_late(struct weir__loop *loop, const struct weir__enter *e,
                    const struct weir__entered *entered)
{
    const struct weir_ruling *r = &entered->ruling;
    const struct weir_ask ask = { .priority = entered->priority,
                                  .user_class = entered->user_class,
                                  .now = weir__loop_now(loop) };

    return !r->decision.allowed && r->decision.reason == WEIR_BUSY && r->guard != NULL &&
           entered->queued && e->wait_max == 0 &&
           weir__ruled_wait(loop->server->engine, r->guard, &ask) > 0;
}

/* It is counted as let in, as the guard and the engine have. */
static void give_back_if_gone(struct weir__conn *conn, struct weir__entered *out)
{
    if (out->permits.n == 0 || !weir__peer_is_gone(conn))
        return;
    weir__ask_exit(conn->loop, &out->permits, WEIR_IGNORED, -1);
    out->permits.n = 0;
    out->ruling.guard = weir__guard_name(out->guard);
    out->ruling.decision.allowed = false;
    out->ruling.decision.reason = WEIR_CANCELLED;
}

void weir__enter_answer(struct weir__conn *conn, const struct weir__enter *e,
                        struct weir__entered *entered, const struct weir__later *later)
{
    if (is_late(conn->loop, e, entered))
        entered->ruling.decision.reason = WEIR_LATE;
    count(conn->loop, entered);
    give_back_if_gone(conn, entered);
    later->answer(conn, entered, later->context);
}

void weir__enter_forsake(struct weir__loop *loop, struct weir__entered *entered)
{
    if (!entered->uncounted)
        count(loop, entered);
    weir__ask_exit(loop, &entered->permits, WEIR_IGNORED, -1);
}

bool weir__enter_waits(struct weir__conn *conn, const struct weir__enter *e,
                       const struct weir__later *later, struct weir__entered *out)
{
    const struct weir_ruling *r = &out->ruling;

    if (later && weir__is_dry(r) && weir__units_wait_enter(conn, e, later, out))
        return true;
    bool busy = !r->decision.allowed && r->decision.reason == WEIR_BUSY &&
                r->guard != NULL; /* in shadow it is in, though it is busy */
    return later && e->wait_max > 0 && busy && weir__wait(conn, e, later, out);
}

int weir__ask_enter(struct weir__conn *conn, const struct weir__enter *e,
                    const struct weir__later *later, struct weir__entered *out,
                    struct weir_error *error)
{
    struct weir__loop *loop = conn->loop;

    if (e->guard.len == 0 && e->user_class.len)
        return wrong(
            error, 400,
            "a class is one of a guard's: name the guard too; rules take it from an attribute");
    const struct weir__try once = { .now = weir__loop_now(loop) };
    int status = weir__enter_once(loop->server, e, &once, out, error);
    if (status != 200)
        return status;
    if (weir__enter_waits(conn, e, later, out))
        return 202;
    count(loop, out);
    return 200;
}

/* ----------------------------------------------------------------- copies ---- */

static bool copy_text(struct weir__arena *arena, struct weir__text *text)
{
    text->bytes = weir__arena_copy(arena, text->len ? text->bytes : "", text->len);
    return text->bytes != NULL;
}

bool weir__enter_copy(struct weir__arena *arena, struct weir__enter *e)
{
    struct weir_attr *attrs = weir__arena_take(arena, e->n ? e->n : 1, sizeof(*attrs));

    for (size_t i = 0; attrs != NULL && i < e->n; i++) {
        attrs[i] = e->attrs[i];
        attrs[i].name = weir__arena_copy(arena, e->attrs[i].name, e->attrs[i].name_len);
        attrs[i].value = weir__arena_copy(arena, e->attrs[i].value, e->attrs[i].value_len);
        if (attrs[i].name == NULL || attrs[i].value == NULL)
            return false;
    }
    e->attrs = attrs;
    return attrs != NULL && copy_text(arena, &e->guard) && copy_text(arena, &e->user) &&
           copy_text(arena, &e->user_class);
}

bool weir__later_copy(struct weir__arena *arena, struct weir__later *later)
{
    void *context = weir__arena_take(arena, 1, later->size);

    if (context != NULL)
        memcpy(context, later->context, later->size);
    later->context = context;
    return context != NULL;
}

/* -------------------------------------------------------- exit and renew ---- */

void weir__ask_token(struct weir__loop *loop, const struct weir__permits *permits,
                     char out[WEIR__PERMIT_TOKEN_MAX])
{
    out[0] = '\0';
    if (permits->n)
        weir__permits_print(out, weir__guards_key(loop->server->guards), permits);
}

int weir__ask_permits(struct weir__loop *loop, struct weir__text token, struct weir__permits *out,
                      struct weir_error *error)
{
    const char *what =
        weir__permits_parse(out, weir__guards_key(loop->server->guards), token.bytes, token.len);

    return what ? wrong(error, 400, "%s", what) : 200;
}

bool weir__permits_are_same(const struct weir__permits *a, const struct weir__permits *b)
{
    uint32_t i = 0;

    while (i < a->n && a->n == b->n && a->each[i].guard == b->each[i].guard &&
           a->each[i].permit.seat == b->each[i].permit.seat &&
           weir__permit_is_same(a->each[i].permit.word, b->each[i].permit.word))
        i++;
    return i == a->n && i == b->n;
}

/* A client whose renewal had no answer has the token of before. */
static bool exit_one(struct weir_guard *guard, const struct weir_permit *permit,
                     enum weir_outcome outcome, weir_time took, weir_time now)
{
    struct weir_permit mine = *permit, renewed = *permit;

    return weir__guard_exit(guard, &mine, outcome, took, now) ||
           (weir__permit_follow(guard, &renewed) &&
            weir__guard_exit(guard, &renewed, outcome, took, now));
}

/* All come back before anybody has a turn: a waiter may need several of them. */
bool weir__ask_exit(struct weir__loop *loop, struct weir__permits *permits,
                    enum weir_outcome outcome, weir_time took)
{
    struct weir__server *server = loop->server;
    struct weir_guard *guards[WEIR_ENTRY_MAX];
    weir_time now = weir__loop_now(loop);
    bool any = false;

    for (uint32_t i = 0; i < permits->n; i++) {
        guards[i] = weir__guards_get(server->guards, permits->each[i].guard);
        if (guards[i] != NULL)
            any |= exit_one(guards[i], &permits->each[i].permit, outcome, took, now);
    }
    for (uint32_t i = 0; i < permits->n; i++)
        if (guards[i] != NULL) {
            weir__lines_serve(server->lines, guards[i], now);
            weir__guard_pass_on(guards[i]);
        }
    return any;
}

/* A client whose last renewal had no answer repeats it.  `before`: the word that the seat had. */
static bool renew_one(struct weir_guard *guard, struct weir_permit *permit, weir_time now,
                      uint64_t *before)
{
    struct weir_permit present = *permit;

    *before = permit->word;
    if (weir_permit_renew(guard, permit, now))
        return true;
    if (!weir__permit_follow(guard, &present) || !weir__permit_repeat(guard, permit, now))
        return false;
    *before = present.word;
    return true;
}

weir_time weir__ask_renew(struct weir__loop *loop, struct weir__permits *permits)
{
    weir_time now = weir__loop_now(loop), shortest = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < permits->n; i++) {
        struct weir_guard *guard = weir__guards_get(loop->server->guards, permits->each[i].guard);
        struct weir_permit *permit = &permits->each[i].permit;
        uint64_t before;
        if (guard == NULL || !renew_one(guard, permit, now, &before))
            continue;
        weir__guard_keys_renew(weir__guards_keys(loop->server->guards), guard, before, permit);
        weir_time lease = weir__guard_plan_of(guard)->lease;
        shortest = n == 0 || lease < shortest ? lease : shortest;
        permits->each[n++] = permits->each[i];
    }
    permits->n = n;
    return shortest;
}
