/* live.c -- the rules in force, and how others take their place.
 *
 * Who may touch what:
 *
 *     live->turn    whoever changes something: one at a time, from reading a file to writing it.  What has no other owner below is theirs
 *     live->mutex   what readers see (info, text, overlay): held for a copy, so that nobody waits for a disk
 *
 * Other rules come into force in an order that a crash or a failure cannot harm:
 *
 *     1. parse         all that is wrong with the text is found
 *     2. write beside  all that can fail for want of space fails
 *     3. weir_use      all that can fail for want of room in the table fails; the old rules stay in force
 *     4. rename        cannot half happen; if it does not happen at all, the old rules are put in force again
 *
 * Lists as they were changed by hand are made before step 3, not after it: there is no moment at which somebody who was shut out by hand
 * gets in.
 */
#include "serve/live.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"
#include "serve/digest.h"
#include "serve/overlay.h"
#include "serve/rule-files.h"
#include "serve/store.h"

static const char no_rules[] = "version: 1\nrules: []\n"; /* in force until there are some */

struct weir__live {
    pthread_mutex_t turn, mutex;
    struct weir *engine;
    struct weir__events *events;
    char *path;                    /* the rule file, which may not be there yet; NULL: rules are kept nowhere */
    char *lists_path;              /* NULL: lists are kept nowhere */
    struct weir__lists *written;   /* the lists as the rules have them; NULL: the rules in force have them so */
    struct weir__rule_files files; /* that were tried last, beside `path` */
    uint64_t tried;                /* the contents of all of them then */
    uint64_t seen;                 /* their stamp at the last look */
    bool settled;                  /* they have been read since that stamp was there */
    /* With the mutex: */
    struct weir__live_info info;
    struct weir__overlay *overlay;
    char *text; /* in force; NULL: no rules */
    size_t len;
};

/* A text on its way. */
struct attempt {
    char *text;
    size_t len;
    struct weir__rule_files files;
    uint64_t contents;
    struct weir_rules *rules; /* NULL: not parsed, or the engine's by now */
};

static int no_memory(struct weir_error *error)
{
    return weir__fail(error, WEIR_NO_MEMORY, "out of memory for the rules");
}

/* ------------------------------------------------------------ problems ---- */

struct said {
    const char *name;
    struct weir__buffer *json;                 /* NULL: nobody wants it */
    const struct weir__live_options *listener; /* NULL: none */
    size_t n;
};

static void say(void *context, const struct weir_problem *p)
{
    struct said *said = context;
    if (said->json != NULL) {
        weir__buffer_text(said->json, said->n ? ",{" : "{");
        weir__buffer_member_number(said->json, "line", p->line);
        weir__buffer_member_number(said->json, "column", p->column);
        weir__buffer_member(said->json, "text", p->text);
        weir__buffer_text(said->json, "}");
    }
    if (said->listener != NULL && said->listener->problem != NULL)
        said->listener->problem(said->listener->context, said->name, p);
    said->n++;
}

/* Every refusal is a problem, also those that are of no line. */
static int parse(const struct weir__live *live, const char *text, size_t len, struct said *said, struct weir_rules **out,
                 struct weir_error *error)
{
    struct weir_error first = { 0 };
    said->name = live->path ? live->path : "rules";
    struct weir_rules_options options = { .name = said->name, .files = live->path != NULL, .problem = say, .context = said };
    if (said->json != NULL)
        weir__buffer_text(said->json, "[");
    int code = weir_rules_parse(out, text, len, &options, &first);
    if (code != WEIR_OK && said->n == 0) {
        struct weir_problem whole = { .caret = -1 };
        memcpy(whole.text, first.text, sizeof whole.text);
        say(said, &whole);
    }
    if (said->json != NULL)
        weir__buffer_text(said->json, "]");
    if (code != WEIR_OK && error != NULL)
        *error = first;
    return code;
}

/* ------------------------------------------------------------ attempts ---- */

static void forget(struct attempt *a)
{
    free(a->text);
    weir__rule_files_free(&a->files);
    weir_rules_destroy(a->rules);
}

/* Which files it names, and what is in them. */
static void look_around(const struct weir__live *live, struct attempt *a)
{
    if (live->path != NULL)
        weir__rule_files_find(&a->files, live->path, a->text, a->len);
    a->contents = weir__rule_files_contents(&a->files, a->text, a->len);
}

/* Of a file that cannot be read the reason is the contents. */
static int attempt_file(const struct weir__live *live, struct attempt *a, struct weir_error *error)
{
    struct weir_error why = { 0 };
    int code = live->path ? weir__rule_files_read(live->path, &a->text, &a->len, &why)
                          : weir__fail(&why, WEIR_INVALID, "there is no rule file to read: the server was started without one");
    if (code == WEIR_OK)
        look_around(live, a);
    else
        a->contents = weir__digest(WEIR__DIGEST_START, why.text, strlen(why.text));
    if (code != WEIR_OK && error != NULL)
        *error = why;
    return code;
}

static int attempt_text(const struct weir__live *live, struct attempt *a, const char *text, size_t len, struct weir_error *error)
{
    a->text = malloc(len + 1);
    if (a->text == NULL)
        return no_memory(error);
    memcpy(a->text, text, len);
    a->len = len;
    look_around(live, a);
    return WEIR_OK;
}

/* The files that a look is about are those of the last attempt, whether it went well or not: a list that was missing may come. */
static void adopt_files(struct weir__live *live, struct attempt *a)
{
    weir__rule_files_free(&live->files);
    live->files = a->files;
    a->files = (struct weir__rule_files){ 0 };
    live->tried = a->contents;
    live->settled = false;
}

/* --------------------------------------------------------------- force ---- */

/* With the turn nobody else changes it. */
static const struct weir__force *force_of(const struct weir__live *live)
{
    return __atomic_load_n(&live->engine->force, __ATOMIC_ACQUIRE);
}

static const struct weir__lists *written_lists(const struct weir__live *live)
{
    return live->written ? live->written : force_of(live)->rules->lists;
}

static size_t count_entries(const struct weir__lists *lists)
{
    size_t n = 0;
    for (size_t i = 0; i < lists->n; i++)
        n += lists->lists[i].n;
    return n;
}

/* Puts *rules in force, with their lists as they were changed by hand.  They are the engine's then, and *rules NULL. */
static int use(struct weir__live *live, struct weir_rules **rules, weir_time now, struct weir_error *error)
{
    struct weir__lists *changed = NULL, *written = NULL;
    size_t skipped = 0;
    int code = weir__overlay_apply(live->overlay, (*rules)->lists, &changed, &skipped, error);
    if (code != WEIR_OK)
        return code;
    if (changed != NULL) {
        written = (*rules)->lists;
        (*rules)->lists = changed;
    }
    code = weir_use(live->engine, *rules, now, error);
    if (code != WEIR_OK) { /* the caller destroys them, with the changed lists */
        weir__lists_destroy(written);
        return code;
    }
    *rules = NULL;
    weir__lists_destroy(live->written);
    live->written = written;
    pthread_mutex_lock(&live->mutex);
    live->info.skipped = skipped;
    pthread_mutex_unlock(&live->mutex);
    return WEIR_OK;
}

/* What readers see from now on. */
static void publish(struct weir__live *live, struct attempt *a, const char *cause, const char *source, weir_time now)
{
    const struct weir__force *force = force_of(live);
    struct weir__live_info *info = &live->info;
    adopt_files(live, a);
    pthread_mutex_lock(&live->mutex);
    free(live->text);
    live->text = a->text;
    live->len = a->len;
    a->text = NULL;
    snprintf(info->hash, sizeof info->hash, "%016" PRIx64, weir__digest(WEIR__DIGEST_START, live->text, live->len));
    snprintf(info->source, sizeof info->source, "%s", source);
    snprintf(info->cause, sizeof info->cause, "%s", cause);
    info->since = now;
    info->version++;
    info->rules = force->rules->n_rules;
    info->limits = force->rules->n_limits;
    info->entries = count_entries(force->lists);
    info->problem[0] = '\0';
    info->problem_at = 0;
    pthread_mutex_unlock(&live->mutex);
}

/* -------------------------------------------------------------- events ---- */

static void tell(struct weir__live *live, enum weir__event_kind kind, weir_time now, const struct weir__event_facts *facts)
{
    if (live->events != NULL)
        weir__events_emit(live->events, kind, now, facts);
}

static void tell_reload(struct weir__live *live, weir_time now)
{
    const struct weir__live_info *info = &live->info;
    tell(live, WEIR__EVENT_RELOAD, now,
         &(struct weir__event_facts){ .source = info->source, .hash = info->hash, .text = info->cause, .count = (int64_t)info->rules });
}

static void tell_failure(struct weir__live *live, const char *text, weir_time now)
{
    tell(live, WEIR__EVENT_RELOAD_FAILED, now, &(struct weir__event_facts){ .source = live->path, .text = text });
    pthread_mutex_lock(&live->mutex);
    snprintf(live->info.problem, sizeof live->info.problem, "%s", text);
    live->info.problem_at = now;
    pthread_mutex_unlock(&live->mutex);
}

/* ------------------------------------------------------------- reloads ---- */

/* Parses what was read, and puts it in force. */
static int load(struct weir__live *live, struct attempt *a, const char *cause, weir_time now, struct said *said, struct weir_error *error)
{
    int code = parse(live, a->text, a->len, said, &a->rules, error);
    if (code == WEIR_OK)
        code = use(live, &a->rules, now, error);
    if (code == WEIR_OK)
        publish(live, a, cause, live->path, now);
    return code;
}

/* `code` is what attempt_file said, with its error. */
static int reload(struct weir__live *live, struct attempt *a, int code, const char *cause, weir_time now, struct weir__buffer *problems,
                  struct weir_error *error)
{
    struct said said = { .json = problems };
    char text[sizeof error->text + 40];
    if (code == WEIR_OK)
        code = load(live, a, cause, now, &said, error);
    if (code == WEIR_OK) {
        tell_reload(live, now);
        return code;
    }
    adopt_files(live, a);
    if (said.n > 1)
        snprintf(text, sizeof text, "%s (and %zu more)", error->text, said.n - 1);
    else
        snprintf(text, sizeof text, "%s", error->text);
    tell_failure(live, text, now);
    return code;
}

int weir__live_reload(struct weir__live *live, const char *cause, weir_time now, struct weir__buffer *problems, struct weir_error *error)
{
    struct attempt a = { 0 };
    struct weir_error why = { 0 };
    pthread_mutex_lock(&live->turn);
    int code = attempt_file(live, &a, &why);
    code = reload(live, &a, code, cause, now, problems, &why);
    pthread_mutex_unlock(&live->turn);
    forget(&a);
    if (code != WEIR_OK && error != NULL)
        *error = why;
    return code;
}

/* Whether the files have been left alone since the last look, and not been read since. */
static bool is_due(struct weir__live *live)
{
    uint64_t stamp = weir__rule_files_stamp(&live->files, live->path);
    if (stamp != live->seen) {
        live->seen = stamp;
        live->settled = false;
        return false;
    }
    return !live->settled;
}

static bool look(struct weir__live *live, weir_time now)
{
    struct attempt a = { 0 };
    struct weir_error why = { 0 };
    if (live->path == NULL || !is_due(live))
        return false;
    live->settled = true;
    int code = attempt_file(live, &a, &why);
    bool tried = a.contents != live->tried;
    if (tried)
        (void)reload(live, &a, code, "file", now, NULL, &why);
    forget(&a);
    return tried;
}

bool weir__live_look(struct weir__live *live, weir_time now)
{
    pthread_mutex_lock(&live->turn);
    bool tried = look(live, now);
    pthread_mutex_unlock(&live->turn);
    return tried;
}

/* -------------------------------------------------------------- by API ---- */

/* What is in force now, once more; NULL if that cannot be (a file that a list names is gone). */
static struct weir_rules *parse_again(const struct weir__live *live)
{
    struct weir_rules *rules = NULL;
    struct said nobody = { 0 };
    const char *text = live->text ? live->text : no_rules;
    (void)parse(live, text, live->text ? live->len : strlen(text), &nobody, &rules, NULL);
    return rules;
}

/* The new rules are in force, but not in the file: the old ones must be in force again. */
static int put_back(struct weir__live *live, struct weir_rules **old, struct attempt *a, int code, weir_time now, struct weir_error *error)
{
    struct weir_error why = *error;
    if (*old != NULL && use(live, old, now, NULL) == WEIR_OK)
        return weir__fail(error, code, "%.200s; the old rules stay in force", why.text);
    publish(live, a, "api", "api", now);
    tell_reload(live, now);
    return weir__fail(error, code, "%.140s; the new rules are in force until the server ends or reads the file again", why.text);
}

static int use_and_keep(struct weir__live *live, struct attempt *a, weir_time now, struct weir_error *error)
{
    struct weir__store store;
    struct weir_rules *old = parse_again(live);
    int code = weir__store_begin(&store, live->path, a->text, a->len, error);
    if (code == WEIR_OK && (code = use(live, &a->rules, now, error)) != WEIR_OK)
        weir__store_drop(&store);
    else if (code == WEIR_OK && (code = weir__store_commit(&store, error)) != WEIR_OK)
        code = put_back(live, &old, a, code, now, error);
    weir_rules_destroy(old);
    return code;
}

static int set(struct weir__live *live, struct attempt *a, weir_time now, struct weir__buffer *problems, struct weir_error *error)
{
    struct said said = { .json = problems };
    int code = parse(live, a->text, a->len, &said, &a->rules, error);
    if (code != WEIR_OK)
        return code;
    code = live->path ? use_and_keep(live, a, now, error) : use(live, &a->rules, now, error);
    if (code == WEIR_OK) {
        publish(live, a, "api", live->path ? live->path : "api", now);
        tell_reload(live, now);
    }
    return code;
}

int weir__live_set(struct weir__live *live, const char *text, size_t len, weir_time now, struct weir__buffer *problems,
                   struct weir_error *error)
{
    struct attempt a = { 0 };
    struct weir_error why = { 0 };
    pthread_mutex_lock(&live->turn);
    int code = attempt_text(live, &a, text, len, &why);
    if (code == WEIR_OK)
        code = set(live, &a, now, problems, &why);
    pthread_mutex_unlock(&live->turn);
    forget(&a);
    if (code != WEIR_OK && error != NULL)
        *error = why;
    return code;
}

int weir__live_check(struct weir__live *live, const char *text, size_t len, struct weir__buffer *problems, struct weir_error *error)
{
    struct weir_rules *rules = NULL;
    struct said said = { .json = problems };
    int code = parse(live, text, len, &said, &rules, error);
    weir_rules_destroy(rules);
    return code;
}

/* --------------------------------------------------------------- lists ---- */

/* What the engine gets if the edit can be kept; nothing has happened yet. */
static int prepare_force(struct weir__live *live, struct weir__force **out, const char *list, const char *attribute, const char *const *add,
                         size_t adds, const char *const *remove, size_t removes, struct weir_error *error)
{
    struct weir__lists *lists = NULL;
    int code = weir__lists_edit(&lists, force_of(live)->lists, list, attribute, add, adds, remove, removes, error);
    if (code == WEIR_OK)
        code = weir__force_edited(out, force_of(live), lists, error);
    if (code != WEIR_OK)
        weir__lists_destroy(lists);
    return code;
}

static void drop_force(struct weir__force *force)
{
    if (force != NULL)
        force->rules = NULL; /* they are in force still */
    weir__force_destroy(force);
}

static int keep_overlay(const struct weir__live *live, const struct weir__overlay *overlay, struct weir_error *error)
{
    struct weir__buffer text = { 0 };
    if (live->lists_path == NULL)
        return WEIR_OK;
    weir__overlay_print(overlay, &text);
    int code = text.failed ? no_memory(error) : weir__store_replace(live->lists_path, text.bytes, text.len, error);
    weir__buffer_free(&text);
    return code;
}

/* Cannot fail. */
static void swap_lists(struct weir__live *live, struct weir__force *force, struct weir__overlay *overlay)
{
    pthread_mutex_lock(&live->engine->mutex);
    weir__engine_swap(live->engine, force);
    pthread_mutex_unlock(&live->engine->mutex);
    pthread_mutex_lock(&live->mutex);
    struct weir__overlay *old = live->overlay;
    live->overlay = overlay;
    live->info.by_hand = overlay->n;
    live->info.entries = count_entries(force->lists);
    pthread_mutex_unlock(&live->mutex);
    weir__overlay_destroy(old);
}

static const struct weir__list *list_of(const struct weir__force *force, const char *list, const char *attribute)
{
    static const struct weir__list none;
    char *small = weir__attribute_small(attribute);
    int at = small ? weir__lists_find(force->lists, list, small) : -1;
    free(small);
    return at < 0 ? &none : &force->lists->lists[at];
}

/* Both are sorted. */
static struct weir__live_edited compare_lists(const struct weir__list *before, const struct weir__list *after)
{
    struct weir__live_edited edited = { .entries = after->n };
    for (size_t i = 0, k = 0; i < before->n || k < after->n;) {
        int order = i == before->n ? 1 : k == after->n ? -1 : strcmp(before->entries[i], after->entries[k]);
        edited.removed += order < 0;
        edited.added += order > 0;
        i += order <= 0;
        k += order >= 0;
    }
    return edited;
}

static int edit(struct weir__live *live, const char *list, const char *attribute, const char *const *add, size_t adds,
                const char *const *remove, size_t removes, struct weir__live_edited *edited, struct weir_error *error)
{
    struct weir__force *force = NULL;
    struct weir__overlay *overlay = NULL;
    int code = prepare_force(live, &force, list, attribute, add, adds, remove, removes, error);
    if (code == WEIR_OK)
        code = weir__overlay_edit(&overlay, live->overlay, written_lists(live), list, attribute, add, adds, remove, removes, error);
    if (code == WEIR_OK)
        code = keep_overlay(live, overlay, error);
    if (code == WEIR_OK) {
        *edited = compare_lists(list_of(force_of(live), list, attribute), list_of(force, list, attribute));
        swap_lists(live, force, overlay);
    } else {
        drop_force(force);
        weir__overlay_destroy(overlay);
    }
    return code;
}

int weir__live_list_edit(struct weir__live *live, const char *list, const char *attribute, const char *const *add, size_t adds,
                         const char *const *remove, size_t removes, weir_time now, struct weir__live_edited *edited,
                         struct weir_error *error)
{
    struct weir__live_edited done;
    char text[64];
    if (adds + removes == 0)
        return weir__fail(error, WEIR_INVALID, "name at least one entry to add or to remove");
    pthread_mutex_lock(&live->turn);
    int code = edit(live, list, attribute, add, adds, remove, removes, &done, error);
    pthread_mutex_unlock(&live->turn);
    if (code != WEIR_OK)
        return code;
    snprintf(text, sizeof text, "%zu added, %zu removed", done.added, done.removed);
    tell(live, WEIR__EVENT_LIST, now,
         &(struct weir__event_facts){ .list = list, .attribute = attribute, .text = text, .count = (int64_t)(done.added + done.removed) });
    if (edited != NULL)
        *edited = done;
    return WEIR_OK;
}

/* ------------------------------------------------------------- readers ---- */

void weir__live_info(struct weir__live *live, struct weir__live_info *out)
{
    pthread_mutex_lock(&live->mutex);
    *out = live->info;
    pthread_mutex_unlock(&live->mutex);
}

void weir__live_text(struct weir__live *live, struct weir__buffer *out)
{
    pthread_mutex_lock(&live->mutex);
    if (live->text != NULL)
        weir__buffer_add(out, live->text, live->len);
    pthread_mutex_unlock(&live->mutex);
}

void weir__live_lists(struct weir__live *live, struct weir__buffer *json)
{
    pthread_mutex_lock(&live->mutex);
    weir__overlay_json(live->overlay, json);
    pthread_mutex_unlock(&live->mutex);
}

/* ------------------------------------------------------------ creation ---- */

/* Where rules and lists are kept, if anywhere. */
static int find_paths(struct weir__live *live, const struct weir__live_options *options, struct weir_error *error)
{
    bool given = options->rules != NULL && *options->rules != '\0';
    if (given && (live->path = strdup(options->rules)) == NULL)
        return no_memory(error);
    if (options->beside == NULL)
        return WEIR_OK;
    if (asprintf(&live->lists_path, "%s.lists", options->beside) < 0) {
        live->lists_path = NULL;
        return no_memory(error);
    }
    if (!given && asprintf(&live->path, "%s.rules", options->beside) < 0) {
        live->path = NULL;
        return no_memory(error);
    }
    return WEIR_OK;
}

static int read_overlay(struct weir__live *live, struct weir_error *error)
{
    int code = WEIR_OK;
    if (live->lists_path != NULL)
        code = weir__overlay_read(&live->overlay, live->lists_path, error);
    else if ((live->overlay = weir__overlay_create()) == NULL)
        code = no_memory(error);
    if (code == WEIR_OK)
        live->info.by_hand = live->overlay->n;
    return code;
}

static int start_without(struct weir__live *live, weir_time now, struct weir_error *error)
{
    struct weir_rules *none = NULL;
    int code = weir_rules_parse(&none, no_rules, strlen(no_rules), NULL, error);
    if (code == WEIR_OK)
        code = use(live, &none, now, error);
    weir_rules_destroy(none);
    if (code == WEIR_OK)
        live->info.entries = count_entries(force_of(live)->lists);
    return code;
}

/* Rules that nobody has set yet are no mistake; a file that was named must be there. */
static int start(struct weir__live *live, const struct weir__live_options *options, weir_time now, struct weir_error *error)
{
    struct attempt a = { 0 };
    struct said said = { .listener = options };
    bool given = options->rules != NULL && *options->rules != '\0';
    bool missing = live->path == NULL || (access(live->path, F_OK) != 0 && errno == ENOENT);
    int code = attempt_file(live, &a, error);
    if (missing && !given) {
        live->tried = a.contents;
        code = start_without(live, now, error);
    } else if (code == WEIR_OK) {
        code = load(live, &a, "start", now, &said, error);
    }
    forget(&a);
    return code;
}

int weir__live_create(struct weir__live **out, const struct weir__live_options *options, weir_time now, struct weir_error *error)
{
    struct weir__live *live = calloc(1, sizeof *live);
    if (live == NULL)
        return no_memory(error);
    pthread_mutex_init(&live->turn, NULL);
    pthread_mutex_init(&live->mutex, NULL);
    live->engine = options->engine;
    live->events = options->events;
    int code = find_paths(live, options, error);
    if (code == WEIR_OK && live->path != NULL)
        weir__store_clean(live->path);
    if (code == WEIR_OK && live->lists_path != NULL)
        weir__store_clean(live->lists_path);
    if (code == WEIR_OK)
        code = read_overlay(live, error);
    if (code == WEIR_OK)
        code = start(live, options, now, error);
    if (code == WEIR_OK)
        *out = live;
    else
        weir__live_destroy(live);
    return code;
}

void weir__live_destroy(struct weir__live *live)
{
    if (live == NULL)
        return;
    weir__rule_files_free(&live->files);
    weir__lists_destroy(live->written);
    weir__overlay_destroy(live->overlay);
    pthread_mutex_destroy(&live->turn);
    pthread_mutex_destroy(&live->mutex);
    free(live->path);
    free(live->lists_path);
    free(live->text);
    free(live);
}
