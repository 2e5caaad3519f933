// SPDX-License-Identifier: GPL-2.0-only
/* Child processes, file descriptors on their way between them, and small files. */
#include "common.h"

#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

int wait_for(pid_t child)
{
	int status;

	must_libc(waitpid(child, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

char task_state(pid_t task)
{
	char path[64], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", task);
	file = fopen(path, "re");
	must_libc(file && fgets(line, sizeof(line), file) ? 0 : -1);
	fclose(file);
	/* The state follows the command's name, which is in parentheses. */
	return strrchr(line, ')')[2];
}

bool sleeps_in_ioctl(pid_t task, unsigned long command)
{
	char path[64];
	FILE *file;
	long call;
	unsigned long number;
	bool yes;

	snprintf(path, sizeof(path), "/proc/%d/syscall", task);
	file = fopen(path, "re");
	if (!file)
		return false;
	/* A task that runs has none. */
	yes = fscanf(file, "%ld %*x %lx", &call, &number) == 2 && call == SYS_ioctl &&
	      (!command || number == command);
	fclose(file);
	return yes;
}

void await_ioctl(pid_t task, unsigned long command)
{
	while (!sleeps_in_ioctl(task, command))
		must_libc(kill(task, 0));
}

void signal_peer(int socket)
{
	must_libc(write(socket, "", 1));
}

void await_peer(int socket)
{
	char byte;

	must(read(socket, &byte, 1) == 1 ? 0 : -EPIPE);
}

void new_socket_pair(int sockets[2])
{
	must_libc(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
}

/* One message of one byte, with room for one file descriptor beside it. */
struct fd_message {
	struct msghdr header;
	struct iovec vector;
	char byte;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
};

static void prepare_message(struct fd_message *message)
{
	memset(message, 0, sizeof(*message));
	message->vector = (struct iovec){ .iov_base = &message->byte, .iov_len = 1 };
	message->header = (struct msghdr){
		.msg_iov = &message->vector,
		.msg_iovlen = 1,
		.msg_control = message->control,
		.msg_controllen = sizeof(message->control),
	};
}

void send_fd(int socket, int fd)
{
	struct fd_message message;
	struct cmsghdr *control;

	prepare_message(&message);
	control = CMSG_FIRSTHDR(&message.header);
	*control = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(fd)),
	};
	memcpy(CMSG_DATA(control), &fd, sizeof(fd));
	must_libc(sendmsg(socket, &message.header, 0));
}

int receive_fd(int socket)
{
	struct fd_message message;
	struct cmsghdr *control;
	int fd;

	prepare_message(&message);
	must(recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC) == 1 ? 0 : -EPIPE);
	control = CMSG_FIRSTHDR(&message.header);
	must(control ? 0 : -EBADF);
	memcpy(&fd, CMSG_DATA(control), sizeof(fd));
	return fd;
}

int nr_open_files(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	must_libc(directory ? 0 : -1);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

__u64 inode_of(int fd)
{
	struct stat status;

	must_libc(fstat(fd, &status));
	return status.st_ino;
}

int new_memfd(size_t nbytes, unsigned int seed)
{
	int fd = must_libc(memfd_create("devbuf-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	void *memory;

	must_libc(ftruncate(fd, nbytes));
	memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must_libc(memory == MAP_FAILED ? -1 : 0);
	fill(memory, nbytes, seed);
	munmap(memory, nbytes);
	return fd;
}

const char *scratch_disk(void)
{
	FILE *file = fopen("/sys/block/nvme0n1/device/serial", "re");
	char serial[32] = "";

	if (file) {
		if (!fgets(serial, sizeof(serial), file))
			serial[0] = 0;
		fclose(file);
	}
	if (!strncmp(serial, "scratch", strlen("scratch")))
		return "/dev/nvme0n1";
	return getenv("DEVBUF_TEST_DISK");
}

long long read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	long long number = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%lld", &number) != 1)
		number = -1;
	fclose(file);
	return number;
}

long long read_key(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	size_t length = strlen(key);
	long long number = -1;
	char line[256];

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, length) && strspn(line + length, ": \t"))
			number = atoll(line + length + strspn(line + length, ": \t"));
	fclose(file);
	return number;
}

int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}
