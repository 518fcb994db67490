/* listen.c -- which addresses are understood and which may be opened, and sockets on loopback, on
 * paths and inherited. */
#include "unit/test.h"

#include "unit/fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "server/serve/net/listen.h"

static const struct weir__settings closed = {
    .resp = "", .http = "", .admin_token = "", .check_token = "", .socket_mode = 0600
};

static struct weir__settings resp_at(const char *text)
{
    struct weir__settings s = closed;

    s.resp = text;
    return s;
}

static struct weir__listen opened(const struct weir__settings *s, size_t loops)
{
    struct weir__listen listen = { 0 };
    struct weir_error error = { 0 };

    if (weir__listen_open(&listen, s, loops, &error) != WEIR_OK)
        fail_msg("%s, %s: %s", s->resp, s->http, error.text);
    return listen;
}

/* It is refused, the text says why, and *out is as it was. */
static void refuse(const struct weir__settings *s, const char *why)
{
    struct weir__listen listen, before;
    struct weir_error error = { 0 };

    memset(&listen, 0xa5, sizeof(listen));
    memset(&before, 0xa5, sizeof(before));
    assert_int_not_equal(weir__listen_open(&listen, s, 2, &error), WEIR_OK);
    assert_contains(error.text, why);
    assert_memory_equal(&listen, &before, sizeof(listen));
}

static int count_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Somebody answers there: a connection to one of the sockets can be accepted. */
static void expect_answer(const struct weir__listen *listen, const struct sockaddr *address,
                          socklen_t len)
{
    int client = socket(address->sa_family, SOCK_STREAM, 0), got = 0;

    assert_int_equal(connect(client, address, len), 0);
    for (size_t i = 0; i < listen->n_sockets; i++) {
        int fd = accept(listen->sockets[i].fd, NULL, NULL);
        got += fd >= 0;
        if (fd >= 0)
            close(fd);
    }
    assert_int_equal(got, 1);
    close(client);
}

/* ---------------------------------------------------------------- reading ---- */

TEST(test_reads_addresses)
{
    static const char *const right[] = {
        "",         "127.0.0.1:7379", "[::1]:0",           "localhost:1",   "*:65535",
        "./x.sock", "/run/x",         "1.2.3.4:1, /a,b:2", "[fe80::1%lo]:7"
    };

    static const struct {
        const char *text, *why;
        int column;
    } wrong[] = {
        { "7379", "'7379' is not an address; write HOST:PORT", 1 },
        { "x:", "needs a port from 0 to 65535", 1 },
        { "x:65536", "needs a port from 0 to 65535", 1 },
        { "x:123456789012", "needs a port from 0 to 65535", 1 },
        { "x:-1", "needs a port from 0 to 65535", 1 },
        { ":80", "':80' names no host", 1 },
        { "::1:80", "IPv6 addresses are written [::1]:7379", 1 },
        { "a:1,,b:2", "an address is missing", 5 },
        { "a:1,", "an address is missing", 5 },
        { "a:1, b", "'b' is not an address", 6 },
        { "/tmp/", "'/tmp/' is a directory", 1 },
    };
    struct weir_error error;

    for (size_t i = 0; i < COUNT_OF(right); i++)
        if (weir__listen_check(right[i], &error) != WEIR_OK)
            fail_msg("%s: %s", right[i], error.text);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(weir__listen_check(wrong[i].text, &error), WEIR_INVALID);
        assert_contains(error.text, wrong[i].why);
        assert_int_equal(error.column, wrong[i].column);
    }
}

TEST(test_path_length)
{
    char path[200];
    struct weir_error error;

    memset(path, 'x', sizeof(path));
    path[0] = '/';
    path[107] = 0;
    assert_ok(weir__listen_check(path, &error));
    path[107] = 'x';
    path[108] = 0;
    assert_int_equal(weir__listen_check(path, &error), WEIR_INVALID);
    assert_contains(error.text, "at most 107 bytes, and this one has 108");
    path[108] = 'x';
    path[199] = 0;
    assert_int_equal(weir__listen_check(path, &error), WEIR_INVALID);
}

/* ------------------------------------------------------------ permissions ---- */

/* Refused before a socket is bound. */
TEST(test_open_asks_whether_it_may)
{
    struct weir__settings s = resp_at("0.0.0.0:0");

    int before = count_fds();
    refuse(&s, "0.0.0.0:0 can be reached from other hosts");
    s.resp = "127.0.0.1:0,[::]:0";
    refuse(&s, "[::]:0 can be reached from other hosts");
    assert_int_equal(count_fds(), before);
}

TEST(test_roles_without_a_secret)
{
    struct weir__settings s = closed;

    assert_int_equal(weir__listen_role(&s, true), WEIR__ROLE_ADMIN);
    assert_int_equal(weir__listen_role(&s, false), WEIR__ROLE_NONE);
    s.admin_token = "secret";
    assert_int_equal(weir__listen_role(&s, true), WEIR__ROLE_CHECK);
    assert_int_equal(weir__listen_role(&s, false), WEIR__ROLE_NONE);
    s.check_token = "another";
    assert_int_equal(weir__listen_role(&s, true), WEIR__ROLE_NONE);
    s.admin_token = "";
    assert_int_equal(weir__listen_role(&s, true), WEIR__ROLE_NONE);
    assert_int_equal(weir__listen_role(&s, false), WEIR__ROLE_NONE);
}

/* --------------------------------------------------------------------- TCP ---- */

TEST(test_tcp_a_socket_for_each_loop)
{
    struct weir__settings s = resp_at("127.0.0.1:0");

    int before = count_fds();
    s.http = "127.0.0.1:0";
    struct weir__listen listen = opened(&s, 3);
    assert_fields(listen, (n_addresses, 2), (n_sockets, 6));
    for (size_t i = 0; i < listen.n_sockets; i++) {
        const struct weir__listen_socket *socket = &listen.sockets[i];
        const struct weir__listen_address *address = &listen.addresses[socket->address];
        struct sockaddr_in in;
        socklen_t len = sizeof(in);
        char text[64];
        assert_int_equal(getsockname(socket->fd, (struct sockaddr *)&in, &len), 0);
        snprintf(text, sizeof(text), "127.0.0.1:%d", ntohs(in.sin_port));
        assert_string_equal(address->text, text);
        assert_fields(*address, (port, ntohs(in.sin_port)),
                      (door, i < 3 ? WEIR__DOOR_RESP : WEIR__DOOR_HTTP));
        assert_fields(*socket, (loop, i % 3), (duplicate, false));
        assert_fields(*address, (loopback, true), (role, WEIR__ROLE_ADMIN));
        assert_true(fcntl(socket->fd, F_GETFD) & FD_CLOEXEC);
        assert_true(fcntl(socket->fd, F_GETFL) & O_NONBLOCK);
        if (i % 3 == 0)
            expect_answer(&listen, (struct sockaddr *)&in, len);
    }
    weir__listen_close(&listen, true);
    assert_int_equal(count_fds(), before);
}

/* A second server with SO_REUSEPORT would share the port in silence. */
TEST(test_tcp_port_in_use)
{
    struct weir__settings first = resp_at("127.0.0.1:0"), second = closed;
    char why[128];

    struct weir__listen listen = opened(&first, 2);
    int before = count_fds();
    second.resp = listen.addresses[0].text;
    snprintf(why, sizeof(why),
             "port %d is in use: another server? --resp HOST:PORT chooses another",
             listen.addresses[0].port);
    refuse(&second, why);
    second.http = second.resp;
    second.resp = "";
    refuse(&second, "--http HOST:PORT chooses another");
    assert_int_equal(count_fds(), before);
    char text[160];
    memcpy(text, listen.addresses[0].text, sizeof(text));
    weir__listen_close(&listen, true);

    second.http = second.resp = text; /* free again, but not for both */
    refuse(&second, "is named by both --resp and --http");
    second.http = "";
    listen = opened(&second, 2);
    weir__listen_close(&listen, true);
}

TEST(test_tcp_name_given_twice)
{
    struct weir__settings s = resp_at("127.0.0.1:0");
    char text[512];

    struct weir__listen listen = opened(&s, 1);
    snprintf(text, sizeof(text), "%s,%s", listen.addresses[0].text, listen.addresses[0].text);
    weir__listen_close(&listen, true);
    s.resp = text;
    listen = opened(&s, 2);
    assert_fields(listen, (n_addresses, 1), (n_sockets, 2));
    weir__listen_close(&listen, true);
}

TEST(test_nowhere)
{
    struct weir__settings s = closed;

    refuse(&s, "there is nowhere to listen");
    s.resp = "127.0.0.1:0,not..a..name:7379";
    int before = count_fds();
    refuse(&s, "'not..a..name' is not an address, and no name that is known");
    assert_int_equal(count_fds(), before);
}

/* ------------------------------------------------------------ unix sockets ---- */

static struct sockaddr_un un_of(const char *path)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };

    memcpy(un.sun_path, path, strlen(path));
    return un;
}

TEST(test_unix)
{
    const char *path = new_path();
    struct sockaddr_un un = un_of(path);
    struct weir__settings s = resp_at(path);
    struct stat st;

    int before = count_fds();
    struct weir__listen listen = opened(&s, 3);
    assert_fields(listen, (n_addresses, 1), (n_sockets, 3));
    assert_string_equal(listen.addresses[0].text, path);
    assert_true(listen.addresses[0].is_unix && listen.addresses[0].loopback);
    for (size_t i = 0; i < 3; i++) {
        assert_fields(listen.sockets[i], (loop, i), (duplicate, i > 0));
        assert_true(fcntl(listen.sockets[i].fd, F_GETFD) & FD_CLOEXEC);
    }
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    expect_answer(&listen, (struct sockaddr *)&un, sizeof(un));

    refuse(&s, "is in use: another server? --resp PATH chooses another");
    assert_true(is_there(path));
    weir__listen_close(&listen, true);
    assert_false(is_there(path));
    assert_int_equal(count_fds(), before);
}

/* What a killed server left behind goes; what is no socket stays. */
TEST(test_unix_stale)
{
    const char *path = new_path();
    struct weir__settings s = resp_at(path);

    s.socket_mode = 0660;
    struct weir__listen listen = opened(&s, 1);
    weir__listen_close(&listen, false);
    assert_true(is_there(path));
    listen = opened(&s, 1);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    weir__listen_close(&listen, true);

    write_at(path, 0, "precious", 8);
    refuse(&s, "is there already, and is no socket");
    assert_true(is_there(path));
    s.resp = "./no-such-folder/x.sock";
    refuse(&s, "cannot listen on ./no-such-folder/x.sock: No such file");
}

/* --------------------------------------------------------------- inherited ---- */

/* Puts them at 3, 4, ...: in two steps, because one of them may lie where another is to go. */
static bool place(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3 + (int)n)) < 0)
            return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (dup2(fds[i], 3 + (int)i) < 0)
            return false;
    }
    return true;
}

/* In a child, whose descriptors from 3 on are these sockets: runs `then`, which may fail as a test
 * does. */
static void in_successor(const struct weir__listen *from, const char *pid, const char *names,
                         int (*then)(const char *address))
{
    FINALLY(weir__buffer_free) struct weir__buffer list = { 0 };
    size_t n = 0;
    FINALLY(memory_drop) int *fds = weir__listen_fds(from, &n, &list);

    assert_non_null(fds);
    weir__buffer_add(&list, "", 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char count[32];
        snprintf(count, sizeof(count), "%zu", n);
        setenv("LISTEN_FDS", count, 1);
        setenv("LISTEN_FDNAMES", names ? names : list.bytes, 1);
        if (pid)
            setenv("LISTEN_PID", pid, 1);
        _exit(place(fds, n) ? then(from->addresses[0].text) : 100);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int look_at(const char *address, size_t loops, size_t sockets, size_t duplicates)
{
    struct weir__settings s = resp_at("127.0.0.1:0");
    struct weir__listen listen = { 0 };
    struct weir_error error = { 0 };
    size_t loop_has[8] = { 0 };

    if (weir__listen_open(&listen, &s, loops, &error) != WEIR_OK)
        return 1;
    if (listen.n_addresses != 1 || strcmp(listen.addresses[0].text, address) != 0 ||
        !listen.addresses[0].inherited)
        return 2;
    if (listen.n_sockets != sockets)
        return 3;
    for (size_t i = 0; i < sockets; i++) {
        const struct weir__listen_socket *socket = &listen.sockets[i];
        loop_has[socket->loop]++;
        if (socket->duplicate != (i >= sockets - duplicates) ||
            !(fcntl(socket->fd, F_GETFD) & FD_CLOEXEC))
            return 4;
    }
    for (size_t i = 0; i < loops; i++)
        if (loop_has[i] == 0)
            return 5;
    weir__listen_close(&listen, true);
    return getenv("LISTEN_FDS") || getenv("LISTEN_FDNAMES") ? 6 : 0;
}

static int three_for_three(const char *address)
{
    return look_at(address, 3, 3, 0);
}

static int three_for_two(const char *address)
{
    return look_at(address, 2, 3, 0);
}

static int three_for_five(const char *address)
{
    return look_at(address, 5, 5, 2);
}

TEST(test_inherited_tcp)
{
    struct weir__settings s = resp_at("127.0.0.1:0");

    struct weir__listen listen = opened(&s, 3);
    in_successor(&listen, NULL, NULL, three_for_three);
    in_successor(&listen, NULL, NULL, three_for_two);
    in_successor(&listen, NULL, NULL, three_for_five);
    weir__listen_close(&listen, true);
}

static int one_for_two(const char *address)
{
    return look_at(address, 2, 2, 1);
}

/* What it tells its own successor is what it was told. */
static int hands_on(const char *wanted)
{
    struct weir__settings s = resp_at("127.0.0.1:0");
    struct weir__listen listen;
    struct weir__buffer names = { 0 };
    struct weir_error error = { 0 };
    size_t n;

    if (weir__listen_open(&listen, &s, 2, &error) != WEIR_OK ||
        !weir__listen_fds(&listen, &n, &names))
        return 1;
    return n != 1 || names.len != strlen(wanted) || memcmp(names.bytes, wanted, names.len) != 0;
}

static int hands_on_systemds(const char *address)
{
    (void)address;
    return hands_on("resp");
}

static int hands_on_ours(const char *address)
{
    (void)address;
    return hands_on("resp-own");
}

/* It cannot go on: another door is named that is none. */
static int fails(const char *address)
{
    struct weir__settings s = resp_at(address);
    struct weir__listen listen;
    struct weir_error error = { 0 };

    s.http = "./no-such-folder/x.sock";
    return weir__listen_open(&listen, &s, 2, &error) == WEIR_OK;
}

/* The file is the last one's to remove: not systemd's, and not while the one before goes on because
 * its successor failed. */
TEST(test_inherited_unix)
{
    const char *path = new_path();
    struct weir__settings s = resp_at(path);

    struct weir__listen listen = opened(&s, 2);
    in_successor(&listen, NULL, "resp", one_for_two);
    in_successor(&listen, NULL, "resp", hands_on_systemds);
    in_successor(&listen, NULL, NULL, hands_on_ours);
    assert_true(is_there(path));
    in_successor(&listen, NULL, NULL, fails);
    assert_true(is_there(path));
    in_successor(&listen, NULL, NULL, one_for_two);
    assert_false(is_there(path));
    weir__listen_close(&listen, false);
}

/* 0 if it is refused with this. */
static int refused_with(const char *why)
{
    struct weir__settings s = resp_at("127.0.0.1:0");
    struct weir__listen listen;
    struct weir_error error = { 0 };

    return weir__listen_open(&listen, &s, 2, &error) == WEIR_OK || !strstr(error.text, why);
}

static int unknown_name(const char *address)
{
    (void)address;
    return refused_with("inherited socket 3 is named 'weir.socket'");
}

static int missing_name(const char *address)
{
    (void)address;
    return refused_with("inherited socket 4 is named ''");
}

static int no_socket(const char *address)
{
    (void)address;
    dup2(2, 3);
    return refused_with("inherited socket 3 (resp) is no listening stream socket");
}

/* They were another process's: our own are opened. */
static int not_ours(const char *address)
{
    struct weir__settings s = resp_at("127.0.0.1:0");
    struct weir__listen listen;
    struct weir_error error = { 0 };

    return weir__listen_open(&listen, &s, 2, &error) != WEIR_OK ||
           strcmp(listen.addresses[0].text, address) == 0 || listen.addresses[0].inherited;
}

TEST(test_inherited_wrongly)
{
    struct weir__settings s = resp_at("127.0.0.1:0");

    struct weir__listen listen = opened(&s, 2);
    in_successor(&listen, NULL, "weir.socket:weir.socket", unknown_name);
    in_successor(&listen, NULL, "resp", missing_name);
    in_successor(&listen, NULL, NULL, no_socket);
    in_successor(&listen, "1", NULL, not_ours);
    weir__listen_close(&listen, true);
}

/* For the successor each socket once, with the name of its door; those that were taken are closed
 * by the process that took them. */
TEST(test_handover_list)
{
    struct weir__settings s = resp_at("127.0.0.1:0");
    struct weir__buffer names = { 0 };
    size_t n = 0;

    s.http = new_path();
    struct weir__listen listen = opened(&s, 2);
    int *fds = weir__listen_fds(&listen, &n, &names);
    assert_int_equal(n, 3);
    assert_int_equal(names.len, strlen("resp:resp:http-own"));
    assert_memory_equal(names.bytes, "resp:resp:http-own", names.len);
    assert_int_equal(fds[0], listen.sockets[0].fd);
    assert_int_equal(fds[2], listen.sockets[2].fd);
    weir__buffer_free(&names);
    free(fds);
    int taken = listen.sockets[0].fd;
    listen.sockets[0].taken = true;
    weir__listen_close(&listen, true);
    assert_int_equal(close(taken), 0);
}

GROUP(make_folder, remove_folder)
