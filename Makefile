# SPDX-License-Identifier: Apache-2.0
# cufrag. `make help` lists the targets and variables.
#
# Builds what is in the folders: sources by wildcard, registries (policies, readers, commands,
# charts, kernels) generated from file names. Everything generated is under build/; only `docs`,
# `plots`, `bench`, `baseline` and `demo` write elsewhere, and say where.

BUILD   ?= release
CUDA    ?= auto
PRETEND ?= 1
export PRETEND
WERROR  ?= 0
V       ?= 0
CC      ?= gcc
PREFIX  ?= /usr/local
DESTDIR ?=
DEVICE  ?= sim
# Recordings that are too big for the repository; tests that need them are skipped without.
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
RELEASE := 0.2.0
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
CFLAGS_release := -O3 -g -DNDEBUG -fno-tree-slp-vectorize -fstack-protector-strong
CFLAGS_debug   := -O0 -g3
CFLAGS_asan    := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CFLAGS_tsan    := -O1 -g1 -fsanitize=thread
# unlike gcc, clang 14 has no macro for it. The sanitizer of addresses reports what is read through
# NULL, too; to look at each pointer before, and whether it is aligned, takes half of the time of
# compiling: where bytes from outside are read, which is also what fuzzers follow, alignment is
# looked at. `make asan` looks at both everywhere.
CFLAGS_fuzz    := $(CFLAGS_asan) -fno-sanitize=null,alignment -D__SANITIZE_ADDRESS__
OUTSIDE        := base device explain fleet recording replay trace
# The optimiser takes half of the time of compiling for a sanitizer: what computes little goes without.
BRIEF_fuzz := answer bench cli compare fleet inject monitor plan pretend recording report verify view
BRIEF_tsan     := $(BRIEF_fuzz) explain
LDFLAGS_asan   := -fsanitize=address,undefined
LDFLAGS_tsan   := -fsanitize=thread
# lld links a program in a third of the time; there are a hundred
LDFLAGS_fuzz   := -fsanitize=address,undefined $(if $(shell command -v ld.lld),-fuse-ld=lld)
ifeq ($(filter $(BUILD),release debug asan tsan fuzz),)
  $(error unknown BUILD=$(BUILD); use release, debug, asan, tsan or fuzz)
endif
PKGS     := libarchive libzstd jansson libxxhash sqlite3 yaml-0.1 libmicrohttpd nettle
PKG_CF   := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LD   := $(shell pkg-config --libs $(PKGS) 2>/dev/null || echo -larchive -lzstd -ljansson -lxxhash -lsqlite3 -lyaml -lmicrohttpd -lnettle)
CPPFLAGS += -D_GNU_SOURCE -Isrc/include -Isrc -Ipolicies -Ipolicies/common -I$(GEN) $(PKG_CF)
# of a release: overruns end the program; 3 where compiler and headers know it, else 2
ifeq ($(BUILD),release)
FORTIFY  := $(shell printf '\043include <stdlib.h>' | $(CC) -O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -E -x c - > /dev/null 2>&1 && echo 3 || echo 2)
CPPFLAGS += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY)
RELRO    := -Wl,-z,relro,-z,now
endif
ALL_CFLAGS  := -std=c17 $(WARN) $(CFLAGS_$(BUILD)) $(CFLAGS)
# One object serves the program and the shared libraries: names are hidden but those that a policy from outside may call.
EXTERNAL_API := $(wildcard src/base/external_api.h)
SHARED_CFLAGS := -fPIC -fvisibility=hidden -fno-semantic-interposition $(addprefix -include ,$(EXTERNAL_API))
# as needed: libarchive is opened when a compressed file is (src/trace/input/unpack.c)
ALL_LDFLAGS := -rdynamic -Wl,--as-needed $(if $(RELRO),-pie $(RELRO)) $(LDFLAGS_$(BUILD)) $(LDFLAGS)
LDLIBS   := $(PKG_LD) -lm -lpthread -ldl -lrt
# OLD_GLIBC=1 links the same objects for glibc 2.28 and newer, with the other libraries inside, into a folder of their own
OUT      := $(B)
ifeq ($(OLD_GLIBC),1)
OUT      := $(B)/glibc-2.28
STUBS    := $(OUT)/stubs/libc.so
OLD_LD   := -L$(OUT)/stubs -Wl,--no-as-needed -lpthread -ldl -lrt -Wl,--as-needed
LDLIBS   := -Wl,-Bstatic $(filter-out -larchive,$(PKG_LD)) -Wl,-Bdynamic -lm -ldl
endif

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
  $(error unknown CUDA=$(CUDA); use auto, 0 or 1)
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
# Two levels deep; a new folder is part of the library, unless it is one of these.
LIB_DIRS   := $(filter-out cli include inject $(if $(filter 0,$(PRETEND)),pretend),$(notdir $(patsubst %/,%,$(sort $(wildcard src/*/))))) inject/live
# what starts programs, or is started with them, is no part of the library
NOT_LIB    := $(wildcard src/fleet/ranks_mpi.c src/pretend/pretend_absent.c src/pretend/start/*.c src/pretend/cli/*.c src/pretend/files/*.c)
PRETEND_CLI := $(if $(filter 0,$(PRETEND)),src/pretend/pretend_absent.c,src/pretend/start/*.c src/pretend/cli/*.c)
CUDA_SRC   := $(sort $(filter-out src/device/cuda/cuda_absent.c,$(wildcard src/device/cuda/*.c)))
LIB_SRC    := $(sort $(filter-out $(CUDA_SRC) src/device/cuda/cuda_absent.c $(NOT_LIB),\
              $(foreach d,$(LIB_DIRS),$(wildcard src/$(d)/*.c src/$(d)/*/*.c))))
POLICY_SRC := $(sort $(wildcard policies/*.c))
COMMON_SRC := $(sort $(wildcard policies/*/*.c))
CLI_SRC    := $(sort $(wildcard src/cli/*.c src/cli/*/*.c src/inject/launch/*.c $(PRETEND_CLI))) src/main.c
KERNEL_SRC :=
ifeq ($(HAVE_CUDA),1)
  # Machine code for the data-centre parts of the toolkit; every other card since the
  # base architecture compiles the few small kernels once from the PTX.
  NVCC_RELEASE := $(shell $(NVCC) --version | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1\2/p')
  GPU_PTX    ?= $(shell test $(NVCC_RELEASE) -ge 130 && echo 75 || echo 60)
  GPU_ARCH   ?= 80 90 $(shell test $(NVCC_RELEASE) -ge 128 && echo 100 120)
  KERNEL_SRC := $(sort $(wildcard kernels/*.cu))
  LIB_SRC    += $(CUDA_SRC)
  CUDA_CPP   := $(if $(filter-out /usr/include,$(CUDA_INC)),-isystem $(CUDA_INC))
$(B)/obj/src/device/cuda/% $(B)/obj/tests/gpu/%: CPPFLAGS += $(CUDA_CPP)
  LDLIBS     += -L$(CUDA_LIB) -lcudart_static -lrt -ldl
  CUDA_SAY   := CUDA: $(NVCC), machine code for sm $(strip $(GPU_ARCH)), the rest from PTX $(GPU_PTX)
else
  LIB_SRC    += $(wildcard src/device/cuda/cuda_absent.c)
endif

LIB_OBJ  := $(patsubst %.c,$(B)/obj/%.o,$(LIB_SRC) $(COMMON_SRC) $(POLICY_SRC)) \
            $(patsubst %.cu,$(B)/obj/%.o,$(KERNEL_SRC)) $(if $(wildcard src/view/script),$(B)/obj/src/view/view_data.o)
CLI_OBJ  := $(patsubst %.c,$(B)/obj/%.o,$(CLI_SRC))
LAB_OBJ  := $(patsubst %.c,$(B)/obj/%.o,$(sort $(wildcard scripts/lab/*.c)))
UNIT_SRC := $(sort $(wildcard tests/unit/*/test_*.c $(if $(filter 0,$(PRETEND)),,tests/pretend/*/test_*.c) tests/drivers/test_*.c))
CONF_SRC := $(sort $(wildcard tests/conformance/test_*.c))
GOLD_SRC := $(sort $(wildcard tests/golden/test_*.c))
GPU_SRC  := $(sort $(wildcard tests/gpu/test_*.c))
FUZZ_SRC := $(sort $(filter-out $(if $(filter fuzz,$(BUILD)),%/replay_main.c),$(wildcard tests/fuzz/*.c)))
TEST_SRC := $(UNIT_SRC) $(CONF_SRC) $(GOLD_SRC) $(GPU_SRC)
TEST_BIN := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))
FUZZ_BIN := $(B)/tests/fuzz/fuzz
SUPPORT_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(sort $(wildcard tests/support/*.c)))

# What can be left out: where the header is missing, `make` says what, and which package brings it.
comma := ,
lacks = $(shell $(2) -E -include $(1) -x c /dev/null > /dev/null 2>&1 || echo '$(3)')
# `cufrag sweep` under mpirun: a shared object, built where there is an MPI
MPICC ?= $(shell command -v mpicc 2>/dev/null)
MPI_LACKS  := $(if $(MPICC),$(call lacks,mpi.h,$(MPICC),sweep: $(MPICC) finds no mpi.h$(comma) mpirun is left out (libopenmpi-dev).))
MPI_MODULE := $(if $(and $(MPICC),$(if $(MPI_LACKS),,yes),$(wildcard src/fleet/ranks_mpi.c)),$(B)/cufrag_mpi.so)

# The shared libraries, which record, run and start load into other programs. Those cannot load a
# sanitizer: where BUILD has one, they are those of the release build in PLAIN.
PLAIN    ?= build/release
PLAIN_CC ?= $(if $(shell command -v gcc),gcc,$(CC))
SO       := $(if $(filter asan tsan fuzz,$(BUILD)),$(PLAIN),$(OUT))
LIVE_SO  := $(if $(wildcard src/inject/live/*.c),$(SO)/libcufrag_torch.so)
PRETEND_LIBS := $(if $(filter 0,$(PRETEND)),,$(SO)/libcufrag_pretend.so $(SO)/libcufrag_files.so)
SHARED_LIBS := $(PRETEND_LIBS) $(SO)/libcufrag_record.so $(SO)/libcufrag_start.so $(LIVE_SO)

.PHONY: all
all: $(B)/cufrag $(LIVE_SO) $(MPI_MODULE)
	@echo '$(CUDA_SAY)'
	$(Q)$(if $(MPI_LACKS),echo '$(MPI_LACKS)')

# ---- generated files: written every time, renewed only when the content differs ----
# So a new, renamed or deleted source renews the list, and what includes it.
define renew
	$(Q)t=$@.$$$$; $(1) > $$t; if cmp -s $$t $@; then rm -f $$t; else mv $$t $@; fi
endef

# registries: FRAG_ENTRY(symbol) for every file that matches, by name
define registry
$(GEN)/$(1): FORCE | $(GEN)
	$$(call renew,for f in $(sort $(patsubst $(3)%,%,$(basename $(notdir $(2))))); do echo "FRAG_ENTRY($$$$f)"; done)
endef
$(eval $(call registry,policy_list.inc,$(POLICY_SRC)))
$(eval $(call registry,reader_list.inc,$(wildcard src/trace/readers/read_*.c),read_))
$(eval $(call registry,cmd_list.inc,$(filter %.c,$(wildcard src/cli/cmd_*.c src/cli/*/cmd_*.c) $(filter src/pretend/cli/cmd_%,$(CLI_SRC))),cmd_))
$(eval $(call registry,export_list.inc,$(wildcard src/trace/writers/export_*.c),export_))
$(eval $(call registry,chart_list.inc,$(wildcard src/report/charts/chart_*.c),chart_))
$(eval $(call registry,kernel_list.inc,$(KERNEL_SRC)))
$(eval $(call registry,way_list.inc,$(foreach f,$(CLI_SRC),$(if $(findstring /way_,$f),$f)),way_))
$(eval $(call registry,edit_list.inc,$(wildcard src/pretend/advise/edit_*.c),edit_))
GENERATED := $(addprefix $(GEN)/,policy_list.inc reader_list.inc export_list.inc cmd_list.inc chart_list.inc kernel_list.inc way_list.inc edit_list.inc cost_list.inc card_list.inc model_list.inc torch_rule_list.inc monitor_page.inc \
             protocol_list.inc cufrag_protocol.py)

# a page as C: a string for each of its lines
$(GEN)/monitor_page.inc: src/monitor/page.html | $(GEN)
	$(Q)sed 's/[\\"?]/\\&/g; s/.*/"&\\n"/' $< > $@

# names of the variables by which the parts talk, for C and for Python
$(addprefix $(GEN)/,protocol_list.inc cufrag_protocol.py): src/pretend/protocol.def scripts/build/protocol.awk | $(GEN)
	$(Q)awk -v as=$(subst .,,$(suffix $@)) -f scripts/build/protocol.awk $< > $@

# known cards: FRAG_CARD(name, vendor, label, bytes, context, costs, on_request, source, then the chip)
$(GEN)/card_list.inc: src/device/cards.csv | $(GEN)
	$(Q)awk -F, 'NR > 1 { source = $$18; for (i = 19; i <= NF; i++) source = source "," $$i; \
		printf "FRAG_CARD(\"%s\", \"%s\", \"%s\", %s, %s, \"%s\", %s, \"%s\", \"%s\"", $$1, $$2, $$3, $$4, $$5, $$6, $$7, source, $$8; \
		for (i = 9; i <= 17; i++) printf ", %s", $$i; print ")" }' $< > $@

# known models: FRAG_MODEL(name, source, fields of config.json)
$(GEN)/model_list.inc: src/plan/kvcache/models.csv | $(GEN)
	$(Q)sed -E '1d; s/"/\\"/g; s/^([^,]*),([^,]*),(.*)/FRAG_MODEL("\1", "\2", "\3")/' $< > $@

# the allocator's rules that PyTorch changed, by the release that did: FRAG_TORCH_SINCE_NAME
$(GEN)/torch_rule_list.inc: policies/pytorch/releases.csv | $(GEN)
	$(Q)awk -F, 'NR > 1 { sub(/\./, ", ", $$2); print "#define FRAG_TORCH_SINCE_" $$1 " FRAG_TORCH(" $$2 ")" }' $< > $@

# the cost profiles of measured cards: results/CARD/profile.csv
COST_CSV := $(sort $(wildcard results/*/profile.csv))
$(GEN)/cost_list.inc: $(COST_CSV) scripts/build/cost_inc.py src/include/frag/device.h src/device/sim/cost.h | $(GEN)
	$(Q)scripts/build/cost_inc.py $(COST_CSV) > $@

$(GEN):
	$(Q)mkdir -p $@

# a change of flags rebuilds everything; one of the version, only what names it
quoted = '$(subst ','\'',$(1))'
# := so that they are the flags of all objects, whichever object asks first
FLAGS_NOW := $(CC) $(CPPFLAGS) $(filter-out -Werror,$(ALL_CFLAGS)) $(SHARED_CFLAGS)
LINK_NOW  := $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(OLD_LD) $(LDLIBS)
$(B)/flags: FORCE | $(GEN)
	$(call renew,printf '%s\n' $(call quoted,$(FLAGS_NOW)))
$(OUT)/link_flags: FORCE | $(GEN)
	$(Q)mkdir -p $(@D)
	$(call renew,printf '%s\n' $(call quoted,$(LINK_NOW)))
$(B)/version: FORCE | $(GEN)
	$(call renew,echo $(call quoted,$(VERSION)))
$(B)/lib_objects: FORCE | $(GEN)
	$(call renew,echo $(LIB_OBJ))
$(OUT)/cli_objects: FORCE | $(GEN)
	$(Q)mkdir -p $(@D)
	$(call renew,echo $(CLI_OBJ))
$(B)/test_flags: FORCE | $(GEN)
	$(call renew,echo $(call quoted,$(SHARED_TRACES)) $(SUPPORT_OBJ))
.PHONY: FORCE
FORCE:

# ---- rules ---------------------------------------------------------------------
# they replace functions of the C library that it makes inline with _FORTIFY_SOURCE, the default of some systems
$(B)/obj/src/pretend/files/held_%.o: CPPFLAGS += -U_FORTIFY_SOURCE
ifeq ($(BUILD),fuzz)
$(OUTSIDE:%=$(B)/obj/src/%/%.o): ALL_CFLAGS += -fsanitize=alignment,fuzzer-no-link
endif
$(BRIEF_$(BUILD):%=$(B)/obj/src/%/%.o) $(if $(BRIEF_$(BUILD)),$(B)/tests/unit/%): ALL_CFLAGS += -O0
$(B)/obj/%.o: %.c $(B)/flags | $(GENERATED)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(SHARED_CFLAGS) -MMD -MP -c -o $@ $<

VERSION_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(shell grep -lw FRAG_VERSION $(LIB_SRC) $(CLI_SRC) /dev/null 2>/dev/null))
ifneq ($(strip $(VERSION_OBJ)),)
$(VERSION_OBJ): $(B)/version
$(VERSION_OBJ): CPPFLAGS += -DFRAG_VERSION='"$(VERSION)"'
endif

$(B)/libcufrag.a: $(LIB_OBJ) $(B)/lib_objects
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)

$(OUT)/cufrag: $(CLI_OBJ) $(B)/libcufrag.a $(OUT)/cli_objects $(OUT)/link_flags $(STUBS) | $(OUT)/share/cufrag/inject/key
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(OLD_LD) -Wl,--compress-debug-sections=zlib -o $@ $(CLI_OBJ) $(B)/libcufrag.a $(LDLIBS)

$(B)/glibc-2.28/stubs/libc.so: $(sort $(wildcard scripts/build/old_glibc*))
	$(Q)scripts/build/old_glibc.sh $(@D) '$(CC)'

# What enters other programs: shared libraries, Python, tables. It lies in share/cufrag/inject beside the program, and is installed
# so. Its file `key` has a hash of all: what is made on a machine from these files is kept for it.
INJECT       := $(OUT)/share/cufrag/inject
INJECT_TOP   := $(SHARED_LIBS) $(GEN)/cufrag_protocol.py scripts/record_torch.py
INJECT_TOP   += $(filter-out %/setup.py,$(sort $(wildcard src/inject/python/*.py)))
INJECT_DIRS  := src/inject/python/cufrag
ifneq ($(PRETEND),0)
INJECT_TOP   += $(sort $(wildcard src/pretend/python/*.py src/pretend/python/*.csv))
INJECT_DIRS  += src/pretend/python/cufrag_changes src/pretend/python/hooks src/pretend/bin src/pretend/values
endif
INJECT_FILES := $(INJECT_TOP) $(sort $(wildcard $(foreach d,$(INJECT_DIRS),$(d)/*.py $(d)/py.typed $(d)/nvidia-smi $(d)/*.cpp $(d)/*.h $(d)/*.csv)))
objects_of = $(patsubst %.c,$(B)/obj/%.o,$(sort $(wildcard $(1))))
link_shared = $(Q)$(CC) $(OLD_LD) -shared $(if $(filter release,$(BUILD)),-Wl$(comma)--strip-debug) $(RELRO) -Wl,-soname,$(@F) \
	$(or $(LDFLAGS_$(BUILD)),-Wl$(comma)-z$(comma)defs)
# the pretended card, with the simulated device behind it; tests load it with a sanitizer, too
$(OUT)/libcufrag_pretend.so: $(call objects_of,src/pretend/card/*.c src/pretend/libraries/*.c src/pretend/ranks/*.c src/pretend/talk/*.c) $(B)/libcufrag.a
	$(call say,LD,$@)
	$(link_shared) -Wl,--exclude-libs,ALL -o $@ $^ -ldl -lpthread -lm
ifneq ($(SO),$(OUT))
.PHONY: plain-libs
$(SHARED_LIBS): plain-libs
	@:
plain-libs:
	+@$(MAKE) --no-print-directory BUILD=release B=$(PLAIN) CC='$(PLAIN_CC)' $(SHARED_LIBS)
else
$(SHARED_LIBS): | $(STUBS)
RECORD_OBJ := $(call objects_of,src/inject/record/*.c)
START_OBJ  := $(call objects_of,src/inject/start/*.c)
READ_OBJ   := $(call objects_of,src/pretend/files/*.c)
# the recorder
$(OUT)/libcufrag_record.so: $(RECORD_OBJ) $(B)/libcufrag.a
	$(call say,LD,$@)
	$(link_shared) -Wl,--exclude-libs,ALL -o $@ $^ -ldl -lpthread -lrt
$(OUT)/libcufrag_start.so: $(START_OBJ)
	$(call say,LD,$@)
	$(link_shared) -o $@ $^
# it stands for calls, as stat, that the libraries for an old glibc define, too
$(OUT)/libcufrag_files.so: $(READ_OBJ)
	$(call say,LD,$@)
	$(link_shared) $(if $(OLD_LD),-Wl$(comma)-z$(comma)muldefs) -o $@ $^ -ldl
# the policies as PyTorch's allocator
$(OUT)/libcufrag_torch.so: $(call objects_of,src/inject/live/*.c) $(B)/libcufrag.a
	$(call say,LD,$@)
	$(link_shared) -Wl,-Bsymbolic -o $@ $^ -ldl -lpthread -lm -lrt
endif
$(OUT)/inject_files: FORCE | $(GEN)
	$(Q)mkdir -p $(@D)
	$(call renew,echo $(INJECT_FILES))
# beside, then renamed: a program that runs has all of the old or all of the new
$(INJECT)/key: $(INJECT_FILES) $(OUT)/inject_files
	$(call say,SHARE,$(@D))
	$(Q)rm -rf $(@D).new $(@D).old && mkdir -p $(@D).new
	$(Q)cp $(INJECT_TOP) $(@D).new
	$(Q)$(foreach d,$(INJECT_DIRS),$(if $(filter $(d)/%,$(INJECT_FILES)),mkdir $(@D).new/$(notdir $(d)) && cp $(filter $(d)/%,$(INJECT_FILES)) $(@D).new/$(notdir $(d)) &&)) :
	$(Q)cd $(@D).new && find . -type f ! -name key | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c 1-16 > key
	$(Q)if [ -d $(@D) ]; then mv $(@D) $(@D).old; fi; mv $(@D).new $(@D) && rm -rf $(@D).old

# Script and style of pages that one can move in, and the sum by which a page lets the script run.
VIEW_SCRIPT := $(patsubst %,src/view/script/%.js,begin numbers read lanes pens page timeline map flame draw hands save end)
$(B)/obj/src/view/view_data.o: $(VIEW_SCRIPT) src/view/view.css Makefile
	$(Q)mkdir -p $(@D)
	$(Q)cat $(VIEW_SCRIPT) > $(@:.o=.js)
	$(Q){ printf '%s\n' '	.section .rodata' \
		'	.global frag_view_js, frag_view_css, frag_view_sum' \
		'frag_view_js:' '	.incbin "$(@:.o=.js)"' '	.byte 0' \
		'frag_view_css:' '	.incbin "src/view/view.css"' '	.byte 0' \
		'frag_view_sum:' "	.asciz \"$$(python3 -c 'import base64, hashlib, sys; print(base64.b64encode(hashlib.sha256(sys.stdin.buffer.read()).digest()).decode())' < $(@:.o=.js))\"" \
		'	.section .note.GNU-stack,"",%progbits'; } > $(@:.o=.S)
	$(Q)$(CC) -c -o $@ $(@:.o=.S)

$(B)/cufrag_mpi.so: src/fleet/ranks_mpi.c src/fleet/ranks.h $(B)/flags
	$(call say,MPICC,$@)
	$(Q)$(MPICC) $(CPPFLAGS) -std=c17 $(WARN) $(CFLAGS_$(BUILD)) -fPIC -shared -o $@ $<

# Kernels: kernels/NAME.cu -> a fat binary inside the program, from frag_fatbin_NAME up to
# frag_fatbin_NAME_end; gen/kernel_list.inc has FRAG_ENTRY(NAME) for each. The link stays plain C.
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

# A fuzz target is one function; libFuzzer drives it in BUILD=fuzz, else replay_main.c feeds it the
# files named on its command line.
$(FUZZ_BIN): $(patsubst %.c,$(B)/obj/%.o,$(FUZZ_SRC)) $(B)/libcufrag.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(if $(filter fuzz,$(BUILD)),-fsanitize=fuzzer) $(B)/libcufrag.a $(LDLIBS)

$(B)/obj/tests/%.o: CPPFLAGS += -I. -Itests/support -DFRAG_SHARED_TRACES='"$(SHARED_TRACES)"' -DFRAG_VERSION='"test"'
$(patsubst tests/%.c,$(B)/obj/tests/%.o,$(TEST_SRC)) $(SUPPORT_OBJ): $(B)/test_flags
# tests wait for what they test, not for themselves
$(B)/obj/tests/%.o: ALL_CFLAGS += $(patsubst %,-O1,$(filter release,$(BUILD)))

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(CLI_OBJ) $(LAB_OBJ) $(SUPPORT_OBJ) $(RECORD_OBJ) $(START_OBJ) $(READ_OBJ)) \
	$(patsubst tests/%.c,$(B)/obj/tests/%.d,$(TEST_SRC) $(FUZZ_SRC)) \
	$(patsubst %.cu,$(B)/%.d,$(KERNEL_SRC))
.SECONDARY:

.PHONY: tests-build
tests-build: $(TEST_BIN) $(FUZZ_BIN) $(B)/cufrag $(B)/lab $(MPI_MODULE) $(if $(filter 0,$(PRETEND)),,$(OUT)/libcufrag_pretend.so)

# ---- tests -----------------------------------------------------------------------
# Another BUILD has its own folder, also when B was given.
AGAIN = +@$(MAKE) --no-print-directory
other = BUILD=$(1) $(if $(filter command line,$(origin B)),B=$(B)-$(1))

.PHONY: setup check test test-run test-gpu asan tsan fuzz-smoke
setup:
	@scripts/build/setup.sh

# make check T=…: one test needs its own program, and those that run cufrag need that
WANTED = $(if $(T),$(filter %/test_$(notdir $(T)) $(B)/tests/drivers/%,$(TEST_BIN)) $(if $(wildcard tests/fuzz/corpus/$(notdir $(T))),$(FUZZ_BIN)) $(B)/cufrag,tests-build)

#: check      quick tests: units, conformance, command line, golden counts, fuzz corpus; no GPU
#            T=name: only this one, as T=unit/base/units, T=units, T=cli or T=cli/help_each
check: $(WANTED)
	@scripts/build/run_tests.sh --quick $(if $(T),--only $(T)) $(B)

#: test       install missing packages, then run every test there is
test: setup
	$(AGAIN) test-run
test-run: tests-build
	-+@$(MAKE) --no-print-directory wheel-programs
	@scripts/build/run_tests.sh $(B)

#: test-gpu   tests on a real card; skipped without one
test-gpu: tests-build
	@scripts/build/run_tests.sh --gpu $(B)

#: test-torch fetch PyTorch into build/torch-env (1 to 2 GB), record small trainings without a GPU
.PHONY: test-torch
test-torch: $(B)/cufrag
	@tests/pretend/run.py --fetch $(B)/cufrag

#: asan       units, conformance and chosen commands under Address- and UndefinedBehaviorSanitizer
asan:
	$(AGAIN) $(call other,asan) sanitize-run
.PHONY: sanitize-run
sanitize-run: tests-build
	@scripts/build/run_tests.sh --sanitize $(B)

#: tsan       the threaded parts under ThreadSanitizer
tsan:
	$(AGAIN) $(call other,tsan) tsan-run
.PHONY: tsan-run
tsan-run: $(patsubst tests/%.c,$(B)/tests/%,$(shell grep -l pthread $(TEST_SRC) /dev/null)) $(B)/cufrag
	@scripts/build/run_tests.sh --threads $(B)

#: fuzz-smoke every fuzz target for FUZZ_SECONDS, with clang
fuzz-smoke:
	$(AGAIN) $(call other,fuzz) CC=clang fuzz-run
.PHONY: fuzz-run
fuzz-run: $(FUZZ_BIN)
	@scripts/build/fuzz.sh $(B) $(FUZZ_SECONDS)

#: nightly    what takes too long for each change: every case under sanitizers, all combinations, long fuzzing, deep analysis
.PHONY: nightly
nightly: export FRAG_TEST_NIGHTLY := 1
nightly:
	$(AGAIN) test
	$(AGAIN) $(call other,asan) check
	$(AGAIN) tsan
	$(AGAIN) fuzz-smoke FUZZ_SECONDS=600
	$(AGAIN) tidy TIDY_NODES=225000

# ---- demo, figures, documents -------------------------------------------------------
.PHONY: demo demo-run bench suite plots baseline docs
#: demo       install missing packages, verify and compare bundled traces, write a report
demo: setup
	$(AGAIN) demo-run
demo-run: $(B)/cufrag
	@scripts/demo.sh $(B)/cufrag $(DEVICE)

#: suite      score every policy on a workload of each class, into $(B)/suite (cufrag suite; bench is cufrag's own speed)
suite: $(B)/cufrag
	$(B)/cufrag suite --quick --out $(B)/suite

#: bench      measure speed and memory into results/performance/ (LONG=1: stream 100 M events, not 20 M)
bench: $(B)/cufrag $(B)/bench_read
	@SHARED_TRACES='$(SHARED_TRACES)' scripts/bench.py $(if $(LONG),--long) $(B)
$(B)/bench_read: scripts/build/bench_read.c $(B)/libcufrag.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(B)/libcufrag.a $(LDLIBS)

#: lab        the program that holds the simulated card against a real one, for scripts/lab
.PHONY: lab
lab: $(B)/lab
$(B)/lab: $(LAB_OBJ) $(B)/libcufrag.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

#: counts     compare instructions of fixed runs (valgrind) with tests/counts/; counts-update renews
.PHONY: counts counts-update
counts: $(B)/cufrag
	@scripts/build/count_check.sh $(B)
counts-update: $(B)/cufrag
	@scripts/build/count_check.sh --update $(B)

#: plots      draw the charts of README.md again, into docs/img/
plots: $(B)/cufrag
	$(B)/cufrag compare --no-host --formats svg --out $(B)/plots traces/varlen.default.cft
	cp $(B)/plots/memory.svg docs/img/memory-varlen.svg
	$(B)/cufrag compare --no-host --formats svg --out $(B)/plots traces/seeddemo.default.cft --policy pytorch
	cp $(B)/plots/memory.svg docs/img/seeddemo.svg

#: baseline   rewrite the golden counts of tests/golden/ from this build
baseline: $(B)/cufrag
	@tests/golden/run.py --rewrite $(B)/cufrag

#: docs       renew the generated parts of documents; reference pages go to build/docs
docs: $(B)/cufrag
	@scripts/build/docs.sh $(B)/cufrag

#: tables     what an H200's cuDNN decides, from scripts/cudnn/plans.csv.zst (docs/new-cudnn.md)
.PHONY: tables
tables:
	python3 scripts/cudnn/tables.py make src/pretend/python

# ---- lint ------------------------------------------------------------------------
HEADERS   = $(filter-out src/pretend/values/% $(if $(filter 0,$(HAVE_CUDA)),src/device/cuda/cuda_%),$(sort $(shell find src policies tests/support -name '*.h')))
FORMAT_SRC = $(sort \
             $(shell find src policies tests scripts -name '*.[ch]' -o -name '*.cpp'))

# clock.h wants POSIX and is for the parts of cufrag itself
PUBLIC := $(filter-out %/clock.h,$(sort $(wildcard src/include/frag/*.h)))
#: hdr-public every public header compiles as C11 and as C++
.PHONY: hdr-public
hdr-public: $(GENERATED)
	$(Q)for h in $(PUBLIC); do \
		for as in 'c -std=c11' 'c++ -std=c++17'; do \
			$(CC) -Isrc/include -Isrc -Wall -Wextra -Werror -fsyntax-only -x $$as -include $$h /dev/null || \
				{ echo "hdr-public: $$h does not compile as $$as" >&2; exit 1; }; done; done
	@echo 'hdr-public: every public header compiles as C11 and as C++'

.PHONY: lint names layers hdr-check format format-check cppcheck tidy lint-shell lint-python docs-check
#: lint       layers, names, headers, format, cppcheck, clang-tidy, shellcheck, ruff, documents
lint: layers names hdr-check hdr-public format-check cppcheck tidy lint-shell lint-python docs-check
	@scripts/build/check_words.py
	@echo 'lint: clean'

layers:
	@scripts/build/check_layers.py

#: names      every path, section, command, option and variable that documents and code name exists
names: $(B)/cufrag
	@scripts/build/check_names.py $(B)/cufrag

#: hdr-check  every header compiles alone
hdr-check: $(GENERATED)
	$(Q)for h in $(HEADERS); do \
		$(CC) $(CPPFLAGS) $(CUDA_CPP) -I. -Itests/support -std=c17 $(WARN) -fsyntax-only -x c \
			-include $$h /dev/null || { echo "hdr-check: $$h does not compile alone" >&2; exit 1; }; done
	@echo 'hdr-check: $(words $(HEADERS)) headers compile alone'

#: format     reformat all C and C++ files in place
format:
	$(Q)clang-format -i $(FORMAT_SRC)
format-check:
	$(Q)clang-format --dry-run -Werror $(FORMAT_SRC)
	@echo 'format-check: clean'

cppcheck: $(GENERATED)
	$(Q)cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,performance,portability \
		--inline-suppr --suppressions-list=scripts/build/cppcheck.txt --library=posix \
		-D__GNUC__ -D_GNU_SOURCE -Isrc/include -Isrc -Ipolicies -Ipolicies/common -I$(GEN) \
		-j 2 $(TIDY_SRC)
	@echo 'cppcheck: clean'

# How far the analyzer follows a function; `make nightly` has its default, 225,000.
TIDY_NODES ?= 10000
# To begin takes it 0.08 s. Its check of va_list reports functions that are right where another file came before.
TIDY_SRC = $(LIB_SRC) $(COMMON_SRC) $(POLICY_SRC) $(CLI_SRC)
tidy: $(GENERATED)
	$(Q){ grep -l va_list $(TIDY_SRC); grep -L va_list $(TIDY_SRC) | xargs -n 8; } | xargs -P 2 -L 1 sh -c 'clang-tidy --quiet \
		--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=$(TIDY_NODES) \
		"$$@" -- -std=c17 $(CPPFLAGS) $(CUDA_CPP) -DFRAG_VERSION="\"\""' tidy 2> $(B)/tidy.err || { cat $(B)/tidy.err >&2; exit 1; }
	@echo 'tidy: clean'

# Scripts that begin with #!; the cases of tests/cli are pieces of one.
SHELL_SRC = .ci/run $(filter-out tests/cli/cases/%,\
            $(shell find scripts src tests docs results -name '*.sh'))
lint-shell:
	$(Q)if command -v shellcheck > /dev/null; then shellcheck -x -S warning $(SHELL_SRC) && echo 'lint-shell: clean'; \
		else echo 'lint-shell: skipped, no shellcheck (scripts/build/setup.sh ci)'; fi

RUFF ?= $(firstword $(wildcard build/ci-ruff/bin/ruff) $(shell command -v ruff))
lint-python:
	$(Q)$(if $(RUFF),$(RUFF) check --quiet --no-cache && echo 'lint-python: clean',\
		echo 'lint-python: skipped$(comma) no ruff (scripts/build/setup.sh ci)')

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
#: install    into $(DESTDIR)$(PREFIX): program, recorder, library, manual, completion, documents
install: $(B)/cufrag $(B)/libcufrag.a $(LIVE_SO)
	install -d "$(BIN)" "$(LIB)/pkgconfig" "$(INC)/frag/metrics" "$(DATA)/plot" "$(DOCS)/docs/img" "$(DOCS)/docs/grafana" "$(SHARE)/man/man1" \
		"$(SHARE)/bash-completion/completions" "$(SHARE)/zsh/site-functions" "$(SHARE)/fish/vendor_completions.d"
	install -m 755 $(B)/cufrag "$(BIN)/cufrag"
	strip --strip-debug "$(BIN)/cufrag"
	rm -rf "$(DATA)/inject" && cp -r $(B)/share/cufrag/inject "$(DATA)" && rm -rf "$(DATA)"/inject/__pycache__ "$(DATA)"/inject/*/__pycache__
	chmod -R u=rwX,go=rX "$(DATA)/inject"
	install -m 755 scripts/record_torch.py "$(BIN)/cufrag-record-torch"
	install -m 644 $(B)/libcufrag.a "$(LIB)"
ifneq ($(LIVE_SO),)
	install -d "$(LIB)/cufrag/cufrag"
	install -m 644 $(LIVE_SO) $(wildcard src/inject/python/cufrag/*.py src/inject/python/cufrag/py.typed) "$(LIB)/cufrag/cufrag"
endif
	install -m 644 $(PUBLIC) "$(INC)/frag"
	install -m 644 src/metrics/metrics.def "$(INC)/frag/metrics"
	install -m 644 $(wildcard scripts/plot/*) "$(DATA)/plot"
	rm -rf "$(DATA)/traces" && cp -r traces "$(DATA)" && chmod -R u=rwX,go=rX "$(DATA)/traces"
	install -m 644 README.md CHANGELOG.md LICENSE "$(DOCS)"
	install -m 644 $(wildcard docs/*.md) "$(DOCS)/docs"
	install -m 644 $(wildcard docs/img/*) "$(DOCS)/docs/img"
	install -m 644 $(wildcard docs/grafana/*) "$(DOCS)/docs/grafana"
	@umask 022; printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' 'Name: cufrag' \
		'Description: replay of GPU memory histories through any allocation policy' 'Version: $(VERSION)' \
		'Cflags: -I"$${includedir}"' 'Libs: -L"$${libdir}" -lcufrag $(LDLIBS)' > "$(LIB)/pkgconfig/cufrag.pc"
	@umask 022; $(B)/cufrag help --format man > "$(SHARE)/man/man1/cufrag.1"
	@umask 022; for c in $$($(B)/cufrag help --format names); do \
		$(B)/cufrag help $$c --format man > "$(SHARE)/man/man1/cufrag-$$c.1" || exit 1; done
	@umask 022; $(B)/cufrag help --format bash > "$(SHARE)/bash-completion/completions/cufrag"
	@umask 022; $(B)/cufrag help --format zsh > "$(SHARE)/zsh/site-functions/_cufrag"
	@umask 022; $(B)/cufrag help --format fish > "$(SHARE)/fish/vendor_completions.d/cufrag.fish"

#: uninstall  remove what install put there
uninstall:
	rm -rf "$(BIN)/cufrag" "$(BIN)/cufrag-record-torch" "$(LIB)/libcufrag.a" "$(LIB)/cufrag" "$(LIB)/pkgconfig/cufrag.pc" "$(INC)/frag" \
		"$(DATA)" "$(DOCS)" "$(SHARE)/man/man1/cufrag.1" "$(SHARE)/man/man1/"cufrag-*.1 \
		"$(SHARE)/bash-completion/completions/cufrag" "$(SHARE)/zsh/site-functions/_cufrag" \
		"$(SHARE)/fish/vendor_completions.d/cufrag.fish"

#: deb        make a Debian package in $(B)/deb, with debhelper
deb: $(B)/cufrag $(B)/libcufrag.a
	@scripts/build/deb.sh $(B) $(RELEASE)

#: wheel      make a Python wheel in $(B)/wheel, for any Linux on x86-64 with glibc 2.28 or newer
.PHONY: wheel wheel-programs
wheel: wheel-programs
	@scripts/build/wheel.sh $(B) $(RELEASE)
wheel-programs: $(B)/libcufrag.a
	+@$(MAKE) --no-print-directory OLD_GLIBC=1 $(B)/glibc-2.28/cufrag

#: lines      count everything that somebody has to read, by folder (TREE=commit: of that commit)
#: budget     compare it with budget.txt
.PHONY: lines budget
lines:
	@scripts/build/budget.py --count $(TREE)
budget: $(B)/cufrag
	@scripts/build/budget.py --program $(B)/cufrag $(addprefix --wheel ,$(wildcard $(B)/wheel/*.whl))

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
	@echo '  BUILD=$(BUILD)    release, debug, asan, tsan or fuzz; each has its own folder in build/'
	@echo '  PRETEND=$(PRETEND)       0: without the pretended card: no --no-gpu, layout, advise'
	@echo '  CUDA=$(CUDA)        auto, 0, or 1 (fail without a toolkit); CUDA_HOME or NVCC name the toolkit'
	@echo '  DEVICE=$(DEVICE)       for demo: sim, or cuda[:N]'
	@echo '  WERROR=$(WERROR) V=$(V)      1: warnings are errors; 1: show the commands'
	@echo '  CC CFLAGS LDFLAGS PREFIX DESTDIR as usual'
	@echo '  SHARED_TRACES=$(SHARED_TRACES)   big recordings; tests that need them are skipped without'
