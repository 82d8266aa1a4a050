import os

with open(0, "rb", closefd=False) as _stdin:
    _function, _, _source = _stdin.read().decode("utf-8").partition("\n")
os.write(1, b"\x1ebegun\x1e")
_answer = ("\x1eearnest\x1f" + run(_source, _function) + "\x1e").encode("ascii", "replace")
while _answer:
    _answer = _answer[os.write(1, _answer):]
os._exit(0)
