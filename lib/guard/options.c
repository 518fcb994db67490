/* options.c -- the options of a guard as rows, and the work done by row. */
#include "guard/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "guard/guard.h"

#define LEASE_MIN (10 * WEIR_MILLISECOND)
#define CALLS_MAX 1000000 /* of errors and min_calls */
#define HOUR      (3600 * WEIR_SECOND)
#define YEAR      (366 * 24 * HOUR)

const char *const *weir__flag_words(void)
{
    static const char *const words[] = { "false", "true", NULL };

    return words;
}

static const char *const *at_words(void)
{
    static const char *const words[] = { "reached", "above", NULL };

    return words;
}

static const char *const *mode_words(void)
{
    static const char *const words[] = { "as-written", "enforce", "shadow", "off", NULL };

    return words;
}

/* ---------------------------------------------------------------- rows ---- */

#define COUNT   .type = WEIR__ROW_COUNT
#define TIME    .type = WEIR__ROW_TIME
#define PERCENT .type = WEIR__ROW_PERCENT
#define WORD    .type = WEIR__ROW_WORD
#define NAME    .type = WEIR__ROW_NAME

#define OWN(member)      WEIR__ROW(struct weir_guard_options, member)
#define BREAKER(member)  WEIR__ROW(struct weir_breaker_options, member)
#define ADAPTIVE(member) WEIR__ROW(struct weir_adaptive_options, member)
#define SYSTEM(member)   WEIR__ROW(struct weir_system_options, member)

/* clang-format off */
static const struct weir__row concurrency_rows[] = {
    { "max", OWN(max), COUNT, 1, WEIR__PERMITS_MAX, WEIR__PERMITS,
      .text = "Work in progress at once; with a key, of each key" },
    { "total", OWN(max_per_key), COUNT, 1, WEIR__PERMITS_MAX, /* see weir__concurrency_turn */
      .text = "With a key: of all keys together; default 16384" },
};

static const struct weir__row guard_rows[] = {
    { "lease", OWN(lease), TIME, LEASE_MIN, HOUR, 60 * WEIR_SECOND,
      .text = "A permit not given back by then is taken back" },
    { "shed", OWN(shed), WORD, .words = weir__flag_words,
      .text = "Under overload, refuses the least important, and the same users each time" },
    { "degrade", OWN(degrade), COUNT, 1, WEIR__DEGRADATION_MAX,
      .text = "Refuses everybody from this degradation on" },
    { "raises", OWN(raises), COUNT, 1, WEIR__DEGRADATION_MAX,
      .text = "Raises degradation to this while the breaker is open or the host overloaded" },
    { NULL, NULL, offsetof(struct weir_guard_options, mode), sizeof(enum weir_mode), WORD,
      .words = mode_words },
};

static const struct weir__row breaker_rows[] = {
    { "errors", BREAKER(error_percent), PERCENT, 1, 100,
      .text = "Opens at this share of errors, such as 50%, or at this number of them" },
    { "errors", BREAKER(errors), COUNT, 1, CALLS_MAX },
    { "slow", BREAKER(slow), TIME, 1, HOUR, .text = "Calls that take longer are slow" },
    { "ratio", BREAKER(slow_percent), PERCENT, 1, 100, 50,
      .text = "Opens at this share of slow calls" },
    { "window", BREAKER(window), TIME, WEIR_MILLISECOND, YEAR, 10 * WEIR_SECOND,
      .text = "Looks at the calls of this time ..." },
    { "calls", BREAKER(calls), COUNT, 1, WEIR__BREAKER_CALLS_MAX,
      .text = "... or at this number of calls, the latest ones" },
    { "min_calls", BREAKER(min_calls), COUNT, 1, CALLS_MAX, 20,
      .text = "Never opens on fewer calls" },
    { "open_for", BREAKER(open_for), TIME, 1, YEAR, WEIR__BREAKER_OPEN_FOR,
      .text = "Stays open this long, then lets probes through" },
    { "open_max", BREAKER(open_max), TIME, 1, YEAR,
      .text = "Failed probes double the time, up to this; default 3 times open_for" },
    { "jitter", BREAKER(jitter_percent), PERCENT, 0, 100, 10,
      .text = "Open times vary by this much, up and down" },
    { "probes", BREAKER(probes), COUNT, 1, WEIR__BREAKER_PROBES, 3,
      .text = "Calls let through to find out whether things work again" },
    { "at", BREAKER(above), WORD, .words = at_words,
      .text = "Opens when a threshold is reached, or only above it" },
};

static const struct weir__row adaptive_rows[] = {
    { "controller", ADAPTIVE(controller), NAME, .words = weir_controllers,
      .text = "How the limit is found; weir unless a percentile is set" },
    { "initial", ADAPTIVE(initial), COUNT, 1, WEIR__RATE_MAX, .text = "The first limit" },
    { "min", ADAPTIVE(min), COUNT, 1, WEIR__RATE_MAX, .text = "The lowest limit" },
    { "max", ADAPTIVE(max), COUNT, 1, WEIR__RATE_MAX, .text = "The highest limit" },
    { "target", ADAPTIVE(target), TIME, 1, HOUR,
      .text = "weir: never admits so much that work takes longer" },
    { NULL, ADAPTIVE(percentile), COUNT, 1, 99 },
    { "window", ADAPTIVE(window), TIME, 10 * WEIR_MILLISECOND, HOUR,
      .text = "percentile: over this time, default 10s.  Others: between two looks" },
    { "rate", ADAPTIVE(rate), WORD, .words = weir__flag_words,
      .text = "percentile: bounds how many enter per second, not how many are at work" },
};

static const struct weir__row system_rows[] = {
    { "cpu", SYSTEM(cpu_percent), PERCENT, 1, 100,
      .text = "Share in use of the processor time that this process may use" },
    { "pressure", SYSTEM(pressure_percent), PERCENT, 1, 100,
      .text = "Share of time in which something waits for a processor (PSI)" },
    { "memory", SYSTEM(memory_percent), PERCENT, 1, 100,
      .text = "Share of time in which something waits for memory (PSI)" },
    { "run_queue", SYSTEM(run_queue), COUNT, 1, 10000,
      .text = "Tasks running or ready, per processor" },
    { "mean_time", SYSTEM(mean_time), TIME, 1, HOUR, .text = "Mean time of the guard's own work" },
    { "in_flight", SYSTEM(in_flight), COUNT, 1, 100000000,
      .text = "Work in progress in all guards of the table together" },
    { "rate", SYSTEM(rate), COUNT, 1, 1000000000,
      .text = "Requests that enter any guard of the table, per second" },
};
/* clang-format on */

#define ROWS(array) array, sizeof(array) / sizeof((array)[0])

_Static_assert(sizeof(concurrency_rows) + sizeof(guard_rows) + sizeof(breaker_rows) +
                       sizeof(adaptive_rows) + sizeof(system_rows) ==
                   WEIR__OPTIONS * sizeof(struct weir__row),
               "each row has its place in struct weir__guard_terms");

const struct weir__rows weir__guard_rows[WEIR__GROUPS] = {
    [WEIR__CONCURRENCY] = { "concurrency", 0, ROWS(concurrency_rows) },
    [WEIR__GUARD] = { "guard", 0, ROWS(guard_rows) },
    [WEIR__BREAKER] = { "breaker", offsetof(struct weir_guard_options, breaker),
                        ROWS(breaker_rows) },
    [WEIR__ADAPTIVE] = { "adaptive", offsetof(struct weir_guard_options, adaptive),
                         ROWS(adaptive_rows) },
    [WEIR__SYSTEM] = { "system", offsetof(struct weir_guard_options, system), ROWS(system_rows) },
};

/* In a rule file with a key, `max` is each key's, and `total` is the guard's own. */
void weir__concurrency_turn(struct weir_guard_options *options)
{
    int64_t max = options->max;

    options->max = options->max_per_key;
    options->max_per_key = max;
}

/* -------------------------------------------------------------- values ---- */

static int64_t place_of(const char *word, const char *const *words)
{
    int64_t i = 0;

    while (words[i] && strcmp(words[i], word) != 0)
        i++;
    return words[i] ? i + 1 : 0;
}

int64_t weir__row_get(const struct weir__row *row, const void *options)
{
    const void *at = (const char *)options + row->offset;
    const char *name;

    if (row->type == WEIR__ROW_NAME) {
        memcpy(&name, at, sizeof(name));
        return name ? place_of(name, row->words()) : 0;
    }
    return row->size == 1   ? *(const bool *)at
           : row->size == 4 ? *(const int32_t *)at
                            : *(const int64_t *)at;
}

static size_t count_of(const char *const *words)
{
    size_t n = 0;

    while (words[n])
        n++;
    return n;
}

/* A damaged table may hold any value: it must become an option, valid or not. */
void weir__row_set(const struct weir__row *row, void *options, int64_t value)
{
    void *at = (char *)options + row->offset;

    if (row->type == WEIR__ROW_NAME) {
        bool known = value > 0 && (uint64_t)value <= count_of(row->words());
        const char *name = known ? row->words()[value - 1] : NULL;
        memcpy(at, &name, sizeof(name));
    } else if (row->size == 1) {
        *(bool *)at = value != 0;
    } else if (row->size == 4) {
        *(int32_t *)at = (int32_t)value;
    } else {
        *(int64_t *)at = value;
    }
}

struct weir__row_text weir__row_print(const struct weir__row *row, int64_t value)
{
    struct weir__row_text out;

    switch (row->type) {
    case WEIR__ROW_TIME:
        weir_time_print(out.text, sizeof(out.text), value);
        break;
    case WEIR__ROW_PERCENT:
        snprintf(out.text, sizeof(out.text), "%d%%", value < 0 ? 0 : (int)value);
        break;
    case WEIR__ROW_WORD:
    case WEIR__ROW_NAME:
        snprintf(out.text, sizeof(out.text), "%s",
                 row->words()[row->type == WEIR__ROW_NAME ? value - 1 : value]);
        break;
    default:
        snprintf(out.text, sizeof(out.text), "%" PRId64, value);
    }
    return out;
}

struct weir__row_bounds weir__row_bounds(const struct weir__row *row)
{
    struct weir__row_bounds out;
    struct weir__row_text least = weir__row_print(row, row->min),
                          most = weir__row_print(row, row->max);

    if (row->type == WEIR__ROW_TIME && row->min == 1)
        snprintf(out.text, sizeof(out.text), "more than 0 and at most %s", most.text);
    else
        snprintf(out.text, sizeof(out.text), "from %s to %s", least.text, most.text);
    return out;
}

/* ---------------------------------------------------------------- rows ---- */

bool weir__rows_any(const struct weir__rows *rows, const void *options)
{
    for (size_t i = 0; i < rows->n; i++) {
        if (weir__row_get(&rows->rows[i], options) != 0)
            return true;
    }
    return false;
}

static bool is_good(const struct weir__row *row, int64_t value)
{
    if (row->type == WEIR__ROW_NAME)
        return true;
    if (row->type == WEIR__ROW_WORD)
        return value >= 0 && (uint64_t)value < count_of(row->words());
    return value == 0 || (value >= row->min && value <= row->max) || (value == -1 && row->min == 0);
}

int weir__rows_check(const struct weir__rows *rows, const void *options, struct weir_error *error)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct weir__row *row = &rows->rows[i];
        int64_t value = weir__row_get(row, options);
        if (is_good(row, value))
            continue;
        if (row->type == WEIR__ROW_WORD)
            return weir__fail(error, WEIR_INVALID, "there is no mode %" PRId64, value);
        return weir__fail(error, WEIR_INVALID, "%s must be %s", row->member,
                          weir__row_bounds(row).text);
    }
    return WEIR_OK;
}

void weir__rows_fill(const struct weir__rows *rows, void *options)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct weir__row *row = &rows->rows[i];
        if (row->otherwise && weir__row_get(row, options) == 0)
            weir__row_set(row, options, row->otherwise);
    }
}
