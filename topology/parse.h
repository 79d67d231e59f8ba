// SPDX-License-Identifier: BSD-3-Clause
// The small grammars of vgpu.conf and of the users' options. Every function throws ParseError with the rest
// of a sentence that begins with what was read: `"12Q" is not a size: ...`.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vgpu {

struct ParseError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// "512", "512M", "1G", "2T" (also lower case, and with B or iB): MiB. Kibibytes are refused, zero too.
std::uint64_t parse_mib(std::string_view text);

/// A whole number in [low, high], nothing else around it.
std::uint64_t parse_number(std::string_view text, std::uint64_t low, std::uint64_t high);

/// "4" (seconds), "4s", "250ms", "2m".
std::chrono::milliseconds parse_duration(std::string_view text);

/// "yes" or "no", as in slurm.conf; also true/false, 1/0.
bool parse_flag(std::string_view text);

/// "A=1,B=2". Names are those of environment variables; a value cannot hold a comma.
std::map<std::string, std::string> parse_environment(std::string_view text);

/// "g[1-3,7],big[01-02]" -> g1 g2 g3 g7 big01 big02, in that order; several brackets in one name multiply.
std::vector<std::string> expand_hostlist(std::string_view text);

/// One line of vgpu.conf: its Key=Value pairs; a comment is left out, quotes are taken off.
std::vector<std::pair<std::string, std::string>> parse_pairs(std::string_view line);

bool same_key(std::string_view a, std::string_view b); ///< ASCII case does not count

/// The one of `known` that needs the fewest edits to become `word`, case not counted; "" if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

} // namespace vgpu
