//! A mutable slice that several threads write in disjoint parts.

use std::marker::PhantomData;

/// A slice shared for writing. Its users must ensure that no element is touched by two threads at once.
#[derive(Clone, Copy)]
pub(crate) struct SharedMut<'a, T> {
    start: *mut T,
    length: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: handing the pointer to another thread is no access; accesses are the unsafe methods' callers' concern.
unsafe impl<T: Send> Send for SharedMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedMut<'_, T> {}

impl<'a, T> SharedMut<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        SharedMut { start: slice.as_mut_ptr(), length: slice.len(), slice: PhantomData }
    }

    /// The whole slice's first element.
    pub(crate) fn pointer(&self) -> *mut T {
        self.start
    }

    /// A part of it. Panics if it is out of bounds.
    ///
    /// # Safety
    /// No other thread touches the part while the answer lives.
    pub(crate) unsafe fn slice(&self, start: usize, length: usize) -> &'a mut [T] {
        assert!(start + length <= self.length, "part {start}+{length} of a slice of {}", self.length);
        // SAFETY: it is within the slice, which is borrowed for as long, and the caller keeps others away.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), length) }
    }
}
