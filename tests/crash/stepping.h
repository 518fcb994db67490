/* stepping.h -- a child process that is run an exact number of instructions far, and left stopped.
 *
 *     the child    stepping_begin() where counting starts, then its work; sets *done; _exit(0)
 *     its parent   stepping_record for the path of the whole work; stepping_start, then
 *                  stepping_run for a part of it; then stepping_finish or stepping_kill
 *
 * A single step costs two changes of process, so a far instruction is reached from a landmark: an
 * instruction that the path meets there for the first time.  The child runs into a breakpoint on
 * it, and steps from there.
 */
#ifndef WEIR_TESTS_CRASH_STEPPING_H
#define WEIR_TESTS_CRASH_STEPPING_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define STEPPING_PATIENCE  60 /* seconds, for work of microseconds */
#define STEPPING_FORBIDDEN 77
#define STEPPING_NEAR      100 /* steps from a landmark */
#define STEPPING_MOST      1000000

struct stepped {
    pid_t pid; /* 0: it has gone */
    const int *done;
};

enum stepping { STEPPING_STOPPED, STEPPING_ENDED, STEPPING_DIED, STEPPING_STUCK };

struct path {
    size_t length;
    uint64_t *pc;     /* of each instruction */
    size_t *landmark; /* the last one not after it that is met for the first time */
};

static inline void stepping_begin(void)
{
    __asm__ volatile("int3");
}

static inline void stepping_alarm(int signal)
{
    (void)signal;
}

/* From now on waiting ends after some time. */
static inline void stepping_set_alarm(void)
{
    struct sigaction action = { .sa_handler = stepping_alarm }; /* waitpid is interrupted */

    sigaction(SIGALRM, &action, NULL);
    alarm(STEPPING_PATIENCE);
}

/* False: it took too long. */
static inline bool stepping_wait(pid_t pid, int *status)
{
    stepping_set_alarm();
    return waitpid(pid, status, 0) == pid;
}

static inline enum stepping stepping_next(struct stepped *s, int status)
{
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
        s->pid = 0;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? STEPPING_ENDED : STEPPING_DIED;
    }
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
        return STEPPING_DIED;
    return __atomic_load_n(s->done, __ATOMIC_RELAXED) ? STEPPING_ENDED : STEPPING_STOPPED;
}

/* Steps are many and short: the alarm is set for some of them. */
static inline enum stepping stepping_go(struct stepped *s, int how)
{
    static unsigned steps;
    int status;

    if (ptrace(how, s->pid, NULL, NULL) != 0)
        return STEPPING_DIED;
    if (how != PTRACE_SINGLESTEP || steps++ % 1000 == 0)
        stepping_set_alarm();
    return waitpid(s->pid, &status, 0) == s->pid ? stepping_next(s, status) : STEPPING_STUCK;
}

/* False: tracing is not permitted here. */
static inline bool stepping_start(struct stepped *s, void (*work)(void *context), void *context,
                                  const int *done)
{
    int status;

    s->done = done;
    s->pid = fork();
    if (s->pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(STEPPING_FORBIDDEN);
        work(context);
        _exit(0);
    }
    if (s->pid < 0 || !stepping_wait(s->pid, &status) || !WIFSTOPPED(status))
        return false;
    (void)ptrace(PTRACE_SETOPTIONS, s->pid, NULL, (void *)PTRACE_O_EXITKILL);
    return WSTOPSIG(status) == SIGTRAP;
}

static inline void stepping_kill(struct stepped *s)
{
    int status;

    if (s->pid <= 0)
        return;
    kill(s->pid, SIGKILL);
    while (waitpid(s->pid, &status, 0) == s->pid && !WIFSIGNALED(status) && !WIFEXITED(status))
        continue;
    s->pid = 0;
}

static inline void stepping_only_begin(void *context)
{
    (void)context;
    stepping_begin();
}

static inline bool stepping_is_permitted(void)
{
    struct stepped s;
    int done = 0;
    bool permitted = stepping_start(&s, stepping_only_begin, NULL, &done);

    stepping_kill(&s);
    return permitted;
}

static inline enum stepping stepping_finish(struct stepped *s)
{
    enum stepping now = STEPPING_ENDED;

    while (s->pid > 0 && (now == STEPPING_STOPPED || now == STEPPING_ENDED))
        now = stepping_go(s, PTRACE_CONT);
    return now;
}

static inline uint64_t stepping_pc(const struct stepped *s)
{
    return (uint64_t)ptrace(PTRACE_PEEKUSER, s->pid, offsetof(struct user_regs_struct, rip), NULL);
}

/* ---------------------------------------------------------------- path ---- */

#define STEPPING_SEEN (1 << 16)

static inline bool stepping_is_new(uint64_t *seen, uint64_t pc)
{
    size_t i = (size_t)(pc * 0x9e3779b97f4a7c15u >> 48) % STEPPING_SEEN;

    while (seen[i] != 0 && seen[i] != pc)
        i = (i + 1) % STEPPING_SEEN;
    if (seen[i] == pc)
        return false;
    seen[i] = pc;
    return true;
}

/* Shared, so that fork need not copy the tables of its pages. */
static inline void *stepping_room(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        abort();
    return p;
}

/* Of the process that is recorded. */
static uint64_t *stepping_pcs;
static const int *stepping_done;

#define STEPPING_TRAP_FLAG 0x100

/* The breakpoint of stepping_begin, then every instruction. */
static inline void stepping_note(int signal, siginfo_t *info, void *context)
{
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    static size_t n;

    (void)signal;
    (void)info;
    regs[REG_EFL] &= ~STEPPING_TRAP_FLAG;
    if (__atomic_load_n(stepping_done, __ATOMIC_RELAXED))
        return;
    if (n == STEPPING_MOST)
        _exit(1);
    stepping_pcs[n++] = (uint64_t)regs[REG_RIP];
    regs[REG_EFL] |= STEPPING_TRAP_FLAG;
}

/* On a stack of its own: what lies below that of the work is the work's. */
static inline void stepping_note_steps(uint64_t *pcs, const int *done)
{
    struct sigaction action = { .sa_sigaction = stepping_note,
                                .sa_flags = SA_SIGINFO | SA_ONSTACK };
    stack_t stack = { .ss_size = 1 << 16 };

    stepping_pcs = pcs;
    stepping_done = done;
    stack.ss_sp = stepping_room(stack.ss_size);
    if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGTRAP, &action, NULL) != 0)
        _exit(1);
}

static inline void stepping_find_landmarks(struct path *path)
{
    uint64_t *seen = calloc(STEPPING_SEEN, sizeof(*seen));
    size_t landmark = 0;

    if (seen == NULL)
        abort();
    for (path->length = 0; path->length < STEPPING_MOST && path->pc[path->length] != 0;
         path->length++) {
        landmark = stepping_is_new(seen, path->pc[path->length]) ? path->length : landmark;
        path->landmark[path->length] = landmark;
    }
    free(seen);
}

/* All of the work, by a process that steps itself: a tenth of the cost of a tracer. */
static inline enum stepping stepping_record(void (*work)(void *context), void *context,
                                            const int *done, struct path *path)
{
    int status;

    path->pc = stepping_room(STEPPING_MOST * sizeof(*path->pc));
    path->landmark = stepping_room(STEPPING_MOST * sizeof(*path->landmark));
    pid_t pid = fork();
    if (pid == 0) {
        stepping_note_steps(path->pc, done);
        work(context);
        _exit(0);
    }
    if (pid < 0)
        return STEPPING_DIED;
    if (!stepping_wait(pid, &status)) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        return STEPPING_STUCK;
    }
    stepping_find_landmarks(path);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && path->length > 0 ? STEPPING_ENDED
                                                                             : STEPPING_DIED;
}

static inline void stepping_forget(struct path *path)
{
    if (path->pc == NULL)
        return;
    munmap(path->pc, STEPPING_MOST * sizeof(*path->pc));
    munmap(path->landmark, STEPPING_MOST * sizeof(*path->landmark));
    *path = (struct path){ 0 };
}

static inline bool stepping_is_near(const struct path *path, size_t n)
{
    return n - path->landmark[n] <= STEPPING_NEAR;
}

/* ----------------------------------------------------------------- run ---- */

/* Until the process comes to this instruction. */
static inline enum stepping stepping_run_to(struct stepped *s, uint64_t pc)
{
    void *at = (void *)(uintptr_t)pc;
    long code = ptrace(PTRACE_PEEKTEXT, s->pid, at, NULL);
    struct user_regs_struct regs;

    ptrace(PTRACE_POKETEXT, s->pid, at, (void *)((code & ~0xffL) | 0xcc));
    enum stepping now = stepping_go(s, PTRACE_CONT);
    if (s->pid == 0 || now == STEPPING_DIED || now == STEPPING_STUCK)
        return now;
    ptrace(PTRACE_POKETEXT, s->pid, at, (void *)code);
    ptrace(PTRACE_GETREGS, s->pid, NULL, &regs);
    regs.rip = pc;
    ptrace(PTRACE_SETREGS, s->pid, NULL, &regs);
    return now;
}

/* n instructions of the path; another path may end before. */
static inline enum stepping stepping_run(struct stepped *s, const struct path *path, size_t n)
{
    size_t i = path->landmark[n];
    enum stepping now = i > 0 ? stepping_run_to(s, path->pc[i]) : STEPPING_STOPPED;

    for (; now == STEPPING_STOPPED && i < n; i++)
        now = stepping_go(s, PTRACE_SINGLESTEP);
    return now;
}

#endif
