/* json.c -- any bytes as JSON: no crash, an error that points into the text, values that lie where
 * they may, and the same answer twice.
 *
 *   without scratch, and stopped half way, the calls are the same;
 *   the text before an error gives the calls that came before it, and a number at most that ends
 *   where the text ends.
 */
#include "fuzz/fuzz.h"

#include "wire/json.h"

struct run {
    const char *text, *scratch;
    size_t len;
    size_t calls, stop_after;
    uint64_t sum; /* of all that was called back */
};

static void mix(struct run *r, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        r->sum = (r->sum ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    r->sum += len;
}

static bool each(void *context, const struct weir__json_value *v)
{
    struct run *r = context;
    bool in_text = v->text >= r->text && v->text + v->len <= r->text + r->len;
    bool in_scratch =
        r->scratch && v->text >= r->scratch && v->text + v->len <= r->scratch + r->len;

    check(v->path_len <= WEIR__JSON_PATH &&
          (in_text || (in_scratch && v->kind == WEIR__JSON_STRING)));
    check(v->kind == WEIR__JSON_STRING || v->len > 0);
    mix(r, v->path, v->path_len);
    mix(r, v->text, v->len);
    return ++r->calls != r->stop_after;
}

static long walk(struct run *r, size_t len, const char **what)
{
    *what = NULL;
    long at = weir__json_walk(r->text, len, (char *)(uintptr_t)r->scratch, each, r, what);
    check(at == -1 ? *what == NULL : at >= 0 && (size_t)at <= len && *what != NULL);
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1),
         *scratch =
             malloc(size + 1); /* the byte before is not the text's: only the end must be exact */
    struct run first = { .text = text + 1, .scratch = scratch + 1, .len = size }, again = first,
               raw = first, half = first;
    const char *what, *what_again;

    check(text && scratch);
    if (size > 0)
        memcpy(text + 1, data, size);
    long at = walk(&first, size, &what);
    check(walk(&again, size, &what_again) == at && again.sum == first.sum && what_again == what);
    raw.scratch = NULL;
    check(walk(&raw, size, &what) == at && raw.calls == first.calls);
    half.stop_after = first.calls / 2;
    if (half.stop_after > 0)
        check(walk(&half, size, &what) == -1 && half.calls == half.stop_after);
    if (at > 0) { /* the text up to the error */
        struct run before = { .text = text + 1, .scratch = scratch + 1, .len = size };
        long place = walk(&before, (size_t)at, &what_again);
        check(place == -1 || place <= at);
        check(before.calls <= first.calls + 1); /* a number ends where the text ends */
    }
    free(scratch);
    free(text);
    return 0;
}
