#!/usr/bin/env python3
"""Compares the Objective-C headers of sdk/ with the metadata that PyObjC publishes of Apple's frameworks.

usage: compare.py METADATA_FOLDER

PyObjC knows the values of enumerations, the methods that take blocks or have Booleans with the types of the blocks, and the
methods of protocols with the types of their arguments. What differs is an error, and so is a method that PyObjC must know and
does not. Of properties it knows the getters and setters of Booleans, and the setters of blocks. Of other methods and properties
the metadata says nothing, and of those that it knows not all. So all of them must be in documented.txt, methods as they are
written, properties with their type and attributes, so that a change by mistake is noticed. PyObjC knows nothing of availability
either: each AVAIL of a header must be there too, and each one there in its header. The script also checks that it finds
wrong declarations.
"""

import ast
import pathlib
import re
import sys

DOCUMENTED = pathlib.Path(__file__).parent / "documented.txt"
FRAMEWORKS = pathlib.Path(__file__).parent / "sdk/System/Library/Frameworks"

# Encodings as Objective-C has them on a 64-bit system. PyObjC has Z for BOOL, as its own and Apple's header differ.
ENCODINGS = {
    "void": "v", "BOOL": "Z", "NSInteger": "q", "NSUInteger": "Q", "int64_t": "q", "long long": "q", "unsigned long long": "Q",
    "int": "i", "float": "f", "double": "d", "id": "@", "SEL": ":", "Class": "#", "instancetype": "@",
    "PHAssetResourceDataRequestID": "i", "ObjectType": "@", "CFRunLoopRef": "^{__CFRunLoop=}", "UInt8": "C", "char": "c",
}
# An enumeration: PyObjC has the types of some of them with the other sign.
ENUMERATION = "an enumeration"
# Bytes, as PyObjC has them or as the header does.
BYTES = {"^C", "*", "^v", "^^C", "^*"}


class Metadata:
    def __init__(self, text):
        self.values = {name: int(value) for part in re.findall(r'enums = """(.*?)"""', text, re.S)
                       for name, value in re.findall(r"\$?(\w+)@(-?\d+)", part)}
        self.methods = {}
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "r" and len(call.args) == 3:
                try:
                    owner, selector, facts = (ast.literal_eval(argument) for argument in call.args)
                except ValueError:
                    continue  # The types depend on the processor.
                # The methods of protocols come after others of this name, and say more.
                self.methods[owner.decode(), selector.decode()] = facts


def uncommented(header):
    return re.sub(r"//[^\n]*", "", header)


def without_attributes(text):
    """Without macros and attributes. What stays are types, names and selectors."""
    previous = None
    while previous != text:
        previous = text
        text = re.sub(r"__attribute__\s*\(\([^()]*(\([^()]*(\([^()]*\)[^()]*)*\)[^()]*)*\)\)", "", text)
    text = re.sub(r"\b(AVAIL|NS_SWIFT_NAME)\((?:[^()]|\([^()]*\))*\)", "", text)
    return re.sub(r"\b(NS_SWIFT_SENDABLE|NS_NOESCAPE|NS_DESIGNATED_INITIALIZER|NS_UNAVAILABLE|UI_ACTOR)\b", "", text)


def group(text, start):
    """The end of the parenthesis that begins at `start`."""
    depth = 0
    for index in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index + 1
    raise ValueError(text)


def split(arguments):
    """Splits at the commas that are in no parenthesis or angle bracket."""
    parts, depth = [""], 0
    for character in arguments:
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def encoding(written, named):
    """The encoding of a type as it is written in a header; a block is "@?"."""
    text = re.sub(r"\b(nullable|nonnull|_Nullable|_Nonnull|const|__kindof|null_unspecified)\b", "", written)
    if "^" in text:
        return "@?"
    text = re.sub(r"<.*>", "", text) if "*" in re.sub(r"<.*>", "", text) else text
    stars = text.count("*")
    name = " ".join(text.replace("*", " ").split())
    if name in named:
        return named[name]
    # A block's argument may have a name.
    words = name.split()
    for count in range(len(words), 0, -1):
        known = ENCODINGS.get(" ".join(words[:count])) or named.get(" ".join(words[:count]))
        if known:
            return "^" * stars + known
    if stars:
        return "^" * (stars - 1) + "@"
    return "@" if text.strip().endswith(">") or "id" in words else None


def block(written, named):
    """The encodings of the result and the arguments of a block's type."""
    mark = written.index("^")
    opening = written.rindex("(", 0, mark)
    closing = group(written, opening)
    arguments = written[written.index("(", closing) + 1:group(written, written.index("(", closing)) - 1]
    result = encoding(written[:opening], named)
    listed = [] if arguments.strip() == "void" else [encoding(part, named) for part in split(arguments)]
    return result, listed


def parsed(method):
    """The selector of a method, the type of its result, and those of its arguments."""
    text = without_attributes(method)
    start = text.index("(")
    end = group(text, start)
    result, rest = text[start + 1:end - 1], text[end:].rstrip("; ")
    selector, types = "", []
    while match := re.match(r"\s*(\w+):\s*(?=\()", rest):
        end = group(rest, match.end())
        selector += match[1] + ":"
        types.append(rest[match.end() + 1:end - 1])
        rest = re.sub(r"^\s*\w+", "", rest[end:], count=1)
    return selector or rest.split()[0], result, types


class Property:
    """A property as it is written in a header."""

    def __init__(self, owner, written):
        attributes, text = re.fullmatch(r"@property\s*(?:\(([^)]*)\))?\s*(.*);", " ".join(without_attributes(written).split())).groups()
        self.owner, self.text = owner, text.strip()
        self.attributes = {word.strip() for word in (attributes or "").split(",")}
        self.is_block = "^" in text
        self.name = re.search(r"\^\s*(\w+)\)" if self.is_block else r"(\w+)$", self.text)[1]
        self.type = self.text[:-len(self.name)].strip()
        named = [word.removeprefix("getter=") for word in self.attributes if word.startswith("getter=")]
        self.getter = named[0] if named else self.name
        self.setter = f"set{self.name[0].upper()}{self.name[1:]}:"

    @property
    def is_readonly(self):
        return "readonly" in self.attributes

    def __str__(self):
        """As in documented.txt. How the value is kept is not of interest here."""
        told = [word for word in ("class", "readonly", "nullable") if word in self.attributes]
        told += [f"getter={self.getter}"] if self.getter != self.name else []
        return f"@property [{self.owner} {self.name}] ({', '.join(told)}) {self.text}"


def text_of(value):
    return value.decode() if isinstance(value, bytes) else value


def same(ours, theirs):
    """Whether two encodings are of the same type. Characters and Booleans differ between processors."""
    theirs = text_of(theirs)
    if theirs in ("@?", "@") and ours in ("@?", "@"):
        return ours == theirs or ours == "@"
    if ours == ENUMERATION:
        return theirs in ("q", "Q")
    return ours == theirs or {ours, theirs} <= {"Z", "B", "c"} or {ours, theirs} <= BYTES


def differences(method, facts, named):
    """What a method has otherwise than PyObjC; and how many types were compared."""
    selector, result, types = parsed(method)
    found, compared = [], 0

    def compare(what, ours, theirs):
        nonlocal compared
        compared += 1
        if ours is None or not same(ours, theirs):
            found.append(f"{what} is {ours or 'of an unknown type'} here, and {text_of(theirs)} to PyObjC")

    def compare_block(what, written, callable):
        if "^" not in written:
            found.append(f"{what} is no block here")
            return
        ours_result, ours = block(written, named)
        compare(f"the result of {what}", ours_result, callable["retval"]["type"])
        theirs = [callable["arguments"][number] for number in sorted(callable["arguments"])][1:]
        if len(ours) != len(theirs):
            found.append(f"{what} has {len(ours)} arguments here, and {len(theirs)} to PyObjC")
        for number, (mine, other) in enumerate(zip(ours, theirs)):
            compare(f"argument {number + 1} of {what}", mine, other["type"])

    if "type" in facts.get("retval", {}):
        compare("the result", encoding(result, named), facts["retval"]["type"])
    for number, argument in facts.get("arguments", {}).items():
        # The first two arguments of a message are the object and the selector.
        if not 0 <= number - 2 < len(types):
            found.append(f"argument {number - 1} is not there")
            continue
        what, written = f"argument {number - 1}", types[number - 2]
        if "callable" in argument:
            compare_block(what, written, argument["callable"])
        elif "type" in argument:
            compare(what, encoding(written, named), argument["type"])
    return selector, found, compared


def availabilities(framework, header):
    """What each AVAIL of a header is about, as documented.txt has it."""
    found, owner = set(), ""
    lines = uncommented(header).splitlines()
    for number, line in enumerate(lines):
        if match := re.search(r"@(?:interface|protocol) (\w+)(?!\w|.*(?:;|@end))", line):
            owner = match[1]
        if line.startswith("@end"):
            owner = ""
        if line.lstrip().startswith("#"):
            continue
        for mark in re.finditer(r"AVAIL\([^)]*\)", line):
            before = line[:mark.start()]
            if re.match(r"\s*=", line[mark.end():]):
                subject = re.findall(r"\w+", before)[-1]
            elif without_attributes(before).strip():
                subject = " ".join((before if before.startswith("}") else without_attributes(before)).split())
            else:
                # It stands before the interface to which it belongs.
                subject = next(match[0] for line in lines[number:] if (match := re.match(r"@\w+ \w+", line)))
            found.add(" ".join([mark[0].replace(" ", ""), framework, owner, subject]).replace("  ", " "))
    return found


def named_types(header):
    """The encodings of the enumerations and of the names for strings."""
    strings = {name: "@" for name in re.findall(r"typedef NSString \*(\w+)", header)}
    return strings | {name: ENUMERATION for name in re.findall(r"NS_(?:ENUM|OPTIONS)\(NS\w+,\s*(\w+)\)", header)}


class Comparison:
    def __init__(self):
        self.values = self.methods = self.types = self.booleans = 0
        self.errors = []
        # Methods and properties, as documented.txt has them, and how many of them PyObjC says nothing of.
        self.declared = set()
        self.unknown = 0

    def compare_values(self, header, metadata):
        for name, value in re.findall(r"\b((?:PH|NS)[A-Z]\w+)(?: AVAIL\([^)]*\))? = (-?\d+)", header):
            if name in metadata.values and metadata.values[name] != int(value):
                self.errors.append(f"{name} is {value} here, and {metadata.values[name]} to PyObjC")
            self.values += metadata.values.get(name) == int(value)

    def compare_method(self, owner, known_as, method, metadata, named, must_be_known):
        selector = parsed(method)[0]
        facts = [metadata.methods[name, selector] for name in known_as if (name, selector) in metadata.methods]
        # Availability is compared by itself.
        self.declared.add(f"{owner} {' '.join(re.sub(r' *AVAIL.[^)]*.', '', method).split())}")
        if not facts:
            self.unknown += 1
            if must_be_known:
                self.errors.append(f"{method[0]}[{owner} {selector}] is not known to PyObjC")
            return
        self.methods += 1
        for fact in facts:
            _, found, compared = differences(method, fact, named)
            self.types += compared
            self.errors += [f"{method[0]}[{owner} {selector}]: {difference}" for difference in found]

    def compare(self, header, metadata):
        header = uncommented(header)
        named = named_types(header)
        self.compare_values(header, metadata)
        for kind, owner, body in re.findall(r"@(interface|protocol) (\w+)(?![^\n]*(?:@end|;))[^\n]*\n(.*?)@end", header, re.S):
            for method in re.findall(r"^[-+] \([^;]*?;", body, re.M):
                if kind == "interface":
                    must = "^" in method or method[2:].startswith("(BOOL)")
                    self.compare_method(owner, [owner], method, metadata, named, must)
                else:
                    # PyObjC has the methods of protocols under NSObject. It has those of delegates completely.
                    must = owner.endswith(("Delegate", "Observer"))
                    self.compare_method(owner, ["NSObject", owner], method, metadata, named, must)
        self.compare_properties(header, metadata, named)

    def compare_properties(self, header, metadata, named):
        found = 0
        for owner, body in re.findall(r"@(?:interface|protocol) (\w+)\b(?!\s*;)(.*?)@end", header, re.S):
            for written in re.findall(r"@property[^;]*;", body):
                found += 1
                self.compare_property(Property(owner, written), metadata, named)
        if found != header.count("@property"):
            self.errors.append(f"{header.count('@property') - found} properties belong to no interface and no protocol")

    def compare_property(self, property, metadata, named):
        if property.type == "BOOL":
            return self.compare_boolean(property, metadata)
        if property.is_block:
            plain = property.text.replace(f"^{property.name}", "^")
            method = f"- (void){property.setter}({plain})value;"
            self.compare_method(property.owner, [property.owner], method, metadata, named, must_be_known=True)
        self.unknown += 1
        self.declared.add(str(property))

    def compare_boolean(self, property, metadata):
        """PyObjC knows the getter and the setter of each."""
        self.booleans += 1
        owners = [property.owner, "NSObject"]
        known = [metadata.methods[owner, property.getter] for owner in owners if (owner, property.getter) in metadata.methods]
        if not any(same("Z", facts.get("retval", {}).get("type", "")) for facts in known):
            self.errors.append(f"{property}: PyObjC knows no such getter of a Boolean")
        if property.is_readonly == any((owner, property.setter) in metadata.methods for owner in owners):
            self.errors.append(f"{property}: PyObjC knows {'a' if property.is_readonly else 'no'} setter")


def errors(framework, header, metadata_folder):
    """What is wrong with a header, and what was compared."""
    comparison = Comparison()
    comparison.compare(header, Metadata((metadata_folder / framework / "_metadata.py").read_text()))
    documented = set(DOCUMENTED.read_text().splitlines())
    comparison.errors += [f"{declared} is not in documented.txt" for declared in sorted(comparison.declared - documented)]
    here = availabilities(framework, header)
    there = {line for line in documented if line.startswith("AVAIL") and line.split()[1] == framework}
    comparison.errors += [f"{declared} is not in documented.txt" for declared in sorted(here - there)]
    comparison.errors += [f"{declared} is in documented.txt only" for declared in sorted(there - here)]
    return comparison.errors, (
        f"PyObjC confirms {comparison.values} values, {comparison.methods} methods, {comparison.types} of their types and "
        f"{comparison.booleans} Boolean properties of {framework}; it has no metadata of {comparison.unknown} methods and properties, of which documented.txt is the only other source, as it is of {len(here)} availabilities")


# Wrong declarations, each of which must be an error.
WRONG = [
    ("Photos", "dataReceivedHandler:(void (^)(NSData *data))", "dataReceivedHandler:(BOOL (^)(double, int, NSData *))"),
    ("Photos", "(void (NS_SWIFT_SENDABLE ^)(PHAuthorizationStatus status))handler", "(void (^)(void))handler"),
    ("Photos", "cancelDataRequest:(PHAssetResourceDataRequestID)", "cancelDataRequestz:(double)"),
    ("Photos", "cancelDataRequest:(PHAssetResourceDataRequestID)", "cancelDataRequest:(double)"),
    ("Photos", "fetchAssetsWithLocalIdentifiers", "fetchAssetsWithLocalIds"),
    ("Photos", "progressHandler)(double progress)", "progressHandler)(float progress)"),
    ("Photos", "PHAccessLevelReadWrite = 2", "PHAccessLevelReadWrite = 3"),
    ("Foundation", "task needNewBodyStream:(void", "task needNewBodyStreamz:(void"),
    ("Foundation", "needNewBodyStream:(void (NS_SWIFT_SENDABLE ^)(NSInputStream *_Nullable bodyStream))",
     "needNewBodyStream:(void (^)(int))"),
    ("Foundation", "totalBytesSent:(int64_t)", "totalBytesSent:(int)"),
    ("Foundation", "NSDate *earliestBeginDate", "NSString *earliestBeginDate"),
    ("Foundation", "earliestBeginDate", "earliestBeginDatez"),
    ("Foundation", "(nullable, copy) NSDate *earliestBeginDate", "(copy) NSDate *earliestBeginDate"),
    ("Foundation", "(readonly) int64_t countOfBytesSent", "int64_t countOfBytesSent"),
    ("Foundation", "BOOL allowsCellularAccess", "NSInteger allowsCellularAccess"),
    ("Foundation", "BOOL allowsCellularAccess", "BOOL allowsCellularAcces"),
    ("Foundation", "(readonly) BOOL hasBytesAvailable", "BOOL hasBytesAvailable"),
    ("Foundation", "(getter=isDiscretionary) BOOL", "BOOL"),
    ("Photos", "modificationDate", "modificationDat"),
    ("Photos", "originalFilename", "originalFileName"),
    ("Photos", "(nonatomic, copy, nullable) void (^progressHandler)", "(nonatomic, copy) void (^progressHandler)"),
    ("Photos", "getter=isNetworkAccessAllowed", "getter=networkAccessAllowed"),
    ("Photos", "*error AVAIL(27.0,26.4)", "*error"),
    ("Photos", "PHAssetResourceUploadJobActionProcess AVAIL(27.0,26.5)", "PHAssetResourceUploadJobActionProcess AVAIL(27.0,26.1)"),
    ("Photos", "toFile:(NSURL *)fileURL", "toFile:(NSInteger)fileURL"),
    ("Photos", "(NSError *_Nullable error))completionHandler;\n- (void)cancel", "(NSError *error))completionHandler;\n- (void)cancel"),
    ("Photos", "createJobWithDestination:(NSURLRequest *)", "createJobWithDestination:(NSURL *)"),
    ("Photos", "assetResourcesForAsset:(PHAsset *)", "assetResourcesForAsset:(NSString *)"),
    ("Photos", "NS_SWIFT_NAME(fetchJobs(action:options:))", "NS_SWIFT_NAME(jobs(action:options:))"),
    ("Foundation", "*earliestBeginDate AVAIL(10.13,11.0)", "*earliestBeginDate AVAIL(10.12,10.0)"),
]


def main():
    metadata_folder, failed = pathlib.Path(sys.argv[1]), False
    headers = {name: (FRAMEWORKS / f"{name}.framework/Headers/{name}.h").read_text() for name in ("Foundation", "Photos")}
    for framework, header in headers.items():
        found, summary = errors(framework, header, metadata_folder)
        print(f"apple-check: {summary}")
        for error in found:
            print(f"apple-check: {framework}.h: {error}", file=sys.stderr)
        failed = failed or bool(found)
    for framework, right, wrong in WRONG:
        changed = headers[framework].replace(right, wrong)
        if changed == headers[framework] or not errors(framework, changed, metadata_folder)[0]:
            print(f"apple-check: {framework}.h is accepted with {wrong}", file=sys.stderr)
            failed = True
    if not failed:
        print(f"apple-check: {len(WRONG)} of {len(WRONG)} wrong declarations are found")
    sys.exit(failed)


if __name__ == "__main__":
    main()
