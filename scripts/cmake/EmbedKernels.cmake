# lap_embed_kernels(target): turns kernels_cl/*.cl and kernels_cu/*.cu into one C table in the build
# tree, so that the program finds its kernels from any directory. Local #include "x.clh|cuh" lines are
# resolved from the same folder, so every embedded text is complete.
function(lap_embed_kernels target)
  file(GLOB sources CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/kernels_cl/*.cl ${CMAKE_SOURCE_DIR}/kernels_cl/*.clh
    ${CMAKE_SOURCE_DIR}/kernels_cu/*.cu ${CMAKE_SOURCE_DIR}/kernels_cu/*.cuh)
  set(out ${CMAKE_BINARY_DIR}/generated/kernel_sources.c)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DROOT=${CMAKE_SOURCE_DIR} -P
      ${CMAKE_SOURCE_DIR}/scripts/cmake/embed_kernels_script.cmake
    DEPENDS ${sources} ${CMAKE_SOURCE_DIR}/scripts/cmake/embed_kernels_script.cmake
    COMMENT "Embedding kernels" VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
