/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The commands of the tool: one file each. */
#ifndef DEVBUF_TOOL_H
#define DEVBUF_TOOL_H

/* What main() returns. */
enum { DONE = 0, FAILED = 1, USAGE = 2 };

/* argv[0] is the command's name. */
int command_load(int argc, char **argv);

#endif /* DEVBUF_TOOL_H */
