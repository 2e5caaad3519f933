# SPDX-License-Identifier: GPL-2.0-only
#
# devbuf for people: `make help`. What the kernel's build system reads is Kbuild.
# Everything that is built lies in build/; the kernels for the tests lie outside (tests/vm/kernel).

VERSION := 0.1.0
SOVERSION := 0

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
UDEVDIR ?= /usr/lib/udev/rules.d
CFLAGS ?= -O2 -g
WERROR ?= 1

cflags := -std=gnu11 -Wall -Wextra -pthread -MMD -MP -Ilibdevbuf/include -Iuapi \
	$(if $(filter 1,$(WERROR)),-Werror)
lib_cflags := $(cflags) -Wpedantic -fvisibility=hidden -fPIC
san_cflags := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
test_cflags := $(cflags) -Itests/include -isystem build/kselftest

.PHONY: all help module lib tools examples tests check check-unit demo bench vm style \
	sparse docs install install-lib install-module clean FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: module lib tools tests

help:
	@echo 'make              the module, the library, the tools and the tests'
	@echo 'make module       build/module/<kernel>/devbuf*.ko, for the running kernel; KDIR=… for another one'
	@echo 'make lib          build/lib: libdevbuf, shared and static'
	@echo 'make demo         a camera in a VM fills device buffers; pictures in build/demo'
	@echo 'make check        every test: here, and in VMs with Debian'\''s 6.12 and 6.1 and a debugging kernel'
	@echo 'make check-unit   only the tests that need no kernel; takes seconds'
	@echo 'make vm           a shell in a VM with the driver loaded; KERNEL=6.1 or debug for another one'
	@echo 'make bench        what the main operations cost, by instructions and by time, beside other exporters'
	@echo 'make style        checkpatch for kernel/ and uapi/, clang-format for libdevbuf/'
	@echo 'make sparse       the kernel code through sparse'
	@echo 'make install      all but the tests; DESTDIR and PREFIX are honoured (install-lib, install-module)'
	@echo 'make clean        remove build/'
	@echo 'Variables: W=1 more warnings for the module, WERROR=0 warnings stop nothing, V=1 show commands.'

q := $(if $(V),,@)
# For what one asks for as a whole; a -j that was given stands.
submake = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

# --- the modules ------------------------------------------------------------------------------
#
# KERNEL=6.12, 6.1 or debug: for that kernel of the tests, warnings being errors. KDIR=DIR: for
# that kernel. Neither: for the running kernel. DEVBUF_TEST=1 adds the mock device, KUnit tests and
# drivers for tests.
# A build directory holds links to the sources, so that several kernels are built side by side and
# the tree stays clean.

ifdef KERNEL
module_name := $(KERNEL)
kernel_dir := $(shell tests/vm/kernel $(KERNEL))
$(if $(kernel_dir),,$(error there is no kernel $(KERNEL)))
find_kdir = $(kernel_dir)/build
module_flags := $(if $(filter 1,$(WERROR)),W=1e,W=1)
else ifdef KDIR
module_name := $(shell cat $(KDIR)/include/config/kernel.release 2>/dev/null || basename $(KDIR))
find_kdir = $(KDIR)
else ifneq ($(wildcard /lib/modules/$(shell uname -r)/build/Makefile),)
module_name := $(shell uname -r)
find_kdir = /lib/modules/$(module_name)/build
else
# In a container, say. The newest headers there are will at least show whether it builds.
newest := $(shell ls -d /usr/src/linux-headers-*-amd64 2>/dev/null | sort -V | tail -n 1)
module_name := $(if $(newest),$(patsubst linux-headers-%,%,$(notdir $(newest))),6.12)
find_kdir = $(or $(newest),$$(tests/vm/kernel 6.12)/build)
module_note := There are no headers of the running kernel, $(shell uname -r); building for $(module_name) instead.
endif
module_name := $(module_name)$(if $(DEVBUF_TEST),-test)
module_dir := build/module/$(module_name)
module_src := $(shell find Kbuild kernel uapi -type f 2>/dev/null)

module: $(module_dir)/devbuf.ko

# devbuf.ko stands for all modules that Kbuild names; one that it no longer names is removed. Two VM
# runs may both want them: the second waits, and then finds them made. modpost only warns, so its
# warnings are looked for.
$(module_dir)/devbuf.ko: $(module_src) $(addsuffix /release,$(kernel_dir))
	$(if $(module_note),@echo "$(module_note)" >&2)
	@mkdir -p $(module_dir)
	@echo '  MODULE  $@'
	$(q)kdir=$(find_kdir) && \
	exec 9>$(module_dir)/.lock && flock 9 && \
	find $(module_dir) -xtype l -delete && \
	cp -rsf $(CURDIR)/Kbuild $(CURDIR)/kernel $(CURDIR)/uapi $(module_dir) && \
	{ $(MAKE) -C "$$kdir" M=$(CURDIR)/$(module_dir) $(or $(module_flags),$(if $(W),W=$(W))) \
		$(if $(DEVBUF_TEST),DEVBUF_TEST=1) modules >$(module_dir)/log 2>&1 9>&- || \
		{ cat $(module_dir)/log >&2; exit 1; }; } && \
	for ko in $(module_dir)/*.ko; do \
		grep -qE "/$$(basename $$ko .ko)\.k?o$$" $(module_dir)/modules.order || rm $$ko; done && \
	$(if $(filter W=1e,$(module_flags)),! grep -E '(warning|WARNING): ' $(module_dir)/log >&2 &&) touch $@

sparse:
	$(q)tests/check sparse

# --- the library ------------------------------------------------------------------------------
#
# Queues and files need liburing. Its archive goes into the shared library, so that programs do not
# need it where they run, and its symbols do not show. Programs with libdevbuf.a link it themselves
# (Libs.private). LIBURING=-luring takes the shared one instead.

LIBURING ?= -l:liburing.a
lib_objs := $(patsubst libdevbuf/src/%.c,build/lib/%.o,$(wildcard libdevbuf/src/*.c))
so := libdevbuf.so.$(VERSION)
tools := build/tools/devbuf
tool_objs := $(patsubst libdevbuf/tools/%.c,build/tools/%.o,$(wildcard libdevbuf/tools/*.c))
examples := $(patsubst libdevbuf/examples/%.c,build/examples/%,$(wildcard libdevbuf/examples/*.c))

lib: build/lib/$(so) build/lib/libdevbuf.a build/lib/libdevbuf.pc
tools: $(tools)
examples: $(examples)

build/lib/%.o: libdevbuf/src/%.c
	@mkdir -p $(@D)
	@echo '  CC      $@'
	$(q)$(CC) $(CPPFLAGS) $(CFLAGS) $(lib_cflags) -c -o $@ $<

build/lib/$(so): $(lib_objs) libdevbuf/libdevbuf.map
	@echo '  LINK    $@'
	$(q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -pthread -Wl,-soname,libdevbuf.so.$(SOVERSION) \
		-Wl,--version-script=libdevbuf/libdevbuf.map -Wl,--no-undefined \
		-Wl,--exclude-libs,liburing.a -o $@ $(lib_objs) $(LIBURING)
	$(q)ln -sf $(so) build/lib/libdevbuf.so.$(SOVERSION) && ln -sf $(so) build/lib/libdevbuf.so

build/lib/libdevbuf.a: $(lib_objs)
	@echo '  AR      $@'
	$(q)rm -f $@ && $(AR) rcs $@ $^

build/lib/libdevbuf.pc: libdevbuf/libdevbuf.pc.in Makefile FORCE
	$(q)mkdir -p $(@D) && sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' \
		-e 's|@VERSION@|$(VERSION)|g' $< >$@

# Programs link the archive, so that they run from anywhere, also in a VM. An example is one file,
# the tool all of its directory's.
build/examples/demo: LDLIBS += -lpng
build/examples/demo: build/examples/v4l2/camera.o
$(tools): LDLIBS += -l:libjansson.a
$(tools): $(tool_objs)
define program
build/$(1)/%.o: libdevbuf/$(1)/%.c
	@mkdir -p $$(@D)
	@echo '  CC      $$@'
	$(q)$$(CC) $$(CPPFLAGS) $$(CFLAGS) $$(cflags) -Wpedantic -c -o $$@ $$<
build/$(1)/%: build/$(1)/%.o build/lib/libdevbuf.a
	@echo '  LINK    $$@'
	$(q)$$(CC) $$(CFLAGS) $$(LDFLAGS) -pthread -o $$@ $$(filter %.o,$$^) build/lib/libdevbuf.a \
		$$(LDLIBS) $$(LIBURING)
endef
$(foreach d,tools examples,$(eval $(call program,$(d))))

# --- the tests --------------------------------------------------------------------------------
#
# One program per .c file, named after it, except common*.c, which every program of that
# directory links. Those for the VM are static; tests/unit is built for both places.

test_src = $(filter-out tests/$(1)/common%,$(wildcard tests/$(1)/*.c))
common_obj = $(patsubst tests/%.c,build/$(2)/%.o,$(wildcard tests/$(1)/common*.c))
vm_dirs := uapi fail clients bench unit
vm_tests := $(foreach d,$(vm_dirs),$(patsubst tests/%.c,build/tests/%,$(call test_src,$(d))))
unit_tests := $(patsubst tests/unit/%.c,build/unit/%,$(call test_src,unit))
san_tool := build/san/tools/devbuf
harness := build/kselftest/kselftest_harness.h

tests: $(vm_tests) $(unit_tests) $(san_tool)

$(harness): tests/vm/kernel
	@mkdir -p $(@D)
	$(q)src=$$(tests/vm/kernel source) && \
		cp $$src/tools/testing/selftests/kselftest.h $$src/tools/testing/selftests/kselftest_harness.h $(@D)

build/tests/%.o: tests/%.c | $(harness)
	@mkdir -p $(@D)
	@echo '  CC      $@'
	$(q)$(CC) $(CPPFLAGS) $(CFLAGS) $(test_cflags) -c -o $@ $<

# $(1): directory. All but unit issue commands with the functions of the raw ABI's tests.
define vm_link
build/tests/$(1)/%: build/tests/$(1)/%.o $(call common_obj,$(1),tests) \
		$(if $(filter fail bench clients,$(1)),$(call common_obj,uapi,tests)) build/lib/libdevbuf.a
	$(q)$$(CC) $$(CFLAGS) $$(LDFLAGS) -static -pthread -o $$@ $$^ -luring
endef
$(foreach d,$(vm_dirs),$(eval $(call vm_link,$(d))))
build/tests/clients/vivid: build/examples/v4l2/camera.o

build/unit/lib/%.o: libdevbuf/src/%.c
	@mkdir -p $(@D)
	$(q)$(CC) $(CPPFLAGS) $(CFLAGS) $(cflags) $(san_cflags) -c -o $@ $<
# liburing's shared library, so that a test can put itself before it.
build/san/unit/%.o: tests/unit/%.c | $(harness)
	@mkdir -p $(@D)
	@echo '  CC      $@'
	$(q)$(CC) $(CPPFLAGS) $(CFLAGS) $(test_cflags) $(san_cflags) -c -o $@ $<
build/unit/%: build/san/unit/%.o $(call common_obj,unit,san) $(lib_objs:build/lib/%=build/unit/lib/%)
	$(q)$(CC) $(CFLAGS) $(LDFLAGS) $(san_cflags) -pthread -o $@ $^ -luring

# The tool too: it reads what comes from anywhere.
build/san/tools/%.o: libdevbuf/tools/%.c
	@mkdir -p $(@D)
	$(q)$(CC) $(CPPFLAGS) $(CFLAGS) $(cflags) $(san_cflags) -c -o $@ $<
$(san_tool): $(tool_objs:build/%=build/san/%) $(lib_objs:build/lib/%=build/unit/lib/%)
	$(q)$(CC) $(CFLAGS) $(LDFLAGS) $(san_cflags) -pthread -o $@ $^ -l:libjansson.a $(LIBURING)

check-unit: $(unit_tests) $(san_tool)
	$(q)tests/check unit

check:
	$(q)tests/deps ensure build vm debug check
	$(q)$(submake) lib tools tests
	$(q)tests/check

style:
	$(q)tests/check style

# --- in a VM ----------------------------------------------------------------------------------

vm:
	$(q)tests/vm/run -k $(or $(KERNEL),6.12) -i

demo:
	$(q)tests/deps ensure build demo vm
	$(q)$(submake) build/examples/demo
	$(q)rm -rf build/demo
	$(q)tests/vm/run -l demo -m vivid -o build/demo -- build/examples/demo /out
	@echo 'The pictures: build/demo/frame.png and build/demo/swapped.png'

# With -icount the guest's clock counts instructions, so the figures are those of any machine. The
# disk of that guest takes no time, for while it waits instructions pass that nobody executes.
# BENCH=TEXT: only those rows.
bench_vm := tests/vm/run -t 900 -M 2G -m vgem

bench: build/tests/bench/bench
	@echo '1 of 2: by instructions.'
	$(q)$(bench_vm) -l bench -m 'null_blk gb=1 irqmode=0' -q '-icount shift=0,sleep=off -smp 1' \
		-a mitigations=off -- $< "$(BENCH)"
	@echo; echo '2 of 2: by time.'
	$(q)$(bench_vm) -l bench-time -d 64M -- $< "$(BENCH)"

ifneq ($(wildcard Documentation/Makefile),)
docs:
	$(q)$(MAKE) -C Documentation
endif

# --- installation -----------------------------------------------------------------------------

install: install-lib install-module

install-lib: lib tools
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include/linux $(DESTDIR)$(PREFIX)/bin \
		$(DESTDIR)$(UDEVDIR)
	install -m 755 build/lib/$(so) $(DESTDIR)$(LIBDIR)
	ln -sf $(so) $(DESTDIR)$(LIBDIR)/libdevbuf.so.$(SOVERSION)
	ln -sf $(so) $(DESTDIR)$(LIBDIR)/libdevbuf.so
	install -m 644 build/lib/libdevbuf.a $(DESTDIR)$(LIBDIR)
	install -m 644 build/lib/libdevbuf.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m 644 libdevbuf/include/devbuf.h $(DESTDIR)$(PREFIX)/include
	install -m 644 uapi/linux/devbuf.h $(DESTDIR)$(PREFIX)/include/linux
	install -m 644 libdevbuf/60-devbuf.rules $(DESTDIR)$(UDEVDIR)
	$(if $(tools),install -m 755 $(tools) $(DESTDIR)$(PREFIX)/bin)
	for page in $(wildcard libdevbuf/man/*.[1-9]); do \
		install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$${page##*.} $$page || exit; done

# Distributions' headers ask for signing and lack the key; without one the modules stay unsigned.
install-module: module
	kdir=$(find_kdir) && $(MAKE) -C $$kdir M=$(CURDIR)/$(module_dir) INSTALL_MOD_PATH=$(DESTDIR) \
		$$(test -e $$kdir/certs/signing_key.pem || echo CONFIG_MODULE_SIG_ALL=) modules_install \
	$(if $(DESTDIR),,&& depmod $$(cat $$kdir/include/config/kernel.release))

clean:
	rm -rf build

-include $(wildcard build/lib/*.d build/tools/*.d build/examples/*.d build/examples/*/*.d build/tests/*/*.d build/unit/lib/*.d build/san/*/*.d)
