/* successor.c -- a new process takes the sockets of this one.
 *
 * They are inherited as systemd would pass them (listen.h), and the environment names this process,
 * which the new one ends when it serves. From the first moment on both accept from the same queues,
 * so no connection is lost between them; the table is shared as by any two processes.
 */
#include "server/serve/net/successor.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "server/serve/announce.h"

#define PREDECESSOR "WEIR_PREDECESSOR"

static void on_closed(uv_handle_t *handle)
{
    struct weir__successor *s = handle->data;

    s->is_there = false;
    if (s->has_ended)
        s->ended(s->context, s->status, s->signal);
    s->has_ended = false;
}

static void close_process(struct weir__successor *s)
{
    if (!uv_is_closing((uv_handle_t *)&s->process))
        uv_close((uv_handle_t *)&s->process, on_closed);
}

static void on_exit_of(uv_process_t *process, int64_t status, int number)
{
    struct weir__successor *s = process->data;

    s->has_ended = true;
    s->status = status;
    s->signal = number;
    close_process(s); /* told when there is room for the next: SIGUSR2 may follow at once */
}

/* This process's environment, without the lines about sockets; `lines` end in NUL each. */
static char **make_environment(char *const lines[3])
{
    extern char **environ;
    size_t n = 0, kept = 0;

    while (environ[n])
        n++;
    char **env = calloc(n + 4, sizeof(*env));
    for (size_t i = 0; env && i < n; i++)
        if (strncmp(environ[i], "LISTEN_", 7) != 0 &&
            strncmp(environ[i], PREDECESSOR "=", sizeof(PREDECESSOR)) != 0)
            env[kept++] = environ[i];
    for (size_t i = 0; env && i < 3; i++)
        env[kept++] = lines[i];
    return env;
}

static uv_stdio_container_t *make_stdio(const int *fds, size_t n)
{
    uv_stdio_container_t *stdio = calloc(3 + n, sizeof(*stdio));

    for (size_t i = 0; stdio && i < 3 + n; i++) {
        stdio[i].flags = UV_INHERIT_FD;
        stdio[i].data.fd = i < 3 ? (int)i : fds[i - 3];
    }
    return stdio;
}

/* The path of this program, or of its replacement there. */
static int find_program(char *path, size_t size)
{
    static const char deleted[] = " (deleted)";
    int code = uv_exepath(path, &size);
    char *gone = code == 0 ? strstr(path, deleted) : NULL;

    if (gone && gone[sizeof(deleted) - 1] == 0)
        *gone = 0;
    return code;
}

/* The last of the fds is the channel. */
static int spawn(struct weir__successor *s, uv_loop_t *loop, const int *fds, size_t n, char *names,
                 char **argv)
{
    char path[4096], count[64], pid[64];
    char *const lines[3] = { count, pid, names };

    snprintf(count, sizeof(count), "LISTEN_FDS=%zu", n - 1);
    snprintf(pid, sizeof(pid), PREDECESSOR "=%d %zu", (int)getpid(), 3 + n - 1);
    char **env = make_environment(lines);
    uv_stdio_container_t *stdio = make_stdio(fds, n);
    int code = env && stdio ? find_program(path, sizeof(path)) : UV_ENOMEM;
    uv_process_options_t options = { .file = path,
                                     .args = argv,
                                     .env = env,
                                     .stdio = stdio,
                                     .stdio_count = (int)(3 + n),
                                     .exit_cb = on_exit_of };
    s->process.data = s;
    if (code == 0) {
        s->is_there = true; /* its handle is, even if the start fails */
        code = uv_spawn(loop, &s->process, &options);
        if (code == 0)
            uv_unref((uv_handle_t *)&s->process); /* it will outlive this process */
        else
            close_process(s);
    }
    free(stdio);
    free(env);
    return code;
}

int weir__successor_start(struct weir__successor *successor, uv_loop_t *loop,
                          const struct weir__listen *listen, char **argv, struct weir_error *error)
{
    struct weir__buffer names = { 0 }, line = { 0 };
    size_t n;
    int channel[2] = { -1, -1 }, *fds = weir__listen_fds(listen, &n, &names);

    weir__buffer_text(&line, "LISTEN_FDNAMES=");
    weir__buffer_add(&line, names.bytes, names.len);
    weir__buffer_add(&line, "", 1);
    int *all = fds ? realloc(fds, (n + 1) * sizeof(*fds)) : NULL, code = UV_ENOMEM;
    fds = all ? all : fds;
    if (all && !names.failed && !line.failed &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) == 0) {
        all[n] = channel[1];
        code = spawn(successor, loop, all, n + 1, line.bytes, argv);
        close(channel[1]);
    }
    if (code == 0)
        successor->channel = channel[0];
    else if (channel[0] >= 0)
        close(channel[0]);
    free(fds);
    weir__buffer_free(&names);
    weir__buffer_free(&line);
    return code == 0 ? WEIR_OK
                     : weir__fail(error, WEIR_SYSTEM, "no successor could be started: %s",
                                  uv_strerror(code));
}

void weir__successor_leave(struct weir__successor *successor)
{
    if (successor->channel)
        close(successor->channel);
    successor->channel = 0;
    if (successor->is_there)
        close_process(successor);
}

int weir__successor_channel(void)
{
    const char *text = getenv(PREDECESSOR), *space = text ? strchr(text, ' ') : NULL;
    int channel = space ? atoi(space) : 0;

    if (channel < 3 || atoi(text) != (int)getppid())
        return 0;
    fcntl(channel, F_SETFD, FD_CLOEXEC);
    return channel;
}

void weir__successor_relieve(void)
{
    const char *text = getenv(PREDECESSOR);
    pid_t pid = text ? (pid_t)atoi(text) : 0;
    char main_pid[64];

    unsetenv(PREDECESSOR);
    if (pid <= 1 || pid != getppid())
        return;
    snprintf(main_pid, sizeof(main_pid), "MAINPID=%d\nREADY=1", (int)getpid());
    weir__tell_supervisor(main_pid);
    kill(pid, SIGTERM);
}
