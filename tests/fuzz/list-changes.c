/* list-changes.c -- any text as a file of lists changed by hand: no crash; what is printed is read
 * again; what it says is what the lists become.
 *
 *   the first byte chooses: the rest is the whole file, or what stands below a checksum that is
 *   right.
 */
#include "fuzz/fuzz.h"

#include <inttypes.h>

#include "server/base/digest.h"
#include "server/serve/rules/list-changes.h"
#include "written-lists.h"
#include "wire/json.h"

enum { INPUT_MAX = 4096, HEAD_MAX = 64 };

static bool go_on(void *context, const struct weir__json_value *value)
{
    (void)context;
    (void)value;
    return true;
}

static bool has_entry(const struct weir__lists *lists, const struct weir__list_changes_entry *e)
{
    int at = weir__lists_find(lists, e->list, e->attribute);

    for (size_t i = 0; at >= 0 && i < lists->lists[at].n; i++) {
        if (strcmp(lists->lists[at].entries[i], e->entry) == 0)
            return true;
    }
    return false;
}

/* What was added is there and what was removed is not, but for lists that there are not. */
static void check_applied(const struct weir__list_changes *o)
{
    struct weir__lists *written = written_lists(), *made = NULL;
    struct weir_error error = { 0 };
    size_t skipped = 0, missing = 0;

    check(weir__list_changes_apply(o, written, &made, &skipped, &error) == WEIR_OK);
    for (size_t i = 0; i < o->n; i++)
        missing += has_entry(made ? made : written, &o->entries[i]) != o->entries[i].added;
    check(missing <= skipped && (made != NULL || o->n == skipped));
    weir__lists_destroy(made);
    weir__lists_destroy(written);
}

static void check_printed(const struct weir__list_changes *o)
{
    struct weir__buffer text = { 0 }, again = { 0 }, json = { 0 };
    struct weir__list_changes *same = NULL;
    const char *what;

    weir__list_changes_print(o, &text);
    check(weir__list_changes_parse(&same, text.bytes, text.len, "lists", NULL) == WEIR_OK &&
          same->n == o->n);
    weir__list_changes_print(same, &again);
    check(text.len == again.len && memcmp(text.bytes, again.bytes, text.len) == 0);
    weir__list_changes_json(o, &json);
    check(weir__json_walk(json.bytes, json.len, NULL, go_on, NULL, &what) == -1);
    weir__list_changes_destroy(same);
    weir__buffer_free(&text);
    weir__buffer_free(&again);
    weir__buffer_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__list_changes *o = NULL;
    struct weir_error error = { 0 };

    if (size == 0 || size > INPUT_MAX)
        return 0;
    char *text = malloc(size + HEAD_MAX);
    int head = 0;
    check(text != NULL);
    if (data[0] % 2)
        head = snprintf(text, HEAD_MAX, "weir lists 1\nchecksum %016" PRIx64 "\n",
                        weir__digest(WEIR__DIGEST_START, data + 1, size - 1));
    memcpy(text + head, data + 1, size - 1);
    if (weir__list_changes_parse(&o, text, (size_t)head + size - 1, "lists", &error) == WEIR_OK) {
        check_printed(o);
        check_applied(o);
    } else {
        check(o == NULL && strncmp(error.text, "lists:", 6) == 0);
    }
    weir__list_changes_destroy(o);
    free(text);
    return 0;
}
