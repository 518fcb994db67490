/* client.c -- any bytes as the answer of a server to the commands that ask one: no crash, and
 * nothing is printed that a terminal obeys.
 *
 *   the first byte chooses the command; the second how many bytes come at a time, and whether the
 *   rest is
 *       what comes over the connection, or
 *       the bodies of answers, a line each: they get heads that are right, and begin again when
 *       there are no more;
 *   when there is no more to say the connection is closed, and the next one has an event to tell:
 *   who follows them comes to an end.
 */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "server/cli/ask-server.h"

enum { INPUT_MAX = 8192, WORDS_MAX = 8, BODIES_MAX = 16 };

/* ------------------------------------------------------------------- the server ---- */

static struct {
    const char *input;       /* what is left of it; NULL: all was said */
    size_t len;              /* of that */
    const char *first;       /* the first of the bodies; NULL: they are no bodies */
    size_t first_len;        /* of all of them */
    int bodies;              /* said so far */
    size_t piece;            /* bytes at a time */
    struct weir__buffer out; /* what is being said */
    size_t said;             /* of it */
} server;

static void say(const char *bytes, size_t len)
{
    weir__buffer_add(&server.out, bytes, len);
}

static void say_event(void)
{
    static const char event[] = "HTTP/1.1 200 OK\r\n\r\ndata: {\"event\":\"stop\"}\n\n";

    say(event, sizeof(event) - 1);
}

/* The next line of the input, as an answer. */
static void say_body(void)
{
    const char *end = memchr(server.input, '\n', server.len);
    size_t len = end ? (size_t)(end - server.input) : server.len;
    bool last = end == NULL;

    weir__buffer_format(&server.out, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", len);
    say(server.input, len);
    server.len = last ? server.first_len : server.len - len - 1;
    server.input = last ? server.first : end + 1;
}

/* In place of those of the system: there is one server, and it has the input to say. */

int socket(int domain, int type, int protocol)
{
    (void)domain;
    (void)type;
    (void)protocol;
    return open("/dev/null", O_RDWR | O_CLOEXEC);
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
    (void)fd;
    (void)address;
    (void)len;
    server.out.len = server.said = 0;
    if (server.first)
        return 0;
    if (server.input)
        say(server.input, server.len);
    else
        say_event();
    server.input = NULL;
    return 0;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    (void)fd;
    (void)bytes;
    (void)flags;
    if (server.first && server.bodies++ < BODIES_MAX)
        say_body();
    else if (server.first)
        say_event();
    return (ssize_t)len;
}

ssize_t recv(int fd, void *to, size_t room, int flags)
{
    size_t left = server.out.len - server.said, n = left < server.piece ? left : server.piece;

    (void)fd;
    (void)flags;
    n = n < room ? n : room;
    if (n > 0)
        memcpy(to, server.out.bytes + server.said, n);
    server.said += n;
    return (ssize_t)n;
}

/* Nobody waits. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
    (void)fds;
    (void)n;
    (void)ms;
    return 0;
}

/* ----------------------------------------------------------------- the commands ---- */

extern const struct weir__command weir__cmd_status, weir__cmd_top, weir__cmd_check, weir__cmd_mode,
    weir__cmd_lists, weir__cmd_bans, weir__cmd_reset, weir__cmd_events, weir__cmd_rules_get,
    weir__cmd_rules_reload, weir__cmd_explain, weir__cmd_guards, weir__cmd_degrade;

static const struct {
    const struct weir__command *command;
    const char *words;
    bool raw; /* the server's words are printed as they are */
} rows[] = {
    { &weir__cmd_status, "", false },
    { &weir__cmd_top, "--once", false },
    { &weir__cmd_top, "--json", true },
    { &weir__cmd_check, "ip=192.0.2.7", false },
    { &weir__cmd_check, "--json ip=192.0.2.7", true },
    { &weir__cmd_mode, "", false },
    { &weir__cmd_mode, "shadow --rule login", false },
    { &weir__cmd_lists, "", false },
    { &weir__cmd_lists, "--add deny ip 192.0.2.7", false },
    { &weir__cmd_bans, "", false },
    { &weir__cmd_bans, "--lift --rule login ann", false },
    { &weir__cmd_bans, "--add --rule login --for 10m ann", false },
    { &weir__cmd_reset, "ip=192.0.2.7", false },
    { &weir__cmd_events, "--last 5", false },
    { &weir__cmd_events, "--follow --count 3", false },
    { &weir__cmd_events, "--follow --count 3 --json", true },
    { &weir__cmd_rules_get, "", true },
    { &weir__cmd_rules_reload, "", false },
    { &weir__cmd_explain, "ip=192.0.2.7", false },
    { &weir__cmd_guards, "", false },
    { &weir__cmd_guards, "shop", false },
    { &weir__cmd_degrade, "", false },
};

static const size_t n_rows = sizeof(rows) / sizeof(rows[0]);

/* Nothing that a terminal obeys: no control character, neither as ASCII nor as UTF-8 has those of
 * Latin 1. */
static void check_harmless(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i],
                      next = i + 1 < len ? (unsigned char)text[i + 1] : 0;
        check(c == '\n' || (c >= ' ' && c != 0x7F));
        check(c != 0xC2 || next >= 0xA0 || next < 0x80);
    }
}

static void run(size_t row)
{
    char words[128], *argv[WORDS_MAX + 1] = { NULL }, *save = NULL, *text = NULL;
    FILE *real_out = stdout, *real_err = stderr;
    size_t len = 0;
    int argc = 0;

    snprintf(words, sizeof(words), "%s", rows[row].words);
    for (char *w = strtok_r(words, " ", &save); w && argc < WORDS_MAX;
         w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    stdout = stderr = open_memstream(&text, &len);
    if (stdout == NULL)
        abort();
    int code = weir__command_run(rows[row].command, argc, argv);
    fclose(stdout);
    stdout = real_out;
    stderr = real_err;
    check(code >= WEIR__EXIT_OK && code <= WEIR__EXIT_WRONG);
    if (!rows[row].raw)
        check_harmless(text, len);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;

    if (!ready) {
        clearenv();
        setenv("WEIR_SERVER", "/there/is/none", 1);
        ready = true;
    }
    if (size < 2 || size > INPUT_MAX)
        return 0;
    char *copy = malloc(size - 2 + 1);
    check(copy != NULL);
    memcpy(copy, data + 2, size - 2);
    server.input = copy;
    server.len = server.first_len = size - 2;
    server.bodies = 0;
    server.first = data[1] % 2 ? copy : NULL;
    server.piece = data[1] / 2 == 0 ? SIZE_MAX : data[1] / 2;
    run(data[0] % n_rows);
    weir__buffer_free(&server.out);
    free(copy);
    return 0;
}
