/* What the static C++ run-time library wants from a glibc newer than 2.34, so that the command and
   the library start on machines that have no more than that. Linked into those two only; hidden. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

/* glibc 2.36. libstdc++ asks for it in std::random_device. */
__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) {
  }
  return value;
}

#if __GLIBC_PREREQ(2, 35)
/* glibc 2.35. libgcc's unwinder asks for the object around a program counter; this is how it found
   it before, only slower. */
struct search {
  uintptr_t pc;
  struct dl_find_object* found;
};

static int look(struct dl_phdr_info* info, size_t size, void* data) {
  struct search* search = data;
  const ElfW(Phdr)* eh_frame = NULL;
  uintptr_t start = UINTPTR_MAX;
  uintptr_t end = 0;
  int inside = 0;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    const uintptr_t from = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_GNU_EH_FRAME) eh_frame = segment;
    if (segment->p_type != PT_LOAD) continue;
    if (search->pc >= from && search->pc < from + segment->p_memsz) inside = 1;
    if (from < start) start = from;
    if (from + segment->p_memsz > end) end = from + segment->p_memsz;
  }
  if (!inside || eh_frame == NULL) return 0;
  search->found->dlfo_flags = 0;
  search->found->dlfo_map_start = (void*)start;
  search->found->dlfo_map_end = (void*)end;
  search->found->dlfo_link_map = NULL;
  search->found->dlfo_eh_frame = (void*)(info->dlpi_addr + eh_frame->p_vaddr);
  return 1;
}

__attribute__((visibility("hidden"))) int _dl_find_object(void* pc, struct dl_find_object* found) {
  struct search search = {(uintptr_t)pc, found};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}
#endif
