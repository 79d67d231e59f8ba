// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_DYN_LINK
#define BOOST_TEST_MODULE control
#include <boost/test/unit_test.hpp>
