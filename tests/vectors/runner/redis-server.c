/* redis-server.c -- starts a redis-server on a unix socket, and stops it by its pid. */
#include "redis-server.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

static void socket_of(const struct redis_server *s, char out[static 128])
{
    snprintf(out, 128, "%s/socket", s->directory);
}

/* A module with a sanitizer needs its runtime before the libraries of redis-server, which has
 * none. */
#ifdef __SANITIZE_ADDRESS__
void __asan_init(void);

static void preload_sanitizer(void)
{
    Dl_info runtime;

    if (dladdr((void *)(uintptr_t)__asan_init, &runtime))
        setenv("LD_PRELOAD", runtime.dli_fname, 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
}
#else
static void preload_sanitizer(void)
{
}
#endif

static void be_server(const struct redis_server *s, const char *module, int log)
{
    char path[128], full[PATH_MAX] = "";
    const char *words[24] = {
        "redis-server", "--port",       "0",  "--save", "",          "--appendonly",
        "no",           "--unixsocket", path, "--dir",  s->directory
    };
    const char *const loads[] = { "--loadmodule", full, "test-clock" };

    socket_of(s, path);
    if (module && realpath(module, full)) /* it changes its directory first */
        memcpy(words + 11, loads, sizeof(loads));
    preload_sanitizer();
    dup2(log, STDOUT_FILENO);
    execvp(words[0], (char *const *)words);
    _exit(127);
}

/* It is ready when it has said so. */
static bool wait_until_ready(int log)
{
    char text[8192];
    size_t len = 0;

    while (len < sizeof(text) - 1) {
        ssize_t n = read(log, text + len, sizeof(text) - 1 - len);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return false;
        len += n > 0 ? (size_t)n : 0;
        text[len] = '\0';
        if (strstr(text, "eady to accept connections"))
            return true;
    }
    return false;
}

int redis_server_start(struct redis_server *s, const char *module, struct weir_error *error)
{
    char path[128];
    int pipes[2];

    snprintf(s->directory, sizeof(s->directory), "/tmp/weir-vectors-XXXXXX");
    if (!mkdtemp(s->directory)) {
        s->directory[0] = '\0';
        return weir__fail(error, WEIR_SYSTEM, "mkdtemp: %s", strerror(errno));
    }
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return weir__fail(error, WEIR_SYSTEM, "pipe: %s", strerror(errno));
    fflush(stdout);
    s->pid = fork();
    if (s->pid == 0)
        be_server(s, module, pipes[1]);
    close(pipes[1]);
    bool ready = s->pid > 0 && wait_until_ready(pipes[0]);
    close(pipes[0]);
    if (!ready)
        return weir__fail(error, WEIR_SYSTEM, "redis-server did not start");
    socket_of(s, path);
    return weir__client_open(
        &s->client, &(struct weir__client_options){ path, .timeout = 30 * WEIR_SECOND }, error);
}

void redis_server_stop(struct redis_server *s)
{
    char path[128];

    if (s->client)
        weir__client_close(s->client);
    if (s->pid > 0 && kill(s->pid, SIGTERM) == 0)
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    socket_of(s, path);
    if (s->directory[0]) {
        unlink(path);
        rmdir(s->directory);
    }
    *s = (struct redis_server){ 0 };
}
