/* run-while-held.c -- runs a command while a permit or a lock is held and renewed. */
#include "server/cli/run-while-held.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "server/base/complain.h"

#define PAUSE_MIN (20 * WEIR_MILLISECOND) /* between two tries */
#define PAUSE_MAX (250 * WEIR_MILLISECOND)
#define EXIT_MAX  (2 * WEIR_SECOND) /* to give it back */

/* --------------------------------------------------------------- keeping ---- */

/* A thread does it, as a server may hang while there are signals to pass on. */

static void tell(int fd)
{
    uint64_t one = 1;

    (void)!write(fd, &one, sizeof(one));
}

/* False: the time has come first. */
static bool hear(int fd, weir_time until)
{
    struct pollfd source = { .fd = fd, .events = POLLIN };
    uint64_t told;
    weir_time left;

    do {
        left = until - weir__clock_monotonic();
        if (poll(&source, 1, left <= 0 ? 0 : (int)(left / WEIR_MILLISECOND) + 1) > 0 &&
            read(fd, &told, sizeof(told)) == sizeof(told))
            return true;
    } while (left > 0);
    return false;
}

static weir_time renewal(weir_time lease)
{
    weir_time every = lease / 3;

    return every > 5 * WEIR_SECOND ? 5 * WEIR_SECOND : every;
}

/* Our own signal reaches the command like one from outside. */
static void lose(const struct weir__keeper *k)
{
    weir__complain(k->command, "the %s is lost; the command %s", k->thing,
                   k->ends ? "gets SIGTERM" : "goes on without it");
    if (k->ends)
        kill(getpid(), SIGTERM);
}

/* Renews, or enters again if that is too late.  Returns when to do so next. */
static weir_time hold_on(struct weir__keeper *k)
{
    weir_time begun = weir__clock_monotonic(), every = renewal(k->lease);
    bool was_lost = k->lost;

    if (was_lost ? k->enter(k) : k->renew(k)) {
        k->lost = false;
        k->until = begun + k->lease;
        if (was_lost)
            weir__complain(k->command, "the command has a %s again", k->thing);
        return begun + every;
    }
    weir_time now = weir__clock_monotonic();
    k->lost = was_lost || now >= k->until;
    if (k->lost && !was_lost)
        lose(k);
    return now + (was_lost || every < PAUSE_MAX ? every : PAUSE_MAX);
}

static void *keep(void *context)
{
    struct weir__keeper *k = context;
    weir_time next = weir__clock_monotonic() + renewal(k->lease);

    while (!hear(k->ended, next))
        next = hold_on(k);
    if (k->ends && !k->lost && weir__clock_monotonic() >= k->until) { /* it stood still */
        k->lost = true;
        weir__complain(k->command, "the %s was lost before the command ended", k->thing);
    }
    while (!k->lost && !k->exit(k))
        weir__clock_sleep(PAUSE_MIN);
    tell(k->given);
    return NULL;
}

static void begin_keeping(struct weir__keeper *k)
{
    if (k->until == 0)
        k->until = weir__clock_monotonic() + k->lease;
    k->ended = eventfd(0, EFD_CLOEXEC);
    k->given = eventfd(0, EFD_CLOEXEC);
    k->is_kept = k->renew && k->ended >= 0 && k->given >= 0 &&
                 pthread_create(&k->thread, NULL, keep, k) == 0;
    if (k->renew && !k->is_kept)
        weir__complain(k->command, "cannot start a thread: the %s is not renewed", k->thing);
}

/* Gives it back.  Nobody waits long for a server that hangs. */
static void end_keeping(struct weir__keeper *k)
{
    if (k->is_kept) {
        tell(k->ended);
        if (!hear(k->given, weir__clock_monotonic() + EXIT_MAX)) {
            weir__complain(k->command, "no answer: the %s ends by itself", k->thing);
            _exit(k->code); /* the thread is still at work */
        }
        pthread_join(k->thread, NULL);
    } else if (k->renew) {
        k->exit(k);
    }
    close(k->ended);
    close(k->given);
}

/* ------------------------------------------------------------ the command ---- */

static void handled(sigset_t *out)
{
    static const int all[] = { SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };

    sigemptyset(out);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        sigaddset(out, all[i]);
}

/* The signals as they were on entry: the command gets them so. */
struct signals {
    sigset_t mask;
    struct sigaction child;
};

/* Without a child's status (SIGCHLD ignored) every command would seem to succeed. */
static void take_signals(const sigset_t *ours, struct signals *before)
{
    struct sigaction usual = { .sa_handler = SIG_DFL };

    sigprocmask(SIG_BLOCK, ours, &before->mask);
    sigaction(SIGCHLD, &usual, &before->child);
}

static void be_command(const char *name, char **words, const struct signals *before, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it has died before */
        _exit(WEIR__RUN_FAILED);
    sigaction(SIGCHLD, &before->child, NULL);
    sigprocmask(SIG_SETMASK, &before->mask, NULL);
    execvp(words[0], words);
    int code = errno == ENOENT ? WEIR__RUN_NOT_FOUND : WEIR__RUN_CANNOT_RUN;
    fprintf(stderr, "weir %s: %s: %s\n", name, words[0], strerror(errno));
    _exit(code);
}

/* Until the command ends.  A terminal's signals reach it by themselves.  False: its status is not
 * known. */
static bool attend(pid_t pid, const sigset_t *signals, int *status, bool *stopped)
{
    pid_t ended;

    while ((ended = waitpid(pid, status, WNOHANG)) == 0) {
        siginfo_t info;
        int signal = sigwaitinfo(signals, &info);
        if (signal > 0 && signal != SIGCHLD && info.si_code <= 0)
            kill(pid, signal);
        *stopped = *stopped || signal == SIGINT || signal == SIGTERM;
    }
    return ended == pid;
}

static int code_of(int status)
{
    return WIFSIGNALED(status) ? WEIR__RUN_KILLED + WTERMSIG(status) : WEXITSTATUS(status);
}

int weir__keeper_run(struct weir__keeper *k, char **words)
{
    sigset_t signals;
    struct signals before;
    pid_t parent = getpid();
    int status;

    k->code = WEIR__RUN_FAILED;
    handled(&signals);
    take_signals(&signals, &before);
    pid_t pid = fork();
    if (pid == 0)
        be_command(k->command, words, &before, parent);
    if (pid < 0)
        weir__complain(k->command, "cannot start a process: %s", strerror(errno));
    begin_keeping(k);
    if (pid > 0 && attend(pid, &signals, &status, &k->was_stopped)) {
        k->has_run = true;
        k->code = code_of(status);
    } else if (pid > 0) {
        weir__complain(k->command, "cannot tell how the command ended: %s", strerror(errno));
    }
    end_keeping(k);
    return k->lost && k->ends ? WEIR__RUN_LOST : k->code;
}
