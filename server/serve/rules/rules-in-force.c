/* rules-in-force.c -- the rules in force, and how others take their place.
 *
 * Other rules come into force in an order that a crash or a failure cannot harm:
 *
 *     1. parse         all that is wrong with the text is found
 *     2. write beside  all that can fail for want of space fails
 *     3. weir_use      all that can fail for want of room in the table fails; the old rules stay in
 *                      force
 *     4. rename        cannot half happen; if it does not happen at all, the old rules are put in
 *                      force again
 *
 * Lists as they were changed by hand (lists-in-force.c) are made before step 3, not after it: there
 * is no moment at which a client shut out by hand gets in.
 */
#include "server/serve/rules/in-force-private.h"
#include "wire/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/complain.h"
#include "server/base/digest.h"
#include "server/base/replace-file.h"
#include "server/serve/announce.h"

static const char no_rules[] = "version: 1\nrules: []\n"; /* in force until there are some */

/* A text on its way. */
struct attempt {
    const char *cause; /* "start", "signal", "file", "api" */
    weir_time now;
    char *text;
    size_t len;
    struct weir__rule_files files;
    uint64_t contents;
    struct weir_rules *rules; /* NULL: not parsed, or the engine's by now */
};

/* ------------------------------------------------------------ problems ---- */

/* The author of the rule file may read everything that the server reads. The sender of a text by
 * API may not: problems quote lines of the files that it names, so it names none but those below
 * the rule file's folder. */
enum origin { READ, SENT };

struct said {
    enum origin origin;              /* of the text */
    struct weir__buffer *json;       /* NULL: nobody wants it */
    struct weir__problems *problems; /* NULL: none */
    struct attempt *attempt;         /* whose files they are; NULL: nobody asks */
    size_t n;
};

static void say(void *context, const struct weir_problem *p)
{
    struct said *said = context;

    if (said->json != NULL)
        weir__problem_json(said->json, p, false);
    if (said->problems != NULL)
        weir__problem_say(said->problems, p);
    said->n++;
}

/* Its contents are counted before the rules are made of them: if it changes in between, the next
 * look sees it. */
static void note_file(void *context, const char *path)
{
    struct attempt *a = ((struct said *)context)->attempt;

    if (a == NULL)
        return;
    weir__rule_files_add(&a->files, path);
    a->contents = weir__rule_files_more(a->contents, path);
}

/* Every refusal is a problem, also those that are of no line. */
static int parse(const struct weir__in_force *in_force, struct weir__text text, struct said *said,
                 struct weir_rules **out, struct weir_error *error)
{
    struct weir_error first = { 0 };

    const char *name = in_force->path ? in_force->path : "rules";
    struct weir_rules_options options = { .name = name,
                                          .files = in_force->path != NULL,
                                          .near = said->origin == SENT,
                                          .problem = say,
                                          .file = note_file,
                                          .context = said };
    if (said->problems != NULL)
        said->problems->name = name;
    if (said->json != NULL)
        weir__buffer_open(said->json, NULL, '[');
    int code = weir_rules_parse(out, text.bytes, text.len, &options, &first);
    if (code != WEIR_OK && said->n == 0) {
        struct weir_problem whole = { .caret = -1 };
        memcpy(whole.text, first.text, sizeof(whole.text));
        say(said, &whole);
    }
    if (said->json != NULL)
        weir__buffer_close(said->json, "]");
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

static int parse_attempt(const struct weir__in_force *in_force, struct attempt *a,
                         struct said *said, struct weir_error *error)
{
    said->attempt = a;
    a->contents = weir__rule_files_contents(&a->files, a->text, a->len);
    return parse(in_force, (struct weir__text){ a->text, a->len }, said, &a->rules, error);
}

/* The same text names the same files as the last attempt.  If the file cannot be read, the
 * reason stands for its contents. */
static int attempt_file(const struct weir__in_force *in_force, struct attempt *a,
                        struct weir_error *error)
{
    struct weir_error why = { 0 };
    int code =
        in_force->path
            ? weir__rule_files_read(in_force->path, &a->text, &a->len, &why)
            : weir__fail(&why, WEIR_INVALID,
                         "there is no rule file to read: the server was started without one");

    if (code == WEIR_OK)
        a->contents = weir__rule_files_contents(&in_force->files, a->text, a->len);
    else
        a->contents = weir__digest(WEIR__DIGEST_START, why.text, strlen(why.text));
    if (code != WEIR_OK && error != NULL)
        *error = why;
    return code;
}

static int attempt_text(struct attempt *a, const char *text, size_t len, struct weir_error *error)
{
    a->text = malloc(len + 1);
    if (a->text == NULL)
        return weir__in_force_no_memory(error);
    memcpy(a->text, text, len);
    a->len = len;
    return WEIR_OK;
}

/* The files that a look is about are those of the last attempt, whether it went well or not: a list
 * that was missing may come. */
static void adopt_files(struct weir__in_force *in_force, struct attempt *a)
{
    weir__rule_files_free(&in_force->files);
    in_force->files = a->files;
    a->files = (struct weir__rule_files){ 0 };
    in_force->tried = a->contents;
    in_force->settled = false;
}

/* --------------------------------------------------------------- force ---- */

/* Puts *rules in force, with their lists as they were changed by hand.  They are the engine's then,
 * and *rules NULL. */
static int use(struct weir__in_force *in_force, struct weir_rules **rules, weir_time now,
               struct weir_error *error)
{
    struct weir__lists *changed = NULL, *written = NULL;
    size_t skipped = 0;
    int code =
        weir__list_changes_apply(in_force->changes, (*rules)->lists, &changed, &skipped, error);

    if (code != WEIR_OK)
        return code;
    if (changed != NULL) {
        written = (*rules)->lists;
        (*rules)->lists = changed;
    }
    code = weir_use(in_force->engine, *rules, now, error);
    if (code != WEIR_OK) { /* the caller destroys them, with the changed lists */
        weir__lists_destroy(written);
        return code;
    }
    *rules = NULL;
    weir__lists_destroy(in_force->written);
    in_force->written = written;
    pthread_mutex_lock(&in_force->mutex);
    in_force->info.skipped = skipped;
    pthread_mutex_unlock(&in_force->mutex);
    return WEIR_OK;
}

/* ------------------------------------------------------------- readers ---- */

/* What readers see from now on. */
static void publish(struct weir__in_force *in_force, struct attempt *a, const char *source)
{
    const struct weir__active *active = weir__in_force_active(in_force);
    struct weir__in_force_info *info = &in_force->info;
    struct weir_rules_options options = { .name = in_force->path ? in_force->path : "rules",
                                          .files = in_force->path != NULL };
    struct weir__buffer doubts = weir__announce_doubts(a->text, a->len, &options);

    adopt_files(in_force, a);
    pthread_mutex_lock(&in_force->mutex);
    weir__buffer_free(&in_force->doubts);
    in_force->doubts = doubts;
    free(in_force->text);
    in_force->text = a->text;
    in_force->len = a->len;
    a->text = NULL;
    snprintf(info->hash, sizeof(info->hash), "%016" PRIx64,
             weir__digest(WEIR__DIGEST_START, in_force->text, in_force->len));
    snprintf(info->source, sizeof(info->source), "%s", source);
    snprintf(info->cause, sizeof(info->cause), "%s", a->cause);
    info->since = a->now;
    info->version++;
    info->rules = active->rules->n_rules;
    info->limits = active->rules->n_limits;
    info->guards = active->rules->n_guards;
    info->entries = weir__in_force_count(active->lists);
    info->problem[0] = '\0';
    info->problem_at = 0;
    pthread_mutex_unlock(&in_force->mutex);
}

/* -------------------------------------------------------------- events ---- */

static void tell_reload(struct weir__in_force *in_force, weir_time now)
{
    const struct weir__in_force_info *info = &in_force->info;

    weir__in_force_tell(in_force, WEIR__EVENT_RELOAD, now,
                        &(struct weir__event_facts){ .source = info->source,
                                                     .hash = info->hash,
                                                     .text = info->cause,
                                                     .count = (int64_t)info->rules });
}

void weir__in_force_tell_failure(struct weir__in_force *in_force, const char *source,
                                 const char *text, weir_time now)
{
    weir__in_force_tell(in_force, WEIR__EVENT_RELOAD_FAILED, now,
                        &(struct weir__event_facts){ .source = source, .text = text });
    pthread_mutex_lock(&in_force->mutex);
    snprintf(in_force->info.problem, sizeof(in_force->info.problem), "%s", text);
    in_force->info.problem_at = now;
    pthread_mutex_unlock(&in_force->mutex);
    in_force->lists_told = false;
}

/* ------------------------------------------------------------- reloads ---- */

/* Parses the text and puts it in force. */
static int load(struct weir__in_force *in_force, struct attempt *a, struct said *said,
                struct weir_error *error)
{
    int code = parse_attempt(in_force, a, said, error);

    if (code == WEIR_OK)
        code = use(in_force, &a->rules, a->now, error);
    if (code == WEIR_OK)
        publish(in_force, a, in_force->path);
    return code;
}

/* `code` and its error come from attempt_file. */
static int reload(struct weir__in_force *in_force, struct attempt *a, int code,
                  struct weir__buffer *problems, struct weir_error *error)
{
    struct said said = { .json = problems };
    char text[sizeof(error->text) + 40];

    if (code == WEIR_OK)
        code = load(in_force, a, &said, error);
    if (code == WEIR_OK) {
        tell_reload(in_force, a->now);
        return code;
    }
    adopt_files(in_force, a);
    if (said.n > 1)
        snprintf(text, sizeof(text), "%s (and %zu more)", error->text, said.n - 1);
    else
        snprintf(text, sizeof(text), "%s", error->text);
    weir__in_force_tell_failure(in_force, in_force->path, text, a->now);
    return code;
}

int weir__in_force_reload(struct weir__in_force *in_force, const char *cause, weir_time now,
                          struct weir__buffer *problems, struct weir_error *error)
{
    struct attempt a = { .cause = cause, .now = now };
    struct weir_error why = { 0 };

    pthread_mutex_lock(&in_force->turn);
    int code = attempt_file(in_force, &a, &why);
    code = reload(in_force, &a, code, problems, &why);
    pthread_mutex_unlock(&in_force->turn);
    forget(&a);
    if (code != WEIR_OK && error != NULL)
        *error = why;
    return code;
}

/* Whether the files have been left alone since the last look, and not been read since. */
static bool is_due(struct weir__in_force *in_force)
{
    uint64_t stamp = weir__rule_files_stamp(&in_force->files, in_force->path);

    if (stamp != in_force->seen) {
        in_force->seen = stamp;
        in_force->settled = false;
        return false;
    }
    return !in_force->settled;
}

static bool look(struct weir__in_force *in_force, weir_time now)
{
    struct attempt a = { .cause = "file", .now = now };
    struct weir_error why = { 0 };

    if (in_force->path == NULL || !is_due(in_force))
        return false;
    in_force->settled = true;
    int code = attempt_file(in_force, &a, &why);
    bool tried = a.contents != in_force->tried;
    if (tried)
        (void)reload(in_force, &a, code, NULL, &why);
    forget(&a);
    return tried;
}

bool weir__in_force_refresh(struct weir__in_force *in_force, weir_time now)
{
    pthread_mutex_lock(&in_force->turn);
    bool tried = look(in_force, now), wrong = weir__in_force_lists_refresh(in_force, now);
    pthread_mutex_unlock(&in_force->turn);
    return tried || wrong;
}

bool weir__in_force_refresh_lists(struct weir__in_force *in_force, weir_time now)
{
    pthread_mutex_lock(&in_force->turn);
    bool wrong = weir__in_force_lists_refresh(in_force, now);
    pthread_mutex_unlock(&in_force->turn);
    return wrong;
}

/* -------------------------------------------------------------- by API ---- */

/* The rules in force, once more; NULL if that cannot be (a file that a list names is gone). */
static struct weir_rules *parse_again(const struct weir__in_force *in_force)
{
    struct weir_rules *rules = NULL;
    struct said nobody = { 0 };
    struct weir__text text = in_force->text ? (struct weir__text){ in_force->text, in_force->len }
                                            : (struct weir__text){ no_rules, strlen(no_rules) };

    (void)parse(in_force, text, &nobody, &rules, NULL);
    return rules;
}

/* The new rules are in force, but not in the file: the old ones must be in force again. */
static int put_back(struct weir__in_force *in_force, struct weir_rules **old, struct attempt *a,
                    int code, struct weir_error *error)
{
    struct weir_error why = *error;

    if (*old != NULL && use(in_force, old, a->now, NULL) == WEIR_OK)
        return weir__fail(error, code, "%.200s; the old rules stay in force", why.text);
    publish(in_force, a, "api");
    tell_reload(in_force, a->now);
    return weir__fail(
        error, code,
        "%.140s; the new rules are in force until the server ends or reads the file again",
        why.text);
}

static int use_and_keep(struct weir__in_force *in_force, struct attempt *a,
                        struct weir_error *error)
{
    struct weir__store store;
    struct weir_rules *old = parse_again(in_force);
    int code = weir__store_begin(&store, in_force->path, a->text, a->len, error);

    if (code == WEIR_OK && (code = use(in_force, &a->rules, a->now, error)) != WEIR_OK)
        weir__store_drop(&store);
    else if (code == WEIR_OK && (code = weir__store_commit(&store, error)) != WEIR_OK)
        code = put_back(in_force, &old, a, code, error);
    weir_rules_destroy(old);
    return code;
}

static int set(struct weir__in_force *in_force, struct attempt *a, struct weir__buffer *problems,
               struct weir_error *error)
{
    struct said said = { .origin = SENT, .json = problems };
    int code = parse_attempt(in_force, a, &said, error);

    if (code != WEIR_OK)
        return code;
    code =
        in_force->path ? use_and_keep(in_force, a, error) : use(in_force, &a->rules, a->now, error);
    if (code == WEIR_OK) {
        publish(in_force, a, in_force->path ? in_force->path : "api");
        tell_reload(in_force, a->now);
    }
    return code;
}

static int set_text(struct weir__in_force *in_force, struct attempt a, struct weir__text text,
                    struct weir__buffer *problems, struct weir_error *error)
{
    struct weir_error why = { 0 };

    pthread_mutex_lock(&in_force->turn);
    int code = attempt_text(&a, text.bytes, text.len, &why);
    if (code == WEIR_OK)
        code = set(in_force, &a, problems, &why);
    pthread_mutex_unlock(&in_force->turn);
    forget(&a);
    if (code != WEIR_OK && error != NULL)
        *error = why;
    return code;
}

int weir__in_force_set(struct weir__in_force *in_force, const char *text, size_t len, weir_time now,
                       struct weir__buffer *problems, struct weir_error *error)
{
    return set_text(in_force, (struct attempt){ .cause = "api", .now = now },
                    (struct weir__text){ text, len }, problems, error);
}

int weir__in_force_follow(struct weir__in_force *in_force, const char *text, size_t len,
                          weir_time now, struct weir_error *error)
{
    return set_text(in_force, (struct attempt){ .cause = "fleet", .now = now },
                    (struct weir__text){ text, len }, NULL, error);
}

int weir__in_force_check(struct weir__in_force *in_force, const char *text, size_t len,
                         struct weir__buffer *problems, struct weir_error *error)
{
    struct weir_rules *rules = NULL;
    struct said said = { .origin = SENT, .json = problems };
    int code = parse(in_force, (struct weir__text){ text, len }, &said, &rules, error);

    weir_rules_destroy(rules);
    return code;
}

/* ------------------------------------------------------------- readers ---- */

void weir__in_force_info(struct weir__in_force *in_force, struct weir__in_force_info *out)
{
    pthread_mutex_lock(&in_force->mutex);
    *out = in_force->info;
    pthread_mutex_unlock(&in_force->mutex);
}

void weir__in_force_text(struct weir__in_force *in_force, struct weir__buffer *out)
{
    pthread_mutex_lock(&in_force->mutex);
    if (in_force->text != NULL)
        weir__buffer_add(out, in_force->text, in_force->len);
    pthread_mutex_unlock(&in_force->mutex);
}

void weir__in_force_doubts(struct weir__in_force *in_force, struct weir__buffer *out)
{
    pthread_mutex_lock(&in_force->mutex);
    if (in_force->doubts.len > 0 && !in_force->doubts.failed)
        weir__buffer_add(out, in_force->doubts.bytes, in_force->doubts.len);
    else
        weir__buffer_text(out, "[]");
    pthread_mutex_unlock(&in_force->mutex);
}

/* ------------------------------------------------------------ creation ---- */

/* Where rules and lists are kept, if anywhere. */
static int find_paths(struct weir__in_force *in_force, const struct weir__in_force_options *options,
                      struct weir_error *error)
{
    bool given = options->rules != NULL && *options->rules != '\0';

    if (given && (in_force->path = strdup(options->rules)) == NULL)
        return weir__in_force_no_memory(error);
    if (options->beside == NULL)
        return WEIR_OK;
    if (asprintf(&in_force->lists_path, "%s.lists", options->beside) < 0) {
        in_force->lists_path = NULL;
        return weir__in_force_no_memory(error);
    }
    if (!given && asprintf(&in_force->path, "%s.rules", options->beside) < 0) {
        in_force->path = NULL;
        return weir__in_force_no_memory(error);
    }
    return WEIR_OK;
}

static int start_without(struct weir__in_force *in_force, weir_time now, struct weir_error *error)
{
    struct weir_rules *none = NULL;
    int code = weir_rules_parse(&none, no_rules, strlen(no_rules), NULL, error);

    if (code == WEIR_OK)
        code = use(in_force, &none, now, error);
    weir_rules_destroy(none);
    if (code == WEIR_OK)
        in_force->info.entries = weir__in_force_count(weir__in_force_active(in_force)->lists);
    return code;
}

/* Rules that nobody has set yet are no mistake; a file that was named must be there. */
static int start(struct weir__in_force *in_force, const struct weir__in_force_options *options,
                 weir_time now, struct weir_error *error)
{
    struct attempt a = { .cause = "start", .now = now };
    struct said said = { .problems = options->problems };
    bool given = options->rules != NULL && *options->rules != '\0';
    bool missing = in_force->path == NULL || (access(in_force->path, F_OK) != 0 && errno == ENOENT);
    int code = attempt_file(in_force, &a, error);

    if (missing && !given) {
        in_force->tried = a.contents;
        code = start_without(in_force, now, error);
    } else if (code == WEIR_OK) {
        code = load(in_force, &a, &said, error);
    }
    forget(&a);
    return code;
}

int weir__in_force_create(struct weir__in_force **out, const struct weir__in_force_options *options,
                          weir_time now, struct weir_error *error)
{
    struct weir__in_force *in_force = calloc(1, sizeof(*in_force));

    if (in_force == NULL)
        return weir__in_force_no_memory(error);
    pthread_mutex_init(&in_force->turn, NULL);
    pthread_mutex_init(&in_force->mutex, NULL);
    in_force->engine = options->engine;
    in_force->events = options->events;
    int code = find_paths(in_force, options, error);
    if (code == WEIR_OK && in_force->path != NULL)
        weir__store_clean(in_force->path);
    if (code == WEIR_OK)
        code = weir__in_force_lists_start(in_force, error);
    if (code == WEIR_OK)
        code = start(in_force, options, now, error);
    if (code == WEIR_OK)
        *out = in_force;
    else
        weir__in_force_destroy(in_force);
    return code;
}

void weir__in_force_destroy(struct weir__in_force *in_force)
{
    if (in_force == NULL)
        return;
    weir__rule_files_free(&in_force->files);
    weir__lists_destroy(in_force->written);
    weir__list_changes_destroy(in_force->changes);
    pthread_mutex_destroy(&in_force->turn);
    pthread_mutex_destroy(&in_force->mutex);
    free(in_force->path);
    free(in_force->lists_path);
    free(in_force->text);
    weir__buffer_free(&in_force->doubts);
    free(in_force);
}
