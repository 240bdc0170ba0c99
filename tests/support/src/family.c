/* A job that is a whole tree of processes: `family LOG KIND [MILLIS]`.
 *
 * Each of them appends a line to LOG when it is set up, and those that listen one when they are
 * told to end:
 *
 *   start|term AT_NS PID START_TIME ROLE JOB SCHEDULED_AT ATTEMPT TOKEN REPLICA RUN_ID
 *
 * START_TIME as in proc_pid_stat(5), so that a pid that was given to another is not mistaken. The
 * leader lives for MILLIS, the others for ever; without MILLIS all of them do.
 *
 * Three kinds are no trees: `look` prints what a job is given, `pour` writes zeros for MILLIS, and
 * `hop` is at every moment a child of the process that it just was, counted in LOG.hops. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum behaviour { QUIET, STUBBORN, LISTENING, POLITE, FLOODING };

static const char *log_path;
static char identity[512];
static const char *role;

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : "-";
}

static void identify(void) {
    snprintf(identity, sizeof identity, "%s %s %s %s %s %s", variable("SOLOIST_JOB"),
             variable("SOLOIST_SCHEDULED_AT"), variable("SOLOIST_ATTEMPT"),
             variable("SOLOIST_FENCING_TOKEN"), variable("SOLOIST_REPLICA"),
             variable("SOLOIST_RUN_ID"));
}

/* Field 22 of /proc/self/stat; the name before it has no blank in it. */
static unsigned long long start_time(void) {
    char stat[1024];
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0) _exit(9);
    ssize_t length = read(file, stat, sizeof stat - 1);
    close(file);
    if (length <= 0) _exit(9);
    stat[length] = 0;
    char *field = stat;
    for (int number = 1; number < 22; number++) {
        field = strchr(field, ' ');
        if (!field) _exit(9);
        field++;
    }
    return strtoull(field, NULL, 10);
}

static void append(const char *what, long long at) {
    char line[1024];
    int length = snprintf(line, sizeof line, "%s %lld %d %llu %s %s\n", what, at, getpid(),
                          start_time(), role, identity);
    int file = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) _exit(9);
    /* One write in append mode: lines of processes don't mix. */
    if (write(file, line, length) != length) _exit(9);
    close(file);
}

static sigset_t only_term(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    return set;
}

static void flood(void) {
    static char line[4096];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    int to = strcmp(role, "child") == 0 ? 2 : 1;
    /* Nobody may read any more: it goes on all the same, as fast as it can. */
    for (;;) (void)!write(to, line, sizeof line);
}

/* What it does for the rest of its life, set up before it says that it is there. */
static void be(enum behaviour behaviour, long long started, long millis) {
    sigset_t term = only_term();
    if (behaviour == LISTENING || behaviour == POLITE) {
        sigprocmask(SIG_BLOCK, &term, NULL);
    } else if (behaviour != QUIET) {
        int ignored[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
        int count = behaviour == STUBBORN ? 7 : 0;
        for (int i = 0; i < count; i++) signal(ignored[i], SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
        sigprocmask(SIG_UNBLOCK, &term, NULL);
    }
    append("start", started);
    if (millis > 0) {
        struct timespec span = {millis / 1000, millis % 1000 * 1000000};
        while (nanosleep(&span, &span) && errno == EINTR) {
        }
        exit(0);
    }
    if (behaviour == FLOODING) flood();
    while (behaviour == LISTENING || behaviour == POLITE) {
        if (sigwaitinfo(&term, NULL) != SIGTERM) continue;
        append("term", now_ns());
        if (behaviour == POLITE) exit(0);
    }
    for (;;) pause();
}

static pid_t fork_or_fail(void) {
    pid_t pid = fork();
    if (pid < 0) {
        perror("fork");
        _exit(9);
    }
    return pid;
}

static void become(const char *name, enum behaviour behaviour) {
    role = name;
    be(behaviour, now_ns(), 0);
}

static void child(enum behaviour behaviour) {
    if (fork_or_fail() == 0) become("child", behaviour);
}

/* A child with a session of its own. */
static void session(enum behaviour behaviour) {
    if (fork_or_fail() != 0) return;
    setsid();
    become("session", behaviour);
}

/* A daemon: in a session of its own, and its parent is gone. `bare` clears its environment. */
static void orphan(const char *name, enum behaviour behaviour) {
    pid_t middle = fork_or_fail();
    if (middle != 0) {
        while (waitpid(middle, NULL, 0) < 0 && errno == EINTR) {
        }
        return;
    }
    setsid();
    if (fork_or_fail() != 0) _exit(0);
    if (strcmp(name, "bare") != 0) become(name, behaviour);
    char number[2] = {(char)('0' + behaviour), 0};
    char *arguments[] = {"family", (char *)log_path, "bare", number, identity, NULL};
    char *nothing[] = {NULL};
    execve("/proc/self/exe", arguments, nothing);
    _exit(9);
}

/* What a job is given: signals, descriptors, limits. */
static int look(void) {
    struct sigaction action;
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int number = 1; number < NSIG; number++) {
        if (sigismember(&blocked, number) == 1) printf("blocked %d\n", number);
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            printf("not-default %d\n", number);
    }
    char path[64], target[512];
    for (int fd = 0; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) < 0) continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        printf("fd %d %s\n", fd, target);
    }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    printf("nofile %llu %llu\n", (unsigned long long)limit.rlim_cur,
           (unsigned long long)limit.rlim_max);
    printf("leads-session %d\nleads-group %d\n", getsid(0) == getpid(), getpgrp() == getpid());
    printf("umask %03o\n", umask(0));
    return 0;
}

static int pour(long millis) {
    static char zeros[1 << 16];
    long long end = now_ns() + millis * 1000000LL;
    while (now_ns() < end)
        if (write(1, zeros, sizeof zeros) < 0) return 9;
    return 0;
}

/* It never stands still, and leaves session and group at every step. */
static void hop(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s.hops", log_path);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || ftruncate(file, sizeof(long)) < 0) _exit(9);
    volatile long *hops = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (hops == MAP_FAILED) _exit(9);
    signal(SIGTERM, SIG_IGN);
    for (;;) {
        pid_t pid = fork();
        if (pid > 0) _exit(0);
        if (pid == 0) {
            setsid();
            (*hops)++;
        }
    }
}

int main(int argc, char **argv) {
    long long started = now_ns();
    if (argc < 3) return 8;
    log_path = argv[1];
    const char *kind = argv[2];
    if (strcmp(kind, "bare") == 0 && argc == 5) {
        snprintf(identity, sizeof identity, "%s", argv[4]);
        become("bare", argv[3][0] - '0');
    }
    long millis = argc > 3 ? atol(argv[3]) : 0;
    identify();
    role = "leader";
    if (strcmp(kind, "look") == 0) return look();
    if (strcmp(kind, "hop") == 0) {
        if (fork_or_fail() == 0) hop();
        be(QUIET, started, 0);
    }
    if (strcmp(kind, "pour") == 0) return pour(millis);
    enum behaviour behaviour = QUIET;
    if (strcmp(kind, "plain") == 0) {
        child(QUIET);
    } else if (strcmp(kind, "setsid") == 0) {
        child(QUIET);
        session(QUIET);
    } else if (strcmp(kind, "double-fork") == 0) {
        orphan("orphan", QUIET);
        orphan("bare", QUIET);
    } else if (strcmp(kind, "stubborn") == 0) {
        behaviour = STUBBORN;
        child(STUBBORN);
        session(STUBBORN);
        orphan("orphan", STUBBORN);
        orphan("bare", STUBBORN);
    } else if (strcmp(kind, "listening") == 0) {
        behaviour = LISTENING;
        session(POLITE);
        orphan("orphan", LISTENING);
        orphan("bare", LISTENING);
        orphan("deaf", STUBBORN);
    } else if (strcmp(kind, "flooding") == 0) {
        behaviour = FLOODING;
        child(FLOODING);
        session(FLOODING);
    } else {
        return 8;
    }
    be(behaviour, started, millis);
}
