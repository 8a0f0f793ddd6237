"""A validator for the part of JSON Schema that http/openapi.json uses. A keyword it does not know is an
error, so that nothing in the description goes unchecked."""
import re

ANNOTATIONS = {"description", "default", "format", "title", "summary"}
KNOWN = ANNOTATIONS | {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "pattern", "minimum", "maximum", "maxLength"}
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return {"string": str, "boolean": bool, "object": dict, "array": list, "null": type(None)}[name] is type(value)


def errors(schema, value, document, where="$"):
    """What is wrong with value, as a list of strings."""
    unknown = set(schema) - KNOWN
    if unknown:
        return [f"{where}: the schema uses {sorted(unknown)}, which this validator does not know"]
    if "$ref" in schema:
        target = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return errors(target, value, document, where)
    out = []
    if "anyOf" in schema:
        tries = [errors(s, value, document, where) for s in schema["anyOf"]]
        if all(tries):
            out += min(tries, key=len)
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(is_type(value, n) for n in names):
            return out + [f"{where}: {value!r:.80} is not {names}"]
    if "enum" in schema and not any(value == e and isinstance(value, bool) == isinstance(e, bool) for e in schema["enum"]):
        out.append(f"{where}: {value!r:.80} is not one of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        out.append(f"{where}: {value!r:.80} is not {schema['const']!r}")
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            out.append(f"{where}: {value!r:.80} does not match {schema['pattern']}")
        if schema.get("format") == "date-time" and not TIME.match(value):
            out.append(f"{where}: {value!r:.80} is no time")
        if len(value) > schema.get("maxLength", len(value)):
            out.append(f"{where}: too long")
    if is_type(value, "number"):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            out.append(f"{where}: {value} is out of range")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            out += errors(schema["items"], item, document, f"{where}[{i}]")
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                out.append(f"{where}: {name} is missing")
        extra = schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in schema.get("properties", {}):
                out += errors(schema["properties"][name], item, document, f"{where}.{name}")
            elif extra is False:
                out.append(f"{where}: {name} is not described")
            elif isinstance(extra, dict):
                out += errors(extra, item, document, f"{where}.{name}")
    return out


def check_answer(document, method, template, status, content_type, body):
    """What is wrong with an answer, by the description of its operation."""
    operation = document["paths"].get(template, {}).get(method.lower())
    if not operation:
        return [f"{method} {template} is not described"]
    answers = operation["responses"]
    answer = answers.get(str(status)) or (answers.get("default") if status >= 400 else None)
    if not answer:
        return [f"{method} {template}: status {status} is not described"]
    if status == 304:
        return []
    kind = (content_type or "").split(";")[0]
    content = answer.get("content", {}).get(kind)
    if not content:
        return [f"{method} {template} {status}: content type {kind} is not described"]
    if kind.endswith("json"):
        return errors(content["schema"], body, document)
    return []
