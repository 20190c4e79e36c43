#!/usr/bin/env python3
"""Writes src/cpython/layouts/ (data, no code) from the headers of the installed interpreters.

    generate_outside.py            write one table for each version whose structures differ, as its differences from the
                                   previous version (for a debug or JIT build: from the usual build)
    generate_outside.py --check    write nothing; fail when headers found here have no matching table

The fields are listed in outside_fields.py. Not every version has every field: the line numbers of the compiler's
errors show which are missing. A field that no version has is a mistake and stops the generator. A table is made for
the usual build and, where they differ, for a Py_DEBUG build and a JIT build. Those builds are
configured by compiler arguments, not by the headers.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

from generate import include_folders
from outside_fields import FIELDS, PUBLISHED

FOLDER = os.path.dirname(os.path.abspath(__file__))
OUTPUT = os.path.normpath(os.path.join(FOLDER, "..", "..", "src", "cpython", "layouts"))
OFFSET = re.compile(r"^((?:struct )?\w+)\.([\w.]+)$")
WRITTEN = re.compile(r"^export const (\w+): PythonLayout = (?:changed\((\w+), )?(\{.*?^\})\)?;", re.MULTILINE | re.DOTALL)


def questions():
    """Yields (group, field, C expression) for every alternative of every field."""
    for group, fields in FIELDS.items():
        for field, ways in fields.items():
            for way in ways.split(" | "):
                offset = OFFSET.match(way)
                yield group, field, f"offsetof({offset[1]}, {offset[2]})" if offset else way
    for member, target in PUBLISHED.items():
        yield "published", target, f"offsetof(struct _Py_DebugOffsets, {member})"
    yield "published", "size", "sizeof(struct _Py_DebugOffsets)"


VARIANTS = {"": [], "debug": ["-DPy_DEBUG"], "jit": ["-D_Py_TIER2=3", "-D_Py_JIT"]}


def compile_answers(include, variant):
    """The fields of one set of headers as {group: {field: number}}, and the headers' version."""
    asked = list(questions())
    known = [True] * len(asked)
    with tempfile.TemporaryDirectory() as scratch:
        source, program = os.path.join(scratch, "probe.c"), os.path.join(scratch, "probe")
        # Debian keeps pyconfig.h in an architecture-specific folder next to the headers.
        command = ["cc", "-std=gnu11", "-w", "-fmax-errors=0", "-fno-diagnostics-show-caret", "-DPy_BUILD_CORE",
                   *VARIANTS[variant], "-I", include, "-I", os.path.join(include, "internal"),
                   "-I", FOLDER, "-idirafter", os.path.dirname(include), source, "-o", program]
        for _ in range(2):
            with open(source, "w", encoding="ascii") as out:
                out.write('#include "outside_prelude.c"\nint main(void) { puts(PY_VERSION);\n#line 1 "questions"\n')
                for (group, field, expression), good in zip(asked, known):
                    out.write(f'printf("%s %s %lld\\n", "{group}", "{field}", (long long)({expression}));\n'
                              if good else "\n")
                out.write("return 0; }\n")
            result = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
            # The compiler reports an error in a macro at the macro, and the line that used it in a note.
            for line in re.findall(r"^questions:(\d+):.*(?:error:|in expansion of macro)", result.stderr, re.M):
                known[int(line) - 1] = False
        if result.returncode != 0:
            sys.exit(f"{include}: {result.stderr}")
        lines = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    answers = {group: {} for group in [*FIELDS, "published"]}
    for line in lines[1:]:
        group, field, number = line.split()
        answers[group].setdefault(field, int(number))
    return lines[0], answers


def table(answers):
    """One table, complete: {group: {field: number, or None where the version has no such field}}."""
    groups = {group: {field: answers[group].get(field) for field in fields} for group, fields in FIELDS.items()}
    published = answers["published"]
    slots = {target: published[target] for target in PUBLISHED.values() if target in published}
    return {**groups, "published": {"size": published["size"], "slots": slots} if published else None}


def versions():
    """Every table of the headers found: (version, variant, table, headers), oldest first."""
    found = []
    for _, include in include_folders():
        for variant in VARIANTS:
            version, answers = compile_answers(include, variant)
            found.append((version, variant, table(answers), include))
    return sorted(found, key=order)


def order(row):
    return [int(part) for part in re.findall(r"\d+", row[0])], row[1]


def minor_of(version):
    return int(version.split(".")[1])


def written():
    """Every table as committed, complete: {(version, variant): table}."""
    tables, constants = {}, {}
    names = [name for name in (os.listdir(OUTPUT) if os.path.isdir(OUTPUT) else []) if name.startswith("python_")]
    for name in sorted(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)]):
        with open(os.path.join(OUTPUT, name), encoding="ascii") as file:
            text = file.read()
        for constant, base, body in WRITTEN.findall(text):
            quoted = re.sub(r"(\w+):", r'"\1":', re.sub(r'"([\w.]+)":', r'"\1" :', body))
            content = json.loads(re.sub(r",(\s*})", r"\1", quoted))
            version, debug = content.pop("version"), content.pop("debug")
            whole = {group: {**constants.get(base, {}).get(group, {}), **fields} if group != "published" else fields
                     for group, fields in content.items()}
            constants[constant] = {**constants.get(base, {}), **whole}
            variant = "jit" if constant.endswith("_JIT") else "debug" if debug else ""
            tables[version, variant] = constants[constant]
    return tables


def constant(version, variant):
    return "PYTHON_" + re.sub(r"\W", "_", version).upper() + ("_" + variant.upper() if variant else "")


def module(version):
    return "python_" + re.sub(r"\W", "_", version)


def literal(value):
    """The TypeScript of a table or a part of one."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name if name.isidentifier() else json.dumps(name)}: {literal(part)}"
                                for name, part in value.items()) + " }"
    return "null" if value is None else str(value)


def changes(base, own):
    """The fields of a table that differ from its base; `published` is always complete."""
    differing = {group: {name: number for name, number in fields.items() if base[group][name] != number}
                 for group, fields in own.items() if group != "published"}
    published = {} if base["published"] == own["published"] else {"published": own["published"]}
    return {**{group: fields for group, fields in differing.items() if fields}, **published}


def data_file(version, tables):
    """`tables`: (variant, table, base). base is None, or the (version, variant, table) that this table extends."""
    bases = [base for _, _, base in tables if base]
    parts = [f"/** Generated by agent/layouts/generate_outside.py from the headers of CPython {version}. */"]
    if bases:
        parts.append('import { changed } from "./changed.js";')
    parts.append('import type { PythonLayout } from "./layout.js";')
    parts += [f'import {{ {constant(*base[:2])} }} from "./{module(base[0])}.js";' for base in bases if base[0] != version]
    for variant, own, base in tables:
        content = changes(base[2], own) if base else own
        groups = "\n".join(f"  {group}: {literal(fields)}," for group, fields in content.items())
        opening, closing = (f"changed({constant(*base[:2])}, {{", "});") if base else ("{", "};")
        parts.append(f"\nexport const {constant(version, variant)}: PythonLayout = {opening}\n"
                     f'  version: "{version}",\n  debug: {str(variant == "debug").lower()},\n{groups}\n{closing}')
    return "\n".join(parts) + "\n"


def layout_type(everything):
    lines = ["/** Generated by agent/layouts/generate_outside.py: what a table of offsets holds. */", "",
             "/** Of one version of CPython, as its headers have it. Offsets and sizes in bytes from the start of the",
             " * structure that the comment names; null: that version has no such thing. */",
             "export interface PythonLayout {", "  /** Of the headers. */", "  readonly version: string;",
             "  /** Of builds with Py_DEBUG. */", "  readonly debug: boolean;"]
    for group, fields in FIELDS.items():
        lines.append(f"  readonly {group}: {{")
        for field, ways in fields.items():
            holders = sum(table[group][field] is not None for table in everything)
            if holders == 0:
                sys.exit(f"no version knows {group}.{field}: {ways}")
            kind = "number" if holders == len(everything) else "number | null"
            lines.append(f"    readonly {field}: {kind}; // {ways}")
        lines.append("  };")
    lines += ["  /** The size of _Py_DebugOffsets and, by field of this table, the offset of the u64 in it that publishes",
              "   * the field; null before 3.13. */",
              "  readonly published: { readonly size: number; readonly slots: Readonly<Record<string, number>> } | null;",
              "}"]
    return "\n".join(lines) + "\n"


def files():
    """Every file to write: name -> text. Tables whose headers are not found here stay as they are."""
    everything = written()
    everything.update({(version, variant): own for version, variant, own, _ in versions()})
    texts, tables, names, known, usual = {}, {}, [], set(), None
    for version, variant, own in sorted(((*key, own) for key, own in everything.items()), key=order):
        # A patch version or build with the same table needs no table of its own, except a debug build: it
        # stores objects differently even where its structures are the same.
        if any(set(own[group]) != set(fields) for group, fields in FIELDS.items()):
            sys.exit(f"the table of {version} {variant} lacks a field, and its headers are not here")
        same = minor_of(version), variant == "debug", json.dumps(own, sort_keys=True)
        if same in known:
            continue
        known.add(same)
        tables.setdefault(version, []).append((variant, own, usual))
        names.append(constant(version, variant))
        if variant == "":
            usual = version, variant, own
    for version, parts in tables.items():
        texts[module(version) + ".ts"] = data_file(version, parts)
    imports = [f"import {{ {', '.join(constant(version, variant) for variant, _, _ in parts)} }} from "
               f'"./{module(version)}.js";' for version, parts in tables.items()]
    listed = ",\n".join(f"  {name}" for name in names)
    texts["index.ts"] = ("/** Generated by agent/layouts/generate_outside.py: every table of offsets, oldest version first. */\n"
                         'import type { PythonLayout } from "./layout.js";\n' + "\n".join(imports)
                         + '\n\nexport type { PythonLayout } from "./layout.js";\n\n'
                         + f"export const LAYOUTS: readonly PythonLayout[] = [\n{listed},\n];\n")
    texts["layout.ts"] = layout_type(list(everything.values()))
    return texts


def check():
    """Every set of headers found here must match a table of its minor version."""
    committed = written()
    failed = False
    found = versions()
    for version, variant, own, include in found:
        same = any(minor_of(other) == minor_of(version) and table == own for (other, _), table in committed.items())
        failed = failed or not same
        print(f"{'ok' if same else 'not ok'} - layout of {version} {variant} agrees with {include}")
    if not found:
        print("ok - layouts # SKIP no interpreter headers found")
    if failed:
        print(f"# to write the tables again: python3 {os.path.relpath(__file__)} && npm run format")
    return 1 if failed else 0


def main(arguments):
    if arguments == ["--check"]:
        return check()
    if arguments:
        sys.exit(__doc__)
    os.makedirs(OUTPUT, exist_ok=True)
    for name, text in files().items():
        with open(os.path.join(OUTPUT, name), "w", encoding="ascii") as out:
            out.write(text)
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
