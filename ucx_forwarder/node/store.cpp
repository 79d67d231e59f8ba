// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/node/store.h"

#include "gres_vgpu/control/json.h"

#include <cstring>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

namespace vgpu::node {
namespace {

constexpr int schema_version = 1;

class Statement {
public:
    Statement(sqlite3* database, const std::string& path, const char* sql)
        : database_(database), path_(path) {
        if (sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr) != SQLITE_OK)
            fail();
    }
    ~Statement() { sqlite3_finalize(statement_); }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    Statement& bind(int number, const std::string& text) {
        if (sqlite3_bind_text(statement_, number, text.data(), static_cast<int>(text.size()),
                              SQLITE_TRANSIENT) != SQLITE_OK)
            fail();
        return *this;
    }
    /// True: a row is there.
    bool step() {
        const int result = sqlite3_step(statement_);
        if (result != SQLITE_ROW && result != SQLITE_DONE)
            fail();
        return result == SQLITE_ROW;
    }
    std::string text(int column) const {
        const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
        return bytes == nullptr ? "" : std::string(bytes, sqlite3_column_bytes(statement_, column));
    }
    int number(int column) const { return sqlite3_column_int(statement_, column); }

private:
    [[noreturn]] void fail() const { throw std::runtime_error(path_ + ": " + sqlite3_errmsg(database_)); }
    sqlite3* database_;
    const std::string& path_;
    sqlite3_stmt* statement_ = nullptr;
};

template <typename T>
std::vector<T> read_all(sqlite3* database, const std::string& path, const char* sql) {
    std::vector<T> all;
    Statement query(database, path, sql);
    while (query.step()) {
        try {
            all.push_back(nlohmann::json::parse(query.text(0)).get<T>());
        } catch (const nlohmann::json::exception& error) {
            throw std::runtime_error(path + ": a row is damaged: " + error.what());
        }
    }
    return all;
}

} // namespace

Store::Store(const std::string& path) : path_(path) {
    // SQLite gives its journal the mode of the database.
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        throw std::runtime_error(path + ": " + strerror(errno));
    fchmod(fd, 0600);
    ::close(fd);
    if (sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK) {
        const std::string why = database_ ? sqlite3_errmsg(database_) : "no memory";
        sqlite3_close(database_);
        throw std::runtime_error(path + ": " + why);
    }
    try {
        sqlite3_busy_timeout(database_, 5000);
        for (const char* sql :
             {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA foreign_keys=ON"})
            Statement(database_, path_, sql).step();
        Statement version(database_, path_, "PRAGMA user_version");
        version.step();
        const int found = version.number(0);
        if (found > schema_version)
            throw std::runtime_error(path_ + " was written by a newer vgpud (schema " +
                                     std::to_string(found) + ", this one knows " +
                                     std::to_string(schema_version) + ")");
        if (found == 0)
            for (const char* sql :
                 {"CREATE TABLE IF NOT EXISTS lease (id TEXT PRIMARY KEY, body TEXT NOT NULL)",
                  "CREATE TABLE IF NOT EXISTS claim (id TEXT PRIMARY KEY, lease TEXT NOT NULL REFERENCES "
                  "lease(id) "
                  "ON DELETE CASCADE, body TEXT NOT NULL)",
                  "CREATE INDEX IF NOT EXISTS claim_lease ON claim(lease)", "PRAGMA user_version=1"})
                Statement(database_, path_, sql).step();
    } catch (...) {
        sqlite3_close(database_);
        throw;
    }
}

Store::~Store() {
    sqlite3_close(database_);
}

std::vector<control::Lease> Store::leases() {
    return read_all<control::Lease>(database_, path_, "SELECT body FROM lease ORDER BY rowid");
}

std::vector<control::Claim> Store::claims() {
    return read_all<control::Claim>(database_, path_, "SELECT body FROM claim ORDER BY rowid");
}

void Store::put(const control::Lease& lease) {
    // No REPLACE: that would delete the old row, and with it the claims.
    Statement(database_, path_,
              "INSERT INTO lease (id, body) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET body = ?2")
        .bind(1, lease.id)
        .bind(2, nlohmann::json(lease).dump())
        .step();
}

void Store::put(const control::Claim& claim) {
    Statement(database_, path_,
              "INSERT INTO claim (id, lease, body) VALUES (?1, ?2, ?3) "
              "ON CONFLICT (id) DO UPDATE SET lease = ?2, body = ?3")
        .bind(1, claim.id)
        .bind(2, claim.lease)
        .bind(3, nlohmann::json(claim).dump())
        .step();
}

void Store::remove_lease(const std::string& id) {
    Statement(database_, path_, "DELETE FROM lease WHERE id = ?1").bind(1, id).step();
}

void Store::remove_claim(const std::string& id) {
    Statement(database_, path_, "DELETE FROM claim WHERE id = ?1").bind(1, id).step();
}

} // namespace vgpu::node
