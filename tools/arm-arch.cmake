# llama-cpp-sys-2's build script passes -DGGML_CPU_ARM_ARCH=armv8-a on aarch64 Linux whatever the environment says.
# cpu-flags.sh has every project() of llama.cpp include this file, which puts the chosen architecture back.
set(GGML_CPU_ARM_ARCH "$ENV{GGML_CPU_ARM_ARCH}" CACHE STRING "ggml: CPU architecture for ARM" FORCE)
