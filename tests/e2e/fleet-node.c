/* fleet-node.c -- a node that follows the rules of a fleet, for tests.
 *
 *     fleet-node URL NAME COPY
 *
 * Prints "version TEXT" for each version that comes into force, with the first line of its text; it
 * refuses a text that begins with "bad".  COPY is its last good copy, with which it begins.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "server/base/file.h"
#include "server/base/replace-file.h"
#include "server/cli/fleet-document.h"
#include "wire/decimal.h"

static struct weir__shared fleet;
static struct weir__follower follower;
static const char *name, *copy;
static struct weir__buffer text; /* that was fetched */

static void show(int64_t version, struct weir__text t)
{
    const char *end = memchr(t.bytes, '\n', t.len);

    printf("%" PRId64 " %.*s\n", version, (int)(end ? end - t.bytes : (ptrdiff_t)t.len), t.bytes);
    fflush(stdout);
}

static void write_copy(struct weir__edition of)
{
    struct weir__copy c = { { "rules", 5 }, of, weir__clock_real(), { text.bytes, text.len } };
    struct weir__buffer bytes = { 0 };
    struct weir_error error = { 0 };

    weir__copy_write(&c, &bytes);
    if (weir__store_replace(copy, bytes.bytes, bytes.len, &error) != WEIR_OK)
        fprintf(stderr, "fleet-node: %s\n", error.text);
    weir__buffer_free(&bytes);
}

static void begin_with_copy(void)
{
    struct weir__copy c;
    struct weir_error error = { 0 };
    size_t len = 0;
    char *bytes = weir__file_read(copy, WEIR__CENTRE_TEXT_MAX, &len);

    if (bytes &&
        weir__copy_read(&c, (struct weir__text){ "rules", 5 }, (struct weir__text){ bytes, len },
                        weir__clock_real(), &error) == WEIR_OK) {
        follower.runs = c.of;
        show(c.of.version, c.text);
    } else if (bytes) {
        printf("0 %s\n", error.text);
        fflush(stdout);
    }
    free(bytes);
}

static struct weir__centre_event poll(void)
{
    struct weir__resp_value head, version, edit;
    const char *at;
    char runs[24], refused[24];

    snprintf(runs, sizeof(runs), "%" PRId64, follower.runs.version);
    snprintf(refused, sizeof(refused), "%" PRId64, follower.refused.version);
    struct weir__text words[] = { WEIR__SHARED_TEXT("poll"), WEIR__SHARED_TEXT(name),
                                  WEIR__SHARED_TEXT(runs), WEIR__SHARED_TEXT(refused),
                                  WEIR__SHARED_TEXT(follower.why) };
    if (weir__shared_ask(&fleet, words, 5, &head, &at) != WEIR__GO_ON || head.n != 2)
        return (struct weir__centre_event){ .kind = WEIR__CENTRE_FAILED };
    weir__resp_value(weir__resp_value(at, &version), &edit);
    struct weir__edition of = { .version = version.integer };
    weir__count_parse(edit.text.bytes, edit.text.len, &of.edit);
    return (struct weir__centre_event){ .kind = WEIR__CENTRE_POLLED, .of = of };
}

static struct weir__centre_event fetch(int64_t version)
{
    struct weir__version v;

    if (weir__shared_get(&fleet, version, &v) != WEIR__GO_ON || v.number != version)
        return (struct weir__centre_event){ .kind = WEIR__CENTRE_FAILED };
    text.len = 0;
    weir__buffer_add(&text, v.text.bytes, v.text.len);
    weir__buffer_add(&text, "", 1);
    text.len--;
    return (struct weir__centre_event){ .kind = WEIR__CENTRE_FETCHED, .of = { version, v.edit } };
}

static struct weir__centre_event apply(int64_t version)
{
    struct weir__centre_event event = { .kind = WEIR__CENTRE_APPLIED };

    if (strncmp(text.bytes, "bad", 3) == 0) {
        event.why = "it begins with bad";
        return event;
    }
    show(version, (struct weir__text){ text.bytes, text.len });
    write_copy(follower.wanted);
    return event;
}

int main(int argc, char **argv)
{
    struct weir__centre_event event = { .kind = WEIR__CENTRE_TIME };

    if (argc != 4)
        return 2;
    name = argv[2];
    copy = argv[3];
    struct weir__shared_options options = { .redis = argv[1] };
    if (weir__shared_open(&fleet, "fleet-node", &options) != WEIR__GO_ON)
        return 2;
    fleet.asker.timeout = WEIR__CENTRE_ASK;
    begin_with_copy();
    for (;;) {
        struct weir__centre_do what = weir__centre_step(&follower, &event, weir__clock_monotonic());
        weir_time span = follower.due - weir__clock_monotonic();
        switch (what.verb) {
        case WEIR__CENTRE_POLL:
            event = poll();
            break;
        case WEIR__CENTRE_FETCH:
            event = fetch(what.version);
            break;
        case WEIR__CENTRE_APPLY:
            event = apply(what.version);
            break;
        default:
            weir__clock_sleep(span > 0 ? span : 0);
            event = (struct weir__centre_event){ .kind = WEIR__CENTRE_TIME };
        }
    }
}
