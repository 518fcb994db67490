/* limit.c -- any bytes as a limit and as a time: no crash, an error that points into the text, and
 * a limit that parses comes back the same. */
#include "fuzz/fuzz.h"

#include "weir.h"

static bool same(const struct weir_limit *a, const struct weir_limit *b)
{
    return a->algorithm == b->algorithm && a->count == b->count && a->period == b->period &&
           a->burst == b->burst && a->queue == b->queue && a->buckets == b->buckets &&
           a->align_first == b->align_first && a->loose == b->loose && a->warmup == b->warmup &&
           a->cold == b->cold && a->calendar == b->calendar &&
           memcmp(a->zone, b->zone, sizeof(a->zone)) == 0;
}

static void check_error(const struct weir_error *error, size_t length)
{
    check(error->column >= 1 && (size_t)error->column <= length + 1);
    check(memchr(error->text, '\0', sizeof(error->text)) != NULL);
    check(error->text[0] != '\0' && !strpbrk(error->text, "\r\n"));
}

static void check_limit(const char *text)
{
    struct weir_limit limit = { .count = 42 }, again;
    struct weir_error error;
    char printed[256];

    if (weir_limit_parse(&limit, text, &error) != WEIR_OK) {
        check_error(&error, strlen(text));
        check(same(&limit, &(struct weir_limit){ .count = 42 }));
        return;
    }
    check((size_t)weir_limit_print(printed, sizeof(printed), &limit) == strlen(printed));
    check(weir_limit_parse(&again, printed, NULL) == WEIR_OK);
    check(same(&limit, &again));
}

static void check_time(const char *text)
{
    weir_time time = -42, again;
    struct weir_error error;
    char printed[64];

    if (weir_time_parse(&time, text, &error) != WEIR_OK) {
        check_error(&error, strlen(text));
        check(time == -42);
        return;
    }
    check((size_t)weir_time_print(printed, sizeof(printed), time) == strlen(printed));
    check(time >= 0 && (time == WEIR_NEVER ||
                        (weir_time_parse(&again, printed, NULL) == WEIR_OK && again == time)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* of exactly this size, so that a read beyond the end is seen */

    check(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check_limit(text);
    check_time(text);
    free(text);
    return 0;
}
