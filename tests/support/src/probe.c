/* A job that tells when it ran: `probe LOG MILLIS` appends a line at its start and one at its
 * end. The first thing it does is to read the clock. `probe LOG MILLIS alone` also tells when
 * another one of its job is alive: each takes a lock, which the kernel gives back at its death,
 * whatever it died of. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value ? value : "-";
}

static void append(int log, const char *what, long long at) {
    /* One write in append mode: lines of processes don't mix. All have one length that divides a
     * page, so that none lies on two: between two pages a write may be killed, with half of it
     * done. */
    char line[256];
    int length = snprintf(line, sizeof line, "%s %lld %s %s %s %s %s", what, at,
                          variable("SOLOIST_JOB"), variable("SOLOIST_SCHEDULED_AT"),
                          variable("SOLOIST_ATTEMPT"), variable("SOLOIST_FENCING_TOKEN"),
                          variable("SOLOIST_REPLICA"));
    if (length < 0 || length >= (int)sizeof line) _exit(9);
    memset(line + length, ' ', sizeof line - length);
    line[sizeof line - 1] = '\n';
    if (write(log, line, sizeof line) != sizeof line) _exit(9);
}

/* Whether nobody else has the lock of this job. It is held from now on. */
static int is_alone(const char *log) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s.%s", log, variable("SOLOIST_JOB"));
    if (length < 0 || length >= (int)sizeof path) _exit(9);
    int lock = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
    if (lock < 0) _exit(9);
    return flock(lock, LOCK_EX | LOCK_NB) == 0;
}

int main(int argc, char **argv) {
    long long started = now_ns();
    if (argc != 3 && argc != 4) return 8;
    int log = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (log < 0) return 9;
    int beside = argc == 4 && !is_alone(argv[1]);
    append(log, beside ? "beside" : "start", started);
    long millis = atol(argv[2]);
    struct timespec span = {millis / 1000, millis % 1000 * 1000000};
    nanosleep(&span, NULL);
    append(log, "end", now_ns());
    return 0;
}
