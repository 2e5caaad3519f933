# SPDX-License-Identifier: GPL-2.0-only
#
# Tables of the commands and constants of uapi/linux/devbuf.h, in reStructuredText: what kernel-doc
# leaves out. The commands' structs are found by the headings of the comments, which name them.

/^ \* struct devbuf_[a-z_]+ - (DEVBUF_|the argument of)/ { heading[$3] = $0 }

/^#define DEVBUF_[A-Z_]+[ \t]+_IO\(DEVBUF_IOC_TYPE, / {
	number = $NF
	sub(/\)$/, "", number)
	command[++commands] = $2
	nr[$2] = number
}

/^\/\*\* define DEVBUF_[A-Z_]+ - .* \*\/$/ {
	constant[++constants] = $3
	text[$3] = $0
	sub(/.* define [A-Z_]+ - /, "", text[$3])
	sub(/ \*\/$/, "", text[$3])
}
/^#define DEVBUF_[A-Z_]+[ \t]+[0-9]/ { value[$2] = $3 }

function row(a, b, c) { printf "%-26s %-7s %s\n", a, b, c }
function rule() { row("==========================", "=======", "==========================================================") }
function table(a, b, c) { rule(); row(a, b, c); rule() }

END {
	table("Command", "Number", "Argument")
	for (i = 1; i <= commands; i++) {
		for (name in heading)
			if (heading[name] ~ command[i] "([^A-Z_]|$)")
				row("``" command[i] "``", nr[command[i]], "struct " name)
	}
	rule()
	print "\nNumbers are those of ``_IO(DEVBUF_IOC_TYPE, number)``.\n"
	table("Constant", "Value", "")
	for (i = 1; i <= constants; i++)
		row("``" constant[i] "``", value[constant[i]], text[constant[i]])
	rule()
	print ""
}
