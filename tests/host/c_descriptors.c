// c_descriptors: copies of the device's descriptor, made in every way, are the device. Runs below the library that shows
// it. Each line that is not so ends the program with its number.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(holds)                                                              \
    do {                                                                          \
        if (!(holds)) {                                                           \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #holds, strerror(errno)); \
            _exit(1);                                                             \
        }                                                                         \
    } while (0)

static const char node[] = "/dev/accel/accel0";

struct create { uint64_t flags, vaddr, size; uint32_t type, handle; };
struct info { uint64_t ext, ext_flags; uint32_t handle, pad; uint64_t offset, vaddr, address; };

static int opened(void) {
    const int file = open(node, O_RDWR);
    CHECK(file >= 0);
    return file;
}

static uint32_t made(int file) {
    struct create wanted = {0, 0, 4096, 1, 0};
    CHECK(ioctl(file, 0xC0006443, &wanted) == 0);
    return wanted.handle;
}

/// 0 where a descriptor's device has the object, else errno.
static int asked(int file, uint32_t handle) {
    struct info wanted = {.handle = handle};
    return ioctl(file, 0xC0006444, &wanted) == 0 ? 0 : errno;
}

static int descriptors(void) {
    DIR* all = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(all) != NULL) ++count;
    closedir(all);
    return count;
}

static int passed(int file) {
    int ends[2], copy = -1;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    char byte = 0, space[CMSG_SPACE(sizeof file)];
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    memset(space, 0, sizeof space);
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){CMSG_LEN(sizeof file), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &file, sizeof file);
    CHECK(sendmsg(ends[0], &message, 0) == 1 && recvmsg(ends[1], &message, 0) == 1);
    memcpy(&copy, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof copy);
    close(ends[0]);
    close(ends[1]);
    return copy;
}

static void every_copy_is_the_device(void) {
    const int file = opened();
    const uint32_t handle = made(file);
    const int copies[] = {dup(file), dup2(file, 200), dup3(file, 201, O_CLOEXEC), fcntl(file, F_DUPFD, 202),
                          fcntl(file, F_DUPFD_CLOEXEC, 203), passed(file), dup2(file, file)};
    const int count = sizeof copies / sizeof copies[0];
    CHECK(copies[1] == 200 && copies[2] == 201 && copies[3] == 202 && copies[4] == 203 && copies[6] == file);
    for (int i = 0; i < count; ++i) {
        CHECK(asked(copies[i], handle) == 0);
        CHECK(close(copies[i]) == 0);
        CHECK(i + 1 == count || asked(file, handle) == 0);
    }
    errno = 0;
    CHECK(close(file) == -1 && errno == EBADF);
}

static void the_last_copy_ends_it(void) {
    int file = opened();
    const uint32_t handle = made(file);
    const int copy = dup(file), null = open("/dev/null", O_RDWR);
    CHECK(close(file) == 0 && asked(copy, handle) == 0);
    CHECK(dup2(null, copy) == copy && asked(copy, handle) == ENOTTY);
    file = opened();
    CHECK(asked(file, handle) == ENOENT);
    CHECK(dup3(null, file, 0) == file && asked(file, handle) == ENOTTY);
    CHECK(close(copy) == 0 && close(file) == 0 && close(null) == 0);
}

static void two_devices_are_two(void) {
    const int first = opened(), second = opened();
    const uint32_t handle = made(first);
    CHECK(asked(second, handle) == ENOENT);
    CHECK(dup2(second, first) == first && asked(first, handle) == ENOENT);
    CHECK(close(first) == 0 && close(second) == 0);
}

static void a_child_leaves_its_parents_device(pid_t (*forked)(void)) {
    const int file = opened();
    const uint32_t handle = made(file);
    int status = -1;
    const pid_t child = forked();
    if (child == 0) _exit(asked(file, handle) == ENOTTY && close(file) == 0 ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(asked(file, handle) == 0 && close(file) == 0);
}

int main(void) {
    const int before = descriptors();
    for (int i = 0; i < 3; ++i) {
        every_copy_is_the_device();
        the_last_copy_ends_it();
        two_devices_are_two();
        a_child_leaves_its_parents_device(fork);
        a_child_leaves_its_parents_device(vfork);
    }
    CHECK(descriptors() == before);
    return 0;
}
