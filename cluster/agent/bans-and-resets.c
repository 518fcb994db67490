/* bans-and-resets.c -- what nodes tell each other: bans, bans that were lifted, keys that were
 * reset.
 *
 * A ban is in the table, whoever made or lifted it; one that the fleet does not know yet is not
 * marked as told.  When anything about bans was written, the agent looks at all of them, some in
 * each turn, and tells those.  A beat's answer has the number of the fleet's last note: if it is
 * another than was heard, the agent asks.  So where nothing happens nothing is asked.
 *
 * Redis may lose notes.  A node that notices tells everything once more, a batch in each beat, and
 * so does one that has just begun; meanwhile older notes teach it nothing about keys that it knows.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cluster/agent/agent.h"

#define ASK_MAX   (500 * WEIR_MILLISECOND)
#define SLICE     1024 /* places looked at in a turn */
#define NEVER     UINT64_MAX
#define LOOKS_MAX 8

void weir__notes_begin(struct weir_fleet *f)
{
    struct weir__agent_notes *n = &f->notes;

    n->script = weir__redis_script(weir__lua_bans_and_resets, weir__lua_bans_and_resets_len);
    n->begun = n->heard = n->knew = 0;
    n->written = NEVER;
    n->at = NEVER;
    n->ready = n->again = false;
    n->lost = true;
    n->n = 0;
}

void weir__notes_heard(struct weir_fleet *f, bool answered, int64_t last)
{
    f->notes.ready = answered;
    f->notes.last = answered ? last : f->notes.last;
}

int weir__notes_slot(const struct weir_fleet *f)
{
    char key[WEIR__MEMBER_ID_MAX + 16];
    int len = snprintf(key, sizeof(key), "{fleet:%s}", f->name);

    return weir__redis_slot(key, (size_t)len);
}

/* -------------------------------------------------------------------- bans ---- */

static bool is_to_be_told(const struct weir_fleet *f, const struct weir__ban_record *r)
{
    return (f->notes.again || !r->told) && r->key_len <= sizeof(r->key) &&
           weir__limit_find(f, r->rule, 0);
}

/* Grows with every change. */
static uint64_t bans_written(const struct weir_table *table)
{
    return weir__load(&table->header->bans_written);
}

/* True: there are more places to look at. */
static bool look(struct weir_fleet *f, weir_time now)
{
    struct weir__agent_notes *n = &f->notes;
    uint64_t places = f->host->ban_places(f->table), written = bans_written(f->table);

    if (n->at >= places) {
        if (n->written == written && n->generation == f->generation && !n->lost) {
            n->again = n->again && n->n > 0;
            return false;
        }
        n->written = written;
        n->generation = f->generation;
        n->knew = n->lost ? n->knew : n->heard;
        n->again = n->lost;
        n->lost = false;
        n->at = 0;
    }
    uint64_t end = places - n->at < SLICE ? places : n->at + SLICE;
    for (; n->at < end && n->n < WEIR__AGENT_BANS; n->at++)
        if (f->host->ban_read(f->table, n->at, now, &n->told[n->n]))
            n->n += is_to_be_told(f, &n->told[n->n]);
    return n->at < places;
}

/* A lift from before notes were lost counts: numbers say nothing about it. */
static void add_ban(const struct weir__ban_record *r, bool again, weir_time now,
                    struct weir__buffer *out)
{
    bool lifted = weir__ban_is_lifted(r, now);
    weir_time end = lifted ? r->forget_at : r->until > now ? r->until : now;
    struct weir__note note = { .kind = 'b',
                               .rule = { r->rule, strnlen(r->rule, sizeof(r->rule)) },
                               .key = { r->key, r->key_len },
                               .span = end - now,
                               .strikes = lifted           ? 0
                                          : r->strikes < 1 ? 1
                                                           : r->strikes,
                               .forget = r->forget_at > end ? r->forget_at - end : 0,
                               .how = r->told           ? WEIR__NOTE_OLD
                                      : lifted && again ? WEIR__NOTE_NOW
                                                        : WEIR__NOTE_NEW };

    weir__note_words(&note, out);
}

/* ----------------------------------------------------------------- answers ---- */

static const struct weir__ban_record *sent(const struct weir__agent_notes *n, const char *rule,
                                           struct weir_key key)
{
    for (size_t i = 0; i < n->n; i++) {
        const struct weir__ban_record *r = &n->told[i];
        if (strcmp(r->rule, rule) == 0 && r->key_len == key.len &&
            memcmp(r->key, key.bytes, key.len) == 0)
            return r;
    }
    return NULL;
}

/* False: no rule can have it. */
static bool copy_name(char rule[WEIR__NAME_SIZE], const struct weir__note *note)
{
    if (note->rule.len >= WEIR__NAME_SIZE)
        return false;
    memcpy(rule, note->rule.bytes, note->rule.len);
    rule[note->rule.len] = '\0';
    return true;
}

static void learn_ban(struct weir_fleet *f, const struct weir__note *note, weir_time now)
{
    char rule[WEIR__NAME_SIZE];
    struct weir_key key = { note->key.bytes, note->key.len };

    if (!copy_name(rule, note) || note->key.len >= WEIR_KEY_TEXT)
        return;
    struct weir__ban_lesson lesson = {
        .rule = rule,
        .key = key,
        .now = now,
        .until = now + note->span,
        .forget = note->forget,
        .strikes = note->strikes < INT32_MAX ? (int32_t)note->strikes : INT32_MAX,
        .sent = sent(&f->notes, rule, key),
        .older = f->notes.again && note->base < f->notes.knew,
        .met = note->base <= f->notes.heard,
        .agent = f->shared ? f->holder : 0,
    };
    if (!f->host->ban_learn(f->weir, &lesson))
        f->notes.written = NEVER; /* it is to be told */
}

static void learn_reset(struct weir_fleet *f, const struct weir__note *note, weir_time now)
{
    struct weir__agent_limit *l;
    char rule[WEIR__NAME_SIZE];

    if (!copy_name(rule, note))
        return;
    for (uint32_t i = 0; (l = weir__limit_find(f, rule, i)) != NULL; i++) {
        struct weir__fleet_key *k = weir__fleet_key_find(
            f->fleet, &l->fleet, (struct weir_key){ note->key.bytes, note->key.len });
        if (!k)
            continue; /* nothing is in its purse */
        (void)weir__share_end(f, k, now);
        weir__fleet_reset(f->fleet, k, weir__reply_time(note->number), now);
    }
}

static bool read_notes(struct weir_fleet *f, struct weir__text reply, weir_time now)
{
    struct weir__agent_notes *n = &f->notes;
    struct weir__notes notes;
    struct weir__note note;

    if (!weir__notes_reply(&notes, reply))
        return false;
    for (size_t i = 0; i < notes.n; i++) {
        if (!weir__note_next(&notes, &note))
            return false;
        if (note.kind == 'b')
            learn_ban(f, &note, now);
        else if (note.kind == 'r')
            learn_reset(f, &note, now);
    }
    if (notes.lost && !n->lost && !n->again)
        n->knew = n->heard;
    n->begun = notes.begun;
    n->heard = notes.heard;
    n->last = notes.last;
    n->lost = n->lost || notes.lost;
    return true;
}

void weir__notes_answer(struct weir_fleet *f, const struct weir__text *reply, weir_time now)
{
    struct weir__agent_notes *n = &f->notes;

    n->asking = false;
    if (f->agent && !f->leaving && (reply == NULL || !read_notes(f, *reply, now))) {
        n->ready = false;
        n->lost = n->lost || n->again;
        n->written = n->at = NEVER;
    }
    n->n = 0;
}

static void answered(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct weir_fleet *f = ask->context;

    weir__notes_answer(f, answer->outcome == WEIR__REDIS_ANSWERED ? &answer->reply : NULL,
                       weir__agent_time(f));
    weir__redis_ask_free(ask);
}

/* ------------------------------------------------------------------- turns ---- */

size_t weir__notes_say(struct weir_fleet *f, weir_time now, struct weir__buffer *out)
{
    struct weir__agent_notes *n = &f->notes;
    struct weir_key fleet = { f->name, strlen(f->name) };

    weir__notes_words(fleet, n->begun, n->heard, n->knew, out);
    for (size_t i = 0; i < n->n; i++)
        add_ban(&n->told[i], n->again, now, out);
    n->asking = true;
    n->ready = !n->again || n->n == 0; /* others tell theirs at the same time */
    return WEIR__NOTES_WORDS(n->n);
}

static void ask_notes(struct weir_fleet *f, weir_time mono, weir_time now)
{
    struct weir__agent_notes *n = &f->notes;

    n->ask = (struct weir__redis_ask){ .script = &n->script,
                                       .slot = weir__notes_slot(f),
                                       .deadline = mono + ASK_MAX,
                                       .repeatable = true,
                                       .done = answered,
                                       .context = f };
    n->ask.n_words = weir__notes_say(f, now, &n->ask.words);
    f->stirred = true;
    weir__redis_client_ask(f->client, &n->ask, mono);
}

/* First all is told, then others are heard: what this node knows too late must not count as made
 * in the knowledge of what others did. */
static bool is_to_be_asked(const struct weir_fleet *f, bool more)
{
    const struct weir__agent_notes *n = &f->notes;

    if (n->n == WEIR__AGENT_BANS || (n->n > 0 && !more))
        return true;
    return !more && n->last != n->heard &&
           (n->written == bans_written(f->table) || n->looks > LOOKS_MAX);
}

enum weir__notes_next weir__notes_next(struct weir_fleet *f, weir_time now)
{
    struct weir__agent_notes *n = &f->notes;

    if (!f->agent || f->leaving || !n->ready || n->asking)
        return WEIR__NOTES_WAIT;
    bool more = look(f, now);
    n->looks += !more;
    if (is_to_be_asked(f, more)) {
        n->looks = 0;
        return WEIR__NOTES_ASK;
    }
    return more || n->last != n->heard ? WEIR__NOTES_LOOK : WEIR__NOTES_WAIT;
}

weir_time weir__notes_turn(struct weir_fleet *f, weir_time mono, weir_time now)
{
    enum weir__notes_next next = weir__notes_next(f, now);

    if (next == WEIR__NOTES_ASK)
        ask_notes(f, mono, now);
    return next == WEIR__NOTES_LOOK ? mono : WEIR_NEVER;
}
