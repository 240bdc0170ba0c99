// Runs a program and holds its first thread, and no other, while it is asked to: SIGUSR1 stops that
// thread wherever it is, SIGUSR2 lets it go on. SIGTERM is passed on. Ends as the program does.
//
// That is a tracer's work, and done by the program's parent, which may trace it anywhere (ptrace(2),
// Yama).
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    sigset_t asked, before;
    sigemptyset(&asked);
    sigaddset(&asked, SIGUSR1);
    sigaddset(&asked, SIGUSR2);
    sigaddset(&asked, SIGTERM);
    sigaddset(&asked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &asked, &before);
    pid_t child = argc > 1 ? fork() : -1;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        execv(argv[1], argv + 1);
        _exit(127);
    }
    if (child < 0) return 127;
    for (;;) {
        int signal, status;
        sigwait(&asked, &signal);
        switch (signal) {
        case SIGUSR1:
            if (ptrace(PTRACE_SEIZE, child, 0, 0) || ptrace(PTRACE_INTERRUPT, child, 0, 0)) {
                perror("hold: ptrace");
                kill(child, SIGKILL);
            }
            break;
        case SIGUSR2:
            ptrace(PTRACE_DETACH, child, 0, 0);
            break;
        case SIGTERM:
            kill(child, SIGTERM);
            break;
        default:
            // Also told of the stop that was asked for.
            while (waitpid(child, &status, WNOHANG) == child) {
                if (WIFEXITED(status)) return WEXITSTATUS(status);
                if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
            }
        }
    }
}
