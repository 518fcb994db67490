/* settings.c -- what `weir serve` makes of its command line, its environment and its file, and what
 * it says of mistakes. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "server/base/options.h"
#include "server/serve/serve.h"

#define WORDS_MAX 16

static const struct weir__command serve = {
    .name = "serve", .summary = "", .arguments = "", .options = weir__settings_rows
};

static char said[65536]; /* what the last read printed, and complained of */

static void collect(int fd, int saved, FILE *file)
{
    size_t used = strlen(said);

    fflush(NULL);
    dup2(saved, fd);
    close(saved);
    rewind(file);
    said[used + fread(said + used, 1, sizeof(said) - used - 1, file)] = 0;
    fclose(file);
}

/* Reads the settings from a command line; words are separated by blanks. */
static int read_line(struct weir__settings *s, const char *line)
{
    char words[1024], *argv[WORDS_MAX + 1], *save = NULL;
    int argc = 0;

    snprintf(words, sizeof(words), "%s", line);
    for (char *w = strtok_r(words, " ", &save); w && argc < WORDS_MAX;
         w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    fflush(NULL);
    FILE *out = tmpfile(), *err = tmpfile();
    assert_true(out && err);
    int saved_out = dup(1), saved_err = dup(2);
    dup2(fileno(out), 1);
    dup2(fileno(err), 2);
    int code = weir__settings_read(&serve, s, argc, argv);
    said[0] = 0;
    collect(1, saved_out, out);
    collect(2, saved_err, err);
    return code;
}

static struct weir__settings good(const char *line)
{
    struct weir__settings s = { 0 };

    if (read_line(&s, line) != WEIR__GO_ON)
        fail_msg("%s: %s", line, said);
    return s;
}

/* It is refused, the complaint has this in it, and *out is as it was. */
static void refuse(const char *line, const char *why)
{
    struct weir__settings s, before;

    memset(&s, 0xa5, sizeof(s));
    memset(&before, 0xa5, sizeof(before));
    assert_int_equal(read_line(&s, line), WEIR__EXIT_WRONG);
    assert_contains(said, why);
    assert_memory_equal(&s, &before, sizeof(s));
}

static const char *file_with(const char *text)
{
    const char *path = new_path();

    write_at(path, 0, text, strlen(text));
    return path;
}

static const char *line_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *line_of(const char *format, ...)
{
    static char line[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    return line;
}

static int fresh(void **state)
{
    extern char **environ;

    for (bool found = true; found;) {
        found = false;
        for (char **e = environ; *e && !found; e++) {
            if (strncmp(*e, "WEIR_", 5) == 0 && strchr(*e, '=')) {
                char name[128];
                snprintf(name, sizeof(name), "%.*s", (int)(strchr(*e, '=') - *e), *e);
                unsetenv(name);
                found = true;
            }
        }
    }
    unsetenv("STATE_DIRECTORY");
    return setenv("XDG_STATE_HOME", folder, 1);
}

/* ---------------------------------------------------------------- sources ---- */

TEST_WITH(test_defaults, fresh, NULL)
{
    struct weir__settings s = good("");
    char table[512];

    snprintf(table, sizeof(table), "%s/weir/weir.table", folder);
    assert_string_equal(s.resp, "127.0.0.1:7379");
    assert_string_equal(s.http, "127.0.0.1:7380");
    assert_string_equal(s.rules, "");
    assert_string_equal(s.table, table);
    assert_string_equal(s.trusted_proxies, "127.0.0.0/8,::1");
    assert_string_equal(s.admin_token, "");
    assert_fields(s, (threads, 0), (keys, 1000000), (limiters, 4096), (connections_max, 16000),
                  (request_max, 1 << 20), (output_max, 1 << 20), (idle, 3600 * S),
                  (patience, 10 * S), (drain, 10 * S), (ask_id_lifetime, 60 * S), (ask_ids, 131072),
                  (adhoc_limits, 2048));
    assert_fields(s, (top, 256), (socket_mode, 0600), (watch, true), (memory, false),
                  (test_clock, false), (reservation_lifetime, 3600 * S), (auth_guesses, 10));
    weir__settings_free(&s);
    assert_null(s.resp);
}

TEST_WITH(test_flags, fresh, NULL)
{
    FINALLY(weir__settings_free)
    struct weir__settings s = good("--memory --no-watch --keys=5000 --idle 0 --request-max 64k "
                                   "--output-max=1g --threads 64 --rules=");

    assert_true(s.memory);
    assert_string_equal(s.table, "");
    assert_fields(s, (watch, false), (keys, 5000), (idle, 0), (request_max, 65536),
                  (output_max, 1 << 30), (threads, 64));
    assert_int_equal(weir__settings_threads(&s), 64);
    weir__settings_free(&s);
    s = good("--memory");
    assert_in_range(weir__settings_threads(&s), 1, 64);
}

TEST_WITH(test_first_counts, fresh, NULL)
{
    const char *path = file_with("# about us\n\nkeys : 111 # few\nlimiters: 2000\r\ntop: "
                                 "3\nwatch: no\nrules: \"a #b\"\nhttp: '/tmp/x y'\nmemory: on");

    setenv("WEIR_KEYS", "222", 1);
    setenv("WEIR_LIMITERS", "3000", 1);
    setenv("WEIR_CONFIG", path, 1);
    FINALLY(weir__settings_free) struct weir__settings s = good("--keys 333 --no-memory");
    assert_fields(s, (keys, 333), (limiters, 3000), (top, 3), (watch, false), (memory, false));
    assert_string_equal(s.rules, "a #b");
    assert_string_equal(s.http, "/tmp/x y");
    assert_string_equal(s.config, path);
}

/* --------------------------------------------------------------- mistakes ---- */

TEST_WITH(test_bad_flags, fresh, NULL)
{
    static const struct {
        const char *line, *why;
    } cases[] = {
        { "--kyes 5", "there is no option --kyes; did you mean --keys?" },
        { "--zzzzzz", "there is no option --zzzzzz; see: weir serve --help" },
        { "-x", "there is no option -x" },
        { "---", "there is no option ---" },
        { "--no-keys", "there is no option --no-keys" },
        { "--keys", "--keys needs a value: --keys N" },
        { "--keys 100 --keys=100", "--keys is given twice" },
        { "--watch --no-watch", "--watch is given twice" },
        { "--memory=yes", "--memory takes no value" },
        { "rules.yaml", "a rule file is --rules FILE" },
        { "--threads 65", "--threads must be a whole number from 0 to 64, not '65'" },
        { "--threads -1", "--threads must be a whole number from 0 to 64, not '-1'" },
        { "--threads 2x", "not '2x'" },
        { "--keys 99999999999999999999", "--keys must be a whole number" },
        { "--keys 64k", "not '64k'" },
        { "--request-max 65m",
          "--request-max must be a size such as 64k or 1m, from 1k to 64m, not '65m'" },
        { "--request-max 9999999999999g", "--request-max must be a size" },
        { "--request-max 1kb", "not '1kb'" },
        { "--socket-mode 888", "an octal mode from 0000 to 0777" },
        { "--patience 1ms", "--patience must be a time from 100ms to 1h, not '1ms'" },
        { "--patience soon", "--patience: " },
        { "--resp 7379", "--resp: '7379' is not an address; write HOST:PORT" },
        { "--trusted-proxies 10.0.0.0/8,x", "--trusted-proxies: " },
        { "--trusted-proxies 10.0.0.0/8,x", "\n    10.0.0.0/8,x\n               ^\n" },
        { "--webhook ftp://x", "--webhook: the URL begins with neither http:// nor https://" },
        { "--webhook http://ann:secret@x/", "--webhook: the URL has a user or password in it" },
        { "--webhook http://x:0/", "--webhook: the URL has port 0" },
        { "--table x --memory", "--memory and --table exclude each other" },
        { "--tls-key x --memory", "tls-certificate and tls-key go together" },
        { "--tls-client-ca x --memory", "tls-client-ca needs TLS" },
        { "--limiters 10 --memory", "adhoc-limits is more than limiters" },
        { "--admin-token x", "set WEIR_ADMIN_TOKEN, or --admin-token-file FILE" },
        { "--config ./there-is-none", "cannot read ./there-is-none: No such file" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++)
        refuse(cases[i].line, cases[i].why);
}

TEST_WITH(test_bad_files, fresh, NULL)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        { "keys: 100\nkyes: 5\n", ":2:1: there is no setting 'kyes'; did you mean 'keys'?" },
        { "keys 5\n", ":1:1: a settings file has lines of NAME: VALUE" },
        { "- keys\n", ":1:1: a settings file has lines of NAME: VALUE" },
        { ": 5\n", ":1:1: a key must be text" },
        { "keys: 100\n#\nkeys: 200\n", ":3:1: 'keys' is here twice; the first is in line 1" },
        { "\nkeys: x\n", ":2:7: keys must be a whole number from 64 to 10000000000, not 'x'" },
        { "watch: maybe\n", ":1:8: watch must be true or false, not 'maybe'" },
        { "config: x\n", ":1:1: config names this file" },
        { "rules: \"x\n", ":1:9: a \" is not closed" },
        { "rules: 'x' y\n", ":1:12: there is more after the closing quote" },
        { "events-log: -\n",
          ":1:13: a list begins on the line below its key; text that begins with -" },
        { "resp: 1.2.3.4\n", ":1:7: resp: '1.2.3.4' is not an address" },
        { "resp: [::1]:7379\n", "must be in quotes" },
        { "resp: [a:1, b:2]\n", ":1:7: resp must be text; found a list; text that begins with [" },
        { "admin-token: (set)\n", "admin-token is how --print-settings hides a secret" },
        { "admin-token: &secret\n", ":1:1: admin-token is empty; a secret that begins with &" },
        { "check-token: ~\n", ":1:14: check-token is empty" },
        { "tokn: x\n", "no setting 'tokn'; did you mean 'admin-token' or 'check-token'?" },
        { "tokens: x\n", "did you mean 'admin-token' or 'check-token'?" },
        { "admin-token: two words\n", "admin-token has a byte that is no visible ASCII" },
        { "admin-token: same\ncheck-token: same\nmemory: 1\n", "are the same" },
        { "rules: a\tb\n", ":1:8: rules has a control character in it" },
        { "kyes: 1\nheys: 1\n", ":1:1: there is no setting 'kyes'" },
        { "%YAML 9.9\n---\nkeys: 1\n", ":1:1: this reader knows YAML 1.1 and 1.2" },
        { "kyes: 1\nheys: 1\n", ":2:1: there is no setting 'heys'" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++)
        refuse(line_of("--config %s", file_with(cases[i].text)), cases[i].why);
    refuse(line_of("--config %s", file_with("admin-token: *secret\n")), ":1:14: there is no such");
    assert_null(strstr(said, "secret"));
    refuse(line_of("--config %s", file_with("admin-token:secret: x\n")), "'admin-token'...");
    assert_null(strstr(said, "secret"));
    refuse(line_of("--config %s", file_with("admin_token:secret: x\n")), "'admin_token'...");
    assert_null(strstr(said, "secret"));
    const char *path = new_path();
    write_at(path, 0, "keys: 100\0x", 11);
    refuse(line_of("--config %s", path), ":1:10: a control character (byte 0x00)");
    FINALLY(weir__settings_free)
    struct weir__settings s = good(line_of("--memory --config %s", file_with("")));
}

TEST_WITH(test_bad_environment, fresh, NULL)
{
    setenv("WEIR_REQUEST_MAX", "", 1);
    refuse("", "WEIR_REQUEST_MAX must be a size such as 64k or 1m, from 1k to 64m, not ''");
    unsetenv("WEIR_REQUEST_MAX");
    setenv("WEIR_TRUSTED_PROXIES", "nobody", 1);
    refuse("", "WEIR_TRUSTED_PROXIES: ");
    setenv("WEIR_TRUSTED_PROXIES", "10.0.0.0/8, ::1", 1); /* blanks do not matter */
    struct weir__settings s = good("--memory");
    assert_string_equal(s.trusted_proxies, "10.0.0.0/8, ::1");
    weir__settings_free(&s);
    setenv("WEIR_WEBHOOK", "http://", 1);
    refuse("--memory", "WEIR_WEBHOOK: the URL names no host");
}

/* ---------------------------------------------------------------- secrets ---- */

TEST_WITH(test_secrets, fresh, NULL)
{
    const char *path = file_with("0123456789abcdef\r\nanother line\n");

    setenv("WEIR_CHECK_TOKEN", "for-checks", 1);
    struct weir__settings s = good(line_of("--memory --admin-token-file %s", path));
    assert_string_equal(s.admin_token, "0123456789abcdef");
    assert_string_equal(s.check_token, "for-checks");
    assert_string_equal(said, "");
    weir__settings_free(&s);

    chmod(path, 0644);
    s = good(line_of("--memory --admin-token-file %s", path));
    assert_contains(said, "warning: everybody on this host can read");
    weir__settings_free(&s);

    const char *urls[] = { "fleet: redis://:secret@db",
                           "fleet: redis://db?sentinel-password=secret", "fleet: redis://db?db=1" };
    for (size_t i = 0; i < 3; i++) {
        const char *config = file_with(urls[i]);
        chmod(config, 0644);
        s = good(line_of("--memory --config %s", config));
        assert_true((strstr(said, "warning: everybody on this host can read") != NULL) == (i < 2));
        weir__settings_free(&s);
        chmod(config, 0640);
        s = good(line_of("--memory --config %s", config));
        assert_string_equal(said, "");
        weir__settings_free(&s);
    }

    refuse(line_of("--memory --check-token-file %s", path),
           "WEIR_CHECK_TOKEN and --check-token-file are both set");
    refuse(line_of("--memory --admin-token-file %s", file_with("\nx\n")),
           "has no secret in its first line");
    refuse("--memory --admin-token-file ./there-is-none", "cannot read ./there-is-none");
    char big[400];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = 0;
    refuse(line_of("--memory --admin-token-file %s", file_with(big)), "is longer than 256 bytes");
}

TEST_WITH(test_print, fresh, NULL)
{
    const char *path = file_with("keys: 500\nadmin-token: my-secret\nrules: ' a'\n");
    struct weir__settings s = { 0 };

    setenv("WEIR_IDLE", "90s", 1);
    assert_int_equal(
        read_line(&s, line_of("--config %s --request-max 2048k --print-settings --memory", path)),
        WEIR__EXIT_OK);
    assert_contains(said, line_of("keys: 500  # %s:1:7: keys\n", path));
    assert_contains(said, "idle: 90s  # WEIR_IDLE\n");
    assert_contains(said, "request-max: 2m  # --request-max\n");
    assert_contains(said, "memory: true  # --memory\n");
    assert_contains(said, "# limiters: 4096  (default)\n");
    assert_contains(said, "rules: \" a\"  # ");
    assert_contains(said, "admin-token: (set)  # ");
    assert_contains(said, "# check-token:   (default)\n");
    assert_contains(said, "# socket-mode: 0600  (default)\n");
    assert_null(strstr(said, "my-secret"));
}

/* Not the place of the table that it has here, which another user or host would not have; and of a
 * secret only where it comes from. */
TEST_WITH(test_print_pins_no_default, fresh, NULL)
{
    const char *path = file_with("0123456789abcdef\n");
    struct weir__settings s = { 0 };

    assert_int_equal(read_line(&s, line_of("--admin-token-file %s --print-settings", path)),
                     WEIR__EXIT_OK);
    assert_contains(said, line_of("\n# table: %s/weir/weir.table  (default)\n", folder));
    assert_contains(said, "\n# admin-token: (set)  # --admin-token-file\n");
    assert_contains(said, line_of("\nadmin-token-file: %s  # --admin-token-file\n", path));
    for (const char *line = said; *line; line = strchr(line, '\n') + 1)
        assert_true(*line == '#' || *line == '\n' || strncmp(line, "admin-token-file", 16) == 0);
}

/* What was printed is a file that says the same. */
TEST_WITH(test_print_reads_back, fresh, NULL)
{
    FINALLY(weir__settings_free) struct weir__settings s = { 0 };
    char first[8192];

    assert_int_equal(
        read_line(&s,
                  "--keys 777 --no-watch --memory --resp /tmp/a.sock --idle 0 --print-settings"),
        WEIR__EXIT_OK);
    snprintf(first, sizeof(first), "%.8000s", said);
    s = good(line_of("--config %s", file_with(first)));
    assert_int_equal(s.keys, 777);
    assert_string_equal(s.resp, "/tmp/a.sock");
    assert_string_equal(s.rules, "");
    assert_fields(s, (watch, false), (memory, true), (idle, 0));
}

/* Every setting is there, with its default, and no line is too wide. */
TEST_WITH(test_help, fresh, NULL)
{
    struct weir__settings s = { 0 };

    assert_int_equal(read_line(&s, "--help"), WEIR__EXIT_OK);
    for (const struct weir__option *o = weir__settings_rows; o->name; o++) {
        if (o->kind != WEIR__OPTION_SECRET && strcmp(o->name, "watch") != 0)
            assert_contains(said, line_of("  --%s%s%s", o->name, o->value ? " " : "",
                                          o->value ? o->value : ""));
    }
    assert_contains(said, " WEIR_ADMIN_TOKEN ");
    assert_null(strstr(said, "--admin-token "));
    assert_contains(said, "--no-watch");
    assert_contains(said, "[127.0.0.1:7379]");
    for (const char *line = said, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        assert_true(end - line < 160);
    }
}

/* -------------------------------------------------------------- the table ---- */

static void expect_table(const char *path)
{
    FINALLY(weir__settings_free) struct weir__settings s = good("");
    assert_string_equal(s.table, path);
}

TEST_WITH(test_table_place, fresh, NULL)
{
    char path[600];
    struct stat st;

    setenv("STATE_DIRECTORY", line_of("%s:/elsewhere", folder), 1);
    snprintf(path, sizeof(path), "%s/weir.table", folder);
    expect_table(path);
    unsetenv("STATE_DIRECTORY");
    snprintf(path, sizeof(path), "%s/weir/weir.table", folder);
    expect_table(path);
    snprintf(path, sizeof(path), "%s/weir", folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);

    const char *home = getenv("HOME");
    char before[256];
    snprintf(before, sizeof(before), "%s", home ? home : "");
    setenv("XDG_STATE_HOME", "", 1);
    setenv("HOME", folder, 1);
    snprintf(path, sizeof(path), "%s/.local/state/weir/weir.table", folder);
    expect_table(path);
    for (int i = 0; i < 3; i++) {
        *strrchr(path, '/') = 0;
        assert_int_equal(rmdir(path), 0);
    }
    unsetenv("HOME");
    refuse("", "there is no HOME");
    setenv("HOME", before, 1);
}

GROUP(make_folder, remove_folder)
