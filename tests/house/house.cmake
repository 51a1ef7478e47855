# What keeps the sources in order. Needs nothing that was built.
add_test(NAME house.layers COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/layers.py ${PROJECT_SOURCE_DIR})
add_test(NAME house.namespaces COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/namespaces.py ${PROJECT_SOURCE_DIR})
set_tests_properties(house.layers house.namespaces PROPERTIES LABELS unit TIMEOUT 30)
