/* Shifts the wall clock of one process, for tests: a library for LD_PRELOAD.
 *
 *   SOLOIST_TEST_WALL_SHIFT_MS    how far ahead of the host's clock, in milliseconds; may be
 *                                 negative. Read when the process starts.
 *   SOLOIST_TEST_WALL_SHIFT_FILE  a file of eight bytes, a native 64-bit integer in
 *                                 milliseconds that is added. Read at each look at the clock,
 *                                 so that a test can make the clock step.
 *   SOLOIST_TEST_WALL_CLOCK_FILE  the same, but the integer is what the clock reads, in
 *                                 milliseconds since the Unix epoch: it stands still until the
 *                                 test sets it anew.
 *
 * Only readings of CLOCK_REALTIME are shifted: the monotonic and boot clocks are left alone,
 * as they are when an administrator sets the time. Timers that the kernel keeps in wall time
 * (timerfd, clock_nanosleep with TIMER_ABSTIME) go by the host's clock.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t fixed_ms;
static const volatile int64_t *stepping_ms;
static const volatile int64_t *standing_ms;

static const volatile int64_t *map(const char *variable) {
    const char *path = getenv(variable);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return NULL;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return mapped != MAP_FAILED ? mapped : NULL;
}

__attribute__((constructor)) static void begin(void) {
    const char *fixed = getenv("SOLOIST_TEST_WALL_SHIFT_MS");
    if (fixed)
        fixed_ms = strtoll(fixed, NULL, 10);
    stepping_ms = map("SOLOIST_TEST_WALL_SHIFT_FILE");
    standing_ms = map("SOLOIST_TEST_WALL_CLOCK_FILE");
}

static void shift(struct timespec *at) {
    if (standing_ms) {
        int64_t now_ms = *standing_ms;
        at->tv_sec = now_ms / 1000;
        at->tv_nsec = now_ms % 1000 * 1000000;
        return;
    }
    int64_t ms = fixed_ms + (stepping_ms ? *stepping_ms : 0);
    int64_t ns = at->tv_nsec + ms % 1000 * 1000000;
    at->tv_sec += ms / 1000 + (ns >= 1000000000) - (ns < 0);
    at->tv_nsec = (ns + 1000000000) % 1000000000;
}

/* The system call and not the library's function: that would have to be looked up first, and
 * the look-up may ask for the time. */
int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = syscall(SYS_clock_gettime, clock, at);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shift(at);
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone; /* obsolete: gettimeofday(2) */
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    if (!failed) {
        at->tv_sec = now.tv_sec;
        at->tv_usec = now.tv_nsec / 1000;
    }
    return failed;
}

time_t time(time_t *at) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *at, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, at) ? base : 0;
}
