/* settings.c -- any text as a file of settings, and as addresses to listen on: no crash, and what
 * is printed is read again.
 *
 *   the first byte chooses what the rest is;
 *   a file that is refused is refused in words, and nothing was set;
 *   settings that were read are JSON, and printed as a file they are the same settings again (but
 *   for secrets, which are not printed); two lists of addresses that are good are good together; of
 *   what is wrong the place is told.
 */
#include "fuzz/fuzz.h"

#include "server/base/file.h"
#include "server/base/options.h"
#include "server/serve/net/listen.h"
#include "server/serve/settings/settings.h"
#include "wire/json.h"

const char *__lsan_default_suppressions(void);

/* As in rules.c: libfyaml's own. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so\n";
}

enum { INPUT_MAX = 4096 };

static const char file_name[] = "weir.conf", secret[] = "a-secret-of-a-file\r\n";
static struct weir__buffer file; /* what is in it now */

static const struct weir__command serve = { .name = "serve", .options = weir__settings_rows };

/* In place of the real one: no file of this machine is read. */
char *weir__file_read(const char *path, size_t most, size_t *len)
{
    bool config = strcmp(path, file_name) == 0;

    *len = config ? file.len : sizeof(secret) - 1;
    check(*len <= most);
    char *text = malloc(*len + 1);
    check(text != NULL);
    if (*len > 0)
        memcpy(text, config ? file.bytes : secret, *len);
    return text;
}

static bool go_on(void *context, const struct weir__json_value *value)
{
    (void)context;
    (void)value;
    return true;
}

static void check_json(const struct weir__buffer *text)
{
    const char *what;

    check(!text->failed && weir__json_walk(text->bytes, text->len, NULL, go_on, NULL, &what) == -1);
}

/* --------------------------------------------------------------------- the file ---- */

/* Reads `file`; *said gets what was printed and complained of. */
static int read_file(struct weir__settings *out, bool print, struct weir__buffer *said)
{
    char config[] = "--config", name[sizeof(file_name)], show[] = "--print-settings";
    char *argv[] = { config, strcpy(name, file_name), show }, *text = NULL;
    FILE *real_out = stdout, *real_err = stderr;
    size_t len = 0;

    stdout = stderr = open_memstream(&text, &len);
    if (stdout == NULL)
        abort();
    int code = weir__settings_read(&serve, out, print ? 3 : 2, argv);
    fclose(stdout);
    stdout = real_out;
    stderr = real_err;
    said->len = 0;
    weir__buffer_add(said, text, len);
    free(text);
    return code;
}

static void check_refused(const struct weir__settings *s, const struct weir__buffer *said)
{
    struct weir__settings before;

    memset(&before, 0xa5, sizeof(before));
    check(memcmp(s, &before, sizeof(before)) == 0 && said->len > 0 &&
          said->bytes[said->len - 1] == '\n');
}

static bool has_secret(const struct weir__settings *s)
{
    return *s->check_token || *s->admin_token || *s->webhook_token;
}

/* What --print-settings prints, as the file. */
static void check_printed(const struct weir__buffer *json)
{
    struct weir__settings s;
    struct weir__buffer again = { 0 };

    check(read_file(NULL, true, &again) == WEIR__EXIT_OK);
    struct weir__buffer text = file;
    file = again;
    again = text;
    check(read_file(&s, false, &again) == WEIR__GO_ON);
    again.len = 0;
    weir__settings_json(&s, &again);
    check(again.len == json->len && memcmp(again.bytes, json->bytes, json->len) == 0);
    weir__settings_free(&s);
    weir__buffer_free(&again);
}

static void check_file(const char *bytes, size_t len)
{
    struct weir__settings s;
    struct weir__buffer said = { 0 }, json = { 0 };

    memset(&s, 0xa5, sizeof(s));
    file.len = 0;
    weir__buffer_add(&file, bytes, len);
    int code = read_file(&s, false, &said);
    if (code == WEIR__GO_ON) {
        bool secrets = has_secret(&s);
        weir__settings_json(&s, &json);
        weir__settings_free(&s);
        check_json(&json);
        if (!secrets)
            check_printed(&json);
    } else {
        check(code == WEIR__EXIT_WRONG);
        check_refused(&s, &said);
    }
    weir__buffer_free(&said);
    weir__buffer_free(&json);
    weir__buffer_free(&file);
}

/* -------------------------------------------------------------------- addresses ---- */

static bool is_good(const char *text)
{
    struct weir_error error = { 0 };

    if (weir__listen_check(text, &error) == WEIR_OK)
        return true;
    check(error.text[0] && error.column >= 1 && (size_t)error.column <= strlen(text) + 1);
    return false;
}

static void check_addresses(const char *bytes, size_t len)
{
    char *text = strndup(bytes, len), *comma = strchr(text, ',');
    bool good = is_good(text);

    if (comma) {
        *comma = '\0';
        check(good == (*text && comma[1] && is_good(text) && is_good(comma + 1)));
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;

    if (!ready) { /* where a table would be: a folder that is there */
        clearenv();
        setenv("STATE_DIRECTORY", "/", 1);
        ready = true;
    }
    if (size == 0 || size > INPUT_MAX)
        return 0;
    if (data[0] % 2)
        check_addresses((const char *)data + 1, size - 1);
    else
        check_file((const char *)data + 1, size - 1);
    return 0;
}
