#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Usage: probe.sh OUTPUT PROBE.c... -- COMPILER FLAG...
#
# Compiles each probe, and writes a header that defines DEVBUF_HAVE_<PROBE> for
# those that the kernel at hand can compile.
set -eu

out=$1
shift
probes=
while [ "$1" != -- ]; do
	probes="$probes $1"
	shift
done
shift

{
	echo "/* Made by probe.sh. */"
	for probe in $probes; do
		name=$(basename "$probe" .c | tr '[:lower:]-' '[:upper:]_')
		if "$@" "$probe" >/dev/null 2>&1; then
			echo "#define DEVBUF_HAVE_$name 1"
		fi
	done
} >"$out"
