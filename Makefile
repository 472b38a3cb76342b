# SPDX-License-Identifier: Apache-2.0
# cufrag. `make help` lists the targets and variables.
#
# What is in the folders is built: sources by wildcard, registries (policies, readers,
# commands, charts, kernels) generated from file names. Everything generated is under
# build/; only `docs`, `plots`, `bench`, `baseline` and `demo` write elsewhere, and say where.

BUILD   ?= release
CUDA    ?= auto
WERROR  ?= 0
V       ?= 0
CC      ?= gcc
PREFIX  ?= /usr/local
DESTDIR ?=
DEVICE  ?= sim
# Recordings that are too big for the repository; tests on them are skipped where absent.
SHARED_TRACES ?= ../shared/traces
export SHARED_TRACES
# seconds per fuzz target of `make fuzz-smoke`
FUZZ_SECONDS  ?= 20

# make T=name runs one test
ifdef T
.DEFAULT_GOAL := check
endif

MAKEFLAGS += --no-builtin-rules
ifeq ($(origin CC),default)
CC := gcc
endif

B       := build/$(BUILD)
GEN     := $(B)/gen
RELEASE := 0.1.0
VERSION := $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || \
             { h=$$(git rev-parse --short HEAD 2>/dev/null) && echo "$(RELEASE)-$$h"; } || echo $(RELEASE))

ifeq ($(V),0)
Q := @
say = @printf '  %-7s %s\n' $(1) $(2)
endif

# ---- compiler flags ---------------------------------------------------------
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith
ifeq ($(WERROR),1)
WARN += -Werror
endif
# two counters side by side are not worth one wide load: it has to wait for the narrow stores
CFLAGS_release := -O3 -g -DNDEBUG -fno-tree-slp-vectorize
CFLAGS_debug   := -O0 -g3
CFLAGS_asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CFLAGS_tsan    := -O1 -g -fsanitize=thread
CFLAGS_cov     := -O0 -g --coverage
# clang 14 does not say by a macro that it sanitizes, gcc does
CFLAGS_fuzz    := $(CFLAGS_asan) -fsanitize=fuzzer-no-link -D__SANITIZE_ADDRESS__
LDFLAGS_asan   := -fsanitize=address,undefined
LDFLAGS_tsan   := -fsanitize=thread
LDFLAGS_cov    := --coverage
LDFLAGS_fuzz   := -fsanitize=address,undefined
ifeq ($(filter $(BUILD),release debug asan tsan cov fuzz),)
  $(error BUILD=$(BUILD) is none of release debug asan tsan cov fuzz)
endif
PKGS     := libarchive libzstd jansson libxxhash sqlite3
PKG_CF   := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LD   := $(shell pkg-config --libs $(PKGS) 2>/dev/null || echo -larchive -lzstd -ljansson -lxxhash -lsqlite3)
CPPFLAGS += -D_GNU_SOURCE -Isrc/include -Isrc -Ipolicies -Ipolicies/common -I$(GEN) $(PKG_CF)
ALL_CFLAGS  := -std=c17 $(WARN) $(CFLAGS_$(BUILD)) $(CFLAGS)
# as needed: libarchive is opened when a compressed file is (src/trace/input/archive_lib.c)
ALL_LDFLAGS := -rdynamic -Wl,--as-needed $(LDFLAGS_$(BUILD)) $(LDFLAGS)
LDLIBS   := $(PKG_LD) -lm -lpthread -ldl -lrt

# ---- CUDA: auto takes a complete toolkit if there is one; both outcomes build ----
NVCC ?= $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_ROOT  := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
CUDA_LIB   := $(patsubst %/libcudart_static.a,%,$(firstword $(wildcard \
              $(CUDA_ROOT)/lib64/libcudart_static.a $(CUDA_ROOT)/lib/libcudart_static.a \
              $(CUDA_ROOT)/lib/*/libcudart_static.a $(CUDA_ROOT)/targets/*/lib/libcudart_static.a)))
CUDA_INC   := $(patsubst %/cuda_runtime_api.h,%,$(firstword $(wildcard \
              $(CUDA_ROOT)/include/cuda_runtime_api.h $(CUDA_ROOT)/targets/*/include/cuda_runtime_api.h)))
CUDA_LACKS := $(if $(NVCC),$(if $(CUDA_INC),$(if $(CUDA_LIB),,libcudart_static.a),cuda_runtime_api.h),nvcc)
ifeq ($(filter $(CUDA),auto 0 1),)
  $(error CUDA=$(CUDA) is none of auto 0 1)
endif
ifeq ($(CUDA),1)
  ifneq ($(CUDA_LACKS),)
    $(error CUDA=1 but no $(CUDA_LACKS) found: set CUDA_HOME or NVCC)
  endif
endif
HAVE_CUDA := 0
ifeq ($(CUDA),0)
  CUDA_SAY := CUDA: switched off (CUDA=0), the cuda device is left out
else ifneq ($(CUDA_LACKS),)
  CUDA_SAY := CUDA: no $(CUDA_LACKS) found, the cuda device is left out (CUDA=$(CUDA))
else ifeq ($(wildcard src/device/cuda/cuda.c),)
  CUDA_SAY := CUDA: $(NVCC), but this version has no cuda device yet
else
  HAVE_CUDA := 1
endif

# ---- sources: what is in the folders is built ---------------------------------
# folders of the library, two levels deep; a new folder needs no edit
LIB_DIRS   := base lib answer device inside/nogpu trace replay inside/live verify recording metrics plan report explain fleet sweep session
CUDA_SRC   := $(sort $(filter-out src/device/cuda/cuda_absent.c,$(wildcard src/device/cuda/*.c)))
LIB_SRC    := $(sort $(filter-out $(CUDA_SRC) src/device/cuda/cuda_absent.c,\
              $(foreach d,$(LIB_DIRS),$(wildcard src/$(d)/*.c src/$(d)/*/*.c))))
POLICY_SRC := $(sort $(wildcard policies/*.c))
COMMON_SRC := $(sort $(wildcard policies/*/*.c))
CLI_SRC    := $(sort $(wildcard src/cli/*.c src/cli/*/*.c src/launch/*.c)) src/main.c
KERNEL_SRC :=
ifeq ($(HAVE_CUDA),1)
  # Machine code for the data-centre parts of the toolkit; every other card since the
  # base architecture compiles the few small kernels once from the PTX.
  NVCC_RELEASE := $(shell $(NVCC) --version | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1\2/p')
  GPU_PTX    ?= $(shell test $(NVCC_RELEASE) -ge 130 && echo 75 || echo 60)
  GPU_ARCH   ?= 80 90 $(shell test $(NVCC_RELEASE) -ge 128 && echo 100 120)
  KERNEL_SRC := $(sort $(wildcard kernels/*.cu))
  LIB_SRC    += $(CUDA_SRC)
  CPPFLAGS   += $(if $(filter-out /usr/include,$(CUDA_INC)),-isystem $(CUDA_INC)) -DFRAG_HAVE_CUDA=1
  LDLIBS     += -L$(CUDA_LIB) -lcudart_static -lrt -ldl
  CUDA_SAY   := CUDA: $(NVCC), machine code for sm $(strip $(GPU_ARCH)), the rest from PTX $(GPU_PTX)
else
  LIB_SRC    += $(wildcard src/device/cuda/cuda_absent.c)
endif

LIB_OBJ  := $(patsubst %.c,$(B)/obj/%.o,$(LIB_SRC) $(COMMON_SRC) $(POLICY_SRC)) \
            $(patsubst %.cu,$(B)/obj/%.o,$(KERNEL_SRC))
CLI_OBJ  := $(patsubst %.c,$(B)/obj/%.o,$(CLI_SRC)) $(B)/obj/inside_files_data.o
UNIT_SRC := $(sort $(wildcard tests/unit/*/test_*.c tests/policies/test_*.c))
CONF_SRC := $(sort $(wildcard tests/conformance/test_*.c))
GOLD_SRC := $(sort $(wildcard tests/golden/test_*.c))
GPU_SRC  := $(sort $(wildcard tests/gpu/test_*.c))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
TEST_SRC := $(UNIT_SRC) $(CONF_SRC) $(GOLD_SRC) $(GPU_SRC)
TEST_BIN := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))
FUZZ_BIN := $(patsubst tests/%.c,$(B)/tests/%,$(FUZZ_SRC))
SUPPORT_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(sort $(wildcard tests/support/*.c)))

# `cufrag sweep` under mpirun: a shared object, built where there is an MPI
MPICC ?= $(shell command -v mpicc 2>/dev/null)
MPI_MODULE := $(if $(and $(MPICC),$(wildcard src/mpi/ranks_mpi.c)),$(B)/cufrag_mpi.so)

# what monitor can do without (src/cli/monitor): said, where it is left out
lacks = $(shell $(CC) -E -include $(1) -x c /dev/null > /dev/null 2>&1 || echo '$(2)')
MONITOR_LACKS = $(strip $(call lacks,curses.h,monitor: no curses.h found$(comma) the full screen is left out (libncurses-dev).) \
	$(call lacks,microhttpd.h,monitor: no microhttpd.h found$(comma) --listen is left out (libmicrohttpd-dev).))

LIVE_SO := $(if $(wildcard src/inside/live/*.c),$(B)/libcufrag_torch.so)

.PHONY: all
all: $(B)/cufrag $(LIVE_SO) $(MPI_MODULE)
	@echo '$(CUDA_SAY)'
	$(Q)$(if $(MONITOR_LACKS),echo '$(MONITOR_LACKS)')

# ---- generated files: written every time, renewed only when the content differs ----
# So a new, renamed or deleted source renews the list, and what includes it.
define renew
	$(Q)$(1) > $@.tmp; if cmp -s $@.tmp $@; then rm -f $@.tmp; else mv $@.tmp $@; fi
endef

# registries: FRAG_ENTRY(symbol) for every file that matches, by name
define registry
$(GEN)/$(1): FORCE | $(GEN)
	$$(call renew,for f in $(sort $(patsubst $(3)%,%,$(basename $(notdir $(2))))); do echo "FRAG_ENTRY($$$$f)"; done)
endef
$(eval $(call registry,policy_list.inc,$(POLICY_SRC)))
$(eval $(call registry,reader_list.inc,$(wildcard src/trace/readers/read_*.c),read_))
$(eval $(call registry,cmd_list.inc,$(wildcard src/cli/cmd_*.c src/cli/*/cmd_*.c),cmd_))
$(eval $(call registry,chart_list.inc,$(wildcard src/report/charts/chart_*.c),chart_))
$(eval $(call registry,kernel_list.inc,$(KERNEL_SRC)))
$(eval $(call registry,way_list.inc,$(wildcard src/launch/way_*.c),way_))
GENERATED := $(addprefix $(GEN)/,policy_list.inc reader_list.inc cmd_list.inc chart_list.inc kernel_list.inc way_list.inc inside_file_list.inc conv_list.inc cost_list.inc)

# a table as C: one FRAG_ROW(…) for each of its lines but the first
$(GEN)/conv_list.inc: src/inside/nogpu/conv_table.csv | $(GEN)
	$(Q)sed '1d; s/.*/FRAG_ROW(&)/' $< > $@

# the cost profiles of measured cards: results/CARD/profile.csv
COST_CSV := $(sort $(wildcard results/*/profile.csv))
$(GEN)/cost_list.inc: $(COST_CSV) scripts/build/cost_inc.sh src/include/frag/device.h src/device/sim/cost.h | $(GEN)
	$(Q)scripts/build/cost_inc.sh $(COST_CSV) > $@

$(GEN):
	$(Q)mkdir -p $@

# a change of flags rebuilds everything; one of the version, only what names it
quoted = '$(subst ','\'',$(1))'
FLAGS_NOW := $(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LDLIBS) $(HAVE_CUDA)
$(B)/flags: FORCE | $(GEN)
	$(call renew,printf '%s\n' $(call quoted,$(FLAGS_NOW)))
$(B)/version: FORCE | $(GEN)
	$(call renew,echo $(call quoted,$(VERSION)))
$(B)/lib_objects: FORCE | $(GEN)
	$(call renew,echo $(LIB_OBJ))
$(B)/cli_objects: FORCE | $(GEN)
	$(call renew,echo $(CLI_OBJ))
$(B)/test_flags: FORCE | $(GEN)
	$(call renew,echo $(call quoted,$(SHARED_TRACES)) $(SUPPORT_OBJ))
.PHONY: FORCE
FORCE:

comma := ,

# ---- rules ---------------------------------------------------------------------
$(B)/obj/%.o: %.c $(B)/flags | $(GENERATED)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

VERSION_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(shell grep -lw FRAG_VERSION $(LIB_SRC) $(CLI_SRC) /dev/null 2>/dev/null))
ifneq ($(strip $(VERSION_OBJ)),)
$(VERSION_OBJ): $(B)/version
$(VERSION_OBJ): CPPFLAGS += -DFRAG_VERSION='"$(VERSION)"'
endif

$(B)/libcufrag.a: $(LIB_OBJ) $(B)/lib_objects
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)

# (a wheel brings libraries in cufrag.libs beside the program)
$(B)/cufrag: $(CLI_OBJ) $(B)/libcufrag.a $(B)/cli_objects
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(CLI_OBJ) $(B)/libcufrag.a $(LDLIBS) -Wl,-rpath,'$$ORIGIN/cufrag.libs'

# What `record` puts into the user's program: the recorder, the pretended card as a library of its own, with the
# parts of base and device that it needs, and the Python files beside it. All of it is inside the program
# (gen/inside_file_list.inc has FRAG_ENTRY("NAME", number) for each), which writes it into the user's cache.
INSIDE_FILES := $(B)/libcufrag_nogpu.so $(B)/libcufrag_record.so $(B)/libcufrag_start.so $(wildcard scripts/record_torch.py) $(sort $(wildcard src/inside/nogpu/python/*.py src/inside/nogpu/python/*.cpp)) \
	$(LIVE_SO) $(sort $(wildcard src/inside/python/cufrag/*.py))
NOGPU_OBJ   := $(patsubst %.c,$(B)/pic/%.o,$(sort $(wildcard src/inside/nogpu/*.c)))
NOGPU_PARTS := $(patsubst %.c,$(B)/pic/%.o,$(sort $(wildcard src/base/*.c src/lib/*.c src/device/*.c src/device/sim/*.c)))
EXTERNAL_API := $(wildcard src/base/external_api.h)
$(B)/pic/%.o: %.c $(EXTERNAL_API) $(B)/flags | $(GEN)/conv_list.inc $(GEN)/cost_list.inc
	$(call say,PIC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -std=c17 $(WARN) $(CFLAGS_release) -fPIC -fvisibility=hidden $(addprefix -include ,$(EXTERNAL_API)) -MMD -MP -c -o $@ $<
$(B)/pic/parts.a: $(NOGPU_PARTS)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(B)/libcufrag_nogpu.so: $(NOGPU_OBJ) $(B)/pic/parts.a
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,libcufrag_nogpu.so -Wl,--exclude-libs,ALL -Wl,-z,defs -o $@ $(NOGPU_OBJ) $(B)/pic/parts.a -ldl -lpthread -lm
RECORD_OBJ  := $(patsubst %.c,$(B)/pic/%.o,$(sort $(wildcard src/inside/record/*.c src/base/live_page.c src/base/library.c)))
$(B)/libcufrag_record.so: $(RECORD_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,libcufrag_record.so -Wl,-z,defs -o $@ $^ -ldl -lpthread -lrt
START_OBJ := $(patsubst %.c,$(B)/pic/%.o,$(sort $(wildcard src/inside/start/*.c)))
$(B)/libcufrag_start.so: $(START_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,libcufrag_start.so -Wl,-z,defs -o $@ $^
# The policies as PyTorch's allocator: they, the front of devices, and the driver opened at run time.
LIVE_OBJ := $(patsubst %.c,$(B)/pic/%.o,$(sort $(wildcard src/inside/live/*.c)) $(POLICY_SRC) $(COMMON_SRC) \
	$(addprefix src/replay/,spec.c registry.c instance.c foreign.c))
$(LIVE_OBJ): | $(GENERATED)
$(B)/libcufrag_torch.so: $(LIVE_OBJ) $(B)/pic/parts.a
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,libcufrag_torch.so -Wl,--strip-debug -Wl,-z,defs -Wl,-Bsymbolic -o $@ $(LIVE_OBJ) $(B)/pic/parts.a -ldl -lpthread -lm -lrt
$(GEN)/inside_file_list.inc: FORCE | $(GEN)
	$(call renew,i=0; for f in $(foreach f,$(INSIDE_FILES),$(if $(filter src/inside/python/%,$f),$(f:src/inside/python/%=%),$(notdir $f))); do echo "FRAG_ENTRY(\"$$f\"$(comma) $$i)"; i=$$((i+1)); done)
$(B)/obj/inside_files_data.o: $(INSIDE_FILES) $(GEN)/inside_file_list.inc Makefile
	$(Q)mkdir -p $(@D)
	$(Q)i=0; { echo '	.section .rodata'; for f in $(INSIDE_FILES); do \
		printf '	.global frag_inside_file_%s, frag_inside_file_%s_end\nfrag_inside_file_%s:\n	.incbin "%s"\nfrag_inside_file_%s_end:\n	.byte 0\n' $$i $$i $$i $$f $$i; i=$$((i+1)); done; \
		echo '	.section .note.GNU-stack,"",%progbits'; } > $(B)/inside_files_data.S
	$(Q)$(CC) -c -o $@ $(B)/inside_files_data.S

$(B)/cufrag_mpi.so: src/mpi/ranks_mpi.c src/mpi/ranks.h $(B)/flags
	$(call say,MPICC,$@)
	$(Q)$(MPICC) $(CPPFLAGS) -std=c17 $(WARN) $(CFLAGS_$(BUILD)) -fPIC -shared -o $@ $<

# Kernels: kernels/NAME.cu -> a fat binary inside the program, from frag_fatbin_NAME up to
# frag_fatbin_NAME_end; gen/kernel_list.inc has FRAG_ENTRY(NAME) for each. The link stays
# plain C.
$(B)/kernels/%.fatbin: kernels/%.cu $(B)/flags
	$(call say,NVCC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) --fatbin -std=c++17 -O3 -lineinfo -Werror all-warnings -Isrc/include -MMD -MF $(@:.fatbin=.d) -MT $@ \
		-gencode arch=compute_$(GPU_PTX),code=compute_$(GPU_PTX) \
		$(foreach a,$(GPU_ARCH),-gencode arch=compute_$(a),code=sm_$(a)) -o $@ $<

$(B)/kernels/%.S: Makefile
	$(Q)mkdir -p $(@D)
	$(Q)printf '%s\n' '	.section .rodata' '	.balign 64' '	.global frag_fatbin_$*, frag_fatbin_$*_end' \
		'frag_fatbin_$*:' '	.incbin "$(B)/kernels/$*.fatbin"' 'frag_fatbin_$*_end:' '	.byte 0' \
		'	.section .note.GNU-stack,"",%progbits' > $@

$(B)/obj/kernels/%.o: $(B)/kernels/%.S $(B)/kernels/%.fatbin
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -c -o $@ $<

$(B)/tests/%: $(B)/obj/tests/%.o $(SUPPORT_OBJ) $(B)/libcufrag.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(SUPPORT_OBJ) $(B)/libcufrag.a $(LDLIBS) -lcmocka

# A fuzz target is one function; libFuzzer drives it in BUILD=fuzz, else the replay driver
# feeds it the files named on its command line.
FUZZ_MAIN := $(if $(filter fuzz,$(BUILD)),-fsanitize=fuzzer,$(B)/obj/tests/fuzz/replay_main.o)
$(B)/tests/fuzz/%: $(B)/obj/tests/fuzz/%.o $(filter %.o,$(FUZZ_MAIN)) $(B)/libcufrag.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(FUZZ_MAIN) $(B)/libcufrag.a $(LDLIBS)

$(B)/obj/tests/%.o: CPPFLAGS += -I. -Itests/support -DFRAG_SHARED_TRACES='"$(SHARED_TRACES)"' -DFRAG_VERSION='"test"'
$(patsubst tests/%.c,$(B)/obj/tests/%.o,$(TEST_SRC)) $(SUPPORT_OBJ): $(B)/test_flags

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(CLI_OBJ) $(SUPPORT_OBJ) $(NOGPU_OBJ) $(NOGPU_PARTS) $(LIVE_OBJ) $(RECORD_OBJ) $(START_OBJ)) \
	$(patsubst tests/%.c,$(B)/obj/tests/%.d,$(TEST_SRC) $(FUZZ_SRC) tests/fuzz/replay_main.c) \
	$(patsubst %.cu,$(B)/%.d,$(KERNEL_SRC))
.SECONDARY:

.PHONY: tests-build
tests-build: $(TEST_BIN) $(FUZZ_BIN) $(B)/cufrag $(MPI_MODULE)

# ---- tests -----------------------------------------------------------------------
# Sub-makes for other variants get their own folder, also when B was given.
AGAIN = +@$(MAKE) --no-print-directory
other = BUILD=$(1) $(if $(filter command line,$(origin B)),B=$(B)-$(1))

.PHONY: setup check test test-run test-gpu asan tsan fuzz-smoke
setup:
	@scripts/build/setup.sh

#: check      quick tests: units, conformance, command line, golden counts, fuzz corpus; no GPU
#            T=name: this one only, as T=base/opt or T=cli/help_each
check: tests-build
	@scripts/build/run_tests.sh --quick $(if $(T),--only $(T)) $(B)

#: test       install missing packages, then every test there is
test: setup
	$(AGAIN) test-run
test-run: tests-build
	@scripts/build/run_tests.sh $(B)

#: test-gpu   tests on a real card; skipped where there is none
test-gpu: tests-build
	@scripts/build/run_tests.sh --gpu $(B)

#: test-torch fetch PyTorch into build/torch-env (1 to 2 GB) and record small trainings without a GPU
.PHONY: test-torch
test-torch: $(B)/cufrag
	@tests/torch/run.sh --fetch $(B)/cufrag

#: asan       check under AddressSanitizer and UndefinedBehaviorSanitizer
asan:
	$(AGAIN) $(call other,asan) check

#: tsan       the threaded parts under ThreadSanitizer
tsan:
	$(AGAIN) $(call other,tsan) tsan-run
.PHONY: tsan-run
tsan-run: tests-build
	@scripts/build/run_tests.sh --threads $(B)

#: fuzz-smoke every fuzz target for FUZZ_SECONDS, with clang
fuzz-smoke:
	$(AGAIN) $(call other,fuzz) CC=clang fuzz-run
.PHONY: fuzz-run
fuzz-run: $(FUZZ_BIN)
	@scripts/build/fuzz.sh $(B) $(FUZZ_SECONDS)

# ---- demo, figures, documents -------------------------------------------------------
.PHONY: demo demo-run bench plots baseline docs
#: demo       install missing packages, verify and compare bundled traces, name the report
demo: setup
	$(AGAIN) demo-run
demo-run: $(B)/cufrag
	@scripts/demo.sh $(B)/cufrag $(DEVICE)

#: bench      measure speed and memory into results/performance/ (LONG=1: 100 M events streamed, not 20 M)
bench: $(B)/cufrag $(B)/bench_read
	@SHARED_TRACES='$(SHARED_TRACES)' scripts/bench.sh $(if $(LONG),--long) $(B)
$(B)/bench_read: scripts/build/bench_read.c $(B)/libcufrag.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(B)/libcufrag.a $(LDLIBS)

#: counts     instructions of fixed runs (valgrind) against tests/counts/; counts-update rewrites them
.PHONY: counts counts-update
counts: $(B)/cufrag
	@scripts/build/count_check.sh $(B)
counts-update: $(B)/cufrag
	@scripts/build/count_check.sh --update $(B)

#: plots      make the README's charts again, into docs/img/
plots: $(B)/cufrag
	@scripts/build/plots.sh $(B)/cufrag

#: baseline   rewrite the golden counts of tests/golden/ from this build
baseline: $(B)/cufrag
	@tests/golden/run.sh --rewrite $(B)/cufrag

#: docs       renew the generated parts of docs/
docs: $(B)/cufrag
	@scripts/build/docs.sh $(B)/cufrag

# ---- lint ------------------------------------------------------------------------
HEADERS   = $(filter-out $(if $(filter 0,$(HAVE_CUDA)),src/device/cuda/cuda_%),$(sort $(shell find src policies tests/support -name '*.h')))
FORMATTED = $(sort $(shell find src policies tests -name '*.[ch]'))

# clock.h wants POSIX and is for the parts of cufrag itself
PUBLIC := $(filter-out %/clock.h,$(sort $(wildcard src/include/frag/*.h)))
#: hdr-public the public headers are C11 and C++, too
.PHONY: hdr-public
hdr-public: $(GENERATED)
	$(Q)for h in $(PUBLIC); do \
		for as in 'c -std=c11' 'c++ -std=c++17'; do \
			$(CC) -Isrc/include -Isrc -Wall -Wextra -Werror -fsyntax-only -x $$as -include $$h /dev/null || \
				{ echo "hdr-public: $$h is no $$as" >&2; exit 1; }; done; done
	@echo 'hdr-public: C11 and C++'

.PHONY: lint layers hdr-check format format-check cppcheck tidy docs-check
#: lint       layers, headers, format, cppcheck, clang-tidy, generated docs
lint: layers hdr-check hdr-public format-check cppcheck tidy docs-check
	@echo 'lint: clean'

layers:
	@scripts/build/check_layers.sh

#: hdr-check  every header compiles alone
hdr-check: $(GENERATED)
	$(Q)for h in $(HEADERS); do \
		$(CC) $(CPPFLAGS) -I. -Itests/support -std=c17 $(WARN) -fsyntax-only -x c \
			-include $$h /dev/null || { echo "hdr-check: $$h does not compile alone" >&2; exit 1; }; done
	@echo 'hdr-check: $(words $(HEADERS)) headers compile alone'

#: format     reformat all C files in place
format:
	$(Q)clang-format -i $(FORMATTED)
format-check:
	$(Q)clang-format --dry-run -Werror $(FORMATTED)
	@echo 'format-check: clean'

cppcheck: $(GENERATED)
	$(Q)cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,performance,portability \
		--inline-suppr --suppressions-list=scripts/build/cppcheck.txt --library=posix \
		-D__GNUC__ -D_GNU_SOURCE -Isrc/include -Isrc -Ipolicies -Ipolicies/common -I$(GEN) \
		-j 2 $(LIB_SRC) $(COMMON_SRC) $(POLICY_SRC) $(CLI_SRC)
	@echo 'cppcheck: clean'

# The analyzer's default of 225,000 nodes a function takes three times as long and has found nothing more
# here; `make tidy TIDY_NODES=225000` before a release.
TIDY_NODES ?= 75000
tidy: $(GENERATED)
	$(Q)printf '%s\n' $(LIB_SRC) $(COMMON_SRC) $(POLICY_SRC) $(CLI_SRC) | xargs -P 2 -I@ \
		clang-tidy --quiet --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang \
			--extra-arg=max-nodes=$(TIDY_NODES) @ -- -std=c17 $(CPPFLAGS) -DFRAG_VERSION='""' 2> $(B)/tidy.err || { cat $(B)/tidy.err >&2; exit 1; }
	@echo 'tidy: clean'

docs-check: $(B)/cufrag
	@scripts/build/docs.sh --check $(B)/cufrag

# ---- install, clean, help ----------------------------------------------------------
BIN  := $(DESTDIR)$(PREFIX)/bin
LIB  := $(DESTDIR)$(PREFIX)/lib
INC  := $(DESTDIR)$(PREFIX)/include
SHARE := $(DESTDIR)$(PREFIX)/share
DATA := $(SHARE)/cufrag
DOCS := $(SHARE)/doc/cufrag
.PHONY: install uninstall deb clean help
#: install    into $(DESTDIR)$(PREFIX): program, recorder, library, manual pages, completion, documents
install: $(B)/cufrag $(B)/libcufrag.a $(LIVE_SO)
	install -d $(BIN) $(LIB)/pkgconfig $(INC)/frag/metrics $(DATA)/plot $(DOCS)/docs/img $(DOCS)/results/nogpu/img $(DOCS)/docs/grafana $(SHARE)/man/man1 \
		$(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	install -m 755 $(B)/cufrag $(BIN)/cufrag
	install -m 755 scripts/record_torch.py $(BIN)/cufrag-record-torch
	install -m 644 $(B)/libcufrag.a $(LIB)
ifneq ($(LIVE_SO),)
	install -d $(LIB)/cufrag/cufrag
	install -m 644 $(LIVE_SO) $(wildcard src/inside/python/cufrag/*.py) $(LIB)/cufrag/cufrag
endif
	install -m 644 $(PUBLIC) $(INC)/frag
	install -m 644 src/metrics/metrics.def $(INC)/frag/metrics
	install -m 644 $(wildcard scripts/plot/*) $(DATA)/plot
	install -m 644 README.md CHANGELOG.md LICENSE $(DOCS)
	install -m 644 $(wildcard docs/*.md) $(DOCS)/docs
	install -m 644 $(wildcard docs/img/*) $(DOCS)/docs/img
	install -m 644 $(wildcard results/nogpu/img/*) $(DOCS)/results/nogpu/img
	install -m 644 $(wildcard docs/grafana/*) $(DOCS)/docs/grafana
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' 'Name: cufrag' \
		'Description: replay of GPU memory histories through any allocation policy' 'Version: $(VERSION)' \
		'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lcufrag $(LDLIBS)' > $(LIB)/pkgconfig/cufrag.pc
	@$(B)/cufrag help --format man > $(SHARE)/man/man1/cufrag.1
	@for c in $$($(B)/cufrag help --format names); do \
		$(B)/cufrag help $$c --format man > $(SHARE)/man/man1/cufrag-$$c.1 || exit 1; done
	@$(B)/cufrag help --format bash > $(SHARE)/bash-completion/completions/cufrag
	@$(B)/cufrag help --format zsh > $(SHARE)/zsh/site-functions/_cufrag
	@$(B)/cufrag help --format fish > $(SHARE)/fish/vendor_completions.d/cufrag.fish

#: uninstall  what install has put there
uninstall:
	rm -rf $(BIN)/cufrag $(BIN)/cufrag-record-torch $(LIB)/libcufrag.a $(LIB)/cufrag $(LIB)/pkgconfig/cufrag.pc $(INC)/frag \
		$(DATA) $(DOCS) $(SHARE)/man/man1/cufrag.1 $(SHARE)/man/man1/cufrag-*.1 \
		$(SHARE)/bash-completion/completions/cufrag $(SHARE)/zsh/site-functions/_cufrag \
		$(SHARE)/fish/vendor_completions.d/cufrag.fish

#: deb        a Debian package into $(B)/deb, with debhelper
deb: $(B)/cufrag $(B)/libcufrag.a
	@scripts/build/deb.sh $(B) $(RELEASE)

#: wheel      a Python wheel in build/release/wheel: the program, the recorder, and its policies for PyTorch
.PHONY: wheel
wheel: $(B)/cufrag $(B)/libcufrag_torch.so $(B)/libcufrag_record.so
	@scripts/build/wheel.sh $(B) $(RELEASE)

#: lines      lines of code by folder, tables and recorded data apart (TREE=commit: of that one)
.PHONY: lines
lines:
	@scripts/build/lines.sh $(TREE)

#: clean      remove build/
clean:
	rm -rf build

#: help       this text
help:
	@echo 'usage: make [TARGET]... [VARIABLE=value]...'
	@echo
	@echo 'targets (all is the default):'
	@echo '  all        the program, build/$(BUILD)/cufrag'
	@sed -n 's/^#: /  /p' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo 'variables:'
	@echo '  BUILD=$(BUILD)    release, debug, asan, tsan, cov or fuzz; each has its own folder in build/'
	@echo '  CUDA=$(CUDA)        auto, 0 or 1 (fail where the toolkit is missing); CUDA_HOME or NVCC say where'
	@echo '  DEVICE=$(DEVICE)       for demo: sim, or cuda[:N]'
	@echo '  WERROR=$(WERROR) V=$(V)      1: warnings are errors; 1: show the commands'
	@echo '  CC CFLAGS LDFLAGS PREFIX DESTDIR as usual'
	@echo '  SHARED_TRACES=$(SHARED_TRACES)   big recordings; tests on them are skipped where absent'
