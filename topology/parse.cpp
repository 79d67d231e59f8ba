// SPDX-License-Identifier: BSD-3-Clause
#include "topology/parse.h"

#include <algorithm>
#include <charconv>

namespace vgpu {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lowered(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

std::string quoted(std::string_view text) {
    return '"' + std::string(text) + '"';
}

bool digit(char c) {
    return c >= '0' && c <= '9';
}

bool name_char(char c) {
    return digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '_';
}

bool space(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/// Splits "12GiB" into 12 and "gib"; false without a number, or with one that does not fit.
bool split_number(std::string_view text, std::uint64_t& number, std::string& unit) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end == text.data())
        return false;
    unit = lowered(text.substr(static_cast<std::size_t>(end - text.data())));
    return true;
}

/// "1-3,7,09-10": the numbers as they are written, leading zeros kept as the range's first number has them.
std::vector<std::string> expand_ranges(std::string_view ranges, std::string_view whole) {
    const std::string wrong =
        quoted(whole) + " is not a host list: in brackets stand numbers and ranges of them, as in g[1-4,7]";
    std::vector<std::string> out;
    while (true) {
        auto comma = ranges.find(',');
        auto range = ranges.substr(0, comma);
        auto dash = range.find('-');
        auto first = range.substr(0, dash);
        auto last = dash == std::string_view::npos ? first : range.substr(dash + 1);
        auto number = [&](std::string_view text) -> std::uint64_t {
            if (text.empty() || text.size() > 9 || !std::all_of(text.begin(), text.end(), digit))
                throw ParseError(wrong);
            std::uint64_t value = 0;
            std::from_chars(text.data(), text.data() + text.size(), value);
            return value;
        };
        auto low = number(first), high = number(last);
        if (high < low)
            throw ParseError(quoted(whole) + " is not a host list: the range " + std::string(range) +
                             " runs backwards");
        if (high - low >= 65536)
            throw ParseError(quoted(whole) + " is not a host list: the range " + std::string(range) +
                             " is longer than 65536 names");
        for (auto i = low; i <= high; ++i) {
            auto name = std::to_string(i);
            if (name.size() < first.size())
                name.insert(0, first.size() - name.size(), '0');
            out.push_back(std::move(name));
        }
        if (comma == std::string_view::npos)
            return out;
        ranges.remove_prefix(comma + 1);
    }
}

/// One comma-free element of a host list: literal text and brackets in turn.
void expand_element(std::string_view element, std::string_view whole, std::vector<std::string>& out) {
    std::vector<std::string> names{""};
    while (!element.empty()) {
        auto open = element.find('[');
        auto literal = element.substr(0, open);
        if (literal.find(']') != std::string_view::npos)
            throw ParseError(quoted(whole) + " is not a host list: a ] has no [ before it");
        for (auto& name : names)
            name += literal;
        if (open == std::string_view::npos)
            break;
        auto close = element.find(']', open);
        if (close == std::string_view::npos)
            throw ParseError(quoted(whole) + " is not a host list: a [ has no ] after it");
        std::vector<std::string> next;
        for (const auto& name : names)
            for (const auto& number : expand_ranges(element.substr(open + 1, close - open - 1), whole))
                next.push_back(name + number);
        names = std::move(next);
        element.remove_prefix(close + 1);
    }
    for (const auto& name : names)
        if (name.empty())
            throw ParseError(quoted(whole) + " is not a host list: a name in it is empty");
    out.insert(out.end(), names.begin(), names.end());
}

} // namespace

std::uint64_t parse_mib(std::string_view text) {
    std::uint64_t number = 0;
    std::string unit;
    if (!split_number(text, number, unit))
        throw ParseError(quoted(text) + " is not a size: write a whole number and M, G or T, as in 512M or "
                                        "2G (a number alone counts MiB)");
    if (unit.size() > 1 && (unit.substr(1) == "b" || unit.substr(1) == "ib"))
        unit.resize(1);
    std::uint64_t scale = 0;
    if (unit.empty() || unit == "m")
        scale = 1;
    else if (unit == "g")
        scale = 1024;
    else if (unit == "t")
        scale = 1024 * 1024;
    else
        throw ParseError(
            quoted(text) +
            " is not a size: the unit is M, G or T, as in 512M or 2G (a number alone counts MiB)");
    // 2^44 MiB are 2^64 bytes.
    if (number == 0 || number >= (std::uint64_t{1} << 44) / scale)
        throw ParseError(quoted(text) + " is not a size that a GPU can have: from 1M up, as in 512M or 2G");
    return number * scale;
}

std::uint64_t parse_number(std::string_view text, std::uint64_t low, std::uint64_t high) {
    std::uint64_t number = 0;
    std::string rest;
    if (!split_number(text, number, rest) || !rest.empty() || number < low || number > high)
        throw ParseError(quoted(text) + " is not a whole number from " + std::to_string(low) + " to " +
                         std::to_string(high));
    return number;
}

std::chrono::milliseconds parse_duration(std::string_view text) {
    std::uint64_t number = 0;
    std::string unit;
    std::uint64_t scale = 0;
    if (split_number(text, number, unit)) {
        if (unit == "ms")
            scale = 1;
        else if (unit.empty() || unit == "s")
            scale = 1000;
        else if (unit == "m" || unit == "min")
            scale = 60000;
    }
    if (scale == 0 || number == 0 || number > 86400000 / scale)
        throw ParseError(quoted(text) + " is not a time: write seconds, or a number with ms, s or m, as in "
                                        "4, 250ms or 2m; at most a day");
    return std::chrono::milliseconds(number * scale);
}

bool parse_flag(std::string_view text) {
    auto word = lowered(text);
    if (word == "yes" || word == "true" || word == "1")
        return true;
    if (word == "no" || word == "false" || word == "0")
        return false;
    throw ParseError(quoted(text) + " is neither yes nor no");
}

std::map<std::string, std::string> parse_environment(std::string_view text) {
    std::map<std::string, std::string> out;
    while (!text.empty()) {
        auto comma = text.find(',');
        auto entry = text.substr(0, comma);
        auto equals = entry.find('=');
        auto name = entry.substr(0, equals);
        if (equals == std::string_view::npos || name.empty() || digit(name[0]) ||
            !std::all_of(name.begin(), name.end(), name_char))
            throw ParseError(quoted(entry) + " is not a setting of an environment variable: write "
                                             "NAME=VALUE, several with commas between");
        if (!out.emplace(name, entry.substr(equals + 1)).second)
            throw ParseError(quoted(name) + " is set twice");
        if (comma == std::string_view::npos)
            break;
        text.remove_prefix(comma + 1);
    }
    return out;
}

std::vector<std::string> expand_hostlist(std::string_view text) {
    std::vector<std::string> out;
    std::size_t begin = 0;
    bool inside = false;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size() && text[i] == '[')
            inside = true;
        else if (i < text.size() && text[i] == ']')
            inside = false;
        else if (i == text.size() || (text[i] == ',' && !inside)) {
            if (i == begin)
                throw ParseError(quoted(text) + " is not a host list: a name in it is empty");
            expand_element(text.substr(begin, i - begin), text, out);
            begin = i + 1;
        }
    }
    return out;
}

std::vector<std::pair<std::string, std::string>> parse_pairs(std::string_view line) {
    std::vector<std::pair<std::string, std::string>> out;
    std::size_t at = 0;
    while (true) {
        while (at < line.size() && space(line[at]))
            ++at;
        if (at == line.size() || line[at] == '#')
            return out;
        auto begin = at;
        while (at < line.size() && !space(line[at]) && line[at] != '=' && line[at] != '#')
            ++at;
        std::string key(line.substr(begin, at - begin));
        while (at < line.size() && space(line[at])) // slurm.conf allows blanks around the sign
            ++at;
        if (at == line.size() || line[at] != '=' || key.empty())
            throw ParseError(quoted(key) + " stands alone: a line holds Key=Value");
        ++at;
        while (at < line.size() && space(line[at]))
            ++at;
        std::string value;
        if (at < line.size() && line[at] == '"') {
            auto close = line.find('"', at + 1);
            if (close == std::string_view::npos)
                throw ParseError("the value of " + key + " begins with a quote and does not end with one");
            value = line.substr(at + 1, close - at - 1);
            at = close + 1;
            if (at < line.size() && !space(line[at]) && line[at] != '#')
                throw ParseError("after the quoted value of " + key + " a blank is missing");
        } else {
            begin = at;
            while (at < line.size() && !space(line[at]) && line[at] != '#')
                ++at;
            value = line.substr(begin, at - begin);
        }
        out.emplace_back(std::move(key), std::move(value));
    }
}

bool same_key(std::string_view a, std::string_view b) {
    return lowered(a) == lowered(b);
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
    const auto wanted = lowered(word);
    std::string best;
    std::size_t best_distance = wanted.size() / 2 + 1; // farther than this is no likely slip
    for (const auto& candidate : known) {
        const auto other = lowered(candidate);
        std::vector<std::size_t> row(other.size() + 1);
        for (std::size_t j = 0; j <= other.size(); ++j)
            row[j] = j;
        for (std::size_t i = 1; i <= wanted.size(); ++i) {
            auto diagonal = row[0];
            row[0] = i;
            for (std::size_t j = 1; j <= other.size(); ++j) {
                auto replaced = diagonal + (wanted[i - 1] != other[j - 1]);
                diagonal = row[j];
                row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
            }
        }
        if (row.back() < best_distance) {
            best_distance = row.back();
            best = candidate;
        }
    }
    return best;
}

} // namespace vgpu
