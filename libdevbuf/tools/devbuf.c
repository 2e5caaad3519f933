// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* devbuf COMMAND: device buffers from the shell. `man devbuf` has it all. */
#include <devbuf.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{ "load", command_load, "read files into device buffers, and list the tensors in them" },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void help(FILE *to)
{
	fputs("usage: devbuf COMMAND [ARGUMENT]...\n\n", to);
	for (size_t i = 0; i < NR_COMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].what);
	fputs("\ndevbuf COMMAND --help says more; so does man devbuf.\n", to);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
		help(stdout);
		return DONE;
	}
	if (!strcmp(name, "--version")) {
		printf("devbuf %s\n", devbuf_version());
		return DONE;
	}
	if (*name)
		fprintf(stderr, "devbuf: there is no command '%s'\n", name);
	help(stderr);
	return USAGE;
}
