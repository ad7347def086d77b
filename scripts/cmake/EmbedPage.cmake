# lap_embed_page(target): turns the report page's style and script, and Chart.js where it is there,
# into one C file in the build tree (see src/page/page.h).
function(lap_embed_page target)
  set(dir ${CMAKE_SOURCE_DIR}/src/page/assets)
  set(script ${CMAKE_SOURCE_DIR}/scripts/cmake/embed_page_script.cmake)
  set(out ${CMAKE_BINARY_DIR}/generated/page_assets.c)
  set(chart "")
  if(LAP_HAVE_CHARTJS)
    set(chart ${LAP_CHARTJS_FILE})
  endif()
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DSTYLE=${dir}/report.css -DSCRIPT=${dir}/report.js
      -DCHART=${chart} -P ${script}
    DEPENDS ${dir}/report.css ${dir}/report.js ${chart} ${script}
    COMMENT "Embedding the report page" VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
