// What clang's -Wthread-safety checks: which lock guards a member, which one a function needs.
// Other compilers see nothing.
//
//   Mutex mutex_;
//   int count_ GUARDED_BY(mutex_) = 0;
//   void addLocked(int more) REQUIRES(mutex_);
//
// A lambda is a function of its own: one that runs with the lock held says so,
// [this]() REQUIRES(mutex_) { … }. Constructors and destructors are not checked.
#pragma once

#if defined(__clang__)
#define FARANDOLE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define FARANDOLE_THREAD_ATTRIBUTE(x)
#endif

// For classes: a lock; an object that holds one while it lives.
#define CAPABILITY(name) FARANDOLE_THREAD_ATTRIBUTE(capability(name))
#define SCOPED_CAPABILITY FARANDOLE_THREAD_ATTRIBUTE(scoped_lockable)

// For members: the lock that guards it; the lock that guards what it points to.
#define GUARDED_BY(lock) FARANDOLE_THREAD_ATTRIBUTE(guarded_by(lock))
#define PT_GUARDED_BY(lock) FARANDOLE_THREAD_ATTRIBUTE(pt_guarded_by(lock))

// For functions: called with the lock held; called without it, because it takes it.
#define REQUIRES(...) FARANDOLE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) FARANDOLE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))

// For functions: takes the lock; gives it back; takes it if it returns the first argument.
#define ACQUIRE(...) FARANDOLE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) FARANDOLE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) FARANDOLE_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))

// The function's body is not checked; the reason stands beside it.
#define NO_THREAD_SAFETY_ANALYSIS FARANDOLE_THREAD_ATTRIBUTE(no_thread_safety_analysis)
