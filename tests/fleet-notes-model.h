/* fleet-notes-model.h -- bans-and-resets.lua in plain C: for simulations, where Redis would be too
 * slow.  tests/property/fleet-scripts.c compares it with the script. */
#ifndef WEIR_TESTS_FLEET_NOTES_MODEL_H
#define WEIR_TESTS_FLEET_NOTES_MODEL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/fleet/bans-and-resets.h"

enum { MODEL_NOTES = 64, MODEL_NAME = 32, MODEL_SAME = 1000000 };

/* Times in us, by Redis's clock. */
struct model_notes {
    struct model_note {
        char name[MODEL_NAME]; /* a kind, a rule, 0, a key */
        size_t len;
        int64_t number, fin, strikes, forget, base, goes;
    } of[MODEL_NOTES];
    int n;
    int64_t begun, last, run;
};

struct model_tale {
    int64_t begun, heard, knew, most;
    struct model_told {
        char name[MODEL_NAME];
        size_t len;
        int64_t span, strikes, forget;
        char how; /* the second letter: e, l or o */
    } told[MODEL_NOTES];
    int n;
};

static inline struct model_note *model_note_find(struct model_notes *m, const char *name,
                                                 size_t len)
{
    for (int i = 0; i < m->n; i++)
        if (m->of[i].len == len && memcmp(m->of[i].name, name, len) == 0)
            return &m->of[i];
    return NULL;
}

static inline bool model_stands(const struct model_note *note, int64_t fin,
                                const struct model_told *t, int64_t knew)
{
    bool same = (note->strikes == 0) == (t->strikes == 0) && llabs(fin - note->fin) < MODEL_SAME;

    if (t->how == 'l') /* old */
        return same || note->base >= knew;
    return t->how == 'e' && note->base > knew && /* new */
           (t->strikes == 0 || note->strikes == 0 || fin <= note->fin + MODEL_SAME);
}

static inline void model_tell(struct model_notes *m, const struct model_told *t, int64_t knew,
                              int64_t now)
{
    int64_t fin = now + t->span;
    struct model_note *note = model_note_find(m, t->name, t->len);

    if (note && model_stands(note, fin, t, knew))
        return;
    if (!note && m->n == MODEL_NOTES)
        abort();
    m->last = m->last + 1 > now ? m->last + 1 : now;
    m->begun = m->begun == 0 ? m->last : m->begun;
    int64_t goes = note && note->goes > fin ? note->goes : fin;
    note = note ? note : &m->of[m->n++];
    *note = (struct model_note){ .len = t->len,
                                 .number = m->last,
                                 .fin = fin,
                                 .strikes = t->strikes,
                                 .forget = t->forget,
                                 .base = t->how == 'l' ? knew : m->last,
                                 .goes = goes };
    memcpy(note->name, t->name, t->len);
}

static inline int model_by_number(const void *a, const void *b)
{
    int64_t x = ((const struct model_note *)a)->number, y = ((const struct model_note *)b)->number;

    return (x > y) - (x < y);
}

/* As the script answers, in RESP. */
static inline void model_answer_notes(struct model_notes *m, const struct model_tale *t, bool lost,
                                      int64_t now, struct weir__buffer *out)
{
    int64_t heard = m->last, n = 0;

    qsort(m->of, (size_t)m->n, sizeof(*m->of), model_by_number);
    for (int i = 0; i < m->n && !lost; i++)
        if (m->of[i].number > t->heard && n < t->most && ++n == t->most)
            heard = m->of[i].number;
    weir__buffer_format(out, "*%lld\r\n:%lld\r\n:%lld\r\n:%lld\r\n:%d\r\n",
                        (long long)(4 + WEIR__NOTE_VALUES * n), (long long)m->begun,
                        (long long)m->last, (long long)(lost ? 0 : heard), lost);
    for (int i = 0; i < m->n && n > 0; i++) {
        const struct model_note *note = &m->of[i];
        if (note->number <= t->heard)
            continue;
        n--;
        weir__buffer_format(out, "$%zu\r\n", note->len);
        weir__buffer_add(out, note->name, note->len);
        weir__buffer_format(
            out, "\r\n:%lld\r\n:%lld\r\n:%lld\r\n:%lld\r\n:%lld\r\n", (long long)note->number,
            (long long)(note->fin > now ? note->fin - now : 0), (long long)note->strikes,
            (long long)note->forget, (long long)note->base);
    }
}

/* `expires`: all is gone by then. */
static inline void model_notes_call(struct model_notes *m, const struct model_tale *t, int64_t run,
                                    int64_t now, struct weir__buffer *out)
{
    if (m->last > 0 && m->run != run)
        m->begun = m->last = m->last + 1 > now ? m->last + 1 : now;
    bool lost = t->heard > m->last || (t->begun != 0 && t->begun != m->begun);
    m->run = m->last > 0 ? run : m->run;
    for (int i = m->n - 1; i >= 0; i--)
        if (m->of[i].goes <= now)
            m->of[i] = m->of[--m->n];
    for (int i = 0; i < t->n; i++)
        model_tell(m, &t->told[i], t->knew, now);
    m->run = m->last > 0 ? run : m->run;
    model_answer_notes(m, t, lost, now, out);
}

/* A word in RESP: its length, and then the word. */
static inline const char *model_word(const char *at, const char **word, size_t *len)
{
    char *end;

    *len = strtoul(at + 1, &end, 10);
    *word = end + 2;
    return *word + *len + 2;
}

static inline const char *model_number(const char *at, int64_t *out)
{
    const char *word;
    size_t len;

    at = model_word(at, &word, &len);
    *out = strtoll(word, NULL, 10);
    return at;
}

/* From the words of an ask; they end in a zero. */
static inline struct model_tale model_tale_read(const char *words, size_t n_words)
{
    struct model_tale t = { .n = (int)((n_words - WEIR__NOTES_WORDS(0)) / WEIR__NOTE_WORDS) };
    const char *word, *at = words;
    size_t len;

    for (int i = 0; i < 4; i++)
        at = model_word(at, &word, &len);
    at = model_number(model_number(at, &t.begun), &t.heard);
    at = model_number(model_number(at, &t.knew), &t.most);
    for (int i = 0; i < t.n && i < MODEL_NOTES; i++) {
        struct model_told *told = &t.told[i];
        at = model_word(at, &word, &told->len);
        if (told->len > sizeof(told->name))
            abort();
        memcpy(told->name, word, told->len);
        at = model_number(model_number(model_number(at, &told->span), &told->strikes),
                          &told->forget);
        at = model_word(at, &word, &len);
        told->how = word[1];
    }
    return t;
}

#endif
