# Lutra. `make` builds build/lutra; `make help` lists the rest.
#
# Sources are found by wildcard, so a new file needs no line here. tools/build/probe detects the
# machine's libraries and writes them to $(BUILD)/config.mk. An object is rebuilt when a header, a .def
# file or a flag that it depends on changes. Two builds exist side by side: build/ and, with
# sanitizers, build-debug/.
#
# Variables: CC, CFLAGS (added last), PREFIX, DESTDIR, V=1 (print commands), WERROR=-Werror (a warning
# ends the build, for continuous integration; the default is empty, because a newer compiler may have
# new warnings), EMULATOR (runs programs of the build when CC compiles for another processor).

BUILD   ?= build
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LUADIR  ?= $(PREFIX)/share/lua/5.4
OBJCOPY ?= objcopy
LIBDIR  ?= $(PREFIX)/lib/lua/5.4
MANDIR  ?= $(PREFIX)/share/man
WERROR  ?=
Q       := $(if $(V),,@)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.PHONY: all demo test test-full test-cuda test-cuda-sanitize test-mps run debug lint format bench bench-cuda \
  bench-mps bench-distributed bundle fuzz \
  fuzz-api fuzz-differential docs man install uninstall clean env deps help FORCE

# Goals that must work without any libraries do not include config.mk.
bare := demo test test-full test-arm64 test-package docs clean deps help uninstall lint format env fuzz-api fuzz-differential
ifneq ($(filter-out $(bare),$(or $(MAKECMDGOALS),all)),)
include $(BUILD)/config.mk
endif

# The stamp is newer than the probe; config.mk changes only when its contents change.
$(BUILD)/config.stamp: tools/build/probe
	@mkdir -p $(@D)
	@CC="$(CC)" CXX="$(CXX)" LUA="$(LUA)" LUA_INCDIR="$(LUA_INCDIR)" OPENBLAS="$(OPENBLAS)" \
	  tools/build/probe $(BUILD)/config.new $(if $(DEBUG),>/dev/null)
	@cmp -s $(BUILD)/config.new $(BUILD)/config.mk || cp $(BUILD)/config.new $(BUILD)/config.mk
	@rm -f $(BUILD)/config.new
	@touch $@
$(BUILD)/config.mk: $(BUILD)/config.stamp ;

# ---- Sources and objects -------------------------------------------------------------------------

sources = $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(shell find $(1) -name '*.c' 2>/dev/null)))

kernels  := $(sort $(wildcard src/cpu/kernels/*.c))
kernel_objects := $(foreach isa,$(ISAS),$(kernels:%.c=$(BUILD)/obj/%.$(isa).o))
core     := $(filter-out $(kernels:%.c=$(BUILD)/obj/%.o) $(if $(OPENMP_LIBS),$(BUILD)/obj/src/tensor/openmp.o),\
  $(call sources,src/tensor src/cpu src/meta)) $(kernel_objects)
bindings := $(call sources,src/vm-bindings)
repl     := $(call sources,src/repl)
ctests   := $(patsubst tests/c/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/c/test_*.c)))
chelpers := $(filter-out $(BUILD)/obj/tests/c/test_% $(BUILD)/obj/tests/c/plugin_%,\
  $(call sources,tests/c))
cplugins := $(patsubst tests/c/%.c,$(BUILD)/tests/%.so,$(sort $(wildcard tests/c/plugin_*.c)))

library := $(BUILD)/lib/liblutra.a
program := $(BUILD)/lutra
module  := $(BUILD)/lib/lutra/core.so

# ---- Flags ---------------------------------------------------------------------------------------
# No fast-math and no contraction, so that a sum has the same result on every instruction set.
# -fno-math-errno and -fno-trapping-math change no result and allow loops to be vectorized.

warnings := -Wall -Wextra -Wpedantic -Wshadow $(WERROR)
exact    := -ffp-contract=off -fno-math-errno -fno-trapping-math
ifdef DEBUG
sanitize := -fsanitize=address,undefined -fno-sanitize-recover=undefined
optimize := -O1 -g -fno-omit-frame-pointer $(sanitize) -DLT_DEBUG=1
# With the checks of the sanitizers gcc cannot infer the ranges that these two warnings depend on.
warnings += -Wno-format-truncation -Wno-maybe-uninitialized
kernel_optimize := $(optimize)
else
sanitize :=
optimize := -O2
# A loop of few instructions that crosses a line of the instruction cache takes twice the time.
kernel_optimize := -O3 -falign-loops=32
endif

defines := -DLT_OPENBLAS_NAMES='$(OPENBLAS_NAMES)' \
  $(if $(VECTOR_NAME),-DLT_VECTOR_MATH=1 -DLT_VECTOR_MATH_NAME='"$(VECTOR_NAME)"') \
  $(if $(findstring SLEEF,$(VECTOR_NAME)),-DLT_VECTOR_SLEEF=1) \
  $(if $(filter avx512,$(ISAS)),-DLT_ISA_AVX512=1) $(if $(filter avx2,$(ISAS)),-DLT_ISA_AVX2=1)
# Where a file asks for POSIX, macOS hides what it has beside that.
extensions := $(if $(filter Darwin,$(SYSTEM)),-D_DARWIN_C_SOURCE,-fno-semantic-interposition)
common  := -std=gnu11 -fPIC $(extensions) -MMD -MP $(warnings) $(exact) \
  $(OPENMP) $(LUA_CFLAGS) -Isrc -Isrc/tensor $(defines)

isa_avx512 := -march=x86-64-v4 -mprefer-vector-width=512
isa_avx2   := -march=x86-64-v3
isa_base   :=

ldflags := $(sanitize) $(LDFLAGS)
ldlibs  := $(OPENMP_LIBS) $(VECTOR_LIBS) -lz $(if $(filter Linux,$(SYSTEM)),-ldl) -lm
ifeq ($(SYSTEM),Darwin)
whole = -Wl,-force_load,$(1)
plugin := -bundle -undefined dynamic_lookup
shared := $(plugin) -Wl,-exported_symbol,_luaopen_lutra_core -Wl,-exported_symbol,'_lt_*'
# A weak function that is not defined is NULL.
export := -Wl,-undefined,dynamic_lookup
else
whole = -Wl,--whole-archive $(1) -Wl,--no-whole-archive
shared := -shared -Wl,--version-script=tools/build/core.map -Wl,-Bsymbolic-functions
plugin := -shared
export := -rdynamic
endif

# The top folder of a source (src/cpu, tests/c ...) is on the include path of every file below it.
part    = $(word 1,$(subst /, ,$<))/$(word 2,$(subst /, ,$<))
compile = $(CC) $(1) $(common) -I$(part) $(CFLAGS) -c $< -o $@
say     = $(if $(V),,@echo '  $(1)  $(patsubst $(BUILD)/%,%,$(2))')

# The flags of objects and the objects of links, written only when they change, as a dependency.
remember = @mkdir -p $(@D); printf '%s\n' $(1) >$@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@
quote    = '$(subst ','\'',$(1))'
$(BUILD)/obj/flags: FORCE
	$(call remember,$(call quote,$(CC) $(optimize) $(kernel_optimize) $(common) $(CFLAGS)))
$(BUILD)/obj/link: FORCE
	$(call remember,$(call quote,$(core) $(bindings) $(repl) $(chelpers) $(ldflags) $(ldlibs) $(LUA_LIBS)))

# ---- CUDA ----------------------------------------------------------------------------------------
# Two shared objects from the same files of src/cuda, each loaded when a CUDA device is first used:
# cuda.so, built by nvcc, and cuda_emulated.so, built by the C++ compiler with the runtime of
# src/cuda/emulated in place of NVIDIA's, which is built on src/emulation. The streams of the latter
# are threads, which would outlive a dlclose (nodelete).
#
# CUDA_ARCHS: the GPU architectures to build for, such as "80 90" (with PTX of the last one, which the
# driver compiles for later GPUs), or "all" that nvcc knows. The default: the GPUs of this machine, or
# else 80 and 90.

cuda_c    := $(sort $(wildcard src/cuda/*.c))
cuda_cu   := $(sort $(wildcard src/cuda/*.cu))
emulation := $(sort $(wildcard src/emulation/*.cpp src/cuda/emulated/*.cpp))

cuda_objects     := $(cuda_c:%.c=$(BUILD)/obj/real/%.o) $(cuda_cu:%.cu=$(BUILD)/obj/real/%.cu.o)
emulation_runtime := $(emulation:%.cpp=$(BUILD)/obj/emulated/%.o)
emulated_objects := $(cuda_c:%.c=$(BUILD)/obj/emulated/%.o) \
  $(cuda_cu:%.cu=$(BUILD)/obj/emulated/%.cu.o) $(emulation_runtime)

cuda_backend     := $(BUILD)/lib/lutra/cuda.so
emulated_backend := $(BUILD)/lib/lutra/cuda_emulated.so
# The sanitized build has the emulated backend only: sanitizers do not check GPU code.
backends := $(if $(NVCC),$(if $(DEBUG),,$(cuda_backend))) $(if $(CXX_FOUND),$(emulated_backend))
emulated_tests := $(if $(CXX_FOUND),$(patsubst tests/cuda/%.cu,$(BUILD)/tests/%,\
  $(sort $(wildcard tests/cuda/test_*.cu))))

archs := $(or $(CUDA_ARCHS),$(strip $(CUDA_GPUS)),80 90)
ifeq ($(archs),all) # from Volta on: the kernels' parameters are __grid_constant__
archs := $(shell $(NVCC) --list-gpu-arch | sed -n 's/compute_//p' | sort -n | awk '$$1 >= 70')
endif
gencode := $(foreach a,$(archs),-gencode arch=compute_$(a),code=sm_$(a)) \
  -gencode arch=compute_$(lastword $(archs)),code=compute_$(lastword $(archs))
# The architectures that the backend reports, and compares with the GPU's.
cuda_defines := -DLT_CUDA_ARCHS='"$(archs)"'
nvcc_flags := -std=c++17 -O3 $(gencode) -Isrc/cuda -Isrc -Isrc/tensor -MMD -MP \
  -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra $(if $(WERROR),-Werror all-warnings)
# A kernel's threads have small stacks with a guard page, which a large frame must not skip.
stack_clash := -fstack-clash-protection
emulated_include := -Isrc/cuda/emulated/include -Isrc/emulation/include -Isrc/cuda -DLT_CUDA_EMULATED=1
emulated_flags := -x c++ -std=c++17 -fPIC -fvisibility=hidden -MMD -MP -Wall -Wextra $(WERROR) \
  -Wno-unknown-pragmas $(if $(DEBUG),-Wno-maybe-uninitialized) $(exact) -fopenmp-simd $(stack_clash) $(emulated_include) -Isrc -Isrc/tensor \
  $(defines)

$(BUILD)/obj/real/flags: FORCE
	$(call remember,$(call quote,$(NVCC) $(nvcc_flags) $(optimize) $(common) $(CFLAGS)))
$(BUILD)/obj/emulated/flags: FORCE
	$(call remember,$(call quote,$(CXX_FOUND) $(emulated_flags) $(optimize) $(common) $(CFLAGS) $(CXXFLAGS)))
$(BUILD)/obj/real/link: FORCE
	$(call remember,$(call quote,$(cuda_objects)))
$(BUILD)/obj/emulated/link: FORCE
	$(call remember,$(call quote,$(emulated_objects)))

$(BUILD)/obj/real/%.o: %.c $(BUILD)/obj/real/flags
	@mkdir -p $(@D)
	$(call say,cc,$< (CUDA))
	$(Q)$(call compile,$(optimize) $(cuda_defines) -isystem $(CUDA_ROOT)/include)
$(BUILD)/obj/real/%.cu.o: %.cu $(BUILD)/obj/real/flags
	@mkdir -p $(@D)
	$(call say,nvcc,$<)
	$(Q)$(NVCC) $(nvcc_flags) -c $< -o $@
$(cuda_backend): $(cuda_objects) $(BUILD)/obj/real/link tools/build/backend.map
	@mkdir -p $(@D)
	$(call say,ld,$@)
	$(Q)$(NVCC) $(gencode) -shared -cudart static \
	  -Xlinker --version-script=tools/build/backend.map $(cuda_objects) -o $@ -ldl

$(BUILD)/obj/emulated/%.o: %.c $(BUILD)/obj/emulated/flags
	@mkdir -p $(@D)
	$(call say,cc,$< (emulated))
	$(Q)$(call compile,$(optimize) $(emulated_include))
$(BUILD)/obj/emulated/%.cu.o: %.cu $(BUILD)/obj/emulated/flags
	@mkdir -p $(@D)
	$(call say,c++,$<)
	$(Q)$(CXX_FOUND) $(optimize) $(emulated_flags) $(CXXFLAGS) -c $< -o $@
$(BUILD)/obj/emulated/%.o: %.cpp $(BUILD)/obj/emulated/flags
	@mkdir -p $(@D)
	$(call say,c++,$<)
	$(Q)$(CXX_FOUND) $(optimize) $(emulated_flags) $(CXXFLAGS) -c $< -o $@
$(emulated_backend): $(emulated_objects) $(BUILD)/obj/emulated/link tools/build/backend.map
	@mkdir -p $(@D)
	$(call say,ld,$@)
	$(Q)$(CXX_FOUND) $(ldflags) -shared -Wl,--version-script=tools/build/backend.map \
	  -Wl,-Bsymbolic -Wl,-z,nodelete $(emulated_objects) -o $@ $(VECTOR_LIBS) -lpthread -ldl -lm

# Tests of the emulated runtime itself: CUDA programs that do not use Lutra.
$(BUILD)/tests/%: $(BUILD)/obj/emulated/tests/cuda/%.cu.o $(emulation_runtime)
	@mkdir -p $(@D)
	$(call say,ld,$@)
	$(Q)$(CXX_FOUND) $(ldflags) -rdynamic $< $(emulation_runtime) -o $@ $(VECTOR_LIBS) -lpthread -ldl -lm

# ---- MPS -----------------------------------------------------------------------------------------
# The device mps. Its kernels (src/mps/*.metal) are preprocessed to one text each, without the headers
# of Metal. mps_emulated.so has them translated to C++ (src/mps/emulated), and a runtime built on
# src/emulation in place of Metal's.

mps_c       := $(sort $(wildcard src/mps/*.c))
mps_runtime := $(sort $(wildcard src/mps/emulated/*.cpp))
metal_texts := $(patsubst src/mps/%.metal,$(BUILD)/obj/mps/%.metal,$(sort $(wildcard src/mps/*.metal)))
translator  := $(BUILD)/obj/mps/translate
mps_emulated_backend := $(BUILD)/lib/lutra/mps_emulated.so
mps_emulated_objects := $(mps_c:%.c=$(BUILD)/obj/mps_emulated/%.o) $(metal_texts:%=%.o) \
  $(mps_runtime:%.cpp=$(BUILD)/obj/mps_emulated/%.o) \
  $(patsubst %.cpp,$(BUILD)/obj/emulated/%.o,$(filter src/emulation/%,$(emulation)))
backends += $(if $(CXX_FOUND),$(if $(wildcard src/mps/emulated/queues.cpp),$(mps_emulated_backend)))

# Empty files in place of the headers of Metal and C that kernels include.
metal_headers := metal_stdlib metal_atomic metal_math metal_simdgroup metal_simdgroup_matrix \
  math.h stdbool.h stddef.h stdint.h
metal_preprocess = $(CC) -E -P -x c++ -undef -nostdinc -D__METAL_VERSION__=300 -D__METAL__=1 -DLT_NO_DOUBLE= \
  -isystem $(BUILD)/obj/mps/empty -Isrc -Isrc/tensor -Isrc/mps
mps_include := -Isrc/mps/emulated/include -Isrc/emulation/include
mps_flags   := -x c++ -std=c++17 -fPIC -fvisibility=hidden -fsigned-char -MD -MP $(exact) $(stack_clash) \
  -Wall -Wextra $(WERROR) -Werror=vla -Wno-unused -Wno-type-limits -Wno-tautological-compare $(if $(DEBUG),-Wno-maybe-uninitialized) -nostdinc $(mps_include)
# The runtime is compiled as CUDA's is.
mps_runtime_flags = $(subst $(emulated_include),$(mps_include),$(emulated_flags))

$(BUILD)/obj/mps/flags: FORCE
	$(call remember,$(call quote,$(metal_preprocess) $(CXX_FOUND) $(mps_flags) $(mps_runtime_flags) \
	  $(kernel_optimize) $(optimize) $(common) $(CFLAGS) $(CXXFLAGS)))
$(BUILD)/obj/mps/link: FORCE
	$(call remember,$(call quote,$(mps_emulated_objects)))
$(BUILD)/obj/mps/%.metal: src/mps/%.metal $(BUILD)/obj/mps/flags
	@mkdir -p $(BUILD)/obj/mps/empty && cd $(BUILD)/obj/mps/empty && touch $(metal_headers)
	$(call say,metal,$<)
	$(Q)$(metal_preprocess) -MMD -MP -MF $@.flat.d -MT $@ $< -o $@.body
	$(Q)(echo '#include <metal_stdlib>'; echo 'using namespace metal;'; cat $@.body) >$@ && rm $@.body
$(translator): $(patsubst %,$(BUILD)/obj/mps_emulated/src/mps/emulated/%.o,check kernels records tokens translate tool/translate)
	$(call say,ld,$@)
	$(Q)$(CXX_FOUND) $(ldflags) $^ -o $@
$(BUILD)/obj/mps/%.metal.cpp: $(BUILD)/obj/mps/%.metal $(translator)
	$(Q)$(EMULATOR) $(translator) $< $* $@
$(BUILD)/obj/mps/%.metal.o: $(BUILD)/obj/mps/%.metal.cpp
	$(call say,c++,$<)
	$(Q)$(CXX_FOUND) $(kernel_optimize) $(mps_flags) $(CXXFLAGS) -c $< -o $@
$(BUILD)/obj/mps_emulated/%.o: %.c $(BUILD)/obj/mps/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)
	$(Q)$(call compile,$(optimize))
$(BUILD)/obj/mps_emulated/%.o: %.cpp $(BUILD)/obj/mps/flags
	@mkdir -p $(@D)
	$(call say,c++,$<)
	$(Q)$(CXX_FOUND) $(optimize) $(mps_runtime_flags) $(CXXFLAGS) -c $< -o $@
# It embeds the headers, for kernels that are compiled at run time.
$(BUILD)/obj/mps_emulated/src/mps/emulated/libraries.o: \
  $(wildcard src/mps/emulated/include/* src/mps/emulated/include/metal/* src/emulation/include/emulated/*)
$(mps_emulated_backend): $(mps_emulated_objects) $(BUILD)/obj/mps/link tools/build/backend.map
	@mkdir -p $(@D)
	$(call say,ld,$@)
	$(Q)$(CXX_FOUND) $(ldflags) -shared -Wl,--version-script=tools/build/backend.map \
	  -Wl,-Bsymbolic -Wl,-z,nodelete $(mps_emulated_objects) -o $@ -lpthread -ldl -lm

# Tests of the emulated runtime itself, which do not use Lutra.
metal_tests := $(if $(CXX_FOUND),$(patsubst tests/metal/%.cpp,$(BUILD)/tests/%,\
  $(sort $(wildcard tests/metal/test_*.cpp))))
mps_runtime_objects := $(filter-out $(mps_c:%.c=$(BUILD)/obj/mps_emulated/%.o) $(metal_texts:%=%.o),\
  $(mps_emulated_objects))
$(BUILD)/tests/%: $(BUILD)/obj/mps_emulated/tests/metal/%.o $(mps_runtime_objects)
	@mkdir -p $(@D)
	$(call say,ld,$@)
	$(Q)$(CXX_FOUND) $(ldflags) -rdynamic $^ -o $@ -lpthread -ldl -lm

.PHONY: cuda cuda-emulated mps-emulated
mps-emulated: $(mps_emulated_backend)
cuda: $(cuda_backend)
cuda-emulated: $(emulated_backend)

# ---- MPS on macOS --------------------------------------------------------------------------------
# mps.so: the C and Objective-C files of src/mps, and a table of the kernels. A kernel's file is in it
# as a flat text ($(BUILD)/obj/mps/<family>.metal), which Metal compiles on the user's machine, or,
# where Xcode's compiler exists (METAL_COMPILER), as the library that it makes of the text. The system
# never unloads an object with Objective-C classes.

ifeq ($(SYSTEM),Darwin)
metal_kernels := $(if $(METAL_COMPILER),$(metal_texts:.metal=.metallib),$(metal_texts))
metal_objects := $(patsubst %,$(BUILD)/obj/metal/%.o,$(basename $(sort $(wildcard src/mps/*.c \
  src/mps/*.m)))) $(BUILD)/obj/metal/sources.o
metal_backend := $(BUILD)/lib/lutra/mps.so
backends += $(metal_backend)

$(BUILD)/obj/metal/%.o: %.c $(BUILD)/obj/flags
	@mkdir -p $(@D)
	$(call say,cc,$< (Metal))
	$(Q)$(call compile,$(optimize))
$(BUILD)/obj/metal/%.o: %.m $(BUILD)/obj/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)
	$(Q)$(call compile,$(optimize) -fobjc-arc)
$(BUILD)/obj/mps/%.metallib: $(BUILD)/obj/mps/%.metal
	$(call say,metal,$@)
	$(Q)$(METAL_COMPILER) -std=metal3.0 -mmacosx-version-min=13.0 -fno-fast-math -ffp-contract=off \
	  -Wno-unused $< -o $@
$(BUILD)/obj/metal/sources.c: $(metal_kernels) tools/build/embed-metal
	@mkdir -p $(@D)
	$(Q)tools/build/embed-metal $@ $(metal_kernels)
$(BUILD)/obj/metal/sources.o: $(BUILD)/obj/metal/sources.c $(BUILD)/obj/flags
	$(call say,cc,$<)
	$(Q)$(CC) $(optimize) $(common) -Isrc/mps $(CFLAGS) -c $< -o $@
$(metal_backend): $(metal_objects)
	@mkdir -p $(@D)
	$(call say,ld,$@)
	$(Q)$(CC) $(ldflags) $(plugin) -Wl,-exported_symbol,_lt_backend $(metal_objects) -o $@ \
	  -framework Foundation -framework Metal -weak_framework MetalPerformanceShaders
endif

.PHONY: mps
mps: $(metal_backend)

# ---- Rules ---------------------------------------------------------------------------------------

all: $(program) $(module) $(backends)

define kernel_rule
$(BUILD)/obj/%.$(1).o: %.c $(BUILD)/obj/flags
	@mkdir -p $$(@D)
	$$(call say,cc,$$< ($(1)))
	$$(Q)$$(call compile,$$(kernel_optimize) -Wno-psabi $$(isa_$(1)) -DLT_ISA=$(1))
endef
$(foreach isa,$(ISAS),$(eval $(call kernel_rule,$(isa))))

$(BUILD)/obj/%.o: %.c $(BUILD)/obj/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)
	$(Q)$(call compile,$(optimize))

$(library): $(core) $(BUILD)/obj/link
	@mkdir -p $(@D)
	$(call say,ar,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(core)

$(program): $(repl) $(bindings) $(core) $(BUILD)/obj/link
	$(call say,ld,$@)
	$(Q)$(CC) $(ldflags) $(export) $(repl) $(bindings) $(core) -o $@ $(LUA_LIBS) $(ldlibs)

$(module): $(bindings) $(core) $(BUILD)/obj/link tools/build/core.map
	@mkdir -p $(@D)
	$(call say,ld,$@)
	$(Q)$(CC) $(ldflags) $(shared) $(bindings) $(core) -o $@ $(ldlibs)

# A test links the whole library, because a backend that it loads may call any function of it.
.PHONY: ctests
ctests: $(ctests) $(cplugins) $(emulated_tests) $(metal_tests)
$(BUILD)/tests/%: $(BUILD)/obj/tests/c/%.o $(chelpers) $(library)
	@mkdir -p $(@D)
	$(call say,ld,$@)
	$(Q)$(CC) $(ldflags) $(export) $< $(chelpers) $(call whole,$(library)) -o $@ $(ldlibs)
$(BUILD)/obj/tests/c/test_nvrtc.o: common += -Isrc/cuda/emulated/include
# The base of src/mps, on the Metal of tests/c/fake_metal.c.
mps_base := $(patsubst %,$(BUILD)/obj/src/mps/%.o,copy device driver errors fault kernel launch memory \
  pipeline queue)
$(BUILD)/tests/test_mps_%: $(BUILD)/obj/tests/c/test_mps_%.o $(mps_base) $(chelpers) $(library)
	@mkdir -p $(@D)
	$(call say,ld,$@)
	$(Q)$(CC) $(ldflags) $(export) $< $(mps_base) $(chelpers) $(call whole,$(library)) -o $@ $(ldlibs)
$(mps_base) $(BUILD)/obj/tests/c/test_mps_base.o: common += -Isrc/mps
# Tests that embed Lua also link the bindings.
$(BUILD)/tests/test_lua_%: $(BUILD)/obj/tests/c/test_lua_%.o $(chelpers) $(bindings) $(library)
	@mkdir -p $(@D)
	$(call say,ld,$@)
	$(Q)$(CC) $(ldflags) $(export) $< $(chelpers) $(bindings) $(call whole,$(library)) -o $@ \
	  $(LUA_LIBS) $(ldlibs)
# A device's backend, loaded at run time; its undefined symbols are resolved in the program.
$(BUILD)/tests/%.so: $(BUILD)/obj/tests/c/%.o
	@mkdir -p $(@D)
	$(call say,ld,$@)
	$(Q)$(CC) $(ldflags) $(plugin) $< -o $@

# The program of the fuzzers in tests/fuzz. The core and the bindings allocate through
# tests/fuzz/allocations.c, which can fail on request; the debug build uses a Lua with assertions
# (tools/build/asserting-lua), if it is available.
# It needs GNU's objcopy, so macOS has none.
.PHONY: fuzz-program
fuzz_program  := $(BUILD)/lutra-fuzz
fuzz_objects  := $(addprefix $(BUILD)/obj/tests/fuzz/,program.o allocations.o)
fuzz_replaced := malloc calloc realloc free strdup strndup aligned_alloc posix_memalign realpath \
  fopen fdopen
asserting_lua := $(if $(DEBUG),$(wildcard $(BUILD)/asserting-lua/liblua.a))
fuzz-program: $(if $(filter Darwin,$(SYSTEM)),,$(fuzz_program))
$(BUILD)/lib/liblutra-faults.a: $(core) $(bindings) $(BUILD)/obj/link
	@mkdir -p $(@D)
	$(call say,objcopy,$@)
	$(Q)rm -f $@ $@.all && $(AR) rcs $@.all $(core) $(bindings)
	$(Q)$(OBJCOPY) $(foreach f,$(fuzz_replaced),--redefine-sym $(f)=lt_fault_$(f)) $@.all $@
	$(Q)rm -f $@.all
$(BUILD)/obj/tests/fuzz/program.o: common += $(if $(asserting_lua),-DLT_ASSERTING_LUA=1)
$(fuzz_program): $(fuzz_objects) $(BUILD)/lib/liblutra-faults.a $(asserting_lua)
	$(call say,ld,$@)
	$(Q)$(CC) $(ldflags) $(export) $(fuzz_objects) $(call whole,$(BUILD)/lib/liblutra-faults.a) -o $@ \
	  $(or $(asserting_lua),$(LUA_LIBS)) $(ldlibs) -lpthread

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

# ---- Goals ---------------------------------------------------------------------------------------

# Builds inside other goals use all cores, unless -j is given.
build = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(cores))
cores := $(shell getconf _NPROCESSORS_ONLN)

demo:
	@tools/build/deps build
	@+$(build) all
	$(BUILD)/lutra examples/chargpt.lua

# What takes less than 20 minutes on 2 cores; test-full runs everything.
test:
	@tools/build/deps build test
	@+$(build) all ctests
	@tests/run --short

test-full:
	@tools/build/deps build test
	@CC="$(CC)" tools/build/asserting-lua build-debug/asserting-lua
	@+$(build) all ctests fuzz-program
	@+$(build) BUILD=build-debug DEBUG=1 all ctests fuzz-program
	@tests/run

# Cross-compiles for AArch64 (Debian's compiler and libraries, with NEON kernels) and runs the op tests
# under QEMU, which emulates the processor; on such a processor, without QEMU.
arm64 = $(foreach tool,CC=gcc CXX=g++ AR=ar OBJCOPY=objcopy,$(subst =,=aarch64-linux-gnu-,$(tool))) \
  EMULATOR=$(if $(filter aarch64,$(shell uname -m)),,qemu-aarch64)
.PHONY: test-arm64
test-arm64:
	@tools/build/deps build test arm64
	@+$(build) BUILD=build-arm64 $(arm64) all ctests
	@tests/run arm64

# Builds the Debian package from its sources with dpkg-buildpackage; `make test-full` packs the existing build.
.PHONY: test-package
test-package:
	@tests/package --build

# The Jupyter kernel, and JupyterLab in a headless browser. LUTRA_JUPYTER_PYTHON is a Python with
# jupyterlab, jupyter_kernel_test, nbconvert, papermill and playwright; what it lacks is skipped.
.PHONY: test-notebook
test-notebook: all
	@tests/kernel/run $(program) tests/kernel/test_*.py tests/kernel/browser.py

# The op tests on a GPU: all of them; with NVIDIA's compute-sanitizer.
test-cuda:
	@tools/build/deps build test
	@+$(build) all ctests
	@tests/run cuda

# The op tests on Apple's GPU.
test-mps:
	@tools/build/deps build test
	@+$(build) all ctests
	@tests/run mps

test-cuda-sanitize:
	@tools/build/deps build test
	@+$(build) all ctests
	@tests/run cuda_sanitize

run: all
	@$(program)

debug:
	@+$(build) BUILD=build-debug DEBUG=1 all ctests

lint:
	@tools/build/lint

format:
	@tools/build/lint --format

bench: all
	@bench/run

# cuBLAS alone, for bench-cuda; left out if it does not link.
cublas := $(if $(NVCC),$(BUILD)/bench/cublas)
$(BUILD)/bench/cublas: bench/cublas.cu
	@mkdir -p $(@D)
	$(call say,nvcc,$<)
	$(Q)$(NVCC) -O2 $(gencode) $< -lcublas -o $@ || echo "left out $@: it needs the headers and libraries of cuBLAS"

bench-cuda: all $(cublas)
	@bench/run-cuda

bench-mps: all
	@bench/run-mps

# Plain MPI calls, for bench-distributed; left out without mpicc.
mpicc := $(shell command -v mpicc 2>/dev/null)
$(BUILD)/bench/collectives: bench/distributed/collectives.c
	@mkdir -p $(@D)
	$(call say,mpicc,$<)
	$(Q)mpicc -std=c11 -O2 -Wall -Wextra -Wpedantic -Wshadow $< -o $@

bench-distributed: all $(if $(mpicc),$(BUILD)/bench/collectives)
	@LUTRA=$(program) $(program) bench/distributed.lua --c $(BUILD)/bench/collectives

# A portable archive for Linux machines without a network, a compiler or Lua.
bundle: all ctests $(cublas)
	@name=lutra-$$($(program) --version | sed -n 's/^Lutra \([^ ]*\).*/\1/p')-linux-$$(uname -m) && \
	  LUA="$(LUA)" tools/build/bundle $(BUILD) $(BUILD)/bundle/$$name $(BUILD)/bundle/$$name.tar.xz

fuzz: $(library) $(program)
	@tests/fuzz/run

# SECONDS: the duration; SEED: the first seed, by default the time.
fuzz-api fuzz-differential:
	@CC="$(CC)" tools/build/asserting-lua build-debug/asserting-lua
	@+$(build) all fuzz-program
	@+$(build) BUILD=build-debug DEBUG=1 all fuzz-program
	@tests/fuzz/campaign $(@:fuzz-%=%) both $(or $(SECONDS),60) $(or $(SEED),$(shell date +%s))

# The site of the documentation, and annotations for editors; needs MkDocs with the theme Material.
docs:
	@tools/build/deps build docs
	@+$(build) all
	@tools/docs/build $(program)

# The manual page, from what --help prints.
man: all
	$(LUA) tools/docs/man.lua $(program) >docs/lutra.1

deps:
	@tools/build/deps build test

env:
	@echo "export LUA_PATH='$(CURDIR)/lib/?.lua;$(CURDIR)/lib/?/init.lua;;'"
	@echo "export LUA_CPATH='$(abspath $(BUILD))/lib/?.so;;'"

# Every folder is quoted: DESTDIR and PREFIX may contain blanks and quotes.
bin_to := $(call quote,$(DESTDIR)$(BINDIR))
lib_to := $(call quote,$(DESTDIR)$(LIBDIR)/lutra)
lua_to := $(call quote,$(DESTDIR)$(LUADIR))
man_to := $(call quote,$(DESTDIR)$(MANDIR)/man1)

install: all
	install -d $(bin_to) $(lib_to) $(lua_to) $(man_to)
	install -m 755 $(program) $(bin_to)/lutra
	install -m 644 docs/lutra.1 $(man_to)
	install -m 644 $(module) $(lib_to)/core.so
	$(if $(strip $(backends)),install -m 644 $(backends) $(lib_to))
	@to=$(lua_to); for file in $$(cd lib && find . -name '*.lua' | sed 's|^\./||' | sort); do \
	  install -d "$$to/$$(dirname "$$file")" && install -m 644 "lib/$$file" "$$to/$$file" || exit 1; \
	done; echo "installed lib/**.lua in $$to"

uninstall:
	rm -f $(bin_to)/lutra $(lua_to)/lutra.lua $(man_to)/lutra.1
	rm -rf $(lua_to)/lutra $(lib_to)

clean:
	rm -rf build build-debug build-arm64

help:
	@echo "make              build build/lutra, and the module for lua5.4"
	@echo "make demo         install what is missing, build, train a small language model"
	@echo "make test         install what is missing, build, run the tests (20 minutes)"
	@echo "make test-full    all tests, also in the debug build, with fuzzers and packages (an hour)"
	@echo "make run          open the prompt"
	@echo "make debug        build build-debug/lutra, with AddressSanitizer and UBSan"
	@echo "make lint         run clang-format and luacheck"
	@echo "make format       format all C, C++ and CUDA sources"
	@echo "make test-package build the Debian package from its sources, install, run and remove it"
	@echo "make test-arm64   cross-compile for arm64 and run the op tests under QEMU (Debian)"
	@echo "make test-notebook  test the Jupyter kernel, also in JupyterLab (LUTRA_JUPYTER_PYTHON=)"
	@echo "make test-cuda    run the op tests on a GPU; make test-cuda-sanitize: with compute-sanitizer"
	@echo "make bench-cuda   measure a GPU, beside PyTorch and cuBLAS"
	@echo "make test-mps     run the op tests on Apple's GPU"
	@echo "make bench-mps    measure Apple's GPU, beside PyTorch"
	@echo "make bench        measure the CPU, beside PyTorch if it is installed: ISA=avx2 ROUNDS=7"
	@echo "make bench-distributed  measure collectives, beside MPI calls in C, and steps on 2 ranks"
	@echo "make bundle       build a portable archive for machines without compiler, Lua or network"
	@echo "make fuzz         fuzz the readers of files, a minute each (needs clang)"
	@echo "make fuzz-api     fuzz the whole API in both builds: SECONDS=60 SEED="
	@echo "make fuzz-differential  compare devices, layouts, spellings and threads: SECONDS=60 SEED="
	@echo "make docs         build the documentation as a site, docs/site (needs MkDocs with Material)"
	@echo "make man          write docs/lutra.1 from lutra --help"
	@echo "make install      install the program, the module and the Lua files: PREFIX=$(PREFIX) DESTDIR="
	@echo "make uninstall    remove what make install installed: the same PREFIX and DESTDIR"
	@echo "make env          print LUA_PATH and LUA_CPATH for lua5.4 with this folder's build"
	@echo "make deps         install what is missing, or print the command"
	@echo "make clean        remove build and build-debug"
