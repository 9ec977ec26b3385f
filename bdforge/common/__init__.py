"""What knows nothing of arrays: files, messages, compilers, native code, pictures."""
