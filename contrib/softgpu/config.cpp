// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sched.h>
#include <string_view>

namespace softgpu {
namespace {

constexpr std::array keys = {"SOFTGPU_DEVICES",    "SOFTGPU_MEMORY",  "SOFTGPU_NAME", "SOFTGPU_SMS",
                             "SOFTGPU_CAPABILITY", "SOFTGPU_THREADS", "SOFTGPU_DIR"};
using Settings = std::map<std::string, std::string, std::less<>>;

std::string_view trim(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
        text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
        text.remove_suffix(1);
    return text;
}

void read_file(const std::string& path, Settings& settings) {
    std::ifstream file(path);
    if (!file)
        throw ConfigError("SOFTGPU_CONF=" + path + ": the file cannot be read");
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        const auto text = trim(line);
        if (text.empty() || text.front() == '#')
            continue;
        const auto where = path + ":" + std::to_string(number) + ": ";
        const auto equals = text.find('=');
        if (equals == std::string_view::npos)
            throw ConfigError(where + "'" + std::string(text) + "' is not KEY=VALUE");
        const auto key = trim(text.substr(0, equals));
        if (std::find(keys.begin(), keys.end(), key) == keys.end())
            throw ConfigError(where + "there is no setting " + std::string(key));
        settings[std::string(key)] = trim(text.substr(equals + 1));
    }
}

template <class Number>
bool parse(std::string_view text, Number& value) {
    const auto* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    return result.ec == std::errc() && result.ptr == end;
}

int parse_count(const char* key, const std::string& text, int most) {
    int value = 0;
    if (!parse(text, value) || value < 1 || value > most)
        throw ConfigError(std::string(key) + "=" + text + ": want a number from 1 to " +
                          std::to_string(most));
    return value;
}

std::uint64_t parse_memory(const std::string& text) {
    constexpr std::uint64_t least = std::uint64_t{1} << 20;
    constexpr std::uint64_t most = std::uint64_t{1} << 42;
    const auto wrong = [&] {
        return ConfigError("SOFTGPU_MEMORY=" + text +
                           ": want a size from 1M to 4T, with K, M, G or T behind it");
    };
    std::string_view digits = text;
    int shift = 0;
    if (!digits.empty() && std::isdigit(static_cast<unsigned char>(digits.back())) == 0) {
        constexpr std::string_view units = "KMGT";
        const auto unit =
            units.find(static_cast<char>(std::toupper(static_cast<unsigned char>(digits.back()))));
        if (unit == std::string_view::npos)
            throw wrong();
        shift = 10 * (static_cast<int>(unit) + 1);
        digits.remove_suffix(1);
    }
    std::uint64_t value = 0;
    if (!parse(digits, value) || value > (most >> shift) || (value << shift) < least)
        throw wrong();
    return value << shift;
}

void parse_capability(const std::string& text, Config& config) {
    const auto dot = text.find('.');
    const std::string_view view = text;
    if (dot == std::string::npos || !parse(view.substr(0, dot), config.capability_major) ||
        !parse(view.substr(dot + 1), config.capability_minor) || config.capability_major < 5 ||
        config.capability_major > 12 || config.capability_minor < 0 || config.capability_minor > 9)
        throw ConfigError("SOFTGPU_CAPABILITY=" + text +
                          ": want a compute capability from 5.0 to 12.9, e.g. 7.5");
}

int usable_cpus() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return std::max(1, CPU_COUNT(&set));
}

} // namespace

Config Config::load() {
    Settings settings;
    if (const char* path = std::getenv("SOFTGPU_CONF"); path != nullptr && *path != '\0')
        read_file(path, settings);
    for (const char* key : keys)
        if (const char* value = std::getenv(key); value != nullptr)
            settings[key] = trim(value);

    Config config;
    for (const auto& [key, value] : settings) {
        if (key == "SOFTGPU_DEVICES")
            config.devices = parse_count("SOFTGPU_DEVICES", value, 64);
        else if (key == "SOFTGPU_MEMORY")
            config.memory = parse_memory(value);
        else if (key == "SOFTGPU_SMS")
            config.sms = parse_count("SOFTGPU_SMS", value, 1024);
        else if (key == "SOFTGPU_THREADS")
            config.threads = parse_count("SOFTGPU_THREADS", value, 1024);
        else if (key == "SOFTGPU_CAPABILITY")
            parse_capability(value, config);
        else if (value.empty())
            throw ConfigError(key + " is empty");
        else if (key == "SOFTGPU_NAME")
            config.name = value;
        else
            config.directory = value;
    }
    if (config.threads == 0)
        config.threads = usable_cpus();
    if (config.sms == 0)
        config.sms = std::max(2, usable_cpus());
    return config;
}

} // namespace softgpu
