# What keeps the sources in order. Needs nothing that was built.
add_test(NAME house.layers COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/layers.py ${PROJECT_SOURCE_DIR})
set_tests_properties(house.layers PROPERTIES LABELS unit TIMEOUT 30)
