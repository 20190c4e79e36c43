/** Explanations of each kind of error for Python engineers: a title, what happened, the usual causes, and the fix. */

import type { NativeFrame, Report } from "../reports/report.js";
import { isBufferOfCtypes, isForeignCall, isInterpreter, isSystem } from "./owners.js";

export interface Explanation {
  readonly title: string;
  readonly explanation: string;
  readonly causes: readonly string[];
  readonly fix: string;
}

const OUTSIDE: Explanation = {
  title: "Access outside a block",
  explanation:
    "The code read or wrote memory that does not belong to the block: it damages or reveals whatever is there.",
  causes: [
    "a loop or index that goes one element too far",
    "a buffer that was sized without the terminating zero of a string",
    "a length in elements that was used as a length in bytes",
  ],
  fix: "Compare the size at the allocation with the largest index at the access; take lengths from Py_buffer.len or PyBytes_AsStringAndSize.",
};
const AFTER_FREE: Explanation = {
  title: "Use after free",
  explanation:
    "The block had been freed before the code used it; it may already belong to another owner.",
  causes: [
    "a pointer that was kept after free(), or after realloc() moved the block",
    "a pointer into a Python object (PyBytes_AsString, PyUnicode_AsUTF8, a buffer) that outlives the object",
    "two owners that each free the block",
  ],
  fix: "Keep the owner alive as long as the pointer: hold a reference (Py_INCREF) or the Py_buffer until the last use; set pointers to NULL when they are freed.",
};
const UNDER_COUNT: Explanation = {
  title: "Use of a freed Python object (one reference too few)",
  explanation:
    "The extension released a reference that it did not own, so the object was freed while Python code still used it.",
  causes: [
    "Py_DECREF of a borrowed reference: an argument, PyList_GetItem, PyTuple_GetItem, PyDict_GetItem",
    "a reference stolen by PyTuple_SetItem or PyList_SetItem and released again",
    "a borrowed reference that is returned without Py_INCREF",
  ],
  fix: "At the place where the object was freed, remove the Py_DECREF, or add a Py_INCREF (Py_NewRef) where the reference is taken.",
};
const FREED_BY_PYTHON =
  "The interpreter freed the object, because an extension had released a reference before. Check the extension functions that got this object, at or before the Python line: remove the Py_DECREF, or add a Py_INCREF (Py_NewRef).";
const OVER_COUNT: Explanation = {
  title: "Leaked Python object (one reference too many)",
  explanation:
    "The extension created the object and never released its reference, so the object cannot be freed.",
  causes: [
    "Py_INCREF of a new reference before it is returned",
    "PyList_Append or PyDict_SetItem, which take a reference of their own, without Py_DECREF of the new object",
    "an early return on an error that skips Py_DECREF",
    "a list, dict, tuple or instance that leaks, and keeps this object",
  ],
  fix: "Py_DECREF each new reference once, on every path, unless it is returned or stolen.",
};
const LEAK: Explanation = {
  title: "Leaked memory",
  explanation: "The memory was allocated and never freed, and no pointer to it is left.",
  causes: [
    "an early return on an error that skips free()",
    "a pointer that is overwritten before its block is freed",
    "a type without tp_dealloc, or a capsule without a destructor",
  ],
  fix: "Free the block on every path out of the function that allocated it, or in tp_dealloc of the object that owns it.",
};
const UNINITIALISED: Explanation = {
  title: "Use of uninitialised memory",
  explanation:
    "A decision or an address depends on memory that was never written, so the result is random.",
  causes: [
    "malloc() or PyMem_Malloc() where calloc() was meant",
    "a structure of which not all fields are set",
    "a function that failed and did not fill its output, whose result was not checked",
  ],
  fix: "Initialize the block where it was allocated (calloc, memset, = {0}), and check results before their outputs are used.",
};
const BAD_FREE: Explanation = {
  title: "Free of a block that is not allocated",
  explanation: "free() got a pointer that no allocation returned, or that was freed before.",
  causes: [
    "a block that is freed twice: on the error path and at the end, or by two owners",
    "free() of a pointer into the middle of a block, or to static memory",
    "free() of memory from another allocator (PyMem_Malloc, PyObject_Malloc, new)",
  ],
  fix: "Free each block once, by its one owner, with the function that belongs to its allocation; set the pointer to NULL afterwards.",
};
const DOUBLE_FREE: Explanation = {
  ...BAD_FREE,
  title: "Double free",
  explanation: "free() got a block that had been freed before.",
  causes: [
    "a block that is freed on the error path and again at the end",
    "two owners that each free the block",
  ],
};
const MISMATCH: Explanation = {
  title: "Freed by another family of functions",
  explanation: "The block was allocated by one family (malloc, new, new[]) and freed by another.",
  causes: ["delete of a block from new[] or malloc()", "free() of a block from new"],
  fix: "Use the function that belongs to the allocation: free for malloc, delete for new, delete[] for new[].",
};
const OVERLAP: Explanation = {
  title: "Source and destination overlap",
  explanation:
    "memcpy or strcpy copied between overlapping blocks, for which its result is undefined.",
  causes: ["shifting data within one buffer", "copying a buffer onto itself"],
  fix: "Use memmove.",
};
const SYSCALL: Explanation = {
  title: "Uninitialised or foreign memory passed to the system",
  explanation:
    "A system call read memory that was never written, or that does not belong to the program.",
  causes: [
    "a structure with padding that is written to a file or socket",
    "a length that is too large",
  ],
  fix: "Initialize the whole buffer, and pass the number of bytes that were filled.",
};
const UNDEFINED: Explanation = {
  title: "Undefined behaviour",
  explanation:
    "The code did something for which C defines no result; the compiler may assume that it never occurs.",
  causes: [
    "signed arithmetic that overflows, or a shift by too many bits",
    "an index beyond an array's bounds",
    "a pointer that is NULL or not aligned for its type",
  ],
  fix: "Check the range before the operation, or compute with an unsigned or wider type.",
};
const NULL_POINTER: Explanation = {
  title: "Access near address 0 (NULL pointer)",
  explanation:
    "The code accessed an address close to 0: a member of a structure, or an element, behind a pointer that is NULL.",
  causes: [
    "a NULL result that was not checked: of malloc, or of a function of Python that failed",
    "a structure that was zeroed or not filled yet",
    "a pointer that was read from freed or overwritten memory",
  ],
  fix: "Check the results of Python's C functions for NULL before they are used.",
};
const WILD_POINTER: Explanation = {
  title: "Access through an invalid pointer",
  explanation: "The code accessed an address that belongs to no block and no variable.",
  causes: [
    "a pointer that was never set, or that was read from freed or overwritten memory",
    "an index or offset far beyond its block",
    "a pointer cut to 32 bits: through int, or, with ctypes, a function without restype or argtypes",
  ],
  fix: "Find where the pointer comes from: initialize it, declare its whole type, and check the index.",
};
const BROKEN_OBJECT: Explanation = {
  title: "Crash of the interpreter on a broken Python object",
  explanation:
    "The interpreter crashed while it used an object, most often one that was freed too early because an extension released a reference that it did not own.",
  causes: [
    "Py_DECREF of a borrowed reference: an argument, PyList_GetItem, PyTuple_GetItem, PyDict_GetItem",
    "a borrowed reference that is returned, or stored, without Py_INCREF",
    "NULL, or an object that is not filled, passed to a function of Python or stored in a list or tuple",
    "an extension that wrote beyond its block",
  ],
  fix: "tidemark memcheck -- COMMAND shows where the object was freed: remove the Py_DECREF there, or add a Py_INCREF (Py_NewRef) where the reference is taken.",
};
const CRASH: Explanation = {
  title: "Crash",
  explanation: "The program was ended by a fatal signal.",
  causes: ["an instruction that this processor does not have", "a jump through a bad pointer"],
  fix: "Check the instruction at the leaf of the stack.",
};
const DIVISION: Explanation = {
  title: "Division by zero",
  explanation: "A division of integers had no result, and the processor ended the program.",
  causes: ["a divisor of 0", "the smallest integer divided by -1"],
  fix: "Check the divisor before the division.",
};
const ABORTED: Explanation = {
  title: "Call of abort()",
  explanation: "Code found a state from which it cannot continue, and called abort().",
  causes: [
    "an assert() that failed",
    "a C++ exception that nobody caught, so that std::terminate was called",
    "Py_FatalError: a function of Python that was called without the GIL or with a broken object",
  ],
  fix: "Read the last lines that the program printed, and check the caller of abort() in the stack.",
};
const STACK_EXHAUSTED: Explanation = {
  title: "The stack is full",
  explanation:
    "Calls were nested so deep, or local variables were so large, that the thread's stack was full.",
  causes: [
    "a recursion without an end, or over data that is nested very deep",
    "a large array among the local variables",
  ],
  fix: "Limit the recursion (Py_EnterRecursiveCall), and allocate large arrays with malloc.",
};
const SAME_FUNCTION: Explanation = {
  title: "Another error in the C function of another finding",
  explanation:
    "Valgrind reports errors with the same C functions once. Of a later one, it counts the occurrence, so that only its Python line is known, not the block.",
  causes: ["a block that is too small, or that was freed before; which of them is not known"],
  fix: "Fix the other finding and run again, or run the code at this line alone.",
};
const OTHER: Explanation = {
  title: "Memory error",
  explanation: "The tool reports a kind of error that has no explanation here.",
  causes: [],
  fix: "See the manual of the tool for this kind.",
};

/** Causes and fixes where Python code calls C by ctypes or cffi. */
const FOREIGN: ReadonlyMap<Explanation, Pick<Explanation, "causes" | "fix">> = new Map([
  [
    OUTSIDE,
    {
      causes: [
        "a length argument that is larger than the buffer: check sizeof() and the terminating zero",
        "an array or structure that is declared smaller in Python than in C",
      ],
      fix: "Pass len() or ctypes.sizeof() of the buffer itself, and compare the declared types with the C header.",
    },
  ],
  [
    AFTER_FREE,
    {
      causes: [
        "an address that was kept after the library's function that frees it was called",
        "an address in a buffer that Python freed, because nothing refers to the buffer object any more",
      ],
      fix: "Keep a Python reference to the buffer as long as C uses it, and do not use an address after it was freed.",
    },
  ],
  [
    BAD_FREE,
    {
      causes: [
        "free() of the memory of a ctypes or cffi object, which Python frees by itself",
        "an address that was cut to 32 bits because the function has no restype or argtypes",
      ],
      fix: "Free only what a C function allocated for you, once, with the function that its library names; set restype and argtypes to c_void_p.",
    },
  ],
  [
    DOUBLE_FREE,
    {
      causes: [
        "an address that is passed to free() twice",
        "free() of the memory of a ctypes or cffi object, which Python frees by itself",
      ],
      fix: "Free only what a C function allocated for you, once, with the function that its library names.",
    },
  ],
  [
    LEAK,
    {
      causes: [
        "memory that a C function returned and that the program has to free",
        "restype = c_char_p: Python copies the string, and the address is lost",
      ],
      fix: "Call the library's function that frees the block; declare restype = c_void_p if you need the address for it. No Python line is known for a leak: tidemark run COMMAND lists the lines whose memory grows.",
    },
  ],
  [
    NULL_POINTER,
    {
      causes: ["None or 0 that was passed as a pointer", "a NULL result that was not checked"],
      fix: "Check pointers for None before you pass them or read from them.",
    },
  ],
  [
    WILD_POINTER,
    {
      causes: [
        "an address that was cut to 32 bits because the function has no restype or argtypes",
        "an integer or a wrong type that was passed as a pointer",
      ],
      fix: "Set argtypes and restype of the function, with c_void_p or POINTER(...) for each pointer.",
    },
  ],
  [
    UNDER_COUNT,
    {
      causes: [
        "ctypes.pythonapi.Py_DecRef of a reference that Python still uses",
        ...UNDER_COUNT.causes,
      ],
      fix: "Remove the Py_DecRef, or call Py_IncRef where the reference is taken.",
    },
  ],
]);

/** Valgrind's kinds, then AddressSanitizer's. */
const BY_KIND: readonly (readonly [RegExp, Explanation])[] = [
  [/^Uninit(?:Condition|Value)$/, UNINITIALISED],
  [/^(?:InvalidFree|double-free|bad-free|free)$/, BAD_FREE],
  [/^(?:MismatchedFree|MismatchedAllocateDeallocate\w*|alloc-dealloc-mismatch.*)$/, MISMATCH],
  [/^Overlap$|-param-overlap$/, OVERLAP],
  [/^SyscallParam$/, SYSCALL],
  [/^Repeated$/, SAME_FUNCTION],
  [/^heap-use-after-free$|^stack-use-after-|^use-after-poison$/, AFTER_FREE],
  [/^stack-overflow$/, STACK_EXHAUSTED],
  [/-overflow$|-underflow$|^dynamic-stack/, OUTSIDE],
  [/^undefined-behavior$/, UNDEFINED],
];
/** Valgrind's and AddressSanitizer's words for an access to an address that is in no block. */
const ACCESS = /^(?:Invalid(?:Read|Write|Jump)|FatalSignal|SEGV|BUS)$/;
/** A member of a structure behind a NULL pointer is closer to 0 than this. */
const NULL_PAGES = 65_536;

const ALLOCATES_OBJECT =
  /^(?:_?PyObject_(?:GC_)?(?:New|NewVar|Malloc|Alloc\w*)|_?PyType_(?:GenericAlloc|AllocNoTrack)|Py\w+_(?:New|From\w+)|gc_alloc|_?PyLong_\w+|_?PyBytes_\w+)/;

export function explain(report: Report): Explanation {
  const found = explainKind(report);
  const calledByHand = isForeignCall(report.stack) || isForeignCall(report.freed);
  const change = calledByHand ? FOREIGN.get(found) : undefined;
  if (change !== undefined) {
    return { ...found, ...change };
  }
  const isFreedByExtension = callersOf(report.freed).some(({ object }) => !isInterpreter(object));
  return found === UNDER_COUNT && !isFreedByExtension ? { ...found, fix: FREED_BY_PYTHON } : found;
}

function explainKind(report: Report): Explanation {
  const { kind, isLeak, stack, freed, allocated } = report;
  if (isLeak) {
    return makesObject(stack) || isOfPython(stack) ? OVER_COUNT : LEAK;
  }
  if (endedTooEarly(report)) {
    return UNDER_COUNT;
  }
  if (/^Invalid(?:Read|Write|Jump)$/.test(kind) && freed.length + allocated.length > 0) {
    return freed.length > 0 ? AFTER_FREE : OUTSIDE;
  }
  if (/^(?:double-free|InvalidFree)$/.test(kind) && freed.length > 0) {
    return DOUBLE_FREE;
  }
  const found = BY_KIND.find(([pattern]) => pattern.test(kind))?.[1];
  return found ?? (isCrash(report) || ACCESS.test(kind) ? explainAccess(report) : OTHER);
}

/**
 * Whether the block was a Python object, freed when its reference count reached 0, and then used as an object. A
 * pointer into its data that the extension kept (PyBytes_AsString) is another error.
 */
export function endedTooEarly(report: Report): boolean {
  const { kind, freed, allocated } = report;
  const isObject = makesObject(allocated) || (isOfPython(allocated) && freed.some(endsObject));
  return (
    /^(?:heap-use-after-free|Invalid(?:Read|Write|Jump|Free)|double-free)$/.test(kind) &&
    freed.length > 0 &&
    isObject &&
    !isBufferOfCtypes(allocated) &&
    !isPointerIntoData(report)
  );
}

/** Whether Python allocated the block for itself, not for an extension that called PyMem_Malloc or similar. */
function isOfPython(frames: readonly NativeFrame[]): boolean {
  const isMemory = ({ function: name }: NativeFrame) => /^_?PyMem_/.test(name);
  const caller = callerOf(frames.slice(frames.slice(0, 5).findLastIndex(isMemory) + 1));
  return caller !== undefined && isInterpreter(caller.object);
}

/** The frames that are not of the C library or of the tool. */
function callersOf(frames: readonly NativeFrame[]): NativeFrame[] {
  return frames.filter(({ object }) => object !== "" && !isSystem(object));
}

function callerOf(frames: readonly NativeFrame[]): NativeFrame | undefined {
  return callersOf(frames)[0];
}

/** The collector's links, then the reference count and the type: 32 bytes. */
const HEADER_BYTES = 32;

function isPointerIntoData({ message, stack }: Report): boolean {
  const offset = Number(/the address is (?:located )?(\d+) bytes inside/.exec(message)?.[1] ?? 0);
  const caller = callerOf(stack);
  return (
    offset >= HEADER_BYTES &&
    caller !== undefined &&
    !isInterpreter(caller.object) &&
    !/^_?Py/.test(caller.function)
  );
}

/** Whether the report says that a signal ended the program. */
export function isCrash({ kind }: Report): boolean {
  return /^(?:SEGV|BUS|FPE|ILL|ABRT|FatalSignal|stack-overflow)$/.test(kind);
}

/** Whether the program called abort(), which other errors do not cause: the tools' malloc does not. */
export function isAbort({ kind, message }: Report): boolean {
  return isCrash({ kind } as Report) && /\b(?:SIG)?ABRT\b/.test(`${kind} ${message}`);
}

/** The kind of an access outside any block: the pointer is NULL or invalid, or belongs to a broken object. */
function explainAccess({ kind, message, stack }: Report): Explanation {
  const words = `${kind} ${message}`;
  const special = SIGNALS.find(([pattern]) => pattern.test(words));
  if (special !== undefined) {
    return special[1];
  }
  const leaf = callerOf(stack);
  if (leaf !== undefined && isInterpreter(leaf.object) && !isForeignCall(stack)) {
    return BROKEN_OBJECT;
  }
  const address = /address (0x[0-9a-f]+)/i.exec(message)?.[1];
  return Number(address) < NULL_PAGES ? NULL_POINTER : WILD_POINTER;
}

/** Signals that are not about an address. */
const SIGNALS: readonly (readonly [RegExp, Explanation])[] = [
  [/stack overflow/, STACK_EXHAUSTED],
  [/\b(?:SIG)?FPE\b/, DIVISION],
  [/\b(?:SIG)?ABRT\b/, ABORTED],
  [/\b(?:SIG)?(?:ILL|TRAP|SYS)\b/, CRASH],
];

function endsObject({ function: name }: NativeFrame): boolean {
  return /^_?Py_(?:Dealloc|DECREF|XDECREF)|^subtype_dealloc$|^PyObject_(?:GC_Del|Free)$/.test(name);
}

/** Whether Python's functions for objects are at the leaf, below malloc. */
export function makesObject(stack: readonly NativeFrame[]): boolean {
  return stack.slice(0, 6).some(({ function: name }) => ALLOCATES_OBJECT.test(name));
}

/** The most severe first. */
export function severityOf({ kind, freed }: Report): number {
  if (/Write|double-free|InvalidFree|bad-free/.test(kind) || freed.length > 0) {
    return 0;
  }
  return /^Uninit|^undefined/.test(kind) ? 2 : 1;
}
