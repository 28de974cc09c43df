"""The compiled engine: the same instruction descriptions as the interpreter's, traced into LLVM code."""
