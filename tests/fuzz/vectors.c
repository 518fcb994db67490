/* vectors.c -- fuzzes the reader of .vec files, and runs what it reads at the step.
 *
 * What a file expects means nothing here; what must hold of every answer does:
 *   a grant waits no longer than the ask allows;
 *   a refusal's retry is exact: a nanosecond earlier the answer is still no (looked at while the
 *   clock goes forward); a peek changes nothing, and the take after it says the same; nothing is
 *   negative, and no more is left than the limit.
 */
#include "fuzz/fuzz.h"

#include "vectors/runner/replay.h"
#include "vectors/runner/vectors.h"

enum { STATE_MAX = 1 << 20 };

static bool fits(const struct weir_limit *limit)
{
    struct weir_plan *plan;

    check(weir_plan_create(&plan, limit, NULL) == WEIR_OK); /* the reader has tried it */
    size_t size = weir_plan_state_size(plan);
    weir_plan_destroy(plan);
    return size <= STATE_MAX;
}

static bool all_fit(const struct weir__vectors *v, const struct weir__vector_case *c)
{
    if (c->kind)
        return true;
    bool all = fits(&c->limit);

    for (size_t i = c->first; i < c->first + c->count; i++)
        all = all && (v->lines[i].verb != WEIR__VECTOR_CHANGE || fits(&v->lines[i].limit));
    return all;
}

/* The step's own door with the laws around it. */
struct checked {
    const struct weir__door *door;
    void *run;
    weir_time latest;
    bool forward; /* so far */
};

static void check_decision(bool allowed, const struct weir_ask *ask, const struct weir_decision *d)
{
    check(allowed == d->allowed);
    check(allowed == (d->reason == WEIR_GRANTED));
    check(d->wait >= 0 && d->retry >= 0 && d->reset >= 0 && d->remaining >= 0);
    check(d->remaining <= d->limit);
    check(allowed ? d->wait <= ask->wait_max : d->retry > 0);
}

static void check_retry(const struct checked *c, const struct weir_ask *ask, weir_time retry)
{
    struct weir_ask later = *ask;
    struct weir_decision d;

    if (retry == WEIR_NEVER || __builtin_add_overflow(ask->now, retry, &later.now))
        return;
    check(c->door->ask(c->run, WEIR__VECTOR_PEEK, &later, &d));
    later.now--;
    check(!c->door->ask(c->run, WEIR__VECTOR_PEEK, &later, &d));
}

static bool checked_ask(void *run, enum weir__vector_verb verb, const struct weir_ask *ask,
                        struct weir_decision *d)
{
    struct checked *c = run;
    struct weir_decision peeked;
    bool would = c->door->ask(c->run, WEIR__VECTOR_PEEK, ask, &peeked);

    c->forward = c->forward && ask->now >= c->latest;
    c->latest = ask->now;
    check_decision(would, ask, &peeked);
    if (!would && c->forward)
        check_retry(c, ask, peeked.retry);
    bool allowed = c->door->ask(c->run, verb, ask, d);
    check_decision(allowed, ask, d);
    check(allowed == would && d->limit == peeked.limit && d->remaining == peeked.remaining);
    check(d->wait == peeked.wait && d->retry == peeked.retry && d->reset == peeked.reset);
    return allowed;
}

static int checked_open(const struct weir__door *self, void **run, const struct weir__vectors *v,
                        const struct weir__vector_case *first, struct weir_error *error)
{
    struct checked *c = calloc(1, sizeof(*c));

    (void)self;
    check(c);
    c->door = weir__door_find("step");
    c->forward = true;
    check(c->door->open(c->door, &c->run, v, first, error) == WEIR_OK);
    *run = c;
    return WEIR_OK;
}

static void checked_give(void *run, const struct weir_ask *ask)
{
    struct checked *c = run;

    c->forward = c->forward && ask->now >= c->latest;
    c->latest = ask->now;
    c->door->give(c->run, ask);
}

static int checked_change(void *run, const struct weir_limit *limit, weir_time now,
                          struct weir_error *error)
{
    struct checked *c = run;

    c->forward = c->forward && now >= c->latest;
    c->latest = now;
    return c->door->change(c->run, limit, now, error);
}

static void checked_close(void *run)
{
    struct checked *c = run;

    c->door->close(c->run);
    free(c);
}

static const struct weir__door checked = {
    .name = "checked",
    .open = checked_open,
    .ask = checked_ask,
    .give = checked_give,
    .change = checked_change,
    .close = checked_close,
};

static void ignore(void *context, int line, const char *text)
{
    (void)context;
    check(line >= 1 && strstr(text, " got "));
}

static void run_cases(const struct weir__vectors *v)
{
    for (size_t i = 0; i < v->case_count; i++) {
        if (all_fit(v, &v->cases[i]))
            weir__vectors_replay(&checked, v, &v->cases[i], ignore, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__vectors v = { 0 };
    struct weir_error error = { 0 };
    int line = 0;

    if (size == 0)
        return 0;
    if (weir__vectors_parse(&v, (const char *)data, size, &line, &error) != WEIR_OK) {
        check(line >= 1 && error.column >= 1 && error.text[0] && !strchr(error.text, '\n'));
        return 0;
    }
    run_cases(&v);
    weir__vectors_clear(&v);
    return 0;
}
