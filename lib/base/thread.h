/* thread.h -- threads of our own, which leave signals to the program's. */
#ifndef WEIR_BASE_THREAD_H
#define WEIR_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create.  The thread hears no signals, from its first instruction on: it begins with
 * the mask of its maker.  Those that an instruction of its own causes end the process, blocked or
 * not; so that their handlers are called (a table that was cut: SIGBUS), they are not blocked. */
static inline int weir__thread_start(pthread_t *out, void *(*run)(void *), void *context)
{
    static const int own[] = { SIGBUS, SIGSEGV, SIGILL, SIGFPE };
    sigset_t all, before;

    sigfillset(&all);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(out, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

#endif
