/* cl-throttle.c -- CL.THROTTLE, as redis-cell answers it.
 *
 *     CL.THROTTLE key max_burst count period [quantity]
 *     1 if refused, max_burst + 1, remaining, seconds to retry (-1: passed, or never), to reset
 *
 * Where it differs: the price of a unit is not rounded to a nanosecond, a negative number is an
 * error (redis-cell gives units back without saying so), and so is a limit that overflows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "algo/cl-throttle.h"
#include "redis-module/account.h"
#include "redis-module/redis-cell-keys.h"
#include "redis-module/replicate.h"
#include "redis-module/verbs.h"

#define TEXT_MAX 80 /* three numbers are shorter */

static int cell_error(struct redis_context *context, const char *what, struct redis_string *word)
{
    char text[320];
    size_t len = 0;
    const char *bytes = word ? redis.StringPtrLen(word, &len) : "";

    snprintf(text, sizeof(text), "Cell error: %s%.*s", what, len > 64 ? 64 : (int)len, bytes);
    for (char *c = text; *c; c++)
        if (*c >= 0 && *c < ' ')
            *c = ' ';
    return redis.ReplyWithError(context, text);
}

/* Three numbers that were checked before. */
static int compile_cell(struct weir_limit *out, const char *text, struct weir_error *error)
{
    long long burst, count, period;

    if (sscanf(text, "%lld %lld %lld", &burst, &count, &period) != 3)
        return weir__fail(error, WEIR_INVALID, WEIR__CELL_NO_INTEGER);
    const char *wrong = weir__cell_limit(out, burst, count, period);
    struct weir_plan plan;
    if (wrong == NULL && weir__plan_make(&plan, out, NULL) != WEIR_OK)
        wrong = WEIR__CELL_INEXACT;
    return wrong == NULL ? WEIR_OK : weir__fail(error, WEIR_INVALID, "%s", wrong);
}

/* False, and that was answered, if a word is no number or below 0.  Redis's own reading knows no
 * "+1" and no "01". */
static bool read_number(struct redis_context *context, struct redis_string *word, const char *below,
                        int64_t *out)
{
    size_t len;
    const char *bytes = redis.StringPtrLen(word, &len);
    size_t sign = len > 0 && (*bytes == '-' || *bytes == '+');
    bool is = read_digits(bytes + sign, len - sign, out);

    if (is && (*out == 0 || *bytes != '-'))
        return true;
    cell_error(context, is ? below : WEIR__CELL_NO_INTEGER ": ", word);
    return false;
}

/* The three words of a limit as one text.  0: it is too long to be one. */
static size_t join_words(struct redis_string **words, char *text, size_t size)
{
    size_t at = 0, len;

    for (int i = 0; i < 3; i++) {
        const char *bytes = redis.StringPtrLen(words[i], &len);
        if (len + 1 > size - at)
            return 0;
        memcpy(text + at, bytes, len);
        at += len;
        text[at++] = ' ';
    }
    return at;
}

/* One that was seen before, as most were; or NULL. */
static const struct limit *look_up(struct redis_string **words)
{
    char text[TEXT_MAX];
    size_t len = join_words(words, text, sizeof(text));

    return len > 0 ? limits_look(text, len, compile_cell) : NULL;
}

/* NULL, and that was answered, if it makes no sense. */
static const struct limit *find_limit(struct redis_context *context, const int64_t numbers[3])
{
    char text[TEXT_MAX];
    struct weir_error error;
    size_t len = (size_t)snprintf(text, sizeof(text), "%" PRId64 " %" PRId64 " %" PRId64 " ",
                                  numbers[0], numbers[1], numbers[2]);
    const struct limit *limit = limits_find(text, len, compile_cell, &error);

    if (limit == NULL)
        cell_error(context, error.text, NULL);
    return limit;
}

/* The ask's limit and quantity.  NULL, and that was answered: numbers that are none are said before
 * a limit that is none, as by redis-cell. */
static const struct limit *read_ask(struct redis_context *context, struct redis_string **words,
                                    int n, int64_t *quantity)
{
    const struct limit *limit = look_up(words + 2);
    int64_t numbers[3];

    *quantity = 1;
    for (int i = 0; i < 3 && limit == NULL; i++)
        if (!read_number(context, words[2 + i],
                         "Negative numbers are not supported: ", &numbers[i]))
            return NULL;
    if (n == 6 &&
        !read_number(context, words[5], "Negative quantities are not supported: ", quantity))
        return NULL;
    return limit != NULL ? limit : find_limit(context, numbers);
}

static int reply(struct redis_context *context, const struct weir_decision *d)
{
    redis.ReplyWithArray(context, 5);
    redis.ReplyWithLongLong(context, !d->allowed);
    redis.ReplyWithLongLong(context, d->limit);
    redis.ReplyWithLongLong(context, d->remaining);
    redis.ReplyWithLongLong(context, weir__cell_retry(d));
    return redis.ReplyWithLongLong(context, weir__cell_seconds(d->reset));
}

int verb_throttle(struct redis_context *context, struct redis_string **words, int n)
{
    int64_t quantity;
    struct account account;
    struct weir_decision d;

    if (n < 5 || n > 6)
        return cell_error(context, WEIR__CELL_USAGE, NULL);
    limits_begin();
    tell_command_begins();
    const struct limit *limit = read_ask(context, words, n, &quantity);
    if (limit == NULL)
        return REDIS_OK;
    struct weir_ask ask = { .cost = quantity, .now = module_now() };
    const struct opening how = { context,   words[1], limit, REDIS_READ | REDIS_WRITE,
                                 KEEP_DEBT, ask.now };
    if (account_open(&account, &how) != ACCOUNT_OPEN)
        return reply_foreign(context);
    if (weir_step(&limit->plan, account.state, &ask, &d) || !account.moved)
        account_store(&account, ask.now);
    account_close(&account);
    return reply(context, &d);
}
