#include "launch/remote/tree.h"

#include <elf.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include "base/text.h"

namespace farandole::launch::remote {
namespace {

namespace fs = std::filesystem;

Result<std::string> content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (!file || error) return Status::fromErrno("cannot read '" + path + "'", errno);
  std::string bytes(size, '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
    return Status::unavailable("cannot read '" + path + "': it changed meanwhile");
  }
  return bytes;
}

// The linker's hash of a program or library; nothing for other files, and for one that ends before
// its segments do. Reads a few kilobytes, where a hash of our own would have to read everything at
// every start.
std::optional<std::string> buildId(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const auto size = fs::file_size(path, error);
  std::optional<std::string> found;
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return std::nullopt;
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff +
                                           static_cast<std::size_t>(i) * sizeof(segment)));
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof(segment))) return std::nullopt;
    if (error || segment.p_offset + segment.p_filesz > size) return std::nullopt;
    if (segment.p_type != PT_NOTE || segment.p_filesz > 65536) continue;
    std::string notes(segment.p_filesz, '\0');
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    if (!file.read(notes.data(), static_cast<std::streamsize>(notes.size()))) return std::nullopt;
    for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
      Elf64_Nhdr note{};
      std::memcpy(&note, notes.data() + at, sizeof(note));
      const std::size_t name = at + sizeof(note);
      const std::size_t text = name + (note.n_namesz + 3U) / 4 * 4;
      const std::size_t end = text + (note.n_descsz + 3U) / 4 * 4;
      if (end > notes.size() || end <= at) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz >= 8) {
        found = notes.substr(text, note.n_descsz);
      }
      at = end;
    }
  }
  return found;
}

Result<std::string> hexDigest(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr) != 1) {
    return Status::internal("no SHA-256 in this OpenSSL");
  }
  return hexOf(std::span(digest, length));
}

Result<std::string> idOf(const std::vector<TreeFile>& files) {
  std::string text = "farandole " FARANDOLE_VERSION;
  for (const TreeFile& file : files) {
    text += "\n" + file.name + " ";
    if (!file.link.empty()) {
      text += "-> " + file.link;
    } else if (const auto id = buildId(file.path)) {
      text += *id;
    } else {
      Result<std::string> bytes = content(file.path);
      if (!bytes.ok()) return bytes.status();
      text += *bytes;
    }
  }
  Result<std::string> digest = hexDigest(text);
  if (!digest.ok()) return digest.status();
  return digest->substr(0, 24);
}

std::string manifestHead(const Tree& tree) { return "farandole " + tree.id + "\n"; }

std::string manifestLine(const TreeFile& file, const std::string& digest) {
  const std::string what = file.link.empty() ? "file " + digest : "link " + file.link;
  return what + " " + file.name + "\n";
}

std::size_t padded(std::size_t bytes) { return (bytes + 511) / 512 * 512; }

void addFolder(const fs::path& root, const std::string& name, std::string_view prefix,
               std::vector<TreeFile>& files) {
  std::error_code ignored;  // a folder that is not there adds nothing
  for (const auto& entry : fs::directory_iterator(root / name, ignored)) {
    const std::string file = entry.path().filename();
    if (!file.starts_with(prefix) || file.ends_with(".debug")) continue;
    const std::string inTree = name + "/" + file;
    // A build tree links to folders of the sources; what they hold is part of the tree.
    if (entry.is_symlink() && !entry.is_directory(ignored)) {
      files.push_back({inTree, entry.path(), fs::read_symlink(entry.path(), ignored)});
    } else if (entry.is_regular_file() && !file.ends_with(".pyc")) {
      files.push_back({inTree, entry.path(), {}});
    } else if (entry.is_directory() && prefix.empty() && file != "__pycache__") {
      addFolder(root, inTree, "", files);
    }
  }
}

// One 512-byte header of the ustar format.
std::string tarHeader(const TreeFile& file, std::size_t size, unsigned mode) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, std::size_t width, const std::string& text) {
    header.replace(at, std::min(width, text.size()), text, 0, width);
  };
  const auto octal = [](std::size_t value, int digits) {
    std::string text(static_cast<std::size_t>(digits), '0');
    for (auto digit = text.rbegin(); digit != text.rend(); ++digit, value /= 8) {
      *digit = static_cast<char>('0' + value % 8);
    }
    return text;
  };
  put(0, 100, file.name);
  put(100, 8, octal(mode, 7));
  put(108, 8, octal(0, 7));
  put(116, 8, octal(0, 7));
  put(124, 12, octal(size, 11));
  put(136, 12, octal(0, 11));
  put(148, 8, std::string(8, ' '));
  header[156] = file.link.empty() ? '0' : '2';
  put(157, 100, file.link);
  put(257, 8, std::string("ustar\00000", 8));
  std::size_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, 8, octal(sum, 6) + std::string("\0 ", 2));
  return header;
}

}  // namespace

Result<Tree> ownTree() {
  std::error_code error;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  if (error) return Status::fromErrno("cannot find the farandole command", error.value());
  const fs::path root = command.parent_path().parent_path();
  Tree tree;
  tree.command = command;
  tree.files.push_back({"bin/farandole", command, {}});
  addFolder(root, "lib", "libfarandole", tree.files);
  addFolder(root, "lib/farandole", "", tree.files);
  // For machines that compile TensorFlow's operations.
  addFolder(root, "include", "farandole.h", tree.files);
  std::sort(tree.files.begin(), tree.files.end(),
            [](const TreeFile& a, const TreeFile& b) { return a.name < b.name; });
  Result<std::string> id = idOf(tree.files);
  if (!id.ok()) return id.status();
  tree.id = *id;
  return tree;
}

std::string treeId() {
  Result<Tree> tree = ownTree();
  return tree.ok() ? tree->id : std::string();
}

Result<std::string> digestOf(const std::string& path) {
  Result<std::string> bytes = content(path);
  return bytes.ok() ? hexDigest(*bytes) : bytes;
}

Result<std::size_t> archiveBytes(const Tree& tree) {
  std::size_t total = 1024;
  std::size_t manifest = manifestHead(tree).size();
  for (const TreeFile& file : tree.files) {
    total += 512;
    manifest += manifestLine(file, std::string(64, '0')).size();
    if (!file.link.empty()) continue;
    std::error_code error;
    const auto bytes = fs::file_size(file.path, error);
    if (error) return Status::fromErrno("cannot read '" + file.path + "'", error.value());
    total += padded(bytes);
  }
  return total + 512 + padded(manifest);
}

Result<std::string> archive(const Tree& tree) {
  std::string tar;
  std::string manifest = manifestHead(tree);
  const auto add = [&tar](const TreeFile& file, const std::string& bytes) {
    tar += tarHeader(file, bytes.size(), file.name.starts_with("bin/") ? 0755 : 0644);
    tar += bytes;
    tar.append(padded(bytes.size()) - bytes.size(), '\0');
  };
  for (const TreeFile& file : tree.files) {
    if (file.name.size() >= 100 || file.link.size() >= 100) {
      return Status::internal("the name '" + file.name + "' is too long for an archive");
    }
    if ((file.name + file.link).find_first_of(" \n") != std::string::npos) {
      return Status::internal("the name '" + file.name + "' has a blank in it");
    }
    if (!file.link.empty()) {
      tar += tarHeader(file, 0, 0777);
      manifest += manifestLine(file, {});
      continue;
    }
    Result<std::string> bytes = content(file.path);
    if (!bytes.ok()) return bytes.status();
    Result<std::string> digest = hexDigest(*bytes);
    if (!digest.ok()) return digest.status();
    manifest += manifestLine(file, *digest);
    add(file, *bytes);
  }
  add({kManifest, {}, {}}, manifest);
  tar.append(1024, '\0');
  return tar;
}

}  // namespace farandole::launch::remote
