#!/usr/bin/env python3
"""Compares the Objective-C headers of sdk/ with the metadata that PyObjC publishes of Apple's frameworks.

usage: compare.py METADATA_FOLDER

PyObjC knows the values of enumerations, and the methods that take blocks or have Booleans. A value that differs, and such a
method that PyObjC does not know, is an error. For the rest of the headers the metadata says nothing.
"""

import pathlib
import re
import sys

FRAMEWORKS = pathlib.Path(__file__).parent / "sdk/System/Library/Frameworks"


def known(metadata):
    """The values of all enumerators, and the selectors of each class."""
    values = {name: int(value) for text in re.findall(r'enums = """(.*?)"""', metadata, re.S)
              for name, value in re.findall(r"\$?(\w+)@(-?\d+)", text)}
    selectors = {}
    for owner, selector in re.findall(r'r\(\s*b"(\w+)",\s*b"([\w:]+)"', metadata):
        selectors.setdefault(owner, set()).add(selector)
    return values, selectors


def selector(declaration):
    without_types = re.sub(r"\([^()]*(\([^()]*(\([^()]*\)[^()]*)*\)[^()]*)*\)", "", declaration.split("__attribute__")[0])
    without_macros = re.split(r"\b(?:AVAIL|NS_)\w*", without_types)[0]
    return "".join(re.findall(r"\w+:", without_macros)) or re.findall(r"\w+", without_macros)[0]


def compare(header, metadata):
    values, selectors = known(metadata)
    confirmed, errors = 0, []
    for name, value in re.findall(r"\b((?:PH|NS)[A-Z]\w+) = (-?\d+)", header):
        if name in values and values[name] != int(value):
            errors.append(f"{name} is {value} here, and {values[name]} to PyObjC")
        confirmed += values.get(name) == int(value)
    for owner, body in re.findall(r"@interface (\w+)[^\n]*\n(.*?)@end", header, re.S):
        for method in re.findall(r"^[-+] \([^;]*?;", body, re.M):
            is_known = selector(method) in selectors.get(owner, ())
            confirmed += is_known
            if not is_known and ("^" in method or method[2:].startswith("(BOOL)")):
                errors.append(f"{method[0]}[{owner} {selector(method)}] is not known to PyObjC")
    return confirmed, errors


def main():
    folder, failed = pathlib.Path(sys.argv[1]), False
    for framework in ("Foundation", "Photos"):
        header = (FRAMEWORKS / f"{framework}.framework/Headers/{framework}.h").read_text()
        confirmed, errors = compare(header, (folder / framework / "_metadata.py").read_text())
        print(f"apple-check: PyObjC confirms {confirmed} declarations of {framework}")
        for error in errors:
            print(f"apple-check: {framework}.h: {error}", file=sys.stderr)
        failed = failed or bool(errors)
    sys.exit(failed)


if __name__ == "__main__":
    main()
