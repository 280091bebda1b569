# The module _cuda: the entry points of the CPU modules, compiled for GPUs.
set(named "${CMAKE_CUDA_ARCHITECTURES}")
if(NOT named)
    set(CMAKE_CUDA_ARCHITECTURES OFF)  # decided below, when it is known what the compiler knows
endif()
enable_language(CUDA)
if(NOT named)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-code OUTPUT_VARIABLE known COMMAND_ERROR_IS_FATAL ANY)
    foreach(architecture 75 80 86 89 90 100 120)
        if(known MATCHES "sm_${architecture}[ \n]")
            list(APPEND named ${architecture}-real)
            set(newest ${architecture})
        endif()
    endforeach()
    list(APPEND named ${newest}-virtual)  # for what comes after
endif()
foreach(architecture ${named})
    string(REGEX MATCH "^[0-9]+[a-z]?" number ${architecture})
    if(NOT architecture MATCHES "-virtual")
        list(APPEND labels "sm_${number}")
    endif()
    if(NOT architecture MATCHES "-real")
        list(APPEND labels "PTX of ${number}")
    endif()
endforeach()
list(JOIN labels ", " architectures)
message(STATUS "CUDA module for the architectures ${architectures}")

pybind11_add_module(_cuda MODULE NO_EXTRAS bind.cpp
    src/sample.cu src/contract.cu src/scatter.cu src/scatter_whole.cu src/vote.cu src/lines.cu src/lattice.cu)
target_include_directories(_cuda PRIVATE include)
target_compile_features(_cuda PRIVATE cxx_std_17 cuda_std_17)
target_compile_definitions(_cuda PRIVATE REGNET_MODULE=_cuda REGNET_CUDA
    REGNET_ARCHITECTURES="${architectures}" REGNET_TOOLKIT="${CMAKE_CUDA_COMPILER_VERSION}")
target_compile_options(_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xfatbin=-compress-all>)  # a fifth of the size
set_target_properties(_cuda PROPERTIES
    CUDA_ARCHITECTURES "${named}" CUDA_RUNTIME_LIBRARY Static CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden)
install(TARGETS _cuda DESTINATION regnet/ops)
